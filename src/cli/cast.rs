//! The keys of a command that several roles sign: all found, or all that lack named, before anything is appended.

use std::collections::BTreeSet;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::wallet;
use crate::event::payload::Role;
use crate::event::payload::Roles;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::ledger::State;

/// The option of a second key, which is never the first.
const SECOND: &str = "--second";

/// An event that the command will append, and the option that names the key for it.
pub(super) struct PlannedEvent<'a> {
    what: &'static str,
    /// One of these is needed; any key will do where there are none.
    roles: Vec<Role>,
    option: &'static str,
    named: Option<&'a String>,
}

impl<'a> PlannedEvent<'a> {
    /// What one of some roles signs.
    pub(super) fn of(
        what: &'static str,
        roles: Vec<Role>,
        option: &'static str,
        named: Option<&'a String>,
    ) -> Self {
        Self {
            what,
            roles,
            option,
            named,
        }
    }

    fn needs(&self) -> String {
        let roles: Vec<String> = self.roles.iter().map(ToString::to_string).collect();
        format!("{} needs role {}", self.what, roles.join(" or "))
    }

    fn allows(&self, held: &Roles) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|role| held.contains(*role))
    }
}

/// A live key of this ledger, by the word that names it.
struct LiveKey<'s> {
    word: String,
    roles: &'s Roles,
}

/// A key that was named: `None` where its public half cannot be read without a passphrase.
fn named<'s>(ctx: &Ctx<'_>, state: &'s State, word: &str) -> Result<Option<LiveKey<'s>>, CliError> {
    let path = wallet::locate(ctx, word)?;
    let Some(id) = wallet::public_id(&path) else {
        return Ok(None);
    };
    wallet::check_live(state, id, &path)?;
    let record = state.keyring.keys.get(&id);
    Ok(record.map(|record| LiveKey {
        word: word.to_owned(),
        roles: &record.roles,
    }))
}

/// What was found of the keys of one command.
#[derive(Default)]
struct KeySearch {
    lacks: Vec<String>,
    options: BTreeSet<(&'static str, String)>,
    missing: Option<Role>,
    /// A key that was named may not sign its part.
    is_refused: bool,
}

impl KeySearch {
    fn propose(&mut self, option: &'static str, word: &str) {
        if !self.options.iter().any(|(known, _)| *known == option) {
            self.options.insert((option, word.to_owned()));
        }
    }

    fn refusal(self, ctx: &Ctx<'_>, state: &State) -> CliError {
        let message = self.lacks.join("; ");
        if let Some(role) = self.missing {
            let next = wallet::to_get(ctx, state, role.as_str());
            return CliError::refused(message, next);
        }
        let words = self.options.iter();
        let words = words.map(|(option, word)| format!("{option} {}", shell::word(word)));
        let words: Vec<_> = words.collect();
        let next = format!("the same command with {}", words.join(" "));
        if self.is_refused {
            return CliError::refused(message, next);
        }
        CliError::usage(message, next)
    }
}

/// The key that each option stands for, in the order of the parts; `None` where a search finds it by itself.
///
/// # Errors
/// Every part for which no key is at hand, or more than one, in one message, with the options that mend it.
pub(super) fn of_parts(
    ctx: &Ctx<'_>,
    state: &State,
    parts: &[PlannedEvent<'_>],
) -> Result<Vec<Option<String>>, CliError> {
    let global = ctx.globals.key.clone();
    let global = global.or_else(|| ctx.variable("CLOVER_KEY").map(str::to_owned));
    let files = wallet::files(ctx)?;
    let live = |id: &KeyId| state.keyring.keys.get(id).filter(|key| key.end.is_none());
    let at_hand: Vec<LiveKey<'_>> = files
        .iter()
        .filter_map(|file| {
            Some(LiveKey {
                word: file.name.clone(),
                roles: &live(&file.id)?.roles,
            })
        })
        .collect();
    let cast = Cast {
        state,
        global,
        at_hand,
        parts,
    };
    let (mut found, mut keys) = (KeySearch::default(), Vec::with_capacity(parts.len()));
    for part in parts {
        keys.push(cast.key(ctx, part, &mut found)?);
    }
    if found.lacks.is_empty() {
        return Ok(keys);
    }
    Err(found.refusal(ctx, state))
}

/// What the parts are held against.
struct Cast<'c, 's> {
    state: &'s State,
    global: Option<String>,
    at_hand: Vec<LiveKey<'s>>,
    parts: &'c [PlannedEvent<'c>],
}

impl Cast<'_, '_> {
    /// The key of one part; what it lacks goes to `found`.
    fn key(
        &self,
        ctx: &Ctx<'_>,
        part: &PlannedEvent<'_>,
        found: &mut KeySearch,
    ) -> Result<Option<String>, CliError> {
        let is_main = part.option == "--key";
        if let Some(word) = part.named.or(self.global.as_ref()) {
            let Some(held) = named(ctx, self.state, word)? else {
                return Ok(Some(word.clone()));
            };
            let is_asked = part.named.is_some() || is_main;
            if part.allows(held.roles) {
                if !is_asked {
                    found.propose(part.option, word);
                }
                return Ok(Some(held.word));
            }
            if is_asked {
                let (needs, option, roles) = (part.needs(), part.option, held.roles);
                let message = format!("{needs}, and {option} {word} has {roles}");
                found.is_refused = true;
                self.lack(part, found, message);
                return Ok(None);
            }
        }
        let fit = self.at_hand.iter().filter(|held| part.allows(held.roles));
        let (fit, roles): (Vec<&str>, Vec<&Roles>) =
            fit.map(|held| (held.word.as_str(), held.roles)).unzip();
        if let Some(at) = wallet::narrowest(&roles) {
            return Ok(Some(fit[at].to_owned()));
        }
        let message = match fit.as_slice() {
            [] => {
                let held = self.at_hand.iter();
                let held = held.map(|held| format!("{} ({})", held.word, held.roles));
                let held = held.collect::<Vec<_>>().join(", ");
                format!("{}; your keys: {held}", part.needs())
            }
            several => {
                let (what, several) = (part.what, several.join(", "));
                format!("several of your keys may sign {what}: {several}")
            }
        };
        self.lack(part, found, message);
        Ok(None)
    }

    /// The key that the command itself is signed with, as far as it is known.
    fn main(&self) -> Option<&str> {
        if let Some(word) = &self.global {
            return Some(word);
        }
        let part = self.parts.iter().find(|part| part.option == "--key")?;
        let mut held = self.at_hand.iter();
        let held = held.find(|held| part.allows(held.roles))?;
        Some(&held.word)
    }

    /// Takes note of what mends a part: a key at hand that serves every part of its option, else one that serves this.
    fn lack(&self, part: &PlannedEvent<'_>, found: &mut KeySearch, message: String) {
        found.lacks.push(message);
        let same = || self.parts.iter().filter(|one| one.option == part.option);
        let taken = (part.option == SECOND).then(|| self.main()).flatten();
        let held = || {
            let held = self.at_hand.iter();
            held.filter(|held| Some(held.word.as_str()) != taken)
        };
        let mut all = held().filter(|held| same().all(|one| one.allows(held.roles)));
        let mut one = held().filter(|held| part.allows(held.roles));
        match all.next().or_else(|| one.next()) {
            Some(held) => found.propose(part.option, &held.word),
            None => found.missing = found.missing.or(part.roles.first().copied()),
        }
    }
}
