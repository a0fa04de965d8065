//! Manifests as files: commented ones to fill in, and what a check of one finds before it is signed.

use std::path::Path;

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ground::yaml::Document;
use crate::view::Exit;
use crate::view::Label;
use crate::view::View;
use crate::view::prereg::draft;
use crate::view::prereg::draft::DraftFacts;
use crate::workflow::iterate::draft::Profile;
use crate::workflow::prereg::Report;

/// The commented file of a template.
pub fn template(of: Template) -> &'static str {
    match of {
        Template::Compare => include_str!("compare.yaml"),
        Template::Estimates => include_str!("estimates.yaml"),
        Template::Gate => include_str!("gate.yaml"),
        Template::Iteration => include_str!("iteration.yaml"),
        Template::Sgd => include_str!("sgd.yaml"),
        Template::Transport => include_str!("transport.yaml"),
        Template::Workflow => include_str!("workflow.yaml"),
    }
}

/// The commented file of a template with values in place of its own, by the beginning of their lines: `  claim`. Where lines
/// begin alike, the values come in the order given.
pub fn filled(of: Template, mut values: Vec<(&str, String)>) -> String {
    let mut text = String::new();
    for line in template(of).lines() {
        let value = line.split_once(':').and_then(|(key, rest)| {
            let at = values.iter().position(|(of, _)| *of == key)?;
            Some((key, values.remove(at).1, rest.split_once('#')))
        });
        match value {
            None => text += line,
            Some((key, value, None)) => text += &format!("{key}: {value}"),
            Some((key, value, Some((_, comment)))) => {
                let comment = comment.replace("FILL: ", "");
                text += &format!("{key}: {value}   #{comment}");
            }
        }
        text.push('\n');
    }
    text
}

/// What the template that a plan names says of a field, by the field's path.
pub fn meaning(plan: &str, path: &str) -> Option<String> {
    let named = plan
        .lines()
        .find_map(|line| line.strip_prefix("template:"))?
        .split('#')
        .next()?
        .trim();
    let of = Template::ALL.into_iter().find(|of| of.as_str() == named)?;
    let text = template(of);
    let document = Document::parse(text.as_bytes()).ok()?;
    let place = document.place(path)?;
    let line = text.lines().nth(place.line.checked_sub(1)?)?;
    Some(line.split_once(" # ")?.1.to_owned())
}

/// A manifest to fill in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewPlan {
    /// What it plans: `compare`, `estimates`, `gate`, `iteration`, `sgd`, `transport` or `workflow`.
    pub template: &'static str,
    /// The file, YAML with comments.
    pub text: String,
    /// What it was drafted from; `null` where no data were read.
    pub draft: Option<DraftFacts>,
}

/// A number of a preflight.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measure {
    /// What it is, in words.
    pub name: String,
    /// Its value; `null` where no number exists.
    pub value: Option<f64>,
}

/// A manifest that may be signed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedManifest {
    /// Whether it binds confirm data, so that it waits for a custodian after it is signed.
    pub binds_confirm_data: bool,
    /// Its digest.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// Its name.
    pub manifest: ManifestId,
    /// What nobody could check, in words.
    pub not_checked: Vec<String>,
    /// What follows from it for others, in words.
    pub notes: Vec<String>,
    /// What its sizes come to, in the order shown.
    pub preflight: Vec<Measure>,
    /// What it plans: `compare`, `estimates`, `gate`, `iteration`, `sgd`, `transport` or `workflow`.
    pub template: &'static str,
    /// Criteria of an iteration that no candidate passes at these sizes.
    pub unmet: Vec<String>,
}

/// A manifest to fill in, as text, or where it was written: to `output`. A draft is followed by what it rests on, which
/// was written to `basis`.
pub fn new(
    template: Template,
    text: String,
    output: Option<&Path>,
    draft: Option<(&DraftFacts, &Profile, Option<&Path>)>,
) -> View {
    let facts = NewPlan {
        template: template.as_str(),
        text,
        draft: draft.map(|(facts, ..)| facts.clone()),
    };
    let mut view = View::of(&facts);
    let Some(output) = output else {
        view.source(facts.text);
        return view;
    };
    let shown = output.display();
    if let Some((facts, profile, basis)) = draft {
        draft::put(&mut view, facts, profile);
        view.gap();
        if let Some(basis) = basis {
            let basis = basis.display();
            view.line(format!(
                "{basis}: what it rests on, whose digest is in the plan; signing puts it into the ledger"
            ));
        }
    }
    view.line(format!("{shown}: fill the lines marked FILL"));
    view.with_next(format!("clover prereg check {}", shell::word(&shown)))
}

/// What a preflight of the manifest of a file shows.
pub fn checked(manifest: &Manifest, report: Report, file: &Path) -> View {
    let measures = report.measures.into_iter();
    let facts = CheckedManifest {
        binds_confirm_data: manifest.data.is_some(),
        digest: manifest.digest(),
        h0_digest: manifest.h0_digest(),
        manifest: manifest.manifest.clone(),
        not_checked: report.not_checked,
        notes: report.said,
        preflight: measures
            .map(|of| Measure {
                name: of.name,
                value: of.value,
            })
            .collect(),
        template: manifest.template.as_str(),
        unmet: report.unmet,
    };
    let mut view = View::of(&facts);
    if !facts.unmet.is_empty() {
        // Whatever the candidate is, a run under this plan decides nothing.
        view.exit = Exit::Inconclusive;
        view.answer("This plan cannot reach its bar: no candidate meets every criterion.");
        view.gap();
    }
    let head: [(Label, String); 4] = [
        ("manifest".into(), facts.manifest.to_string()),
        ("template".into(), facts.template.to_owned()),
        ("digest".into(), facts.digest.to_hex()),
        ("h0 digest".into(), facts.h0_digest.to_hex()),
    ];
    let measures = facts.preflight.iter().map(|of| {
        let value = of.value.map_or("none".to_owned(), number);
        (Label::from(of.name.clone()), value)
    });
    view.pairs(head.into_iter().chain(measures));
    for note in &facts.notes {
        view.line(format!("note: {note}"));
    }
    for criterion in &facts.unmet {
        view.line(format!("cannot be met: {criterion}"));
    }
    for reason in &facts.not_checked {
        view.line(format!("NOT CHECKED  {reason}"));
    }
    let countersign = if facts.binds_confirm_data {
        " --countersign"
    } else {
        ""
    };
    let file = shell::word(&file.display());
    if facts.unmet.is_empty() {
        view.with_next(format!("clover prereg sign {file}{countersign}"))
    } else {
        view.with_next(format!("mend {file}, then clover prereg check {file}"))
    }
}

fn number(value: f64) -> String {
    if value.fract().abs() > 0.0 {
        format!("{value:.4}")
    } else {
        format!("{value}")
    }
}
