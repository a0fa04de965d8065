//! `clover status`: what stands in the ledger, and how strictly roles are kept apart.

use crate::cli::assume;
use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::log;
use crate::cli::ui;
use crate::event::Kind;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::tallies::Tallies;
use crate::session::expiry;
use crate::store::Table;
use crate::view::View;
use crate::view::status;
use crate::view::status::Surroundings;
use crate::view::status::TableRows;

pub(super) fn run(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let head = state.keyring.recorded_at;
    let now = budget::now(ctx, &ledger, state);
    let (pin, pin_size) = pin(&ledger, state.size)?;
    let beside = Surroundings {
        database: home.database().display().to_string(),
        root: ledger.root_at(state.size)?.to_base64(),
        head: head.map(log::short_time).unwrap_or_default(),
        pin,
        pin_size,
        rows: rows(state),
        dates: expiry::list(&ledger, state, now)?,
    };
    Ok(status::status(state, beside, &assume::failing(state), now))
}

/// Where the pin stands against the last of `size` entries; one that was kept later agreed then too.
fn pin(ledger: &Ledger, size: u64) -> Result<(String, Option<u64>), CliError> {
    let Some(pin) = ledger.pin() else {
        return Ok(("none kept".to_owned(), None));
    };
    let pinned = pin
        .load()
        .map_err(|error| CliError::integrity("pin", error.to_string(), "clover verify --no-pin"))?;
    Ok(match pinned {
        None => ("none yet".to_owned(), None),
        Some(pinned) => {
            let pinned = pinned.checkpoint().size.min(size);
            let lag = match size - pinned {
                0 => "at the head".to_owned(),
                lag => format!("{} entries behind the head", ui::thousands(lag)),
            };
            (format!("{lag}, agrees"), Some(pinned))
        }
    })
}

/// Rows that each read model has by the entries: one for each entry of its kind.
fn rows(state: &State) -> Vec<TableRows> {
    let tallies = state.fold::<Tallies>();
    let rows = Table::ALL.into_iter().map(|table| TableRows {
        table: table.as_str().to_owned(),
        rows: tallies.of_kind(kind_of(table)),
    });
    rows.collect()
}

/// The kind whose entries write the rows of a table.
fn kind_of(table: Table) -> Kind {
    match table {
        Table::Labels => Kind::LabelRecorded,
        Table::Reveals => Kind::LabelRevealed,
        Table::Scores => Kind::ScoreRecorded,
        Table::Seals => Kind::LabelSealed,
    }
}
