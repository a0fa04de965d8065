//! Recorded manifests: what stands, and what changed.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::id::PolicyId;
use crate::event::payload::manifest::Manifest;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::projection::manifests;
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::ManifestVersion;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Plan;
use crate::view::View;
use crate::view::prereg::Deviation;
use crate::view::prereg::show_command;

/// The first time that an outcome could be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstLook {
    /// Digest of the version in force then; `null` where none was.
    pub digest: Option<Digest>,
    /// The entry.
    pub seq: u64,
}

/// One version of a manifest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VersionShown {
    /// The key that signed it.
    pub author: KeyId,
    /// How deep it changes the one before, from 0, words alone, to 3, what is tested; `null` of the first.
    pub class: Option<u64>,
    /// The entry that countersigned it; `null` where none did.
    pub countersigned_seq: Option<u64>,
    /// Its digest.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// What it says.
    pub manifest: Manifest,
    /// The entry.
    pub seq: u64,
    /// How it stands among the versions, in words.
    pub standing: &'static str,
    /// Its number, from 1.
    pub version: u64,
}

/// One manifest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ManifestShown {
    /// What was done otherwise than registered.
    pub deviations: Vec<Deviation>,
    /// Its experiment; `null` where its events name none.
    pub experiment: Option<ExperimentId>,
    /// Exposures so far.
    pub exposures: u64,
    /// The first time that an outcome could be seen; `null` before.
    pub first_look: Option<FirstLook>,
    /// Number of the version in force; `null` where none is.
    pub in_force: Option<u64>,
    /// Its name.
    pub manifest: ManifestId,
    /// How its sealed plan stands, in words; `null` without one.
    pub plan: Option<String>,
    /// The manifest that replaced it; `null` where none did.
    pub superseded_by: Option<ManifestId>,
    /// Units that are exposed.
    pub units_exposed: u64,
    /// Its versions in order.
    pub versions: Vec<VersionShown>,
}

/// A field in which two versions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedField {
    /// How deep a change of this field alone goes, from 0 to 3.
    pub class: u64,
    /// What stood there; `null` where nothing did.
    pub from: Option<String>,
    /// Path of the field, such as `test.n_max`; a list is one field.
    pub path: String,
    /// What stands there now; `null` where nothing does.
    pub to: Option<String>,
}

/// What changed between two versions of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// Why the older version is the one that is compared, in words.
    pub against: &'static str,
    /// The fields, by path.
    pub changes: Vec<ChangedField>,
    /// How deep the change goes, from 0, words alone, to 3, what is tested.
    pub class: u64,
    /// Number of the older version.
    pub from: u64,
    /// Its name.
    pub manifest: ManifestId,
    /// Number of the newer version.
    pub to: u64,
}

/// How a version stands among those of its manifest.
fn standing(record: &ManifestRecord, version: &ManifestVersion) -> &'static str {
    let in_force = record.in_force().map(|version| version.digest);
    match &record.superseded_by {
        Some(_) => "superseded",
        None if in_force == Some(version.digest) => "in force",
        None if !version.stands() => "not countersigned",
        None => "amended",
    }
}

fn plan_standing(plan: &Plan, now: Option<Timestamp>) -> String {
    match plan.revealed_seq {
        Some(seq) if plan.revealed_at > Some(plan.reveal_by) => {
            format!("VOID: revealed at seq {seq}, after {}", plan.reveal_by)
        }
        Some(seq) => format!("revealed at seq {seq}"),
        None if now.is_some_and(|now| now > plan.reveal_by) => {
            format!("VOID: not revealed by {}", plan.reveal_by)
        }
        None => format!("sealed at seq {}, due {}", plan.sealed_seq, plan.reveal_by),
    }
}

fn shown(id: &ManifestId, record: &ManifestRecord, now: Option<Timestamp>) -> ManifestShown {
    let versions = record.versions.iter().map(|version| VersionShown {
        author: version.author,
        class: version.class,
        countersigned_seq: version.countersigned_seq,
        digest: version.digest,
        h0_digest: version.h0_digest,
        manifest: version.manifest.clone(),
        seq: version.seq,
        standing: standing(record, version),
        version: version.manifest.version.value(),
    });
    let in_force = record.in_force();
    let look = record.first_look.as_ref();
    let plan = record.plan.as_ref();
    ManifestShown {
        deviations: record.deviations.iter().map(Deviation::from).collect(),
        experiment: record.experiment.clone(),
        exposures: record.exposures,
        first_look: look.map(|look| FirstLook {
            digest: look.digest,
            seq: look.seq,
        }),
        in_force: in_force.map(|version| version.manifest.version.value()),
        manifest: id.clone(),
        plan: plan.map(|plan| plan_standing(plan, now)),
        superseded_by: record.superseded_by.clone(),
        units_exposed: record.units,
        versions: versions.collect(),
    }
}

/// One manifest: versions, first look, exposures and deviations.
pub fn show(state: &State, (id, record): (&ManifestId, &ManifestRecord)) -> View {
    let facts = shown(id, record, state.keyring.recorded_at);
    let mut view = View::of(&facts);
    view.pairs(pairs(state, &facts, record));
    let rows = facts.versions.iter().map(|version| {
        vec![
            version.version.to_string(),
            format!("seq {}", version.seq),
            version
                .class
                .map_or("-".to_owned(), |class| class.to_string()),
            version.standing.to_owned(),
            version.digest.to_hex(),
        ]
    });
    let head = ["version", "entry", "class", "standing", "digest"];
    view.table(&head, rows);
    for deviation in &facts.deviations {
        let seen = if deviation.outcome_seen {
            ", outcome seen"
        } else {
            ""
        };
        let (seq, path, what) = (deviation.seq, &deviation.rule_path, &deviation.what);
        view.line(format!("deviation at seq {seq}{seen}: {path}: {what}"));
    }
    view.with_next(format!("clover prereg diff {}", shell::word(id)))
}

fn pairs(
    state: &State,
    facts: &ManifestShown,
    record: &ManifestRecord,
) -> Vec<(&'static str, String)> {
    let newest = record.in_force().or(record.versions.last());
    let mut rows = vec![("manifest", facts.manifest.to_string())];
    if let Some(version) = newest {
        let manifest = &version.manifest;
        rows.push(("title", manifest.title.as_str().to_owned()));
        rows.push(("template", manifest.template.as_str().to_owned()));
        rows.push(("experiment", manifest.experiment.to_string()));
        if let Some(of) = &manifest.multiplicity {
            let families = &state.fold::<Manifests>().families;
            let spent = families.get(&of.family).map_or(0, manifests::Family::spent);
            let alpha = of.family_alpha_micro.value();
            let text = format!(
                "{}, {spent} of {alpha} millionths of alpha taken",
                of.family
            );
            rows.push(("family", text));
        }
        if let Some(of) = &manifest.estimates {
            let correction = of
                .correction
                .map(|said| format!("differences corrected by {said}"));
            let weight = of.weight.map(|said| format!("weight {said}"));
            let order = of.order.as_ref().map(|said| {
                let policies: Vec<&str> = said.policies.iter().map(PolicyId::as_str).collect();
                format!(
                    "order of {} by {} from {} labels on",
                    policies.join(", "),
                    said.judge,
                    said.labels
                )
            });
            let said: Vec<String> = order.into_iter().chain(correction).chain(weight).collect();
            rows.push(("estimates", said.join(", ")));
        }
        if let Some(data) = &manifest.data {
            let text = format!(
                "{} of {} units in {} of at most {} exposures",
                record.units, data.n_units, record.exposures, data.exposure_cap
            );
            rows.push(("exposed", text));
        }
    }
    let look = facts.first_look.as_ref();
    rows.push((
        "first look",
        look.map_or("none yet".to_owned(), |look| format!("seq {}", look.seq)),
    ));
    if let Some(by) = &facts.superseded_by {
        rows.push(("superseded by", by.to_string()));
    }
    if let Some(plan) = &facts.plan {
        rows.push(("sealed plan", plan.clone()));
    }
    rows
}

/// What changed between two versions of a manifest; `why` the older one is compared, in words.
pub fn diff(id: &ManifestId, (from, why): (&Manifest, &'static str), to: &Manifest) -> View {
    let changes = manifests::changes(from, to).into_iter();
    let facts = Difference {
        against: why,
        changes: changes
            .map(|of| ChangedField {
                class: of.class(),
                from: of.from,
                path: of.path,
                to: of.to,
            })
            .collect(),
        class: manifests::class(from, to),
        from: from.version.value(),
        manifest: id.clone(),
        to: to.version.value(),
    };
    let (old, new) = (facts.from, facts.to);
    let mut view = View::of(&facts);
    view.line(format!("{id}: version {old} ({why}) to version {new}"));
    let none = || "none".to_owned();
    let rows = facts.changes.into_iter().map(|of| {
        let (from, to) = (of.from.unwrap_or_else(none), of.to.unwrap_or_else(none));
        vec![of.path, of.class.to_string(), from, to]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        view.line("no difference");
    } else {
        view.table(&["field", "class", "from", "to"], rows);
    }
    view.with_next(show_command(id))
}
