//! What the log says of one iteration, taken out of it in one pass.

use std::ops::ControlFlow;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::iteration::IterationOpened;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::report::ReportLayout;
use clover_event::payload::slices::ResidualsAudited;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::State;

use crate::audits::AnswersSince;
use crate::audits::AuditSubject;
use crate::audits::Audits;
use crate::bundle::Names;
use crate::reader::LogReader;
use crate::rubrics::RubricRegistration;
use crate::rubrics::Rubrics;

/// An entry with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StoryEntry {
    /// What was said.
    pub event: Event,
    /// Its position.
    pub seq: u64,
}

/// The entries that belong to one iteration, and those of its experiment that it rests on, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// Audits that failed are answered by as many new labels from this entry on, if from any.
    pub answers_since: AnswersSince,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The iteration.
    pub iteration: IterationId,
    /// What the report is made of.
    pub layout: Option<ReportLayout>,
    /// The entries.
    pub said: Vec<StoryEntry>,
    /// The last entry that was read.
    pub through_seq: u64,
}

/// Kinds of the experiment or the ledger as a whole.
const OF_ALL: &[Kind] = &[
    Kind::AnchorSetRegistered,
    Kind::AssumptionCountersigned,
    Kind::AssumptionWaived,
    Kind::BridgeAssessed,
    Kind::BudgetCharged,
    Kind::BudgetOpened,
    Kind::CalibratorFitted,
    Kind::CoverageChecked,
    Kind::EstimateRecorded,
    Kind::JudgeRegistered,
    Kind::LabelDesignRegistered,
    Kind::ManifestAmended,
    Kind::ManifestDeviated,
    Kind::ManifestRegistered,
    Kind::OpeDiagnosed,
    Kind::OpeEstimated,
    Kind::OuaEstimated,
    Kind::RubricRegistered,
    Kind::ScoreConflict,
    Kind::ScoreReplayed,
    Kind::SdpVersionRegistered,
    Kind::SplitsFormed,
    Kind::TransportTested,
    Kind::EnvironmentsTested,
    Kind::RegimeSelected,
];

/// Whether an entry is of an iteration, or of the experiment or the ledger that it belongs to.
fn belongs(payload: &Payload, iteration: &IterationId) -> bool {
    match payload.iteration() {
        Some(of) => of == iteration,
        None => OF_ALL.contains(&payload.kind()),
    }
}

/// Reads the log up to `through_seq` once.
///
/// # Errors
/// [`LedgerError`].
pub fn read(
    history: &dyn History,
    experiment: &ExperimentId,
    iteration: &IterationId,
    (through_seq, layout): (u64, Option<ReportLayout>),
) -> Result<Story, LedgerError> {
    let (mut said, mut rulebooks) = (Vec::new(), Audits::default());
    LogReader::through(history, through_seq).each(|seq, event| {
        rulebooks.adopt(seq, &event.payload);
        let is_own = event.experiment().is_none_or(|of| of == experiment);
        if is_own && belongs(&event.payload, iteration) {
            let event = event.clone();
            said.push(StoryEntry { event, seq });
        }
        ControlFlow::Continue(())
    })?;
    Ok(Story {
        answers_since: rulebooks.answers,
        experiment: experiment.clone(),
        iteration: iteration.clone(),
        layout,
        said,
        through_seq,
    })
}

impl Story {
    /// What `pick` finds in entries, with their positions.
    pub fn all<'a, T>(
        &'a self,
        pick: impl Fn(&'a Payload) -> Option<T>,
    ) -> impl Iterator<Item = (u64, T)> {
        self.said
            .iter()
            .filter_map(move |said| Some((said.seq, pick(&said.event.payload)?)))
    }

    /// The first that `pick` finds.
    pub fn first<'a, T>(&'a self, pick: impl Fn(&'a Payload) -> Option<T>) -> Option<(u64, T)> {
        self.all(pick).next()
    }

    /// The opening.
    pub fn opened(&self) -> Option<(u64, &IterationOpened)> {
        self.first(Payload::said::<IterationOpened>)
    }

    /// Whether parts are computed from rows too.
    pub fn has_rows(&self) -> bool {
        self.layout == Some(ReportLayout::Rows)
    }

    /// The rubric that the iteration starts from. Without rows only a registered one was looked for, none that a
    /// prompt was committed with.
    pub fn rubric<'s>(&self, state: &'s State) -> Option<&'s RubricRegistration> {
        let hash = self.opened()?.1.rubric_hash;
        let found = state.fold::<Rubrics>().of_hash(&self.experiment, hash)?;
        let registered = self.said.iter().any(|said| {
            said.seq == found.seq && matches!(said.event.payload, Payload::RubricRegistered(_))
        });
        (self.has_rows() || registered).then_some(found)
    }

    /// The failed audit that stands against a policy under a judge, as of the last entry that was read. Without rows
    /// nothing was marked.
    pub fn failed(&self, judge: &JudgeId, policy: &PolicyId) -> Option<TransportStanding> {
        if !self.has_rows() {
            return None;
        }
        let mut audits = Audits {
            answers: self.answers_since,
            ..Audits::default()
        };
        for said in &self.said {
            audits.take(&self.experiment, said.seq, &said.event.payload);
        }
        let subject = AuditSubject {
            experiment: &self.experiment,
            judge,
            environment: None,
            policy,
        };
        audits.standing(&subject, None)
    }

    /// The residual audit.
    pub fn audited(&self) -> Option<(u64, &ResidualsAudited)> {
        self.first(Payload::said::<ResidualsAudited>)
    }

    /// Gates in the order in which they were evaluated.
    pub fn gates(&self) -> impl Iterator<Item = (u64, &GateEvaluated)> {
        self.all(Payload::said::<GateEvaluated>)
    }

    /// Why an iteration has no gates.
    pub fn why_no_gates(&self) -> &'static str {
        if self.opened().is_none() {
            "the iteration never opened"
        } else if self.audited().is_none() {
            "residuals were not audited"
        } else {
            "no candidate was put to a gate"
        }
    }

    /// When it was opened until when it was closed, by position; the end is the last entry read while it is open.
    pub fn span(&self) -> (u64, u64) {
        let from = self.opened().map_or(self.through_seq, |(seq, _)| seq);
        let closed = self.first(|payload| match payload {
            Payload::IterationClosed(_) => Some(()),
            _ => None,
        });
        (from, closed.map_or(self.through_seq, |(seq, ())| seq))
    }

    /// What candidates are called.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        for said in &self.said {
            match &said.event.payload {
                Payload::PatchProposed(patch) => {
                    names.patches.push((patch.patch_hash, patch.patch.clone()));
                }
                Payload::CandidatesSealed(sealed) => {
                    let composites = sealed.hypotheses.iter().filter(|one| one.patches.len() > 1);
                    names
                        .composites
                        .extend(composites.map(|one| (one.candidate, one.patches.clone())));
                }
                _ => {}
            }
        }
        names
    }

    /// Candidates in the order in which gates first speak of them.
    pub fn candidates(&self) -> Vec<Digest> {
        let mut found = Vec::new();
        for (_, gate) in self.gates() {
            if !found.contains(&gate.candidate) {
                found.push(gate.candidate);
            }
        }
        found
    }
}
