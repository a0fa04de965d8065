//! `clover import logged`: logged responses with teacher-forced log-probabilities, held against their contract.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake;
use crate::cli::intake::Common;
use crate::cli::intake_files;
use crate::cli::ui::Answer;
use crate::event::id::Text;
use crate::event::payload::intake::ImportFormat;
use crate::workflow::import;
use crate::workflow::import::How;
use crate::workflow::import::logged::Pins;

#[derive(Debug, clap::Args)]
pub(super) struct LoggedArgs {
    /// JSON Lines: `x_id continuation judge_S logp_pi0 logp_pi_prime` …
    pub file: PathBuf,
    #[command(flatten)]
    pub common: Common,
    /// Hash of the chat template that every call must name
    #[arg(long, value_name = "HASH")]
    pub template: Option<String>,
    /// Hash of the tokenizer that every call must name
    #[arg(long, value_name = "HASH")]
    pub tokenizer: Option<String>,
}

pub(super) fn logged(ctx: &mut Ctx<'_>, args: &LoggedArgs) -> Result<Answer, CliError> {
    let pin = |what: &str, text: Option<&String>| {
        let pinned = text.map(|text| {
            Text::new(text.clone()).ok_or_else(|| {
                CliError::usage(
                    format!("--{what}: expected a hash"),
                    "clover import logged --help",
                )
            })
        });
        pinned.transpose()
    };
    let pins = Pins {
        template: pin("template", args.template.as_ref())?,
        tokenizer: pin("tokenizer", args.tokenizer.as_ref())?,
    };
    let paths = [args.file.clone()];
    intake::run(
        ctx,
        &args.common,
        ImportFormat::Cje,
        &paths,
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
