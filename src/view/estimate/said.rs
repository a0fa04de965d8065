//! What may be said of recorded values and differences now, for reports: each as `clover estimate` and `clover compare` show it.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::estimated::TransportState;
use crate::ground::sign::KeyId;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::audits::AuditSubject;
use crate::projection::audits::Audits;
use crate::view::answer;
use crate::view::answer::BestPolicy;
use crate::view::estimate::Estimates;
use crate::view::estimate::claim;
use crate::view::estimate::contrasts;
use crate::view::values;
use crate::view::values::Ends;

/// What stands in place of a claim where a value rests on entries of a compromised key.
const VOID: &str = "VOID: compromised key";

/// Values of a judge, and their differences, as the rows on record give them.
#[derive(Clone, Debug)]
pub struct SaidValues {
    /// The sentence that answers, and whether it may be claimed.
    pub answer: BestPolicy,
    /// The values, by policy.
    pub values: Vec<SaidValue>,
    /// The differences of all their pairs.
    pub pairs: Vec<SaidPair>,
}

/// A value as it is shown.
#[derive(Clone, Debug)]
pub struct SaidValue {
    /// What an estimate would record.
    pub row: EstimateRecorded,
    /// What may be claimed, in a word or two.
    pub claim: &'static str,
    /// Whether the value is not shown: an audit failed, labels lack near its scores, or a key is compromised.
    pub is_withheld: bool,
    /// Whether it may be claimed.
    pub may_be_claimed: bool,
    /// The interval in force, where there is one.
    pub interval: Option<Ends>,
    /// The compromised key that it rests on.
    pub tainted_by: Option<KeyId>,
    /// Its place among the policies that have one: the best and the worst that it may be, as `2` or `1-3`.
    pub rank: Option<String>,
}

/// A difference as it is shown.
#[derive(Clone, Debug)]
pub struct SaidPair {
    /// What a comparison would record.
    pub row: ContrastRecorded,
    /// How it is to be read.
    pub reading: &'static str,
    /// Whether it is not shown, since a level is withheld.
    pub is_withheld: bool,
}

impl SaidValues {
    /// The value of a policy.
    pub fn value(&self, policy: &PolicyId) -> Option<&SaidValue> {
        self.values.iter().find(|of| of.row.policy == *policy)
    }

    /// The difference of a pair that was recorded: of the same policies, in either order.
    pub fn pair(&self, of: &ContrastRecorded) -> Option<&SaidPair> {
        let names = (&of.first, &of.second);
        self.pairs.iter().find(|pair| {
            (&pair.row.first, &pair.row.second) == names
                || (&pair.row.second, &pair.row.first) == names
        })
    }

    /// Whether the level of a policy is withheld now.
    pub fn withholds(&self, policy: &PolicyId) -> bool {
        self.value(policy).is_some_and(|of| of.is_withheld)
    }
}

/// The interval that a recorded difference is read by.
pub fn interval_of(of: &ContrastRecorded) -> IntervalEnds {
    contrasts::decisive(of)
}

/// Whether a recorded difference gives no level away.
pub fn is_recorded_withheld(of: &ContrastRecorded) -> bool {
    contrasts::is_withheld(of)
}

/// Whether a value or a difference is withheld: it was refused as it was recorded, or an audit that fails now stands against it.
pub fn is_withheld_now(state: &State, experiment: &ExperimentId, payload: &Payload) -> bool {
    let fails = |terms: &EstimateTerms, policy: &PolicyId| {
        let subject = AuditSubject {
            experiment,
            judge: &terms.judge,
            environment: terms.environment.as_ref(),
            policy,
        };
        let standing = state.fold::<Audits>().standing(&subject, None);
        standing.is_some_and(|of| of.state == TransportState::Fail)
    };
    match payload {
        Payload::EstimateRecorded(of) => of.claim == Claim::Refused || fails(&of.terms, &of.policy),
        Payload::ContrastRecorded(of) => {
            is_recorded_withheld(of)
                || [&of.first, &of.second]
                    .iter()
                    .any(|policy| fails(&of.terms, policy))
        }
        _ => false,
    }
}

/// How a recorded difference is to be read.
pub fn reading_of(of: &ContrastRecorded) -> &'static str {
    contrasts::reading(of)
}

/// What may be claimed of a recorded value, in a word or two.
pub fn claim_of(of: &EstimateRecorded) -> &'static str {
    claim(of)
}

impl Estimates<'_> {
    /// What may be said of these values, where `is_recorded` tells whether a value is the one on record.
    pub fn said(&self, is_recorded: impl Fn(&EstimateRecorded) -> bool) -> SaidValues {
        // Where something else is on record, nothing of this may be claimed: an estimate records it first.
        let mut answer = self.facts(true).answer;
        let claimable = answer.claimable.clone();
        let is_claimable = |row: &EstimateRecorded| {
            let mut named = claimable.iter();
            named.any(|name| name == row.policy.as_str())
        };
        let others: Vec<&str> = self
            .rows
            .iter()
            .filter(|(_, row)| is_claimable(row) && !is_recorded(row))
            .map(|(_, row)| row.policy.as_str())
            .collect();
        if !others.is_empty() {
            answer = self.facts(false).answer;
            let names = answer::names(others.iter().copied());
            answer.answer.text.push_str(&format!(
                " The rows now give {names} another value than the one on record: `clover estimate` records it."
            ));
        }
        let ranks = self.ranks(&answer);
        let values = self.rows.iter().zip(ranks).map(|((policy, row), rank)| {
            let tainted_by = self.found.tainted.get(policy).copied();
            let named = |name: &String| name == row.policy.as_str();
            SaidValue {
                claim: tainted_by.map_or_else(|| claim(row), |_| VOID),
                is_withheld: self.is_withheld(row),
                may_be_claimed: answer.claimable.iter().any(named),
                interval: self.decisive(*policy, row),
                tainted_by,
                rank: rank.map(|of| values::rank(Some(of))),
                row: row.clone(),
            }
        });
        let pairs = self.contrasts.iter().map(|row| SaidPair {
            reading: contrasts::reading(row),
            is_withheld: contrasts::is_withheld(row),
            row: row.clone(),
        });
        SaidValues {
            values: values.collect(),
            pairs: pairs.collect(),
            answer,
        }
    }
}

/// The span of the scale of labels.
pub fn span(of: Option<ScaleEnds>) -> f64 {
    of.map_or(1.0, |ends| {
        (ends.high_micro.value() - ends.low_micro.value()) as f64 / 1e6
    })
}

/// An interval on the scale of 0 to 1, as it is on a scale of this span.
pub fn scaled(of: IntervalEnds, span: f64) -> Option<(Finite, Finite)> {
    finite(Ends([of.low.value() * span, of.high.value() * span]))
}

/// Both ends of an interval, where they are numbers.
pub fn finite(of: Ends) -> Option<(Finite, Finite)> {
    let Ends([low, high]) = of;
    Finite::new(low).zip(Finite::new(high))
}
