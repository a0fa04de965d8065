//! Where else a candidate is tested: one candidate's evidence counts in one family, wherever it is tested.

use clover_event::id::ManifestId;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
use clover_ground::digest::Digest;
use clover_ledger::Code;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::gates::Gates;
use crate::gates::rules::family_of;
use crate::manifests;
use crate::manifests::ManifestRecord;
use crate::manifests::Manifests;
use crate::orders::Orders;

/// One candidate's scores are evidence in one family: whoever may test it at a level of another family chooses among orders,
/// units or experiments. Before [`Question::OneFamily`] it was one judge's scores in one experiment, and a manifest that was
/// registered after an order was drawn could test the candidate again.
pub(super) fn check_elsewhere(
    state: &State,
    record: &ManifestRecord,
    said: &GateOpened,
) -> RuleAnswer {
    let bound = record.bound();
    let bound = bound.required("a version that set what is tested")?;
    let mine = said.sources.first().required("a source of the metric")?;
    let family = family_of(record);
    let other_family = |other: &ManifestRecord| family.is_none() || family != family_of(other);
    let manifests = state.fold::<Manifests>();
    let mut others = state.fold::<Gates>().by_id.iter();
    // A gate is opened on a manifest, with sources, after its order was drawn: one that lacks them is refused there.
    let same_values = others.find_map(|(id, gate)| {
        let other = manifests.by_id.get(id)?;
        let theirs = gate.sources.first()?;
        let (version, drawn) = state.fold::<Orders>().of(other)?;
        let here = gate.experiment == record.experiment
            && (&theirs.judge, &theirs.design) == (&mine.judge, &mine.design)
            && manifests::is_candidate_shared(&version.manifest, &bound.manifest)
            && (state.asks(Question::OneFamily) || bound.seq <= drawn.seq);
        (here && other_family(other)).then_some((id, other))
    });
    let registered = || {
        let asked = state.asks(Question::OneFamily);
        let mut all = manifests.by_id.iter().filter(|_| asked);
        all.find(|(id, other)| {
            // Its order is known once it is countersigned, whether it is opened or not.
            let theirs = other.bound();
            **id != said.gate
                && other_family(other)
                && theirs.is_some_and(|one| is_one_test(&one.manifest, &bound.manifest))
        })
    };
    let Some((id, other)) = same_values.or_else(registered) else {
        return Ok(());
    };
    let with = family_of(other).map_or("none", |name| name.as_str());
    let expected = if state.asks(Question::OneFamily) {
        format!("family {with}, in which {id} tests this candidate")
    } else {
        format!(
            "family {with}, in which {id} tests this candidate by the same values, or a manifest registered after its order was drawn"
        )
    };
    let family = family.map_or("none", |name| name.as_str());
    unmet(expected, Code::FamilyBudget.of(family))
}

/// Whether two manifests ask the same of one candidate: by what it is, and by the metric, the judge or the confirm set.
fn is_one_test(one: &Manifest, other: &Manifest) -> bool {
    let gates = one.template == Template::Gate && other.template == Template::Gate;
    let candidate = candidates(one).any(|digest| candidates(other).any(|of| of == digest));
    let metric = one.metric.as_ref().zip(other.metric.as_ref());
    let metric = metric.is_some_and(|(one, other)| {
        one.metric == other.metric || one.judge_digest == other.judge_digest
    });
    let data = one.data.as_ref().zip(other.data.as_ref());
    let data = data.is_some_and(|(one, other)| one.confirm_root == other.confirm_root);
    gates && candidate && (metric || data)
}

fn candidates(manifest: &Manifest) -> impl Iterator<Item = Digest> {
    let arms = manifest.arms.iter().flatten();
    let candidates = arms.filter(|arm| arm.role == ArmRole::Candidate);
    candidates.map(|arm| arm.artifact_digest)
}

/// Gates of the ledger that test a candidate, by its digest, in order of their names: those whose manifest is in force, opened
/// or not, as its order is known by then.
pub fn tests_of(state: &State, candidate: Digest) -> Vec<&ManifestId> {
    let all = state.fold::<Manifests>().by_id.iter();
    let tests = |record: &ManifestRecord| {
        record.bound().is_some_and(|bound| {
            bound.manifest.template == Template::Gate
                && candidates(&bound.manifest).any(|digest| digest == candidate)
        })
    };
    all.filter(|(_, record)| tests(record))
        .map(|(id, _)| id)
        .collect()
}
