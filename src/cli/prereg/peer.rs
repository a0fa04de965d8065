//! Manifests of agent-eval: whether their content is what was hashed, and what they would be here.

use serde_json::Value;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::stats::eprocess::Direction;
use crate::workflow::peer_manifest;
use crate::workflow::peer_manifest::PeerManifestError;

const NEXT: &str = "clover prereg new --template gate";

/// Whether bytes are a JSON object with the peer's hash.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let value = serde_json::from_slice::<Value>(bytes);
    value.is_ok_and(|value| value.get("contentHash").is_some())
}

/// Checks the hash and shows the sections that the manifest would have here.
pub(super) fn check(source: &str, bytes: &[u8]) -> Result<Answer, CliError> {
    let text = String::from_utf8_lossy(bytes);
    let found = peer_manifest::read(&text).map_err(|error| match error {
        PeerManifestError::Hash { .. } => {
            CliError::integrity("changed", format!("{source}: {error}"), NEXT)
        }
        other => CliError::input(format!("{source}: {other}"), NEXT),
    })?;
    let registration = found.registration;
    let micro = |value: f64| format!("{:.0}", value * 1e6);
    let direction = match registration.direction {
        Direction::Decrease => "decrease",
        Direction::Increase => "increase",
    };
    let sections = format!(
        "hypothesis: {{claim: {}, kind: promote}}\nmetric: {{metric: {}, direction: {direction}}}\n\
         test: {{alpha_micro: {}, null_margin_micro: {}, n_max: {}}}\n",
        json!(found.hypothesis),
        json!(found.metric),
        micro(registration.alpha),
        micro(registration.min_effect),
        registration.max_n
    );
    let mut answer = Answer::new(
        ui::pairs(&[
            ("manifest", found.id.clone()),
            ("content", found.content.to_hex()),
            ("says it was registered", found.registered_at.clone()),
        ]),
        json!({
            "manifest": found.id, "content": found.content.to_hex(), "registered_at": found.registered_at,
            "alpha": registration.alpha, "direction": direction, "min_effect": registration.min_effect,
            "n_max": registration.max_n, "power": found.power, "baseline": found.baseline,
            "candidate": found.candidate, "sections": sections,
        }),
    );
    answer.verdict = "unchanged";
    answer.line("unchanged since it was hashed; the hash has no key: it shows neither who wrote it nor when");
    answer.line("what it binds, as sections of a manifest that can be signed here:");
    answer.text.push_str(&ui::escape_lines(&sections));
    Ok(answer.with_next(NEXT))
}
