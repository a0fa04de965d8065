//! The command line in a folder, run inside the bench and timed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use clover::cli::World;
use clover::ground::ambient::Ambient;

/// A stream whose bytes can be read after the run.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command line in a folder; it must not fail. Gives its answer and its seconds.
pub(crate) fn clover(at: &Path, line: &str) -> (serde_json::Value, f64) {
    let (out, err) = (Buffer::default(), Buffer::default());
    let home = |name: &str, folder: &str| (name.to_owned(), at.join(folder).display().to_string());
    let mut world = World {
        ambient: Arc::new(Ambient::system()),
        variables: BTreeMap::from([
            home("XDG_CONFIG_HOME", "config"),
            home("XDG_STATE_HOME", "state"),
        ]),
        folder: at.to_owned(),
        stdin: None,
        stdout: Box::new(out.clone()),
        stderr: Box::new(err.clone()),
        terminals: [false; 3],
        columns: None,
        ask_passphrase: Box::new(|_| None),
    };
    let words = ["clover"]
        .into_iter()
        .chain(line.split_whitespace())
        .chain(["--json"]);
    let words = words.map(Into::into);
    let since = Instant::now();
    let exit = clover::cli::execute(words, &mut world).code();
    let seconds = since.elapsed().as_secs_f64();
    let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    let told = String::from_utf8(err.0.lock().unwrap().clone()).unwrap();
    assert!([0, 12].contains(&exit), "{line}: {exit}\n{text}{told}");
    (serde_json::from_str(&text).unwrap(), seconds)
}
