//! How two judges are shown that were held against the same labels.

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::session::judge::agreement::Comparison;
use crate::view::View;
use crate::view::iterate::number;
use crate::view::text::thousands;

/// Error rate of the interval, shared by the comparisons that a plan names.
const ALPHA: f64 = 0.05;

/// Two judges on the same labelled rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgesCompared {
    /// Each judge with the error that it leaves, in the order asked for.
    pub judges: [JudgeError; 2],
    /// Error of the first less error of the second: above 0 the second agrees better.
    pub difference: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The level of the interval.
    pub level: f64,
    /// The judge that agrees better; `null` where the interval holds 0.
    pub better: Option<JudgeId>,
    /// Labelled rows that both scored.
    pub rows: u64,
    /// Items among them.
    pub items: u64,
    /// Labelled rows that one of them did not score.
    pub unpaired: u64,
    /// The plan that named the comparison before the first label; `null` where it is exploratory.
    pub plan: Option<ManifestId>,
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

impl From<&Comparison> for JudgesCompared {
    fn from(of: &Comparison) -> Self {
        let found = &of.compared.found;
        let named = of.plan.as_ref().map_or(1, |(_, count)| *count);
        let alpha = ALPHA / named as f64;
        let interval = found.interval(alpha);
        let [first, second] = &of.judges;
        let better = if interval.low > 0.0 {
            Some(second.clone())
        } else if interval.high < 0.0 {
            Some(first.clone())
        } else {
            None
        };
        let judge = |at: usize| JudgeError {
            judge: of.judges[at].clone(),
            squared_error: found.errors[at],
        };
        Self {
            judges: [judge(0), judge(1)],
            difference: found.difference,
            low: interval.low,
            high: interval.high,
            level: 1.0 - alpha,
            better,
            rows: found.rows as u64,
            items: found.clusters as u64,
            unpaired: of.compared.unpaired as u64,
            plan: of.plan.as_ref().map(|(id, _)| id.clone()),
        }
    }
}

/// A comparison: what follows first.
pub fn shown(of: &Comparison) -> View {
    let facts = JudgesCompared::from(of);
    let mut view = View::of(&facts);
    let [first, second] = &of.judges;
    let (low, high) = (number(facts.low), number(facts.high));
    let by = format!("{} ({low} to {high})", number(facts.difference));
    view.sentence(match &facts.better {
        Some(better) => format!("{better} agrees better with the labels: error of {first} less error of {second} is {by}."),
        None => format!("Which agrees better cannot be said: error of {first} less error of {second} is {by}."),
    });
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
        ("level", number(facts.level)),
    ]);
    view.sentence(match &facts.plan {
        Some(plan) => format!("Plan {plan} named it before the first label."),
        None => "Exploratory: no plan named it before the first label, so whoever chose the pair may have seen what it says.".to_owned(),
    });
    let verdict = facts.plan.as_ref().map_or("exploratory", |_| "planned");
    view.with_verdict(verdict)
}
