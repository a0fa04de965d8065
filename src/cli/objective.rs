//! `clover patch objective`: what a candidate is worth on dev, for whoever writes patches. The answer is an event, its id a
//! receipt that a patch may name among its inputs.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::program::Program;
use crate::cli::patch;
use crate::cli::wallet;
use crate::event::payload::Role;
use crate::event::payload::scoring::JudgePort;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::session::iterate::Bench;
use crate::session::iterate::objective;
use crate::session::iterate::objective::ObjectiveAnswer;
use crate::view::View;
use crate::view::patch as views;

const NEXT: &str = "clover patch objective --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The patch, YAML; - for standard input
    pub file: PathBuf,
    /// The iteration
    #[arg(long, value_name = "ID")]
    pub iteration: String,
    /// The optimizer's key that asks: a name, an id or a holder; default the only live one
    #[arg(long, value_name = "KEY")]
    pub requester: Option<String>,
    #[command(flatten)]
    pub program: Program,
}

impl Args {
    /// Whether attacks can be scored: the judge is the built-in one, or its program is said.
    fn can_ask(&self, bench: &Bench) -> bool {
        let port = bench.record.judge().map(|judge| judge.port);
        port == Some(JudgePort::Builtin) || !self.program.command.is_empty()
    }
}

/// The optimizer's key that asks, by whatever names a key.
fn requester(ctx: &Ctx<'_>, bench: &Bench, named: Option<&str>) -> Result<KeyId, CliError> {
    let state = bench.ledger.state();
    let live: Vec<KeyId> = state
        .keyring
        .live_with(Role::Optimizer)
        .map(|(id, _)| *id)
        .collect();
    match (named, &live[..]) {
        (Some(name), _) => {
            let id = wallet::resolve(ctx, state, name)?;
            if live.contains(&id) {
                return Ok(id);
            }
            let message = format!("no live key {name} in role optimizer");
            Err(CliError::not_found(message, "clover key list"))
        }
        (None, [only]) => Ok(*only),
        (None, []) => Err(CliError::refused(
            "no live key in role optimizer",
            "clover key new NAME --role optimizer",
        )),
        (None, _) => Err(CliError::usage(
            "several keys are in role optimizer: --requester says which asks",
            NEXT,
        )),
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let mut bench = bench::open(ctx, &args.iteration)?;
    let (id, mut checks) = patch::bench(bench.ledger.state(), &args.iteration)?;
    checks.ids.clear();
    checks.hashes.clear();
    let (yaml, written, checked) = patch::passed(ctx, &args.file, &checks)?;
    let requester = requester(ctx, &bench, args.requester.as_deref())?;
    let can_ask = args.can_ask(&bench);
    let ports = &mut ctx.ports().with_program(&args.program);
    let of = (yaml.as_str(), &written, &checked);
    let answer = objective::ask(&mut bench, ports, of, (requester, can_ask))?;
    match answer {
        ObjectiveAnswer::Receipt(of) => Ok(views::objective(&bench, &of.said, of.id, &of.appended)),
        ObjectiveAnswer::Missing(lack) => Err(CliError::refused(
            lack.to_string(),
            "clover iterate score ID",
        )),
        ObjectiveAnswer::Retold => {
            let message = "the patch changes what the judge is told, and nothing is known of it before the judge was asked anew";
            let next = format!("clover iterate propose {} PATCH", shell::word(&id));
            Err(CliError::refused(message, next))
        }
    }
}
