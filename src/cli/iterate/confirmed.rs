//! The one look at confirm: a charged peek, the labels, and the gates on them.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::confirm;
use crate::cli::confirm::SealArgs;
use crate::cli::confirm::UnsealArgs;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground::Done;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::predicate::ConfirmUnsealed;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::rubric::PatchProposed;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
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

pub(super) fn confirm_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    args: &ConfirmArgs,
) -> Result<Done, CliError> {
    let course = bench.take_course()?;
    // A run that was cut between the unsealing and the last label goes on.
    let waits = design(bench, args).is_ok();
    if bench.record.unsealed.is_none() || (waits && bench.record.confirm_through().is_none()) {
        let design = design(bench, args)?;
        unseal(ctx, bench, args, design, course.loaded.confirm_root)?;
    }
    let size = bench.ledger.size();
    let unsealed = course.unsealed(&bench.ledger.past(), &bench.record, size);
    let unsealed = unsealed.map_err(failed)?;
    let sealed = bench.record.sealed.clone();
    let hypotheses = sealed.map(|of| of.said.hypotheses).unwrap_or_default();
    let (mut text, mut data, mut all) = (String::new(), Vec::new(), Vec::new());
    for one in &hypotheses {
        let of: Vec<PatchProposed> = bench
            .record
            .proposed
            .iter()
            .filter(|patch| one.patches.contains(&patch.said.patch_hash))
            .map(|patch| patch.said.clone())
            .collect();
        let of: Vec<&PatchProposed> = of.iter().collect();
        let names: Vec<String> = of.iter().map(|patch| patch.patch.to_string()).collect();
        if !bench.record.is_judged(one.candidate, GateSplit::Confirm) {
            let hypothesis = course.hypothesis(&bench.record, &of).map_err(failed)?;
            let gates = course.on_confirm(&unsealed, &hypothesis).map_err(failed)?;
            let gates: Vec<Payload> = gates.into_iter().map(Payload::from).collect();
            all.extend(bench.say(ctx, gates)?);
        }
        text.push_str(&format!("{} on confirm\n", names.join(" + ")));
        let (table, gates) = gates::judged(&bench.record, one.candidate, GateSplit::Confirm);
        text.push_str(&table);
        data.push(json!({"patches": names, "gates": gates}));
    }
    bench.keep(course);
    Ok((text, json!({"hypotheses": data}), all))
}

/// Charges a peek, says that confirm is unsealed, and reveals its labels.
fn unseal(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    args: &ConfirmArgs,
    design: String,
    confirm_root: crate::event::id::Root,
) -> Result<(), CliError> {
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
        again: Some(format!("clover iterate confirm {id}")),
    };
    let sealed = bench.record.sealed.as_ref().map(|sealed| sealed.id);
    let is_open = bench.record.unsealed.is_some();
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
    if args.custodian.is_some() {
        ctx.globals.key.clone_from(&args.custodian);
    }
    let opened = confirm::open(ctx, &mut bench.ledger, &opens, &mut between);
    ctx.globals.key = kept;
    opened?;
    bench.again()
}
