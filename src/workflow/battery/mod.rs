//! The battery under a rubric and a calibrator: [`run`] attacks and scores anew, [`measured`] says what came of it as an
//! event, with the exploits that were found.

pub mod answers;
pub mod measured;
pub mod prepared;
mod run;

pub use run::OperatorVerdict;
pub use run::Scorer;
pub use run::Seed;
pub use run::evaluate;
pub use run::run;
