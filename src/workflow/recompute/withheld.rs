//! Which computations ask for the texts of subjects: none of them can run again once a key is destroyed.
//!
//! Each computation that may read texts is run with a probe in place of the vault, so that the answer needs no key and
//! is the same before an erasure and after.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::payload::PrivateRef;
use clover_event::payload::judge::ScoreRecorded;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_projection::reader::LogReader;

use crate::analyze::read::RESPONSE_LENGTH;
use crate::estimate::rows::Covariates;
use crate::recompute::Context;
use crate::recompute::RecomputeCache;
use crate::recompute::recipe;

/// An entry that cannot be computed again without the texts of subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedEntry {
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// Its kind.
    pub kind: Kind,
    /// Its position.
    pub seq: u64,
    /// The subjects, of those that were asked about.
    pub subjects: BTreeSet<Digest>,
}

/// Stands in for the vault: notes which subjects' texts are asked for, and has none of them.
struct TextProbe<'s> {
    met: BTreeSet<Digest>,
    subjects: &'s BTreeSet<Digest>,
}

/// What the probe says of a text of a subject.
const WITHHELD: &str = "it is the text of a subject that was asked about";

impl TextProbe<'_> {
    fn meets(&mut self, private: &PrivateRef) -> bool {
        let is_meant = self.subjects.contains(&private.subject);
        if is_meant {
            self.met.insert(private.subject);
        }
        is_meant
    }
}

impl Covariates for TextProbe<'_> {
    /// No number at all once a subject is met: every row is asked for, and nothing is computed of them.
    fn value(&mut self, _: &FieldId, score: &ScoreRecorded) -> Result<f64, String> {
        if let Some(response) = &score.response {
            self.meets(response);
        }
        Ok(if self.met.is_empty() { 0.0 } else { f64::NAN })
    }

    /// Nothing beyond the first subject that is met: no attack is run on texts that are not there.
    fn text(&mut self, private: &PrivateRef) -> Result<String, String> {
        if self.meets(private) {
            return Err(WITHHELD.to_owned());
        }
        Ok("a text".to_owned())
    }
}

/// Whether a score names texts of one of the subjects.
fn is_of(event: &Event, subjects: &BTreeSet<Digest>) -> bool {
    let Payload::ScoreRecorded(score) = &event.payload else {
        return false;
    };
    let mut texts = score.prompt.iter().chain(&score.response);
    texts.any(|text| subjects.contains(&text.subject))
}

/// The first entry of each experiment that names the length of texts: whatever is computed from there on may read them.
fn first_naming(
    ledger: &Ledger,
    below: u64,
) -> Result<BTreeMap<Option<ExperimentId>, u64>, LedgerError> {
    let mut found = BTreeMap::new();
    let reader = LogReader::below(ledger, below).naming(RESPONSE_LENGTH);
    reader.each(|seq, event| {
        let of = event.header.experiment.clone();
        if event.kind() != Kind::ScoreRecorded && !found.contains_key(&of) {
            let said = serde_json::to_string(&event.payload);
            if said.is_ok_and(|said| said.contains(RESPONSE_LENGTH)) {
                found.insert(of, seq);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Entries below a position that ask for texts of subjects when they are computed again, in order.
///
/// # Errors
/// [`LedgerError`].
pub fn touched(
    ledger: &Ledger,
    subjects: &BTreeSet<Digest>,
    below: u64,
) -> Result<Vec<TouchedEntry>, LedgerError> {
    let named = first_naming(ledger, below)?;
    let (mut holding, mut candidates) = (BTreeSet::new(), Vec::new());
    LogReader::below(ledger, below).each(|seq, event| {
        let of = &event.header.experiment;
        if is_of(event, subjects) {
            holding.insert(of.clone());
        } else if holding.contains(of) && recipe(event.kind()).is_some() {
            // It attacks texts, or their length was named by then.
            let is_named = named.get(of).is_some_and(|first| *first <= seq);
            if is_named || event.kind() == Kind::BatteryEvaluated {
                candidates.push((seq, event.clone()));
            }
        }
        ControlFlow::Continue(())
    })?;
    let mut shared = RecomputeCache::default();
    let mut found = Vec::new();
    for (seq, event) in candidates {
        let mut probe = TextProbe {
            met: BTreeSet::new(),
            subjects,
        };
        let mut context = Context::new(ledger, &mut probe, &mut shared).over(ledger);
        context.replay(seq, &event)?;
        if !probe.met.is_empty() {
            found.push(TouchedEntry {
                experiment: event.header.experiment.clone(),
                kind: event.kind(),
                seq,
                subjects: probe.met,
            });
        }
    }
    Ok(found)
}
