//! `clover status`: what stands in the ledger, and how strictly roles are kept apart.

use serde_json::json;

use crate::cli::access;
use crate::cli::assume;
use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::experiment;
use crate::cli::home;
use crate::cli::log;
use crate::cli::ui;
use crate::event::payload::custody::Separation;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::experiments::Experiments;
use crate::store::StoreError;
use crate::store::Table;
use crate::view::View;

pub(super) fn run(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (home, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let keyring = &state.keyring;
    let root = ledger.root_at(state.size)?.to_base64();
    let head = keyring.recorded_at.map(log::short_time).unwrap_or_default();
    let (pin, pin_size) = pin(&ledger)?;
    let live = keyring.live().count();
    let ended = keyring.keys.len() - live;
    let rows = if ctx.as_of.is_none() {
        rows(&ledger)?
    } else {
        Vec::new()
    };
    let mut pairs = vec![
        ("ledger", home.database().display().to_string()),
        ("origin", keyring.origin.clone()),
        ("entries", ui::thousands(state.size)),
        ("root", root.clone()),
        ("head", head.clone()),
        ("roles", separation(state)),
        ("keys", format!("{live} live, {ended} ended")),
        ("pin", pin),
    ];
    if !rows.is_empty() {
        let rows = rows
            .iter()
            .map(|(name, count)| format!("{name} {}", ui::thousands(*count)));
        pairs.push(("rows", rows.collect::<Vec<_>>().join(" · ")));
    }
    pairs.extend(against(state));
    let mut text = ui::pairs(&pairs);
    let now = ledger
        .ambient()
        .now()
        .max(keyring.recorded_at.unwrap_or(ledger.ambient().now()));
    // As of an earlier entry, quarters are those of that entry.
    let now = if ctx.as_of.is_some() {
        keyring.recorded_at.unwrap_or(now)
    } else {
        now
    };
    if !state.fold::<Experiments>().by_id.is_empty() {
        text.push('\n');
        text.push_str(&experiment::table(state));
    }
    if !budget::is_empty(state) {
        text.push('\n');
        text.push_str(&budget::table(state, now));
    }
    let data = json!({
        "origin": keyring.origin, "size": state.size, "root": root, "head": head,
        "separation": keyring.separation().map(|separation| separation.to_string()),
        "log_key": keyring.log_key().map(ToString::to_string),
        "keys": {"live": live, "ended": ended},
        "pin_size": pin_size,
        "rows": rows.iter().map(|(name, count)| json!({"table": name, "rows": count})).collect::<Vec<_>>(),
        "experiments": experiment::list_json(state),
        "budgets": budget::list_json(state, now),
        "failing": assume::failing_json(state),
        "tainted": access::taints_json(state),
    });
    let mut answer = View::untyped(text, data);
    answer.checkpoint = Some((state.size, root));
    Ok(answer)
}

/// What stands against claims: assumptions that fail, experiments that a read has tainted.
fn against(state: &State) -> Vec<(&'static str, String)> {
    let failing: Vec<_> = assume::failing(state)
        .iter()
        .map(|row| match &row.experiment {
            Some(experiment) => format!("{} fail in {experiment}", row.code),
            None => format!("{} fail", row.code),
        })
        .collect();
    let lines = [("assumed", failing), ("access", access::taint_lines(state))];
    let lines = lines.into_iter().filter(|(_, lines)| !lines.is_empty());
    lines
        .map(|(name, lines)| (name, lines.join(" · ")))
        .collect()
}

/// The policy in words.
fn separation(state: &State) -> String {
    let loosened = if state.keyring.was_loosened() {
        "; loosened from strict before"
    } else {
        ""
    };
    match state.keyring.separation() {
        Some(Separation::Strict) => "strict: conflicting roles are refused, per holder".to_owned(),
        Some(Separation::Solo) => {
            format!("solo: one person may hold all roles, claims are self-governed{loosened}")
        }
        None => "unknown".to_owned(),
    }
}

/// Where the pin stands against the head.
fn pin(ledger: &Ledger) -> Result<(String, Option<u64>), CliError> {
    let Some(pin) = ledger.pin() else {
        return Ok(("none kept".to_owned(), None));
    };
    let pinned = pin
        .load()
        .map_err(|error| CliError::integrity("pin", error.to_string(), "clover verify --no-pin"))?;
    Ok(match pinned {
        None => ("none yet".to_owned(), None),
        Some(pinned) => {
            let size = pinned.checkpoint().size;
            let lag = match ledger.size().saturating_sub(size) {
                0 => "at the head".to_owned(),
                lag => format!("{} entries behind the head", ui::thousands(lag)),
            };
            (format!("{lag}, agrees"), Some(size))
        }
    })
}

/// Rows of each read model.
fn rows(ledger: &Ledger) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let reader = ledger.store().reader();
    Table::ALL
        .into_iter()
        .map(|table| Ok((table.as_str(), reader.row_count(table)?)))
        .collect()
}
