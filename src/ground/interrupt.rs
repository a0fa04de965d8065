//! The door to signals: whether somebody asked this process to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

/// Whether a signal to stop came since this began.
#[derive(Clone, Debug)]
pub struct Interrupts(Arc<AtomicBool>);

/// The code that a second signal ends the process with, at once.
const CODE: i32 = 130;

impl Interrupts {
    /// Takes SIGINT and SIGTERM from here on: the first is for the program to see, the second ends the process at once.
    ///
    /// # Errors
    /// The system's answer.
    pub fn begin() -> io::Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: what came before ends the process, and only then is noted what comes now.
            flag::register_conditional_shutdown(signal, CODE, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&came))?;
        }
        Ok(Self(came))
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
