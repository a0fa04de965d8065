//! The world of a run: clock, entropy, environment, folder and streams as one value, so that tests run the
//! same verbs in process with a fixed clock and buffers.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use crate::ground::ambient;
use crate::ground::ambient::Ambient;
use crate::view::text::COLUMNS;

/// Asks for a passphrase with a prompt; `None` when nobody can be asked.
pub(super) type AskPassphrase = Box<dyn FnMut(&str) -> Option<String>>;

/// Everything outside of the program that a verb may touch.
pub struct World {
    /// Clock and entropy.
    pub ambient: Arc<Ambient>,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Standard input, until it is read.
    pub stdin: Option<Box<dyn BufRead + Send>>,
    /// Where answers go.
    pub stdout: Box<dyn Write + Send>,
    /// Where progress and notes go.
    pub stderr: Box<dyn Write + Send>,
    /// Whether standard input, output and error are terminals.
    pub terminals: [bool; 3],
    /// Columns of the terminal that answers go to; `None` where nobody knows.
    pub columns: Option<u16>,
    /// How a passphrase is asked for.
    pub ask_passphrase: AskPassphrase,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({})", self.folder.display())
    }
}

impl World {
    /// Columns that a help text may take.
    pub(super) fn help_columns(&self) -> u16 {
        let columns = self.columns.filter(|_| self.terminals[1]);
        columns.unwrap_or(COLUMNS)
    }

    /// The real one.
    ///
    /// # Errors
    /// When the current folder cannot be told.
    pub fn system() -> Result<Self, ambient::AmbientError> {
        Ok(Self {
            ambient: Arc::new(Ambient::system()),
            variables: ambient::variables(),
            folder: ambient::current_dir()?,
            stdin: Some(ambient::stdin()),
            stdout: ambient::stdout(),
            stderr: ambient::stderr(),
            terminals: ambient::terminals(),
            columns: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0),
            ask_passphrase: Box::new(|prompt| rpassword::prompt_password(prompt).ok()),
        })
    }
}
