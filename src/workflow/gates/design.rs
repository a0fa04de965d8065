//! From a registered manifest to the terms of its test, and what is wrong where there is none.

use clover_event::payload::decision::LogWealth;
use clover_event::payload::manifest::BettorName;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Metric;
use clover_event::payload::manifest::MetricDirection as Better;
use clover_event::payload::manifest::Prediction;
use clover_event::payload::manifest::Test;
use clover_ledger::Code;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_projection::gates;
use clover_projection::manifests::Family;
use clover_stats::eprocess::Bettor;
use clover_stats::eprocess::CarriedWealth;
use clover_stats::eprocess::Claim;
use clover_stats::eprocess::Design;
use clover_stats::eprocess::DesignError;
use clover_stats::eprocess::Direction;
use clover_stats::eprocess::EvalueThreshold;
use clover_stats::eprocess::Futility;
use clover_stats::eprocess::GateTerms;
use clover_stats::eprocess::Guardrail;
use clover_stats::eprocess::Looks;
use clover_stats::eprocess::Population;
use clover_stats::eprocess::Stratum;
use clover_stats::eprocess::bettor::FRACTIONS;

/// The largest bet, or share of it, of bettors that register none, in millionths.
const CAP: u32 = 500_000;
const MILLION: u64 = 1_000_000;

/// Why a manifest has no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untestable {
    /// What would be accepted.
    pub expected: String,
    /// What stands there, with the name of the error.
    pub found: String,
}

impl Untestable {
    fn section(name: &str) -> Self {
        Self {
            expected: format!("section {name}"),
            found: "none".to_owned(),
        }
    }
}

impl From<DesignError> for Untestable {
    fn from(error: DesignError) -> Self {
        match error {
            DesignError::Term { name, expected } => Self {
                expected: format!("{name}: {expected}"),
                found: code(name).of("another"),
            },
            DesignError::Horizon { max_n, needed } => Self {
                expected: format!("test.n_max of at least {needed}: the best units need as many"),
                found: Code::Horizon.of(max_n),
            },
        }
    }
}

fn code(term: &str) -> Code {
    match term {
        "alpha" | "alpha_kill" | "beta" => Code::Alpha,
        "bettor" | "fractions" | "max_bet" | "share" => Code::Bettor,
        "designed effect" | "guardrail" | "margin" => Code::Margin,
        "scale" => Code::Scale,
        "stop_e" => Code::FamilyBudget,
        "control_variate" => Code::UnregisteredRule,
        _ => Code::Number,
    }
}

/// What stands against registering a manifest whose test could not end by its claim: that `test.n_max` is below what the best
/// units need. Whatever else is wrong with a test is said when its gate is opened.
pub fn horizon(manifest: &Manifest, family: Option<&Family>) -> Option<Untestable> {
    let test = manifest.test.as_ref()?;
    let terms = terms(manifest, test, family, None, looks(test)).ok()?;
    let error = Design::new(terms).err()?;
    matches!(error, DesignError::Horizon { .. }).then(|| error.into())
}

/// A level or bet in millionths; what does not fit is no level, which the design refuses.
fn millionths(value: Micro) -> u32 {
    u32::try_from(value.value()).unwrap_or(0)
}

/// The registered test as a design. `test` is the one that the gate was opened with, which alone says how it bets.
///
/// # Errors
/// [`Untestable`].
pub fn of(
    manifest: &Manifest,
    test: &Test,
    family: Option<&Family>,
    carried: Option<&LogWealth>,
    looks: Looks,
) -> Result<Design, Untestable> {
    Ok(Design::new(terms(manifest, test, family, carried, looks)?)?)
}

fn terms(
    manifest: &Manifest,
    test: &Test,
    family: Option<&Family>,
    carried: Option<&LogWealth>,
    looks: Looks,
) -> Result<GateTerms, Untestable> {
    let registered = manifest
        .test
        .as_ref()
        .ok_or_else(|| Untestable::section("test"))?;
    let metric = manifest
        .metric
        .as_ref()
        .ok_or_else(|| Untestable::section("metric"))?;
    let population = if registered.without_replacement {
        let data = manifest
            .data
            .as_ref()
            .ok_or_else(|| Untestable::section("data"))?;
        let units = data.n_units.value();
        Population::Finite { units }
    } else {
        Population::Superpopulation
    };
    let alpha = millionths(registered.alpha_micro);
    let effect = registered.delta_design_micro.map(Micro::value);
    let futile = registered
        .beta_futile_micro
        .zip(effect)
        .map(|(beta, effect)| Futility {
            beta: millionths(beta),
            effect,
        });
    Ok(GateTerms {
        scale: gates::scale(metric),
        repeats: u32::try_from(metric.repeats.value()).unwrap_or(0),
        direction: direction(metric),
        claim: claim(manifest, registered)?,
        alpha,
        alpha_kill: registered.alpha_kill_micro.map(millionths),
        futile,
        guardrails: guardrails(metric),
        min_n: registered.n_min.value(),
        max_n: registered.n_max.value(),
        looks,
        bettor: bettor(test),
        population,
        strata: strata(metric, registered),
        carried: carried.map_or_else(CarriedWealth::default, carried_of),
        stop: stop(alpha, family),
    })
}

/// Looks as they are registered.
pub fn looks(test: &Test) -> Looks {
    match &test.look_at {
        None => Looks::Every,
        Some(at) => Looks::At(at.iter().map(|n| Count::value(*n)).collect()),
    }
}

fn direction(metric: &Metric) -> Direction {
    match metric.direction {
        Better::Decrease => Direction::Decrease,
        Better::Increase => Direction::Increase,
    }
}

fn claim(manifest: &Manifest, test: &Test) -> Result<Claim, Untestable> {
    let margin = test.null_margin_micro.value();
    Ok(match manifest.hypothesis.kind {
        HypothesisKind::Different => Claim::Different { margin },
        HypothesisKind::Equivalent if margin <= 0 => {
            return Err(Untestable {
                expected: "test.null_margin_micro above 0 for equivalence: how far off either way is the same".to_owned(),
                found: Code::Margin.of(margin),
            });
        }
        HypothesisKind::Noninferior if margin >= 0 => {
            return Err(Untestable {
                expected:
                    "test.null_margin_micro below 0 for noninferiority: how much worse is not worse"
                        .to_owned(),
                found: Code::Margin.of(margin),
            });
        }
        HypothesisKind::Equivalent => Claim::Equivalent { margin },
        HypothesisKind::Kill if margin != 0 => {
            return Err(Untestable {
                expected: "test.null_margin_micro 0 to kill".to_owned(),
                found: Code::Margin.of(margin),
            });
        }
        HypothesisKind::Kill => Claim::Harmful,
        HypothesisKind::Measure => Claim::Measure,
        // The effect that the null hypothesis allows is below 0 here.
        HypothesisKind::Noninferior => Claim::NonInferior { margin: -margin },
        HypothesisKind::Promote => Claim::Superior { margin },
    })
}

/// Predictions as improvements.
fn strata(metric: &Metric, test: &Test) -> Vec<Stratum> {
    let all = test.control_variate.iter().flatten();
    let stratum = |one: &Prediction| Stratum {
        predicted: match metric.direction {
            Better::Decrease => -one.predicted_micro.value(),
            Better::Increase => one.predicted_micro.value(),
        },
        units: one.units.value(),
    };
    all.map(stratum).collect()
}

/// Guardrails are on the metric's scale and have its direction.
fn guardrails(metric: &Metric) -> Vec<Guardrail> {
    let all = metric.guardrails.iter().flatten();
    all.map(|one| Guardrail {
        direction: direction(metric),
        margin: one.margin_micro.value(),
        scale: gates::scale(metric),
    })
    .collect()
}

fn bettor(test: &Test) -> Bettor {
    let cap = test.bettor.cap_micro.map_or(CAP, millionths);
    match test.bettor.name {
        BettorName::Agrapa => Bettor::Agrapa { max_bet: cap },
        BettorName::GridKelly => Bettor::GridKelly {
            fractions: test.bettor.grid.map_or(FRACTIONS, |grid| {
                usize::try_from(grid.value()).unwrap_or(usize::MAX)
            }),
        },
        BettorName::Hedged => Bettor::Plugin { share: cap },
    }
}

fn carried_of(carried: &LogWealth) -> CarriedWealth {
    let of = |value: Option<Finite>| value.map_or(0.0, Finite::value);
    CarriedWealth {
        claim: of(carried.claim),
        second: of(carried.second),
        kill: of(carried.kill),
        futile: of(carried.futile),
    }
}

/// Natural logarithm of the e-value at which a claim of this alpha, in millionths, ends its gate within its family.
pub fn ln_stop(alpha: i64, family: Option<&Family>) -> f64 {
    stop(u32::try_from(alpha).unwrap_or(0), family).ln()
}

/// The e-value at which a claim ends its gate: `1 / alpha` where each member has a part of the family's alpha of its
/// own; where it is closed together `members_max / alpha` of the family, if that is more.
fn stop(alpha: u32, family: Option<&Family>) -> EvalueThreshold {
    let own = EvalueThreshold::of_level(alpha);
    let Some(family) = family else {
        return own;
    };
    match family.method {
        FamilyMethod::Elond | FamilyMethod::Spend => own,
        FamilyMethod::ClosedEbh | FamilyMethod::ClosedMean | FamilyMethod::Ebh => {
            let level = u64::try_from(family.alpha).unwrap_or(0);
            let needed = u128::from(family.members_max) * u128::from(alpha);
            if needed < u128::from(level) {
                return own;
            }
            EvalueThreshold {
                numerator: family.members_max.saturating_mul(MILLION),
                denominator: level,
            }
        }
    }
}
