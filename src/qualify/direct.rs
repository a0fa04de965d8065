//! Vectors of direct estimation: pieces of standard errors, whole analyses, bootstrap replicates.

use std::collections::BTreeSet;

use clover_stats::calibrator::CalibratorChoice;
use clover_stats::crv1;
use clover_stats::direct;
use clover_stats::direct::ClusterWeights;
use clover_stats::direct::Correction;
use clover_stats::direct::LabelDesign;
use clover_stats::direct::LabelledPrediction;
use clover_stats::direct::Options;
use clover_stats::direct::Scale;
use clover_stats::inference;
use clover_stats::peer_draws::Pcg64;
use clover_stats::peer_draws::PeerExponential;
use clover_stats::peer_draws::Ziggurat;
use clover_stats::sample::Clusters;

use crate::check::Arena;
use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use clover_workflow::analyze;
use clover_workflow::analyze::Analysis;
use clover_workflow::analyze::Labels;
use clover_workflow::analyze::Replicates;
use clover_workflow::analyze::Request;
use clover_workflow::analyze::Status;
use clover_workflow::analyze::dataset::Dataset;
use clover_workflow::analyze::dataset::Policy;
use clover_workflow::analyze::dataset::Prompts;
use clover_workflow::analyze::read;
use clover_workflow::analyze::read::FieldNames;
use clover_workflow::analyze::read::RESPONSE_LENGTH;

/// Policies of the real sample.
const ARENA: [&str; 4] = ["base", "clone", "parallel_universe_prompt", "unhelpful"];

/// Pieces of standard errors, and tuned weights.
///
/// # Errors
/// [`Stop`].
pub fn se_pieces(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    if case.input.maybe("outcomes").is_some() {
        return tuned(case, check);
    }
    let values = case.input.at("influence")?.numbers()?;
    let clusters = Clusters::of(case.input.at("clusters")?.counts()?).map_err(refused)?;
    let labelled = case.input.at("labelled_rows")?.flags()?;
    let jackknife = case.input.at("jackknife")?.numbers()?;
    let split = crv1::variance(&values, &clusters, &labelled).map_err(refused)?;
    let expected = &case.expected;
    check.number(&expected.at("crv1_se")?, split.total().sqrt())?;
    check.count(&expected.at("G")?, split.clusters)?;
    check.count(&expected.at("df")?, split.clusters - 1)?;
    let parts = expected.at("split")?;
    check.number(&parts.at("v_labelled")?, split.labelled)?;
    check.number(&parts.at("v_unlabelled")?, split.unlabelled)?;
    check.count(&parts.at("n_labelled_clusters")?, split.labelled_clusters)?;
    check.count(&parts.at("n_clusters")?, split.clusters)?;
    let calibration = inference::jackknife_variance(&jackknife).unwrap_or(0.0);
    check.number(&expected.at("oracle_jackknife_var")?, calibration)?;
    check.informative(
        &expected.at("oracle_jackknife_var_BUGGY_0_2_mean_form")?,
        "the mean form is too small by the number of folds",
    );
    let fold_df = jackknife.len() as f64 - 1.0;
    let plain_df = inference::welch(
        split.total(),
        split.clusters as f64 - 1.0,
        calibration,
        fold_df,
    );
    let plain = expected.at("combined_unadjusted")?;
    check.number(&plain.at("se")?, (split.total() + calibration).sqrt())?;
    check.number(&plain.at("df")?, plain_df)?;
    let corrected = split.corrected(case.input.at("fitted_parameters")?.count()?);
    let corrected = corrected.filter(|_| split.labelled_clusters > 0);
    check.maybe(
        &expected.at("labelled_variance")?,
        corrected.map(|(v, _)| v),
    )?;
    check.maybe(&expected.at("labelled_df")?, corrected.map(|(_, df)| df))?;
    if let (Some((variance, df)), Some(last)) = (corrected, expected.maybe("labelled_final")) {
        let welch = inference::welch(variance, df, calibration, fold_df);
        let least = df.min(welch).min(plain_df);
        check.number(&last.at("se")?, (variance + calibration).sqrt())?;
        check.number(&last.at("df")?, least)?;
        check.flag(&last.at("capped")?, least < df)?;
    }
    Ok(())
}

fn tuned(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let labels = case.input.at("outcomes")?.numbers()?;
    let predicted = case.input.at("predictions")?.numbers()?;
    let weights = case.input.at("weights")?.numbers()?;
    let clusters = match case.input.maybe("clusters") {
        Some(clusters) => Clusters::of(clusters.counts()?),
        None => Clusters::singletons(labels.len()),
    };
    let clusters = clusters.map_err(refused)?;
    let rows: Vec<LabelledPrediction> = (0..labels.len())
        .map(|row| LabelledPrediction {
            label: labels[row],
            predicted: predicted[row],
            weight: weights[row],
            cluster: clusters.of_row()[row],
        })
        .collect();
    let (weight, reason) = direct::tuned_weight(&rows);
    check.number(&case.expected.at("tuned_weight")?, weight)?;
    check.text(&case.expected.at("reason")?, reason.name())
}

/// Fresh draws written out in a case.
fn draws(node: &Node<'_>, length: Option<&Node<'_>>) -> Result<(Dataset, Prompts), Stop> {
    let with_length = length.map(Node::flag).transpose()? == Some(true);
    let mut prompts = Prompts::default();
    let mut policies = Vec::new();
    for (name, rows) in node.members()? {
        let mut policy = Policy {
            name: name.to_owned(),
            ..Policy::default()
        };
        for row in rows.elements()? {
            policy
                .prompts
                .push(prompts.number(row.at("prompt_id")?.text()?));
            policy.scores.push(row.at("judge_score")?.number()?);
            let label = row.maybe("oracle_label");
            policy
                .labels
                .push(label.map(|node| node.number()).transpose()?);
        }
        if let (true, Some(option)) = (with_length, length) {
            policy.covariates.push(lengths(&rows, option)?);
        }
        policies.push(policy);
    }
    let dataset = Dataset {
        policies,
        covariates: if with_length {
            vec![RESPONSE_LENGTH.to_owned()]
        } else {
            Vec::new()
        },
    };
    Ok((dataset, prompts))
}

/// Lengths of the responses that draws carry.
fn lengths(rows: &Node<'_>, option: &Node<'_>) -> Result<Vec<f64>, Stop> {
    let one = |row: &Node<'_>| {
        if let Some(length) = row.maybe(RESPONSE_LENGTH) {
            return length.number();
        }
        let response = row
            .maybe("response")
            .ok_or_else(|| option.unsupported("draws that carry a response or its length"))?;
        Ok(read::words(response.text()?) as f64)
    };
    rows.elements()?.iter().map(one).collect()
}

/// Analyses of synthetic draws.
///
/// # Errors
/// [`Stop`].
pub fn direct_synth(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let length = case.input.maybe("include_response_length");
    let (dataset, prompts) = draws(&case.input.at("fresh_draws")?, length.as_ref())?;
    let options = case.input.at("options")?;
    let mut request = Request::default();
    for (name, value) in options.members()? {
        match name {
            "label_design" => request.options.design = design(&value)?,
            "output_scale" => {
                let ends = value.numbers()?;
                let (&low, &high) = ends
                    .first()
                    .zip(ends.get(1))
                    .ok_or_else(|| value.malformed("two ends"))?;
                request.output_scale = Some(Scale::new(low, high).map_err(refused)?);
            }
            "label_propensities" => {
                let by_policy = value.members()?;
                let columns = by_policy.iter().map(|(_, node)| node.numbers());
                request.propensities = Some(columns.collect::<Result<_, _>>()?);
            }
            "estimator_config" => configure(&value, &mut request.options)?,
            _ => return Err(value.unsupported("the options of VECTORS.md")),
        }
    }
    let analysis = analyze::analyze(&dataset, &prompts, &request).map_err(refused)?;
    compare(case, check, &analysis)
}

fn design(node: &Node<'_>) -> Result<LabelDesign, Stop> {
    match node.text()? {
        "representative" => Ok(LabelDesign::Representative),
        "known_propensity" => Ok(LabelDesign::KnownPropensity),
        "targeted_unknown" => Ok(LabelDesign::TargetedUnknown),
        _ => Err(node.unsupported("representative, known_propensity and targeted_unknown")),
    }
}

fn configure(config: &Node<'_>, options: &mut Options) -> Result<(), Stop> {
    for (name, value) in config.members()? {
        match name {
            "correction_weight" => {
                options.correction = match value.text()? {
                    "one" => Correction::One,
                    "tuned" => Correction::Tuned,
                    _ => return Err(value.unsupported("one and tuned")),
                };
            }
            "use_augmented_estimator" => options.augment = value.flag()?,
            "oua_jackknife" => options.jackknife = value.flag()?,
            "paired_comparison" => options.paired = value.flag()?,
            _ => return Err(value.unsupported("the options of VECTORS.md")),
        }
    }
    Ok(())
}

/// The responses of the real sample.
pub(crate) fn arena_files(
    arena: Option<&dyn Arena>,
    covariates: &[String],
) -> Result<Vec<(Option<String>, read::Responses)>, Stop> {
    ARENA
        .iter()
        .map(|policy| {
            let file = format!("fresh_draws/{policy}_responses.jsonl");
            Ok((
                Some((*policy).to_owned()),
                arena_file(arena, &file, covariates)?,
            ))
        })
        .collect()
}

/// One file of the real sample.
pub(crate) fn arena_file(
    arena: Option<&dyn Arena>,
    file: &str,
    covariates: &[String],
) -> Result<read::Responses, Stop> {
    let arena = arena.ok_or_else(|| Stop::NotRun("needs the real sample: --arena DIR".into()))?;
    let text = arena.text(file).map_err(Stop::NotRun)?;
    let fields = FieldNames {
        covariates: covariates.to_vec(),
        ..FieldNames::default()
    };
    read::responses(file, &text, &fields).map_err(refused)
}

/// Analyses of the real sample.
///
/// # Errors
/// [`Stop`].
pub fn direct_arena(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let length = input.maybe("include_response_length");
    let covariates = match length.map(|node| node.flag()).transpose()? {
        Some(true) => vec![RESPONSE_LENGTH.to_owned()],
        _ => Vec::new(),
    };
    let files = arena_files(case.arena, &covariates)?;
    let (mut dataset, mut prompts) = read::dataset(&files, &covariates).map_err(refused)?;
    let mut request = Request::default();
    if let Some(inference) = input.maybe("inference")
        && !inference.text()?.starts_with("cluster_robust")
    {
        return Err(inference.unsupported("cluster_robust"));
    }
    if let Some(node) = input.maybe("base_labels_kept_prompt_ids")
        && let Some(ids) = kept(&node, |id| prompts.known(id).is_some())?
    {
        let kept: BTreeSet<u32> = ids.iter().filter_map(|id| prompts.known(id)).collect();
        let base = &mut dataset.policies[0];
        for (label, prompt) in base.labels.iter_mut().zip(&base.prompts) {
            *label = label.filter(|_| kept.contains(prompt));
        }
    }
    if let Some(used) = input.maybe("probe_prompt_ids_used") {
        attach_probes(case.arena, &used, &mut dataset, &prompts)?;
        configure(&input.at("estimator_config")?, &mut request.options)?;
    }
    let calibration;
    if let Some(path) = input.maybe("calibration_data_path") {
        let file = arena_file(case.arena, path.text()?, &covariates)?;
        calibration = read::calibration(&file, &mut prompts);
        request.labels = Labels::File(&calibration);
        let combine = input.at("combine_oracle_sources")?;
        if combine.flag()? {
            return Err(combine.unsupported("cases of one source of labels, false"));
        }
    }
    let analysis = analyze::analyze(&dataset, &prompts, &request).map_err(refused)?;
    compare(case, check, &analysis)
}

/// Prompts whose labels are kept: those of a list, or all where it says so.
pub(crate) fn kept<'a>(
    node: &Node<'a>,
    is_known: impl Fn(&str) -> bool,
) -> Result<Option<BTreeSet<&'a str>>, Stop> {
    if node.text().is_ok_and(|text| text == "all 480") {
        return Ok(None);
    }
    let Ok(ids) = node.texts() else {
        return Err(node.unsupported("a list of prompts, or \"all 480\""));
    };
    match ids.iter().find(|id| !is_known(id)) {
        Some(other) => Err(Stop::NotRun(format!(
            "{} names {other}, which the sample does not hold",
            node.path()
        ))),
        None => Ok(Some(ids.into_iter().collect())),
    }
}

/// Labels of the probe files, put on the responses that they belong to.
fn attach_probes(
    arena: Option<&dyn Arena>,
    used: &Node<'_>,
    dataset: &mut Dataset,
    prompts: &Prompts,
) -> Result<(), Stop> {
    for (policy, ids) in used.members()? {
        let ids = ids.texts()?;
        let probe = arena_file(arena, &format!("probe_slice/{policy}_probe.jsonl"), &[])?;
        let Some(target) = dataset.policies.iter_mut().find(|p| p.name == policy) else {
            return Err(used.malformed("policies of the sample"));
        };
        for (id, label) in probe.prompts.iter().zip(&probe.labels) {
            let (Some(number), true) = (prompts.known(id), ids.contains(&id.as_str())) else {
                continue;
            };
            for (prompt, value) in target.prompts.iter().zip(&mut target.labels) {
                if *prompt == number {
                    *value = *label;
                }
            }
        }
    }
    Ok(())
}

/// A seed of the peer's generator, which takes none below 0.
fn generator_seed(node: &Node<'_>) -> Result<u64, Stop> {
    let seed = node.integer()?;
    u64::try_from(seed).map_err(|_| refused(format!("seed {seed}: expected at least 0")))
}

/// Bootstrap replicates under the weights that the file writes out.
///
/// # Errors
/// [`Stop`].
pub fn bootstrap(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    if case.input.maybe("fresh_draws").is_none() {
        return stream(case, check);
    }
    let length = case.input.maybe("include_response_length");
    let (dataset, prompts) = draws(&case.input.at("fresh_draws")?, length.as_ref())?;
    let weights: Vec<Vec<f64>> = case
        .input
        .at("weights")?
        .elements()?
        .iter()
        .map(Node::numbers)
        .collect::<Result<_, _>>()?;
    let asked = case.input.at("n_bootstrap")?;
    if asked.count()? != weights.len() {
        return Err(asked.malformed("as many replicates as there are weights"));
    }
    let order = case.input.at("cluster_order")?.texts()?;
    if prompts
        .ids()
        .iter()
        .map(String::as_str)
        .ne(order.iter().copied())
    {
        check.fail(&case.input, "clusters come in another order".to_owned());
    }
    let seed = generator_seed(&case.input.at("numpy_pcg64_seed")?)?;
    let drawn = PeerExponential::new(seed, weights.len(), order.len());
    for (replicate, node) in case.input.at("weights")?.elements()?.iter().enumerate() {
        check.numbers(node, &drawn.weights(replicate, order.len()))?;
    }
    let given = CaseWeights(weights);
    let request = Request {
        replicates: Some(Replicates {
            weights: &given,
            fold_seed: generator_seed(&case.input.at("numpy_pcg64_seed")?)?,
        }),
        ..Request::default()
    };
    let analysis = analyze::analyze(&dataset, &prompts, &request).map_err(refused)?;
    let expected = &case.expected;
    let estimates: Vec<f64> = analysis.policies.iter().map(|p| p.estimate).collect();
    check.numbers(&expected.at("estimates")?, &estimates)?;
    let replicates = expected.at("replicates")?;
    for (node, replicate) in replicates.elements()?.iter().zip(&analysis.replicates) {
        check.numbers(node, replicate)?;
    }
    let resampled = analysis.policies.iter().filter_map(|p| p.resampled);
    let (se, intervals): (Vec<f64>, Vec<[f64; 2]>) = resampled
        .map(|r| (r.se, [r.interval.low, r.interval.high]))
        .unzip();
    check.numbers(&expected.at("standard_errors")?, &se)?;
    for (node, interval) in expected.at("ci95")?.elements()?.iter().zip(&intervals) {
        check.numbers(node, interval)?;
    }
    check.text(&expected.at("refit_mode")?, "auto")?;
    check.informative(
        &expected.at("n_rng_calls")?,
        "calls of the peer's generator",
    );
    Ok(())
}

/// Exponential draws of the peer's generator.
fn stream(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    case.input.at("calls")?.text()?;
    let mut generator = Pcg64::new(generator_seed(&case.input.at("seed")?)?);
    let ziggurat = Ziggurat::default();
    for call in case.expected.at("draws")?.elements()? {
        let size = call.elements()?.len();
        let drawn: Vec<f64> = (0..size)
            .map(|_| ziggurat.exponential(&mut generator))
            .collect();
        check.numbers(&call, &drawn)?;
    }
    Ok(())
}

/// Weights as a case gives them.
struct CaseWeights(Vec<Vec<f64>>);

impl ClusterWeights for CaseWeights {
    fn replicates(&self) -> usize {
        self.0.len()
    }

    fn weights(&self, replicate: usize, _clusters: usize) -> Vec<f64> {
        self.0[replicate].clone()
    }
}

fn compare(case: &Case<'_>, check: &mut Check<'_>, analysis: &Analysis) -> Result<(), Stop> {
    let expected = &case.expected;
    let policies = &analysis.policies;
    check.text(&expected.at("method")?, "calibrated_direct")?;
    let names = expected.at("policies")?;
    for (node, policy) in names.elements()?.iter().zip(policies) {
        check.text(node, &policy.name)?;
    }
    let column = |value: fn(&analyze::PolicyResult) -> f64| -> Vec<f64> {
        policies.iter().map(value).collect()
    };
    let spread = |p: &analyze::PolicyResult| p.spread.ok();
    check.numbers(&expected.at("estimates")?, &column(|p| p.estimate))?;
    check.numbers(&expected.at("plug_in")?, &column(|p| p.plug_in))?;
    check.numbers(
        &expected.at("residual_correction")?,
        &column(|p| p.correction),
    )?;
    check.numbers(
        &expected.at("oracle_fraction")?,
        &column(|p| p.labelled_share),
    )?;
    let se: Vec<f64> = policies
        .iter()
        .map(|p| spread(p).map_or(f64::NAN, |s| s.se))
        .collect();
    check.numbers(&expected.at("standard_errors")?, &se)?;
    for (policy, node) in policies.iter().zip(expected.at("ci95")?.elements()?) {
        let interval = spread(policy).map_or([f64::NAN; 2], |s| [s.interval.low, s.interval.high]);
        check.numbers(&node, &interval)?;
    }
    for (policy, node) in policies.iter().zip(expected.at("routes")?.elements()?) {
        check.text(&node, policy.route.name())?;
    }
    if let Ok(calibration) = &analysis.calibration {
        let selected: CalibratorChoice = calibration.calibrator.selected;
        check.text(&expected.at("selected_mode")?, selected.name())?;
    }
    let variances = expected.at("oracle_variance")?;
    for policy in policies {
        let name = policy.name.as_str();
        if let Some(spread) = spread(policy) {
            check.number(&expected.at("df")?.at(name)?, spread.df)?;
            check.text(
                &expected.at("df_method")?.at(name)?,
                spread.df_method.name(),
            )?;
        }
        match (policy.calibration_variance, variances.is_null()) {
            (None, true) => check.maybe(&variances, None)?,
            (variance, _) => check.maybe(&variances.at(name)?, variance)?,
        }
        let status = Status::of_peer(policy);
        check.text(&expected.at("status")?.at(name)?, status.name())?;
        card(&expected.at("boundary")?.at(name)?, check, policy, analysis)?;
    }
    pairs(&expected.at("pairwise")?, check, analysis)
}

fn card(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    policy: &analyze::PolicyResult,
    analysis: &Analysis,
) -> Result<(), Stop> {
    let (Some(card), Ok(calibration)) = (policy.card, &analysis.calibration) else {
        check.fail(expected, "no boundary card".to_owned());
        return Ok(());
    };
    check.text(&expected.at("status")?, card.status.name())?;
    check.number(&expected.at("out_of_range")?, card.out_of_range)?;
    check.number(&expected.at("saturation")?, card.saturation)?;
    check.maybe(&expected.at("partial_id_width")?, card.partial_id_width)?;
    let (low, high) = calibration.score_range;
    check.numbers(&expected.at("oracle_s_range")?, &[low, high])
}

fn pairs(expected: &Node<'_>, check: &mut Check<'_>, analysis: &Analysis) -> Result<(), Stop> {
    let nodes = expected.elements()?;
    if nodes.len() != analysis.differences.len() {
        check.fail(expected, "another number of pairs".to_owned());
    }
    check.count_of(expected, nodes.len());
    for (node, pair) in nodes.iter().zip(&analysis.differences) {
        let name = |policy: usize| analysis.policies[policy].name.as_str();
        check.text(&node.at("policy1")?, name(pair.first))?;
        check.text(&node.at("policy2")?, name(pair.second))?;
        check.number(&node.at("difference")?, pair.difference)?;
        check.number(&node.at("se_difference")?, pair.se)?;
        check.number(&node.at("p_value")?, pair.p)?;
        check.number(&node.at("ci_lower")?, pair.interval.low)?;
        check.number(&node.at("ci_upper")?, pair.interval.high)?;
        check.maybe(&node.at("df")?, pair.df)?;
        check.number(&node.at("p_adjusted")?, pair.p_adjusted)?;
        check.text(&node.at("basis")?, pair.basis.name())?;
        check.informative(&node.at("method")?, "the peer's name of its own route");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn every_case_of_the_bundled_vectors_passes() {
        for name in [
            "bootstrap.json",
            "direct_arena.json",
            "direct_synth.json",
            "se_pieces.json",
        ] {
            let report = bundled(name);
            assert!(report.is_clean(), "{:#?}", report.failures);
            assert_eq!(report.passed, report.cases, "{name}: {:?}", report.not_run);
        }
    }
}
