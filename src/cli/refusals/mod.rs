//! How refusals of use cases are shown: the exit code, the word and the way on of each, family by family.

pub(in crate::cli) mod command_line;
mod custody;
mod deploy;
mod estimates;
mod founding;
mod keys;
#[cfg(test)]
mod pasted;
pub(in crate::cli) mod reader_words;
pub(in crate::cli) mod suggested;
mod waivers;
