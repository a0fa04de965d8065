//! A new ledger with two keys in memory, and short ways to say an event.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::custody::Separation;
use clover::ground::ambient::Ambient;
use clover::ground::note::Origin;
use clover::ledger::Command;
use clover::ledger::CreateLedger;
use clover::ledger::Ledger;
use clover::ledger::rulebooks;
use clover::session::Home;
use clover::session::append;
use clover::session::append::Intent;
use clover::session::founding;
use clover::session::home::HomeOptions;
use clover::session::keys::addition;
use clover::session::keys::addition::KeyTerms;
use clover::session::keys::files;
use clover::session::ports::KeysInHand;
use clover::store::CreateOptions;
use serde_json::Value;

/// What an example works with.
pub(crate) struct Desk {
    pub(crate) home: Home,
    pub(crate) keys: KeysInHand,
    pub(crate) ledger: Ledger,
}

impl Desk {
    /// A new ledger in a folder: Ada owns it, Cem keeps sealed labels.
    pub(crate) fn new(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let ambient = Arc::new(Ambient::system());
        let home = Home::new(folder.join(".clover"));
        let owner = files::draw(&ambient)?;
        let all = [Role::Owner, Role::Registrar, Role::Arbiter, Role::Optimizer];
        let others = [Role::Scorer, Role::Labeler, Role::Releaser, Role::Adversary];
        let create = CreateLedger {
            origin: Origin::parse("clover.local/library")?,
            holder: "Ada".parse()?,
            human: true,
            roles: Roles::new(all.into_iter().chain(others)).ok_or("no role")?,
            separation: Separation::Solo,
            rulebook: rulebooks::NEWEST,
            owner: &owner,
            layout: CreateOptions::default(),
        };
        // A program that runs for long gives a folder for pins here.
        let options = HomeOptions::default();
        let mut ledger = founding::found(&ambient, &home, create, &options)?.ledger;
        let mut keys = KeysInHand::default();
        keys.signers.push(Arc::new(owner));
        let custodian = KeyTerms {
            holder: "Cem".parse()?,
            roles: Roles::new([Role::Custodian]).ok_or("no role")?,
            human: true,
            seals: true,
        };
        let custodian = addition::draw(&mut keys, &ledger, custodian)?;
        custodian.add_in_hand(&mut keys, &mut ledger)?;
        Ok(Self { home, keys, ledger })
    }

    /// Appends one event, signed by whoever may.
    pub(crate) fn say(
        &mut self,
        event: impl Into<Payload>,
        experiment: &ExperimentId,
    ) -> Result<(), Box<dyn Error>> {
        let command = Command::new(event, Some(experiment.clone()));
        append::submit_one(&mut self.keys, &mut self.ledger, command, Intent::Append)?;
        Ok(())
    }

    /// Appends one event of which the data are JSON, as `schema/events` describes them.
    pub(crate) fn say_json<T>(
        &mut self,
        data: Value,
        of: &ExperimentId,
    ) -> Result<(), Box<dyn Error>>
    where
        T: serde::de::DeserializeOwned + Into<Payload>,
    {
        self.say(serde_json::from_value::<T>(data)?, of)
    }
}
