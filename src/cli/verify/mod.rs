//! `clover verify`: the ledger, an export of it, or its tree alone; against the pin and other checkpoints.

mod answers;
mod bundle;

use std::io::BufRead;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::entry::Entry;
use crate::event::header;
use crate::event::payload::Verdict;
use crate::export::bundle::OpenBundle;
use crate::export::source;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::ground::digest::Digest;
use crate::ground::note::SignedCheckpoint;
use crate::ground::note::VerifierKey;
use crate::ground::shell;
use crate::ledger::error::Divergence;
use crate::ledger::pin;
use crate::ledger::pin::Pin;
use crate::ledger::pin::PinError;
use crate::ledger::verify;
use crate::ledger::verify::Divergent;
use crate::ledger::verify::EntryLines;
use crate::ledger::verify::Report;
use crate::ledger::verify::Signatures;
use crate::ledger::verify::VerifyOptions;
use crate::session::Home;
use crate::store::Store;
use crate::view::Exit;
use crate::view::View;
use crate::view::verify as verify_view;
use crate::workflow::GOVERNED;

/// Bytes in which an export must show its form, and its first entry the log's name.
const HEAD_LEN: usize = 65_536;

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct Args {
    /// A bundle, an export's folder or its ledger.jsonl, or a ledger file; default the ledger itself
    pub file: Option<PathBuf>,
    /// A checkpoint that the log must extend or equal; may repeat
    #[arg(long, value_name = "FILE")]
    pub against: Vec<PathBuf>,
    /// The export's own checkpoint; default `checkpoint` beside it
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// The log key that the ledger must have or have had
    #[arg(long, value_name = "VKEY")]
    pub log_key: Option<String>,
    /// Check signatures in batches: faster, and weaker against a key's own holder
    #[arg(long)]
    pub fast: bool,
    /// Hash the entries and compare roots; nothing else
    #[arg(long)]
    pub tree_only: bool,
    /// Take what this checkpoint covers as verified before; `pin` takes the pin
    #[arg(long, value_name = "pin|FILE")]
    pub since: Option<String>,
    /// Re-run recomputing rules too, and read answers of models again
    #[arg(long)]
    pub recompute: bool,
    /// Blobs of an export; default `blobs` beside it
    #[arg(long, value_name = "DIR")]
    pub blobs: Option<PathBuf>,
    /// Do not hold the log against the pin
    #[arg(long)]
    pub no_pin: bool,
}

/// Reads a signed checkpoint.
pub(super) fn checkpoint(ctx: &mut Ctx<'_>, path: &Path) -> Result<SignedCheckpoint, CliError> {
    let bytes = ctx.read(path)?;
    SignedCheckpoint::parse(&bytes).map_err(|error| {
        let message = format!("{} is no signed checkpoint: {error}", path.display());
        CliError::input(message, "clover checkpoint show")
    })
}

/// Reads a C2SP verifier key.
pub(super) fn log_key(text: &str) -> Result<VerifierKey, CliError> {
    text.trim().parse().map_err(|error| {
        let message = format!("--log-key {text:?}: {error}");
        CliError::usage(message, "clover key export --log")
    })
}

/// Reads a checkpoint that came with a ledger or was kept elsewhere. One that is none stops nothing: it is named
/// among the findings.
fn given(
    ctx: &mut Ctx<'_>,
    path: &Path,
    options: &mut VerifyOptions,
) -> Result<Option<SignedCheckpoint>, CliError> {
    match SignedCheckpoint::parse(&ctx.read(path)?) {
        Ok(checkpoint) => Ok(Some(checkpoint)),
        Err(error) => {
            let name = path.display().to_string();
            options.unreadable.push((name, error.to_string()));
            Ok(None)
        }
    }
}

fn options(ctx: &mut Ctx<'_>, args: &Args) -> Result<VerifyOptions, CliError> {
    let mut options = VerifyOptions {
        against: Vec::new(),
        unreadable: Vec::new(),
        kept: Vec::new(),
        pin: None,
        log_key: args.log_key.as_deref().map(log_key).transpose()?,
        recompute: args.recompute,
        signatures: if args.fast {
            Signatures::Fast
        } else {
            Signatures::Strict
        },
        since: None,
        tree_only: args.tree_only,
    };
    for path in &args.against {
        if let Some(checkpoint) = given(ctx, path, &mut options)? {
            options
                .against
                .push((path.display().to_string(), checkpoint));
        }
    }
    Ok(options)
}

/// The pin of an origin, when there is one.
pub(super) fn pinned(ctx: &Ctx<'_>, origin: &str) -> Result<Option<SignedCheckpoint>, CliError> {
    pin_of(ctx, |pins| Ok(Pin::new(pins, origin)))
}

/// A pin, when there is one.
fn pin_of(
    ctx: &Ctx<'_>,
    find: impl Fn(&Path) -> Result<Pin, PinError>,
) -> Result<Option<SignedCheckpoint>, CliError> {
    let Some(pins) = home::pins(ctx) else {
        return Ok(None);
    };
    let found = find(&pins).and_then(|pin| pin.load());
    found.map_err(|error| CliError::integrity("pin", error.to_string(), "clover verify --no-pin"))
}

/// What a pin that was first taken from the file itself leaves open: it says that the file was not changed since, not whose
/// it is. A log key or a checkpoint from elsewhere settles that, and a log key does so for good.
pub(super) fn vouch(
    ctx: &Ctx<'_>,
    args: &Args,
    origin: Option<&str>,
    report: &mut Report,
) -> Result<(), CliError> {
    let (Some(pins), Some(origin)) = (home::pins(ctx), origin.filter(|_| !args.no_pin)) else {
        return Ok(());
    };
    let pin = Pin::new(&pins, origin);
    if pin.is_vouched() {
        return Ok(());
    }
    if args.log_key.is_some() && report.verdict == Verdict::Pass && !args.tree_only {
        let vouched = pin.vouch();
        return vouched
            .map_err(|error| CliError::integrity("pin", error.to_string(), "clover doctor"));
    }
    let what = "identity".to_owned();
    let from_elsewhere = !args.against.is_empty() || args.log_key.is_some();
    if !from_elsewhere && !report.not_checked.contains(&what) {
        report.not_checked.push(what);
    }
    Ok(())
}

/// Holds a copy that is older than the pin against the ledger at hand, where that is the same log. It agrees with the pin, or
/// it could not be opened.
fn hold_older(ctx: &mut Ctx<'_>, report: &mut Report) {
    if report.older_by.is_none() {
        return;
    }
    let Ok((_, ledger)) = home::open_to_read(ctx) else {
        return;
    };
    let is_same = ledger.state().keyring.origin == report.origin;
    if is_same
        && report.events <= ledger.size()
        && let Ok(root) = ledger.root_at(report.events)
    {
        report.hold_older(root);
    }
}

pub(super) fn since(
    ctx: &mut Ctx<'_>,
    args: &Args,
    pin: Option<&SignedCheckpoint>,
) -> Result<Option<SignedCheckpoint>, CliError> {
    match args.since.as_deref() {
        None => Ok(None),
        Some("pin") => {
            let missing = || CliError::not_found("there is no pin to start from", "clover verify");
            pin.cloned().ok_or_else(missing).map(Some)
        }
        Some(path) => checkpoint(ctx, Path::new(path)).map(Some),
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let mut options = options(ctx, args)?;
    let (report, look) = match &args.file {
        None => {
            let home = home::find(ctx)?;
            let mut report = of_store(ctx, args, home.database(), &mut options)?;
            if args.recompute && !args.tree_only {
                answers::read_again(ctx, &mut report)?;
            }
            let is_behind = report.divergence == Some(Divergent::RolledBack);
            if is_behind && home.is_reader()? && home.shared()?.is_some() {
                report.notes.push(BEHIND.to_owned());
                (report, LogSource::Copy)
            } else {
                (report, LogSource::Ledger(None))
            }
        }
        Some(path) => {
            let path = ctx.path(path);
            if let Some(found) = OpenBundle::open(&path)? {
                let report = bundle::check(ctx, args, found, &mut options)?;
                (report, LogSource::Bundle(path))
            } else if !ambient::is_dir(&path) && is_database(&path)? {
                let report = of_store(ctx, args, &path, &mut options)?;
                (report, LogSource::Ledger(Some(path)))
            } else {
                let report = of_export(ctx, args, &path, &mut options)?;
                (report, LogSource::Lines(path))
            }
        }
    };
    let recompute = (!args.recompute && !report.is_part).then(|| recompute(args));
    let mut view = verify_view::verified(&report, look.next(&report), recompute);
    if args.recompute && view.exit == Exit::Done && matches!(look, LogSource::Ledger(None)) {
        // Texts and answers of judges stand beside the ledger: a replay reads them, a verification of the log does not.
        view.next.push("clover replay --all".to_owned());
    }
    Ok(view)
}

/// The same command, with every number computed again.
fn recompute(args: &Args) -> String {
    let file = args.file.as_ref();
    let file = file.map_or_else(String::new, |path| {
        format!(" {}", shell::word(&path.display()))
    });
    format!("clover verify{file} --recompute")
}

/// Where to look at what was found.
enum LogSource {
    /// A ledger file; `None` is the ledger at hand.
    Ledger(Option<PathBuf>),
    /// A copy that lacks what a checkpoint covers: the writer's folder may have it.
    Copy,
    /// An export.
    Lines(PathBuf),
    /// A bundle.
    Bundle(PathBuf),
}

/// What a copy that follows a shared folder is told where a newer checkpoint is held against it.
const BEHIND: &str = "this copy may only be behind: clover sync fetches what its folder has, and then this can be asked again";

impl LogSource {
    /// The command that shows the first finding.
    fn next(&self, report: &Report) -> String {
        if matches!(self, Self::Copy) {
            return "clover sync".to_owned();
        }
        let Some(first) = report.first.filter(|first| first.seq < report.events) else {
            return match self {
                Self::Bundle(path) if ambient::is_dir(path) => {
                    format!(
                        "cd {} && sha256sum -c SHA256SUMS",
                        shell::word(&path.display())
                    )
                }
                Self::Bundle(path) => format!("sha256sum {}", shell::word(&path.display())),
                _ => "clover checkpoint show".to_owned(),
            };
        };
        match self {
            Self::Copy | Self::Ledger(None) => format!("clover show {}", first.seq),
            Self::Ledger(Some(path)) => {
                format!(
                    "clover show {} --ledger {}",
                    first.seq,
                    shell::word(&path.display())
                )
            }
            Self::Bundle(path) if !ambient::is_dir(path) => {
                format!("unzip -l {}", shell::word(&path.display()))
            }
            Self::Bundle(path) => format!("ls -l {}", shell::word(&path.display())),
            Self::Lines(path) if source::is_tiles(path) => {
                format!(
                    "ls -l {}",
                    shell::word(&path.join("tile/entries").display())
                )
            }
            Self::Lines(path) => {
                let path = lines_of(path);
                let path = shell::word(&path.display());
                format!("sed -n {}p {path}", first.seq + 1)
            }
        }
    }
}

/// The file of entry lines that a folder, or its own path, names.
fn lines_of(path: &Path) -> PathBuf {
    if ambient::is_dir(path) {
        path.join("ledger.jsonl")
    } else {
        path.to_owned()
    }
}

fn is_database(path: &Path) -> Result<bool, CliError> {
    let mut head = Vec::new();
    let mut limited = ambient::reader(path)?.take(16);
    limited.read_to_end(&mut head).map_err(|error| {
        CliError::input(
            format!("cannot read {}: {error}", path.display()),
            "clover verify --help",
        )
    })?;
    Ok(head.starts_with(b"SQLite format 3\0"))
}

fn of_store(
    ctx: &mut Ctx<'_>,
    args: &Args,
    path: &Path,
    options: &mut VerifyOptions,
) -> Result<Report, CliError> {
    let store = Store::open(path, home::store_options(ctx, true))?;
    let first = store.reader().entry(0);
    let origin = match first {
        Ok(Some(first)) => header::decode(&first.body)
            .ok()
            .map(|decoded| decoded.header.ledger.to_string()),
        _ => None,
    };
    let origin = match origin {
        Some(origin) => Some(origin),
        // The first entry is unreadable; the head still names the log.
        None => match store.reader().head() {
            Ok(Some(head)) => SignedCheckpoint::parse(&head.note)
                .ok()
                .map(|head| head.checkpoint().origin.to_string()),
            _ => None,
        },
    };
    let pin = match &origin {
        Some(origin) if !args.no_pin => pin_of(ctx, |pins| Pin::in_use(pins, origin, path))?,
        _ => None,
    };
    options.since = since(ctx, args, pin.as_ref())?;
    if is_copy(ctx, args, path) {
        options.pin = pin;
    } else if let Some(pin) = pin {
        options.against.push(("the pin".to_owned(), pin));
    }
    let ambient = ctx.ambient();
    let mut progress = ctx.progress("verified");
    let report = verify::verify_store(&store, options, &GOVERNED, &ambient, &mut |done, all| {
        progress.at(done, all);
    });
    drop(progress);
    let mut report = report?;
    hold_older(ctx, &mut report);
    not_replaced(ctx, args, (path, origin.as_deref()), &report)?;
    vouch(ctx, args, origin.as_deref(), &mut report)?;
    Ok(report)
}

/// Whether a file was named that lies where no ledger of a home does: a copy, such as a backup, may be older than the pin.
fn is_copy(ctx: &Ctx<'_>, args: &Args, path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    let is_home = folder.is_some_and(|name| name == crate::session::home::FOLDER);
    let is_at_hand = home::find(ctx).is_ok_and(|home| home.database() == path);
    args.file.is_some() && !is_home && !is_at_hand
}

/// Refuses a file that holds up by itself and lies where another ledger lay.
fn not_replaced(
    ctx: &Ctx<'_>,
    args: &Args,
    (path, origin): (&Path, Option<&str>),
    report: &Report,
) -> Result<(), CliError> {
    let (Some(pins), Some(found)) = (home::pins(ctx), origin.filter(|_| !args.no_pin)) else {
        return Ok(());
    };
    let known = pin::replaced(&pins, path, found)
        .map_err(|error| CliError::integrity("pin", error.to_string(), "clover doctor"))?;
    match known.filter(|_| report.verdict == Verdict::Pass) {
        Some(known) => {
            let found = found.to_owned();
            Err(Divergence::Replaced { known, found }.into())
        }
        None => Ok(()),
    }
}

/// Options that ask for everything, against the pin.
pub(super) fn everything(log_key: Option<String>) -> Args {
    Args {
        file: None,
        against: Vec::new(),
        checkpoint: None,
        log_key,
        fast: false,
        tree_only: false,
        since: None,
        recompute: false,
        blobs: None,
        no_pin: false,
    }
}

/// Checks the ledger of a home, against the pin.
pub(super) fn of_home(ctx: &mut Ctx<'_>, home: &Home) -> Result<Report, CliError> {
    let args = everything(None);
    let mut options = options(ctx, &args)?;
    of_store(ctx, &args, home.database(), &mut options)
}

/// Verifies an export: a folder of lines or of tiles, or a file of lines.
pub(super) fn export(
    ctx: &mut Ctx<'_>,
    args: &Args,
    path: &Path,
) -> Result<(Report, View), CliError> {
    let mut options = options(ctx, args)?;
    let report = of_export(ctx, args, path, &mut options)?;
    let next = LogSource::Lines(path.to_owned()).next(&report);
    let answer = verify_view::verified(&report, next, None);
    Ok((report, answer))
}

/// Verifies a bundle, against the pin of its log where one is kept.
pub(super) fn of_bundle(
    ctx: &mut Ctx<'_>,
    bundle: OpenBundle,
    path: &Path,
) -> Result<(Report, View), CliError> {
    let args = everything(None);
    let mut options = options(ctx, &args)?;
    let report = bundle::check(ctx, &args, bundle, &mut options)?;
    let next = LogSource::Bundle(path.to_owned()).next(&report);
    let answer = verify_view::verified(&report, next, None);
    Ok((report, answer))
}

/// A blob of a folder, by its digest; `None` where it is not there.
fn blob_in(folder: &Path, digest: &Digest) -> Result<Option<Vec<u8>>, AmbientError> {
    match ambient::read(&folder.join(digest.to_hex())) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(AmbientError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_export(
    ctx: &mut Ctx<'_>,
    args: &Args,
    path: &Path,
    options: &mut VerifyOptions,
) -> Result<Report, CliError> {
    let is_tiles = source::is_tiles(path);
    let file = if is_tiles {
        path.join("entries")
    } else {
        lines_of(path)
    };
    // What does not show its form is refused before anything beside it is read.
    let lines = if is_tiles {
        None
    } else {
        Some(open_lines(&file)?)
    };
    let beside = |name: &str| file.with_file_name(name);
    let own = match &args.checkpoint {
        Some(path) => given(ctx, path, options)?,
        None if ambient::exists(&beside("checkpoint"))? => {
            given(ctx, &beside("checkpoint"), options)?
        }
        None => None,
    };
    let mut named = own.as_ref().map(|own| own.checkpoint().origin.to_string());
    let reader = match (lines, &own) {
        (Some((lines, first)), _) => {
            // Without a checkpoint the entries themselves name their log.
            named = named.or(first);
            lines
        }
        (None, Some(own)) => source::tiles(path, own.checkpoint().size),
        (None, None) => return Err(unsized_tiles(path)),
    };
    let blobs = match &args.blobs {
        Some(folder) => Some(ctx.path(folder)),
        None => Some(beside("blobs")).filter(|folder| ambient::is_dir(folder)),
    };
    let pin = match (&named, args.no_pin) {
        (Some(origin), false) => pinned(ctx, origin)?,
        _ => None,
    };
    options.since = since(ctx, args, pin.as_ref())?;
    if let Some(pin) = pin {
        // A copy that its own checkpoint ends before the pin is an older one; entries without a checkpoint may have been cut.
        let is_older = |own: &SignedCheckpoint| own.checkpoint().size < pin.checkpoint().size;
        if own.as_ref().is_some_and(is_older) {
            options.pin = Some(pin);
        } else {
            options.against.push(("the pin".to_owned(), pin));
        }
    }
    let folder = blobs.as_deref().unwrap_or(Path::new("."));
    let read_blob = |digest: &Digest| blob_in(folder, digest);
    let lines = EntryLines {
        lines: reader,
        checkpoint: own,
        blobs: blobs.as_ref().map(|_| &read_blob as verify::BlobSource<'_>),
    };
    let ambient = ctx.ambient();
    let mut progress = ctx.progress("verified");
    let report = verify::verify_lines(lines, options, &GOVERNED, &ambient, &mut |done, all| {
        progress.at(done, all);
    });
    drop(progress);
    let mut report = report?;
    hold_older(ctx, &mut report);
    vouch(ctx, args, named.as_deref(), &mut report)?;
    Ok(report)
}

/// Tiles say how many entries they hold by their checkpoint alone.
fn unsized_tiles(path: &Path) -> CliError {
    let path = path.display();
    let message = format!("{path}: tiles without a checkpoint that can be read");
    CliError::input(message, "clover verify --help")
}

/// The origin that a first entry line names.
fn origin_of(line: &[u8]) -> Option<String> {
    let entry = Entry::parse(line).ok()?;
    let decoded = header::decode(entry.signed.body()).ok()?;
    Some(decoded.header.ledger.to_string())
}

/// Entry lines, and the origin that the first of them names.
type EntrySource = (Box<dyn BufRead + Send>, Option<String>);

/// A reader of entry lines; a file that shows none of their form is no ledger.
fn open_lines(path: &Path) -> Result<EntrySource, CliError> {
    const FORM: &[u8] = b"{\"envelope\":{\"payload\":\"";
    let mut head = Vec::new();
    let mut reader = ambient::reader(path)?;
    let read = reader.by_ref().take(HEAD_LEN as u64).read_to_end(&mut head);
    read.map_err(|error| {
        CliError::input(
            format!("cannot read {}: {error}", path.display()),
            "clover verify --help",
        )
    })?;
    if !head.windows(FORM.len()).any(|part| part == FORM) {
        let message = format!("{} is not a ledger: no entry line in it", path.display());
        return Err(CliError::new(
            Exit::Input,
            "not_a_ledger",
            message,
            "clover export jsonl -o DIR",
        ));
    }
    let first = head.split(|byte| *byte == b'\n').next();
    let origin = first.and_then(origin_of);
    Ok((Box::new(std::io::Cursor::new(head).chain(reader)), origin))
}
