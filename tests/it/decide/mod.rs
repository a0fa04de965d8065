//! Every rule, given, when, then, and by both readers: the same breach is refused at append, and found by
//! `verify` in a ledger that was written around the program.

mod assumptions;
mod batteries;
mod beside;
mod calibrators;
mod chosen;
mod decisions;
mod deployments;
mod drifts;
mod environments;
mod estimate;
mod gate_attacks;
mod gate_strata;
mod gates;
mod generators;
mod idempotency;
mod intake;
mod invariants;
mod iterations;
mod prereg;
mod recompute;
mod releases;
mod repairs;
mod rules;
mod world;
