//! Labels of an iteration as shares of the scale on record: as estimates read them, and from 0 to 1.

use clover_event::payload::estimated::ScaleEnds;
use clover_ledger::rulebooks::Question;
use clover_projection::iterations::rows::RowLog;
use clover_stats::direct::Scale;

use crate::estimate::terms;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::missing;

/// Labels as shares of the scale that was declared before the iteration opened; without one they are from 0 to 1.
pub(super) fn of(
    log: &RowLog,
    labels: Vec<Option<f64>>,
    name: impl Fn(usize) -> String,
) -> Result<Vec<Option<f64>>, IterationRowsError> {
    let declared = log.label_scale();
    let scale = declared.and_then(|(ends, _)| terms::scale(ends));
    let scale = scale.unwrap_or(Scale::UNIT);
    let mut shares = Vec::with_capacity(labels.len());
    for (at, label) in labels.into_iter().enumerate() {
        let share = label.map(|label| {
            let share = scale.to_unit(label);
            share.ok_or_else(|| off(log, scale, &name(at), label))
        });
        shares.push(share.transpose()?);
    }
    Ok(shares)
}

/// A label that lies off the scale on which it is read.
fn off(log: &RowLog, scale: Scale, row: &str, label: f64) -> IterationRowsError {
    let (low, high) = scale.ends();
    let what = format!("label of {row}: expected {low} to {high}, found {label}");
    if log.label_scale().is_some() {
        let what = format!("{what}: it is off the scale of labels on record");
        return missing(what, "clover log --kind label.recorded");
    }
    match log.scale {
        None => missing(
            format!("{what}: no scale of labels is on record"),
            "clover import labels FILE --scale LOW:HIGH",
        ),
        Some(_) if !log.asks_label_shares => missing(
            format!(
                "{what}: rulebooks before {} read no scale",
                Question::LabelShares.since()
            ),
            "clover rulebook adopt",
        ),
        Some((_, seq)) => missing(
            format!(
                "{what}: the scale of labels was declared after the iteration opened, at seq {seq}"
            ),
            "clover iterate close --help",
        ),
    }
}

/// What a reader should know of labels that are shares.
pub fn in_words(ends: ScaleEnds) -> Option<String> {
    let scale = terms::scale(ends)?;
    let (low, high) = scale.ends();
    Some(format!(
        "labels go from {low} to {high} and are read as shares of that scale: 0.01 is {} of a label",
        scale.difference(0.01)
    ))
}

#[cfg(test)]
mod tests {
    use clover_num::Micro;

    use super::*;

    fn one_to_five() -> ScaleEnds {
        let micro = |value: i64| Micro::new(value * 1_000_000).unwrap();
        ScaleEnds {
            high_micro: micro(5),
            low_micro: micro(1),
        }
    }

    fn log(scale: Option<(ScaleEnds, u64)>, asks: bool) -> RowLog {
        let mut log = RowLog::default();
        (log.asks_label_shares, log.scale) = (asks, scale);
        log
    }

    #[test]
    fn labels_are_shares_of_the_scale_on_record() {
        let log = log(Some((one_to_five(), 7)), true);
        let labels = vec![Some(1.0), None, Some(3.0), Some(5.0), Some(4.5)];
        let shares = of(&log, labels, |_| String::new()).unwrap();
        let expected = [Some(0.0), None, Some(0.5), Some(1.0), Some(0.875)];
        assert_eq!(shares, expected);
        let words = in_words(one_to_five()).unwrap();
        assert!(words.contains("from 1 to 5"), "{words}");
        assert!(words.ends_with("0.01 is 0.04 of a label"), "{words}");
    }

    #[test]
    fn a_label_off_its_scale_is_refused_with_what_to_do() {
        let declared = Some((one_to_five(), 7));
        for (log, label, words, fix) in [
            (log(None, true), 4.0, "no scale", "--scale LOW:HIGH"),
            (log(declared, false), 4.0, "rulebooks before", "adopt"),
            (log(declared, true), 0.5, "off the scale", "label.recorded"),
        ] {
            match of(&log, vec![Some(label)], |_| "base/q1/0".to_owned()) {
                Err(IterationRowsError::Missing { what, next }) => {
                    assert!(what.starts_with("label of base/q1/0: expected"), "{what}");
                    assert!(what.contains(words), "{what}");
                    assert!(next.contains(fix), "{next}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
