//! Each rule of a patch, by the list of the registry, has a proposal that it alone refuses: the validator and the independent
//! program of its rules both name it, and nothing else.

use std::collections::BTreeSet;

use clover::event::payload::sgd_steps::SgdViolation;
use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::prompt::JudgePrompt;
use clover::prompt::Lexicon;
use clover::prompt::PatchRule;
use clover::prompt::PatchTerms;
use clover::prompt::PromptParts;
use clover::prompt::PromptSection;
use clover::prompt::Proposal;
use clover::prompt::SectionKind;
use clover::prompt::SectionPatch;
use clover::prompt::StepContext;
use clover::prompt::validate;
use clover::workflow::sgd::leak::ProtectedTexts;
use clover::workflow::sgd::verdict;
use serde_json::json;

use crate::prompt_patches::Answer;
use crate::prompt_patches::theirs;
use crate::support::verifiers;

/// Rates by step: 1 at 3, just below 0.5 at 23, below 0.06 at 39.
const FULL: u32 = 3;
const BELOW_TAU: u32 = 23;
const LAST: u32 = 39;
/// The response of a row.
const ROW: &str = "Bees dance in eights to tell the hive where clover is in bloom.";

fn section(id: &str, kind: SectionKind, ord: u32, text: &str) -> PromptSection {
    PromptSection {
        editable: !kind.is_always_frozen(),
        kind,
        max_chars: 3_000,
        ord,
        section_id: id.to_owned(),
        text: text.to_owned(),
        title: String::new(),
    }
}

/// Soft sentences, forty plain lines, a hard sentence, a section without room, and two that are frozen.
fn prompt() -> JudgePrompt {
    let lines: Vec<String> = (1..=40)
        .map(|at| format!("Line {at} of the long list speaks of matter {at}."))
        .collect();
    let soft = ["sources", "dates", "names", "numbers", "quotes"];
    let soft = soft.map(|of| format!("A judge should weigh {of} with care."));
    let hard = "Each claim must have a source that the reader knows.\nA rule may be bent.";
    let mut tight = section("tight", SectionKind::Policy, 55, "Short.");
    tight.max_chars = 10;
    let sections = vec![
        section("goal", SectionKind::Goal, 10, "Judge one answer."),
        section("bias", SectionKind::AntiBias, 20, "Length is no merit."),
        section("soft", SectionKind::Policy, 30, &soft.join("\n")),
        section("list", SectionKind::Policy, 40, &lines.join("\n")),
        section("hard", SectionKind::Policy, 50, hard),
        tight,
        section("output", SectionKind::OutputSpec, 60, "The number alone."),
    ];
    JudgePrompt::new(PromptParts {
        axes: Vec::new(),
        output_schema_digest: Digest::sha256(b""),
        parent_digest: None,
        prompt_id: "alone".to_owned(),
        score_hi: Micro::new(1_000_000).unwrap(),
        score_lo: Micro::default(),
        sections,
        version: 0,
    })
    .unwrap()
}

fn text<'p>(prompt: &'p JudgePrompt, section: &str) -> &'p str {
    &prompt.section(section).unwrap().text
}

fn of(patch: SectionPatch) -> Proposal {
    Proposal {
        addresses: vec![0],
        patch,
        rationale: "Scores run high.".to_owned(),
    }
}

fn replaced(prompt: &JudgePrompt, section: &str, from: &str, to: &str) -> Proposal {
    let new = text(prompt, section).replace(from, to);
    of(SectionPatch::edit(prompt, section, &new))
}

fn appended(prompt: &JudgePrompt, section: &str, more: &str) -> Proposal {
    let new = format!("{}\n{more}", text(prompt, section));
    of(SectionPatch::edit(prompt, section, &new))
}

/// A small edit that every step takes, and a change to it.
fn changed(prompt: &JudgePrompt, change: impl FnOnce(&mut Proposal)) -> Proposal {
    let mut proposal = replaced(prompt, "bias", "no merit", "no merit here");
    change(&mut proposal);
    proposal
}

/// Words of lines of the list, replaced.
fn of_lines(prompt: &JudgePrompt, lines: &[u32], from: &str, to: &str) -> Proposal {
    let new = lines
        .iter()
        .fold(text(prompt, "list").to_owned(), |new, at| {
            let line = format!("Line {at} of the long list speaks of matter {at}.");
            new.replace(&line, &line.replace(from, to))
        });
    of(SectionPatch::edit(prompt, "list", &new))
}

/// A prompt that grew by 700 characters within the rules, of which a quarter over version 0 is left for less than 150 more.
fn grown(prompt: &JudgePrompt) -> JudgePrompt {
    let room = prompt.render().chars().count() / 4;
    let more = "word ".repeat((room - 100) / 5);
    let patch = appended(prompt, "bias", more.trim()).patch;
    prompt.applied(&patch, 600).unwrap()
}

/// The proposal that a rule alone refuses, the step, and the prompt in force. A rule without one does not compile.
fn alone(rule: PatchRule, prompt: &JudgePrompt) -> (u32, JudgePrompt, Proposal) {
    let (step, proposal) = match rule {
        PatchRule::Rationale => (FULL, changed(prompt, |of| of.rationale = "x".repeat(281))),
        PatchRule::Addresses => (FULL, changed(prompt, |of| of.addresses = vec![1])),
        PatchRule::Parent => (
            FULL,
            changed(prompt, |of| of.patch.parent = Digest::sha256(b"")),
        ),
        PatchRule::Form => (FULL, changed(prompt, |of| of.patch.diff.push_str("-x\n"))),
        PatchRule::Section => (
            FULL,
            changed(prompt, |of| {
                of.patch.section = "none".to_owned();
                of.patch.diff = of.patch.diff.replace("bias", "none");
            }),
        ),
        PatchRule::Frozen => (FULL, replaced(prompt, "goal", "one answer", "an answer")),
        PatchRule::Kind => {
            let axis = section("style", SectionKind::Axis, 70, "Is it well said?");
            (FULL, of(SectionPatch::add(prompt, &axis)))
        }
        PatchRule::BelowTau => (BELOW_TAU, of(SectionPatch::shift(prompt, "bias", 45))),
        PatchRule::Hunks => (FULL, of_lines(prompt, &[1, 12, 23, 34], "Line", "Row")),
        PatchRule::Context => (
            FULL,
            changed(prompt, |of| {
                of.patch.diff = of.patch.diff.replace("-Length", "-Breadth");
            }),
        ),
        PatchRule::Order => (FULL, of(SectionPatch::shift(prompt, "bias", 30))),
        PatchRule::NormalForm => (
            FULL,
            replaced(prompt, "bias", "no merit", "no\u{200b} merit"),
        ),
        PatchRule::NoChange => (FULL, of(SectionPatch::shift(prompt, "bias", 20))),
        PatchRule::SectionLength => (FULL, replaced(prompt, "tight", "Short.", "Short words.")),
        PatchRule::Chars => {
            let longer = format!("no merit {}", "word ".repeat(4));
            (LAST, replaced(prompt, "bias", "no merit", &longer))
        }
        PatchRule::SentenceLevel => (FULL, replaced(prompt, "hard", "may be", "must be")),
        PatchRule::Levels => (FULL, of_lines(prompt, &[1, 2, 3, 4], "speaks", "can speak")),
        PatchRule::Approval => (
            FULL,
            replaced(prompt, "hard", "must have", "must always have"),
        ),
        PatchRule::SoftToHard => (
            BELOW_TAU,
            replaced(prompt, "soft", "should weigh dates", "must weigh dates"),
        ),
        PatchRule::EffectiveStep => {
            // Each part is within its bound, all together are not: 340 characters, three levels, one hard rule.
            let plain = "Plain words of no weight are here. ".repeat(8);
            let new = format!(
                "{}\n{}\nIt can be so.\nIt may be thus.",
                text(prompt, "soft").replace("should weigh dates", "must weigh dates"),
                plain.trim()
            );
            (FULL, of(SectionPatch::edit(prompt, "soft", &new)))
        }
        PatchRule::Growth => {
            let current = grown(prompt);
            let proposal = appended(&current, "bias", "word ".repeat(40).trim());
            return (FULL, current, proposal);
        }
        PatchRule::Leak => (FULL, appended(prompt, "bias", ROW)),
    };
    (step, prompt.clone(), proposal)
}

fn violation(of: &SgdViolation) -> (String, i64, i64) {
    let number = |of: &str| of.parse().unwrap();
    (
        of.rule.as_str().to_owned(),
        number(of.found.as_str()),
        number(of.bound.as_str()),
    )
}

/// Given each rule of the registry; when the proposal made for it is judged as a run judges it, by its bytes and for words of
/// rows; then that rule refuses it, no other does, and the second program says the same.
#[test]
fn each_rule_has_a_proposal_that_it_alone_refuses() {
    let prompt0 = prompt();
    let terms = PatchTerms::default();
    let approvals = BTreeSet::new();
    let row = ProtectedTexts::of(&prompt0.render(), &[], &[ROW.to_owned()]);
    let mut ours = Vec::new();
    let mut cases = Vec::new();
    for rule in PatchRule::ALL {
        let (step, current, proposal) = alone(rule, &prompt0);
        let context = StepContext {
            approvals: &approvals,
            current: &current,
            gradient_items: 1,
            lexicon: Lexicon::built_in(),
            prompt0: &prompt0,
            step,
            terms: &terms,
        };
        let judged = validate(&context, &proposal);
        let by_bytes: Vec<_> = judged
            .as_ref()
            .err()
            .into_iter()
            .flatten()
            .map(|of| (of.rule.as_str().to_owned(), of.measured, of.bound))
            .collect();
        let patch = String::from_utf8(proposal.to_json()).unwrap();
        let leaked = row.found_in(&patch).map(|_| violation(&verdict::leaked()));
        let all: Vec<_> = by_bytes.iter().cloned().chain(leaked).collect();
        println!("{:>14}: step {step:>2}, {all:?}", rule.as_str());
        let names: Vec<&str> = all.iter().map(|of| of.0.as_str()).collect();
        assert_eq!(names, [rule.as_str()]);
        let next = judged.ok().map(|of| of.prompt.digest().to_hex());
        assert_eq!(next.is_some(), rule == PatchRule::Leak);
        ours.push((by_bytes, next));
        cases.push(json!({"prompt0": prompt0, "current": current, "proposal": proposal, "step": step, "terms": terms,
            "approvals": approvals, "gradient_items": 1}));
    }
    if !verifiers::python() {
        return;
    }
    let theirs: Vec<Answer> = theirs(&cases.iter().collect::<Vec<_>>());
    assert_eq!(ours, theirs);
}
