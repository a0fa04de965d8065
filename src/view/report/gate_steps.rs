//! Steps of gates, from a plan to a promotion: what the report of an experiment lists beside those of patches.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::ground::digest::Digest;
use crate::session::chronicle::Chronicle;
use crate::view::report::course::Act;
use crate::view::word;

/// Steps of every gate in the chronicle, in their order.
pub(super) fn steps(chronicle: &Chronicle) -> Vec<Act<'_>> {
    let mut plans = BTreeMap::new();
    let mut out = Vec::new();
    for entry in &chronicle.entries {
        let payload = &entry.event.payload;
        let known = |digest: &Digest| plans.get(digest).cloned();
        let found = match payload {
            Payload::ManifestRegistered(said) => {
                plans.insert(said.digest, said.manifest.manifest.to_string());
                Some((
                    "registered the plan",
                    said.manifest.manifest.to_string(),
                    String::new(),
                ))
            }
            Payload::ManifestAmended(said) => {
                plans.insert(said.digest, said.manifest.manifest.to_string());
                let reason = said.reason.as_str().to_owned();
                Some((
                    "amended the plan",
                    said.manifest.manifest.to_string(),
                    reason,
                ))
            }
            Payload::ManifestCountersigned(said) => {
                known(&said.digest).map(|plan| ("countersigned the plan", plan, String::new()))
            }
            Payload::ManifestDeviated(said) => {
                known(&said.digest).map(|plan| ("deviated", plan, said.what.as_str().to_owned()))
            }
            Payload::GateOpened(said) => Some(("opened", said.gate.to_string(), String::new())),
            Payload::GateDecided(said) => Some((
                "decided",
                said.gate.to_string(),
                word(&said.outcome).replace('_', " "),
            )),
            Payload::PromotionIssued(said) => {
                let gates: Vec<_> = said.gates.iter().map(ToString::to_string).collect();
                Some((
                    "promoted",
                    gates.join(", "),
                    format!("grade {}", word(&said.grade)),
                ))
            }
            _ => None,
        };
        out.extend(found.map(|(verb, subject, said)| Act {
            entry,
            verb,
            subject,
            said,
            is_since: false,
        }));
    }
    out
}
