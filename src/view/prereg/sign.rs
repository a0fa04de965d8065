//! Manifests that are signed, countersigned and amended, and sealed plans that are revealed.

use std::path::Path;

use serde::Deserialize;
use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::payload::manifest::Manifest;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::projection::manifests::ManifestVersion;
use crate::projection::manifests::Manifests;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::Stands;
use crate::view::prereg::show_command;

/// A version of a manifest that was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedVersion {
    /// Its digest.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// Whether it is in force: what binds confirm data waits for its custodian.
    pub in_force: bool,
    /// Its name.
    pub manifest: ManifestId,
}

/// A version that amends another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Amendment {
    /// How deep the change goes, from 0, words alone, to 3, what is tested.
    pub class: u64,
    /// The new version.
    #[serde(flatten)]
    pub signed: SignedVersion,
}

/// An amendment that would be signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Class {
    /// How deep the change goes, from 0, words alone, to 3, what is tested.
    pub class: u64,
}

/// A sealed plan that was revealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevealedPlan {
    /// The manifest that it belongs to.
    pub manifest: ManifestId,
}

/// The views of two appends as one.
///
/// # Panics
/// Where one is no view of an append, which the first test of the verb finds.
pub fn joined(first: View, second: View) -> View {
    let of =
        |view: &View| Stands::deserialize(view.facts()).expect("BUG: this is a view of an append");
    let (mut stands, more) = (of(&first), of(&second));
    stands.appended += more.appended;
    stands.already += more.already;
    stands.seqs.extend(more.seqs);
    let mut view = first.with_facts(&stands);
    view.blocks.extend(second.blocks);
    view.events.extend(second.events);
    view.checkpoint = second.checkpoint;
    if second.verdict == "appended" {
        view.verdict = second.verdict;
    }
    view
}

fn signed_facts(ledger: &Ledger, manifest: &Manifest, digest: Digest) -> SignedVersion {
    let id = &manifest.manifest;
    let record = ledger.state().fold::<Manifests>().by_id.get(id);
    let version = record.and_then(|record| record.version(digest));
    SignedVersion {
        digest,
        h0_digest: manifest.h0_digest(),
        in_force: version.is_some_and(ManifestVersion::stands),
        manifest: id.clone(),
    }
}

/// Digest, checkpoint, standing, and what to do next.
fn add_standing(mut view: View, manifest: &Manifest, of: &SignedVersion, file: &Path) -> View {
    let id = &manifest.manifest;
    view.line(format!(
        "manifest {id} version {}  digest {}",
        manifest.version, of.digest
    ));
    if let Some((size, root)) = view.checkpoint.clone() {
        view.line(format!("checkpoint {size}  {root}"));
    }
    if of.in_force {
        view.line("in force");
        return view.with_next(show_command(id));
    }
    view.line("not in force: it binds confirm data and waits for its custodian");
    view.with_next(format!(
        "clover prereg sign {} --countersign",
        shell::word(&file.display())
    ))
}

/// Adds to the view of a signature, or of what would be signed, how the manifest of a file stands.
pub fn signed(
    view: View,
    ledger: &Ledger,
    (manifest, digest): (&Manifest, Digest),
    file: &Path,
) -> View {
    let facts = signed_facts(ledger, manifest, digest);
    let view = appended::and(view, &facts);
    add_standing(view, manifest, &facts, file)
}

/// Adds to the view of an amendment its class, and how the new version stands.
pub fn amended(
    view: View,
    ledger: &Ledger,
    (manifest, digest, class): (&Manifest, Digest, u64),
    file: &Path,
) -> View {
    if view.verdict == "dry_run" {
        return appended::and(view, &Class { class });
    }
    let facts = Amendment {
        class,
        signed: signed_facts(ledger, manifest, digest),
    };
    let mut view = appended::and(view, &facts);
    view.line(format!("class {class}"));
    add_standing(view, manifest, &facts.signed, file)
}

/// Adds to the view of a revelation whose plan it was.
pub fn revealed(view: View, manifest: &ManifestId) -> View {
    let facts = RevealedPlan {
        manifest: manifest.clone(),
    };
    appended::and(view, &facts).with_next(show_command(manifest))
}
