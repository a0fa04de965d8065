//! `clover family`: tests that share one error rate.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::event::id::FamilyId;
use crate::event::payload::manifest::FamilyMethod;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Micro;
use crate::session::gate::family as families;
use crate::session::gate::family::FamilyTerms;
use crate::view::View;
use crate::view::family;

const HELP: &str = "clover family open --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Open a family before its first member is registered
    #[command(
        override_usage = "clover family open ID --method NAME --alpha A --members N --membership TEXT",
        after_help = "Example:\n  clover family open loop --method elond --alpha 0.05 --members 50 \\\n    --membership 'one gate a generation'"
    )]
    Open(FamilyOpenArgs),
    /// Close a family: its procedure says which claims hold
    #[command(after_help = "Example:\n  clover family close loop")]
    Close(FamilyCloseArgs),
    /// A family, its members and what they spent
    #[command(after_help = "Example:\n  clover family show loop")]
    Show(FamilyShowArgs),
    /// Every family
    #[command(after_help = "Example:\n  clover family list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct FamilyOpenArgs {
    /// The family
    pub id: String,
    /// spend, elond, ebh, `closed_ebh` or `closed_mean`
    #[arg(long, value_name = "NAME")]
    pub method: String,
    /// Its error rate, as a decimal number
    #[arg(long)]
    pub alpha: String,
    /// Most members
    #[arg(long, value_name = "N")]
    pub members: u64,
    /// Who belongs to it, in words
    #[arg(long)]
    pub membership: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct FamilyCloseArgs {
    /// The family
    pub id: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct FamilyShowArgs {
    /// The family
    pub id: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Open(args) => open(ctx, &args),
        Verb::Close(args) => close(ctx, &args),
        Verb::Show(args) => {
            let id = family_id(&args.id)?;
            let (_, ledger, at) = home::view(ctx)?;
            Ok(family::show(at.state(&ledger), &id)?)
        }
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(family::list(at.state(&ledger)))
        }
    }
}

fn family_id(id: &str) -> Result<FamilyId, CliError> {
    id.parse()
        .map_err(|error| CliError::usage(format!("family {id:?}: {error}"), "clover family list"))
}

/// A family's methods by their words.
const METHODS: [(&str, FamilyMethod); 5] = [
    ("closed_ebh", FamilyMethod::ClosedEbh),
    ("closed_mean", FamilyMethod::ClosedMean),
    ("ebh", FamilyMethod::Ebh),
    ("elond", FamilyMethod::Elond),
    ("spend", FamilyMethod::Spend),
];

fn open(ctx: &mut Ctx<'_>, args: &FamilyOpenArgs) -> Result<View, CliError> {
    let wrong = |message: String| CliError::usage(message, HELP);
    let method = METHODS.iter().find(|(word, _)| *word == args.method);
    let Some((_, method)) = method.copied() else {
        let words = METHODS.map(|(word, _)| word).join(", ");
        return Err(wrong(format!(
            "--method {:?}: expected one of {words}",
            args.method
        )));
    };
    let (alpha_micro, rounded) =
        Micro::parse(&args.alpha).map_err(|error| wrong(format!("--alpha: {error}")))?;
    if rounded {
        return Err(wrong("--alpha: expected at most six decimals".to_owned()));
    }
    if !(1..1_000_000).contains(&alpha_micro.value()) {
        let message = format!(
            "--alpha {}: expected a number above 0 and below 1, such as 0.05",
            args.alpha
        );
        return Err(wrong(message));
    }
    let members_max = Count::new(args.members)
        .ok_or_else(|| wrong("--members: expected at most 2^53 - 1".to_owned()))?;
    let terms = FamilyTerms {
        alpha_micro,
        family: family_id(&args.id)?,
        members_max,
        membership: key::text("membership", &args.membership)?,
        method,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = families::open(&mut ctx.ports(), &ledger, terms)?;
    submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)
}

fn close(ctx: &mut Ctx<'_>, args: &FamilyCloseArgs) -> Result<View, CliError> {
    let id = family_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = families::close(&mut ctx.ports(), &ledger, &id)?;
    let holds = submission.terms.rejected.clone();
    let question = format!(
        "close family {id}: {} claims hold, no member joins it any more, and nothing opens it again",
        holds.len()
    );
    let consent = submit::StepConsent {
        question: &question,
        yes: args.yes,
        again: &format!("clover family close {}", shell::word(&id)),
    };
    let view = submit::asked_gate_step(ctx, &mut ledger, &submission, args.dry_run, &consent)?;
    let next = format!("clover family show {id}", id = shell::word(&id));
    if args.dry_run {
        return Ok(view.with_next(next));
    }
    Ok(family::closed(view, holds).with_next(next))
}
