//! `planner` vectors: the square-root law, integer plans, the fit of the variance model, audit sizes.

use clover_stats::planner;
use clover_stats::planner::AuditPlan;
use clover_stats::planner::AuditReason;
use clover_stats::planner::AuditScenario;
use clover_stats::planner::AuditTerms;
use clover_stats::planner::Costs;
use clover_stats::planner::Plan;
use clover_stats::planner::Power;
use clover_stats::planner::VarianceModel;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// Compares one case.
///
/// # Errors
/// [`Stop`].
pub fn planner(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let kind = case.input.at("kind")?;
    match kind.text()? {
        "plan_evaluation" => plan_evaluation(case, check),
        "plan_for_mde" => plan_for_mde(case, check),
        "mde_formula" => {
            let error = case.input.at("se")?.number()?;
            let mde = planner::mde(error, power(&case.input)?);
            check.number(&case.expected.at("mde")?, mde)
        }
        "fit_variance" => fit_variance(case, check),
        "plan_transport_audits" => audits(case, check),
        _ => Err(kind.unsupported("the kinds of plans of VECTORS.md")),
    }
}

fn or(input: &Node<'_>, name: &str, default: f64) -> Result<f64, Stop> {
    input.maybe(name).map_or(Ok(default), |node| node.number())
}

fn count_or(input: &Node<'_>, name: &str, default: u64) -> Result<u64, Stop> {
    input
        .maybe(name)
        .map_or(Ok(default), |node| Ok(node.count()? as u64))
}

fn power(input: &Node<'_>) -> Result<Power, Stop> {
    Power::new(or(input, "power", 0.8)?, or(input, "alpha", 0.05)?).map_err(refused)
}

fn model(input: &Node<'_>) -> Result<VarianceModel, Stop> {
    let evaluation = input.at("sigma2_eval")?.number()?;
    let calibration = input.at("sigma2_cal")?.number()?;
    VarianceModel::new(evaluation, calibration).map_err(refused)
}

fn costs(input: &Node<'_>) -> Result<Costs, Stop> {
    let (score, label) = (input.at("c_S")?.number()?, input.at("c_Y")?.number()?);
    Costs::new(score, label).map_err(refused)
}

fn plan_evaluation(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let (model, costs) = (model(input)?, costs(input)?);
    let budget = input.at("budget")?.number()?;
    let least = count_or(input, "m_min", 30)?;
    let plan =
        planner::plan_evaluation(budget, &model, &costs, least, power(input)?).map_err(refused)?;
    if let Some(want) = case.expected.maybe("closed_form") {
        let law = planner::square_root_law(budget, &model, &costs);
        check.number(&want.at("n_star")?, law.scores)?;
        check.number(&want.at("m_star")?, law.labels)?;
        check.maybe(&want.at("ratio_m_over_n")?, law.ratio)?;
    }
    compare(
        &plan,
        input,
        &model,
        &costs,
        &case.expected.at("plan")?,
        check,
    )
}

fn plan_for_mde(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let (model, costs) = (model(input)?, costs(input)?);
    let target = input.at("target_mde")?.number()?;
    let least = count_or(input, "m_min", 30)?;
    let plan =
        planner::plan_for_mde(target, &model, &costs, least, power(input)?).map_err(refused)?;
    compare(&plan, input, &model, &costs, &case.expected, check)
}

fn compare(
    plan: &Plan,
    input: &Node<'_>,
    model: &VarianceModel,
    costs: &Costs,
    expected: &Node<'_>,
    check: &mut Check<'_>,
) -> Result<(), Stop> {
    let exact = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    check.count(&expected.at("n_samples")?, exact(plan.scores))?;
    check.count(&expected.at("m_oracle")?, exact(plan.labels))?;
    for (name, number) in [
        ("oracle_fraction", plan.label_fraction()),
        ("total_cost", plan.cost),
        ("mde", plan.mde),
        ("se_level", plan.standard_error),
        ("se_comparison", plan.comparison_error),
        ("power", or(input, "power", 0.8)?),
        ("alpha", or(input, "alpha", 0.05)?),
        ("sigma2_eval", model.evaluation()),
        ("sigma2_cal", model.calibration()),
        ("eval_variance_component", plan.evaluation_variance),
        ("cal_variance_component", plan.calibration_variance),
        ("eval_variance_fraction", plan.evaluation_share()),
        ("cal_variance_fraction", 1.0 - plan.evaluation_share()),
    ] {
        check.number(&expected.at(name)?, number)?;
    }
    let prices = expected.at("cost_model")?;
    check.number(&prices.at("surrogate_cost")?, costs.score())?;
    check.number(&prices.at("oracle_cost")?, costs.label())?;
    for name in [
        "critical_value_method",
        "finite_sample_confirmation_required",
        "pairing_assumption",
    ] {
        check.informative(&expected.at(name)?, "a caveat that every plan carries");
    }
    Ok(())
}

fn fit_variance(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let mut rows = Vec::new();
    for row in case.input.at("n_m_var")?.elements()? {
        let [n, m, variance] = row.numbers()?[..] else {
            return Err(row.malformed("n, m and a variance"));
        };
        rows.push((n, m, variance));
    }
    let (model, explained) = planner::fit_variance(&rows).map_err(refused)?;
    let expected = &case.expected;
    check.number(&expected.at("sigma2_eval")?, model.evaluation())?;
    check.number(&expected.at("sigma2_cal")?, model.calibration())?;
    check.maybe(&expected.at("r_squared")?, explained)
}

fn audits(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let mut scenarios = Vec::new();
    let members = input.at("scenarios")?.members()?;
    for (_, scenario) in &members {
        let available = scenario.maybe("available_clusters");
        scenarios.push(AuditScenario {
            residual_sd: scenario.at("residual_sd")?.number()?,
            margin: scenario.at("delta_max")?.number()?,
            bias: or(scenario, "assumed_bias", 0.0)?,
            available: available
                .map(|node| node.count())
                .transpose()?
                .map(|n| n as u64),
            labels_per_cluster: or(scenario, "labels_per_cluster", 1.0)?,
        });
    }
    let label_cost = input.at("oracle_cost")?.number()?;
    let usual = AuditTerms::new(label_cost, count_or(input, "calibration_labels", 0)?);
    let size = input.maybe("family_size").map(|node| node.count());
    let terms = AuditTerms {
        alpha: or(input, "alpha", usual.alpha)?,
        power: or(input, "power", usual.power)?,
        family_size: size.transpose()?.map(|size| size as u64),
        clusters_min: count_or(input, "min_clusters", usual.clusters_min)?,
        clusters_max: count_or(input, "max_clusters", usual.clusters_max)?,
        budget: input
            .maybe("budget")
            .map(|node| node.number())
            .transpose()?,
        ..usual
    };
    let plan = planner::plan_transport_audits(&scenarios, &terms).map_err(refused)?;
    for (((name, _), scenario), plan) in members.iter().zip(&scenarios).zip(&plan.plans) {
        let want = expected.at("policies")?.at(name)?;
        compare_audit(scenario, plan, &want, check)?;
    }
    check.number(
        &expected.at("calibration_labels")?,
        terms.calibration_labels as f64,
    )?;
    check.maybe(&expected.at("required_audit_labels")?, plan.audit_labels)?;
    check.maybe(&expected.at("required_total_labels")?, plan.total_labels)?;
    check.maybe(&expected.at("human_label_cost")?, plan.cost)?;
    check.maybe(&expected.at("budget")?, terms.budget)?;
    maybe_flag(&expected.at("within_budget")?, plan.within_budget, check)?;
    check.number(&expected.at("alpha")?, terms.alpha)?;
    check.number(&expected.at("family_size")?, plan.family_size as f64)?;
    check.number(&expected.at("family_power")?, terms.power)?;
    check.number(&expected.at("per_audit_power")?, plan.per_audit_power)?;
    check.number(&expected.at("min_clusters")?, terms.clusters_min as f64)?;
    for name in [
        "planning_model",
        "power_target",
        "interval",
        "finite_population_correction",
        "empirical_transport_verified",
        "cost_scope",
    ] {
        if let Some(node) = expected.maybe(name) {
            check.informative(&node, "a caveat that every plan carries");
        }
    }
    Ok(())
}

fn maybe_flag(expected: &Node<'_>, got: Option<bool>, check: &mut Check<'_>) -> Result<(), Stop> {
    match got {
        Some(got) => check.flag(expected, got),
        None => check.maybe(expected, None),
    }
}

fn compare_audit(
    scenario: &AuditScenario,
    plan: &AuditPlan,
    want: &Node<'_>,
    check: &mut Check<'_>,
) -> Result<(), Stop> {
    let echo = want.at("scenario")?;
    check.number(&echo.at("residual_sd")?, scenario.residual_sd)?;
    check.number(&echo.at("delta_max")?, scenario.margin)?;
    check.number(&echo.at("assumed_bias")?, scenario.bias)?;
    let count = |count: Option<u64>| count.map(|count| count as f64);
    check.maybe(&echo.at("available_clusters")?, count(scenario.available))?;
    check.number(&echo.at("labels_per_cluster")?, scenario.labels_per_cluster)?;
    check.maybe(&want.at("required_clusters")?, count(plan.clusters))?;
    check.maybe(&want.at("modeled_power")?, plan.power)?;
    check.maybe(&want.at("power_at_available")?, plan.power_at_available)?;
    maybe_flag(&want.at("within_available")?, plan.within_available, check)?;
    check.maybe(&want.at("required_labels")?, plan.labels)?;
    let reason = match plan.reason {
        AuditReason::Planned => "planned",
        AuditReason::BiasOutsideMargin => "assumed_mean_outside_margin",
        AuditReason::SearchLimit => "search_limit_reached",
    };
    check.text(&want.at("reason")?, reason)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn the_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/planner.json");
        let report = run("planner.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases);
    }
}
