//! `clover restore DIR`: a ledger and its keys from a backup of everything.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::wallet;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::LedgerError;
use crate::ledger::error::Divergence;
use crate::session::Home;
use crate::session::SessionError;
use crate::session::backup;
use crate::session::backup::BackupError;
use crate::session::backup::LaterEntries;
use crate::session::home::FOLDER;
use crate::session::home::HomeOptions;
use crate::session::stage;
use crate::view::View;
use crate::view::ledger_copy;

const HELP: &str = "clover restore --help";

/// What its help shows after the options.
pub(super) const EXAMPLE: &str =
    "Example:\n  clover restore /mnt/backup/2026-11-20 --identity backup.age --into lab";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder that `clover backup --all` wrote
    pub backup: PathBuf,
    /// The age identity that opens it
    #[arg(long, value_name = "FILE")]
    pub identity: PathBuf,
    /// Folder of the ledger
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub into: PathBuf,
    /// Go on from the backup though this machine saw later entries and no copy of them is left
    #[arg(long)]
    pub entries_lost: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (from, into) = (ctx.path(&args.backup), ctx.path(&args.into));
    if !ambient::is_dir(&from) {
        let message = format!("{} is no folder of a backup", from.display());
        return Err(CliError::not_found(message, HELP));
    }
    // Keys that a stopped restore left in plain text go first, whatever comes of this one.
    stage::sweep(&into)?;
    let home = Home::new(into.join(FOLDER));
    if ambient::exists(home.folder())? {
        let message = format!("{} exists already", home.folder().display());
        return Err(CliError::refused(message, HELP));
    }
    let identity = wallet::read_identity(ctx, &ctx.path(&args.identity))?;
    let keys = wallet::folder(ctx)?;
    let options = HomeOptions {
        store: home::store_options(ctx, false),
        pins: home::pins(ctx),
    };
    let (ambient, places) = (
        ctx.ambient(),
        (from.as_path(), into.as_path(), keys.as_path()),
    );
    let later = if args.entries_lost {
        LaterEntries::Lost
    } else {
        LaterEntries::Wanted
    };
    let terms = (&options, later);
    let restored = backup::restore(&mut ctx.ports(), &ambient, places, &identity, terms);
    match restored {
        Ok(restored) => Ok(ledger_copy::restored(&restored)),
        Err(SessionError::Ledger(LedgerError::Diverged(Divergence::RolledBack {
            pinned,
            found,
        }))) => Err(later_entries(args, (pinned, found))),
        Err(error) => Err(error.into()),
    }
}

/// This machine saw entries that the backup does not have. Another copy may have them.
fn later_entries(args: &Args, (seen, found): (u64, u64)) -> CliError {
    let again = format!(
        "clover restore {} --identity {} --into {} --entries-lost",
        shell::word(&args.backup.display()),
        shell::word(&args.identity.display()),
        shell::word(&args.into.display()),
    );
    let message = format!(
        "the backup has {found} entries, and this machine saw {seen}: a newer backup, or a folder of clover sync, may have the later entries. If none has: {again}"
    );
    CliError::integrity("rolled_back", message, HELP)
}

/// Whether a folder is a backup without keys: the ledger lies open in it.
fn is_plain(folder: &Path) -> bool {
    ambient::is_file(&folder.join("ledger.db"))
}

impl From<BackupError> for CliError {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::KeyExists(path) => {
                let path = shell::word(&path.display());
                Self::refused(message, format!("mv {path} {path}.aside"))
            }
            BackupError::Missing { folder, .. } if is_plain(&folder) => {
                let copy = folder.join("ledger.db");
                Self::refused(
                    format!(
                        "{message}: it is a plain copy without keys, and what is restored is what clover backup --all wrote"
                    ),
                    format!("clover verify {}", shell::word(&copy.display())),
                )
            }
            BackupError::Missing { .. } => Self::not_found(message, HELP),
            BackupError::Sealed { .. } => {
                Self::input(message, "the same command with --identity FILE")
            }
        }
    }
}
