//! Judges that are checked against their anchors: how often one in control is said to drift, and how soon one that
//! drifts is found.

use clover::event::payload::Verdict;
use clover::event::payload::drift::DriftChart;
use clover::event::payload::drift::DriftPlan;
use clover::event::payload::drift::DriftTerms;
use clover::event::payload::drift::JudgeDriftChecked;
use clover::num::Count;
use clover::num::Micro;
use clover::workflow::drift;
use clover::workflow::drift::AnchorHistory;
use clover::workflow::drift::AnchorRow;
use clover::workflow::drift::Heard;

use super::World;
use super::worlds;

/// Rows of each of two policies.
const ROWS: usize = 200;
/// Deviation of a score that is given anew.
const NOISE: f64 = 0.05;

fn micro(value: f64) -> Micro {
    #[expect(clippy::cast_possible_truncation, reason = "a score of a small scale")]
    let millionths = (value * 1e6).round() as i64;
    Micro::new(millionths).unwrap()
}

fn terms(chart: DriftChart, parameter: f64) -> DriftTerms {
    let plan = DriftPlan {
        chart,
        chart_micro: micro(parameter),
        replicates: Count::new(999).unwrap(),
        ..DriftPlan::default()
    };
    DriftTerms {
        manifest: None,
        plan,
    }
}

fn anchors(world: &mut World) -> AnchorHistory {
    let rows = ["bad", "good"].into_iter().flat_map(|policy| {
        let shift = if policy == "good" { 0.3 } else { 0.0 };
        (0..ROWS).map(move |at| (policy, at, shift))
    });
    let rows = rows.map(|(policy, at, shift)| AnchorRow {
        id: format!("{policy}/item-{at:03}/0"),
        policy: policy.parse().unwrap(),
        item: format!("item-{at:03}").parse().unwrap(),
        draw: 0,
        recorded: micro(0.1 + shift + 0.5 * world.uniform()),
    });
    AnchorHistory {
        anchors: "anchors-1".parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        rows: rows.collect(),
        earlier: Vec::new(),
        registered: None,
        unversioned: 0,
        through: 1,
    }
}

/// Scores anew: noise on all rows, a shift on the good ones.
fn anew(world: &mut World, of: &AnchorHistory, shift: f64) -> Vec<Micro> {
    let score = |row: &AnchorRow, noise: f64| {
        let moved = if row.policy.as_str() == "good" {
            shift
        } else {
            0.0
        };
        micro(row.recorded.value() as f64 / 1e6 + moved + NOISE * noise)
    };
    of.rows
        .iter()
        .map(|row| score(row, world.normal()))
        .collect()
}

/// Checks in a row, until one fails.
fn checks(
    world: &mut World,
    most: usize,
    shift: f64,
    terms: DriftTerms,
) -> (usize, Option<JudgeDriftChecked>) {
    let mut of = anchors(world);
    for check in 1..=most {
        let scores = anew(world, &of, shift);
        let heard = Heard {
            asked: None,
            scores: scores.clone(),
        };
        let said = drift::check(&of, heard, terms).unwrap();
        if said.verdicts.whole() == Verdict::Fail {
            return (check, Some(said));
        }
        of.earlier.push(scores);
    }
    (most, None)
}

/// Judges of `number` that failed, and the sum of the checks until then.
fn failed(seed: u8, number: u64, most: usize, shift: f64, terms: DriftTerms) -> (u64, usize) {
    (0..number).fold((0, 0), |(failed, delay), world| {
        match checks(&mut World::new(seed, world), most, shift, terms) {
            (check, Some(_)) => (failed + 1, delay + check),
            (_, None) => (failed, delay),
        }
    })
}

#[test]
fn a_judge_in_control_seldom_fails_a_check() {
    for (chart, parameter) in [(DriftChart::Cusum, 0.5), (DriftChart::Ewma, 0.2)] {
        let number = worlds(150, 2_000);
        let (failed, _) = failed(61, number, 1, 0.0, terms(chart, parameter));
        // Two families at 1 %, and three binomial errors.
        let claim = 0.02 * number as f64;
        let most = claim + 3.0 * (claim * 0.98).sqrt();
        println!("{chart:?}: {failed} of {number} in control failed their first check");
        assert!(failed as f64 <= most, "{chart:?}: {failed} of {number}");
    }
}

#[test]
fn a_shift_is_found_soon() {
    let number = worlds(60, 2_000);
    for (chart, parameter) in [(DriftChart::Cusum, 0.5), (DriftChart::Ewma, 0.2)] {
        let terms = terms(chart, parameter);
        let (large, _) = failed(62, number, 1, 0.02, terms);
        let (small, delay) = failed(63, number, 3, 0.01, terms);
        println!(
            "{chart:?}: 0.02 found at once in {large} of {number}; 0.01 within 3 checks in {small}, mean delay {:.2}",
            delay as f64 / small.max(1) as f64
        );
        assert!(large as f64 >= 0.95 * number as f64, "{chart:?}: {large}");
        assert!(small as f64 >= 0.75 * number as f64, "{chart:?}: {small}");
    }
}

#[test]
fn checks_in_a_row_alarm_falsely_no_more_often_than_each_allows() {
    let number = worlds(40, 2_000);
    let (failed, _) = failed(64, number, 5, 0.0, terms(DriftChart::Cusum, 0.5));
    // Five checks at 2 % each at most, and three errors.
    let claim = 0.1 * number as f64;
    println!("{failed} of {number} in control failed one of 5 checks");
    assert!(
        failed as f64 <= claim + 3.0 * (claim * 0.9).sqrt(),
        "{failed} of {number}"
    );
}

#[test]
fn a_judge_that_ranks_at_random_fails_whatever_its_p() {
    let mut world = World::new(65, 0);
    let of = anchors(&mut world);
    let scores = of.rows.iter().map(|_| micro(world.uniform())).collect();
    let heard = Heard {
        asked: None,
        scores,
    };
    let said = drift::check(&of, heard, terms(DriftChart::Cusum, 0.5)).unwrap();
    assert!(said.kendall_tau.unwrap().value() < 0.2);
    assert_eq!(said.verdicts.ranks, Verdict::Fail);
}

#[test]
fn scores_that_are_all_alike_are_inconclusive_on_ranks() {
    let mut world = World::new(66, 0);
    let mut of = anchors(&mut world);
    for row in &mut of.rows {
        row.recorded = micro(0.5);
    }
    let heard = Heard {
        asked: None,
        scores: vec![micro(0.5); 2 * ROWS],
    };
    let said = drift::check(&of, heard, terms(DriftChart::Cusum, 0.5)).unwrap();
    assert_eq!((said.kendall_tau, said.p), (None, None));
    assert_eq!(said.verdicts.ranks, Verdict::Inconclusive);
    assert_eq!(said.verdicts.residuals, Verdict::Pass);
    assert_eq!(said.verdicts.version, Verdict::NotChecked);
    assert_eq!(said.verdicts.whole(), Verdict::Inconclusive);
}
