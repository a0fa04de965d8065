//! The wording of breaches of what is exact only over the whole history, the same at append and in `verify`.

use clover_ground::digest::Digest;

use crate::codes::Code;
use crate::fold::Breach;
use crate::rule_names::RuleName;

/// The breach of a value that is read, the same at append and in `verify`. `found` is the entry and what it says.
pub(crate) fn read_breach(
    rule: RuleName,
    value: i64,
    after: u64,
    found: Option<(u64, Option<i64>)>,
) -> Option<Breach> {
    let found = match found {
        Some((seq, Some(said))) if said == value && seq >= after => return None,
        Some((seq, Some(said))) => format!("{said} at seq {seq}"),
        Some((seq, None)) => format!("no value at seq {seq}"),
        None => "none".to_owned(),
    };
    let expected = format!("a recorded value of {value} millionths at seq {after} or later");
    Some(Breach::new(rule, expected, found))
}

/// The breach of a value that says otherwise than an earlier one, the same at append and in `verify`. `found` is the earlier
/// entry and what it says.
pub(crate) fn agree_breach(
    rule: RuleName,
    value: i64,
    found: Option<(u64, i64)>,
) -> Option<Breach> {
    let (seq, said) = found.filter(|(_, said)| *said != value)?;
    let expected = match rule {
        RuleName::ScoreOnce => format!(
            "{said} millionths, as the same rater labelled the same draw under another design"
        ),
        _ => format!("{said} millionths, as was said before"),
    };
    Some(Breach::new(
        rule,
        expected,
        format!("{value}, and seq {seq} stands against it"),
    ))
}

/// The wording of an unmet need, the same at append and in `verify`.
pub(crate) fn need_breach(
    rule: RuleName,
    digest: &Digest,
    before: u64,
    giver: Option<u64>,
) -> Breach {
    let expected = match rule {
        RuleName::Refs => format!("event {digest} at a seq below {before}"),
        RuleName::Seal => {
            format!(
                "a label.sealed of that row to match at a seq below {before}, before its reveal and what pays for it, and before its reveal a seal.accepted ({digest})"
            )
        }
        RuleName::Charge if before == 0 => {
            "a budget.charged to an account of peeks, whose unit is peek".to_owned()
        }
        RuleName::Charge => {
            format!("a budget.charged at a seq below {before}, under the checkpoint that was seen")
        }
        RuleName::Ask => "an earlier call.recorded of this judge about these texts, under this key".to_owned(),
        RuleName::Source => {
            "an earlier call.recorded of this judge about these texts that came to this, and the text with which the row was missed before".to_owned()
        }
        RuleName::Seen => format!("this tree's root at that size ({digest})"),
        RuleName::Judge => "an earlier judge.registered of that judge".to_owned(),
        RuleName::ScoreOnce => "an earlier score.recorded of that key".to_owned(),
        RuleName::Split => "a cluster that an earlier splits.listed put into confirm".to_owned(),
        RuleName::Calibrator => "a calibrator of this judge, fitted before".to_owned(),
        RuleName::Drift => "an earlier anchor_set.registered of that set".to_owned(),
        RuleName::Order => {
            "a unit that an earlier units.listed of this confirm root named".to_owned()
        }
        RuleName::Exposure => Code::Order.of("the unit at this place of the order drawn"),
        RuleName::Observation => Code::Order.of(
            "the unit at this place of the order drawn, with its stratum if it was listed with one",
        ),
        _ => format!("{digest} at a seq below {before}"),
    };
    let found = giver.map_or("none".to_owned(), |seq| format!("it at seq {seq}"));
    Breach::new(rule, expected, found)
}

/// The wording of a number that the named event did not record, the same at append and in `verify`.
pub(crate) fn says_breach(rule: RuleName, event: u64) -> Breach {
    let found = format!("seq {event}, which recorded another number or none");
    Breach::new(rule, "the recorded number of the event it names", found)
}

/// The wording of what must not have been there, the same at append and in `verify`.
pub(crate) fn forbid_breach(rule: RuleName, earlier: u64) -> Breach {
    let expected = match rule {
        RuleName::Ask => {
            "texts that this judge was not asked about before: one key asks about them"
        }
        RuleName::Purpose => {
            "a draw labelled for one purpose: calibrate, audit by one design, or sealed in one design, never two"
        }
        RuleName::Split => {
            "a cluster in one part of a split, in confirm once, and no open label of a confirm cluster"
        }
        RuleName::Transport => {
            "a policy that the probes of this design have not audited yet: register a design with new labels"
        }
        RuleName::Order => &Code::AdaptiveReuse
            .of("units whose order was not drawn before the manifest came into force"),
        RuleName::Sealing => {
            "a confirm label that was sealed after the newest split, and no score of a confirm row after its unsealing"
        }
        RuleName::Exposure => {
            &Code::Exposure.of("a unit that is exposed first: a gate's confirm set lists it")
        }
        RuleName::Observation => "no recorded value for a draw that is said to be missing",
        _ => "nothing of the kind before",
    };
    Breach::new(rule, expected, format!("seq {earlier} stands against it"))
}
