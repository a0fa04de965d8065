//! `clover estimate --ope`: what logged responses of one policy say of others, and whether they can.

use std::collections::BTreeMap;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::EstimateEstimateArgs;
use crate::event::Payload;
use crate::event::id::PolicyId;
use crate::event::payload::estimated::Claim;
use crate::event::payload::ope::OpeDiagnosed;
use crate::event::payload::overlap::OverlapThresholds;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ledger::rulebooks::Question;
use crate::projection::drifts;
use crate::projection::manifests::Manifests;
use crate::session::estimates::Estimation;
use crate::view::View;
use crate::view::ope as view;
use crate::workflow::estimate::form::Form;
use crate::workflow::ope;
use crate::workflow::ope::TargetDiagnosis;
use crate::workflow::ope::logs;
use crate::workflow::ope::logs::Logs;

const HELP: &str = "clover estimate --help";

/// The logged responses: of the named policy, else of the only one that has any.
fn logger(
    found: BTreeMap<PolicyId, Logs>,
    named: Option<&str>,
) -> Result<(PolicyId, Logs), CliError> {
    let names: Vec<String> = found.keys().map(ToString::to_string).collect();
    let mut of = found.into_iter();
    match (named, names.len()) {
        (_, 0) => Err(CliError::not_found(
            "no logged response with log-probabilities",
            "clover import logged FILE --policy POLICY",
        )),
        (None, 1) => of.next().ok_or_else(|| CliError::usage("no logger", HELP)),
        (None, _) => Err(CliError::usage(
            format!(
                "several policies have logged responses: {}",
                names.join(", ")
            ),
            "the same command with --logger POLICY",
        )),
        (Some(named), _) => of
            .find(|(policy, _)| policy.as_str() == named)
            .ok_or_else(|| {
                let message = format!("no logged responses of {named}; of {}", names.join(", "));
                CliError::not_found(message, "clover estimate --ope")
            }),
    }
}

/// The policies that are asked for: all that have log-probabilities but the logger where none is.
fn targets(logs: &Logs, logger: &PolicyId, asked: &[String]) -> Result<Vec<PolicyId>, CliError> {
    let known = logs.targets();
    if asked.is_empty() {
        let others = known.into_iter().filter(|policy| *policy != logger);
        return Ok(others.cloned().collect());
    }
    let names: Vec<&str> = known.iter().map(|policy| policy.as_str()).collect();
    let named = asked.iter().map(|name| {
        let found = known.iter().find(|policy| policy.as_str() == name);
        found.map(|policy| (*policy).clone()).ok_or_else(|| {
            let message = format!(
                "no log-probability under {name}; there are {}",
                names.join(", ")
            );
            CliError::not_found(message, "clover estimate --ope")
        })
    });
    let mut named = named.collect::<Result<Vec<_>, _>>()?;
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// The thresholds that the plan of overlap registers, with its digest. A plan that came too late is named.
fn planned(
    ctx: &mut Ctx<'_>,
    read: &Estimation,
) -> Result<Option<(Digest, OverlapThresholds)>, CliError> {
    let state = read.ledger.state();
    if !state.asks(Question::FirstThresholds) {
        return estimate::planned(state, &read.experiment, drifts::overlap_plan, "overlap");
    }
    let manifests = state.fold::<Manifests>();
    let first = drifts::first_overlap(manifests, &read.experiment);
    let first = first.map(|(_, digest, numbers)| (digest, numbers));
    let named = first.map(|(digest, _)| digest);
    for (id, digest, _) in drifts::planned(manifests, &read.experiment, drifts::overlap_plan) {
        if Some(digest) != named {
            ctx.warn(format!(
                "plan {id} registers thresholds of overlap and was not in force before the first score or label, or not as it is now: it judges nothing here"
            ));
        }
    }
    Ok(first)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &EstimateEstimateArgs) -> Result<View, CliError> {
    if args.terms.bootstrap.is_some() {
        let message = "--ope has t intervals: --bootstrap belongs to direct estimates";
        return Err(CliError::usage(message, HELP));
    }
    if args.terms.weight.is_some() {
        let message =
            "--ope weighs responses, not predictions: --weight belongs to direct estimates";
        return Err(CliError::usage(message, HELP));
    }
    let mut read = estimate::open(ctx, &args.terms.fit)?;
    args.terms.complete(&mut read.terms)?;
    let found = estimate::found(ctx, &mut read)?;
    let below = ctx.as_of.map_or(read.ledger.size(), |seq| seq + 1);
    let all = logs::read(&read.ledger, &read.experiment, below)
        .map_err(|error| CliError::input(error.to_string(), HELP))?;
    let (logger, logs) = logger(all, args.logger.as_deref())?;
    let names = targets(&logs, &logger, &args.policies)?;
    let planned = planned(ctx, &read)?;
    let terms = ope::terms(found.terms.clone(), logger, planned);
    let form = Form::asked(read.ledger.state());
    let (mut computed, mut diagnoses) = (Vec::with_capacity(names.len()), Vec::new());
    let mut progress = ctx.progress("policies");
    for (done, name) in names.iter().enumerate() {
        let mut one = ope::target(&found, &logs, &terms, name)
            .map_err(|error| CliError::input(format!("{name}: {error}"), HELP))?;
        let place = found.gathered.policy(name.as_str());
        let failed = place.and_then(|place| found.failed(&read.experiment, place));
        let estimates = std::mem::take(&mut one.estimates).into_iter();
        one.estimates = estimates.map(|of| ope::marked(of, failed)).collect();
        // What is shown says what the direct level rests on; what is recorded does so where the rulebook asks.
        let recorded = one.diagnosed.clone();
        one.diagnosed = ope::claimed(recorded.clone(), &found, &read.experiment);
        diagnoses.push(match form {
            Form::Claimed | Form::Compared | Form::Shared => one.diagnosed.clone(),
            Form::Bare => recorded,
        });
        computed.push(one);
        progress.at(done as u64 + 1, names.len() as u64);
    }
    drop(progress);
    // A level that is withheld is withheld here too.
    let direct = |policy: &PolicyId| {
        let place = found.gathered.policy(policy.as_str())?;
        let claim = found.claim(place, found.standing(&read.experiment, place));
        (claim != Claim::Refused).then(|| found.analysis.policies[place].estimate)
    };
    let direct = computed.iter().map(|of| direct(&of.diagnosed.policy));
    let direct: Vec<_> = direct.collect();
    if let Some(path) = &args.plot {
        let svg = view::panel(&computed).svg();
        ambient::replace(&ctx.path(path), svg.as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    let recorded = if estimate::is_shown_alone(ctx, &args.terms.fit, &found) {
        None
    } else {
        Some(append(ctx, &mut read, &found, (&computed, &diagnoses))?)
    };
    let shown = computed.iter().zip(direct).collect::<Vec<_>>();
    let unrecorded = estimate::unrecorded(ctx, &found);
    Ok(view::shown(&terms.logger, &shown, recorded, unrecorded))
}

/// Estimates of each policy, then its diagnosis. Policies with the least overlap come last, so that what the assumptions
/// ledger says at the end is the worst of the run.
fn append(
    ctx: &mut Ctx<'_>,
    read: &mut Estimation,
    found: &crate::workflow::estimate::compute::Found,
    (computed, diagnoses): (&[TargetDiagnosis], &[OpeDiagnosed]),
) -> Result<View, CliError> {
    let mut order: Vec<(&TargetDiagnosis, &OpeDiagnosed)> =
        computed.iter().zip(diagnoses).collect();
    order.sort_by_key(|(of, _)| (of.diagnosed.overlap, of.diagnosed.tail));
    let mut events: Vec<Payload> = Vec::new();
    for (of, diagnosed) in order {
        events.push(diagnosed.clone().into());
        events.extend(of.estimates.iter().cloned().map(Payload::from));
    }
    estimate::append(ctx, read, found, events)
}
