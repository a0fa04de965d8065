//! Manifests of agent-eval: whether their content is what was hashed, and what they would be here.

use serde_json::Value;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::prereg::plan::text as template;
use crate::cli::ui;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Template;
use crate::stats::eprocess::Direction;
use crate::view::View;
use crate::workflow::peer_manifest;
use crate::workflow::peer_manifest::PeerManifest;
use crate::workflow::peer_manifest::PeerManifestError;

const NEXT: &str = "clover prereg new --template gate";

/// Whether bytes are a JSON object with the peer's hash.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let value = serde_json::from_slice::<Value>(bytes);
    value.is_ok_and(|value| value.get("contentHash").is_some())
}

/// Reads a manifest whose content is what was hashed.
fn read(source: &str, bytes: &[u8]) -> Result<PeerManifest, CliError> {
    let text = String::from_utf8_lossy(bytes);
    peer_manifest::read(&text).map_err(|error| match error {
        PeerManifestError::Hash { .. } => {
            CliError::integrity("changed", format!("{source}: {error}"), NEXT)
        }
        other => CliError::input(format!("{source}: {other}"), NEXT),
    })
}

/// Exact millionths.
fn micro(source: &str, field: &str, value: f64) -> Result<String, CliError> {
    let micro = (value * 1e6).round();
    if (micro / 1e6 - value).abs() > 0.0 {
        let message = format!("{source}: {field}: expected at most six decimals, found {value}");
        return Err(CliError::input(message, NEXT));
    }
    Ok(format!("{micro:.0}"))
}

fn direction(found: &PeerManifest) -> &'static str {
    match found.registration.direction {
        Direction::Decrease => "decrease",
        Direction::Increase => "increase",
    }
}

/// A gate's manifest to be filled, in which what the peer's binds stands already.
pub(super) fn plan(source: &str, bytes: &[u8]) -> Result<String, CliError> {
    let found = read(source, bytes)?;
    let registration = found.registration;
    let n_max = registration.max_n.to_string();
    let mut filled = vec![
        ("title", json!(found.hypothesis).to_string()),
        ("  claim", json!(found.hypothesis).to_string()),
        ("  metric", json!(found.metric).to_string()),
        ("  direction", direction(&found).to_owned()),
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
        filled.push(("manifest", json!(found.id).to_string()));
    }
    let mut text = format!(
        "# What {} binds, SHA-256 {}. That hash has no key: it shows neither who wrote it nor when.\n",
        json!(found.id),
        found.content.to_hex()
    );
    for line in template(Template::Gate).lines() {
        let value = line.split_once(": ").and_then(|(key, rest)| {
            let at = filled.iter().position(|(of, _)| *of == key)?;
            Some((key, filled.swap_remove(at).1, rest.split_once('#')))
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
    Ok(text)
}

/// Checks the hash and shows the sections that the manifest would have here.
pub(super) fn check(source: &str, bytes: &[u8]) -> Result<View, CliError> {
    let found = read(source, bytes)?;
    let registration = found.registration;
    let direction = direction(&found);
    let sections = || {
        let alpha = micro(source, "alpha", registration.alpha)?;
        let margin = micro(source, "minEffect", registration.min_effect)?;
        Ok::<_, CliError>(format!(
            "hypothesis: {{claim: {}, kind: promote}}\nmetric: {{metric: {}, direction: {direction}}}\n\
             test: {{alpha_micro: {alpha}, null_margin_micro: {margin}, n_max: {}}}\n",
            json!(found.hypothesis),
            json!(found.metric),
            registration.max_n
        ))
    };
    let sections = sections();
    let mut answer = View::untyped(
        ui::pairs(&[
            ("manifest", found.id.clone()),
            ("content", found.content.to_hex()),
            ("says it was registered", found.registered_at.clone()),
        ]),
        json!({
            "manifest": found.id, "content": found.content.to_hex(), "registered_at": found.registered_at,
            "alpha": registration.alpha, "direction": direction, "min_effect": registration.min_effect,
            "n_max": registration.max_n, "power": found.power, "baseline": found.baseline,
            "candidate": found.candidate, "sections": sections.as_ref().ok(),
        }),
    );
    answer.verdict = "unchanged";
    answer.line("unchanged since it was hashed; the hash has no key: it shows neither who wrote it nor when");
    match sections {
        Ok(sections) => {
            answer.line("what it binds, as sections of a manifest that can be signed here:");
            answer.source(ui::escape_lines(&sections));
        }
        Err(error) => answer.line(format!(
            "no manifest here binds the same: {}",
            error.message
        )),
    }
    Ok(answer.with_next(format!("{NEXT} --from {source} -o plan.yaml")))
}
