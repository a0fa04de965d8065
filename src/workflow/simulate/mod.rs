//! Data with a known truth: prompts, responses that the extractor and the operators can work on, a judge with a known
//! fault, labels, and what a patch is truly worth.
//!
//! A [`World`] is a pure function of its [`Setting`] and a seed. Row number i comes from its own stream, so any
//! number of fresh rows can be drawn, in any order and on any number of threads. [`truth`] computes the true change of
//! mean squared error on fresh rows, [`iteration`] runs whole iterations, [`files`] writes a data set in the form that
//! `clover import cje` reads.

pub mod files;
pub mod iteration;
mod prose;
pub mod shipped;
pub mod truth;
mod world;

pub use world::Fault;
pub use world::Kind;
pub use world::Setting;
pub use world::SettingError;
pub use world::SimulatedRow;
pub use world::World;
