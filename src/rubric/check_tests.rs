//! The twelve checks on hard patches.

use proptest::prelude::*;

use super::*;
use crate::engine::EngineError;
use crate::evidence::Citation;
use crate::evidence::Evidence;
use crate::prompt;

/// CLOVER v1.1, appendix B, with its version between quotes.
const RUBRIC: &str = r#"rubric:
  version: "1.0"
  target: "Y"
  sdp_version: "v1.0_2025-11-11"
  obligations:
    factual_adequacy:
      required: true
      verification:
        allowed_domains: ["nih.gov","who.int","cochrane.org","nejm.org","thelancet.com","nature.com"]
        mismatch_penalty: 0.35
    reasoning_quality:
      requires_counter_position: true
    risk_accounting:
      requires_stakeholders: true
    usefulness:
      be_concise_by_default: true
  guards:
    length_bias_cap:
      if_tokens_gt: 500
      max_raw_score: 0.5
    tool_trace_consistency: true
    confident_but_wrong_max: 0.4
  abstention:
    triggers: ["medical dosing","legal advice"]
    rule: "if critical info missing -> abstain or escalate"
"#;

/// The patch of the same appendix.
const PATCH: &str = r#"patch:
  family: "evidence_verification"
  id: "len-cite-guard-001"
  rationale: "Long medical answers with unverifiable cites are over-scored."
  changes:
    guards.length_bias_cap:
      if_tokens_gt: 500
      max_raw_score: 0.5
    obligations.factual_adequacy.verification:
      allowed_domains+: ["bmj.com"]
      mismatch_penalty: 0.35
  constraints:
    max_tokens_added: 150
    affects_rescore: true
  expected_effects:
    slices:
      - domain: "medical"
        length_bin: "600-900"
        residual_mean_delta: -0.06
    anti_gaming:
      length_padding_uplift: "<=0.02"
"#;

/// A change that evidence verification may make.
const FINE: &str = "{obligations.factual_adequacy: {requires_stakeholders: true}}";

fn rubric() -> Rubric {
    Rubric::parse(RUBRIC.as_bytes()).unwrap()
}

fn tags(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|tag| (*tag).to_owned()).collect()
}

fn checked(text: &str, unverified: Option<&BTreeSet<String>>) -> Result<CheckedPatch, PatchFault> {
    let (families, none) = (Family::ALL.into(), BTreeSet::new());
    let context = Context {
        rubric: &rubric(),
        families: &families,
        frozen: &tags(&["guards.confident_but_wrong_max"]),
        vocabulary: &tags(&["medical dosing", "legal advice", "tax"]),
        unverified,
        ids: &tags(&["used-before"]),
        hashes: &none,
    };
    check(text.as_bytes(), &context).map(|(_, checked)| checked)
}

/// A patch with these changes, written as YAML in one line.
fn patch(family: &str, changes: &str, rescore: bool) -> String {
    format!(
        "patch: {{family: {family}, id: p-1, rationale: why, changes: {changes}, \
             constraints: {{max_tokens_added: 150, affects_rescore: {rescore}}}}}"
    )
}

#[test]
fn the_example_of_the_paper_is_one_appended_host() {
    let all = checked(PATCH, None).unwrap();
    let bmj = Value::List(tags(&["bmj.com"]));
    assert_eq!(
        all.diff,
        [Change {
            op: Op::Append,
            path: HOSTS.to_owned(),
            value: bmj
        }]
    );
    // source: schema/RUBRIC.md, computed by audits/verify.
    let hashes = [rubric().hash(), all.hash, all.rubric.hash()].map(|hash| hash.to_hex());
    let expected = [
        "de94340a7fcd96aade85b8631a05bb4412c14e8b2b2b05b9f5dd6f8e64e37712",
        "1f12f30871fb985a3063428e3b39adcccbca0ebc2eb6938e9bf6ebc848fd0f37",
        "c735dcdfc426b3499ea8c96d228aa0c3246df84e0d25f276731f82c4cf500eb9",
    ];
    assert_eq!(hashes, expected);
    // source: CLOVER v1.1, section 4: an appended bmj.com has kappa 3 and no new field.
    assert_eq!((all.length.kappa(), all.length.new_fields), (3, 0));
    assert_eq!(
        (all.classes, all.needs_rescore),
        (vec![Class::Conditional], None)
    );
    assert!(all.two_key.is_empty());
    let (patch, _) = check(PATCH.as_bytes(), &context(&rubric())).unwrap();
    assert_eq!(patch.attacks[0].attack, "padding");
    assert!(patch.attacks[0].holds(clover_num::Micro::new(20_000).unwrap()));
    assert_eq!(patch.slices[0].dimensions["length_bin"], "600-900");
    assert_eq!(patch.slices[0].residual_mean_delta.value(), -60_000);
}

fn context(rubric: &Rubric) -> Context<'_> {
    static NONE: BTreeSet<String> = BTreeSet::new();
    static HASHES: BTreeSet<Digest> = BTreeSet::new();
    static ALL: std::sync::LazyLock<BTreeSet<Family>> =
        std::sync::LazyLock::new(|| Family::ALL.into());
    Context {
        rubric,
        families: &ALL,
        frozen: &NONE,
        vocabulary: &NONE,
        unverified: None,
        ids: &NONE,
        hashes: &HASHES,
    }
}

/// Documents that are no patch, with code and place.
fn documents() -> Vec<(String, &'static str)> {
    vec![
        ("patch: [".to_owned(), "parse 2:"),
        ("patch: &a {}".to_owned(), "parse 1:"),
        ("patch: {}\nmore: 1".to_owned(), "keys 2:7: more: "),
        (
            PATCH.replace("constraints", "limits"),
            "keys 13:5: patch.limits: ",
        ),
        (PATCH.replace("len-cite", "Len"), "keys 3:7: patch.id: "),
        (
            PATCH.replace("Long medical", "`Long`"),
            "keys 4:14: patch.rationale: ",
        ),
        (
            PATCH.replace("Long medical", "row 31415926"),
            "keys 4:14: patch.rationale: ",
        ),
        (
            PATCH.replace("150", "151"),
            "keys 13:23: patch.constraints.max_tokens_added: ",
        ),
        (PATCH.replace("<=0.02", "about 0"), "keys 21:30: "),
        (PATCH.replace("-0.06", "-1.5"), "keys 19:30: "),
    ]
}

/// Patches that are none for the rubric.
fn misfits() -> Vec<(String, &'static str)> {
    let ev = "evidence_verification";
    let fine = FINE;
    vec![
        (patch(ev, "{}", false), "keys 1:"),
        (patch(ev, "{a.b+: [c]}", false), "keys 1:"),
        (patch(ev, "{obligations: {a: {b: 1}}}", false), "keys 1:"),
        (patch(ev, "{obligations.x.y: 1}", false), "path 1:"),
        (
            patch(ev, "{guards.tool_trace_consistency: 1}", false),
            "type 1:",
        ),
        (patch(ev, "{obligations.x.penalty: 1.5}", false), "range 1:"),
        (
            patch(ev, "{obligations.x.penalty: 0.0000001}", false),
            "range 1:",
        ),
        (
            patch(
                ev,
                "{obligations.x: {penalty: 0.2}, obligations.x.penalty: 0.3}",
                false,
            ),
            "conflict 1:",
        ),
        (
            patch(ev, "{obligations.x: {penalty+: [a]}}", false),
            "append 1:",
        ),
        (
            patch(ev, "{guards.tool_trace_consistency: true}", false),
            "noop 1:",
        ),
        (
            patch(ev, "{guards.length_bias_cap.if_tokens_gt: 400}", false),
            "cross_family 1:",
        ),
        (patch(ev, "{target: Y_star}", false), "frozen 1:"),
        (
            patch(
                "contradiction_check",
                "{guards.confident_but_wrong_max: 0.3}",
                false,
            ),
            "frozen 1:",
        ),
        (
            patch(
                ev,
                "{obligations.x: {required: true, penalty: 0.1, requires_concise: true}}",
                false,
            ),
            "size 1:",
        ),
        (PATCH.replace(": 150", ": 2"), "size 6:5: patch.changes: "),
        (
            patch(ev, "{obligations.factual_adequacy.required: false}", false),
            "affects_rescore 1:",
        ),
        (fine.to_owned(), "keys 1:"),
    ]
}

#[test]
fn each_check_has_its_code_and_its_place() {
    let ev = "evidence_verification";
    let mut wrong = Vec::new();
    let fine = FINE;
    for (text, expected) in documents().into_iter().chain(misfits()) {
        let fault = checked(&text, None).unwrap_err();
        let place = &fault.place;
        let found = format!(
            "{} {}:{}: {}: {}",
            fault.code.as_str(),
            place.line,
            place.column,
            place.path,
            fault.message
        );
        if !found.starts_with(expected) {
            wrong.push(format!("{expected}\n  {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked(&patch(ev, fine, false), None).is_ok());
    let used = patch(ev, fine, false).replace("p-1", "used-before");
    assert_eq!(checked(&used, None).unwrap_err().code, Code::DuplicateId);
    let base = Rubric::parse(b"rubric: {version: '1.0', target: Y, sdp_version: v1}").unwrap();
    let cap = patch(
        "length_bias_cap",
        "{guards.length_bias_cap.if_tokens_gt: 9}",
        false,
    );
    let fault = check(cap.as_bytes(), &context(&base)).unwrap_err();
    assert_eq!(fault.code, Code::Rubric);
    let hashes = [checked(PATCH, None).unwrap().hash].into();
    let again = Context {
        hashes: &hashes,
        ..context(&base)
    };
    let again = Context {
        rubric: &rubric(),
        ..again
    };
    assert_eq!(
        check(PATCH.as_bytes(), &again).unwrap_err().code,
        Code::DuplicateDiff
    );
}

#[test]
fn a_stored_citation_that_nobody_verified_needs_a_new_answer() {
    let unverified = tags(&["www.bmj.com"]);
    let all = checked(PATCH, Some(&unverified)).unwrap();
    assert_eq!(all.needs_rescore, Some(true));
    let without = PATCH.replace("affects_rescore: true", "affects_rescore: false");
    let fault = checked(&without, Some(&unverified)).unwrap_err();
    assert_eq!(fault.code, Code::AffectsRescore);
    let elsewhere = tags(&["example.org"]);
    assert_eq!(
        checked(&without, Some(&elsewhere)).unwrap().needs_rescore,
        Some(false)
    );
    // The same by the engine: it has no score until somebody looked.
    let mut evidence = Evidence {
        citations: vec![Citation {
            domain: "www.bmj.com".to_owned(),
            resolved: None,
            supports: None,
        }],
        ..Evidence::default()
    };
    let (base, after) = (clover_num::Micro::new(900_000).unwrap(), all.rubric.rules());
    assert!(rubric().rules().score(base, &evidence).is_ok());
    assert!(matches!(
        after.score(base, &evidence),
        Err(EngineError::EvidenceMissing { .. })
    ));
    evidence.citations.clear();
    assert!(after.score(base, &evidence).is_ok());
}

/// Family, changes, whether new answers are declared, whether two keys are needed, class.
fn edits() -> Vec<(&'static str, &'static str, bool, bool, Class)> {
    vec![
        (
            "length_bias_cap",
            "{guards.length_bias_cap.if_tokens_gt: 400}",
            false,
            true,
            Class::Recompute,
        ),
        (
            "abstention",
            "{abstention: {triggers+: [tax]}}",
            false,
            true,
            Class::Recompute,
        ),
        (
            "abstention",
            "{abstention: {triggers+: [weather]}}",
            true,
            true,
            Class::Rescore,
        ),
        (
            "abstention",
            "{abstention.rule: say so}",
            true,
            true,
            Class::Rescore,
        ),
        (
            "evidence_verification",
            "{obligations.factual_adequacy.required: false}",
            true,
            true,
            Class::Rescore,
        ),
        (
            "contradiction_check",
            "{obligations.risk_accounting.requires_stakeholders: false}",
            false,
            true,
            Class::Recompute,
        ),
        (
            "contradiction_check",
            "{obligations.risk_accounting.penalty: 0.2}",
            false,
            false,
            Class::Recompute,
        ),
        (
            "evidence_verification",
            "{obligations.factual_adequacy.verification.allowed_domains: [nih.gov]}",
            false,
            false,
            Class::Recompute,
        ),
    ]
}

#[test]
fn two_keys_and_classes_follow_the_paths() {
    for (family, changes, rescore, two_key, class) in edits() {
        let all = checked(&patch(family, changes, rescore), None).unwrap();
        assert_eq!(
            (!all.two_key.is_empty(), all.classes[0]),
            (two_key, class),
            "{changes}"
        );
        assert_eq!(all.needs_rescore, Some(class == Class::Rescore));
        // The judge is told something else exactly when raw answers are needed anew.
        let known = tags(&["medical dosing", "legal advice", "tax"]);
        let told = prompt::render(&all.rubric, &known) != prompt::render(&rubric(), &known);
        assert_eq!(told, class == Class::Rescore, "{changes}");
    }
}

#[test]
fn a_rubric_survives_its_own_yaml() {
    let rubric = rubric();
    let again = Rubric::parse(rubric.to_yaml().as_bytes()).unwrap();
    assert_eq!(again, rubric);
    assert_eq!(again.to_yaml(), rubric.to_yaml());
    assert_eq!(again.rule_paths().len(), 9);
    for (from, to, expected) in [
        (
            "version: \"1.0\"",
            "version: 1.0",
            "2:12: rubric.version: expected a text",
        ),
        (
            "target: \"Y\"",
            "target: X",
            "3:11: rubric.target: expected Y or Y_star",
        ),
        (
            "      if_tokens_gt: 500\n",
            "",
            "19:22: rubric.guards.length_bias_cap.max_raw_score: expected guards.length_bias_cap.if_tokens_gt",
        ),
        (
            "required: true",
            "requires_luck: true",
            "7:22: rubric.obligations.factual_adequacy.requires_luck: no rubric",
        ),
        (
            "nih.gov",
            "nih.gov\",\"nih.gov",
            "9:26: rubric.obligations.factual_adequacy.verification.allowed_domains: expected each",
        ),
        (
            "0.35",
            "0.1234567",
            "10:27: rubric.obligations.factual_adequacy.verification.mismatch_penalty: expected at most six",
        ),
        (
            "rubric:\n",
            "rubrics:\n",
            "1:1: expected the one key rubric",
        ),
        (
            "  sdp_version: \"v1.0_2025-11-11\"\n",
            "",
            "2:3: rubric.sdp_version: expected it",
        ),
    ] {
        let error = Rubric::parse(RUBRIC.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// A value that stands at `path` with some freedom, as YAML in two spellings.
fn spelled() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        (1_u32..999).prop_map(|n| (format!("0.{n:03}"), format!("{n}e-3"))),
        Just(("0.5".to_owned(), "0.500".to_owned())),
    ]
}

proptest! {
    /// Quotes, flow or block style, order and spelling of numbers do not mint a new patch.
    #[test]
    fn formatting_does_not_change_the_hash(
        (plain, other) in spelled(),
        order in any::<bool>(),
        hosts in proptest::collection::btree_set("[a-z]{1,5}\\.org", 1..4),
    ) {
        let list: Vec<_> = hosts.iter().cloned().collect();
        let reversed: Vec<_> = hosts.iter().rev().map(|host| format!("'{host}'")).collect();
        let one = format!(
            "{{obligations.factual_adequacy.verification: {{allowed_domains+: [{}], mismatch_penalty: {plain}}}}}",
            list.join(", ")
        );
        let (a, b) = (
            format!("      mismatch_penalty:   {other}  # a comment\n"),
            format!("      \"allowed_domains+\":\n        - {}\n", reversed.join("\n        - ")),
        );
        let (a, b) = if order { (a, b) } else { (b, a) };
        let two = format!(
            "---\npatch:\n  constraints: {{affects_rescore: true, max_tokens_added: 99}}\n  \
             changes:\n    obligations.factual_adequacy.verification:\n{a}{b}  \
             rationale: other words\n  id: another-id\n  family: 'evidence_verification'\n"
        );
        let first = checked(&patch("evidence_verification", &one, true), None).unwrap();
        let second = checked(&two, None).unwrap();
        prop_assert_eq!(first.hash, second.hash);
        prop_assert_eq!(first.rubric.hash(), second.rubric.hash());
    }

    /// What a patch does not name stands as it stood.
    #[test]
    fn a_merge_never_drops_what_stands_beside(
        which in proptest::sample::subsequence(
            vec!["mismatch_penalty: 0.2", "allowed_domains+: [a.org]", "allowed_domains: [b.org]"], 1..=2),
    ) {
        let changes = format!("{{obligations.factual_adequacy.verification: {{{}}}}}", which.join(", "));
        if let Ok(all) = checked(&patch("evidence_verification", &changes, true), None) {
            let touched: BTreeSet<_> = all.diff.iter().map(|change| &change.path).collect();
            for (path, value) in rubric().leaves() {
                prop_assert!(touched.contains(path) || all.rubric.at(path) == Some(value));
            }
            prop_assert_eq!(all.rubric.leaves().len(), rubric().leaves().len());
        }
    }

    /// Any text is a patch or a fault with a place, and never a panic.
    #[test]
    fn any_text_is_judged(text in "[a-z0-9:{}\\[\\]\"'+., \n-]{0,200}", cut in 0_usize..900, with in "\\PC{0,3}") {
        drop(checked(&text, None).map_err(|fault| fault.to_string()));
        let mut broken = PATCH.to_owned();
        if let Some((at, _)) = PATCH.char_indices().nth(cut) {
            broken.replace_range(at..=at, &with);
        }
        drop(checked(&broken, None).map_err(|fault| fault.to_string()));
        drop(Rubric::parse(text.as_bytes()).map_err(|error| error.to_string()));
    }
}
