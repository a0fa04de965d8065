//! The data sets that ship, decided by the functions that decide iterations: one whose patch is accepted, with every gate
//! at work, and one whose patch passes on dev by chance and dies on confirm.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use clover::attack::Operator;
use clover::attack::search;
use clover::event::payload::Verdict;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::predicate::AttackUplift;
use clover::event::payload::predicate::Evidence;
use clover::event::payload::predicate::Gaming;
use clover::event::payload::predicate::GateId;
use clover::event::payload::predicate::Thresholds;
use clover::ground::digest::Digest;
use clover::num::Count;
use clover::num::Finite;
use clover::num::Micro;
use clover::rubric::Context;
use clover::rubric::Family;
use clover::rubric::Rubric;
use clover::rubric::engine::Rules;
use clover::rubric::extract::recorded::Traces;
use clover::rubric::extract::vocabulary;
use clover::stats::calibrator::Mode;
use clover::stats::residuals::Terms;
use clover::workflow::battery;
use clover::workflow::battery::Scorer;
use clover::workflow::battery::Seed;
use clover::workflow::iterate::compute::Anchor;
use clover::workflow::iterate::compute::Candidate;
use clover::workflow::iterate::compute::IterationRows;
use clover::workflow::iterate::compute::SliceFamily;
use clover::workflow::iterate::compute::Table;
use clover::workflow::iterate::compute::audit;
use clover::workflow::iterate::compute::evidence::Models;
use clover::workflow::iterate::compute::fit;
use clover::workflow::iterate::compute::fit::Fitted;
use clover::workflow::iterate::compute::fit::Settings;
use clover::workflow::iterate::compute::rows::Scored;
use clover::workflow::iterate::compute::uncertainty;
use clover::workflow::judge::builtin::Builtin;
use clover::workflow::predicate;
use clover::workflow::simulate::Fault;
use clover::workflow::simulate::Kind;
use clover::workflow::simulate::Row;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::World;
use clover::workflow::simulate::files;
use clover::workflow::simulate::files::File;
use clover::workflow::simulate::iteration::Design;
use clover::workflow::simulate::truth;
use clover::workflow::split;
use clover::workflow::split::Apart;

/// A data set under `fixtures/demo`.
struct Shipped {
    folder: &'static str,
    seed: u64,
    setting: Setting,
    /// The rubric to start from, where it is not the world's.
    rubric: Option<String>,
    /// The patch that is put to the test, where it is not the true fix.
    patch: Option<&'static str>,
    eta_micro: i64,
    /// Slices are domains, not domains by level.
    by_domain: bool,
}

/// A cap that was tuned on the dev rows of `overfitted`.
const TUNED: &str = "patch:
  family: length_bias_cap
  id: cap-long-answers
  rationale: Long answers look over-scored on the development rows; cap them.
  changes:
    guards.length_bias_cap:
      if_tokens_gt: 114
      max_raw_score: 0.6
  constraints:
    max_tokens_added: 10
    affects_rescore: false
";

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

fn shipped() -> [Shipped; 2] {
    let setting = Setting {
        confirm_rows: 600,
        slices: 4,
        window_rows: 900,
        ..Setting::default()
    };
    let mended = Shipped {
        folder: "mended",
        seed: 6,
        setting,
        rubric: None,
        patch: None,
        eta_micro: 1_000,
        by_domain: false,
    };
    let open = files::rubric_yaml(Fault::Citations);
    let closed = open.replace("mismatch_penalty: 0\n", "mismatch_penalty: 0.3\n");
    assert_ne!(open, closed);
    let overfitted = Shipped {
        folder: "overfitted",
        seed: 31,
        setting: Setting {
            confirm_rows: 300,
            label_noise_micro: micro(120_000),
            share_micro: micro(0),
            window_rows: 480,
            ..setting
        },
        rubric: Some(closed),
        patch: Some(TUNED),
        eta_micro: 500,
        by_domain: true,
    };
    [mended, overfitted]
}

impl Shipped {
    fn world(&self) -> World {
        World::new(self.setting, self.seed).unwrap()
    }

    fn rows(&self) -> Vec<Row> {
        let world = self.world();
        let numbers = 0..world.rows();
        numbers
            .map(|number| world.row(Kind::Base, number))
            .collect()
    }

    /// The rubric, and the rubric with the patch.
    fn rules(&self) -> (Rules, Rules) {
        let fault = self.setting.fault;
        let yaml = self
            .rubric
            .clone()
            .unwrap_or_else(|| files::rubric_yaml(fault));
        let patch = self
            .patch
            .map_or_else(|| files::patch_yaml(fault), str::to_owned);
        let rubric = Rubric::parse(yaml.as_bytes()).unwrap();
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
        let (_, checked) = clover::rubric::check(patch.as_bytes(), &context).unwrap();
        assert_eq!(checked.needs_rescore, Some(false));
        (rubric.rules(), checked.rubric.rules())
    }

    fn files(&self) -> Vec<File> {
        let mut all = files::files(&self.world(), &self.rows());
        for file in &mut all {
            match (file.path, &self.rubric, self.patch) {
                ("rubric.yaml", Some(yaml), _) => file.bytes = yaml.clone().into_bytes(),
                ("patch.yaml", _, Some(yaml)) => file.bytes = yaml.as_bytes().to_vec(),
                _ => {}
            }
        }
        all
    }

    fn truth(&self) -> File {
        let (before, after) = self.rules();
        let world = self.world();
        let worth = truth::of_rules(&world, (&before, &after), truth::FRESH_MIN, &mut |_| {});
        let bytes = files::truth_json(&world, self.seed, Some(&worth.unwrap()));
        let mut text = String::from_utf8(bytes).unwrap();
        if self.patch.is_some() {
            text = text.replace("\"verify-sources\"", "\"cap-long-answers\"");
        }
        File {
            path: "truth.json",
            bytes: text.into_bytes(),
        }
    }
}

fn folder(of: &Shipped) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/demo")
        .join(of.folder)
}

#[test]
fn the_shipped_data_are_what_their_worlds_say() {
    let update = std::env::var_os("UPDATE").is_some();
    for of in shipped() {
        let mut all = of.files();
        if update || std::env::var_os("RUN_SLOW_TESTS").is_some() {
            all.push(of.truth());
        }
        for file in all {
            let path = folder(&of).join(file.path);
            if update {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &file.bytes).unwrap();
            }
            let found = std::fs::read(&path).unwrap_or_default();
            let (of, path) = (of.folder, file.path);
            assert!(
                found == file.bytes,
                "{of}/{path}: run UPDATE=1 cargo test --test it demo_data"
            );
        }
    }
}

fn scores(rows: &[Row], rules: &Rules) -> Vec<f64> {
    rows.iter()
        .map(|row| truth::score(row, rules).unwrap())
        .collect()
}

/// The rows of an iteration with this data set, split under seed 1.
fn table(of: &Shipped) -> (Table, Candidate) {
    let (world, rows, (before, after)) = (of.world(), of.rows(), of.rules());
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
    let part = |row: &Row| {
        let holds = |part: &SplitPart| parts.members[part].contains(&row.item);
        SplitPart::ALL.into_iter().find(holds)
    };
    let cell = |row: &Row| {
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
        let rows: Vec<Row> = (0..files::ANCHOR_ROWS)
            .map(|number| world.row(kind, number))
            .collect();
        anchors.push(Anchor {
            policy: policy.parse().unwrap(),
            scored: Scored::of(scores(&rows, &before)),
            covariates: Vec::new(),
        });
        patched.push(Scored::of(scores(&rows, &after)));
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
        scored: Scored::of(scores(&rows, &before)),
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
    let candidate = Candidate {
        patch: Digest::sha256(b"patch"),
        kappa: 3,
        scored: Scored::of(scores(&rows, &after)),
        anchors: patched,
    };
    (table.unwrap(), candidate)
}

/// P7 of the patched rubric: the built-in judge, 120 rows that are in no data set, 150 tries.
fn gaming(of: &Shipped, patched: &Fitted) -> Evidence {
    let (world, (_, rules)) = (of.world(), of.rules());
    let rows: Vec<Row> = (0..120)
        .map(|number| world.row(Kind::Fresh, number))
        .collect();
    let citations = World::citations(&rows);
    let traces: Vec<Traces> = rows
        .iter()
        .map(|row| Traces::of(row.call.as_deref()))
        .collect();
    let seeds: Vec<Seed<'_>> = rows
        .iter()
        .zip(&traces)
        .map(|(row, traces)| Seed {
            item: &row.item,
            policy: &row.policy,
            draw: row.draw(),
            prompt: &row.prompt,
            response: &row.response,
            traces: Some(traces),
        })
        .collect();
    let mut judge = Builtin;
    let mut scorer = Scorer {
        judge: &mut judge,
        citations: Some(&citations),
        facts: None,
        rules: &rules,
        calibrated: &|score, _| patched.calibrator.predict(score.value() as f64 / 1e6, &[]),
    };
    let ran = battery::run(&seeds, &mut scorer);
    let uplift = |(operator, found): (Operator, clover::stats::predicate::Operator)| AttackUplift {
        attack: operator.to_string().parse().unwrap(),
        mean: Finite::new(found.mean).unwrap(),
        mean_absolute: Finite::new(found.mean_absolute).unwrap(),
        seeds: Count::new(found.seeds as u64).unwrap(),
        tighter_max: None,
    };
    let evaluated = battery::evaluate(&ran, &|_| None);
    let attacks = evaluated
        .iter()
        .filter_map(|one| Some(uplift((one.operator, one.found?))));
    let attacks = attacks.collect();
    let texts: Vec<&str> = seeds.iter().map(|seed| seed.response).collect();
    let seed = search::seed("it-1", &Digest::sha256(b"patch"));
    let found = search::run(&texts, 150, seed, |at, text| scorer.score(&seeds[at], text));
    let worst = found.unwrap().worst().map(|worst| worst.mean);
    Evidence::P7(Gaming {
        attacks,
        regressions: Count::default(),
        searched: worst.and_then(Finite::new),
    })
}

/// Gates that do not pass on dev and on confirm, and the change of squared error on each.
fn decided(of: &Shipped) -> (Vec<GateId>, Vec<GateId>, [f64; 2]) {
    let (table, candidate) = table(of);
    let mut thresholds: Thresholds = Design::standard([1, 1, 1]).thresholds;
    thresholds.eta_micro = micro(of.eta_micro);
    // Two families of patches are registered.
    thresholds.hypotheses = Count::new(2).unwrap();
    let settings = Settings {
        mode: Mode::Monotone,
        folds: 5,
        seed: 1,
    };
    let base = fit::fit(&table, &table.data().scored, settings).unwrap();
    let audited = audit::audit(&table, &base, &Terms::default()).unwrap();
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
    let mut dev = models.dev(&compared).unwrap();
    dev.push(gaming(of, &patched));
    let confirm = models.confirm(&compared, share, 200, [1; 32]).unwrap();
    let not_passed = |all: &[Evidence]| -> Vec<GateId> {
        let passes = |evidence: &&Evidence| {
            predicate::verdicts(evidence, &thresholds).recommended == Verdict::Pass
        };
        let failing = all.iter().filter(|evidence| !passes(evidence));
        failing.map(Evidence::gate).collect()
    };
    let change = |part| compared.part(part).unwrap().mean().mean;
    let changes = [change(SplitPart::Dev), change(SplitPart::Confirm)];
    let found = (not_passed(&dev), not_passed(&confirm), changes);
    println!("{}: share {share:?}, {found:?}", of.folder);
    found
}

#[test]
fn a_true_fix_passes_every_gate_and_a_tuned_patch_dies_on_confirm() {
    let [mended, overfitted] = shipped();
    let (dev, confirm, _) = decided(&mended);
    assert!(dev.is_empty() && confirm.is_empty(), "{dev:?} {confirm:?}");
    let (dev, confirm, changes) = decided(&overfitted);
    assert!(dev.is_empty(), "{dev:?}");
    assert!(confirm.contains(&GateId::P8), "{confirm:?}");
    assert!(changes[0] <= -0.0005 && changes[1] > 0.0, "{changes:?}");
}
