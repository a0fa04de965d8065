//! One step of an iteration, or everything that is due and needs no person.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::confirmed::ConfirmArgs;
use crate::cli::iterate::program::Program;
use crate::cli::patch;
use crate::cli::ports::CliPorts;
use crate::cli::rubric;
use crate::cli::submit;
use crate::ground::shell;
use crate::projection::iterations::step::Step;
use crate::session::append::Intent;
use crate::session::iterate::Bench;
use crate::session::iterate::confirm;
use crate::session::iterate::steps;
use crate::session::iterate::steps::Progress;
use crate::view::View;
use crate::view::iterate::steps as views;
use crate::view::iterate::steps::Run;
use crate::view::patch as view;
use crate::workflow::patches::Authorship;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub confirm: ConfirmArgs,
    /// The last step that is done
    #[arg(
        long,
        value_name = "STEP",
        help = "The last step: score, fit, audit, cards, gate, seal, confirm, accept, close"
    )]
    pub to: Option<String>,
    /// Patches to propose where it waits for them, YAML; may repeat
    #[arg(
        long,
        value_name = "FILE",
        help = "A patch to propose where it waits for patches; may repeat"
    )]
    pub propose: Vec<PathBuf>,
    #[command(flatten)]
    pub program: Program,
}

/// What a step's options say: of the look at confirm, and of the judge's program.
#[derive(Default)]
pub(super) struct StepOptions<'a> {
    pub confirm: Option<&'a ConfirmArgs>,
    pub program: Option<&'a Program>,
    pub scorer: Option<&'a String>,
}

impl StepOptions<'_> {
    /// The ports of a step.
    fn ports<'c, 'w>(&self, ctx: &'c mut Ctx<'w>, bench: &Bench) -> CliPorts<'c, 'w> {
        let mut ports = ctx.ports().with_scorer(self.scorer);
        if let Some(confirm) = self.confirm {
            let command = self.program.iter().flat_map(|of| &of.command);
            let words: Vec<_> = command.map(shell::word).collect();
            let asked = if words.is_empty() {
                String::new()
            } else {
                format!(" -- {}", words.join(" "))
            };
            let again = format!("clover iterate confirm {}{asked}", shell::word(&bench.id));
            ports = ports
                .with_custodian(confirm.custodian.as_ref())
                .with_identity(confirm.identity.as_deref())
                .with_consent(confirm.yes, again);
        }
        match self.program {
            Some(program) => ports.with_program(program),
            None => ports,
        }
    }
}

/// Does one step, which must be due.
pub(super) fn step(
    ctx: &mut Ctx<'_>,
    mut bench: Bench,
    step: Step,
    asked: &StepOptions<'_>,
) -> Result<View, CliError> {
    bench.only(step)?;
    let design = asked.confirm.map(ConfirmArgs::design).transpose()?;
    let ports = &mut asked.ports(ctx, &bench);
    let done = steps::take(&mut bench, ports, step, design.flatten().as_ref())?;
    Ok(match done {
        Some(done) => views::step(&mut bench, &done)?,
        None => views::none(&bench),
    })
}

fn last(args: &Args) -> Result<Step, CliError> {
    let Some(name) = &args.to else {
        return Ok(Step::Close);
    };
    let named = Step::ALL.into_iter().find(|step| step.as_str() == name);
    named.ok_or_else(|| {
        let words: Vec<&str> = Step::ALL.iter().map(|step| step.as_str()).collect();
        let message = format!("--to {name:?}: expected one of {}", words.join(", "));
        CliError::usage(message, "clover iterate run --help")
    })
}

/// Finds every key that the steps up to the last need, where the look at confirm is among them: a peek is not charged for
/// gates that nobody here may judge.
fn keys(
    ctx: &mut Ctx<'_>,
    bench: &Bench,
    asked: &StepOptions<'_>,
    last: Step,
) -> Result<(), CliError> {
    let due = bench.due();
    let looks = due.is_some_and(|due| (Step::Gate..=Step::Confirm).contains(&due));
    if !looks || last < Step::Confirm {
        return Ok(());
    }
    let design = asked.confirm.map(ConfirmArgs::design).transpose()?;
    let ports = &mut asked.ports(ctx, bench);
    let found = confirm::check_keys(bench, ports, design.flatten().as_ref());
    found.map_err(CliError::from).map_err(|error| {
        let is_later = due != Some(Step::Confirm) && error.next.starts_with("clover key new");
        if is_later {
            let id = shell::word(&bench.id);
            return error.with_next(format!("clover iterate run {id} --to seal"));
        }
        error
    })
}

/// Finds the programs that patches need, before one of them is on record.
fn programs(
    ctx: &mut Ctx<'_>,
    bench: &Bench,
    args: &Args,
    (patches, last): (&[(PathBuf, String)], Step),
) -> Result<(), CliError> {
    if last < Step::Gate {
        return Ok(());
    }
    let mut all = patches.iter();
    all.try_for_each(|(_, yaml)| {
        patch::check_program(ctx, &bench.ledger, &bench.id, yaml, &args.program)
    })
}

/// Asks before a run that goes as far as the look at confirm: the rows are judged again, candidates are sealed, and these cost
/// before the look itself is asked about.
fn consent(
    ctx: &mut Ctx<'_>,
    bench: &Bench,
    args: &Args,
    (proposes, last): (bool, Step),
) -> Result<(), CliError> {
    let due = bench.due();
    let gates = due.is_some_and(|due| (Step::Gate..=Step::Seal).contains(&due));
    let leads_there = gates || proposes && due.is_some_and(|due| due < Step::Gate);
    if last < Step::Confirm || !leads_there {
        return Ok(());
    }
    let id = shell::word(&bench.id);
    let question = format!(
        "run {id} to its verdict: rows are judged again for each candidate that is told something else, candidates that pass on \
         dev are sealed, and one peek opens the labels of confirm (--to gate stops before candidates are sealed)"
    );
    let mut again = format!("clover iterate run {id}");
    for file in &args.propose {
        again.push_str(&format!(" --propose {}", shell::word(&file.display())));
    }
    let words: Vec<_> = args.program.command.iter().map(shell::word).collect();
    if !words.is_empty() {
        again.push_str(&format!(" -- {}", words.join(" ")));
    }
    ctx.confirm(&question, args.confirm.yes, &again)
}

/// Patches to propose: each file, and what it says.
fn documents(ctx: &mut Ctx<'_>, files: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, CliError> {
    let next = "clover patch check --help";
    let read = files
        .iter()
        .map(|file| Ok((file.clone(), rubric::document(ctx, file, next)?)));
    read.collect()
}

/// Proposes patches that a person wrote; one that was proposed before stands as it was.
fn propose(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    taken: &mut Run,
    patches: &[(PathBuf, String)],
) -> Result<(), CliError> {
    for (file, yaml) in patches {
        let by = Authorship::person();
        let id = bench.id.clone();
        let of = ((file.as_path(), yaml.as_str()), by);
        let proposal = patch::put_into(ctx, &mut bench.ledger, &id, of, Intent::Append)?;
        let shown = submit::shown(ctx, &bench.ledger, &proposal.submission);
        taken.propose(view::proposed(shown, &proposal));
    }
    Ok(bench.again()?)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let last = last(args)?;
    let patches = documents(ctx, &args.propose)?;
    let mut bench = bench::open(ctx, &args.confirm.id)?;
    let asked = StepOptions {
        confirm: Some(&args.confirm),
        program: Some(&args.program),
        scorer: args.confirm.scorer.as_ref(),
    };
    keys(ctx, &bench, &asked, last)?;
    let is_due = |bench: &Bench| bench.due().is_some_and(|due| due >= Step::Propose);
    // Before cards are there, it is not known yet what a patch is told.
    let is_early = !is_due(&bench);
    if !is_early {
        programs(ctx, &bench, args, (&patches, last))?;
    }
    consent(ctx, &bench, args, (!patches.is_empty(), last))?;
    let design = args.confirm.design()?;
    let (mut taken, mut before, mut waits) = (Run::default(), None, None);
    let mut waiting = patches.as_slice();
    loop {
        if !waiting.is_empty() && is_due(&bench) && last >= Step::Propose {
            if is_early {
                programs(ctx, &bench, args, (waiting, last))?;
            }
            propose(ctx, &mut bench, &mut taken, waiting)?;
            waiting = &[];
        }
        let ports = &mut asked.ports(ctx, &bench);
        let on = (before, last);
        let done = match steps::advance(&mut bench, ports, on, design.as_ref())? {
            Progress::Done(done) => done,
            Progress::Waits(wait) => {
                waits = Some(wait);
                break;
            }
            Progress::Idle => break,
        };
        taken.add(&mut bench, &done)?;
        before = Some(done.step());
    }
    for (file, _) in waiting {
        let (file, id) = (rubric::source(file), &bench.id);
        ctx.warn(match bench.due() {
            None => format!("{file} is not proposed: {id} has ended"),
            Some(_) => {
                format!("{file} is not proposed: the run ends before {id} waits for patches")
            }
        });
    }
    Ok(taken.answer(&bench, waits))
}
