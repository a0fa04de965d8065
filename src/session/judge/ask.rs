//! Asking judges side by side.

use clover_num::Micro;
use clover_workflow::import::Row;
use clover_workflow::judge::Judge;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::run::Reading;

/// Asks judges side by side, each every so-manieth row; answers come in the order of rows. A judge that fails is not asked
/// again, and its other rows have no answer but that failure.
pub(super) fn ask(
    judges: &mut [Box<dyn Judge + Send>],
    rows: &[(Row, Reading)],
) -> Vec<Result<Micro, JudgeError>> {
    let step = judges.len();
    let asked: Vec<Vec<Result<Micro, JudgeError>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = judges
            .iter_mut()
            .enumerate()
            .map(|(first, judge)| {
                scope.spawn(move || {
                    let mut failed = None;
                    let mine = rows.iter().skip(first).step_by(step);
                    mine.map(|(row, reading)| match &failed {
                        Some(error) => Err(JudgeError::clone(error)),
                        None => reading
                            .score(row, judge.as_mut())
                            .inspect_err(|error| failed = Some(error.clone())),
                    })
                    .collect()
                })
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|answers| answers.expect("BUG: a judge does not panic"))
            .collect()
    });
    let mut each: Vec<_> = asked.into_iter().map(Vec::into_iter).collect();
    (0..rows.len())
        .filter_map(|at| each[at % step].next())
        .collect()
}
