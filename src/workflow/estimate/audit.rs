//! Audits of transport: a policy's probes, graded once.

use std::collections::BTreeMap;

use clover_event::id::DesignId;
use clover_event::payload::audit::AuditTerms;
use clover_event::payload::audit::ResidualWidth;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::AuditObstacle;
use clover_event::payload::estimated::EnvironmentRows;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::manifest::TransportPlan;
use clover_ground::digest::Digest;
use clover_num::Micro;
use clover_projection::audits::BOUNDED_AUDIT;
use clover_projection::drifts;
use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::transport::AuditState;
use clover_stats::transport::TransportAudit;
use clover_stats::transport::Width;

use crate::analyze;
use crate::analyze::AnalyzeError;
use crate::analyze::Probe;
use crate::estimate::compute;
use crate::estimate::compute::AuditRequest;
use crate::estimate::compute::Found;
use crate::estimate::form::Form;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::Probes;
use crate::estimate::terms;
use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::ends;
use crate::estimate::terms::finite;
use crate::estimate::terms::size;
use crate::estimate::terms::text;

/// Algorithm of an audit by its form, with its version.
pub fn algorithm(form: Form) -> &'static str {
    match form {
        Form::Bare => "transport/1",
        Form::Claimed | Form::Compared | Form::Shared => BOUNDED_AUDIT,
    }
}

/// How audits are graded where no manifest says so, within a margin in millionths of a label unit.
pub fn usual(family_size: usize, margin: i64) -> AuditTerms {
    AuditTerms {
        alpha_micro: Micro::new(drifts::usual::USUAL_ALPHA).unwrap_or_default(),
        clusters_min: count(drifts::usual::USUAL_CLUSTERS),
        family_size: size(family_size.max(1)),
        manifest: None,
        margin_micro: Micro::new(margin),
    }
}

/// How a registered manifest has audits graded.
pub fn planned(plan: &TransportPlan, manifest: Digest) -> AuditTerms {
    AuditTerms {
        alpha_micro: plan.alpha_micro,
        clusters_min: plan.clusters_min,
        family_size: plan.family_size,
        manifest: Some(manifest),
        margin_micro: Some(plan.margin_micro),
    }
}

/// What keeps the audit of a policy, by its position and the number of its probes, from passing; of an environment also by
/// the rows that they were drawn from.
pub type FindObstacles<'a> =
    dyn Fn(&Found, (usize, usize), Option<EnvironmentRows>) -> Vec<AuditObstacle> + 'a;

/// What an audit computes with.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The design of the probes.
    pub design: &'a DesignId,
    /// The policies that are audited, by their position.
    pub policies: &'a [usize],
    /// How they are graded.
    pub terms: &'a AuditTerms,
    /// By which rulebook they are recorded.
    pub form: Form,
    /// Whether an audit of an environment says how many rows it has.
    pub inside: bool,
    /// Whether a probe counts only if its score stands before its label could be read.
    pub timely: bool,
    /// What keeps the audit of a policy, by its position and the number of its probes, from passing.
    pub obstacles: &'a FindObstacles<'a>,
}

/// Audits of some policies: the events, and the computation that they come from. Every policy that the design has open
/// probes of is computed, so that p-values are adjusted over the same family whoever is asked for.
///
/// # Errors
/// [`AnalyzeError`]; with a label that the calibrator saw too, among others.
pub fn audit(
    gathered: Gathered,
    of: &EstimateTerms,
    ask: &Ask<'_>,
) -> Result<(Found, Vec<TransportTested>), AnalyzeError> {
    let held: BTreeMap<usize, (Probes, u64)> = if ask.timely {
        gathered.timely_probes(ask.design)
    } else {
        let all = gathered.probes.get(ask.design).into_iter().flatten();
        all.map(|(policy, probes)| (*policy, (probes.clone(), 0)))
            .collect()
    };
    let margin = ask.terms.margin_micro.map(terms::unit);
    let all = held.iter().map(|(policy, (probes, _))| {
        let responses = gathered.probe(*policy, probes);
        Probe { responses, margin }
    });
    let probes: Vec<Probe> = all.collect();
    let request = AuditRequest {
        alpha: terms::unit(ask.terms.alpha_micro),
        family_size: usize::try_from(ask.terms.family_size.value()).unwrap_or(usize::MAX),
        clusters_min: ask.terms.clusters_min.value() as f64,
        form: ask.form,
    };
    let fit = terms::fit(of);
    let found = compute::compute(gathered, fit, &probes, Some(&request), None)?;
    let newest = held.values().map(|(probes, _)| probes.newest).max();
    let mut events = Vec::with_capacity(held.len());
    for (&policy, (probes, late)) in &held {
        let of = (policy, probes, *late);
        events.extend(tested(&found, ask, of, newest.unwrap_or(0)));
    }
    adjust(&mut events, request.family_size)?;
    let names: Vec<_> = ask
        .policies
        .iter()
        .map(|&policy| found.name(policy))
        .collect();
    events.retain(|event| names.contains(&event.policy));
    Ok((found, events))
}

/// What the audit of one policy found; `None` without a calibrator.
fn tested(
    found: &Found,
    ask: &Ask<'_>,
    (policy, probes, late): (usize, &Probes, u64),
    newest: u64,
) -> Option<TransportTested> {
    let span = found.analysis.output_scale.span();
    let audit = &found.analysis.policies[policy].transport.as_ref()?.audit;
    let is_inside = ask.inside && found.terms.environment.is_some();
    let drawn = is_inside.then(|| found.gathered.to_draw((policy, ask.design), |_| true));
    let obstacles = (ask.obstacles)(found, (policy, audit.rows), drawn);
    Some(TransportTested {
        algorithm: text(algorithm(ask.form)),
        audit: ask.terms.clone(),
        build: text(BUILD),
        calibrator: found.digest()?,
        charge: probes.charge,
        clusters: size(audit.clusters),
        design: ask.design.clone(),
        drawn,
        effective_clusters: finite(audit.effective_clusters),
        late: ask.timely.then(|| count(late)),
        mean_residual: finite(span * audit.mean),
        narrow: width(&audit.narrow, span),
        obstacles: obstacles.clone(),
        policy: found.name(policy),
        probes_root: found.gathered.probes_root(policy, probes),
        rows: size(audit.rows),
        state: decided(audit, late > 0 || !obstacles.is_empty()),
        terms: found.terms.clone(),
        through_seq: count(found.gathered.newest.max(newest)),
        wide: width(&audit.wide, span),
        zero_null_p_adjusted: None,
    })
}

/// A pass needs the wide interval within the margin; a failure either interval wholly beyond it: this calibrator misses
/// these probes, however uncertain it is itself. Probes that were scored late, or never, leave it open whether it holds, as
/// other obstacles do.
fn decided(audit: &TransportAudit, is_kept_back: bool) -> TransportState {
    match (audit.narrow.state, audit.wide.state) {
        (AuditState::Fail, _) => TransportState::Fail,
        (_, AuditState::Pass) if is_kept_back => TransportState::Inconclusive,
        (_, wide) => terms::state(wide),
    }
}

/// Adjusts the zero-null p within the family; audits of the family that are not at hand count as 1.
fn adjust(events: &mut [TransportTested], family_size: usize) -> Result<(), AnalyzeError> {
    let mut values: Vec<f64> = events
        .iter()
        .filter_map(|event| Some(event.wide.zero_null_p?.value()))
        .collect();
    // A family beyond what can be listed adjusts as its first hundred thousand do.
    values.resize(
        family_size.clamp(values.len(), 100_000.max(values.len())),
        1.0,
    );
    let adjusted = analyze::adjusted(values, MultiplicityCorrection::BenjaminiHochberg)?;
    let tested = events
        .iter_mut()
        .filter(|event| event.wide.zero_null_p.is_some());
    for (event, adjusted) in tested.zip(adjusted) {
        event.zero_null_p_adjusted = Some(finite(adjusted));
    }
    Ok(())
}

fn width(of: &Width, span: f64) -> ResidualWidth {
    let scaled = |value: Option<f64>| value.map(|value| finite(span * value));
    ResidualWidth {
        detectable_bias: scaled(of.detectable_bias),
        df: finite(of.df),
        interval: of.interval.map(|at| {
            ends(clover_stats::inference::Interval {
                low: span * at.low,
                high: span * at.high,
            })
        }),
        min_margin_for_pass: scaled(of.min_margin_for_pass),
        se: scaled(of.standard_error),
        state: terms::state(of.state),
        zero_null_p: of.zero_null_p.map(finite),
    }
}

/// Policies that have probes of a design, by position.
pub fn probed(gathered: &Gathered, design: &DesignId) -> Vec<usize> {
    let of = gathered.probes.get(design);
    of.map_or_else(Vec::new, |of| of.keys().copied().collect())
}
