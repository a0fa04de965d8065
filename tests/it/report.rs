//! Reports of iterations: the same bytes for the same log, every number with its entry, and hostile text that stays text.

use std::path::Path;

use clover::event::Payload;
use clover::event::payload::report::ReportLayout;
use clover::event::payload::report::ReportPart;
use clover::ground::canon;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::projection::bundle::Bundle;
use clover::projection::iterations::story;
use clover::report::iteration;
use clover::report::markdown;
use clover::report::page;
use clover::workflow::bundle;
use clover::workflow::estimate::rows::NoCovariates;
use clover::workflow::recompute::Context;
use clover::workflow::recompute::Recomputation;
use clover::workflow::recompute::RecomputeCache;
use serde_json::Value;
use serde_json::json;

use crate::support::EXPERIMENT;
use crate::support::TestLedger;
use crate::support::decided;
use crate::support::iterated;
use crate::support::planned;
use crate::support::valued;

fn say(test: &mut TestLedger, payload: Payload) -> String {
    let command = Command::new(payload, Some(EXPERIMENT.parse().unwrap()));
    test.append(&[command]).unwrap()[0].id.0.to_hex()
}

/// A ledger whose experiment has values on record and one iteration that accepted a patch.
fn decided_ledger() -> TestLedger {
    let mut test = TestLedger::unnamed(clover::store::CreateOptions::default());
    test.ledger
        .put_blobs(&[valued::MODEL.to_vec(), valued::ROWS.to_vec()])
        .unwrap();
    test.register(EXPERIMENT);
    test.append(&[Command::new(iterated::peek_account(), None)])
        .unwrap();
    let plan = iterated::plan(EXPERIMENT, "m-it");
    say(&mut test, iterated::rubric_registered(iterated::RUBRIC));
    say(&mut test, iterated::anchors(200));
    say(&mut test, planned::registered(&plan));
    for event in decided::split_events() {
        say(&mut test, event);
    }
    let quarter = test.ledger.ambient().now().quarter().to_string();
    say(&mut test, iterated::opened(&plan, decided::IT, &quarter));
    for payload in [
        decided::label_process(),
        decided::prentice(),
        decided::audited(),
        decided::classified(),
        decided::judge(),
        decided::battery_in_force(),
        decided::card(),
    ] {
        say(&mut test, payload);
    }
    let patch = decided::patches()[0].clone();
    let (candidate, result, _) = decided::patch_of(&patch);
    let asker = test.owner.id();
    say(&mut test, decided::asked(candidate, asker));
    say(&mut test, patch.clone());
    say(&mut test, decided::battery(Some(candidate), result, &[]));
    let mut gates = Vec::new();
    for gate in decided::gates(&plan, candidate, "dev") {
        gates.push(say(&mut test, gate));
    }
    let sealing = say(&mut test, decided::sealed(&[candidate]));
    let charge = Command::new(decided::charge(), None);
    let charge = test.append(&[charge]).unwrap()[0].id.0.to_hex();
    say(&mut test, decided::unsealed(&charge, &sealing));
    for gate in decided::gates(&plan, candidate, "confirm") {
        gates.push(say(&mut test, gate));
    }
    say(&mut test, decided::accepted(&patch, 1, &gates));
    say(&mut test, iterated::closed(decided::IT, "accepted"));
    test
}

/// A report of what entries say alone, and one that asks for rows too.
const LAYOUTS: [Option<ReportLayout>; 2] = [None, Some(ReportLayout::Rows)];

fn laid_out(ledger: &Ledger, through: u64, layout: Option<ReportLayout>) -> Bundle {
    let (experiment, iteration) = (EXPERIMENT.parse().unwrap(), decided::IT.parse().unwrap());
    let story = story::read(ledger, &experiment, &iteration, (through, layout)).unwrap();
    let state = ledger.state_at(through + 1).unwrap();
    bundle::bundle(ledger, &story, &state).unwrap().bundle
}

fn bundle_at(ledger: &Ledger, through: u64) -> Bundle {
    laid_out(ledger, through, None)
}

fn bundle_of(ledger: &Ledger) -> Bundle {
    bundle_at(ledger, ledger.size() - 1)
}

/// Compares with a file under `fixtures/report`, or writes it.
fn golden(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/report")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(
        found == bytes,
        "fixtures/report/{name}: run UPDATE=1 cargo test --test it report"
    );
}

#[test]
fn a_decided_iteration_has_one_report_in_three_renderings() {
    let test = decided_ledger();
    let bundle = bundle_of(&test.ledger);
    assert_eq!(bundle.parts.len(), ReportPart::ALL.len());
    let bytes = bundle.to_bytes();
    canon::check(&bytes).unwrap();
    golden("decided.json", &bytes);
    golden(
        "decided.md",
        markdown::markdown(&iteration::document(&bundle)).as_bytes(),
    );
    golden(
        "decided.html",
        page::html(&iteration::document(&bundle)).as_bytes(),
    );
}

/// What was asked and decided, on what evidence, what is not claimed; when, and by whom: before any table, in one paragraph.
#[test]
fn a_report_begins_in_plain_words() {
    let test = decided_ledger();
    let bundle = bundle_of(&test.ledger);
    let said = markdown::markdown(&iteration::document(&bundle));
    let first = said.split("\n## ").next().unwrap();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "The question was whether a patch of the rubric makes the judge err less",
        "Accepted patch is len-cite-guard-003.",
        "confirm labels were unsealed once, for one peek.",
        "Nothing is claimed of other rows, judges or times",
        "Opened 2026-11-20 by ",
        ", ended 2026-11-20 by ",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let html = page::html(&iteration::document(&bundle));
    assert!(html.contains("<strong>Accepted patch is len-cite-guard-003.</strong>"));
    for text in [&said, &html] {
        assert!(!text.contains("gate P"), "P0 to P10 are criteria");
    }
    // Before its end it decides nothing.
    let open = bundle_at(&test.ledger, 12);
    let open = markdown::markdown(&iteration::document(&open));
    let open = open.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = "Nothing is decided yet: the iteration is open (none was proposed).";
    assert!(open.contains(part), "{open}");
}

/// What comes later changes nothing that was read before, and each layout is written again as it was.
#[test]
fn published_reports_of_every_layout_are_written_again() {
    for layout in LAYOUTS {
        let mut test = decided_ledger();
        let through = test.ledger.size() - 1;
        let bundle = laid_out(&test.ledger, through, layout);
        let bytes = bundle.to_bytes();
        let report = bundle::published(&bundle, layout);
        assert_eq!(report.layout, layout);
        test.ledger.put_blobs(std::slice::from_ref(&bytes)).unwrap();
        say(&mut test, report.into());
        assert_eq!(laid_out(&test.ledger, through, layout).to_bytes(), bytes);
        test.check_all();
        let (mut covariates, mut shared) = (NoCovariates, RecomputeCache::default());
        let mut context =
            Context::new(&test.ledger, &mut covariates, &mut shared).over(&test.ledger);
        let seq = through + 1;
        let read = test.ledger.entry(seq).unwrap().unwrap();
        let (outcome, _) = context.replay(seq, &read.event).unwrap().unwrap();
        assert_eq!(outcome, Recomputation::Identical, "{layout:?}");
    }
}

/// These entries speak of rows that nobody recorded: each part that needs them says so, and shows the rest.
#[test]
fn a_report_whose_rows_are_not_there_says_so_part_by_part() {
    let test = decided_ledger();
    let through = test.ledger.size() - 1;
    let bundle = laid_out(&test.ledger, through, Some(ReportLayout::Rows));
    assert!(bundle.to_bytes().ends_with(b"}"));
    assert_eq!(bundle.format, "clover/iteration-report/v2");
    for part in [
        ReportPart::Calibration,
        ReportPart::Slices,
        ReportPart::Segments,
        ReportPart::Residuals,
        ReportPart::Transport,
        ReportPart::Values,
        ReportPart::Complexity,
    ] {
        let found = bundle.part(part).unwrap();
        let gap = found
            .missing
            .iter()
            .find(|gap| gap.why == "no iteration it-3 by then");
        assert!(gap.is_some(), "{part}: {:?}", found.missing);
    }
    assert!(bundle.part(ReportPart::Slices).unwrap().is_present());
    // The size of the rubric needs no rows; the patch appends the host bmj.com, which is three tokens.
    let complexity = bundle.part(ReportPart::Complexity).unwrap();
    let sizes = complexity
        .tables
        .iter()
        .find(|table| table.key == "sizes")
        .unwrap();
    let tokens: Vec<f64> = sizes
        .rows
        .iter()
        .map(|row| row.cells[1].as_number().unwrap())
        .collect();
    assert_eq!(tokens.len(), 2);
    assert!((tokens[1] - tokens[0] - 3.0).abs() < 1e-9, "{tokens:?}");
}

/// Numbers that stand outside of everything that names its entries.
fn unsourced(value: &Value, path: &str, sourced: bool, found: &mut Vec<String>) {
    match value {
        Value::Number(_) if !sourced => found.push(path.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                unsourced(item, &format!("{path}[{at}]"), sourced, found);
            }
        }
        Value::Object(fields) => {
            let named = fields
                .get("events")
                .and_then(Value::as_array)
                .is_some_and(|events| !events.is_empty());
            for (name, item) in fields {
                let is_place = ["events", "seq", "through_seq"].contains(&name.as_str());
                unsourced(
                    item,
                    &format!("{path}.{name}"),
                    sourced || named || is_place,
                    found,
                );
            }
        }
        _ => {}
    }
}

#[test]
fn every_number_names_its_entries_and_every_entry_is_listed() {
    let test = decided_ledger();
    let bundle = bundle_of(&test.ledger);
    let value = serde_json::to_value(&bundle).unwrap();
    let mut found = Vec::new();
    // The list of entries at the top does not vouch for the parts.
    for part in value["parts"].as_array().unwrap() {
        unsourced(part, part["part"].as_str().unwrap(), false, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
    let listed: Vec<u64> = bundle.events.iter().map(|entry| entry.seq).collect();
    let cited: Vec<u64> = bundle.cited().into_iter().collect();
    assert_eq!(listed, cited);
    let html = page::html(&iteration::document(&bundle));
    for seq in cited {
        assert!(html.contains(&format!("id=\"e{seq}\"")), "{seq}");
        assert!(html.contains(&format!("href=\"#e{seq}\"")), "{seq}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let test = decided_ledger();
    let bundle = bundle_of(&test.ledger);
    let values = bundle.part(ReportPart::Values).unwrap();
    assert!(!values.is_present());
    assert_eq!(values.missing[0].what, "policy values");
    assert!(values.missing[0].why.contains("clover estimate"));
    assert!(!bundle.present().contains(&ReportPart::Values));
    let gaps = bundle.gaps();
    assert!(gaps.iter().any(|gap| gap.part == ReportPart::Values));
    // An iteration that only opened lacks nearly everything, and says so part by part.
    let opened = bundle_at(&test.ledger, 12);
    for part in &opened.parts {
        assert!(
            part.is_present() || !part.missing.is_empty(),
            "{}",
            part.part
        );
    }
}

#[test]
fn hostile_text_stays_text() {
    const HOSTILE: &str = "</style></pre><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\" onload=\"x | `a` [l](javascript:x)";
    let mut test = decided_ledger();
    let plan = iterated::plan(EXPERIMENT, "m-it");
    let digest = planned::manifest(&plan).digest().to_hex();
    let deviated = json!({
        "digest": digest, "impact": HOSTILE, "known_at_seq": 3, "outcome_seen": true, "rule_path": "iteration.eta_micro",
        "what": HOSTILE, "why": HOSTILE,
    });
    let payload = valued::payload(clover::event::Kind::ManifestDeviated, &deviated);
    say(&mut test, payload);
    let bundle = bundle_of(&test.ledger);
    // Where a long run may break, it says so, and nothing else.
    let html = page::html(&iteration::document(&bundle)).replace("<wbr>", "");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for marked in [
        "<script",
        "<img",
        "\u{202e}",
        "\" onload=\"",
        "javascript:x)</a>",
    ] {
        assert!(!html.contains(marked), "{marked}");
    }
    assert_eq!(html.matches("</style>").count(), 1);
    // Nothing comes from outside.
    for outside in ["http://", "https://", "url(", "@import", "src="] {
        let rest = html.replace("http://www.w3.org/2000/svg", "");
        let rest = rest.replace("&lt;img src=x", "");
        assert!(!rest.contains(outside), "{outside}");
    }
    let text = markdown::markdown(&iteration::document(&bundle));
    assert!(text.contains("\\<script\\>") && text.contains("\\[l\\](javascript:x)"));
    assert!(!text.replace("\\<", "").contains("<script"));
}
