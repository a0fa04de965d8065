//! Texts and ids of rows that may stand in nothing that is handed over or returned.

use clover_num::Count;
use clover_prompt::leak::LeakIndex;

/// Texts and ids of rows.
#[derive(Clone, Debug)]
pub struct ProtectedTexts {
    ids: Vec<String>,
    known: String,
    texts: Vec<String>,
}

impl ProtectedTexts {
    /// Of rows; what prompt 0 holds is no leak.
    pub fn of(known: &str, ids: &[String], texts: &[String]) -> Self {
        let once = |of: &[String]| {
            let mut all = of.to_vec();
            all.sort_unstable();
            all.dedup();
            all
        };
        Self {
            ids: once(ids),
            known: known.to_owned(),
            texts: once(texts),
        }
    }

    /// How many ids.
    pub fn ids(&self) -> Count {
        Count::new(self.ids.len() as u64).unwrap_or_default()
    }

    /// How many texts.
    pub fn texts(&self) -> Count {
        Count::new(self.texts.len() as u64).unwrap_or_default()
    }

    /// What of a row stands in a text, in words that do not repeat it.
    pub fn found_in(&self, text: &str) -> Option<String> {
        let index = LeakIndex::new([text], [self.known.as_str()]);
        if let Some(id) = self.ids.iter().find(|id| index.id(id).is_some()) {
            return Some(format!("the id of a row, {id}"));
        }
        let leaks = self.texts.iter().any(|text| index.text(text).is_some());
        leaks.then(|| "words of the text of a row".to_owned())
    }
}
