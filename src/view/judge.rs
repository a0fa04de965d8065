//! How judges are shown: what a run scored, whether one says the same again, and who is registered.

use serde::Serialize;

use crate::event::id::ItemId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::id::Root;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::ScoreReplayed;
use crate::ledger::AppendedEvent;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::session::judge::history::JudgeHistory;
use crate::session::judge::judging::RunCounts;
use crate::view::LOG;
use crate::view::View;
use crate::view::text::thousands;

/// What a run of a judge did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeRun {
    /// The judge.
    pub judge: JudgeId,
    /// Rows that were scored and are on record now.
    pub scored: u64,
    /// Rows that were on record before.
    pub already: u64,
    /// Rows whose score differs from the one on record, which stands.
    pub conflicts: u64,
    /// Rows that the judge declined: they have no score, and the next run asks about them again.
    pub declined: Vec<DeclinedRow>,
}

/// A row that a judge declined.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeclinedRow {
    /// Whose response.
    pub policy: PolicyId,
    /// To what.
    pub item: ItemId,
    /// Which draw, from 0.
    pub draw: Count,
    /// What the judge said.
    pub reason: String,
}

/// Declined rows that people are shown; more are counted.
const DECLINED_SHOWN: usize = 10;

impl JudgeRun {
    /// Of a run.
    pub fn of(judge: JudgeId, counts: RunCounts) -> Self {
        let declined = counts.declined.into_iter().map(|row| DeclinedRow {
            policy: row.policy,
            item: row.item,
            draw: row.draw,
            reason: row.reason,
        });
        Self {
            judge,
            scored: counts.scored as u64,
            already: counts.already as u64,
            conflicts: counts.conflicts as u64,
            declined: declined.collect(),
        }
    }

    /// The view of a run without conflicts; `check` is the command that asks the same judge about a sample again.
    pub fn view(&self, ledger: &Ledger, check: &str) -> View {
        let size = thousands(ledger.size());
        let root = ledger.root().to_base64();
        let mut view = View::of(self);
        view.pairs([
            ("judge", self.judge.to_string()),
            ("scored", thousands(self.scored)),
            ("already", thousands(self.already)),
            ("declined", thousands(self.declined.len() as u64)),
            (LOG, format!("{size} entries · root {root}")),
        ]);
        if !self.declined.is_empty() {
            let rows = self.declined.iter().take(DECLINED_SHOWN);
            let rows = rows.map(|row| {
                vec![
                    row.policy.to_string(),
                    row.item.to_string(),
                    row.draw.to_string(),
                    row.reason.clone(),
                ]
            });
            view.gap();
            view.table(&["policy", "item", "draw", "the judge declined"], rows);
            view.sentence(
                "A row that the judge declined has no score, so no mean counts it. The same command asks again.",
            );
        }
        view.verdict = if self.scored == 0 {
            "already_recorded"
        } else {
            "appended"
        };
        view.checkpoint = Some((ledger.size(), root));
        view.with_next(check)
    }
}

/// Whether a judge says the same again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeStability {
    /// The judge.
    pub judge: JudgeId,
    /// Rows that were scored again.
    pub keys: u64,
    /// Rows among them whose score differs.
    pub mismatches: u64,
    /// Merkle root of the keys of these rows.
    pub keys_root: Root,
}

impl JudgeStability {
    /// Of what is on record.
    pub fn of(said: &ScoreReplayed) -> Self {
        Self {
            judge: said.judge.clone(),
            keys: said.keys.value(),
            mismatches: said.mismatches.value(),
            keys_root: said.keys_root,
        }
    }

    /// The view where nothing differs.
    pub fn view(&self, appended: &[AppendedEvent]) -> View {
        let mut view = View::of(self).with_events(appended);
        view.pairs([
            ("judge", self.judge.to_string()),
            ("scored again", thousands(self.keys)),
            ("mismatches", "0".to_owned()),
        ]);
        view.with_verdict("pass")
    }
}

/// Every judge, in the order of their registrations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeList {
    /// The judges.
    pub judges: Vec<JudgeShown>,
}

/// A judge.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeShown {
    /// Its experiment; empty where it has none.
    pub experiment: String,
    /// Its name.
    pub judge: JudgeId,
    /// How it is asked.
    pub port: JudgePort,
    /// Its model.
    pub model: String,
    /// Version of the extractor.
    pub extractor: String,
    /// Rows on record.
    pub rows: u64,
    /// The newest re-score; `null` before the first.
    pub replayed: Option<Rescore>,
    /// The entry that registered it.
    pub registered_seq: u64,
}

/// A re-score.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rescore {
    /// Rows.
    pub keys: u64,
    /// Rows among them whose score differed.
    pub mismatches: u64,
}

impl From<&JudgeHistory> for JudgeShown {
    fn from(of: &JudgeHistory) -> Self {
        let experiment = of.experiment.as_ref();
        let replayed = of.replayed;
        Self {
            experiment: experiment.map(ToString::to_string).unwrap_or_default(),
            judge: of.registered.judge.clone(),
            port: of.registered.port,
            model: of.registered.model.as_str().to_owned(),
            extractor: of.registered.extractor.as_str().to_owned(),
            rows: of.records,
            replayed: replayed.map(|(keys, mismatches)| Rescore { keys, mismatches }),
            registered_seq: of.seq,
        }
    }
}

/// Every judge.
pub fn list(judges: &[JudgeHistory]) -> View {
    let facts = JudgeList {
        judges: judges.iter().map(JudgeShown::from).collect(),
    };
    let rows = facts.judges.iter().map(|of| {
        let replayed = of.replayed.as_ref();
        vec![
            of.experiment.clone(),
            of.judge.to_string(),
            of.port.as_str().to_owned(),
            of.model.clone(),
            thousands(of.rows),
            replayed.map_or("-".to_owned(), |of| {
                format!("{} of {} differ", of.mismatches, of.keys)
            }),
            format!("seq {}", of.registered_seq),
        ]
    });
    let head = [
        "experiment",
        "judge",
        "port",
        "model",
        "rows",
        "re-score",
        "registered",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    view
}
