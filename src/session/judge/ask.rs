//! Asking judges side by side.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use clover_workflow::import::ImportRow;
use clover_workflow::judge::Answer;
use clover_workflow::judge::Judge;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::run::Reading;

/// How long an answer waits for others before it goes on record.
const BEAT: Duration = Duration::from_millis(250);
/// Answers that may wait to be heard. Judges that answer faster than answers are recorded wait with the next ask, so that
/// what a killed run loses stays within twice [`BEAT`].
const UNHEARD_MAX: usize = 128;

/// What is heard while judges are asked.
pub(super) enum Heard {
    /// The answer to an ask, by its place.
    Answer(usize, Result<Answer, JudgeError>),
    /// Some time went by.
    Beat,
}

enum Signal {
    Heard(Heard),
    /// A judge is not asked any more.
    Idle,
}

type Asked = Arc<Vec<Vec<(ImportRow, Reading)>>>;

/// Judges that are being asked, each about the next ask that nobody has taken.
pub(super) struct Asking {
    busy: usize,
    from: mpsc::Receiver<Signal>,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Box<dyn Judge + Send>>>,
    /// The beat ends when this is dropped.
    _beat: mpsc::Sender<()>,
}

impl Asking {
    /// Begins to ask; the first row of an ask stands for all of it.
    pub(super) fn start(judges: Vec<Box<dyn Judge + Send>>, asks: &Asked) -> Self {
        let (tell, from) = mpsc::sync_channel(UNHEARD_MAX);
        let stopped = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = judges
            .into_iter()
            .map(|judge| {
                let (asks, next) = (Arc::clone(asks), Arc::clone(&next));
                let (tell, stopped) = (tell.clone(), Arc::clone(&stopped));
                std::thread::spawn(move || each(judge, &asks, &next, &stopped, &tell))
            })
            .collect();
        let (beat, end) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            while end.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                if tell.send(Signal::Heard(Heard::Beat)).is_err() {
                    return;
                }
            }
        });
        Self {
            busy: threads.len(),
            from,
            stopped,
            threads,
            _beat: beat,
        }
    }

    /// What is heard next; `None` when nobody is asked any more.
    pub(super) fn hear(&mut self) -> Option<Heard> {
        while self.busy > 0 {
            match self.from.recv().ok()? {
                Signal::Heard(heard) => return Some(heard),
                Signal::Idle => self.busy -= 1,
            }
        }
        None
    }

    /// Asks nothing more. Answers that are on their way are still heard.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Ends judges after their last ask.
    ///
    /// # Errors
    /// [`JudgeError::Ended`] when one ends badly.
    pub(super) fn finish(self) -> Result<(), JudgeError> {
        let mut ended = Ok(());
        for thread in self.threads {
            let mut judge = thread.join().expect("BUG: a judge does not panic");
            ended = ended.and(judge.finish());
        }
        ended
    }
}

/// Asks one judge until there is no ask left, nobody listens, or it fails. One that declines is asked on.
fn each(
    mut judge: Box<dyn Judge + Send>,
    asks: &[Vec<(ImportRow, Reading)>],
    next: &AtomicUsize,
    stopped: &AtomicBool,
    tell: &mpsc::SyncSender<Signal>,
) -> Box<dyn Judge + Send> {
    while !stopped.load(Ordering::Relaxed) {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some((row, reading)) = asks.get(at).and_then(|rows| rows.first()) else {
            break;
        };
        let answer = reading.answer(row, judge.as_mut());
        let goes_on = matches!(answer, Ok(_) | Err(JudgeError::Declined(_)));
        let heard = tell.send(Signal::Heard(Heard::Answer(at, answer)));
        if !goes_on || heard.is_err() {
            break;
        }
    }
    // Whoever asked may be gone.
    tell.send(Signal::Idle).ok();
    judge
}

/// Asks judges side by side, each every so-manieth row; answers come in the order of rows. A judge that fails is not asked
/// again, and its other rows have no answer but that failure.
pub(super) fn ask(
    judges: &mut [Box<dyn Judge + Send>],
    rows: &[(ImportRow, Reading)],
) -> Vec<Result<Answer, JudgeError>> {
    let step = judges.len();
    let asked: Vec<Vec<Result<Answer, JudgeError>>> = std::thread::scope(|scope| {
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
                            .answer(row, judge.as_mut())
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
