//! The scale of labels by the rule `design`: one is said before the first sealed label, and holds every label.

use clover_event::id::ExperimentId;
use clover_event::payload::label::LabelScaleDeclared;
use clover_ledger::Breach;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Micro;

use crate::designs::Designs;
use crate::designs::ExperimentDesigns;

/// A label that lies off the declared scale.
pub(crate) fn off_scale(state: &State, experiment: &ExperimentId, value: Micro) -> Option<Breach> {
    let scale = state.fold::<Designs>().scale(experiment)?;
    let breaks = !scale.holds(value) && state.asks(Question::LabelsOnScale);
    breaks.then(|| {
        let expected = format!("a label from {} to {}", scale.low_micro, scale.high_micro);
        Breach::new(RuleName::Design, expected, value.to_string())
    })
}

/// A scale is one, is said before the first sealed label, and holds every label that could be seen.
pub(crate) fn check(of: Option<&ExperimentDesigns>, said: &LabelScaleDeclared) -> RuleAnswer {
    let Some(scale) = said.ends() else {
        let found = format!("{} to {}", said.low_micro, said.high_micro);
        return unmet("a scale whose ends are in order", found);
    };
    let Some(of) = of else {
        return Ok(());
    };
    if let Some(seq) = of.sealed_since() {
        let found = format!("one after labels of a design that has sealed ones, since seq {seq}");
        return unmet("a scale that is said before a label is sealed", found);
    }
    if let Some(range) = of.labelled {
        ensure!(
            scale.holds(range.low_micro) && scale.holds(range.high_micro),
            "a scale that holds every label on record",
            format!("labels from {} to {}", range.low_micro, range.high_micro)
        );
    }
    Ok(())
}
