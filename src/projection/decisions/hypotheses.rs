//! Which hypotheses may be sealed.

use clover_event::payload::predicate::SealedHypothesis;
use clover_ground::digest::Digest;
use clover_ledger::RuleAnswer;
use clover_ledger::unmet;

use crate::decisions::composite_of;
use crate::iterations::CandidateState;
use crate::iterations::Iteration;
use crate::iterations::PatchRecord;

/// Hypotheses are patches that stand, one a family, and at most one composite of two of them, in order of hash.
pub(super) fn check(it: &Iteration, sealed: &[SealedHypothesis]) -> RuleAnswer {
    if !sealed
        .windows(2)
        .all(|pair| pair[0].candidate < pair[1].candidate)
    {
        return unmet("hypotheses in order of hash, each once", "another order");
    }
    let stands = |hash: &Digest| {
        let is = |patch: &&PatchRecord| {
            patch.patch_hash == *hash && patch.state == CandidateState::Proposed
        };
        it.candidates.values().find(is)
    };
    let mut families = Vec::new();
    let mut composites = 0;
    for one in sealed {
        if one.candidate != composite_of(&one.patches) {
            let found = one.candidate.to_string();
            return unmet("the hash of its patches", found);
        }
        match &one.patches[..] {
            [only] => match stands(only) {
                None => return unmet("a patch that stands", format!("{only}, none")),
                Some(patch) if families.contains(&&patch.family) => {
                    let found = format!("two of {}", patch.family);
                    return unmet("one candidate of each family", found);
                }
                Some(patch) => families.push(&patch.family),
            },
            [a, b] if a < b => {
                composites += 1;
                let single = |hash: &Digest| sealed.iter().any(|other| other.patches == [*hash]);
                if composites > 1 || !single(a) || !single(b) {
                    let expected = "one composite, of two patches that are sealed by themselves";
                    return unmet(expected, "another");
                }
            }
            _ => return unmet("one patch, or two in order of hash", "others"),
        }
    }
    Ok(())
}
