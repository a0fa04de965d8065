//! `clover audit transport`: does calibration hold on labels that it never saw? Asked once of each policy and design.

use crate::cli::confirm;
use crate::cli::confirm::ConfirmSealArgs;
use crate::cli::confirm::UnsealArgs;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::FitArgs;
use crate::cli::transport_environments::UntestedFamilies;
use crate::cli::transport_probes;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ManifestId;
use crate::event::payload::audit::AuditTerms;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::manifest::Manifest;
use crate::ground::shell;
use crate::ledger::rulebooks::Question;
use crate::num::Count;
use crate::num::Micro;
use crate::projection::designs::Design;
use crate::projection::designs::Designs;
use crate::projection::drifts;
use crate::projection::drifts::AuditPlan;
use crate::projection::manifests::ManifestVersion;
use crate::projection::manifests::Manifests;
use crate::session::SessionError;
use crate::session::confirm as confirm_rows;
use crate::session::confirm::Peek;
use crate::session::confirm::clusters_waiting;
use crate::session::estimates::Estimation;
use crate::session::ports::KeyNeed;
use crate::session::ports::Keys;
use crate::session::ports::Seat;
use crate::view::View;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::transport;
use crate::view::transport::AuditOutlook;
use crate::view::transport::Audits;
use crate::workflow::estimate::audit;
use crate::workflow::estimate::audit::Ask;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::planning;
use crate::workflow::estimate::rows::Gathered;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Open the probes once, charged, and grade each policy and each environment that a plan names
    #[command(after_help = "Example:\n  clover audit transport --margin 0.05 --yes")]
    Transport(Args),
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Audit these policies only; may repeat
    #[arg(long = "policy", value_name = "ID")]
    pub policies: Vec<String>,
    /// The design of the probes; default the one for audit that has labels
    #[arg(long, value_name = "ID")]
    pub design: Option<String>,
    /// Largest acceptable mean residual; above 0.05 of the scale it needs a plan [else that]
    #[arg(long, value_name = "D")]
    pub margin: Option<String>,
    /// Error rate of the family, at most 0.05; a higher one needs a plan [else 0.05]
    #[arg(long, value_name = "P")]
    pub alpha: Option<String>,
    /// The account of peeks
    #[arg(long, value_name = "ID", default_value = "confirm-peeks")]
    pub account: String,
    /// Do not ask before opening
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub fit: FitArgs,
}

const HELP: &str = "clover audit transport --help";
/// What the peek of an audit is charged for.
const PURPOSE: &str = "transport audit";

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let Verb::Transport(args) = verb;
    audited(ctx, args)
}

/// The design of the probes: the one that is named, else the one for audit that has labels.
fn design(read: &Estimation, named: Option<&str>) -> Result<DesignId, CliError> {
    let designs = read.ledger.state().fold::<Designs>();
    let of = designs.by_experiment.get(&read.experiment);
    let is_audit = |design: &Design| {
        let registered = design.registered.as_ref();
        registered.is_some_and(|of| of.purpose == DesignPurpose::Audit)
            && design.open + design.sealed > 0
    };
    let all = of.into_iter().flat_map(|of| &of.designs);
    let found: Vec<&DesignId> = all
        .filter(|(id, design)| is_audit(design) && named.is_none_or(|name| name == id.as_str()))
        .map(|(id, _)| id)
        .collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let what = named.map_or(String::new(), |name| format!(" {name}"));
            let message = format!(
                "no label design{what} for audit with labels in {}",
                read.experiment
            );
            Err(CliError::not_found(message, "clover label design list"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|id| id.as_str()).collect();
            let message = format!("several designs are for audit: {}", names.join(", "));
            Err(CliError::usage(
                message,
                "the same command with --design ID",
            ))
        }
    }
}

/// How audits are graded: as the experiment's manifest has it, else as asked, with a family that is still to be counted.
fn graded(
    ctx: &mut Ctx<'_>,
    read: &Estimation,
    design: &DesignId,
    args: &Args,
) -> Result<(AuditTerms, Option<Manifest>), CliError> {
    let state = read.ledger.state();
    let manifests = state.fold::<Manifests>();
    let opened = drifts::probe_opened(state, &read.experiment, design);
    let usual = drifts::usual::usual_margin(state, &read.experiment, read.terms.label_scale);
    if state.asks(Question::FirstPlan) {
        // Sealed probes are opened by the next entries: what is in force now is what grades them.
        let opened = opened.unwrap_or(read.ledger.size());
        return match drifts::audit_plan(manifests, &read.experiment, opened) {
            AuditPlan::Graded(version) => planned(version, args),
            AuditPlan::Withdrawn(id) => {
                ctx.warn(format!(
                    "manifest {id} planned audits by {design} and was changed after a probe was open: no audit by {design} passes; register a design with new labels to audit under another plan"
                ));
                Ok((asked(args, usual)?, None))
            }
            AuditPlan::Unplanned => {
                let plans = |of: &Manifest| of.transport.clone();
                for (id, ..) in drifts::planned(manifests, &read.experiment, plans) {
                    ctx.warn(late(id, design, opened));
                }
                let named = read.terms.label_scale;
                let named = named.filter(|_| !state.asks(Question::DeclaredMargin));
                let scale = state.fold::<Designs>().scale(&read.experiment).or(named);
                Ok((within_usual(asked(args, usual)?, usual, scale)?, None))
            }
        };
    }
    let records = manifests.by_id.values().filter(|record| {
        record.experiment.as_ref() == Some(&read.experiment) && record.superseded_by.is_none()
    });
    let mut timely = Vec::new();
    for record in records {
        let Some(version) = record
            .in_force()
            .filter(|of| of.manifest.transport.is_some())
        else {
            continue;
        };
        if record.plans_audits_before(opened) {
            timely.push(version);
        } else {
            let id = &version.manifest.manifest;
            let opened = opened.unwrap_or_default();
            ctx.warn(late(id, design, opened));
        }
    }
    match timely.as_slice() {
        [] => Ok((asked(args, usual)?, None)),
        [one] => planned(one, args),
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|of| of.manifest.manifest.as_str())
                .collect();
            let message = format!(
                "several manifests plan audits of transport: {}",
                names.join(", ")
            );
            Err(CliError::refused(
                message,
                "clover log --kind manifest.registered",
            ))
        }
    }
}

/// What is said of a plan that came too late for the probes of a design.
fn late(id: &ManifestId, design: &DesignId, opened: u64) -> String {
    format!(
        "manifest {id} came into force after a probe of {design} was open, at seq {opened}: it plans no audit by them; register a design with new labels to audit under it"
    )
}

/// How a manifest has audits graded.
fn planned(
    version: &ManifestVersion,
    args: &Args,
) -> Result<(AuditTerms, Option<Manifest>), CliError> {
    let manifest = &version.manifest;
    let plan = manifest.transport.as_ref().expect("BUG: filtered for it");
    if args.margin.is_some() || args.alpha.is_some() {
        return Err(CliError::refused(
            format!(
                "manifest {} binds margin and alpha of audits",
                manifest.manifest
            ),
            "the same command without --margin and --alpha",
        ));
    }
    registered(manifest, &args.policies)?;
    Ok((audit::planned(plan, version.digest), Some(manifest.clone())))
}

/// Numbers that a passed audit may be graded by where nobody planned it: the usual ones, or stricter ones.
fn within_usual(
    terms: AuditTerms,
    usual: i64,
    scale: Option<ScaleEnds>,
) -> Result<AuditTerms, CliError> {
    let margin = terms.margin_micro.map_or(0, Micro::value);
    let of = scale.map_or(String::new(), |of| {
        format!(" of labels from {} to {}", of.low_micro, of.high_micro)
    });
    for (flag, found, most, of) in [
        ("--margin", margin, usual, of.as_str()),
        (
            "--alpha",
            terms.alpha_micro.value(),
            drifts::usual::USUAL_ALPHA,
            "",
        ),
    ] {
        if found > most {
            let [found, most] = [found, most].map(|of| Micro::new(of).unwrap_or_default());
            let message = format!(
                "{flag} {found} is above the usual {most}{of}: a wider audit needs a plan that was signed before its probes are open"
            );
            return Err(CliError::refused(
                message,
                "clover prereg new --template transport -o audits.yaml",
            ));
        }
    }
    Ok(terms)
}

/// How audits are graded where no manifest plans them.
fn asked(args: &Args, usual: i64) -> Result<AuditTerms, CliError> {
    let mut terms = audit::usual(1, usual);
    if let Some(margin) = &args.margin {
        let parsed = Micro::parse(margin).ok().filter(|(_, rounded)| !rounded);
        let above = parsed.filter(|(value, _)| value.value() > 0);
        let (value, _) = above.ok_or_else(|| {
            CliError::usage(
                format!("--margin {margin:?}: expected a number above 0"),
                HELP,
            )
        })?;
        terms.margin_micro = Some(value);
    }
    if let Some(alpha) = &args.alpha {
        terms.alpha_micro = estimate::level("alpha", alpha)?;
    }
    Ok(terms)
}

/// Refuses what is on record before anything is opened.
fn not_again(read: &Estimation, design: &DesignId, args: &Args) -> Result<(), CliError> {
    for policy in &args.policies {
        if let Some(seq) = transport_probes::on_record(read, design, policy)? {
            return Err(transport_probes::finished(
                read,
                (design, None),
                (policy, seq),
            )?);
        }
    }
    Ok(())
}

/// Refuses a policy that has no score before anything is charged: which of them have probes is known once these are open.
fn are_scored(ctx: &Ctx<'_>, read: &mut Estimation, args: &Args) -> Result<(), CliError> {
    if args.policies.is_empty() {
        return Ok(());
    }
    let gathered = read.gather(ctx.as_of)?;
    let scored = gathered.dataset.policies.iter().map(|of| of.name.as_str());
    let scored: Vec<&str> = scored.collect();
    match args
        .policies
        .iter()
        .find(|of| !scored.contains(&of.as_str()))
    {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "no score of policy {other} in {}: its policies are {}",
                read.experiment,
                scored.join(", ")
            );
            Err(CliError::not_found(message, "clover estimate"))
        }
    }
}

/// What the probes that wait can show, before they are paid for: by the computation of `plan audit`. Refuses an audit without
/// a calibrator, and one that no key could record.
fn outlook(
    ctx: &mut Ctx<'_>,
    read: &mut Estimation,
    design: &DesignId,
    ((terms, manifest), is_dry): ((&AuditTerms, Option<&Manifest>), bool),
) -> Result<AuditOutlook, CliError> {
    let need = KeyNeed::runner(Kind::EstimateRecorded);
    if !is_dry {
        let checked = ctx.ports().check(read.ledger.state(), &[need]);
        checked.map_err(SessionError::from)?;
    }
    let probes = clusters_waiting(&read.ledger, &read.experiment, design)?;
    let of = (&read.experiment, design);
    let unscored = confirm_rows::waiting_without_score(&read.ledger, of, &read.terms.judge)?;
    let asks = read.ledger.state().asks(Question::TimelyProbes);
    let found = estimate::found(ctx, read)?;
    if let Err(why) = &found.analysis.calibration {
        return Err(no_calibrator(&why.to_string()));
    }
    let mut terms = terms.clone();
    if manifest.is_none() {
        let least = drifts::usual::family_least(read.ledger.state(), &read.experiment, design);
        let family = least.max(probes.len().max(1) as u64);
        terms.family_size = Count::new(family).unwrap_or_default();
    }
    let all = found.analysis.policies.len();
    let without = (0..all).map(|policy| found.name(policy));
    let without = without.filter(|policy| !probes.contains_key(policy));
    let short = transport_probes::short_of_draw(read, design, &probes);
    Ok(AuditOutlook {
        short,
        ends: found.analysis.output_scale.ends(),
        unscored: asks.then_some(unscored),
        without: without.collect(),
        passes: planning::audits_pass(&found, &terms, &probes),
        margin: terms.margin_micro.unwrap_or_default(),
        probes,
    })
}

fn no_calibrator(why: &str) -> CliError {
    CliError::refused(
        format!("there is no calibrator to audit: {why}"),
        "clover label design list",
    )
}

/// Opens what is sealed of a design, charged; of a dry run, what that would do.
fn open(
    ctx: &mut Ctx<'_>,
    read: &mut Estimation,
    design: &DesignId,
    (args, graded): (&Args, (&AuditTerms, Option<&Manifest>)),
) -> Result<Option<View>, CliError> {
    let fold = read.ledger.state().fold::<Designs>();
    let waiting = fold
        .design(&read.experiment, design)
        .map_or(0, |design| design.sealed.saturating_sub(design.revealed));
    if waiting > 0 {
        are_scored(ctx, read, args)?;
        let is_dry = args.fit.dry_run;
        let outlook = outlook(ctx, read, design, (graded, is_dry))?;
        if is_dry {
            let peek = Peek {
                experiment: read.experiment.clone(),
                design: design.clone(),
                account: args.account.clone(),
                purpose: PURPOSE.to_owned(),
                seat: Seat::Runner,
            };
            confirm_rows::foresee(&read.ledger, &peek)?;
            let answer = transport::waiting(&args.account, design, waiting, &outlook);
            return Ok(Some(answer));
        }
        let outlook = outlook.words();
        if args.yes {
            ctx.note(&outlook);
        }
        let unseal = UnsealArgs {
            outlook: Some(outlook),
            seal: ConfirmSealArgs {
                design: design.as_str().to_owned(),
                experiment: Some(read.experiment.as_str().to_owned()),
                identity: None,
            },
            account: args.account.clone(),
            purpose: PURPOSE.to_owned(),
            yes: args.yes,
            again: Some(args.again(design)),
        };
        confirm::open(ctx, &read.home, &mut read.ledger, &unseal)?;
    }
    Ok(None)
}

fn audited(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let mut read = estimate::open(ctx, &args.fit)?;
    let design = design(&read, args.design.as_deref())?;
    not_again(&read, &design, args)?;
    // What a manifest binds is held to before anything is opened.
    let (mut terms, manifest) = graded(ctx, &read, &design, args)?;
    let plan = manifest.as_ref().zip(terms.manifest);
    let untested = UntestedFamilies::of(&read, &design, plan)?;
    read.places.extend(untested.fields());
    if !untested.is_empty() {
        untested.are_there(&read.gather(ctx.as_of)?)?;
    }
    let of = (args, (&terms, manifest.as_ref()));
    if let Some(answer) = open(ctx, &mut read, &design, of)? {
        return Ok(answer);
    }
    let gathered = read.gather(ctx.as_of)?;
    let of = (args, (&terms, manifest.as_ref()), untested.is_empty());
    let wanted = wanted(&read, &gathered, &design, of)?;
    if manifest.is_none() {
        terms.family_size = transport_probes::family(&read, &design, wanted.probed);
    }
    if !wanted.unplanned.is_empty() {
        let names = wanted.unplanned.join(", ");
        ctx.warn(format!(
            "no manifest plans an audit of {names}: its probes of {design} are open, and it is not audited by them"
        ));
    }
    let state = read.ledger.state();
    let place = (&read.experiment, &design);
    let ask = Ask {
        obstacles: &|found, policy, inside| {
            transport_probes::obstacles_of(state, place, found, policy, inside)
        },
        inside: state.asks(Question::InsideProbes),
        design: &design,
        policies: &wanted.places,
        terms: &terms,
        form: Form::asked(read.ledger.state()),
        timely: read.terms.environment.is_some()
            || read.ledger.state().asks(Question::TimelyProbes),
    };
    let (found, tested) =
        audit::audit(gathered, &read.terms, &ask).map_err(|error| estimate::refused(&error))?;
    let environments = untested.test((state, &read.experiment), &found)?;
    if tested.is_empty() && environments.is_empty() {
        return Err(match &found.analysis.calibration {
            Err(why) => no_calibrator(&why.to_string()),
            Ok(_) => transport_probes::unscored(&design),
        });
    }
    let basis = ClaimBasis::of(state, &read.experiment, &read.terms.judge);
    let shown = Audits {
        design: &design,
        drawn: transport_probes::drawn(&read, &design, &tested),
        ends: found.analysis.output_scale.ends(),
        usual: drifts::usual::usual_margin(state, &read.experiment, read.terms.label_scale),
        environments,
        tainted: transport_probes::tainted(state, place, &found, &tested),
        tested,
        terms: &terms,
        basis: &basis,
        missing: wanted.missing,
    };
    transport_probes::are_all_labelled(&shown, args)?;
    recorded(ctx, read, (&found, shown), args)
}

/// Puts audits on record, unless it is a dry run, and shows them.
fn recorded(
    ctx: &mut Ctx<'_>,
    mut read: Estimation,
    (found, shown): (&Found, Audits<'_>),
    args: &Args,
) -> Result<View, CliError> {
    let of_environments = shown.environments.iter().cloned().map(Payload::from);
    let events = shown.tested.iter().cloned().map(Payload::from);
    // A policy is audited by probes that have tested every family before.
    let events = of_environments.chain(events).collect();
    let recorded = if args.fit.dry_run {
        None
    } else {
        Some(estimate::append(ctx, &mut read, found, events)?)
    };
    let state = read.ledger.state();
    let basis = ClaimBasis::of(state, &read.experiment, &read.terms.judge);
    let shown = Audits {
        basis: &basis,
        ..shown
    };
    Ok(shown.view(recorded))
}

/// What is audited, and what is not.
struct AuditSelection {
    /// Positions of the policies to audit.
    places: Vec<usize>,
    /// How many policies the design has probes of.
    probed: usize,
    /// Policies with probes that the manifest does not plan.
    unplanned: Vec<String>,
    /// Policies that the manifest plans, without probes.
    missing: Vec<String>,
}

/// The policies to audit: those that are asked for, else all that have probes and, where a manifest plans audits, are in it.
fn wanted(
    read: &Estimation,
    gathered: &Gathered,
    design: &DesignId,
    (args, (terms, manifest), is_all): (&Args, (&AuditTerms, Option<&Manifest>), bool),
) -> Result<AuditSelection, CliError> {
    let probed = audit::probed(gathered, design);
    let name = |policy: usize| gathered.dataset.policies[policy].name.as_str();
    for asked in &args.policies {
        if !probed.iter().any(|&policy| name(policy) == asked) {
            let message =
                format!("design {design} has no open label of a scored response of {asked}");
            return Err(CliError::not_found(message, "clover label design list"));
        }
    }
    let planned = manifest.map(environments);
    let mut found = AuditSelection {
        places: Vec::new(),
        probed: probed.len(),
        unplanned: Vec::new(),
        missing: Vec::new(),
    };
    for planned in planned.iter().flatten() {
        if args.policies.is_empty() && !probed.iter().any(|&policy| name(policy) == *planned) {
            found.missing.push((*planned).to_owned());
        }
    }
    let mut first = None;
    for &policy in &probed {
        let is_planned = planned.as_ref().is_none_or(|of| of.contains(&name(policy)));
        if !is_planned {
            found.unplanned.push(name(policy).to_owned());
            continue;
        }
        let asked =
            args.policies.is_empty() || args.policies.iter().any(|asked| asked == name(policy));
        match transport_probes::on_record(read, design, name(policy))? {
            Some(seq) => first = first.or(Some((policy, seq))),
            None if asked => found.places.push(policy),
            None => {}
        }
    }
    match first {
        Some((policy, seq)) if found.places.is_empty() && is_all => Err(
            transport_probes::finished(read, (design, Some(terms)), (name(policy), seq))?,
        ),
        _ => Ok(found),
    }
}

/// Policies that a manifest plans audits of.
fn environments(manifest: &Manifest) -> Vec<&str> {
    let plan = manifest.transport.iter();
    let all = plan.flat_map(|plan| &plan.environments);
    let all = all.filter(|of| of.family.is_none());
    all.map(|of| of.environment.as_str()).collect()
}

/// A manifest names what may be audited.
fn registered(manifest: &Manifest, asked: &[String]) -> Result<(), CliError> {
    let names = environments(manifest);
    for name in asked {
        if !names.contains(&name.as_str()) {
            let message = format!(
                "manifest {} does not plan an audit of {name}; it plans {}",
                manifest.manifest,
                names.join(", ")
            );
            let next = format!("clover prereg show {}", shell::word(&manifest.manifest));
            return Err(CliError::refused(message, next));
        }
    }
    Ok(())
}
