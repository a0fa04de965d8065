//! Clover as a library, without its command line: `cargo run --release --example library -- FOLDER`.

mod data;
mod desk;
mod gate;
mod iteration;

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("a folder that is new")?;
    let folder = PathBuf::from(folder);
    let mut out = std::io::stdout();
    let outcome = iteration::run(&folder.join("iteration"))?;
    writeln!(out, "iteration: {outcome:?}")?;
    let outcome = gate::run(&folder.join("gate"))?;
    writeln!(out, "gate: {outcome:?}")?;
    Ok(())
}
