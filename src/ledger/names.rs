//! Rules about names: ids of characters that both verifiers know, and holders that nobody takes for one another.

use clover_event::Event;
use clover_event::Header;
use clover_event::Payload;
use clover_event::id::HolderId;
use clover_event::ids;
use clover_ground::name;

use crate::fold::Breach;
use crate::keyring::Keyring;
use crate::rule_names::RuleName;
use crate::rulebooks::Question;

/// Judges the names in an event: its ids, and the holder of a key that it adds.
pub(super) fn names(keyring: &Keyring, event: &Event) -> impl Iterator<Item = Breach> {
    let ids = keyring.asks(Question::AssignedIds).then(|| assigned(event));
    let holder = keyring
        .asks(Question::OneSpelling)
        .then(|| match &event.payload {
            Payload::KeyAdded(added) => spelled(keyring, &added.holder),
            _ => None,
        });
    ids.flatten().into_iter().chain(holder.flatten())
}

/// Every id holds only characters that one version of Unicode assigns: what is normal of others, tables disagree on.
fn assigned(event: &Event) -> Option<Breach> {
    let mut found = None;
    let mut see = |id: &str| {
        if found.is_none() && name::unassigned(id).is_some() {
            found = Some(id.escape_unicode().to_string());
        }
    };
    let Header { experiment, .. } = &event.header;
    ids::each_id(experiment, &mut see);
    ids::each_id(&event.payload, &mut see);
    let expected = "ids of characters that Unicode 13.0 assigns";
    found.map(|id| Breach::new(RuleName::Schema, expected, id))
}

/// A holder has one spelling, and no other holder looks like it.
fn spelled(keyring: &Keyring, holder: &HolderId) -> Option<Breach> {
    if let Some(fault) = name::fault(holder.as_str()) {
        let expected = "a holder of visible characters and single spaces";
        return Some(Breach::new(RuleName::Separation, expected, fault));
    }
    let other = look_alike(keyring, holder)?;
    let expected = format!("the holder as it is spelled so far, {other}");
    let found = format!("{holder}, which looks like it");
    Some(Breach::new(RuleName::Separation, expected, found))
}

/// The name under which the roles of a holder are counted: spellings that look alike are one person.
pub fn person(keyring: &Keyring, holder: &HolderId) -> String {
    if keyring.asks(Question::OneSpelling) {
        name::skeleton(holder.as_str())
    } else {
        holder.to_string()
    }
}

/// A holder of another spelling that a reader takes for this one.
pub fn look_alike<'k>(keyring: &'k Keyring, holder: &HolderId) -> Option<&'k HolderId> {
    let skeleton = name::skeleton(holder.as_str());
    let mut others = keyring.keys.values().map(|record| &record.holder);
    others.find(|other| *other != holder && name::skeleton(other.as_str()) == skeleton)
}
