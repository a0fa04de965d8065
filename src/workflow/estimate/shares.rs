//! Whether as many rows of a policy are labelled as the designs of its labels draw.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::payload::label::DesignPurpose;
use clover_ledger::State;
use clover_projection::designs::Designs;

use crate::estimate::rows::Gathered;
use crate::estimate::shape;

/// The share of rows that a design for calibration draws, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct LabelRate {
    /// The largest of its strata.
    pub most: f64,
    /// That of every row; `None` where it has strata.
    pub even: Option<f64>,
}

/// What each registered design for calibration draws.
#[derive(Clone, Debug, Default)]
pub struct LabelRates(BTreeMap<DesignId, LabelRate>);

/// More or fewer labels of a policy than were drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenLabels {
    /// The policy.
    pub policy: String,
    /// The design that draws fewer than it labelled; `None` where labels are missing.
    pub design: Option<DesignId>,
    /// What was drawn: `rows` or `prompts`.
    pub what: &'static str,
    /// How many there are.
    pub all: usize,
    /// How many are labelled.
    pub labelled: usize,
    /// How many are drawn on average.
    pub drawn: f64,
}

impl LabelRates {
    /// As the folds have them.
    pub fn of(state: &State, experiment: &ExperimentId) -> Self {
        let designs = state.fold::<Designs>().by_experiment.get(experiment);
        let designs = designs.into_iter().flat_map(|of| &of.designs);
        let rates = designs.filter_map(|(id, design)| {
            let of = design.registered.as_ref()?;
            let strata = of.strata.values().copied();
            let largest = strata.chain([of.inclusion_micro]).max()?;
            let share = |micro: i64| (micro as f64 / 1e6).min(1.0);
            let rate = LabelRate {
                most: share(largest),
                even: of.strata.is_empty().then(|| share(of.inclusion_micro)),
            };
            (of.purpose == DesignPurpose::Calibrate).then(|| (id.clone(), rate))
        });
        Self(rates.collect())
    }

    /// More rows of a policy are labelled by a design than that one can have drawn: each stands for its own labels, and a
    /// design that nobody labelled by excuses none. Or fewer are labelled by all of them than the one that draws most drew.
    pub fn beyond_the_draw(&self, gathered: &Gathered, policy: usize) -> Vec<ChosenLabels> {
        let of = &gathered.dataset.policies[policy];
        let by_design = gathered.sources[policy].labelled.iter();
        let beyond = by_design.filter_map(|(design, labelled)| {
            let rate = self.0.get(design)?.most;
            let units = LabelUnits::of(&of.prompts, labelled);
            let is_above = shape::is_above_draw(units.all, units.labelled, rate);
            is_above.then(|| units.chosen(&of.name, Some(design.clone()), rate))
        });
        let mut found: Vec<ChosenLabels> = beyond.collect();
        found.extend(self.short_of_the_draw(gathered, policy));
        found
    }

    /// Fewer rows of a policy are labelled than the designs of its labels draw.
    fn short_of_the_draw(&self, gathered: &Gathered, policy: usize) -> Option<ChosenLabels> {
        let of = &gathered.dataset.policies[policy];
        let with_label = |row: &usize| of.labels[*row].is_some();
        let rows: BTreeSet<usize> = (0..of.len()).filter(with_label).collect();
        let units = LabelUnits::of(&of.prompts, &rows);
        let least = self.least_rate(gathered, policy);
        let least = least.filter(|_| units.labelled > 0)?;
        let is_below = shape::is_below_draw(units.all, units.labelled, least);
        is_below.then(|| units.chosen(&of.name, None, least))
    }

    /// The share of a policy's rows that the designs of its labels draw at least; `None` where one of them has strata, or was
    /// not registered.
    fn least_rate(&self, gathered: &Gathered, policy: usize) -> Option<f64> {
        let mut designs = gathered.sources[policy].labelled.keys();
        designs.try_fold(0.0_f64, |least, design| {
            let even = self.0.get(design)?.even?;
            Some(least.max(even))
        })
    }
}

/// What a design drew, and how many of it are labelled: rows, or prompts where every draw of a labelled prompt has a label.
struct LabelUnits {
    what: &'static str,
    all: usize,
    labelled: usize,
}

impl LabelUnits {
    /// `prompts` is the prompt of each row, `labelled` the rows with a label.
    fn of(prompts: &[u32], labelled: &BTreeSet<usize>) -> Self {
        let mut rows: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (row, prompt) in prompts.iter().enumerate() {
            let of = rows.entry(*prompt).or_default();
            of.0 += 1;
            of.1 += usize::from(labelled.contains(&row));
        }
        let by_prompt =
            rows.len() < prompts.len() && rows.values().all(|of| of.1 == 0 || of.1 == of.0);
        if by_prompt {
            let labelled = rows.values().filter(|of| of.1 > 0).count();
            return Self {
                what: "prompts",
                all: rows.len(),
                labelled,
            };
        }
        Self {
            what: "rows",
            all: prompts.len(),
            labelled: labelled.len(),
        }
    }

    fn chosen(&self, policy: &str, design: Option<DesignId>, rate: f64) -> ChosenLabels {
        ChosenLabels {
            policy: policy.to_owned(),
            design,
            what: self.what,
            all: self.all,
            labelled: self.labelled,
            drawn: self.all as f64 * rate,
        }
    }
}
