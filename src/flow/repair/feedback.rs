//! What a verifier says of a candidate without ground truth: flags, blame, a suggestion, and a score.
//!
//! Every number is a whole number of millionths, rounded down, so that any program computes it again exactly. The
//! suggestion is made by a function of its own, and the score never reads it.

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;

use crate::item::Item;
use crate::repair::edit::Operator;
use crate::task::ContextRule;
use crate::trace::RunOutcome;
use crate::value::Data;
use crate::workflow::Action;
use crate::workflow::GuardStep;
use crate::workflow::LlmStep;
use crate::workflow::Workflow;

/// One, in millionths.
pub const ONE: u64 = 1_000_000;
/// Domain of the digest of feedback.
const FEEDBACK_LABEL: &str = "clover/wf-feedback/v1";
/// Domain of the digest of an observation's detail.
const DETAIL_LABEL: &str = "clover/wf-observation/v1";
/// Most characters of a rationale.
const RATIONALE_MAX: usize = 280;
/// Members asked for at once from which on a step is worth splitting.
const WIDE: usize = 3;

/// Which candidates have no score at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Those that crash on every item. One that breaks a hard rule is ordered by its score, and never passes.
    Crashes,
    /// Those that crash on any item or break a hard rule on any.
    CrashesAndHard,
}

/// How a verifier scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerifierSettings {
    /// Tokens of a run that cost as much as counts.
    pub cost_reference: u64,
    /// Weight of the critic, in millionths; the satisfied rules weigh the rest. A verifier without a critic has 0.
    pub critic_weight: u64,
    /// Which candidates have no score.
    pub filter: Filter,
    /// Least share of items that keep a rule for its flag to be true, in millionths.
    pub held_share: u64,
}

impl Default for VerifierSettings {
    fn default() -> Self {
        Self {
            cost_reference: 2_000,
            critic_weight: 0,
            filter: Filter::Crashes,
            held_share: ONE,
        }
    }
}

/// A run of one item with its reruns.
#[derive(Clone, Debug)]
pub struct ItemEvidence<'a> {
    /// The item.
    pub item: &'a Item,
    /// The run that counts.
    pub run: &'a RunOutcome,
    /// Further runs of the same.
    pub reruns: &'a [RunOutcome],
    /// What a critic says of the output, in millionths; `None` without one.
    pub critic: Option<u64>,
}

/// Something that a verifier saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// `crash`, `rule` or `guard`.
    pub code: &'static str,
    /// Digest of what it was, with the item.
    pub detail: Digest,
    /// The step; empty where no step is known.
    pub step: String,
}

/// A rule of the context over all items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContextFlag {
    /// Whether an output is of no use where it is broken.
    pub hard: bool,
    /// Items that keep it.
    pub held: usize,
    /// The rule.
    pub id: String,
    /// Items.
    pub items: usize,
    /// Whether enough items keep it.
    pub ok: bool,
    /// Its weight, in millionths.
    pub weight: u64,
}

/// What is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlameKind {
    /// What the step is told.
    Prompt,
    /// What the step reads.
    Io,
    /// What stands around the step.
    Structure,
}

/// A step that is likely at fault for a rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// Share of items that break the rule, in millionths.
    pub confidence: u64,
    /// What is at fault.
    pub kind: BlameKind,
    /// The operator that would change it.
    pub operator: Operator,
    /// The rule.
    pub rule: String,
    /// The step.
    pub step: String,
}

/// What to try next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The operator.
    pub operator: Operator,
    /// Why, in at most 280 characters.
    pub rationale: String,
    /// The rule that it is for.
    pub rule: String,
    /// The step.
    pub step: String,
}

/// What a score is made of, each in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreParts {
    /// min(1, tokens of a run / reference), over the mean of items.
    pub cost: u64,
    /// Mean of what the critic says; 0 without one.
    pub critic: u64,
    /// Mean over items of the weighted share of rules that are kept; an item that crashed keeps none.
    pub satisfied: u64,
    /// Share of reruns that return what the first run did; 1 without reruns.
    pub stability: u64,
}

impl ScoreParts {
    /// (1 - w) satisfied + w critic - 0.1 cost - 0.1 (1 - stability), in millionths, rounded down.
    pub fn score(&self, critic_weight: u64) -> i64 {
        let of = |part: u64| i128::from(part);
        let (one, weight) = (of(ONE), of(critic_weight.min(ONE)));
        let gain = (one - weight) * of(self.satisfied) + weight * of(self.critic);
        let loss = 100_000 * (of(self.cost) + one - of(self.stability));
        i64::try_from((gain - loss).div_euclid(one)).unwrap_or(i64::MIN)
    }
}

/// What a verifier says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// Steps at fault, the surest first.
    pub blame: Vec<Blame>,
    /// Items that crashed.
    pub crashed: usize,
    /// Rules of the context, in their order.
    pub flags: Vec<ContextFlag>,
    /// What was seen.
    pub observations: Vec<Observation>,
    /// What the score is made of.
    pub parts: ScoreParts,
    /// The score in millionths; `null` where the filter leaves none.
    pub score: Option<i64>,
    /// What to try next; it is no part of the score.
    pub suggestion: Option<Suggestion>,
}

impl Feedback {
    /// SHA-256 of `clover/wf-feedback/v1`, a zero byte and its canonical form.
    pub fn digest(&self) -> Digest {
        canon::digest(FEEDBACK_LABEL, self)
    }

    /// Whether all hard rules are kept, nothing crashed, and the score reaches `theta` (millionths).
    pub fn passes(&self, theta: i64) -> bool {
        let hard = self
            .flags
            .iter()
            .filter(|flag| flag.hard)
            .all(|flag| flag.ok);
        hard && self.crashed == 0 && self.score.is_some_and(|score| score >= theta)
    }
}

/// Judges a candidate by its runs over a batch and the rules of its context.
pub fn feedback(
    workflow: &Workflow,
    rules: &[ContextRule],
    batch: &[ItemEvidence<'_>],
    settings: &VerifierSettings,
) -> Feedback {
    let items = batch.len();
    let held: Vec<Vec<bool>> = batch.iter().map(|of| kept(rules, of)).collect();
    let flags: Vec<ContextFlag> = rules
        .iter()
        .enumerate()
        .map(|(at, rule)| {
            let count = held.iter().filter(|of| of[at]).count();
            ContextFlag {
                hard: rule.is_hard,
                held: count,
                id: rule.id.clone(),
                items,
                ok: items > 0 && share(count, items) >= settings.held_share,
                weight: weight(rule),
            }
        })
        .collect();
    let crashed = batch.iter().filter(|of| of.run.crash().is_some()).count();
    let parts = parts(rules, &held, batch, settings);
    let is_out = match settings.filter {
        Filter::Crashes => crashed == items,
        Filter::CrashesAndHard => crashed > 0 || flags.iter().any(|flag| flag.hard && !flag.ok),
    };
    let blame = blamed(workflow, rules, &flags);
    Feedback {
        score: (!is_out).then(|| parts.score(settings.critic_weight)),
        suggestion: suggested(rules, &blame),
        observations: observed(rules, &held, batch),
        blame,
        crashed,
        flags,
        parts,
    }
}

/// A share in millionths, rounded down.
fn share(count: usize, of: usize) -> u64 {
    count as u64 * ONE / (of as u64).max(1)
}

fn weight(rule: &ContextRule) -> u64 {
    u64::try_from(rule.weight.millionths()).unwrap_or(0)
}

/// Which rules an item keeps.
fn kept(rules: &[ContextRule], of: &ItemEvidence<'_>) -> Vec<bool> {
    let output = of.run.output.as_ref();
    let holds = |rule: &ContextRule| output.is_some_and(|output| rule.holds(of.item, output));
    rules.iter().map(holds).collect()
}

fn parts(
    rules: &[ContextRule],
    held: &[Vec<bool>],
    batch: &[ItemEvidence<'_>],
    settings: &VerifierSettings,
) -> ScoreParts {
    let items = (batch.len() as u64).max(1);
    let all: u64 = rules.iter().map(weight).sum::<u64>().max(1);
    let satisfied = held.iter().zip(batch).map(|(of, evidence)| {
        if evidence.run.output.is_none() {
            return 0;
        }
        if rules.is_empty() {
            return ONE;
        }
        let kept = rules.iter().zip(of).filter(|(_, held)| **held);
        let kept: u64 = kept.map(|(rule, _)| weight(rule)).sum();
        u64::try_from(u128::from(kept) * u128::from(ONE) / u128::from(all)).unwrap_or(0)
    });
    let tokens = |run: &RunOutcome| run.usage.tokens_in.saturating_add(run.usage.tokens_out);
    let cost = batch.iter().map(|of| {
        let tokens = u128::from(tokens(of.run)) * u128::from(ONE);
        let reference = u128::from(settings.cost_reference.max(1));
        u64::try_from(tokens / reference)
            .unwrap_or(u64::MAX)
            .min(ONE)
    });
    let reruns: usize = batch.iter().map(|of| of.reruns.len()).sum();
    let same = batch.iter().flat_map(|of| {
        let first = of.run.trace.output;
        of.reruns
            .iter()
            .filter(move |again| again.trace.output == first)
    });
    ScoreParts {
        cost: cost.sum::<u64>() / items,
        critic: batch.iter().filter_map(|of| of.critic).sum::<u64>() / items,
        satisfied: satisfied.sum::<u64>() / items,
        stability: if reruns == 0 {
            ONE
        } else {
            share(same.count(), reruns)
        },
    }
}

fn observed(
    rules: &[ContextRule],
    held: &[Vec<bool>],
    batch: &[ItemEvidence<'_>],
) -> Vec<Observation> {
    let mut all = Vec::new();
    for (of, held) in batch.iter().zip(held) {
        let mut see = |code, step: &str, what: &str| {
            let detail = Data::List(vec![of.item.id.as_str().into(), what.into()]);
            all.push(Observation {
                code,
                detail: canon::digest(DETAIL_LABEL, &detail),
                step: step.to_owned(),
            });
        };
        if let Some(crash) = of.run.crash() {
            see("crash", &crash.step, &crash.detail);
            continue;
        }
        for (rule, held) in rules.iter().zip(held) {
            if !held {
                see("rule", "", &rule.id);
            }
        }
        for step in &of.run.trace.steps {
            if step.guard.as_ref().is_some_and(|guard| guard.still) {
                see("guard", &step.step, "still");
            }
        }
    }
    all
}

/// The llm step that makes the member of the output that a rule is about; else the last one.
fn maker<'a>(workflow: &'a Workflow, rule: &ContextRule) -> Option<(&'a str, &'a LlmStep, usize)> {
    let steps = workflow.steps().iter().enumerate();
    let llm = steps.filter_map(|(at, step)| match &step.action {
        Action::Llm(llm) => Some((step.id.as_str(), &**llm, at)),
        _ => None,
    });
    let llm: Vec<_> = llm.collect();
    let member = rule
        .check
        .paths()
        .into_iter()
        .find(|path| path.root() == "y");
    let member = member.and_then(|path| path.below().first());
    let makes = |of: &&(&str, &LlmStep, usize)| {
        let shape = of.1.shape.iter().flat_map(crate::shape::Shape::properties);
        member.is_some_and(|member| shape.into_iter().any(|name| name == member))
    };
    llm.iter().rev().find(makes).or(llm.last()).copied()
}

/// Whether a step is told a rule.
pub(crate) fn is_told(llm: &LlmStep, rule: &ContextRule) -> bool {
    let system = llm.system.as_ref().map_or("", |of| of.as_str());
    system.contains(&rule.text) || llm.user.as_str().contains(&rule.text)
}

fn blamed(workflow: &Workflow, rules: &[ContextRule], flags: &[ContextFlag]) -> Vec<Blame> {
    let mut all = Vec::new();
    for (rule, flag) in rules.iter().zip(flags) {
        let Some((step, llm, place)) = maker(workflow, rule) else {
            continue;
        };
        if flag.held == flag.items {
            continue;
        }
        let unread = rule.check.paths().into_iter().find(|path| {
            let is_input = path.root() == "c" || path.root() == "x";
            is_input && !llm.reads.iter().any(|read| path.is_within(read))
        });
        let guards = |guard: &GuardStep| guard.target == place;
        let is_guarded = workflow.steps().iter().any(|step| match &step.action {
            Action::Guard(guard) => guards(guard),
            _ => false,
        });
        let width = llm
            .shape
            .iter()
            .flat_map(crate::shape::Shape::properties)
            .count();
        let (kind, operator) = if !is_told(llm, rule) {
            (BlameKind::Prompt, Operator::EditPrompt)
        } else if unread.is_some() {
            (BlameKind::Io, Operator::RewireIo)
        } else if is_guarded && width >= WIDE {
            (BlameKind::Structure, Operator::SplitStep)
        } else {
            (BlameKind::Structure, Operator::InsertRetryGuard)
        };
        all.push(Blame {
            confidence: share(flag.items - flag.held, flag.items),
            kind,
            operator,
            rule: rule.id.clone(),
            step: step.to_owned(),
        });
    }
    let weight = |blame: &Blame| {
        let flag = flags.iter().find(|flag| flag.id == blame.rule);
        flag.map_or((false, 0), |flag| (flag.hard, flag.weight))
    };
    // Hard before soft, then by how much of the score is at stake, then by the order of the rules.
    all.sort_by_key(|blame| {
        let (hard, weight) = weight(blame);
        std::cmp::Reverse((hard, u128::from(weight) * u128::from(blame.confidence)))
    });
    all
}

/// What to try next: the surest blame, in words.
fn suggested(rules: &[ContextRule], blame: &[Blame]) -> Option<Suggestion> {
    let first = blame.first()?;
    let rule = rules.iter().find(|rule| rule.id == first.rule)?;
    let why = match first.kind {
        BlameKind::Prompt => format!("{} is not told: {}", first.step, rule.text),
        BlameKind::Io => format!(
            "{} does not read what this rule is about: {}",
            first.step, rule.text
        ),
        BlameKind::Structure => format!("{} is told and breaks it: {}", first.step, rule.text),
    };
    Some(Suggestion {
        operator: first.operator,
        rationale: why.chars().take(RATIONALE_MAX).collect(),
        rule: first.rule.clone(),
        step: first.step.clone(),
    })
}
