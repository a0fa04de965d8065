//! What stands around an iteration: budgets, and what every claim rests on.

use clover_event::Payload;
use clover_event::payload::budget::Period;
use clover_event::payload::report::ReportPart;
use clover_ledger::State;
use clover_projection::assumptions;
use clover_projection::budgets::Budgets;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Fact;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;
use clover_projection::iterations::story::Story;

/// Accounts with what was spent and what is left, and deviations from the manifest.
pub(super) fn budgets(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
        ReportPart::Budgets,
        "What may be spent, and what was: looks at confirm labels first of all. Quarters are those of the last entry that \
         was read.",
    );
    let accounts = accounts(state);
    if accounts.rows.is_empty() {
        part.lacks("accounts", "none was opened");
    }
    part.table(accounts);
    dev_calls(story, &mut part);
    part.table(deviations(story));
    part
}

/// Every account of the ledger.
fn accounts(state: &State) -> Table {
    let now = super::ledger_time(state);
    let mut table = Table::new(
        "accounts",
        "Accounts",
        &[
            ("account", "account"),
            ("unit", "unit"),
            ("period", "period"),
            ("amount", "amount"),
            ("spent", "spent"),
            ("left", "left"),
        ],
    );
    for (name, account) in &state.fold::<Budgets>().accounts {
        let period = match account.period {
            Period::Once => "once".to_owned(),
            Period::Quarter => now.quarter().to_string(),
        };
        let mut events = vec![account.opened_seq];
        events.extend(account.last_seq);
        table.row_of(
            events,
            vec![
                Cell::text(name.as_str()),
                Cell::text(account.unit.as_str()),
                Cell::text(period),
                Cell::count(account.amount),
                Cell::count(account.spent(now)),
                Cell::count(account.left(now)),
            ],
        );
    }
    table
}

/// The account of peeks, and calls of the dev objective beside their limit.
fn dev_calls(story: &Story, part: &mut Section) {
    let Some((seq, opened)) = story.opened() else {
        return;
    };
    let Some(design) = &opened.params.design else {
        return;
    };
    part.fact(
        seq,
        "peek_account",
        "Account of peeks",
        Cell::text(design.peek_account.as_str()),
    );
    part.fact(
        seq,
        "dev_calls_max",
        "Calls of the dev objective at most",
        design.dev_calls_max,
    );
    let calls = story.all(|payload| match payload {
        Payload::DevObjectiveQueried(_) => Some(()),
        _ => None,
    });
    let calls: Vec<u64> = calls.map(|(seq, ())| seq).collect();
    let mut events = vec![seq];
    events.extend(&calls);
    part.facts.push(Fact {
        events,
        key: "dev_calls",
        title: "Calls of the dev objective",
        value: Cell::count(calls.len() as u64),
    });
}

/// What was done otherwise than the manifest of the iteration says.
fn deviations(story: &Story) -> Table {
    let mut deviations = Table::new(
        "deviations",
        "Deviations from the manifest",
        &[
            ("rule", "rule"),
            ("what", "what was done"),
            ("why", "why"),
            ("impact", "what it does to the claim"),
            ("outcome_seen", "outcome seen by then"),
        ],
    );
    let digest = story.opened().map(|(_, opened)| opened.digest);
    let deviated = story.all(|payload| match payload {
        Payload::ManifestDeviated(said) if Some(said.digest) == digest => Some(said),
        _ => None,
    });
    for (seq, said) in deviated {
        deviations.row(
            seq,
            vec![
                Cell::text(said.rule_path.as_str()),
                Cell::text(said.what.as_str()),
                Cell::text(said.why.as_str()),
                Cell::text(said.impact.as_str()),
                said.outcome_seen.into(),
            ],
        );
    }
    deviations
}

/// The assumptions ledger as of the last entry that was read: rows never disappear.
pub(super) fn assumptions(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
        ReportPart::Assumptions,
        "What every claim rests on, and what is known of it. Untested and failed rows stay.",
    );
    let now = super::ledger_time(state);
    let mut table = Table::new(
        "assumptions",
        "Assumptions",
        &[
            ("code", "code"),
            ("statement", "says"),
            ("status", "status"),
            ("waived", "waived because"),
            ("until", "until"),
        ],
    );
    for row in assumptions::rows(state, now, [&story.experiment]) {
        let evidence = row.evidence.map(|(_, evidence)| evidence.seq);
        let mut events: Vec<u64> = evidence.into_iter().collect();
        let waiver = row.waiver.as_ref();
        if let Some(waiver) = waiver {
            events.push(waiver.seq);
            events.extend(waiver.agreed.map(|agreed| agreed.seq));
        }
        events.sort_unstable();
        events.dedup();
        table.rows.push(TableRow {
            cells: vec![
                Cell::text(row.code.as_str()),
                Cell::text(assumptions::entry(row.code).statement),
                Cell::text(row.status.as_str()),
                Cell::maybe(waiver, |waiver| Cell::text(waiver.reason.as_str())),
                Cell::maybe(waiver, |waiver| Cell::text(waiver.expires_at.to_string())),
            ],
            events,
        });
    }
    part.table(table);
    part
}
