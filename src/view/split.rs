//! A split of clusters into fit, dev and confirm: how many are where, and how far confirm is apart.

use serde::Serialize;

use crate::event::id::SplitId;
use crate::event::payload::intake::PartRoot;
use crate::event::payload::intake::SplitPart;
use crate::ledger::AppendedEvent;
use crate::ledger::Ledger;
use crate::view::View;
use crate::workflow::split;
use crate::workflow::split::Apart;
use crate::workflow::split::PartMembers;

/// A split of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SplitFormed {
    /// Its name.
    pub split: SplitId,
    /// Clusters to fit on.
    pub fit: PartRoot,
    /// Clusters to choose on.
    pub dev: PartRoot,
    /// Clusters to confirm on.
    pub confirm: PartRoot,
    /// Clusters in no part: in the gap, or outside the time of both sides.
    pub left_out: u64,
    /// Whether confirm is separated in time.
    pub gap_checked: bool,
}

/// How far confirm is apart, in words.
pub(super) fn gap(seconds: Option<u64>) -> String {
    seconds.map_or_else(
        || "NOT CHECKED: confirm not time-separated, EXPLORATORY".to_owned(),
        |seconds| format!("{} h", seconds / 3_600),
    )
}

/// A split that nothing is on record of yet: what a dry run shows.
pub fn planned(split: &SplitId, parts: &PartMembers, apart: Apart) -> View {
    let part = |part: SplitPart| split::root(&parts.members[&part]);
    let facts = SplitFormed {
        split: split.clone(),
        fit: part(SplitPart::Fit),
        dev: part(SplitPart::Dev),
        confirm: part(SplitPart::Confirm),
        left_out: parts.left_out as u64,
        gap_checked: apart != Apart::Hashed,
    };
    let line = |of: PartRoot| format!("{} clusters · root {}", of.count, of.root.0.to_base64());
    let seconds = match apart {
        Apart::Hashed => None,
        Apart::Time { gap_seconds, .. } => Some(gap_seconds),
    };
    let mut view = View::of(&facts).with_verdict("dry_run");
    view.pairs([
        ("split", split.to_string()),
        ("fit", line(facts.fit)),
        ("dev", line(facts.dev)),
        ("confirm", line(facts.confirm)),
        ("left out", facts.left_out.to_string()),
        ("gap", gap(seconds)),
    ]);
    view
}

/// The same split, on record.
pub fn formed(mut view: View, ledger: &Ledger, appended: &[AppendedEvent]) -> View {
    view.verdict = "appended";
    if appended.iter().all(|one| one.already) {
        view.line("recorded already");
        view.verdict = "already_recorded";
    }
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}
