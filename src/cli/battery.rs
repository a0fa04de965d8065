//! `clover battery`: attacks on answers, what each earned, and the exploits that are kept for good.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::payload::battery::ExploitDiscovered;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::projection::batteries::Batteries;
use crate::projection::batteries::Exploit;
use crate::projection::batteries::ExploitState;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Exploits that were found, and how each stands under the rubric in force
    #[command(after_help = "Example:\n  clover battery list --open")]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Those alone that are not closed
    #[arg(long)]
    pub open: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::List(args) => list(ctx, args),
    }
}

/// What an exploit was when it was discovered.
fn discovered(ledger: &Ledger, exploit: &Exploit) -> Result<Option<ExploitDiscovered>, CliError> {
    let read = ledger.entry(exploit.seq)?;
    Ok(read.and_then(|read| match read.event.payload {
        Payload::ExploitDiscovered(said) => Some(said),
        _ => None,
    }))
}

fn uplift(micro: Micro) -> String {
    format!("{:+.3}", micro.value() as f64 / 1e6)
}

fn row(number: usize, exploit: &Exploit, said: &ExploitDiscovered) -> Vec<String> {
    let now = exploit
        .measured
        .map_or("-".to_owned(), |(_, now)| uplift(now));
    vec![
        number.to_string(),
        exploit.state().as_str().to_owned(),
        uplift(said.uplift_micro),
        now,
        said.chain.as_str().to_owned(),
        format!("{}/{}/{}", said.policy, said.item, said.draw),
        format!("seq {}", exploit.seq),
    ]
}

fn data(number: usize, exploit: &Exploit, said: &ExploitDiscovered) -> Value {
    json!({
        "exploit": number, "state": exploit.state().as_str(), "chain": said.chain.as_str(),
        "policy": said.policy.as_str(), "item": said.item.as_str(), "draw": said.draw,
        "found_micro": said.uplift_micro, "now_micro": exploit.measured.map(|(_, now)| now),
        "measured_seq": exploit.measured.map(|(seq, _)| seq), "seq": exploit.seq,
        "iteration": said.iteration.as_str(), "rubric_hash": said.rubric_hash.to_hex(),
    })
}

fn list(ctx: &mut Ctx<'_>, args: &ListArgs) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let experiment = intake::experiment(state, args.experiment.as_deref())?;
    let known = state.fold::<Batteries>().exploits(&experiment);
    let count = |wanted| known.iter().filter(|of| of.state() == wanted).count();
    let counts = [
        ExploitState::Open,
        ExploitState::Closed,
        ExploitState::Unmeasured,
    ]
    .map(|state| (state, count(state)));
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for (number, exploit) in known.iter().enumerate() {
        if args.open && exploit.state() == ExploitState::Closed {
            continue;
        }
        if let Some(said) = discovered(&ledger, exploit)? {
            rows.push(row(number, exploit, &said));
            all.push(data(number, exploit, &said));
        }
    }
    let head = ["exploit", "state", "found", "now", "chain", "seed", "entry"];
    let said = counts.map(|(state, count)| format!("{count} {}", state.as_str()));
    let mut answer = Answer::new(
        ui::table(&head, rows),
        json!({
            "experiment": experiment.as_str(), "exploits": all, "open": counts[0].1, "closed": counts[1].1,
            "unmeasured": counts[2].1,
        }),
    );
    answer.line(&said.join(", "));
    Ok(answer)
}
