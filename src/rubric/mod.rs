//! Rubrics and patches: what a judge is told to hold an answer to, and the small edits that are proposed to
//! it. Pure, and knows no event.
//!
//! A judge's raw answer is a base score and an [`Evidence`](evidence::Evidence) record, written once;
//! [`engine`] turns both into the score under a rubric, any number of times, to the same millionth.

pub mod engine;
pub mod evidence;
pub mod extract;
