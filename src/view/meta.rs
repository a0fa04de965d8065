//! The outer loop of workflow repair: an update, what called for it, the pairs of runs that judge it, and the lineage of all.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::RunId;
use crate::event::id::TriggerId;
use crate::event::id::UpdateId;
use crate::event::payload::meta::MetaClass;
use crate::event::payload::meta::MetaGate;
use crate::event::payload::meta::MetaTarget;
use crate::event::payload::meta::MetaTriggered;
use crate::event::payload::meta::MetaUpdated;
use crate::event::payload::meta::MetaVerdict;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::wf::MetaUpdate;
use crate::projection::wf::WfRuns;
use crate::view::View;
use crate::view::meta_cells;
use crate::view::meta_cells::MetaPlanListed;
use crate::view::repair::decimal;

/// What called for an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaTriggerShown {
    /// Its name.
    pub trigger: TriggerId,
    /// What runs show.
    pub class: MetaClass,
    /// Runs that show it.
    pub cases: u64,
    /// Runs that were looked at.
    pub looked: u64,
}

/// A pair of runs that judges an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaPairShown {
    /// The run with the update.
    pub new: RunId,
    /// The run without it.
    pub old: RunId,
    /// Whether the run with it ended with a workflow of use; `null` until that is known.
    pub new_succeeds: Option<bool>,
    /// Whether the run without it did.
    pub old_succeeds: Option<bool>,
}

/// A gate of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaGateShown {
    /// Logarithm of its wealth after the last pair.
    pub log_wealth: Finite,
    /// Pairs that it read.
    pub pairs: u64,
    /// Whether its wealth ever reached 1 over the level.
    pub reached: bool,
}

/// The gates of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaGates {
    /// That success under budget is higher.
    pub success: MetaGateShown,
    /// That gamma is no worse.
    pub gamma: MetaGateShown,
    /// That kappa is no worse.
    pub kappa: MetaGateShown,
}

/// An update with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaUpdateShown {
    /// Its name.
    pub update: UpdateId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Whether it is on record.
    pub is_recorded: bool,
    /// What it changes.
    pub target: MetaTarget,
    /// Digest of what it changes.
    pub parent_digest: Digest,
    /// Digest of what takes its place.
    pub new_digest: Digest,
    /// What takes its place, as canonical JSON.
    pub document: String,
    /// Why.
    pub why: String,
    /// What called for it.
    pub triggers: Vec<MetaTriggerShown>,
    /// Least worth of a workflow that is of use.
    pub useful_micro: Micro,
    /// Level of each gate.
    pub alpha_micro: Micro,
    /// Most that gamma and kappa may fall.
    pub margin_micro: Micro,
    /// The runs that judge it, in the order in which the gates read them.
    pub pairs: Vec<MetaPairShown>,
    /// What the gates came to; `null` until all pairs are known.
    pub gates: Option<MetaGates>,
    /// How it was validated; `null` until then.
    pub verdict: Option<MetaVerdict>,
}

/// One of all updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaListed {
    /// Its name.
    pub update: UpdateId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// What it changes.
    pub target: MetaTarget,
    /// Digest of what it changes.
    pub parent_digest: Digest,
    /// The update that brought what it changes; `null` where none did.
    pub parent_update: Option<UpdateId>,
    /// Digest of what takes its place.
    pub new_digest: Digest,
    /// How it was validated; `null` until then.
    pub verdict: Option<MetaVerdict>,
    /// Runs that began from it, but for those that judge it.
    pub runs: u64,
}

/// Every update, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaLineage {
    /// The updates.
    pub updates: Vec<MetaListed>,
    /// Plans that cross an update with edits, executors and optimizers, in the order in which they came.
    pub plans: Vec<MetaPlanListed>,
}

fn gate(of: MetaGate) -> MetaGateShown {
    MetaGateShown {
        log_wealth: of.log_wealth,
        pairs: of.pairs.value(),
        reached: of.reached,
    }
}

fn trigger(of: &MetaTriggered) -> MetaTriggerShown {
    MetaTriggerShown {
        trigger: of.trigger.clone(),
        class: of.class,
        cases: of.cases.len() as u64,
        looked: of.looked.value(),
    }
}

/// An update in facts, before anything became of it.
fn facts(
    runs: &WfRuns,
    experiment: &ExperimentId,
    (said, triggers): (&MetaUpdated, Vec<MetaTriggerShown>),
) -> MetaUpdateShown {
    let succeeds = |id: &RunId| {
        let run = runs.by_id.get(id).filter(|run| run.is_known())?;
        run.succeeds(said.useful_micro.value())
    };
    let pairs = said.pairs.iter().map(|of| MetaPairShown {
        new: of.new.clone(),
        old: of.old.clone(),
        new_succeeds: succeeds(&of.new),
        old_succeeds: succeeds(&of.old),
    });
    MetaUpdateShown {
        update: said.update.clone(),
        experiment: experiment.clone(),
        is_recorded: false,
        target: said.target,
        parent_digest: said.parent_digest,
        new_digest: said.new_digest,
        document: said.document.as_str().to_owned(),
        why: said.why.as_str().to_owned(),
        triggers,
        useful_micro: said.useful_micro,
        alpha_micro: said.alpha_micro,
        margin_micro: said.margin_micro,
        pairs: pairs.collect(),
        gates: None,
        verdict: None,
    }
}

fn view(facts: &MetaUpdateShown) -> View {
    let mut view = View::of(facts);
    let (name, target) = (&facts.update, facts.target);
    view.answer(match (facts.verdict, facts.is_recorded) {
        (Some(MetaVerdict::Pass), _) => {
            format!("{name} passed: runs may begin from the {target} that it brings.")
        }
        (Some(MetaVerdict::Fail), _) => {
            format!("{name} is refused: no run may begin from the {target} that it would bring.")
        }
        (None, true) => format!("{name} is proposed and not validated: it has no effect yet."),
        (None, false) => format!("{name} would change the {target}. Nothing is on record yet."),
    });
    view.pairs([
        ("experiment", facts.experiment.to_string()),
        (
            "changes",
            format!("{target} {}", facts.parent_digest.short()),
        ),
        ("to", format!("{target} {}", facts.new_digest.short())),
        ("why", facts.why.clone()),
        ("level", decimal(facts.alpha_micro.value())),
        ("margin", decimal(facts.margin_micro.value())),
        ("of use from", decimal(facts.useful_micro.value())),
    ]);
    let rows = facts.triggers.iter().map(|of| {
        vec![
            of.trigger.to_string(),
            of.class.as_str().replace('_', " "),
            format!("{} of {}", of.cases, of.looked),
        ]
    });
    view.gap();
    view.table(&["trigger", "class", "runs that show it"], rows);
    let count = |of: fn(&MetaPairShown) -> Option<bool>, wanted| {
        let all = facts.pairs.iter().filter(|pair| of(pair) == Some(wanted));
        all.count()
    };
    view.gap();
    view.line(format!(
        "pairs of runs: {}; of use with the update {}, without it {}",
        facts.pairs.len(),
        count(|of| of.new_succeeds, true),
        count(|of| of.old_succeeds, true),
    ));
    if let Some(gates) = &facts.gates {
        let row = |name: &str, of: MetaGateShown| {
            let reached = if of.reached { "yes" } else { "no" };
            vec![
                name.to_owned(),
                of.pairs.to_string(),
                format!("{:.3}", of.log_wealth.value()),
                reached.to_owned(),
            ]
        };
        view.table(
            &["gate", "pairs", "log wealth", "reached"],
            [
                row("success is higher", gates.success),
                row("gamma is no worse", gates.gamma),
                row("kappa is no worse", gates.kappa),
            ],
        );
    }
    view
}

/// An update that is not on record.
pub fn planned(
    runs: &WfRuns,
    experiment: &ExperimentId,
    (called, said): (&MetaTriggered, &MetaUpdated),
) -> View {
    view(&facts(runs, experiment, (said, vec![trigger(called)])))
}

/// An update.
pub fn update(runs: &WfRuns, of: &MetaUpdate) -> View {
    let triggers = of.said.triggers.iter();
    let triggers = triggers.filter_map(|name| runs.triggers.get(name));
    let triggers = triggers.map(trigger).collect();
    let mut facts = facts(runs, &of.experiment, (&of.said, triggers));
    facts.is_recorded = true;
    let validated = of.validated.as_ref();
    facts.gates = validated.map(|of| MetaGates {
        success: gate(of.success),
        gamma: gate(of.gamma),
        kappa: gate(of.kappa),
    });
    facts.verdict = validated.map(|of| of.verdict);
    let name = shell::word(&facts.update);
    let shown = view(&facts);
    match facts.verdict {
        Some(MetaVerdict::Pass) => shown.with_next(format!(
            "clover repair open RUN --program FILE --tasks FILE --update {name}"
        )),
        Some(MetaVerdict::Fail) => shown.with_next("clover repair measure"),
        None => shown.with_next(format!("clover meta run {name} --tasks FILE")),
    }
}

/// Every update.
pub fn lineage(state: &State) -> View {
    let runs = state.fold::<WfRuns>();
    let mut all: Vec<&MetaUpdate> = runs.updates.values().collect();
    all.sort_by_key(|of| of.seq);
    let brought = |of: &MetaUpdate| {
        let mut known = runs.updates.values();
        let parent = known.find(|before| before.said.new_digest == of.said.parent_digest);
        parent.map(|before| before.said.update.clone())
    };
    let begun = |of: &MetaUpdate| {
        let all = runs.by_id.values().filter(|run| {
            let said = &run.said;
            let new = of.said.new_digest;
            let is_from = said.verifier_digest == new
                || said.meta_digest == new
                || said.program_digest == new
                || said.templates.contains(&new);
            let mut pairs = of.said.pairs.iter();
            is_from && !pairs.any(|pair| pair.new == said.run || pair.old == said.run)
        });
        all.count() as u64
    };
    let updates = all.into_iter().map(|of| MetaListed {
        update: of.said.update.clone(),
        experiment: of.experiment.clone(),
        target: of.said.target,
        parent_digest: of.said.parent_digest,
        parent_update: brought(of),
        new_digest: of.said.new_digest,
        verdict: of.validated.as_ref().map(|of| of.verdict),
        runs: begun(of),
    });
    let facts = MetaLineage {
        updates: updates.collect(),
        plans: meta_cells::listed(runs),
    };
    let mut view = View::of(&facts);
    if facts.updates.is_empty() {
        view.answer("No update was proposed.");
        return view.with_next("clover repair measure");
    }
    let rows = facts.updates.iter().map(|of| {
        let from = of.parent_update.as_ref();
        vec![
            of.update.to_string(),
            of.target.to_string(),
            from.map_or_else(|| of.parent_digest.short().to_string(), ToString::to_string),
            of.new_digest.short().to_string(),
            of.verdict.map_or("open", MetaVerdict::as_str).to_owned(),
            of.runs.to_string(),
        ]
    });
    view.table(
        &[
            "update",
            "changes",
            "made of",
            "to",
            "validated",
            "runs from it",
        ],
        rows,
    );
    meta_cells::list(&mut view, &facts.plans);
    view
}
