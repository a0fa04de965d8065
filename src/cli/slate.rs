//! Signing where the log is not written: the ledger that a command is about is copied to a slate, and what is signed there
//! waits in this person's outbox.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::sync;
use crate::ground::ambient;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::outbox::BatchResult;
use crate::session::outbox::Outbox;
use crate::session::shared::SharedFolder;
use crate::session::slate;
use crate::session::slate::OpenSlate;
use crate::view::View;
use crate::view::text::thousands;

/// Where this person's outboxes lie, beside the pins.
pub(super) fn outboxes(ctx: &Ctx<'_>) -> Result<PathBuf, CliError> {
    let pins = home::pins(ctx).ok_or_else(|| {
        let message = "no place for what is signed: neither XDG_STATE_HOME nor HOME is set";
        CliError::not_found(message, "export XDG_STATE_HOME=~/.local/state")
    })?;
    Ok(pins.with_file_name("outbox"))
}

/// This person's outbox for a ledger.
pub(super) fn outbox(ctx: &Ctx<'_>, ledger: &Ledger) -> Result<Outbox, CliError> {
    let origin = &ledger.state().keyring.origin;
    Ok(Outbox::of_person(&outboxes(ctx)?, origin))
}

/// Opens the ledger here on a slate, which stays with the command. Answers too with how many files wait.
pub(super) fn open(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger, usize), CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    let outbox = outbox(ctx, &ledger)?;
    let opened = opened(ctx, &ledger, outbox)?;
    let OpenSlate {
        slate,
        mut ledger,
        ended,
        waiting,
    } = opened;
    for one in ended {
        if let Err(error) = one.outcome {
            let why = CliError::from(error).message;
            ctx.warn(format!(
                "what you signed is refused at the head that is here, so sign it anew: {why}; it lies in {}",
                one.name
            ));
        }
    }
    if ctx.globals.clock_ahead {
        ledger.allow_clock_ahead();
    }
    ctx.slate = Some(slate);
    Ok((home, ledger, waiting))
}

fn opened(ctx: &mut Ctx<'_>, ledger: &Ledger, outbox: Outbox) -> Result<OpenSlate, CliError> {
    let (ambient, options) = (ctx.ambient(), home::store_options(ctx, false));
    let ports = &mut ctx.ports();
    Ok(slate::open(ports, &ambient, ledger, outbox, options)?)
}

/// Takes out of the outbox what waits no more, and answers with it.
pub(super) fn sort(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    outbox: Outbox,
) -> Result<Vec<BatchResult>, CliError> {
    Ok(opened(ctx, ledger, outbox)?.ended)
}

/// Keeps what a command signed on a slate, and hands it in where the shared folder is at hand.
pub(super) fn settle(ctx: &mut Ctx<'_>, result: Result<View, CliError>) -> Result<View, CliError> {
    let Some(slate) = ctx.slate.take() else {
        return result;
    };
    let kept = slate.keep()?;
    if kept.is_empty() {
        return result;
    }
    let shared = home::find(ctx)?.shared()?.map(SharedFolder::new);
    let at_hand = shared.filter(|shared| ambient::is_dir(shared.folder()));
    let handed_in = at_hand.map(|shared| {
        sync::hand_in(slate.outbox(), &shared)?;
        Ok::<_, CliError>(shared.outbox().folder().to_owned())
    });
    let own = || slate.outbox().folder().to_owned();
    let place = match handed_in.transpose() {
        Ok(place) => place.unwrap_or_else(own),
        Err(error) => {
            // It is kept, and goes along with the next sync.
            ctx.warn(format!("not handed in: {}", error.message));
            own()
        }
    };
    let place = place.display();
    let events: usize = kept.iter().map(|batch| batch.events().len()).sum();
    let events = thousands(events as u64);
    ctx.warn(format!(
        "not recorded yet: {events} signed events wait in {place} for whoever writes the log, and positions may change"
    ));
    result.map(|view| view.on_slate().with_next("clover sync"))
}
