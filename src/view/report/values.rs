//! Values, differences and audits on record, as `clover estimate`, `clover compare` and `clover audit transport` show them now:
//! what is withheld there is withheld here, in each row that ever said it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::payload::audit::TransportTested;
use crate::event::payload::environment::EnvironmentScope;
use crate::event::payload::estimate::CalibratorFitted;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::PredictionWeight;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::view::estimate::said;
use crate::view::estimate::said::SaidValue;
use crate::view::estimate::said::SaidValues;
use crate::view::transport;
use crate::view::values;
use crate::view::values::Ends;
use crate::view::word;

/// What stands in place of a number that nothing may be said of.
const WITHHELD: &str = "withheld";

/// The newest recorded value of each policy by one judge, over all rows or in one environment.
#[derive(Clone, Debug)]
pub struct NewestValues {
    /// The values, each with its entry.
    pub by_policy: BTreeMap<PolicyId, (u64, EstimateRecorded)>,
    /// The terms of the one that was recorded last.
    pub terms: EstimateTerms,
}

/// Recorded values, and what may be said of them now.
#[derive(Clone, Debug)]
pub struct AnsweredValues {
    /// What is on record.
    pub newest: NewestValues,
    /// What `clover estimate` says of it, or `clover compare` where no value is on record; or why it says nothing.
    pub said: Result<SaidValues, String>,
}

/// Values by judge and environment, those that were recorded last first.
pub fn newest(chronicle: &Chronicle) -> Vec<NewestValues> {
    let mut all: BTreeMap<(JudgeId, Option<EnvironmentScope>), (u64, NewestValues)> =
        BTreeMap::new();
    for entry in chronicle.of(Kind::EstimateRecorded) {
        let Some(said) = entry.event.payload.said::<EstimateRecorded>() else {
            continue;
        };
        let of = (said.terms.judge.clone(), said.terms.environment.clone());
        let none = || {
            let terms = said.terms.clone();
            let by_policy = BTreeMap::new();
            (entry.seq, NewestValues { by_policy, terms })
        };
        let (seq, newest) = all.entry(of).or_insert_with(none);
        *seq = entry.seq;
        newest.terms.clone_from(&said.terms);
        newest
            .by_policy
            .insert(said.policy.clone(), (entry.seq, said.clone()));
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
    all.into_iter().map(|(_, newest)| newest).collect()
}

/// The newest differences of a judge and an environment of which no value is on record, those of each pair alone.
pub fn compared_alone(chronicle: &Chronicle) -> Vec<Vec<ContrastRecorded>> {
    let valued = newest(chronicle);
    let mut all: BTreeMap<(JudgeId, Option<EnvironmentScope>), Vec<ContrastRecorded>> =
        BTreeMap::new();
    for (_, said) in recorded_differences(chronicle, true) {
        let of = (said.terms.judge.clone(), said.terms.environment.clone());
        let is_of =
            |known: &NewestValues| (&known.terms.judge, &known.terms.environment) == (&of.0, &of.1);
        if !valued.iter().any(is_of) {
            all.entry(of).or_default().push(said);
        }
    }
    all.into_values().collect()
}

impl AnsweredValues {
    /// What is said, or that nothing may be claimed.
    pub fn answer(&self) -> String {
        match &self.said {
            Ok(said) => said.answer.answer.text.clone(),
            Err(why) if self.newest.by_policy.is_empty() => {
                format!("Nothing of the differences on record may be claimed: {why}.")
            }
            Err(why) => format!("Nothing of the values on record may be claimed: {why}."),
        }
    }

    /// Whether a recorded value is of the same judge and environment.
    fn is_of(&self, terms: &EstimateTerms) -> bool {
        let own = &self.newest.terms;
        (&own.judge, &own.environment) == (&terms.judge, &terms.environment)
    }

    /// The value that is said of a recorded one now.
    fn value(&self, of: &EstimateRecorded) -> Option<&SaidValue> {
        self.said.as_ref().ok()?.value(&of.policy)
    }
}

/// The answers about all values, the one of the values that were recorded last first: others name their judge.
pub(super) fn answers(all: &[AnsweredValues]) -> Vec<String> {
    let judges: BTreeSet<&JudgeId> = all.iter().map(|of| &of.newest.terms.judge).collect();
    let say = |of: &AnsweredValues| {
        if judges.len() > 1 {
            format!("By judge {}: {}", of.newest.terms.judge, of.answer())
        } else {
            of.answer()
        }
    };
    all.iter().map(say).collect()
}

/// The scale and the level of values, as a title ends.
fn scale_and_level(terms: &EstimateTerms) -> String {
    let declared = terms.label_scale.map_or_else(
        || "0 to 1".to_owned(),
        |ends| format!("{} to {}", ends.low_micro, ends.high_micro),
    );
    let percent = values::percent(terms.alpha_micro.value() as f64 / 1e6);
    format!("on the scale of labels {declared}, {percent} % intervals")
}

/// How values are told from others beside them: by judge, environment, weight of predictions.
fn beside(terms: &EstimateTerms) -> String {
    let mut out = format!("judge {}", terms.judge);
    if let Some(scope) = &terms.environment {
        out.push_str(&format!(", in {scope}"));
    }
    match terms.weight {
        Some(weight) if weight != PredictionWeight::One => {
            out.push_str(&format!(", weight {weight}"));
        }
        _ => {}
    }
    out
}

/// Columns of values.
const VALUES: [(&str, &str); 10] = [
    ("policy", "policy"),
    ("claimable", "may be claimed"),
    ("standing", "claim"),
    ("estimate", "value"),
    ("interval", "interval"),
    ("rank", "rank"),
    ("labels", "own labels"),
    ("rows", "rows"),
    ("prompts", "prompts"),
    ("raw_mean", "mean judge score"),
];

fn interval(of: Option<Ends>) -> Cell {
    let ends = of.and_then(said::finite);
    Cell::maybe(ends, |(low, high)| Cell::Interval(low, high))
}

fn recorded_interval(of: Option<IntervalEnds>) -> Cell {
    Cell::maybe(of, |of| Cell::Interval(of.low, of.high))
}

/// The newest values of a judge: each as it may be claimed now.
pub(super) fn newest_table(of: &AnsweredValues) -> Table {
    let title = format!(
        "Values of policies, {}, {}",
        beside(&of.newest.terms),
        scale_and_level(&of.newest.terms)
    );
    let mut table = Table::new("values", title, &VALUES);
    for (seq, recorded) in of.newest.by_policy.values() {
        let cells = match of.value(recorded) {
            Some(now) => said_cells(now),
            None => unsaid_cells(recorded),
        };
        table.row(*seq, cells);
    }
    table.plot = Some(Plot::Forest {
        label: (0, 2),
        estimate: 3,
        interval: Some(4),
        reference: None,
        axis: "value on the scale of labels",
        before: None,
    });
    table
}

/// Cells that a value has whatever may be claimed of it.
fn counts(row: &EstimateRecorded) -> [Cell; 4] {
    [
        row.labels.into(),
        row.rows.into(),
        row.prompts.into(),
        row.raw_mean.into(),
    ]
}

fn said_cells(now: &SaidValue) -> Vec<Cell> {
    let row = &now.row;
    // What no labels calibrate is on the scale of its judge: its mean score stands beside.
    let is_bare = row.claim == Claim::Uncalibrated;
    let (value, ends) = match (now.is_withheld, is_bare) {
        (true, _) => (Cell::text(WITHHELD), Cell::Absent),
        (_, true) => (Cell::Absent, Cell::Absent),
        _ => (row.estimate.into(), interval(now.interval)),
    };
    let mut cells = vec![
        Cell::text(row.policy.as_str()),
        Cell::Flag(now.may_be_claimed),
        Cell::text(now.claim),
        value,
        ends,
        Cell::maybe(now.rank.as_deref(), Cell::text),
    ];
    cells.extend(counts(row));
    cells
}

/// A recorded value of which nothing is said now.
fn unsaid_cells(row: &EstimateRecorded) -> Vec<Cell> {
    let mut cells = vec![
        Cell::text(row.policy.as_str()),
        Cell::Flag(false),
        Cell::text("no answer"),
        Cell::text(WITHHELD),
        Cell::Absent,
        Cell::Absent,
    ];
    cells.extend(counts(row));
    cells
}

/// Why a recorded value is not shown, or what became of it.
enum ValueStanding {
    /// It is the newest one, and may be claimed.
    Claimed,
    /// It is the newest one, and nothing of it may be claimed.
    Unclaimed(&'static str),
    /// A newer one took its place.
    Replaced(u64),
    /// The level of its policy is withheld.
    Withheld(String),
}

fn standing(all: &[AnsweredValues], seq: u64, said: &EstimateRecorded) -> ValueStanding {
    let Some(of) = all.iter().find(|of| of.is_of(&said.terms)) else {
        return ValueStanding::Withheld("no answer".to_owned());
    };
    let Some(now) = of.value(said) else {
        return ValueStanding::Withheld("no answer".to_owned());
    };
    if now.is_withheld {
        return ValueStanding::Withheld(now.claim.to_owned());
    }
    if said.claim == Claim::Refused {
        return ValueStanding::Withheld(said::claim_of(said).to_owned());
    }
    match of.newest.by_policy.get(&said.policy) {
        Some((newest, _)) if *newest != seq => ValueStanding::Replaced(*newest),
        _ if now.may_be_claimed => ValueStanding::Claimed,
        _ => ValueStanding::Unclaimed(now.claim),
    }
}

/// Every value that was recorded, the earlier ones too, a table for each scale and level: those of a policy whose level is
/// withheld now are withheld, each of them.
pub(super) fn every_value(chronicle: &Chronicle, all: &[AnsweredValues]) -> Vec<Table> {
    let mut tables: Vec<(String, Table)> = Vec::new();
    let columns = [
        ("policy", "policy"),
        ("standing", "claim then"),
        ("now", "now"),
        ("estimate", "value"),
        ("interval", "interval as recorded"),
        ("labels", "own labels"),
        ("rows", "rows"),
        ("prompts", "prompts"),
        ("raw_mean", "mean judge score"),
        ("of", "of"),
        ("through_seq", "read through"),
    ];
    for entry in chronicle.of(Kind::EstimateRecorded) {
        let Some(said) = entry.event.payload.said::<EstimateRecorded>() else {
            continue;
        };
        let scale = scale_and_level(&said.terms);
        let known = tables.iter().position(|(of, _)| *of == scale);
        let at = known.unwrap_or_else(|| {
            let title = format!("Every recorded value, {scale}");
            tables.push((scale, Table::new("values", title, &columns)));
            tables.len() - 1
        });
        let is_bare = said.claim == Claim::Uncalibrated;
        let shown = || (said.estimate.into(), recorded_interval(said.interval));
        let (now, (value, ends)) = match standing(all, entry.seq, said) {
            ValueStanding::Withheld(why) => (
                format!("{WITHHELD}: {why}"),
                (Cell::text(WITHHELD), Cell::Absent),
            ),
            _ if is_bare => ("uncalibrated".to_owned(), (Cell::Absent, Cell::Absent)),
            ValueStanding::Claimed => ("may be claimed".to_owned(), shown()),
            ValueStanding::Unclaimed(why) => (format!("no result: {why}"), shown()),
            ValueStanding::Replaced(by) => (format!("replaced at seq {by}"), shown()),
        };
        let mut cells = vec![
            Cell::text(said.policy.as_str()),
            Cell::text(said::claim_of(said)),
            Cell::text(now),
            value,
            ends,
        ];
        cells.extend(counts(said));
        cells.extend([Cell::text(beside(&said.terms)), said.through_seq.into()]);
        tables[at].1.row(entry.seq, cells);
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

/// How a recorded difference stands now: what is shown of it, and a word.
fn pair_now(all: &[AnsweredValues], said: &ContrastRecorded) -> (bool, String) {
    let of = all.iter().find(|of| of.is_of(&said.terms));
    let answered = of.and_then(|of| of.said.as_ref().ok());
    let Some(now) = answered else {
        return (true, "no answer".to_owned());
    };
    let withheld = [&said.first, &said.second]
        .into_iter()
        .any(|policy| now.withholds(policy));
    let pair = now.pair(said);
    if withheld || pair.is_some_and(|pair| pair.is_withheld) || said::is_recorded_withheld(said) {
        return (true, WITHHELD.to_owned());
    }
    let numbers =
        |of: &ContrastRecorded| (of.difference, said::interval_of(of), of.p, of.p_adjusted);
    let same = |pair: &said::SaidPair| numbers(&pair.row) == numbers(said);
    match pair {
        Some(pair) if same(pair) => (false, pair.reading.to_owned()),
        _ => (
            false,
            format!(
                "{}, of earlier rows or another family",
                said::reading_of(said)
            ),
        ),
    }
}

/// The recorded differences with their places; of those of the same pair and terms the newest alone, where that is asked for.
fn recorded_differences(chronicle: &Chronicle, is_newest: bool) -> Vec<(u64, ContrastRecorded)> {
    let said = |entry: &ChronicleEntry| {
        let said: Option<&ContrastRecorded> = entry.event.payload.said();
        said.cloned().map(|said| (entry.seq, said))
    };
    let mut rows: Vec<(u64, ContrastRecorded)> = chronicle
        .of(Kind::ContrastRecorded)
        .filter_map(said)
        .collect();
    if is_newest {
        let key = |of: &ContrastRecorded| {
            (
                of.first.clone(),
                of.second.clone(),
                of.terms.judge.clone(),
                of.terms.environment.clone(),
            )
        };
        let last: BTreeMap<_, u64> = rows.iter().map(|(seq, of)| (key(of), *seq)).collect();
        rows.retain(|(seq, of)| last.get(&key(of)) == Some(seq));
    }
    rows
}

/// Every difference that was recorded. `newest` leaves out those that a newer one of the same pair replaced.
pub(super) fn differences(
    chronicle: &Chronicle,
    all: &[AnsweredValues],
    is_newest: bool,
) -> Vec<Table> {
    let columns = [
        ("first", "first"),
        ("second", "second"),
        ("result", "result"),
        ("difference", "first less second"),
        ("interval", "interval"),
        ("p", "p"),
        ("p_adjusted", "p, corrected"),
        ("of", "of"),
        ("through_seq", "read through"),
    ];
    let rows = recorded_differences(chronicle, is_newest);
    let looked = chronicle.of(Kind::ContrastRecorded);
    let looked: Vec<_> = looked
        .filter_map(|entry| entry.event.payload.said::<ContrastRecorded>())
        .collect();
    let mut tables: Vec<(String, Table)> = Vec::new();
    for (seq, of) in rows {
        let scale = scale_and_level(&of.terms);
        let known = tables.iter().position(|(known, _)| *known == scale);
        let at = known.unwrap_or_else(|| {
            let title = format!("Differences between policies, {scale}");
            tables.push((scale, Table::new("differences", title, &columns)));
            tables.len() - 1
        });
        let (is_withheld, mut result) = pair_now(all, &of);
        let is_marked = of.exploratory_since.is_some();
        let first = looked.first();
        if is_marked || first.is_some_and(|first| !is_same_look(&of, first)) {
            result.push_str(", exploratory");
        }
        let ends = said::interval_of(&of);
        let numbers = if is_withheld {
            [
                Cell::text(WITHHELD),
                Cell::Absent,
                Cell::Absent,
                Cell::Absent,
            ]
        } else {
            [
                of.difference.into(),
                Cell::Interval(ends.low, ends.high),
                of.p.into(),
                of.p_adjusted.into(),
            ]
        };
        let mut cells = vec![
            Cell::text(of.first.as_str()),
            Cell::text(of.second.as_str()),
            Cell::text(result),
        ];
        cells.extend(numbers);
        cells.extend([Cell::text(beside(&of.terms)), of.through_seq.into()]);
        tables[at].1.row(seq, cells);
    }
    let mut tables: Vec<Table> = tables.into_iter().map(|(_, table)| table).collect();
    for table in &mut tables {
        table.plot = Some(Plot::Forest {
            label: (0, 1),
            estimate: 3,
            interval: Some(4),
            reference: Some(0.0),
            axis: "first less second",
            before: None,
        });
    }
    tables
}

/// Whether a difference was found in the look that was recorded first: later ones are exploratory. A pair of the same family
/// or a larger one, through the same calibrator, is, unless it is the first pair itself with other rows.
fn is_same_look(of: &ContrastRecorded, first: &ContrastRecorded) -> bool {
    let is_pair = (&of.first, &of.second) == (&first.first, &first.second);
    let mut family = first.family.iter();
    let is_of = family.all(|policy| of.family.contains(policy))
        && of.correction == first.correction
        && (&of.terms, of.calibrator) == (&first.terms, first.calibrator);
    is_of && (!is_pair || (of.first_root, of.second_root) == (first.first_root, first.second_root))
}

/// Every audit of transport, with the interval that decided it: that of residuals alone where it alone lies beyond the margin.
pub(super) fn audits(chronicle: &Chronicle) -> Table {
    let columns = [
        ("policy", "policy"),
        ("state", "verdict"),
        ("mean_residual", "mean residual"),
        ("interval", "interval"),
        ("width", "the interval is of"),
        ("margin", "margin"),
        ("rows", "probes"),
        ("design", "design"),
        ("judge", "judge"),
    ];
    let title = "Audits of transport, label less calibrated score, on the scale of labels";
    let mut table = Table::new("audits", title, &columns);
    for entry in chronicle.of(Kind::TransportTested) {
        let Some(said) = entry.event.payload.said::<TransportTested>() else {
            continue;
        };
        let (width, words) = transport::deciding(said);
        let cells = vec![
            Cell::text(said.policy.as_str()),
            Cell::text(word(&said.state).replace('_', " ")),
            said.mean_residual.into(),
            recorded_interval(width.interval),
            Cell::text(words),
            Cell::maybe(said.audit.margin_micro, Cell::micro),
            said.rows.into(),
            Cell::text(said.design.as_str()),
            Cell::text(beside(&said.terms)),
        ];
        table.row(entry.seq, cells);
    }
    table.plot = (!table.rows.is_empty()).then_some(Plot::Forest {
        label: (0, 1),
        estimate: 2,
        interval: Some(3),
        reference: Some(0.0),
        axis: "label less calibrated score",
        before: None,
    });
    table
}

/// Calibrators that were fitted, their error out of fold on the scale of labels.
pub(super) fn calibrators(chronicle: &Chronicle) -> Table {
    let columns = [
        ("of", "of"),
        ("selected", "calibrator"),
        ("labels", "labels"),
        ("clusters", "prompts"),
        ("scale", "scale of labels"),
        ("oof_rmse", "error out of fold, on that scale"),
        ("slope_low", "slope in the lowest tenth of scores"),
        ("slope_high", "slope in the highest"),
        ("digest", "digest"),
        ("through_seq", "read through"),
    ];
    let mut table = Table::new("calibrators", "Calibrators", &columns);
    for entry in chronicle.of(Kind::CalibratorFitted) {
        let Some(said) = entry.event.payload.said::<CalibratorFitted>() else {
            continue;
        };
        let scale = said.terms.label_scale;
        let words = scale.map_or_else(
            || "0 to 1".to_owned(),
            |ends| format!("{} to {}", ends.low_micro, ends.high_micro),
        );
        let cells = vec![
            Cell::text(beside(&said.terms)),
            Cell::text(word(&said.selected).replace('_', " ")),
            said.labels.into(),
            said.clusters.into(),
            Cell::text(words),
            Cell::number(said.oof_rmse.value() * said::span(scale)),
            Cell::maybe(said.slope_low, Cell::from),
            Cell::maybe(said.slope_high, Cell::from),
            Cell::Digest(said.calibrator),
            said.through_seq.into(),
        ];
        table.row(entry.seq, cells);
    }
    table
}
