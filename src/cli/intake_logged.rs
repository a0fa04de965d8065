//! `clover import logged`: logged responses with teacher-forced log-probabilities, held against their contract.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake;
use crate::cli::intake::ImportArgs;
use crate::cli::intake_files;
use crate::cli::intake_forms;
use crate::event::id::Text;
use crate::event::payload::intake::ImportFormat;
use crate::ground::shell;
use crate::view::View;
use crate::workflow::import;
use crate::workflow::import::How;
use crate::workflow::import::logged::Pins;

#[derive(Debug, clap::Args)]
pub(super) struct LoggedArgs {
    /// JSON Lines: `x_id continuation judge_S logp_pi0 logp_pi_prime` …
    pub file: PathBuf,
    #[command(flatten)]
    pub common: ImportArgs,
    /// What every call must name: `template=HASH`, `tokenizer=HASH`
    #[arg(long, value_name = "WHAT=HASH")]
    pub pin: Vec<String>,
}

pub(super) fn logged(ctx: &mut Ctx<'_>, args: &LoggedArgs) -> Result<View, CliError> {
    let mut pins = Pins::default();
    for pin in &args.pin {
        let named = pin.split_once('=').and_then(|(what, hash)| {
            let hash = Text::new(hash).filter(|hash| !hash.as_str().is_empty())?;
            Some((what, hash))
        });
        match named {
            Some(("template", hash)) => pins.template = Some(hash),
            Some(("tokenizer", hash)) => pins.tokenizer = Some(hash),
            _ => {
                let message = format!("--pin {pin:?}: expected template=HASH or tokenizer=HASH");
                return Err(CliError::usage(message, "clover import logged --help"));
            }
        }
    }
    let paths = [args.file.clone()];
    let own = args
        .pin
        .iter()
        .map(|pin| format!(" --pin {}", shell::word(pin)));
    let own: String = own.collect();
    intake::run(
        ctx,
        (&args.common, &own),
        (ImportFormat::Cje, intake_forms::Verb::Logged),
        (&paths, &paths),
        &|path, bytes, how| {
            let named = how.policy.cloned().or_else(|| intake_files::of_name(path));
            let how = How {
                policy: named.as_ref(),
                ..how
            };
            import::logged::rows(&path.display().to_string(), bytes, &pins, how)
        },
    )
}
