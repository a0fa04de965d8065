//! `clover iterate confirm`: what its options say.

use std::path::PathBuf;

use crate::cli::error::CliError;
use crate::cli::iterate::program::Program;
use crate::event::id::DesignId;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConfirmArgs {
    /// The iteration
    pub id: String,
    /// The design of the sealed labels; default the only one for confirm
    #[arg(long, value_name = "ID")]
    pub design: Option<String>,
    /// The custodian's key, where several could open
    #[arg(long, value_name = "KEY")]
    pub custodian: Option<String>,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY")]
    pub scorer: Option<String>,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub confirm: ConfirmArgs,
    #[command(flatten)]
    pub program: Program,
}

impl ConfirmArgs {
    /// The design that is named.
    pub(super) fn design(&self) -> Result<Option<DesignId>, CliError> {
        let parsed = self.design.as_ref().map(|name| {
            name.parse().map_err(|error| {
                let message = format!("design {name:?}: {error}");
                CliError::usage(message, "clover label design list")
            })
        });
        parsed.transpose()
    }
}
