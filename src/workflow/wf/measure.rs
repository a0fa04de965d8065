//! What runs whose truth is known say of the score that selected in them: groups and expansions for gamma and kappa, and the
//! gates by which an update of the outer loop is judged.

use clover_event::payload::meta::MetaGate;
use clover_event::payload::meta::MetaUpdated;
use clover_event::payload::meta::MetaValidated;
use clover_event::payload::meta::MetaVerdict;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_num::Finite;
use clover_num::math;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_projection::wf::count;
use clover_stats::concordance::CandidateGroups;
use clover_stats::concordance::Expansion;
use clover_stats::concordance::ScoredCandidate;
use clover_stats::concordance::alignment;
use clover_stats::concordance::proposal_quality;
use clover_stats::eprocess::bettor;

/// Fractions of the bettor of the gates of updates and plans.
pub const FRACTIONS: usize = 20;
/// Utilities that differ by no more than this are no pair. They are whole millionths: any two that differ are one.
pub const EPSILON: f64 = 1e-9;
/// Least gain of utility that is an improvement.
pub const LEAST_GAIN: f64 = 0.05;
/// Level of the intervals, where only means are asked for.
const LEVEL: f64 = 0.95;

fn real(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}

/// Candidates that each turn compared: what it kept and dropped, with the score and the mean worth of each.
pub fn groups(run: &WfRun) -> CandidateGroups {
    let of = |id: &Digest| {
        let score = run.candidate(id)?.score().map(real);
        Some(ScoredCandidate {
            score,
            utility: real(run.worth(id)?),
        })
    };
    let turns = run.turns.iter();
    let turns = turns.map(|turn| turn.kept.iter().chain(&turn.dropped).filter_map(of));
    turns.map(Iterator::collect).collect()
}

/// Millionths of a gain, the nearest whole number of them: gains are compared in these, so that no rounding decides.
pub fn whole(gain: f64) -> f64 {
    (gain * 1e6).round()
}

/// A parent with its children; `None` without one.
fn expansion(parent: i64, children: impl Iterator<Item = i64>) -> Option<Expansion> {
    let children: Vec<f64> = children.map(|of| of as f64).collect();
    let parent = parent as f64;
    (!children.is_empty()).then_some(Expansion { parent, children })
}

/// Parents that turns expanded, each with the worth of its children, in whole millionths.
pub fn expansions(run: &WfRun) -> Vec<Expansion> {
    let kept = run.turns.iter().enumerate();
    let kept = kept.flat_map(|(at, turn)| turn.kept.iter().map(move |id| (at as u64 + 2, id)));
    let of = |(iteration, parent): (u64, &Digest)| {
        let children = run.order.iter().filter(|id| {
            let of = run.candidate(id);
            of.is_some_and(|of| of.iteration == iteration && of.parent == Some(*parent))
        });
        expansion(run.worth(parent)?, children.filter_map(|id| run.worth(id)))
    };
    kept.filter_map(of).collect()
}

fn refused(error: &clover_stats::sample::SampleError) -> Unmet {
    Unmet {
        expected: "numbers that give a measure".to_owned(),
        found: error.to_string(),
    }
}

/// Gamma of a run; `None` where no two candidates can be compared.
///
/// # Errors
/// [`Unmet`] for numbers that give none.
pub fn gamma(run: &WfRun) -> Result<Option<f64>, Unmet> {
    let found = alignment(&[groups(run)], EPSILON, LEVEL);
    Ok(found.map_err(|error| refused(&error))?.gamma.mean)
}

/// Kappa of a run, of one proposal; `None` where nothing was expanded.
///
/// # Errors
/// [`Unmet`] for numbers that give none.
pub fn kappa(run: &WfRun) -> Result<Option<f64>, Unmet> {
    let found = proposal_quality(&[expansions(run)], 1, whole(LEAST_GAIN), LEVEL);
    Ok(found.map_err(|error| refused(&error))?.mean)
}

/// A gate over differences from -1 to 1, in their order, that their mean is above `-margin`.
pub(crate) fn gate(differences: &[f64], (margin, alpha): (f64, f64)) -> MetaGate {
    let null = (1.0 - margin) / 2.0;
    let returns: Vec<f64> = differences
        .iter()
        .map(|of| f64::midpoint(*of, 1.0) / null - 1.0)
        .collect();
    let threshold = math::ln(1.0 / alpha);
    let mut reached = false;
    for n in 1..=returns.len() {
        let wealth = bettor::ln_wealth(&returns[..n], FRACTIONS);
        reached |= bettor::is_past(n as u64, FRACTIONS, wealth, threshold);
    }
    let wealth = bettor::ln_wealth(&returns, FRACTIONS);
    MetaGate {
        log_wealth: Finite::new(wealth).unwrap_or_default(),
        pairs: count(returns.len() as u64),
        reached,
    }
}

/// What an update's pairs say of it: success under budget is higher, gamma and kappa are no worse.
///
/// # Errors
/// [`Unmet`] where a run of them is missing, or its truth.
pub fn validated(runs: &WfRuns, update: &MetaUpdated) -> Result<MetaValidated, Unmet> {
    let useful = update.useful_micro.value();
    let (mut success, mut gammas, mut kappas) = (Vec::new(), Vec::new(), Vec::new());
    let arm = |name| {
        let run: Option<&WfRun> = runs.by_id.get(name);
        run.filter(|run| run.is_known())
            .required("a run of the update with its truth known")
    };
    for pair in &update.pairs {
        let (new, old) = (arm(&pair.new)?, arm(&pair.old)?);
        let one = |run: &WfRun| f64::from(u8::from(run.succeeds(useful) == Some(true)));
        success.push(one(new) - one(old));
        if let (Some(new), Some(old)) = (gamma(new)?, gamma(old)?) {
            gammas.push(new - old);
        }
        if let (Some(new), Some(old)) = (kappa(new)?, kappa(old)?) {
            kappas.push(new - old);
        }
    }
    let (alpha, margin) = (
        real(update.alpha_micro.value()),
        real(update.margin_micro.value()),
    );
    let (success, gamma, kappa) = (
        gate(&success, (0.0, alpha)),
        gate(&gammas, (margin, alpha)),
        gate(&kappas, (margin, alpha)),
    );
    let passes = success.reached && gamma.reached && kappa.reached;
    Ok(MetaValidated {
        gamma,
        kappa,
        success,
        update: update.update.clone(),
        verdict: if passes {
            MetaVerdict::Pass
        } else {
            MetaVerdict::Fail
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_of_exactly_the_least_counts() {
        // In doubles 0.9 + 0.05 is above 0.95.
        for parent in [0, 100_000, 300_000, 900_000, 950_000] {
            let just = expansion(parent, [parent + 50_000].into_iter()).unwrap();
            let less = expansion(parent, [parent + 49_999].into_iter()).unwrap();
            let kappa = |of| proposal_quality(&[vec![of]], 1, whole(LEAST_GAIN), LEVEL).unwrap();
            assert_eq!(kappa(just).mean, Some(1.0), "{parent}");
            assert_eq!(kappa(less).mean, Some(0.0), "{parent}");
        }
    }
}
