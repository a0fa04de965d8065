//! Preflight of a manifest: whether its sizes can work, and the number that would. Pure; nothing is recorded.

use clover_event::id::PatchFamilyId;
use clover_event::id::PolicyId;
use clover_event::payload::manifest::AuditedEnvironment;
use clover_event::payload::manifest::Beacon;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::RepRule;
use clover_event::payload::manifest::Test;
use clover_event::payload::manifest::TransportPlan;
use clover_ground::shell;
use clover_ledger::Code;
use clover_ledger::Unmet;
use clover_num::Count;
use clover_num::Micro;
use clover_num::math;
use clover_projection::decisions::thresholds_of;
use clover_projection::gates;
use clover_projection::manifests;
use clover_projection::manifests::Fault;
use clover_rubric::Family;
use clover_stats::environment;
use clover_stats::eprocess::EvalueThreshold;
use clover_stats::eprocess::ObservationsNeeded;
use clover_stats::eprocess::horizon;
use clover_stats::planner;
use clover_stats::planner::AuditPlan;
use clover_stats::planner::AuditReason;
use clover_stats::planner::AuditScenario;
use clover_stats::planner::AuditTerms;
use clover_stats::planner::ConfirmTerms;
use clover_stats::planner::PlannedTest;

use crate::gates::design;
use crate::iterate::wider;

/// A number that the sizes give.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What it is.
    pub name: String,
    /// Its value; `None` where no number exists.
    pub value: Option<f64>,
}

/// What a preflight shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Numbers, in the order in which they are shown.
    pub measures: Vec<Measure>,
    /// Sizes that cannot work.
    pub faults: Vec<Fault>,
    /// What nobody could check.
    pub not_checked: Vec<String>,
    /// What follows from it for others, in words.
    pub said: Vec<String>,
    /// Criteria of an iteration that no candidate passes at these sizes.
    pub unmet: Vec<String>,
}

impl Report {
    fn measure(&mut self, name: impl Into<String>, value: impl Into<Option<f64>>) {
        self.measures.push(Measure {
            name: name.into(),
            value: value.into(),
        });
    }

    fn fault(&mut self, path: impl Into<String>, expected: impl Into<String>, found: String) {
        self.faults.push(Fault {
            path: path.into(),
            expected: expected.into(),
            found,
        });
    }
}

/// Judges a manifest by itself and the sizes of its template.
pub fn preflight(manifest: &Manifest) -> Report {
    let mut report = Report::default();
    if let Err(fault) = manifests::check(manifest) {
        report.faults.push(fault);
        return report;
    }
    if let Some(of) = &manifest.multiplicity
        && let Some(alpha) = manifest.alpha()
        && alpha > of.family_alpha_micro.value()
    {
        let expected = format!(
            "at most multiplicity.family_alpha_micro {}",
            of.family_alpha_micro.value()
        );
        let path = match manifest.template.as_str() {
            "gate" => "test.alpha_micro",
            "iteration" => "iteration.alpha_micro",
            _ => "transport.alpha_micro",
        };
        report.fault(path, expected, Code::FamilyBudget.of(alpha));
    }
    spent(manifest, &mut report);
    if let Some(order) = manifest.estimates.as_ref().and_then(|of| of.order.as_ref()) {
        let policies: Vec<_> = order.policies.iter().map(PolicyId::as_str).collect();
        report.said.push(format!(
            "the order that may be claimed is that of {} by scores of {}, from {} labels for calibration on: every other one is \
             exploratory",
            policies.join(", "),
            order.judge,
            order.labels.value()
        ));
    }
    if let Some(test) = &manifest.test {
        values(manifest, &mut report);
        gate(manifest, test, &mut report);
        if let Err(Unmet { expected, found }) = gates::testable(manifest) {
            report.fault("test", expected, found);
        }
    }
    if let Some(plan) = &manifest.transport {
        transport(plan, &mut report);
    }
    if let Some(plan) = &manifest.iteration {
        iteration(plan, &mut report);
    }
    if manifest.sgd.is_some() || manifest.workflow.is_some() {
        report
            .not_checked
            .push("power: this template is exploratory until a gate confirms it".to_owned());
    }
    report
}

/// What it takes from a family whose members spend one error rate.
fn spent(manifest: &Manifest, report: &mut Report) {
    let of = manifest.multiplicity.as_ref();
    let of = of.filter(|of| of.method == FamilyMethod::Spend);
    let Some((of, alpha)) = of.zip(manifest.alpha()) else {
        return;
    };
    let all = of.family_alpha_micro.value();
    if all > 0 {
        let share = alpha as f64 / all as f64;
        report.measure("share of the family's error rate that it takes", share);
    }
    if alpha == all {
        report.said.push(format!(
            "it takes the whole error rate of family {}: no other member can be registered after it",
            of.family
        ));
    }
}

/// How a unit's values come about: one draw where one is said, and metrics that can be told apart.
fn values(manifest: &Manifest, report: &mut Report) {
    let Some((metric, estimand)) = manifest.metric.as_ref().zip(manifest.estimand.as_ref()) else {
        return;
    };
    if estimand.rep_rule == RepRule::Single && metric.repeats.value() != 1 {
        let expected = "1 draw for estimand.rep_rule single";
        report.fault("metric.repeats", expected, metric.repeats.to_string());
    }
    let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
    let names: Vec<_> = std::iter::once(&metric.metric).chain(guardrails).collect();
    let mut all = names.iter().enumerate();
    if let Some((at, twice)) = all.find(|(at, name)| names[..*at].contains(name)) {
        let path = format!("metric.guardrails[{}].metric", at - 1);
        report.fault(&path, "another name for each metric", twice.to_string());
    }
}

fn real(value: Micro) -> f64 {
    value.value() as f64 / 1e6
}

/// Below 2^53, so exact.
fn rows(value: Count) -> f64 {
    value.value() as f64
}

/// No bettor can multiply its wealth by more than 1/m0 with one unit, so fewer than ln(1/alpha) / ln(1/m0) units never
/// decide.
fn gate(manifest: &Manifest, test: &Test, report: &mut Report) {
    let scale = manifest.metric.as_ref().map_or(0, gates::scale);
    let margin = test.null_margin_micro.value();
    if scale <= 0 || margin.abs() >= scale {
        let expected = format!("less than the largest difference {scale} in magnitude");
        report.fault("test.null_margin_micro", expected, Code::Margin.of(margin));
        return;
    }
    if let Some(delta) = test.delta_design_micro
        && let Some(expected) =
            unplannable(manifest.hypothesis.kind, delta.value(), (margin, scale))
    {
        report.fault(
            "test.delta_design_micro",
            expected,
            Code::Margin.of(delta.value()),
        );
    }
    let null = 0.5 + margin as f64 / (2.0 * scale as f64);
    let horizon = (math::ln(1.0 / real(test.alpha_micro)) / math::ln(1.0 / null)).ceil();
    report.measure("null mean", null);
    // What is left of a finite set may be worth more than 1/m0.
    let is_bound = !test.without_replacement;
    if is_bound {
        report.measure("units without which no bettor can decide", horizon);
    }
    strata(test, report);
    if let Some(preflight) = &manifest.preflight
        && test.n_max < preflight.horizon_n
    {
        let expected = format!("at least preflight.horizon_n {}", preflight.horizon_n);
        report.fault("test.n_max", expected, Code::Horizon.of(test.n_max));
    }
    if report.faults.is_empty() {
        bets(manifest, test, report);
    }
    if test.beacon != Beacon::FirstCheckpoint {
        let expected = "first_checkpoint, which a ledger can check";
        report.fault("test.beacon", expected, Code::Order.of("drand").clone());
    }
    let power = "power of the gate: clover gate simulate --plan FILE, before it is signed";
    report.not_checked.push(power.to_owned());
    if let Some(of) = &manifest.multiplicity {
        let family = format!(
            "what family {} has left: clover family show {}",
            of.family,
            shell::word(&of.family)
        );
        report.not_checked.push(family);
    }
    if test.continuation_of.is_some() {
        let parent = "that the gate of test.continuation_of ended undecided: clover gate continue";
        report.not_checked.push(parent.to_owned());
    }
}

/// Names of strata are those of a file of units.
fn strata(test: &Test, report: &mut Report) {
    let strata = test.control_variate.iter().flatten();
    for (at, one) in strata.enumerate() {
        let name = one.stratum.as_str();
        if name.trim() != name {
            let path = format!("test.control_variate[{at}].stratum");
            let expected = "no blanks around it: a file of units has none";
            report.fault(&path, expected, format!("{name:?}"));
        }
    }
}

/// What a planned effect must be where the claim could not hold of it, or no difference reaches it.
fn unplannable(kind: HypothesisKind, delta: i64, (margin, scale): (i64, i64)) -> Option<String> {
    let (fits, expected) = match kind {
        HypothesisKind::Different => (
            delta != margin && delta.abs() <= scale,
            format!("other than test.null_margin_micro {margin}, at most {scale} in magnitude"),
        ),
        HypothesisKind::Equivalent => (
            delta.abs() < margin,
            format!("less than test.null_margin_micro {margin} in magnitude"),
        ),
        _ => (
            delta > margin && delta <= scale,
            format!("more than test.null_margin_micro {margin}, at most {scale}"),
        ),
    };
    (!fits).then_some(expected)
}

/// The test with the registered bettor: what keeps it from being one, and how many units it needs at best.
fn bets(manifest: &Manifest, test: &Test, report: &mut Report) {
    match design::of(manifest, test, None, None, design::looks(test)) {
        Ok(design) => {
            let alpha = u32::try_from(test.alpha_micro.value()).unwrap_or(0);
            let needed = horizon::observations(&design, EvalueThreshold::of_level(alpha));
            let needed = match needed {
                ObservationsNeeded::Observations(needed) => Some(needed as f64),
                ObservationsNeeded::TooMany => None,
            };
            report.measure("units that the registered bettor needs at best", needed);
            let strata = design.terms().strata.iter().map(|one| one.predicted);
            if let Some((least, most)) = strata.clone().min().zip(strata.max()) {
                let differ = (most - least) as f64 / 1e6;
                report.measure(
                    "strata are predicted to differ by at most (0 changes nothing)",
                    differ,
                );
            }
        }
        Err(wrong) => {
            let expected = wrong.expected.strip_prefix("test.n_max of ");
            let expected = expected.unwrap_or(&wrong.expected).to_owned();
            let is_horizon = wrong.found.ends_with(&Code::Horizon.of(""));
            let path = if is_horizon { "test.n_max" } else { "test" };
            report.fault(path, expected, wrong.found);
        }
    }
}

fn transport(plan: &TransportPlan, report: &mut Report) {
    let scenario = |available: Option<Count>| AuditScenario {
        residual_sd: real(plan.residual_sd_micro),
        margin: real(plan.margin_micro),
        bias: real(plan.bias_micro),
        available: available.map(Count::value),
        labels_per_cluster: rows(plan.labels_per_cluster),
    };
    for audited in plan.environments.iter().filter(|of| of.family.is_some()) {
        tested(audited, plan, report);
    }
    let alone: Vec<(usize, &AuditedEnvironment)> = plan
        .environments
        .iter()
        .enumerate()
        .filter(|(_, of)| of.family.is_none())
        .collect();
    if alone.is_empty() {
        return;
    }
    let scenarios: Vec<_> = alone
        .iter()
        .map(|(_, audited)| scenario(audited.available))
        .collect();
    let terms = AuditTerms {
        alpha: real(plan.alpha_micro),
        power: real(plan.power_micro),
        family_size: Some(plan.family_size.value()),
        clusters_min: plan.clusters_min.value(),
        ..AuditTerms::new(1.0, 0)
    };
    let planned = match planner::plan_transport_audits(&scenarios, &terms) {
        Ok(planned) => planned,
        Err(error) => {
            report.fault("transport", "sizes that can be planned", error.to_string());
            return;
        }
    };
    report.measure("power of each audit", planned.per_audit_power);
    report.measure("labels of all audits", planned.audit_labels);
    let error = "what the calibrator's own error costs in power: clover plan audit MARGIN";
    report.not_checked.push(error.to_owned());
    let level = terms.alpha / planned.family_size as f64;
    for (at, planned) in planned.plans.iter().enumerate() {
        if planned.reason == AuditReason::BiasOutsideMargin {
            let expected = "a bias inside the margin: outside no size passes";
            let found = Code::Margin.of(plan.bias_micro.value());
            report.fault("transport.bias_micro", expected, found);
            return;
        }
        let (place, audited) = alone[at];
        audit(audited, (place, planned), (&scenarios[at], level), report);
    }
}

/// An environment that is tested passes by a standard error under which a bias of 0.05 would be seen.
fn tested(audited: &AuditedEnvironment, plan: &TransportPlan, report: &mut Report) {
    let sd = real(plan.residual_sd_micro);
    let least = environment::DETECTABLE * sd / environment::DETECTABLE_MAX;
    let needed = (least * least).ceil().max(environment::ROWS_MIN as f64);
    let name = format!("{}", audited.environment);
    report.measure(format!("clusters needed in {name}"), Some(needed));
    if (audited.clusters.value() as f64) < needed {
        let at = plan.environments.iter().position(|of| of == audited);
        let path = format!(
            "transport.environments[{}].clusters",
            at.unwrap_or_default()
        );
        report.fault(
            path,
            format!("at least {needed} clusters, by which a bias of 0.05 is seen"),
            format!("{} (E_N)", audited.clusters),
        );
    }
}

fn audit(
    audited: &AuditedEnvironment,
    (at, planned): (usize, &AuditPlan),
    (scenario, level): (&AuditScenario, f64),
    report: &mut Report,
) {
    let (name, clusters) = (&audited.environment, audited.clusters);
    let needed = planned.clusters.map(|needed| needed as f64);
    let power = planner::pass_probability(clusters.value(), scenario, level);
    report.measure(format!("clusters needed in {name}"), needed);
    report.measure(
        format!("power with {clusters} clusters in {name}"),
        power.ok(),
    );
    let path = format!("transport.environments[{at}].clusters");
    let found = Code::Number.of(clusters);
    match (planned.clusters, audited.available) {
        (None, _) => report.fault(path, "sizes that 100000 clusters are enough for", found),
        (Some(needed), _) if clusters.value() < needed => {
            report.fault(path, format!("at least {needed} clusters"), found);
        }
        (_, Some(there)) if there < clusters => {
            report.fault(path, format!("at most the {there} available"), found);
        }
        _ => {}
    }
}

/// What the confirm block is planned for: the registered test at the level that gate P8 holds it to.
pub fn confirm_terms(plan: &IterationPlan) -> ConfirmTerms {
    let thresholds = thresholds_of(plan);
    let beta = plan
        .sequential
        .as_ref()
        .map(|of| real(of.beta_futile_micro));
    ConfirmTerms {
        test: match (plan.confirm_test, beta) {
            (ConfirmTest::Sequential, Some(beta)) => PlannedTest::Sequential { beta },
            (ConfirmTest::Betting | ConfirmTest::Sequential, _) => PlannedTest::Betting,
            (ConfirmTest::T | ConfirmTest::Bootstrap, _) => PlannedTest::StudentT,
        },
        effect: real(plan.effect_micro),
        deviation: real(plan.difference_sd_micro),
        eta: real(plan.eta_micro),
        level: real(plan.alpha_micro) / rows(thresholds.hypotheses),
    }
}

fn iteration(plan: &IterationPlan, report: &mut Report) {
    let (terms, power) = (confirm_terms(plan), real(plan.power_micro));
    let (tested, reached) = (terms.rows(power), terms.power(plan.confirm_rows.value()));
    report.measure("level of each confirm test", terms.level);
    let families = plan.patch_families.len() as u64;
    if families > plan.hypotheses_max.value() {
        report.said.push(format!(
            "alpha {} is divided by the {families} patch families, which are more than hypotheses_max {}",
            plan.alpha_micro, plan.hypotheses_max
        ));
    }
    report.measure(
        format!("confirm rows for the {} test", plan.confirm_test.as_str()),
        tested.clone().ok().flatten().map(|rows| rows as f64),
    );
    let confirm = plan.confirm_rows;
    report.measure(
        format!("power of the test with {confirm} rows"),
        reached.clone().ok(),
    );
    let found = plan.effect_micro.value().to_string();
    match (tested, reached) {
        _ if terms.effect <= terms.eta => {
            let eta = plan.eta_micro.value();
            let expected = format!("more than eta_micro {eta}: no size clears eta otherwise");
            report.fault("iteration.effect_micro", expected, found);
        }
        (Ok(Some(needed)), Ok(reached)) if reached < power => {
            let expected = format!("at least {needed} rows");
            let found = Code::Number.of(confirm);
            report.fault("iteration.confirm_rows", expected, found);
        }
        (Ok(Some(_)), Ok(_)) => {}
        (Ok(None), _) => {
            let expected = "an effect that some number of rows shows with power_micro";
            report.fault("iteration.effect_micro", expected, found);
        }
        _ => {
            let expected = "an effect and a difference_sd_micro that differences of squared errors, \
                            from -1 to 1, can have";
            report.fault("iteration.effect_micro", expected, found);
        }
    }
    green(plan, report);
    local(plan, report);
    unmet(plan, report);
}

/// What its caps of the shift mean for patches that tell the judge something else, and which thresholds are wider than usual.
fn local(plan: &IterationPlan, report: &mut Report) {
    let tells = |family: &PatchFamilyId| {
        let family = Family::named(family.as_str());
        matches!(
            family,
            Some(Family::Abstention | Family::EvidenceVerification)
        )
    };
    if plan.patch_families.iter().any(tells) {
        let shift = (real(plan.ks_max_micro), real(plan.w1_max_micro));
        let said = wider::locality(plan.shift_metric, shift, real(plan.drift_max_micro));
        report.said.extend(said);
    }
    let wider = wider::wider(plan);
    if !wider.is_empty() {
        let wider: Vec<String> = wider.iter().map(ToString::to_string).collect();
        report.said.push(format!(
            "wider than usual for so many labels: {}; what is accepted under it says so",
            wider.join(", ")
        ));
    }
}

/// Criteria that no candidate passes under this plan, and what nobody can say of the others without drawing rows.
fn unmet(plan: &IterationPlan, report: &mut Report) {
    let Some(design) = &plan.design else {
        return;
    };
    if design.anchors.is_none() {
        let p5 = "p5 on dev: without iteration.design.anchors it is inconclusive, and no patch is accepted";
        report.unmet.push(p5.to_owned());
    }
    let fewest = plan.dev_rows.min(plan.confirm_rows);
    for family in &design.slices {
        let cells = family.cells.len() as u64 + 1;
        if rows(fewest) < GREEN_ROWS_MIN * cells as f64 {
            report.unmet.push(format!(
                "p3 on dev and p9 on confirm: {cells} cells of slices.{} share {fewest} rows, and a cell below \
                 {GREEN_ROWS_MIN} rows is inconclusive: at least {} rows of each",
                family.family,
                GREEN_ROWS_MIN * cells as f64
            ));
        }
    }
    let whole = "power of all criteria together: clover simulate iteration --truth citations --seed 7 --manifest FILE, before it is signed";
    report.not_checked.push(whole.to_owned());
}

/// Rows below which the smallest green slice is inconclusive whatever it shows.
const GREEN_ROWS_MIN: f64 = 40.0;

fn green(plan: &IterationPlan, report: &mut Report) {
    let slices = u32::try_from(plan.green_slices.value()).unwrap_or(u32::MAX);
    if slices == 0 {
        return;
    }
    if plan.tau_micro.value() == 0 {
        report
            .not_checked
            .push("green slices: with tau_micro 0 no size gives power".to_owned());
        return;
    }
    let (sd, tau) = (real(plan.green_sd_micro), real(plan.tau_micro));
    let needed = planner::green_rows(sd, tau, real(plan.q_micro), real(plan.power_micro), slices);
    let needed = needed.ok().map(|needed| needed.max(GREEN_ROWS_MIN));
    report.measure("rows of the smallest green slice", needed);
    let least = rows(plan.slice_rows_min);
    if let Some(needed) = needed
        && least < needed
    {
        let found = Code::Number.of(plan.slice_rows_min);
        report.fault(
            "iteration.slice_rows_min",
            format!("at least {needed} rows"),
            found,
        );
    }
    let most = rows(plan.dev_rows.min(plan.confirm_rows));
    if least * f64::from(slices) > most {
        let expected = format!(
            "at most {} rows in each of {slices} slices",
            (most / f64::from(slices)).floor()
        );
        report.fault(
            "iteration.slice_rows_min",
            expected,
            plan.slice_rows_min.to_string(),
        );
    }
}
