//! Signed heads of a log: shown, pinned, set against each other.

use serde::Serialize;

use crate::ground::digest::Digest;
use crate::ground::note::Checkpoint;
use crate::ground::note::SignedCheckpoint;
use crate::view::View;

/// A signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedNote {
    /// The signed note, as `schema/CHECKPOINT.md` has it.
    pub note: String,
}

/// The pin, where it stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PinFacts {
    /// Its file.
    pub pin: String,
}

/// What a checkpoint says of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Head {
    /// Entries under it.
    pub size: u64,
    /// Their root, in base64.
    pub root: String,
}

impl From<&Checkpoint> for Head {
    fn from(of: &Checkpoint) -> Self {
        Self {
            size: of.size,
            root: of.root.to_base64(),
        }
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries, root {}", self.size, self.root)
    }
}

/// How two checkpoints stand to one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckpointComparison {
    /// `agree`: both say the same. `order`: one has more entries than the other.
    pub comparison: &'static str,
    /// Whether the newer extends the older: `pass`, or `not_checked` where no proof is at hand; `null` where they agree.
    pub consistency: Option<&'static str>,
    /// What the older says.
    pub older: Head,
    /// What the newer says.
    pub newer: Head,
}

/// A consistency proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConsistencyProof {
    /// Its hashes in base64, in the order of RFC 6962.
    pub hashes: Vec<String>,
}

/// A checkpoint as it is signed.
pub fn show(signed: &SignedCheckpoint) -> View {
    let facts = SignedNote {
        note: String::from_utf8_lossy(&signed.encode()).into_owned(),
    };
    let mut view = View::of(&facts);
    view.source(facts.note);
    let of = signed.checkpoint();
    view.checkpoint = Some((of.size, of.root.to_base64()));
    view
}

/// The pin after it was moved.
pub fn pinned(signed: &SignedCheckpoint, pin: String) -> View {
    let head = Head::from(signed.checkpoint());
    let facts = PinFacts { pin };
    let mut view = View::of(&facts).with_verdict("pinned");
    view.line(format!(
        "pinned {} entries · root {} · {}",
        head.size, head.root, facts.pin
    ));
    view.checkpoint = Some((head.size, head.root));
    view
}

/// Two checkpoints that say the same.
pub fn agree(both: &Checkpoint) -> View {
    let facts = CheckpointComparison {
        comparison: "agree",
        consistency: None,
        older: both.into(),
        newer: both.into(),
    };
    let mut view = View::of(&facts).with_verdict("agree");
    view.line(format!("AGREE  both say {}", facts.older));
    view
}

/// A checkpoint that follows another; whether it extends it may not have been checked.
pub fn order(older: &Checkpoint, newer: &Checkpoint, is_proven: bool) -> View {
    let facts = CheckpointComparison {
        comparison: "order",
        consistency: Some(if is_proven { "pass" } else { "not_checked" }),
        older: older.into(),
        newer: newer.into(),
    };
    let (older, newer) = (&facts.older, &facts.newer);
    let mut view = View::of(&facts).with_verdict("order");
    if is_proven {
        view.line(format!("ORDER  {older} is extended by {newer}"));
        return view;
    }
    view.line(format!(
        "ORDER  {older} before {newer} · consistency NOT CHECKED"
    ));
    view.with_next("the same command with --proof FILE")
}

/// A consistency proof, one hash a line.
pub fn consistency(hashes: &[Digest]) -> View {
    let facts = ConsistencyProof {
        hashes: hashes.iter().map(Digest::to_base64).collect(),
    };
    let mut view = View::of(&facts);
    for hash in facts.hashes {
        view.line(hash);
    }
    view
}
