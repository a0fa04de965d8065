//! `clover log`: entries in order, filtered, followed.

use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input;
use crate::cli::ui::Form;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::ground::ambient;
use crate::ground::sign::KeyId;
use crate::ledger::KindQuery;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::ledger::read::LogEntry;
use crate::session::listing;
use crate::view::Block;
use crate::view::View;
use crate::view::entry;
use crate::view::entry::EntryFacts;
use crate::view::text::Screen;
pub(super) use crate::view::text::short_time;
use crate::view::text::thousands;

/// Entries that a terminal shows where nothing narrows them; a pipe and `--json` have them all.
const LIMIT: u64 = 50;
/// Entries looked at a time when the newest are wanted.
const CHUNK: u64 = 4_096;
/// How often a followed log is asked.
const POLL: Duration = Duration::from_millis(250);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keep waiting for new entries; --limit ends it
    #[arg(long, short)]
    pub follow: bool,
    /// Only this kind
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only this key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub author: Option<String>,
    /// Only this experiment
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// First entry
    #[arg(long, value_name = "SEQ")]
    pub from: Option<u64>,
    /// Last entry
    #[arg(long, value_name = "SEQ")]
    pub to: Option<u64>,
    /// At most so many: the newest, or the first where --from is given [default: 50 on a terminal, else all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// What narrows a listing.
struct Filter {
    kind: Option<Kind>,
    author: Option<KeyId>,
    experiment: Option<ExperimentId>,
}

impl Filter {
    fn takes(&self, read: &LogEntry) -> bool {
        let header = &read.event.header;
        self.kind.is_none_or(|kind| kind == read.event.kind())
            && self.author.is_none_or(|author| author == header.author)
            && (self.experiment.is_none() || self.experiment == header.experiment)
    }
}

/// The newest entries below a position that are asked for, oldest first; where a kind is, its index finds them.
fn newest_of(
    ledger: &Ledger,
    filter: &Filter,
    to: u64,
    limit: u64,
) -> Result<Vec<LogEntry>, CliError> {
    let Some(kind) = filter.kind else {
        return newest(ledger, filter, to, limit);
    };
    let takes = |read: &LogEntry| filter.takes(read);
    let of = KindQuery {
        kind,
        takes: &takes,
    };
    Ok(listing::newest(ledger, &of, to, limit)?)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    if args.follow && ctx.as_of.is_some() {
        let message = "--follow waits for new entries, and the past has none";
        return Err(CliError::usage(message, "clover log --follow"));
    }
    let (_, mut ledger, at) = home::view(ctx)?;
    let kind = args.kind.as_deref().map(input::kind).transpose();
    let filter = Filter {
        kind: kind
            .map_err(|message| CliError::usage(format!("--kind: {message}"), "clover schema"))?,
        author: match &args.author {
            Some(key) => Some(wallet::resolve(ctx, at.state(&ledger), key)?),
            None => None,
        },
        experiment: args
            .experiment
            .as_deref()
            .map(super::record::experiment_id)
            .transpose()?,
    };
    may_follow(ctx, args)?;
    let head = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let to = args.to.map_or(head, |to| (to + 1).min(head));
    let mut out = Listing {
        entries: Vec::new(),
        lines: String::new(),
        left: args.limit.unwrap_or(u64::MAX),
        started: false,
    };
    match args.from {
        Some(from) => out.forward(ctx, &ledger, &filter, from, to)?,
        None if args.follow => {}
        None if args.limit.is_none() && (args.to.is_some() || is_whole(ctx)) => {
            out.forward(ctx, &ledger, &filter, 0, to)?;
        }
        None => {
            let newest = newest_of(&ledger, &filter, to, args.limit.unwrap_or(LIMIT))?;
            for read in &newest {
                out.give(ctx, ledger.state(), read)?;
            }
            if args.limit.is_none() {
                tell_of_more(ctx, &newest, to);
            }
        }
    }
    let mut end = to;
    while args.follow && out.left > 0 {
        ctx.flush()?;
        ambient::sleep(POLL);
        ledger.refresh()?;
        let head = ledger.size();
        out.forward(ctx, &ledger, &filter, end, head)?;
        end = head;
    }
    let size = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let root = ledger.root_at(size)?;
    let mut view = entry::listed((size, root), out.entries);
    if !out.lines.is_empty() {
        view.blocks.insert(0, Block::Source(out.lines));
    }
    Ok(view)
}

/// A log that is followed gives lines as they come, and no whole answer.
fn may_follow(ctx: &Ctx<'_>, args: &Args) -> Result<(), CliError> {
    if args.follow && !ctx.globals.json && ctx.globals.form != Form::Text {
        return Err(CliError::usage(
            "--follow gives lines as they come, and --render sets a whole answer",
            "clover log --follow",
        ));
    }
    Ok(())
}

/// Says what a terminal is not shown of a log of so many entries.
fn tell_of_more(ctx: &mut Ctx<'_>, newest: &[LogEntry], size: u64) {
    let shown = newest.len() as u64;
    let is_cut = shown == LIMIT && newest.first().is_some_and(|of| of.stored.seq > 0);
    if is_cut {
        let size = thousands(size);
        ctx.note(&format!(
            "the newest {shown} of a log of {size} entries; --limit N shows more, and --from 0 all"
        ));
    }
}

/// Whether nothing is left out: a program reads what is piped to it to its end.
fn is_whole(ctx: &Ctx<'_>) -> bool {
    ctx.globals.json || matches!(ctx.screen(), Screen::Pipe)
}

/// The newest entries that the filter takes, oldest of them first.
fn newest(
    ledger: &Ledger,
    filter: &Filter,
    to: u64,
    limit: u64,
) -> Result<Vec<LogEntry>, CliError> {
    let mut found: Vec<LogEntry> = Vec::new();
    let mut end = to;
    while end > 0 && (found.len() as u64) < limit {
        let start = end.saturating_sub(CHUNK);
        let mut chunk = Vec::new();
        ledger.entries(start, end, |read| {
            if filter.takes(&read) {
                chunk.push(read);
            }
            Ok::<_, LedgerError>(())
        })?;
        found.splice(0..0, chunk);
        end = start;
    }
    let skip = found
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found.split_off(skip))
}

/// Entries as they are given out: lines at once, objects collected for `--json`.
struct Listing {
    entries: Vec<EntryFacts>,
    /// Lines of a document or a page, which sets them as others wrote them and never as its own.
    lines: String,
    left: u64,
    started: bool,
}

impl Listing {
    fn forward(
        &mut self,
        ctx: &mut Ctx<'_>,
        ledger: &Ledger,
        filter: &Filter,
        from: u64,
        to: u64,
    ) -> Result<(), CliError> {
        if let Some(kind) = filter.kind {
            let takes = |read: &LogEntry| filter.takes(read);
            let of = KindQuery {
                kind,
                takes: &takes,
            };
            return listing::each(ledger, &of, (from, to), |read| {
                if self.left > 0 {
                    self.give(ctx, ledger.state(), &read)?;
                }
                Ok(self.left > 0)
            });
        }
        let mut at = from;
        while at < to && self.left > 0 {
            let end = (at + CHUNK).min(to);
            let mut chunk = Vec::new();
            ledger.entries(at, end, |read| {
                if filter.takes(&read) {
                    chunk.push(read);
                }
                Ok::<_, LedgerError>(())
            })?;
            for read in &chunk {
                if self.left == 0 {
                    break;
                }
                self.give(ctx, ledger.state(), read)?;
            }
            at = end;
        }
        Ok(())
    }

    fn give(&mut self, ctx: &mut Ctx<'_>, state: &State, read: &LogEntry) -> Result<(), CliError> {
        self.left = self.left.saturating_sub(1);
        if ctx.globals.json {
            self.entries.push(entry::facts(read).map_err(damaged)?);
            return Ok(());
        }
        let is_new = !std::mem::replace(&mut self.started, true);
        if ctx.globals.form != Form::Text {
            if is_new {
                self.lines.push_str(&entry::head(Screen::Pipe));
            }
            self.lines.push_str(&entry::row(state, read, Screen::Pipe));
            return Ok(());
        }
        if is_new {
            ctx.out(&entry::head(ctx.screen()))?;
        }
        ctx.out(&entry::row(state, read, ctx.screen()))
    }
}

/// A body that is no JSON.
#[expect(clippy::needless_pass_by_value, reason = "given to `map_err`")]
pub(super) fn damaged(error: serde_json::Error) -> CliError {
    CliError::integrity("damaged", error.to_string(), "clover verify")
}
