//! Rubrics and patches between their documents and their events, and the rules `rubric` and `patch`: the
//! ledger's own parser reads every document again, at append and in `verify`.

use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::PatchFamilyId;
use clover_event::id::PatchId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::rubric::AuthorKind;
use clover_event::payload::rubric::ChangeOp;
use clover_event::payload::rubric::CodeLength;
use clover_event::payload::rubric::LeafChange;
use clover_event::payload::rubric::LeafValue;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::PatchRejected;
use clover_event::payload::rubric::RejectStage;
use clover_event::payload::rubric::RubricLeaf;
use clover_event::payload::rubric::RubricRegistered;
use clover_event::payload::rubric::SourceText;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::yaml::YamlError;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer as Answer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Count;
use clover_projection::iterations::Iteration;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::manifests::Manifests;
use clover_projection::rubrics::RubricRegistration;
use clover_projection::rubrics::Rubrics;
use clover_rubric::Change;
use clover_rubric::CheckedPatch;
use clover_rubric::Code;
use clover_rubric::Context;
use clover_rubric::Family;
use clover_rubric::Op;
use clover_rubric::Patch;
use clover_rubric::PatchFault;
use clover_rubric::Rubric;
use clover_rubric::Value;
use clover_rubric::kappa::Length;
use clover_rubric::leaf;
use serde::Serialize;

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

fn said(value: &Value) -> LeafValue {
    match value {
        Value::Count(value) => LeafValue::Count(count(*value)),
        Value::Flag(flag) => LeafValue::Flag(*flag),
        Value::List(items) => LeafValue::List(items.iter().cloned().collect()),
        Value::Share(share) => LeafValue::ShareMicro(*share),
        Value::Text(text) => LeafValue::Text(text.clone()),
    }
}

pub(super) fn meant(value: &LeafValue) -> Value {
    match value {
        LeafValue::Count(count) => Value::Count(count.value()),
        LeafValue::Flag(flag) => Value::Flag(*flag),
        LeafValue::List(items) => Value::List(items.iter().cloned().collect()),
        LeafValue::ShareMicro(share) => Value::Share(*share),
        LeafValue::Text(text) => Value::Text(text.clone()),
    }
}

/// The leaves of a rubric as events hold them.
pub fn leaves_of(rubric: &Rubric) -> Vec<RubricLeaf> {
    let leaf = |(path, value): (&String, &Value)| RubricLeaf {
        path: path.clone(),
        value: said(value),
    };
    rubric.leaves().iter().map(leaf).collect()
}

/// The rubric that events hold; `None` where they hold none.
pub fn rubric_of(registered: &RubricRegistration) -> Option<Rubric> {
    rubric_with(&registered.leaves)
}

/// The rubric with these leaves, as events hold them; `None` where they are none.
pub fn rubric_with(leaves: &[RubricLeaf]) -> Option<Rubric> {
    let leaf = |leaf: &RubricLeaf| (leaf.path.clone(), meant(&leaf.value));
    Rubric::new(leaves.iter().map(leaf).collect()).ok()
}

/// A diff as events hold it.
pub fn diff_of(changes: &[Change]) -> Vec<LeafChange> {
    let change = |change: &Change| LeafChange {
        op: match change.op {
            Op::Append => ChangeOp::Append,
            Op::Set => ChangeOp::Set,
        },
        path: change.path.clone(),
        value: said(&change.value),
    };
    changes.iter().map(change).collect()
}

/// A code length as events hold it.
pub fn length_of(length: &Length) -> CodeLength {
    CodeLength {
        abstention_edits: count(length.abstention_edits),
        kappa: count(length.kappa()),
        new_fields: count(length.new_fields),
        new_guards: count(length.new_guards),
        tokens_added: count(length.tokens_added),
        tokens_removed: count(length.tokens_removed),
    }
}

/// The event that registers a document as an experiment's first rubric.
///
/// # Errors
/// [`YamlError`] with the place of what is no rubric.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn register(yaml: &str) -> Result<RubricRegistered, YamlError> {
    let rubric = Rubric::parse(yaml.as_bytes())?;
    Ok(RubricRegistered {
        leaves: leaves_of(&rubric),
        rubric_hash: rubric.hash(),
        version: rubric.version().to_owned(),
        yaml: SourceText::new(yaml).expect("BUG: a rubric's document is no longer than that"),
    })
}

/// What a patch is checked against in an iteration.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The rubric that the iteration starts from.
    pub rubric: Rubric,
    /// Its families of patches.
    pub families: BTreeSet<Family>,
    /// Paths that it freezes.
    pub frozen: BTreeSet<String>,
    /// Topics that its extractor knows.
    pub vocabulary: BTreeSet<String>,
    /// Patch ids that were ever used.
    pub ids: BTreeSet<String>,
    /// Hashes of the edits that it has seen.
    pub hashes: BTreeSet<Digest>,
}

impl Bench {
    /// The bench of a rubric outside of any iteration: every family, nothing frozen, nothing seen.
    pub fn loose(rubric: Rubric) -> Self {
        Self {
            rubric,
            families: Family::ALL.into(),
            frozen: BTreeSet::new(),
            vocabulary: BTreeSet::new(),
            ids: BTreeSet::new(),
            hashes: BTreeSet::new(),
        }
    }

    /// The bench of an iteration; `None` where its rubric or plan is not known.
    pub fn of(state: &State, experiment: &ExperimentId, iteration: &IterationId) -> Option<Self> {
        let iterations = state.fold::<Iterations>();
        let it = iterations.by_id.get(iteration)?;
        let rubrics = state.fold::<Rubrics>();
        let rubric = rubric_of(rubrics.of_hash(experiment, it.rubric_hash)?)?;
        let bench = Self::under(plan_of(state, it)?, rubric)?;
        Some(Self {
            ids: iterations
                .by_id
                .values()
                .flat_map(|it| it.candidates.keys())
                .map(PatchId::to_string)
                .collect(),
            hashes: it.candidates.values().map(|of| of.patch_hash).collect(),
            ..bench
        })
    }

    /// The bench of an iteration from what the log says of it, with the ids that were ever used; `None` where its rubric or
    /// plan is not known.
    pub fn recorded(record: &IterationRecord, ids: BTreeSet<String>) -> Option<Self> {
        let rubric = rubric_with(&record.rubric)?;
        let bench = Self::under(&record.opened.said.params, rubric)?;
        let proposed = record.proposed.iter();
        Some(Self {
            ids,
            hashes: proposed.map(|of| of.said.patch_hash).collect(),
            ..bench
        })
    }

    /// The bench of a plan and a rubric, nothing seen; `None` for a plan without design.
    pub fn under(plan: &IterationPlan, rubric: Rubric) -> Option<Self> {
        let design = plan.design.as_ref()?;
        let words = |texts: &[Text]| texts.iter().map(|text| text.as_str().to_owned()).collect();
        let families = plan.patch_families.iter();
        Some(Self {
            families: families
                .filter_map(|of| Family::named(of.as_str()))
                .collect(),
            frozen: words(design.frozen_paths.as_deref().unwrap_or_default()),
            vocabulary: words(&design.topics),
            ..Self::loose(rubric)
        })
    }

    /// The twelve checks of a document.
    ///
    /// # Errors
    /// [`PatchFault`] of the first check that fails.
    pub fn check(
        &self,
        yaml: &[u8],
        unverified: Option<&BTreeSet<String>>,
    ) -> Result<(Patch, CheckedPatch), PatchFault> {
        let context = Context {
            rubric: &self.rubric,
            families: &self.families,
            frozen: &self.frozen,
            vocabulary: &self.vocabulary,
            unverified,
            ids: &self.ids,
            hashes: &self.hashes,
        };
        clover_rubric::check(yaml, &context)
    }
}

/// The parameters of an iteration, from its manifest.
pub fn plan_of<'a>(state: &'a State, it: &Iteration) -> Option<&'a IterationPlan> {
    let (_, record) = state.fold::<Manifests>().of_digest(it.digest)?;
    record.version(it.digest)?.manifest.iteration.as_ref()
}

/// Who wrote a patch, from what.
#[derive(Clone, Debug)]
pub struct Authorship {
    /// A person or a program.
    pub kind: AuthorKind,
    /// Digests of cards, receipts and rubrics.
    pub inputs: Vec<Digest>,
    /// The model.
    pub model: Option<Text>,
    /// Digest of its prompt.
    pub prompt_digest: Option<Digest>,
    /// The run of an optimizer that returned it.
    pub run: Option<RunId>,
}

impl Authorship {
    /// A person, who names nothing that it was written from.
    pub fn person() -> Self {
        Self {
            kind: AuthorKind::Human,
            inputs: Vec::new(),
            model: None,
            prompt_digest: None,
            run: None,
        }
    }
}

/// The event that proposes a checked patch.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn propose(
    yaml: &str,
    iteration: &IterationId,
    (patch, checked): (&Patch, &CheckedPatch),
    by: Authorship,
) -> PatchProposed {
    let id = patch.id.parse::<PatchId>();
    let family = patch.family.as_str().parse::<PatchFamilyId>();
    PatchProposed {
        author_kind: by.kind,
        diff: diff_of(&checked.diff),
        family: family.expect("BUG: a family's word is an id"),
        inputs: by.inputs,
        iteration: iteration.clone(),
        length: length_of(&checked.length),
        model: by.model,
        patch: id.expect("BUG: a patch's id is an id"),
        patch_hash: checked.hash,
        prompt_digest: by.prompt_digest,
        run: by.run,
        result_hash: checked.rubric.hash(),
        yaml: SourceText::new(yaml).expect("BUG: a patch's document is no longer than that"),
    }
}

/// The rules `rubric` and `patch`. They stand on this floor because they read documents with the grammar of
/// `rubric`, which no projection may name; the folds that they read hold leaves and need no grammar.
#[derive(Clone, Copy, Debug)]
pub struct Documents;

impl Rule for Documents {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let (rule, checked) = match &event.event.payload {
            Payload::RubricRegistered(new) => {
                (RuleName::Rubric, check_registered(state, experiment, new))
            }
            Payload::PatchProposed(new) => {
                (RuleName::Patch, check_proposed(state, experiment, new))
            }
            Payload::PatchRejected(new) => (RuleName::Patch, check_rejected(new)),
            _ => return,
        };
        breaches.take(rule, checked);
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        if let Payload::PatchProposed(new) = &event.event.payload {
            let digest = canon::digest("clover/patch-id/v1", &new.patch);
            facts.push(Fact::Gives {
                digest,
                once: Some(RuleName::Patch),
            });
        }
    }
}

/// A field of an event is what its document says.
fn check_field<T: PartialEq + Serialize>(name: &str, document: &T, found: &T) -> Answer {
    ensure!(
        document == found,
        format!("{name} {}, as the document says", canon::word(document)),
        canon::word(found)
    );
    Ok(())
}

fn check_registered(state: &State, experiment: &ExperimentId, new: &RubricRegistered) -> Answer {
    let read = match register(new.yaml.as_str()) {
        Ok(read) => read,
        Err(error) => return unmet("a rubric", error.to_string()),
    };
    ensure!(
        read.rubric_hash == new.rubric_hash && read.leaves == new.leaves,
        format!("the leaves of the document, {}", read.rubric_hash),
        new.rubric_hash.to_string()
    );
    check_field("version", &read.version, &new.version)?;
    let mut iterations = state.fold::<Iterations>().by_id.iter();
    if let Some((id, it)) = iterations.find(|(_, it)| it.experiment == *experiment) {
        let expected = "a rubric before the first iteration: later ones come from patches";
        let found = format!("{id}, opened at seq {}", it.opened_seq);
        return unmet(expected, found);
    }
    let Some(old) = state.fold::<Rubrics>().in_force(experiment) else {
        // The first rubric has any version.
        return Ok(());
    };
    ensure!(
        leaf::version(&new.version) > leaf::version(&old.version),
        format!("a version above {}", old.version),
        new.version.clone()
    );
    Ok(())
}

fn check_proposed(state: &State, experiment: &ExperimentId, new: &PatchProposed) -> Answer {
    let named = new.model.is_some() && new.prompt_digest.is_some();
    let written = match new.author_kind {
        AuthorKind::Llm => named,
        AuthorKind::Human => new.model.is_none() && new.prompt_digest.is_none(),
    };
    ensure!(
        written,
        "model and prompt_digest for author_kind llm, and only there",
        canon::word(&new.author_kind)
    );
    let it = state.fold::<Iterations>().by_id.get(&new.iteration);
    let is_of_experiment = it.is_some_and(|it| it.experiment == *experiment);
    if !is_of_experiment {
        // The rule `iteration` refuses it, and there is nothing to check it against.
        return Ok(());
    }
    let bench = Bench::of(state, experiment, &new.iteration);
    let mut bench = bench.required("the rubric and the plan of the iteration")?;
    // The id is unique by a fact over the whole history.
    bench.ids.clear();
    let (patch, checked) = match bench.check(new.yaml.as_str().as_bytes(), None) {
        Ok(found) => found,
        Err(fault) => {
            let place = &fault.place;
            let found = format!("{fault} at {}:{} {}", place.line, place.column, place.path);
            return unmet("a patch of this rubric", found);
        }
    };
    let by = Authorship {
        kind: new.author_kind,
        inputs: new.inputs.clone(),
        model: new.model.clone(),
        prompt_digest: new.prompt_digest,
        run: new.run.clone(),
    };
    let read = propose(new.yaml.as_str(), &new.iteration, (&patch, &checked), by);
    check_field("patch", &read.patch, &new.patch)?;
    check_field("family", &read.family, &new.family)?;
    check_field("diff", &read.diff, &new.diff)?;
    check_field("patch_hash", &read.patch_hash, &new.patch_hash)?;
    check_field("length", &read.length, &new.length)?;
    check_field("result_hash", &read.result_hash, &new.result_hash)
}

/// A document that never became a candidate is rejected by a check of the grammar, a candidate by a gate.
fn check_rejected(new: &PatchRejected) -> Answer {
    let schema = new.stage == RejectStage::Schema;
    ensure!(
        schema == new.patch.is_none(),
        "a candidate at every stage but schema",
        canon::word(&new.stage)
    );
    let code = new.code.as_str();
    ensure!(
        !schema || Code::ALL.iter().any(|of| of.as_str() == code),
        "the code of a check of patches",
        code
    );
    Ok(())
}
