//! Prompts of a run: one at a place, what two differ by, how each came about, what a file holds, and the run as a git repository.

use serde::Serialize;

use crate::event::id::RunId;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::sgd::SgdRun;
use crate::prompt::JudgePrompt;
use crate::prompt::diff;
use crate::session::sgd::history::PromptCause;
use crate::session::sgd::history::PromptVersion;
use crate::view::View;

/// What two prompts of a run differ by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromptDiff {
    /// The run.
    pub run: RunId,
    /// Place of the first.
    pub from: u64,
    /// Place of the second.
    pub to: u64,
    /// The difference, section by section, as a unified diff; empty where they are the same.
    pub text: String,
}

/// A prompt of a run, and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromptEntry {
    /// Its place: 0 is prompt 0, and step t stands at t + 1.
    pub place: u64,
    /// The step that left it; `null` of prompt 0.
    pub step: Option<u64>,
    /// Whether the step was taken back here.
    pub reverted: bool,
    /// Its digest.
    pub prompt_digest: Digest,
    /// The section that the step edits; `null` where none was.
    pub section: Option<String>,
    /// The learning rate of the step, in millionths; `null` where none was taken.
    pub lr_micro: Option<Micro>,
    /// Loss of val under it; `null` before it was computed.
    pub val: Option<Finite>,
    /// Of the gradient, in a few words.
    pub summary: String,
}

/// Prompts of a run, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromptLog {
    /// The run.
    pub run: RunId,
    /// Its prompts.
    pub prompts: Vec<SgdPromptEntry>,
}

/// A section of a prompt's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdSectionShown {
    /// Its name.
    pub section: String,
    /// What it is for.
    pub kind: String,
    /// Whether a step may edit it.
    pub open: bool,
    /// Unicode scalars of its text.
    pub chars: u64,
}

/// A file that is a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromptChecked {
    /// The file.
    pub file: String,
    /// Digest of the prompt.
    pub prompt_digest: Digest,
    /// Its sections, in order.
    pub sections: Vec<SgdSectionShown>,
}

/// A run that was written as a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdExported {
    /// The run.
    pub run: RunId,
    /// The folder, a bare repository.
    pub folder: String,
    /// Commits, one for each prompt that was left.
    pub commits: u64,
    /// Id of the last commit.
    pub head: Digest,
}

/// What a prompt and a later one differ by, section by section.
pub fn difference(old: &JudgePrompt, new: &JudgePrompt) -> String {
    let mut names: Vec<&str> = old
        .sections()
        .iter()
        .map(|of| of.section_id.as_str())
        .collect();
    let added = new.sections().iter().map(|of| of.section_id.as_str());
    for name in added {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let text = |prompt: &JudgePrompt, name: &str| prompt.section(name).map(|of| of.text.clone());
    let all = names.into_iter().map(|name| {
        let (old, new) = (text(old, name), text(new, name));
        diff::between(name, old.as_deref(), new.as_deref())
    });
    all.collect()
}

/// What two prompts of a run differ by.
pub fn differ(
    run: &SgdRun,
    (from, old): (u64, &JudgePrompt),
    (to, new): (u64, &JudgePrompt),
) -> View {
    let facts = SgdPromptDiff {
        run: run.said.run.clone(),
        from,
        to,
        text: difference(old, new),
    };
    let mut view = View::of(&facts);
    if facts.text.is_empty() {
        view.sentence(format!(
            "The prompts at places {from} and {to} are the same."
        ));
    }
    view.source(facts.text.clone());
    view
}

/// How the prompts of a run came about.
pub fn log(run: &SgdRun, versions: &[PromptVersion]) -> View {
    let entries = versions.iter().map(|of| SgdPromptEntry {
        place: of.place,
        step: match of.cause {
            PromptCause::Opened => None,
            PromptCause::Step(step) | PromptCause::Reverted(step) => Some(step),
        },
        reverted: matches!(of.cause, PromptCause::Reverted(_)),
        prompt_digest: of.prompt.digest(),
        section: of.section.clone(),
        lr_micro: of.lr,
        val: of.val.map(|val| val.loss),
        summary: of.summary.clone(),
    });
    let facts = SgdPromptLog {
        run: run.said.run.clone(),
        prompts: entries.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.prompts.iter().map(|of| {
        let what = match (of.step, of.reverted, &of.section) {
            (None, ..) => "prompt 0".to_owned(),
            (Some(step), true, _) => format!("step {step} taken back"),
            (Some(step), false, Some(section)) => format!("step {step} edits {section}"),
            (Some(step), false, None) => format!("step {step} changes nothing"),
        };
        let val = of
            .val
            .map_or_else(String::new, |of| format!("{:.4}", of.value()));
        let digest: String = of.prompt_digest.to_hex().chars().take(12).collect();
        vec![of.place.to_string(), what, val, digest, of.summary.clone()]
    });
    view.table(&["place", "what", "val", "digest", "gradient"], rows);
    let name = shell::word(&facts.run);
    view.with_next(format!("clover sgd prompt diff {name}"))
}

/// A file that is a prompt.
pub fn checked(file: &str, prompt: &JudgePrompt) -> View {
    let sections = prompt.sections().iter().map(|of| SgdSectionShown {
        section: of.section_id.clone(),
        kind: of.kind.as_str().to_owned(),
        open: of.is_open(),
        chars: of.text.chars().count() as u64,
    });
    let facts = SgdPromptChecked {
        file: file.to_owned(),
        prompt_digest: prompt.digest(),
        sections: sections.collect(),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("file", facts.file.clone()),
        ("digest", facts.prompt_digest.to_hex()),
    ]);
    let rows = facts.sections.iter().map(|of| {
        let open = if of.open { "open" } else { "frozen" };
        vec![
            of.section.clone(),
            of.kind.clone(),
            open.to_owned(),
            of.chars.to_string(),
        ]
    });
    view.table(&["section", "kind", "", "chars"], rows);
    if facts.sections.iter().all(|of| !of.open) {
        view.sentence(none_open(&facts.file));
    }
    view.with_next(format!(
        "clover sgd plan RUN --judge JUDGE --prompt {}",
        shell::word(&facts.file)
    ))
}

/// What is said of a prompt that has no open section.
pub fn none_open(file: &str) -> String {
    format!(
        "No section of {file} is open, and aggregate/1 changes no other. Write <!-- clover: kind=policy editable --> under the heading of one."
    )
}

/// A run that was written as a git repository.
pub fn exported(run: &SgdRun, folder: &str, commits: u64, head: Digest) -> View {
    let facts = SgdExported {
        run: run.said.run.clone(),
        folder: folder.to_owned(),
        commits,
        head,
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("folder", facts.folder.clone()),
        ("commits", facts.commits.to_string()),
        ("head", facts.head.to_hex()),
    ]);
    view.sentence(
        "A bare repository of object format sha256, which git reads from version 2.29 on.",
    );
    view.with_next(format!("git -C {} log -p", shell::word(&facts.folder)))
}
