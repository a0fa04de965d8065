//! Plans that fit their data: drafted from the fit window, held against the rows before an iteration opens, sized for few
//! labels.

use clover::event::payload::manifest::ConfirmTest;
use clover::num::Count;
use clover::num::Micro;
use clover::stats::folds;
use clover::workflow::iterate::draft::Profile;
use clover::workflow::simulate::Fault;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::iteration::Design;
use clover::workflow::simulate::iteration::Proposal;
use clover::workflow::simulate::iteration::Simulation;
use clover::workflow::simulate::iteration::Summary;
use serde_json::Value;

use super::Desk;
use super::iterate;

const SIZES: &str = "--window 900 --confirm 300";
const DRAFT: &str = "prereg new --template iteration --from-data";

/// Whether a row of the data set falls into the fit part, by the split of the desk.
fn is_fit(row: &Value, t1: &str) -> bool {
    let item = row["prompt_id"].as_str().unwrap();
    row["sampled_at"].as_str().unwrap() < t1 && folds::hash_mod(item, 3, 1) != 2
}

/// Other labels for the rows that `which` says.
fn relabelled(desk: &Desk, which: impl Fn(&Value, &str) -> bool) -> usize {
    let truth = std::fs::read(desk.at.join("sim/truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let t1 = truth["windows"]["t1"].as_str().unwrap();
    let path = desk.at.join("sim/responses/base_responses.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut changed = 0;
    let lines = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        if which(&row, t1) {
            let label = row["oracle_label"].as_f64().unwrap();
            row["oracle_label"] = ((1.0 - label) * 1e6).round().into();
            let millionths = row["oracle_label"].as_f64().unwrap();
            row["oracle_label"] = (millionths / 1e6).into();
            changed += 1;
        }
        row.to_string() + "\n"
    });
    let text: String = lines.collect();
    std::fs::write(&path, text).unwrap();
    changed
}

/// The plan and what it rests on, as drafted.
fn drafted(desk: &mut Desk) -> (String, String) {
    desk.ok(&format!("{DRAFT} -o plan.yaml"));
    let read = |name: &str| std::fs::read_to_string(desk.at.join(name)).unwrap();
    (read("plan.yaml"), read("plan.basis.json"))
}

/// The plan with what a draft leaves to a person.
fn filled(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("# FILL:") {
        None => line.to_owned(),
        Some((field, _)) => {
            let value = if field.starts_with("manifest") {
                "m-1"
            } else {
                "something"
            };
            format!("{} {value}", field.trim_end())
        }
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn a_draft_reads_the_labels_of_fit_and_of_nothing_else() {
    let mut plain = iterate::desk(SIZES);
    let first = drafted(&mut plain);
    let changes = |which: fn(&Value, &str) -> bool| {
        iterate::desk_of(SIZES, move |desk| assert!(relabelled(desk, which) > 100))
    };
    // Every label of dev and every sealed one of confirm is another: the plan is the same, byte for byte.
    let mut elsewhere = changes(|row, t1| !is_fit(row, t1));
    assert_eq!(drafted(&mut elsewhere), first);
    // Those of fit are what it is made of.
    let mut within = changes(is_fit);
    assert_ne!(drafted(&mut within), first);
}

#[test]
fn a_draft_is_checked_signed_and_opened_as_it_is() {
    let mut desk = iterate::desk(SIZES);
    let before = desk.head();
    let told = desk
        .ok(&format!("{DRAFT} --label-price 0.5 --json -o plan.yaml"))
        .json();
    assert_eq!(desk.head(), before, "a draft appends nothing");
    let draft = &told["data"]["draft"];
    let rows = &draft["rows"];
    let (fit, dev, confirm) = (&rows["fit"], &rows["dev"], &rows["confirm"]);
    let sum = [fit, dev, confirm]
        .map(|of| of.as_u64().unwrap())
        .iter()
        .sum::<u64>();
    assert!((1_100..=1_200).contains(&sum), "{draft:#}");
    // Twice the labels at half a coin each; the slice of the fault is in sight.
    let shows = draft["shows"].as_array().unwrap();
    let labels = |at: usize| shows[at]["labels"].as_u64().unwrap();
    let cost = shows[1]["cost"].as_f64().unwrap();
    assert!((cost - (labels(1) - labels(0)) as f64 * 0.5).abs() < 1e-9);
    let detects = |at: usize| shows[at]["detectable"].as_f64().unwrap();
    assert!(
        detects(3) < detects(1) && detects(1) < detects(0),
        "{draft:#}"
    );
    // The fault lies in a crossing of fields, so that single fields show little of it: what they show is said as it is.
    let in_sight = draft["in_sight"]["effect"].as_f64().unwrap();
    assert!(in_sight > 0.0 && in_sight < detects(0), "{draft:#}");
    // What is left to fill is what only a person can say.
    let text = std::fs::read_to_string(desk.at.join("plan.yaml")).unwrap();
    let left: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("# FILL"))
        .collect();
    assert_eq!(left.len(), 3, "{left:#?}");
    desk.refused(
        &["prereg", "check", "plan.yaml"],
        4,
        &["3 fields are to be filled"],
    );
    let file = desk.file("plan.yaml", &filled(&text));
    let checked = desk.ok(&format!("prereg check {file} --json")).json();
    assert_eq!(
        checked["data"]["unmet"].as_array().unwrap().len(),
        0,
        "{checked:#}"
    );
    // The digest of what it rests on is signed with it, and the file beside it goes into the ledger where it is that one.
    let basis = std::fs::read_to_string(desk.at.join("plan.basis.json")).unwrap();
    desk.file("plan.basis.json", &format!("{basis} "));
    desk.refused(&["prereg", "sign", &file], 11, &["no such blob"]);
    desk.file("plan.basis.json", &basis);
    desk.ok(&format!("prereg sign {file}"));
    let annex = text
        .lines()
        .find(|line| line.starts_with("annex: "))
        .unwrap();
    let blake3 = annex.split('"').nth(3).unwrap();
    desk.ok(&format!("blob get {blake3} -o stored.json"));
    let stored = std::fs::read_to_string(desk.at.join("stored.json")).unwrap();
    assert_eq!(stored, basis);
    let opened = desk.ok("iterate open it-1 --manifest m-1 --json").json();
    assert_eq!(opened["data"]["reach"]["out_of_reach"], false, "{opened:#}");
}

#[test]
fn what_cannot_be_drafted_is_refused_with_the_way_on() {
    let mut desk = Desk::with_ledger();
    let words: Vec<&str> = DRAFT.split(' ').collect();
    desk.refused(&words, 5, &["no rubric of exp-1", "clover rubric register"]);
    let words = ["prereg", "new", "--template", "gate", "--from-data"];
    desk.refused(&words, 2, &["--from-data: expected --template iteration"]);
    let few = ["prereg", "new", "--template", "iteration", "--labels", "20"];
    desk.refused(&few, 2, &["--labels 20: expected 160 to"]);
}

#[test]
fn a_plan_that_its_data_cannot_reach_asks_before_it_opens() {
    let mut desk = iterate::desk(SIZES);
    let plan = iterate::plan(&mut desk);
    let file = desk.file("it.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
    let before = desk.head();
    let open = ["iterate", "open", "it-1", "--manifest", "m-it"];
    let says = [
        "which its data can never reach",
        "rows of 4,000 planned",
        "confirm has 300 rows of 3,000 planned",
        "iteration.confirm_rows: expected at least",
        "clover prereg new --template iteration --from-data",
        "clover iterate open it-1 --manifest m-it --yes",
    ];
    desk.refused(&open, 2, &says);
    assert_eq!(desk.head(), before, "nothing was written");
    // A rehearsal asks nothing.
    desk.ok("iterate open it-1 --manifest m-it --dry-run");
    let opened = desk
        .ok("iterate open it-1 --manifest m-it --yes --json")
        .json();
    let reach = &opened["data"]["reach"];
    assert_eq!(reach["out_of_reach"], true);
    assert_eq!(reach["parts"][2]["there"], 300);
    // It is open, and is not asked about again.
    desk.ok("iterate open it-1 --manifest m-it");
}

/// What a plan of the small profile does to simulated data: whether the fix of a gross fault is accepted, and a patch
/// without merit.
fn simulated(labels: usize, share_micro: i64, runs: u64) -> (Summary, Summary) {
    let small = Profile::SMALL;
    let mut design = Design::standard([labels - 2 * (labels / 4), labels / 4, labels / 4]);
    design.cells = Some(1);
    design.thresholds.confirm_test = ConfirmTest::T;
    design.thresholds.hypotheses = Count::new(small.hypotheses).unwrap();
    let micro = |value: f64| Micro::parse(&format!("{value:.6}")).unwrap().0;
    design.thresholds.tau_micro = micro(small.tau);
    design.thresholds.ks_max_micro = micro(small.shift_max.0);
    design.thresholds.w1_max_micro = micro(small.shift_max.1);
    design.thresholds.drift_max_micro = micro(small.drift_max);
    let setting = Setting {
        fault: Fault::Citations,
        share_micro: Micro::new(share_micro).unwrap(),
        slices: 4,
        ..Setting::default()
    };
    let run = |proposal| {
        let simulation = Simulation::new(design.clone(), proposal, setting, 2_000, 7).unwrap();
        Summary::of(&simulation.runs(0, runs).unwrap())
    };
    (run(Proposal::Fix), run(Proposal::Null))
}

#[test]
fn about_five_hundred_labels_show_a_gross_fault_and_no_small_one() {
    let runs = if crate::coverage::is_slow() { 200 } else { 30 };
    let (gross, null) = simulated(500, 150_000, runs);
    let (slight, _) = simulated(500, 20_000, runs);
    let share = |of: &Summary| of.accepted.share.unwrap();
    println!(
        "500 labels: a fault on 15 % of rows {:.2}, on 2 % {:.2}, no merit {:.2}",
        share(&gross),
        share(&slight),
        share(&null)
    );
    assert!(share(&slight) <= 0.2, "{slight:?}");
    assert!(null.accepted.low <= 0.05, "{null:?}");
    assert!(share(&gross) >= 0.5, "{gross:?}");
}
