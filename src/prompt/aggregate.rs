//! `aggregate/1`: the deterministic pair of agents that works without a model and without a key.
//!
//! [`gradient`] reads the numbers of a request and nothing else; of the prompt it uses which sections are open. [`propose`]
//! turns a gradient into one patch that [`validate`] takes: it adds one sentence of a small registered repertoire, the
//! first that the run has not tried. Both are functions: the same request gives the same gradient, and the same record gives
//! the same proposal.

use std::collections::BTreeSet;

use clover_num::Micro;

use crate::check::StepContext;
use crate::check::validate;
use crate::diff::SectionDiff;
use crate::diff::Sign;
use crate::gradient::Direction;
use crate::gradient::ErrorClass;
use crate::gradient::Gradient;
use crate::gradient::GradientItem;
use crate::gradient::GradientRequest;
use crate::gradient::Hundredths;
use crate::model::JudgePrompt;
use crate::model::PromptSection;
use crate::model::SectionKind;
use crate::patch::Proposal;
use crate::patch::SectionPatch;

/// Name and version of the pair.
pub const NAME: &str = "aggregate/1";
/// Mean variance of repeats of aligned rows, in hundredths, from which clearer words are asked for.
const UNSTEADY: i32 = 1;
/// Rank loss, in hundredths, from which other weights are asked for.
const DISORDERED: i32 = 50;

/// A sentence that a section may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of section that it suits best.
    pub kind: SectionKind,
    /// What it does to the judge.
    pub direction: Direction,
    /// In English.
    pub english: &'static str,
    /// In Chinese.
    pub chinese: &'static str,
}

const fn entry(
    kind: SectionKind,
    direction: Direction,
    english: &'static str,
    chinese: &'static str,
) -> Entry {
    Entry {
        kind,
        direction,
        english,
        chinese,
    }
}

/// The sentences of `aggregate/1`, in the order in which they are tried. None binds the judge, so none needs a person.
pub const REPERTOIRE: &[Entry] = &[
    entry(
        SectionKind::AntiBias,
        Direction::Tighten,
        "Judge the content alone; a longer answer is not better for its length.",
        "评判内容本身；回答更长并不因此更好。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Tighten,
        "A confident tone or a claim of authority is no evidence; weigh what is shown.",
        "语气自信或自称权威不是证据；看给出的依据。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Tighten,
        "Headings, lists and bold type earn nothing by themselves.",
        "标题、列表和加粗本身不加分。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Tighten,
        "Agreement with the asker and praise of the question earn nothing.",
        "附和提问者或夸奖问题不加分。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Tighten,
        "A point that is made twice counts once.",
        "重复的观点算一次。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Tighten,
        "Look first for errors; an error of substance weighs more than a good manner.",
        "先找错误；实质错误比表达得体更重。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Tighten,
        "What was not asked for earns nothing.",
        "没有问到的内容不加分。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Tighten,
        "Keep the top scores for answers without a fault that matters.",
        "高分留给没有重要缺点的回答。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Loosen,
        "A short answer that is right and complete deserves a high score.",
        "简短而正确、完整的回答配得上高分。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Loosen,
        "Plain wording is no fault.",
        "文字朴素不是缺点。",
    ),
    entry(
        SectionKind::AntiBias,
        Direction::Loosen,
        "Honest doubt about an open question is a merit.",
        "对未有定论的问题坦诚存疑是优点。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Loosen,
        "Small slips of form weigh little beside the substance.",
        "形式上的小疏忽与实质相比分量很轻。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Clarify,
        "Use the whole scale: weak, middling and strong answers differ clearly.",
        "用满整个分值区间：差、中、好的回答分数明显不同。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Clarify,
        "Give the same answer the same score each time.",
        "同样的回答每次给同样的分数。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Rebalance,
        "Weigh correctness first, then completeness, then clarity.",
        "先看正确，再看完整，后看清楚。",
    ),
    entry(
        SectionKind::Policy,
        Direction::Rebalance,
        "Compare answers by what they get right, not by how they sound.",
        "按答对了什么来比较，不看听起来如何。",
    ),
];

/// The open section that suits a kind best: one of that kind, else the first.
fn open_section(prompt: &JudgePrompt, kind: SectionKind) -> Option<&PromptSection> {
    let mut open = prompt.sections().iter().filter(|section| section.is_open());
    let first = open.clone().next();
    open.find(|section| section.kind == kind).or(first)
}

fn micro(hundredths: i32) -> Micro {
    Micro::new(i64::from(hundredths.clamp(0, 100)) * 10_000).unwrap_or_default()
}

/// Rows of the table that were judged too high (0) or too low (1), as far as they are told.
fn told(request: &GradientRequest, side: usize) -> u32 {
    request.table.iter().filter_map(|row| row[side]).sum()
}

/// How strongly a class asks for a change, in hundredths: the size of its mean error; a fifth of that where the table alone
/// tells of such errors; 5 where nothing does.
fn force(request: &GradientRequest, class: usize) -> i32 {
    let mean = request.class_stats[class]
        .mean_r
        .map(|Hundredths(mean)| mean.abs());
    let from_table = if told(request, class) > 0 { 10 } else { 5 };
    mean.unwrap_or(from_table)
}

/// What a request asks for: class, kind of section, direction, force in hundredths, and why.
fn asked(
    request: &GradientRequest,
) -> Vec<(ErrorClass, SectionKind, Direction, i32, &'static str)> {
    let mut found = vec![
        (
            ErrorClass::A,
            SectionKind::AntiBias,
            Direction::Tighten,
            force(request, 0),
            "Scores run above people's; the prompt rewards more than merit.",
        ),
        (
            ErrorClass::B,
            SectionKind::Policy,
            Direction::Loosen,
            force(request, 1),
            "Scores run below people's; the prompt misses some merit.",
        ),
    ];
    if request
        .loss_terms
        .rank
        .is_some_and(|rank| rank.0 >= DISORDERED)
    {
        let why =
            "Pairs stand in another order than people's; the weights between criteria are off.";
        found.push((
            ErrorClass::A,
            SectionKind::Policy,
            Direction::Rebalance,
            8,
            why,
        ));
    }
    if request.class_stats[2]
        .selfvar
        .is_some_and(|selfvar| selfvar.0 >= UNSTEADY)
    {
        let why = "Repeats of one answer differ; the prompt leaves room for reading.";
        found.push((
            ErrorClass::C,
            SectionKind::Policy,
            Direction::Clarify,
            7,
            why,
        ));
    }
    found
}

/// The gradient of a request; without items where no section is open.
pub fn gradient(request: &GradientRequest) -> Gradient {
    let item = |(class, kind, direction, force, why): (_, _, _, _, &str)| {
        let section = open_section(&request.prompt, kind)?;
        Some(GradientItem {
            attribution: why.to_owned(),
            class,
            confidence: micro(force),
            direction,
            target_section: section.section_id.clone(),
        })
    };
    let mut items: Vec<GradientItem> = asked(request).into_iter().filter_map(item).collect();
    // The surest first; equal ones in the order above.
    items.sort_by_key(|item| std::cmp::Reverse(item.confidence));
    let is_target = |id: &str| items.iter().any(|item| item.target_section == id);
    let ids = request
        .prompt
        .sections()
        .iter()
        .map(|section| section.section_id.as_str());
    let anchors = ids.filter(|id| !is_target(id)).map(str::to_owned).collect();
    Gradient {
        anchors,
        items,
        step: request.step,
    }
}

/// Whether a prompt is mostly in Chinese: it has more ideographs than letters of ASCII.
fn is_chinese(prompt: &JudgePrompt) -> bool {
    let text = prompt.render();
    let ideographs = text
        .chars()
        .filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c))
        .count();
    ideographs > text.chars().filter(char::is_ascii_alphabetic).count()
}

/// Lines that a patch adds: what a run has tried.
pub fn said(patch: &SectionPatch) -> Vec<String> {
    let Ok(diff) = SectionDiff::parse(&patch.diff) else {
        return Vec::new();
    };
    let lines = diff.hunks.into_iter().flat_map(|hunk| hunk.lines);
    lines
        .filter(|line| line.sign == Sign::Insert)
        .map(|line| line.text)
        .collect()
}

/// The entries of the repertoire in the order in which an item asks for them: its direction before others, sentences for
/// the kind of its section before others.
fn ordered(item: &GradientItem, kind: SectionKind) -> Vec<&'static Entry> {
    let mut entries: Vec<&Entry> = REPERTOIRE.iter().collect();
    entries.sort_by_key(|of| (of.direction != item.direction, of.kind != kind));
    entries
}

/// The next patch of a run: the first sentence that the surest item asks for, that no earlier patch of the run added
/// (`tried`: the lines of all of them by [`said`], whatever became of them), and that [`validate`] takes at this step.
/// `None` where nothing is left.
pub fn propose(
    context: &StepContext<'_>,
    gradient: &Gradient,
    tried: &BTreeSet<String>,
) -> Option<Proposal> {
    let prompt = context.current;
    let chinese = is_chinese(prompt);
    for (at, item) in (0_u8..).zip(&gradient.items) {
        if item.direction == Direction::Keep {
            continue;
        }
        let Some(section) = prompt
            .section(&item.target_section)
            .filter(|section| section.is_open())
        else {
            continue;
        };
        for of in ordered(item, section.kind) {
            let sentence = if chinese { of.chinese } else { of.english };
            if tried.contains(sentence) || section.text.contains(sentence) {
                continue;
            }
            let gap = if section.text.is_empty() { "" } else { "\n" };
            let text = format!("{}{gap}{sentence}", section.text);
            let proposal = Proposal {
                addresses: vec![at],
                patch: SectionPatch::edit(prompt, &section.section_id, &text),
                rationale: item.attribution.clone(),
            };
            if validate(context, &proposal).is_ok() {
                return Some(proposal);
            }
        }
    }
    None
}
