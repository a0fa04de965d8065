//! Whose entries a claim rests on: nothing is claimed by what a key signed from its compromise on.
//!
//! Labels, scores and fits of an estimate; the audits that passed for it, with their probes; labels and scores of two judges.

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::Claim;
use clover_event::payload::scoring::JudgeCompared;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::newest::ExperimentEntries;
use crate::newest::NewestEntries;
use crate::newest::PassedAudit;

/// Entries of an experiment.
fn entries<'s>(state: &'s State, experiment: &ExperimentId) -> Option<&'s ExperimentEntries> {
    let all = state.fold::<NewestEntries>();
    all.by_experiment.get(experiment)
}

/// A key that was compromised at its newest entry here, or before.
fn compromised(state: &State, (key, newest): (&KeyId, &u64)) -> Option<KeyId> {
    let end = state.keyring.keys.get(key)?.end.as_ref()?;
    end.tainted_since
        .filter(|since| since <= newest)
        .map(|_| *key)
}

/// The first key whose labels of any policy, scores by a judge of this one and of every labelled one, or fit came after its
/// compromise.
pub fn claimed(
    state: &State,
    experiment: &ExperimentId,
    (judge, policy): (&JudgeId, &PolicyId),
    calibrator: Option<&Digest>,
) -> Option<KeyId> {
    let of = entries(state, experiment)?;
    let is_tainted = |one| compromised(state, one);
    let labels = of.labels.values().flatten();
    let policies = of.scores.get(judge).into_iter().flatten();
    let scores = policies.filter(|(name, _)| *name == policy || of.labels.contains_key(*name));
    let scores = scores.flat_map(|(_, signers)| signers);
    let found = labels.chain(scores).find_map(is_tainted);
    // One sound fit of the same curves is enough.
    let fits = calibrator.and_then(|calibrator| of.fits.get(calibrator));
    let fit = || {
        let all: Vec<Option<KeyId>> = fits?.iter().map(is_tainted).collect();
        all.into_iter().collect::<Option<Vec<KeyId>>>()?.pop()
    };
    found.or_else(fit)
}

/// The first key that gave, sealed or revealed a probe of a design from its compromise on; of one policy, or of all.
fn of_probes(
    state: &State,
    of: &ExperimentEntries,
    (design, policy): (&DesignId, Option<&PolicyId>),
) -> Option<KeyId> {
    let policies = of.probes.get(design).into_iter().flatten();
    let probes = policies.filter(|(name, _)| policy.is_none_or(|of| of == *name));
    let mut probes = probes.flat_map(|(_, signers)| signers);
    probes.find_map(|one| compromised(state, one))
}

/// The same, of an experiment.
pub fn probed(
    state: &State,
    experiment: &ExperimentId,
    (design, policy): (&DesignId, &PolicyId),
) -> Option<KeyId> {
    of_probes(state, entries(state, experiment)?, (design, Some(policy)))
}

/// The first key that signed an audit, or one of its probes, from its compromise on.
fn of_audit(state: &State, of: &ExperimentEntries, audit: &PassedAudit) -> Option<KeyId> {
    let signed = compromised(state, (&audit.author, &audit.seq));
    signed.or_else(|| of_probes(state, of, (&audit.design, audit.policy.as_ref())))
}

/// The first audit that passed for a policy on entries of a compromised key, with that key. A later pass of the same by as many
/// prompts, on sound entries, takes its place. A family of environments is about every policy.
pub fn audited(
    state: &State,
    experiment: &ExperimentId,
    (judge, policy): (&JudgeId, &PolicyId),
    environment: Option<&EnvironmentScope>,
) -> Option<(u64, KeyId)> {
    let of = entries(state, experiment)?;
    let passed = of.passed.get(judge)?;
    passed.iter().enumerate().find_map(|(at, audit)| {
        if !audit.is_about(policy, environment) {
            return None;
        }
        let key = of_audit(state, of, audit)?;
        let takes_its_place = |later: &PassedAudit| {
            later.is_again(audit)
                && later.prompts >= audit.prompts
                && of_audit(state, of, later).is_none()
        };
        let is_replaced = passed[at + 1..].iter().any(takes_its_place);
        (!is_replaced).then_some((audit.seq, key))
    })
}

/// The first key whose labels of any policy, or scores by either judge of a labelled one, came after its compromise.
pub fn compared(state: &State, experiment: &ExperimentId, judges: [&JudgeId; 2]) -> Option<KeyId> {
    let of = entries(state, experiment)?;
    let labels = of.labels.values().flatten();
    let scores = judges.into_iter().filter_map(|judge| of.scores.get(judge));
    let scores = scores.flatten();
    let scores = scores.filter(|(name, _)| of.labels.contains_key(*name));
    let scores = scores.flat_map(|(_, signers)| signers);
    labels.chain(scores).find_map(|one| compromised(state, one))
}

/// What a claim of a policy rests on that is tainted, in words, as the rulebook in force asks.
fn asked(
    state: &State,
    experiment: &ExperimentId,
    (terms, policy): (&EstimateTerms, &PolicyId),
    calibrator: Option<&Digest>,
) -> Option<String> {
    let of = (&terms.judge, policy);
    if state.asks(Question::TaintedClaims)
        && let Some(key) = claimed(state, experiment, of, calibrator)
    {
        return Some(format!(
            "rests on entries of key {key} from its compromise on"
        ));
    }
    if !state.asks(Question::TaintedAudits) {
        return None;
    }
    let (seq, key) = audited(state, experiment, of, terms.environment.as_ref())?;
    Some(format!(
        "passed its audit at seq {seq} by entries of key {key} from its compromise on"
    ))
}

/// An estimate that rests on entries of a compromised key claims nothing.
pub(super) fn check_estimate(
    state: &State,
    experiment: &ExperimentId,
    said: &EstimateRecorded,
) -> RuleAnswer {
    let of = (&said.terms, &said.policy);
    let Some(why) = asked(state, experiment, of, said.calibrator.as_ref()) else {
        return Ok(());
    };
    ensure!(
        said.claim == Claim::Refused,
        format!("claim refused: {} {why}", said.policy),
        format!("claim {}", said.claim)
    );
    Ok(())
}

/// A comparison that rests on them tells nothing apart.
pub(super) fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> RuleAnswer {
    for policy in [&said.first, &said.second] {
        let of = (&said.terms, policy);
        let Some(why) = asked(state, experiment, of, said.calibrator.as_ref()) else {
            continue;
        };
        ensure!(
            !said.told_apart,
            format!("nothing told apart: {policy} {why}"),
            "told apart"
        );
    }
    Ok(())
}

/// A comparison of judges that rests on them names no better one.
pub(super) fn check_judges(
    state: &State,
    experiment: &ExperimentId,
    said: &JudgeCompared,
) -> RuleAnswer {
    if !state.asks(Question::TaintedJudges) {
        return Ok(());
    }
    let by = compared(state, experiment, [&said.first, &said.second]);
    let Some(key) = by else {
        return Ok(());
    };
    ensure!(
        said.better.is_none(),
        format!("no better judge: it rests on entries of key {key} from its compromise on"),
        "a better judge"
    );
    Ok(())
}
