//! The one door to the world: the clock, entropy, the environment and files.
//!
//! Everything else takes an [`Ambient`] (or a path and these functions) and can therefore be run with a
//! fixed clock and a fixed seed. `SQLite` opens its own files; that is the only exception. A lint bans
//! `SystemTime::now`, `std::fs` and `std::env::var` elsewhere.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this module is the door that the lint guards"
)]

mod files;
mod many;

use std::fmt;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::IsTerminal;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;

use crate::time::Timestamp;

pub use files::FileLock;
pub use files::NewPrivateFile;
pub use files::ReadPlaces;
pub use files::Scratch;
pub use files::UNFINISHED;
pub use files::check_writable;
pub use files::copy;
pub use files::create_dirs;
pub use files::create_private_dirs;
pub use files::exists;
pub use files::irregular;
pub use files::is_dir;
pub use files::is_file;
pub use files::is_link;
pub use files::is_taken;
pub use files::list;
pub use files::lock;
pub use files::lock_folder;
pub use files::mode;
pub use files::overwrite;
pub use files::places;
pub use files::read;
pub use files::read_secret;
pub use files::reader;
pub use files::remove;
pub use files::remove_empty;
pub use files::remove_tree;
pub use files::rename;
pub use files::replace;
pub use files::replace_private;
pub use files::set_mode;
pub use files::size;
pub use files::temporary_folder;
pub use files::unfinished;
pub use files::write_new;
pub use files::writer;
pub use many::NewFiles;

/// What can go wrong at the door.
#[derive(Debug, thiserror::Error)]
pub enum AmbientError {
    /// The system gave no random bytes.
    #[error("the system gave no random bytes: {0}")]
    Entropy(String),
    /// A file exists that must not.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// Reading or writing failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process holds a lock file for longer than the caller waits.
    #[error("another process holds {} for more than {} s", path.display(), waited.as_secs())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// Something else stands where a regular file was expected.
    #[error("{} is {found}; expected a regular file", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What stands there.
        found: &'static str,
    },
    /// No such file.
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    /// A secret that others may read.
    #[error("{} is readable by others (mode {mode:03o}); it must be 600", path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl AmbientError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path.to_owned()),
            io::ErrorKind::AlreadyExists => Self::Exists(path.to_owned()),
            _ => Self::Io {
                action,
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// Reads the time.
pub trait Clock: Send + Sync {
    /// Now, UTC.
    fn now(&self) -> Timestamp;
}

/// Gives random bytes.
pub trait Entropy: Send {
    /// Fills `out`.
    ///
    /// # Errors
    /// [`AmbientError::Entropy`].
    fn fill(&mut self, out: &mut [u8]) -> Result<(), AmbientError>;
}

/// The system clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_micros())
            .ok()
            .and_then(Timestamp::from_micros)
            .unwrap_or(Timestamp::EPOCH)
    }
}

/// The operating system's random generator.
#[derive(Clone, Copy, Debug)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), AmbientError> {
        getrandom::fill(out).map_err(|error| AmbientError::Entropy(error.to_string()))
    }
}

/// A clock that starts at a time and moves only when told (or by a fixed step at each reading).
#[derive(Debug)]
pub struct FixedClock {
    now: Mutex<Timestamp>,
    step_micros: i64,
}

impl FixedClock {
    /// Starts at `start` and moves by `step_micros` after each reading.
    pub fn new(start: Timestamp, step_micros: i64) -> Self {
        Self {
            now: Mutex::new(start),
            step_micros,
        }
    }

    /// Sets the next reading.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().expect("BUG: a clock reading cannot panic") = now;
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        let mut now = self.now.lock().expect("BUG: a clock reading cannot panic");
        let read = *now;
        *now = read + self.step_micros;
        read
    }
}

/// `ChaCha20` from a seed: reproducible entropy for samples and tests, never for keys that guard anything.
pub struct SeededEntropy(ChaCha20Rng);

impl SeededEntropy {
    /// From a 32-byte seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), AmbientError> {
        self.0.fill_bytes(out);
        Ok(())
    }
}

/// Clock and entropy as one value, built once and passed down.
pub struct Ambient {
    clock: Box<dyn Clock>,
    entropy: Mutex<Box<dyn Entropy>>,
}

impl fmt::Debug for Ambient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ambient")
    }
}

impl Ambient {
    /// The real world.
    pub fn system() -> Self {
        Self::new(Box::new(SystemClock), Box::new(SystemEntropy))
    }

    /// Any clock and entropy.
    pub fn new(clock: Box<dyn Clock>, entropy: Box<dyn Entropy>) -> Self {
        Self {
            clock,
            entropy: Mutex::new(entropy),
        }
    }

    /// Now, UTC.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// `N` random bytes.
    ///
    /// # Errors
    /// [`AmbientError::Entropy`].
    pub fn random<const N: usize>(&self) -> Result<[u8; N], AmbientError> {
        let mut out = [0; N];
        self.with_entropy(|entropy| entropy.fill(&mut out))?;
        Ok(out)
    }

    /// Lends the entropy source.
    pub fn with_entropy<T>(&self, f: impl FnOnce(&mut dyn Entropy) -> T) -> T {
        let mut entropy = self
            .entropy
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        f(entropy.as_mut())
    }
}

/// An environment variable, when set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Every environment variable that is text and not empty, with its value.
pub fn variables() -> std::collections::BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let filled = |(_, value): &(String, String)| !value.is_empty();
    std::env::vars_os()
        .filter_map(text)
        .filter(filled)
        .collect()
}

/// Standard input.
pub fn stdin() -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(1 << 16, io::stdin()))
}

/// Standard output.
pub fn stdout() -> Box<dyn Write + Send> {
    Box::new(io::stdout())
}

/// Standard error.
pub fn stderr() -> Box<dyn Write + Send> {
    Box::new(io::stderr())
}

/// Which of standard input, output and error are terminals, in this order.
pub fn terminals() -> [bool; 3] {
    [
        io::stdin().is_terminal(),
        io::stdout().is_terminal(),
        io::stderr().is_terminal(),
    ]
}

/// Seconds since a start, for progress and figures shown to people; never recorded.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Waits.
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// The folder the process runs in.
///
/// # Errors
/// [`AmbientError::Io`].
pub fn current_dir() -> Result<PathBuf, AmbientError> {
    std::env::current_dir().map_err(|source| AmbientError::io("find", Path::new("."), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_bytes_every_time() {
        let draw = || {
            let entropy = SeededEntropy::new([7; 32]);
            let clock = FixedClock::new(Timestamp::EPOCH, 1);
            Ambient::new(Box::new(clock), Box::new(entropy))
                .random::<32>()
                .unwrap()
        };
        assert_eq!(draw(), draw());
    }
}
