//! Clover as a library, without its command line: `cargo run --release --example library`.

mod data;
mod desk;
mod gate;
mod iteration;

use std::error::Error;
use std::process::ExitCode;

fn run() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("clover-library-{}", std::process::id()));
    let outcome = iteration::run(&folder.join("iteration"))?;
    println!("iteration: {outcome:?}");
    let outcome = gate::run(&folder.join("gate"))?;
    println!("gate: {outcome:?}");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
