//! Speed over text: the evidence extractor, the built-in judge, each operator of the battery, and simulated rows.
//!
//! `cargo bench --bench text`. Texts are the responses of 20,000 simulated rows, and one long text of hard cases;
//! figures are the best of five passes on one thread.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

use std::hint::black_box;
use std::time::Instant;

use clover::attack::Operator;
use clover::rubric::extract;
use clover::workflow::judge::builtin;
use clover::workflow::simulate::Kind;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::World;

const ROWS: u64 = 20_000;
const PASSES: u32 = 5;

/// Seconds of the fastest of some passes.
fn best(mut pass: impl FnMut()) -> f64 {
    let times = (0..PASSES).map(|_| {
        let start = Instant::now();
        pass();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn line(what: &str, bytes: usize, seconds: f64) {
    println!("{what:<28} {:>8.1} MB/s", bytes as f64 / 1e6 / seconds);
}

fn main() {
    let world = World::new(Setting::default(), 1).unwrap();
    let seconds = best(|| {
        for number in 0..ROWS {
            black_box(world.row(Kind::Base, number));
        }
    });
    println!(
        "{:<28} {:>8.0} rows/s",
        "simulated rows",
        ROWS as f64 / seconds
    );
    let rows: Vec<_> = (0..ROWS)
        .map(|number| world.row(Kind::Base, number))
        .collect();
    let bytes: usize = rows.iter().map(|row| row.response.len()).sum();
    let citations = World::citations(&rows);
    let source = |prompt, response| extract::Source {
        prompt,
        response,
        citations: Some(&citations),
        ..extract::Source::default()
    };
    let seconds = best(|| {
        for row in &rows {
            black_box(extract::extract(&source(&row.prompt, &row.response)));
        }
    });
    line("extractor", bytes, seconds);
    let hard = "Ｉt may be 20mg; раypal.com says «so» — 漢字。👩\u{200d}🔬 (https://a.b/c_(d)). However, it isn't not so! ".repeat(8_000);
    let seconds = best(|| {
        black_box(extract::extract(&source("What dose?", &hard)));
    });
    line("extractor, one hard text", hard.len(), seconds);
    let seconds = best(|| {
        for row in &rows {
            black_box(builtin::score(&row.prompt, &row.response, &row.evidence));
        }
    });
    line("built-in judge", bytes, seconds);
    for operator in Operator::ALL {
        let edits = operator.edits();
        let seconds = best(|| {
            for (at, row) in rows.iter().enumerate() {
                black_box(edits[at % edits.len()].apply(&row.response, at as u64));
            }
        });
        line(operator.as_str(), bytes, seconds);
    }
}
