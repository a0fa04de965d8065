//! `clover init`: a new ledger with its log key and its owner.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::wallet;
use crate::event::id::HolderId;
use crate::event::id::IdError;
use crate::event::payload::Role;
use crate::event::payload::Roles;
use crate::event::payload::custody::Separation;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::name;
use crate::ground::note::Origin;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::CreateLedger;
use crate::ledger::Ledger;
use crate::ledger::rulebooks;
use crate::session::Home;
use crate::session::founding;
use crate::session::home::HomeOptions;
use crate::session::keys::addition;
use crate::session::keys::addition::KeyTerms;
use crate::session::keys::files;
use crate::session::keys::files::KeyFiles;
use crate::store::CreateOptions;
use crate::view::View;
use crate::view::surroundings;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the new ledger
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Name of the log; default clover.local/FOLDER-RANDOM
    #[arg(long, value_name = "NAME")]
    pub origin: Option<String>,
    /// How strictly roles are kept apart
    #[arg(long, default_value = "solo", value_parser = ["solo", "strict"], value_name = "HOW")]
    pub separation: String,
    /// The rulebook that judges it: an older one for older programs
    #[arg(long, value_name = "N", default_value_t = rulebooks::NEWEST,
          value_parser = clap::value_parser!(u32).range(i64::from(rulebooks::UNNAMED)..=i64::from(rulebooks::NEWEST)))]
    pub rulebook: u32,
    /// Who holds the owner key
    #[arg(long, value_name = "NAME", default_value = "owner")]
    pub holder: String,
    /// Roles of the owner key, separated by commas, or `all`
    #[arg(long, value_name = "ROLES", default_value = "owner")]
    pub roles: String,
    /// The owner key: a file or a name among your keys, made when it is not there
    #[arg(long, value_name = "FILE|NAME", default_value = "owner")]
    pub owner_key: String,
    /// A second key beside it: the custodian, who countersigns plans
    #[arg(long, value_name = "NAME")]
    pub custodian: Option<String>,
    /// The owner key is held by a machine
    #[arg(long)]
    pub machine: bool,
}

/// Roles from `a,b,c` or `all`.
pub(super) fn roles(text: &str) -> Result<Roles, CliError> {
    if text == "all" {
        return Ok(Roles::new(Role::ALL).expect("BUG: there are roles"));
    }
    let roles: Result<Vec<Role>, String> =
        text.split(',').map(|role| role.trim().parse()).collect();
    let wrong = |error: String| {
        let message = format!("roles {text:?}: {error}");
        CliError::usage(message, "clover key new NAME --role scorer,labeler")
    };
    let roles = roles.map_err(wrong)?;
    Roles::new(roles).ok_or_else(|| wrong("expected at least one".to_owned()))
}

pub(super) fn holder(text: &str) -> Result<HolderId, CliError> {
    let wrong =
        |why: String| CliError::usage(format!("holder {text:?}: {why}"), "clover key new --help");
    let holder: HolderId = text
        .parse()
        .map_err(|error: IdError| wrong(error.to_string()))?;
    let fault = name::fault(text).or_else(|| {
        let newer = name::unassigned(text)?;
        Some(format!(
            "a character that Unicode 13.0 does not know, {}",
            newer.escape_unicode()
        ))
    });
    match fault {
        None => Ok(holder),
        Some(fault) => Err(wrong(format!(
            "expected visible characters and single spaces between words, found {fault}"
        ))),
    }
}

/// Refuses all roles under strict separation before a key is made.
fn may_hold(args: &Args) -> Result<(), CliError> {
    if args.roles != "all" || args.separation != "strict" {
        return Ok(());
    }
    let message = "under strict separation nobody holds all roles: who optimizes does not decide, who labels does not optimize";
    let next = format!(
        "clover init --holder {} --roles owner,registrar,scorer,labeler,arbiter --separation strict",
        shell::word(&args.holder)
    );
    Err(CliError::usage(message, next))
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let folder = ctx.path(&args.dir);
    let home = Home::new(folder.join(crate::session::home::FOLDER));
    let options = HomeOptions {
        store: home::store_options(ctx, false),
        pins: home::pins(ctx),
    };
    founding::check_free(&home, &options.store)?;
    let origin = origin(ctx, &folder, args.origin.as_deref())?;
    let roles = roles(&args.roles)?;
    if !roles.contains(Role::Owner) {
        let message = "the first key must hold role owner";
        return Err(CliError::usage(
            message,
            format!("clover init --roles owner,{}", shell::word(&args.roles)),
        ));
    }
    let holder = holder(&args.holder)?;
    may_hold(args)?;
    let path = wallet::locate(ctx, &args.owner_key)?;
    let custodian = args.custodian.as_deref();
    let custodian = custodian.map(|name| free_key(ctx, (name, &args.holder), &path));
    let custodian = custodian.transpose()?;
    let (owner, is_new) = owner(ctx, &path)?;
    let create = CreateLedger {
        origin,
        holder,
        human: !args.machine,
        roles,
        separation: match args.separation.as_str() {
            "strict" => Separation::Strict,
            _ => Separation::Solo,
        },
        rulebook: args.rulebook,
        owner: &owner,
        layout: CreateOptions::default(),
    };
    let founded = founding::found(&ctx.ambient(), &home, create, &options);
    let mut founded = founded.inspect_err(|_| {
        if is_new {
            files::discard(&path);
        }
    })?;
    if let Some(aside) = &founded.aside {
        let aside = aside.display();
        ctx.note(&format!(
            "an unfinished ledger stood there; it is now {aside}"
        ));
    }
    if let Some(replaced) = &founded.replaced {
        ctx.warn(format!(
            "another ledger lay here before: {replaced}. Its pin is kept: a backup of it can still be held against it."
        ));
    }
    if options.pins.is_none() {
        ctx.warn(home::NO_PIN);
    }
    if let Some(error) = &founded.unpinned {
        ctx.warn(format!(
            "the ledger stands, and its pin is missing: {error}; next: clover checkpoint pin"
        ));
    }
    if let (Some(path), Some(name)) = (&custodian, &args.custodian) {
        ctx.globals.key = Some(args.owner_key.clone());
        add_custodian(ctx, &mut founded.ledger, path, name)?;
    }
    let of = (&home, &founded.ledger);
    let custodian = custodian.as_deref();
    Ok(surroundings::founded(of, (&path, &owner), custodian))
}

/// Where a new key of this name would stand; asked before anything is made.
fn free_key(
    ctx: &mut Ctx<'_>,
    (key, owner): (&str, &str),
    owner_path: &Path,
) -> Result<PathBuf, CliError> {
    wallet::check_name(key)?;
    holder(key)?;
    if key != owner && name::skeleton(key) == name::skeleton(owner) {
        let message = format!("--custodian {key} looks like --holder {owner}");
        return Err(CliError::usage(message, "clover init --help"));
    }
    let path = wallet::folder(ctx)?.join(format!("{key}.pem"));
    if path == owner_path {
        let message = format!("{} is the owner's key", path.display());
        let next = "the same command with another --custodian NAME";
        return Err(CliError::refused(message, next));
    }
    // This ledger has no keys yet: whatever stands there is of another one.
    wallet::free(ctx, key, |_| true)
}

/// A second key, which may hold sealed labels and countersign plans.
fn add_custodian(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    path: &Path,
    name: &str,
) -> Result<(), CliError> {
    let terms = KeyTerms {
        holder: holder(name)?,
        roles: Roles::new([Role::Custodian]).expect("BUG: one role"),
        human: true,
        seals: true,
    };
    let drawn = addition::draw(&mut ctx.ports(), ledger, terms)?;
    let passphrase = new_passphrase(ctx)?.filter(|text| !text.is_empty());
    let files = KeyFiles {
        path,
        passphrase: passphrase.as_ref().map(|text| text.as_str()),
    };
    drawn.add(&mut ctx.ports(), ledger, files)?;
    Ok(())
}

/// The owner key, and whether it was made just now.
fn owner(ctx: &mut Ctx<'_>, path: &Path) -> Result<(Signer, bool), CliError> {
    if ambient::exists(path)? {
        ctx.note(&format!("the owner key is {}", path.display()));
        let owner = wallet::read(ctx, path)?;
        wallet::complete(ctx, path, &owner)?;
        return Ok((owner, false));
    }
    let owner = files::draw(&ctx.ambient())?;
    let passphrase = match new_passphrase(ctx)? {
        Some(text) if !text.is_empty() => Some(text),
        _ => None,
    };
    let owner_files = KeyFiles {
        path,
        passphrase: passphrase.as_ref().map(|text| text.as_str()),
    };
    owner_files.write(&ctx.ambient(), &owner)?;
    Ok((owner, true))
}

/// A passphrase for a new key: from a file or the environment; a person may leave it empty.
pub(super) fn new_passphrase(
    ctx: &mut Ctx<'_>,
) -> Result<Option<zeroize::Zeroizing<String>>, CliError> {
    wallet::passphrase(ctx, "passphrase of the new key (empty for none): ")
}

fn origin(ctx: &Ctx<'_>, folder: &Path, given: Option<&str>) -> Result<Origin, CliError> {
    let parse = |text: &str| {
        Origin::parse(text).map_err(|error| {
            let next = "clover init --origin ledger.example/experiment-1";
            CliError::usage(format!("origin {text:?}: {error}"), next)
        })
    };
    if let Some(text) = given {
        return parse(text);
    }
    let random = Digest::blake3(&ctx.ambient().random::<16>()?).to_hex();
    let name = folder
        .components()
        .next_back()
        .and_then(|part| part.as_os_str().to_str());
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let name: String = name
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .map(|c| c.to_ascii_lowercase())
        .take(40)
        .collect();
    let name = if name.is_empty() { "ledger" } else { &name };
    parse(&format!("clover.local/{name}-{}", &random[..32]))
}
