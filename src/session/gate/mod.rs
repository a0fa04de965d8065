//! The life of a gate, from the order of its units to the release that rests on it.
//!
//! Opening and observing append several events each. Every other step is one event: a function checks what it needs and
//! answers with a [`GateStep`], which the caller appends or rehearses.
//!
//! ```text
//! GateSetup -> exposure -> Observer -> look -> decide -> estimate, promote
//! ```

pub mod check;
pub mod error;
pub mod estimate;
pub mod exposure;
pub mod family;
pub mod gate_step;
pub mod observe;
pub mod open;
pub mod outcomes;
pub mod plan;
pub mod promote;
pub mod steps;

pub use error::GateError;
pub use gate_step::GateStep;
pub use observe::Observer;
pub use open::GateSetup;
pub use steps::decide;
pub use steps::look;
pub use steps::proceed;
