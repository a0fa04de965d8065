//! Patches of judge prompts: the validator and an independent program of its rules agree on random proposals, and words of
//! rows are found in any dress. 300 proposals and 250 leaks; 10,000 and 1,000 with `RUN_SLOW_TESTS=1`; others with
//! `CLOVER_SEED=N`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::num::draws::Draws;
use clover::prompt::JudgePrompt;
use clover::prompt::LeakIndex;
use clover::prompt::Lexicon;
use clover::prompt::PatchTerms;
use clover::prompt::PromptParts;
use clover::prompt::PromptSection;
use clover::prompt::Proposal;
use clover::prompt::SectionKind;
use clover::prompt::SectionPatch;
use clover::prompt::StepContext;
use clover::prompt::normal;
use clover::prompt::validate;
use serde_json::Value;
use serde_json::json;

use crate::support::verifiers;

const WORDS: &[&str] = &[
    "# Policy",
    "<!-- clover: kind=axis -->",
    "m\u{332}ust",
    "never\u{b9}",
    "al**way**s",
    "judge",
    "the",
    "content",
    "alone",
    "of",
    "an",
    "answer",
    "that",
    "is",
    "long",
    "it",
    "reader",
    "source",
    "must",
    "should",
    "may",
    "can",
    "can't",
    "'can'",
    "cannot",
    "always",
    "never",
    "only",
    "not only",
    "prefer",
    "need to",
    "cap",
    "at most",
    "score = 0",
    "reject",
    "automatically",
    "必须",
    "可以",
    "应该",
    "响应",
    "不得",
    "总是",
    "一票否决",
    "不超过",
    "长度",
    "评分",
    "mu\u{455}t",
    "ＭＵＳＴ",
    "ALWAYS",
    "straße",
    "é",
    "İ",
    "2.5",
    "e.g.",
    "\u{26a0}\u{fe0f}",
    "naïve",
];
const ENDS: &[&str] = &[
    ". ", "! ", "? ", "。", ".\n", "\n", ".\n\n", "; ", ".\" ", "！”", ".) ",
];
const STRANGE: &[&str] = &[
    "\u{200b}", "e\u{301}", " \n", "\t", "\u{378}", "\u{85}", "\r\n", "\u{202e}", "\n\n\n",
    "\u{3000}",
];

/// Random prompts and proposals.
struct Random(Draws);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0.below(count)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for _ in 0..words {
            text.push_str(self.pick(WORDS));
            text.push_str(if self.one_in(6) { self.pick(ENDS) } else { " " });
        }
        normal::normal_form(&text)
    }

    fn section(&mut self, at: usize) -> PromptSection {
        let kind = SectionKind::ALL[if at == 0 { 0 } else { self.below(7) }];
        let words = self.below(60);
        PromptSection {
            editable: !kind.is_always_frozen() && !self.one_in(8),
            kind,
            max_chars: if self.one_in(4) { 400 } else { 3_000 },
            ord: u32::try_from(10 * (at + 1)).unwrap(),
            section_id: format!("s{at}"),
            text: self.text(words),
            title: if self.one_in(2) {
                String::new()
            } else {
                "On judging".to_owned()
            },
        }
    }

    fn prompt(&mut self) -> JudgePrompt {
        loop {
            let count = 2 + self.below(5);
            let parts = PromptParts {
                axes: Vec::new(),
                output_schema_digest: Digest::sha256(b""),
                parent_digest: None,
                prompt_id: "random".to_owned(),
                score_hi: Micro::new(1_000_000).unwrap(),
                score_lo: Micro::default(),
                sections: (0..count).map(|at| self.section(at)).collect(),
                version: 0,
            };
            if let Ok(prompt) = JudgePrompt::new(parts) {
                return prompt;
            }
        }
    }

    /// The text with a few words changed.
    fn edited(&mut self, text: &str) -> String {
        let mut pieces: Vec<String> = text
            .split_inclusive([' ', '\n'])
            .map(str::to_owned)
            .collect();
        for _ in 0..=self.below(4) {
            let at = self.below(pieces.len() + 1);
            match self.below(10) {
                0..=3 => pieces.insert(at, format!("{} ", self.pick(WORDS))),
                4..=5 if at < pieces.len() => {
                    pieces.remove(at);
                }
                6 => {
                    let words = 3 + self.below(9);
                    pieces.push(format!("\n{}", self.text(words)));
                }
                7 if self.one_in(6) => pieces.insert(at, self.pick(STRANGE).to_owned()),
                8 if self.one_in(8) => {
                    let words = self.below(200);
                    pieces.push(self.text(words));
                }
                _ if at < pieces.len() => pieces[at] = format!("{} ", self.pick(WORDS)),
                _ => {}
            }
        }
        let text = pieces.concat();
        if self.one_in(30) {
            text
        } else {
            normal::normal_form(&text)
        }
    }

    fn patch(&mut self, prompt: &JudgePrompt) -> SectionPatch {
        let sections = prompt.sections();
        let open: Vec<_> = sections
            .iter()
            .filter(|section| section.is_open())
            .collect();
        let section = match open.len() {
            0 => &sections[self.below(sections.len())],
            count if self.one_in(12) => &sections[self.below(sections.len()).min(count)],
            count => open[self.below(count)],
        };
        let ord = u32::try_from(5 * self.below(20)).unwrap();
        let mut patch = match self.below(20) {
            0..=12 => SectionPatch::edit(prompt, &section.section_id, &self.edited(&section.text)),
            13..=15 => {
                let at = 1 + self.below(8);
                let mut added = self.section(at);
                added.section_id = if self.one_in(6) {
                    "s0".to_owned()
                } else {
                    "new".to_owned()
                };
                let mut patch = SectionPatch::add(prompt, &added);
                patch.ord = Some(ord).filter(|_| self.one_in(2));
                patch
            }
            16 => SectionPatch::remove(prompt, &section.section_id),
            17..=18 => SectionPatch::shift(prompt, &section.section_id, ord),
            _ => SectionPatch {
                ord: Some(ord),
                ..SectionPatch::edit(prompt, &section.section_id, &self.edited(&section.text))
            },
        };
        if self.one_in(8) {
            patch.diff = self.broken(&patch.diff);
        }
        match self.below(80) {
            0 => patch.parent = Digest::sha256(b"other"),
            1 => patch.kind = Some(SectionKind::Policy),
            2 => patch.title = Some("A title".to_owned()),
            3 => patch.section = "S".to_owned(),
            4 => patch.ord = Some(2_000_000),
            _ => {}
        }
        patch
    }

    fn broken(&mut self, diff: &str) -> String {
        let mut lines: Vec<String> = diff.lines().map(str::to_owned).collect();
        let at = self.below(lines.len() + 1);
        match self.below(7) {
            0 => lines.insert(
                at,
                self.pick(&["-x", "+x", " x", "@@ -1,1 +1,1 @@", "", "\\ No newline"])
                    .to_owned(),
            ),
            _ if at >= lines.len() => lines.push(self.pick(WORDS).to_owned()),
            1 => {
                lines.remove(at);
            }
            2 => {
                lines[at] = lines[at].replace(
                    |c: char| c.is_ascii_digit(),
                    self.pick(&["0", "1", "7", "12"]),
                );
            }
            3 => lines[at].push('x'),
            4 => lines.swap(at, 0),
            5 => {
                lines[at] = lines[at].replacen(['-', '+', ' '], self.pick(&["+", "-", " ", ""]), 1);
            }
            _ => lines[at] = lines[at].replace("sections", "section"),
        }
        lines.join("\n")
    }

    fn proposal(&mut self, prompt: &JudgePrompt) -> Proposal {
        let rationale = match self.below(40) {
            0 => "x".repeat(281),
            1 => "two\nlines".to_owned(),
            _ => "评分 runs high.".to_owned(),
        };
        let addresses = match self.below(20) {
            0 => vec![0, 0],
            1 => vec![7],
            _ => vec![1],
        };
        Proposal {
            addresses,
            patch: self.patch(prompt),
            rationale,
        }
    }
}

/// What both answer: the broken rules, and the digest of the next prompt.
pub(crate) type Answer = (Vec<(String, i64, i64)>, Option<String>);

struct Case {
    said: Value,
    ours: Answer,
}

fn case(random: &mut Random, prompt0: &JudgePrompt, terms: &PatchTerms) -> Case {
    let mut current = prompt0.clone();
    if random.one_in(2) {
        let at = random.below(current.sections().len());
        let section = &current.sections()[at];
        let text = random.edited(&section.text);
        let patch = SectionPatch::edit(&current, &section.section_id, &text);
        current = current.applied(&patch, 600).unwrap_or(current);
    }
    let (proposal, step) = (
        random.proposal(&current),
        u32::try_from(random.below(44)).unwrap(),
    );
    let mut approvals = BTreeSet::new();
    if random.one_in(4) {
        approvals.insert(proposal.patch.digest());
    }
    let context = StepContext {
        approvals: &approvals,
        current: &current,
        gradient_items: 3,
        lexicon: Lexicon::built_in(),
        prompt0,
        step,
        terms,
    };
    let ours = match validate(&context, &proposal) {
        Ok(taken) => (Vec::new(), Some(taken.prompt.digest().to_hex())),
        Err(all) => {
            let all = all
                .iter()
                .map(|of| (of.rule.as_str().to_owned(), of.measured, of.bound));
            (all.collect(), None)
        }
    };
    let said = json!({"prompt0": prompt0, "current": current, "proposal": proposal, "step": step, "terms": terms,
        "approvals": approvals, "gradient_items": 3});
    Case { said, ours }
}

/// What the second program answers to each case.
pub(crate) fn theirs(said: &[&Value]) -> Vec<Answer> {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = said.iter().map(ToString::to_string).collect();
    std::fs::write(folder.path().join("cases"), lines.join("\n")).unwrap();
    let mut command = verifiers::python3();
    command.arg(verifiers::repository().join("tests/it/support/sgd_patch.py"));
    let output = command
        .arg(verifiers::audits_verify())
        .arg(folder.path().join("cases"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Vec<Answer> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all.len(), said.len());
    all
}

#[test]
fn two_validators_agree_on_random_proposals() {
    if !verifiers::python() {
        return;
    }
    let total = if std::env::var_os("RUN_SLOW_TESTS").is_some() {
        10_000
    } else {
        300
    };
    let seed = std::env::var("CLOVER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut random = Random(Draws::of([seed; 32], 0));
    let terms = PatchTerms::default();
    let mut cases = Vec::new();
    while cases.len() < total {
        let prompt0 = random.prompt();
        cases.extend((0..5).map(|_| case(&mut random, &prompt0, &terms)));
    }
    let said: Vec<&Value> = cases.iter().map(|case| &case.said).collect();
    let all = theirs(&said);
    let mut first = BTreeMap::<String, u64>::new();
    for (case, theirs) in cases.iter().zip(&all) {
        assert_eq!(case.ours, *theirs, "{}", case.said);
        let rules = if case.ours.0.is_empty() {
            vec!["taken".to_owned()]
        } else {
            case.ours.0.iter().map(|of| of.0.clone()).collect()
        };
        for rule in rules {
            *first.entry(rule).or_default() += 1;
        }
    }
    println!("{} proposals, 0 differ; {first:?}", cases.len());
    assert!(first["taken"] > 20 && first.len() > 14, "{first:?}");
}

#[test]
fn the_second_program_has_the_same_lexicon() {
    let python = include_str!("../../audits/verify/rules/sgd_lexicon.py");
    let text = python
        .split("TEXT = \"\"\"\\\n")
        .nth(1)
        .unwrap()
        .strip_suffix("\"\"\"\n")
        .unwrap();
    assert_eq!(text, clover::prompt::lexicon::MODAL);
}

const LETTERS: &str = "bcdfghjklmnpqrstvwxzaeiou";

/// Words that no prompt has.
fn row(random: &mut Random, words: usize) -> String {
    let letters: Vec<char> = LETTERS.chars().collect();
    let word = |random: &mut Random| -> String {
        (0..4 + random.below(6))
            .map(|_| letters[random.below(letters.len())])
            .collect()
    };
    (0..words)
        .map(|_| word(random))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The same words in another dress.
fn dressed(random: &mut Random, text: &str) -> String {
    let mut out = String::new();
    let dress = random.below(6);
    for c in text.chars() {
        match dress {
            0 => out.extend(c.to_uppercase()),
            1 if random.one_in(3) => {
                out.extend([c, ['\u{200b}', '\u{ad}', '\u{2060}'][random.below(3)]]);
            }
            2 if c.is_ascii_lowercase() => out.push(char::from_u32(u32::from(c) + 0xfee0).unwrap()),
            3 if c == ' ' => out.push_str([" \n", "\u{a0}", "  ", "\u{3000}"][random.below(4)]),
            4 if c == 'o' => out.push('\u{43e}'),
            5 if c.is_ascii_lowercase() => {
                out.push(char::from_u32(u32::from(c) - 97 + 0x1d41a).unwrap());
            }
            _ => out.push(c),
        }
    }
    out
}

#[test]
fn planted_words_of_rows_are_found_and_clean_texts_are_not_flagged() {
    let mut random = Random(Draws::of([9; 32], 0));
    let prompt = random.text(60);
    let (mut found, mut flagged) = (0, 0);
    let cases = if std::env::var_os("RUN_SLOW_TESTS").is_some() {
        1_000
    } else {
        250
    };
    for at in 0..cases {
        let (protected, other) = (row(&mut random, 40), row(&mut random, 40));
        let chars: Vec<char> = protected.chars().collect();
        let from = random.below(chars.len() - 30);
        let planted: String = chars[from..from + 30].iter().collect();
        let planted = dressed(&mut random, planted.trim());
        let shown = format!(
            "{prompt} {} {planted} {}",
            row(&mut random, 20),
            row(&mut random, 5)
        );
        let index = LeakIndex::new([shown.as_str()], [prompt.as_str()]);
        found += u32::from(index.text(&protected).is_some());
        flagged += u32::from(index.text(&other).is_some() || index.text(&prompt).is_some());
        let id = format!("item-{at:020}");
        let with_id = format!("{prompt} see {}", dressed(&mut random, &id));
        let index = LeakIndex::new([with_id.as_str()], [prompt.as_str()]);
        found += u32::from(index.id(&id).is_some());
        flagged += u32::from(index.id(&format!("item-{:020}", at + 1)).is_some());
    }
    assert_eq!((found, flagged), (2 * cases, 0));
}
