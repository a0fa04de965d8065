//! The sentence that answers what a gate was asked, and whether it may be said elsewhere.

use crate::event::id::ManifestId;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::Outcome;
use crate::event::payload::decision::Standing;
use crate::event::payload::manifest::Test;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::gates;
use crate::projection::gates::Gates;
use crate::projection::manifests::Manifests;
use crate::view::answer::Answer;
use crate::view::gate::GateDecision;
use crate::view::gate::facts::Stale;

/// How far a gate has come.
pub(super) struct Course<'a> {
    /// Units observed.
    pub n: u64,
    /// What the last look found.
    pub looked: Option<Standing>,
    /// How it ended.
    pub decided: Option<GateDecision>,
    /// Both ends of the mean effect that the last look does not exclude, in millionths.
    pub interval: Option<(i64, i64)>,
    /// Why its judge may not be trusted now.
    pub stale: Option<&'a Stale>,
    /// How far a claim of it may be trusted.
    pub grade: Option<Grade>,
    /// Whether one person may hold every role of the ledger.
    pub is_solo: bool,
}

/// What a reader must know where nobody keeps roles apart.
const SOLO: &str = "Whoever keeps this ledger may rely on it; to others it is self-governed, as one person may hold every role here (solo).";

/// What is said where a gate that could be relied on ended without a finding.
const NO_FINDING: &str = "That it ended so may be said; no effect of the candidate may be claimed.";

/// The answer of a gate: how its candidate compares, and what may be claimed.
pub(super) fn answer(of: &Course<'_>, test: &Test) -> Answer {
    let (mut found, is_finding) = found(of, test);
    let outcome = of.decided.map(|one| one.outcome);
    if let Some(harm) = harm(outcome, of.interval, test.null_margin_micro) {
        found.push(' ');
        found.push_str(&harm);
    }
    let (claim, may_be_claimed) = match (of.stale, of.grade) {
        (Some(stale), _) => {
            let text = format!(
                "Nothing may be claimed: judge {} failed its drift check at seq {}.",
                stale.judge, stale.check_seq
            );
            (text, false)
        }
        (None, _) if of.decided.is_none() => (
            "Nothing may be claimed before it is decided.".to_owned(),
            false,
        ),
        (None, None) => ("Nothing may be claimed: it has no grade.".to_owned(), false),
        (None, Some(grade)) if !is_finding && claim(grade).1 => (NO_FINDING.to_owned(), false),
        (None, Some(grade)) => {
            let (text, may) = claim(grade);
            (text.to_owned(), may && is_finding)
        }
    };
    let solo = if may_be_claimed && of.is_solo {
        format!(" {SOLO}")
    } else {
        String::new()
    };
    Answer {
        text: format!("{found} {claim}{solo}"),
        may_be_claimed,
    }
}

/// Where a gate is open, or ended undecided, and everything that its last look does not exclude lies below the margin and below
/// no effect: that the candidate does worse. Its plan tests another claim, so it does not decide this.
fn harm(outcome: Option<Outcome>, interval: Option<(i64, i64)>, margin: Micro) -> Option<String> {
    let is_silent = outcome.is_none_or(|outcome| outcome == Outcome::UndecidedAtNMax);
    let (low, high) = interval.filter(|(low, high)| low <= high && is_silent)?;
    let real = |micro: i64| micro as f64 / 1e6;
    (high < margin.value().min(0)).then(|| {
        format!(
            "HARM: the last look excludes every mean effect outside [{:.3}, {:.3}], so the candidate does worse.",
            real(low),
            real(high)
        )
    })
}

/// What was found, and whether it is a finding.
fn found(of: &Course<'_>, test: &Test) -> (String, bool) {
    let margin = test.null_margin_micro;
    let units = format!("after {} of at most {} units", of.n, test.n_max);
    let risk = format!("at error rate {}", test.alpha_micro);
    let Some(decided) = of.decided else {
        let what = match of.looked {
            None => format!("Not decided: nobody has looked, {units} observed."),
            Some(Standing::Continue) => {
                format!("Not decided: the evidence does not suffice yet {units}.")
            }
            Some(Standing::Leading) => format!(
                "Not decided: the candidate leads {units}, but its family needs more evidence."
            ),
            Some(_) => format!("Not decided: the last look, {units}, allows a decision."),
        };
        return (what, false);
    };
    match decided.outcome {
        Outcome::Promote => (
            format!("The candidate is better by more than the margin {margin}, {risk}, {units}."),
            true,
        ),
        Outcome::Noninferior => (
            format!(
                "The candidate is not worse by more than the margin {margin}, {risk}, {units}."
            ),
            true,
        ),
        Outcome::Equivalent => (
            format!("The difference lies within the margin {margin}, {risk}, {units}."),
            true,
        ),
        Outcome::Different => (
            format!("The difference is not the margin {margin}, {risk}, {units}."),
            true,
        ),
        Outcome::Kill => (format!("The candidate is worse: stopped {units}."), true),
        Outcome::Futile => (
            match test.delta_design_micro.zip(test.beta_futile_micro) {
                Some((effect, rate)) => format!(
                    "The planned effect of {effect} is ruled out at error rate {rate}, {units}."
                ),
                None => format!("The planned effect is not there: stopped {units}."),
            },
            true,
        ),
        Outcome::UndecidedAtNMax => (
            format!("Undecided {units}: this is no evidence that there is no effect."),
            false,
        ),
        Outcome::Superseded => (
            "Nothing is decided: another plan replaced this one.".to_owned(),
            false,
        ),
        Outcome::Void => (
            "Nothing is decided: its sealed plan was not revealed in time.".to_owned(),
            false,
        ),
    }
}

/// What a decided gate lets people say as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradedClaim {
    /// Its grade.
    pub grade: Grade,
    /// What that grade lets people say.
    pub words: &'static str,
    /// Whether its finding may be claimed.
    pub may_be_claimed: bool,
}

/// Every decided gate, with what it lets people say.
pub fn graded_claims(state: &State) -> impl Iterator<Item = (&ManifestId, GradedClaim)> {
    let now = state.keyring.recorded_at;
    let records = &state.fold::<Manifests>().by_id;
    let gates = state.fold::<Gates>().by_id.iter();
    let decided = gates.filter(|(_, gate)| gate.decided.is_some());
    decided.filter_map(move |(id, gate)| {
        let grade = gates::graded(gate, records.get(id)?, state, now?);
        let outcome = gate.decided.as_ref().map(|of| of.outcome);
        let (words, may_be_claimed) = match claim(grade) {
            (_, true) if !is_finding(outcome) => (NO_FINDING, false),
            words => words,
        };
        let said = GradedClaim {
            grade,
            words,
            may_be_claimed,
        };
        Some((id, said))
    })
}

/// Why the grade of a gate is `certified_amended` where no amendment and no deviation says so; `None` for others.
pub fn why_amended(state: &State, id: &ManifestId) -> Option<String> {
    let gate = state.fold::<Gates>().by_id.get(id)?;
    let record = state.fold::<Manifests>().by_id.get(id)?;
    let grade = gates::graded(gate, record, state, state.keyring.recorded_at?);
    let is_it = grade == Grade::CertifiedAmended && gates::is_order_known(gate, record, state);
    is_it.then(|| {
        "It is no plain certified: another plan had drawn an order of the same units for the same candidate before, so the \
         order of this one could be known or chosen."
            .to_owned()
    })
}

/// Whether a gate ended in something that its test found.
fn is_finding(outcome: Option<Outcome>) -> bool {
    let none = [Outcome::UndecidedAtNMax, Outcome::Superseded, Outcome::Void];
    outcome.is_some_and(|of| !none.contains(&of))
}

/// What a grade lets people say.
fn claim(grade: Grade) -> (&'static str, bool) {
    match grade {
        Grade::Certified => (
            "This may be claimed: the test is exact and ran as registered.",
            true,
        ),
        Grade::CertifiedAmended => (
            "This may be claimed together with its amendments and deviations.",
            true,
        ),
        Grade::Asymptotic => (
            "This may be claimed as approximate: the error rate holds for many units.",
            true,
        ),
        Grade::Finite => (
            "This may be claimed of the recorded scores of exactly these units, and of nothing else.",
            true,
        ),
        Grade::SelfGoverned => (
            "This may be claimed only with the remark that whoever fixed the order could know the outcomes.",
            true,
        ),
        Grade::Exploratory => (
            "This may not be claimed: something was done otherwise after an outcome had been seen.",
            false,
        ),
        Grade::Void => ("Nothing may be claimed: the gate is void.", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test for "better" that ends undecided says where its own interval shows harm, and nowhere else.
    #[test]
    fn harm_is_said_where_the_interval_shows_it() {
        let margin = |micro: i64| Micro::new(micro).unwrap();
        let found = harm(
            Some(Outcome::UndecidedAtNMax),
            Some((-480_000, -228_000)),
            margin(0),
        );
        assert!(found.is_some_and(|text| text.contains("[-0.480, -0.228]")));
        let open = harm(None, Some((-480_000, -228_000)), margin(0));
        assert!(open.is_some());
        for (outcome, interval, least) in [
            (None, Some((-480_000, 1)), 0),
            (None, None, 0),
            // Not worse by more than the margin is no harm yet.
            (None, Some((-80_000, -10_000)), -50_000),
            // No look excludes anything where its ends cross.
            (None, Some((1, -228_000)), 0),
            (Some(Outcome::Kill), Some((-480_000, -228_000)), 0),
        ] {
            assert_eq!(harm(outcome, interval, margin(least)), None, "{interval:?}");
        }
    }
}
