//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod battery;
pub mod import;
pub mod peer_manifest;
pub mod judge;
pub mod prereg;
pub mod qualify;
pub mod simulate;
pub mod split;
