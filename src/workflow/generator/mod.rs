//! A generator under a frozen judge: lower bounds for whoever tunes it, and whether fresh labels say that it got better.
//!
//! The bound is `f(s) - 1.645 sd(s)`, where `sd^2(s) = (K - 1) / K sum_k (f_k(s) - mean f_k(s))^2` over the fold models:
//! what is not known well is worth little, so that tuning does not chase the judge's errors. Source: CLOVER v1.1,
//! section 10.3.

mod rules;

pub use rules::GeneratorRule;
pub use rules::STEPS_MAX;
pub use rules::overall;
pub use rules::thresholds;
pub use rules::verdicts;

use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::generator::ArmRows;
use clover_event::payload::generator::ArmsCompared;
use clover_event::payload::generator::GeneratorObjectiveQueried;
use clover_event::payload::generator::GeneratorRunOpened;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::RowsRead;
use clover_ground::canon;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ledger::History;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::math;
use clover_projection::deployments::rollouts::Rollouts;
use clover_stats::gain;
use clover_stats::inference;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use serde::Serialize;

use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::transport;
use crate::iterate::compute::transport::Group;
use crate::iterate::course::CourseError;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::Later;
use crate::iterate::rows::LaterQuery;
use crate::iterate::rows::RowName;
use crate::iterate::rows::later;
use crate::iterate::steps;
use crate::iterate::steps::BUILD;
use crate::live;
use crate::live::FrozenVersion;

/// Standard deviations below f: a one-sided 95 % bound.
const REACH: f64 = 1.645;
/// Level of the test of each policy, as in gate P6.
const TRANSPORT_LEVEL: f64 = 0.10;

/// Whether a row or a label of this name, at this position, counts.
type Admits<'a, Name> = dyn Fn(&Name, u64) -> bool + 'a;

/// What a run froze, with what is read through it.
#[derive(Debug)]
pub struct FrozenJudge {
    /// The judge with its calibrator.
    pub frozen: FrozenVersion,
    experiment: ExperimentId,
    rollouts: Rollouts,
    deployment: EventId,
}

fn finite(value: f64) -> Result<Finite, SampleError> {
    Finite::new(value).ok_or(SampleError::Parameter {
        name: "values",
        expected: "sums and squares within the range of a double",
    })
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: short plain words")
}

fn missing(what: impl Into<String>, next: impl Into<String>) -> CourseError {
    CourseError::Rows(IterationRowsError::Missing {
        what: what.into(),
        next: next.into(),
    })
}

/// Lower bound of one output, and its line in the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Which draw.
    pub draw: Count,
    /// What was answered.
    pub item: ItemId,
    /// `f(s) - 1.645 sd(s)`, in millionths.
    pub lower_micro: Micro,
    /// Who answered.
    pub policy: PolicyId,
}

/// Lower bounds of some rows under a calibrator.
///
/// # Errors
/// [`Unfit`].
fn lower(later: &Later, fitted: &CalibratorFit, rows: &[usize]) -> Result<Vec<f64>, Unfit> {
    let scored = &later.table.data().scored;
    let folds: Vec<Vec<f64>> = (0..fitted.folds)
        .map(|fold| fitted.without_fold(&later.table, scored, fold, rows))
        .collect();
    let bound = |(at, &row): (usize, &usize)| {
        let of_folds: Vec<f64> = folds.iter().map(|fold| fold[at]).collect();
        let variance = inference::jackknife_variance(&of_folds)?;
        Ok(fitted.rewards[row] - REACH * variance.sqrt())
    };
    rows.iter().enumerate().map(bound).collect()
}

fn micro(value: f64) -> Result<Micro, SampleError> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a reward less a few deviations of rewards, which lie in [0, 1]"
    )]
    let rounded = (finite(value)?.value() * 1e6).round() as i64;
    Ok(Micro::new(rounded).unwrap_or_default())
}

impl FrozenJudge {
    /// The judge of a deployment, from the log below a position.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn of(
        history: &dyn History,
        experiment: &ExperimentId,
        deployment: EventId,
        below: u64,
    ) -> Result<Self, CourseError> {
        let rollouts = Rollouts::below(history, experiment, below)?;
        Ok(Self {
            frozen: live::running(history, &rollouts, deployment, below)?,
            experiment: experiment.clone(),
            rollouts,
            deployment,
        })
    }

    /// Outputs of some policies, with the labels that count.
    fn rows(
        &self,
        history: &dyn History,
        (rows, labels): (&Admits<'_, PolicyId>, &Admits<'_, DesignId>),
        through: u64,
    ) -> Result<Option<(Later, CalibratorFit)>, CourseError> {
        let deployment = self.rollouts.deployment(self.deployment);
        let Some(deployment) = deployment else {
            return Ok(None);
        };
        let after = LaterQuery {
            experiment: &self.experiment,
            iteration: &self.frozen.record.iteration,
            judge: &deployment.said.versions.judge,
            labels,
            rows,
            rubric: &self.frozen.rubric,
            through,
            with_anchors: false,
        };
        let Some(later) = later(history, &after)? else {
            return Ok(None);
        };
        let fitted = self
            .frozen
            .fitted
            .on(&later.table, &later.table.data().scored);
        Ok(Some((later, fitted)))
    }
}

/// What a step is told of the outputs of a policy that were scored since the run was opened; `opened` is its position.
///
/// # Errors
/// [`CourseError`].
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn objective(
    history: &dyn History,
    judge: &FrozenJudge,
    (run, opened): (&GeneratorRunOpened, u64),
    (policy, step): (&PolicyId, Count),
    through: u64,
) -> Result<(GeneratorObjectiveQueried, Vec<Bound>), CourseError> {
    let rows = |of: &PolicyId, seq: u64| of == policy && seq > opened;
    let found = judge.rows(history, (&rows, &|_, _| false), through)?;
    let Some((later, fitted)) = found else {
        let what = format!("no output of {policy} that was scored after seq {opened}");
        return Err(missing(what, "clover judge run --judge ID --rows PATH"));
    };
    let all: Vec<usize> = (0..later.table.len()).collect();
    let lower = lower(&later, &fitted, &all)?;
    let mut bounds = Vec::with_capacity(lower.len());
    let mut tree = Frontier::new();
    for (name, bound) in later.names.iter().zip(&lower) {
        let bound = Bound {
            draw: name.draw,
            item: name.item.clone(),
            lower_micro: micro(*bound).map_err(Unfit::from)?,
            policy: name.policy.clone(),
        };
        let line = canon::to_bytes(&bound).expect("BUG: ids and integers have a canonical form");
        tree.push(merkle::leaf_hash(&line));
        bounds.push(bound);
    }
    let said = GeneratorObjectiveQueried {
        answer_root: Root(tree.root()),
        build: text(BUILD),
        frozen: judge.frozen.digest,
        inputs: read(&later, through),
        lower_mean: finite(math::mean(&lower)).map_err(Unfit::from)?,
        policy: policy.clone(),
        run: run.run.clone(),
        step,
    };
    Ok((said, bounds))
}

fn read(later: &Later, through: u64) -> RowsRead {
    steps::inputs(&later.table, Count::new(through).unwrap_or_default())
}

/// What labels of a design say of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// New against old.
    pub compared: ArmsCompared,
    /// What was read.
    pub inputs: RowsRead,
    /// Mean lower bound of the new policy less that of the old.
    pub lcb_gain: Finite,
    /// Residuals by policy.
    pub transport: EnvironmentTests,
    /// Labelled outputs of the new policy, by name.
    pub outputs: Vec<RowName>,
}

/// Compares both policies on the labels of a design that were given since the run was opened, and holds the frozen judge
/// against them.
///
/// # Errors
/// [`CourseError`].
pub fn validate(
    history: &dyn History,
    judge: &FrozenJudge,
    (run, opened): (&GeneratorRunOpened, u64),
    design: &DesignId,
    through: u64,
) -> Result<Validation, CourseError> {
    let rows = |of: &PolicyId, _: u64| *of == run.new || *of == run.old;
    let labels = |of: &DesignId, seq: u64| of == design && seq > opened;
    let found = judge.rows(history, (&rows, &labels), through)?;
    let Some((later, fitted)) = found else {
        let what = format!("no scored output of {} or {}", run.new, run.old);
        return Err(missing(what, "clover judge run --judge ID --rows PATH"));
    };
    let labelled = later.labelled();
    let is_new = |row: usize| later.names[row].policy == run.new;
    let (new, old): (Vec<usize>, Vec<usize>) = labelled.iter().partition(|&&row| is_new(row));
    for (rows, policy) in [(&new, &run.new), (&old, &run.old)] {
        if rows.is_empty() {
            let what = format!("no label of {design} on an output of {policy} after seq {opened}");
            return Err(missing(what, "clover label --help"));
        }
    }
    let mean_lower = |rows: &[usize]| lower(&later, &fitted, rows).map(|all| math::mean(&all));
    let lcb_gain = finite(mean_lower(&new)? - mean_lower(&old)?).map_err(Unfit::from)?;
    Ok(Validation {
        compared: compared(&later, &labelled, &is_new)?,
        inputs: read(&later, through),
        lcb_gain,
        transport: transport(&later, &fitted, (run, &new, &old))?,
        outputs: new.iter().map(|&row| later.names[row].clone()).collect(),
    })
}

fn compared(
    later: &Later,
    labelled: &[usize],
    is_new: &dyn Fn(usize) -> bool,
) -> Result<ArmsCompared, Unfit> {
    InsufficientData::unless("labelled outputs", labelled.len(), 1)?;
    let labels = later.table.labels(labelled);
    let arms: Vec<bool> = labelled.iter().map(|&row| is_new(row)).collect();
    let clusters = later.table.clusters(labelled)?;
    let found = gain::gain(Values::new("labels", &labels)?, &arms, &clusters)?;
    let arm = |(rows, clusters): (usize, usize)| ArmRows {
        clusters: count(clusters),
        rows: count(rows),
    };
    Ok(ArmsCompared {
        difference: finite(found.difference)?,
        lower: found.lower().and_then(Finite::new),
        new: arm(found.new),
        old: arm(found.old),
        shared: count(found.shared),
        standard_error: found.standard_error.and_then(Finite::new),
    })
}

/// Each policy as an environment of the frozen judge: the new one has to pass, the old one may not fail. Whether the old one
/// fails is said beside the new one, for then the failure is not the generator's.
fn transport(
    later: &Later,
    fitted: &CalibratorFit,
    (run, new, old): (&GeneratorRunOpened, &[usize], &[usize]),
) -> Result<EnvironmentTests, Unfit> {
    let group = |policy: &PolicyId, required, rows| {
        let environment = policy.as_str().parse();
        let environment = environment.map_err(|_| SampleError::Parameter {
            name: "policy",
            expected: "a name that an environment may have",
        })?;
        Ok::<_, SampleError>(Group {
            environment,
            required,
            rows,
        })
    };
    let groups = [group(&run.new, true, new)?, group(&run.old, false, old)?];
    let family = "policy".parse().expect("BUG: a short word");
    let scored = &later.table.data().scored;
    let of = (fitted, scored);
    let environments = transport::groups(&later.table, of, &family, &groups, TRANSPORT_LEVEL)?;
    Ok(EnvironmentTests {
        environments,
        none_claimed: None,
    })
}
