//! The door to signals: whether somebody asked this process to stop.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

/// Whether a signal to stop came since this began. Once nobody looks any more, a signal ends the process at once.
#[derive(Debug)]
pub struct Interrupts(&'static Signals);

/// What handlers set, which are set once in a process.
#[derive(Debug)]
struct Signals {
    /// Whether a signal came while somebody looked.
    came: Arc<AtomicBool>,
    /// Whether the next signal ends the process: one came, or nobody looks.
    ends: Arc<AtomicBool>,
    /// How many look.
    lookers: Mutex<usize>,
}

static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// The code that a second signal ends the process with, at once.
const CODE: i32 = 130;

impl Signals {
    fn set() -> io::Result<Self> {
        let (came, ends) = (Arc::default(), Arc::default());
        for signal in [SIGINT, SIGTERM] {
            // In this order: what came before ends the process, and only then is noted what comes now.
            flag::register_conditional_shutdown(signal, CODE, Arc::clone(&ends))?;
            flag::register(signal, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&ends))?;
        }
        let lookers = Mutex::new(0);
        Ok(Self {
            came,
            ends,
            lookers,
        })
    }
}

impl Interrupts {
    /// Takes SIGINT and SIGTERM from here on: the first is for the program to see, the second ends the process at once.
    ///
    /// # Errors
    /// The system's answer.
    pub fn begin() -> io::Result<Self> {
        let signals = if let Some(signals) = SIGNALS.get() {
            signals
        } else {
            let set = Signals::set()?;
            SIGNALS.get_or_init(|| set)
        };
        let mut lookers = signals
            .lookers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *lookers == 0 {
            signals.came.store(false, Ordering::Relaxed);
            signals.ends.store(false, Ordering::Relaxed);
        }
        *lookers += 1;
        drop(lookers);
        Ok(Self(signals))
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.came.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let lookers = self.0.lookers.lock();
        let mut lookers = lookers.unwrap_or_else(PoisonError::into_inner);
        *lookers = lookers.saturating_sub(1);
        if *lookers == 0 {
            self.0.ends.store(true, Ordering::Relaxed);
        }
    }
}
