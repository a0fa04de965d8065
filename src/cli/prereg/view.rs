//! Recorded manifests: what stands, and what changed.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prereg::DiffArgs;
use crate::cli::prereg::find;
use crate::cli::ui;
use crate::event::id::ManifestId;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Plan;
use crate::projection::manifests::Record;
use crate::projection::manifests::Version;
use crate::view::View;

/// How a version stands among those of its manifest.
fn standing(record: &Record, version: &Version) -> &'static str {
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

pub(super) fn show(ctx: &mut Ctx<'_>, id: &str) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (id, record) = find(state, id)?;
    let now = state.keyring.recorded_at;
    let mut answer = View::untyped(
        ui::pairs(&facts(state, &id, record, now)),
        json(&id, record, now),
    );
    let rows = record.versions.iter().map(|version| {
        vec![
            version.manifest.version.to_string(),
            format!("seq {}", version.seq),
            version
                .class
                .map_or("-".to_owned(), |class| class.to_string()),
            standing(record, version).to_owned(),
            version.digest.to_hex(),
        ]
    });
    let head = ["version", "entry", "class", "standing", "digest"];
    answer.source(ui::table(&head, rows.collect()));
    for deviation in &record.deviations {
        let seen = if deviation.outcome_seen {
            ", outcome seen"
        } else {
            ""
        };
        let (seq, path, what) = (deviation.seq, &deviation.rule_path, &deviation.what);
        answer.line(format!("deviation at seq {seq}{seen}: {path}: {what}"));
    }
    Ok(answer.with_next(format!("clover prereg diff {id}", id = shell::word(&id))))
}

fn facts(
    state: &State,
    id: &ManifestId,
    record: &Record,
    now: Option<Timestamp>,
) -> Vec<(&'static str, String)> {
    let newest = record.in_force().or(record.versions.last());
    let mut rows = vec![("manifest", id.to_string())];
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
        if let Some(data) = &manifest.data {
            let text = format!(
                "{} of {} units in {} of at most {} exposures",
                record.units, data.n_units, record.exposures, data.exposure_cap
            );
            rows.push(("exposed", text));
        }
    }
    let look = record.first_look.as_ref();
    rows.push((
        "first look",
        look.map_or("none yet".to_owned(), |look| format!("seq {}", look.seq)),
    ));
    if let Some(by) = &record.superseded_by {
        rows.push(("superseded by", by.to_string()));
    }
    if let Some(plan) = &record.plan {
        rows.push(("sealed plan", plan_standing(plan, now)));
    }
    rows
}

fn json(id: &ManifestId, record: &Record, now: Option<Timestamp>) -> Value {
    let versions: Vec<_> = record
        .versions
        .iter()
        .map(|version| {
            json!({
                "version": version.manifest.version.value(), "seq": version.seq, "class": version.class,
                "digest": version.digest.to_hex(), "h0_digest": version.h0_digest.to_hex(),
                "standing": standing(record, version), "countersigned_seq": version.countersigned_seq,
                "author": version.author.to_string(), "manifest": version.manifest,
            })
        })
        .collect();
    json!({
        "manifest": id.as_str(), "experiment": record.experiment, "versions": versions,
        "in_force": record.in_force().map(|version| version.manifest.version.value()),
        "first_look": record.first_look, "exposures": record.exposures, "units_exposed": record.units,
        "superseded_by": record.superseded_by, "deviations": record.deviations,
        "plan": record.plan.as_ref().map(|plan| plan_standing(plan, now)),
    })
}

fn version<'a>(id: &ManifestId, record: &'a Record, number: u64) -> Result<&'a Version, CliError> {
    let mut versions = record.versions.iter();
    let found = versions.find(|version| version.manifest.version.value() == number);
    found.ok_or_else(|| {
        let message = format!("manifest {id} has no version {number}");
        CliError::not_found(
            message,
            format!("clover prereg show {id}", id = shell::word(&id)),
        )
    })
}

pub(super) fn diff(ctx: &mut Ctx<'_>, args: &DiffArgs) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let (id, record) = find(view.state(&ledger), &args.id)?;
    let looked = record.first_look.as_ref().and_then(|look| look.digest);
    let (from, why) = match (args.from, looked) {
        (Some(number), _) => (version(&id, record, number)?, "as asked"),
        (None, Some(digest)) => {
            let found = record.version(digest).unwrap_or(&record.versions[0]);
            (found, "in force at the first look")
        }
        (None, None) => (&record.versions[0], "the first: nobody has looked yet"),
    };
    let to = match args.to {
        Some(number) => version(&id, record, number)?,
        None => record.in_force().unwrap_or(from),
    };
    let changes = manifests::changes(&from.manifest, &to.manifest);
    let (old, new) = (from.manifest.version, to.manifest.version);
    let mut answer = View::untyped(
        format!("{id}: version {old} ({why}) to version {new}\n"),
        Value::Null,
    );
    let none = || "none".to_owned();
    let rows = changes.iter().map(|change| {
        vec![
            change.path.clone(),
            change.class().to_string(),
            change.from.clone().unwrap_or_else(none),
            change.to.clone().unwrap_or_else(none),
        ]
    });
    if changes.is_empty() {
        answer.line("no difference");
    } else {
        answer.source(ui::table(&["field", "class", "from", "to"], rows.collect()));
    }
    let changes: Vec<_> = changes
        .iter()
        .map(|change| {
            json!({"path": change.path, "class": change.class(), "from": change.from, "to": change.to})
        })
        .collect();
    *answer.facts_mut() = json!({
        "manifest": id.as_str(), "from": old.value(), "to": new.value(), "against": why,
        "class": manifests::class(&from.manifest, &to.manifest), "changes": changes,
    });
    Ok(answer.with_next(format!("clover prereg show {id}", id = shell::word(&id))))
}
