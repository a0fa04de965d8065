//! What the validator says of proposals, with what people said of them.

use std::collections::BTreeSet;

use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_event::payload::sgd_steps::SgdViolation;
use clover_event::payload::sgd_steps::SgdWord;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::Unmet;
use clover_projection::sgd::SgdStep;
use clover_prompt::Lexicon;
use clover_prompt::PatchRule;
use clover_prompt::Proposal;
use clover_prompt::StepContext;
use clover_prompt::ValidatedPatch;
use clover_prompt::Violation;
use clover_prompt::validate;

use crate::sgd::course::SgdCourse;
use crate::sgd::course::small;
use crate::sgd::course::text;
use crate::sgd::course::unmet;

/// What the validator says of a proposal.
#[derive(Clone, Debug)]
pub enum PatchVerdict {
    /// It breaks these rules.
    Broken(Vec<SgdViolation>),
    /// It may be applied.
    Valid(Box<ValidatedPatch>),
    /// It may be applied where a person approves.
    Waits,
}

/// The section that a step edits.
pub fn section_of(step: &SgdStep) -> Option<String> {
    let attempt = usize::try_from(step.committed.as_ref()?.attempt?.value()).ok()?;
    let proposal = proposal(step.proposed.get(attempt)?).ok()?;
    Some(proposal.patch.section)
}

pub(super) fn proposal(said: &SgdPatchProposed) -> Result<Proposal, Unmet> {
    let found = serde_json::from_str(said.patch.as_str());
    found.map_err(|error| unmet("a proposal", error.to_string()))
}

/// The violation of a proposal that holds words of rows.
pub fn leaked() -> SgdViolation {
    violation(&Violation {
        bound: 0,
        measured: 1,
        rule: PatchRule::Leak,
    })
}

fn violation(of: &Violation) -> SgdViolation {
    SgdViolation {
        bound: text(&of.bound.to_string()),
        found: text(&of.measured.to_string()),
        rule: text(of.rule.as_str()),
    }
}

impl SgdCourse<'_> {
    pub(super) fn violations(&self, said: &SgdPatchProposed) -> Result<Vec<Violation>, Unmet> {
        let Ok(proposal) = proposal(said) else {
            return Ok(vec![Violation {
                bound: 0,
                measured: 1,
                rule: PatchRule::Form,
            }]);
        };
        let none = BTreeSet::new();
        let validated = self.validated(&proposal, &none)?;
        Ok(validated.err().unwrap_or_default())
    }

    fn validated(
        &self,
        proposal: &Proposal,
        approvals: &BTreeSet<Digest>,
    ) -> Result<Result<ValidatedPatch, Vec<Violation>>, Unmet> {
        let context = StepContext {
            approvals,
            current: self.current()?,
            gradient_items: self.gradient()?.items.len(),
            lexicon: Lexicon::built_in(),
            prompt0: self.prompt0(),
            step: small(self.run.taken()),
            terms: &self.terms,
        };
        Ok(validate(&context, proposal))
    }

    /// What the validator says of the proposal that stands, with what a person said of it.
    ///
    /// # Errors
    /// [`Unmet`] where none stands.
    pub fn verdict(&self) -> Result<PatchVerdict, Unmet> {
        let step = self.going()?;
        let said = step.standing().required("a proposal that stands")?;
        let Ok(read) = proposal(said) else {
            let all = self.violations(said)?;
            return Ok(PatchVerdict::Broken(all.iter().map(violation).collect()));
        };
        let word = step.word(said.attempt.value()).map(|of| of.decision);
        let approved = word == Some(SgdWord::Approve);
        let approvals: BTreeSet<Digest> =
            approved.then(|| read.patch.digest()).into_iter().collect();
        Ok(match self.validated(&read, &approvals)? {
            Ok(patch) => PatchVerdict::Valid(Box::new(patch)),
            Err(all) => {
                let mut rules = all.iter().map(|of| of.rule);
                let only_word = rules.all(|rule| rule == PatchRule::Approval);
                if only_word && word.is_none() {
                    PatchVerdict::Waits
                } else {
                    PatchVerdict::Broken(all.iter().map(violation).collect())
                }
            }
        })
    }
}
