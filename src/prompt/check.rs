//! The validator: whether a step may take a patch, by its bytes alone.
//!
//! Every rule is arithmetic in integers, so another program finds the same violations with the same numbers.

use std::collections::BTreeSet;

use clover_ground::digest::Digest;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::diff::FileChange;
use crate::lexicon::LEVEL_HARD;
use crate::lexicon::LEVEL_MAX;
use crate::lexicon::Lexicon;
use crate::model;
use crate::model::JudgePrompt;
use crate::model::LINES_MAX;
use crate::model::ORD_MAX;
use crate::model::PromptSection;
use crate::model::SECTIONS_MAX;
use crate::model::SENTENCES_MAX;
use crate::myers;
use crate::normal;
use crate::patch;
use crate::patch::ChangeKind;
use crate::patch::Proposal;
use crate::patch::RATIONALE_MAX;
use crate::schedule::Schedule;
use crate::sentence;

/// Edits beyond this many characters are not counted on: one more is reported.
pub const DISTANCE_MAX: usize = 4_096;

/// The rules of a patch, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchRule {
    /// The rationale is one line of at most 280 characters. Measured: characters, or 281 where it is no such line.
    Rationale,
    /// The items that the patch answers are items of the gradient, each once. Measured: how many are not.
    Addresses,
    /// The patch edits the prompt in force. Measured: 1.
    Parent,
    /// The patch is a unified diff of the section that it names, with the fields of its change. Measured: the line of the
    /// diff, 0 for the fields.
    Form,
    /// The section is there, or is new where it is added. Measured: sections, where there would be too many; else 1.
    Section,
    /// The section is open. Measured: 1.
    Frozen,
    /// A section that is added warns of bias or is a policy. Measured: 1.
    Kind,
    /// Sections are added, removed and moved only from the rate tau on. Measured: the rate; bound: tau; in millionths.
    BelowTau,
    /// At most three hunks. Measured: hunks.
    Hunks,
    /// The diff applies with zero fuzz. Measured: the line of the diff, 0 for all of it.
    Context,
    /// A section that is added or moved has a place of its own. Measured: the place.
    Order,
    /// The new text is in normal form, and no new line of it looks like a heading or a comment of a section. Measured: 1, or
    /// its lines or sentences where they are too many.
    NormalForm,
    /// Something changes. Measured: 0.
    NoChange,
    /// The new text fits its section. Measured: characters.
    SectionLength,
    /// Characters deleted and inserted stay within the clip of the step; all those of a section that comes or goes.
    Chars,
    /// No sentence changes its modal level by more than one. Measured: the most.
    SentenceLevel,
    /// Levels that are gained, over all sentences. Measured: their sum.
    Levels,
    /// No sentence rises to level 4 without a person's approval. Measured: how many do.
    Approval,
    /// Soft sentences that become hard rules. Measured: how many.
    SoftToHard,
    /// Characters, levels and hard rules together. Measured and bound in millionths.
    EffectiveStep,
    /// The rendered prompt stays within its growth over version 0. Measured: characters.
    Growth,
    /// No words of rows. [`validate`] has no rows: [`crate::leak`] finds them. Measured: how many texts.
    Leak,
}

impl PatchRule {
    /// All of them, in order.
    pub const ALL: [Self; 22] = [
        Self::Rationale,
        Self::Addresses,
        Self::Parent,
        Self::Form,
        Self::Section,
        Self::Frozen,
        Self::Kind,
        Self::BelowTau,
        Self::Hunks,
        Self::Context,
        Self::Order,
        Self::NormalForm,
        Self::NoChange,
        Self::SectionLength,
        Self::Chars,
        Self::SentenceLevel,
        Self::Levels,
        Self::Approval,
        Self::SoftToHard,
        Self::EffectiveStep,
        Self::Growth,
        Self::Leak,
    ];

    /// The word in events and findings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rationale => "rationale",
            Self::Addresses => "addresses",
            Self::Parent => "parent",
            Self::Form => "form",
            Self::Section => "section",
            Self::Frozen => "frozen",
            Self::Kind => "kind",
            Self::BelowTau => "below_tau",
            Self::Hunks => "hunks",
            Self::Context => "context",
            Self::Order => "order",
            Self::NormalForm => "normal_form",
            Self::NoChange => "no_change",
            Self::SectionLength => "section_length",
            Self::Chars => "chars",
            Self::SentenceLevel => "sentence_level",
            Self::Levels => "levels",
            Self::Approval => "approval",
            Self::SoftToHard => "soft_to_hard",
            Self::EffectiveStep => "effective_step",
            Self::Growth => "growth",
            Self::Leak => "leak",
        }
    }
}

/// A rule that a proposal breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// What the rule allows; most of them at most this. In the unit of the measure.
    pub bound: i64,
    /// What was measured, in the unit that [`PatchRule`] says.
    pub measured: i64,
    /// The rule.
    pub rule: PatchRule,
}

/// What bounds every step of a run; registered before step 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchTerms {
    /// Fewest characters that the clip of a step allows: 20.
    pub chars_min: u32,
    /// Characters that the clip allows at a rate of 1, and that make an effective step of 1: 400.
    pub chars_scale: u32,
    /// Length of the rendered prompt over that of version 0, in millionths: 1.25.
    pub growth_max: Micro,
    /// Most hunks of a diff: 3.
    pub hunks_max: u32,
    /// The schedule of rates.
    pub schedule: Schedule,
    /// Most characters of a section that is added or removed: 600.
    pub section_chars_max: u32,
}

impl Default for PatchTerms {
    fn default() -> Self {
        Self {
            chars_min: 20,
            chars_scale: 400,
            growth_max: Micro::new(1_250_000).unwrap_or_default(),
            hunks_max: 3,
            schedule: Schedule::default(),
            section_chars_max: 600,
        }
    }
}

/// What a proposal is held against.
#[derive(Clone, Copy, Debug)]
pub struct StepContext<'a> {
    /// Digests of patches ([`crate::SectionPatch::digest`]) that a person let introduce sentences of level 4.
    pub approvals: &'a BTreeSet<Digest>,
    /// The prompt in force.
    pub current: &'a JudgePrompt,
    /// Items of the gradient that the optimizer was given.
    pub gradient_items: usize,
    /// How strongly sentences bind.
    pub lexicon: &'a Lexicon,
    /// Version 0.
    pub prompt0: &'a JudgePrompt,
    /// The step, from 0.
    pub step: u32,
    /// The registered terms.
    pub terms: &'a PatchTerms,
}

/// What was measured of a patch that a step may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepMeasures {
    /// Characters deleted and inserted.
    pub chars: u32,
    /// Most that the clip allows.
    pub chars_max: u32,
    /// The effective step, in millionths.
    pub effective: Micro,
    /// Most that the rate allows, in millionths.
    pub effective_max: Micro,
    /// Hunks of the diff.
    pub hunks: u32,
    /// Sentences that rise to level 4.
    pub level_4: u32,
    /// Levels gained and lost, over all sentences.
    pub levels_moved: u32,
    /// Levels gained, over all sentences.
    pub levels_up: u32,
    /// The rate, in millionths.
    pub lr: Micro,
    /// Characters of the rendered prompt.
    pub prompt_chars: u32,
    /// Soft sentences that become hard rules.
    pub soft_to_hard: u32,
}

/// A patch that a step may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedPatch {
    /// What it does.
    pub change: ChangeKind,
    /// What was measured.
    pub measures: StepMeasures,
    /// The digest of the patch.
    pub patch_digest: Digest,
    /// The next version of the prompt.
    pub prompt: JudgePrompt,
    /// The section that it edits.
    pub section: String,
}

/// Violations as they are found.
#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, rule: PatchRule, measured: i64, bound: i64) {
        self.0.push(Violation {
            bound,
            measured,
            rule,
        });
    }

    /// Adds a violation where more was measured than is allowed.
    fn at_most(&mut self, rule: PatchRule, measured: i64, bound: i64) {
        if measured > bound {
            self.add(rule, measured, bound);
        }
    }

    fn stop<T>(mut self, rule: PatchRule, measured: i64, bound: i64) -> Result<T, Vec<Violation>> {
        self.add(rule, measured, bound);
        Err(self.0)
    }
}

fn int(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

fn small(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap_or_default()
}

/// Whether a step may take a proposal, and what the prompt is after it.
///
/// # Errors
/// Every rule that it breaks, in order. A rule that later ones rest on ends the list: parent, form, section, context, and
/// too many sentences.
pub fn validate(
    context: &StepContext<'_>,
    proposal: &Proposal,
) -> Result<ValidatedPatch, Vec<Violation>> {
    let mut found = Violations::default();
    check_words(context, proposal, &mut found);
    let (patch, current) = (&proposal.patch, context.current);
    if patch.parent != current.digest() {
        return found.stop(PatchRule::Parent, 1, 0);
    }
    let edit = match patch::edit_of(patch) {
        Ok(edit) => edit,
        Err(line) => return found.stop(PatchRule::Form, line, 0),
    };
    let change = edit.change;
    let old = current.section(&patch.section);
    if old.is_some() == (change == ChangeKind::Add) {
        return found.stop(PatchRule::Section, 1, 0);
    }
    if change == ChangeKind::Add && current.sections().len() >= SECTIONS_MAX {
        return found.stop(PatchRule::Section, int(SECTIONS_MAX + 1), int(SECTIONS_MAX));
    }
    let moves = old.is_some_and(|old| patch.ord.is_some_and(|ord| ord != old.ord));
    check_place(context, proposal, change, moves, &mut found);
    let old_text = old.map_or("", |old| old.text.as_str());
    let hunks = edit.diff.as_ref().map_or(0, |diff| diff.hunks.len());
    let hunks_max = i64::from(context.terms.hunks_max);
    found.at_most(PatchRule::Hunks, int(hunks), hunks_max);
    let new_text = match edit.diff.as_ref().map(|diff| diff.apply(old_text)) {
        None => old_text.to_owned(),
        Some(Ok(text)) if change != ChangeKind::Remove || text.is_empty() => text,
        Some(Ok(_)) => return found.stop(PatchRule::Context, 0, 0),
        Some(Err(error)) => return found.stop(PatchRule::Context, int(error.line()), 0),
    };
    let sentences = sentence::sentences(&new_text).len();
    if sentences > SENTENCES_MAX {
        return found.stop(PatchRule::NormalForm, int(sentences), int(SENTENCES_MAX));
    }
    let sections = sections_after(context, proposal, change, &new_text, &mut found);
    if !moves && matches!(change, ChangeKind::Edit | ChangeKind::Move) && new_text == old_text {
        found.add(PatchRule::NoChange, 0, 1);
    }
    if let (Some(old), ChangeKind::Edit) = (old, change) {
        let chars = int(normal::scalars(&new_text));
        found.at_most(PatchRule::SectionLength, chars, i64::from(old.max_chars));
    }
    let mut measures = measure(context, proposal, change, [old_text, &new_text], &mut found);
    measures.hunks = small(int(hunks));
    let chars = |sections: &[PromptSection]| int(normal::scalars(&model::render(sections)));
    measures.prompt_chars = small(chars(&sections));
    let growth = chars(context.prompt0.sections()).saturating_mul(context.terms.growth_max.value())
        / 1_000_000;
    found.at_most(PatchRule::Growth, chars(&sections), growth);
    if !found.0.is_empty() {
        return Err(found.0);
    }
    match patch::following(current, patch, sections) {
        Some(prompt) => Ok(ValidatedPatch {
            change,
            measures,
            patch_digest: patch.digest(),
            prompt,
            section: patch.section.clone(),
        }),
        // Removing the last section, or a prompt beyond what any may have.
        None => found.stop(PatchRule::Section, 1, 0),
    }
}

fn check_words(context: &StepContext<'_>, proposal: &Proposal, found: &mut Violations) {
    let rationale = &proposal.rationale;
    let bound = int(RATIONALE_MAX);
    let is_line = normal::check(rationale).is_ok() && !rationale.contains('\n');
    let chars = if is_line {
        int(normal::scalars(rationale))
    } else {
        bound + 1
    };
    found.at_most(PatchRule::Rationale, chars, bound);
    let known: BTreeSet<u8> = proposal
        .addresses
        .iter()
        .copied()
        .filter(|at| usize::from(*at) < context.gradient_items)
        .collect();
    found.at_most(
        PatchRule::Addresses,
        int(proposal.addresses.len() - known.len()),
        0,
    );
}

fn check_place(
    context: &StepContext<'_>,
    proposal: &Proposal,
    change: ChangeKind,
    moves: bool,
    found: &mut Violations,
) {
    let patch = &proposal.patch;
    if context
        .current
        .section(&patch.section)
        .is_some_and(|old| !old.is_open())
    {
        found.add(PatchRule::Frozen, 1, 0);
    }
    if patch.kind.is_some_and(|kind| !kind.may_be_added()) {
        found.add(PatchRule::Kind, 1, 0);
    }
    let schedule = &context.terms.schedule;
    let lr = schedule.lr(context.step);
    if (change != ChangeKind::Edit || moves) && lr < schedule.tau {
        found.add(PatchRule::BelowTau, lr.value(), schedule.tau.value());
    }
}

/// The sections after the change; places and texts are checked.
fn sections_after(
    context: &StepContext<'_>,
    proposal: &Proposal,
    change: ChangeKind,
    text: &str,
    found: &mut Violations,
) -> Vec<PromptSection> {
    let patch = &proposal.patch;
    let sections = context.current.sections();
    let last = sections.last().map_or(0, |section| section.ord);
    let ord = match change {
        ChangeKind::Add => Some(patch.ord.unwrap_or(last.saturating_add(10))),
        _ => patch.ord,
    };
    let taken = |ord| {
        sections
            .iter()
            .any(|section| section.section_id != patch.section && section.ord == ord)
    };
    if let Some(ord) = ord.filter(|ord| *ord > ORD_MAX || taken(*ord)) {
        found.add(PatchRule::Order, i64::from(ord), i64::from(ORD_MAX));
    }
    let title = patch.title.as_deref().unwrap_or_default();
    let before = context.current.section(&patch.section);
    let before = before.map_or("", |old| old.text.as_str());
    // A judge that reads the rendered prompt cannot tell such a line from a frozen section.
    let poses = |line: &str| normal::poses(line) && !before.split('\n').any(|known| known == line);
    let is_posing = text.split('\n').any(poses);
    if is_posing || normal::check(text).is_err() || model::check_title(title).is_err() {
        found.add(PatchRule::NormalForm, 1, 0);
    } else {
        let lines = text.split('\n').count();
        found.at_most(PatchRule::NormalForm, int(lines), int(LINES_MAX));
    }
    let change = match change {
        ChangeKind::Add => FileChange::Add,
        ChangeKind::Remove => FileChange::Remove,
        ChangeKind::Edit | ChangeKind::Move => FileChange::Edit,
    };
    patch::changed(
        sections,
        patch,
        change,
        text.to_owned(),
        context.terms.section_chars_max,
    )
}

/// The level of a sentence before and after; `None` where it is not there.
type LevelPair = (Option<u8>, Option<u8>);

/// Holds the length and the modal strength of an edit against the rate.
fn measure(
    context: &StepContext<'_>,
    proposal: &Proposal,
    change: ChangeKind,
    [old, new]: [&str; 2],
    found: &mut Violations,
) -> StepMeasures {
    let terms = context.terms;
    let lr = terms.schedule.lr(context.step).value();
    let title = proposal.patch.title.as_deref().unwrap_or_default();
    let clip = i64::from(terms.chars_min).max(i64::from(terms.chars_scale) * lr / 1_000_000);
    let (chars, chars_max) = match change {
        ChangeKind::Add => (
            int(normal::scalars(new) + normal::scalars(title)),
            i64::from(terms.section_chars_max),
        ),
        ChangeKind::Remove => (
            int(normal::scalars(old)),
            i64::from(terms.section_chars_max),
        ),
        ChangeKind::Edit | ChangeKind::Move => (
            int(myers::scalars(old, new, DISTANCE_MAX).unwrap_or(DISTANCE_MAX + 1)),
            clip,
        ),
    };
    found.at_most(PatchRule::Chars, chars, chars_max);
    let new = if title.is_empty() {
        new.to_owned()
    } else {
        format!("{title}\n{new}")
    };
    let (pairs, consequences) = levels(context.lexicon, old, &new);
    let delta = |(old, new): &LevelPair| i64::from(new.unwrap_or(0)) - i64::from(old.unwrap_or(0));
    if change != ChangeKind::Remove {
        let most = pairs
            .iter()
            .map(|pair| delta(pair).abs())
            .max()
            .unwrap_or(0);
        found.at_most(PatchRule::SentenceLevel, most, 1);
    }
    let up: i64 = pairs.iter().map(|pair| delta(pair).max(0)).sum();
    let moved: i64 = pairs.iter().map(|pair| delta(pair).abs()).sum();
    found.at_most(PatchRule::Levels, up, 1 + 2 * lr / 1_000_000);
    let rises = |(old, new): &&LevelPair| *new == Some(LEVEL_MAX) && *old != Some(LEVEL_MAX);
    let level_4 = int(pairs.iter().filter(rises).count());
    if !context.approvals.contains(&proposal.patch.digest()) {
        found.at_most(PatchRule::Approval, level_4, 0);
    }
    let hardens = |(old, new): &&LevelPair| {
        old.is_some_and(|old| old < LEVEL_HARD) && new.is_some_and(|new| new >= LEVEL_HARD)
    };
    let soft = int(pairs.iter().filter(hardens).count()) + consequences;
    found.at_most(
        PatchRule::SoftToHard,
        soft,
        i64::from(lr >= terms.schedule.tau.value()),
    );
    let effective =
        chars * 1_000_000 / i64::from(terms.chars_scale.max(1)) + 250_000 * moved + 500_000 * soft;
    let effective_max = 3 * lr / 2 + 250_000;
    found.at_most(PatchRule::EffectiveStep, effective, effective_max);
    StepMeasures {
        chars: small(chars),
        chars_max: small(chars_max),
        effective: micro(effective),
        effective_max: micro(effective_max),
        level_4: small(level_4),
        levels_moved: small(moved),
        levels_up: small(up),
        lr: micro(lr),
        soft_to_hard: small(soft),
        ..StepMeasures::default()
    }
}

/// Levels of the sentences of both texts, and how many new sentences name a consequence in numbers.
fn levels(lexicon: &Lexicon, old: &str, new: &str) -> (Vec<LevelPair>, i64) {
    let (old, new) = (sentence::sentences(old), sentence::sentences(new));
    let aligned = sentence::align(&old, &new);
    let level = |of: &[&str], at: Option<usize>| at.map(|at| lexicon.level(of[at]));
    let pairs = aligned
        .iter()
        .map(|pair| (level(&old, pair.old), level(&new, pair.new)))
        .collect();
    let inserted = aligned.iter().filter(|pair| pair.old.is_none());
    let consequences =
        inserted.filter(|pair| pair.new.is_some_and(|at| lexicon.is_consequence(new[at])));
    (pairs, int(consequences.count()))
}
