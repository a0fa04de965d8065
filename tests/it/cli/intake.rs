//! Files become events: the real sample, twice; labels for one purpose; seals and peeks; and files that are wrong.

use std::path::Path;

use clover::ground::digest::Digest;
use serde_json::Value;

use super::Desk;
use super::says;
use crate::support::verifiers;
use crate::support::verifiers::Case;

const REVEAL_BY: &str = "2027-01-31T00:00:00.000000Z";

/// A person who holds every role but one, which is the custodian's.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 0.48");
    desk.ok("label design new probes --purpose audit --probability 0.05");
    desk
}

fn peeks(desk: &mut Desk) {
    let account = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", account]);
}

/// New and already recorded, by name.
fn counts(answer: &Value, name: &str) -> (u64, u64) {
    let pair = &answer["data"]["recorded"][name];
    (
        pair["new"].as_u64().unwrap(),
        pair["already"].as_u64().unwrap(),
    )
}

fn of_kind(desk: &mut Desk, kind: &str) -> usize {
    let text = desk.ok(&format!("log --kind {kind} --limit 10000 --json"));
    text.json()["data"]["entries"].as_array().unwrap().len()
}

fn imports(desk: &mut Desk, sample: &Path) -> [Value; 3] {
    let sample = sample.display();
    [
        format!("import cje {sample}/fresh_draws --labels --json"),
        format!(
            "import cje {sample}/probe_slice --seal probes --reveal-by {REVEAL_BY} --yes --json"
        ),
        format!("import cje {sample}/logged_data.jsonl --policy base --logprobs --json"),
    ]
    .map(|line| desk.ok(&line).json())
}

/// The walk of the sample: everything once, nothing twice, and both verifiers satisfied.
fn acceptance(sample: &Path) {
    let mut desk = desk();
    let [fresh, probes, logged] = imports(&mut desk, sample);
    assert_eq!(
        (counts(&fresh, "scores"), counts(&fresh, "labels")),
        ((4_000, 0), (480, 0))
    );
    assert_eq!(
        (counts(&probes, "scores"), counts(&probes, "sealed")),
        ((0, 150), (150, 0))
    );
    assert_eq!(
        (counts(&logged, "scores"), counts(&logged, "labels")),
        ((0, 1_000), (0, 480))
    );
    assert_eq!(counts(&logged, "logprobs"), (1_000, 0));
    for answer in [&fresh, &probes, &logged] {
        assert_eq!(answer["data"]["gap"], "not_checked");
        assert_eq!(answer["data"]["grade"], "EXPLORATORY");
    }
    for (kind, count) in [
        ("score.recorded", 4_000),
        ("label.recorded", 480),
        ("label.sealed", 150),
        ("logprob.recorded", 1_000),
        ("data.ingested", 8),
    ] {
        assert_eq!(of_kind(&mut desk, kind), count, "{kind}");
    }
    let head = desk.head();
    for answer in imports(&mut desk, sample) {
        assert_eq!(answer["verdict"], "already_recorded");
    }
    assert_eq!(desk.head(), head);
    desk.ok("export jsonl -o out --blobs");
    if verifiers::python() {
        let read = |name: &str| std::fs::read(desk.at.join("out").join(name)).unwrap();
        let case = Case {
            ledger: read("ledger.jsonl"),
            checkpoint: Some(read("checkpoint")),
            ..Case::default()
        };
        let folder = desk.path("theirs");
        case.write(&folder);
        let outcome = verifiers::theirs(&case.arguments(&folder));
        assert_eq!(outcome.first, None, "{:?}", outcome.all);
    }
}

#[test]
fn the_sample_without_texts_is_taken_in_once() {
    acceptance(&verifiers::repository().join("fixtures/reference/arena"));
}

#[test]
fn the_sample_with_texts_is_taken_in_once() {
    let sample = std::env::var_os("CLOVER_ARENA_SAMPLE").map(std::path::PathBuf::from);
    match sample.filter(|sample| sample.is_dir()) {
        Some(sample) => acceptance(&sample),
        None => println!("skipped: CLOVER_ARENA_SAMPLE names no folder with the sample"),
    }
}

fn line(id: &str, score: &str, label: Option<&str>) -> String {
    let label = label.map_or(String::new(), |label| format!(r#","oracle_label":{label}"#));
    format!(
        r#"{{"prompt_id":"{id}","judge_score":{score},"draw_idx":0,"prompt":"Why {id}?","response":"So."{label}}}"#
    ) + "\n"
}

fn five() -> String {
    (1..=5)
        .map(|i| line(&format!("p{i}"), &format!("0.{i}"), Some("0.5")))
        .collect()
}

#[test]
fn texts_are_private_and_a_half_recorded_file_is_completed() {
    let mut desk = desk();
    // A part of the file is on record already, as after a run that was cut.
    let known: String = ["p1", "p2"]
        .iter()
        .zip([100_000, 200_000])
        .map(|(id, score)| {
            format!(
                r#"{{"kind":"score.recorded","experiment":"arena","data":{{"draw":0,"item":"{id}","judge":"judge","policy":"base","score_micro":{score}}}}}"#
            ) + "\n"
        })
        .collect();
    desk.file("known.jsonl", &known);
    desk.ok("append --bulk known.jsonl");
    desk.file("base_responses.jsonl", &five());
    let first = desk
        .ok("import cje base_responses.jsonl --labels --json")
        .json();
    assert_eq!(
        (counts(&first, "scores"), counts(&first, "labels")),
        ((3, 2), (5, 0))
    );
    let again = desk
        .ok("import cje base_responses.jsonl --labels --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    desk.head();
    // No text, and no bare digest of one, is in the file.
    let (text, file) = ("Why p3?", five());
    let bytes = std::fs::read(desk.database()).unwrap();
    let wal = std::fs::read(desk.at.join(".clover/ledger.db-wal")).unwrap_or_default();
    let holds = |part: &[u8]| [&bytes, &wal].iter().any(|all| memchr_find(all, part));
    for secret in [text.as_bytes(), file.as_bytes()] {
        assert!(!holds(secret));
        for digest in [Digest::sha256(secret), Digest::blake3(secret)] {
            assert!(!holds(&digest.0) && !holds(digest.to_hex().as_bytes()));
        }
    }
}

fn memchr_find(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn another_value_for_a_score_goes_on_record_as_a_conflict() {
    let mut desk = desk();
    desk.file("base_responses.jsonl", &five());
    desk.ok("import cje base_responses.jsonl --labels");
    desk.file("base_responses.jsonl", &five().replace("0.3,", "0.35,"));
    // A file of another policy would block the experiment for good: somebody is asked.
    let before = desk.head();
    let words = ["import", "cje", "base_responses.jsonl", "--labels"];
    let asked = [
        "base_responses.jsonl:3: p3 by base is recorded with 0.3, and the file says 0.35",
        "record 1 such scores as conflicts, which block arena for good",
        "--yes",
    ];
    desk.refused(&words, 2, &asked);
    assert_eq!(desk.head(), before);
    let ran = desk.run("import cje base_responses.jsonl --labels --yes");
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(
        &ran,
        &["score_once", "p3 by base: 0.3 recorded, 0.35 in the file"],
    );
    assert_eq!(
        (
            of_kind(&mut desk, "score.conflict"),
            of_kind(&mut desk, "score.recorded")
        ),
        (1, 5)
    );
    desk.head();
    // Another value for a label changes nothing at all.
    let other = five().replace("0.5}", "0.6}");
    desk.file("base_responses.jsonl", &other);
    let words = ["import", "cje", "base_responses.jsonl", "--labels"];
    desk.refused(
        &words,
        11,
        &["base_responses.jsonl:1", "the label that is recorded"],
    );
}

#[test]
fn labels_serve_one_purpose_and_sealed_ones_stay_closed() {
    let mut desk = desk();
    desk.file("base_responses.jsonl", &five());
    // The file holds labels that are not opened: its original is for the custodian alone.
    desk.ok("import cje base_responses.jsonl");
    let log = desk
        .ok("log --kind data.ingested --json")
        .json()
        .to_string();
    assert!(
        log.contains("envelope") && !log.contains("\"private\""),
        "{log}"
    );
    // Its size is one of few, whatever the labels are written like: 200 bytes of header, nonce and tag beside 4,096.
    let blobs = desk.ok("blob list --json").json()["data"]["blobs"].clone();
    let sizes: Vec<_> = blobs
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["bytes"].clone())
        .collect();
    assert!(sizes.contains(&4_296.into()), "{sizes:?}");
    desk.ok(&format!(
        "import cje base_responses.jsonl --seal probes --reveal-by {REVEAL_BY} --yes"
    ));
    let open = ["import", "cje", "base_responses.jsonl", "--labels"];
    desk.refused(
        &open,
        11,
        &["base_responses.jsonl:1: purpose", "a sealed one"],
    );

    let mut desk = self::desk();
    desk.file("base_responses.jsonl", &five());
    desk.ok("import cje base_responses.jsonl --labels");
    let seal = [
        "import",
        "cje",
        "base_responses.jsonl",
        "--seal",
        "probes",
        "--reveal-by",
        REVEAL_BY,
    ];
    let ran = desk.ok_words(&seal);
    assert!(ran.out.contains("nothing new"), "{}", ran.out);
    desk.file("twice.jsonl", &five());
    let audit = [
        "import",
        "cje",
        "twice.jsonl",
        "--policy",
        "base",
        "--labels=probes",
        "--purpose",
        "audit",
    ];
    desk.refused(&audit, 11, &["purpose"]);
    let design = [
        "import",
        "cje",
        "twice.jsonl",
        "--policy",
        "base",
        "--labels=none",
    ];
    desk.refused(&design, 11, &["no label design none is registered"]);
}

#[test]
fn confirm_clusters_are_sealed_while_importing() {
    let mut desk = desk();
    let lines: String = (0..40)
        .map(|i| line(&format!("p{i:02}"), "0.5", Some("0.25")))
        .collect();
    desk.file("base_responses.jsonl", &lines);
    desk.ok("import cje base_responses.jsonl");
    desk.ok("label design new hold --purpose confirm --probability 1");
    let early = [
        "import",
        "cje",
        "base_responses.jsonl",
        "--seal",
        "hold",
        "--reveal-by",
        REVEAL_BY,
    ];
    desk.refused(
        &early,
        11,
        &["split: expected splits.formed before confirm labels"],
    );
    let split = desk
        .ok("experiment split arena --seed 7 --hashed --json")
        .json();
    let confirm = split["data"]["confirm"]["count"].as_u64().unwrap();
    assert!((1..40).contains(&confirm));
    assert_eq!(
        desk.ok("experiment split arena --seed 7 --hashed --json")
            .json()["verdict"],
        "already_recorded"
    );
    let open = ["import", "cje", "base_responses.jsonl", "--labels"];
    desk.refused(&open, 11, &["split", "no open label of a confirm cluster"]);
    let labels = desk
        .ok(&format!(
            "import cje base_responses.jsonl --labels --seal hold --reveal-by {REVEAL_BY} --yes --json"
        ))
        .json();
    assert_eq!(counts(&labels, "sealed"), (confirm, 0));
    assert_eq!(counts(&labels, "labels"), (40 - confirm, 0));
    let status = desk.ok("confirm status");
    assert!(
        status
            .out
            .contains("confirm not time-separated, EXPLORATORY"),
        "{}",
        status.out
    );
    desk.head();
}

#[test]
fn peeks_are_paid_for_before_anything_is_opened() {
    let mut desk = desk();
    desk.file("clone_probe.jsonl", &five());
    desk.ok(&format!(
        "import cje clone_probe.jsonl --seal probes --reveal-by {REVEAL_BY} --yes"
    ));
    let unseal = ["confirm", "unseal", "probes", "--for", "audit", "--yes"];
    desk.refused(&unseal, 11, &["seal: row clone/p1/0 has no seal.accepted"]);
    desk.ok("confirm seal probes");
    assert!(
        desk.ok("confirm seal probes")
            .out
            .contains("accepted 0 · already 5")
    );
    desk.refused(&unseal, 11, &["no account confirm-peeks"]);
    peeks(&mut desk);
    // Without anyone to ask, nothing is spent.
    desk.refused(
        &unseal[..5],
        2,
        &["open 5 labels of probes with peek 1 of 3"],
    );
    // Three were spent by others.
    for _ in 0..3 {
        let charge = r#"{"account":"confirm-peeks","amount":1,"for":"another"}"#;
        desk.ok_words(&["record", "budget.charged", "--data", charge]);
    }
    desk.refused(&unseal, 11, &["overdraft: 3 of 3 peek spent in 2026Q4"]);
    // The deadline passes; the next quarter pays.
    let late = clover::ground::time::Timestamp::parse("2027-02-01T00:00:00.000000Z").unwrap();
    desk.clock.set(late);
    let status = desk.ok("confirm status --json").json();
    assert_eq!(
        (
            status["verdict"].as_str(),
            status["data"]["breaches"].as_u64()
        ),
        (Some("breach"), Some(5))
    );
    let opened = desk.words(&[
        "confirm", "unseal", "probes", "--for", "audit", "--yes", "--json",
    ]);
    assert_eq!(opened.code, 0, "{}", opened.err);
    assert_eq!(opened.json()["data"]["revealed"], 5);
    assert!(
        opened.err.contains("revealed after their deadline"),
        "{}",
        opened.err
    );
    let log = desk.ok("budget show confirm-peeks --json").json();
    assert_eq!(log["data"]["left"], 2);
    // Everything is open: no second peek is spent.
    assert!(desk.ok_words(&unseal).out.contains("revealed already"));
    assert_eq!(
        desk.ok("budget show confirm-peeks --json").json()["data"]["left"],
        2
    );
    desk.head();
}

#[test]
fn columns_are_mapped_and_rehearsed() {
    let mut desk = desk();
    desk.file("s.csv", "id,score,gold,text,sampled_at\r\np1,0.1234567,1,\"a, \"\"b\"\"\",2026-01-01T00:00:00Z\r\np2,0.5,,x,2026-01-02T01:00:00+01:00\r\n");
    let words = [
        "import",
        "csv",
        "s.csv",
        "--map",
        "judge_score=score,prompt_id=id,oracle_label=gold,prompt=text",
        "--policy",
        "base",
        "--labels",
        "--dry-run",
    ];
    let before = desk.head();
    let ran = desk.ok_words(&words);
    for part in [
        "0.123457 to 0.5, 2 new",
        "1 in the file",
        "prompt_id=id",
        "rounded    1",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
    assert_eq!(desk.head(), before);
    let ran = desk.ok_words(&[&words[..8], &["--json"]].concat()).json();
    assert_eq!(
        (counts(&ran, "scores"), counts(&ran, "labels")),
        ((2, 0), (1, 0))
    );
    let ingested = desk
        .ok("log --kind data.ingested --json")
        .json()
        .to_string();
    assert!(
        ingested.contains("2026-01-02T00:00:00.000000Z"),
        "{ingested}"
    );
    desk.head();
}

/// A generator of its own, so that the files are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A JSON Lines file with one thing wrong on one line, and that line.
fn bad_lines(dice: &mut Dice) -> (Vec<u8>, u64) {
    let mut lines: Vec<String> = five().lines().map(str::to_owned).collect();
    let at = dice.below(5);
    let (id, score) = (format!("\"p{}\"", at + 1), format!("0.{}", at + 1));
    let text = &mut lines[at];
    let swap = |text: &mut String, from: &str, to: &str| {
        assert!(text.contains(from));
        *text = text.replacen(from, to, 1);
    };
    let value = format!("\"judge_score\":{score}");
    match dice.below(20) {
        0 => text.truncate(1 + dice.below(text.len() - 2)),
        1 => swap(text, &value, "\"judge_score\":NaN"),
        2 => swap(text, &value, "\"judge_score\":1.000001"),
        3 => swap(text, &value, &format!("\"judge_score\":-{score}")),
        4 => swap(text, &value, &format!("\"judge_score\":\"{score}\"")),
        5 => swap(text, &value, "\"judge\":1"),
        6 => {
            swap(text, &format!("\"prompt_id\":{id},"), "");
            swap(text, "\"prompt\":", "\"question\":");
        }
        7 => swap(text, &value, &format!("{value},{value}")),
        8 => swap(
            text,
            "\"draw_idx\":0",
            ["\"draw_idx\":-1", "\"draw_idx\":0.5", "\"draw_idx\":\"0\""][dice.below(3)],
        ),
        9 => {
            let again = text.clone();
            lines.insert(at + 1, again);
            return (lines.join("\n").into_bytes(), at as u64 + 2);
        }
        10 => swap(text, "\"oracle_label\":0.5", "\"oracle_label\":2"),
        11 => swap(text, &id, "\"\""),
        12 => swap(text, &id, "\"a\\u0007b\""),
        13 => {
            let mut bytes = lines.join("\n").into_bytes();
            let start: usize = lines[..at].iter().map(|line| line.len() + 1).sum();
            bytes[start + 20] = 0xff;
            return (bytes, at as u64 + 1);
        }
        14 => swap(text, ":", ";"),
        15 => swap(text, "\"draw_idx\":0", "\"draw_idx\":0,\"target_policy\":7"),
        16 => swap(
            text,
            "\"draw_idx\":0",
            "\"draw_idx\":0,\"sampled_at\":\"yesterday\"",
        ),
        17 => swap(text, &value, "\"judge_score\":1e400"),
        18 => *text = "[1]".to_owned(),
        _ => text.push_str("}x"),
    }
    (lines.join("\n").into_bytes(), at as u64 + 1)
}

/// A file of comma-separated values with one thing wrong, and its line.
fn bad_csv(dice: &mut Dice) -> (Vec<u8>, u64) {
    let mut lines: Vec<String> = vec!["prompt_id,judge_score,draw_idx,response".to_owned()];
    lines.extend((1..=5).map(|i| format!("p{i},0.{i},0,\"so, {i}\"")));
    let at = 1 + dice.below(5);
    let (id, score) = (format!("p{at},"), format!(",0.{at},"));
    let text = &mut lines[at];
    let swap = |text: &mut String, from: &str, to: &str| {
        assert!(text.contains(from));
        *text = text.replacen(from, to, 1);
    };
    match dice.below(16) {
        0 => swap(text, &id, ""),
        1 => text.push_str(",more"),
        2 => swap(text, &score, ",NaN,"),
        3 => swap(text, &score, ",1.5,"),
        4 => swap(text, &score, ",,"),
        5 => swap(text, &id, ","),
        6 => swap(text, &id, &format!("p\"{at},")),
        7 => {
            swap(text, &format!("{at}\""), "");
        }
        8 => {
            lines[0] = lines[0].replace("response", "prompt_id");
            return (lines.join("\n").into_bytes(), 1);
        }
        9 => {
            let mut bytes = lines.join("\n").into_bytes();
            let start: usize = lines[..at].iter().map(|line| line.len() + 1).sum();
            bytes[start] = 0xc3;
            return (bytes, at as u64 + 1);
        }
        10 => {
            let again = text.clone();
            lines.insert(at + 1, again);
            return (lines.join("\n").into_bytes(), at as u64 + 2);
        }
        11 => swap(text, &score, &format!("\r{score}")),
        12 => swap(text, &score, ",.5,"),
        13 => swap(text, ",0,", ",x,"),
        14 => text.push('y'),
        _ => swap(text, &score, ",1e,"),
    }
    (lines.join("\n").into_bytes(), at as u64 + 1)
}

#[test]
fn a_thousand_wrong_files_name_the_place_and_change_nothing() {
    let mut desk = desk();
    let before = desk.head();
    let mut dice = Dice(4);
    for round in 0..1_000 {
        let ((bytes, line), name, form) = if round % 2 == 0 {
            (bad_lines(&mut dice), "bad.jsonl", "cje")
        } else {
            (bad_csv(&mut dice), "bad.csv", "csv")
        };
        std::fs::write(desk.at.join(name), &bytes).unwrap();
        let words = [
            "import", form, name, "--policy", "base", "--labels", "--json",
        ];
        let ran = desk.words(&words);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(ran.code, 4, "{}\n{text}", ran.err);
        assert_eq!(ran.json()["data"]["line"], line, "{}\n{text}", ran.err);
        says(&ran, &[&format!("{name}:{line}: ")]);
    }
    assert_eq!(desk.head(), before);
}

#[test]
fn a_commitment_is_recomputed_with_common_tools() {
    let mut desk = desk();
    desk.file("clone_probe.jsonl", &line("p1", "0.5", Some("0.64")));
    desk.ok(&format!(
        "import cje clone_probe.jsonl --seal probes --reveal-by {REVEAL_BY} --yes"
    ));
    desk.ok("confirm seal probes");
    peeks(&mut desk);
    desk.ok("confirm unseal probes --for audit --yes");
    desk.ok("export jsonl -o out");
    // What the page tells a stranger to type, as it stands there.
    let page = std::fs::read_to_string(verifiers::repository().join("schema/SEAL.md")).unwrap();
    let (_, recipe) = page.split_once("```sh\n").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let there = |tool: &str| {
        std::process::Command::new(tool)
            .arg("--version")
            .output()
            .is_ok()
    };
    if !["python3", "sha256sum", "xxd", "sh"]
        .iter()
        .all(|tool| there(tool) || *tool == "sh")
    {
        println!("skipped: python3, sha256sum or xxd not found");
        return;
    }
    let script = recipe.replace(
        "age --decrypt -i custodian.age sealed.age",
        "cat sealed.age",
    );
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", &script])
        .current_dir(desk.at.join("out"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines = text.lines();
    let (published, computed) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(published.len(), 64);
    assert_eq!(computed.split(' ').next(), Some(published), "{text}");
    // The envelope that the recipe cut out opens with the age crate, and with the tool where there is one.
    let sealed = std::fs::read(desk.at.join("out/sealed.age")).unwrap();
    let key = std::fs::read_to_string(desk.key_file("cem").with_extension("age")).unwrap();
    let key = key
        .lines()
        .find(|line| line.starts_with("AGE-SECRET-KEY-"))
        .unwrap();
    let identity: age::x25519::Identity = key.parse().unwrap();
    let plain = age::decrypt(&identity, &sealed).unwrap();
    assert_eq!(plain.len(), 40);
    assert_eq!(plain[32..], 640_000_i64.to_be_bytes());
    if there("age") {
        let output = std::process::Command::new("age")
            .args(["--decrypt", "-i"])
            .arg(desk.key_file("cem").with_extension("age"))
            .arg("out/sealed.age")
            .current_dir(&desk.at)
            .output()
            .unwrap();
        assert_eq!(output.stdout, plain);
    } else {
        println!("skipped: the age tool is not installed");
    }
}
