//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod prereg;
pub mod qualify;
