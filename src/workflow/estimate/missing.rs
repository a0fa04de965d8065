//! Prompts that one side of a difference has no score of: what a comparison may say beside them.

use clover_event::payload::estimate::ComparedPrompts;
use clover_event::payload::estimated::Reading;
use clover_stats::inference::Interval;

use crate::analyze::Difference;
use crate::analyze::dataset::PromptGap;
use crate::analyze::dataset::PromptGaps;
use crate::estimate::compute::Found;
use crate::estimate::form::Form;
use crate::estimate::terms::finite;
use crate::estimate::terms::size;

/// Prompts of a family of policies, on a scale that spans `span`.
pub(super) struct Missing {
    gaps: PromptGaps,
    span: f64,
    form: Form,
}

impl Missing {
    /// Those of some policies; before rulebook 23 nobody asks for them.
    pub(super) fn among(found: &Found, family: &[usize], form: Form) -> Self {
        Self {
            gaps: found.gathered.dataset.gaps(family),
            span: found.analysis.output_scale.span(),
            form,
        }
    }

    /// How a difference is to be read, and which prompts it is about: told apart only where the worst scores of what is missing
    /// would not change that, and only where two policies share a prompt.
    pub(super) fn read(
        &self,
        pair: &Difference,
        reading: Reading,
        interval: Interval,
    ) -> (Reading, Option<ComparedPrompts>) {
        let prompts = self.gaps.pair(pair.first, pair.second);
        let Some(prompts) = prompts.filter(|_| self.form >= Form::Compared) else {
            return (reading, None);
        };
        let changes = match prompts.both() {
            // Two samples: which prompts each has may be all that sets them apart.
            0 => self.form >= Form::Shared,
            _ => !prompts.leaves_apart(interval, self.span),
        };
        let reading = match reading {
            Reading::ToldApart if changes => Reading::NotToldApart,
            reading => reading,
        };
        (reading, Some(self.compared(prompts)))
    }

    /// Which prompts a difference is about, as its event has them.
    fn compared(&self, of: PromptGap) -> ComparedPrompts {
        let worst = if of.both() > 0 {
            of.worst(self.span)
        } else {
            0.0
        };
        ComparedPrompts {
            both: size(of.both()),
            first_only: size(of.second),
            second_only: size(of.first),
            uneven: size(of.uneven),
            worst: finite(worst),
        }
    }
}
