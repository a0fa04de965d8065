//! Labels that confirm keeps sealed are not missing; what nobody can say why it has no label is.

use serde_json::json;

use super::Desk;

const ROWS: usize = 240;

/// A ledger with the scores of two judges, and designs that label every row or seal it for confirm.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all --custodian cem");
    desk.ok("experiment register arena --title Arena --purpose testing");
    for (judge, shift) in [("near", 0), ("far", 7)] {
        let line = |at: usize| {
            let score = ((at * (1 + shift)) % 100) as f64 / 100.0;
            json!({"prompt_id": format!("p{at}"), "judge_score": score}).to_string() + "\n"
        };
        let text: String = (0..ROWS).map(line).collect();
        desk.file("base_responses.jsonl", &text);
        desk.ok(&format!("import cje base_responses.jsonl --judge {judge}"));
    }
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("label design new hold --purpose confirm --probability 1");
    desk
}

/// Labels of some rows: near the score of the first judge.
fn labels(desk: &mut Desk, rows: impl Iterator<Item = usize>) {
    let line = |at: usize| format!("p{at},base,{}\n", (at % 100) as f64 / 100.0);
    let lines: String = rows.map(line).collect();
    desk.file("labels.csv", &("item,policy,label\n".to_owned() + &lines));
}

/// What is said of the policy's value, and of two judges, that labels are missing.
fn misses(desk: &mut Desk) -> [bool; 2] {
    let lines = [
        "estimate base --judge near --dry-run",
        "judge compare near far --dry-run",
    ];
    lines.map(|line| {
        let ran = desk.ok(line);
        let said: Vec<&str> = ran.out.split_whitespace().collect();
        format!("{} {}", said.join(" "), ran.err).contains("labels are missing")
    })
}

#[test]
fn labels_that_confirm_keeps_sealed_are_not_missing() {
    let mut desk = desk();
    desk.ok("experiment split arena --seed 1 --hashed");
    labels(&mut desk, 0..ROWS);
    desk.ok("import labels labels.csv --design calib --seal hold --reveal-by 2027-06-01 --yes");
    assert_eq!(misses(&mut desk), [false, false]);
}

#[test]
fn labels_that_somebody_left_out_are_missing_beside_sealed_ones() {
    let mut desk = desk();
    desk.ok("experiment split arena --seed 1 --hashed");
    // Every third row was labelled, and its label is not handed in.
    labels(&mut desk, (0..ROWS).filter(|at| at % 3 != 0));
    desk.ok("import labels labels.csv --design calib --seal hold --reveal-by 2027-06-01 --yes");
    assert_eq!(misses(&mut desk), [true, true]);
}

#[test]
fn nobody_splits_off_a_cluster_whose_labels_could_be_read() {
    let mut desk = desk();
    labels(&mut desk, (0..ROWS).filter(|at| at % 2 == 0));
    desk.ok("import labels labels.csv --design calib");
    // Nobody who has seen labels of a cluster puts it into confirm.
    desk.refused(
        &["experiment", "split", "arena", "--seed", "1", "--hashed"],
        11,
        &["no open label of a confirm cluster"],
    );
    assert_eq!(misses(&mut desk), [true, true]);
}
