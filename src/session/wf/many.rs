//! Many runs at once, as an update or a plan names them: all are opened before one is executed, and all end before what is
//! right is opened. Everything is on record before the next step, so that the same call goes on.

use clover_event::id::RunId;
use clover_ledger::Ledger;

use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Ports;
use crate::ports::Work;
use crate::wf::RepairBench;
use crate::wf::open;
use crate::wf::open::RepairRequest;
use crate::wf::running::RepairPause;

/// Steps of a run: it is opened, goes through its turns, and is scored.
const STEPS: u64 = 3;

/// A ledger with its folder.
pub(super) type KeptLedger = (Home, Ledger);

fn with(
    (home, ledger): KeptLedger,
    (name, whole): (&RunId, (u64, u64)),
    what: impl FnOnce(&mut RepairBench) -> Result<RepairPause, SessionError>,
) -> Result<(KeptLedger, RepairPause), SessionError> {
    let mut bench = RepairBench::new(home, ledger, name.clone())?.among(whole);
    let pause = what(&mut bench)?;
    Ok(((bench.home, bench.ledger), pause))
}

/// Opens what is not open yet, executes all of `names`, then scores them.
///
/// # Errors
/// As [`open::open`], [`RepairBench::go`] and [`RepairBench::worth`]. What was said stands, and the same call goes on.
pub(super) fn gone_through(
    ports: &mut dyn Ports,
    (home, mut ledger): KeptLedger,
    (requests, names): (&[RepairRequest], &[RunId]),
) -> Result<(KeptLedger, RepairPause), SessionError> {
    let count = names.len() as u64;
    let all = count.saturating_mul(STEPS);
    let mut done = count.saturating_sub(requests.len() as u64);
    for request in requests {
        ports.progress(Work::Trying, done, all);
        open::open(ports, &home, &mut ledger, request)?;
        done += 1;
    }
    let mut place = (home, ledger);
    for name in names {
        let pause;
        (place, pause) = with(place, (name, (done, all)), |bench| bench.go(ports))?;
        if pause == RepairPause::Cut {
            return Ok((place, pause));
        }
        done += 1;
    }
    for name in names {
        ports.progress(Work::Trying, done, all);
        let scored = |bench: &mut RepairBench| bench.worth(ports).map(|_| RepairPause::Ended);
        (place, _) = with(place, (name, (done, all)), scored)?;
        done += 1;
    }
    ports.progress(Work::Trying, all, all);
    Ok((place, RepairPause::Ended))
}
