//! The data sets that ship, decided by the functions that decide iterations: one whose patch is accepted, and one whose
//! patch passes on dev by chance and dies on confirm. `cli::shipped` has the same on a ledger, with P0 and P7.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use clover::event::payload::Verdict;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::predicate::Criterion;
use clover::event::payload::predicate::Evidence;
use clover::event::payload::predicate::Thresholds;
use clover::ground::digest::Digest;
use clover::num::Count;
use clover::num::Micro;
use clover::rubric::Context;
use clover::rubric::Family;
use clover::rubric::Rubric;
use clover::rubric::engine::Rules;
use clover::rubric::extract::vocabulary;
use clover::stats::calibrator::Mode;
use clover::stats::residuals::SliceTerms;
use clover::workflow::iterate::compute::Anchor;
use clover::workflow::iterate::compute::IterationRows;
use clover::workflow::iterate::compute::ScoredRubric;
use clover::workflow::iterate::compute::SliceFamily;
use clover::workflow::iterate::compute::Table;
use clover::workflow::iterate::compute::audit;
use clover::workflow::iterate::compute::evidence::Models;
use clover::workflow::iterate::compute::fit;
use clover::workflow::iterate::compute::fit::Settings;
use clover::workflow::iterate::compute::rows::RubricScores;
use clover::workflow::iterate::compute::uncertainty;
use clover::workflow::predicate;
use clover::workflow::simulate::Kind;
use clover::workflow::simulate::SimulatedRow;
use clover::workflow::simulate::files;
use clover::workflow::simulate::files::File;
use clover::workflow::simulate::iteration::Design;
use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use clover::workflow::simulate::truth;
use clover::workflow::split;
use clover::workflow::split::Apart;

/// The rubric, and the rubric with the patch.
fn rules(of: &ShippedDataset) -> (Rules, Rules) {
    let rubric = Rubric::parse(of.rubric.as_bytes()).unwrap();
    let none = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let context = Context {
        rubric: &rubric,
        families: &[Family::EvidenceVerification, Family::LengthBiasCap].into(),
        frozen: &none.0,
        vocabulary: &vocabulary::tags(),
        unverified: None,
        ids: &none.1,
        hashes: &none.2,
    };
    let (patch, checked) = clover::rubric::check(of.patch.as_bytes(), &context).unwrap();
    assert_eq!(checked.needs_rescore, Some(false));
    assert_eq!(patch.id, of.patch_id);
    (rubric.rules(), checked.rubric.rules())
}

fn truth_of(of: &ShippedDataset) -> File {
    let world = of.world();
    let (before, after) = rules(of);
    let worth = truth::of_rules(&world, (&before, &after), truth::FRESH_MIN, &mut |_| {});
    File {
        path: "truth.json",
        bytes: files::truth_json(&world, of.seed, Some(&worth.unwrap())),
    }
}

fn folder(of: &ShippedDataset) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/demo")
        .join(of.name)
}

#[test]
fn the_shipped_data_are_what_their_worlds_say() {
    let update = std::env::var_os("UPDATE").is_some();
    for of in shipped() {
        let mut all = of.files();
        // A world's truth is about its own patch.
        let own = of.patch_id == files::patch_id(of.setting.fault);
        if own && (update || std::env::var_os("RUN_SLOW_TESTS").is_some()) {
            all.push(truth_of(&of));
        }
        for file in all {
            let path = folder(&of).join(file.path);
            if update {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &file.bytes).unwrap();
            }
            let found = std::fs::read(&path).unwrap_or_default();
            let (of, path) = (of.name, file.path);
            assert!(
                found == file.bytes,
                "{of}/{path}: run UPDATE=1 cargo test --test it demo_data"
            );
        }
    }
}

fn scores(rows: &[SimulatedRow], rules: &Rules) -> Vec<f64> {
    rows.iter()
        .map(|row| truth::score(row, rules).unwrap())
        .collect()
}

/// The rows of an iteration with this data set, split under seed 1.
fn table(of: &ShippedDataset) -> (Table, ScoredRubric) {
    let (world, rows, (before, after)) = (of.world(), of.rows(), rules(of));
    let (t1, _, t2) = world.times();
    let clusters: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (row.item.clone(), Some(row.sampled_at)))
        .collect();
    let apart = Apart::Time {
        t1,
        t2,
        gap_seconds: split::GAP_SECONDS_DEFAULT,
    };
    let parts = split::parts(&clusters, 1, apart).unwrap();
    let part = |row: &SimulatedRow| {
        let holds = |part: &SplitPart| parts.members[part].contains(&row.item);
        SplitPart::ALL.into_iter().find(holds)
    };
    let cell = |row: &SimulatedRow| {
        if of.by_domain {
            row.slice / 2
        } else {
            row.slice
        }
    };
    let cells = if of.by_domain { 2 } else { 4 };
    let mut anchors = Vec::new();
    let mut patched = Vec::new();
    for (policy, kind) in [("low", Kind::AnchorLow), ("high", Kind::AnchorHigh)] {
        let rows: Vec<SimulatedRow> = (0..files::ANCHOR_ROWS)
            .map(|number| world.row(kind, number))
            .collect();
        anchors.push(Anchor {
            policy: policy.parse().unwrap(),
            scored: RubricScores::of(scores(&rows, &before)),
            covariates: Vec::new(),
        });
        patched.push(RubricScores::of(scores(&rows, &after)));
    }
    let names: Vec<String> = rows.iter().map(|row| row.item.to_string()).collect();
    let table = Table::new(IterationRows {
        clusters: names.clone(),
        rows: names,
        parts: rows.iter().map(part).collect(),
        labels: rows
            .iter()
            .map(|row| Some(row.label.value() as f64 / 1e6))
            .collect(),
        inclusion: vec![Some(1.0); rows.len()],
        scored: RubricScores::of(scores(&rows, &before)),
        slices: vec![SliceFamily {
            id: "cell".parse().unwrap(),
            slices: (0..cells)
                .map(|cell| format!("c{cell}").parse().unwrap())
                .collect(),
            stakes: vec![0.5; cells],
            must_not_regress: vec![false; cells],
            of_row: rows.iter().map(|row| Some(cell(row))).collect(),
        }],
        anchors,
        ..IterationRows::default()
    });
    let candidate = ScoredRubric {
        patch: Digest::sha256(b"patch"),
        kappa: 3,
        scored: RubricScores::of(scores(&rows, &after)),
        anchors: patched,
    };
    (table.unwrap(), candidate)
}

/// Gates that do not pass on dev and on confirm, and the change of squared error on each.
fn decided(of: &ShippedDataset) -> (Vec<Criterion>, Vec<Criterion>, [f64; 2]) {
    let (table, candidate) = table(of);
    let mut thresholds: Thresholds = Design::standard([1, 1, 1]).thresholds;
    thresholds.eta_micro = Micro::new(of.eta_micro).unwrap();
    // Two families of patches are registered.
    thresholds.hypotheses = Count::new(2).unwrap();
    let settings = Settings {
        mode: Mode::Monotone,
        folds: 5,
        seed: 1,
    };
    let base = fit::fit(&table, &table.data().scored, settings).unwrap();
    let audited = audit::audit(&table, &base, &SliceTerms::default()).unwrap();
    let classified = audit::classified(&audited);
    let seeds: Vec<u64> = (1..=uncertainty::FOLD_SEEDS as u64).collect();
    let share = uncertainty::uncertainty(&table, &base, settings, &seeds).unwrap();
    let share = share.share.share();
    let eta = of.eta_micro as f64 / 1e6;
    let gain = uncertainty::promising_gain(&audited);
    assert!(!uncertainty::pauses(share, gain, eta), "{share:?}");
    let patched = fit::fit(&table, &candidate.scored, settings).unwrap();
    let models = Models {
        baseline: &base,
        patched: &patched,
        candidate: &candidate,
    };
    let compared = models.compared(&table, &classified, &thresholds);
    let dev = models.dev(&compared).unwrap();
    let confirm = models
        .confirm(&compared, share, (200, [1; 32]), None)
        .unwrap();
    let not_passed = |all: &[Evidence]| -> Vec<Criterion> {
        let passes = |evidence: &&Evidence| {
            predicate::verdicts(evidence, &thresholds).recommended == Verdict::Pass
        };
        let failing = all.iter().filter(|evidence| !passes(evidence));
        failing.map(Evidence::gate).collect()
    };
    let change = |part| compared.part(part).unwrap().mean().mean;
    let changes = [change(SplitPart::Dev), change(SplitPart::Confirm)];
    let found = (not_passed(&dev), not_passed(&confirm), changes);
    println!("{}: share {share:?}, {found:?}", of.name);
    found
}

#[test]
fn a_true_fix_passes_and_a_tuned_patch_dies_on_confirm() {
    let [mended, overfitted] = shipped();
    let (dev, confirm, _) = decided(&mended);
    assert!(dev.is_empty() && confirm.is_empty(), "{dev:?} {confirm:?}");
    let (dev, confirm, changes) = decided(&overfitted);
    assert!(dev.is_empty(), "{dev:?}");
    assert!(confirm.contains(&Criterion::P8), "{confirm:?}");
    assert!(changes[0] <= -0.0005 && changes[1] > 0.0, "{changes:?}");
}
