//! Labels given to the rows that they are of.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::PolicyId;
use clover_num::Count;

use crate::estimate::rows::Gathered;
use crate::estimate::rows::Label;
use crate::estimate::rows::bump;

/// Rows by policy, item and draw.
pub(super) type Places = BTreeMap<(usize, u32, u64), usize>;

/// Gives labels to their rows. Only labels up to the newest row are counted, so that counts do not move without one.
pub(super) fn join(
    found: &mut Gathered,
    labels: Vec<Label>,
    names: &BTreeMap<PolicyId, usize>,
    places: &Places,
) {
    let mut audited = BTreeSet::new();
    for label in labels {
        let counts = label.seq <= found.newest;
        let place = names.get(&label.policy).and_then(|&policy| {
            let prompt = found.prompts.known(label.item.as_str())?;
            let row = places.get(&(policy, prompt, label.draw))?;
            Some((policy, *row))
        });
        let Some((policy, row)) = place else {
            if counts {
                bump(&mut found.filter.labels_without_score);
            }
            continue;
        };
        let values = if let Some(design) = label.audit {
            if counts {
                audited.insert((policy, row));
            }
            let of = found.probes.entry(design).or_default();
            let probes = of.entry(policy).or_default();
            probes.newest = probes.newest.max(label.seq);
            probes.charge = label.charge.or(probes.charge);
            probes.labels.entry(row).or_default()
        } else {
            let source = &mut found.sources[policy];
            source.newest_label = source.newest_label.max(Some(label.seq));
            source.labels.entry(row).or_default()
        };
        if counts && !values.is_empty() {
            bump(&mut found.filter.repeated_labels);
        }
        values.push(label.value);
    }
    found.filter.audit_labels = Count::new(audited.len() as u64).unwrap_or_default();
}
