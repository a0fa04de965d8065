//! Rubrics: their rules, what differs between two, which are registered, and rules that hardly ever fire.

use std::path::Path;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::rubrics::Rubrics;
use crate::rubric::Rubric;
use crate::rubric::between;
use crate::rubric::kappa;
use crate::rubric::prompt;
use crate::rubric::prompt::Firing;
use crate::view::View;
use crate::view::appended;
use crate::workflow::dead;

/// A rubric that was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RubricRegistration {
    /// Hash of its leaves.
    pub rubric_hash: Digest,
}

/// A rubric to begin with, valid as it stands.
pub const TEMPLATE: &str = include_str!("rubric.yaml");

/// A rubric to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewRubric {
    /// The document, with comments.
    pub text: String,
}

/// The first line of a document that stands as the template has it and is marked to be filled, from 1.
pub fn unfilled(yaml: &str) -> Option<(usize, &str)> {
    let is_marked = |line: &&str| line.contains("# FILL");
    let marked: Vec<&str> = TEMPLATE.lines().filter(is_marked).map(str::trim).collect();
    let lines = (1..).zip(yaml.lines().map(str::trim));
    lines.into_iter().find(|(_, line)| marked.contains(line))
}

/// A rubric to begin with, which may be in a file now.
pub fn new(output: Option<&Path>) -> View {
    let facts = NewRubric {
        text: TEMPLATE.to_owned(),
    };
    let mut view = View::of(&facts);
    let Some(output) = output else {
        view.source(facts.text);
        return view;
    };
    let shown = output.display();
    view.line(format!("{shown}: fill the line marked FILL"));
    view.with_next(format!("clover rubric show {}", shell::word(&shown)))
}

/// A rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RubricShown {
    /// Hash of its leaves.
    pub rubric_hash: Digest,
    /// Its version.
    pub version: String,
    /// The rubric as YAML in its fixed form.
    pub yaml: String,
    /// Dotted paths of the rules that can fire.
    pub rules: Vec<String>,
    /// What the judge is told, without topics of an iteration.
    pub prompt: String,
}

/// A leaf that differs between two rubrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeafChanged {
    /// The leaf's dotted path.
    pub path: String,
    /// What the older one has there, as text; `null` where it has nothing.
    pub from: Option<String>,
    /// What the newer one has there, as text; `null` where it has nothing, which no patch can bring about.
    pub to: Option<String>,
}

/// What one rubric has and another has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RubricDiff {
    /// Leaves that differ; empty where both rubrics are the same.
    pub changes: Vec<LeafChanged>,
    /// Code length of the difference.
    pub kappa: u64,
}

/// A registered rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RubricRow {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its version.
    pub version: String,
    /// The entry that brought it.
    pub seq: u64,
    /// Hash of its leaves.
    pub rubric_hash: Digest,
    /// How many leaves it has.
    pub leaves: u64,
}

/// Registered rubrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RubricList {
    /// By experiment, oldest first.
    pub rubrics: Vec<RubricRow>,
}

/// How often one rule fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleFired {
    /// The rule's dotted path.
    pub path: String,
    /// `dead`: rare in the two newest of what was counted; `rare`: rare in some of it; `live`: neither.
    pub standing: &'static str,
    /// For each of `counted`: rows on which it fired, of how many rows.
    pub fired: Vec<[u64; 2]>,
}

/// How often the rules of a rubric fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RulesFired {
    /// Every rule that can fire.
    pub rules: Vec<RuleFired>,
    /// Rows without a score: their evidence was never checked.
    pub evidence_missing: u64,
    /// Names of the iterations or files that were counted, oldest first.
    pub counted: Vec<String>,
}

/// Counts over the rows of one file or iteration.
#[derive(Clone, Debug)]
pub struct RuleCounts {
    /// Its name.
    pub name: String,
    /// How often each rule fired.
    pub firing: Firing,
    /// Rows without a score.
    pub missing: u64,
}

/// Adds to the view of a registration which rubric it is; a dry run stays as it is.
pub fn registered(
    view: View,
    is_dry: bool,
    experiment: &str,
    (version, hash): (&str, Digest),
) -> View {
    let next = format!("clover rubric show {}", shell::word(&experiment));
    if is_dry {
        return view.with_next(next);
    }
    let mut view = appended::and(view, &RubricRegistration { rubric_hash: hash });
    view.line(format!("rubric {version}  hash {hash}"));
    view.with_next(next)
}

/// A rubric as YAML, or, where `is_prompt`, what the judge is told.
pub fn show(rubric: &Rubric, is_prompt: bool) -> View {
    let facts = RubricShown {
        rubric_hash: rubric.hash(),
        version: rubric.version().to_owned(),
        yaml: rubric.to_yaml(),
        rules: rubric.rule_paths().into_iter().collect(),
        prompt: prompt::render(rubric, &std::collections::BTreeSet::new()),
    };
    let mut view = View::of(&facts);
    if is_prompt {
        view.source(facts.prompt);
        return view;
    }
    view.source(facts.yaml);
    view.line(format!("# hash {}", facts.rubric_hash));
    view.line(format!("# {} rules can fire", facts.rules.len()));
    view
}

/// What one rubric has and another has not, with the code length of the difference.
pub fn diff(old: &Rubric, new: &Rubric) -> View {
    let (set, gone) = between(old, new);
    let set = set.iter().map(|change| LeafChanged {
        path: change.path.clone(),
        from: old.at(&change.path).map(ToString::to_string),
        to: Some(change.value.to_string()),
    });
    let gone = gone.into_iter().map(|path| LeafChanged {
        from: old.at(&path).map(ToString::to_string),
        path,
        to: None,
    });
    let facts = RubricDiff {
        changes: set.chain(gone).collect(),
        kappa: kappa::length(old.leaves(), new.leaves()).kappa(),
    };
    let mut view = View::of(&facts);
    for LeafChanged { path, from, to } in &facts.changes {
        view.line(match (from, to) {
            (_, None) => format!("{path}: gone, which no patch can do"),
            (None, Some(to)) => format!("{path}: absent -> {to}"),
            (Some(from), Some(to)) => format!("{path}: {from} -> {to}"),
        });
    }
    view.line(match facts.changes.as_slice() {
        [] => "the same".to_owned(),
        _ => format!("code length {}", facts.kappa),
    });
    view
}

/// Registered rubrics.
pub fn list(state: &State) -> View {
    let all = state.fold::<Rubrics>().by_experiment.iter();
    let all = all.flat_map(|(id, of)| of.iter().map(move |rubric| (id, rubric)));
    let rubrics = all.map(|(id, rubric)| RubricRow {
        experiment: id.clone(),
        version: rubric.version.clone(),
        seq: rubric.seq,
        rubric_hash: rubric.hash,
        leaves: rubric.leaves.len() as u64,
    });
    let facts = RubricList {
        rubrics: rubrics.collect(),
    };
    let rows = facts.rubrics.iter().map(|of| {
        vec![
            of.experiment.to_string(),
            of.version.clone(),
            format!("seq {}", of.seq),
            of.leaves.to_string(),
            of.rubric_hash.short().to_string(),
        ]
    });
    let head = ["experiment", "version", "registered", "leaves", "hash"];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    view
}

/// How often the rules of a rubric fire over what was counted, oldest first.
pub fn dead(rubric: &Rubric, counted: &[RuleCounts]) -> View {
    let firings: Vec<&Firing> = counted.iter().map(|of| &of.firing).collect();
    let rules = rubric.rule_paths().into_iter().map(|path| RuleFired {
        standing: dead::standing(&path, &firings).as_str(),
        fired: firings
            .iter()
            .map(|of| [of.fired[&path], of.rows])
            .collect(),
        path,
    });
    let facts = RulesFired {
        rules: rules.collect(),
        evidence_missing: counted.iter().map(|of| of.missing).sum(),
        counted: counted.iter().map(|of| of.name.clone()).collect(),
    };
    let rows = facts.rules.iter().map(|of| {
        let counts = of
            .fired
            .iter()
            .map(|[fired, rows]| format!("{fired}/{rows}"));
        let mut row = vec![of.path.clone()];
        row.extend(counts);
        row.push(of.standing.to_owned());
        row
    });
    let mut head = vec!["rule".to_owned()];
    head.extend(facts.counted.iter().cloned());
    head.push("standing".to_owned());
    let mut view = View::of(&facts);
    view.table(&head, rows);
    if facts.evidence_missing > 0 {
        view.line(format!(
            "{} rows have no score: their evidence was never checked",
            facts.evidence_missing
        ));
    }
    if counted.len() < dead::TURNS {
        view.line("a rule is dead when it is rare in two iterations in a row: one was counted");
    }
    view
}
