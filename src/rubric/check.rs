//! The twelve checks of a patch against a rubric, in order; the first failure ends them.
//!
//! A mapping under a path merges leaf by leaf and never replaces what stands beside it. There is no delete:
//! a list loses an element when the whole list is set, a rule is switched off with `false`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;

use super::kappa;
use super::kappa::Length;
use super::leaf;
use super::leaf::Class;
use super::leaf::Family;
use super::leaf::Unfit;
use super::leaf::Value;
use super::model::Rubric;
use super::patch::Code;
use super::patch::Edit;
use super::patch::Op;
use super::patch::Patch;
use super::patch::PatchFault;

/// Domain label of a patch's hash.
pub const PATCH_LABEL: &str = "clover/patch/v1";

const HOSTS: &str = "obligations.factual_adequacy.verification.allowed_domains";

/// What a patch is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The rubric that it edits.
    pub rubric: &'a Rubric,
    /// Families that are registered.
    pub families: &'a BTreeSet<Family>,
    /// Paths that are frozen beyond those that no patch may touch; all below them are too.
    pub frozen: &'a BTreeSet<String>,
    /// Topics that the extractor knows.
    pub vocabulary: &'a BTreeSet<String>,
    /// Hosts of stored citations that nobody verified; `None` when the stored answers are not at hand.
    pub unverified: Option<&'a BTreeSet<String>>,
    /// Patch ids that were ever used.
    pub ids: &'a BTreeSet<String>,
    /// Hashes of the edits that this iteration has seen.
    pub hashes: &'a BTreeSet<Digest>,
}

/// One leaf that really changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// Set or append.
    #[serde(serialize_with = "op_word")]
    pub op: Op,
    /// The leaf's path.
    pub path: String,
    /// The new value, or the new elements.
    pub value: Value,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn op_word<S: serde::Serializer>(op: &Op, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(op.as_str())
}

impl Op {
    /// The word in diffs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Set => "set",
        }
    }
}

/// A patch that passed every check.
#[derive(Clone, Debug)]
pub struct CheckedPatch {
    /// What each changed leaf needs, in the order of the diff.
    pub classes: Vec<Class>,
    /// What changes, by path.
    pub diff: Vec<Change>,
    /// Its hash: SHA-256 of `clover/patch/v1`, a zero byte and the canonical form of the diff.
    pub hash: Digest,
    /// Its code length.
    pub length: Length,
    /// Whether new raw answers are needed; `None` when only stored answers could tell.
    pub needs_rescore: Option<bool>,
    /// What results. Its version is still the old one.
    pub rubric: Rubric,
    /// Paths whose change needs two approvals.
    pub two_key: Vec<String>,
}

/// Checks 1 to 12 of a document.
///
/// # Errors
/// [`PatchFault`] of the first check that fails.
pub fn check(bytes: &[u8], context: &Context<'_>) -> Result<(Patch, CheckedPatch), PatchFault> {
    let patch = Patch::parse(bytes)?;
    let checked = check_patch(&patch, context)?;
    Ok((patch, checked))
}

/// Checks 3 to 12 of a patch that has the form of one.
///
/// # Errors
/// [`PatchFault`] of the first check that fails.
pub fn check_patch(patch: &Patch, context: &Context<'_>) -> Result<CheckedPatch, PatchFault> {
    let values = typed(patch)?;
    let before = context.rubric.leaves();
    let mut after = before.clone();
    let mut diff = Vec::new();
    for (edit, value) in patch.edits.iter().zip(values) {
        diff.extend(apply(patch, edit, value, &mut after)?.map(|change| (change, &edit.at)));
    }
    if diff.is_empty() {
        let message = "expected a change: every leaf already stands as the patch wants it";
        return Err(patch.fault(Code::Noop, "patch.changes", message));
    }
    diff.sort_by(|(a, _), (b, _)| (&a.path, a.op).cmp(&(&b.path, b.op)));
    allowed(patch, context, &diff)?;
    let length = kappa::length(before, &after);
    sized(patch, &length)?;
    let diff: Vec<_> = diff.into_iter().map(|(change, _)| change).collect();
    let classes = diff
        .iter()
        .map(|change| class_of(change, before.get(&change.path), context.vocabulary))
        .collect::<Vec<_>>();
    let needs_rescore = needs_rescore(&classes, before, &after, context);
    if needs_rescore == Some(true) && !patch.affects_rescore {
        let message = "expected true: the change needs new raw answers";
        let at = "patch.constraints.affects_rescore";
        return Err(patch.fault(Code::AffectsRescore, at, message));
    }
    let rubric = Rubric::new(after)
        .map_err(|fault| patch.fault(Code::Rubric, "patch.changes", fault.to_string()))?;
    let hash = hash_of(&diff);
    if context.ids.contains(&patch.id) {
        let message = format!("expected an id that no patch had, found {}", patch.id);
        return Err(patch.fault(Code::DuplicateId, "patch.id", message));
    }
    if context.hashes.contains(&hash) {
        let message = "expected an edit that this iteration has not seen";
        return Err(patch.fault(Code::DuplicateDiff, "patch.changes", message));
    }
    let two_key = diff
        .iter()
        .filter(|change| needs_two_keys(change, before.get(&change.path)))
        .map(|change| change.path.clone())
        .collect();
    Ok(CheckedPatch {
        classes,
        diff,
        hash,
        length,
        needs_rescore,
        rubric,
        two_key,
    })
}

/// SHA-256 of `clover/patch/v1`, a zero byte and the canonical form of a diff.
pub fn hash_of(diff: &[Change]) -> Digest {
    canon::digest(PATCH_LABEL, diff)
}

/// Check 3, paths and values, then check 4, each leaf once.
fn typed(patch: &Patch) -> Result<Vec<Value>, PatchFault> {
    let mut values = Vec::new();
    for edit in &patch.edits {
        if leaf::kind_of(&edit.path).is_none() {
            let message = format!("no rubric has {}", edit.path);
            return Err(patch.fault(Code::Path, &edit.at, message));
        }
        // What is appended has the type of the list's elements; that there is a list is check 5.
        let listed = leaf::kind_of(&edit.path).is_some_and(leaf::Kind::is_list);
        if edit.op == Op::Append && !listed {
            values.push(Value::Flag(false));
            continue;
        }
        values.push(match leaf::value_of(&edit.path, &edit.value) {
            Ok(value) => value,
            Err(Unfit::Type(message)) => return Err(patch.fault(Code::Type, &edit.at, message)),
            Err(Unfit::Range(message)) => return Err(patch.fault(Code::Range, &edit.at, message)),
        });
    }
    let mut seen = BTreeSet::new();
    for edit in &patch.edits {
        if !seen.insert(&edit.path) {
            let message = format!("expected each leaf once, found {} again", edit.path);
            return Err(patch.fault(Code::Conflict, &edit.at, message));
        }
    }
    Ok(values)
}

/// Check 5, and what of check 6 concerns one leaf: `None` when nothing changes.
fn apply(
    patch: &Patch,
    edit: &Edit,
    value: Value,
    after: &mut BTreeMap<String, Value>,
) -> Result<Option<Change>, PatchFault> {
    let change = |value| Change {
        op: edit.op,
        path: edit.path.clone(),
        value,
    };
    match edit.op {
        Op::Set if after.get(&edit.path) == Some(&value) => Ok(None),
        Op::Set => {
            after.insert(edit.path.clone(), value.clone());
            Ok(Some(change(value)))
        }
        Op::Append => {
            let Value::List(new) = value else {
                let message = format!("expected a list to append to, found {}", edit.path);
                return Err(patch.fault(Code::Append, &edit.at, message));
            };
            let old = after
                .entry(edit.path.clone())
                .or_insert_with(|| Value::List(BTreeSet::new()));
            let Value::List(old) = old else {
                return Ok(None);
            };
            let new: BTreeSet<_> = new.difference(old).cloned().collect();
            if new.is_empty() {
                // Appending nothing to nothing leaves no list behind.
                if old.is_empty() {
                    after.remove(&edit.path);
                }
                return Ok(None);
            }
            old.extend(new.iter().cloned());
            Ok(Some(change(Value::List(new))))
        }
    }
}

/// Checks 7 and 8. A leaf that no patch may touch belongs to no family; check 8 names it.
fn allowed(
    patch: &Patch,
    context: &Context<'_>,
    diff: &[(Change, &String)],
) -> Result<(), PatchFault> {
    if !context.families.contains(&patch.family) {
        let known: Vec<_> = context.families.iter().map(|of| of.as_str()).collect();
        let message = format!("expected a registered family: {}", known.join(", "));
        return Err(patch.fault(Code::CrossFamily, "patch.family", message));
    }
    for (change, at) in diff {
        let families = leaf::families_of(&change.path);
        if !families.is_empty() && !families.contains(&patch.family) {
            let of: Vec<_> = families.iter().map(|of| of.as_str()).collect();
            let (path, of) = (&change.path, of.join(" or "));
            let message = format!(
                "expected a leaf of {}, {path} is of {of}",
                patch.family.as_str()
            );
            return Err(patch.fault(Code::CrossFamily, at, message));
        }
    }
    let frozen = |path: &str| {
        let under = |top: &String| {
            path.strip_prefix(top.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        leaf::families_of(path).is_empty() || context.frozen.iter().any(under)
    };
    match diff.iter().find(|(change, _)| frozen(&change.path)) {
        Some((change, at)) => {
            let message = format!("no patch may touch {}", change.path);
            Err(patch.fault(Code::Frozen, at, message))
        }
        None => Ok(()),
    }
}

/// Check 9.
fn sized(patch: &Patch, length: &Length) -> Result<(), PatchFault> {
    let caps = [
        ("tokens added", length.tokens_added, patch.max_tokens_added),
        ("tokens added", length.tokens_added, kappa::KAPPA_MAX),
        ("code length", length.kappa(), kappa::KAPPA_MAX),
        ("new fields", length.new_fields, kappa::NEW_FIELDS_MAX),
    ];
    match caps.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => {
            let message = format!("expected {what} of at most {most}, found {found}");
            Err(patch.fault(Code::Size, "patch.changes", message))
        }
        None => Ok(()),
    }
}

/// What a change of one leaf needs.
pub fn class_of(change: &Change, old: Option<&Value>, vocabulary: &BTreeSet<String>) -> Class {
    match change.path.as_str() {
        "obligations.factual_adequacy.required" | "abstention.rule" => Class::Rescore,
        "abstention.triggers" => {
            let known = moved(change, old)
                .iter()
                .all(|tag| vocabulary.contains(tag));
            if known {
                Class::Recompute
            } else {
                Class::Rescore
            }
        }
        HOSTS => {
            let had = elements(old);
            let added = elements(Some(&change.value)).difference(&had).count();
            if added > 0 {
                Class::Conditional
            } else {
                Class::Recompute
            }
        }
        _ => Class::Recompute,
    }
}

fn elements(value: Option<&Value>) -> BTreeSet<String> {
    match value {
        Some(Value::List(items)) => items.clone(),
        _ => BTreeSet::new(),
    }
}

/// Elements that come or go.
fn moved(change: &Change, old: Option<&Value>) -> BTreeSet<String> {
    let (old, new) = (elements(old), elements(Some(&change.value)));
    match change.op {
        Op::Append => new,
        Op::Set => new.symmetric_difference(&old).cloned().collect(),
    }
}

fn needs_rescore(
    classes: &[Class],
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
    context: &Context<'_>,
) -> Option<bool> {
    match classes.iter().max() {
        Some(Class::Rescore) => Some(true),
        Some(Class::Conditional) => {
            let (old, new) = (elements(before.get(HOSTS)), elements(after.get(HOSTS)));
            let added: Vec<_> = new.difference(&old).collect();
            let listed = |host: &String| {
                added
                    .iter()
                    .any(|domain| super::evidence::is_under(host, domain))
            };
            context.unverified.map(|hosts| hosts.iter().any(listed))
        }
        _ => Some(false),
    }
}

/// Whether a change needs two approvals: guards, abstention, or an obligation that is switched off.
pub fn needs_two_keys(change: &Change, old: Option<&Value>) -> bool {
    let off = change.value == Value::Flag(false);
    let required = change.path.ends_with(".required");
    change.path.starts_with("guards.")
        || change.path.starts_with("abstention.")
        || off && (required || old == Some(&Value::Flag(true)))
}

/// Whether a change of this path needs fresh labels before it is deployed: guards, abstention, any `required`.
pub fn is_hard_rule(path: &str) -> bool {
    path.starts_with("guards.") || path.starts_with("abstention.") || path.ends_with(".required")
}

/// What one rubric has and another has not, as the changes that lead from the first to the second; leaves that
/// only the first has are listed beside them, since no change takes a leaf away.
pub fn between(before: &Rubric, after: &Rubric) -> (Vec<Change>, Vec<String>) {
    let changes = after
        .leaves()
        .iter()
        .filter(|(path, value)| before.at(path) != Some(value));
    let changes = changes.map(|(path, value)| Change {
        op: Op::Set,
        path: path.clone(),
        value: value.clone(),
    });
    let gone = before
        .leaves()
        .keys()
        .filter(|path| after.at(path).is_none());
    (changes.collect(), gone.cloned().collect())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
