//! How a recalibration is shown: what fresh labels say of a calibrator, and what moves.

use serde::Serialize;
use serde_json::Value;

use crate::event::payload::Verdict;
use crate::event::payload::deployment::RecalibrationCompleted;
use crate::ground::shell;
use crate::num::Finite;
use crate::report::shown;
use crate::session::deploy::recalibration::Recalibration;
use crate::view::View;
use crate::view::appended;

/// What a recalibration says beside where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecalibrationFacts {
    /// What was found, as it is recorded.
    pub recalibration: RecalibrationCompleted,
}

/// A dry run of a recalibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecalibrationRehearsal {
    /// The canonical unsigned body of each event, as text.
    pub bodies: Vec<String>,
    /// What was found, as it would be recorded.
    pub recalibration: RecalibrationCompleted,
}

/// A recalibration with what was asked.
#[derive(Clone, Debug)]
pub struct RecalibrationPage<'a> {
    prompt: &'a str,
    judge: &'a str,
    said: RecalibrationCompleted,
    verdict: Verdict,
}

impl<'a> RecalibrationPage<'a> {
    /// What was found of a version under a judge, both as they were named.
    pub fn of(prompt: &'a str, judge: &'a str, found: &Recalibration) -> Self {
        Self {
            prompt,
            judge,
            said: found.said.clone(),
            verdict: found.verdict,
        }
    }

    /// What was found, for an error.
    pub fn data(&self) -> Value {
        View::of(&self.said).facts().clone()
    }

    /// What was found, line by line.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let mut view = View::of(&self.said);
        self.blocks(&mut view);
        let text = view.text();
        let lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
        lines.into_iter()
    }

    /// The view, from that of its append.
    pub fn recorded(self, recorded: View) -> View {
        let recalibration = self.said.clone();
        let view = appended::and(recorded, &RecalibrationFacts { recalibration });
        self.finished(view)
    }

    /// The view of a dry run, from that of its body.
    pub fn rehearsed(self, bodies: View) -> View {
        let all = bodies.facts()["bodies"].as_array().into_iter().flatten();
        let facts = RecalibrationRehearsal {
            bodies: all
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect(),
            recalibration: self.said.clone(),
        };
        let view = bodies.with_facts(&facts);
        self.finished(view)
    }

    fn finished(&self, mut view: View) -> View {
        self.blocks(&mut view);
        view.line(format!("{:<18}{}", "transport", shown::word(self.verdict)));
        let event = view.events.first().cloned().unwrap_or_default();
        let calibrator = self.said.calibrator.to_hex();
        view.with_next(format!(
            "clover deploy activate {} --judge {} --calibrator {calibrator} --recalibration {event}",
            shell::word(&self.prompt),
            shell::word(&self.judge),
            calibrator = shell::word(&calibrator),
            event = shell::word(&event)
        ))
    }

    fn blocks(&self, view: &mut View) {
        let said = &self.said;
        view.pairs([
            ("fresh labels", said.labels.to_string()),
            ("calibrator", said.calibrator.to_hex()),
        ]);
        let computed = said.computed.iter();
        for of in computed.flat_map(|of| &of.transport.environments) {
            view.line(format!(
                "{:<18}mean residual {} on {} labels, detectable {}",
                format!("{} {}", of.family, of.environment),
                number(of.mean),
                of.rows,
                number(of.detectable_bias),
            ));
        }
        for of in &said.anchors.anchors {
            let moved = format!("{:.4} on {} rows", of.drift.value(), of.rows);
            view.line(format!("{:<18}moved {moved}", of.policy.as_str()));
        }
    }
}

fn number(value: Option<Finite>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:+.4}", value.value()))
}
