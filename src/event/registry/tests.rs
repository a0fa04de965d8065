//! The registry held against its page, and its words against one form.

use clover_ground::page;

use super::*;

fn list(kinds: &[Kind]) -> String {
    let kinds = kinds.iter().map(|kind| format!("`{kind}`"));
    kinds.collect::<Vec<_>>().join(" ")
}

fn roles() -> String {
    let signed = |wanted: Signers| -> Vec<Kind> {
        let all = Kind::ALL.iter().copied();
        all.filter(|kind| kind.signers() == wanted).collect()
    };
    let mut rows = String::new();
    for role in Role::ALL {
        let kinds = signed(Signers::Role(role));
        let kinds = match &kinds[..] {
            [] => "no kind of its own; it counts for separation".to_owned(),
            kinds => list(kinds),
        };
        rows.push_str(&format!("| `{role}` | {kinds} |\n"));
    }
    for (who, signers) in [
        ("any live key", Signers::Any),
        ("a spender of the account", Signers::Spenders),
        ("the owner that it names, at seq 0", Signers::Genesis),
    ] {
        rows.push_str(&format!("| {who} | {} |\n", list(&signed(signers))));
    }
    rows
}

fn natural_keys() -> String {
    let mut groups: Vec<(String, Vec<Kind>)> = Vec::new();
    for &kind in Kind::ALL {
        let Some(parts) = kind.natural_key_parts() else {
            continue;
        };
        let experiment = (kind.scope() != Scope::Anywhere).then_some("header experiment");
        let parts: Vec<&str> = experiment
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        let parts = match &parts[..] {
            [] => format!("none: `[\"{kind}\"]`"),
            parts => parts.join(", "),
        };
        match groups.iter_mut().find(|(of, _)| *of == parts) {
            Some((_, kinds)) => kinds.push(kind),
            None => groups.push((parts, vec![kind])),
        }
    }
    let row = |(parts, kinds): &(String, Vec<Kind>)| format!("| {} | {parts} |\n", list(kinds));
    groups.iter().map(row).collect()
}

#[test]
fn the_page_of_keys_is_the_registry() {
    let tables = [
        ("| role | signs |", roles()),
        ("| kind | parts |", natural_keys()),
    ];
    page::hold("schema/KEYS.md", &tables);
}

#[test]
fn the_key_of_a_score_needs_no_score() {
    let experiment: ExperimentId = "exp-1".parse().unwrap();
    let score = ScoreRecorded {
        call: None,
        draw: Count::new(7).unwrap(),
        item: "unit 1".parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "baseline".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: clover_num::Micro::default(),
    };
    let drawn = (score.item.as_str(), score.draw);
    let (judge, policy) = (score.judge.as_str(), score.policy.as_str());
    let key = score_key(experiment.as_str(), judge, policy, drawn);
    assert_eq!(
        Payload::from(score).natural_key(Some(&experiment)),
        Some(key)
    );
}

#[test]
fn kinds_are_noun_dot_past_participle_and_listed_once() {
    // Words of what was done that do not end in -ed, and one noun.
    let others = "batch_drawn conflict feedback_given rolled_back drawn paused_for_labels read set test_read withdrawn";
    let texts: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|of| of.as_str()).collect();
    assert_eq!(texts.len(), Kind::ALL.len());
    for kind in Kind::ALL {
        let (noun, verb) = kind.as_str().split_once('.').unwrap();
        let is_past = verb.ends_with("ed") || others.split(' ').any(|other| other == verb);
        assert!(!noun.is_empty() && is_past, "{kind}");
        assert_eq!(kind.as_str().parse(), Ok(*kind));
    }
}
