//! How two judges are shown that were held against the same labels.

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::session::judge::agreement::Comparison;
use crate::view::View;
use crate::view::answer::Answer;
use crate::view::answer::CLAIMED;
use crate::view::answer::UNCLAIMED;
use crate::view::answer::UNRECORDED;
use crate::view::iterate::number;
use crate::view::text::thousands;
use crate::view::values;
use crate::workflow::judge::agreement::ALPHA;

/// Two judges on the same labelled rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgesCompared {
    /// The answer in words.
    pub answer: Answer,
    /// Each judge with the error that it leaves, in the order asked for, or on record.
    pub judges: [JudgeError; 2],
    /// Error of the first less error of the second: above 0 the second agrees better.
    pub difference: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The level of the interval.
    pub level: f64,
    /// The judge that agrees better; `null` where the interval holds 0, or where a planned comparison is in doubt.
    pub better: Option<JudgeId>,
    /// Labelled rows that both scored.
    pub rows: u64,
    /// Items among them.
    pub items: u64,
    /// Labelled rows that one of them did not score.
    pub unpaired: u64,
    /// Labelled rows that neither scored.
    pub unscored: u64,
    /// Rows that one of them scored once a label of the policy could be read, of prompts with such a label.
    pub late: u64,
    /// By how much the difference could move if late and missing scores were the worst.
    pub worst: f64,
    /// The plan that named the comparison before the first label; `null` where it is exploratory.
    pub plan: Option<ManifestId>,
    /// Where it stands on record; `null` where it does not.
    pub seq: Option<u64>,
}

/// What a judge leaves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeError {
    /// The judge.
    pub judge: JudgeId,
    /// Mean squared error of the label, read from its score by a curve that never saw the row.
    pub squared_error: f64,
}

/// Which judge agrees better, how sure that is, and whether it may be claimed.
fn answered(comparison: &Comparison, level: f64, failing: &[String]) -> Answer {
    let (of, seq) = (&comparison.said, comparison.seq);
    let (first, second) = (&of.first, &of.second);
    let percent = number(level * 100.0);
    let (low, high) = (number(of.low.value()), number(of.high.value()));
    let by = number(of.difference.value());
    let by = format!("{by} ({percent} % interval [{low}, {high}])");
    let found = match comparison.by_interval() {
        Some(better) => {
            let than = if better == first { second } else { first };
            format!(
                "{better} agrees better with the labels than {than}: error of {first} less error of {second} is {by}."
            )
        }
        None => format!(
            "{first} and {second} are not told apart by the labels: error of {first} less error of {second} is {by}."
        ),
    };
    let chosen = match comparison.seen {
        Some(seen) => format!("It was recorded before with other numbers, at seq {seen}, so whoever asks again has seen them."),
        None => "No plan named it before the first label, so whoever chose the pair may have seen what it says.".to_owned(),
    };
    let doubts = doubted(comparison, failing).join(" ");
    let is_settled = comparison.settled().is_some() && failing.is_empty();
    let may_be_claimed = seq.is_some() && of.plan.is_some() && of.better.is_some() && is_settled;
    // The claim stands beside what was found, and what it rests on comes after.
    let (claim, why) = match (&of.plan, seq) {
        (None, None) => (UNRECORDED.to_owned(), chosen),
        (None, Some(_)) => (format!("It is exploratory. {UNCLAIMED}"), chosen),
        (Some(_), None) => (UNRECORDED.to_owned(), String::new()),
        (Some(plan), Some(_)) => {
            let claim = if may_be_claimed { CLAIMED } else { UNCLAIMED };
            let named = format!("Plan {} named it before the first label.", plan.manifest);
            let why = match comparison.by_interval() {
                Some(_) => named,
                None => format!("{named} That is no proof that they agree alike."),
            };
            (claim.to_owned(), why)
        }
    };
    let parts = [found, claim, doubts, why];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let text = parts.join(" ");
    Answer {
        text,
        may_be_claimed,
    }
}

/// What stands against a claim, a sentence each.
fn doubted(comparison: &Comparison, failing: &[String]) -> Vec<String> {
    let (of, doubts) = (&comparison.said, &comparison.doubts);
    let mut found = Vec::new();
    let mut say = |rows: u64, what: &str| {
        if rows > 0 {
            found.push(format!("{what}: {}.", thousands(rows)));
        }
    };
    say(
        doubts.late,
        "Rows of labelled prompts that one of them scored once labels could be read",
    );
    say(
        of.unpaired.value(),
        "Labelled rows with a score of one of them alone",
    );
    say(
        doubts.unscored as u64,
        "Labelled rows without a score of either",
    );
    if comparison.by_interval().is_some() && !found.is_empty() {
        let worst = number(doubts.worst);
        let low = of.low.value() - doubts.worst > 0.0;
        let holds = low || of.high.value() + doubts.worst < 0.0;
        found.push(if holds {
            format!("Their worst scores would move the difference by {worst} at most, which does not change that.")
        } else {
            format!("Their worst scores could move the difference by {worst}, and undo it.")
        });
    }
    found.extend(doubts.chosen.iter().map(values::beyond_the_draw));
    found.extend(failing.iter().cloned());
    found
}

impl JudgesCompared {
    /// What was found, and where it stands on record. `failing` says which assumptions about the judges and the label fail.
    pub fn of(comparison: &Comparison, failing: &[String]) -> Self {
        let (of, seq) = (&comparison.said, comparison.seq);
        let named = of.plan.as_ref().map_or(1, |of| of.comparisons.value());
        let level = 1.0 - ALPHA / named.max(1) as f64;
        let judge = |judge: &JudgeId, error: f64| JudgeError {
            judge: judge.clone(),
            squared_error: error,
        };
        Self {
            answer: answered(comparison, level, failing),
            judges: [
                judge(&of.first, of.first_error.value()),
                judge(&of.second, of.second_error.value()),
            ],
            difference: of.difference.value(),
            low: of.low.value(),
            high: of.high.value(),
            level,
            better: of.better.clone(),
            rows: of.rows.value(),
            items: of.items.value(),
            unpaired: of.unpaired.value(),
            unscored: comparison.doubts.unscored as u64,
            late: comparison.doubts.late,
            worst: comparison.doubts.worst,
            plan: of.plan.as_ref().map(|of| of.manifest.clone()),
            seq,
        }
    }
}

/// A comparison: what follows first.
pub fn shown(of: &Comparison, failing: &[String]) -> View {
    let facts = JudgesCompared::of(of, failing);
    let mut view = View::of(&facts);
    view.answer(facts.answer.text.clone());
    view.gap();
    let rows = facts.judges.iter();
    let rows = rows.map(|of| vec![of.judge.to_string(), number(of.squared_error)]);
    view.table(&["judge", "squared error"], rows);
    view.pairs([
        (
            "rows",
            format!(
                "{} of {} items",
                thousands(facts.rows),
                thousands(facts.items)
            ),
        ),
        ("unpaired", thousands(facts.unpaired)),
        ("unscored", thousands(facts.unscored)),
        ("scored late", thousands(facts.late)),
        ("level", number(facts.level)),
    ]);
    if let Some(seq) = facts.seq {
        view.sentence(format!("It is on record at seq {seq}."));
    }
    let verdict = facts.plan.as_ref().map_or("exploratory", |_| "planned");
    view.with_verdict(verdict)
}
