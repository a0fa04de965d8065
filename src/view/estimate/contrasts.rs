//! How differences of a ledger's policies are shown: pair by pair, and who is told apart from whom.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::payload::audit::TransportStanding;
use crate::event::payload::estimate::ComparedPrompts;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::Reading;
use crate::num::Finite;
use crate::projection::looks::LookKind;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::inference::Interval;
use crate::stats::multiplicity::MultiplicityCorrection;
use crate::stats::ranking::RankInterval;
use crate::view::View;
use crate::view::answer;
use crate::view::answer::BestPolicy;
use crate::view::estimate::AuditFacts;
use crate::view::estimate::digits;
use crate::view::estimate::doubts::Asked;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::estimate::ends;
use crate::view::estimate::failed_environment;
use crate::view::estimate::ordered::ranks;
use crate::view::values;
use crate::view::values::Pair;
use crate::view::values::PairNumbers;
use crate::view::values::bracket;
use crate::view::values::plotted;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::terms;

/// Differences of policies by the rows of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContrastsFacts {
    /// Which policy is best, and whether that may be claimed.
    pub answer: BestPolicy,
    /// Every pair of the policies that were named.
    pub differences: Vec<ContrastFacts>,
    /// Their places.
    pub ranking: Vec<Ranked>,
    /// How the family is corrected: BH, BY, Holm or Bonferroni.
    pub correction: &'static str,
    /// One less the level of intervals.
    pub alpha: f64,
    /// Everything beside the rows that the differences depend on.
    pub terms: EstimateTerms,
}

/// A difference, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContrastFacts {
    /// The difference.
    #[serde(flatten)]
    pub pair: Pair,
    /// Whether the two are told apart.
    pub told_apart: bool,
    /// The failed audit that stands against either policy.
    pub transport: Option<AuditFacts>,
    /// What may be claimed of either level: of the first, then of the second.
    pub claims: [Option<Claim>; 2],
    /// Which prompts both policies have scores of, and what those could do that lack.
    pub prompts: Option<ComparedPrompts>,
}

/// The place of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ranked {
    /// The policy.
    pub policy: String,
    /// Best and worst place that it may take, from 1; `null` where it has no rank.
    pub rank: Option<[u64; 2]>,
}

/// Differences among some policies.
#[derive(Clone, Copy, Debug)]
pub struct Contrasts<'a> {
    /// What was computed.
    pub found: &'a Found,
    /// Positions of the policies.
    pub places: &'a [usize],
    /// Their differences.
    pub pairs: &'a [ContrastRecorded],
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// What the record says against a claim.
    pub basis: &'a ClaimBasis,
}

/// Whether the level of either policy of a difference is withheld: by its coverage, or by a failed audit.
pub(super) fn is_withheld(of: &ContrastRecorded) -> bool {
    [of.first_claim, of.second_claim].contains(&Some(Claim::Refused)) || failed_in(of).is_some()
}

/// The interval that a difference is read by.
pub(super) fn decisive(of: &ContrastRecorded) -> IntervalEnds {
    of.conservative.unwrap_or(of.interval)
}

/// The failed audit that stands against either policy of a difference.
fn failed_in(of: &ContrastRecorded) -> Option<TransportStanding> {
    of.first_transport.or(of.second_transport)
}

/// Whether an interval reaches beyond another.
fn is_wider(wide: &IntervalEnds, than: &IntervalEnds) -> bool {
    wide.low < than.low || wide.high > than.high
}

/// A difference for programs: its numbers stand apart where a level is withheld.
fn pair_facts(of: &ContrastRecorded) -> Pair {
    let numbers = PairNumbers {
        difference: of.difference.value(),
        se: of.se.value(),
        df: of.df.map(Finite::value),
        interval: ends(of.interval),
        p: of.p.value(),
        p_adjusted: of.p_adjusted.value(),
        conservative_interval: of.conservative.map(ends),
    };
    let (numbers, withheld) = if is_withheld(of) {
        (None, Some(numbers))
    } else {
        (Some(numbers), None)
    };
    Pair {
        first: of.first.to_string(),
        second: of.second.to_string(),
        numbers,
        withheld,
        basis: of.basis.as_str().to_owned(),
        reading: reading(of),
    }
}

fn pair(of: &ContrastRecorded) -> String {
    format!("{} - {}", of.first, of.second)
}

pub(super) fn reading(of: &ContrastRecorded) -> &'static str {
    match of.reading {
        _ if failed_in(of).is_some() => "transport FAIL",
        None | Some(Reading::Unchecked) => "unchecked",
        Some(Reading::ToldApart) => "told apart",
        Some(Reading::NotToldApart) => "not told apart",
    }
}

/// The letter of a row and column: A to Z, then A1 to Z1, and so on. A number would read as a rank.
fn column_key(at: usize) -> String {
    let letter = ('A'..='Z').nth(at % 26).unwrap_or('A');
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

impl Contrasts<'_> {
    /// How the pairs are corrected as one family.
    fn correction(&self) -> MultiplicityCorrection {
        let first = self.pairs.first();
        terms::correction(first.and_then(|of| of.correction))
    }

    /// Findings that must not be missed.
    pub fn warnings(&self) -> Vec<String> {
        let resampled = self.pairs.iter().filter(|of| of.df.is_none());
        let missed = resampled.filter_map(|of| {
            let interval = Interval {
                low: of.interval.low.value(),
                high: of.interval.high.value(),
            };
            values::missed(&pair(of), of.difference.value(), interval)
        });
        missed.chain(self.awaited()).chain(self.wider()).collect()
    }

    fn asked<'s>(&'s self, places: &'s [usize], pairs: &'s [ContrastRecorded]) -> Asked<'s> {
        Asked {
            found: self.found,
            experiment: self.experiment,
            basis: self.basis,
            places,
            contrasts: pairs,
        }
    }

    fn ranks(&self, answer: &BestPolicy) -> Vec<Option<RankInterval>> {
        ranks(&self.asked(self.places, self.pairs), answer)
    }

    /// Where a plan asks for more labels than there are: what is compared until then spends nothing of its order. Said once: the
    /// answer says it where that is what makes the order exploratory.
    fn awaited(&self) -> Option<String> {
        let earlier = self.asked(self.places, self.pairs).earlier();
        if earlier.is_some_and(|look| look.kind == LookKind::Planned) {
            return None;
        }
        let (since, wanted, labels) = self.basis.scope.awaited()?;
        Some(format!(
            "the plan at seq {since} compares from {wanted} labels on, and there are {labels}: until then an order is exploratory"
        ))
    }

    /// Where values of more policies were seen: all of them may still be compared as one family.
    fn wider(&self) -> Option<String> {
        self.asked(self.places, self.pairs).earlier()?;
        let all: Vec<usize> = (0..self.found.analysis.policies.len()).collect();
        let correction = self.pairs.first().and_then(|of| of.correction);
        let pairs = self
            .found
            .contrasts(self.experiment, &all, correction, Form::NEWEST);
        let pairs = pairs.ok()?;
        let is_open = self.asked(&all, &pairs).earlier().is_none();
        is_open.then(|| {
            "other policies were seen too, so this order is exploratory; that of all policies is not: \
             clover compare --all"
                .to_owned()
        })
    }

    /// The sentence that answers, and whether it may be claimed.
    pub fn answer(&self, on_record: bool) -> BestPolicy {
        self.facts(on_record).answer
    }

    /// The view, and where it stands on record.
    pub fn view(&self, recorded: Option<View>, unrecorded: &'static str) -> View {
        let facts = self.facts(recorded.is_some());
        let mut view = View::of(&facts);
        view.answer(facts.answer.answer.text.clone());
        self.table(&mut view);
        view.gap();
        plotted(&mut view, &self.plot());
        if self.places.len() > 2 {
            view.gap();
            self.matrix(&mut view, &facts.answer);
        }
        view.gap();
        for remark in self.remarks(&facts.answer) {
            view.sentence(remark);
        }
        values::on_record(view, &facts, recorded, unrecorded)
    }

    fn table(&self, view: &mut View) {
        let digits = digits(self.found);
        let head = [
            answer::headed(self.found.terms.environment.as_ref(), "difference"),
            "value".to_owned(),
            format!("{} % interval", values::percent(self.found.analysis.alpha)),
            "p".to_owned(),
            format!("p ({})", values::correction(self.correction())),
            String::new(),
        ];
        let rows = self.pairs.iter().map(|of| {
            // A difference gives a withheld level away, and so does its p.
            let [value, interval, p, adjusted] = if is_withheld(of) {
                ["withheld", "-", "-", "-"].map(str::to_owned)
            } else {
                [
                    format!("{:+.digits$}", of.difference.value()),
                    bracket(ends(decisive(of)), digits),
                    values::p(of.p.value()),
                    values::p(of.p_adjusted.value()),
                ]
            };
            vec![
                pair(of),
                value,
                interval,
                p,
                adjusted,
                reading(of).to_owned(),
            ]
        });
        view.table(&head, rows);
    }

    /// Who is told apart from whom: best first where an order is claimed, else as they were given, since a list by value would
    /// say one. Those without a rank come last.
    fn matrix(&self, view: &mut View, answer: &BestPolicy) {
        let places = self.ranks(answer);
        let mut order: Vec<(usize, Option<RankInterval>)> =
            self.places.iter().copied().zip(places).collect();
        let value = |policy: usize| self.found.analysis.policies[policy].estimate;
        if answer.is_ordered {
            order.sort_by(|(a, of_a), (b, of_b)| {
                let by_value = value(*b).total_cmp(&value(*a));
                of_a.is_none().cmp(&of_b.is_none()).then(by_value)
            });
        }
        let mut head = vec![String::new(), "wins against".to_owned(), "rank".to_owned()];
        head.extend((0..order.len()).map(column_key));
        let rows = order.iter().enumerate().map(|(at, (policy, place))| {
            let mut cells = vec![
                column_key(at),
                self.found.analysis.policies[*policy].name.clone(),
                values::rank(*place),
            ];
            cells.extend(
                order
                    .iter()
                    .map(|(other, _)| self.mark(*policy, *other).to_owned()),
            );
            cells
        });
        view.table(&head, rows);
    }

    fn mark(&self, policy: usize, other: usize) -> &'static str {
        let name = |at: usize| self.found.analysis.policies[at].name.as_str();
        let is = |of: &&ContrastRecorded, a: usize, b: usize| {
            of.first.as_str() == name(a) && of.second.as_str() == name(b)
        };
        let forward = self.pairs.iter().find(|of| is(of, policy, other));
        let back = self.pairs.iter().find(|of| is(of, other, policy));
        let sign = match (forward, back) {
            (Some(of), _) | (None, Some(of)) if failed_in(of).is_some() => return "!",
            (Some(of), _) | (None, Some(of)) if of.reading == Some(Reading::Unchecked) => {
                return "?";
            }
            (Some(of), _) if of.told_apart => of.difference.value(),
            (None, Some(of)) if of.told_apart => -of.difference.value(),
            (None, None) => return "",
            _ => return "·",
        };
        if sign > 0.0 { "+" } else { "-" }
    }

    /// How the pairs are corrected, and how far ranks hold together where there are any.
    fn family(&self, answer: &BestPolicy) -> Vec<String> {
        let mut remarks = vec![format!(
            "family  {} pairs; {} by p ({}), which {}",
            self.pairs.len(),
            if answer.is_ordered {
                "marks and ranks"
            } else {
                "marks"
            },
            values::correction(self.correction()),
            values::promise(self.correction()),
        )];
        if self.places.len() > 2 && answer.is_ordered {
            remarks.push(values::ranks_together(
                self.correction(),
                self.found.analysis.alpha,
            ));
        }
        remarks
    }

    fn remarks(&self, answer: &BestPolicy) -> Vec<String> {
        let mut remarks = self.family(answer);
        let names: Vec<&str> = self
            .places
            .iter()
            .map(|&policy| self.found.analysis.policies[policy].name.as_str())
            .collect();
        for (at, first) in names.iter().enumerate() {
            for second in &names[at + 1..] {
                let is = |of: &ContrastRecorded| {
                    let of = [of.first.as_str(), of.second.as_str()];
                    of == [*first, *second] || of == [*second, *first]
                };
                if !self.pairs.iter().any(is) {
                    remarks.push(format!(
                        "{first} and {second}  nothing varies between them: no interval and no test, and the family does \
                         not count them"
                    ));
                }
            }
        }
        for &policy in self.places {
            if let Some(of) = self.found.failed(self.experiment, policy) {
                let name = &self.found.analysis.policies[policy].name;
                if let Some(scope) = failed_environment((self.found, self.experiment), of.seq) {
                    remarks.push(format!(
                        "{name}  calibration fails in {scope} (seq {}), so its differences (!) are withheld; it has no rank until \
                         a later test of it passes",
                        of.seq
                    ));
                    continue;
                }
                remarks.push(format!(
                    "{name}  transport FAIL at seq {}: its calibration does not transfer, so its differences (!) are withheld; \
                     it has no rank until it is calibrated on {}",
                    of.seq,
                    answer::new_labels(self.found.answers(self.experiment, policy).unwrap_or(1))
                ));
            }
        }
        let unchecked = self
            .pairs
            .iter()
            .any(|of| of.reading == Some(Reading::Unchecked));
        if unchecked {
            remarks.push(format!("? {}", values::UNCHECKED));
        }
        let widened = self.pairs.iter().filter_map(|of| {
            of.conservative.filter(|wide| is_wider(wide, &of.interval))?;
            (!is_withheld(of)).then(|| {
                format!(
                    "{}  the interval is widened by what monotonicity, rare labels or the margin of an audit leave open; \
                     without them {}",
                    pair(of),
                    bracket(ends(of.interval), digits(self.found))
                )
            })
        });
        remarks.extend(widened);
        remarks
    }

    /// The differences around zero.
    pub fn plot(&self) -> Forest {
        let digits = digits(self.found);
        let shown = self.pairs.iter().filter(|of| !is_withheld(of));
        let rows = shown.map(|of| ForestRow {
            label: pair(of),
            estimate: of.difference.value(),
            interval: Some((decisive(of).low.value(), decisive(of).high.value())),
            hollow: of
                .conservative
                .is_some_and(|wide| is_wider(&wide, &of.interval)),
            note: format!("{:+.digits$}", of.difference.value()),
        });
        let mut drawn = values::differences_forest(self.found.analysis.alpha, rows.collect());
        drawn.title = answer::headed(self.found.terms.environment.as_ref(), &drawn.title);
        drawn
    }

    fn facts(&self, on_record: bool) -> ContrastsFacts {
        let differences = self.pairs.iter().map(|of| ContrastFacts {
            pair: pair_facts(of),
            told_apart: of.told_apart,
            transport: failed_in(of).map(AuditFacts::from),
            claims: [of.first_claim, of.second_claim],
            prompts: of.prompts,
        });
        let answer = self.asked(self.places, self.pairs).order(on_record);
        let places = self.ranks(&answer);
        let ranking = self
            .places
            .iter()
            .zip(places)
            .map(|(policy, place)| Ranked {
                policy: self.found.analysis.policies[*policy].name.clone(),
                rank: values::rank_ends(place),
            });
        ContrastsFacts {
            answer,
            differences: differences.collect(),
            ranking: ranking.collect(),
            correction: values::correction(self.correction()),
            alpha: self.found.analysis.alpha,
            terms: self.found.terms.clone(),
        }
    }
}
