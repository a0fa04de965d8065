//! Off-policy on a ledger: what logged responses of one policy say of another, and whether they can.
//!
//! [`logs`] reads them, [`compute`] gives estimates and diagnostics with the reading of its gates as the events say them.
//! CJE paper, sections 2.3 and 3, appendix D; conventions of `cje-eval` 0.3.0 with errors clustered by prompt.

pub mod compute;
pub mod logs;
mod said;

pub use compute::OpeError;
pub use compute::TargetDiagnosis;
pub use compute::target;
pub use said::claimed;
pub use said::marked;
pub use said::terms;
