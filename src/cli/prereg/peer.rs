//! Manifests of agent-eval: whether their content is what was hashed, and what they would be here.

use serde_json::Value;

use crate::cli::error::CliError;
use crate::view::View;
use crate::view::prereg::peer;
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

/// A gate's manifest to be filled, in which what the peer's binds stands already.
pub(super) fn plan(source: &str, bytes: &[u8]) -> Result<String, CliError> {
    let found = read(source, bytes)?;
    peer::plan(source, &found).map_err(|message| CliError::input(message, NEXT))
}

/// Checks the hash and shows the sections that the manifest would have here.
pub(super) fn check(source: &str, bytes: &[u8]) -> Result<View, CliError> {
    Ok(peer::checked(source, &read(source, bytes)?, NEXT))
}
