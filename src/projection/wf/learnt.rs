//! The outer loop against the record: triggers that their runs show, updates that take effect once they are validated, on tasks
//! that they were not made from.

use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::meta::LibTemplateAdded;
use clover_event::payload::meta::MetaCase;
use clover_event::payload::meta::MetaClass;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta::MetaTriggered;
use clover_event::payload::meta::MetaUpdated;
use clover_event::payload::meta::MetaValidated;
use clover_event::payload::meta::MetaVerdict;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfRunStarted;
use clover_ground::digest::Digest;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Micro;

use super::MetaUpdate;
use super::WfRun;
use super::WfRuns;
use super::cells;
use super::rules::IR_LABEL;
use super::rules::META_LABEL;
use super::rules::VERIFIER_LABEL;
use super::rules::is_trial;
use super::rules::same;

/// Least cases of a trigger.
pub const CASES_MIN: usize = 5;

impl WfRun {
    /// Whether it has ended and every candidate that was executed has its worth. One that executed none on all items has failed,
    /// and counts as that.
    pub fn is_known(&self) -> bool {
        self.end.is_some() && self.unworthed().is_empty()
    }

    /// Mean worth of a candidate over the items, in millionths, rounded down.
    pub fn worth(&self, candidate: &Digest) -> Option<i64> {
        let all = self.candidates.get(candidate)?.utilities.as_ref()?;
        let sum = all
            .iter()
            .fold(0_i64, |sum, of| sum.saturating_add(of.value()));
        let count = i64::try_from(all.len()).ok()?;
        Some(sum / count.max(1))
    }

    /// Whether its winner passes within the budget and is of use.
    pub fn succeeds(&self, useful: i64) -> Option<bool> {
        let end = self.end.as_ref()?;
        let winner = end.winner.and_then(|id| self.worth(&id));
        Some(winner.is_some_and(|worth| worth >= useful))
    }

    fn digest_of(&self, target: MetaTarget) -> Digest {
        match target {
            MetaTarget::Verifier => self.said.verifier_digest,
            MetaTarget::Meta => self.said.meta_digest,
            MetaTarget::Program | MetaTarget::Library => self.said.program_digest,
        }
    }
}

impl MetaUpdate {
    /// Whether a run on which it is tried begins from a template that it would add.
    pub(super) fn brings(&self, template: &Digest) -> bool {
        self.said.target == MetaTarget::Library && self.said.new_digest == *template
    }
}

/// The value at three quarters of a sorted list, by nearest rank.
fn upper_quartile(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    let rank = (all.len() * 3).div_ceil(4);
    all.get(rank.checked_sub(1)?).copied()
}

impl WfRuns {
    /// Runs of an experiment whose truth is known and on which nothing is validated.
    pub fn looked_at<'r>(
        &'r self,
        experiment: &'r ExperimentId,
    ) -> impl Iterator<Item = &'r WfRun> {
        let all = self.by_id.values();
        all.filter(move |run| {
            run.experiment == *experiment && run.is_known() && !is_trial(&run.said)
        })
    }

    /// Whether a case shows what a class says.
    fn shows(
        &self,
        (case, run): (&MetaCase, &WfRun),
        (class, useful): (MetaClass, i64),
    ) -> Option<bool> {
        let of = run.candidates.get(&case.candidate)?;
        let scored = of.scored.as_ref()?;
        let theta = run.said.terms.theta_micro.value();
        let worth = run.worth(&case.candidate)?;
        let score = of.score();
        let end = run.end.as_ref()?;
        Some(match class {
            MetaClass::FalsePositive => {
                (scored.passes || score.is_some_and(|of| of >= theta)) && worth < useful
            }
            MetaClass::FalseNegative => {
                worth >= useful && score.is_none_or(|of| of.saturating_mul(2) < theta)
            }
            MetaClass::Stagnation => end.reason == WfEnd::Stagnation,
            MetaClass::Slow => {
                let won = end.winner == Some(case.candidate) && worth >= useful;
                let all = self.looked_at(&run.experiment);
                let all: Vec<&WfRun> = all.filter(|of| of.succeeds(useful) == Some(true)).collect();
                let turns = all.iter().map(|of| of.turns.len() as u64).collect();
                let cost = all.iter().map(|of| of.spent.tokens()).collect();
                let is_long = upper_quartile(turns).is_some_and(|of| run.turns.len() as u64 > of);
                let is_dear = upper_quartile(cost).is_some_and(|of| run.spent.tokens() > of);
                won && (is_long || is_dear)
            }
        })
    }

    /// The candidate of a run that shows what a class says: its winner where that does, else the first one that came; `None`
    /// where none shows it. `useful` is the least worth of a workflow that is of use, in millionths.
    pub fn case_of(&self, run: &WfRun, (class, useful): (MetaClass, Micro)) -> Option<MetaCase> {
        let winner = run.end.as_ref().and_then(|end| end.winner);
        let all = winner.iter().chain(&run.order);
        let cases = all.map(|candidate| MetaCase {
            candidate: *candidate,
            run: run.said.run.clone(),
        });
        let mut cases = cases.filter(|case| {
            let shows = self.shows((case, run), (class, useful.value()));
            shows == Some(true)
        });
        cases.next()
    }

    fn update_named(&self, run: &RunId) -> Option<(&MetaUpdate, bool)> {
        let mut all = self.updates.values();
        all.find_map(|update| {
            let pair = update.said.pairs.iter();
            let mut pair = pair.filter(|of| of.new == *run || of.old == *run);
            pair.next().map(|of| (update, of.new == *run))
        })
    }
}

/// No run that an update names is executed before all of them are opened: whoever holds the key would choose the items of those
/// that are left.
pub(super) fn check_begun(runs: &WfRuns, run: &WfRun) -> RuleAnswer {
    let is_begun = run.calls > 0 || run.candidates.values().any(|of| !of.executions.is_empty());
    if is_begun || !is_trial(&run.said) {
        return Ok(());
    }
    let Some((update, _)) = runs.update_named(&run.said.run) else {
        return Ok(());
    };
    let mut names = update.said.pairs.iter().flat_map(|of| [&of.new, &of.old]);
    if let Some(missing) = names.find(|name| !runs.by_id.contains_key(name)) {
        let expected = format!(
            "all runs of {} opened before one is executed",
            update.said.update
        );
        return unmet(expected, format!("{missing} is not opened"));
    }
    Ok(())
}

/// Whether a run begins from what the outer loop learnt: a cell says so exactly then.
pub fn has_learnt(runs: &WfRuns, said: &WfRunStarted) -> bool {
    sources(runs, said).next().is_some()
}

/// Updates that a run's documents come from.
fn sources<'r>(runs: &'r WfRuns, said: &'r WfRunStarted) -> impl Iterator<Item = &'r MetaUpdate> {
    let all = runs.updates.values();
    all.filter(|update| {
        let new = update.said.new_digest;
        match update.said.target {
            MetaTarget::Verifier => said.verifier_digest == new,
            MetaTarget::Meta => said.meta_digest == new,
            MetaTarget::Program => said.program_digest == new,
            MetaTarget::Library => said.templates.contains(&new),
        }
    })
}

/// A run begins from what is in force, or is one of those on which its update is tried, on tasks of their own.
pub(super) fn check_started(
    runs: &WfRuns,
    experiment: &ExperimentId,
    said: &WfRunStarted,
) -> RuleAnswer {
    let plan = runs.plan_of(&said.run);
    let named = runs.update_named(&said.run);
    let trial = named.or_else(|| runs.crossed_arm(&said.run));
    let expected = "a trial exactly of a run that an update or a plan names";
    ensure!(
        is_trial(said) == trial.is_some(),
        expected,
        said.part.to_string()
    );
    let tried = trial.filter(|(_, is_new)| *is_new);
    let tried = tried.map(|(update, _)| &update.said.update);
    let expected = "the update that names the run, where it has what is new";
    let found = said.update.as_ref();
    let words = found.map_or_else(|| "none".to_owned(), ToString::to_string);
    ensure!(found == tried, expected, words);
    for update in sources(runs, said) {
        let name = &update.said.update;
        let passed = update.validated.as_ref();
        let is_in_force = passed.is_some_and(|of| of.verdict == MetaVerdict::Pass);
        let expected = format!("{name} validated before it takes effect");
        let may = is_in_force || tried == Some(name);
        ensure!(may, expected, said.run.to_string());
    }
    let expected = "a cell with the outer loop exactly where an update is in it";
    ensure!(
        said.cell.outer == has_learnt(runs, said),
        expected,
        said.cell.outer.to_string()
    );
    for template in &said.templates {
        let is_known = runs.library.contains_key(template)
            || trial.is_some_and(|(of, is_new)| is_new && of.brings(template));
        ensure!(is_known, "templates of the library", template.to_string());
    }
    let Some((update, is_new)) = trial else {
        return Ok(());
    };
    let expected = format!("the experiment of {}", update.said.update);
    let is_own = update.experiment == *experiment;
    ensure!(is_own, expected, experiment.to_string());
    // Its tasks are none of those that it was made from: the truth of these is opened.
    check_arm(update, is_new, said)?;
    plan.map_or(Ok(()), |place| cells::check_started(runs, place, said))
}

/// The arm of a trial has what is new, or what it would take the place of.
fn check_arm(update: &MetaUpdate, is_new: bool, said: &WfRunStarted) -> RuleAnswer {
    let wanted = if is_new {
        update.said.new_digest
    } else {
        update.said.parent_digest
    };
    let expected = format!("{wanted} as {}", update.said.target);
    let (has, found) = match update.said.target {
        MetaTarget::Verifier => (said.verifier_digest == wanted, said.verifier_digest),
        MetaTarget::Meta => (said.meta_digest == wanted, said.meta_digest),
        MetaTarget::Program => (said.program_digest == wanted, said.program_digest),
        MetaTarget::Library => {
            let new = update.said.new_digest;
            (said.templates.contains(&new) == is_new, new)
        }
    };
    ensure!(has, expected, found.to_string());
    Ok(())
}

/// Where every workflow is of use, or none, success says nothing.
pub(super) fn check_useful(of: Micro) -> RuleAnswer {
    let is_share = (1..=1_000_000).contains(&of.value());
    ensure!(is_share, "a utility above 0 and at most 1", of.to_string());
    Ok(())
}

pub(super) fn check_triggered(
    runs: &WfRuns,
    event: &ProposedEvent<'_>,
    said: &MetaTriggered,
) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let expected = format!("at least {CASES_MIN} cases");
    let count = said.cases.len();
    ensure!(count >= CASES_MIN, expected, count.to_string());
    check_useful(said.useful_micro)?;
    let looked = runs.looked_at(experiment).count() as u64;
    let expected = format!("{looked} runs that were looked at");
    let found = said.looked.value();
    ensure!(found == looked, expected, found.to_string());
    let mut before: Option<&RunId> = None;
    for case in &said.cases {
        let is_next = before.is_none_or(|before| *before < case.run);
        let expected = "one case a run, in the order of their names";
        ensure!(is_next, expected, case.run.to_string());
        before = Some(&case.run);
        let run = runs
            .looked_at(experiment)
            .find(|of| of.said.run == case.run);
        let expected = format!("a run {} of the experiment whose truth is known", case.run);
        let run = run.required(&expected)?;
        let what = (said.class, said.useful_micro.value());
        let shows = runs.shows((case, run), what) == Some(true);
        let expected = format!("{} that shows {}", case.run, said.class);
        ensure!(shows, expected, "none of it");
    }
    Ok(())
}

/// The label under which the document of a target is digested.
fn label_of(target: MetaTarget) -> &'static str {
    match target {
        MetaTarget::Verifier => VERIFIER_LABEL,
        MetaTarget::Meta => META_LABEL,
        MetaTarget::Program | MetaTarget::Library => IR_LABEL,
    }
}

/// An update answers triggers, and names the runs that will judge it before any of them is opened.
pub(super) fn check_updated(
    runs: &WfRuns,
    event: &ProposedEvent<'_>,
    said: &MetaUpdated,
) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    experiment.required("an experiment")?;
    same(
        "the document",
        said.new_digest,
        (label_of(said.target), said.document.as_str()),
    )?;
    let is_change = said.new_digest != said.parent_digest;
    ensure!(is_change, "a change", "none");
    ensure!(!said.triggers.is_empty(), "a trigger", "none");
    check_useful(said.useful_micro)?;
    for name in &said.triggers {
        let known = runs.triggers.get(name);
        let known = known.required(&format!("meta.triggered of {name}"))?;
        let expected = format!("{} as useful, as in {name}", known.useful_micro);
        let is_same = said.useful_micro == known.useful_micro;
        ensure!(is_same, expected, said.useful_micro.to_string());
    }
    let mut known = runs.updates.values();
    let is_new = !known.any(|of| of.said.new_digest == said.new_digest);
    let expected = "a document that no update brought before";
    ensure!(is_new, expected, said.new_digest.to_string());
    let alpha = said.alpha_micro.value();
    let expected = "a level above 0 and at most 0.05";
    ensure!((1..=50_000).contains(&alpha), expected, alpha.to_string());
    let margin = said.margin_micro.value();
    let expected = "a margin above 0 and at most 0.2";
    ensure!(
        (1..=200_000).contains(&margin),
        expected,
        margin.to_string()
    );
    let mut names = BTreeSet::new();
    for name in said.pairs.iter().flat_map(|of| [&of.new, &of.old]) {
        let is_free = names.insert(name)
            && !runs.by_id.contains_key(name)
            && runs.update_named(name).is_none()
            && runs.plan_of(name).is_none();
        let expected = "runs that are opened after it, each named once";
        ensure!(is_free, expected, name.to_string());
    }
    Ok(())
}

/// Both runs of a pair are the same but for what the update changes, and nobody cut one of them short.
fn check_alike(update: &MetaUpdated, (new, old): (&WfRun, &WfRun)) -> RuleAnswer {
    let (a, b) = (&new.said, &old.said);
    let right = |run: &WfRun| run.truth.as_ref().map(|of| of.truth.blake3);
    let templates = |run: &WfRun| -> Vec<Digest> {
        let is_new =
            |of: &&Digest| update.target == MetaTarget::Library && **of == update.new_digest;
        let all = run.said.templates.iter();
        all.filter(|of| !is_new(of)).copied().collect()
    };
    let alike = [
        ("items", a.items == b.items),
        ("terms", a.terms == b.terms),
        ("context", a.context_digest == b.context_digest),
        ("executor", a.executor == b.executor),
        ("model that answers", a.executor_model == b.executor_model),
        (
            "strength of the executor",
            a.cell.executor == b.cell.executor,
        ),
        ("optimizer", a.optimizer == b.optimizer),
        (
            "model that proposes",
            a.optimizer_model == b.optimizer_model,
        ),
        (
            "strength of the optimizer",
            a.cell.optimizer == b.cell.optimizer,
        ),
        ("truth", right(new) == right(old)),
        ("templates", templates(new) == templates(old)),
    ];
    for (what, is_same) in alike {
        let expected = format!("the same {what} in {} and {}", a.run, b.run);
        ensure!(is_same, expected, "another");
    }
    for target in [MetaTarget::Verifier, MetaTarget::Meta, MetaTarget::Program] {
        let is_same = target == update.target || new.digest_of(target) == old.digest_of(target);
        let expected = format!("the same {target} in {} and {}", a.run, b.run);
        ensure!(is_same, expected, "another");
    }
    for run in [new, old] {
        let end = run.end.as_ref();
        let is_whole = end.is_some_and(|end| end.reason != WfEnd::Person);
        let expected = format!("{} ended by its record", run.said.run);
        ensure!(is_whole, expected, "a person's word");
    }
    Ok(())
}

/// A validation reads the pairs that its update named, all of them, once their truth is known.
pub(super) fn check_validated(runs: &WfRuns, said: &MetaValidated) -> RuleAnswer {
    let update = runs.updates.get(&said.update);
    let update = update.required(&format!("meta.updated of {}", said.update))?;
    for pair in &update.said.pairs {
        let arm = |name: &RunId| {
            let run = runs.by_id.get(name).filter(|run| run.is_known());
            run.required(&format!("{name} with its truth known"))
        };
        let (new, old) = (arm(&pair.new)?, arm(&pair.old)?);
        check_alike(&update.said, (new, old))?;
    }
    let all = [said.success, said.gamma, said.kappa];
    let passes = all.iter().all(|of| of.reached);
    let verdict = if passes {
        MetaVerdict::Pass
    } else {
        MetaVerdict::Fail
    };
    let expected = format!("the verdict of its gates, {verdict}");
    let found = said.verdict;
    ensure!(found == verdict, expected, found.to_string());
    Ok(())
}

/// A template joins the library by the update that brings it; runs begin from it once that is validated.
pub(super) fn check_template(runs: &WfRuns, said: &LibTemplateAdded) -> RuleAnswer {
    same(
        "the template",
        said.template_digest,
        (IR_LABEL, said.ir.as_str()),
    )?;
    let update = runs.updates.get(&said.update);
    let update = update.required(&format!("meta.updated of {}", said.update))?;
    let is_it =
        update.said.target == MetaTarget::Library && update.said.new_digest == said.template_digest;
    let expected = format!("the template of {}", said.update);
    ensure!(is_it, expected, said.template_digest.to_string());
    ensure!(!said.distilled_from.is_empty(), "a candidate", "none");
    for case in &said.distilled_from {
        let run = runs.by_id.get(&case.run).filter(|run| run.is_known());
        let run = run.required(&format!("{} with its truth known", case.run))?;
        let of = run.candidates.get(&case.candidate);
        of.required(&format!("a candidate of {}", case.run))?;
    }
    Ok(())
}
