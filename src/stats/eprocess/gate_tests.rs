//! Tests of gates: verdicts, looks, intervals and what continues.

use super::*;
use crate::eprocess::design::Bettor;
use crate::eprocess::design::CarriedWealth;
use crate::eprocess::design::Direction;
use crate::eprocess::design::Futility;
use crate::eprocess::design::GateTerms;
use crate::eprocess::design::Guardrail;
use crate::eprocess::design::Population;
use clover_num::math;

const UNIT: i64 = 1_000_000;

fn gate(change: impl FnOnce(&mut GateTerms)) -> Gate {
    let mut terms = GateTerms::new(UNIT, 400);
    change(&mut terms);
    Gate::open(Design::new(terms).unwrap())
}

/// Pushes a repeating pattern until a verdict.
fn run(gate: &mut Gate, pattern: &[i64]) -> (Verdict, u64) {
    for delta in pattern.iter().cycle() {
        let step = gate.push(*delta).unwrap();
        if step.verdict.is_terminal() {
            return (step.verdict, step.n);
        }
    }
    unreachable!("a pattern repeats");
}

#[test]
fn perfect_data_promotes_at_seven_and_nothing_follows() {
    let mut gate = gate(|_| ());
    assert_eq!(run(&mut gate, &[UNIT]), (Verdict::Promote, 7));
    assert_eq!(
        gate.push(0),
        Err(PushError::AfterTerminal {
            n: 7,
            verdict: Verdict::Promote
        })
    );
    let look = gate.look();
    let claim = look.claim.unwrap();
    // source: by hand, the mean over k of (1 + k/21)^7.
    let wealth: f64 = (1..=20)
        .map(|k| {
            let factor = 1.0 + f64::from(k) / 21.0;
            (0..7).fold(1.0, |product, _| product * factor) / 20.0
        })
        .sum();
    assert!((claim.e_value() / wealth - 1.0).abs() < 1e-14);
    assert!((claim.p_value() * wealth - 1.0).abs() < 1e-14);
    // The interval has alpha / 2 on each side.
    assert!((-UNIT..0).contains(&look.interval.unwrap().low));
}

#[test]
fn what_is_refused_leaves_the_gate_as_it_was() {
    let mut gate = gate(|terms| (terms.max_n, terms.repeats) = (8, 2));
    gate.push(2 * UNIT).unwrap();
    let before = gate.clone().state();
    let refused = gate.push(2 * UNIT + 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "delta 2000001: expected at most 2000000 in magnitude"
    );
    assert!(gate.push(i64::MIN).is_err());
    assert!(gate.push_all(0, &[0]).is_err());
    assert_eq!(gate.state(), before);
    for _ in 0..7 {
        gate.push(0).unwrap();
    }
    assert_eq!(gate.verdict(), Verdict::Undecided);
    assert_eq!(gate.push(0), Err(PushError::PastMaxN { max_n: 8 }));
}

#[test]
fn harm_and_futility_end_a_gate_in_their_order() {
    let both = |terms: &mut GateTerms| {
        terms.alpha_kill = Some(50_000);
        terms.futile = Some(Futility {
            beta: 100_000,
            effect: UNIT / 5,
        });
    };
    let late = |terms: &mut GateTerms| {
        both(terms);
        terms.min_n = 20;
    };
    assert_eq!(run(&mut gate(late), &[-UNIT]), (Verdict::Kill, 20));
    // No effect at all is no harm, but not the designed effect either.
    let (verdict, n) = run(&mut gate(both), &[0]);
    assert_eq!(verdict, Verdict::Futile);
    assert!(n > 5);
    let mut small = gate(|terms| {
        both(terms);
        terms.direction = Direction::Decrease;
    });
    assert_eq!(run(&mut small, &[-UNIT]).0, Verdict::Promote);
}

#[test]
fn margins_claim_what_they_say() {
    let noninferior = |terms: &mut GateTerms| terms.claim = Claim::NonInferior { margin: UNIT / 2 };
    assert_eq!(run(&mut gate(noninferior), &[0]).0, Verdict::NonInferior);
    let equivalent = |terms: &mut GateTerms| terms.claim = Claim::Equivalent { margin: UNIT / 2 };
    let (verdict, n) = run(&mut gate(equivalent), &[UNIT / 10, -UNIT / 10]);
    assert_eq!(verdict, Verdict::Equivalent);
    assert!(n < 30);
    let different = |terms: &mut GateTerms| terms.claim = Claim::Different { margin: 0 };
    assert_eq!(run(&mut gate(different), &[-UNIT]), (Verdict::Different, 8));
    let harmful = |terms: &mut GateTerms| terms.claim = Claim::Harmful;
    assert_eq!(run(&mut gate(harmful), &[-UNIT]), (Verdict::Kill, 7));
    let measure = |terms: &mut GateTerms| (terms.claim, terms.max_n) = (Claim::Measure, 50);
    let mut measured = gate(measure);
    assert_eq!(run(&mut measured, &[UNIT]), (Verdict::Undecided, 50));
    assert_eq!(measured.look().claim, None);
    assert!(measured.look().interval.unwrap().low > UNIT / 2);
}

#[test]
fn a_claim_below_the_stopping_value_of_its_family_leads() {
    let family = |terms: &mut GateTerms| {
        terms.stop = EvalueThreshold {
            numerator: 10 * 1_000_000,
            denominator: 50_000,
        };
    };
    let mut one = gate(family);
    let mut leading = Vec::new();
    while !one.push(UNIT).unwrap().verdict.is_terminal() {
        leading.push(one.look().leading);
    }
    assert!(!leading[5] && leading[6..].iter().all(|leads| *leads));
    assert!(one.look().claim.unwrap().e_value() >= 200.0);
    // At the maximum it is undecided, and still leads.
    let mut short = gate(|terms| {
        family(terms);
        terms.max_n = 8;
    });
    assert_eq!(run(&mut short, &[UNIT]), (Verdict::Undecided, 8));
    assert!(short.look().leading);
}

#[test]
fn guardrails_must_all_pass() {
    let rail = Guardrail {
        direction: Direction::Decrease,
        margin: 10,
        scale: 20,
    };
    let guarded = |terms: &mut GateTerms| terms.guardrails = vec![rail];
    let mut harmless = gate(guarded);
    assert!(harmless.push(UNIT).is_err());
    let mut n = 1;
    while !harmless.push_all(UNIT, &[0]).unwrap().verdict.is_terminal() {
        n += 1;
    }
    assert_eq!(harmless.verdict(), Verdict::Promote);
    assert!(n >= 7);
    let mut harmed = gate(guarded);
    for _ in 0..50 {
        let step = harmed.push_all(UNIT, &[10]).unwrap();
        assert_eq!(step.verdict, Verdict::Continue);
    }
    let look = harmed.look();
    assert!(look.part(Hypothesis::Claim).unwrap().e_value() > 1e6);
    assert!(look.claim.unwrap().e_value() <= 1.0);
}

#[test]
fn min_n_and_looks_hold_a_verdict_back() {
    let late = |terms: &mut GateTerms| terms.min_n = 12;
    assert_eq!(run(&mut gate(late), &[UNIT]).1, 12);
    let rare = |terms: &mut GateTerms| terms.looks = Looks::At(vec![3, 50]);
    assert_eq!(run(&mut gate(rare), &[UNIT]).1, 50);
    // A crossing that is gone again at the look does not count.
    let mut fell = gate(|terms| (terms.min_n, terms.max_n) = (14, 14));
    for delta in [[UNIT; 7], [-UNIT; 7]].concat() {
        fell.push(delta).unwrap();
    }
    assert_eq!(fell.verdict(), Verdict::Undecided);
    assert!(fell.look().claim.unwrap().ln_peak >= math::ln(20.0));
}

#[test]
fn wealth_carried_over_is_a_factor() {
    let carried = |terms: &mut GateTerms| {
        terms.carried = CarriedWealth {
            claim: 1.5,
            ..CarriedWealth::default()
        };
    };
    let (mut fresh, mut child) = (gate(|_| ()), gate(carried));
    for gate in [&mut fresh, &mut child] {
        gate.push(UNIT / 2).unwrap();
    }
    let ln = |gate: &Gate| gate.look().claim.unwrap().ln_wealth;
    assert!((ln(&child) - ln(&fresh) - 1.5).abs() < 1e-15);
}

#[test]
fn ten_thousand_ones_overflow_nothing() {
    for bettor in [
        Bettor::GridKelly { fractions: 20 },
        Bettor::Agrapa { max_bet: 500_000 },
        Bettor::Plugin { share: 500_000 },
    ] {
        let mut gate = gate(|terms| {
            (terms.max_n, terms.bettor) = (10_000, bettor);
            terms.looks = Looks::At(vec![10_000]);
        });
        for _ in 0..10_000 {
            gate.push(UNIT).unwrap();
        }
        let claim = gate.look().claim.unwrap();
        assert!(claim.ln_wealth.is_finite() && claim.ln_wealth > 2000.0);
        assert!(claim.e_value() >= f64::MAX && claim.p_value() <= 0.0);
        assert_eq!(gate.verdict(), Verdict::Promote);
        assert!(gate.look().interval.unwrap().low > 990_000);
    }
}

#[test]
fn order_changes_neither_wealth_nor_state_but_where_it_must() {
    let once = |terms: &mut GateTerms| terms.looks = Looks::At(vec![60]);
    let deltas: Vec<i64> = (0..60).map(|at| (at * 37 % 11 - 4) * 100_000).collect();
    let backwards: Vec<i64> = deltas.iter().rev().copied().collect();
    let states = |change: &dyn Fn(&mut GateTerms)| {
        [&deltas, &backwards].map(|deltas| {
            let mut gate = gate(|terms| change(terms));
            for delta in deltas {
                gate.push(*delta).unwrap();
            }
            gate.state()
        })
    };
    let [forth, back] = states(&once);
    assert_eq!(forth, back);
    let [forth, back] = states(&|terms: &mut GateTerms| {
        once(terms);
        (terms.max_n, terms.population) = (80, Population::Finite { units: 80 });
    });
    assert_ne!(forth, back);
}

#[test]
fn a_finite_set_is_decided_for_certain() {
    let mut set = gate(|terms| {
        (terms.max_n, terms.population) = (20, Population::Finite { units: 20 });
        terms.min_n = 20;
    });
    for at in 0..20 {
        let good = at % 2 == 0 || at == 19;
        set.push(if good { UNIT } else { -UNIT }).unwrap();
    }
    let look = set.look();
    assert_eq!(look.verdict, Verdict::Promote);
    assert!(look.claim.unwrap().ln_wealth.is_infinite());
    assert!(look.claim.unwrap().e_value() >= f64::MAX);
    // The mean of all is known: (11 - 9) / 20.
    let interval = look.interval.unwrap();
    assert_eq!((interval.low, interval.high), (100_000, 100_000));
}

/// Where draws are missing, claim and low end are those of the values that stand, harm, futility and high end those of a
/// gate in which the candidate had done its best: with and without replacement, in order and recalled.
#[test]
fn missing_draws_count_against_the_claim_and_against_harm() {
    let finite = |terms: &mut GateTerms| {
        (terms.population, terms.max_n) = (Population::Finite { units: 60 }, 60);
    };
    let adaptive = |terms: &mut GateTerms| terms.bettor = Bettor::Agrapa { max_bet: 500_000 };
    for change in [
        &(|_: &mut GateTerms| {}) as &dyn Fn(&mut GateTerms),
        &finite,
        &adaptive,
    ] {
        for direction in [Direction::Increase, Direction::Decrease] {
            let planned = |terms: &mut GateTerms| {
                change(terms);
                (terms.min_n, terms.looks) = (50, Looks::At(vec![20, 40]));
                (terms.repeats, terms.direction) = (2, direction);
                terms.alpha_kill = Some(50_000);
                let (beta, effect) = (100_000, 300_000);
                terms.futile = Some(Futility { beta, effect });
            };
            let [mut gate, mut worst, mut best] = [(); 3].map(|()| gate(planned));
            let sign = if direction == Direction::Increase {
                1
            } else {
                -1
            };
            let mut units = Vec::new();
            for t in 0..40_i64 {
                let stands = (t * 370_000) % 1_500_000 - 1_000_000;
                let slack = if t % 5 == 3 {
                    1_000_000 * (1 + t % 2)
                } else {
                    0
                };
                units.push((sign * stands, slack));
                gate.push_within(None, (sign * stands, slack), &[]).unwrap();
                worst.push(sign * stands).unwrap();
                best.push(sign * (stands + slack).min(2 * UNIT)).unwrap();
            }
            let [look, worst, best] = [gate.look(), worst.look(), best.look()];
            assert_eq!(look.claim, worst.claim);
            assert_eq!(look.part(Hypothesis::Claim), worst.part(Hypothesis::Claim));
            for part in [Hypothesis::Kill, Hypothesis::Futile] {
                assert_eq!(look.part(part), best.part(part));
                assert_ne!(look.part(part), worst.part(part));
            }
            let of = |look: &Look| look.interval.unwrap();
            assert_eq!(of(&look).low, of(&worst).low);
            assert_eq!(of(&look).high, of(&best).high);
            assert!(of(&look).high > of(&worst).high);
            let stream = units.iter().map(|(sum, _)| (*sum, 1)).collect();
            let within: Vec<_> = units.iter().map(|(sum, slack)| (*sum, *slack, 1)).collect();
            let mut again = gate.clone();
            let mut recalled = self::gate(planned);
            recalled.recall(&[stream], &within, &[]).unwrap();
            again.settle();
            recalled.settle();
            let (again, recalled) = (again.look(), recalled.look());
            for (again, recalled) in again.parts.iter().zip(&recalled.parts) {
                assert!((again.1.ln_wealth - recalled.1.ln_wealth).abs() < 1e-12);
            }
            assert_eq!(again.interval, recalled.interval);
        }
    }
}
