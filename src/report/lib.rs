//! View models and their renderings. Reports show numbers that others computed; they make none.

pub mod chart;
pub mod document;
pub mod forest;
pub mod iteration;
pub mod lead;
pub mod markdown;
mod matrix;
pub mod page;
mod plot;
mod points;
pub mod shown;
pub mod spark;
pub mod steps;
mod tree;
