//! The desk: one thread that sends each request once, and says what came back.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use clover_ground::secret::Secret;
use clover_workflow::ask::BrokenCause;
use clover_workflow::ask::Desk;
use clover_workflow::ask::DeskAnswer;
use clover_workflow::ask::FullDesk;
use clover_workflow::ask::Micros;
use clover_workflow::ask::RESPONSE_BYTES_MAX;
use clover_workflow::ask::Ready;
use clover_workflow::ask::Reply;
use reqwest::Client;
use reqwest::Response;
use tokio::sync::mpsc as inbox;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio::time::timeout;
use tokio::time::timeout_at;

use crate::client;
use crate::client::ClientError;
use crate::client::Connection;
use crate::client::Timeouts;
use crate::redact;

/// Requests that may be open at once.
const OPEN_MAX: usize = 256;
/// Headers that decisions read, or that name the request.
const HEADERS: [&str; 6] = [
    "content-type",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "x-should-retry",
];
/// Longest value of a header that is kept, in bytes.
const HEADER_BYTES: usize = 200;

/// A desk that sends over HTTP.
#[derive(Debug)]
pub struct HttpDesk {
    give: Option<inbox::Sender<Ready>>,
    grace: mpsc::SyncSender<Duration>,
    hear: mpsc::Receiver<DeskAnswer>,
    opened: Instant,
    secrets: Vec<Secret>,
    thread: Option<JoinHandle<()>>,
}

impl HttpDesk {
    /// Opens a desk for an endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn open(connection: &Connection) -> Result<Self, ClientError> {
        let client = client::client(connection)?;
        let (give, taken) = inbox::channel(OPEN_MAX);
        let (say, hear) = mpsc::sync_channel(OPEN_MAX);
        let (grace, graced) = mpsc::sync_channel(1);
        let url = connection.url.as_str().to_owned();
        let timeouts = connection.timeouts;
        let other = |error: std::io::Error| ClientError::Other(error.to_string());
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(other)?;
        let thread = std::thread::Builder::new().name("desk".to_owned());
        let thread = thread.spawn(move || {
            let sending = sending(&client, &url, timeouts, (taken, say));
            let open = runtime.block_on(sending);
            let grace = graced.try_recv().unwrap_or_default();
            runtime.block_on(ending(open, grace));
        });
        Ok(Self {
            give: Some(give),
            grace,
            hear,
            opened: Instant::now(),
            secrets: connection.key.iter().cloned().collect(),
            thread: Some(thread.map_err(other)?),
        })
    }
}

/// Sends what is taken until nobody gives any more; then what is still open.
async fn sending(
    client: &Client,
    url: &str,
    timeouts: Timeouts,
    (mut taken, say): (inbox::Receiver<Ready>, mpsc::SyncSender<DeskAnswer>),
) -> JoinSet<()> {
    let mut open = JoinSet::new();
    while let Some(ready) = taken.recv().await {
        while open.try_join_next().is_some() {}
        let (client, say) = (client.clone(), say.clone());
        let place = ready.place;
        let to = format!("{url}{}", ready.path);
        open.spawn(async move {
            let began = Instant::now();
            let reply = call(&client, to, ready.body, timeouts).await;
            let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            // As many answers wait as requests are open, so this never blocks; whoever asked may be gone.
            say.try_send(DeskAnswer { place, took, reply }).ok();
        });
    }
    open
}

async fn ending(mut open: JoinSet<()>, grace: Duration) {
    let all = async { while open.join_next().await.is_some() {} };
    // What does not end in time is given up.
    timeout(grace, all).await.ok();
}

fn broken(cause: BrokenCause, status: Option<u16>) -> Reply {
    Reply::Broken { cause, status }
}

/// Whether a connection came to nothing since the certificate is not trusted.
fn is_untrusted(error: &reqwest::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(of) = cause {
        if of.to_string().contains("invalid peer certificate") {
            return true;
        }
        cause = of.source();
    }
    false
}

/// One call: its request is sent once, and its answer is read up to its bound.
async fn call(client: &Client, to: String, body: Vec<u8>, timeouts: Timeouts) -> Reply {
    let until = Instant::now() + timeouts.total;
    let sent = client.post(to).body(body).send();
    let first = until.min(Instant::now() + timeouts.connect + timeouts.first_byte);
    let response = match timeout_at(first, sent).await {
        Err(_) => return broken(BrokenCause::Late, None),
        Ok(Err(error)) if error.is_connect() || error.is_builder() => {
            let cause = if is_untrusted(&error) {
                BrokenCause::Untrusted
            } else {
                BrokenCause::Unreachable
            };
            return broken(cause, None);
        }
        Ok(Err(_)) => return broken(BrokenCause::Cut, None),
        Ok(Ok(response)) => response,
    };
    read(response, timeouts, until).await
}

async fn read(mut response: Response, timeouts: Timeouts, until: Instant) -> Reply {
    let status = response.status().as_u16();
    let headers = response.headers();
    let headers = HEADERS.iter().filter_map(|name| {
        let value = headers.get(*name)?.to_str().ok()?;
        (value.len() <= HEADER_BYTES).then(|| ((*name).to_owned(), value.to_owned()))
    });
    let headers = headers.collect();
    let mut body = Vec::new();
    loop {
        let idle = until.min(Instant::now() + timeouts.idle);
        match timeout_at(idle, response.chunk()).await {
            Err(_) => return broken(BrokenCause::Late, Some(status)),
            Ok(Err(_)) => return broken(BrokenCause::Cut, Some(status)),
            Ok(Ok(Some(part))) if body.len() + part.len() > RESPONSE_BYTES_MAX => {
                return broken(BrokenCause::Oversize, Some(status));
            }
            Ok(Ok(Some(part))) => body.extend_from_slice(&part),
            Ok(Ok(None)) => {
                return Reply::Http {
                    status,
                    headers,
                    body,
                };
            }
        }
    }
}

impl Desk for HttpDesk {
    fn offer(&mut self, ready: Ready) -> Result<(), FullDesk> {
        let Some(give) = &self.give else {
            return Err(FullDesk(ready));
        };
        give.try_send(ready).map_err(|error| match error {
            inbox::error::TrySendError::Full(ready) | inbox::error::TrySendError::Closed(ready) => {
                FullDesk(ready)
            }
        })
    }

    fn next(&mut self, wait: Micros) -> Option<DeskAnswer> {
        self.hear.recv_timeout(Duration::from_micros(wait)).ok()
    }

    fn stop(&mut self, grace: Micros) {
        self.grace.try_send(Duration::from_micros(grace)).ok();
        self.give = None;
    }

    fn now(&self) -> Micros {
        u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn masked(&self, text: &str) -> String {
        redact::message(text, &self.secrets)
    }

    fn holds_secret(&self, bytes: &[u8]) -> bool {
        redact::holds_secret(bytes, &self.secrets)
    }
}

impl Drop for HttpDesk {
    fn drop(&mut self) {
        self.give = None;
        if let Some(thread) = self.thread.take() {
            // It ends by itself, at the latest after the grace that it was given.
            thread.join().ok();
        }
    }
}
