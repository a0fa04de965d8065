//! Each rule has a proposal that it alone refuses, and the offline pair proposes what is taken.

use std::collections::BTreeSet;

use clover_ground::digest::Digest;
use clover_num::Micro;

use crate::JudgePrompt;
use crate::Lexicon;
use crate::PatchRule;
use crate::PatchTerms;
use crate::PromptParts;
use crate::PromptSection;
use crate::Proposal;
use crate::SectionKind;
use crate::SectionPatch;
use crate::StepContext;
use crate::ValidatedPatch;
use crate::aggregate;
use crate::gradient::ClassNumbers;
use crate::gradient::GradientRequest;
use crate::gradient::Hundredths;
use crate::gradient::LossNumbers;
use crate::validate;

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

/// Five soft sentences, forty lines, one hard sentence; 3,000 characters, so that growth allows 750.
fn prompt() -> JudgePrompt {
    let lines: Vec<String> = (1..=40)
        .map(|at| format!("Line {at} of the long list speaks of matter {at}."))
        .collect();
    let soft = ["sources", "dates", "names", "numbers", "quotes"];
    let soft = soft.map(|of| format!("A judge should weigh {of} with care."));
    let hard = "Each claim must have a source that the reader knows.\nA rule may be bent.";
    let sections = vec![
        section(
            "goal",
            SectionKind::Goal,
            10,
            "Judge one answer to one question.",
        ),
        section("bias", SectionKind::AntiBias, 20, "Length is no merit."),
        section("soft", SectionKind::Policy, 30, &soft.join("\n")),
        section("list", SectionKind::Policy, 40, &lines.join("\n")),
        section("hard", SectionKind::Policy, 50, hard),
        section("tight", SectionKind::Policy, 55, "Short."),
        section("output", SectionKind::OutputSpec, 60, "The number alone."),
    ];
    let mut parts = PromptParts {
        axes: Vec::new(),
        output_schema_digest: Digest::sha256(b""),
        parent_digest: None,
        prompt_id: "test".to_owned(),
        score_hi: Micro::new(1_000_000).unwrap(),
        score_lo: Micro::default(),
        sections,
        version: 0,
    };
    parts.sections[5].max_chars = 10;
    JudgePrompt::new(parts).unwrap()
}

fn judged(
    step: u32,
    current: &JudgePrompt,
    proposal: &Proposal,
) -> Result<ValidatedPatch, Vec<(PatchRule, i64, i64)>> {
    let (approvals, terms, prompt0) = (BTreeSet::new(), PatchTerms::default(), prompt());
    let context = StepContext {
        approvals: &approvals,
        current,
        gradient_items: 1,
        lexicon: Lexicon::built_in(),
        prompt0: &prompt0,
        step,
        terms: &terms,
    };
    let violations = validate(&context, proposal);
    violations.map_err(|all| {
        all.iter()
            .map(|of| (of.rule, of.measured, of.bound))
            .collect()
    })
}

fn of(patch: SectionPatch) -> Proposal {
    Proposal {
        addresses: vec![0],
        patch,
        rationale: "Scores run high.".to_owned(),
    }
}

/// The proposal that replaces words of a section.
fn replaced(prompt: &JudgePrompt, section: &str, from: &str, to: &str) -> Proposal {
    let text = prompt.section(section).unwrap().text.replace(from, to);
    of(SectionPatch::edit(prompt, section, &text))
}

/// The rate is 0.25 at step 0, 1 at step 3, just below 0.5 at step 23, and below 0.06 at step 39.
fn refused(step: u32, proposal: &Proposal) -> Vec<(PatchRule, i64, i64)> {
    judged(step, &prompt(), proposal).unwrap_err()
}

#[test]
fn a_small_edit_is_taken() {
    let prompt = prompt();
    let proposal = replaced(&prompt, "bias", "no merit", "no merit here");
    let taken = judged(39, &prompt, &proposal).unwrap();
    assert_eq!(
        (
            taken.measures.chars,
            taken.measures.chars_max,
            taken.measures.hunks
        ),
        (5, 20, 1)
    );
    assert_eq!(taken.prompt.parts().parent_digest, Some(prompt.digest()));
    assert_eq!(Some(taken.prompt), prompt.applied(&proposal.patch, 600));
    assert_eq!(Proposal::from_json(&proposal.to_json()), Ok(proposal));
}

#[test]
fn the_form_of_a_proposal_is_held_to_by_a_rule_each() {
    let prompt = prompt();
    let good = replaced(&prompt, "bias", "no merit", "no merit here");
    let with = |change: &dyn Fn(&mut Proposal)| {
        let mut proposal = good.clone();
        change(&mut proposal);
        refused(3, &proposal)
    };
    assert_eq!(
        with(&|of| of.rationale = "x".repeat(281)),
        [(PatchRule::Rationale, 281, 280)]
    );
    assert_eq!(
        with(&|of| of.rationale = "a\nb".to_owned()),
        [(PatchRule::Rationale, 281, 280)]
    );
    assert_eq!(
        with(&|of| of.addresses = vec![0, 0, 1]),
        [(PatchRule::Addresses, 2, 0)]
    );
    assert_eq!(
        with(&|of| of.patch.parent = Digest::sha256(b"")),
        [(PatchRule::Parent, 1, 0)]
    );
    assert_eq!(
        with(&|of| of.patch.diff.push_str("-x\n")),
        [(PatchRule::Form, 6, 0)]
    );
    assert_eq!(
        with(&|of| of.patch.section = "list".to_owned()),
        [(PatchRule::Form, 1, 0)]
    );
    assert_eq!(
        with(&|of| of.patch.kind = Some(SectionKind::Policy)),
        [(PatchRule::Form, 0, 0)]
    );
    let context = with(&|of| of.patch.diff = of.patch.diff.replace("-Length", "-Breadth"));
    assert_eq!(context, [(PatchRule::Context, 4, 0)]);
    let mut absent = good.clone();
    absent.patch.section = "none".to_owned();
    absent.patch.diff = absent.patch.diff.replace("bias", "none");
    assert_eq!(refused(3, &absent), [(PatchRule::Section, 1, 0)]);
}

#[test]
fn what_may_be_edited_is_held_to_by_a_rule_each() {
    let prompt = prompt();
    // The goal may not be touched, and no axis may be added.
    assert_eq!(
        refused(3, &replaced(&prompt, "goal", "one answer", "an answer")),
        [(PatchRule::Frozen, 1, 0)]
    );
    let axis = section("style", SectionKind::Axis, 70, "Is it well said?");
    assert_eq!(
        refused(3, &of(SectionPatch::add(&prompt, &axis))),
        [(PatchRule::Kind, 1, 0)]
    );
    let policy = section("style", SectionKind::Policy, 70, "Praise is no merit.");
    assert_eq!(
        refused(0, &of(SectionPatch::add(&prompt, &policy))),
        [(PatchRule::BelowTau, 250_000, 500_000)]
    );
    assert_eq!(
        refused(0, &of(SectionPatch::shift(&prompt, "bias", 45))),
        [(PatchRule::BelowTau, 250_000, 500_000)]
    );
    assert_eq!(
        refused(0, &of(SectionPatch::remove(&prompt, "bias"))),
        [(PatchRule::BelowTau, 250_000, 500_000)]
    );
    let text = prompt.section("list").unwrap().text.clone();
    let four = [1, 12, 23, 34].iter().fold(text, |text, at| {
        text.replace(&format!("Line {at} of"), &format!("Row {at} of"))
    });
    assert_eq!(
        refused(3, &of(SectionPatch::edit(&prompt, "list", &four))),
        [(PatchRule::Hunks, 4, 3)]
    );
    assert_eq!(
        refused(3, &of(SectionPatch::shift(&prompt, "bias", 30))),
        [(PatchRule::Order, 30, 1_000_000)]
    );
    assert_eq!(
        refused(3, &of(SectionPatch::shift(&prompt, "bias", 20))),
        [(PatchRule::NoChange, 0, 1)]
    );
    let hidden = replaced(&prompt, "bias", "no merit", "no\u{200b} merit");
    assert_eq!(refused(3, &hidden), [(PatchRule::NormalForm, 1, 0)]);
    // A line that the judge takes for the head of another section.
    for head in ["## Output", "  # Policy", "<!-- clover: kind=axis -->"] {
        let posing = replaced(&prompt, "bias", "no merit", &format!("no merit.\n{head}\n"));
        assert!(
            refused(3, &posing).contains(&(PatchRule::NormalForm, 1, 0)),
            "{head}"
        );
    }
    let many = format!(
        "{}{}",
        prompt.section("bias").unwrap().text,
        " x.".repeat(400)
    );
    let many = refused(3, &of(SectionPatch::edit(&prompt, "bias", &many)));
    assert_eq!(many, [(PatchRule::NormalForm, 401, 400)]);
}

#[test]
fn the_size_of_a_step_is_held_to_by_a_rule_each() {
    let prompt = prompt();
    assert_eq!(
        refused(3, &replaced(&prompt, "tight", "Short.", "Short words.")),
        [(PatchRule::SectionLength, 12, 10)]
    );
    let longer = format!("no merit {}", "word ".repeat(4));
    assert_eq!(
        refused(39, &replaced(&prompt, "bias", "no merit", &longer)),
        [(PatchRule::Chars, 21, 20)]
    );
    // A jump of two levels in one sentence.
    let jump = replaced(
        &prompt,
        "hard",
        "A rule may be bent.",
        "A rule must be bent.",
    );
    assert_eq!(refused(3, &jump), [(PatchRule::SentenceLevel, 2, 1)]);
    assert_eq!(
        judged(
            3,
            &prompt,
            &replaced(&prompt, "hard", "may be bent", "should be bent")
        )
        .unwrap()
        .measures
        .levels_up,
        1
    );
    // Four sentences gain a level each.
    let text = (1..=4)
        .map(|at| format!("Line {at} of the long list speaks of matter {at}."))
        .fold(
            prompt.section("list").unwrap().text.clone(),
            |text, line| text.replace(&line, &line.replace("speaks", "can speak")),
        );
    assert_eq!(
        refused(3, &of(SectionPatch::edit(&prompt, "list", &text))),
        [(PatchRule::Levels, 4, 3)]
    );
}

#[test]
fn how_hard_sentences_become_is_held_to_by_a_rule_each() {
    let prompt = prompt();
    let never = replaced(&prompt, "hard", "claim must have", "claim must always have");
    assert_eq!(refused(3, &never), [(PatchRule::Approval, 1, 0)]);
    // A soft sentence becomes a hard rule.
    let hard = replaced(&prompt, "soft", "should weigh dates", "must weigh dates");
    assert_eq!(refused(23, &hard), [(PatchRule::SoftToHard, 1, 0)]);
    assert_eq!(judged(3, &prompt, &hard).unwrap().measures.soft_to_hard, 1);
    let two = prompt
        .section("soft")
        .unwrap()
        .text
        .replace("should weigh dates", "must weigh dates");
    let two = two.replace("should weigh names", "must weigh names");
    assert_eq!(
        refused(3, &of(SectionPatch::edit(&prompt, "soft", &two))),
        [(PatchRule::SoftToHard, 2, 1)]
    );
    let consequence = format!(
        "{}\nA long answer scores at most half.",
        prompt.section("bias").unwrap().text
    );
    assert_eq!(
        refused(0, &of(SectionPatch::edit(&prompt, "bias", &consequence))),
        [(PatchRule::SoftToHard, 1, 0)]
    );
    // Each part is within its bound, all together are not: 340 characters, three levels, one hard rule.
    let text = prompt
        .section("soft")
        .unwrap()
        .text
        .replace("should weigh dates", "must weigh dates");
    let text = format!(
        "{text}\n{}\nIt can be so.\nIt may be thus.",
        "Plain words of no weight are here. ".repeat(8).trim()
    );
    let all = refused(3, &of(SectionPatch::edit(&prompt, "soft", &text)));
    assert_eq!(
        all.iter().map(|of| of.0).collect::<Vec<_>>(),
        [PatchRule::EffectiveStep]
    );
}

#[test]
fn the_prompt_grows_by_a_quarter_at_most() {
    let mut current = prompt();
    let mut step = 0;
    let refused = loop {
        let text = format!(
            "{}\n{}",
            current.section("bias").unwrap().text,
            "word ".repeat(50).trim()
        );
        match judged(
            3,
            &current,
            &of(SectionPatch::edit(&current, "bias", &text)),
        ) {
            Ok(taken) => current = taken.prompt,
            Err(violations) => break violations,
        }
        step += 1;
        assert!(step < 20);
    };
    assert_eq!(
        refused.iter().map(|of| of.0).collect::<Vec<_>>(),
        [PatchRule::Growth]
    );
    assert_eq!(current.version(), step);
}

#[test]
fn a_person_lets_a_sentence_rise_to_level_4() {
    let prompt = prompt();
    let proposal = replaced(&prompt, "hard", "claim must have", "claim must always have");
    let (approvals, terms) = (
        BTreeSet::from([proposal.patch.digest()]),
        PatchTerms::default(),
    );
    let context = StepContext {
        approvals: &approvals,
        current: &prompt,
        gradient_items: 1,
        lexicon: Lexicon::built_in(),
        prompt0: &prompt,
        step: 3,
        terms: &terms,
    };
    assert_eq!(validate(&context, &proposal).unwrap().measures.level_4, 1);
}

#[test]
fn sections_come_go_and_move() {
    let prompt = prompt();
    let added = section("praise", SectionKind::AntiBias, 25, "Praise is no merit.");
    let taken = judged(3, &prompt, &of(SectionPatch::add(&prompt, &added))).unwrap();
    assert_eq!(taken.prompt.sections()[2].text, "Praise is no merit.");
    assert_eq!(taken.measures.chars, 19);
    let taken = judged(3, &prompt, &of(SectionPatch::remove(&prompt, "bias"))).unwrap();
    assert!(taken.prompt.section("bias").is_none());
    let taken = judged(3, &prompt, &of(SectionPatch::shift(&prompt, "bias", 45))).unwrap();
    assert_eq!(
        (
            taken.prompt.sections()[3].section_id.as_str(),
            taken.measures.chars
        ),
        ("bias", 0)
    );
    let large = section(
        "large",
        SectionKind::Policy,
        70,
        &"word ".repeat(121)[..601],
    );
    let all = refused(
        3,
        &of(SectionPatch::add(
            &prompt,
            &PromptSection {
                text: format!("{}x", &large.text[..600]),
                ..large
            },
        )),
    );
    assert_eq!(all[0], (PatchRule::Chars, 601, 600));
}

fn request(prompt: &JudgePrompt, over: Option<i32>, under: Option<i32>) -> GradientRequest {
    let class = |mean: Option<i32>| ClassNumbers {
        axis_means: Vec::new(),
        count: mean.map(|_| 6),
        mean_r: mean.map(Hundredths),
        quantiles: None,
        sd_r: None,
        selfvar: None,
    };
    let zero = Hundredths(0);
    GradientRequest {
        class_stats: [class(over), class(under), class(Some(1))],
        loss_terms: LossNumbers {
            abs: zero,
            instability: zero,
            loss: zero,
            parse_failures: zero,
            rank: Some(Hundredths(80)),
            spread: zero,
        },
        lr: Micro::new(250_000).unwrap(),
        prev_gradient_digest: None,
        prompt: prompt.clone(),
        step: 0,
        table: [[None; 3]; 5],
    }
}

#[test]
fn the_offline_pair_tries_each_sentence_once() {
    let prompt = prompt();
    let request = request(&prompt, Some(30), None);
    let again: GradientRequest = serde_json::from_slice(&request.to_json()).unwrap();
    assert_eq!(again, request);
    let gradient = aggregate::gradient(&request);
    gradient.check(&prompt, 0).unwrap();
    assert_eq!(gradient.items[0].target_section, "bias");
    let (approvals, terms) = (BTreeSet::new(), PatchTerms::default());
    let (mut tried, mut first) = (BTreeSet::new(), String::new());
    loop {
        let context = StepContext {
            approvals: &approvals,
            current: &prompt,
            gradient_items: gradient.items.len(),
            lexicon: Lexicon::built_in(),
            prompt0: &prompt,
            step: 0,
            terms: &terms,
        };
        let Some(proposal) = aggregate::propose(&context, &gradient, &tried) else {
            break;
        };
        validate(&context, &proposal).unwrap();
        let said = aggregate::said(&proposal.patch);
        assert_eq!(said.len(), 1);
        if first.is_empty() {
            first.clone_from(&said[0]);
        }
        assert!(tried.insert(said[0].clone()));
    }
    assert!(first.contains("longer answer"));
    assert_eq!(tried.len(), aggregate::REPERTOIRE.len());
    let low = aggregate::gradient(&self::request(&prompt, None, Some(-30)));
    assert_eq!(low.items[0].target_section, "soft");
}

#[test]
fn the_repertoire_binds_nobody() {
    let lexicon = Lexicon::built_in();
    for of in aggregate::REPERTOIRE {
        for text in [of.english, of.chinese] {
            assert_eq!(
                (lexicon.level(text), lexicon.is_consequence(text)),
                (0, false),
                "{text}"
            );
            assert!(text.chars().count() <= 79, "{text}");
        }
    }
}
