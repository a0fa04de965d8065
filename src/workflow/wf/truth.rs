//! What is right: committed to when a run is opened, opened after its end, and what candidates are worth by it.

use clover_flow::RunOutcome;
use clover_flow::item::Item;
use clover_flow::task::TaskSet;
use clover_flow::value::Data;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_num::Micro;
use clover_projection::wf::rules::truth_commitment;

use crate::estimate::compute::blob;
use crate::wf::execution::LINES;
use crate::wf::words;

/// What turns an output and a truth into a number.
pub const SCORER: &str = "weighted-members/1";

/// The commitment to lines of what is right: of a salt and their BLAKE3 digest, so that it is checked without them, and
/// nobody learns the truth from it.
pub fn commitment(salt: &Digest, lines: &[u8]) -> Digest {
    truth_commitment(*salt, blob(lines, LINES).blake3)
}

/// The lines of what is right, in the order of the items; `None` where one of them has none.
pub fn lines(items: &[Item]) -> Option<String> {
    items.iter().map(Item::truth_line).collect()
}

/// Gives each item of a set its truth.
///
/// # Errors
/// [`Unmet`] where the lines are not one for each item, in order.
pub fn told(mut set: TaskSet, lines: &[u8]) -> Result<TaskSet, Unmet> {
    let text = std::str::from_utf8(lines).ok().required("text")?;
    let read = text.lines().map(Item::parse_truth);
    let read: Result<Vec<(String, Data)>, _> = read.collect();
    let read = read.map_err(|fault| Unmet {
        expected: "lines of what is right".to_owned(),
        found: format!("{}: {}", fault.path, fault.kind),
    })?;
    let ids = read.iter().map(|(id, _)| id.as_str());
    if !ids.eq(set.items.iter().map(|item| item.id.as_str())) {
        return Err(Unmet {
            expected: "what is right of each item, in order".to_owned(),
            found: "others".to_owned(),
        });
    }
    for (item, (_, truth)) in set.items.iter_mut().zip(read) {
        item.truth = Some(truth);
    }
    Ok(set)
}

/// What a candidate is worth on each item, by its first execution: nothing where it crashed.
pub fn worth(set: &TaskSet, outcomes: &[Vec<RunOutcome>]) -> Vec<Micro> {
    let items = set.items.iter().zip(outcomes);
    let worth = items.map(|(item, of)| {
        let output = of.first().and_then(|run| run.output.as_ref());
        words::share(set.utility(item, output).unwrap_or(0))
    });
    worth.collect()
}

/// The mean of numbers in millionths, rounded down; `None` of none.
pub fn mean(of: &[Micro]) -> Option<i64> {
    let sum = of
        .iter()
        .fold(0_i64, |sum, of| sum.saturating_add(of.value()));
    sum.checked_div(i64::try_from(of.len()).ok()?)
}
