//! Verbs run inside a verb: a folder of its own with its own keys and pins, for the demo and the self-test.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::cli;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::world::World;
use crate::ground::ambient;
use crate::view::View;

/// A folder with a world around it.
pub(super) struct Sandbox {
    folder: PathBuf,
    world: World,
}

impl Sandbox {
    /// A sandbox in a folder, which is made when it is not there.
    pub(super) fn new(ctx: &Ctx<'_>, folder: &Path) -> Result<Self, CliError> {
        ambient::create_private_dirs(folder)?;
        let mut variables = std::collections::BTreeMap::new();
        for (name, sub) in [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state")] {
            variables.insert(name.to_owned(), folder.join(sub).display().to_string());
        }
        let world = World {
            ambient: ctx.ambient(),
            variables,
            folder: folder.to_owned(),
            stdin: None,
            stdout: Box::new(io::sink()),
            stderr: Box::new(io::sink()),
            terminals: [false; 3],
            columns: None,
            ask_passphrase: Box::new(|_| None),
        };
        Ok(Self {
            folder: folder.to_owned(),
            world,
        })
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs one command line, given without `clover`.
    pub(super) fn run(&mut self, words: &[&str]) -> Result<View, CliError> {
        let words = std::iter::once("clover").chain(words.iter().copied());
        let words: Vec<_> = words.map(OsString::from).collect();
        let (cli, _) = cli::parse(&words).map_err(|error| cli::usage(&error))?;
        let mut ctx = Ctx::new(&mut self.world, cli.globals);
        cli::dispatch(&mut ctx, cli.verb)
    }
}
