//! What surrounds a ledger: how it was founded, whether everything about it is well, and a demonstration of all of it.

use std::path::Path;

use serde::Serialize;

use crate::event::payload::Role;
use crate::ground::sign::Signer;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::view::Exit;
use crate::view::View;

/// The key of a first owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerKey {
    /// Its file.
    pub file: String,
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
}

/// A new ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewLedger {
    /// Its folder.
    pub folder: String,
    /// The name of its log.
    pub origin: String,
    /// The key that signs its checkpoints: a C2SP verifier key.
    pub log_key: String,
    /// Its first key.
    pub owner: OwnerKey,
    /// The file of its second key, the custodian's; `null` where none was asked for.
    pub custodian: Option<String>,
    /// How strictly roles are kept apart: `solo` or `strict`.
    pub separation: String,
    /// The file of its pin; `null` where none is kept.
    pub pin: Option<String>,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum CheckResult {
    /// As it must be.
    #[serde(rename = "ok")]
    Good,
    /// Worth knowing.
    #[serde(rename = "note")]
    Remark,
    /// To be repaired.
    #[serde(rename = "BAD")]
    Bad,
}

impl CheckResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Remark => "note",
            Self::Bad => "BAD",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Check {
    /// What was checked.
    pub check: &'static str,
    /// How it ended.
    pub found: CheckResult,
    /// What was seen.
    pub seen: String,
}

/// Every check of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checks {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

/// A demonstration of which everything held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Demonstration {
    /// The folder of its ledger.
    pub folder: String,
    /// Events that it appended from its fixture.
    pub appended: u64,
    /// The entry at which the forgery was caught.
    pub caught: u64,
}

/// A new ledger with its owner's key.
pub fn founded(
    (home, ledger): (&Home, &Ledger),
    (file, owner): (&Path, &Signer),
    custodian: Option<&Path>,
) -> View {
    let keyring = &ledger.state().keyring;
    let log_key = keyring.log_key().map(ToString::to_string);
    let separation = keyring.separation().map(|of| of.to_string());
    let facts = NewLedger {
        folder: home.folder().display().to_string(),
        origin: keyring.origin.clone(),
        log_key: log_key.unwrap_or_default(),
        owner: OwnerKey {
            file: file.display().to_string(),
            key_id: owner.id().to_string(),
        },
        custodian: custodian.map(|file| file.display().to_string()),
        separation: separation.unwrap_or_default(),
        pin: ledger.pin().map(|pin| pin.path().display().to_string()),
    };
    let mut view = View::of(&facts).with_verdict("created");
    let mut pairs = vec![
        ("ledger", facts.folder),
        ("origin", facts.origin),
        ("log key", facts.log_key),
        (
            "owner",
            format!("{} {}", facts.owner.file, facts.owner.key_id),
        ),
    ];
    pairs.extend(facts.custodian.map(|file| ("custodian", file)));
    pairs.extend([
        ("roles", format!("{} separation", facts.separation)),
        ("pin", facts.pin.unwrap_or_else(|| "none".to_owned())),
    ]);
    view.pairs(pairs);
    if let Ok(Some(first)) = ledger.entry(0) {
        view.events = vec![first.event.id.to_string()];
    }
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    // A key of every role needs no other to begin with.
    let others = [Role::Registrar, Role::Scorer, Role::Labeler];
    let lacks = others
        .iter()
        .filter(|role| keyring.live_with(**role).next().is_none());
    let lacks: Vec<String> = lacks.map(ToString::to_string).collect();
    let next = if lacks.is_empty() {
        "clover experiment register NAME --title TITLE --purpose WHY".to_owned()
    } else {
        format!("clover key new NAME --role {}", lacks.join(","))
    };
    view.with_next(next).with_next("clover status")
}

/// Checks, one a line.
pub fn checked(checks: Vec<Check>) -> View {
    let facts = Checks { checks };
    let mut view = View::of(&facts);
    let rows = facts.checks.iter().map(|of| {
        vec![
            of.found.as_str().to_owned(),
            of.check.to_owned(),
            of.seen.clone(),
        ]
    });
    view.table(&["", "check", "seen"], rows);
    if facts.checks.iter().all(|of| of.found != CheckResult::Bad) {
        return view.with_verdict("good");
    }
    view.exit = Exit::Unexpected;
    view.with_verdict("bad")
        .with_next("repair what is marked BAD, then clover doctor")
}

/// A demonstration that held, whose steps were shown as they went.
pub fn demonstrated(facts: &Demonstration) -> View {
    View::of(facts).with_verdict("held")
}
