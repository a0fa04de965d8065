//! Gates of candidates, and what is sealed for confirm.

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::id::PatchId;
use crate::event::payload::Verdict;
use crate::event::payload::predicate::Criterion;
use crate::event::payload::predicate::CriterionSplit;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::SealedHypothesis;
use crate::ground::digest::Digest;
use crate::projection::iterations::record::IterationRecord;
use crate::projection::reader::LogStatement;
use crate::report::shown;
use crate::rubric::is_hard_rule;
use crate::session::iterate::confirm::Confirmation;
use crate::session::iterate::gates::GatedOnDev;
use crate::session::iterate::gates::SealedCandidates;
use crate::session::iterate::rescore::MovedAnswers;
use crate::view::View;
use crate::view::iterate::number;
use crate::view::iterate::sequential;
use crate::view::iterate::sequential::ConfirmLook;
use crate::view::text;
use crate::workflow::deploy::RECALIBRATED_DRIFT_MAX;
use crate::workflow::iterate::wider;
use crate::workflow::predicate;
use crate::workflow::predicate::ProfileThresholds;

/// A number of a gate beside what it is held to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CriterionNumber {
    /// What it is.
    pub name: String,
    /// Its value; `null` if there is none.
    pub value: Option<f64>,
    /// What it is held to, such as `<= 0.05`; empty for a number that decides nothing.
    pub held: String,
}

/// A gate of a candidate on one split.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CriterionShown {
    /// The gate.
    pub gate: Criterion,
    /// On which rows.
    pub split: CriterionSplit,
    /// What it asks, in words.
    pub asks: &'static str,
    /// The entry that says it.
    pub seq: u64,
    /// What the literal profile says.
    pub literal: Verdict,
    /// What the recommended profile says.
    pub recommended: Verdict,
    /// Its numbers.
    pub numbers: Vec<CriterionNumber>,
    /// The statistics that both profiles are computed from.
    pub evidence: Evidence,
}

/// A judge that was asked anew, told what a patch changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeAsked {
    /// The judge.
    pub judge: JudgeId,
    /// Rows and anchors that it was asked about.
    pub rows: u64,
    /// Of those, the ones that it was asked about again.
    pub again: u64,
    /// Rows and anchors whose answer differs from the one before it was told; absent where that was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differ: Option<u64>,
}

/// Whether a judge that was told something else answers otherwise, in one sentence.
fn moved(judge: &JudgeId, of: &MovedAnswers) -> String {
    let (from, rows) = (&of.from, of.rows);
    match of.differ {
        0 => format!(
            "{judge} answers all {rows} rows as {from} did: what the patch tells it changes nothing that it says"
        ),
        differ => format!("{judge} answers {differ} of {rows} rows otherwise than {from} did"),
    }
}

/// Gates of a patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchGates {
    /// The patch.
    pub patch: PatchId,
    /// The judge that was asked anew for it; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<JudgeAsked>,
    /// Its gates, in order.
    pub gates: Vec<CriterionShown>,
}

/// Gates on dev, patch by patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DevGates {
    /// The patches that were judged.
    pub patches: Vec<PatchGates>,
}

/// What was sealed for confirm.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SealedHypotheses {
    /// Hypotheses in order of hash.
    pub sealed: Vec<SealedHypothesis>,
    /// Hypotheses among which alpha is divided.
    pub divisor: u64,
}

/// Gates of a hypothesis on confirm.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HypothesisGates {
    /// Its patches by name.
    pub patches: Vec<String>,
    /// Its gates on the confirm block, in order.
    pub gates: Vec<CriterionShown>,
}

/// What the look at confirm found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmFacts {
    /// Looks, where the test is sequential; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Vec<ConfirmLook>>,
    /// What was sealed, with its gates.
    pub hypotheses: Vec<HypothesisGates>,
}

/// Heads of a table of gates.
const HEAD: [&str; 7] = [
    "criterion",
    "asks",
    "number",
    "value",
    "held to",
    "recommended",
    "literal",
];

/// The gates on dev, patch by patch.
pub fn gated(view: &mut View, record: &IterationRecord, of: &GatedOnDev) -> DevGates {
    let mut patches = Vec::new();
    for patch in &of.patches {
        let name = &patch.patch;
        view.line(name.to_string());
        if patch.rejected.is_some()
            && let Some(words) = stopped(record, patch.candidate)
        {
            view.sentence(format!("{name} {words}"));
        }
        let asked = patch.rescored.as_ref().map(|of| JudgeAsked {
            judge: of.judge.clone(),
            rows: of.recorded as u64,
            again: of.sampled as u64,
            differ: of.moved.as_ref().map(|of| of.differ as u64),
        });
        if let Some(of) = &asked {
            view.sentence(format!(
                "{} was asked about {} rows, and about {} of them again",
                of.judge, of.rows, of.again
            ));
        }
        if let Some((judge, moved_by)) = patch
            .rescored
            .as_ref()
            .and_then(|of| Some((&of.judge, of.moved.as_ref()?)))
        {
            view.sentence(moved(judge, moved_by));
        }
        patches.push(PatchGates {
            patch: name.clone(),
            asked,
            gates: judged(view, record, patch.candidate, CriterionSplit::Dev),
        });
        if patch.rejected.is_none()
            && let Some(words) = undeployable(record, patch.candidate, &[name.as_str()])
        {
            view.sentence(words);
        }
        if let Some(words) = patch
            .rejected
            .as_ref()
            .and_then(|_| unattacked(record, patch.candidate))
        {
            view.sentence(format!("{name} {words}"));
        }
        if let Some(words) = &patch.rejected {
            let failed = failed(record, patch.candidate, CriterionSplit::Dev);
            let words = failed.as_ref().unwrap_or(words);
            view.sentence(format!("{name} rejected on dev: {words}"));
        }
    }
    DevGates { patches }
}

/// Why a candidate could be accepted and not be deployed: it changes a hard rule, so that it is recalibrated before it runs, and an
/// anchor drifts further than that takes. With the way on.
pub(super) fn undeployable(
    record: &IterationRecord,
    candidate: Digest,
    patches: &[&str],
) -> Option<String> {
    let on_dev = record.gate(candidate, Criterion::P5, CriterionSplit::Dev)?;
    let Evidence::P5(found) = &on_dev.said.evidence else {
        return None;
    };
    let mut anchors = found.anchors.iter();
    let far = anchors.find(|of| of.drift.value() > RECALIBRATED_DRIFT_MAX)?;
    let proposed = record.proposed.iter();
    let mut proposed = proposed.filter(|of| patches.contains(&of.said.patch.as_str()));
    let mut changes = proposed.by_ref().flat_map(|of| &of.said.diff);
    let hard = changes.find(|change| is_hard_rule(&change.path))?;
    Some(format!(
        "{} could be accepted and not deployed. It changes the hard rule {}, so it needs clover deploy recalibrate, which takes \
         a drift of at most {RECALIBRATED_DRIFT_MAX}; {} drifts by {}. The way on is a patch that moves the anchors less.",
        patches.join(" + "),
        hard.path,
        far.policy,
        number(far.drift.value())
    ))
}

/// What a rejected candidate gains on dev, and which criteria stop it with the numbers that do; `None` before its gain was
/// measured, or where no criterion failed.
fn stopped(record: &IterationRecord, candidate: Digest) -> Option<String> {
    let on_dev = |gate| record.gate(candidate, gate, CriterionSplit::Dev);
    let Evidence::P1(loss) = &on_dev(Criterion::P1)?.said.evidence else {
        return None;
    };
    let failed = Criterion::ALL.into_iter().filter_map(on_dev);
    let failed = failed.filter(|gate| {
        let said = &gate.said;
        said.verdicts.under(said.thresholds.profile) == Verdict::Fail
    });
    let each: Vec<String> = failed.map(|gate| because(&gate.said)).collect();
    if each.is_empty() {
        return None;
    }
    let gain = loss.mean.value();
    let gain = match gain {
        gain if gain < 0.0 => format!("cuts the squared error by {} on dev", number(-gain)),
        gain if gain > 0.0 => format!("raises the squared error by {} on dev", number(gain)),
        _ => "leaves the squared error on dev as it is".to_owned(),
    };
    Some(format!("{gain}, and is rejected: {}", each.join("; ")))
}

/// What a candidate lacks that met every criterion but P7, which nobody could check, and the two ways on.
pub(super) fn unattacked(record: &IterationRecord, candidate: Digest) -> Option<String> {
    let on_dev = |gate| record.gate(candidate, gate, CriterionSplit::Dev);
    let verdict = |gate| {
        let said = &on_dev(gate)?.said;
        Some(said.verdicts.under(said.thresholds.profile))
    };
    let mut others = Criterion::ALL
        .into_iter()
        .filter(|gate| *gate != Criterion::P7);
    let stops = |found| matches!(found, Some(Verdict::Fail | Verdict::Inconclusive));
    if verdict(Criterion::P7) != Some(Verdict::NotChecked)
        || others.any(|gate| stops(verdict(gate)))
    {
        return None;
    }
    Some(
        "failed nothing, and is rejected: P7 was not checked, for no attack was tried on these rows. Attacks need the texts of \
         the rows. Without them two keys waive ADV before experiment split, as clover assume waive --help shows."
            .to_owned(),
    )
}

/// A criterion that failed, with the numbers that are beyond what they are held to.
fn because(of: &GateEvaluated) -> String {
    let beyond = numbers(of).into_iter().filter_map(|one| {
        let value = one.value?;
        let (sign, bound) = one.held.split_once(' ')?;
        let bound: f64 = bound.split(' ').next()?.parse().ok()?;
        let (is_beyond, sign) = match sign {
            "<=" => (value > bound, ">"),
            ">=" => (value < bound, "<"),
            _ => return None,
        };
        is_beyond.then(|| format!("{} {} {sign} {bound}", one.name, number(value)))
    });
    let beyond: Vec<String> = beyond.collect();
    let asks = predicate::gate(of.gate).asks;
    match beyond.as_slice() {
        [] => format!("{} {asks}", of.gate),
        all => format!("{} {asks} ({})", of.gate, all.join(", ")),
    }
}

/// Which thresholds of the plan are wider than usual: what is accepted under them claims less.
pub(super) fn wider(record: &IterationRecord) -> Option<String> {
    let wider = wider::wider(&record.opened.said.params);
    let wider: Vec<String> = wider.iter().map(ToString::to_string).collect();
    (!wider.is_empty()).then(|| {
        format!(
            "Its plan has thresholds that are wider than usual for so many labels: {}.",
            wider.join(", ")
        )
    })
}

/// Names of the gates that a candidate failed on a part, each once, in their order: `None` unless there are several.
pub fn failed(
    record: &IterationRecord,
    candidate: Digest,
    split: CriterionSplit,
) -> Option<String> {
    let mut names: Vec<&'static str> = Vec::new();
    let of = |gate: &&LogStatement<GateEvaluated>| {
        gate.said.candidate == candidate && gate.said.split == split
    };
    for gate in record.gates.iter().filter(of) {
        let verdict = gate.said.verdicts.under(gate.said.thresholds.profile);
        let name = gate.said.gate.as_str();
        if verdict == Verdict::Fail && !names.contains(&name) {
            names.push(name);
        }
    }
    let (last, before) = names
        .split_last()
        .filter(|(_, before)| !before.is_empty())?;
    Some(format!("{} and {last} failed", before.join(", ")))
}

/// The numbers of a gate beside what they are held to.
pub fn numbers(of: &GateEvaluated) -> Vec<CriterionNumber> {
    let held = ProfileThresholds::under(&of.thresholds, of.thresholds.profile);
    let shown = (predicate::gate(of.gate).show)(&of.evidence, &held);
    let shown = shown.into_iter().map(|one| CriterionNumber {
        name: one.name,
        value: one.value,
        held: joined(one.held),
    });
    shown.collect()
}

/// What a number is held to, where the next one may or must hold beside it.
fn joined(held: String) -> String {
    if held.ends_with(" or") || held.ends_with(" and") {
        return format!("{held} the next line");
    }
    held
}

/// A gate in the table, a line for each of its numbers.
fn rows(of: &GateEvaluated) -> Vec<Vec<String>> {
    let (literal, recommended) = (
        shown::word(of.verdicts.literal).to_owned(),
        shown::word(of.verdicts.recommended).to_owned(),
    );
    let lines = numbers(of).into_iter().map(|one| {
        let value = one.value.map_or("-".to_owned(), number);
        (one.name, value, one.held)
    });
    let mut lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        lines.push((String::new(), String::new(), String::new()));
    }
    let each = lines.into_iter().enumerate().map(|(at, line)| {
        let or = |text: &str| if at == 0 { text } else { "" }.to_owned();
        let (name, value, held) = line;
        let asks = or(predicate::gate(of.gate).asks);
        let gate = or(of.gate.as_str());
        vec![
            gate,
            asks,
            name,
            value,
            held,
            or(&recommended),
            or(&literal),
        ]
    });
    each.collect()
}

/// Gates of one candidate on both splits, with the entries that they stand at, where those are others.
pub fn gate_table(gates: &[(Option<u64>, GateEvaluated)]) -> String {
    let each = gates.iter().flat_map(|(seq, of)| {
        let mut rows = rows(of);
        if let Some(seq) = seq {
            rows[0][0] = format!("{} {}, seq {seq}", of.gate, of.split.as_str());
        }
        rows
    });
    text::table(&HEAD, &each.collect::<Vec<_>>())
}

/// The gates of a candidate on one split.
pub(super) fn gates_of(
    record: &IterationRecord,
    candidate: Digest,
    split: CriterionSplit,
) -> Vec<CriterionShown> {
    let all = Criterion::ALL.into_iter();
    let said = all.filter_map(|gate| record.gate(candidate, gate, split));
    let shown = said.map(|said| CriterionShown {
        gate: said.said.gate,
        split,
        asks: predicate::gate(said.said.gate).asks,
        seq: said.seq,
        literal: said.said.verdicts.literal,
        recommended: said.said.verdicts.recommended,
        numbers: numbers(&said.said),
        evidence: said.said.evidence.clone(),
    });
    shown.collect()
}

/// The table of a candidate's gates on one split.
pub(super) fn table_of(
    view: &mut View,
    record: &IterationRecord,
    candidate: Digest,
    split: CriterionSplit,
) {
    let all = Criterion::ALL.into_iter();
    let said = all.filter_map(|gate| record.gate(candidate, gate, split));
    let said: Vec<_> = said.collect();
    view.table(&HEAD, said.iter().flat_map(|said| rows(&said.said)));
    let of_each = said.iter().filter_map(|said| regressions(&said.said));
    of_each.for_each(|words| {
        view.sentence(words);
    });
}

/// What regressions are, where a gate counted some.
fn regressions(of: &GateEvaluated) -> Option<String> {
    let Evidence::P7(found) = &of.evidence else {
        return None;
    };
    let count = found.regressions.value();
    let what = match count {
        0 => return None,
        1 => "1 known exploit pays".to_owned(),
        _ => format!("{count} known exploits pay"),
    };
    Some(format!(
        "regressions: {what} more than under the rubric in force. One that paid at most 0.05 pays more than that, or an open one \
         rises by more than 0.005. Those that an earlier iteration found under this very patch count too: clover battery list"
    ))
}

fn judged(
    view: &mut View,
    record: &IterationRecord,
    candidate: Digest,
    split: CriterionSplit,
) -> Vec<CriterionShown> {
    table_of(view, record, candidate, split);
    gates_of(record, candidate, split)
}

/// What was sealed, and what was not chosen.
pub fn sealed(
    view: &mut View,
    record: &IterationRecord,
    of: &SealedCandidates,
) -> SealedHypotheses {
    for patch in &of.not_chosen {
        view.line(format!(
            "{patch}  not chosen: another of its family is better"
        ));
    }
    if let Some(composite) = of.composite {
        view.line("composite of the two best");
        table_of(view, record, composite, CriterionSplit::Dev);
    }
    let divisor = of.said.divisor.value();
    let rows = of.said.hypotheses.iter().map(|one| {
        vec![
            one.candidate.short().to_string(),
            names_of(record, &one.patches),
        ]
    });
    view.table(&["hypothesis", "patches"], rows);
    view.line(format!(
        "alpha {} each, {} divided by {divisor}",
        number(of.alpha / divisor.max(1) as f64),
        number(of.alpha)
    ));
    SealedHypotheses {
        sealed: of.said.hypotheses.clone(),
        divisor,
    }
}

/// The gates on confirm, hypothesis by hypothesis.
pub fn confirmed(view: &mut View, record: &IterationRecord, of: &Confirmation) -> ConfirmFacts {
    let looks = of.is_sequential.then(|| {
        sequential::put(view, record);
        sequential::looks(record)
    });
    let mut hypotheses = Vec::new();
    for hypothesis in &of.hypotheses {
        let names = hypothesis.patches.iter();
        let names: Vec<String> = names.map(|hash| name_of(record, *hash)).collect();
        view.line(format!("{} on confirm", names.join(" + ")));
        hypotheses.push(HypothesisGates {
            patches: names,
            gates: judged(view, record, hypothesis.candidate, CriterionSplit::Confirm),
        });
    }
    ConfirmFacts { looks, hypotheses }
}

/// The names of patches, joined.
pub(super) fn names_of(record: &IterationRecord, hashes: &[Digest]) -> String {
    let names = hashes.iter().map(|hash| name_of(record, *hash));
    names.collect::<Vec<_>>().join(" + ")
}

/// The name of a patch by its hash.
pub(super) fn name_of(record: &IterationRecord, hash: Digest) -> String {
    let mut all = record.proposed.iter();
    let found = all.find(|patch| patch.said.patch_hash == hash);
    found.map_or_else(
        || hash.short().to_string(),
        |patch| patch.said.patch.to_string(),
    )
}
