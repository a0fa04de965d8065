//! The sentence that answers: which policy is best, how sure that is, and whether it may be said elsewhere. Analyses of
//! files, estimates and comparisons begin with it, in the same words.

use std::cmp::Ordering;

use serde::Serialize;

use crate::event::payload::environment::EnvironmentScope;
use crate::projection::looks::EarlierLook;
use crate::projection::looks::LookKind;
use crate::view::values::Ends;
use crate::view::values::bracket;

/// What follows a finding that may be claimed.
pub(super) const CLAIMED: &str = "This may be claimed.";
/// What follows where nothing may be claimed.
pub(super) const UNCLAIMED: &str = "Nothing of it may be claimed.";
/// What follows where nothing was recorded.
pub(super) const UNRECORDED: &str =
    "Nothing of this is on record, so nothing of it may be claimed.";

/// An answer about one environment names it first.
pub(super) fn within(scope: Option<&EnvironmentScope>, text: String) -> String {
    match scope {
        Some(scope) => format!("In {scope}: {text}"),
        None => text,
    }
}

/// A column, or a title, of rows of one environment.
pub(super) fn headed(scope: Option<&EnvironmentScope>, head: &str) -> String {
    match scope {
        Some(scope) => format!("{head} in {scope}"),
        None => head.to_owned(),
    }
}

/// What was asked, answered in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// What was found, and whether it may be claimed.
    pub text: String,
    /// Whether what the text says may be claimed, or a part of it that the text names.
    pub may_be_claimed: bool,
}

/// Which policy is best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BestPolicy {
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
    /// The policies that may be the best, in the order that was given: one where it is told apart from each other one;
    /// empty where that cannot be said.
    pub best: Vec<String>,
    /// The policies whose own values may be claimed, in the order that was given: none where nothing is on record.
    pub claimable: Vec<String>,
    /// Whether an order of some of them is claimed, or would be once it is on record: ranks are shown only then.
    #[serde(skip)]
    pub is_ordered: bool,
}

/// Whether the value of a policy may be claimed, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Its own labels or a passed audit stand behind it.
    Claimable,
    /// Labels of other policies calibrate it, and no audit says that this transfers.
    Unchecked,
    /// An audit could not say whether it transfers.
    Inconclusive,
    /// An audit says that it does not transfer.
    Failed,
    /// Too many of its scores lie where there are no labels.
    Withheld,
    /// Labels of its own were drawn by stratum, and nothing weights them.
    Stratified,
    /// Labels of its own were drawn by stratum, and some stratum has too few of them.
    Sparse,
    /// An environment of its rows failed a test.
    Environment,
    /// There are too few labels for a calibrator.
    Uncalibrated,
    /// It rests on entries of a compromised key.
    Void,
}

/// Whether an order of policies may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStanding {
    /// The differences are what was asked for, and none was seen before.
    Asked,
    /// It was seen before, otherwise or of other rows.
    Exploratory(EarlierLook),
    /// A plan compares from more labels on than there are.
    Awaited {
        /// Where the plan stands.
        since: u64,
        /// Labels from which it compares.
        wanted: u64,
        /// Labels that there are.
        labels: u64,
    },
    /// Values were asked for: their differences are on no record.
    Unrecorded,
}

impl Standing {
    /// Why a value may not be claimed, after the name of the policy.
    fn reason(self, many: bool) -> &'static str {
        match (self, many) {
            (Self::Claimable | Self::Void, _) => "",
            (Self::Unchecked, false) => "was not checked (only labels of others calibrate it)",
            (Self::Unchecked, true) => "were not checked (only labels of others calibrate them)",
            (Self::Inconclusive, false) => {
                "has an inconclusive audit of transport (too few labels, or an obstacle that it names)"
            }
            (Self::Inconclusive, true) => {
                "have inconclusive audits of transport (too few labels, or an obstacle that they name)"
            }
            (Self::Failed, _) => "failed the audit of transport",
            (Self::Environment, false) => "is withheld by an environment in which the judge failed",
            (Self::Environment, true) => "are withheld by an environment in which the judge failed",
            (Self::Withheld, false) => "has its level withheld (too few labels near its scores)",
            (Self::Withheld, true) => {
                "have their level withheld (too few labels near their scores)"
            }
            (Self::Stratified, false) => {
                "has labels that were drawn by stratum, and they are not weighted"
            }
            (Self::Stratified, true) => {
                "have labels that were drawn by stratum, and they are not weighted"
            }
            (Self::Sparse, false) => "has too few labels in a stratum (5 prompts in each would do)",
            (Self::Sparse, true) => "have too few labels in a stratum (5 prompts in each would do)",
            (Self::Uncalibrated, false) => "is uncalibrated (too few labels)",
            (Self::Uncalibrated, true) => "are uncalibrated (too few labels)",
        }
    }
}

/// What is known of a policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its value, in label units.
    pub value: f64,
    /// The interval in force.
    pub interval: Option<Ends>,
    /// Whether it may be claimed.
    pub standing: Standing,
}

/// What an answer is made of.
pub struct Question<'a> {
    /// The policies that were asked about.
    pub policies: &'a [Policy],
    /// By positions: how the first stands to the second where they are told apart.
    pub order: &'a dyn Fn(usize, usize) -> Option<Ordering>,
    /// Level of intervals in per cent.
    pub percent: String,
    /// Digits after the point.
    pub digits: usize,
    /// Whether anything of this is on record, or will be.
    pub on_record: bool,
    /// What stands against every claim, a sentence each.
    pub obstacles: &'a [String],
    /// Values that are void, a sentence for each reason: an answer begins with them, and nothing is claimed beside them.
    pub void: &'a [String],
    /// What a reader must know of single values or of their order, a sentence each.
    pub remarks: &'a [String],
    /// Whether an order may be claimed.
    pub order_standing: OrderStanding,
}

impl Question<'_> {
    /// The answer.
    pub fn answer(&self) -> BestPolicy {
        let is_claimable = |at: &usize| self.policies[*at].standing == Standing::Claimable;
        let claimable: Vec<usize> = (0..self.policies.len()).filter(is_claimable).collect();
        let is_beaten = |at: usize| {
            let mut others = claimable.iter();
            others.any(|&other| (self.order)(at, other) == Some(Ordering::Less))
        };
        let best: Vec<usize> = claimable
            .iter()
            .copied()
            .filter(|&at| !is_beaten(at))
            .collect();
        let found = self.found(&claimable, &best);
        let may_be_claimed = self.on_record && self.is_open() && !best.is_empty();
        let mut parts = self.void.to_vec();
        parts.push(found);
        // Whether it may be claimed stands beside what was found; the reasons follow.
        parts.push(self.claim(&best, claimable.len()).to_owned());
        parts.extend(self.reasons());
        parts.extend(self.remarks.iter().cloned());
        parts.extend(self.obstacles.iter().cloned());
        if claimable.len() > 1 {
            parts.extend(exploratory(self.order_standing));
        }
        let name = |at: usize| self.policies[at].name.clone();
        let is_said = claimable.len() > 1 && self.order_standing == OrderStanding::Asked
            || self.policies.len() == 1;
        let is_open = self.is_open();
        let is_ordered =
            is_open && self.order_standing == OrderStanding::Asked && best.len() < claimable.len();
        BestPolicy {
            is_ordered,
            answer: Answer {
                text: parts.join(" "),
                may_be_claimed,
            },
            best: best
                .into_iter()
                .filter(|_| is_said && is_open)
                .map(name)
                .collect(),
            claimable: claimable
                .into_iter()
                .filter(|_| is_open && self.on_record)
                .map(name)
                .collect(),
        }
    }

    /// Whether nothing stands against every claim.
    fn is_open(&self) -> bool {
        self.obstacles.is_empty() && self.void.is_empty()
    }

    /// Which of the policies whose values may be claimed is best, in a sentence.
    fn found(&self, claimable: &[usize], best: &[usize]) -> String {
        match (self.policies, best) {
            ([only], _) => self.alone(only),
            (_, []) => "No policy can be called best.".to_owned(),
            (_, [only]) if claimable.len() == 1 => format!(
                "Which policy is best cannot be said: only the value of {} was checked, {}.",
                self.policies[*only].name,
                self.number(&self.policies[*only])
            ),
            (_, [first]) if self.order_standing != OrderStanding::Asked => format!(
                "{} has the highest value of {}: {}.",
                self.policies[*first].name,
                self.among(claimable.len()),
                self.number(&self.policies[*first]),
            ),
            (_, [first]) => format!(
                "{} is the best of {}: it is worth {}, and it is told apart from each of the others.",
                self.policies[*first].name,
                self.among(claimable.len()),
                self.number(&self.policies[*first]),
            ),
            (_, several) if several.len() == claimable.len() => format!(
                "No policy is told apart as best among {}.",
                names(several.iter().map(|at| self.policies[*at].name.as_str()))
            ),
            (_, several) => format!(
                "{} are not told apart as best of {}; {}.",
                names(several.iter().map(|at| self.policies[*at].name.as_str())),
                self.among(claimable.len()),
                if claimable.len() - several.len() == 1 {
                    "the other is told apart as worse than one of them"
                } else {
                    "each of the others is told apart as worse than another policy"
                }
            ),
        }
    }

    /// What may be claimed of what was found.
    fn claim(&self, best: &[usize], claimable: usize) -> &'static str {
        match (self.on_record, best.len(), claimable) {
            (false, ..) => UNRECORDED,
            _ if !self.is_open() => UNCLAIMED,
            (true, 0, _) => UNCLAIMED,
            (true, 1, 1) if self.policies.len() > 1 => "Only that value may be claimed.",
            (true, several, all)
                if all > several && self.order_standing == OrderStanding::Unrecorded =>
            {
                "The values may be claimed; an order of them may be once compare has recorded it."
            }
            (true, _, all)
                if all > 1
                    && matches!(
                        self.order_standing,
                        OrderStanding::Exploratory(_) | OrderStanding::Awaited { .. }
                    ) =>
            {
                "Their values may be claimed, and no order among them."
            }
            (true, several, all) if several == all && all > 1 => {
                "Their values may be claimed, and no order among them."
            }
            (true, ..) => CLAIMED,
        }
    }

    /// How many policies the best is among.
    fn among(&self, claimable: usize) -> String {
        let all = self.policies.len();
        if claimable == all {
            format!("{all} policies")
        } else {
            format!("the {claimable} policies whose values were checked")
        }
    }

    fn number(&self, of: &Policy) -> String {
        let digits = self.digits;
        let interval = of
            .interval
            .map_or("without an interval".to_owned(), |ends| {
                format!("{} % interval {}", self.percent, bracket(ends, digits))
            });
        format!("{:.digits$} ({interval})", of.value)
    }

    fn alone(&self, of: &Policy) -> String {
        if of.standing == Standing::Claimable {
            return format!("{} is worth {}.", of.name, self.number(of));
        }
        format!("{} has no value that was checked.", of.name)
    }

    /// Why values may not be claimed, by reason.
    fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<Standing> = self.policies.iter().map(|of| of.standing).collect();
        reasons.sort();
        reasons.dedup();
        let reasons = reasons
            .into_iter()
            .filter(|standing| !matches!(standing, Standing::Claimable | Standing::Void));
        let sentences = reasons.map(|standing| {
            let of = self.policies.iter().filter(|of| of.standing == standing);
            let of: Vec<&str> = of.map(|of| of.name.as_str()).collect();
            let reason = standing.reason(of.len() > 1);
            format!("{} {reason}.", names(of.into_iter()))
        });
        sentences.collect()
    }
}

/// Why an order is exploratory: one reason, also where a plan gives several.
fn exploratory(order: OrderStanding) -> Option<String> {
    match order {
        OrderStanding::Exploratory(look) => Some(seen_before(look)),
        OrderStanding::Awaited {
            since,
            wanted,
            labels,
        } => Some(format!(
            "The plan at seq {since} names an order from {wanted} labels on, and there are {labels}: any other, and any before that, is exploratory."
        )),
        OrderStanding::Asked | OrderStanding::Unrecorded => None,
    }
}

/// An order that was seen before.
fn seen_before(look: EarlierLook) -> String {
    let seq = look.seq;
    let what = match look.kind {
        LookKind::Planned => {
            return format!(
                "The plan at seq {seq} names another order, or more labels, so an order is exploratory now."
            );
        }
        LookKind::Differences => "Other differences were recorded before",
        LookKind::Elsewhere => "The same rows were compared or valued in another experiment before",
        LookKind::Values => "Other values were recorded before",
    };
    format!("{what}, at seq {seq}, so an order is exploratory now.")
}

/// A failed audit that new labels answered, and that no audit passed since.
pub fn answered(policy: &str, seq: u64, labels: u64) -> String {
    let labels = counted(labels);
    format!(
        "An audit of {policy} failed at seq {seq}; it was calibrated anew on {labels} of it, not audited since."
    )
}

fn counted(labels: u64) -> String {
    if labels == 1 {
        "1 new label".to_owned()
    } else {
        format!("{labels} new labels")
    }
}

/// A level that a failed audit withholds, until so many new labels answer it.
pub fn withheld(policy: &str, seq: u64, wanted: u64) -> String {
    format!(
        "{policy}: calibration does not transfer (seq {seq}); no level until it is calibrated on {}; they change every value, so an order \
         that was seen before is exploratory after them, unless a plan names it",
        new_labels(wanted)
    )
}

/// How many new labels answer a failed audit, and how they come in: drawn by a design of their own.
pub fn new_labels(wanted: u64) -> String {
    format!(
        "{} of it (clover label design new NAME --purpose calibrate --probability P, then clover import labels FILE \
         --design NAME)",
        counted(wanted)
    )
}

/// `a, b and c`; more than five are counted.
pub(super) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    match all.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] if all.len() <= 5 => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} others", all[..4].join(", "), all.len() - 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(of: &[(&str, f64, Standing)]) -> Vec<Policy> {
        let of = of.iter().map(|(name, value, standing)| Policy {
            name: (*name).to_owned(),
            value: *value,
            interval: Some(Ends([value - 0.1, value + 0.1])),
            standing: *standing,
        });
        of.collect()
    }

    /// The answer where policies are told apart that differ by more than `margin`.
    fn answer(of: &[(&str, f64, Standing)], margin: f64) -> BestPolicy {
        let policies = policies(of);
        let order = |a: usize, b: usize| {
            let by = policies[a].value - policies[b].value;
            (by.abs() > margin).then(|| by.total_cmp(&0.0))
        };
        Question {
            policies: &policies,
            order: &order,
            percent: "95".to_owned(),
            digits: 2,
            on_record: true,
            obstacles: &[],
            remarks: &[],
            void: &[],
            order_standing: OrderStanding::Asked,
        }
        .answer()
    }

    use Standing::Claimable;
    use Standing::Failed;
    use Standing::Unchecked;

    #[test]
    fn the_best_is_told_apart_from_each_other_one() {
        let of = [
            ("a", 0.5, Claimable),
            ("b", 0.7, Claimable),
            ("c", 0.3, Claimable),
        ];
        let found = answer(&of, 0.15);
        assert_eq!(
            (found.best, found.answer.may_be_claimed),
            (vec!["b".to_owned()], true)
        );
        assert_eq!(
            found.answer.text,
            "b is the best of 3 policies: it is worth 0.70 (95 % interval [0.60, 0.80]), and it is told apart from each \
             of the others. This may be claimed."
        );
        let found = answer(&of, 0.25);
        assert_eq!(found.best, ["a", "b"]);
        assert!(
            found.answer.text.starts_with(
                "a and b are not told apart as best of 3 policies; the other is told apart as worse than one of them."
            ),
            "{}",
            found.answer.text
        );
        let found = answer(&of, 1.0);
        assert_eq!(found.best.len(), 3);
        assert!(
            found.answer.text
                == "No policy is told apart as best among a, b and c. Their values may be claimed, and no order among them.",
            "{}",
            found.answer.text
        );
    }

    /// Where a judge contradicts itself, numbers stand as they are and nothing of them may be claimed.
    #[test]
    fn nothing_is_claimed_against_an_obstacle() {
        let policies = policies(&[("a", 0.5, Claimable), ("b", 0.7, Claimable)]);
        let found = Question {
            policies: &policies,
            order: &|a, b| Some(policies[a].value.total_cmp(&policies[b].value)),
            percent: "95".to_owned(),
            digits: 2,
            on_record: true,
            obstacles: &["The judge contradicted itself.".to_owned()],
            remarks: &[],
            void: &[],
            order_standing: OrderStanding::Asked,
        }
        .answer();
        assert!(!found.answer.may_be_claimed);
        assert!(found.best.is_empty() && found.claimable.is_empty());
        let end = "Nothing of it may be claimed. The judge contradicted itself.";
        assert!(found.answer.text.ends_with(end), "{}", found.answer.text);
    }

    /// An order that is on no record, or that others were recorded before, is not claimed; the values are.
    #[test]
    fn an_order_is_claimed_once_it_is_on_record_and_only_the_first() {
        let policies = policies(&[("a", 0.5, Claimable), ("b", 0.7, Claimable)]);
        for (standing, end) in [
            (
                OrderStanding::Unrecorded,
                "The values may be claimed; an order of them may be once compare has recorded it.",
            ),
            (
                OrderStanding::Exploratory(EarlierLook {
                    seq: 12,
                    kind: LookKind::Differences,
                }),
                "Their values may be claimed, and no order among them. Other differences were recorded before, at seq 12, so \
                 an order is exploratory now.",
            ),
        ] {
            let found = Question {
                policies: &policies,
                order: &|a, b| Some(policies[a].value.total_cmp(&policies[b].value)),
                percent: "95".to_owned(),
                digits: 2,
                on_record: true,
                obstacles: &[],
                remarks: &[],
                void: &[],
                order_standing: standing,
            }
            .answer();
            let text = found.answer.text;
            assert!(
                text.starts_with("b has the highest value of 2 policies: 0.70"),
                "{text}"
            );
            assert!(text.contains(end), "{text}");
            assert!(found.best.is_empty() && !found.is_ordered);
            assert_eq!(found.claimable, ["a", "b"]);
        }
    }

    /// A policy that nobody checked is never best, however high it lies, and stands in nobody's way.
    #[test]
    fn what_nobody_checked_is_not_the_best() {
        let of = [
            ("a", 0.5, Claimable),
            ("b", 0.9, Unchecked),
            ("c", 0.3, Claimable),
            ("d", 0.1, Failed),
        ];
        let found = answer(&of, 0.1);
        assert_eq!(found.best, ["a"]);
        assert_eq!(
            found.answer.text,
            "a is the best of the 2 policies whose values were checked: it is worth 0.50 (95 % interval [0.40, 0.60]), \
             and it is told apart from each of the others. This may be claimed. b was not checked (only labels of others \
             calibrate it). d failed the audit of transport."
        );
        let found = answer(&[("a", 0.5, Claimable), ("b", 0.9, Unchecked)], 0.1);
        // One value was checked: none is the best, and that value may be claimed.
        assert_eq!(
            (found.best.len(), found.claimable.as_slice()),
            (0, &["a".to_owned()][..])
        );
        assert!(found.answer.may_be_claimed);
        assert!(found.answer.text.starts_with(
            "Which policy is best cannot be said: only the value of a was checked, 0.50 (95 % interval [0.40, 0.60])."
        ));
        let claim = "[0.40, 0.60]). Only that value may be claimed. b was not checked";
        assert!(found.answer.text.contains(claim), "{}", found.answer.text);
        let found = answer(&[("a", 0.5, Unchecked), ("b", 0.9, Unchecked)], 0.1);
        assert_eq!((found.best.len(), found.answer.may_be_claimed), (0, false));
        assert_eq!(
            found.answer.text,
            "No policy can be called best. Nothing of it may be claimed. a and b were not checked (only labels of others \
             calibrate them)."
        );
    }
}
