//! What the battery of an iteration attacks, and under what: the same for whoever runs it and for whoever replays it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use clover_attack::Chain;
use clover_attack::Operator;
use clover_attack::battery::CalibratedReward;
use clover_attack::search::TRIES_DEFAULT;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_num::Micro;
use clover_projection::iterations::record::IterationRecord;
use clover_rubric::Patch;
use clover_rubric::engine::Rules;
use clover_rubric::evidence::Evidence;
use clover_rubric::extract::recorded::Facts;
use clover_rubric::extract::recorded::Traces;

use crate::battery::Scorer;
use crate::battery::Seed;
use crate::battery::measured;
use crate::battery::measured::AttackTarget;
use crate::battery::measured::ChainExploit;
use crate::battery::measured::KnownExploit;
use crate::battery::measured::MeasurementGap;
use crate::battery::measured::SliceSeeds;
use crate::iterate::calibrator;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::course::Course;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows::RowName;
use crate::iterate::steps::CandidateFit;
use crate::judge::Judge;
use crate::judge::run::ProbeEvidence;

/// The uplift that a patch's own bound allows an operator.
fn bound(patches: &[Patch], operator: Operator) -> Option<f64> {
    let name = operator.as_str();
    let bounds = patches.iter().flat_map(|patch| &patch.attacks);
    let mine = bounds.filter(|bound| {
        let attack = bound.attack.as_str();
        attack == name || (attack == "length_padding" && name == "padding")
    });
    mine.map(|bound| bound.uplift.value() as f64 / 1e6)
        .reduce(f64::min)
}

/// The documents of a hypothesis.
pub fn patches(record: &IterationRecord, of: &Hypothesis) -> Vec<Patch> {
    let proposed = record.proposed.iter();
    let mine = proposed.filter(|patch| of.patches.contains(&patch.said.patch_hash));
    mine.filter_map(|patch| Patch::parse(patch.said.yaml.as_str().as_bytes()).ok())
        .collect()
}

/// A response with its prompt.
#[derive(Clone, Debug)]
pub struct PromptedResponse {
    /// The row.
    pub name: RowName,
    /// The prompt.
    pub prompt: String,
    /// The response.
    pub response: String,
}

impl PromptedResponse {
    /// It as a seed, with the tool calls that were made for it.
    pub fn seed<'a>(&'a self, traces: Option<&'a BTreeMap<String, Traces>>) -> Seed<'a> {
        static NONE: Traces = Traces::none();
        Seed {
            item: &self.name.item,
            policy: &self.name.policy,
            draw: self.name.draw,
            prompt: &self.prompt,
            response: &self.response,
            traces: traces.map(|of| of.get(self.name.item.as_str()).unwrap_or(&NONE)),
        }
    }
}

/// A known exploit by its number, with its answer where that is at hand.
pub type Exploit = (u64, Chain, Option<PromptedResponse>);

/// Answers that are attacked, with their rows, and known exploits.
#[derive(Clone, Debug)]
pub struct Material {
    /// Answers.
    pub answers: Vec<PromptedResponse>,
    /// Exploits in order of their number.
    pub exploits: Vec<Exploit>,
    /// The row of each answer.
    pub rows: Vec<usize>,
}

/// The slices of the plan with the seeds in them, by number; what lies in no cell is `other`.
fn slices(course: &Course, rows: &[usize]) -> Vec<SliceSeeds> {
    let mut all = Vec::new();
    for family in &course.loaded.table.data().slices {
        for place in 0..=family.slices.len() {
            let of = |row: usize| family.of_row[row].unwrap_or(family.slices.len());
            let numbers = (0..rows.len()).filter(|&number| of(rows[number]) == place);
            let other = || "other".parse().expect("BUG: a name");
            all.push(SliceSeeds {
                family: family.id.clone(),
                seeds: numbers.collect(),
                slice: family.slices.get(place).cloned().unwrap_or_else(other),
            });
        }
    }
    all
}

/// A rubric and its calibrator, with the judge.
pub struct Under<'a> {
    /// The iteration.
    pub course: &'a Course,
    /// Statements that are true.
    pub facts: Option<&'a Facts>,
    /// The calibrator.
    pub fitted: &'a CalibratorFit,
    /// The judge.
    pub judge: &'a RefCell<dyn Judge>,
    /// What the judge knows.
    pub known: &'a ProbeEvidence,
    /// The rubric.
    pub rules: &'a Rules,
}

impl std::fmt::Debug for Under<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Under({:?})", self.rules)
    }
}

impl Under<'_> {
    /// Reward of a text in place of a seed's response.
    pub fn score(&self, seed: &Seed<'_>, text: &str) -> Option<CalibratedReward> {
        let calibrated = |score: Micro, evidence: &Evidence| {
            let covariates = self.course.loaded.covariates_of(evidence);
            let score = score.value() as f64 / 1e6;
            self.fitted.calibrator.predict(score, &covariates)
        };
        let mut judge = self.judge.borrow_mut();
        let mut scorer = Scorer {
            judge: &mut *judge,
            citations: self.known.citations.as_ref(),
            facts: self.facts,
            rules: self.rules,
            calibrated: &calibrated,
        };
        scorer.score(seed, text)
    }
}

/// A battery that is about to be run: of the rubric that an iteration starts from, or of a hypothesis.
#[derive(Clone, Copy, Debug)]
pub struct BatteryPlan<'a> {
    /// The iteration, computed.
    pub course: &'a Course,
    /// The iteration.
    pub iteration: &'a IterationId,
    /// What the judge knows.
    pub known: &'a ProbeEvidence,
    /// What is attacked.
    pub material: &'a Material,
    /// The hypothesis, scored and calibrated; `None` for the rubric that the iteration starts from.
    pub of: Option<(&'a Hypothesis, &'a CandidateFit)>,
    /// The documents of the hypothesis, whose own bounds hold too.
    pub patches: &'a [Patch],
}

impl<'a> BatteryPlan<'a> {
    /// The calibrator of the rubric that is attacked.
    fn fitted(&self) -> &'a CalibratorFit {
        let base = &self.course.ground.baseline;
        self.of.map_or(base, |(_, patched)| &patched.fitted)
    }

    /// The judge that scores edited answers under the rubric that is attacked.
    fn judge(&self) -> &'a JudgeId {
        let anew = self.of.and_then(|(of, _)| of.answers.as_ref());
        anew.map_or(&self.course.loaded.judge, |of| &of.judge)
    }

    /// What is attacked, with what.
    pub fn target(&self) -> AttackTarget<'a> {
        let traces = self.known.traces.as_ref();
        let tighter = Operator::ALL.into_iter();
        let tighter =
            tighter.filter_map(|operator| Some((operator, bound(self.patches, operator)?)));
        let exploits = self.material.exploits.iter();
        let exploits = exploits.map(|(number, chain, answer)| KnownExploit {
            chain: chain.clone(),
            number: *number,
            seed: answer.as_ref().map(|answer| answer.seed(traces)),
        });
        let loaded = &self.course.loaded;
        let rubric = self.of.map_or(&loaded.rubric, |(of, _)| &of.rubric);
        let answers = self.material.answers.iter();
        AttackTarget {
            calibrator: calibrator(self.fitted()),
            candidate: self.of.map(|(of, _)| of.hash),
            iteration: self.iteration,
            judge: self.judge(),
            known: exploits.collect(),
            rubric_hash: rubric.hash(),
            seeds: answers.map(|of| of.seed(traces)).collect(),
            slices: match self.of {
                Some(_) => Vec::new(),
                None => slices(self.course, &self.material.rows),
            },
            tighter: tighter.collect(),
            tries: TRIES_DEFAULT,
        }
    }

    /// What the attacks earn under the rubric, and for a hypothesis what they earned under the one that it mends. `anew` is
    /// the judge that was told what the hypothesis changes.
    ///
    /// # Errors
    /// [`MeasurementGap`].
    pub fn measured(
        &self,
        target: &AttackTarget<'_>,
        judge: &RefCell<dyn Judge>,
        anew: Option<&RefCell<dyn Judge>>,
    ) -> Result<(BatteryEvaluated, Vec<ChainExploit>), MeasurementGap> {
        let facts = self.known.facts.as_ref();
        let facts = facts.map(|facts| Facts::of(facts.iter().map(String::as_str)));
        let under = |rules, fitted, judge| Under {
            course: self.course,
            facts: facts.as_ref(),
            fitted,
            judge,
            known: self.known,
            rules,
        };
        let base = self.course.loaded.rubric.rules();
        let mended = self.of.map(|(of, _)| of.rubric.rules());
        let before = under(&base, &self.course.ground.baseline, judge);
        let rules = mended.as_ref().unwrap_or(&base);
        let now = under(rules, self.fitted(), anew.unwrap_or(judge));
        let mut before = |seed: &Seed<'_>, text: &str| before.score(seed, text);
        let mut now = |seed: &Seed<'_>, text: &str| now.score(seed, text);
        let both: Option<&mut measured::Score<'_>> = match self.of {
            Some(_) => Some(&mut before),
            None => None,
        };
        measured::measure(target, &mut now, both)
    }
}
