//! Inputs of runs, one a line.
//!
//! `{"id":"a-1","input":{"x":…,"c":…}}`; `truth` and `sim`, where they are there, are what a person knows to be right
//! and what a simulated model does. Neither reaches a workflow: it sees `input` alone.

use std::collections::BTreeMap;

use clover_ground::canon;
use clover_ground::digest::Digest;

use crate::decode::Spot;
use crate::executor::simulator::ItemModel;
use crate::fault::Fault;
use crate::syntax;
use crate::value::Data;

/// Most bytes of a line.
pub const LINE_MAX: usize = 1 << 20;

/// One item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// What a workflow is given, by the name of its input.
    pub inputs: BTreeMap<String, Data>,
    /// What is right.
    pub truth: Option<Data>,
    /// What a simulated model does.
    pub model: Option<ItemModel>,
}

/// Domain of the digest of an item's inputs.
const INPUT_LABEL: &str = "clover/wf-input/v1";

impl Item {
    /// A line with its id and what a workflow is given, and nothing else.
    pub fn input_line(&self) -> String {
        let line = Data::object([
            ("id", self.id.as_str().into()),
            ("input", Data::Object(self.inputs.clone())),
        ]);
        format!("{line}\n")
    }

    /// A line with its id and what is right; `None` where nobody says it.
    pub fn truth_line(&self) -> Option<String> {
        let truth = self.truth.clone()?;
        let line = Data::object([("id", self.id.as_str().into()), ("truth", truth)]);
        Some(format!("{line}\n"))
    }

    /// SHA-256 of `clover/wf-input/v1`, a zero byte and the canonical JSON of what a workflow is given.
    pub fn input_digest(&self) -> Digest {
        canon::digest(INPUT_LABEL, &Data::Object(self.inputs.clone()))
    }

    /// Reads a line of what is right: the id, and what it is.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused.
    pub fn parse_truth(line: &str) -> Result<(String, Data), Fault> {
        let node = syntax::parse(line, LINE_MAX)?;
        let fields = Spot::root(&node).fields(&["id", "truth"])?;
        let id = fields.need("id")?.text(200)?.to_owned();
        Ok((id, fields.need("truth")?.rounded()))
    }

    /// Reads a line; an item without an id is called by the number of its line.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused; its line counts from 1 within the text.
    pub fn parse(line: &str, number: usize) -> Result<Self, Fault> {
        let node = syntax::parse(line, LINE_MAX)?;
        let fields = Spot::root(&node).fields(&["id", "input", "truth", "sim"])?;
        let id = match fields.get("id") {
            Some(spot) => spot.text(200)?.to_owned(),
            None => number.to_string(),
        };
        let members = fields.need("input")?.members()?.into_iter();
        // Inputs are what people have: decimals beyond the sixth are rounded, as in answers.
        let inputs = members.map(|(name, spot)| (name.to_owned(), spot.rounded()));
        Ok(Self {
            id,
            inputs: inputs.collect(),
            truth: fields.get("truth").map(|spot| spot.rounded()),
            model: fields
                .get("sim")
                .map(|spot| ItemModel::decode(&spot))
                .transpose()?,
        })
    }
}
