//! Extracts that some frameworks ask for by name: a register of risks, changes by family, an inventory of models. Each row
//! names the entries that say it.

use std::collections::BTreeMap;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::ground::time::Timestamp;
use crate::ledger::LedgerError;
use crate::projection::assumptions;
use crate::projection::assumptions::Standing;
use crate::projection::assumptions::Status;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::experiments::Experiments;
use crate::report::document::Chapter;
use crate::report::document::ReportKind;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::holder;
use crate::session::expiry;
use crate::view::report::independence;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::seqs;
use crate::view::report::picked::PickedTable;
use crate::view::report::principles;
use crate::view::report::versions;
use crate::view::word;

/// Exploits that were found.
const EXPLOITS: PickedTable = PickedTable {
    key: "exploits",
    title: "Exploits that were found",
    kinds: &[Kind::ExploitDiscovered],
    columns: &[
        ("violation", "violation", "violation"),
        ("chain", "chain", "attack"),
        ("uplift_micro", "uplift", "reward that it won"),
        ("iteration", "iteration", "iteration"),
        ("day", "day", "found on"),
    ],
    plot: None,
};

/// Judges: the models that are held to something here.
const JUDGES: PickedTable = PickedTable {
    key: "judges",
    title: "Judges",
    kinds: &[Kind::JudgeRegistered],
    columns: &[
        ("judge", "judge", "judge"),
        ("model", "model", "model"),
        ("port", "port", "asked by"),
        ("asked/plan_digest", "plan", "plan"),
        ("prompt_hash", "prompt", "prompt"),
        ("day", "day", "registered on"),
    ],
    plot: None,
};

/// Calibrators: what their scores are turned into values with.
const CALIBRATORS: PickedTable = PickedTable {
    key: "calibrators",
    title: "Calibrators",
    kinds: &[Kind::CalibratorFitted],
    columns: &[
        ("terms/judge", "judge", "judge"),
        ("calibrator", "calibrator", "calibrator"),
        ("labels", "labels", "labels"),
        ("oof_rmse", "rmse", "error out of fold"),
        ("day", "day", "fitted on"),
    ],
    plot: None,
};

/// Checks of judges since.
const CHECKS: PickedTable = PickedTable {
    key: "checks",
    title: "Comparisons and checks of judges",
    kinds: &[Kind::JudgeCompared, Kind::JudgeDriftChecked],
    columns: &[
        ("kind", "kind", "check"),
        ("first", "first", "judge"),
        ("judge", "judge", "judge of a drift check"),
        ("verdicts/ranks", "ranks", "ranks"),
        ("verdicts/residuals", "residuals", "residuals"),
        ("verdicts/version", "version", "version"),
        ("difference", "difference", "difference of errors"),
        ("day", "day", "checked on"),
    ],
    plot: None,
};

/// The extracts of a framework, of what the range says and, where versions are told, of all before it too; most have none.
///
/// # Errors
/// [`LedgerError`].
pub(super) fn of(
    source: &ReportSource<'_>,
    kind: ReportKind,
    (experiment, chronicle, whole): (Option<&ExperimentId>, &Chronicle, &Chronicle),
) -> Result<Vec<Chapter>, LedgerError> {
    Ok(match kind {
        ReportKind::Iso23894 => vec![risks(source, experiment, chronicle)],
        ReportKind::Part11 => {
            let (classes, logs) = expiry::retained(source.ledger, source.state)?;
            let said = classes.iter().find(|of| of.class == expiry::LOGS);
            let logs = (logs, said.map(|of| of.seq));
            vec![principles::chapter(source.state, chronicle, logs)]
        }
        ReportKind::Pccp => vec![families(chronicle)],
        ReportKind::Sr262 => vec![inventory(source, chronicle)],
        ReportKind::Tevv => vec![
            independence::chapter(source.state, chronicle, whole),
            versions::chapter(whole),
        ],
        _ => Vec::new(),
    })
}

/// Assumptions that do not hold, stakes by slice, and exploits.
fn risks(
    source: &ReportSource<'_>,
    experiment: Option<&ExperimentId>,
    chronicle: &Chronicle,
) -> Chapter {
    let mut part = Chapter::new(
        "risks",
        "Risk register, an extract",
        "Assumptions that are not shown to hold, with who answers for going on; exploits by their number. Appendices list stakes by slice and each exploit. Other risks are outside of a ledger.",
    );
    if let Some(now) = source.state.keyring.recorded_at {
        part.table_or(
            assumed(source, experiment, now),
            "none that was assessed is short of a pass; those that nobody assessed are not listed",
        );
    }
    let found = seqs(chronicle.of(Kind::ExploitDiscovered));
    part.fact(
        [found.first(), found.last()]
            .into_iter()
            .flatten()
            .copied()
            .collect(),
        "exploits",
        "Exploits that were found",
        Cell::count(found.len() as u64),
    );
    part
}

/// What stands behind the extracts of a framework.
pub(super) fn behind(kind: ReportKind, chronicle: &Chronicle) -> Vec<Chapter> {
    if kind != ReportKind::Iso23894 {
        return Vec::new();
    }
    let mut part = Chapter::new(
        "stakes",
        "Stakes by slice",
        "Slices of rows as they were classified, each time: how much is at stake in each, and how many rows it holds.",
    );
    part.table_or(stakes(chronicle), "no slice was classified in the range");
    let mut exploits = Chapter::new(
        "exploits",
        "Exploits",
        "Edits of answers that earned a reward which they do not merit, as attacks found them.",
    );
    let table = EXPLOITS.of(chronicle, |_| true);
    exploits.table_or(table, "no exploit was found in the range");
    vec![part, exploits]
}

/// Assumptions that were looked at and are not shown to hold.
fn assumed(source: &ReportSource<'_>, only: Option<&ExperimentId>, now: Timestamp) -> Table {
    let columns = [
        ("code", "assumption"),
        ("experiment", "experiment"),
        ("status", "status"),
        ("says", "what is assumed"),
        ("waived_until", "waived until"),
        ("answers", "who answers for it"),
    ];
    let mut table = Table::new(
        "assumptions",
        "Assumptions that are not shown to hold",
        &columns,
    );
    let state = source.state;
    let experiments = state.fold::<Experiments>().by_id.keys();
    let rows = assumptions::rows(state, now, experiments);
    // One that is about every experiment bears on each of them.
    let is_asked = |row: &&Standing| {
        only.is_none() || row.experiment.is_none() || row.experiment.as_ref() == only
    };
    let is_open = |row: &&Standing| {
        !matches!(row.status, Status::Pass | Status::Untested) && !events(row).is_empty()
    };
    for row in rows.iter().filter(is_open).filter(is_asked) {
        let waiver = row.waiver.as_ref();
        let until = waiver.map_or(Cell::Absent, |of| Cell::text(of.expires_at.to_string()));
        let answers = waiver.map_or(Cell::Absent, |of| {
            let second = of.agreed.map(|agreed| holder(state, &agreed.author));
            let first = holder(state, &of.author);
            Cell::text(
                [Some(first), second]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
            )
        });
        let experiment = row.experiment.as_ref();
        let cells = vec![
            Cell::text(row.code.to_string()),
            experiment.map_or(Cell::Absent, |id| Cell::text(id.to_string())),
            Cell::text(row.status.as_str()),
            Cell::text(assumptions::entry(row.code).statement),
            until,
            answers,
        ];
        table.row_of(events(row), cells);
    }
    table
}

/// Entries that the standing of an assumption rests on.
fn events(row: &Standing) -> Vec<u64> {
    let evidence = row.evidence.map(|(_, evidence)| evidence.seq);
    let waiver = row.waiver.iter();
    let waiver = waiver.flat_map(|of| [Some(of.seq), of.agreed.map(|agreed| agreed.seq)]);
    evidence.into_iter().chain(waiver.flatten()).collect()
}

/// Slices with their stakes, each time that they were classified.
fn stakes(chronicle: &Chronicle) -> Table {
    let columns = [
        ("iteration", "iteration"),
        ("family", "family"),
        ("slice", "slice"),
        ("class", "class"),
        ("stakes", "stakes"),
        ("exposure", "share of rows"),
    ];
    let mut table = Table::new("stakes", "Stakes by slice", &columns);
    for entry in chronicle.of(Kind::SlicesClassified) {
        let Payload::SlicesClassified(said) = &entry.event.payload else {
            continue;
        };
        for of in &said.slices {
            let class = word(&of.class).replace('_', " ");
            let cells = vec![
                Cell::text(said.iteration.to_string()),
                Cell::text(of.family.to_string()),
                Cell::text(of.slice.to_string()),
                Cell::text(class),
                Cell::number(of.stakes.value()),
                Cell::number(of.exposure.value()),
            ];
            table.row(entry.seq, cells);
        }
    }
    table
}

/// What came of the patches of one family.
#[derive(Default)]
struct FamilyOutcomes {
    accepted: u64,
    events: Vec<u64>,
    iterations: Vec<String>,
    proposed: u64,
    rejected: u64,
    withdrawn: u64,
}

/// Families of patches: the protocol that judged each, and outcomes to date, those that failed too.
fn families(chronicle: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "families",
        "Modifications by family, with their outcomes to date",
        "A family of patches is a kind of modification. Its protocol is the plan of each iteration, with criteria P0 to P10; clover report iteration has it.",
    );
    let columns = [
        ("family", "family of modifications"),
        ("protocol", "protocol: plans of iterations"),
        ("proposed", "proposed"),
        ("accepted", "accepted"),
        ("rejected", "rejected"),
        ("withdrawn", "withdrawn"),
        ("open", "without an end"),
    ];
    let mut table = Table::new("families", "Families", &columns);
    for (family, of) in outcomes(chronicle) {
        let ended = of.accepted + of.rejected + of.withdrawn;
        let cells = vec![
            Cell::text(family),
            Cell::text(of.iterations.join(", ")),
            Cell::count(of.proposed),
            Cell::count(of.accepted),
            Cell::count(of.rejected),
            Cell::count(of.withdrawn),
            Cell::count(of.proposed.saturating_sub(ended)),
        ];
        table.row_of(of.events, cells);
    }
    part.table_or(table, "no patch was proposed in the range");
    part
}

fn outcomes(chronicle: &Chronicle) -> BTreeMap<String, FamilyOutcomes> {
    let mut found: BTreeMap<String, FamilyOutcomes> = BTreeMap::new();
    let mut family_of = BTreeMap::new();
    for entry in &chronicle.entries {
        let (patch, iteration) = match &entry.event.payload {
            Payload::PatchProposed(said) => {
                family_of.insert(
                    (said.iteration.clone(), said.patch.clone()),
                    said.family.to_string(),
                );
                (Some(&said.patch), &said.iteration)
            }
            Payload::PatchAccepted(said) => (Some(&said.patch), &said.iteration),
            Payload::PatchRejected(said) => (said.patch.as_ref(), &said.iteration),
            Payload::PatchWithdrawn(said) => (Some(&said.patch), &said.iteration),
            _ => continue,
        };
        let of = patch.and_then(|patch| family_of.get(&(iteration.clone(), patch.clone())));
        let family = of.map_or_else(|| "not proposed in the range".to_owned(), Clone::clone);
        let outcome = found.entry(family).or_default();
        match entry.event.kind() {
            Kind::PatchProposed => outcome.proposed += 1,
            Kind::PatchAccepted => outcome.accepted += 1,
            Kind::PatchRejected => outcome.rejected += 1,
            _ => outcome.withdrawn += 1,
        }
        outcome.events.push(entry.seq);
        let iteration = iteration.to_string();
        if !outcome.iterations.contains(&iteration) {
            outcome.iterations.push(iteration);
        }
    }
    found
}

/// Judges and calibrators, what was found of them, and who challenged it.
fn inventory(source: &ReportSource<'_>, chronicle: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "inventory",
        "Inventory of judges and calibrators",
        "Models that this ledger governs: judges, and calibrators of their scores. The systems whose outputs they judge are policies, and not models here.",
    );
    part.table_or(
        JUDGES.of(chronicle, |_| true),
        "no judge was registered in the range",
    );
    let table = CALIBRATORS.of(chronicle, |_| true);
    part.table_or(table, "no calibrator was fitted in the range");
    let table = CHECKS.of(chronicle, |_| true);
    part.table_or(table, "no judge was compared or checked in the range");
    let imported = source.state.fold::<Experiments>().by_id.len() as u64;
    let imported = counted(imported, "experiment", "experiments");
    part.lacks(
        "judges of imported scores alone",
        format!(
            "a judge whose scores are taken in is named by them and not registered; {imported} may have some"
        ),
    );
    part
}
