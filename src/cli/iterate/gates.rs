//! Gates on dev, and what is sealed for confirm: what both verbs ask.

use crate::cli::iterate::program::Program;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY")]
    pub scorer: Option<String>,
    #[command(flatten)]
    pub program: Program,
}
