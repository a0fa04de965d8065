//! Scores and open labels as `cje-eval` reads them: `EXPERIMENT/JUDGE/POLICY_responses.jsonl`, a draw a line.
//!
//! A character of a name that could lead elsewhere is `%` and two hexadecimal digits in the name of its file.
//! `oracle_label` is the draw's open label, of several raters their mean. Sealed labels are not in it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::Path;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::label::draw_of_row;
use clover_ground::ambient;
use clover_num::Count;
use clover_num::Micro;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedEvent;
use super::create;
use crate::ExportError;
use crate::Progress;
use crate::file_name;

/// A draw of a policy in an experiment.
type DrawKey = (String, PolicyId, ItemId, Count);

/// Writes a file per experiment, judge and policy; answers with the number of draws.
pub(super) fn write(
    extract: &Extract<'_>,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let mut labels: BTreeMap<DrawKey, Vec<Micro>> = BTreeMap::new();
    extract.each(&mut |_, _| {}, |said| {
        if let Some((key, value)) = label(said) {
            labels.entry(key).or_default().push(value);
        }
        Ok(())
    })?;
    let line = |said: &RecordedEvent, score: &ScoreRecorded| {
        let key = (
            experiment(said),
            score.policy.clone(),
            score.item.clone(),
            score.draw,
        );
        let mut line = json!({
            "prompt_id": score.item.as_str(),
            "draw_idx": score.draw.value(),
            "judge_score": number(score.score_micro),
            "metadata": { "seq": said.seq },
        });
        if let Some(found) = labels.get(&key) {
            line["oracle_label"] = mean(found);
            line["metadata"]["raters"] = json!(found.len());
        }
        line
    };
    by_policy(extract, folder, "_responses.jsonl", progress, line)
}

/// Writes a line per recorded score into `EXPERIMENT/JUDGE/POLICY` with `ending`; answers with the number of lines.
pub(super) fn by_policy(
    extract: &Extract<'_>,
    folder: &Path,
    ending: &str,
    progress: Progress<'_>,
    line: impl Fn(&RecordedEvent, &ScoreRecorded) -> Value,
) -> Result<u64, ExportError> {
    let mut files: BTreeMap<String, Box<dyn Write + Send>> = BTreeMap::new();
    let mut count = 0;
    extract.each(progress, |said| {
        let Some(score) = said.event.said::<ScoreRecorded>() else {
            return Ok(());
        };
        let parent = folder.join(file_name::encode(&experiment(said)));
        let parent = parent.join(file_name::encode(score.judge.as_str()));
        let path = format!("{}/{}/{}", experiment(said), score.judge, score.policy);
        let out = match files.entry(path) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                ambient::create_dirs(&parent)?;
                let name = file_name::encode(score.policy.as_str());
                new.insert(create(&parent, &format!("{name}{ending}"))?)
            }
        };
        out.write_all(format!("{}\n", line(said, score)).as_bytes())?;
        count += 1;
        Ok(())
    })?;
    for out in files.values_mut() {
        out.flush()?;
    }
    Ok(count)
}

/// The experiment of an event.
pub(super) fn experiment(said: &RecordedEvent) -> String {
    said.event
        .experiment()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The draw that an event labels, and its value.
fn label(said: &RecordedEvent) -> Option<(DrawKey, Micro)> {
    if let Some(label) = said.event.said::<LabelRecorded>() {
        let key = (
            experiment(said),
            label.policy.clone(),
            label.item.clone(),
            label.draw,
        );
        return Some((key, label.value_micro));
    }
    let label = said.event.said::<LabelRevealed>()?;
    let (policy, item, draw) = draw_of_row(&label.row)?;
    Some(((experiment(said), policy, item, draw), label.value_micro))
}

/// An amount as a JSON number, exact.
pub(super) fn number(amount: Micro) -> Value {
    serde_json::from_str(&amount.to_string()).unwrap_or(Value::Null)
}

/// Mean of labels, in label units, to the sixth decimal, half to even.
fn mean(labels: &[Micro]) -> Value {
    let sum: i64 = labels.iter().map(|label| label.value()).sum();
    let count = i64::try_from(labels.len()).unwrap_or(i64::MAX).max(1);
    let (whole, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    let is_up = 2 * rest > count || 2 * rest == count && whole.rem_euclid(2) == 1;
    Micro::new(whole + i64::from(is_up)).map_or(Value::Null, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_half_to_even() {
        let of = |values: &[i64]| {
            let labels: Vec<Micro> = values.iter().filter_map(|of| Micro::new(*of)).collect();
            mean(&labels)
        };
        assert_eq!(of(&[100_000, 200_000, 200_000]), json!(0.166_667));
        assert_eq!(of(&[1, 2]), json!(0.000_002));
        assert_eq!(of(&[2, 3]), json!(0.000_002));
        assert_eq!(of(&[-1, -2]), json!(-0.000_002));
    }
}
