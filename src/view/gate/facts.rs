//! What a gate's page says, for machines.

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::event::id::StratumId;
use crate::event::payload::decision::GateLooked;
use crate::event::payload::decision::Grade;
use crate::event::payload::gate::GateSource;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Prediction;
use crate::ground::digest::Digest;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::gates;
use crate::view::answer::Answer;
use crate::view::gate::GateDecision;
use crate::view::gate::GateEstimate;
use crate::view::gate::Order;
use crate::view::prereg::Deviation;
use crate::workflow::gates::evidence::GateContext;
use crate::workflow::gates::replay::Life;

/// A recorded look.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedLook {
    /// What its event says.
    pub look: GateLooked,
    /// The entry.
    pub seq: u64,
}

/// A promotion that rests on the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Promotion {
    /// Every gate that it rests on.
    pub gates: Vec<ManifestId>,
    /// Its event.
    pub id: EventId,
    /// The entry that revoked it; `null` while it stands.
    pub revoked_seq: Option<u64>,
    /// Its entry.
    pub seq: u64,
}

/// A drift check that the gate's judge failed, and that no deviation answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stale {
    /// The entry of the check.
    pub check_seq: u64,
    /// The judge.
    pub judge: JudgeId,
}

/// What was predicted of a stratum, and what came of it so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stratum {
    /// Mean difference over the units whose draws are all there, candidate less baseline; `null` without such a unit.
    pub mean_difference: Option<f64>,
    /// Units observed of which draws are missing.
    pub missing: u64,
    /// Units that were observed.
    pub observed: u64,
    /// The mean difference that was predicted, in millionths.
    pub predicted_micro: Micro,
    /// The stratum.
    pub stratum: StratumId,
    /// Its units in the confirm set.
    pub units: u64,
}

/// One gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateFacts {
    /// How the candidate compares, and what may be claimed.
    pub answer: Answer,
    /// The gate that goes on from it; `null` where none does.
    pub child: Option<ManifestId>,
    /// How it ended; `null` while it is open.
    pub decided: Option<GateDecision>,
    /// What was done otherwise than registered.
    pub deviations: Vec<Deviation>,
    /// Digest of the manifest version in force; `null` where none is.
    pub digest: Option<Digest>,
    /// The last estimate beside it, which decides nothing; `null` without one.
    pub estimated: Option<GateEstimate>,
    /// Its experiment; `null` where its events name none.
    pub experiment: Option<ExperimentId>,
    /// Exposures: units exposed in all, and the entry.
    pub exposed: Vec<(u64, u64)>,
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// How far a claim of it may be trusted now; `null` where the log has no time yet.
    pub grade: Option<Grade>,
    /// The confidence sequence of the mean effect: units, and both ends in millionths.
    pub interval: Vec<(u64, i64, i64)>,
    /// Logarithm of the evidence for the claim by what is observed now; `null` where it cannot be computed.
    pub log_e_now: Option<Finite>,
    /// Recorded looks in order.
    pub looks: Vec<RecordedLook>,
    /// Units observed.
    pub n: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// The order in which its units are observed; `null` before it is drawn.
    pub order: Option<Order>,
    /// The gate that it goes on from; `null` where it starts anew.
    pub parent: Option<ManifestId>,
    /// The manifest in force; `null` where none is.
    pub plan: Option<Manifest>,
    /// Promotions that rest on it.
    pub promotions: Vec<Promotion>,
    /// Always true: a gate of which its entries make another is refused.
    pub replay_identical: bool,
    /// Where its values come from: the metric first, then its guardrails.
    pub sources: Vec<GateSource>,
    /// Why nothing may be observed or decided now; `null` where its judge has not drifted, and once it is decided.
    pub stale: Option<Stale>,
    /// Digest of its observations, chained again from the log.
    pub state_digest: Digest,
    /// Strata of its control variate; empty without one.
    pub strata: Vec<Stratum>,
    /// The path of the claim: units, and log wealth.
    pub wealth: Vec<(u64, f64)>,
}

impl From<&gates::Promotion> for Promotion {
    fn from(of: &gates::Promotion) -> Self {
        Self {
            gates: of.gates.clone(),
            id: of.id,
            revoked_seq: of.revoked_seq,
            seq: of.seq,
        }
    }
}

/// Strata of the control variate, with what came of each so far.
pub(super) fn strata(of: GateContext<'_>, life: &Life) -> Vec<Stratum> {
    let known = of.gate.test.control_variate.as_deref().unwrap_or_default();
    let version = of.record.in_force();
    let metric = version.and_then(|one| one.manifest.metric.as_ref());
    let draws = metric.map_or(1, |metric| metric.repeats.value().max(1));
    let one = |(at, predicted): (usize, &Prediction)| {
        let its = life.observed.iter().map(|(_, said)| said);
        let its = its.filter(|said| of.gate.stratum_of(said) == Some(at));
        let readings = its.filter_map(|said| said.readings.first());
        let (mut n, mut whole, mut sum) = (0_u64, 0_u64, 0_i128);
        for reading in readings {
            n += 1;
            // What stands for a missing draw is no difference that anybody measured.
            if gates::absent(reading) == 0 {
                whole += 1;
                sum += i128::from(reading.delta_micro.value());
            }
        }
        Stratum {
            mean_difference: (whole > 0).then(|| sum as f64 / 1e6 / (whole * draws) as f64),
            missing: n - whole,
            observed: n,
            predicted_micro: predicted.predicted_micro,
            stratum: predicted.stratum.clone(),
            units: predicted.units.value(),
        }
    };
    known.iter().enumerate().map(one).collect()
}
