//! What calls cost: tables of prices as people write them.

use clover_event::id::Text;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_num::Count;
use clover_num::Micro;

use crate::import::csv;

/// Columns of a table in CSV, in any order.
const COLUMNS: [&str; 7] = [
    "provider",
    "model",
    "mode",
    "input",
    "cache_read",
    "cache_write",
    "output",
];
/// Columns that may be empty: they cost what input costs.
const AS_INPUT: [&str; 2] = ["cache_read", "cache_write"];

/// Why a table of prices is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// It is no CSV.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A column is missing or nobody knows it.
    #[error("line 1: expected the columns {}, found {found}", COLUMNS.join(", "))]
    Columns {
        /// What stands there.
        found: String,
    },
    /// It has no row.
    #[error("expected at least one row, found none")]
    Empty,
    /// A model is priced twice.
    #[error("{provider} {model} ({mode}) has two prices")]
    Twice {
        /// Whoever runs the endpoint.
        provider: String,
        /// The model.
        model: String,
        /// How calls are made.
        mode: PriceMode,
    },
}

fn wrong(line: u64, what: impl Into<String>) -> PriceError {
    PriceError::Line {
        line,
        what: what.into(),
    }
}

/// A price in dollars for a million tokens, as millionths.
fn price(line: u64, column: &str, text: &str) -> Result<Count, PriceError> {
    let (micro, rounded) =
        Micro::parse(text).map_err(|error| wrong(line, format!("{column} {text:?}: {error}")))?;
    let count = u64::try_from(micro.value()).ok().and_then(Count::new);
    count.filter(|_| !rounded).ok_or_else(|| {
        let what = format!("{column} {text:?}: expected dollars for a million tokens, 0 or more, at most six decimals");
        wrong(line, what)
    })
}

/// Reads a table of prices in CSV, in dollars for a million tokens: rows in the order that events have.
///
/// # Errors
/// [`PriceError`]: nothing is rounded and nothing is passed over.
pub fn parse(text: &str) -> Result<Vec<PriceRow>, PriceError> {
    // Spreadsheets write a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let records = csv::records(text).map_err(|(line, what)| wrong(line, what))?;
    let mut records = records.into_iter();
    let (_, head) = records.next().ok_or(PriceError::Empty)?;
    let place = |column: &str| head.iter().position(|of| of == column);
    let places: Option<Vec<usize>> = COLUMNS.iter().map(|column| place(column)).collect();
    let places = places.filter(|_| head.len() == COLUMNS.len());
    let places = places.ok_or_else(|| PriceError::Columns {
        found: head.join(", "),
    })?;
    let mut rows = Vec::new();
    for (line, record) in records {
        rows.push(row(line, &record, &places)?);
    }
    rows.sort_by(|a, b| a.key().cmp(&b.key()));
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].key() == pair[1].key()) {
        let (provider, model, mode) = pair[0].key();
        return Err(PriceError::Twice {
            provider: provider.to_owned(),
            model: model.to_owned(),
            mode,
        });
    }
    if rows.is_empty() {
        return Err(PriceError::Empty);
    }
    Ok(rows)
}

fn row(line: u64, record: &[String], places: &[usize]) -> Result<PriceRow, PriceError> {
    let [
        provider,
        model,
        mode,
        input,
        cache_read,
        cache_write,
        output,
    ] = COLUMNS;
    let said = |column: &str| {
        let at = COLUMNS.iter().position(|of| *of == column);
        let at = at.and_then(|at| places.get(at));
        let text = at.and_then(|at| record.get(*at)).map_or("", |of| of.trim());
        let stands_for = AS_INPUT.contains(&column) && text.is_empty();
        (text.to_owned(), stands_for)
    };
    let named = |column: &str| {
        let (text, _) = said(column);
        let name = Text::new(text).filter(|of| !of.as_str().is_empty());
        name.ok_or_else(|| wrong(line, format!("{column}: expected a text, found none")))
    };
    let in_dollars = |column: &str| {
        let (text, stands_for) = said(column);
        if stands_for {
            return price(line, input, &said(input).0);
        }
        price(line, column, &text)
    };
    let (mode, _) = said(mode);
    Ok(PriceRow {
        cache_read: in_dollars(cache_read)?,
        cache_write: in_dollars(cache_write)?,
        input: in_dollars(input)?,
        mode: mode
            .parse()
            .map_err(|error: String| wrong(line, format!("mode {mode:?}: {error}")))?,
        model: named(model)?,
        output: in_dollars(output)?,
        provider: named(provider)?,
    })
}

#[cfg(test)]
mod tests {
    use clover_event::calls::TokenCounts;
    use clover_num::INTEGER_MAX;

    use super::*;

    fn most() -> Count {
        count(INTEGER_MAX)
    }

    fn count(value: u64) -> Count {
        Count::new(value).unwrap()
    }

    fn row_of([input, cache_read, cache_write, output]: [u64; 4]) -> PriceRow {
        PriceRow {
            cache_read: count(cache_read),
            cache_write: count(cache_write),
            input: count(input),
            mode: PriceMode::Live,
            model: Text::new("m-1").unwrap(),
            output: count(output),
            provider: Text::new("example").unwrap(),
        }
    }

    /// source: the specification of endpoints, its vector of a cost: 389.1, so 390.
    #[test]
    fn a_cost_is_rounded_up_once() {
        let row = row_of([250_000, 25_000, 0, 2_000_000]);
        let tokens = TokenCounts {
            input: count(686),
            cache_read: count(1_024),
            output: count(96),
            ..TokenCounts::default()
        };
        assert_eq!(row.cost(&tokens), count(390));
        assert_eq!(row.cost(&TokenCounts::default()), count(0));
    }

    /// source: the specification of endpoints, its vector of a bound: 6,840 bytes, a cache write of 312,500, 600 tokens.
    #[test]
    fn a_bound_counts_every_byte_as_a_token() {
        let row = row_of([250_000, 25_000, 312_500, 2_000_000]);
        // (6840 + 256) x 312500 + 600 x 2000000 = 3,417,500,000: 3,417.5, so 3,418.
        assert_eq!(row.bound(6_840, 600), count(3_418));
    }

    #[test]
    fn a_sum_beyond_every_count_is_the_greatest_one() {
        let row = row_of([INTEGER_MAX; 4]);
        let tokens = TokenCounts {
            input: most(),
            output: most(),
            ..TokenCounts::default()
        };
        assert_eq!(row.cost(&tokens), most());
    }

    #[test]
    fn prices_are_read_exactly_or_refused() {
        let head = "model,provider,mode,input,output,cache_read,cache_write\n";
        let good = format!("{head}m-2,example,live,1,4,,\nm-1,example,live,0.25,2,0.025,0.3125\n");
        let rows = parse(&good).unwrap();
        assert_eq!(rows[0], row_of([250_000, 25_000, 312_500, 2_000_000]));
        assert_eq!(rows[1].cache_write, count(1_000_000));
        for (text, expected) in [
            ("model,input\n", "line 1"),
            (head, "at least one row"),
            (&*format!("{head}m,e,live,0.0000001,1,,\n"), "six decimals"),
            (&*format!("{head}m,e,live,-1,1,,\n"), "0 or more"),
            (&*format!("{head}m,e,soon,1,1,,\n"), "mode"),
            (&*format!("{head},e,live,1,1,,\n"), "model"),
            (&*format!("{head}m,e,live,1,,,\n"), "output"),
            (
                &*format!("{head}m,e,live,1,1,,\nm,e,live,2,2,,\n"),
                "two prices",
            ),
        ] {
            let found = parse(text).unwrap_err().to_string();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
