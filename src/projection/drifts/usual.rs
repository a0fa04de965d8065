//! By what an audit of transport is graded that nobody planned.

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::estimated::ScaleEnds;
use clover_ledger::RequiredFact;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::audits::probes::Probes;
use crate::designs::Designs;

/// Largest acceptable mean residual of an audit that no plan grades, in millionths (CJE paper, D.6).
pub const USUAL_MARGIN: i64 = 50_000;
/// Into how many parts of its scale of labels the usual margin falls: it is one of them.
const USUAL_MARGIN_PARTS: i64 = 20;
/// Level of an audit that no plan grades, in millionths.
pub const USUAL_ALPHA: i64 = 50_000;
/// Fewest clusters with which an audit passes that no plan grades.
pub const USUAL_CLUSTERS: u64 = 20;

/// The usual margin of audits in millionths of a label unit: a twentieth of the declared scale of labels, else of the scale that
/// terms name, from rulebook 24 on of one at most, else of one.
pub fn usual_margin(state: &State, experiment: &ExperimentId, named: Option<ScaleEnds>) -> i64 {
    let declared = state.fold::<Designs>().scale(experiment);
    let part = |of: ScaleEnds| {
        let width = of.high_micro.value().saturating_sub(of.low_micro.value());
        width / USUAL_MARGIN_PARTS
    };
    if !state.asks(Question::ScaledMargin) {
        return USUAL_MARGIN;
    }
    match (declared, named.map(part)) {
        (Some(scale), _) => part(scale),
        // Whoever audits names the scale in its terms.
        (None, Some(named)) if state.asks(Question::DeclaredMargin) => named.min(USUAL_MARGIN),
        (None, Some(named)) => named,
        (None, None) => USUAL_MARGIN,
    }
}

/// How many policies share the error rate of audits by a design that no plan grades, at least: those that had scores when its
/// first probe could be read, or that have some now.
pub fn family_least(state: &State, experiment: &ExperimentId, design: &DesignId) -> u64 {
    let probes = state.fold::<Probes>().by_experiment.get(experiment);
    let probes = probes.filter(|_| state.asks(Question::WholeFamily));
    probes.map_or(0, |of| {
        let then = of.families.get(design).copied();
        then.unwrap_or(of.scores.len() as u64)
    })
}

/// An audit that nobody planned is graded by the usual numbers or stricter ones, as one of all policies that have probes.
pub(super) fn check_usual(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
) -> clover_ledger::RuleAnswer {
    let designs = state.fold::<Designs>();
    let design = designs.design(experiment, &said.design);
    let design = design.required("the design of the probes")?;
    let family = family_least(state, experiment, &said.design);
    let policies = family.max(design.policies.len() as u64);
    let most = usual_margin(state, experiment, said.terms.label_scale);
    let of = &said.audit;
    let margin = of.margin_micro.required("a margin")?;
    let is_usual = of.alpha_micro.value() <= USUAL_ALPHA
        && of.clusters_min.value() >= USUAL_CLUSTERS
        && of.family_size.value() >= policies
        && margin.value() <= most;
    ensure!(
        is_usual,
        format!(
            "a margin of at most {most} and an alpha of at most {USUAL_ALPHA} millionths, at least {USUAL_CLUSTERS} clusters, and a family of at least {policies}, where no plan says otherwise"
        ),
        format!(
            "margin {} and alpha {} millionths, {} clusters, family {}",
            margin.value(),
            of.alpha_micro.value(),
            of.clusters_min.value(),
            of.family_size.value()
        )
    );
    Ok(())
}
