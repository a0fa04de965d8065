//! The rows of the assumptions ledger as of a ledger time: folded facts, their age, and waivers in force.

use clover_event::id::ExperimentId;
use clover_event::payload::assumption::Assumption;
use clover_ground::time::Timestamp;
use clover_ledger::State;

use crate::access::Access;
use crate::assumptions::AssumptionRow;
use crate::assumptions::Assumptions;
use crate::assumptions::Evidence;
use crate::assumptions::Status;
use crate::assumptions::Waiver;
use crate::assumptions::entry;

/// Quarters after which what was found of the bridge is stale: CLOVER v1.1, section 11.
const QUARTERS_MAX: i64 = 2;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The assumption.
    pub code: Assumption,
    /// What its status rests on: the part that decides, else the newest of which anything was found.
    pub evidence: Option<(&'static str, Evidence)>,
    /// The experiment that it is about; `None` for the whole ledger.
    pub experiment: Option<ExperimentId>,
    /// Every part that is required or was said something of, with its status now.
    pub parts: Vec<(&'static str, Status, Option<Evidence>)>,
    /// A waiver that waits for its second key.
    pub proposed: Option<Waiver>,
    /// What is known.
    pub status: Status,
    /// The waiver in force.
    pub waiver: Option<Waiver>,
}

/// Every row as of `now`: those of the ledger, then those of each experiment in `of`, all codes of each.
pub fn rows<'a>(
    state: &State,
    now: Timestamp,
    of: impl IntoIterator<Item = &'a ExperimentId>,
) -> Vec<Standing> {
    let codes = || Assumption::ALL.into_iter();
    let ledger = codes().filter(|code| code.is_of_ledger());
    let mut rows: Vec<_> = ledger
        .map(|code| standing(state, now, code, None))
        .collect();
    for experiment in of {
        let own = codes().filter(|code| !code.is_of_ledger());
        rows.extend(own.map(|code| standing(state, now, code, Some(experiment))));
    }
    rows
}

/// One row as of `now`.
pub fn standing(
    state: &State,
    now: Timestamp,
    code: Assumption,
    experiment: Option<&ExperimentId>,
) -> Standing {
    let untouched = AssumptionRow::default();
    let row = state.fold::<Assumptions>().row(code, experiment);
    let row = row.unwrap_or(&untouched);
    let tainted = taint(state, code, experiment);
    let mut parts = Vec::new();
    for part in entry(code).parts {
        let evidence = match part.name {
            "access" => tainted,
            name => row.parts.get(name).copied(),
        };
        if part.is_required || evidence.is_some() {
            parts.push((part.name, status_of(code, evidence.as_ref(), now), evidence));
        }
    }
    let newest = |evidence: &Option<Evidence>| evidence.map(|evidence| evidence.seq);
    let decides = parts
        .iter()
        .max_by_key(|(_, status, evidence)| (*status, newest(evidence)));
    let (status, evidence) = match decides {
        Some((name, status, evidence)) => (*status, evidence.map(|found| (*name, found))),
        None => (Status::Untested, None),
    };
    let found = parts
        .iter()
        .filter_map(|(name, _, found)| Some((*name, (*found)?)));
    let evidence = evidence.or(found.max_by_key(|(_, found)| found.seq));
    let waiver = row.granted.as_ref();
    let waiver = waiver
        .filter(|waiver| in_force(waiver, &parts, now))
        .cloned();
    let never = matches!(
        (code, status),
        (Assumption::A0 | Assumption::CloverJ2, Status::Fail)
    );
    let waiver = waiver.filter(|_| !never && code != Assumption::H1 && status != Status::Pass);
    let proposed = row.proposed.clone();
    Standing {
        code,
        evidence,
        experiment: experiment.cloned(),
        parts,
        proposed: proposed.filter(|waiver| now < waiver.expires_at),
        status: if waiver.is_some() {
            Status::Waived
        } else {
            status
        },
        waiver,
    }
}

/// A waiver holds until it expires or anything is found after its second key.
fn in_force(waiver: &Waiver, parts: &[(&str, Status, Option<Evidence>)], now: Timestamp) -> bool {
    let agreed = waiver.agreed.map_or(u64::MAX, |agreed| agreed.seq);
    let mut found = parts.iter().filter_map(|(.., evidence)| *evidence);
    now < waiver.expires_at && found.all(|evidence| evidence.seq < agreed)
}

/// A read of what its reader may not see stands against an untouched confirm block.
fn taint(state: &State, code: Assumption, experiment: Option<&ExperimentId>) -> Option<Evidence> {
    if code != Assumption::H1 {
        return None;
    }
    let taint = state.fold::<Access>().taints.get(experiment?)?;
    Some(Evidence {
        at: taint.at,
        expires_at: None,
        seq: taint.seq,
        status: Status::Fail,
    })
}

/// What is found stays a failure; anything else grows old.
fn status_of(code: Assumption, evidence: Option<&Evidence>, now: Timestamp) -> Status {
    let Some(evidence) = evidence else {
        return Status::Untested;
    };
    if evidence.status == Status::Fail {
        return Status::Fail;
    }
    let is_over = evidence.expires_at.is_some_and(|end| end <= now);
    let is_old = code == Assumption::A0 && quarters(now) - quarters(evidence.at) > QUARTERS_MAX;
    if is_over || is_old {
        Status::Stale
    } else {
        evidence.status
    }
}

/// Quarters since year 0.
fn quarters(at: Timestamp) -> i64 {
    let quarter = at.quarter();
    i64::from(quarter.year) * 4 + i64::from(quarter.quarter)
}
