//! The rule `role`: which live keys may sign a kind.

use clover_event::Kind;
use clover_event::payload::Role;
use clover_event::registry::Signers;

use crate::fold::Breach;
use crate::fold::ProposedEvent;
use crate::rule_names::RuleName;
use crate::rulebooks::Question;
use crate::state::State;

/// Who may sign a deviation, where the rulebook asks: it lifts a stop and lowers a grade, so it is for those who answer
/// for the plan.
const OF_DEVIATIONS: [Role; 2] = [Role::Owner, Role::Registrar];

/// Roles of which a key needs one to sign a kind, beside what an account allows; empty where any live key may.
pub fn needed(state: &State, kind: Kind) -> Vec<Role> {
    match kind.signers() {
        Signers::Role(role) => vec![role],
        _ if kind == Kind::ManifestDeviated && state.asks(Question::DeviationSigners) => {
            OF_DEVIATIONS.to_vec()
        }
        _ => Vec::new(),
    }
}

/// Judges the roles of the key that signed.
pub(super) fn judge(state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
    let needed = needed(state, event.event.kind());
    let Some(record) = state.keyring.keys.get(&event.event.header.author) else {
        return;
    };
    let holds = needed.iter().any(|role| record.roles.contains(*role));
    if needed.is_empty() || record.end.is_some() || holds {
        return;
    }
    let named: Vec<String> = needed.iter().map(ToString::to_string).collect();
    let expected = format!(
        "a key with role {} for {}",
        named.join(" or "),
        event.event.kind()
    );
    let found = format!("key of {} with roles {}", record.holder, record.roles);
    breaches.push(Breach::new(RuleName::Role, expected, found));
}
