//! `clover sync DIR`: one ledger for several people through a folder that they share. The copy with the log key takes in
//! what others signed and publishes the log; every other copy follows it and hands in what its person signed.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::import_ledger;
use crate::cli::sign;
use crate::cli::slate;
use crate::cli::wallet;
use crate::event::payload::Role;
use crate::event::payload::custody::Separation;
use crate::export::publish;
use crate::export::source;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::ground::digest::Digest;
use crate::ground::note::SignedCheckpoint;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::LedgerOptions;
use crate::ledger::error::Divergence;
use crate::ledger::load::LogSource;
use crate::ledger::pin::Pin;
use crate::session::Home;
use crate::session::SessionError;
use crate::session::error::PortError;
use crate::session::follow;
use crate::session::follow::PublishedLog;
use crate::session::keys::files;
use crate::session::outbox;
use crate::session::outbox::Outbox;
use crate::session::shared::SharedError;
use crate::session::shared::SharedFolder;
use crate::view::Exit;
use crate::view::View;
use crate::view::signed::FileTaken;
use crate::view::sync as view;
use crate::view::sync::FileRefused;
use crate::view::sync::PublisherSync;
use crate::view::sync::ReaderSync;
use crate::workflow::GOVERNED;

const HELP: &str = "clover sync --help";

/// The word of a log that is shorter than one that was seen.
const ROLLED_BACK: &str = "rolled_back";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shared folder; default the one that this copy was last synced with
    pub dir: Option<PathBuf>,
    /// The log key that a new copy must have, as the owner reads it by `clover key export --log`
    #[arg(long, value_name = "VKEY")]
    pub log_key: Option<String>,
    /// Publish from this copy from now on, in place of another that has the log key
    #[arg(long)]
    pub take_over: bool,
    /// Do not ask: the other copy appends nothing any more
    #[arg(long)]
    pub yes: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let home = match home::find(ctx) {
        Ok(home) => Some(home),
        Err(error) if error.exit == Exit::NotFound && args.dir.is_some() => None,
        Err(error) => return Err(error),
    };
    let shared = shared(ctx, args, home.as_ref())?;
    match home {
        None => join(ctx, args, &shared),
        Some(home) if home.is_reader()? => read(ctx, &home, &shared, (0, false)),
        Some(_) => serve(ctx, args, &shared),
    }
}

/// The folder that is named, else the one of last time.
fn shared(ctx: &Ctx<'_>, args: &Args, home: Option<&Home>) -> Result<SharedFolder, CliError> {
    if let Some(dir) = &args.dir {
        let typed = dir.display().to_string();
        let dir = ctx.path(dir);
        if !ambient::is_dir(&dir) && is_remote(&typed) {
            let message = format!(
                "{typed} names a folder on another machine: sync takes a folder here, so mount that one first"
            );
            let next = format!("sshfs {} shared && clover sync shared", shell::word(&typed));
            return Err(CliError::not_found(message, next));
        }
        if !ambient::is_dir(&dir) {
            let message = format!("{} is no folder", dir.display());
            let next = format!("mkdir {}", shell::word(&dir.display()));
            return Err(CliError::not_found(message, next));
        }
        return Ok(SharedFolder::new(dir));
    }
    let known = home.map(Home::shared).transpose()?.flatten();
    known
        .map(SharedFolder::new)
        .ok_or_else(|| CliError::usage("this copy was not synced before: name the folder", HELP))
}

/// Whether a word is HOST:DIR, as programs over ssh take it.
fn is_remote(typed: &str) -> bool {
    let host = typed.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| host.len() > 1 && !host.contains('/'))
}

/// The published checkpoint.
fn published(shared: &SharedFolder) -> Result<SignedCheckpoint, CliError> {
    publish::published(&shared.log())?.ok_or_else(|| {
        let message = format!(
            "nothing is published in {}: whoever has the log key syncs first",
            shared.folder().display()
        );
        CliError::not_found(message, HELP)
    })
}

/// Makes a copy of a published ledger here.
fn join(ctx: &mut Ctx<'_>, args: &Args, shared: &SharedFolder) -> Result<View, CliError> {
    let head = published(shared)?;
    let into = match (&ctx.globals.ledger, ctx.variable("CLOVER_LEDGER")) {
        (Some(path), _) => ctx.path(path),
        (None, Some(path)) => ctx.path(path),
        (None, None) => ctx.folder().to_owned(),
    };
    let log_key = args.log_key.as_deref();
    let home = import_ledger::join(ctx, &shared.log(), &into, (head, log_key))?;
    home.remember_shared(shared.folder())?;
    let is_new = log_key.is_none();
    read(
        ctx,
        &home,
        shared,
        (published(shared)?.checkpoint().size, is_new),
    )
}

/// Follows the published log, and hands in what waits.
fn read(
    ctx: &mut Ctx<'_>,
    home: &Home,
    shared: &SharedFolder,
    (had, is_new): (u64, bool),
) -> Result<View, CliError> {
    let options = home::options(ctx, None, false);
    let mut ledger = match Ledger::open(home.database(), ctx.ambient(), &GOVERNED, options) {
        Err(LedgerError::Diverged(Divergence::RolledBack { .. })) => unpinned(ctx, home, None)?,
        opened => opened?,
    };
    let head = published(shared)?;
    if head.checkpoint().size < ledger.size() {
        let here = ledger.head_checkpoint()?;
        let rolled = Divergence::RolledBack {
            pinned: ledger.size(),
            found: head.checkpoint().size,
        };
        return Err(diverged(&rolled, &here, &head, shared));
    }
    let fetched = had + fetch(ctx, home, &mut ledger, shared, &head)?;
    if ledger.pin().and_then(Pin::of_machine).is_none() {
        own_pin(ctx, &mut ledger, shared)?;
    }
    home.remember_shared(shared.folder())?;
    let outbox = slate::outbox(ctx, &ledger)?;
    let (mut recorded, mut refused, mut waiting) = (0, Vec::new(), 0);
    if !outbox.all()?.is_empty() {
        for one in slate::sort(ctx, &ledger, outbox.clone())? {
            // Recorded or taken back: either way it waits no more.
            shared.outbox().remove(&one.batch)?;
            match one.outcome {
                Ok(_) => recorded += 1,
                Err(error) => refused.push(FileRefused {
                    message: in_the_way(CliError::from(error)),
                    file: one.name,
                }),
            }
        }
        waiting = hand_in(&outbox, shared)?;
    }
    tell_of_blindness(ctx, &ledger)?;
    let log_key = ledger.state().keyring.log_key();
    let facts = ReaderSync {
        folder: shared.folder().display().to_string(),
        fetched,
        recorded,
        refused,
        waiting,
        log_key: log_key.map_or_else(String::new, ToString::to_string),
        is_new,
    };
    Ok(view::followed(&ledger, &facts))
}

/// Open labels stand in a log. Under strict separation some roles see none.
fn tell_of_blindness(ctx: &mut Ctx<'_>, ledger: &Ledger) -> Result<(), CliError> {
    let state = ledger.state();
    if state.keyring.separation() != Some(Separation::Strict) {
        return Ok(());
    }
    for role in [Role::Optimizer, Role::Adversary] {
        if wallet::holds(ctx, state, role)? {
            ctx.warn(format!(
                "you hold the role {role}, which sees no labels under strict separation, and this log shows open ones: whoever shares it answers for that"
            ));
        }
    }
    Ok(())
}

/// Puts what waits into the shared folder.
pub(super) fn hand_in(outbox: &Outbox, shared: &SharedFolder) -> Result<u64, CliError> {
    let mut waiting = 0;
    for (_, batch) in outbox.all()? {
        shared.outbox().put(&batch?)?;
        waiting += 1;
    }
    Ok(waiting)
}

/// Why a file is refused, with the command that shows what stands in its way.
fn in_the_way(error: CliError) -> String {
    if error.data["in_the_way"].is_u64() {
        format!("{}; {} shows what stands there", error.message, error.next)
    } else {
        error.message
    }
}

/// Takes in what others signed, and publishes the log.
fn serve(ctx: &mut Ctx<'_>, args: &Args, shared: &SharedFolder) -> Result<View, CliError> {
    let wait = Duration::from_secs(ctx.globals.busy_timeout);
    let _held = shared.lock(wait)?;
    let (home, mut ledger, is_behind) = writer(ctx)?;
    let before = publish::published(&shared.log())?;
    let fetched = match &before {
        Some(head) => fetch(ctx, &home, &mut ledger, shared, head)?,
        None => 0,
    };
    if is_behind {
        own_pin(ctx, &mut ledger, shared)?;
    }
    if args.take_over {
        let question = "publish from this copy: does the other append nothing any more";
        ctx.confirm(question, args.yes, "clover sync --take-over")?;
    }
    shared.claim(&ctx.ambient(), &home, args.take_over)?;
    let (mut batches, mut refused) = (Vec::new(), Vec::new());
    for (path, batch) in shared.outbox().all()? {
        let name = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        match batch {
            Ok(batch) => batches.push((name, batch)),
            Err(error) => refused.push(FileRefused {
                file: name,
                message: CliError::from(error).message,
            }),
        }
    }
    let taken = outbox::take(&mut ctx.ports(), &mut ledger, &batches)?;
    let mut progress = ctx.progress("published");
    let log = shared.log();
    let done = publish::publish(&ledger, &log, before.as_ref(), &mut |done, all| {
        progress.at(done, all);
    })?;
    drop(progress);
    let mut files = Vec::new();
    for one in taken {
        match one.outcome {
            Ok(appended) => {
                files.push(FileTaken::new(&ledger, one.name, &appended)?);
                // It is published: whoever signed it finds it in the log.
                shared.outbox().remove(&one.batch)?;
            }
            Err(error) => refused.push(FileRefused {
                message: in_the_way(sign::refusal(&one.name, error)),
                file: one.name,
            }),
        }
    }
    home.remember_shared(shared.folder())?;
    for one in &refused {
        ctx.warn(format!(
            "{} is refused and stays until its author syncs",
            one.file
        ));
    }
    let facts = PublisherSync {
        folder: shared.folder().display().to_string(),
        fetched,
        taken: files,
        refused,
        published: done.to - done.from,
    };
    Ok(view::served(&ledger, &facts))
}

/// Opens the copy that publishes. Another copy on this machine may have appended since: what it published is taken in first.
fn writer(ctx: &mut Ctx<'_>) -> Result<(Home, Ledger, bool), CliError> {
    match home::open_as_writer(ctx) {
        Ok((home, ledger)) => Ok((home, ledger, false)),
        Err(error) if error.word == ROLLED_BACK => {
            let home = home::find(ctx)?;
            let ledger = unpinned(ctx, &home, Some(files::read_log_key(&home.log_key())?))?;
            Ok((home, ledger, true))
        }
        Err(error) => Err(error),
    }
}

/// The copy as it is, which another copy on this machine may be ahead of.
fn unpinned(ctx: &mut Ctx<'_>, home: &Home, log_key: Option<Signer>) -> Result<Ledger, CliError> {
    let options = LedgerOptions {
        store: home::store_options(ctx, false),
        log_key,
        pins: None,
    };
    Ok(Ledger::open(
        home.database(),
        ctx.ambient(),
        &GOVERNED,
        options,
    )?)
}

/// Gives this copy a pin of its own, once it is where this machine saw the ledger to be.
fn own_pin(ctx: &mut Ctx<'_>, ledger: &mut Ledger, shared: &SharedFolder) -> Result<(), CliError> {
    let Some(pins) = home::pins(ctx) else {
        return Ok(());
    };
    match ledger.pin_copy(&pins) {
        Err(LedgerError::Diverged(Divergence::RolledBack { pinned, found })) => {
            let message = format!(
                "this machine saw {pinned} entries, and {} shows {found}: sync the copy that has them first; where there is none, they were cut off",
                shared.folder().display()
            );
            let next = "clover --ledger THAT-COPY sync";
            Err(CliError::integrity(ROLLED_BACK, message, next))
        }
        done => Ok(done?),
    }
}

/// Takes in what is published and not here; answers with how many entries that were.
fn fetch(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    shared: &SharedFolder,
    head: &SignedCheckpoint,
) -> Result<u64, CliError> {
    let (here, had) = (ledger.head_checkpoint()?, ledger.size());
    let size = head.checkpoint().size;
    let done = if size <= had {
        follow::clear(home)?;
        ledger.agree(head).map_err(SessionError::from)
    } else {
        let published = PublishedFolder {
            log: shared.log(),
            head: head.clone(),
        };
        let (ambient, store) = (ctx.ambient(), home::store_options(ctx, false));
        follow::follow(&mut ctx.ports(), &ambient, home, ledger, &published, store)
    };
    match done {
        Ok(()) => Ok(size.saturating_sub(had)),
        Err(SessionError::Ledger(LedgerError::Diverged(how))) => {
            Err(diverged(&how, &here, head, shared))
        }
        Err(error) => Err(error.into()),
    }
}

/// The log in a shared folder, up to one checkpoint.
struct PublishedFolder {
    log: PathBuf,
    head: SignedCheckpoint,
}

impl PublishedFolder {
    fn parts_from(&self, from: u64) -> Result<LogSource<'static>, CliError> {
        let size = self.head.checkpoint().size;
        let mut checkpoints = source::checkpoints(&self.log)?;
        // What was published since the checkpoint was read comes next time.
        checkpoints.retain(|kept| (from + 1..=size).contains(&kept.checkpoint().size));
        if checkpoints.last() != Some(&self.head) {
            let message = format!(
                "{}: expected the checkpoint of {size} entries, found none; somebody may publish just now",
                self.log.join(source::CHECKPOINTS).display()
            );
            let next = "clover sync";
            return Err(CliError::new(Exit::TryLater, "unfinished", message, next));
        }
        Ok(LogSource {
            lines: source::tiles_from(&self.log, from, size)?,
            checkpoints,
            blobs: Box::new(source::blobs(&self.log.join(source::BLOBS))?),
        })
    }
}

impl PublishedLog for PublishedFolder {
    fn head(&self) -> &SignedCheckpoint {
        &self.head
    }

    fn parts(&self, from: u64) -> Result<LogSource<'static>, PortError> {
        Ok(self.parts_from(from)?)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError> {
        let path = self.log.join(source::BLOBS).join(digest.to_hex());
        match ambient::read(&path) {
            Ok(bytes) => Ok(Some(bytes).filter(|bytes| Digest::blake3(bytes) == *digest)),
            Err(AmbientError::NotFound(_)) => Ok(None),
            Err(error) => Err(CliError::from(error).into()),
        }
    }
}

/// Two logs that are not one history, with both checkpoints.
fn diverged(
    how: &Divergence,
    here: &SignedCheckpoint,
    there: &SignedCheckpoint,
    shared: &SharedFolder,
) -> CliError {
    let named = |of: &SignedCheckpoint| {
        let (size, root) = (of.checkpoint().size, of.checkpoint().root.to_base64());
        format!("{size} entries, root {root}")
    };
    let word = match how {
        Divergence::RolledBack { .. } => ROLLED_BACK,
        Divergence::ForeignKey { .. } => "forged",
        _ => "forked",
    };
    let why = match how {
        Divergence::RolledBack { .. } => "an older log was put there, or entries were cut off",
        Divergence::ForeignKey { .. } => "no log key of this ledger signed what is there",
        _ => "two histories under one name",
    };
    let message = format!(
        "{why}: here {}; in {} {}; nothing was taken",
        named(here),
        shared.folder().display(),
        named(there)
    );
    CliError::integrity(word, message, "clover checkpoint show")
}

impl From<SharedError> for CliError {
    fn from(error: SharedError) -> Self {
        let message = error.to_string();
        match error {
            SharedError::Claimed { .. } => Self::refused(
                format!("{message}; once that copy is gone, this one can take over"),
                "clover sync --take-over",
            ),
            SharedError::Damaged { .. } => Self::input(message, HELP),
        }
    }
}
