//! An iteration under way: rows from the log, numbers from rows, and the events that each step appends.
//!
//! Everything before confirm reads the log through the position that the first computed event fixed, everything on
//! confirm through the one that the first gate there fixed. So a step that was cut goes on with the same numbers, and
//! labels that come in between change nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::Admissible;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::Gaming;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::SealedHypothesis;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_event::payload::synthesis::GateAnswer;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_projection::decisions::thresholds_of;
use clover_projection::iterations::record::IterationRecord;
use clover_stats::sample::Unfit;

use crate::iterate::compute::ScoredRubric;
use crate::iterate::compute::cards::Basis;
use crate::iterate::compute::cards::FullCard;
use crate::iterate::fitted::FitContext;
use crate::iterate::fitted::FitRecord;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows;
use crate::iterate::rows::Answers;
use crate::iterate::rows::EvidenceMissing;
use crate::iterate::rows::IterationDataset;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowsQuery;
use crate::iterate::said;
use crate::iterate::selection;
use crate::iterate::selection::Rival;
use crate::iterate::steps;
use crate::iterate::steps::BUILD;
use crate::iterate::steps::CandidateFit;
use crate::iterate::steps::Ground;
use crate::iterate::steps::OpenIteration;

/// Largest code length of a patch; of a composite, for each of its patches.
pub const KAPPA_MAX: u64 = 150;

/// Why a step cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum CourseError {
    /// There are no rows.
    #[error(transparent)]
    Rows(#[from] IterationRowsError),
    /// The data are too thin, or no data.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A candidate that is not one.
    #[error("{0}")]
    Candidate(String),
}

impl From<LedgerError> for CourseError {
    fn from(error: LedgerError) -> Self {
        Self::Rows(error.into())
    }
}

/// The rows of an iteration and what was computed of them before any candidate.
#[derive(Debug)]
pub struct Course {
    /// The iteration, as computations need it.
    pub opened: OpenIteration,
    /// Its rows.
    pub loaded: IterationDataset,
    /// What gates stand on.
    pub ground: Ground,
    events: Vec<Payload>,
    /// The calibrator of the rubric in force.
    baseline: FitRecord,
    /// Candidates that were scored and fitted, by hash, from answers that were read or from those of a judge asked anew.
    patched: RefCell<BTreeMap<(Digest, bool), Arc<CandidateFit>>>,
    /// Answers of judges that were asked anew, by judge and the last entry that they are read from.
    answers: RefCell<BTreeMap<(JudgeId, u64), Arc<Answers>>>,
}

pub(super) fn text(value: &str) -> Text {
    Text::new(value).unwrap_or_else(|| Text::new("?").expect("BUG: a short word"))
}

impl Course {
    /// Reads rows through a position and computes everything before candidates.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn through(
        history: &dyn History,
        record: &IterationRecord,
        through: u64,
    ) -> Result<Self, CourseError> {
        let which = RowsQuery {
            experiment: &record.experiment,
            iteration: &record.iteration,
            through,
            confirm: None,
        };
        let loaded = rows::load(history, &which)?;
        let opened = OpenIteration {
            iteration: record.iteration.clone(),
            plan: loaded.plan.clone(),
        };
        let (ground, mut events) = steps::ground(&opened, &loaded.table, loaded.through)?;
        let saying = FitContext {
            opened: &opened,
            loaded: &loaded,
            ground: &ground,
        };
        let baseline = saying.baseline()?;
        events.push(baseline.event.clone().into());
        events.extend(saying.about(&baseline.event)?);
        Ok(Self {
            opened,
            loaded,
            ground,
            events,
            baseline,
            patched: RefCell::default(),
            answers: RefCell::default(),
        })
    }

    /// The same through the position that binds: that of the first computed event, else the end of the log.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn bound(
        history: &dyn History,
        record: &IterationRecord,
        size: u64,
    ) -> Result<Self, CourseError> {
        let through = record.through().unwrap_or(size.saturating_sub(1));
        Self::through(history, record, through)
    }

    /// Events before candidates, of some kinds, in order.
    pub fn before(&self, kinds: &[Kind]) -> Vec<Payload> {
        let of = |event: &&Payload| kinds.contains(&event.kind());
        self.events.iter().filter(of).cloned().collect()
    }

    /// Blobs that events before candidates name.
    pub fn blobs(&self) -> &[Vec<u8>] {
        &self.baseline.blobs
    }

    /// Residual cards, with what attacks on the rubric in force earned by now.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn cards(&self, record: &IterationRecord) -> Result<Vec<FullCard>, CourseError> {
        let (loaded, design) = (&self.loaded, self.opened.plan.design.as_ref());
        let rules = loaded.rubric.rules();
        let basis = Basis {
            calibrator: self.baseline.event.calibrator,
            fired: &|row| loaded.fired(&rules, row),
            iteration: &self.opened.iteration,
            rubric_hash: loaded.rubric.hash(),
            slices: design.map_or(&[], |design| &design.slices[..]),
        };
        let attacks = record.attacks();
        let mut cards = self.ground.cards(&loaded.table, &attacks, basis)?;
        let audited = record.audited.as_ref();
        for family in audited
            .into_iter()
            .flat_map(|of| said::unweighted(&of.said))
        {
            let of = cards
                .iter_mut()
                .filter(|card| card.public.family == family.family);
            of.for_each(|card| card.public.shrink_micro = Some(Micro::default()));
        }
        Ok(cards)
    }

    /// The event of a card.
    pub fn published(&self, card: &FullCard) -> Payload {
        let iteration = self.opened.iteration.clone();
        card.published(text(BUILD), iteration).into()
    }

    /// A hypothesis scored and calibrated; computed once.
    ///
    /// # Errors
    /// [`CourseError`]; the inner one where its rows cannot be scored.
    pub fn patched(
        &self,
        of: &Hypothesis,
    ) -> Result<Result<Arc<CandidateFit>, EvidenceMissing>, CourseError> {
        let key = (of.hash, of.answers.is_some());
        if let Some(known) = self.patched.borrow().get(&key) {
            return Ok(Ok(Arc::clone(known)));
        }
        let candidate = match self.candidate(of) {
            Ok(candidate) => candidate,
            Err(missing) => return Ok(Err(missing)),
        };
        let patched = Arc::new(self.ground.patched(&self.loaded.table, candidate)?);
        let mut all = self.patched.borrow_mut();
        all.insert(key, Arc::clone(&patched));
        Ok(Ok(patched))
    }

    /// The calibrator of a hypothesis, as it goes on record.
    ///
    /// # Errors
    /// [`CourseError`]; the inner one where its rows cannot be scored.
    pub fn fitted(
        &self,
        of: &Hypothesis,
    ) -> Result<Result<FitRecord, EvidenceMissing>, CourseError> {
        let saying = FitContext {
            opened: &self.opened,
            loaded: &self.loaded,
            ground: &self.ground,
        };
        let patched = match self.patched(of)? {
            Ok(patched) => patched,
            Err(missing) => return Ok(Err(missing)),
        };
        let judge = of.answers.as_ref().map(|of| &of.judge);
        Ok(Ok(saying.candidate(&patched, of.rubric.hash(), judge)?))
    }

    /// A hypothesis of some proposed patches, on the answers of the judge that was asked anew where scores from them are on
    /// record.
    ///
    /// # Errors
    /// [`CourseError::Candidate`] for patches that are none of this rubric.
    pub fn hypothesis(
        &self,
        history: &dyn History,
        record: &IterationRecord,
        patches: &[&PatchProposed],
    ) -> Result<Hypothesis, CourseError> {
        let of = Hypothesis::of(&self.loaded, record, patches)?;
        match of.asked(&self.loaded, record)? {
            None => Ok(of),
            Some((judge, last)) => self.on_answers(history, record, of, (&judge, last)),
        }
    }

    /// A hypothesis on the answers of a judge through a position.
    ///
    /// # Errors
    /// [`CourseError::Rows`].
    pub fn on_answers(
        &self,
        history: &dyn History,
        record: &IterationRecord,
        of: Hypothesis,
        (judge, last): (&JudgeRegistered, u64),
    ) -> Result<Hypothesis, CourseError> {
        let key = (judge.judge.clone(), last);
        let known = self.answers.borrow().get(&key).map(Arc::clone);
        let answers = match known {
            Some(known) => known,
            None => Arc::new(Answers::through(history, &record.experiment, judge, last)?),
        };
        let mut all = self.answers.borrow_mut();
        all.insert(key, Arc::clone(&answers));
        Ok(of.on(answers))
    }

    /// The candidate of a hypothesis: every row scored anew.
    ///
    /// # Errors
    /// [`EvidenceMissing`].
    pub fn candidate(&self, of: &Hypothesis) -> Result<ScoredRubric, EvidenceMissing> {
        let answers = of.answers.as_deref();
        self.loaded
            .candidate((of.hash, of.kappa), &of.rubric.rules(), answers)
    }

    /// Whether scoring again gives the same: not checked for scores that were imported, since nobody can be asked. Where a
    /// judge was asked anew, it must repeat itself too.
    pub fn replay(&self, record: &IterationRecord, of: &Hypothesis) -> Verdict {
        let read = repeats(record, &self.loaded.judge, self.loaded.is_callable());
        let Some(answers) = &of.answers else {
            return read;
        };
        match (read, repeats(record, &answers.judge, true)) {
            (Verdict::Fail, _) | (_, Verdict::Fail) => Verdict::Fail,
            (read, Verdict::Pass) => read,
            (_, anew) => anew,
        }
    }

    /// Gate P0 of a hypothesis.
    pub fn admissible(
        &self,
        record: &IterationRecord,
        of: &Hypothesis,
        can_score: bool,
    ) -> Admissible {
        let count = |value: u64| Count::new(value).unwrap_or_default();
        Admissible {
            inputs_declared: of.declared,
            kappa: count(of.kappa),
            kappa_max: count(KAPPA_MAX * of.patches.len() as u64),
            open: record.closed.is_none() && record.paused.is_none(),
            replay: self.replay(record, of),
            valid: of.valid && can_score,
        }
    }

    /// Gates P0 to P7 of a hypothesis on dev, the last from its battery on record, else from one that nobody could record:
    /// the ledger has no adversary. One whose rows cannot be scored gets P0 alone, which says so; so does one that changes what
    /// the judge is told where nobody asked it anew.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn on_dev(
        &self,
        record: &IterationRecord,
        of: &Hypothesis,
        unrecorded: Option<Gaming>,
    ) -> Result<(Vec<GateEvaluated>, Option<EvidenceMissing>), CourseError> {
        if of.prompt.is_some() && of.answers.is_none() && record.fitted_of(Some(of.hash)).is_none()
        {
            return Ok((vec![self.inadmissible(record, of)], None));
        }
        self.as_read(record, of, unrecorded)
    }

    /// Gate P0 of a hypothesis whose rows nobody can score.
    fn inadmissible(&self, record: &IterationRecord, of: &Hypothesis) -> GateEvaluated {
        let evidence = Evidence::P0(self.admissible(record, of, false));
        let (split, inputs) = (CriterionSplit::Dev, self.ground.inputs);
        let opened = &self.opened;
        self.ground
            .evaluated(opened, of.hash, split, inputs, evidence, None)
    }

    /// Gates P0 to P7 of a hypothesis from the answers that were read, or from those of the judge that was asked anew.
    fn as_read(
        &self,
        record: &IterationRecord,
        of: &Hypothesis,
        unrecorded: Option<Gaming>,
    ) -> Result<(Vec<GateEvaluated>, Option<EvidenceMissing>), CourseError> {
        match self.patched(of)? {
            Ok(patched) => {
                let admissible = self.admissible(record, of, true);
                let table = &self.loaded.table;
                let battery = record.battery_of(of.hash);
                let gaming = battery.map(|of| of.said.gaming()).or(unrecorded);
                let gaming = gaming.unwrap_or_else(Gaming::unchecked);
                let found = self
                    .ground
                    .on_dev(&self.opened, table, &patched, admissible, gaming);
                let mut gates = found?.0;
                for gate in gates.iter_mut().filter(|gate| gate.gate == Criterion::P7) {
                    gate.battery = battery.map(|of| of.id);
                }
                Ok((gates, None))
            }
            Err(missing) => Ok((vec![self.inadmissible(record, of)], Some(missing))),
        }
    }

    /// Risk improvement of a hypothesis on dev, negative when better.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn risk_improve(&self, of: &Hypothesis) -> Result<Finite, CourseError> {
        let patched = self
            .patched(of)?
            .map_err(|missing| CourseError::Candidate(missing.to_string()))?;
        Ok(self.ground.risk_improve(&self.loaded.table, &patched)?)
    }

    /// What the dev objective answers of a hypothesis; of one without a battery on record, by what attacks on it earned.
    ///
    /// # Errors
    /// [`CourseError`]; the inner one where its rows cannot be scored.
    pub fn receipt(
        &self,
        record: &IterationRecord,
        of: &Hypothesis,
        (requester, attacked): (KeyId, Option<Gaming>),
    ) -> Result<Result<DevObjectiveQueried, EvidenceMissing>, CourseError> {
        let (gates, lack) = self.as_read(record, of, attacked)?;
        if let Some(lack) = lack {
            return Ok(Err(lack));
        }
        let answers = gates.iter().map(|gate| GateAnswer {
            gate: gate.gate,
            verdict: gate.verdicts.under(gate.thresholds.profile),
        });
        Ok(Ok(DevObjectiveQueried {
            answers: answers.collect(),
            build: text(BUILD),
            candidate: of.hash,
            inputs: self.ground.inputs,
            iteration: self.opened.iteration.clone(),
            requester,
            risk_improve: self.risk_improve(of)?,
        }))
    }

    /// Gates on confirm of a hypothesis, over rows that were read after the unsealing.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn on_confirm(
        &self,
        unsealed: &IterationDataset,
        of: &Hypothesis,
    ) -> Result<Vec<GateEvaluated>, CourseError> {
        let answers = of.answers.as_deref();
        let candidate = unsealed
            .candidate((of.hash, of.kappa), &of.rubric.rules(), answers)
            .map_err(|missing| CourseError::Candidate(missing.to_string()))?;
        let block = self.block(unsealed);
        let read = (unsealed.through, block.as_ref());
        let table = &unsealed.table;
        let patched = self
            .patched(of)?
            .map_err(|missing| CourseError::Candidate(missing.to_string()))?;
        let candidate = (&candidate, &patched.fitted);
        Ok(self
            .ground
            .on_confirm(&self.opened, table, candidate, read)?)
    }

    /// Rows whose responses the battery attacks: none that the calibrator was fitted on, none of confirm; spread over the
    /// cells of the first slice family, and within a cell by a hash of the row under the registered seed.
    pub fn attacked(&self, most: usize) -> Vec<usize> {
        let data = self.loaded.table.data();
        let seed = self.opened.number("battery");
        let free = |row: &usize| match data.parts[*row] {
            Some(SplitPart::Confirm) => false,
            Some(SplitPart::Fit) => data.labels[*row].is_none(),
            Some(SplitPart::Dev) | None => true,
        };
        let mut cells: BTreeMap<Option<usize>, Vec<(Digest, usize)>> = BTreeMap::new();
        for row in (0..data.rows.len()).filter(free) {
            let cell = data.slices.first().and_then(|family| family.of_row[row]);
            let place = Digest::sha256(format!("{seed}\n{}", data.rows[row]).as_bytes());
            cells.entry(cell).or_default().push((place, row));
        }
        for rows in cells.values_mut() {
            rows.sort_unstable();
        }
        let deepest = cells.values().map(Vec::len).max().unwrap_or(0);
        let by_turns =
            (0..deepest).flat_map(|turn| cells.values().filter_map(move |of| of.get(turn)));
        by_turns.take(most).map(|(_, row)| *row).collect()
    }

    /// The rows again, with the labels that the unsealing opened: through the position that binds.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn unsealed(
        &self,
        history: &dyn History,
        record: &IterationRecord,
        size: u64,
    ) -> Result<IterationDataset, CourseError> {
        let last = record.confirm_through().unwrap_or(size.saturating_sub(1));
        self.unsealed_through(history, record, last)
    }

    /// The same through a position.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn unsealed_through(
        &self,
        history: &dyn History,
        record: &IterationRecord,
        last: u64,
    ) -> Result<IterationDataset, CourseError> {
        let which = RowsQuery {
            experiment: &record.experiment,
            iteration: &record.iteration,
            through: self.loaded.through.value(),
            confirm: Some(last),
        };
        Ok(rows::load(history, &which)?)
    }

    /// Of hypotheses that passed on dev, one for each family: the best, or one that touches an obligation and is
    /// within five percent of the best. Source: CLOVER v1.1, section 4.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn of_families<'p>(
        &self,
        history: &dyn History,
        record: &IterationRecord,
        passed: &[&'p PatchProposed],
    ) -> Result<Vec<(&'p PatchProposed, Finite)>, CourseError> {
        let mut scored = Vec::with_capacity(passed.len());
        for patch in passed {
            let improve = self.risk_improve(&self.hypothesis(history, record, &[*patch])?)?;
            scored.push((*patch, improve));
        }
        let rivals = scored.iter().map(|(patch, improve)| Rival {
            family: patch.family.as_str(),
            hash: patch.patch_hash,
            improve: improve.value(),
            obliges: patch
                .diff
                .iter()
                .any(|leaf| leaf.path.starts_with("obligations.")),
        });
        let rivals: Vec<Rival<'_>> = rivals.collect();
        let chosen = selection::best_of_families(&rivals);
        Ok(chosen.into_iter().map(|place| scored[place]).collect())
    }

    /// What is sealed: one hypothesis for each patch, and the composite if there is one, in order of hash.
    pub fn sealing(&self, hypotheses: &[&Hypothesis]) -> CandidatesSealed {
        let mut sealed: Vec<SealedHypothesis> = hypotheses
            .iter()
            .map(|of| SealedHypothesis {
                candidate: of.hash,
                patches: of.patches.clone(),
            })
            .collect();
        sealed.sort_by_key(|one| one.candidate);
        CandidatesSealed {
            divisor: thresholds_of(&self.opened.plan).hypotheses,
            hypotheses: sealed,
            iteration: self.opened.iteration.clone(),
        }
    }
}

/// Whether a judge repeats itself, by what was scored again.
fn repeats(record: &IterationRecord, judge: &JudgeId, is_callable: bool) -> Verdict {
    if record.conflicts.contains(judge) {
        return Verdict::Fail;
    }
    if !is_callable {
        return Verdict::NotChecked;
    }
    let mine = || record.replayed.iter().filter(|of| of.said.judge == *judge);
    match mine().next() {
        None => Verdict::Inconclusive,
        Some(_) if mine().all(|of| of.said.mismatches.value() == 0) => Verdict::Pass,
        Some(_) => Verdict::Fail,
    }
}
