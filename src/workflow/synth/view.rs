//! `view/1`: the one closed document that an optimizer is shown, from the log through a position. Typed; the rubric is its
//! only free string, and slices stand in it as the plan names them.

use std::collections::BTreeSet;

use clover_event::id::IterationId;
use clover_event::id::PatchFamilyId;
use clover_event::id::Text;
use clover_event::payload::card::PublicCard;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::synth_runs::CandidateCode;
use clover_event::payload::synthesis::GateAnswer;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_projection::decisions::GRAMMARS;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::SynthRecord;
use clover_rubric::leaf;
use serde::Deserialize;
use serde::Serialize;

use crate::patches::Bench;
use crate::synth::progress::Progress;

/// The name of the form.
pub const FORM: &str = "view/1";
/// What stands where a fault is at no path of rubrics.
const NO_PATH: &str = "none";
/// The slice of whatever lies in no cell.
const OTHER: &str = "other";

/// A card as it was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewCard {
    /// What the optimizer may know of a slice.
    pub card: PublicCard,
    /// Digest of `card`.
    pub digest: Digest,
}

/// What is left to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewLeft {
    /// Dev calls.
    pub dev_calls: Count,
    /// Rounds, this one included.
    pub rounds: Count,
}

/// What the dev objective said of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewReceipt {
    /// P0 to P7.
    pub gates: Vec<GateAnswer>,
    /// The candidate.
    pub patch_hash: Digest,
    /// Its event.
    pub receipt: Digest,
    /// Risk improvement on dev, negative when better.
    pub risk_improve_micro: Micro,
}

/// A candidate that was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewRejection {
    /// The check that it failed.
    pub code: CandidateCode,
    /// The path of rubrics where it did, or `none`.
    pub path: Text,
}

/// The rubric that patches edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewRubric {
    /// Its hash.
    pub hash: Digest,
    /// Its document in the fixed form.
    pub yaml: String,
}

/// What an optimizer is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerView {
    /// Residual cards.
    pub cards: Vec<ViewCard>,
    /// Families of patches that may be proposed.
    pub families: Vec<PatchFamilyId>,
    /// Paths that no patch may touch beside those that none ever may.
    pub frozen_paths: Vec<Text>,
    /// Names of the grammars.
    pub grammars: Vec<Text>,
    /// The iteration.
    pub iteration: IterationId,
    /// Most candidates of an answer.
    pub k: Count,
    /// What is left.
    pub left: ViewLeft,
    /// Answers of the dev objective.
    pub receipts: Vec<ViewReceipt>,
    /// Candidates of the run that were none.
    pub rejections: Vec<ViewRejection>,
    /// The rubric.
    pub rubric: ViewRubric,
    /// Topics that abstention may name.
    pub topics: Vec<Text>,
    /// Candidates of the run that passed every check of patches and have no receipt.
    pub unscored: Vec<Digest>,
    /// The form: `view/1`.
    pub v: Text,
}

/// What keeps a view from being made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewFault {
    /// The plan of the iteration has no design.
    #[error("the plan of the iteration has no design")]
    NoDesign,
    /// A card is about what the plan does not name.
    #[error("card {0} is about a slice or a value that the plan of the iteration does not name")]
    Stranger(String),
}

fn text(value: &str) -> Text {
    Text::new(value).unwrap_or_else(|| Text::new(NO_PATH).expect("BUG: a short word"))
}

fn micro(value: Finite) -> Micro {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "differences of losses of scores in [0, 1] are small; what is not saturates"
    )]
    let millionths = (value.value() * 1e6).round() as i64;
    Micro::new(millionths).unwrap_or_default()
}

/// Whether a card says nothing but what the plan names.
fn is_known(plan: &IterationPlan, card: &PublicCard) -> bool {
    let design = plan.design.as_ref();
    let mut families = design.into_iter().flat_map(|design| &design.slices);
    let Some(family) = families.find(|of| of.family == card.family) else {
        return false;
    };
    let name = format!("{}/{}", card.family, card.slice);
    let selector = card.basis.as_ref().map_or(&[][..], |basis| &basis.selector);
    let cell = family.cells.iter().find(|cell| cell.slice == card.slice);
    let is_cell = match cell {
        Some(cell) => selector.is_empty() || selector == &cell.conditions[..],
        None => card.slice.as_str() == OTHER && selector.is_empty(),
    };
    is_cell && card.card.as_str() == name
}

/// What a run was told of candidates that are none: at which path of rubrics, where the document says.
fn rejections(bench: &Bench, run: &SynthRecord, through: u64) -> Vec<ViewRejection> {
    let loose = Bench {
        ids: BTreeSet::new(),
        hashes: BTreeSet::new(),
        ..bench.clone()
    };
    let path = |yaml: &str| {
        let fault = loose.check(yaml.as_bytes(), None).err()?;
        let path = fault.place.path.strip_prefix("patch.changes.")?.to_owned();
        leaf::kind_of(&path).map(|_| path)
    };
    let returned = run.returned.iter().filter(|of| of.seq <= through);
    let candidates = returned.flat_map(|of| &of.said.candidates);
    let faulty = candidates.filter_map(|of| Some((of.code?, of.yaml.as_ref())));
    let rejection = |(code, yaml): (CandidateCode, Option<&_>)| {
        let yaml: Option<&clover_event::payload::rubric::SourceText> = yaml;
        let path = yaml.and_then(|yaml| path(yaml.as_str()));
        ViewRejection {
            code,
            path: text(path.as_deref().unwrap_or(NO_PATH)),
        }
    };
    faulty.map(rejection).collect()
}

/// The view of a run, from what the log says through a position.
///
/// # Errors
/// [`ViewFault`].
pub fn of(
    record: &IterationRecord,
    bench: &Bench,
    run: &SynthRecord,
    through: u64,
) -> Result<OptimizerView, ViewFault> {
    let plan = &record.opened.said.params;
    let design = plan.design.as_ref().ok_or(ViewFault::NoDesign)?;
    let published = record.cards.iter().filter(|card| card.seq <= through);
    let cards = published.map(|card| {
        if !is_known(plan, &card.said.card) {
            return Err(ViewFault::Stranger(card.said.card.card.to_string()));
        }
        Ok(ViewCard {
            card: card.said.card.clone(),
            digest: card.said.public_digest,
        })
    });
    let progress = Progress::of(record, run, through);
    let receipts = record.receipts.iter().filter(|of| of.seq <= through);
    let receipts = receipts.map(|of| ViewReceipt {
        gates: of.said.answers.clone(),
        patch_hash: of.said.candidate,
        receipt: of.id.0,
        risk_improve_micro: micro(of.said.risk_improve),
    });
    let receipts: Vec<ViewReceipt> = receipts.collect();
    let is_scored = |hash: &Digest| receipts.iter().any(|of| of.patch_hash == *hash);
    let returned = run.returned.iter().filter(|of| of.seq <= through);
    let valid = returned.flat_map(|of| &of.said.candidates);
    let valid = valid.filter(|of| of.code.is_none());
    let unscored = valid.filter_map(|of| of.patch_hash);
    Ok(OptimizerView {
        cards: cards.collect::<Result<_, _>>()?,
        families: plan.patch_families.clone(),
        frozen_paths: design.frozen_paths.clone().unwrap_or_default(),
        grammars: GRAMMARS.iter().map(|name| text(name)).collect(),
        iteration: record.iteration.clone(),
        k: run.opened.said.k,
        left: progress.left(),
        rejections: rejections(bench, run, through),
        rubric: ViewRubric {
            hash: bench.rubric.hash(),
            yaml: bench.rubric.to_yaml(),
        },
        topics: design.topics.clone(),
        unscored: unscored.filter(|hash| !is_scored(hash)).collect(),
        receipts,
        v: text(FORM),
    })
}

impl OptimizerView {
    /// Its bytes: canonical JSON.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn bytes(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: ids, texts and counts have a canonical form")
    }

    /// What stands in it, by digest: cards, the rubric, the grammars, receipts.
    pub fn inputs(&self) -> Vec<Digest> {
        let cards = self.cards.iter().map(|card| card.digest);
        let grammars = GRAMMARS.iter().map(|name| Digest::sha256(name.as_bytes()));
        let receipts = self.receipts.iter().map(|of| of.receipt);
        let beside = std::iter::once(self.rubric.hash).chain(grammars);
        cards.chain(beside).chain(receipts).collect()
    }
}
