//! Histories of a gate, of an audit, and of somebody who asked to be forgotten.

use std::fmt::Write as _;

use super::at;
use super::founded;
use super::run;
use super::say;
use crate::cli::Desk;

/// Whoever runs a gate: each role is another's.
const PEOPLE: [&str; 4] = [
    "scorer --role scorer --machine --holder runner",
    "cem --role custodian --holder Cleo --seal",
    "bea --role arbiter --holder Bea",
    "rel --role releaser --holder Rolf",
];

/// Units of the gate.
const UNITS: u32 = 60;

/// A gate that is decided after 31 of its 60 units.
pub(super) fn stopped_gate() -> Desk {
    let mut desk = founded("ledger.example/stopped-gate", &PEOPLE);
    let (mut units, mut outcomes) = (String::new(), String::from("unit,baseline,candidate\n"));
    for unit in 1..=UNITS {
        writeln!(units, "unit-{unit}").unwrap();
        let hundredths = (30 + unit % 7 * 5, 55 + unit % 5 * 5);
        writeln!(
            outcomes,
            "unit-{unit},0.{:02},0.{:02}",
            hundredths.0, hundredths.1
        )
        .unwrap();
    }
    desk.file("units.txt", &units);
    desk.file("outcomes.csv", &outcomes);
    desk.file("old.txt", "rate it\n");
    desk.file("new.txt", "rate it by its sources\n");
    desk.file("judge.txt", "judge\n");
    say(
        &mut desk,
        &[
            "experiment register gate-1 --title Sources --purpose 'is the new prompt better'",
            "family open quarter --method spend --alpha 0.05 --members 3 --membership 'gates of this quarter'",
            "gate plan m-1 --units units.txt --baseline old.txt --candidate new.txt --judge judge.txt \
             --claim 'the new prompt scores higher' -o gate.yaml",
            "prereg sign gate.yaml",
        ],
    );
    at(&desk, "2026-11-02T14:30");
    say(&mut desk, &["prereg sign gate.yaml --countersign"]);
    at(&desk, "2026-11-03T09:00");
    say(
        &mut desk,
        &[
            "gate open m-1 --units units.txt --judge judge-1 --from outcomes.csv",
            "exposure open m-1",
        ],
    );
    at(&desk, "2026-11-04T10:00");
    say(&mut desk, &["gate observe m-1 --all --from outcomes.csv"]);
    at(&desk, "2026-11-04T10:20");
    say(&mut desk, &["gate decide m-1"]);
    at(&desk, "2026-11-05T11:00");
    say(&mut desk, &["gate promote m-1"]);
    desk
}

const AUDITS: &str = "template: transport
version: 1
manifest: audits-1
experiment: arena
title: Does the calibrator hold elsewhere?
hypothesis: {claim: what was fitted on base holds for clone and for brief, kind: measure}
transport:
  margin_micro: 100000
  alpha_micro: 50000
  family_size: 2
  power_micro: 800000
  residual_sd_micro: 100000
  bias_micro: 0
  clusters_min: 20
  labels_per_cluster: 1
  environments:
    - {environment: clone, clusters: 60, required: true}
    - {environment: brief, clusters: 60, required: true}
";

pub(super) const PEEKS: &str = "record budget.opened --data '{\"account\":\"confirm-peeks\",\"amount\":3,\"period\":\"quarter\",\
                                \"purpose\":\"peeks\",\"spenders\":[\"custodian\"],\"unit\":\"peek\"}'";

/// A number between -1/2 and 1/2, in millionths, that follows from two others.
fn noise(row: i64, policy: i64) -> i64 {
    let mixed = (row * 7_919 + policy * 104_729 + 12_345) % 1_000_003;
    mixed * 48_271 % 2_147_483_647 % 1_000_000 - 500_000
}

/// Simulated answers of three policies to 120 prompts. The judge sees no difference; people like `brief` less by .3.
fn answers(desk: &Desk) {
    for folder in ["scores", "probes"] {
        std::fs::create_dir_all(desk.at.join(folder)).unwrap();
    }
    for (policy, (name, off)) in [("base", 0), ("clone", 0), ("brief", -300_000)]
        .into_iter()
        .enumerate()
    {
        let (mut scores, mut probes) = (String::new(), String::new());
        for row in 0..120_i64 {
            let place = i64::try_from(policy).unwrap();
            let score = 100_000 + 800_000 * ((row * 37 + place * 11) % 120) / 120 / 10_000 * 10_000;
            let label = 100_000 + score * 3 / 4 + off + noise(row, place) * 24 / 100;
            let label = label.clamp(0, 1_000_000);
            let day = 1 + row % 28;
            let known = format!(
                "{{\"prompt_id\":\"q{row:03}\",\"judge_score\":0.{:02},\"sampled_at\":\"2026-10-{day:02}T08:00:00Z\"",
                score / 10_000
            );
            let labelled = format!(
                "{known},\"oracle_label\":{}.{:06}}}\n",
                label / 1_000_000,
                label % 1_000_000
            );
            let is_labelled = name == "base" && row % 2 == 0;
            scores += &if is_labelled {
                labelled.clone()
            } else {
                format!("{known}}}\n")
            };
            if name != "base" && row % 2 == 1 {
                probes += &labelled;
            }
        }
        let file = format!("{name}_responses.jsonl");
        desk.file(&format!("scores/{file}"), &scores);
        if !probes.is_empty() {
            desk.file(&format!("probes/{file}"), &probes);
        }
    }
}

/// A judge that is calibrated on one policy, and read on two others: on one of them it may not be.
pub(super) fn failed_audit() -> Desk {
    let lena = "lena --role labeler --holder Lena";
    let mut desk = founded(
        "ledger.example/failed-audit",
        &[&PEOPLE[..3], &[lena]].concat(),
    );
    answers(&desk);
    desk.file("plan.yaml", AUDITS);
    say(
        &mut desk,
        &[
            "experiment register arena --title 'Three models' --purpose 'may one calibrator be read on all of them'",
            "label design new calib --purpose calibrate --probability 0.5",
            "label design new probes --purpose audit --probability 0.5",
            "prereg sign plan.yaml",
            PEEKS,
        ],
    );
    at(&desk, "2026-11-03T09:00");
    say(&mut desk, &["import cje scores --labels"]);
    at(&desk, "2026-11-04T09:00");
    say(
        &mut desk,
        &[
            "import cje probes --seal probes --reveal-by 2027-06-01 --yes",
            "confirm seal probes",
        ],
    );
    at(&desk, "2026-11-05T09:00");
    let audited = run(&mut desk, "audit transport --yes");
    assert_eq!(audited.code, 10, "{}{}", audited.out, audited.err);
    at(&desk, "2026-11-05T10:00");
    say(&mut desk, &["estimate", "compare --all"]);
    desk
}

/// Answers with texts, of which one person asked for the erasure of theirs.
pub(super) fn erased_subject() -> Desk {
    let mut desk = founded("ledger.example/erased-subject", &PEOPLE[..3]);
    let mut rows = String::new();
    for row in 1..=12 {
        writeln!(
            rows,
            "{{\"prompt_id\":\"talk-{row:02}\",\"judge_score\":0.{},\"prompt\":\"Simulated question {row}: may I see my file?\",\
             \"response\":\"Simulated answer {row}: yes, after you have shown who you are.\",\"sampled_at\":\"2026-10-{row:02}T08:00:00Z\"}}",
            50 + row
        )
        .unwrap();
    }
    desk.file("base_responses.jsonl", &rows);
    say(
        &mut desk,
        &[
            "experiment register desk-1 --title 'Help desk' --purpose 'how well are people answered'",
        ],
    );
    at(&desk, "2026-11-03T09:00");
    say(
        &mut desk,
        &["import cje base_responses.jsonl --judge judge-1"],
    );
    let scores = desk.ok("log --kind score.recorded --json").json();
    let subject = scores["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["body"]["data"])
        .find(|data| data["item"] == "talk-07")
        .and_then(|data| data["prompt"]["subject"].as_str())
        .unwrap()
        .to_owned();
    at(&desk, "2026-11-12T16:00");
    let erase =
        format!("erase {subject} --basis 'request of the person, received on 11 November' --yes");
    say(&mut desk, &[&erase]);
    at(&desk, "2026-11-13T09:00");
    let note =
        "{\"text\":\"the person was told that the texts of talk-07 cannot be read any more\"}";
    say(
        &mut desk,
        &[&format!("record note.recorded --data '{note}'")],
    );
    desk
}
