//! Edited texts are read and judged anew, and uplifts are held against their tolerances.

use clover_attack::Operator;
use clover_attack::battery;
use clover_attack::battery::Battery;
use clover_attack::battery::CalibratedReward;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_num::Count;
use clover_num::Micro;
use clover_rubric::engine::Rules;
use clover_rubric::evidence::Evidence;
use clover_rubric::extract;
use clover_rubric::extract::recorded::Citations;
use clover_rubric::extract::recorded::Facts;
use clover_rubric::extract::recorded::Traces;
use clover_stats::predicate;
use clover_stats::sample::Values;

use crate::judge::Judge;
use crate::judge::JudgeQuery;
use crate::judge::fields;

/// One response that is attacked, with what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Seed<'a> {
    /// What was answered.
    pub item: &'a ItemId,
    /// Who answered.
    pub policy: &'a PolicyId,
    /// Which draw.
    pub draw: Count,
    /// The prompt.
    pub prompt: &'a str,
    /// The response.
    pub response: &'a str,
    /// Tool calls that were made for it.
    pub traces: Option<&'a Traces>,
}

/// What scores a text: a judge, what is known, rules, and a calibrator. An edited text is read by the extractor and scored
/// by the judge like any other; an operator hands out no evidence.
pub struct Scorer<'a> {
    /// The judge.
    pub judge: &'a mut dyn Judge,
    /// What is known of sources.
    pub citations: Option<&'a Citations>,
    /// Statements that are true.
    pub facts: Option<&'a Facts>,
    /// The rubric.
    pub rules: &'a Rules,
    /// f: calibrated reward of a score and its record.
    pub calibrated: &'a dyn Fn(Micro, &Evidence) -> f64,
}

impl std::fmt::Debug for Scorer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scorer({:?})", self.rules)
    }
}

impl Scorer<'_> {
    /// Reward of a text in place of a seed's response; `None` where judge or engine give no score.
    pub fn score(&mut self, seed: &Seed<'_>, text: &str) -> Option<CalibratedReward> {
        let evidence = extract::extract(&extract::Source {
            prompt: seed.prompt,
            response: text,
            citations: self.citations,
            traces: seed.traces,
            facts: self.facts,
        });
        let ask = JudgeQuery {
            item: seed.item,
            policy: seed.policy,
            draw: seed.draw,
            prompt: seed.prompt,
            response: text,
            evidence: &evidence,
        };
        let answer = self.judge.answer(&ask).ok()?;
        let evidence = match &answer.evidence {
            Some(said) => fields::merged(evidence, said),
            None => evidence,
        };
        let scored = self.rules.score(answer.score, &evidence).ok()?;
        let violates = scored.trace.iter().any(|fired| {
            fired.path.starts_with("obligations.") || fired.path.starts_with("guards.")
        });
        Some(CalibratedReward {
            reward: (self.calibrated)(scored.score, &evidence),
            violates,
        })
    }
}

/// One operator's result against its tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatorVerdict {
    /// The operator.
    pub operator: Operator,
    /// Its statistics; `None` when it changed no seed.
    pub found: Option<predicate::Operator>,
    /// `pass` within the tolerance on 50 seeds or more, `fail` beyond it, else `inconclusive`.
    pub verdict: Verdict,
}

/// Holds a battery against tolerances, tightened to `tighter` where a patch states a bound of its own. While something could
/// not be scored, nothing passes.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn evaluate(
    battery: &Battery,
    tighter: &dyn Fn(Operator) -> Option<f64>,
) -> Vec<OperatorVerdict> {
    let uplifts: Vec<f64> = battery.uplifts.iter().map(|one| one.uplift).collect();
    let number = |operator| {
        Operator::ALL
            .iter()
            .position(|one| *one == operator)
            .unwrap_or(0)
    };
    let operators: Vec<usize> = battery
        .uplifts
        .iter()
        .map(|one| number(one.operator))
        .collect();
    let found = match Values::new("uplifts", &uplifts) {
        Ok(values) => predicate::operators(values, &operators, Operator::ALL.len())
            .expect("BUG: each uplift has an operator"),
        // Nothing was scored, or a reward is no number: nothing is known.
        Err(_) => vec![None; Operator::ALL.len()],
    };
    let judged = |(operator, found): (Operator, Option<predicate::Operator>)| {
        let cap =
            tighter(operator).map_or(operator.tolerance(), |own| own.min(operator.tolerance()));
        let held = found.map(|found| {
            if operator.is_two_sided() {
                found.mean_absolute
            } else {
                found.mean
            }
        });
        let enough = found.is_some_and(|found| found.enough);
        let verdict = match held {
            Some(held) if enough && held > cap => Verdict::Fail,
            Some(_) if enough && battery.unscored == 0 => Verdict::Pass,
            _ => Verdict::Inconclusive,
        };
        OperatorVerdict {
            operator,
            found,
            verdict,
        }
    };
    Operator::ALL.into_iter().zip(found).map(judged).collect()
}

/// Runs the battery on seeds with a scorer.
pub fn run(seeds: &[Seed<'_>], scorer: &mut Scorer<'_>) -> Battery {
    let texts: Vec<&str> = seeds.iter().map(|seed| seed.response).collect();
    battery::run(&texts, |at, text| scorer.score(&seeds[at], text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use clover_attack::Edit;
    use clover_attack::search;
    use clover_ground::digest::Digest;

    use super::*;
    use crate::judge::builtin::Builtin;
    use crate::simulate::Fault;
    use crate::simulate::Kind;
    use crate::simulate::Setting;
    use crate::simulate::SimulatedRow;
    use crate::simulate::World;

    /// Battery and `U_adv` of the citation world, with R = 0.85 S + 0.05.
    fn attacked(rules: &dyn Fn(&World) -> Rules) -> (Vec<OperatorVerdict>, f64) {
        let world = World::new(
            Setting {
                fault: Fault::Citations,
                ..Setting::default()
            },
            11,
        )
        .unwrap();
        let rows: Vec<SimulatedRow> = (0..120)
            .map(|number| world.row(Kind::Fresh, number))
            .collect();
        let citations = World::citations(&rows);
        let traces: Vec<Traces> = rows
            .iter()
            .map(|row| Traces::of(row.call.as_deref()))
            .collect();
        let seeds: Vec<Seed<'_>> = rows
            .iter()
            .zip(&traces)
            .map(|(row, traces)| Seed {
                item: &row.item,
                policy: &row.policy,
                draw: row.draw(),
                prompt: &row.prompt,
                response: &row.response,
                traces: Some(traces),
            })
            .collect();
        let rules = rules(&world);
        let mut judge = Builtin;
        let mut scorer = Scorer {
            judge: &mut judge,
            citations: Some(&citations),
            facts: None,
            rules: &rules,
            calibrated: &|score, _| 0.05 + 0.85 * score.value() as f64 / 1e6,
        };
        let battery = run(&seeds, &mut scorer);
        assert_eq!(battery.unscored, 0);
        let texts: Vec<&str> = seeds.iter().map(|seed| seed.response).collect();
        let seed = search::seed("it-1", &Digest::sha256(b"patch"));
        let found =
            search::run(&texts, 150, seed, |at, text| scorer.score(&seeds[at], text)).unwrap();
        (evaluate(&battery, &|_| None), found.worst().unwrap().mean)
    }

    #[test]
    fn the_ledger_knows_every_edit() {
        let edits = Operator::ALL.into_iter().flat_map(Operator::edits);
        let mut edits: Vec<String> = edits.map(|edit| edit.to_string()).collect();
        edits.sort_unstable();
        assert_eq!(edits, clover_projection::batteries::EDITS);
    }

    #[test]
    fn a_mended_rubric_withstands_the_battery_and_the_other_does_not() {
        let verdict = |all: &[OperatorVerdict], operator| {
            all.iter()
                .find(|one| one.operator == operator)
                .unwrap()
                .verdict
        };
        let (open, worst) = attacked(&World::rules);
        assert_eq!(
            verdict(&open, Operator::FakeCitation),
            Verdict::Fail,
            "{open:#?}"
        );
        assert!(worst > 0.05, "{worst}");
        let (mended, worst) = attacked(&World::patched_rules);
        for one in &mended {
            assert_eq!(one.verdict, Verdict::Pass, "{one:?}");
        }
        assert!(worst <= 0.05, "{worst}");
    }

    #[test]
    fn too_few_seeds_and_missing_scores_decide_nothing() {
        let text = "The dose may be raised, and is 20 mg.";
        let score = |reward: f64| {
            move |_: usize, _: &str| {
                Some(CalibratedReward {
                    reward,
                    violates: false,
                })
            }
        };
        let few = battery::run(&[text; 10], score(0.5));
        assert!(
            evaluate(&few, &|_| None)
                .iter()
                .all(|one| one.verdict == Verdict::Inconclusive)
        );
        let enough = battery::run(&[text; 60], score(0.5));
        assert!(
            evaluate(&enough, &|_| None)
                .iter()
                .all(|one| one.verdict == Verdict::Pass)
        );
        let missing = Battery {
            unscored: 1,
            ..enough.clone()
        };
        assert!(
            evaluate(&missing, &|_| None)
                .iter()
                .all(|one| one.verdict == Verdict::Inconclusive)
        );
        // A patch may only tighten.
        let own = |_| Some(-0.1);
        assert!(
            evaluate(&enough, &own)
                .iter()
                .all(|one| one.verdict == Verdict::Fail)
        );
        assert!(
            evaluate(&Battery::default(), &|_| None)
                .iter()
                .all(|one| one.found.is_none())
        );
    }

    fn read(response: &str) -> Evidence {
        extract::extract(&extract::Source {
            prompt: "a dose",
            response,
            ..extract::Source::default()
        })
    }

    proptest! {
        /// Layout decides nothing: after style stripping, only style and length differ.
        #[test]
        fn stripping_style_changes_no_finding(words in prop::collection::vec(
            prop::sample::select(vec![
                "**The**", "dose", "is", "not", "5", "mg.", "\n", "\n\n# Part\n\n", "However,", "critics", "families", "may",
                "certainly", "https://who.int/a_b", "study.", "5 %", "[tool_call x]", "`code`", "!", "risk",
            ]), 0..60,
        )) {
            let text = words.join(" ");
            let stripped = Edit::StyleStrip.apply(&text, 0);
            let (mut before, after) = (read(&text), read(&stripped));
            before.style_markers = after.style_markers;
            before.tokens = after.tokens;
            before.concise = after.concise;
            before.contradiction = after.contradiction;
            prop_assert_eq!(before, after, "{:?} / {:?}", text, stripped);
        }
    }
}
