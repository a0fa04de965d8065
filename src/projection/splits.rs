//! Splits: clusters listed part by part and closed under their roots before any confirm label, and the rule
//! `split`. Membership is exact over the whole history by digests; the fold keeps the right edge of each
//! part's tree.

use clover_ledger::Breaches;
use clover_ledger::ensure;
use clover_ledger::unmet;
use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::Root;
use clover_event::id::SplitId;
use clover_event::payload::Verdict;
use clover_event::payload::intake::ListedBy;
use clover_event::payload::intake::PartRoot;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::intake::SplitSeparation;
use clover_event::payload::intake::SplitsFormed;
use clover_event::payload::intake::SplitsListed;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelSealed;
use clover_event::payload::label::draw_of_row;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::digest::blake2b_64;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

use crate::designs::Designs;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::SplitsListed, Kind::SplitsFormed];
/// Least gap in seconds between fit and dev, and a confirm block that is separated in time: 48 hours.
pub const GAP_SECONDS_MIN: u64 = 172_800;

/// Clusters of one part, as far as they are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartClusters {
    /// How many.
    pub count: u64,
    /// Right edge of their tree.
    pub edge: Vec<Digest>,
    /// The last of them.
    pub last: Option<ItemId>,
}

impl PartClusters {
    pub(super) fn push(&mut self, cluster: &ItemId) {
        self.push_leaf(cluster, cluster_leaf(cluster));
    }

    /// The same under a leaf of its own kind.
    pub(super) fn push_leaf(&mut self, cluster: &ItemId, leaf: Digest) {
        let edge = std::mem::take(&mut self.edge);
        // The edge is this part's own: it has one hash for each set bit of the count.
        if let Ok(mut frontier) = Frontier::from_parts(self.count, edge) {
            frontier.push(leaf);
            let (size, nodes) = frontier.parts();
            self.count = size;
            self.edge = nodes.to_vec();
        }
        self.last = Some(cluster.clone());
    }

    /// Root over what is listed.
    pub fn root(&self) -> Digest {
        Frontier::from_parts(self.count, self.edge.clone())
            .map_or_else(|_| merkle::empty_root(), |frontier| frontier.root())
    }
}

/// Leaf of a cluster in a membership tree: RFC 6962 over its length in two bytes, big-endian, and its UTF-8.
pub fn cluster_leaf(cluster: &ItemId) -> Digest {
    member_leaf(cluster.as_str())
}

/// The same leaf of any name, such as a row's.
pub fn member_leaf(name: &str) -> Digest {
    member_leaf_of(&[name])
}

/// The same of several names, one after the other.
pub fn member_leaf_of(names: &[&str]) -> Digest {
    let mut data = Vec::new();
    for name in names {
        let text = name.as_bytes();
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        data.extend_from_slice(&length.to_be_bytes());
        data.extend_from_slice(text);
    }
    merkle::leaf_hash(&data)
}

/// The root over names in ascending order, each once: row ids `policy/item/draw`, members of a split.
pub fn members_root<'a>(names: impl IntoIterator<Item = &'a str>) -> Root {
    let mut tree = Frontier::new();
    for name in names {
        tree.push(member_leaf(name));
    }
    Root(tree.root())
}

/// A split that is being listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// By which rule its clusters fall into parts, where its listings say so.
    pub by: Option<ListedBy>,
    /// Parts in the order of [`SplitPart::ALL`].
    pub parts: [PartClusters; 3],
    /// Its name.
    pub split: SplitId,
}

fn place(part: SplitPart) -> usize {
    match part {
        SplitPart::Confirm => 0,
        SplitPart::Dev => 1,
        SplitPart::Fit => 2,
    }
}

/// A split that was formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormedSplit {
    /// Clusters of confirm, dev and fit.
    pub counts: [u64; 3],
    /// Seconds between fit and dev, and confirm; `None` when not checked.
    pub gap_seconds: Option<u64>,
    /// Whether its listings said by which rule, so that each cluster's part was checked.
    pub is_placed: bool,
    /// Seed of the hash.
    pub seed: u64,
    /// How confirm is kept apart.
    pub separation: SplitSeparation,
    /// The entry that formed it.
    pub seq: u64,
    /// End of the time of confirm, exclusive; `None` where confirm is hashed.
    pub t2: Option<Timestamp>,
}

/// The splits of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSplits {
    /// By name.
    pub formed: BTreeMap<SplitId, FormedSplit>,
    /// The one that is being listed.
    pub open: Option<Open>,
}

/// Splits by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Splits {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentSplits>,
}

impl Fold for Splits {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let Some(id) = &event.event().header.experiment else {
            return;
        };
        let of = self.by_experiment.entry(id.clone()).or_default();
        match &event.event().payload {
            Payload::SplitsListed(listed) => {
                let open = of.open.get_or_insert_with(|| Open {
                    by: listed.by,
                    parts: Default::default(),
                    split: listed.split.clone(),
                });
                for cluster in &listed.clusters {
                    open.parts[place(listed.part)].push(cluster);
                }
            }
            Payload::SplitsFormed(formed) => {
                let is_placed = of.open.take().is_some_and(|open| open.by.is_some());
                of.formed
                    .entry(formed.split.clone())
                    .or_insert(FormedSplit {
                        counts: [&formed.confirm, &formed.dev, &formed.fit]
                            .map(|p| p.count.value()),
                        gap_seconds: formed.gap_seconds.map(clover_num::Count::value),
                        is_placed,
                        seed: formed.seed.value(),
                        separation: formed.separation,
                        seq: event.seq(),
                        t2: formed.t2,
                    });
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Digest under which a cluster's place in a split is known.
fn placed(experiment: Option<&ExperimentId>, split: &SplitId, cluster: &ItemId) -> Digest {
    canon::digest("clover/split/v1", &(experiment, split, cluster))
}

/// Digest under which a cluster is known to have been in confirm.
pub fn in_confirm(experiment: Option<&ExperimentId>, cluster: &ItemId) -> Digest {
    canon::digest("clover/confirm/v1", &(experiment, cluster))
}

/// Digest under which the root of a confirm part is known.
pub fn confirm_root(experiment: Option<&ExperimentId>, root: &Root) -> Digest {
    canon::digest("clover/confirm-root/v1", &(experiment, root))
}

/// Digest under which a cluster is known to have an open label.
fn labelled_open(experiment: Option<&ExperimentId>, cluster: &ItemId) -> Digest {
    canon::digest("clover/open-label/v1", &(experiment, cluster))
}

fn gives(digest: Digest) -> Fact {
    Fact::Gives { digest, once: None }
}

fn forbids(digest: Digest) -> Fact {
    let rule = RuleName::Split;
    Fact::Forbids { digest, rule }
}

/// The rule `split`.
#[derive(Clone, Copy, Debug)]
pub struct SplitRule;

impl Rule for SplitRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            // The rule `experiment` refuses an event of splits or labels of none.
            return;
        };
        let splits = &state.fold::<Splits>().by_experiment;
        let of = splits.get(experiment);
        let checked = match &event.event.payload {
            Payload::SplitsListed(new) => check_listing(of, new),
            Payload::SplitsFormed(new) => check_forming(of, new).and_then(|()| check_apart(new)),
            Payload::LabelSealed(label) if is_confirm(state, experiment, label) => {
                check_formed_before(of)
            }
            _ => Ok(()),
        };
        breaches.take(RuleName::Split, checked);
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        match &event.event.payload {
            Payload::SplitsListed(listed) => {
                for cluster in &listed.clusters {
                    let place = placed(experiment, &listed.split, cluster);
                    facts.extend([gives(place), forbids(place)]);
                    if listed.part == SplitPart::Confirm {
                        let confirm = in_confirm(experiment, cluster);
                        facts.extend([gives(confirm), forbids(confirm)]);
                        facts.push(forbids(labelled_open(experiment, cluster)));
                    }
                }
            }
            Payload::LabelRecorded(label) => {
                facts.push(gives(labelled_open(experiment, &label.item)));
                facts.push(forbids(in_confirm(experiment, &label.item)));
            }
            _ => {}
        }
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let Some(experiment) = &event.event.header.experiment else {
            // The rule `experiment` refuses it.
            return;
        };
        // The rule `design` refuses a row that names no draw.
        if let Payload::LabelSealed(label) = &event.event.payload
            && is_confirm(state, experiment, label)
            && let Some((_, item, _)) = draw_of_row(&label.row)
        {
            facts.push(Fact::Needs {
                digest: in_confirm(Some(experiment), &item),
                before: event.seq,
                rule: RuleName::Split,
            });
        }
    }
}

fn is_confirm(state: &State, experiment: &ExperimentId, label: &LabelSealed) -> bool {
    let designs = state.fold::<Designs>();
    designs
        .registered(experiment, &label.design)
        .is_some_and(|design| design.purpose == DesignPurpose::Confirm)
}

/// A split is formed, and none is being listed, before a confirm label is sealed.
fn check_formed_before(of: Option<&ExperimentSplits>) -> RuleAnswer {
    let expected = "splits.formed before confirm labels";
    let open = of.and_then(|of| of.open.as_ref());
    if let Some(open) = open {
        return unmet(expected, format!("{}, listed and not formed", open.split));
    }
    ensure!(
        of.is_some_and(|of| !of.formed.is_empty()),
        expected,
        "no splits.formed"
    );
    Ok(())
}

/// A listing goes on where the last one of its part ended.
fn check_listing(of: Option<&ExperimentSplits>, new: &SplitsListed) -> RuleAnswer {
    let open = of.and_then(|of| of.open.as_ref());
    if let Some(open) = open.filter(|open| open.split != new.split) {
        let expected = format!("clusters of {}, which is not formed yet", open.split);
        return unmet(expected, new.split.to_string());
    }
    if let Some(formed) = of.and_then(|of| of.formed.get(&new.split)) {
        let found = format!("{}, formed at seq {}", new.split, formed.seq);
        return unmet("a split that is not formed yet".to_owned(), found);
    }
    let part = open.map(|open| &open.parts[place(new.part)]);
    let count = part.map_or(0, |part| part.count);
    if new.first.value() != count {
        return unmet(format!("first {count}"), format!("first {}", new.first));
    }
    let last = part.and_then(|part| part.last.as_ref());
    let mut all = last.into_iter().chain(&new.clusters);
    let mut before = all.next();
    let ascending = all.all(|cluster| before.replace(cluster).is_some_and(|last| last < cluster));
    if new.clusters.is_empty() || !ascending {
        let expected = "clusters in ascending order, each once, at least one";
        return unmet(expected.to_owned(), "another order".to_owned());
    }
    if let Some(open) = open.filter(|open| open.by != new.by) {
        let expected = match open.by {
            Some(by) => format!("listings by seed {}, as the first says", by.seed),
            None => "listings without a rule, as the first".to_owned(),
        };
        return unmet(expected, "otherwise".to_owned());
    }
    let Some(by) = new.by else {
        // A listing need not say by which rule; then its places are not checked, and whoever reads the split is told so.
        return Ok(());
    };
    let misplaced = |cluster: &&ItemId| !belongs(cluster, new.part, by);
    match new.clusters.iter().find(misplaced) {
        None => Ok(()),
        Some(cluster) => unmet(
            format!("clusters that seed {} puts into {}", by.seed, new.part),
            cluster.to_string(),
        ),
    }
}

/// Whether the hash of a cluster puts it into a part, as far as the hash decides: what a later block of time
/// takes is not for it.
fn belongs(cluster: &ItemId, part: SplitPart, by: ListedBy) -> bool {
    let hash = |modulus: u64| {
        let text = format!("{cluster}-{}-{modulus}", by.seed);
        blake2b_64(text.as_bytes()) % modulus
    };
    let is_confirm = match by.separation {
        SplitSeparation::Hashed => hash(4) == 3,
        SplitSeparation::Time => part == SplitPart::Confirm,
    };
    match part {
        SplitPart::Confirm => is_confirm,
        SplitPart::Dev => !is_confirm && hash(3) == 2,
        SplitPart::Fit => !is_confirm && hash(3) != 2,
    }
}

/// A split is closed under the roots of what was listed.
fn check_forming(of: Option<&ExperimentSplits>, new: &SplitsFormed) -> RuleAnswer {
    let open = of.and_then(|of| of.open.as_ref());
    let Some(open) = open.filter(|open| open.split == new.split) else {
        let expected = format!("listed clusters of {}", new.split);
        return unmet(expected, "none".to_owned());
    };
    if let Some(by) = open.by {
        let found = ListedBy {
            cluster_rule: new.cluster_rule,
            seed: new.seed,
            separation: new.separation,
        };
        if found != by {
            let text =
                |by: ListedBy| format!("seed {}, separation {}", by.seed, by.separation.as_str());
            return unmet(format!("{}, as listed", text(by)), text(found));
        }
    }
    let claimed = [new.confirm, new.dev, new.fit];
    for ((part, of), claimed) in SplitPart::ALL.iter().zip(&open.parts).zip(claimed) {
        let PartRoot { count, root } = claimed;
        if count.value() != of.count || root.0 != of.root() {
            let text = |count: u64, root: &Digest| {
                format!("{count} clusters of {part} under {}", root.to_base64())
            };
            return unmet(text(of.count, &of.root()), text(count.value(), &root.0));
        }
    }
    Ok(())
}

/// What a split says of time fits together.
fn check_apart(new: &SplitsFormed) -> RuleAnswer {
    let gap = new.gap_seconds.map(clover_num::Count::value);
    match (new.separation, new.gap, gap) {
        (SplitSeparation::Hashed, Verdict::NotChecked, None) => Ok(()),
        (SplitSeparation::Time, Verdict::Pass, Some(gap)) if gap >= GAP_SECONDS_MIN => {
            let ordered = new.t1.zip(new.t2).is_some_and(|(t1, t2)| t1 < t2);
            ensure!(ordered, "t1 before t2", "another order");
            Ok(())
        }
        (SplitSeparation::Hashed, ..) => unmet("gap not_checked where confirm is hashed", "a gap"),
        (SplitSeparation::Time, _, gap) => unmet(
            format!("a checked gap of at least {GAP_SECONDS_MIN} s"),
            gap.map_or("none".to_owned(), |gap| format!("{gap} s")),
        ),
    }
}
