//! The rule `recalibration`: fresh labels, residuals or an audit that passed, and anchors that stay where they are.

use clover_event::id::EventId;
use clover_event::payload::Verdict;
use clover_event::payload::deployment::RecalibrationCompleted;
use clover_event::payload::deployment::RecalibrationInputs;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::predicate::Evidence;
use clover_ledger::RuleAnswer;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_projection::designs::Designs;
use clover_projection::rubrics::RubricRegistration;

use crate::deploy::DeploymentContext;
use crate::deploy::word;
use crate::guardrails;
use crate::predicate;

/// Fresh labels that a recalibration takes.
const LABELS_MIN: u64 = 100;
/// Rows and sets of anchors, and how far they may move.
const ANCHOR_ROWS_MIN: u64 = 200;
const ANCHOR_SETS_MIN: usize = 2;
pub(crate) const DRIFT_MAX: f64 = 0.01;

impl DeploymentContext<'_> {
    pub(super) fn check_recalibrated(&self, said: &RecalibrationCompleted) -> RuleAnswer {
        let registered = self.named(said.commit)?;
        let labels = said.labels.value();
        ensure!(
            labels >= LABELS_MIN,
            format!("at least {LABELS_MIN} fresh labels"),
            labels.to_string()
        );
        let designs = self.state.fold::<Designs>();
        let design = designs.design(self.experiment, &said.design);
        let fresh = design.filter(|design| {
            let known = design.registered.as_ref();
            known.is_some_and(|of| of.seq > registered.seq && of.purpose != DesignPurpose::Confirm)
        });
        let given = fresh.map_or(0, |design| design.open + design.revealed);
        ensure!(
            given >= labels,
            format!(
                "{labels} open labels of {}, registered after seq {}",
                said.design, registered.seq
            ),
            given.to_string()
        );
        let wanted = "what it was computed from, or a transport.tested";
        match (&said.computed, said.transport) {
            (Some(computed), None) => self.check_computed(computed, registered)?,
            (None, Some(transport)) => self.check_audited(said, transport, registered.seq)?,
            (Some(_), Some(_)) => return unmet(wanted, "both"),
            (None, None) => return unmet(wanted, "neither"),
        }
        check_steady(said)
    }

    /// Residuals pass by the thresholds of the plan.
    fn check_computed(
        &self,
        said: &RecalibrationInputs,
        registered: &RubricRegistration,
    ) -> RuleAnswer {
        let plan = self.plan(registered)?;
        ensure!(
            said.thresholds == guardrails::thresholds(plan),
            "the thresholds of the plan",
            "others"
        );
        let environments = &said.transport.environments;
        ensure!(
            environments.first().is_some_and(|of| of.required),
            "residuals of all fresh labels first, which must pass",
            "none"
        );
        let verdict = predicate::verdicts(&Evidence::P6(said.transport.clone()), &said.thresholds);
        ensure!(
            verdict.recommended == Verdict::Pass,
            "residuals on fresh labels that pass",
            word(verdict.recommended)
        );
        Ok(())
    }

    /// A calibrator that was fitted for the judge, with an audit of transport that passed.
    fn check_audited(
        &self,
        said: &RecalibrationCompleted,
        transport: EventId,
        since: u64,
    ) -> RuleAnswer {
        let fitted = self.of.fit(&said.judge, said.calibrator);
        ensure!(
            fitted.is_some(),
            format!("a calibrator that was fitted for {}", said.judge),
            said.calibrator.to_string()
        );
        let tested = self.of.transports.get(&transport);
        let tested = tested.filter(|of| of.calibrator == said.calibrator && of.seq > since);
        let found = tested.map(|of| of.state);
        ensure!(
            found == Some(TransportState::Pass),
            format!("a transport.tested of this calibrator after seq {since} that passed"),
            found.map_or("none".to_owned(), |state| state.to_string())
        );
        Ok(())
    }
}

/// Anchors of a recalibration stay where they are.
fn check_steady(said: &RecalibrationCompleted) -> RuleAnswer {
    let anchors = &said.anchors.anchors;
    ensure!(
        anchors.len() >= ANCHOR_SETS_MIN,
        format!("{ANCHOR_SETS_MIN} anchor policies"),
        anchors.len().to_string()
    );
    for anchor in anchors {
        ensure!(
            anchor.rows.value() >= ANCHOR_ROWS_MIN && anchor.drift.value() <= DRIFT_MAX,
            format!(
                "a drift of at most {DRIFT_MAX} on {ANCHOR_ROWS_MIN} rows of {}",
                anchor.policy
            ),
            format!("{} on {}", anchor.drift, anchor.rows)
        );
    }
    Ok(())
}
