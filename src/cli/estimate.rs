//! `clover estimate`, `clover compare`: what policies are worth by the rows of a ledger, on the record.

use std::fmt::Display;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::estimate_refusals;
use crate::cli::home;
use crate::cli::ope;
use crate::cli::replicating;
use crate::cli::replicating::WeightProgress;
use crate::cli::submit;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::FieldId;
use crate::event::id::JudgeId;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimate::FamilyCorrection;
use crate::event::payload::estimated::CalibratorMode;
use crate::event::payload::estimated::PlannedCorrection;
use crate::event::payload::estimated::PredictionWeight;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::manifest::Manifest;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::designs::Designs;
use crate::projection::drifts;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::estimated;
use crate::projection::manifests::estimated::PlannedEstimate;
use crate::session::SessionError;
use crate::session::estimates::Estimation;
use crate::session::regimes;
use crate::stats::direct::ClusterWeights;
use crate::view::View;
use crate::view::estimate::Contrasts;
use crate::view::estimate::Estimates;
use crate::view::estimate::charts;
use crate::view::estimate::charts::Asked;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::values;
use crate::workflow::analyze::AnalyzeError;
use crate::workflow::estimate::compute;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::slices;
use crate::workflow::estimate::slices::Sliced;
use crate::workflow::estimate::slices::SlicesError;
use crate::workflow::estimate::terms;
use crate::workflow::judge::kinship;

/// The numbers that a manifest in force registers, with its digest; `what` names them.
pub(super) fn planned<T>(
    state: &State,
    experiment: &ExperimentId,
    of: fn(&Manifest) -> Option<T>,
    what: &str,
) -> Result<Option<(Digest, T)>, CliError> {
    let manifests = state.fold::<Manifests>();
    let mut all: Vec<_> = drifts::planned(manifests, experiment, of).collect();
    if all.len() > 1 {
        let names: Vec<_> = all.iter().map(|(id, ..)| id.as_str()).collect();
        let names = names.join(", ");
        let message = format!("several manifests register thresholds of {what}: {names}");
        let next = "clover log --kind manifest.registered";
        return Err(CliError::refused(message, next));
    }
    Ok(all.pop().map(|(_, digest, numbers)| (digest, numbers)))
}

/// What every verb that fits takes.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FitArgs {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose scores [default: the only judge that scored, else judge]
    #[arg(long, value_name = "ID")]
    pub judge: Option<String>,
    /// Calibrate on `response_length`, or a number an import kept
    #[arg(long, value_name = "NAME")]
    pub covariate: Vec<String>,
    /// Rows and labels of one environment alone, such as domain=law
    #[arg(long, value_name = "F=V")]
    pub environment: Option<String>,
    /// auto, monotone or two-stage
    #[arg(long, value_name = "WHICH", default_value = "auto", value_parser = ["auto", "monotone", "two-stage"], hide_possible_values = true, hide_default_value = true)]
    pub mode: String,
    /// Ends of the scale of scores, and of labels that have none on record
    #[arg(long, value_name = "LOW:HIGH", value_parser = scale, allow_hyphen_values = true)]
    pub scale: Option<ScaleEnds>,
    /// Show the numbers and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What every verb that estimates takes.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EstimatorArgs {
    #[command(flatten)]
    pub fit: FitArgs,
    /// Percentile intervals of N refits, such as 2000
    #[arg(long, value_name = "N")]
    pub bootstrap: Option<u64>,
    /// One less the level of intervals
    #[arg(long, value_name = "P", default_value = "0.05")]
    pub alpha: String,
    /// Trust in the judge beside own labels: one or tuned [else by plan]
    #[arg(long, value_name = "WEIGHT", value_parser = ["one", "tuned"], hide_possible_values = true)]
    pub weight: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct EstimateEstimateArgs {
    /// Policies; default all
    #[arg(value_name = "POLICY", hide = true)]
    pub policies: Vec<String>,
    #[command(flatten)]
    pub terms: EstimatorArgs,
    /// Weight logged responses of another policy, diagnosed first
    #[arg(long, conflicts_with_all = ["raw", "chart", "environment"])]
    pub ope: bool,
    /// Whose responses were logged, where several were
    #[arg(long, value_name = "POLICY", requires = "ope", hide = true)]
    pub logger: Option<String>,
    /// Show refused levels too; they are no levels
    #[arg(long)]
    pub raw: bool,
    /// Write a drawing
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// forest (the default), calibration, residuals, residuals:FIELD, uncertainty
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "forest",
        hide_default_value = true
    )]
    pub chart: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct EstimateCompareArgs {
    /// Two policies, or more for all their pairs
    #[arg(value_name = "POLICY", required_unless_present = "all", hide = true)]
    pub policies: Vec<String>,
    /// Every pair of policies
    #[arg(long, conflicts_with = "policies")]
    pub all: bool,
    /// Of the family of pairs: bh, by, holm or bonferroni [else by plan or bh]
    #[arg(long, value_name = "HOW", value_parser = ["bh", "by", "holm", "bonferroni"], hide_possible_values = true)]
    pub correction: Option<String>,
    #[command(flatten)]
    pub terms: EstimatorArgs,
    /// Write a plot of the differences
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const HELP: &str = "clover estimate --help";
/// How `compare` is called.
pub(super) const COMPARE: &str = "clover compare [OPTIONS] POLICY POLICY...   (all their pairs)\n       clover compare [OPTIONS] --all";

/// `LOW:HIGH`, exact to the millionth.
fn scale(text: &str) -> Result<ScaleEnds, String> {
    let parse = |text: &str| match Micro::parse(text) {
        Ok((value, false)) => Some(value),
        _ => None,
    };
    let ends = text.split_once(':');
    let ends = ends.and_then(|(low, high)| parse(low).zip(parse(high)));
    let ends = ends.filter(|(low, high)| low < high);
    ends.map(|(low_micro, high_micro)| ScaleEnds {
        high_micro,
        low_micro,
    })
    .ok_or_else(|| "expected LOW:HIGH such as 0:100".to_owned())
}

/// A probability in millionths, above 0 and below a half.
pub(super) fn level(what: &str, text: &str) -> Result<Micro, CliError> {
    let parsed = Micro::parse(text).ok().filter(|(_, rounded)| !rounded);
    let fit = parsed.filter(|(value, _)| (1..500_000).contains(&value.value()));
    fit.map(|(value, _)| value).ok_or_else(|| {
        let message = format!("--{what} {text:?}: expected a number in (0, 0.5)");
        CliError::usage(message, HELP)
    })
}

/// What is to be drawn, by its name.
fn chart(name: &str) -> Result<Asked, CliError> {
    let wrong = |what: &str| CliError::usage(format!("--chart {name}: {what}"), HELP);
    Ok(match (name, name.split_once(':')) {
        ("calibration", _) => Asked::Calibration,
        ("forest", _) => Asked::Forest,
        ("residuals", _) => Asked::Residuals,
        ("uncertainty", _) => Asked::Uncertainty,
        (_, Some(("residuals", field))) => {
            let field = FieldId::new(field);
            Asked::Slices(field.map_err(|error| wrong(&error.to_string()))?)
        }
        _ => {
            return Err(wrong(
                "expected forest, calibration, residuals, residuals:FIELD or uncertainty",
            ));
        }
    })
}

/// Residuals by slice, or why there are none.
fn sliced(found: &Found, field: &FieldId) -> Result<Sliced, CliError> {
    slices::by_slice(found, field).map_err(|error| {
        let next = match error {
            SlicesError::NoCalibrator(_) => "clover label design list".to_owned(),
            SlicesError::Unknown(_) => format!(
                "clover import cje FILE --field {field}",
                field = shell::word(&field)
            ),
            SlicesError::Unfit(_) => "clover estimate".to_owned(),
        };
        CliError::input(format!("--chart residuals:{field}: {error}"), next)
    })
}

impl FitArgs {
    /// In types; how labels are used is for the rows to say.
    fn resolve(&self) -> Result<EstimateTerms, CliError> {
        let judge = self.judge.as_deref().unwrap_or(current::USUAL_JUDGE);
        let judge = JudgeId::new(judge)
            .map_err(|error| CliError::usage(format!("--judge {judge:?}: {error}"), HELP))?;
        let covariates = self.covariate.iter().map(|name| {
            FieldId::new(name.clone())
                .map_err(|error| CliError::usage(format!("--covariate {name:?}: {error}"), HELP))
        });
        let mut found = terms::usual(judge, covariates.collect::<Result<_, _>>()?);
        found.mode = match self.mode.as_str() {
            "monotone" => CalibratorMode::Monotone,
            "two-stage" => CalibratorMode::TwoStage,
            _ => CalibratorMode::Auto,
        };
        if found.mode == CalibratorMode::Monotone && !found.covariates.is_empty() {
            let message = "--mode monotone: calibrates on the score alone";
            return Err(CliError::usage(
                message,
                "the same command without --covariate",
            ));
        }
        found.judge_scale = self.scale;
        Ok(found)
    }
}

/// The words of `--correction`.
const CORRECTIONS: [(&str, PlannedCorrection); 4] = [
    ("bh", PlannedCorrection::BenjaminiHochberg),
    ("by", PlannedCorrection::BenjaminiYekutieli),
    ("holm", PlannedCorrection::Holm),
    ("bonferroni", PlannedCorrection::Bonferroni),
];

/// What a flag asks for, or else what the plan that binds says. A flag that differs from the plan would choose after seeing.
fn as_planned<T: Copy + PartialEq + Display>(
    flag: &str,
    asked: Option<T>,
    plan: Option<PlannedEstimate<'_, T>>,
) -> Result<Option<T>, CliError> {
    match (asked, plan) {
        (Some(asked), Some(plan)) if asked != plan.said => Err(CliError::refused(
            format!(
                "--{flag}: {} binds {}, found {asked}; another choice now would be one after seeing the numbers",
                plan.manifest, plan.said
            ),
            format!("the same command without --{flag}"),
        )),
        (_, Some(plan)) => Ok(Some(plan.said)),
        (asked, None) => Ok(asked),
    }
}

impl EstimateCompareArgs {
    /// How the family is corrected: by plan, else as asked.
    fn correction(&self, read: &Estimation) -> Result<Option<FamilyCorrection>, CliError> {
        let asked = self.correction.as_deref();
        let asked = asked.and_then(|asked| CORRECTIONS.iter().find(|(word, _)| *word == asked));
        let plan = estimated::correction(read.ledger.state().fold(), &read.experiment);
        let found = as_planned("correction", asked.map(|(_, of)| *of), plan)?;
        Ok(found.and_then(FamilyCorrection::of))
    }
}

impl EstimatorArgs {
    /// Adds the weight of predictions: by plan, else as asked.
    fn weigh(&self, read: &mut Estimation) -> Result<(), CliError> {
        let words = PredictionWeight::ALL.iter().copied();
        let asked = self.weight.as_deref();
        let asked = asked.and_then(|asked| words.into_iter().find(|of| of.as_str() == asked));
        let plan = estimated::weight(read.ledger.state().fold(), &read.experiment);
        let found = as_planned("weight", asked, plan)?;
        read.terms.weight = found.filter(|of| *of != PredictionWeight::One);
        Ok(())
    }

    /// Adds level and bootstrap.
    pub(super) fn complete(&self, terms: &mut EstimateTerms) -> Result<(), CliError> {
        terms.alpha_micro = level("alpha", &self.alpha)?;
        if let Some(replicates) = self.bootstrap {
            let alpha = terms.alpha_micro.value() as f64 / 1e6;
            let few = usize::try_from(replicates).unwrap_or(usize::MAX);
            replicating::checked(few, alpha, HELP)?;
            terms.bootstrap = terms::resampling(replicates, terms::SEED_DEFAULT);
        }
        Ok(())
    }
}

/// What is said where the plan of a comparison was in force only once scores or labels could be seen.
fn late_plan(read: &Estimation) -> Option<String> {
    let manifests: &Manifests = read.ledger.state().fold();
    let plan = estimated::correction(manifests, &read.experiment)?;
    let first = *manifests.first_outcome.get(&read.experiment)?;
    (plan.since > first).then(|| {
        format!(
            "plan {} names the correction since seq {}, after the first score or label at seq {first}: whoever signed it may have seen what each one says",
            plan.manifest, plan.since
        )
    })
}

/// The scale of labels: as it was declared, else as given.
fn on_record(
    state: &State,
    experiment: &ExperimentId,
    given: Option<ScaleEnds>,
) -> Option<ScaleEnds> {
    state.fold::<Designs>().scale(experiment).or(given)
}

/// Opens the ledger: to write, unless nothing is to be appended.
pub(super) fn open(ctx: &mut Ctx<'_>, asked: &FitArgs) -> Result<Estimation, CliError> {
    let mut terms = asked.resolve()?;
    let (home, ledger) = if asked.dry_run || ctx.as_of.is_some() {
        home::open_to_read(ctx)?
    } else {
        home::open_to_write(ctx)?
    };
    let then = ctx
        .as_of
        .map(|seq| ledger.state_shown(seq + 1))
        .transpose()?;
    let state = then.as_ref().unwrap_or(ledger.state());
    let experiment = current::experiment(ctx, &home, state, asked.experiment.as_deref())?;
    if then.is_none() {
        current::check(state, &experiment, "--experiment")?;
    }
    terms.label_scale = on_record(state, &experiment, asked.scale);
    if asked.judge.is_none()
        && let Some(judge) = current::only_judge(state, &experiment)?
    {
        terms.judge = judge;
    }
    if let Some(words) = &asked.environment {
        let scope = regimes::scope(ledger.state(), &experiment, words);
        terms.environment = Some(scope.map_err(SessionError::from)?);
    }
    Ok(Estimation {
        home,
        ledger,
        experiment,
        terms,
        fields: Vec::new(),
        places: Vec::new(),
    })
}

/// Estimates of every policy.
pub(super) fn found(ctx: &mut Ctx<'_>, of: &mut Estimation) -> Result<Found, CliError> {
    let gathered = of.gather(ctx.as_of)?;
    let state = of.ledger.state();
    for shared in kinship::of_registered(state, &of.experiment, &of.terms.judge) {
        ctx.warn(shared.to_string());
    }
    let terms = of.terms.clone();
    let shown = terms.bootstrap.as_ref().map(|bootstrap| {
        let weights = Box::new(terms::weights(bootstrap));
        WeightProgress::new(weights, ctx.progress("replicates"))
    });
    let weights = shown.as_ref().map(|shown| shown as &dyn ClusterWeights);
    let found = compute::compute(gathered, terms.clone(), &[], None, weights);
    let mut found = found.map_err(|error| refused(&error))?;
    of.taint(&mut found);
    for (policy, key) in &found.tainted {
        ctx.warn(format!(
            "{} rests on entries of key {key} from its compromise on: nothing is claimed of it, and nothing recorded",
            found.name(*policy)
        ));
    }
    Ok(found)
}

/// Whether numbers are shown and not recorded.
pub(super) fn is_shown_alone(ctx: &Ctx<'_>, fit: &FitArgs, found: &Found) -> bool {
    fit.dry_run || ctx.as_of.is_some() || !found.tainted.is_empty()
}

/// Appends what was found, fit first.
pub(super) fn append(
    ctx: &mut Ctx<'_>,
    of: &mut Estimation,
    found: &Found,
    events: Vec<Payload>,
) -> Result<View, CliError> {
    let submission = of.record(&mut ctx.ports(), found, events)?;
    Ok(submit::shown(ctx, &of.ledger, &submission))
}

/// Words for what the statistics refuse.
pub(super) fn refused(error: &AnalyzeError) -> CliError {
    CliError::input(error.to_string(), HELP)
}

/// Positions of the policies that are named; all where none is.
fn named(found: &Found, names: &[String]) -> Result<Vec<usize>, CliError> {
    if names.is_empty() {
        return Ok((0..found.analysis.policies.len()).collect());
    }
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let place = found.gathered.policy(name).ok_or_else(|| {
            let missing = values::missing_policy(&found.gathered, name);
            CliError::not_found(missing, "clover estimate")
        })?;
        places.push(place);
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

pub(super) fn unrecorded(ctx: &Ctx<'_>, found: &Found) -> &'static str {
    if ctx.as_of.is_some() {
        "as_of"
    } else if !found.tainted.is_empty() {
        "tainted"
    } else {
        "dry_run"
    }
}

pub(super) fn estimate(ctx: &mut Ctx<'_>, args: &EstimateEstimateArgs) -> Result<View, CliError> {
    if args.ope {
        return ope::run(ctx, args);
    }
    let chart = chart(&args.chart)?;
    if args.plot.is_none() && !matches!(chart, Asked::Forest | Asked::Slices(_)) {
        let message = format!("--chart {}: expected a file to draw it in", args.chart);
        let next = format!(
            "clover estimate --chart {} --plot FILE.svg",
            shell::word(&args.chart)
        );
        return Err(CliError::usage(message, next));
    }
    let mut read = open(ctx, &args.terms.fit)?;
    args.terms.complete(&mut read.terms)?;
    args.terms.weigh(&mut read)?;
    read.fields.extend(chart.field().cloned());
    let found = found(ctx, &mut read)?;
    let places = named(&found, &args.policies)?;
    let sliced = chart.field().map(|field| sliced(&found, field));
    let sliced = sliced.transpose()?;
    let rows: Vec<_> = places
        .iter()
        .map(|&policy| {
            let row = found.estimate(&read.experiment, policy, Form::NEWEST);
            (policy, row)
        })
        .collect();
    let planned = estimated::correction(read.ledger.state().fold(), &read.experiment);
    let correction = planned.and_then(|plan| FamilyCorrection::of(plan.said));
    let contrasts = found
        .contrasts(&read.experiment, &places, correction, Form::NEWEST)
        .map_err(|error| refused(&error))?;
    let basis = ClaimBasis::of(read.ledger.state(), &read.experiment, &read.terms.judge);
    let shown = Estimates {
        found: &found,
        contrasts: &contrasts,
        experiment: &read.experiment.clone(),
        rows: &rows,
        raw: args.raw,
        sliced: sliced.as_ref(),
        basis: &basis,
    };
    for warning in shown.warnings() {
        ctx.warn(warning);
    }
    plot(ctx, args.plot.as_ref(), || {
        let slices = sliced.as_ref().map(|sliced| charts::slices(sliced).svg());
        let drawn = slices.or_else(|| charts::svg(&found, &chart));
        drawn.unwrap_or_else(|| shown.plot().svg())
    })?;
    let mut events = Vec::with_capacity(3 * rows.len());
    let form = Form::asked(read.ledger.state());
    for (policy, _) in &rows {
        events.push(found.estimate(&read.experiment, *policy, form).into());
        events.extend(found.oua(*policy).map(Payload::from));
        events.extend(found.coverage(*policy).map(Payload::from));
    }
    let recorded = if is_shown_alone(ctx, &args.terms.fit, &found) {
        None
    } else {
        Some(append(ctx, &mut read, &found, events)?)
    };
    Ok(shown.view(recorded, unrecorded(ctx, &found)))
}

/// Writes a drawing, when one is asked for.
fn plot(
    ctx: &mut Ctx<'_>,
    path: Option<&PathBuf>,
    svg: impl FnOnce() -> String,
) -> Result<(), CliError> {
    if let Some(path) = path {
        ambient::replace(&ctx.path(path), svg().as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

pub(super) fn compare(ctx: &mut Ctx<'_>, args: &EstimateCompareArgs) -> Result<View, CliError> {
    let mut read = open(ctx, &args.terms.fit)?;
    args.terms.complete(&mut read.terms)?;
    args.terms.weigh(&mut read)?;
    let correction = args.correction(&read)?;
    if let Some(words) = late_plan(&read) {
        ctx.warn(words);
    }
    let found = found(ctx, &mut read)?;
    let places = named(&found, &args.policies)?;
    if places.len() < 2 {
        let scored: Vec<&str> = (found.analysis.policies.iter())
            .map(|of| of.name.as_str())
            .collect();
        if scored.len() < 2 {
            let message = format!(
                "expected two policies to compare, found scores of {} alone",
                scored.join(", ")
            );
            return Err(CliError::input(
                message,
                "clover import cje PATH --policy ID",
            ));
        }
        let message = format!("expected two of the policies {}", scored.join(", "));
        return Err(CliError::usage(message, "clover compare --all"));
    }
    let of = |form: Form| {
        let found = found.contrasts(&read.experiment, &places, correction, form);
        found.map_err(|error| refused(&error))
    };
    let contrasts = of(Form::NEWEST)?;
    let basis = ClaimBasis::of(read.ledger.state(), &read.experiment, &read.terms.judge);
    let shown = Contrasts {
        found: &found,
        places: &places,
        pairs: &contrasts,
        experiment: &read.experiment.clone(),
        basis: &basis,
    };
    for warning in shown.warnings() {
        ctx.warn(warning);
    }
    plot(ctx, args.plot.as_ref(), || shown.plot().svg())?;
    let recorded = of(Form::asked(read.ledger.state()))?;
    let events = recorded.into_iter().map(Payload::from).collect();
    let recorded = if is_shown_alone(ctx, &args.terms.fit, &found) {
        None
    } else {
        let recorded = append(ctx, &mut read, &found, events);
        Some(recorded.map_err(estimate_refusals::compared_before)?)
    };
    Ok(shown.view(recorded, unrecorded(ctx, &found)))
}
