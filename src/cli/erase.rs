//! `clover erase SUBJECT`: the event first, since a rule may refuse it; then the key is destroyed. A run that
//! stopped between the two is finished by the same command.

use std::collections::BTreeSet;

use crate::cli::blob;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::ports;
use crate::cli::submit;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::payload::custody::SubjectErased;
use crate::event::payload::judge::ScoreRecorded;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::KindQuery;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::read::LogEntry;
use crate::session::SessionError;
use crate::session::custody::CustodyError;
use crate::session::custody::erasure;
use crate::session::custody::erasure::Erasure;
use crate::session::listing;
use crate::view::View;
use crate::view::blob as view;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The subject's handle: 64 hex digits
    pub subject: String,
    /// On which ground
    #[arg(long, value_name = "TEXT")]
    pub basis: String,
    /// Who asked: a handle that names no person, since entries are never erased
    #[arg(long, value_name = "TEXT")]
    pub requester: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body; destroy and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The subject that was named; whoever names an item is told under which subjects its texts are kept.
fn named(ledger: &Ledger, text: &str) -> Result<Digest, CliError> {
    if let Some(subject) = Digest::from_hex(text) {
        return Ok(subject);
    }
    let wanted = |read: &LogEntry| {
        let said = read.event.payload.said::<ScoreRecorded>();
        said.is_some_and(|score| score.item.as_str() == text)
    };
    let query = KindQuery {
        kind: Kind::ScoreRecorded,
        takes: &wanted,
    };
    let mut subjects = BTreeSet::new();
    listing::each::<LedgerError>(ledger, &query, (0, ledger.size()), |read| {
        if let Payload::ScoreRecorded(score) = &read.event.payload {
            let texts = [&score.prompt, &score.response].into_iter().flatten();
            subjects.extend(texts.map(|text| text.subject));
        }
        Ok(true)
    })?;
    let Some(first) = subjects.first() else {
        return blob::digest("subject", text);
    };
    let all: Vec<_> = subjects.iter().map(Digest::to_hex).collect();
    Err(CliError::usage(
        format!(
            "{text} is an item and no subject; its texts are kept under these, and each is erased by itself: {}",
            all.join(", ")
        ),
        format!("clover erase {first} --basis TEXT", first = first.to_hex()),
    ))
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let subject = named(&ledger, &args.subject)?;
    if ledger.is_slate() {
        return Err(ports::first_on_record());
    }
    let basis = key::text("basis", &args.basis)?;
    let requester = args.requester.as_deref();
    let requester = requester.map(|text| key::text("requester", text));
    let mut again = format!(
        "clover erase {subject} --basis {}",
        shell::quoted(&args.basis),
        subject = shell::word(&subject)
    );
    if let Some(text) = &args.requester {
        again.push_str(&format!(" --requester {}", shell::quoted(text)));
    }
    let asked = SubjectErased {
        basis,
        requester: requester.transpose()?,
        subject,
    };
    let intent = submit::intent(args.dry_run);
    let mut ports = ctx.ports().with_consent(args.yes, again.as_str());
    let erased = erasure::erase(&mut ports, &home, &mut ledger, asked, intent);
    let erased = erased.map_err(|error| match error {
        SessionError::Custody(CustodyError::KeyRemains(error)) => {
            CliError::from(error).with_next(format!("{again} --yes"))
        }
        error => error.into(),
    })?;
    let (answer, destroyed) = match erased {
        Erasure::Rehearsed(submission) => return Ok(submit::shown(ctx, &ledger, &submission)),
        Erasure::Already { seq, destroyed } => (view::erased_before(seq), destroyed),
        Erasure::Appended {
            submission,
            destroyed,
        } => (submit::shown(ctx, &ledger, &submission), destroyed),
    };
    Ok(view::erased(answer, &subject, destroyed))
}
