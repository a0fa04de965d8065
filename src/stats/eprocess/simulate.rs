//! Simulation of a design: how often it promotes, and after how many observations.

use rayon::prelude::*;

use crate::draws::Draws;
use crate::eprocess::design::Design;
use crate::eprocess::gate::Gate;
use crate::eprocess::verdict::Verdict;
use crate::sample::SampleError;

/// Most runs of a simulation.
pub const RUNS_MAX: usize = 1_000_000;

/// Where simulated deltas come from; all in millionths, each the sum of a unit's repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaLaw {
    /// Independent and uniform on the integers from `centre - half` to `centre + half`.
    Uniform {
        /// The mean.
        centre: i64,
        /// Half the width.
        half: i64,
    },
    /// Independent, each value with its weight.
    Levels(Vec<(i64, u32)>),
    /// Exactly these units, in random order: the law of a finite set.
    Set(Vec<i64>),
}

/// What runs of a gate came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedRuns {
    /// Runs.
    pub runs: usize,
    /// Runs by verdict, in the order of [`Verdict`]; those that never occurred are left out.
    pub verdicts: Vec<(Verdict, usize)>,
    /// Runs that showed the claim.
    pub shown: usize,
    /// Observations after which half the runs have shown the claim; `None` if fewer ever do.
    pub n50: Option<u64>,
    /// The same of nine tenths.
    pub n90: Option<u64>,
}

impl SimulatedRuns {
    /// Share of runs that showed the claim: the false promotion rate under a null law, the power under another.
    pub fn rate(&self) -> f64 {
        self.shown as f64 / self.runs as f64
    }
}

fn refused(name: &'static str, expected: &'static str) -> SampleError {
    SampleError::Parameter { name, expected }
}

/// Runs a gate under a law; the same for every number of threads, as each run has a stream of its own.
///
/// # Errors
/// [`SampleError::Parameter`] for no runs or too many, a law that leaves the scale, or a set for a design that is not of
/// as many units, and the other way about.
pub fn simulate(
    design: &Design,
    law: &DeltaLaw,
    runs: usize,
    seed: [u8; 32],
) -> Result<SimulatedRuns, SampleError> {
    if !(1..=RUNS_MAX).contains(&runs) {
        return Err(refused("runs", "between 1 and 10^6"));
    }
    check(design, law)?;
    let ends: Vec<(Verdict, u64)> = (0..runs)
        .into_par_iter()
        .map(|run| one(design, law, &mut Draws::of(seed, run)))
        .collect();
    let mut counts = std::collections::BTreeMap::new();
    let mut stops: Vec<u64> = Vec::new();
    for (verdict, n) in ends {
        *counts.entry(verdict).or_insert(0) += 1;
        if Verdict::of(design.terms().claim) == Some(verdict) {
            stops.push(n);
        }
    }
    stops.sort_unstable();
    // The smallest n by which a share of all runs is there: nearest rank.
    let by = |tenths: usize| {
        let rank = (runs * tenths).div_ceil(10);
        stops.get(rank.saturating_sub(1)).copied()
    };
    Ok(SimulatedRuns {
        runs,
        verdicts: counts.into_iter().collect(),
        shown: stops.len(),
        n50: by(5),
        n90: by(9),
    })
}

fn check(design: &Design, law: &DeltaLaw) -> Result<(), SampleError> {
    if !design.terms().guardrails.is_empty() || !design.terms().strata.is_empty() {
        return Err(refused("design", "one without guardrails and strata"));
    }
    let bound = design.metric().half();
    let inside = |value: i64| value.unsigned_abs() <= bound.unsigned_abs();
    let fits = match law {
        DeltaLaw::Uniform { centre, half } => {
            let ends = centre.checked_sub(*half).zip(centre.checked_add(*half));
            *half >= 0 && ends.is_some_and(|(low, high)| inside(low) && inside(high))
        }
        DeltaLaw::Levels(levels) => {
            let weight: u64 = levels.iter().map(|(_, weight)| u64::from(*weight)).sum();
            weight > 0 && levels.iter().all(|(value, _)| inside(*value))
        }
        DeltaLaw::Set(values) => values.iter().all(|value| inside(*value)),
    };
    if !fits {
        return Err(refused("law", "deltas within the scale, some with weight"));
    }
    let units = match law {
        DeltaLaw::Set(values) => Some(values.len() as u64),
        DeltaLaw::Uniform { .. } | DeltaLaw::Levels(_) => None,
    };
    if units != design.units() {
        return Err(refused(
            "law",
            "a set of exactly its units for a finite design",
        ));
    }
    Ok(())
}

fn one(design: &Design, law: &DeltaLaw, draws: &mut Draws) -> (Verdict, u64) {
    let mut gate = Gate::verdicts_only(design.clone());
    let mut left = match law {
        DeltaLaw::Set(values) => values.clone(),
        DeltaLaw::Uniform { .. } | DeltaLaw::Levels(_) => Vec::new(),
    };
    while !gate.verdict().is_terminal() {
        let delta = match law {
            DeltaLaw::Uniform { centre, half } => {
                let width = usize::try_from(2 * half + 1).expect("BUG: a width is above 0");
                let step = i64::try_from(draws.below(width)).expect("BUG: below the width");
                centre - half + step
            }
            DeltaLaw::Levels(levels) => level(levels, draws),
            DeltaLaw::Set(_) => left.swap_remove(draws.below(left.len())),
        };
        gate.push(delta).expect("BUG: the law was checked");
    }
    (gate.verdict(), gate.n())
}

fn level(levels: &[(i64, u32)], draws: &mut Draws) -> i64 {
    let weight: usize = levels.iter().map(|(_, weight)| *weight as usize).sum();
    let mut at = draws.below(weight);
    for (value, weight) in levels {
        if at < *weight as usize {
            return *value;
        }
        at -= *weight as usize;
    }
    unreachable!("BUG: a place below the sum of weights");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eprocess::design::Futility;
    use crate::eprocess::design::GateTerms;
    use crate::eprocess::design::Population;

    fn design(change: impl FnOnce(&mut GateTerms)) -> Design {
        let mut terms = GateTerms::new(1_000_000, 200);
        change(&mut terms);
        Design::new(terms).unwrap()
    }

    #[test]
    fn threads_change_nothing() {
        let design = design(|terms| {
            terms.futile = Some(Futility {
                beta: 100_000,
                effect: 200_000,
            });
        });
        let law = DeltaLaw::Levels(vec![(-500_000, 2), (0, 3), (500_000, 4)]);
        let runs = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap()
                .install(|| simulate(&design, &law, 40, [7; 32]).unwrap())
        };
        assert_eq!(runs(1), runs(2));
    }

    #[test]
    fn rates_are_what_the_design_promises() {
        let null = DeltaLaw::Levels(vec![(-1_000_000, 1), (0, 2), (1_000_000, 1)]);
        let found = simulate(&design(|_| ()), &null, 200, [1; 32]).unwrap();
        // alpha = .05 and four standard errors.
        assert!(found.rate() < 0.05 + 4.0 * 0.0155, "{found:?}");
        let effect = DeltaLaw::Uniform {
            centre: 200_000,
            half: 600_000,
        };
        let found = simulate(&design(|_| ()), &effect, 200, [1; 32]).unwrap();
        assert!(found.rate() > 0.95, "{found:?}");
        assert!(
            found.n50.unwrap() < 40 && found.n90.unwrap() < 65,
            "{found:?}"
        );
        // A finite set whose mean is exactly 0.
        let finite = design(|terms| {
            (terms.max_n, terms.population) = (40, Population::Finite { units: 40 });
        });
        let set = DeltaLaw::Set((0..40).map(|at| (at % 2 * 2 - 1) * 1_000_000).collect());
        let found = simulate(&finite, &set, 200, [1; 32]).unwrap();
        assert!(found.rate() < 0.05 + 4.0 * 0.0155, "{found:?}");
        assert!(simulate(&finite, &null, 10, [1; 32]).is_err());
        let wide = DeltaLaw::Uniform {
            centre: 900_000,
            half: 200_000,
        };
        assert!(simulate(&design(|_| ()), &wide, 10, [1; 32]).is_err());
    }
}
