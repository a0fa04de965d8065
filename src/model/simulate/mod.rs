//! A double of an endpoint: it answers on loopback in every dialect, by a seed, with faults by a script, and keeps a journal of
//! what it bills. So that everything can be tried without a key and without money.

mod answer;
mod cassette;
mod judged;
mod merit;
mod script;
mod serve;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;

use clover_ground::secret::Secret;
use serde::Serialize;
use tokio::sync::oneshot;

pub use cassette::Tape;
pub use merit::SimulatedJudge;
pub use script::Script;
pub use script::ScriptError;

/// The model that a double says it is, where a script says nothing else, after the one that was asked for.
pub const VERSION_SUFFIX: &str = "-2026-01-15";

/// What a double is given.
#[derive(Clone, Debug, Default)]
pub struct DoubleOptions {
    /// Where it listens; any port of 127.0.0.1 without it.
    pub listen: Option<SocketAddr>,
    /// The seed of its answers.
    pub seed: u64,
    /// How it judges; without it each request has a level of its own.
    pub judge: Option<SimulatedJudge>,
    /// Faults.
    pub script: Script,
    /// A cassette that it answers from, and from nothing else; it answers by its seed without one.
    pub tape: Option<Arc<Tape>>,
    /// A key without which it answers 401; none where it asks for none.
    pub key: Option<Secret>,
}

/// What a double billed for one request that reached it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BilledCall {
    /// Tokens of input that it billed; 0 where it billed nothing.
    pub input: u64,
    /// The model that it says it is.
    pub model: String,
    /// Which request, from 0.
    pub n: u64,
    /// Tokens of output that it billed.
    pub output: u64,
    /// The path.
    pub path: String,
    /// The status that it answered; absent where it cut the connection before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The journal of a double.
pub type Journal = Arc<Mutex<Vec<BilledCall>>>;

/// A double that listens. It ends when it is dropped.
#[derive(Debug)]
pub struct Double {
    address: SocketAddr,
    journal: Journal,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Double {
    /// Starts a double.
    ///
    /// # Errors
    /// When the address cannot be listened on, or is not loopback.
    pub fn start(options: DoubleOptions) -> io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listen = options.listen.unwrap_or(any);
        if !listen.ip().is_loopback() {
            let error = "a double listens on loopback alone: 127.0.0.1:PORT or [::1]:PORT";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let listener = std::net::TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let journal = Journal::default();
        let kept = Arc::clone(&journal);
        let (end, ended) = oneshot::channel();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build()?;
        let thread = std::thread::Builder::new().name("double".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(serve::serve(listener, options, kept, ended));
        })?;
        Ok(Self {
            address,
            journal,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it billed so far.
    pub fn billed(&self) -> Vec<BilledCall> {
        let journal = self.journal.lock();
        journal.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Double {
    /// Ends it, once what it is answering has been answered, or a moment has passed: what it billed.
    pub fn ended(mut self) -> Vec<BilledCall> {
        self.end_now();
        self.billed()
    }

    fn end_now(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.end_now();
    }
}

#[cfg(test)]
mod tests;
