//! Which verdicts let a candidate pass.

use clover_event::payload::Verdict;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;

use crate::assumptions::Assumptions;
use crate::decisions::CandidateDecision;
use crate::decisions::GateSaid;
use crate::decisions::rules::plan_of;
use crate::decisions::sealing::Now;
use crate::iterations::Iteration;
use crate::splits::Splits;

impl Now<'_> {
    /// Whether a verdict lets a candidate pass: a pass does; what nobody could check does if two keys answered for it
    /// before the splits were formed; transport does if the plan claims no environment.
    fn lets_pass(&self, it: &Iteration, said: &GateSaid) -> bool {
        let code = match (said.verdict, said.gate) {
            (Verdict::Pass, _) => return true,
            (Verdict::NotChecked, Criterion::P0) => Assumption::CloverJ2,
            (Verdict::NotChecked, Criterion::P7) => Assumption::Adv,
            // Where no environment is claimed, none has to pass.
            (Verdict::NotChecked, Criterion::P6) => return self.claims_no_environment(it),
            _ => return false,
        };
        self.is_answered_for(code)
    }

    fn claims_no_environment(&self, it: &Iteration) -> bool {
        let design = plan_of(self.state, it).and_then(|plan| plan.design.as_ref());
        design.is_some_and(IterationDesign::claims_no_environment)
    }

    /// Whether two keys answered for an assumption before the splits were formed, and still do.
    fn is_answered_for(&self, code: Assumption) -> bool {
        let row = self
            .state
            .fold::<Assumptions>()
            .row(code, Some(self.experiment));
        let Some(waiver) = row.and_then(|row| row.granted.as_ref()) else {
            return false;
        };
        let splits = self
            .state
            .fold::<Splits>()
            .by_experiment
            .get(self.experiment);
        let formed = splits.and_then(|of| of.formed.values().map(|formed| formed.seq).max());
        let agreed = waiver.agreed.map(|agreed| agreed.seq);
        let is_early = agreed
            .zip(formed)
            .is_some_and(|(agreed, formed)| agreed < formed);
        is_early && waiver.expires_at > self.at
    }

    /// The first gate of `gates` on `split` that does not let a candidate pass.
    pub(super) fn stopped_by(
        &self,
        it: &Iteration,
        judged: Option<&CandidateDecision>,
        gates: &[Criterion],
        split: CriterionSplit,
    ) -> Option<String> {
        gates.iter().find_map(
            |&gate| match judged.and_then(|judged| judged.said(gate, split)) {
                Some(said) if self.lets_pass(it, said) => None,
                Some(said) => Some(format!(
                    "{gate} {} at seq {}",
                    verdict_word(said.verdict),
                    said.seq
                )),
                None => Some(format!("{gate} not evaluated on {}", split.as_str())),
            },
        )
    }
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "not_checked",
        Verdict::Pass => "pass",
    }
}
