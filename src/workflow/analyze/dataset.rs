//! Judge-scored responses of several policies on shared prompts.

use std::collections::BTreeMap;

/// All policies, in order of their names, on numbered prompts.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    /// Policies in order of their names.
    pub policies: Vec<Policy>,
    /// Names of the covariate columns.
    pub covariates: Vec<String>,
}

/// The responses of one policy; every column has one entry per response.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Prompt numbers.
    pub prompts: Vec<u32>,
    /// Judge scores as recorded, finite.
    pub scores: Vec<f64>,
    /// Labels as recorded, finite where they are.
    pub labels: Vec<Option<f64>>,
    /// Covariates, one column each.
    pub covariates: Vec<Vec<f64>>,
    /// Files that its responses were read from.
    pub files: Vec<String>,
    /// Index of the file, and line from 1, of each response; empty for responses that no file holds.
    pub lines: Vec<(u32, u32)>,
}

impl Policy {
    /// Responses.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Where a response was read, for messages.
    pub fn place(&self, row: usize) -> String {
        let read = self.lines.get(row).and_then(|&(file, line)| {
            let file = self.files.get(file as usize)?;
            Some(format!("{file} line {line}"))
        });
        read.unwrap_or_else(|| format!("policy {}, response {}", self.name, row + 1))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Responses with a label.
    pub fn labelled(&self) -> usize {
        self.labels.iter().flatten().count()
    }
}

/// Numbers prompt ids in order of first appearance.
#[derive(Debug, Default)]
pub struct Prompts {
    numbers: BTreeMap<String, u32>,
    ids: Vec<String>,
}

impl Prompts {
    /// The number of an id.
    pub fn number(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.numbers.get(id) {
            return number;
        }
        let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.numbers.insert(id.to_owned(), number);
        self.ids.push(id.to_owned());
        number
    }

    /// The number of an id that was seen before.
    pub fn known(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    /// Ids by number.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }
}
