//! The rule `role`: which live keys may sign a kind.

use crate::event::registry::Signers;
use crate::ledger::fold::Breach;
use crate::ledger::fold::Candidate;
use crate::ledger::state::State;

/// Judges the roles of the key that signed.
pub(super) fn judge(state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
    let Signers::Role(role) = event.event.kind().signers() else {
        return;
    };
    if let Some(record) = state.keyring.keys.get(&event.event.header.author)
        && record.end.is_none()
        && !record.roles.contains(role)
    {
        let found = format!("key of {} with roles {}", record.holder, record.roles);
        breaches.push(Breach::new(
            "role",
            format!("a key with role {role} for {}", event.event.kind()),
            found,
        ));
    }
}
