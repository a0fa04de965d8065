//! `clover show SEQ|ID`: one entry, readable, or its exact bytes.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::log;
use crate::cli::ui;
use crate::event::entry;
use crate::event::id::EventId;
use crate::ground::digest::Digest;
use crate::ground::merkle;
use crate::ledger::Ledger;
use crate::ledger::read::Read;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Position or event id
    pub entry: String,
    /// Print the entry line: the leaf of the tree
    #[arg(long, conflicts_with = "body")]
    pub line: bool,
    /// Print the exact signed body
    #[arg(long)]
    pub body: bool,
}

/// An entry by position or id.
pub(super) fn find(ctx: &Ctx<'_>, ledger: &Ledger, text: &str) -> Result<Read, CliError> {
    let head = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let seq = match (text.parse::<u64>(), Digest::from_hex(text)) {
        (_, Some(id)) => ledger.find(EventId(id))?,
        (Ok(seq), None) => Some(seq),
        (Err(_), None) => {
            let message =
                format!("{text:?} is neither a position nor an event id of 64 hex digits");
            return Err(CliError::usage(message, "clover log"));
        }
    };
    let missing = || {
        let message = format!("no entry {text} in a log of {head} entries");
        CliError::not_found(message, "clover log")
    };
    let seq = seq.filter(|seq| *seq < head).ok_or_else(missing)?;
    ledger.entry(seq)?.ok_or_else(missing)
}

/// The entry line of a stored entry.
pub(super) fn line(read: &Read) -> Vec<u8> {
    let stored = &read.stored;
    let mut line = Vec::new();
    entry::write_line(
        &mut line,
        stored.seq,
        stored.recorded_at,
        &stored.body,
        &stored.author,
        &stored.signature,
    );
    line
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let read = find(ctx, &ledger, &args.entry)?;
    let line = line(&read);
    let mut data = log::to_json(&read)?;
    data["leaf"] = json!(merkle::leaf_hash(&line).to_hex());
    let text = if args.line {
        format!("{}\n", String::from_utf8_lossy(&line))
    } else if args.body {
        String::from_utf8_lossy(&read.stored.body).into_owned()
    } else {
        readable(&ledger, &read, &line)
    };
    let mut answer = View::untyped(text, data);
    answer.events = vec![read.event.id.to_string()];
    Ok(answer)
}

fn readable(ledger: &Ledger, read: &Read, line: &[u8]) -> String {
    let header = &read.event.header;
    let record = ledger.state().keyring.keys.get(&header.author);
    let holder = record.map_or("unknown".to_owned(), |record| {
        format!("{} ({})", record.holder, record.roles)
    });
    let seen = header.seen.map_or("nothing".to_owned(), |seen| {
        format!(
            "{} entries, root {}",
            seen.size.value(),
            seen.root.0.to_base64()
        )
    });
    let experiment = header.experiment.as_ref().map(ToString::to_string);
    let mut pairs = vec![
        ("seq", read.stored.seq.to_string()),
        ("kind", format!("{} v{}", read.event.kind(), read.event.v)),
        ("id", read.event.id.to_string()),
        ("holder", holder),
        (
            "author",
            format!("{} number {}", header.author, header.author_seq),
        ),
        ("at", header.at.to_string()),
        ("recorded", read.stored.recorded_at.to_string()),
        (
            "experiment",
            experiment.unwrap_or_else(|| "none".to_owned()),
        ),
        ("seen", seen),
        ("leaf", merkle::leaf_hash(line).to_hex()),
    ];
    pairs.extend(header.refs.iter().map(|id| ("ref", id.to_string())));
    let mut text = ui::pairs(&pairs);
    let body: serde_json::Value = serde_json::from_slice(&read.stored.body).unwrap_or_default();
    let data = serde_json::to_string_pretty(&body["data"]).unwrap_or_default();
    text.push_str(&ui::escape_lines(&data));
    text.push('\n');
    text
}
