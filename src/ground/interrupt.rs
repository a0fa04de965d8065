//! The door to signals: whether somebody asked this process to stop.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

/// Whether a signal to stop came since this began. Where it ends, a signal ends the process at once.
#[derive(Debug)]
pub struct Interrupts(Arc<AtomicBool>);

/// Whether a signal is nobody's to see, or was seen: handlers are set once in a process.
static CAME: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The code that a second signal ends the process with, at once.
const CODE: i32 = 130;

impl Interrupts {
    /// Takes SIGINT and SIGTERM from here on: the first is for the program to see, the second ends the process at once.
    ///
    /// # Errors
    /// The system's answer.
    pub fn begin() -> io::Result<Self> {
        if let Some(came) = CAME.get() {
            came.store(false, Ordering::Relaxed);
            return Ok(Self(Arc::clone(came)));
        }
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: what came before ends the process, and only then is noted what comes now.
            flag::register_conditional_shutdown(signal, CODE, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&came))?;
        }
        Ok(Self(Arc::clone(CAME.get_or_init(|| came))))
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
