//! The page of a gate: its path between looks, and how wide it is.

use serde_json::Value;

use super::Desk;
use super::gate::opened_as;
use super::gate::score;
use super::gate::scored;

/// The interval's places on the page: units and both ends.
fn places(desk: &mut Desk) -> Vec<(u64, i64, i64)> {
    let shown = desk.ok("gate show m-1 --json").json();
    let place = |place: &Value| {
        (
            place[0].as_u64().unwrap(),
            place[1].as_i64().unwrap(),
            place[2].as_i64().unwrap(),
        )
    };
    let all = shown["data"]["interval"].as_array().unwrap();
    all.iter().map(place).collect()
}

/// The looks that were recorded.
fn looks(desk: &mut Desk) -> Vec<(u64, i64, i64)> {
    let shown = desk.ok("gate show m-1 --json").json();
    let one = |look: &Value| {
        let look = &look["look"];
        (
            look["n"].as_u64().unwrap(),
            look["cs_lo_micro"].as_i64().unwrap(),
            look["cs_hi_micro"].as_i64().unwrap(),
        )
    };
    let all = shown["data"]["looks"].as_array().unwrap();
    all.iter().map(one).collect()
}

#[test]
fn the_interval_is_drawn_where_nobody_looked() {
    let (mut quiet, mut looking) = (scored(), scored());
    quiet.run("gate observe m-1 --through 6");
    for n in 1..=6 {
        looking.run(&format!("gate observe m-1 --through {n}"));
        looking.run("gate look m-1");
    }
    let recorded = looks(&mut looking);
    assert_eq!(recorded.len(), 6);
    assert_eq!(places(&mut looking), recorded);
    // Nobody looked: each place is what one look there alone would say, and all together what looks at each did.
    assert!(looks(&mut quiet).is_empty());
    let drawn = places(&mut quiet);
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    for (place, look) in drawn.iter().zip(&recorded) {
        (low, high) = (low.max(place.1), high.min(place.2));
        assert_eq!((place.0, low, high), *look);
    }
    assert_eq!(drawn.len(), 6);
    let page = quiet
        .ok("gate show m-1 -o interval.svg --chart interval")
        .out;
    assert!(page.contains("effect <  ███"), "{page}");
    let svg = std::fs::read_to_string(quiet.at.join("interval.svg")).unwrap();
    let path = svg.lines().find(|line| line.contains("<title>highest"));
    assert_eq!(path.unwrap().matches('L').count(), 5, "{svg}");
    // A browser draws what a terminal shows in blocks.
    let page = quiet.ok("gate show m-1 --render html").out;
    assert_eq!(page.matches("<figure><svg").count(), 2, "{page}");
    assert!(page.contains(&svg), "{page}");
    assert!(!page.contains("effect &lt;"), "{page}");
}

#[test]
fn registered_looks_alone_have_an_interval() {
    let looks_at =
        |plan: String| plan.replace("  n_max: 40\n", "  n_max: 40\n  look_at: [20, 30]\n");
    let mut desk = score(opened_as(looks_at, |_| {}));
    desk.run("gate observe m-1 --through 8");
    assert!(places(&mut desk).is_empty());
    assert!(!desk.ok("gate show m-1").out.contains("effect <"));
    desk.run("gate observe m-1 --through 20");
    desk.run("gate look m-1");
    let found = places(&mut desk);
    assert_eq!(found, looks(&mut desk));
    assert_eq!(found.iter().map(|place| place.0).collect::<Vec<_>>(), [20]);
    desk.ok("gate show m-1 -o interval.svg --chart interval");
    let svg = std::fs::read_to_string(desk.at.join("interval.svg")).unwrap();
    // Both ends of the look are marked.
    assert_eq!(svg.matches("<title>recorded look").count(), 2, "{svg}");
}

#[test]
fn long_words_fit_the_columns() {
    let claim = "answers that customers of the second half of the year read twice ".repeat(6);
    let long = |plan: String| {
        let plan = plan.replace("the new policy answers better", claim.trim());
        plan.replace(
            "metric: quality",
            "metric: quality-of-answers-as-the-people-of-the-desk-see-it",
        )
    };
    let mut desk = score(opened_as(long, |_| {}));
    desk.run("gate observe m-1 --through 6");
    desk.run("gate look m-1");
    let page = desk.ok("gate show m-1").out;
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let whole = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains(claim.trim()), "{page}");
}
