//! The rubric: its leaves, its hash, its rules, and its YAML in both directions.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::yaml::Document;
use clover_ground::yaml::NodePosition;
use clover_ground::yaml::YamlError;
use clover_num::Micro;
use serde::Serialize;

use super::engine::Obligation;
use super::engine::Rules;
use super::engine::Verification;
use super::evidence::Feature;
use super::leaf;
use super::leaf::Value;

/// Domain label of a rubric's hash.
pub const RUBRIC_LABEL: &str = "clover/rubric/v1";
/// Most bytes of a rubric's YAML.
const SIZE_MAX: usize = 8 << 10;
/// Most leaves of a rubric.
const LEAVES_MAX: usize = 100;
/// What every rubric says.
const MANDATORY: [&str; 3] = ["version", "target", "sdp_version"];

/// A rubric that is well formed: legal leaves that fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rubric {
    leaves: BTreeMap<String, Value>,
}

/// One leaf, as hashes and events hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leaf<'a> {
    /// Its path.
    pub path: &'a str,
    /// What stands there.
    pub value: &'a Value,
}

/// Why leaves are no rubric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct RubricFault {
    /// Path of the leaf.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Rubric {
    /// A rubric of these leaves; each is taken to fit its path.
    ///
    /// # Errors
    /// [`RubricFault`] where leaves are missing, do not fit together, or are too many.
    pub fn new(leaves: BTreeMap<String, Value>) -> Result<Self, RubricFault> {
        let fault = |path: &str, message: String| RubricFault {
            path: path.to_owned(),
            message,
        };
        for path in MANDATORY {
            if !leaves.contains_key(path) {
                return Err(fault(path, "expected it in every rubric".to_owned()));
            }
        }
        let together = [
            (
                "obligations.factual_adequacy.verification.mismatch_penalty",
                "obligations.factual_adequacy.verification.allowed_domains",
            ),
            (
                "guards.length_bias_cap.if_tokens_gt",
                "guards.length_bias_cap.max_raw_score",
            ),
            (
                "guards.length_bias_cap.max_raw_score",
                "guards.length_bias_cap.if_tokens_gt",
            ),
        ];
        for (path, other) in together {
            if leaves.contains_key(path) && !leaves.contains_key(other) {
                return Err(fault(path, format!("expected {other} beside it")));
            }
        }
        for (path, value) in &leaves {
            if let Value::List(list) = value
                && list.len() > leaf::LIST_MAX
            {
                let (most, found) = (leaf::LIST_MAX, list.len());
                return Err(fault(
                    path,
                    format!("expected at most {most} elements, found {found}"),
                ));
            }
        }
        if leaves.len() > LEAVES_MAX {
            let found = leaves.len();
            return Err(fault(
                "",
                format!("expected at most {LEAVES_MAX} leaves, found {found}"),
            ));
        }
        Ok(Self { leaves })
    }

    /// Reads a rubric: one YAML document with the one key `rubric`.
    ///
    /// # Errors
    /// [`YamlError`] with the place of what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, YamlError> {
        if bytes.len() > SIZE_MAX {
            let message = format!("expected at most {SIZE_MAX} bytes, found {}", bytes.len());
            return Err(YamlError {
                place: NodePosition::default(),
                message,
            });
        }
        let document = Document::parse(bytes)?;
        let root: canon::Value = document.decode()?;
        let at = |path: &str, message: String| YamlError {
            place: place(&document, path),
            message,
        };
        let body = match &root {
            canon::Value::Object(fields) => match fields.as_slice() {
                [(key, body)] if key == "rubric" => body,
                _ => return Err(at("", "expected the one key rubric".to_owned())),
            },
            _ => return Err(at("", "expected the one key rubric".to_owned())),
        };
        let mut leaves = BTreeMap::new();
        walk("", body, &mut leaves)
            .map_err(|(path, message)| at(&within("rubric", &path), message))?;
        Self::new(leaves).map_err(|fault| at(&within("rubric", &fault.path), fault.message))
    }

    /// Its leaves by path.
    pub fn leaves(&self) -> &BTreeMap<String, Value> {
        &self.leaves
    }

    /// What stands at a path.
    pub fn at(&self, path: &str) -> Option<&Value> {
        self.leaves.get(path)
    }

    /// Its leaves in the order in which they are hashed: by path.
    pub fn listed(&self) -> Vec<Leaf<'_>> {
        self.leaves
            .iter()
            .map(|(path, value)| Leaf { path, value })
            .collect()
    }

    /// SHA-256 of `clover/rubric/v1`, a zero byte and the canonical form of its leaves by path.
    pub fn hash(&self) -> Digest {
        canon::digest(RUBRIC_LABEL, &self.listed())
    }

    /// Its version, `MAJOR.MINOR`.
    pub fn version(&self) -> &str {
        self.text("version")
    }

    /// What it estimates: `Y` or `Y_star`.
    pub fn target(&self) -> &str {
        self.text("target")
    }

    /// The protocol by which people label.
    pub fn sdp_version(&self) -> &str {
        self.text("sdp_version")
    }

    fn text(&self, path: &str) -> &str {
        match self.leaves.get(path) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// What the engine runs.
    pub fn rules(&self) -> Rules {
        let mut rules = Rules::default();
        let guard = |name: &str| self.leaves.get(&format!("guards.{name}"));
        if let (Some(Value::Count(tokens)), Some(Value::Share(max))) = (
            guard("length_bias_cap.if_tokens_gt"),
            guard("length_bias_cap.max_raw_score"),
        ) {
            rules.length_bias_cap = Some((*tokens, *max));
        }
        if let Some(Value::Share(max)) = guard("confident_but_wrong_max") {
            rules.confident_but_wrong_max = Some(*max);
        }
        rules.tool_trace_consistency = guard("tool_trace_consistency") == Some(&Value::Flag(true));
        if let Some(Value::List(triggers)) = self.leaves.get("abstention.triggers") {
            rules.abstain_on.clone_from(triggers);
        }
        for (path, value) in &self.leaves {
            let obligation = path.strip_prefix("obligations.");
            if let Some((name, leaf)) = obligation.and_then(|rest| rest.split_once('.')) {
                let of = rules.obligations.entry(name.to_owned()).or_default();
                set(of, leaf, value);
            }
        }
        for of in rules.obligations.values_mut() {
            // Without a penalty nothing is subtracted.
            let penalty = of.verification.as_ref().map(|of| of.mismatch_penalty);
            if penalty == Some(Micro::default()) {
                of.verification = None;
            }
        }
        rules
    }

    /// Paths of the rules that can fire, in order: what a dead-rule report counts.
    pub fn rule_paths(&self) -> BTreeSet<String> {
        let rules = self.rules();
        let mut paths = BTreeSet::new();
        for (name, of) in &rules.obligations {
            let mut add = |leaf: &str| paths.insert(format!("obligations.{name}.{leaf}"));
            if of.verification.is_some() {
                add("verification.mismatch_penalty");
                if of.required == Some(true) {
                    add("required");
                }
            }
            if of.required == Some(false) {
                continue;
            }
            if of.concise {
                add("be_concise_by_default");
            }
            for feature in &of.requires {
                add(&format!("requires_{}", feature.name()));
            }
        }
        let guards = [
            (
                rules.length_bias_cap.is_some(),
                "guards.length_bias_cap.max_raw_score",
            ),
            (
                rules.tool_trace_consistency,
                "guards.tool_trace_consistency",
            ),
            (
                rules.confident_but_wrong_max.is_some(),
                "guards.confident_but_wrong_max",
            ),
            (!rules.abstain_on.is_empty(), "abstention.triggers"),
        ];
        let active = guards.into_iter().filter(|(active, _)| *active);
        paths.extend(active.map(|(_, path)| path.to_owned()));
        paths
    }

    /// Its YAML in one fixed form, which [`Rubric::parse`] reads back.
    pub fn to_yaml(&self) -> String {
        let mut out = "rubric:\n".to_owned();
        let mut above: Vec<&str> = Vec::new();
        let (head, rest): (Vec<_>, Vec<_>) = self
            .leaves
            .iter()
            .partition(|(path, _)| !path.contains('.'));
        for (path, value) in head.into_iter().rev().chain(rest) {
            let mut parts: Vec<_> = path.split('.').collect();
            let leaf = parts.pop().unwrap_or_default();
            let shared = parts
                .iter()
                .zip(&above)
                .take_while(|(new, old)| new == old)
                .count();
            for (depth, part) in parts.iter().enumerate().skip(shared) {
                out.push_str(&format!("{}{part}:\n", "  ".repeat(depth + 1)));
            }
            out.push_str(&format!(
                "{}{leaf}: {value}\n",
                "  ".repeat(parts.len() + 1)
            ));
            above = parts;
        }
        out
    }
}

/// Writes one leaf of an obligation into its rules.
fn set(of: &mut Obligation, leaf: &str, value: &Value) {
    match (leaf, value) {
        ("required", Value::Flag(flag)) => of.required = Some(*flag),
        ("penalty", Value::Share(share)) => of.penalty = Some(*share),
        ("be_concise_by_default", Value::Flag(flag)) => of.concise = *flag,
        ("verification.allowed_domains", Value::List(hosts)) => {
            let verification = of.verification.get_or_insert_with(Verification::default);
            verification.allowed_domains.clone_from(hosts);
        }
        ("verification.mismatch_penalty", Value::Share(share)) => {
            let verification = of.verification.get_or_insert_with(Verification::default);
            verification.mismatch_penalty = *share;
        }
        (leaf, Value::Flag(true)) => {
            let feature = leaf.strip_prefix("requires_").and_then(Feature::named);
            of.requires.extend(feature);
        }
        _ => {}
    }
}

/// Collects leaves below `path`; (path, message) of the first that does not belong.
fn walk(
    path: &str,
    node: &canon::Value,
    leaves: &mut BTreeMap<String, Value>,
) -> Result<(), (String, String)> {
    if leaf::kind_of(path).is_some() {
        let value =
            leaf::value_of(path, node).map_err(|unfit| (path.to_owned(), unfit.message()))?;
        leaves.insert(path.to_owned(), value);
        return Ok(());
    }
    if !leaf::is_branch(path) {
        return Err((path.to_owned(), "no rubric has this key".to_owned()));
    }
    let canon::Value::Object(fields) = node else {
        return Err((path.to_owned(), "expected a mapping".to_owned()));
    };
    for (key, value) in fields {
        if !leaf::is_segment(key) {
            let message = "expected a key of a-z, 0-9 and _".to_owned();
            return Err((within(path, key), message));
        }
        walk(&within(path, key), value, leaves)?;
    }
    Ok(())
}

/// A path below another.
pub(super) fn within(path: &str, key: &str) -> String {
    match (path, key) {
        ("", key) => key.to_owned(),
        (path, "") => path.to_owned(),
        (path, key) => format!("{path}.{key}"),
    }
}

/// Where a path stands, or the nearest above it.
pub(super) fn place(document: &Document, path: &str) -> NodePosition {
    let mut above = path;
    loop {
        if let Some(found) = document.place(above) {
            return NodePosition {
                path: path.to_owned(),
                ..found.clone()
            };
        }
        match above.rfind('.') {
            Some(at) => above = &above[..at],
            None if above.is_empty() => return NodePosition::default(),
            None => above = "",
        }
    }
}
