//! Rubrics and patches: what a judge is told to hold an answer to, and the small edits that are proposed to
//! it. Pure, and knows no event.
//!
//! A judge's raw answer is a base score and an [`Evidence`](evidence::Evidence) record, written once;
//! [`engine`] turns both into the score under a [`Rubric`], any number of times, to the same millionth.
//! A [`Patch`] edits single leaves; [`check()`] runs the twelve checks and says what would change, how long
//! the edit is, and what it needs. `schema/RUBRIC.md` gives the bytes of the hashes.

mod check;
pub mod engine;
pub mod evidence;
pub mod extract;
pub mod kappa;
pub mod leaf;
mod model;
mod patch;
pub mod prompt;
pub mod starter;

pub use check::Change;
pub use check::CheckedPatch;
pub use check::Context;
pub use check::PATCH_LABEL;
pub use check::between;
pub use check::check;
pub use check::check_patch;
pub use check::class_of;
pub use check::hash_of;
pub use check::is_hard_rule;
pub use check::needs_two_keys;
pub use leaf::Class;
pub use leaf::Family;
pub use leaf::Value;
pub use model::Leaf;
pub use model::RUBRIC_LABEL;
pub use model::Rubric;
pub use model::RubricFault;
pub use patch::AttackBound;
pub use patch::Code;
pub use patch::Op;
pub use patch::Patch;
pub use patch::PatchFault;
pub use patch::SliceEffect;
