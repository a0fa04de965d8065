//! `clover gate estimate`: labels of a sample beside a gate's verdict, on the command line.

use clover::ground::digest::Digest;

use super::Desk;
use super::gate;

/// A desk with a gate on forty units that its judge's scores leave undecided.
fn undecided() -> Desk {
    let mut desk = gate::opened_as(
        |plan| {
            plan.replace(
                "exposure_cap: 2}",
                "exposure_cap: 2, label_policy: {rule: each unit by itself, pi_min_micro: 900000}}",
            )
            .replace("n_min: 5", "n_min: 40")
            .replace("null_margin_micro: 0", "null_margin_micro: 50000")
            .replace("  alpha_kill_micro: 50000\n", "")
        },
        |_| {},
    );
    desk.ok("exposure open m-1");
    let mut lines = String::new();
    for (at, unit) in gate::units().iter().enumerate() {
        for (policy, score) in [
            ("baseline", 500_000),
            ("candidate", [530_000, 580_000][at % 2]),
        ] {
            lines += &format!(
                "{{\"kind\":\"score.recorded\",\"experiment\":\"exp-1\",\"data\":{{\"draw\":0,\"item\":\"{unit}\",\"judge\":\"judge-1\",\"policy\":\"{policy}\",\"score_micro\":{score}}}}}\n"
            );
        }
    }
    let bulk = desk.file("scores.jsonl", &lines);
    desk.ok(&format!("append --bulk {bulk}"));
    let observed = desk.run("gate observe m-1 --all --json").json();
    assert_eq!(observed["data"]["look"]["standing"], "undecided_at_n_max");
    desk
}

fn labels(units: &[String]) -> String {
    let of_unit = |(at, unit): (usize, &String)| {
        [("baseline", 300_000), ("candidate", [700_000, 720_000][at % 2])].map(|(policy, value)| {
            format!(
                "{{\"kind\":\"label.recorded\",\"experiment\":\"exp-1\",\"data\":{{\"design\":\"beside\",\"draw\":0,\"item\":\"{unit}\",\"policy\":\"{policy}\",\"purpose\":\"audit\",\"rater\":\"Lena\",\"value_micro\":{value}}}}}\n"
            )
        })
    };
    units.iter().enumerate().flat_map(of_unit).collect()
}

#[test]
fn labels_of_a_sample_stand_beside_the_verdict() {
    let mut desk = undecided();
    desk.ok("key new lena --role labeler");
    // Before the decision nobody can know whom the next checkpoint draws.
    desk.refused(&["gate", "estimate", "m-1"], 11, &["once it is decided"]);
    desk.run("gate decide m-1");
    let drawn = desk.ok("gate estimate m-1").out;
    let drawn: Vec<String> = drawn
        .lines()
        .filter(|line| line.starts_with("unit-"))
        .map(ToOwned::to_owned)
        .collect();
    // Each unit by itself with a chance of .9: all 40 of them once in 70 ledgers.
    assert!((25..=40).contains(&drawn.len()), "{drawn:?}");
    let design =
        r#"{"design":"beside","inclusion_micro":900000,"protocol":"protocol-1","purpose":"audit"}"#;
    desk.ok_words(&[
        "record",
        "label.design_registered",
        "--experiment",
        "exp-1",
        "--data",
        design,
    ]);
    let all = desk.file("labels.jsonl", &labels(&drawn[1..]));
    desk.ok(&format!("append --bulk {all}"));
    // A unit that was drawn may not be left out.
    let lacks = format!("unit {} was drawn for labels", drawn[0]);
    let estimate = ["gate", "estimate", "m-1", "--design", "beside"];
    desk.refused(&estimate, 11, &[&lacks]);
    let first = desk.file("first.jsonl", &labels(&drawn[..1]));
    desk.ok(&format!("append --bulk {first}"));
    assert_eq!(
        desk.ok("gate estimate m-1")
            .out
            .lines()
            .filter(|line| line.starts_with("unit-"))
            .count(),
        drawn.len()
    );
    let before = desk.head();
    desk.ok("gate estimate m-1 --design beside --dry-run");
    assert_eq!(desk.head(), before);
    let said = desk.ok("gate estimate m-1 --design beside --json").json();
    let said = &said["data"]["estimated"];
    assert_eq!(said["class"], "asymptotic");
    assert_eq!(said["grade"], "asymptotic");
    assert_eq!(said["labels"], drawn.len());
    // Labels differ by .4 or .42, and the judge saw .03 or .08 of it.
    assert_eq!(said["shows"], true, "{said:#}");
    let page = desk.ok("gate show m-1").out;
    for words in [
        "beside it, asymptotic",
        "grade asymptotic",
        "it decides",
        "UNDECIDED",
        "exact",
    ] {
        assert!(page.contains(words), "{words:?} is not in:\n{page}");
    }
    assert!(
        page.lines().all(|line| line.chars().count() <= 100),
        "{page}"
    );
    // The gate is as undecided as before, and promotes nothing.
    let shown = desk.ok("gate show m-1 --json").json();
    assert_eq!(shown["data"]["decided"]["class"], "exact");
    assert_eq!(shown["data"]["replay_identical"], true);
    let candidate = Digest::sha256(b"new").to_hex();
    for grade in ["asymptotic", "certified"] {
        let data =
            format!(r#"{{"candidate_digest":"{candidate}","gates":["m-1"],"grade":"{grade}"}}"#);
        desk.refused(
            &["record", "promotion.issued", "--data", &data],
            11,
            &["a decision of m-1 that its claim holds"],
        );
    }
    let replayed = desk.run("replay --all --json");
    assert_eq!(replayed.code, 0, "{}", replayed.out);
    let recomputed = desk.ok("verify --recompute --json").json();
    assert_eq!(recomputed["verdict"], "verified", "{recomputed:#}");
}
