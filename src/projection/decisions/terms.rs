//! What the gates of an iteration hold a candidate to: numbers of its manifest, and nothing else.

use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::RegressionGuard;
use clover_event::payload::predicate::Thresholds;
use clover_num::Count;
use clover_num::Micro;

/// Largest mean absolute uplift of style stripping: CLOVER v1.1, section 7.
const STYLE_MAX_MICRO: i64 = 20_000;

/// Alpha is divided by the most hypotheses that may be sealed, or by the registered families if there are more: the
/// divisor is known before anything is proposed.
pub fn thresholds_of(plan: &IterationPlan) -> Thresholds {
    let families = plan.patch_families.len() as u64;
    let divisor = plan.hypotheses_max.value().max(families);
    let guard = plan.design.as_ref().map(|design| design.must_not_regress);
    Thresholds {
        alpha_micro: plan.alpha_micro,
        confirm_test: plan.confirm_test,
        drift_max_micro: plan.drift_max_micro,
        ece_slack_micro: plan.ece_slack_micro,
        eta_micro: plan.eta_micro,
        hypotheses: Count::new(divisor).unwrap_or_default(),
        ks_max_micro: plan.ks_max_micro,
        must_not_regress: guard.unwrap_or(RegressionGuard::Literal),
        profile: plan.profile,
        q_micro: plan.q_micro,
        shift_metric: plan.shift_metric,
        style_max_micro: Micro::new(STYLE_MAX_MICRO).unwrap_or_default(),
        tau_micro: plan.tau_micro,
        uplift_max_micro: plan.uplift_max_micro,
        w1_max_micro: plan.w1_max_micro,
    }
}
