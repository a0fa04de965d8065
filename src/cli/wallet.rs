//! Author keys at hand: files in the user's configuration folder or behind `--key`.
//!
//! `<name>.pem` is the private key (PKCS#8, 0600, encrypted when a passphrase was given), `<name>.pub` its
//! public half, `<name>.age` the identity that opens labels sealed to its holder, under the same passphrase
//! when one was given. A private file that others may read is refused.

use std::path::Path;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::Kind;
use crate::event::id::RaterId;
use crate::event::payload::Role;
use crate::event::payload::Roles;
use crate::event::registry::Signers;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::ground::keyfile;
use crate::ground::keyfile::KeyFileError;
use crate::ground::seal;
use crate::ground::seal::AgeError;
use crate::ground::seal::Identity;
use crate::ground::seal::Recipient;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::ground::sign::Signer;
use crate::ledger::State;
use crate::ledger::keyring::KeyRecord;
use crate::ledger::signers;
use crate::session::keys::files as key_files;

/// A key file whose public half is known.
#[derive(Clone, Debug)]
pub(super) struct KeyFile {
    /// Its name without extension.
    pub name: String,
    /// The private file.
    pub path: PathBuf,
    /// The key's id.
    pub id: KeyId,
}

/// The folder of author keys.
pub(super) fn folder(ctx: &Ctx<'_>) -> Result<PathBuf, CliError> {
    let config = ctx.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(ctx.variable("HOME")?).join(".config"));
    let config = config.or_else(home).ok_or_else(|| {
        let message = "no place for keys: neither XDG_CONFIG_HOME nor HOME is set";
        CliError::not_found(message, "export XDG_CONFIG_HOME=~/.config")
    })?;
    Ok(config.join("clover/keys"))
}

/// Where `--key` and `--owner-key` point: a file when it looks like one, else a name in the key folder.
pub(super) fn locate(ctx: &Ctx<'_>, key: &str) -> Result<PathBuf, CliError> {
    let is_pem = Path::new(key).extension().is_some_and(|end| end == "pem");
    if key.contains('/')
        || is_pem
        || ambient::exists(&ctx.path(key))? && !ambient::is_dir(&ctx.path(key))
    {
        return Ok(ctx.path(key));
    }
    check_name(key)?;
    Ok(folder(ctx)?.join(format!("{key}.pem")))
}

/// Names of keys are names of files.
pub(super) fn check_name(name: &str) -> Result<(), CliError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.') {
        return Ok(());
    }
    let message = format!("{name:?} is no key name: 1 to 64 of a-z A-Z 0-9 - _ .");
    Err(CliError::usage(message, "clover key list"))
}

/// The file of a new key. Where a key of another ledger has the name, the next free one, `name-2`, is taken, and said.
pub(super) fn free(
    ctx: &mut Ctx<'_>,
    name: &str,
    is_elsewhere: impl Fn(KeyId) -> bool,
) -> Result<PathBuf, CliError> {
    check_name(name)?;
    let folder = folder(ctx)?;
    let path = folder.join(format!("{name}.pem"));
    if !ambient::exists(&path)? {
        return Ok(path);
    }
    let is_elsewhere = public_id(&path).is_some_and(is_elsewhere);
    for number in 2..100 {
        let other = folder.join(format!("{name}-{number}.pem"));
        if is_elsewhere && !ambient::exists(&other)? {
            ctx.note(&format!(
                "{} is a key of another ledger: the key of this one is {}",
                path.display(),
                other.display()
            ));
            return Ok(other);
        }
    }
    let message = format!("{} exists already", path.display());
    Err(CliError::refused(message, "clover key list"))
}

/// Every key file whose public half can be read without a passphrase.
pub(super) fn files(ctx: &Ctx<'_>) -> Result<Vec<KeyFile>, CliError> {
    let mut found = Vec::new();
    for path in ambient::list(&folder(ctx)?)? {
        let (Some(name), Some("pem")) = (
            path.file_stem().and_then(|name| name.to_str()),
            path.extension().and_then(|end| end.to_str()),
        ) else {
            continue;
        };
        if let Some(id) = public_id(&path) {
            let name = name.to_owned();
            found.push(KeyFile { name, path, id });
        }
    }
    Ok(found)
}

/// The id of a key file: from the public half beside it, else from the file itself when it is not encrypted.
pub(super) fn public_id(path: &Path) -> Option<KeyId> {
    let beside = ambient::read(&path.with_extension("pub")).ok();
    let public = beside.and_then(|bytes| keyfile::read_public(&bytes).ok());
    if let Some(public) = public {
        return Some(KeyId(keyfile::key_id(&public)));
    }
    let bytes = Zeroizing::new(ambient::read(path).ok()?);
    let key = keyfile::read_private(&bytes, None).ok()?;
    Some(Signer::from(key).id())
}

/// The passphrase from a file, the environment or a person.
pub(super) fn passphrase(
    ctx: &mut Ctx<'_>,
    prompt: &str,
) -> Result<Option<Zeroizing<String>>, CliError> {
    if let Some(path) = ctx.globals.passphrase_file.clone() {
        let bytes = Zeroizing::new(ambient::read_secret(&ctx.path(path))?);
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            CliError::input("the passphrase file is not UTF-8", "clover key --help")
        })?;
        return Ok(Some(Zeroizing::new(
            text.trim_end_matches(['\n', '\r']).to_owned(),
        )));
    }
    if let Some(passphrase) = ctx.variable("CLOVER_PASSPHRASE") {
        return Ok(Some(Zeroizing::new(passphrase.to_owned())));
    }
    Ok(ctx.ask_passphrase(prompt).map(Zeroizing::new))
}

/// Reads a private key file.
pub(super) fn read(ctx: &mut Ctx<'_>, path: &Path) -> Result<Signer, CliError> {
    let bytes = match ambient::read_secret(path) {
        Err(AmbientError::NotFound(_)) => {
            let message = format!("the key {} is missing", path.display());
            return Err(CliError::not_found(message, "clover key list"));
        }
        other => Zeroizing::new(other?),
    };
    let broken = |error: KeyFileError| {
        let next = match error {
            KeyFileError::PassphraseMissing | KeyFileError::PassphraseWrong => {
                "the same command with --passphrase-file FILE"
            }
            _ => "clover key list",
        };
        CliError::input(format!("the key {}: {error}", path.display()), next)
    };
    let passphrase = if keyfile::is_encrypted(&bytes).map_err(broken)? {
        passphrase(ctx, &format!("passphrase of {}: ", path.display()))?
    } else {
        None
    };
    let passphrase = passphrase.as_ref().map(|text| text.as_str());
    let key = keyfile::read_private(&bytes, passphrase).map_err(broken)?;
    Ok(key.into())
}

/// Writes the public half of a key in the key folder when it is missing, as after a stop between the two files.
pub(super) fn complete(ctx: &Ctx<'_>, path: &Path, signer: &Signer) -> Result<(), CliError> {
    let public = path.with_extension("pub");
    if path.parent() != Some(folder(ctx)?.as_path()) || ambient::exists(&public)? {
        return Ok(());
    }
    Ok(key_files::write_public(path, signer)?)
}

/// The key that signs a kind of event: `--key`, `CLOVER_KEY`, or the one key at hand that may.
pub(super) fn signer(ctx: &mut Ctx<'_>, state: &State, kind: Kind) -> Result<Signer, CliError> {
    if kind == Kind::ManifestDeviated
        && let Some(roles) = Roles::new(signers::needed(state, kind))
    {
        return signer_for(ctx, state, kind.as_str(), Signers::Spenders, Some(&roles));
    }
    signer_for(ctx, state, kind.as_str(), kind.signers(), None)
}

/// Whether a live key with a role is at hand.
pub(super) fn holds(ctx: &Ctx<'_>, state: &State, role: Role) -> Result<bool, CliError> {
    let live = |id: KeyId| {
        let key = state.keyring.keys.get(&id);
        key.is_some_and(|key| key.end.is_none() && key.roles.contains(role))
    };
    Ok(files(ctx)?.iter().any(|file| live(file.id)))
}

/// As [`signer`], for an account's charge.
pub(super) fn spender(
    ctx: &mut Ctx<'_>,
    state: &State,
    spenders: Option<&Roles>,
) -> Result<Signer, CliError> {
    signer_for(ctx, state, "budget.charged", Signers::Spenders, spenders)
}

/// The place of the roles that are fewer than, and all among, every other's: of keys that may all sign, the one that was
/// made for less. `None` where there is no such one.
pub(super) fn narrowest(fit: &[&Roles]) -> Option<usize> {
    let within = |one: &Roles, other: &Roles| {
        one.as_slice().len() < other.as_slice().len()
            && one.as_slice().iter().all(|role| other.contains(*role))
    };
    let below_others = |at: &usize| {
        let mut others = fit.iter().enumerate().filter(|(other, _)| other != at);
        others.all(|(_, other)| within(fit[*at], other))
    };
    (0..fit.len()).find(below_others)
}

fn signer_for(
    ctx: &mut Ctx<'_>,
    state: &State,
    what: &str,
    signers: Signers,
    spenders: Option<&Roles>,
) -> Result<Signer, CliError> {
    let named = ctx.globals.key.clone();
    let named = named.or_else(|| ctx.variable("CLOVER_KEY").map(str::to_owned));
    if let Some(key) = named {
        let path = locate(ctx, &key)?;
        let signer = read(ctx, &path)?;
        check_live(state, signer.id(), &path)?;
        return Ok(signer);
    }
    let keys = &state.keyring.keys;
    let at_hand: Vec<_> = files(ctx)?
        .into_iter()
        .filter_map(|file| Some((keys.get(&file.id)?, file)))
        .filter(|(record, _)| record.end.is_none())
        .collect();
    let may = |roles: &Roles| match signers {
        Signers::Any => true,
        Signers::Genesis => false,
        Signers::Role(role) => roles.contains(role),
        Signers::Spenders => spenders
            .is_none_or(|allowed| allowed.as_slice().iter().any(|role| roles.contains(*role))),
    };
    let fit: Vec<_> = at_hand
        .iter()
        .filter(|(record, _)| may(&record.roles))
        .collect();
    let roles: Vec<&Roles> = fit.iter().map(|(record, _)| &record.roles).collect();
    if let Some(at) = narrowest(&roles) {
        return read(ctx, &fit[at].1.path.clone());
    }
    match fit.as_slice() {
        [] if at_hand.is_empty() => {
            let message = format!("no key of this ledger in {}", folder(ctx)?.display());
            Err(CliError::not_found(message, "clover key list"))
        }
        [] => {
            let needed = match signers {
                Signers::Role(role) => format!("role {role}"),
                _ => spenders.map_or("a right".to_owned(), |roles| format!("one of {roles}")),
            };
            let held = at_hand
                .iter()
                .map(|(record, file)| format!("{} ({})", file.name, record.roles));
            let held = held.collect::<Vec<_>>().join(", ");
            let message = format!("{what} needs {needed}; your keys: {held}");
            let role = match signers {
                Signers::Role(role) => role.to_string(),
                _ => "ROLE".to_owned(),
            };
            Err(CliError::refused(message, to_get(ctx, state, &role)))
        }
        [(_, first), ..] => {
            let several = fit.iter().map(|(_, file)| file.name.as_str());
            let several = several.collect::<Vec<_>>().join(", ");
            let message = format!("several of your keys may sign {what}: {several}");
            let next = format!("the same command with --key {}", shell::word(&first.name));
            Err(CliError::usage(message, next))
        }
    }
}

/// How to get a key with a role: made where the log is written, asked for where the ledger is a copy.
pub(super) fn to_get(ctx: &Ctx<'_>, state: &State, role: &str) -> String {
    let role = shell::word(role);
    if !home::find(ctx).is_ok_and(|home| home.is_reader().unwrap_or(false)) {
        return format!("clover key new NAME --role {role}");
    }
    let own = own(ctx, state);
    let holder = own.map_or_else(|| "NAME".to_owned(), |key| key.holder.to_string());
    let holder = shell::word(&holder);
    format!(
        "clover key request --roles {role} --holder {holder} -o {role}.request, for the owner of the ledger to admit"
    )
}

/// The first live key of the ledger that is at hand.
fn own<'s>(ctx: &Ctx<'_>, state: &'s State) -> Option<&'s KeyRecord> {
    let keys = files(ctx).ok()?;
    let mut known = keys
        .iter()
        .filter_map(|file| state.keyring.keys.get(&file.id));
    known.find(|key| key.end.is_none())
}

/// Who labels here, where that is another person than the owner: the holder of the key that signs labels, as a rater's name.
pub(super) fn labeler(ctx: &Ctx<'_>, state: &State) -> Option<RaterId> {
    let keys = &state.keyring.keys;
    let named = ctx.globals.key.clone();
    let named = named.or_else(|| ctx.variable("CLOVER_KEY").map(str::to_owned));
    let ids: Vec<KeyId> = match named {
        Some(name) => public_id(&locate(ctx, &name).ok()?).into_iter().collect(),
        None => files(ctx).ok()?.into_iter().map(|file| file.id).collect(),
    };
    let live = ids.iter().filter_map(|id| keys.get(id));
    let mut may = live.filter(|key| key.end.is_none() && key.roles.contains(Role::Labeler));
    let key = may.next()?;
    if may.any(|other| other.holder != key.holder) {
        return None;
    }
    let mut owners = state.keyring.keys.values();
    let is_owner = owners.any(|of| of.roles.contains(Role::Owner) && of.holder == key.holder);
    if is_owner || !key.human {
        return None;
    }
    let name = key.holder.to_string().replace(' ', "-");
    RaterId::new(name).ok()
}

/// The live key of this ledger whose file got the next free name, as `cem-2`, since another ledger's key has the name.
fn namesake(state: &State, path: &Path) -> Option<String> {
    let begin = format!("{}-", path.file_stem()?.to_str()?);
    let beside = ambient::list(path.parent()?).ok()?;
    let is_live = |path: &PathBuf| {
        let record = public_id(path).and_then(|id| state.keyring.keys.get(&id));
        record.is_some_and(|record| record.end.is_none())
    };
    let mut own = beside.into_iter().filter(|other| {
        let stem = other.file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| stem.strip_prefix(&begin));
        let is_pem = other.extension().is_some_and(|end| end == "pem");
        is_pem && number.is_some_and(|number| number.parse::<u8>().is_ok()) && is_live(other)
    });
    let found = own.next().filter(|_| own.next().is_none())?;
    Some(found.file_stem()?.to_str()?.to_owned())
}

/// Refuses a key that this ledger does not know, or no longer.
pub(super) fn check_live(state: &State, id: KeyId, path: &Path) -> Result<(), CliError> {
    let namesake = namesake(state, path);
    let path = path.display();
    match state.keyring.keys.get(&id) {
        None => {
            let message = format!(
                "wrong key: {path} ({id}) is no key of this ledger, so it has no role here"
            );
            let next = namesake.map_or("clover key list".to_owned(), |name| {
                format!("the same command with {name}, the key of that name in this ledger")
            });
            Err(CliError::refused(message, next))
        }
        Some(record) if let Some(end) = &record.end => {
            let how = if end.tainted_since.is_some() {
                "compromised"
            } else {
                "retired"
            };
            let message = format!("wrong key: {path} ({id}) was {how} at seq {}", end.seq);
            Err(CliError::refused(
                message,
                format!("clover show {}", end.seq),
            ))
        }
        Some(_) => Ok(()),
    }
}

/// A key of the ledger by local name, id, unique beginning of an id, or holder of a single live key.
pub(super) fn resolve(ctx: &Ctx<'_>, state: &State, key: &str) -> Result<KeyId, CliError> {
    let keys = &state.keyring.keys;
    if let Some(file) = files(ctx)?.iter().find(|file| file.name == key)
        && keys.contains_key(&file.id)
    {
        return Ok(file.id);
    }
    let hex = key.len() >= 8 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    let by_id = |id: &&KeyId| hex && id.to_string().starts_with(key);
    let mut found: Vec<_> = keys.keys().filter(by_id).copied().collect();
    if found.is_empty() {
        let live = state.keyring.live();
        let held = live.filter(|(_, record)| record.holder.as_str() == key);
        found = held.map(|(id, _)| *id).collect();
    }
    match found.as_slice() {
        [id] => Ok(*id),
        [] => {
            let message = format!("no key {key:?} in this ledger");
            Err(CliError::not_found(message, "clover key list"))
        }
        _ => {
            let message = format!("{key:?} names {} keys of this ledger", found.len());
            Err(CliError::usage(message, "clover key list"))
        }
    }
}

/// Whether an identity file lies in clear beside a signing key that is encrypted.
pub(super) fn is_bare(path: &Path) -> Result<bool, CliError> {
    let key = path.with_extension("pem");
    if !ambient::exists(&key)? || sealed_identity(&ambient::read_secret(path)?) {
        return Ok(false);
    }
    Ok(keyfile::is_encrypted(&Zeroizing::new(ambient::read_secret(&key)?)).unwrap_or(false))
}

/// How an identity in clear is put under a passphrase.
pub(super) fn seal_again(path: &Path) -> String {
    let path = shell::word(&path.display());
    format!("age --passphrase -o {path}.new {path} && mv {path}.new {path}")
}

/// Whether the bytes of an identity file are an age file under a passphrase.
fn sealed_identity(bytes: &[u8]) -> bool {
    bytes.starts_with(b"age-encryption.org/v1\n")
}

/// The identity in the text of an identity file.
fn identity_in(text: &[u8]) -> Option<Identity> {
    let text = Zeroizing::new(String::from_utf8_lossy(text).into_owned());
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("AGE-SECRET-KEY-"))?;
    line.trim().parse().ok()
}

/// An identity file that is under a passphrase, opened with the one that is given or asked for.
fn open_identity(ctx: &mut Ctx<'_>, path: &Path, file: &[u8]) -> Result<Identity, CliError> {
    let shown = path.display().to_string();
    let next = "the same command with --passphrase-file FILE";
    let passphrase = passphrase(ctx, &format!("passphrase of {shown}: "))?.ok_or_else(|| {
        let message = format!("the identity {shown} is encrypted and no passphrase was given");
        CliError::input(message, next)
    })?;
    let opened = seal::decrypt_with_passphrase(file, &passphrase).map_err(|error| {
        let what = match error {
            AgeError::NoMatch => "wrong passphrase".to_owned(),
            other => other.to_string(),
        };
        CliError::input(format!("the identity {shown}: {what}"), next)
    })?;
    identity_in(&opened).ok_or_else(|| {
        let message = format!("the identity {shown} holds no AGE-SECRET-KEY line");
        CliError::input(message, "the same command with --identity FILE")
    })
}

/// The key that signs where no ledger says which may: the one that is named, else the only one.
pub(super) fn only(ctx: &mut Ctx<'_>) -> Result<Signer, CliError> {
    let named = ctx.globals.key.clone();
    if let Some(key) = named.or_else(|| ctx.variable("CLOVER_KEY").map(str::to_owned)) {
        let path = locate(ctx, &key)?;
        return read(ctx, &path);
    }
    let all = files(ctx)?;
    match all.as_slice() {
        [file] => read(ctx, &file.path.clone()),
        [] => {
            let message = format!("no key in {}", folder(ctx)?.display());
            Err(CliError::not_found(message, "clover key request --help"))
        }
        [first, ..] => {
            let names: Vec<&str> = all.iter().map(|file| file.name.as_str()).collect();
            let message = format!("several keys could sign: {}", names.join(", "));
            let next = format!("the same command with --key {}", shell::word(&first.name));
            Err(CliError::usage(message, next))
        }
    }
}

/// The identity in a file.
pub(super) fn read_identity(ctx: &mut Ctx<'_>, path: &Path) -> Result<Identity, CliError> {
    let bytes = Zeroizing::new(ambient::read_secret(path)?);
    if sealed_identity(&bytes) {
        return open_identity(ctx, path, &bytes);
    }
    identity_in(&bytes).ok_or_else(|| {
        let message = format!("{} holds no AGE-SECRET-KEY line", path.display());
        CliError::input(message, "the same command with --identity FILE")
    })
}

/// The identity that opens what is sealed to `recipient`: from `file`, else from the key folder. One in clear is looked at
/// before those that need a passphrase; of these, the one beside the key that the ledger knows by this recipient.
pub(super) fn identity(
    ctx: &mut Ctx<'_>,
    state: &State,
    file: Option<&Path>,
    recipient: &Recipient,
) -> Result<Identity, CliError> {
    let paths = match file {
        Some(path) => vec![ctx.path(path)],
        None => ambient::list(&folder(ctx)?)?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "age"))
            .collect(),
    };
    let mut sealed = Vec::new();
    for path in paths {
        let bytes = Zeroizing::new(ambient::read_secret(&path)?);
        if sealed_identity(&bytes) {
            sealed.push((path, bytes));
        } else if let Some(identity) = identity_in(&bytes)
            && identity.recipient() == *recipient
        {
            if is_bare(&path)? {
                ctx.warn(format!(
                    "the identity {} lies in clear beside an encrypted key: {}",
                    path.display(),
                    seal_again(&path)
                ));
            }
            return Ok(identity);
        }
    }
    let is_of = |path: &Path| {
        let id = public_id(&path.with_extension("pem"));
        let record = id.and_then(|id| state.keyring.keys.get(&id));
        let seals_to = record.and_then(|record| record.seal_recipient.as_ref());
        seals_to.is_some_and(|known| known.0 == *recipient)
    };
    for (path, bytes) in sealed {
        if file.is_some() || is_of(&path) {
            let identity = open_identity(ctx, &path, &bytes)?;
            if identity.recipient() == *recipient {
                return Ok(identity);
            }
        }
    }
    let message = format!("no identity for {recipient} at hand");
    Err(CliError::not_found(
        message,
        "the same command with --identity FILE",
    ))
}
