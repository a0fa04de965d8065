//! `clover iterate score`: what it asks, and what it found.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::run;
use crate::cli::iterate::run::Asked;
use crate::cli::ui;
use crate::projection::iterations::step::Step;
use crate::session::iterate::score::Rescoring;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    #[command(flatten)]
    pub program: Program,
}

pub(super) fn score(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let bench = bench::open(ctx, &args.id)?;
    if !bench.record.is_callable() && bench.record.closed.is_none() {
        return Ok(bench::answer(&bench, unasked(), &[]));
    }
    let asked = Asked {
        program: Some(&args.program),
        ..Asked::default()
    };
    run::step(ctx, bench, Step::Score, &asked)
}

/// What is said where nobody can be asked.
fn unasked() -> (String, Value) {
    let text = "not_checked: these scores were imported, and nobody can be asked for them again.\nA waiver of CLOVER.J2 by two keys before the splits lets gate p0 pass all the same: clover assume waive\n";
    (text.to_owned(), json!({"verdict": "not_checked"}))
}

/// What a re-score found.
pub(super) fn scored(of: &Rescoring) -> (String, Value) {
    let mut rows = vec![("judge", of.judge.to_string())];
    if of.recorded > 0 {
        rows.push(("rows scored first", ui::thousands(of.recorded as u64)));
    }
    if of.silent > 0 {
        rows.push(("rows without texts", ui::thousands(of.silent as u64)));
    }
    rows.push(("scored again", ui::thousands(of.sampled as u64)));
    rows.push(("mismatches", of.mismatches.to_string()));
    let data = json!({
        "judge": of.judge.as_str(), "keys": of.sampled, "mismatches": of.mismatches, "scored": of.recorded,
        "without_texts": of.silent,
    });
    (ui::pairs(&rows), data)
}
