//! `clover battery`: attacks on answers, what each earned, and the exploits that are kept for good.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::iterate::bench;
use crate::cli::iterate::program::Program;
use crate::cli::patch;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::payload::Verdict;
use crate::event::payload::battery::BatteryEvaluated;
use crate::event::payload::battery::ExploitDiscovered;
use crate::ledger::Ledger;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::batteries;
use crate::projection::batteries::Batteries;
use crate::projection::batteries::Exploit;
use crate::projection::batteries::ExploitState;
use crate::session::iterate::Bench;
use crate::session::iterate::attack;
use crate::session::iterate::attack::Attack;
use crate::view::Exit;
use crate::view::View;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Exploits that were found, and how each stands under the rubric in force
    #[command(after_help = "Example:\n  clover battery list --open")]
    List(ListArgs),
    /// Attack the rubric of an iteration, or a patch; what came of it goes on record
    #[command(after_help = "Example:\n  clover battery run it-1 --patch cap-3")]
    Run(RunArgs),
    /// Measure every known exploit under the rubric in force, and say which it closes
    #[command(after_help = "Example:\n  clover battery close it-2")]
    Close(CloseArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The iteration
    pub id: String,
    /// A patch that was proposed in it; else the rubric that it starts from
    #[arg(long, value_name = "ID")]
    pub patch: Option<String>,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Debug, clap::Args)]
pub(super) struct CloseArgs {
    /// The iteration whose rubric is in force
    pub id: String,
    #[command(flatten)]
    pub program: Program,
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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Close(args) => close(ctx, args),
        Verb::List(args) => list(ctx, args),
        Verb::Run(args) => attack(ctx, args),
    }
}

/// What an exploit was when it was discovered.
fn discovered(ledger: &Ledger, exploit: &Exploit) -> Result<Option<ExploitDiscovered>, CliError> {
    let read = ledger.entry(exploit.seq)?;
    Ok(read.and_then(|read| match read.event.payload {
        Payload::ExploitDiscovered(said) => Some(*said),
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

fn list(ctx: &mut Ctx<'_>, args: &ListArgs) -> Result<View, CliError> {
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
    let mut answer = View::untyped(
        ui::table(&head, rows),
        json!({
            "experiment": experiment.as_str(), "exploits": all, "open": counts[0].1, "closed": counts[1].1,
            "unmeasured": counts[2].1,
        }),
    );
    answer.line(said.join(", "));
    Ok(answer)
}

/// Runs the battery of a patch, or of the rubric, and records it.
fn ran(
    ctx: &mut Ctx<'_>,
    id: &str,
    patch: Option<&str>,
    program: &Program,
) -> Result<(Bench, Attack), CliError> {
    let mut bench = bench::open(ctx, id)?;
    let ports = &mut ctx.ports().with_program(program);
    let attack = attack::attack(&mut bench, ports, patch)?;
    Ok((bench, attack))
}

fn number(value: Finite) -> String {
    format!("{:+.4}", value.value())
}

fn table(said: &BatteryEvaluated) -> String {
    let rows = said.attacks.iter().map(|of| {
        let two_sided = of.attack.as_str() == "style_strip";
        let cap = if two_sided { 0.02 } else { 0.05 };
        let cap = of.tighter_max.map_or(cap, |own| own.value().min(cap));
        vec![
            of.attack.to_string(),
            of.seeds.to_string(),
            number(of.mean),
            number(of.max),
            number(of.mean_absolute),
            format!("{} <= {cap}", if two_sided { "mean |u|" } else { "mean" }),
        ]
    });
    let head = ["attack", "seeds", "mean", "largest", "mean |u|", "held to"];
    let mut text = ui::table(&head, rows.collect());
    let worst = said.u_adv.map_or("none".to_owned(), number);
    text.push_str(&ui::pairs(&[
        (
            "worst chains",
            format!("{worst} (<= 0.05) in {} tries", said.tries),
        ),
        (
            "exploits",
            format!("{} measured again", said.exploits.len()),
        ),
        ("regressions", said.regressions.to_string()),
        ("not scored", said.unscored.to_string()),
    ]));
    text
}

fn attack(ctx: &mut Ctx<'_>, args: &RunArgs) -> Result<View, CliError> {
    let (bench, attacked) = ran(ctx, &args.id, args.patch.as_deref(), &args.program)?;
    let said = &attacked.said;
    let verdict = match batteries::verdict(said) {
        Verdict::Pass if said.regressions.value() == 0 => "pass",
        Verdict::Pass | Verdict::Fail => "fail",
        Verdict::Inconclusive | Verdict::NotChecked => "inconclusive",
    };
    let found = attacked.appended.len().saturating_sub(1);
    let mut text = table(said);
    text.push_str(&format!("{verdict}; {found} new exploits\n"));
    let data = json!({
        "battery": said, "verdict": verdict, "exploits_found": found, "recorded_before": attacked.appended.is_empty(),
    });
    let mut answer = bench::answer(&bench, (text, data), &attacked.appended);
    answer.verdict = verdict;
    answer.exit = match verdict {
        "pass" => Exit::Done,
        "fail" => Exit::Fail,
        _ => Exit::Inconclusive,
    };
    Ok(answer)
}

fn close(ctx: &mut Ctx<'_>, args: &CloseArgs) -> Result<View, CliError> {
    let before: Vec<ExploitState> = {
        let (_, ledger) = home::open_to_read(ctx)?;
        let (_, it) = patch::iteration(ledger.state(), &args.id)?;
        let known = ledger.state().fold::<Batteries>().exploits(&it.experiment);
        known.iter().map(Exploit::state).collect()
    };
    let (bench, attacked) = ran(ctx, &args.id, None, &args.program)?;
    let state = bench.ledger.state();
    let known = state.fold::<Batteries>().exploits(&bench.record.experiment);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    let mut closed = 0;
    for (number, (exploit, was)) in known.iter().zip(&before).enumerate() {
        let now = exploit.state();
        closed += usize::from(now == ExploitState::Closed && *was != ExploitState::Closed);
        let measured = exploit.measured.map(|(_, now)| now);
        rows.push(vec![
            number.to_string(),
            was.as_str().to_owned(),
            now.as_str().to_owned(),
            measured.map_or("-".to_owned(), uplift),
            format!("seq {}", exploit.seq),
        ]);
        all.push(json!({
            "exploit": number, "before": was.as_str(), "now": now.as_str(), "now_micro": measured, "seq": exploit.seq,
        }));
    }
    let mut text = ui::table(&["exploit", "before", "now", "uplift", "entry"], rows);
    text.push_str(&format!("{closed} closed by this rubric\n"));
    let data = json!({"exploits": all, "closed": closed, "unscored": attacked.said.unscored});
    Ok(bench::answer(&bench, (text, data), &attacked.appended))
}
