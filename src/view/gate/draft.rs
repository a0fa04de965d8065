//! The plan of a gate, written from the files of its arms, its judge and its units.

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::event::id::ExperimentId;
use crate::event::id::FamilyId;
use crate::event::id::ManifestId;
use crate::event::id::Root;
use crate::event::payload::manifest::FamilyMethod;
use crate::event::payload::manifest::Template;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Micro;
use crate::session::gate::plan::FamilyShare;
use crate::view::View;
use crate::view::prereg::file;
use crate::view::word;

/// Units before which nothing is concluded, where there are as many.
const N_MIN: u64 = 20;

/// The metric of a plan that names none.
pub const METRIC: &str = "quality";

/// What a plan of a gate is written from.
#[derive(Clone, Debug)]
pub struct GateTerms {
    /// SHA-256 of the baseline's file.
    pub baseline: Digest,
    /// SHA-256 of the candidate's file.
    pub candidate: Digest,
    /// What is claimed, in words.
    pub claim: String,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// SHA-256 of the judge's file.
    pub judge: Digest,
    /// The metric.
    pub metric: &'static str,
    /// The lowest and the highest outcome.
    pub scale: (Micro, Micro),
    /// Merkle root of the units, and how many they are.
    pub units: (Root, u64),
}

/// A plan of a gate that may be signed as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateDraft {
    /// Error rate of the gate, in millionths.
    pub alpha_micro: Micro,
    /// What its family has left before it, in millionths.
    pub alpha_left_micro: Micro,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The family.
    pub family: FamilyId,
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// Gates that may join the family, this one with them.
    pub members_left: u64,
    /// How many units its confirm set holds.
    pub n_units: u64,
    /// The file, YAML with comments.
    pub text: String,
}

/// The plan of a gate with its place in a family, as text or where it was written: to `output`.
pub fn drafted(of: &GateTerms, share: &FamilyShare, output: Option<&Path>) -> View {
    let facts = GateDraft {
        alpha_micro: share.alpha,
        alpha_left_micro: share.left,
        experiment: of.experiment.clone(),
        family: share.family.clone(),
        gate: of.gate.clone(),
        members_left: share.members_left,
        n_units: of.units.1,
        text: text(of, share),
    };
    let mut view = View::of(&facts);
    let Some(output) = output else {
        view.source(facts.text);
        return view;
    };
    let shown = output.display();
    view.line(format!("{shown}: the plan of {}", facts.gate));
    view.line(format!(
        "alpha    {} of {}: {}",
        facts.alpha_micro,
        facts.family,
        reason(share)
    ));
    view.line(format!(
        "units    {}; nothing is concluded before unit {}",
        facts.n_units,
        N_MIN.min(facts.n_units)
    ));
    let scale = ["scale_lo_micro", "scale_hi_micro"].map(|name| micro_of(&facts.text, name));
    if let [Some(low), Some(high)] = scale {
        view.line(format!(
            "scale    outcomes from {low} to {high}, more is better; --scale LOW:HIGH says another, before the plan is signed"
        ));
    }
    let shown = shell::word(&shown);
    view.with_next(format!("clover gate simulate --plan {shown}"))
        .with_next(format!("clover prereg sign {shown} --countersign"))
}

/// A number of the file, by its name.
fn micro_of(text: &str, name: &str) -> Option<Micro> {
    let line = text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(name)?;
        rest.strip_prefix(':')
    })?;
    let number = line.split('#').next()?.trim();
    number.parse().ok().and_then(Micro::new)
}

fn reason(share: &FamilyShare) -> String {
    match share.method {
        FamilyMethod::Spend => format!(
            "an equal share of the {} that is left for {} gates",
            share.left, share.members_left
        ),
        method => format!("what {} gives to its next member", word(&method)),
    }
}

/// The file.
pub fn text(of: &GateTerms, share: &FamilyShare) -> String {
    let (root, n) = of.units;
    let claim = json!(of.claim).to_string();
    let values = vec![
        ("manifest", json!(of.gate).to_string()),
        ("experiment", json!(of.experiment).to_string()),
        ("title", claim.clone()),
        ("  claim", claim),
        ("    artifact_digest", of.baseline.to_hex()),
        ("    artifact_digest", of.candidate.to_hex()),
        ("  metric", of.metric.to_owned()),
        ("  judge_digest", of.judge.to_hex()),
        ("  scale_lo_micro", of.scale.0.value().to_string()),
        ("  scale_hi_micro", of.scale.1.value().to_string()),
        ("  confirm_root", json!(root).to_string()),
        ("  n_units", n.to_string()),
        ("  alpha_micro", share.alpha.value().to_string()),
        ("  n_min", N_MIN.min(n).to_string()),
        ("  n_max", n.to_string()),
        ("  family", json!(share.family).to_string()),
        (
            "  family_alpha_micro",
            share.family_alpha.value().to_string(),
        ),
        ("  method", word(&share.method)),
    ];
    file::filled(Template::Gate, values)
}
