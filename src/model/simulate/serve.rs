//! Raw HTTP/1.1 of a double: raw, so that it can break off anywhere.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;
use serde_json::Value;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio::time::timeout;

use super::BilledCall;
use super::DoubleOptions;
use super::Journal;
use super::answer;
use super::cassette::TapedStep;
use super::script::Fault;
use crate::dialect;

/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Longest body of a request.
const BODY_BYTES_MAX: usize = 9 << 20;
/// Parts of a body that drips.
const DRIP_BYTES: usize = 16;
/// How long a stalled answer is held open.
const STALL: Duration = Duration::from_secs(3_600);

struct DoubleServer {
    options: DoubleOptions,
    journal: Journal,
    /// How often each body was asked.
    asked: Mutex<BTreeMap<Digest, u64>>,
}

struct Request {
    path: String,
    keys: Vec<String>,
    body: Vec<u8>,
}

/// Serves until it is ended.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    options: DoubleOptions,
    journal: Journal,
    mut ended: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let served = Arc::new(DoubleServer {
        options,
        journal,
        asked: Mutex::default(),
    });
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let accept = listener.accept();
        // Whichever comes first: a connection, or the end.
        let mut accept = std::pin::pin!(accept);
        let came = std::future::poll_fn(|context| {
            use std::future::Future as _;
            use std::task::Poll;
            if std::pin::Pin::new(&mut ended).poll(context).is_ready() {
                return Poll::Ready(None);
            }
            accept.as_mut().poll(context).map(Some)
        });
        match came.await {
            None => break,
            Some(Err(_)) => {}
            Some(Ok((stream, _))) => {
                let served = Arc::clone(&served);
                open.spawn(async move {
                    // A connection that breaks is the caller's to notice.
                    each(&served, &stream).await.ok();
                });
            }
        }
    }
    // Connections that are kept open ask nothing more.
    let all = async { while open.join_next().await.is_some() {} };
    timeout(LAST, all).await.ok();
}

/// How long answers that are on their way may take once it is to end.
const LAST: Duration = Duration::from_millis(200);

/// Answers every request of a connection.
async fn each(served: &DoubleServer, stream: &TcpStream) -> io::Result<()> {
    let mut kept = Vec::new();
    while let Some(request) = read(stream, &mut kept).await? {
        if !reply(served, stream, &request).await? {
            return Ok(());
        }
    }
    Ok(())
}

async fn more(stream: &TcpStream, kept: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        stream.readable().await?;
        let mut part = [0; 16 << 10];
        match stream.try_read(&mut part) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                kept.extend_from_slice(&part[..count]);
                return Ok(true);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

async fn read(stream: &TcpStream, kept: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let end = loop {
        if let Some(at) = kept.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if kept.len() > HEAD_BYTES_MAX {
            return Err(bad("a head that does not end"));
        }
        if !more(stream, kept).await? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&kept[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let path = lines.next().and_then(|line| line.split(' ').nth(1));
    let path = path.ok_or_else(|| bad("no path"))?.to_owned();
    let (mut length, mut keys) = (0, Vec::new());
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(|_| bad("no length"))?,
            "authorization" | "x-api-key" | "api-key" | "x-goog-api-key" => {
                let key = value.strip_prefix("Bearer ").unwrap_or(value);
                keys.push(key.to_owned());
            }
            _ => {}
        }
    }
    if length > BODY_BYTES_MAX {
        return Err(bad("a body that is too long"));
    }
    let whole = end + 4 + length;
    while kept.len() < whole {
        if !more(stream, kept).await? {
            return Ok(None);
        }
    }
    let rest = kept.split_off(whole);
    let body = kept.split_off(end + 4);
    *kept = rest;
    Ok(Some(Request { path, keys, body }))
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(kind: &str, message: &str) -> String {
    json!({"error": {"type": kind, "message": message}}).to_string()
}

/// Answers one request; whether the connection goes on.
async fn reply(served: &DoubleServer, stream: &TcpStream, request: &Request) -> io::Result<bool> {
    let options = &served.options;
    // Its place is taken before anything is awaited.
    let n = {
        let mut journal = locked(&served.journal);
        let n = journal.len() as u64;
        journal.push(BilledCall {
            input: 0,
            model: String::new(),
            n,
            output: 0,
            path: request.path.clone(),
            status: None,
        });
        n
    };
    let text = String::from_utf8_lossy(&request.body);
    let mut fault = options.script.fault(n, &request.path, &text);
    let taped = taped(served, request, &mut fault);
    let (status, body, billed) = taped.unwrap_or_else(|| {
        let (status, body, billed) = judged((served, n), request, &text, &fault);
        (status, body.into_bytes(), billed)
    });
    let cuts = fault.cut_at.is_some() || fault.reset_at.is_some() || fault.stall_at.is_some();
    // What fails on the way is billed half of the time, as nobody outside can tell.
    let coin = SeedTree::of_number(options.seed).child(&format!("billed/{n}"));
    let half = coin.seed()[0] < 128;
    let unsure = cuts || matches!(status, 500 | 502 | 504);
    let is_billed = if unsure { half } else { status == 200 };
    if let Some(call) = locked(&served.journal).get_mut(usize::try_from(n).unwrap_or(usize::MAX)) {
        if is_billed {
            (call.input, call.output) = (billed.1, billed.2);
        }
        call.model = billed.0;
        call.status = (!cuts).then_some(status);
    }
    if let Some(ms) = fault.delay_ms {
        sleep(Duration::from_millis(ms)).await;
    }
    send(stream, (n, status), &body, &fault).await
}

/// A status, a body, and the model with its tokens of input and output.
type DoubleReply = (u16, Vec<u8>, (String, u64, u64));

/// Status, body, and the model with its tokens, as a cassette has them; `None` where there is none.
fn taped(served: &DoubleServer, request: &Request, fault: &mut Fault) -> Option<DoubleReply> {
    let tape = served.options.tape.as_ref()?;
    let nothing = (String::new(), 0, 0);
    let missing = |what: &str| {
        let body = error("not_found_error", what);
        (404, body.into_bytes(), nothing.clone())
    };
    let Some(dialect) = answer::dialect_of(&request.path) else {
        return Some(missing("No such path."));
    };
    Some(match tape.step(dialect, (&request.path, &request.body)) {
        Err(what) => missing(&what),
        Ok(TapedStep::Cut) => {
            fault.reset_at = Some(0);
            (200, Vec::new(), nothing)
        }
        Ok(TapedStep::Status(status)) => {
            let body = error("api_error", &format!("Status {status} on the cassette."));
            (status, body.into_bytes(), nothing)
        }
        Ok(TapedStep::Answer {
            body,
            request,
            status,
        }) => {
            fault.request = request.filter(|of| !of.chars().any(char::is_control));
            let read = dialect::wire(dialect).read(&body);
            let tokens = read.as_ref().and_then(|of| of.tokens).unwrap_or_default();
            let model = read.and_then(|of| of.model).unwrap_or_default();
            let input =
                tokens.input.value() + tokens.cache_read.value() + tokens.cache_write.value();
            (status, body, (model, input, tokens.output.value()))
        }
    })
}

/// Status, body, and the model with its tokens.
fn judged(
    (served, n): (&DoubleServer, u64),
    request: &Request,
    text: &str,
    fault: &Fault,
) -> (u16, String, (String, u64, u64)) {
    let options = &served.options;
    let nothing = (String::new(), 0, 0);
    let known = options.key.as_ref();
    if known.is_some_and(|key| !request.keys.iter().any(|of| of == key.expose())) {
        let body = error("authentication_error", "Incorrect API key provided.");
        return (401, body, nothing);
    }
    let Some(dialect) = answer::dialect_of(&request.path) else {
        let body = error("not_found_error", "No such path.");
        return (404, body, nothing);
    };
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        let body = error("invalid_request_error", "The body is no JSON.");
        return (400, body, nothing);
    };
    let asked = {
        let mut asked = locked(&served.asked);
        let count = asked.entry(Digest::sha256(&request.body)).or_default();
        *count += 1;
        *count - 1
    };
    let seed = (options.seed, asked);
    let of = answer::answer(
        (dialect, &request.path),
        (&body, &request.body),
        seed,
        (fault, options.judge.map(|judge| (judge, n))),
    );
    let status = fault.status.unwrap_or(200);
    let usual = match status {
        200 => of.body,
        429 => error("rate_limit_error", "Too many requests."),
        status => error("api_error", &format!("Status {status} by script.")),
    };
    let body = fault.body.clone().unwrap_or(usual);
    (status, body, (of.model, of.input, of.output))
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends an answer, up to where the fault breaks it off.
async fn send(
    stream: &TcpStream,
    (n, status): (u64, u16),
    body: &[u8],
    fault: &Fault,
) -> io::Result<bool> {
    let mut head = format!(
        "HTTP/1.1 {status} Double\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    let named = fault.request.clone();
    let named = named.unwrap_or_else(|| format!("double-{n}"));
    head.push_str(&format!("x-request-id: {named}\r\n"));
    for (name, value) in &fault.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    if let Some(at) = fault.reset_at {
        let whole = [head.as_bytes(), body].concat();
        write(stream, &whole[..at.min(whole.len())]).await?;
        // A connection that is dropped without lingering is reset.
        stream.set_zero_linger()?;
        return Ok(false);
    }
    write(stream, head.as_bytes()).await?;
    let end = fault.cut_at.or(fault.stall_at).unwrap_or(body.len());
    let sent = &body[..end.min(body.len())];
    match fault.drip_ms {
        None => write(stream, sent).await?,
        Some(ms) => {
            for part in sent.chunks(DRIP_BYTES) {
                write(stream, part).await?;
                sleep(Duration::from_millis(ms)).await;
            }
        }
    }
    if fault.stall_at.is_some() {
        sleep(STALL).await;
    }
    Ok(fault.cut_at.is_none() && fault.stall_at.is_none())
}
