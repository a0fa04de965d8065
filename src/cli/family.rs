//! `clover family`: tests that share one error rate.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::id::FamilyId;
use crate::event::payload::manifest::FamilyMethod;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Micro;
use crate::num::math;
use crate::projection::gates::Closed;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::manifests::Family;
use crate::projection::manifests::Manifests;
use crate::session::gate::GateError;
use crate::session::gate::family as families;
use crate::session::gate::family::FamilyTerms;
use crate::workflow::gates::design;
use crate::workflow::gates::family;
use crate::workflow::gates::family::Merged;

const HELP: &str = "clover family open --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Open a family before its first member is registered
    #[command(
        override_usage = "clover family open ID --method NAME --alpha A --members N --membership TEXT",
        after_help = "Example:\n  clover family open loop --method elond --alpha 0.05 --members 50 \\\n    --membership 'one gate a generation'"
    )]
    Open(OpenArgs),
    /// Close a family: its procedure says which claims hold
    #[command(after_help = "Example:\n  clover family close loop")]
    Close(CloseArgs),
    /// A family, its members and what they spent
    #[command(after_help = "Example:\n  clover family show loop")]
    Show(ShowArgs),
    /// Every family
    #[command(after_help = "Example:\n  clover family list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
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
pub(super) struct CloseArgs {
    /// The family
    pub id: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The family
    pub id: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Open(args) => open(ctx, &args),
        Verb::Close(args) => close(ctx, &args),
        Verb::Show(args) => show(ctx, &args.id),
        Verb::List => list(ctx),
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

fn word(method: FamilyMethod) -> &'static str {
    let found = METHODS.iter().find(|(_, of)| *of == method);
    found.map_or("", |(word, _)| word)
}

fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<Answer, CliError> {
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

fn close(ctx: &mut Ctx<'_>, args: &CloseArgs) -> Result<Answer, CliError> {
    let id = family_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = families::close(&mut ctx.ports(), &ledger, &id)?;
    let rejected = submission.terms.rejected.iter();
    let holds: Vec<_> = rejected.map(ToString::to_string).collect();
    let mut answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    answer.data["holds"] = json!(holds);
    if !args.dry_run {
        let list = if holds.is_empty() {
            "none".to_owned()
        } else {
            holds.join(", ")
        };
        answer.line(&format!("claims that hold: {list}"));
    }
    Ok(answer.with_next(format!("clover family show {id}", id = shell::word(&id))))
}

fn show(ctx: &mut Ctx<'_>, id: &str) -> Result<Answer, CliError> {
    let id = family_id(id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let Some(of) = state.fold::<Manifests>().families.get(&id) else {
        return Err(GateError::NoFamily(id).into());
    };
    let gates = state.fold::<Gates>();
    let closed = gates.closed.get(&id);
    let mut answer = Answer::new(
        ui::pairs(&[
            ("family", id.to_string()),
            ("method", word(of.method).to_owned()),
            (
                "alpha",
                match of.method {
                    FamilyMethod::Spend => {
                        format!("{} of {} millionths taken", of.spent(), of.alpha)
                    }
                    _ => format!("{} millionths", of.alpha),
                },
            ),
            (
                "members",
                format!("{} of {}", of.joined.len(), of.members_max),
            ),
            (
                "closed",
                closed.map_or("no".to_owned(), |one| format!("seq {}", one.seq)),
            ),
        ]),
        json!({"family": of, "closed": closed}),
    );
    let more = closed.is_none() && (of.joined.len() as u64) < of.members_max;
    let next_alpha = more.then(|| of.alpha_of(None).max(0));
    answer.data["next_alpha_micro"] = json!(next_alpha);
    if let Some(alpha) = next_alpha {
        let held = of.rejected.len();
        let why = match of.method {
            FamilyMethod::Elond => format!(
                ": member {} after {held} claim{} that held",
                of.joined.len() + 1,
                if held == 1 { "" } else { "s" }
            ),
            FamilyMethod::Spend => ": what is left".to_owned(),
            _ => String::new(),
        };
        answer.line(&format!(
            "the next member's alpha_micro may be {alpha}{why}"
        ));
    }
    members(&mut answer, (of, gates), closed);
    together(&mut answer, &family::merged(state, &id), of.members_max);
    if let Some(found) = family::loop_of(state, &id) {
        looped(&mut answer, &found, of);
    }
    let next = match closed {
        Some(_) => "clover gate list".to_owned(),
        None if of.joined.is_empty() => "clover prereg new --template gate".to_owned(),
        None => format!("clover family close {id}", id = shell::word(&id)),
    };
    Ok(answer.with_next(next))
}

/// A table of the members: what each has shown, past what it ends, and what the closing found.
fn members(answer: &mut Answer, (of, gates): (&Family, &Gates), closed: Option<&Closed>) {
    let rows = of.joined.iter().map(|(member, alpha)| {
        let gate = gates.by_id.get(member);
        let decided = gate.and_then(|gate| gate.decided);
        vec![
            member.to_string(),
            alpha.to_string(),
            gate.map_or("-".to_owned(), |gate| {
                format!("{:.4}", Gate::log_e(gate).value())
            }),
            format!("{:.4}", design::ln_stop(*alpha, Some(of))),
            decided.map_or("open".to_owned(), |one| {
                let word = json!(one.outcome);
                word.as_str().unwrap_or_default().to_owned()
            }),
            closed.map_or("-".to_owned(), |one| {
                let holds = one.rejected.contains(member);
                if holds { "holds" } else { "does not hold" }.to_owned()
            }),
        ]
    });
    let head = ["member", "alpha", "log e", "ends past", "decided", "claim"];
    answer.text.push_str(&ui::table(&head, rows.collect()));
}

/// What members that test one hypothesis say of it.
fn together(answer: &mut Answer, merged: &[Merged], members_max: u64) {
    for one in merged {
        let names: Vec<_> = one.members.iter().map(ToString::to_string).collect();
        answer.line(&format!("of one hypothesis: {}", names.join(", ")));
        answer.line(&format!(
            "  their mean over {members_max} members decides nothing: log e {:.4}, p {:.4}",
            one.log_e, one.p
        ));
    }
    answer.data["merged"] = json!(merged);
}

/// What the generations of a loop say together.
fn looped(answer: &mut Answer, found: &family::Loop, of: &Family) {
    let alpha = of.alpha as f64 / 1e6;
    answer.line(&format!(
        "the loop, {} of {} members one after the other: is any candidate better?",
        found.members.len(),
        of.joined.len()
    ));
    let word = if found.found { "yes" } else { "not shown" };
    answer.line(&format!(
        "  product of their e-values: log e {:.4} of {:.4}, p {:.4}: {word}; it promotes none of them",
        found.log_e,
        -math::ln(alpha),
        found.p
    ));
    answer.data["loop"] = json!(found);
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let families = &state.fold::<Manifests>().families;
    let closed = &state.fold::<Gates>().closed;
    let rows: Vec<_> = families
        .iter()
        .map(|(id, of)| {
            vec![
                id.to_string(),
                word(of.method).to_owned(),
                format!("{} of {}", of.spent(), of.alpha),
                format!("{} of {}", of.joined.len(), of.members_max),
                closed.get(id).map_or("open".to_owned(), |one| {
                    format!("closed at seq {}", one.seq)
                }),
            ]
        })
        .collect();
    let data = json!({"families": families});
    if rows.is_empty() {
        return Ok(Answer::new("no families\n", data).with_next("clover family open ID"));
    }
    let head = ["family", "method", "alpha taken", "members", "standing"];
    Ok(Answer::new(ui::table(&head, rows), data).with_next("clover family show ID"))
}
