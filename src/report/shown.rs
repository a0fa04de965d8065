//! Cells as people read them: numbers of one column with the same digits, digests short, verdicts as words.

use clover_event::payload::Verdict;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;

/// Most digits after the point.
const DIGITS: usize = 4;
/// Below this magnitude a number is shown by its power of ten.
const SMALL: f64 = 5e-5;

/// The word for a verdict, as people read it. Events and `--json` have the words of their own.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "NOT CHECKED",
        Verdict::Pass => "pass",
    }
}

/// Fixed words of a bundle in the words of today: P0 to P10 are criteria, which bundles call gates.
pub fn words(text: &str) -> String {
    let mut text = text
        .replace("gate P", "criterion P")
        .replace("not_checked", "NOT CHECKED");
    for (from, to) in [
        ("Every gate that", "Every criterion that"),
        ("What each gate says", "What each criterion says"),
        ("gates recorded", "criteria recorded"),
        ("put to a gate", "put to a criterion"),
    ] {
        text = text.replace(from, to);
    }
    text
}

/// The title of a part of a bundle: its gates are criteria.
pub fn title(text: &str) -> String {
    match text {
        "Gates" => "Criteria".to_owned(),
        text => words(text),
    }
}

/// A table of a bundle with heads in the words of today.
pub fn table(of: &Table) -> Table {
    let mut of = of.clone();
    for column in &mut of.columns {
        column.head = match column.head {
            "gate" => "criterion",
            // Recorded values are the risk of the candidate less that of the baseline.
            "risk improvement" => "risk change (negative is better)",
            head => head,
        };
    }
    of
}

/// Codes of criteria as people write them: `p5` is P5.
pub fn criteria(text: &str) -> String {
    let word = |word: &str| {
        let end = word.trim_end_matches([',', '.', ';', ':']);
        let digits = end.strip_prefix('p').filter(|digits| digits.len() <= 2);
        let is_code = digits
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()));
        if is_code {
            word.to_uppercase()
        } else {
            word.to_owned()
        }
    };
    let words: Vec<String> = text.split(' ').map(word).collect();
    words.join(" ")
}

/// The reason of an end as it was recorded, in words: where patches were accepted it is their number.
pub fn reason(recorded: &str) -> String {
    match recorded.strip_suffix(" accepted") {
        Some("1") => "one patch passed every criterion that was run on confirm".to_owned(),
        Some(count) if count.parse::<u64>().is_ok() => {
            format!("{count} patches passed every criterion that was run on confirm")
        }
        _ => recorded.to_owned(),
    }
}

/// The value of a fact, by its key.
pub fn fact(key: &str, value: &Cell) -> String {
    let text = alone(value);
    if key == "reason" { reason(&text) } else { text }
}

/// Digits after the point that show a number, at most four.
fn digits_of(value: f64) -> usize {
    let shows = |digits: &usize| {
        let text = format!("{value:.digits$}");
        text.parse::<f64>()
            .is_ok_and(|read| (read - value).abs() < SMALL)
    };
    (0..DIGITS).find(shows).unwrap_or(DIGITS)
}

/// A number with at most `digits` after the point.
pub fn number(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < SMALL {
        return format!("{value:.1e}");
    }
    format!("{value:.digits$}")
}

/// An integer with its thousands apart.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Digits that a column needs.
pub fn digits(rows: &[TableRow], column: usize) -> usize {
    let of = |row: &TableRow| match row.cells.get(column) {
        Some(Cell::Number(number)) => digits_of(number.value()),
        Some(Cell::Interval(low, high)) => digits_of(low.value()).max(digits_of(high.value())),
        _ => 0,
    };
    rows.iter().map(of).max().unwrap_or(0)
}

/// A cell as text.
pub fn cell(cell: &Cell, digits: usize) -> String {
    match cell {
        Cell::Absent => "–".to_owned(),
        Cell::Count(count) => thousands(count.value()),
        Cell::Digest(digest) => digest.short().to_string(),
        Cell::Flag(true) => "yes".to_owned(),
        Cell::Flag(false) => "no".to_owned(),
        Cell::Interval(low, high) => format!(
            "[{}, {}]",
            number(low.value(), digits),
            number(high.value(), digits)
        ),
        Cell::Number(value) => number(value.value(), digits),
        Cell::Text(text) => text.clone(),
        Cell::Verdict(verdict) => word(*verdict).to_owned(),
    }
}

/// A cell that stands by itself.
pub fn alone(value: &Cell) -> String {
    match value {
        Cell::Number(number) => cell(value, digits_of(number.value())),
        Cell::Digest(digest) => digest.to_hex(),
        _ => cell(value, DIGITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_say_something() {
        let alone = |value: f64| alone(&Cell::number(value));
        assert_eq!(alone(0.5), "0.5");
        assert_eq!(alone(-0.0031), "-0.0031");
        assert_eq!(alone(0.123_456), "0.1235");
        assert_eq!(alone(0.000_012), "1.2e-5");
        assert_eq!(alone(0.0), "0");
        assert_eq!(alone(1200.0), "1200");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(super::alone(&Cell::Absent), "–");
        assert_eq!(
            words("no battery ran: gate P7 is not_checked"),
            "no battery ran: criterion P7 is NOT CHECKED"
        );
        assert_eq!(words("a gateway"), "a gateway");
        assert_eq!(
            criteria("rejected on dev: p5, p10 of parts p5x"),
            "rejected on dev: P5, P10 of parts p5x"
        );
        assert_eq!(
            reason("2 accepted"),
            "2 patches passed every criterion that was run on confirm"
        );
        assert_eq!(reason("nobody accepted"), "nobody accepted");
    }
}
