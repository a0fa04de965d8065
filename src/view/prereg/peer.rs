//! Manifests of agent-eval: what they bind, and what they would be here.

use serde::Serialize;
use serde_json::json;

use crate::event::id::ManifestId;
use crate::event::payload::manifest::Template;
use crate::ground::digest::Digest;
use crate::stats::eprocess::Direction;
use crate::view::View;
use crate::view::prereg::file::filled;
use crate::view::text::escape_lines;
use crate::workflow::peer_manifest::PeerManifest;

/// A manifest of agent-eval whose content is what was hashed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeerChecked {
    /// Its error rate, from 0 to 1.
    pub alpha: f64,
    /// Name of the baseline; `null` where it says none.
    pub baseline: Option<String>,
    /// Name of the candidate; `null` where it says none.
    pub candidate: Option<String>,
    /// SHA-256 of its canonical content.
    pub content: Digest,
    /// Which way is better: `decrease` or `increase`.
    pub direction: &'static str,
    /// Its name there.
    pub manifest: String,
    /// The smallest effect that counts.
    pub min_effect: f64,
    /// Most units.
    pub n_max: u64,
    /// Power that was planned for, from 0 to 1.
    pub power: f64,
    /// When it says that it was registered; nobody checked it.
    pub registered_at: String,
    /// What it binds, as sections of a manifest that can be signed here; `null` where none binds the same.
    pub sections: Option<String>,
}

/// Exact millionths; what is none, in words.
fn micro(source: &str, field: &str, value: f64) -> Result<String, String> {
    let micro = (value * 1e6).round();
    if (micro / 1e6 - value).abs() > 0.0 {
        return Err(format!(
            "{source}: {field}: expected at most six decimals, found {value}"
        ));
    }
    Ok(format!("{micro:.0}"))
}

fn direction(found: &PeerManifest) -> &'static str {
    match found.registration.direction {
        Direction::Decrease => "decrease",
        Direction::Increase => "increase",
    }
}

/// A gate's manifest to be filled, in which what the manifest of the file `source` binds stands already.
///
/// # Errors
/// What no manifest here can say, in words.
pub fn plan(source: &str, found: &PeerManifest) -> Result<String, String> {
    let registration = found.registration;
    let n_max = registration.max_n.to_string();
    let mut filled_in = vec![
        ("title", json!(found.hypothesis).to_string()),
        ("  claim", json!(found.hypothesis).to_string()),
        ("  metric", json!(found.metric).to_string()),
        ("  direction", direction(found).to_owned()),
        ("  n_units", n_max.clone()),
        ("  alpha_micro", micro(source, "alpha", registration.alpha)?),
        (
            "  null_margin_micro",
            micro(source, "minEffect", registration.min_effect)?,
        ),
        ("  n_min", registration.max_n.min(20).to_string()),
        ("  n_max", n_max),
    ];
    if found.id.parse::<ManifestId>().is_ok() {
        filled_in.push(("manifest", json!(found.id).to_string()));
    }
    let mut text = format!(
        "# What {} binds, SHA-256 {}. That hash has no key: it shows neither who wrote it nor when.\n",
        json!(found.id),
        found.content.to_hex()
    );
    text += &filled(Template::Gate, filled_in);
    Ok(text)
}

/// The sections that a manifest would have here.
fn sections(source: &str, found: &PeerManifest) -> Result<String, String> {
    let registration = found.registration;
    let alpha = micro(source, "alpha", registration.alpha)?;
    let margin = micro(source, "minEffect", registration.min_effect)?;
    Ok(format!(
        "hypothesis: {{claim: {}, kind: promote}}\nmetric: {{metric: {}, direction: {}}}\n\
         test: {{alpha_micro: {alpha}, null_margin_micro: {margin}, n_max: {}}}\n",
        json!(found.hypothesis),
        json!(found.metric),
        direction(found),
        registration.max_n
    ))
}

/// What the manifest of the file `source` binds; its hash was checked.
pub fn checked(source: &str, found: &PeerManifest, next: &str) -> View {
    let registration = found.registration;
    let sections = sections(source, found);
    let facts = PeerChecked {
        alpha: registration.alpha,
        baseline: found.baseline.clone(),
        candidate: found.candidate.clone(),
        content: found.content,
        direction: direction(found),
        manifest: found.id.clone(),
        min_effect: registration.min_effect,
        n_max: registration.max_n,
        power: found.power,
        registered_at: found.registered_at.clone(),
        sections: sections.as_ref().ok().cloned(),
    };
    let mut view = View::of(&facts).with_verdict("unchanged");
    view.pairs([
        ("manifest", facts.manifest),
        ("content", facts.content.to_hex()),
        ("says it was registered", facts.registered_at),
    ]);
    view.line("unchanged since it was hashed; the hash has no key: it shows neither who wrote it nor when");
    match sections {
        Ok(sections) => {
            view.line("what it binds, as sections of a manifest that can be signed here:");
            view.source(escape_lines(&sections));
        }
        Err(why) => view.line(format!("no manifest here binds the same: {why}")),
    }
    view.with_next(format!("{next} --from {source} -o plan.yaml"))
}
