//! `clover doctor`: what surrounds a ledger, checked one by one.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::doctor_endpoints;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::selftest;
use crate::cli::wallet;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::rules::CLOCK_TOLERANCE_SECONDS;
use crate::session::Home;
use crate::session::custody::erasure;
use crate::session::keys::files;
use crate::session::stage;
use crate::store;
use crate::view::View;
use crate::view::surroundings;
use crate::view::surroundings::CheckResult;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Also make, use, attack and erase a ledger in a temporary folder
    #[arg(long)]
    pub selftest: bool,
}

/// One check: what, how it stands, what was seen.
pub(super) type DoctorCheck = (&'static str, CheckResult, String);

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let mut checks = environment(ctx);
    let found = home::find(ctx);
    let home = found.as_ref().ok();
    let beside = home.and_then(|home| home.folder().parent());
    let here = ctx.folder();
    let around: BTreeSet<PathBuf> = beside
        .into_iter()
        .chain([here])
        .map(Path::to_path_buf)
        .collect();
    match found {
        Ok(home) => files(ctx, &home, &mut checks)?,
        Err(error) => checks.push(("ledger", CheckResult::Remark, error.message)),
    }
    for folder in around {
        left(&folder, &mut checks)?;
    }
    keys(ctx, &mut checks)?;
    if args.selftest {
        checks.extend(selftest::run(ctx)?);
    }
    let checks = checks.into_iter();
    let checks = checks.map(|(check, found, seen)| surroundings::Check { check, found, seen });
    Ok(surroundings::checked(checks.collect()))
}

/// What a stopped restore or import left beside a ledger: its keys lie there in plain text.
fn left(around: &Path, checks: &mut Vec<DoctorCheck>) -> Result<(), CliError> {
    for folder in stage::left_in(around)? {
        let seen = format!(
            "{path} was left by a restore or an import that was stopped, with its keys in plain text: rm -r {path}",
            path = shell::word(&folder.display())
        );
        checks.push(("left over", CheckResult::Bad, seen));
    }
    Ok(())
}

fn environment(ctx: &Ctx<'_>) -> Vec<DoctorCheck> {
    let mut checks = vec![
        (
            "program",
            CheckResult::Good,
            format!("clover {}", env!("CARGO_PKG_VERSION")),
        ),
        (
            "sqlite",
            CheckResult::Good,
            store::sqlite_version().to_owned(),
        ),
        ("clock", CheckResult::Good, ctx.ambient().now().to_string()),
    ];
    let entropy = match ctx.ambient().random::<32>() {
        Ok(_) => (CheckResult::Good, "32 bytes drawn".to_owned()),
        Err(error) => (CheckResult::Bad, error.to_string()),
    };
    checks.push(("entropy", entropy.0, entropy.1));
    let pins = match home::pins(ctx) {
        Some(pins) => (CheckResult::Good, pins.display().to_string()),
        None => (
            CheckResult::Bad,
            "neither XDG_STATE_HOME nor HOME is set: no pin is kept".to_owned(),
        ),
    };
    checks.push(("pins", pins.0, pins.1));
    checks
}

/// Whether nobody but the owner may do anything.
fn is_private(mode: u32) -> bool {
    mode.trailing_zeros() >= 6
}

fn secret(checks: &mut Vec<DoctorCheck>, what: &'static str, path: &Path) -> Result<(), CliError> {
    if !ambient::exists(path)? {
        checks.push((
            what,
            CheckResult::Remark,
            format!("{} is not there", path.display()),
        ));
        return Ok(());
    }
    let mode = ambient::mode(path)?;
    let found = if is_private(mode) {
        CheckResult::Good
    } else {
        CheckResult::Bad
    };
    checks.push((what, found, format!("{} mode {mode:03o}", path.display())));
    Ok(())
}

fn files(ctx: &mut Ctx<'_>, home: &Home, checks: &mut Vec<DoctorCheck>) -> Result<(), CliError> {
    secret(checks, "folder", home.folder())?;
    secret(checks, "log key file", &home.log_key())?;
    secret(checks, "vault", &home.vault_path())?;
    if ambient::exists(&home.next_log_key())? {
        let seen = "log.key.next is there: the next verb that writes finishes the rotation";
        checks.push(("rotation", CheckResult::Remark, seen.to_owned()));
    }
    let options = home::options(ctx, None, true);
    let opened = Ledger::open(
        home.database(),
        ctx.ambient(),
        &crate::workflow::GOVERNED,
        options,
    );
    let ledger = match opened {
        Ok(ledger) => ledger,
        Err(error) => {
            checks.push(("ledger", CheckResult::Bad, CliError::from(error).message));
            return Ok(());
        }
    };
    let seen = format!(
        "{} entries of {}",
        ledger.size(),
        ledger.state().keyring.origin
    );
    checks.push(("ledger", CheckResult::Good, seen));
    clock(ctx, &ledger, checks);
    log_key(home, &ledger, checks);
    pin(&ledger, checks);
    erased(home, &ledger, checks)?;
    doctor_endpoints::checked(ctx, ledger.state(), checks);
    let (found, seen) = match ledger.store().integrity()?.into_iter().next() {
        None => (
            CheckResult::Good,
            "integrity_check and schema agree".to_owned(),
        ),
        Some((_, expected, found)) => {
            let seen = format!("expected {expected}, found {found}; clover verify says more");
            (CheckResult::Bad, seen)
        }
    };
    checks.push(("file", found, seen));
    Ok(())
}

/// Texts that are on record as erased, and can be read here.
fn erased(home: &Home, ledger: &Ledger, checks: &mut Vec<DoctorCheck>) -> Result<(), CliError> {
    for (seq, subject) in erasure::still_readable(home, ledger)? {
        let seen = format!(
            "recorded as erased at seq {seq}, text still readable here: clover erase {subject} --basis 'as recorded' --yes",
            subject = shell::word(&subject)
        );
        checks.push(("erased", CheckResult::Bad, seen));
    }
    Ok(())
}

fn clock(ctx: &Ctx<'_>, ledger: &Ledger, checks: &mut Vec<DoctorCheck>) {
    let now = ctx.ambient().now();
    let Some(head) = ledger.state().keyring.recorded_at else {
        return;
    };
    let (found, seen) = if now.plus_seconds(CLOCK_TOLERANCE_SECONDS) < head {
        (
            CheckResult::Bad,
            format!("the clock stands before the newest entry of {head}"),
        )
    } else {
        (
            CheckResult::Good,
            format!("not before the newest entry of {head}"),
        )
    };
    checks.push(("clock and head", found, seen));
}

fn log_key(home: &Home, ledger: &Ledger, checks: &mut Vec<DoctorCheck>) {
    let known = ledger.state().keyring.log_key();
    let (found, seen) = match (files::read_log_key(&home.log_key()), known) {
        (Ok(own), Some(known)) if known.key().public_key() == own.public_bytes() => {
            (CheckResult::Good, known.to_string())
        }
        (Ok(_), _) => (
            CheckResult::Bad,
            "log.key is not the key that signs this ledger".to_owned(),
        ),
        (Err(error), _) => match home.shared() {
            Ok(Some(shared)) => {
                let seen = format!("none: this copy follows {}", shared.display());
                (CheckResult::Remark, seen)
            }
            _ => (CheckResult::Bad, error.to_string()),
        },
    };
    checks.push(("log key", found, seen));
}

fn pin(ledger: &Ledger, checks: &mut Vec<DoctorCheck>) {
    let Some(pin) = ledger.pin() else {
        return;
    };
    let (found, seen) = match pin.load() {
        Ok(Some(pinned)) => (
            CheckResult::Good,
            format!("{} entries, agrees", pinned.checkpoint().size),
        ),
        Ok(None) => (
            CheckResult::Remark,
            "none yet; clover checkpoint pin makes one".to_owned(),
        ),
        Err(error) => (CheckResult::Bad, error.to_string()),
    };
    checks.push(("pin", found, seen));
}

/// Key files of this person, known to a ledger or not.
fn keys(ctx: &Ctx<'_>, checks: &mut Vec<DoctorCheck>) -> Result<(), CliError> {
    for path in ambient::list(&wallet::folder(ctx)?)? {
        let end = path.extension().and_then(|end| end.to_str());
        if matches!(end, Some("pem" | "age")) {
            secret(checks, "key file", &path)?;
        }
        if end == Some("age") && wallet::is_bare(&path).unwrap_or(false) {
            let seen = format!(
                "{} lies in clear beside an encrypted key: {}",
                path.display(),
                wallet::seal_again(&path)
            );
            checks.push(("identity", CheckResult::Remark, seen));
        }
    }
    Ok(())
}
