//! `clover at SEQ|HASH|TIME -- VERB`: a reading verb as of an earlier entry, from the recorded facts alone.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::cli;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui::Form;
use crate::event::id::EventId;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::view::View;

/// Verbs that can be asked of the past. They read the record alone, and print what they printed when the ledger ended at that
/// entry; those that append where they are asked of the present, and take `--dry-run`, append nothing then, and say so. Verbs about files as they are now, such as `verify`, `export`
/// and `blob get`, are none of them.
pub(super) const PAST: &[&str] = &[
    "access list",
    "assume list",
    "assume show",
    "audit decisions",
    "audit peeks",
    "audit plans",
    "audit signers",
    "audit summary",
    "battery list",
    "blob list",
    "budget list",
    "budget show",
    "calibrate apply",
    "calibrate list",
    "calibrate show",
    "campaign status",
    "compare",
    "confirm status",
    "deploy status",
    "estimate",
    "experiment list",
    "exposure list",
    "family list",
    "family show",
    "gate list",
    "gate show",
    "generator list",
    "generator show",
    "iterate list",
    "iterate show",
    "judge compare",
    "judge list",
    "key export",
    "key list",
    "key show",
    "label design list",
    "log",
    "meta show",
    "patch list",
    "plan audit",
    "plan budget",
    "plan iteration",
    "plan labels",
    "prereg diff",
    "prereg show",
    "prompt diff",
    "prompt log",
    "prompt show",
    "regime list",
    "repair measure",
    "repair show",
    "repair status",
    "report annex-iv",
    "report change",
    "report coverage",
    "report erasure",
    "report estimate",
    "report experiment",
    "report expiry",
    "report gate",
    "report gdpr",
    "report iso23894",
    "report iso42001",
    "report iteration",
    "report list",
    "report part11",
    "report pccp",
    "report repair",
    "report retention",
    "report sgd",
    "report show",
    "report soc2",
    "report sr26-2",
    "report tevv",
    "report trail",
    "retain list",
    "rubric dead",
    "rubric diff",
    "rubric list",
    "rubric show",
    "rulebook show",
    "score list",
    "score show",
    "sgd prompt diff",
    "sgd prompt log",
    "sgd prompt show",
    "sgd show",
    "sgd status",
    "show",
    "status",
    "synth list",
    "synth show",
];

/// Verbs of one noun that stand together, so that a line holds them.
const FEW: usize = 7;

/// The verbs of [`PAST`], those with the same first words together: `assume list|show`.
fn in_words() -> String {
    let mut together: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for verb in PAST {
        let (noun, last) = verb.rsplit_once(' ').unwrap_or((verb, ""));
        together.entry(noun).or_default().push(last);
    }
    let words = together.iter().flat_map(|(noun, last)| {
        let few = last.chunks(FEW);
        few.map(move |last| format!("{noun} {}", last.join("|")).trim_end().to_owned())
    });
    words.collect::<Vec<_>>().join(", ")
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Last entry seen: its position, its event id, or a time; a day is its end in UTC
    #[arg(value_name = "SEQ|HASH|TIME")]
    pub entry: String,
    #[arg(last = true, required = true, value_name = "VERB", help = in_words())]
    pub verb: Vec<OsString>,
}

const NEXT: &str = "clover at SEQ -- status";
/// A day less its last microsecond.
const DAY: i64 = 86_400_000_000 - 1;

/// The time that somebody wrote; a day is its last moment, so that what was recorded on it is seen.
fn written(text: &str) -> Option<Timestamp> {
    let time = Timestamp::parse_written(text)?;
    let is_day = text.len() == "2027-01-31".len();
    Some(if is_day { time + DAY } else { time })
}

/// The position of an entry that is named by it, by its event id or by a time.
fn position(ctx: &mut Ctx<'_>, text: &str) -> Result<u64, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let by_id = Digest::from_hex(text).map(EventId);
    let by_time = written(text);
    let found = match (text.parse::<u64>(), by_id, by_time) {
        (Ok(seq), _, _) => Some(seq).filter(|seq| *seq < ledger.size()),
        (Err(_), Some(id), _) => ledger.find(id)?,
        (Err(_), None, Some(time)) => ledger.newest_by(time)?,
        (Err(_), None, None) => {
            let message = format!(
                "{text:?} is no entry: expected a position, an event id of 64 hex digits, or a time such as 2026-11-20"
            );
            return Err(CliError::usage(message, NEXT));
        }
    };
    found.ok_or_else(|| {
        let message = match by_time {
            Some(_) => format!("no entry was recorded by {text}"),
            None => format!("no entry {text} in a log of {} entries", ledger.size()),
        };
        CliError::not_found(message, "clover log")
    })
}

/// The last entry of a range: its position, or the newest by a time; a day is its last moment.
pub(super) fn last_of(ledger: &Ledger, text: &str) -> Result<u64, CliError> {
    let found = match (text.parse::<u64>(), written(text)) {
        (Ok(seq), _) => Some(seq),
        (Err(_), Some(time)) => ledger.newest_by(time)?,
        (Err(_), None) => return Err(no_place("--to", text)),
    };
    found.ok_or_else(|| {
        CliError::not_found(format!("no entry was recorded by {text}"), "clover log")
    })
}

/// The first entry of a range: its position, or the first from a time on; a day is its first moment.
pub(super) fn first_of(ledger: &Ledger, text: &str) -> Result<u64, CliError> {
    if let Ok(seq) = text.parse::<u64>() {
        return Ok(seq);
    }
    let time = Timestamp::parse_written(text).ok_or_else(|| no_place("--from", text))?;
    let before = Timestamp::from_micros(time.micros() - 1).unwrap_or(Timestamp::EPOCH);
    Ok(ledger.newest_by(before)?.map_or(0, |seq| seq + 1))
}

fn no_place(option: &str, text: &str) -> CliError {
    let message = format!("{option} {text:?}: expected a position, or a time such as 2026-11-20");
    CliError::usage(message, "clover log")
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: Args) -> Result<View, CliError> {
    let words = std::iter::once(OsString::from("clover")).chain(args.verb);
    let words: Vec<OsString> = words.collect();
    let (cli, path) = cli::parse(&words).map_err(|error| cli::usage(&error).with_next(NEXT))?;
    ctx.globals.json |= cli.globals.json;
    if cli.globals.form != Form::Text {
        ctx.globals.form = cli.globals.form;
    }
    if !PAST.contains(&path.as_str()) {
        let message = format!(
            "{path} cannot be asked of the past, since it writes, or shows files as they are now; these can: {}",
            in_words()
        );
        return Err(CliError::usage(message, NEXT));
    }
    ctx.as_of = Some(position(ctx, &args.entry)?);
    ctx.verb = path;
    cli::dispatch(ctx, cli.verb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::shapes::SHAPES;

    #[test]
    fn verbs_of_the_past_are_verbs_in_the_order_of_their_names() {
        assert!(PAST.is_sorted_by(|one, two| one < two));
        for verb in PAST {
            assert!(SHAPES.iter().any(|of| of.verb == *verb), "{verb}");
        }
        // Some of them compute, and nothing of them is recorded then: those take `--dry-run`.
        let command = cli::command();
        let is_rehearsed = |verb: &&&str| {
            let names = verb.split(' ');
            let found = names.fold(&command, |of, name| of.find_subcommand(name).unwrap());
            found.get_arguments().any(|arg| arg.get_id() == "dry_run")
        };
        let rehearsed: Vec<_> = PAST.iter().filter(is_rehearsed).collect();
        assert!(rehearsed.len() >= 7, "{rehearsed:?}");
    }

    #[test]
    fn a_day_is_its_last_moment() {
        let day = written("2026-11-25").unwrap();
        assert_eq!(day.to_string(), "2026-11-25T23:59:59.999999Z");
        let noon = written("2026-11-25T12:00:00Z").unwrap();
        assert_eq!(noon.to_string(), "2026-11-25T12:00:00.000000Z");
    }
}
