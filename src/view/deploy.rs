//! What runs: deployments with how they stand, and guardrails on live rows.

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::Text;
use crate::event::payload::Verdict;
use crate::event::payload::deployment::GuardrailChecked;
use crate::event::payload::deployment::GuardrailVerdicts;
use crate::event::payload::deployment::Versions;
use crate::event::payload::predicate::RowsRead;
use crate::event::payload::scoring::JudgePort;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::deployments::Deployment;
use crate::projection::deployments::Deployments;
use crate::projection::deployments::ExperimentDeployments;
use crate::view::Exit;
use crate::view::View;
use crate::view::appended;
use crate::view::word;

/// What a check of guardrails found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Guardrails {
    /// Why the evidence was given by hand; `null` where it was computed from live rows.
    pub by_hand: Option<Text>,
    /// The live rows that were read; `null` where the evidence was given by hand.
    pub inputs: Option<RowsRead>,
    /// What each guardrail says; one that fails is a breach.
    pub guardrails: GuardrailVerdicts,
}

/// A check of guardrails on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedAt {
    /// The entry that says it.
    pub seq: u64,
    /// Whether a guardrail failed.
    pub breach: bool,
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeploymentRow {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its event.
    pub event: EventId,
    /// The entry of its event.
    pub seq: u64,
    /// What runs together.
    pub versions: Versions,
    /// The `prompt.committed` that runs, or the `rubric.registered` of the first deployment.
    pub commit: EventId,
    /// Whether it runs.
    pub running: bool,
    /// The entry that rolled it back; `null` where none did.
    pub rolled_back: Option<u64>,
    /// The deployment before it; `null` for the first.
    pub previous: Option<EventId>,
    /// Its newest check; `null` before the first, and where it does not run.
    pub checked: Option<CheckedAt>,
}

/// Deployments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeploymentList {
    /// By experiment, newest first.
    pub deployments: Vec<DeploymentRow>,
}

/// Adds what to type after a step.
pub fn then_status(view: View, experiment: &ExperimentId) -> View {
    let experiment = shell::word(&experiment);
    view.with_next(format!("clover deploy status {experiment}"))
}

/// Adds to the view of a check, or of its dry run, what each guardrail says.
pub fn checked(view: View, said: &GuardrailChecked) -> View {
    let more = Guardrails {
        by_hand: said.by_hand.clone(),
        inputs: said.inputs,
        guardrails: said.verdicts,
    };
    let mut view = appended::and(view, &more);
    for (name, said) in said.verdicts.each() {
        view.line(format!("{name:<14}{}", word(&said)));
    }
    if let Some(why) = &said.by_hand {
        view.line(format!("by hand       {}", why.as_str()));
    }
    if said.verdicts.is_breach() {
        view.exit = Exit::Fail;
    }
    view
}

fn row(
    experiment: &ExperimentId,
    of: &ExperimentDeployments,
    deployment: &Deployment,
) -> DeploymentRow {
    let is_running = of.active == Some(deployment.id);
    let checked = of.checked.filter(|_| is_running);
    DeploymentRow {
        experiment: experiment.clone(),
        event: deployment.id,
        seq: deployment.seq,
        versions: deployment.versions.clone(),
        commit: deployment.commit,
        running: is_running,
        rolled_back: deployment.rolled_back,
        previous: deployment.previous,
        checked: checked.map(|of| CheckedAt {
            seq: of.seq,
            breach: of.is_breach,
        }),
    }
}

/// How guardrails stand, in words: that they held is said where each holds, and else which was not decided.
fn standing(said: GuardrailVerdicts) -> String {
    let names = |wanted: Verdict| {
        let all = said.each().into_iter();
        let of = all.filter(|(_, verdict)| *verdict == wanted);
        let names: Vec<_> = of.map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| format!("{} {}", word(&wanted), names.join(" ")))
    };
    if said.is_breach() {
        return "breach".to_owned();
    }
    let open = [Verdict::Inconclusive, Verdict::NotChecked];
    let open: Vec<_> = open.into_iter().filter_map(names).collect();
    if open.is_empty() {
        "held".to_owned()
    } else {
        open.join(", ")
    }
}

/// What runs, and what ran before; of one experiment where it is named. `read` gives what the check at a position said.
///
/// # Errors
/// What `read` returns.
pub fn status<E>(
    state: &State,
    wanted: Option<&ExperimentId>,
    read: impl Fn(u64) -> Result<Option<GuardrailVerdicts>, E>,
) -> Result<View, E> {
    let all = state.fold::<Deployments>().by_experiment.iter();
    let all = all.filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id));
    let deployments = all.flat_map(|(id, of)| {
        let newest = of.deployments.iter().rev();
        newest.map(move |deployment| row(id, of, deployment))
    });
    let facts = DeploymentList {
        deployments: deployments.collect(),
    };
    let rows = facts.deployments.iter().map(|of| {
        let versions = &of.versions;
        let said = of.checked.map(|of| read(of.seq)).transpose()?.flatten();
        Ok::<_, E>(vec![
            format!("{}@{}", of.experiment, versions.rubric_version),
            match (of.rolled_back, of.running) {
                (Some(seq), _) => format!("rolled back, seq {seq}"),
                (None, true) => "runs".to_owned(),
                (None, false) => "ran".to_owned(),
            },
            format!("seq {}", of.seq),
            versions.judge.to_string(),
            versions.model.as_str().to_owned(),
            versions.calibrator.short().to_string(),
            of.checked.map_or(String::new(), |of| {
                let held = match said {
                    Some(said) => standing(said),
                    None if of.breach => "breach".to_owned(),
                    None => "no breach".to_owned(),
                };
                format!("{held}, seq {}", of.seq)
            }),
        ])
    });
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let head = [
        "version",
        "standing",
        "since",
        "judge",
        "model",
        "calibrator",
        "guardrails",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    Ok(view)
}

/// How a version whose patch changes a hard rule comes to run: new outputs that its judge scores under the new version, labels of
/// them of a design of their own, then the calibrator is held against them, whose answer names the activation. `port` is how
/// the judge is reached.
pub fn on_fresh_labels(name: &str, judge: &str, port: Option<JudgePort>) -> Vec<String> {
    let (name, judge) = (shell::word(&name), shell::word(&judge));
    let mut ways =
        vec!["clover label design new fresh-1 --purpose audit --probability 1".to_owned()];
    if let Some(port) = port.filter(|port| *port != JudgePort::Recorded) {
        ways.push("clover import rows NEW_OUTPUTS".to_owned());
        ways.push(scored(&judge, port));
    }
    ways.push("clover import labels FILE --design fresh-1".to_owned());
    ways.push(format!(
        "clover deploy recalibrate {name} --judge {judge} --design fresh-1"
    ));
    ways
}

/// How a judge that is on record scores rows that were taken in.
pub fn scored(judge: &str, port: JudgePort) -> String {
    let program = match port {
        JudgePort::Command => " -- COMMAND",
        JudgePort::Builtin => " --builtin",
        JudgePort::Endpoint => "",
        JudgePort::Recorded => " --recorded",
    };
    format!("clover judge run --judge {judge}{program}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_on_fresh_labels_names_what_runs() {
        let ways = on_fresh_labels("arena@1.1", "llm-2", Some(JudgePort::Command));
        let [design, _, scored, labels, held] = ways.as_slice() else {
            unreachable!("five steps: {ways:?}");
        };
        assert_eq!(
            held,
            "clover deploy recalibrate arena@1.1 --judge llm-2 --design fresh-1"
        );
        assert_eq!(scored, "clover judge run --judge llm-2 -- COMMAND");
        assert!(design.contains(" fresh-1 ") && labels.ends_with("--design fresh-1"));
    }
}
