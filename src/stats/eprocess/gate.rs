//! A gate: observations one at a time, and what they show.
//!
//! The state is a function of the design and the observations in their order, and of nothing else: it is rebuilt by
//! pushing them again, on one thread or many, on any machine.

use crate::eprocess::bettor;
use crate::eprocess::design::Claim;
use crate::eprocess::design::Design;
use crate::eprocess::design::EvalueThreshold;
use crate::eprocess::design::Looks;
use crate::eprocess::sequence::Sequence;
use crate::eprocess::ticks::Null;
use crate::eprocess::ticks::Role;
use crate::eprocess::track::ABOUT;
use crate::eprocess::track::Track;
use crate::eprocess::verdict::Bounds;
use crate::eprocess::verdict::Evidence;
use crate::eprocess::verdict::Hypothesis;
use crate::eprocess::verdict::Look;
use crate::eprocess::verdict::Verdict;

/// Why an observation is refused; the gate stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The sum of a unit's deltas is beyond repeats times scale.
    #[error("delta {sum}: expected at most {bound} in magnitude")]
    OutOfRange {
        /// What came, in millionths.
        sum: i64,
        /// The bound.
        bound: i64,
    },
    /// All registered observations were taken.
    #[error("all {max_n} registered observations were taken")]
    PastMaxN {
        /// How many.
        max_n: u64,
    },
    /// A verdict fell.
    #[error("the gate ended after {n} observations")]
    AfterTerminal {
        /// When.
        n: u64,
        /// Which verdict.
        verdict: Verdict,
    },
    /// No registered stratum with a unit left, or one where the design has none.
    #[error("stratum {}: expected {expected}", .found.map_or("none".to_owned(), |at| at.to_string()))]
    Stratum {
        /// What came.
        found: Option<usize>,
        /// What may come.
        expected: &'static str,
    },
    /// Not one delta for each guardrail.
    #[error("{found} guardrail deltas, expected {expected}")]
    Guardrails {
        /// What came.
        found: usize,
        /// What was registered.
        expected: usize,
    },
}

/// Where a gate stands after an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Observations.
    pub n: u64,
    /// Whether this was a registered look.
    pub looked: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// What a state digest is computed from: equal for two gates exactly if they will always say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct GateState {
    /// Observations.
    pub n: u64,
    /// Values of the main metric with their counts, ascending; a value is the improvement's sum plus repeats times scale.
    pub levels: Vec<(i64, u64)>,
    /// The same of each guardrail.
    pub guardrail_levels: Vec<Vec<(i64, u64)>>,
    /// Values that came after 4,096 others: least and largest value of a cell, and its count.
    pub cells: Vec<(i64, i64, u64)>,
    /// Order-dependent numbers of the bettors, in the order of the tests: none for grid-Kelly of at most 4,096 values.
    pub ordered: Vec<f64>,
    /// The values in their order, for a finite set; else empty.
    pub drawn: Vec<i64>,
    /// Their strata; empty where the design has none.
    pub strata: Vec<usize>,
    /// Values and order-dependent numbers of what may have been, where draws are missing; else empty.
    pub favoured: (Vec<(i64, u64)>, Vec<f64>),
    /// Peak log wealth at registered looks: of the claim as a whole, then of each part.
    pub ln_peaks: Vec<f64>,
    /// The confidence sequence.
    pub interval: Option<Bounds>,
    /// The verdict, and the observations at which it fell.
    pub verdict: (Verdict, u64),
}

/// The main metric as the candidate may have done at best. Where draws of a unit are missing, what stands for them is
/// against the candidate: that says nothing for harm or futility, and nothing of the most that the mean may be.
#[derive(Clone, Debug, PartialEq)]
struct FavourableTrack {
    track: Track,
    sequence: Option<Sequence>,
}

impl FavourableTrack {
    fn push(&mut self, (sum, slack): (i64, i64), times: u64, stratum: Option<usize>) -> Option<()> {
        let tick = self.track.tick_within(sum, slack)?;
        match stratum {
            Some(stratum) => self.track.push(tick, stratum),
            None => self.track.push_times(tick, times),
        }
        if let Some(sequence) = &mut self.sequence {
            (0..times).for_each(|_| sequence.push(tick, stratum));
        }
        Some(())
    }
}

/// A running gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    design: Design,
    track: Track,
    /// From the first unit with a missing draw on.
    favoured: Option<Box<FavourableTrack>>,
    guardrails: Vec<Track>,
    parts: Vec<Hypothesis>,
    sequence: Option<Sequence>,
    /// Units of each stratum that are left.
    left: Vec<u64>,
    /// Peaks of the claim as a whole, then of each part.
    peaks: Vec<f64>,
    verdict: Verdict,
    leading: bool,
    ticks: Vec<i64>,
}

impl Gate {
    /// A gate without observations that keeps a confidence sequence at every registered look.
    pub fn open(design: Design) -> Self {
        let mut gate = Self::verdicts_only(design);
        gate.sequence = Some(Sequence::new(&gate.design));
        gate
    }

    /// The same without the confidence sequence: verdicts and e-values do not depend on it.
    pub fn verdicts_only(design: Design) -> Self {
        let nulls = design.tests().iter().map(|test| test.null);
        let track = Track::new(&design, design.metric(), nulls, true);
        let one =
            |(metric, null): (_, Null)| Track::new(&design, metric, std::iter::once(null), false);
        let guardrails: Vec<Track> = design.guardrails().map(one).collect();
        let tests = design.tests().iter().map(|test| match test.role {
            Role::Claim => Hypothesis::Claim,
            Role::Second => Hypothesis::Second,
            Role::Kill => Hypothesis::Kill,
            Role::Futile => Hypothesis::Futile,
        });
        let parts: Vec<Hypothesis> = tests
            .chain((0..guardrails.len()).map(Hypothesis::Guardrail))
            .collect();
        Self {
            track,
            favoured: None,
            guardrails,
            sequence: None,
            left: design.terms().strata.iter().map(|one| one.units).collect(),
            peaks: vec![0.0; parts.len() + 1],
            parts,
            verdict: Verdict::Continue,
            leading: false,
            ticks: Vec::new(),
            design,
        }
    }

    /// What the gate runs under.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Observations.
    pub fn n(&self) -> u64 {
        self.track.n()
    }

    /// The verdict so far.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Takes the next unit's delta, the sum over its repeats, in millionths.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push(&mut self, sum: i64) -> Result<Step, PushError> {
        self.push_all(sum, &[])
    }

    /// Takes the next unit's delta and those of its guardrail metrics, in the order registered.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_all(&mut self, sum: i64, guardrails: &[i64]) -> Result<Step, PushError> {
        self.push_in(None, sum, guardrails)
    }

    /// The same of a unit of a stratum, by its place among the registered ones.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_in(
        &mut self,
        stratum: Option<usize>,
        sum: i64,
        guardrails: &[i64],
    ) -> Result<Step, PushError> {
        self.push_within(stratum, (sum, 0), guardrails)
    }

    /// The same of a unit with missing draws, for which values against the candidate stand: its improvement may be more by
    /// `slack` millionths, at least 0. Claim and guardrails and the low end of the interval are of the values that stand; harm,
    /// futility and the high end are of the most that the unit may have had.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_within(
        &mut self,
        stratum: Option<usize>,
        (sum, slack): (i64, i64),
        guardrails: &[i64],
    ) -> Result<Step, PushError> {
        let n = self.n();
        if n >= self.design.terms().max_n {
            let max_n = self.design.terms().max_n;
            return Err(PushError::PastMaxN { max_n });
        }
        if self.verdict.is_terminal() {
            let verdict = self.verdict;
            return Err(PushError::AfterTerminal { n, verdict });
        }
        let (found, expected) = (guardrails.len(), self.guardrails.len());
        if found != expected {
            return Err(PushError::Guardrails { found, expected });
        }
        self.is_left(stratum)?;
        self.ticks.clear();
        let tracks = std::iter::once(&self.track).chain(&self.guardrails);
        for (track, sum) in tracks.zip(std::iter::once(&sum).chain(guardrails)) {
            let tick = track.tick(*sum).ok_or_else(|| PushError::OutOfRange {
                sum: *sum,
                bound: track.bound(),
            })?;
            self.ticks.push(tick);
        }
        if slack > 0 {
            self.favour();
        }
        if let Some(favoured) = &mut self.favoured {
            favoured.push((sum, slack), 1, stratum);
        }
        let tracks = std::iter::once(&mut self.track).chain(&mut self.guardrails);
        for (track, tick) in tracks.zip(&self.ticks) {
            track.push(*tick, stratum.unwrap_or(0));
        }
        if let Some(sequence) = &mut self.sequence {
            sequence.push(self.ticks[0], stratum);
        }
        if let Some(stratum) = stratum {
            self.left[stratum] -= 1;
        }
        let looked = self.design.is_look(self.n());
        if looked {
            self.settle();
        }
        Ok(Step {
            n: self.n(),
            looked,
            verdict: self.verdict,
        })
    }

    /// From here on the most that units may have had is told apart from what stands for them; so far they are the same.
    fn favour(&mut self) {
        let now = || FavourableTrack {
            track: self.track.clone(),
            sequence: self.sequence.clone(),
        };
        if self.favoured.is_none() {
            self.favoured = Some(Box::new(now()));
        }
    }

    /// Whether a unit of a stratum may come, or one of none where the design has none.
    fn is_left(&self, stratum: Option<usize>) -> Result<(), PushError> {
        let expected = match stratum {
            None if self.left.is_empty() => return Ok(()),
            None => "one of the registered strata",
            Some(at) => match self.left.get(at) {
                Some(0) => "a stratum of which a unit is left",
                Some(_) => return Ok(()),
                None => "one of the registered strata, none without any",
            },
        };
        Err(PushError::Stratum {
            found: stratum,
            expected,
        })
    }

    /// Takes observations that were made before, without a look at any of them: of each metric its deltas, each with how
    /// often it came, in the order registered. Runs of one delta cost as much as one where the order does not matter.
    /// `strata` are those of the units where the design has some; then every delta stands for itself. `within` are all deltas
    /// of the main metric once more where draws of some are missing, and empty where none is: of each by how much the
    /// improvement may be more, and how often it came.
    ///
    /// # Errors
    /// [`PushError`]; then the gate is of no use.
    pub fn recall(
        &mut self,
        streams: &[Vec<(i64, u64)>],
        within: &[(i64, i64, u64)],
        strata: &[usize],
    ) -> Result<(), PushError> {
        let (found, expected) = (streams.len().saturating_sub(1), self.guardrails.len());
        if found != expected || streams.is_empty() {
            return Err(PushError::Guardrails { found, expected });
        }
        for stratum in strata {
            self.is_left(Some(*stratum))?;
            self.left[*stratum] -= 1;
        }
        let has_strata = !self.left.is_empty();
        let apart = |stream: &Vec<(i64, u64)>| {
            stream.len() == strata.len() && stream.iter().all(|(_, n)| *n == 1)
        };
        if has_strata && !streams.iter().all(apart) {
            return Err(PushError::Stratum {
                found: None,
                expected: "one for each unit",
            });
        }
        let of = |at: usize| strata.get(at).copied();
        if !within.is_empty() {
            self.favour();
        }
        if let Some(favoured) = &mut self.favoured {
            for (at, (sum, slack, times)) in within.iter().enumerate() {
                let (sum, bound) = (*sum, self.track.bound());
                let out = PushError::OutOfRange { sum, bound };
                favoured.push((sum, *slack), *times, of(at)).ok_or(out)?;
            }
        }
        let tracks = std::iter::once(&mut self.track).chain(&mut self.guardrails);
        for (track, stream) in tracks.zip(streams) {
            for (at, (sum, times)) in stream.iter().enumerate() {
                let (sum, bound) = (*sum, track.bound());
                let out = PushError::OutOfRange { sum, bound };
                let tick = track.tick(sum).ok_or(out)?;
                match of(at) {
                    Some(stratum) => track.push(tick, stratum),
                    None => track.push_times(tick, *times),
                }
            }
        }
        if let Some(sequence) = &mut self.sequence {
            for (at, (sum, times)) in streams[0].iter().enumerate() {
                if let Some(tick) = self.track.tick(*sum) {
                    (0..*times).for_each(|_| sequence.push(tick, of(at)));
                }
            }
        }
        let max_n = self.design.terms().max_n;
        if self.n() > max_n {
            return Err(PushError::PastMaxN { max_n });
        }
        Ok(())
    }

    /// What a registered look changes: peaks, the confidence sequence, the verdict. A push at a look does it.
    pub fn settle(&mut self) {
        if let Some(sequence) = &mut self.sequence {
            sequence.look(&self.track);
        }
        if let Some(favoured) = &mut self.favoured
            && let Some(sequence) = &mut favoured.sequence
        {
            sequence.look(&favoured.track);
        }
        if self.nothing_new() {
            self.leading = false;
            return;
        }
        let logs = self.logs();
        let claim = self.claim(&logs);
        let all = std::iter::once(claim.unwrap_or(0.0)).chain(logs.iter().copied());
        for (peak, now) in self.peaks.iter_mut().zip(all) {
            *peak = peak.max(now);
        }
        (self.verdict, self.leading) = self.judge(&logs, claim);
    }

    /// Whether all wealth is so far below its peak and its threshold that no order of summing could matter.
    ///
    /// It spares most looks a pass over the levels, and changes no number.
    fn nothing_new(&self) -> bool {
        let terms = self.design.terms();
        if self.n() >= terms.max_n || terms.looks != Looks::Every {
            return false;
        }
        let about = self.logs_of(Track::about);
        let below = |log: f64, bar: f64| log + ABOUT * (1.0 + log.abs()) < bar;
        let bar = |level: u32| EvalueThreshold::of_level(level).ln();
        let peaks = self.peaks.iter().skip(1);
        let parts = self.parts.iter().zip(&about).zip(peaks);
        let quiet = parts.into_iter().all(|((part, log), peak)| {
            let level = match part {
                Hypothesis::Kill => terms.alpha_kill,
                Hypothesis::Futile => terms.futile.map(|futile| futile.beta),
                Hypothesis::Claim | Hypothesis::Second | Hypothesis::Guardrail(_) => None,
            };
            below(*log, *peak) && level.is_none_or(|level| below(*log, bar(level)))
        });
        let claim = self.claim(&about);
        quiet && claim.is_none_or(|log| below(log, self.peaks[0].min(bar(terms.alpha))))
    }

    /// Log wealth of each part, what was carried included.
    fn logs(&self) -> Vec<f64> {
        self.logs_of(Track::ln_wealth)
    }

    fn logs_of<'a, I>(&'a self, of: impl Fn(&'a Track) -> I) -> Vec<f64>
    where
        I: Iterator<Item = f64> + 'a,
    {
        let favoured = self.favoured.as_ref();
        let favoured: Vec<f64> = favoured.map_or(Vec::new(), |one| of(&one.track).collect());
        let tests = self.design.tests().iter().zip(of(&self.track));
        let tests = tests.enumerate().map(|(at, (test, ln_wealth))| {
            let may_be = favoured.get(at).filter(|_| test.role.is_against());
            test.carried + may_be.copied().unwrap_or(ln_wealth)
        });
        let guardrails = self.guardrails.iter().flat_map(&of);
        tests.chain(guardrails).collect()
    }

    /// Log wealth of the claim as a whole.
    fn claim(&self, logs: &[f64]) -> Option<f64> {
        let of = |part| {
            let at = self.parts.iter().position(|known| *known == part)?;
            logs.get(at).copied()
        };
        let claim = of(Hypothesis::Claim)?;
        let whole = match self.design.terms().claim {
            Claim::Equivalent { .. } => claim.min(of(Hypothesis::Second)?),
            Claim::Different { .. } => bettor::log_mean_exp(&[claim, of(Hypothesis::Second)?]),
            _ => claim,
        };
        let guardrails = self.parts.iter().zip(logs);
        let guardrails = guardrails.filter(|(part, _)| matches!(part, Hypothesis::Guardrail(_)));
        Some(guardrails.fold(whole, |least, (_, log)| least.min(*log)))
    }

    /// The verdict of a registered look, and whether the claim leads.
    ///
    /// In this order: the claim, harm, futility, undecided at the maximum.
    fn judge(&self, logs: &[f64], claim: Option<f64>) -> (Verdict, bool) {
        let terms = self.design.terms();
        let n = self.n();
        let last = if n >= terms.max_n {
            Verdict::Undecided
        } else {
            Verdict::Continue
        };
        if n < terms.min_n {
            return (last, false);
        }
        let past = |log: f64, threshold: EvalueThreshold| {
            bettor::is_past(n, self.design.fractions(), log, threshold.ln())
        };
        let shown = Verdict::of(terms.claim).zip(claim);
        if let Some((verdict, claim)) = shown
            && past(claim, terms.stop)
        {
            return (verdict, false);
        }
        let leading =
            claim.is_some_and(|claim| past(claim, EvalueThreshold::of_level(terms.alpha)));
        let crossed = |part, level: u32| {
            let at = self.parts.iter().position(|known| *known == part);
            let log = at.and_then(|at| logs.get(at));
            log.is_some_and(|log| past(*log, EvalueThreshold::of_level(level)))
        };
        if terms
            .alpha_kill
            .is_some_and(|alpha| crossed(Hypothesis::Kill, alpha))
        {
            return (Verdict::Kill, leading);
        }
        if terms
            .futile
            .is_some_and(|futile| crossed(Hypothesis::Futile, futile.beta))
        {
            return (Verdict::Futile, leading);
        }
        (last, leading)
    }

    /// What the gate shows now. Between registered looks the evidence is current, while peaks, interval and verdict
    /// are those of the last one.
    pub fn look(&self) -> Look {
        let logs = self.logs();
        let evidence = |ln_wealth: f64, peak: usize| Evidence {
            ln_wealth,
            ln_peak: self.peaks[peak],
        };
        let parts = self.parts.iter().zip(&logs).zip(1..);
        Look {
            n: self.n(),
            claim: self.claim(&logs).map(|log| evidence(log, 0)),
            parts: parts
                .map(|((part, log), at)| (*part, evidence(*log, at)))
                .collect(),
            interval: self.interval(),
            verdict: self.verdict,
            leading: self.leading,
        }
    }

    fn interval(&self) -> Option<Bounds> {
        let bounds = self.sequence.as_ref()?.bounds();
        let favoured = self.favoured.as_ref().and_then(|one| one.sequence.as_ref());
        let high = favoured.map_or(bounds.high, |sequence| sequence.bounds().high);
        Some(Bounds { high, ..bounds })
    }

    /// What a state digest is computed from.
    pub fn state(&self) -> GateState {
        let drawn = self.sequence.as_ref().map_or(&[][..], Sequence::drawn);
        let strata = self.sequence.as_ref().map_or(&[][..], Sequence::strata);
        let ordered = std::iter::once(&self.track).chain(&self.guardrails);
        GateState {
            n: self.n(),
            levels: self.track.levels().counts().collect(),
            guardrail_levels: self
                .guardrails
                .iter()
                .map(|track| track.levels().counts().collect())
                .collect(),
            cells: self.track.levels().cells().collect(),
            ordered: ordered.flat_map(Track::ordered).collect(),
            drawn: drawn.to_vec(),
            strata: strata.to_vec(),
            ln_peaks: self.peaks.clone(),
            interval: self.interval(),
            favoured: self.favoured.as_ref().map_or_else(Default::default, |one| {
                (one.track.levels().counts().collect(), one.track.ordered())
            }),
            verdict: (self.verdict, self.n()),
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
