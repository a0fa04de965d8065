//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod estimate;
pub mod import;
pub mod prereg;
pub mod qualify;
pub mod recompute;
pub mod split;
