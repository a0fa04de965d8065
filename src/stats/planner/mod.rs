//! Sizes: how many scores and labels a question needs, and what a budget can answer.
//!
//! Sources: the CJE paper, appendix F; peer cje-eval 0.9.3 `planning` and `audit_planning` ; CLOVER v1.1,
//! section 8.

mod audit;
mod calibrated;
mod confirm;
mod law;
mod sizing;
mod surface;

pub use audit::AuditPlan;
pub use audit::AuditReason;
pub use audit::AuditScenario;
pub use audit::AuditTerms;
pub use audit::AuditsPlan;
pub use audit::pass_probability;
pub use audit::plan_transport_audits;
pub use calibrated::CalibratorError;
pub use calibrated::calibrated_pass_probability;
pub use calibrated::labels_factor;
pub use calibrated::plan_calibrated_audit;
pub use calibrated::variance_interval;
pub use confirm::ConfirmTerms;
pub use confirm::PlannedTest;
pub use law::BudgetOptimum;
pub use law::Costs;
pub use law::Plan;
pub use law::Power;
pub use law::VarianceModel;
pub use law::fit_variance;
pub use law::mde;
pub use law::plan_evaluation;
pub use law::plan_for_mde;
pub use law::square_root_law;
pub use sizing::confirm_rows;
pub use sizing::confirm_rows_beyond_eta;
pub use sizing::green_rows;
pub use sizing::mean_gain_needed;
pub use sizing::value_sizes;
pub use surface::SharedCost;
pub use surface::SpendAdvice;
pub use surface::SurfaceCell;
pub use surface::mde_surface;
pub use surface::shared_cost;
pub use surface::spend_advice;
