//! One iteration on one page: inputs, numbers, gates, verdict.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground;
use crate::cli::iterate::ground::number;
use crate::cli::iterate::open;
use crate::cli::iterate::sequential;
use crate::cli::ui;
use crate::event::payload::predicate::GateSplit;
use crate::ground::digest::Digest;
use crate::projection::iterations::record::Record;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

pub(super) fn show(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let id = bench::named(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let record = bench::recorded(&ledger, &id, view.state(&ledger).size)?;
    let mut text = head(&record);
    let (slices, slices_data) = ground::audited(&record);
    if record.audited.is_some() {
        text.push_str(&format!("\nslices on dev\n{slices}"));
    }
    let (looks, looks_data) = sequential::shown(&record);
    if !record.looks.is_empty() {
        text.push_str(&format!("\nlooks at confirm\n{looks}"));
    }
    let mut candidates = Vec::new();
    for (hash, names) in hypotheses(&record) {
        let (dev, dev_data) = gates::judged(&record, hash, GateSplit::Dev);
        let (confirm, confirm_data) = gates::judged(&record, hash, GateSplit::Confirm);
        let standing = standing(&record, hash);
        text.push_str(&format!("\n{names}  {standing}\n"));
        if record.is_judged(hash, GateSplit::Dev) || !record.gates.is_empty() {
            text.push_str(&dev);
        }
        if record.is_judged(hash, GateSplit::Confirm) {
            text.push_str(&format!("on confirm\n{confirm}"));
        }
        candidates.push(json!({
            "candidate": hash.to_hex(), "patches": names, "standing": standing, "dev": dev_data, "confirm": confirm_data,
        }));
    }
    if let Some(closed) = &record.closed {
        text.push('\n');
        text.push_str(&ui::wrapped(&ui::escape(&format!(
            "{}  seq {}: {}",
            open::word(closed.said.outcome),
            closed.seq,
            closed.said.reason.as_str()
        ))));
    }
    let data = json!({
        "iteration": record.iteration.as_str(), "experiment": record.experiment.as_str(),
        "opened_seq": record.opened.seq, "params_hash": record.opened.said.params_hash.to_hex(),
        "rubric_hash": record.opened.said.rubric_hash.to_hex(), "audit": slices_data, "candidates": candidates,
        "label_process": record.label_process.as_ref().map(|of| json!(of.said)),
        "prentice": record.prentice.as_ref().map(|of| json!(of.said)),
        "looks": looks_data,
        "outcome": record.closed.as_ref().map(|of| open::word(of.said.outcome)),
        "accepted": record.accepted.iter().map(|of| of.said.patch.to_string()).collect::<Vec<_>>(),
    });
    Ok(View::untyped(text, data))
}

/// Inputs, and what was found before candidates.
fn head(record: &Record) -> String {
    let plan = &record.opened.said.params;
    let micro = |value: crate::num::Micro| number(value.value() as f64 / 1e6);
    let mut pairs = vec![
        (
            "iteration",
            format!(
                "{} of {}, opened at seq {}",
                record.iteration, record.experiment, record.opened.seq
            ),
        ),
        ("rubric", record.opened.said.rubric_hash.to_hex()),
        ("parameters", record.opened.said.params_hash.to_hex()),
        (
            "held to",
            format!(
                "eta {}, tau {}, alpha {}, q {}, profile {:?}",
                micro(plan.eta_micro),
                micro(plan.tau_micro),
                micro(plan.alpha_micro),
                micro(plan.q_micro),
                plan.profile
            )
            .to_lowercase(),
        ),
    ];
    pairs.extend(found(record));
    ui::pairs(&pairs)
}

/// What was found before candidates, and what was sealed and seen.
fn found(record: &Record) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    if let Some(of) = &record.label_process {
        pairs.push((
            "rows",
            format!(
                "{} through seq {}",
                of.said.inputs.rows, of.said.inputs.through_seq
            ),
        ));
        pairs.push((
            "labels (L1)",
            format!(
                "{}: {} before confirm, {} without a design",
                ground::word(of.said.verdict),
                of.said.labelled,
                of.said.orphans
            ),
        ));
    }
    if let Some(of) = &record.prentice {
        pairs.push((
            "residuals (S1)",
            format!(
                "{}: p {}, largest {}",
                ground::word(of.said.verdict),
                number(of.said.p.value()),
                of.said.top_term.as_str()
            ),
        ));
    }
    if let Some(of) = record.replayed.last() {
        pairs.push((
            "scored again",
            format!(
                "{} of {} differ, seq {}",
                of.said.mismatches, of.said.keys, of.seq
            ),
        ));
    }
    if let Some(of) = &record.sealed {
        pairs.push((
            "sealed",
            format!(
                "{} hypotheses at seq {}, alpha divided by {}",
                of.said.hypotheses.len(),
                of.seq,
                of.said.divisor
            ),
        ));
    }
    if let Some(of) = &record.unsealed {
        pairs.push((
            "unsealed",
            format!("seq {}, under charge {}", of.seq, of.said.charge.0.short()),
        ));
    }
    pairs
}

/// Every candidate with a gate, and every patch.
fn hypotheses(record: &Record) -> Vec<(Digest, String)> {
    let mut found: Vec<(Digest, String)> = record
        .proposed
        .iter()
        .map(|patch| (patch.said.patch_hash, patch.said.patch.to_string()))
        .collect();
    for gate in &record.gates {
        let hash = gate.said.candidate;
        if found.iter().all(|(of, _)| *of != hash) {
            let sealed = record
                .sealed
                .iter()
                .flat_map(|sealed| &sealed.said.hypotheses);
            let mut sealed = sealed.filter(|one| one.candidate == hash);
            let names = sealed
                .next()
                .map_or("composite, not sealed".to_owned(), |one| {
                    let names = one
                        .patches
                        .iter()
                        .map(|patch| gates::name_of(record, *patch));
                    names.collect::<Vec<_>>().join(" + ")
                });
            found.push((hash, names));
        }
    }
    found
}

/// What became of a candidate.
fn standing(record: &Record, hash: Digest) -> String {
    if let Some(of) = record.accepted.iter().find(|of| of.said.candidate == hash) {
        return format!("accepted, rank {}", of.said.rank);
    }
    let patch = record
        .proposed
        .iter()
        .find(|patch| patch.said.patch_hash == hash);
    let rejected = record.rejected.iter().find(|of| {
        of.said.patch.is_some() && of.said.patch.as_ref() == patch.map(|patch| &patch.said.patch)
    });
    if let Some(of) = rejected {
        let stage = json!(of.said.stage);
        let stage = stage.as_str().unwrap_or_default().to_owned();
        return format!("rejected ({stage}): {}", of.said.code.as_str());
    }
    let sealed = record.sealed.iter().any(|sealed| {
        let mut all = sealed.said.hypotheses.iter();
        all.any(|one| one.candidate == hash)
    });
    match (sealed, patch) {
        (true, _) => "sealed".to_owned(),
        (false, Some(patch)) if record.withdrawn.contains(&patch.said.patch) => {
            "withdrawn".to_owned()
        }
        (false, Some(_)) => "proposed".to_owned(),
        (false, None) => "judged on dev".to_owned(),
    }
}
