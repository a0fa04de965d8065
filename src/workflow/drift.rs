//! Whether a judge still scores as it did. `schema/DRIFT.md` says what each figure is; sources: the CJE paper, appendix D.2
//! (rank drift on anchors, change detection on residuals under false discovery control) and its implementation (tau-b
//! below .8).

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::RowId;
use clover_event::payload::Verdict;
use clover_event::payload::drift::DriftChart;
use clover_event::payload::drift::DriftPlan;
use clover_event::payload::drift::DriftSide;
use clover_event::payload::drift::DriftTerms;
use clover_event::payload::drift::DriftVerdicts;
use clover_event::payload::drift::JudgeDriftChecked;
use clover_event::payload::drift::JudgeVersion;
use clover_event::payload::drift::PolicyDrift;
use clover_event::payload::drift::ResidualChart;
use clover_event::payload::drift::RowsDrift;
use clover_event::payload::iteration::AnchorRows;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::seed::SeedTree;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Micro;
use clover_num::Probability;
use clover_projection::drifts::anchors::AnchorLog;
use clover_projection::reader::LogStatement;
use clover_stats::anchors;
use clover_stats::anchors::Anchor;
use clover_stats::anchors::AnchorExcursion;
use clover_stats::anchors::Chart;
use clover_stats::monitor::ChartSide;
use clover_stats::monitor::InControl;
use clover_stats::rank::PairCounts;
use clover_stats::rank::TauMethod;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::finite;
use crate::estimate::terms::size;
use crate::estimate::terms::text;
use crate::estimate::terms::unit;
use crate::iterate::rows::anchor_root;

/// Why there is no check.
#[derive(Debug, thiserror::Error)]
pub enum DriftError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No such set by then.
    #[error("no anchor set {0} is registered")]
    NoSet(AnchorSetId),
    /// The judge's recorded scores are not of the rows that the set names.
    #[error(
        "the recorded scores of {judge} are not those of the {expected} anchor rows of {policy}: it has {found}"
    )]
    OtherRows {
        /// The judge.
        judge: JudgeId,
        /// The policy.
        policy: PolicyId,
        /// Rows of the set.
        expected: u64,
        /// Rows of the judge.
        found: u64,
    },
    /// A new score for each row, and no other.
    #[error("expected {expected} new scores, one for each anchor row, found {found}")]
    Scores {
        /// Anchor rows.
        expected: usize,
        /// New scores.
        found: usize,
    },
    /// The numbers are out of range.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The same.
    #[error(transparent)]
    Sample(#[from] SampleError),
}

/// Which anchors.
#[derive(Clone, Copy, Debug)]
pub struct AnchorQuery<'a> {
    /// The set.
    pub anchors: &'a AnchorSetId,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Whose scores.
    pub judge: &'a JudgeId,
    /// The last entry that is read.
    pub through: u64,
}

/// One anchor row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorRow {
    /// `policy/item/draw`.
    pub id: String,
    /// Who answered.
    pub policy: PolicyId,
    /// What was answered.
    pub item: ItemId,
    /// Which draw.
    pub draw: u64,
    /// The recorded score.
    pub recorded: Micro,
}

/// Anchors as a log holds them.
#[derive(Clone, Debug)]
pub struct AnchorHistory {
    /// The set.
    pub anchors: AnchorSetId,
    /// The judge.
    pub judge: JudgeId,
    /// Rows of both policies, ascending by id.
    pub rows: Vec<AnchorRow>,
    /// Scores of earlier checks of the same rows, oldest first.
    pub earlier: Vec<Vec<Micro>>,
    /// The judge as it was registered, if it was.
    pub registered: Option<JudgeRegistered>,
    /// Scores since its registration that do not name it.
    pub unversioned: u64,
    /// The last entry that was read.
    pub through: u64,
}

/// What a judge said when it was asked again.
#[derive(Clone, Debug)]
pub struct Heard {
    /// What it says it is; `None` where its scores were handed over.
    pub asked: Option<JudgeVersion>,
    /// Its scores in the order of the rows.
    pub scores: Vec<Micro>,
}

/// Rows of one policy: all that the judge scored, else those that it had scored when the set was registered.
fn rows_of(
    log: &AnchorLog,
    which: &AnchorQuery<'_>,
    of: &AnchorRows,
    set: u64,
) -> Result<Vec<AnchorRow>, DriftError> {
    let all = |before: u64| -> Vec<AnchorRow> {
        let mine = log.scores.iter();
        let mine = mine.filter(|score| score.seq < before && score.said.policy == of.policy);
        mine.map(|LogStatement { said, .. }| AnchorRow {
            id: row_of_draw(&said.policy, &said.item, said.draw),
            policy: said.policy.clone(),
            item: said.item.clone(),
            draw: said.draw.value(),
            recorded: said.score_micro,
        })
        .collect()
    };
    let is_set = |rows: &[AnchorRow]| {
        let ids: BTreeSet<String> = rows.iter().map(|row| row.id.clone()).collect();
        rows.len() as u64 == of.count.value() && anchor_root(&ids) == of.rows_root
    };
    let (now, then) = (all(u64::MAX), all(set));
    let found = now.len() as u64;
    [now, then]
        .into_iter()
        .find(|rows| is_set(rows))
        .ok_or_else(|| DriftError::OtherRows {
            judge: which.judge.clone(),
            policy: of.policy.clone(),
            expected: of.count.value(),
            found,
        })
}

/// Reads anchors, what a judge had said of them, and every earlier check.
///
/// # Errors
/// [`DriftError`].
pub fn recorded(
    history: &dyn History,
    which: &AnchorQuery<'_>,
) -> Result<AnchorHistory, DriftError> {
    let (anchors, judge) = (which.anchors, which.judge);
    let mut log = AnchorLog::through(history, which.experiment, (anchors, judge), which.through)?;
    let set = log.set.take();
    let set = set.ok_or_else(|| DriftError::NoSet(which.anchors.clone()))?;
    let mut rows = rows_of(&log, which, &set.said.low, set.seq)?;
    rows.extend(rows_of(&log, which, &set.said.high, set.seq)?);
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows.dedup_by(|a, b| a.id == b.id);
    let root = root(&rows);
    let same = |(of, scores): (Root, Vec<Micro>)| {
        (of == root && scores.len() == rows.len()).then_some(scores)
    };
    Ok(AnchorHistory {
        anchors: which.anchors.clone(),
        judge: which.judge.clone(),
        earlier: log.earlier.into_iter().filter_map(same).collect(),
        registered: log.registered.map(|of| of.said),
        unversioned: log.unversioned,
        through: which.through,
        rows,
    })
}

fn root(rows: &[AnchorRow]) -> Root {
    anchor_root(&rows.iter().map(|row| row.id.clone()).collect())
}

/// Judges what a judge said anew.
///
/// # Errors
/// [`DriftError::Scores`], or [`DriftError::Unfit`] for a plan out of range.
pub fn check(
    found: &AnchorHistory,
    heard: Heard,
    terms: DriftTerms,
) -> Result<JudgeDriftChecked, DriftError> {
    let (expected, given) = (found.rows.len(), heard.scores.len());
    if expected != given || expected == 0 {
        return Err(DriftError::Scores {
            expected,
            found: given,
        });
    }
    let (tau, p) = ranks(found, &heard.scores)?;
    let policies = by_policy(found, &heard.scores, &terms.plan)?;
    let rows = by_row(found, &heard.scores, &terms.plan)?;
    let least = unit(terms.plan.tau_min_micro);
    let drifts = rows.drifting.value() > 0 || policies.iter().any(|of| of.charted.drifts);
    let verdicts = DriftVerdicts {
        ranks: tau.map_or(Verdict::Inconclusive, |tau| pass_if(tau >= least)),
        residuals: pass_if(!drifts),
        version: version(found, heard.asked.as_ref()),
    };
    Ok(JudgeDriftChecked {
        anchor_rows_root: root(&found.rows),
        anchors: found.anchors.clone(),
        asked: heard.asked,
        build: text(BUILD),
        judge: found.judge.clone(),
        kendall_tau: tau.map(finite),
        p: p.and_then(Probability::new),
        policies,
        rows,
        scores_micro: heard.scores,
        terms,
        through_seq: count(found.through),
        unversioned: count(found.unversioned),
        verdicts,
    })
}

fn pass_if(holds: bool) -> Verdict {
    if holds { Verdict::Pass } else { Verdict::Fail }
}

/// The tripwire: the judge that answers is the one that was registered, and every score since names it.
fn version(found: &AnchorHistory, asked: Option<&JudgeVersion>) -> Verdict {
    if found.unversioned > 0 {
        return Verdict::Fail;
    }
    match (&found.registered, asked) {
        (Some(registered), Some(asked)) => pass_if(JudgeVersion::from(registered) == *asked),
        _ => Verdict::NotChecked,
    }
}

/// Tau-b of recorded and new scores, and its p.
fn ranks(
    found: &AnchorHistory,
    scores: &[Micro],
) -> Result<(Option<f64>, Option<f64>), DriftError> {
    let before: Vec<f64> = found.rows.iter().map(|row| unit(row.recorded)).collect();
    let after: Vec<f64> = scores.iter().copied().map(unit).collect();
    if before.len() < 2 {
        return Ok((None, None));
    }
    let before = Values::new("recorded scores", &before)?;
    let pairs = PairCounts::of(before, Values::new("new scores", &after)?)?;
    Ok((pairs.tau_b(), pairs.p(TauMethod::Auto)?))
}

/// Changes of each row by check, the newest last.
fn changes(found: &AnchorHistory, scores: &[Micro]) -> Vec<Vec<f64>> {
    let change =
        |row: usize, new: Micro| (new.value() - found.rows[row].recorded.value()) as f64 / 1e6;
    (0..found.rows.len())
        .map(|row| {
            let earlier = found.earlier.iter().map(|of| change(row, of[row]));
            earlier.chain([change(row, scores[row])]).collect()
        })
        .collect()
}

/// Screens series against their own deviations in control.
fn screen(
    series: &[(Vec<f64>, f64)],
    plan: &DriftPlan,
    family: &str,
) -> Result<Vec<AnchorExcursion>, DriftError> {
    let parameter = unit(plan.chart_micro);
    let chart = match plan.chart {
        DriftChart::Cusum => Chart::Cusum { k: parameter },
        DriftChart::Ewma => Chart::Ewma { lambda: parameter },
    };
    let anchors = series.iter().map(|(series, sd)| {
        Ok(Anchor {
            series: Values::new("residuals", series)?,
            state: InControl::new(0.0, *sd)?,
        })
    });
    let anchors = anchors.collect::<Result<Vec<_>, SampleError>>()?;
    let seed = SeedTree::of_number(plan.seed.value()).child("drift");
    let replicates = usize::try_from(plan.replicates.value()).unwrap_or(usize::MAX);
    let q = unit(plan.q_micro);
    Ok(anchors::screen(
        &anchors,
        chart,
        q,
        seed.child(family).seed(),
        replicates,
    )?)
}

fn charted(of: &AnchorExcursion) -> ResidualChart {
    ResidualChart {
        check: size(of.row + 1),
        drifts: of.drifts,
        excursion: finite(of.excursion),
        p: Probability::new(of.p).unwrap_or(Probability::ONE),
        p_adjusted: Probability::new(of.adjusted).unwrap_or(Probability::ONE),
        side: match of.side {
            ChartSide::Up => DriftSide::Up,
            ChartSide::Down => DriftSide::Down,
        },
    }
}

/// Mean changes of both policies, whose deviation in control shrinks with the square root of their rows.
fn by_policy(
    found: &AnchorHistory,
    scores: &[Micro],
    plan: &DriftPlan,
) -> Result<Vec<PolicyDrift>, DriftError> {
    let changes = changes(found, scores);
    let mut of: BTreeMap<&PolicyId, Vec<usize>> = BTreeMap::new();
    for (at, row) in found.rows.iter().enumerate() {
        of.entry(&row.policy).or_default().push(at);
    }
    let checks = found.earlier.len() + 1;
    let series: Vec<(Vec<f64>, f64)> = of
        .values()
        .map(|rows| {
            let n = rows.len() as f64;
            let means = (0..checks).map(|check| {
                let total: f64 = rows.iter().map(|&row| changes[row][check]).sum();
                total / n
            });
            (means.collect(), unit(plan.sd_micro) / n.sqrt())
        })
        .collect();
    let screened = screen(&series, plan, "policies")?;
    let all = of.into_iter().zip(&series).zip(&screened);
    Ok(all
        .map(|(((policy, rows), (means, _)), of)| PolicyDrift {
            charted: charted(of),
            mean_change: finite(means.last().copied().unwrap_or_default()),
            policy: policy.clone(),
            rows: size(rows.len()),
        })
        .collect())
}

/// Changes of single rows.
fn by_row(
    found: &AnchorHistory,
    scores: &[Micro],
    plan: &DriftPlan,
) -> Result<RowsDrift, DriftError> {
    let sd = unit(plan.sd_micro);
    let series: Vec<(Vec<f64>, f64)> = changes(found, scores)
        .into_iter()
        .map(|of| (of, sd))
        .collect();
    let screened = screen(&series, plan, "rows")?;
    let mut worst = 0;
    for (at, of) in screened.iter().enumerate() {
        if of.excursion > screened[worst].excursion {
            worst = at;
        }
    }
    let pairs = found.rows.iter().zip(scores);
    let changed = pairs.filter(|(row, new)| row.recorded != **new).count();
    let id = &found.rows[worst].id;
    Ok(RowsDrift {
        changed: size(changed),
        drifting: size(screened.iter().filter(|of| of.drifts).count()),
        rows: size(found.rows.len()),
        worst: RowId::new(id.as_str()).map_err(|_| SampleError::Parameter {
            name: "anchor row",
            expected: "an id of at most 200 bytes",
        })?,
        worst_charted: charted(&screened[worst]),
    })
}
