//! What judges are told, version by version.

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::PatchId;
use crate::event::payload::release::PromptCommitted;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::releases::Commit;
use crate::projection::releases::Releases;
use crate::projection::rubrics::RubricRegistration;
use crate::projection::rubrics::Rubrics;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::Stands;
use crate::view::appended::StandsAnd;
use crate::workflow::patches;
use crate::workflow::prompts;

/// A version that a patch brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommittedVersion {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Version of its rubric.
    pub version: String,
    /// Hash of its rubric's leaves.
    pub rubric_hash: Digest,
    /// Hash of what the judge is told, under its template.
    pub prompt_hash: Digest,
}

/// A patch that is committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptCommit {
    /// The version that it brought.
    pub prompt: CommittedVersion,
}

/// One version of what a judge is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptVersion {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Version of its rubric.
    pub version: String,
    /// The entry that brought it.
    pub seq: u64,
    /// The id of that entry's event.
    pub event: EventId,
    /// The patch that brought it; `null` for the rubric that the experiment started from.
    pub patch: Option<PatchId>,
    /// The event of the version before; `null` where there is none.
    pub parent: Option<EventId>,
    /// The `patch.accepted` that it stands on; `null` where there is none.
    pub acceptance: Option<EventId>,
    /// Hash of its rubric's leaves.
    pub rubric_hash: Digest,
    /// Hash of what the judge is told, under its template.
    pub prompt_hash: Digest,
}

/// A version in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptRow {
    /// Which.
    #[serde(flatten)]
    pub version: PromptVersion,
    /// Whether its rubric is in force.
    pub head: bool,
    /// Code length of its patch; `null` where no patch brought it.
    pub kappa: Option<u64>,
    /// Approvals of its patch that stand; `null` where no patch brought it.
    pub approvals: Option<u64>,
}

/// Versions of what judges are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptLog {
    /// By experiment, newest first.
    pub prompts: Vec<PromptRow>,
}

/// What a judge is told in a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptShown {
    /// Which.
    #[serde(flatten)]
    pub version: PromptVersion,
    /// What the judge is told.
    pub prompt: String,
    /// Its rubric as YAML in its fixed form.
    pub yaml: String,
}

/// A version that was written into files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromptFiles {
    /// Which.
    #[serde(flatten)]
    pub version: PromptVersion,
    /// The files, as they were asked for.
    pub files: Vec<String>,
}

fn version(experiment: &ExperimentId, version: &str, hashes: [Digest; 2]) -> PromptCommit {
    let [rubric_hash, prompt_hash] = hashes;
    PromptCommit {
        prompt: CommittedVersion {
            experiment: experiment.clone(),
            version: version.to_owned(),
            rubric_hash,
            prompt_hash,
        },
    }
}

fn then_show(view: View, experiment: &ExperimentId, version: &str) -> View {
    let name = format!("{experiment}@{version}");
    view.with_next(format!("clover prompt show {}", shell::word(&name)))
}

/// Adds to the view of a commit which version it is; a dry run stays as it is.
pub fn committed(
    view: View,
    is_dry: bool,
    experiment: &ExperimentId,
    said: &PromptCommitted,
) -> View {
    if is_dry {
        return then_show(view, experiment, &said.version);
    }
    let hashes = [said.rubric_hash, said.prompt_hash];
    let mut view = appended::and(view, &version(experiment, &said.version, hashes));
    let [rubric, prompt] = hashes;
    view.line(format!(
        "{experiment}@{}  rubric {rubric}  prompt {prompt}",
        said.version
    ));
    then_show(view, experiment, &said.version)
}

/// An acceptance that was committed before.
pub fn already(experiment: &ExperimentId, old: &Commit) -> View {
    let facts = StandsAnd {
        stands: Stands {
            appended: 0,
            already: 1,
            seqs: vec![old.seq],
        },
        more: version(experiment, &old.version, [old.rubric_hash, old.prompt_hash]),
    };
    let mut view = View::of(&facts).with_verdict("already_recorded");
    view.line(format!(
        "seq {}  prompt.committed  {}  already recorded",
        old.seq, old.id
    ));
    view.events = vec![old.id.to_string()];
    then_show(view, experiment, &old.version)
}

/// A version with its texts; `None` where its rubric cannot be read.
pub fn shown(
    state: &State,
    experiment: &ExperimentId,
    registered: &RubricRegistration,
) -> Option<PromptShown> {
    let rubric = patches::rubric_of(registered)?;
    let releases = state.fold::<Releases>().of(experiment);
    let commit = releases.and_then(|of| of.commit(registered.id));
    let told = prompts::told(state, experiment, registered)?;
    Some(PromptShown {
        version: PromptVersion {
            experiment: experiment.clone(),
            version: registered.version.clone(),
            seq: registered.seq,
            event: registered.id,
            patch: commit.map(|commit| commit.patch.clone()),
            parent: commit.map(|commit| commit.parent),
            acceptance: commit.map(|commit| commit.acceptance),
            rubric_hash: registered.hash,
            prompt_hash: told.hash,
        },
        prompt: told.text,
        yaml: rubric.to_yaml(),
    })
}

fn row(
    state: &State,
    experiment: &ExperimentId,
    registered: &RubricRegistration,
    is_head: bool,
) -> Option<PromptRow> {
    let PromptShown { version, .. } = shown(state, experiment, registered)?;
    let accepted = version.acceptance;
    let accepted = accepted.and_then(|id| state.fold::<Releases>().acceptance(experiment, id));
    Some(PromptRow {
        version,
        head: is_head,
        kappa: accepted.map(|of| of.kappa),
        approvals: accepted.map(|of| of.approvals().len() as u64),
    })
}

/// Every version, newest first, of one experiment where it is named; `None` where nothing is there of it.
pub fn log(state: &State, wanted: Option<&ExperimentId>) -> Option<View> {
    let rubrics = state.fold::<Rubrics>();
    let all = rubrics.by_experiment.iter();
    let all = all.filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id));
    let prompts = all.flat_map(|(id, all)| {
        let head = rubrics.in_force(id).map(|head| head.id);
        let newest = all.iter().rev();
        newest.filter_map(move |of| row(state, id, of, head == Some(of.id)))
    });
    let facts = PromptLog {
        prompts: prompts.collect(),
    };
    if facts.prompts.is_empty() && wanted.is_some() {
        return None;
    }
    let number = |value: Option<u64>| value.map_or(String::new(), |of| of.to_string());
    let rows = facts.prompts.iter().map(|row| {
        let of = &row.version;
        let patch = of.patch.as_ref();
        vec![
            format!("{}@{}", of.experiment, of.version),
            if row.head { "head" } else { "" }.to_owned(),
            patch.map_or(String::new(), ToString::to_string),
            number(row.kappa),
            number(row.approvals),
            format!("seq {}", of.seq),
            of.rubric_hash.short().to_string(),
            of.prompt_hash.short().to_string(),
        ]
    });
    let head = [
        "version",
        "",
        "by patch",
        "kappa",
        "approvals",
        "entry",
        "rubric",
        "prompt",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    Some(view)
}

/// What the judge is told in a version that was named so.
pub fn show(of: &PromptShown, name: &str) -> View {
    let mut view = View::of(of);
    view.source(of.prompt.as_str());
    view.with_next(format!(
        "clover prompt checkout {} --out DIR",
        shell::word(&name)
    ))
}

/// The files into which a version was written.
pub fn checkout(version: PromptVersion, files: Vec<String>) -> View {
    let facts = PromptFiles { version, files };
    let mut view = View::of(&facts);
    for file in facts.files {
        view.line(file);
    }
    view
}
