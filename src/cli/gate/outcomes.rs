//! `clover gate observe --from FILE`: outcomes become scores, in the order drawn, before anything is observed.

use std::path::Path;

use crate::cli::bulk;
use crate::cli::cast;
use crate::cli::cast::Part;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::known;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::workflow::gates::outcomes;

/// Scores of one transaction.
const BATCH: usize = 16_384;

/// The scores of a file, with their lines.
pub(super) struct Scores {
    commands: Vec<Command>,
    lines: Vec<u64>,
    signer: Signer,
    source: String,
}

/// Reads outcomes; every line is held against the gate before anything is recorded.
pub(super) fn read(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    id: &ManifestId,
    order: &[ItemId],
    (file, scorer): (&Path, Option<&String>),
) -> Result<Scores, CliError> {
    let source = file.display().to_string();
    let bytes = ctx.read(file)?;
    let gate = known(ledger.state(), id)?;
    let found = outcomes::read(&bytes).and_then(|found| outcomes::scores(gate, order, &found));
    let found = found.map_err(|error| {
        let data = serde_json::json!({"file": source, "line": error.line, "field": error.field});
        let mut wrong = CliError::input(format!("{source}:{error}"), "clover gate observe --help");
        wrong.data = data;
        wrong
    })?;
    let state = ledger.state();
    let parts = [
        Part::by(state, Kind::ScoreRecorded, "--scorer", scorer),
        Part::by_key(state, Kind::GateObserved),
    ];
    let mut cast = cast::of_parts(ctx, state, &parts)?.into_iter();
    let key = ctx.globals.key.clone();
    ctx.globals.key = cast.next().flatten();
    let signer = wallet::signer(ctx, ledger.state(), Kind::ScoreRecorded);
    ctx.globals.key = key;
    let experiment = gate.gate.experiment.clone();
    let (lines, commands) = found
        .into_iter()
        .map(|(line, score)| (line, Command::new(score, experiment.clone())))
        .unzip();
    Ok(Scores {
        commands,
        lines,
        signer: signer?,
        source,
    })
}

impl Scores {
    /// Prints what would be recorded.
    pub(super) fn show(&self, ctx: &mut Ctx<'_>, ledger: &mut Ledger) -> Result<Answer, CliError> {
        submit::append(ctx, ledger, &self.commands, &self.signer, true)
    }

    /// Records what is not recorded yet; answers with how many are new.
    pub(super) fn record(&self, ledger: &mut Ledger) -> Result<u64, CliError> {
        let mut new = 0;
        for (commands, lines) in self.commands.chunks(BATCH).zip(self.lines.chunks(BATCH)) {
            let appended = ledger.append(commands, &self.signer);
            let appended = appended.map_err(|error| bulk::at_line(error, lines, &self.source))?;
            new += appended.iter().filter(|one| !one.already).count() as u64;
        }
        Ok(new)
    }
}
