//! Judge prompts as parameters: sections, the patches that edit them, and the rules that bound a step.
//!
//! A [`JudgePrompt`] is a list of sections, most of them frozen. A [`Proposal`] edits one open section by a unified
//! diff. [`validate`] decides from the bytes alone whether a step may take it: how many characters it edits, how much
//! more it binds the judge, and what the learning rate of the step permits. [`leak`] finds words of rows in what leaves
//! for an agent or comes back. `schema/JUDGE_PROMPT.md` gives files, bytes and rules.

pub mod aggregate;
pub mod check;
#[cfg(test)]
mod check_tests;
pub mod diff;
pub mod gradient;
pub mod leak;
pub mod lexicon;
pub mod markdown;
mod model;
pub mod myers;
pub mod normal;
pub mod patch;
pub mod schedule;
pub mod sentence;
mod written;

pub use check::PatchRule;
pub use check::PatchTerms;
pub use check::StepContext;
pub use check::StepMeasures;
pub use check::ValidatedPatch;
pub use check::Violation;
pub use check::validate;
pub use gradient::Gradient;
pub use gradient::GradientRequest;
pub use leak::LeakIndex;
pub use lexicon::Lexicon;
pub use model::FILE_MAX;
pub use model::JudgePrompt;
pub use model::LINES_MAX;
pub use model::ORD_MAX;
pub use model::PROMPT_CHARS_MAX;
pub use model::PromptFault;
pub use model::PromptParts;
pub use model::PromptSection;
pub use model::SECTION_CHARS_MAX;
pub use model::SECTIONS_MAX;
pub use model::SENTENCES_MAX;
pub use model::SectionKind;
pub use model::TITLE_MAX;
pub use model::is_id;
pub use patch::AnswerFault;
pub use patch::ChangeKind;
pub use patch::Proposal;
pub use patch::SectionPatch;
pub use schedule::Schedule;
pub use written::FileFault;
