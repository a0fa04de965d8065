//! A patch to begin with: whole by its grammar, with the leaf that is to change marked, and what stands there now.

use std::collections::BTreeSet;

use super::leaf;
use super::leaf::Family;
use super::leaf::Kind;
use super::model::Rubric;

/// The two leaves of the length cap, of which a rubric has both or none.
const CAP: [&str; 2] = [
    "guards.length_bias_cap.if_tokens_gt",
    "guards.length_bias_cap.max_raw_score",
];
/// Column at which comments begin.
const COMMENT_AT: usize = 47;

/// The leaf that a patch of a family begins with.
fn usual(family: Family) -> &'static str {
    match family {
        Family::Abstention => "abstention.rule",
        Family::ContradictionCheck => "guards.confident_but_wrong_max",
        Family::EvidenceVerification => "obligations.factual_adequacy.required",
        Family::LengthBiasCap => CAP[1],
    }
}

/// What a leaf holds, in words.
fn holds(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "a whole number from 1",
        Kind::Flag => "true or false",
        Kind::Hosts => "a list of host names, as [who.int]",
        Kind::Share => "a share from 0 to 1",
        Kind::Tags => "a list of topics, as [legal advice]",
        Kind::Name | Kind::Prose | Kind::Target | Kind::Version => {
            "a text of at most 200 characters"
        }
    }
}

/// Leaves of a rubric that patches of a family may change.
fn leaves(rubric: &Rubric, family: Family) -> Vec<&str> {
    let paths = rubric.leaves().keys().map(String::as_str);
    paths
        .filter(|path| leaf::families_of(path).contains(&family))
        .collect()
}

/// What a patch can begin with in a rubric: families, and leaves by family.
pub fn choices(rubric: &Rubric) -> Vec<(Family, Vec<&str>)> {
    let of = |family| (family, leaves(rubric, family));
    Family::ALL.into_iter().map(of).collect()
}

/// A line with its comment.
fn commented(start: &str, comment: &str) -> String {
    format!("{start:<COMMENT_AT$} # {comment}\n")
}

/// A patch of a rubric to begin with, of a family or a leaf's dotted path, under a name that is in none of `ids`. The value of
/// the leaf is the one that stands there, or none: nothing changes before somebody says what. `None` for what is neither a
/// family nor a path that patches may change.
pub fn starter(rubric: &Rubric, wanted: &str, ids: &BTreeSet<String>) -> Option<String> {
    let named = Family::named(wanted);
    let family = named.or_else(|| leaf::families_of(wanted).first().copied())?;
    let path = match named {
        None => wanted,
        Some(_) => usual(family),
    };
    let kind = leaf::kind_of(path)?;
    let both = CAP.contains(&path) && rubric.at(path).is_none();
    let paths = if both { CAP.to_vec() } else { vec![path] };
    let stem = path.rsplit('.').next().unwrap_or(path).replace('_', "-");
    let mut names = (1_u64..).map(|number| format!("{stem}-{number}"));
    let id = names.find(|id| !ids.contains(id))?;
    let version = rubric.version();
    let mut text = format!(
        "# A patch of rubric {version}. Edit what is marked FILL, then: clover patch check FILE --iteration ID\npatch:\n"
    );
    text += &commented(
        &format!("  family: {}", family.as_str()),
        "every leaf that it changes is of this family",
    );
    text += &commented(&format!("  id: {id}"), "its name, once in a ledger");
    text += &commented(
        "  rationale: The judge errs on these answers.",
        "why, on one line, without quoting answers",
    );
    text += &commented("  changes:", "1 to 8 leaves by their dotted paths");
    for path in paths {
        let kind = leaf::kind_of(path).map_or("", holds);
        text += &match rubric.at(path) {
            Some(value) => commented(
                &format!("    {path}: {value}"),
                &format!("FILL: {kind}; this is what stands there now"),
            ),
            None => commented(
                &format!("    {path}:"),
                &format!("FILL: {kind}; nothing stands there now"),
            ),
        };
    }
    for other in leaves(rubric, family)
        .iter()
        .filter(|other| **other != path)
    {
        let value = rubric.at(other).map(ToString::to_string);
        text += &format!("    # {other}: {}\n", value.unwrap_or_default());
    }
    let is_told = matches!(
        path,
        "obligations.factual_adequacy.required" | "abstention.rule"
    ) || kind == Kind::Tags;
    text += "  constraints:\n";
    text += &commented(
        "    max_tokens_added: 60",
        "most tokens that it adds, 1 to 150",
    );
    text += &commented(
        &format!("    affects_rescore: {is_told}"),
        "true where the judge is told something else",
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::check::Context;
    use super::super::check::check;
    use super::super::patch::Code;
    use super::*;

    const RUBRIC: &str = r#"rubric:
  version: "1.0"
  target: Y
  sdp_version: v1
  obligations:
    factual_adequacy: {required: false}
    usefulness: {be_concise_by_default: true, penalty: 0.35}
  guards:
    confident_but_wrong_max: 0.4
  abstention:
    triggers: [dosing]
    rule: abstain where a dose is asked for
"#;

    fn checked(rubric: &Rubric, text: &str) -> Result<(), (Code, String)> {
        let none = BTreeSet::new();
        let context = Context {
            rubric,
            families: &Family::ALL.into(),
            frozen: &none,
            vocabulary: &none,
            ids: &none,
            hashes: &BTreeSet::new(),
            unverified: None,
        };
        let found = check(text.as_bytes(), &context);
        found.map(drop).map_err(|fault| (fault.code, fault.message))
    }

    /// What is written in place of the marked value.
    fn edited(text: &str, value: &str) -> String {
        let line = |line: &str| match (line.contains("FILL:"), line.split_once(": ")) {
            (true, Some((path, _))) if !line.starts_with('#') => format!("{path}: {value}\n"),
            _ => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn one_edit_makes_it_a_patch() {
        let rubric = Rubric::parse(RUBRIC.as_bytes()).unwrap();
        for (wanted, value) in [
            ("abstention", "another rule"),
            ("abstention.triggers", "[dosing, law]"),
            ("contradiction_check", "0.2"),
            ("evidence_verification", "true"),
            ("obligations.usefulness.be_concise_by_default", "false"),
            ("obligations.usefulness.penalty", "0.2"),
        ] {
            let text = starter(&rubric, wanted, &BTreeSet::new()).unwrap();
            let unedited = checked(&rubric, &text).map_err(|(code, _)| code);
            assert_eq!(unedited, Err(Code::Noop), "{wanted}\n{text}");
            let text = edited(&text, value);
            assert_eq!(checked(&rubric, &text), Ok(()), "{wanted}\n{text}");
        }
    }

    #[test]
    fn a_leaf_that_is_absent_is_asked_for() {
        let rubric = Rubric::parse(RUBRIC.as_bytes()).unwrap();
        let text = starter(&rubric, "length_bias_cap", &BTreeSet::new()).unwrap();
        assert_eq!(text.matches("FILL:").count(), 2, "{text}");
        let found = checked(&rubric, &text).map_err(|(code, _)| code);
        assert_eq!(found, Err(Code::Type), "{text}");
        for path in ["if_tokens_gt", "max_raw_score"] {
            assert!(text.contains(&format!("    guards.length_bias_cap.{path}: ")));
        }
    }

    #[test]
    fn a_name_that_was_used_is_not_taken_again() {
        let rubric = Rubric::parse(RUBRIC.as_bytes()).unwrap();
        let used = BTreeSet::from(["rule-1".to_owned()]);
        let text = starter(&rubric, "abstention.rule", &used).unwrap();
        assert!(text.contains("id: rule-2"), "{text}");
        for wanted in ["version", "guards", "length", "obligations.x.y"] {
            assert_eq!(starter(&rubric, wanted, &used), None, "{wanted}");
        }
    }
}
