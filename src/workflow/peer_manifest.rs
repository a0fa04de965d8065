//! Import of `agent-eval`'s "signed" manifests: what they bind, and whether their content hash holds.
//!
//! The peer's signature has no key: the hash shows that a manifest was not changed by accident, never who wrote it or
//! when. Who changes it and hashes it again passes. So an import says "unchanged", and the ledger's own signature and
//! sequence say the rest.

use clover_ground::canon;
use clover_ground::canon::CanonError;
use clover_ground::canon::Value;
use clover_ground::digest::Digest;
use clover_stats::eprocess::Direction;
use clover_stats::eprocess::compat::Registration;
use serde::Deserialize;

/// Why a text is not an intact manifest of the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerManifestError {
    /// Not JSON, or not of the shape.
    #[error("not a manifest of agent-eval: {0}")]
    Shape(String),
    /// A hash that nobody defined.
    #[error("algo {0}: expected sha256-rfc8785 or sha256-content")]
    Algorithm(String),
    /// The content is not what was hashed.
    #[error("contentHash {said}: the content hashes to {found}")]
    Hash {
        /// What the manifest says.
        said: String,
        /// What its content hashes to.
        found: String,
    },
    /// A number outside its range.
    #[error("{0}: out of range")]
    Range(&'static str),
}

impl From<CanonError> for PeerManifestError {
    fn from(error: CanonError) -> Self {
        Self::Shape(error.to_string())
    }
}

/// What a peer's manifest binds.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerManifest {
    /// The peer's id.
    pub id: String,
    /// Prose.
    pub hypothesis: String,
    /// The metric's name.
    pub metric: String,
    /// What the writer says of the time; nobody checked it.
    pub registered_at: String,
    /// Power that was planned for.
    pub power: f64,
    /// Name of the baseline.
    pub baseline: Option<String>,
    /// Name of the candidate.
    pub candidate: Option<String>,
    /// What a gate takes from it.
    pub registration: Registration,
    /// SHA-256 of the canonical content.
    pub content: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Wire {
    id: String,
    hypothesis: String,
    metric: String,
    direction: String,
    min_effect: f64,
    alpha: f64,
    power: f64,
    pre_registered_n: u64,
    registered_at: String,
    baseline_label: Option<String>,
    candidate_label: Option<String>,
    #[serde(rename = "contentHash")]
    _content_hash: String,
    #[serde(rename = "algo")]
    _algo: Option<String>,
}

/// SHA-256 of the canonical form (RFC 8785) of a manifest without `contentHash` and `algo`.
///
/// The peer's older `sha256-content` hashes sorted keys in its language's own form; for manifests without exotic
/// numbers the bytes are the same.
///
/// # Errors
/// [`PeerManifestError`] for what is not a JSON object.
pub fn content_digest(text: &str) -> Result<Digest, PeerManifestError> {
    let Value::Object(mut fields) = canon::parse(text.as_bytes())? else {
        return Err(PeerManifestError::Shape("expected an object".to_owned()));
    };
    fields.retain(|(name, _)| name != "contentHash" && name != "algo");
    Ok(Digest::sha256(&canon::to_bytes(&Value::Object(fields))?))
}

/// Reads a manifest and checks its hash.
///
/// # Errors
/// [`PeerManifestError`].
pub fn read(text: &str) -> Result<PeerManifest, PeerManifestError> {
    let Value::Object(fields) = canon::parse(text.as_bytes())? else {
        return Err(PeerManifestError::Shape("expected an object".to_owned()));
    };
    let member = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        match found.map(|(_, value)| value) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        }
    };
    if let Some(algo) = member("algo")
        && algo != "sha256-rfc8785"
        && algo != "sha256-content"
    {
        return Err(PeerManifestError::Algorithm(algo));
    }
    let content = content_digest(text)?;
    let said = member("contentHash").unwrap_or_default();
    if said != content.to_hex() {
        let found = content.to_hex();
        return Err(PeerManifestError::Hash { said, found });
    }
    let wire: Wire =
        serde_json::from_str(text).map_err(|error| PeerManifestError::Shape(error.to_string()))?;
    let direction = match wire.direction.as_str() {
        "increase" => Direction::Increase,
        "decrease" => Direction::Decrease,
        _ => return Err(PeerManifestError::Range("direction")),
    };
    let ranges = [
        (wire.alpha > 0.0 && wire.alpha < 1.0, "alpha"),
        (wire.power > 0.0 && wire.power < 1.0, "power"),
        (wire.min_effect >= 0.0, "minEffect"),
        (wire.pre_registered_n > 0, "preRegisteredN"),
    ];
    if let Some((_, name)) = ranges.iter().find(|(inside, _)| !inside) {
        return Err(PeerManifestError::Range(name));
    }
    Ok(PeerManifest {
        id: wire.id,
        hypothesis: wire.hypothesis,
        metric: wire.metric,
        registered_at: wire.registered_at,
        power: wire.power,
        baseline: wire.baseline_label,
        candidate: wire.candidate_label,
        registration: Registration {
            alpha: wire.alpha,
            direction,
            min_effect: wire.min_effect,
            max_n: wire.pre_registered_n,
        },
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // source: agent-eval 0.170.0, signManifest.
    const SIGNED: &str = r#"{"id":"h-1","hypothesis":"candidate beats baseline","metric":"composite","direction":"increase","minEffect":0,"alpha":0.05,"power":0.8,"preRegisteredN":60,"registeredAt":"2026-06-10T00:00:00Z","contentHash":"88bd5b3c19386e2c5077ac7219bd82ab8f9ec4ef3ccde4b6f73bf8a622bb6115","algo":"sha256-rfc8785"}"#;

    #[test]
    fn an_intact_manifest_is_read_and_a_changed_one_is_not() {
        let read_back = read(SIGNED).unwrap();
        assert_eq!(read_back.registration.max_n, 60);
        let changed = SIGNED.replace("\"alpha\":0.05", "\"alpha\":0.1");
        assert!(matches!(
            read(&changed),
            Err(PeerManifestError::Hash { .. })
        ));
        let unknown = SIGNED.replace("sha256-rfc8785", "md5");
        assert_eq!(
            read(&unknown),
            Err(PeerManifestError::Algorithm("md5".to_owned()))
        );
    }

    #[test]
    fn a_changed_level_that_is_hashed_again_passes_which_is_why_the_hash_proves_no_author() {
        let changed = SIGNED.replace("\"alpha\":0.05", "\"alpha\":0.2");
        let hash = content_digest(&changed).unwrap().to_hex();
        let old = content_digest(SIGNED).unwrap();
        let again = changed.replace(&old.to_hex(), &hash);
        let found = read(&again).unwrap();
        assert!((found.registration.alpha - 0.2).abs() < 1e-15);
        // It is another manifest: what was registered is named by its digest.
        assert_ne!(found.content, old);
    }
}
