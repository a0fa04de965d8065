//! What is labelled once: a draw and a prompt are probes of one design, which takes none of a policy that it audited; a rater says
//! one thing of a draw for calibration.

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::RaterId;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::LabelRecorded;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Fact;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use crate::audits::probes::Probes;
use crate::audits::rules;
use crate::designs::Designs;

/// The natural key of a label as it would be by another design and rater.
fn label_by(
    experiment: &ExperimentId,
    label: &LabelRecorded,
    (design, rater): (&DesignId, &RaterId),
) -> Option<Digest> {
    let by = LabelRecorded {
        design: design.clone(),
        rater: rater.clone(),
        ..label.clone()
    };
    Payload::from(by).natural_key(Some(experiment))
}

/// A design takes no probe of a policy that it audited.
pub(super) fn once_audited(
    state: &State,
    experiment: &ExperimentId,
    (policy, design): (&PolicyId, &DesignId),
) -> Option<Fact> {
    state.asks(Question::AllProbes).then(|| Fact::Forbids {
        digest: rules::audited(experiment, design, (policy, None)),
        rule: RuleName::Transport,
    })
}

/// A prompt of a policy is a probe of one design, whatever number its draw has.
pub(super) fn check_prompt(
    state: &State,
    experiment: &ExperimentId,
    (policy, item): (&PolicyId, &ItemId),
    design: &DesignId,
) -> Option<Breach> {
    if !state.asks(Question::OnePrompt) {
        return None;
    }
    let probes = state.fold::<Probes>().by_experiment.get(experiment)?;
    let other = probes.other_design(policy, item, design)?;
    Some(Breach::new(
        RuleName::Purpose,
        "a prompt that is a probe of one design",
        format!("{item} of {policy}, a probe of {other}"),
    ))
}

/// A draw is a probe of one design, whoever labels it. For calibration a rater may say the same of it under another design, and
/// nothing else.
pub(super) fn labelled_once(
    state: &State,
    experiment: &ExperimentId,
    label: &LabelRecorded,
    facts: &mut Vec<Fact>,
) {
    let all = state.fold::<Designs>().by_experiment.get(experiment);
    let designs = all.into_iter().flat_map(|of| &of.designs);
    let others = designs.filter(|(id, _)| **id != label.design);
    let key = |by| label_by(experiment, label, by);
    if label.purpose == LabelPurpose::Audit {
        facts.extend(once_audited(
            state,
            experiment,
            (&label.policy, &label.design),
        ));
    }
    match label.purpose {
        LabelPurpose::Audit if state.asks(Question::OneProbe) => {
            let by = others.flat_map(|(id, of)| of.raters.iter().map(move |rater| (id, rater)));
            facts.extend(by.filter_map(key).map(|digest| Fact::Forbids {
                digest,
                rule: RuleName::Purpose,
            }));
        }
        LabelPurpose::Calibrate => {
            let value = label.value_micro.value();
            let own = key((&label.design, &label.rater));
            facts.extend(own.map(|digest| Fact::Says { digest, value }));
            if state.asks(Question::OneLabel) {
                let theirs = others.filter(|(_, of)| of.raters.contains(&label.rater));
                let keys = theirs.filter_map(|(id, _)| key((id, &label.rater)));
                facts.extend(keys.map(|digest| Fact::Agrees {
                    digest,
                    value,
                    rule: RuleName::ScoreOnce,
                }));
            }
        }
        LabelPurpose::Audit => {}
    }
}
