//! Words of rows, looked for again by whoever has the texts: what left a run and what came back holds none, and a patch that was
//! rejected for words of a row alone has some.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_ledger::Ledger;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::run_of;
use clover_projection::tallies::Tallies;
use clover_prompt::JudgePrompt;
use clover_workflow::import::ImportRow;
use clover_workflow::import::labels::Draw;
use clover_workflow::sgd::course::SgdCourse;
use clover_workflow::sgd::leak::ProtectedTexts;
use clover_workflow::sgd::rule::is_leak_alone;
use clover_workflow::sgd::verdict::PatchVerdict;

use crate::error::SessionError;
use crate::home::Home;
use crate::intake::responses;
use crate::judge::reread::AnswerFinding;

/// What looking again came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeakReview {
    /// What differs, in the order of the log.
    pub findings: Vec<AnswerFinding>,
    /// Requests, gradients, patches and rejections that were looked through.
    pub read: u64,
    /// Those that were not, for want of the texts of their rows.
    pub unread: u64,
}

type RowTexts = BTreeMap<Draw, ImportRow>;

/// Texts of a run's rows, and of all rows of its experiment.
struct RunTexts {
    all: ProtectedTexts,
    /// Whether the text of a row of the run is missing.
    is_short: bool,
    own: ProtectedTexts,
}

struct Reviewer<'a> {
    home: &'a Home,
    ledger: &'a Ledger,
    experiments: BTreeMap<ExperimentId, RowTexts>,
    runs: BTreeMap<RunId, SgdRun>,
    texts: BTreeMap<RunId, RunTexts>,
    out: LeakReview,
}

/// Looks through everything again that a run of a prompt handed over or took in.
///
/// # Errors
/// When the ledger or the vault cannot be read.
pub fn all(home: &Home, ledger: &Ledger) -> Result<LeakReview, SessionError> {
    let tallies = ledger.state().fold::<Tallies>();
    let asked = tallies.of_kind(Kind::SgdGradientRequested);
    if asked == 0 {
        return Ok(LeakReview::default());
    }
    if home.known_vault(ledger.ambient())?.is_none() {
        return Ok(LeakReview {
            unread: asked,
            ..LeakReview::default()
        });
    }
    let mut reviewer = Reviewer {
        home,
        ledger,
        experiments: BTreeMap::new(),
        runs: BTreeMap::new(),
        texts: BTreeMap::new(),
        out: LeakReview::default(),
    };
    for (seq, event) in said(ledger)? {
        reviewer.heard(seq, &event)?;
    }
    Ok(reviewer.out)
}

/// What runs of prompts said, in order: texts are read between entries, which a reading of the log is not.
fn said(ledger: &Ledger) -> Result<Vec<(u64, Event)>, SessionError> {
    let mut all = Vec::new();
    ledger.entries(0, ledger.size(), |read| {
        if run_of(&read.event.payload).is_some() {
            all.push((read.stored.seq, read.event));
        }
        Ok::<_, SessionError>(())
    })?;
    Ok(all)
}

fn texts_of<'r>(rows: impl Iterator<Item = &'r ImportRow>) -> Vec<String> {
    let texts = rows.flat_map(|row| row.prompt.iter().chain(&row.response));
    texts.cloned().collect()
}

impl Reviewer<'_> {
    fn heard(&mut self, seq: u64, event: &Event) -> Result<(), SessionError> {
        let payload = &event.payload;
        if let (Payload::SgdOpened(said), Some(experiment)) = (payload, &event.header.experiment) {
            let run = SgdRun::opened(experiment.clone(), seq, said);
            self.runs.entry(said.run.clone()).or_insert(run);
            return Ok(());
        }
        let Some(name) = run_of(payload).filter(|name| self.runs.contains_key(*name)) else {
            return Ok(());
        };
        let name = name.clone();
        match payload {
            Payload::SgdGradientRequested(said) => {
                self.clean(seq, &name, ("request", said.request.as_str()))?;
            }
            Payload::SgdGradientReturned(said) => {
                self.clean(seq, &name, ("gradient", said.gradient.as_str()))?;
            }
            Payload::SgdStepCommitted(said) if said.attempt.is_some() => {
                for text in self.standing(&name) {
                    self.clean(seq, &name, ("patch", &text))?;
                }
            }
            Payload::SgdPatchRejected(said) if is_leak_alone(said) => {
                self.leaks(seq, &name)?;
            }
            _ => {}
        }
        if let Some(run) = self.runs.get_mut(&name) {
            run.take(payload);
        }
        Ok(())
    }

    /// The patch that stands, and the prompt that it gives where it is valid: patches add up.
    fn standing(&self, name: &RunId) -> Vec<String> {
        let Some(run) = self.runs.get(name) else {
            return Vec::new();
        };
        let patch = run.going().and_then(|step| step.standing());
        let mut texts: Vec<_> = patch
            .map(|of| of.patch.as_str().to_owned())
            .into_iter()
            .collect();
        let verdict = SgdCourse::of(run).and_then(|course| course.verdict());
        if let Ok(PatchVerdict::Valid(patch)) = verdict {
            texts.push(patch.prompt.render());
        }
        texts
    }

    fn clean(
        &mut self,
        seq: u64,
        name: &RunId,
        (what, text): (&str, &str),
    ) -> Result<(), SessionError> {
        let Some(texts) = self.texts(name)? else {
            return Ok(());
        };
        let (is_short, found) = (texts.is_short, texts.own.found_in(text));
        self.count(is_short && found.is_none());
        if let Some(found) = found {
            self.out.findings.push(AnswerFinding {
                seq,
                expected: format!("a {what} of {name} without words of its rows"),
                found,
            });
        }
        Ok(())
    }

    /// A rejection that names words of a row alone is of a patch with some, or of a prompt that results.
    fn leaks(&mut self, seq: u64, name: &RunId) -> Result<(), SessionError> {
        let standing = self.standing(name);
        let Some(texts) = self.texts(name)? else {
            return Ok(());
        };
        let is_short = texts.is_short;
        let is_found = standing
            .iter()
            .any(|text| texts.all.found_in(text).is_some());
        self.count(is_short && !is_found);
        if !is_found && !is_short {
            self.out.findings.push(AnswerFinding {
                seq,
                expected: format!(
                    "words of a row in the patch of {name} that was rejected for them"
                ),
                found: "none".to_owned(),
            });
        }
        Ok(())
    }

    fn count(&mut self, is_unread: bool) {
        if is_unread {
            self.out.unread += 1;
        } else {
            self.out.read += 1;
        }
    }

    /// Texts of the rows of a run, once they are listed; `None` where prompt 0 is none.
    fn texts(&mut self, name: &RunId) -> Result<Option<&RunTexts>, SessionError> {
        if !self.texts.contains_key(name) {
            let Some(run) = self.runs.get(name) else {
                return Ok(None);
            };
            let Ok(prompt) = JudgePrompt::from_json(run.said.prompt.as_str().as_bytes()) else {
                return Ok(None);
            };
            if !self.experiments.contains_key(&run.experiment) {
                let found = responses::scored(self.home, self.ledger, &run.experiment)?;
                let rows = found.rows.into_iter();
                let rows = rows.map(|row| ((row.policy.clone(), row.item.clone(), row.draw), row));
                self.experiments
                    .insert(run.experiment.clone(), rows.collect());
            }
            let known = prompt.render();
            let held = &self.experiments[&run.experiment];
            let rows = run.rows.values().flatten();
            let found: Vec<_> = rows
                .map(|row| held.get(&(row.policy.clone(), row.item.clone(), row.draw)))
                .collect();
            let rows = run.rows.values().flatten();
            let mut ids: Vec<String> = rows.map(|row| row.item.to_string()).collect();
            ids.dedup();
            let own = texts_of(found.iter().flatten().copied());
            let texts = RunTexts {
                all: ProtectedTexts::of(&known, &ids, &texts_of(held.values())),
                is_short: found.iter().any(Option::is_none),
                own: ProtectedTexts::of(&known, &ids, &own),
            };
            self.texts.insert(name.clone(), texts);
        }
        Ok(self.texts.get(name))
    }
}
