//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod import;
pub mod peer_manifest;
pub mod prereg;
pub mod qualify;
pub mod split;
