//! The one look at confirm: a charged peek, the labels, and the gates on them.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::cast;
use crate::cli::cast::Part;
use crate::cli::confirm;
use crate::cli::confirm::Opening;
use crate::cli::confirm::SealArgs;
use crate::cli::confirm::UnsealArgs;
use crate::cli::ctx::Ctx;
use crate::cli::error;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground::Done;
use crate::cli::iterate::sequential;
use crate::cli::ui::Answer;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::predicate::ConfirmUnsealed;
use crate::event::payload::predicate::GateSplit;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Breach;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::RuleName;
use crate::projection::budgets::Budgets;
use crate::projection::decisions;
use crate::projection::designs::Designs;
use crate::workflow::iterate::record::Step;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConfirmArgs {
    /// The iteration
    pub id: String,
    /// The design of the sealed labels; default the only one for confirm
    #[arg(long, value_name = "ID")]
    pub design: Option<String>,
    /// The custodian's key, where several could open
    #[arg(long, value_name = "KEY")]
    pub custodian: Option<String>,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

pub(super) fn confirm(ctx: &mut Ctx<'_>, args: &ConfirmArgs) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, &args.id)?;
    bench.only(Step::Confirm)?;
    let (text, data, appended) = confirm_on(ctx, &mut bench, args)?;
    Ok(bench.answer(text, data, &appended))
}

/// The design whose sealed labels confirm.
fn design(bench: &Bench, args: &ConfirmArgs) -> Result<String, CliError> {
    if let Some(named) = &args.design {
        return Ok(named.clone());
    }
    let all = bench.ledger.state().fold::<Designs>();
    let of = all.by_experiment.get(&bench.record.experiment);
    let designs = of.iter().flat_map(|of| &of.designs);
    let mut confirm = designs.filter(|(_, design)| {
        let purpose = design.registered.as_ref().map(|of| of.purpose);
        purpose == Some(DesignPurpose::Confirm) && design.sealed > design.revealed
    });
    match (confirm.next(), confirm.next()) {
        (Some((id, _)), None) => Ok(id.to_string()),
        (None, _) => Err(CliError::refused(
            "no design with sealed labels for confirm",
            "clover import cje PATH --seal DESIGN --reveal-by TIME",
        )),
        (Some(_), Some(_)) => Err(CliError::usage(
            "several designs hold sealed labels for confirm",
            "the same command with --design ID",
        )),
    }
}

/// Whether labels are still to be opened; a run that was cut between the unsealing and the last label goes on.
fn opens(bench: &Bench, args: &ConfirmArgs) -> bool {
    let waits = design(bench, args).is_ok();
    bench.record.unsealed.is_none() || (waits && bench.record.confirm_through().is_none())
}

/// Finds every key that the look at confirm needs; answers with the custodian's, where one key both opens and pays.
/// Nothing is charged or said where one lacks.
pub(super) fn keys(
    ctx: &Ctx<'_>,
    bench: &Bench,
    args: &ConfirmArgs,
) -> Result<Option<String>, CliError> {
    let state = bench.ledger.state();
    let mut parts = vec![Part::by_key(state, Kind::GateEvaluated)];
    if opens(bench, args) {
        let (option, named) = ("--custodian", args.custodian.as_ref());
        parts.push(Part::by(state, Kind::LabelRevealed, option, named));
        let plan = bench.record.opened.said.params.design.as_ref();
        let accounts = &state.fold::<Budgets>().accounts;
        if let Some(account) = plan.and_then(|plan| accounts.get(&plan.peek_account)) {
            parts.push(Part::charge(&account.spenders, option, named));
        }
    }
    let found = cast::of_parts(ctx, state, &parts)?;
    let mut of_custodian = found.into_iter().skip(1);
    let opener = of_custodian.next().flatten();
    let is_one = of_custodian.all(|payer| payer == opener);
    Ok(opener.filter(|_| is_one))
}

pub(super) fn confirm_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    args: &ConfirmArgs,
) -> Result<Done, CliError> {
    let custodian = keys(ctx, bench, args)?;
    let course = bench.take_course()?;
    let root = course.loaded.confirm_root;
    let (mut text, mut data, mut all) = (String::new(), json!({}), Vec::new());
    let opens = opens(bench, args);
    if sequential::is_registered(&bench.record) {
        let opening = if opens {
            unseal(ctx, bench, (args, custodian), root, Shows::InOrder)?
        } else {
            None
        };
        all.extend(sequential::looks(ctx, bench, &course, opening.as_ref())?);
        let (looks, looks_data) = sequential::shown(&bench.record);
        text.push_str(&looks);
        if bench.record.saves_labels() {
            bench.keep(course);
            return Ok((text, json!({"hypotheses": [], "looks": looks_data}), all));
        }
        data["looks"] = looks_data;
    } else if opens {
        unseal(ctx, bench, (args, custodian), root, Shows::All)?;
    }
    let size = bench.ledger.size();
    let unsealed = course.unsealed(&bench.ledger, &bench.record, size);
    let unsealed = unsealed.map_err(failed)?;
    let mut judged = Vec::new();
    for hypothesis in &course.sealed(&bench.record).map_err(failed)? {
        let names: Vec<String> = hypothesis
            .patches
            .iter()
            .map(|hash| gates::name_of(&bench.record, *hash))
            .collect();
        if !bench.record.is_judged(hypothesis.hash, GateSplit::Confirm) {
            let gates = course.on_confirm(&unsealed, hypothesis).map_err(failed)?;
            let gates: Vec<Payload> = gates.into_iter().map(Payload::from).collect();
            all.extend(bench.say(ctx, gates)?);
        }
        text.push_str(&format!("{} on confirm\n", names.join(" + ")));
        let (table, gates) = gates::judged(&bench.record, hypothesis.hash, GateSplit::Confirm);
        text.push_str(&table);
        judged.push(json!({"patches": names, "gates": gates}));
    }
    bench.keep(course);
    data["hypotheses"] = judged.into();
    Ok((text, data, all))
}

/// Which labels an unsealing shows.
#[derive(Clone, Copy)]
enum Shows {
    /// All of them.
    All,
    /// None yet: they come in order.
    InOrder,
}

/// Charges a peek, says that confirm is unsealed, and reveals its labels, or leaves them to come in order.
fn unseal(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    (args, custodian): (&ConfirmArgs, Option<String>),
    confirm_root: crate::event::id::Root,
    shows: Shows,
) -> Result<Option<Opening>, CliError> {
    let design = design(bench, args)?;
    let (id, experiment) = (bench.id.clone(), bench.record.experiment.clone());
    let plan = bench.record.opened.said.params.design.as_ref();
    let account = plan.map(|design| design.peek_account.to_string());
    let opens = UnsealArgs {
        seal: SealArgs {
            design,
            experiment: Some(experiment.to_string()),
            identity: args.identity.clone(),
        },
        account: account.unwrap_or_default(),
        purpose: format!("iteration {id}"),
        yes: args.yes,
        again: Some(format!(
            "clover iterate confirm {id}",
            id = shell::word(&id)
        )),
    };
    let sealed = bench.record.sealed.as_ref().map(|sealed| sealed.id);
    let is_open = bench.record.unsealed.is_some();
    let at = confirm::now(&bench.ledger);
    let shut = decisions::check_unsealing(bench.ledger.state(), &experiment, confirm_root, at);
    if let Some(unmet) = shut.err().filter(|_| !is_open) {
        // Nothing is paid for what could not be opened.
        let found = format!("{}; no peek was charged", unmet.found);
        return Err(error::refusal(
            &Breach::new(RuleName::Sealing, unmet.expected, found),
            None,
        ));
    }
    let mut between = |ledger: &mut Ledger, charge: EventId, signer: &Signer| {
        let Some(sealed) = sealed.filter(|_| !is_open) else {
            return Ok(());
        };
        let said = ConfirmUnsealed {
            charge,
            confirm_root,
            iteration: id.clone(),
            sealed,
        };
        ledger.append(&[Command::new(said, Some(experiment.clone()))], signer)?;
        Ok(())
    };
    let kept = ctx.globals.key.clone();
    ctx.globals.key = custodian;
    let opened = match shows {
        Shows::All => {
            confirm::open(ctx, &mut bench.ledger, &opens, Some(&mut between)).map(|_| None)
        }
        Shows::InOrder => {
            confirm::begin(ctx, &mut bench.ledger, &opens, Some(&mut between)).map(Result::ok)
        }
    };
    ctx.globals.key = kept;
    let opened = opened?;
    bench.again()?;
    Ok(opened)
}
