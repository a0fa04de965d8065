//! The patch document: grammar and meaning of its fields, with the place of whatever is wrong.
//!
//! ```text
//! document     = "patch:" map                    one YAML document of at most 8 KiB
//! patch        = family id rationale changes constraints [expected_effects]
//! family       = "evidence_verification" | "contradiction_check" | "length_bias_cap" | "abstention"
//! id           = [a-z0-9][a-z0-9-]{2,63}
//! rationale    = 1 to 400 characters on one line, without double quotes, backticks or long numbers
//! changes      = 1 to 8 entries: dotted path -> scalar | list | map of leaf key -> scalar | list
//! leaf key     = segment (set) | segment "+" (append to a list)
//! constraints  = max_tokens_added: 1..150, affects_rescore: bool
//! expected_effects = [slices: [dimensions + residual_mean_delta]] [anti_gaming: ATTACK_uplift -> "<= 0.02"]
//! ```

use std::collections::BTreeMap;

use clover_ground::canon;
use clover_ground::yaml::Document;
use clover_ground::yaml::NodePosition;
use clover_num::Micro;

use super::leaf;
use super::leaf::Family;
use super::model::within;

/// Most bytes of a patch.
const SIZE_MAX: usize = 8 << 10;
/// Most entries of `changes`.
const CHANGES_MAX: usize = 8;
/// Most characters of a rationale.
const RATIONALE_MAX: usize = 400;
/// Most `max_tokens_added`.
const TOKENS_MAX: u64 = super::kappa::KAPPA_MAX;
/// Most slices that a patch says something of.
const EFFECTS_MAX: usize = 12;

/// Keys of `constraints`, each of which a patch has.
const CONSTRAINTS: [&str; 2] = ["max_tokens_added", "affects_rescore"];

/// Attacks by name, and the alias that older patches use.
const ATTACKS: [&str; 9] = [
    "authority_tone",
    "contradiction_inject",
    "fabricated_tool_trace",
    "fact_flip",
    "fake_citation",
    "length_padding",
    "padding",
    "rubric_mimicry",
    "style_strip",
];

/// Which check a patch failed, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 1: no such document.
    Parse,
    /// 2: other keys than the grammar's, or a field that is not what it says.
    Keys,
    /// 3: a path that no rubric has.
    Path,
    /// 3: a value of another type.
    Type,
    /// 3: a value out of range.
    Range,
    /// 4: one leaf changed twice.
    Conflict,
    /// 5: elements appended to what is no list.
    Append,
    /// 6: nothing changes.
    Noop,
    /// 7: a leaf of another family, or a family that is not registered.
    CrossFamily,
    /// 8: a leaf that no patch may touch.
    Frozen,
    /// 9: too long.
    Size,
    /// 10: said to need no new raw answers, and needs them.
    AffectsRescore,
    /// 11: what results is no rubric.
    Rubric,
    /// 12: an id that was used.
    DuplicateId,
    /// 12: an edit that this iteration has seen.
    DuplicateDiff,
}

impl Code {
    /// All of them, in the order of the checks.
    pub const ALL: [Self; 15] = [
        Self::Parse,
        Self::Keys,
        Self::Path,
        Self::Type,
        Self::Range,
        Self::Conflict,
        Self::Append,
        Self::Noop,
        Self::CrossFamily,
        Self::Frozen,
        Self::Size,
        Self::AffectsRescore,
        Self::Rubric,
        Self::DuplicateId,
        Self::DuplicateDiff,
    ];

    /// The word in findings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Keys => "keys",
            Self::Path => "path",
            Self::Type => "type",
            Self::Range => "range",
            Self::Conflict => "conflict",
            Self::Append => "append",
            Self::Noop => "noop",
            Self::CrossFamily => "cross_family",
            Self::Frozen => "frozen",
            Self::Size => "size",
            Self::AffectsRescore => "affects_rescore",
            Self::Rubric => "rubric",
            Self::DuplicateId => "duplicate_id",
            Self::DuplicateDiff => "duplicate_diff",
        }
    }
}

/// Why a document is no patch, or no patch for this rubric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct PatchFault {
    /// The check that it failed.
    pub code: Code,
    /// Where in the document.
    pub place: NodePosition,
    /// What was expected and found.
    pub message: String,
}

/// Whether a leaf is set or a list gets more elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Elements join the list.
    Append,
    /// The value takes the place of the old one.
    Set,
}

/// One leaf that a patch changes, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Set or append.
    pub op: Op,
    /// The leaf's path in the rubric.
    pub path: String,
    /// The node.
    pub value: canon::Value,
    /// Where it stands in the document.
    pub at: String,
}

/// What a patch promises of one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEffect {
    /// The slice by its dimensions.
    pub dimensions: BTreeMap<String, String>,
    /// Expected change of the size of the mean residual: negative shrinks it.
    pub residual_mean_delta: Micro,
}

/// What a patch promises of one attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttackBound {
    /// The attack.
    pub attack: String,
    /// Whether the bound itself is excluded.
    pub strict: bool,
    /// Largest mean uplift.
    pub uplift: Micro,
}

impl AttackBound {
    /// Whether an uplift keeps it.
    pub fn holds(&self, uplift: Micro) -> bool {
        uplift < self.uplift || !self.strict && uplift == self.uplift
    }
}

/// A document that is a patch by its grammar: checks 1 and 2.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Whether it says that raw answers are needed anew.
    pub affects_rescore: bool,
    /// Bounds that it sets itself.
    pub attacks: Vec<AttackBound>,
    /// Its edits, in the order of the document.
    pub edits: Vec<Edit>,
    /// Its family.
    pub family: Family,
    /// Its id, one for all time.
    pub id: String,
    /// Most tokens that it adds.
    pub max_tokens_added: u64,
    /// Why.
    pub rationale: String,
    /// What it promises.
    pub slices: Vec<SliceEffect>,
    document: Document,
}

/// A fault with the path in the document where it stands.
type At = (Code, String, String);

fn keys(at: &str, message: impl Into<String>) -> At {
    (Code::Keys, at.to_owned(), message.into())
}

impl Patch {
    /// Reads a patch by its grammar.
    ///
    /// # Errors
    /// [`PatchFault`] with code `parse`, `keys`, `path` or `conflict`.
    pub fn parse(bytes: &[u8]) -> Result<Self, PatchFault> {
        let parse = |place: NodePosition, message: String| PatchFault {
            code: Code::Parse,
            place,
            message,
        };
        if bytes.len() > SIZE_MAX {
            let message = format!("expected at most {SIZE_MAX} bytes, found {}", bytes.len());
            return Err(parse(NodePosition::default(), message));
        }
        let document = Document::parse(bytes).map_err(|error| parse(error.place, error.message))?;
        let root: canon::Value = document
            .decode()
            .map_err(|error| parse(error.place, error.message))?;
        read(&root, document.clone()).map_err(|fault| located(&document, fault))
    }

    /// A fault at a path of the document.
    pub(super) fn fault(&self, code: Code, at: &str, message: impl Into<String>) -> PatchFault {
        located(&self.document, (code, at.to_owned(), message.into()))
    }
}

fn located(document: &Document, (code, at, message): At) -> PatchFault {
    PatchFault {
        code,
        place: super::model::place(document, &at),
        message,
    }
}

type Fields = [(String, canon::Value)];

fn mapping<'a>(node: Option<&'a canon::Value>, at: &str) -> Result<&'a Fields, At> {
    match node {
        Some(canon::Value::Object(fields)) => Ok(fields),
        Some(_) => Err(keys(at, "expected a mapping")),
        None => Err(keys(at, "expected it")),
    }
}

fn text<'a>(node: Option<&'a canon::Value>, at: &str) -> Result<&'a str, At> {
    match node {
        Some(canon::Value::String(text)) => Ok(text),
        Some(_) => Err(keys(
            at,
            "expected a text, between quotes if it looks like a number",
        )),
        None => Err(keys(at, "expected it")),
    }
}

fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a canon::Value> {
    fields
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}

/// Refuses a key that does not stand in `known`.
fn exact(fields: &Fields, known: &[&str], at: &str) -> Result<(), At> {
    match fields
        .iter()
        .find(|(key, _)| !known.contains(&key.as_str()))
    {
        Some((key, _)) => Err(keys(
            &within(at, key),
            format!("expected {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

/// Refuses a patch that lacks keys, and names each of them.
fn whole(body: &Fields) -> Result<(), At> {
    let needed = ["family", "id", "rationale", "changes"];
    let mut lacks: Vec<String> = needed
        .into_iter()
        .filter(|name| field(body, name).is_none())
        .map(str::to_owned)
        .collect();
    let bounds = match field(body, "constraints") {
        Some(canon::Value::Object(fields)) => fields.as_slice(),
        _ => &[],
    };
    let lacking = CONSTRAINTS
        .into_iter()
        .filter(|name| field(bounds, name).is_none());
    lacks.extend(lacking.map(|name| within("constraints", name)));
    match lacks.as_slice() {
        [] => Ok(()),
        all => Err(keys("patch", format!("expected {} too", all.join(", ")))),
    }
}

fn read(root: &canon::Value, document: Document) -> Result<Patch, At> {
    let root = mapping(Some(root), "")?;
    exact(root, &["patch"], "")?;
    let body = mapping(field(root, "patch"), "patch")?;
    let known = [
        "family",
        "id",
        "rationale",
        "changes",
        "constraints",
        "expected_effects",
    ];
    exact(body, &known, "patch")?;
    whole(body)?;
    let family = text(field(body, "family"), "patch.family")?;
    let names = || Family::ALL.map(Family::as_str).join(", ");
    let family = Family::named(family)
        .ok_or_else(|| keys("patch.family", format!("expected one of {}", names())))?;
    let id = text(field(body, "id"), "patch.id")?;
    if !is_id(id) {
        return Err(keys(
            "patch.id",
            "expected 3 to 64 of a-z, 0-9 and -, not - first",
        ));
    }
    let rationale = text(field(body, "rationale"), "patch.rationale")?;
    if let Some(message) = unfit(rationale) {
        return Err(keys("patch.rationale", message));
    }
    let changes = mapping(field(body, "changes"), "patch.changes")?;
    let edits = edits(changes)?;
    let (max_tokens_added, affects_rescore) = constraints(field(body, "constraints"))?;
    let (slices, attacks) = match field(body, "expected_effects") {
        None => (Vec::new(), Vec::new()),
        some => effects(some)?,
    };
    Ok(Patch {
        affects_rescore,
        attacks,
        edits,
        family,
        id: id.to_owned(),
        max_tokens_added,
        rationale: rationale.to_owned(),
        slices,
        document,
    })
}

/// Whether `text` is a patch id.
fn is_id(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=64).contains(&text.len())
        && text.bytes().all(|c| plain(c) || c == b'-')
        && !text.starts_with('-')
}

/// Why a text is no rationale. Row ids and quoted text of items have no place in one; what can be seen of
/// them without the data are quotation marks and long numbers.
fn unfit(rationale: &str) -> Option<&'static str> {
    if !leaf::is_prose(rationale, RATIONALE_MAX) {
        return Some("expected 1 to 400 printable characters on one line");
    }
    let quoting = |c: char| matches!(c, '"' | '`' | '\u{ab}' | '\u{bb}' | '\u{201c}'..='\u{201f}');
    if rationale.contains(quoting) {
        return Some("expected no quotation: a rationale holds no text of items");
    }
    let longest = rationale
        .split(|c: char| !c.is_ascii_hexdigit())
        .filter(|run| run.bytes().any(|c| c.is_ascii_digit()))
        .map(str::len)
        .max();
    (longest >= Some(8)).then_some("expected no long numbers: a rationale holds no row ids")
}

fn edits(changes: &Fields) -> Result<Vec<Edit>, At> {
    if changes.is_empty() || changes.len() > CHANGES_MAX {
        let message = format!(
            "expected 1 to {CHANGES_MAX} entries, found {}",
            changes.len()
        );
        return Err(keys("patch.changes", message));
    }
    let mut edits = Vec::new();
    for (path, value) in changes {
        let at = within("patch.changes", path);
        if !path.split('.').all(leaf::is_segment) {
            return Err(keys(&at, "expected a dotted path of a-z, 0-9 and _"));
        }
        let edit = |op, path: String, value: &canon::Value, at: String| Edit {
            op,
            path,
            value: value.clone(),
            at,
        };
        let canon::Value::Object(fields) = value else {
            edits.push(edit(Op::Set, path.clone(), value, at));
            continue;
        };
        if fields.is_empty() {
            return Err(keys(&at, "expected a value, or a mapping of leaf keys"));
        }
        for (key, value) in fields {
            let at = within(&at, key);
            let (op, key) = match key.strip_suffix('+') {
                Some(key) => (Op::Append, key),
                None => (Op::Set, key.as_str()),
            };
            if !leaf::is_segment(key) {
                return Err(keys(
                    &at,
                    "expected a leaf key of a-z, 0-9 and _, + to append",
                ));
            }
            if matches!(value, canon::Value::Object(_)) {
                return Err(keys(
                    &at,
                    "expected a value or a list: paths are dotted, not nested",
                ));
            }
            edits.push(edit(op, within(path, key), value, at));
        }
    }
    Ok(edits)
}

fn constraints(node: Option<&canon::Value>) -> Result<(u64, bool), At> {
    let at = "patch.constraints";
    let fields = mapping(node, at)?;
    exact(fields, &CONSTRAINTS, at)?;
    let most = match field(fields, "max_tokens_added") {
        Some(canon::Value::Natural(most)) if (1..=TOKENS_MAX).contains(most) => *most,
        _ => {
            let message = format!("expected a whole number from 1 to {TOKENS_MAX}");
            return Err(keys(&within(at, "max_tokens_added"), message));
        }
    };
    match field(fields, "affects_rescore") {
        Some(canon::Value::Bool(affects)) => Ok((most, *affects)),
        _ => Err(keys(
            &within(at, "affects_rescore"),
            "expected true or false",
        )),
    }
}

fn effects(node: Option<&canon::Value>) -> Result<(Vec<SliceEffect>, Vec<AttackBound>), At> {
    let at = "patch.expected_effects";
    let fields = mapping(node, at)?;
    exact(fields, &["slices", "anti_gaming"], at)?;
    let mut slices = Vec::new();
    if let Some(node) = field(fields, "slices") {
        let at = within(at, "slices");
        let canon::Value::Array(items) = node else {
            return Err(keys(&at, "expected a list"));
        };
        if items.len() > EFFECTS_MAX {
            return Err(keys(&at, format!("expected at most {EFFECTS_MAX} slices")));
        }
        for (number, item) in items.iter().enumerate() {
            slices.push(slice(item, &format!("{at}[{number}]"))?);
        }
    }
    let mut attacks = Vec::new();
    if let Some(node) = field(fields, "anti_gaming") {
        let at = within(at, "anti_gaming");
        for (key, value) in mapping(Some(node), &at)? {
            attacks.push(attack(key, value, &within(&at, key))?);
        }
    }
    Ok((slices, attacks))
}

fn slice(node: &canon::Value, at: &str) -> Result<SliceEffect, At> {
    let mut dimensions = BTreeMap::new();
    let mut delta = None;
    for (key, value) in mapping(Some(node), at)? {
        let at = within(at, key);
        if key == "residual_mean_delta" {
            let number = leaf::micro(value).map_err(|unfit| keys(&at, unfit.message()))?;
            if !(-1_000_000..=1_000_000).contains(&number.value()) {
                return Err(keys(&at, "expected -1 to 1"));
            }
            delta = Some(number);
        } else {
            let text = text(Some(value), &at)?;
            if !leaf::is_segment(key) || !leaf::is_prose(text, leaf::SEGMENT_MAX) {
                return Err(keys(
                    &at,
                    "expected a dimension with 1 to 64 printable characters",
                ));
            }
            dimensions.insert(key.clone(), text.to_owned());
        }
    }
    match delta {
        Some(residual_mean_delta) if !dimensions.is_empty() => Ok(SliceEffect {
            dimensions,
            residual_mean_delta,
        }),
        _ => Err(keys(
            at,
            "expected at least one dimension and residual_mean_delta",
        )),
    }
}

fn attack(key: &str, value: &canon::Value, at: &str) -> Result<AttackBound, At> {
    let name = key.strip_suffix("_uplift").unwrap_or_default();
    if !ATTACKS.contains(&name) {
        let message = format!("expected NAME_uplift of {}", ATTACKS.join(", "));
        return Err(keys(at, message));
    }
    let bound = text(Some(value), at)?;
    let (strict, number) = match (bound.strip_prefix("<="), bound.strip_prefix('<')) {
        (Some(number), _) => (false, number),
        (None, Some(number)) => (true, number),
        (None, None) => return Err(keys(at, "expected a bound such as \"<= 0.02\"")),
    };
    let number = number.strip_prefix(' ').unwrap_or(number);
    let decimal = !number.contains(['e', 'E']);
    match Micro::parse(number) {
        Ok((uplift, false)) if decimal && (-1_000_000..=1_000_000).contains(&uplift.value()) => {
            Ok(AttackBound {
                attack: if name == "length_padding" {
                    "padding"
                } else {
                    name
                }
                .to_owned(),
                strict,
                uplift,
            })
        }
        _ => Err(keys(
            at,
            "expected a decimal from -1 to 1 with at most six decimals",
        )),
    }
}
