//! The door to child processes: lines in, lines out, with a time limit on every answer.
//!
//! Reading and writing run on threads of their own, so neither a child that does not read nor one that does not write
//! can hold the caller longer than it is willing to wait. A child is killed when its handle is dropped.
#![expect(
    clippy::disallowed_types,
    reason = "this module is the door that the lint guards"
)]

use std::ffi::OsStr;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use crate::ambient;

/// Longest line that is heard, in bytes.
pub const LINE_LEN_MAX: u64 = 1 << 20;
/// Bytes of the child's standard error that are kept: the last ones.
const ERRORS_KEPT: usize = 2_000;
/// Lines that may wait to be heard.
const WAITING_MAX: usize = 256;

/// What the name of an environment variable of this program begins with.
const OWN_VARIABLES: &[u8] = b"CLOVER_";

/// Whether an environment variable is this program's own.
fn is_own(name: &OsStr) -> bool {
    let start = name.as_encoded_bytes().get(..OWN_VARIABLES.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(OWN_VARIABLES))
}

/// Whether a program is there to be started in a folder: a path of a file, or a name that a folder of `PATH` has.
pub fn is_there(program: &str, folder: &Path) -> bool {
    found(program, folder).is_some()
}

/// The file that a program's name stands for: where it has a slash itself, else in the folders of `PATH`.
pub fn found(program: &str, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(folder.join(program)).filter(|path| ambient::is_file(path));
    }
    let path = std::env::vars_os().find(|(name, _)| name == "PATH");
    let path = path.map_or_else(|| "/bin:/usr/bin".into(), |(_, path)| path);
    let mut files = std::env::split_paths(&path).map(|of| folder.join(of).join(program));
    files.find(|path| ambient::is_file(path))
}

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line, without its end.
    Line(String),
    /// Nothing within the time.
    Late,
    /// Its output ended, or was no line of UTF-8 within [`LINE_LEN_MAX`].
    Ended,
}

/// A running child.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    said: Option<mpsc::Sender<String>>,
    heard: mpsc::Receiver<String>,
    errors: Arc<Mutex<Vec<u8>>>,
}

impl Child {
    /// Starts a program in a folder, with the environment of this process except for variables of this program.
    /// They hold passphrases and key names, which no child needs.
    ///
    /// # Errors
    /// The system's answer.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn start(program: &str, args: &[String], folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_own(name)) {
            command.env_remove(name);
        }
        let mut process = command
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let piped = "BUG: all three streams are piped";
        let mut stdin = process.stdin.take().expect(piped);
        let stdout = process.stdout.take().expect(piped);
        let stderr = process.stderr.take().expect(piped);
        let (said, to_say) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            // A child that does not read any more shows by its output.
            for line in to_say {
                if stdin
                    .write_all(line.as_bytes())
                    .and_then(|()| stdin.flush())
                    .is_err()
                {
                    return;
                }
            }
        });
        let (tell, heard) = mpsc::sync_channel(WAITING_MAX);
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(line) = line(&mut stdout) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&errors);
        std::thread::spawn(move || keep_last(stderr, &kept));
        Ok(Self {
            process,
            said: Some(said),
            heard,
            errors,
        })
    }

    /// Says a line.
    pub fn say(&mut self, line: &str) {
        if let Some(said) = &self.said {
            // Whether it arrives shows by the answer.
            said.send(format!("{line}\n")).ok();
        }
    }

    /// Waits for a line.
    pub fn hear(&mut self, limit: Duration) -> Heard {
        match self.heard.recv_timeout(limit) {
            Ok(line) => Heard::Line(line),
            Err(mpsc::RecvTimeoutError::Timeout) => Heard::Late,
            Err(mpsc::RecvTimeoutError::Disconnected) => Heard::Ended,
        }
    }

    /// Closes its input and waits for its end; after `limit` it is killed. `None` when it ended well.
    pub fn finish(&mut self, limit: Duration) -> Option<String> {
        const STEP: Duration = Duration::from_millis(5);
        self.said = None;
        let start = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(status)) => return Some(format!("{status}{}", self.last_error())),
                Ok(None) if start.elapsed() < limit => std::thread::sleep(STEP),
                Ok(None) => {
                    self.kill();
                    return Some("it did not end when its input did".to_owned());
                }
                Err(error) => return Some(error.to_string()),
            }
        }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }

    /// The end of what it wrote to standard error, after a colon.
    fn last_error(&self) -> String {
        // What it wrote last may still be on its way.
        std::thread::sleep(Duration::from_millis(20));
        let kept = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or(String::new(), |line| format!(": {}", line.trim()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The next line; `None` at the end, and at anything that is no line.
fn line(from: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = from.take(LINE_LEN_MAX).read_until(b'\n', &mut bytes).ok()?;
    if read == 0 || read as u64 == LINE_LEN_MAX && bytes.last() != Some(&b'\n') {
        return None;
    }
    let end = bytes
        .iter()
        .rposition(|byte| !b"\r\n".contains(byte))
        .map_or(0, |at| at + 1);
    bytes.truncate(end);
    String::from_utf8(bytes).ok()
}

fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..read]);
        let over = kept.len().saturating_sub(ERRORS_KEPT);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Child {
        Child::start("sh", &["-c".to_owned(), script.to_owned()], Path::new("/")).unwrap()
    }

    #[test]
    fn lines_go_in_and_come_out() {
        let mut child = shell("while read -r line; do echo \"got $line\"; done");
        child.say("one");
        child.say("two");
        assert_eq!(child.hear(SOON), Heard::Line("got one".to_owned()));
        assert_eq!(child.hear(SOON), Heard::Line("got two".to_owned()));
        assert_eq!(child.finish(SOON), None);
    }

    #[test]
    fn variables_of_this_program_are_told_by_their_beginning() {
        for own in ["CLOVER_PASSPHRASE", "CLOVER_", "clover_key"] {
            assert!(is_own(OsStr::new(own)), "{own}");
        }
        for other in ["", "CLOVER", "MY_CLOVER_KEY", "PATH"] {
            assert!(!is_own(OsStr::new(other)), "{other}");
        }
    }

    #[test]
    fn a_program_is_looked_for_before_it_is_started() {
        let folder = tempfile::tempdir().unwrap();
        ambient::write_new(&folder.path().join("here.sh"), b"", 0o600).unwrap();
        assert!(is_there("sh", folder.path()));
        assert!(is_there("./here.sh", folder.path()));
        for other in ["no-such-program-here", "./there.sh", "here.sh"] {
            assert!(!is_there(other, folder.path()), "{other}");
        }
    }

    #[test]
    fn silence_ends_and_failures_are_told() {
        let mut child = shell("sleep 60");
        // More than any pipe holds: the caller is not held.
        child.say(&"x".repeat(1 << 20));
        assert_eq!(child.hear(Duration::from_millis(50)), Heard::Late);
        assert!(
            child
                .finish(Duration::from_millis(50))
                .unwrap()
                .contains("did not end")
        );
        let mut child = shell("echo no model >&2; exit 3");
        assert_eq!(child.hear(SOON), Heard::Ended);
        let end = child.finish(SOON).unwrap();
        assert!(end.contains('3') && end.ends_with(": no model"), "{end}");
        let mut child = shell("head -c 1100000 /dev/zero; echo");
        assert_eq!(child.hear(SOON), Heard::Ended);
        assert!(Child::start("no-such-program-here", &[], Path::new("/")).is_err());
    }
}
