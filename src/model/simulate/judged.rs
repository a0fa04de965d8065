//! A double that answers as one of the simulated judges of trials of prompts, where that is the model which is asked for.

use clover_workflow::ask::fence::FencedTexts;
use clover_workflow::ask::judged::told_of;
use clover_workflow::judge::simulated;
use clover_workflow::judge::simulated::SimulatedJudge;
use serde_json::Value;

/// Every text of a request.
fn texts(body: &Value) -> Vec<&str> {
    let (mut texts, mut left) = (Vec::new(), vec![body]);
    while let Some(of) = left.pop() {
        match of {
            Value::Array(all) => left.extend(all),
            Value::Object(all) => left.extend(all.values()),
            Value::String(text) => texts.push(text.as_str()),
            _ => {}
        }
    }
    texts
}

/// The place of the level, among `levels`, that a simulated judge says; `None` for any other model.
pub(super) fn level(model: &str, body: &Value, levels: usize, draw: u64) -> Option<usize> {
    let is_null = model == simulated::NULL_MODEL;
    if !is_null && model != simulated::MODEL {
        return None;
    }
    let texts = texts(body);
    let told = texts.iter().find_map(|text| told_of(text))?;
    let row = texts.iter().find_map(|text| FencedTexts::read(text))?;
    let score = SimulatedJudge::told(told, is_null).score(&row.prompt, &row.response, draw);
    let share = usize::try_from(score.value()).ok()?;
    let last = levels.checked_sub(1)?;
    // To the nearest level, half up.
    Some((2 * share * last + 1_000_000) / 2_000_000)
}
