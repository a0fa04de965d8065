//! `clover gate`: the whole life of a gate at a terminal.

use clover::ground::digest::Digest;
use clover::stats::eprocess;
use clover::workflow::peer_manifest;

use super::Desk;
use super::renderings::drawn;
use super::same;

/// A manifest on forty units.
pub(super) fn manifest(id: &str, experiment: &str, root: &str, alpha: u32) -> String {
    let digest = |text: &str| Digest::sha256(text.as_bytes()).to_hex();
    format!(
        r"template: gate
version: 1
manifest: {id}
experiment: {experiment}
title: Answers
hypothesis: {{claim: the new policy answers better, kind: promote}}
arms:
  - {{id: baseline, role: baseline, artifact_digest: {}}}
  - {{id: candidate, role: candidate, artifact_digest: {}}}
estimand:
  population: superpopulation
  unit_key: scenario
  rep_rule: single
  aggregation: mean
  missing_rule: conservative
metric:
  metric: quality
  judge_digest: {}
  direction: increase
  scale_lo_micro: 0
  scale_hi_micro: 1000000
  repeats: 1
data: {{confirm_root: {root}, n_units: 40, exposure_cap: 2}}
test:
  alpha_micro: {alpha}
  alpha_kill_micro: 50000
  side: upper
  null_margin_micro: 0
  delta_design_micro: 200000
  n_min: 5
  n_max: 40
  bettor: {{name: grid_kelly, grid: 20}}
  beacon: first_checkpoint
  without_replacement: false
multiplicity: {{family: quarter, family_alpha_micro: 50000, method: spend}}
",
        digest("old"),
        digest("new"),
        digest("judge")
    )
}

pub(super) fn units() -> Vec<String> {
    (0..40).map(|at| format!("unit-{at:02}")).collect()
}

/// Scores of some units: the candidate is better by three tenths, as three levels.
fn scores(experiment: &str, some: &[&str]) -> String {
    let mut lines = String::new();
    for (at, unit) in units().iter().enumerate() {
        if !some.contains(&unit.as_str()) {
            continue;
        }
        for (policy, score) in [
            ("baseline", 400_000),
            ("candidate", [500_000, 700_000, 900_000][at % 3]),
        ] {
            lines += &format!(
                "{{\"kind\":\"score.recorded\",\"experiment\":\"{experiment}\",\"data\":{{\"draw\":0,\"item\":\"{unit}\",\"judge\":\"judge-1\",\"policy\":\"{policy}\",\"score_micro\":{score}}}}}\n"
            );
        }
    }
    lines
}

/// A desk with a gate that is open, and thirty of its units exposed and scored.
pub(super) fn scored() -> Desk {
    score(opened(|_| {}))
}

/// Exposes thirty units of an open gate and records their scores.
pub(super) fn score(mut desk: Desk) -> Desk {
    desk.ok("exposure open m-1 --through 30 --yes");
    let exposed = desk.ok("exposure list m-1").out;
    let exposed: Vec<_> = exposed.lines().collect();
    let bulk = desk.file("scores.jsonl", &scores("exp-1", &exposed));
    desk.ok(&format!("append --bulk {bulk}"));
    desk
}

/// A desk with a gate that is open; `before` runs before it is opened.
fn opened(before: impl FnOnce(&mut Desk)) -> Desk {
    opened_as(|plan| plan, before)
}

/// The same, under a changed plan.
pub(super) fn opened_as(
    change: impl FnOnce(String) -> String,
    before: impl FnOnce(&mut Desk),
) -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new bea --role arbiter,releaser");
    let membership = [
        "family",
        "open",
        "quarter",
        "--method",
        "spend",
        "--alpha",
        "0.05",
        "--members",
        "3",
        "--membership",
        "gates of this quarter",
    ];
    desk.ok_words(&membership);
    let file = desk.file("units.txt", &(units().join("\n") + "\n"));
    let root = desk.ok(&format!("gate root {file} --json")).json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    let plan = change(manifest("m-1", "exp-1", &root, 50_000));
    let plan = desk.file("plan.yaml", &plan);
    desk.ok(&format!("prereg sign {plan} --countersign --yes"));
    before(&mut desk);
    desk.ok("gate open m-1 --units units.txt --judge judge-1");
    desk
}

/// A gate that is planned and not opened has a report, which claims nothing.
#[test]
fn a_gate_that_nobody_opened_has_a_report() {
    let mut desk = opened(|desk| {
        let report = drawn(desk, "report gate m-1").json;
        let answer = report["head"]["answer"].as_str().unwrap();
        assert!(answer.starts_with("Not decided: it is registered, and nobody opened it."));
        let arms = &report["parts"][0]["tables"][1]["rows"];
        let new = Digest::sha256(b"new").to_hex();
        assert_eq!(
            (&arms[1]["role"], &arms[1]["digest"]),
            (&"candidate".into(), &new.into())
        );
    });
    let shown = desk.ok("gate show m-1").out;
    assert!(
        shown.contains("no grade before a unit is observed"),
        "{shown}"
    );
    let report = drawn(&mut desk, "report gate m-1").json;
    assert!(
        !report["head"]["rest"].to_string().contains("grade"),
        "{report}"
    );
    let size = report["checkpoint"]["size"].as_u64().unwrap();
    assert_eq!(size, report["through_seq"].as_u64().unwrap() + 1);
    assert!(report["program"].as_str().unwrap().starts_with("clover "));
}

/// A gate that is opened after units were exposed would be refused for good.
#[test]
fn units_of_a_gate_are_exposed_once_it_is_open() {
    opened(|desk| {
        let words = ["exposure", "open", "m-1"];
        desk.refused(
            &words,
            11,
            &["m-1 is not opened", "before any unit is exposed"],
        );
    });
}

#[test]
fn the_whole_life_of_a_gate() {
    let mut desk = scored();
    // Nothing can be looked at before something is observed.
    desk.refused(&["gate", "look", "m-1"], 11, &["n 0, at least 1"]);
    let observed = desk.run("gate observe m-1 --all --json");
    assert_eq!(observed.code, 0, "{}{}", observed.out, observed.err);
    let observed = observed.json();
    assert_eq!(observed["verdict"], "ship");
    let n = observed["data"]["n"].as_u64().unwrap();
    assert!((7..30).contains(&n), "{n}");
    // The test has ended: the rest of the units stays unread.
    let more = desk.run("gate observe m-1 --all --json").json();
    assert_eq!(more["data"]["observed"], 0);
    let words = ["gate", "promote", "m-1"];
    desk.refused(&words, 11, &["a decision of m-1", "none"]);
    desk.ok("gate decide m-1");
    desk.refused(&["gate", "look", "m-1"], 11, &["E_AFTER_TERMINAL"]);
    let closed = desk.ok("family close quarter --yes --json").json();
    assert_eq!(closed["data"]["holds"], serde_json::json!(["m-1"]));
    desk.refused(&["gate", "promote", "m-9"], 5, &["no gate m-9 is open"]);
    let issued = desk.ok("gate promote m-1 --json").json();
    let candidate = Digest::sha256(b"new").to_hex();
    assert_eq!(issued["data"]["candidate_digest"], candidate);
    assert_eq!(issued["data"]["grade"], "certified");
    for chart in ["wealth", "interval"] {
        desk.ok(&format!("gate show m-1 --svg {chart}.svg --chart {chart}"));
        let drawn = std::fs::read_to_string(desk.at.join(format!("{chart}.svg"))).unwrap();
        assert!(
            drawn.starts_with("<svg") && drawn.contains("units observed"),
            "{drawn}"
        );
    }
    assert_eq!(desk.run("gate show m-1 --chart other").code, 2);
    let page = desk.ok("gate show m-1").out;
    assert!(
        page.lines().all(|line| line.chars().count() <= 100),
        "{page}"
    );
    for words in [
        "PROMOTE: better by the margin (ship)",
        "identical: state",
        "executed as registered at the first look",
        "grade now: certified",
        ", certified\n  of 11507a0e2f5e69d5",
        "after any unit, whenever the arbiter looks",
        "quality, more is better, 0 to 1, draws of each arm: 1",
        "quality: scores of judge judge-1",
        "candidate 11507a0e2f5e69d5",
        "40 units under",
        "wealth    ",
        "1 of 3 members",
    ] {
        assert!(page.contains(words), "{words:?} is not in:\n{page}");
    }
    let shown = desk.ok("gate show m-1 --json").json();
    assert_eq!(shown["data"]["replay_identical"], true);
    assert_eq!(shown["data"]["plan"]["metric"]["metric"], "quality");
    assert_eq!(shown["data"]["looks"].as_array().unwrap().len(), 1);
    same(
        &desk
            .ok("family show quarter")
            .out
            .lines()
            .nth(4)
            .unwrap()
            .replace(' ', ""),
        &format!(
            "closedseq{}",
            closed["checkpoint"]["size"].as_u64().unwrap() - 1
        ),
    );
    // A promotion is taken back once; said again, it stands.
    let seq = issued["checkpoint"]["size"].as_u64().unwrap() - 1;
    let at = seq.to_string();
    let revoke = ["gate", "revoke", &at, "--reason", "the judge was withdrawn"];
    desk.ok_words(&revoke);
    let page = desk.ok("gate show m-1").out;
    let words = format!("promotion at seq {seq}, revoked at seq {}", seq + 1);
    assert!(page.contains(&words), "{words:?} is not in:\n{page}");
    assert!(desk.ok_words(&revoke).out.contains("already recorded"));
    desk.ok("gate list");
    desk.ok("family list");
    desk.head();
    reported(&mut desk, seq);
}

/// The report of a gate has the numbers of its page, and says that its promotion was revoked.
fn reported(desk: &mut Desk, promoted: u64) {
    let report = drawn(desk, "report gate m-1").json;
    let shown = desk.ok("gate show m-1 --json").json()["data"].clone();
    assert_eq!(report["head"]["answer"], shown["answer"]["text"]);
    let part = |name: &str| {
        let mut parts = report["parts"].as_array().unwrap().iter();
        parts.find(|of| of["part"] == name).unwrap().clone()
    };
    let (look, row) = (&shown["looks"][0], &part("looks")["tables"][0]["rows"][0]);
    assert_eq!(
        (&row["n"], &row["log_e"], &row["p"]),
        (
            &look["look"]["n"],
            &look["look"]["log_e"],
            &look["look"]["p"]
        )
    );
    assert_eq!(row["events"][0], look["seq"]);
    let low = look["look"]["cs_lo_micro"].as_f64().unwrap() / 1e6;
    assert!((row["effect"]["low"].as_f64().unwrap() - low).abs() < 1e-12);
    let units = report["appendices"][0]["tables"][0]["rows"]
        .as_array()
        .unwrap();
    assert_eq!(units.len() as u64, shown["n"].as_u64().unwrap());
    let cited: Vec<u64> = units
        .iter()
        .map(|row| row["events"][0].as_u64().unwrap())
        .collect();
    assert!(cited.windows(2).all(|two| two[0] < two[1]), "{cited:?}");
    let terms = part("plan")["tables"][1]["rows"].to_string();
    for named in [
        Digest::sha256(b"new").to_hex(),
        Digest::sha256(b"old").to_hex(),
    ] {
        assert!(terms.contains(&named), "{terms}");
    }
    for named in ["judge-1", "quarter", "quality"] {
        assert!(terms.contains(named), "{terms}");
    }
    let facts = part("ending")["facts"].clone();
    let promotion = facts
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["fact"] == "promotion")
        .unwrap();
    assert_eq!(
        promotion["events"],
        serde_json::json!([promoted, promoted + 1])
    );
    let since = report["head"]["since"]["rows"].as_array().unwrap();
    assert_eq!(since[0]["act"], "REVOKED the promotion");
    let people = report["head"]["people"]["rows"].as_array().unwrap();
    let acts: Vec<&str> = people
        .iter()
        .map(|row| row["act"].as_str().unwrap())
        .collect();
    assert_eq!(
        acts,
        [
            "registered the plan",
            "countersigned the plan",
            "opened",
            "decided",
            "promoted"
        ]
    );
    desk.refused(&["report", "gate", "m-9"], 5, &["no gate m-9 is open"]);
}

#[test]
fn a_gate_that_waits_for_scores() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new bea --role arbiter");
    let words = [
        "family",
        "open",
        "quarter",
        "--method",
        "spend",
        "--alpha",
        "0.05",
        "--members",
        "3",
        "--membership",
        "gates",
    ];
    desk.ok_words(&words);
    let file = desk.file("units.txt", &(units().join("\n") + "\n"));
    let root = desk.ok(&format!("gate root {file} --json")).json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    let plan = desk.file("plan.yaml", &manifest("m-1", "exp-1", &root, 50_000));
    desk.ok(&format!("prereg sign {plan} --countersign --yes"));
    let other = desk.file("other.txt", "unit-00\nunit-01\n");
    desk.refused(
        &[
            "gate", "open", "m-1", "--units", &other, "--judge", "judge-1",
        ],
        4,
        &["other.txt: 2 units under", "E_DATA_ROOT"],
    );
    desk.refused(
        &["gate", "open", "m-1", "--units", &file],
        2,
        &["metric quality: --judge quality=JUDGE"],
    );
    desk.ok("gate open m-1 --units units.txt --judge judge-1");
    let again = desk.ok("gate open m-1 --units units.txt --judge judge-1 --json");
    assert_eq!(again.json()["verdict"], "already_recorded");
    desk.ok("exposure open m-1");
    let waiting = desk.run("gate observe m-1 --all --json").json();
    assert_eq!(waiting["data"]["observed"], 0);
    assert!(
        waiting["data"]["missing"]
            .as_str()
            .unwrap()
            .starts_with("unit-")
    );
    // Draws that are not there count against the candidate, and show no harm: nothing is known of it.
    let failed = desk.run("gate observe m-1 --all --missing --json");
    assert_eq!(failed.code, 12, "{}{}", failed.out, failed.err);
    let look = &failed.json()["data"]["look"];
    assert_eq!(look["standing"], "undecided_at_n_max");
    assert_eq!(
        (&look["cs_lo"], &look["cs_hi"]),
        (&(-1_000_000).into(), &1_000_000.into())
    );
    let decided = desk.run("gate decide m-1 --json");
    assert_eq!(
        (decided.code, &decided.json()["verdict"]),
        (12, &"hold".into())
    );
}

#[test]
fn looks_that_decide_nothing_say_so() {
    let mut desk = scored();
    let observed = desk.run("gate observe m-1 --through 4 --json");
    assert_eq!(observed.code, 12);
    let looked = desk.run("gate look m-1 --json");
    assert_eq!(looked.code, 12, "{}{}", looked.out, looked.err);
    assert_eq!(looked.json()["verdict"], "need_more_work");
    desk.refused(
        &["gate", "decide", "m-1"],
        12,
        &["CONTINUE: nothing is decided"],
    );
    // Too early is no refusal, whether or not anybody has looked.
    desk.run("gate observe m-1 --through 5");
    desk.refused(
        &["gate", "decide", "m-1"],
        12,
        &["no look after its 5 units"],
    );
    let wrong = desk.run("gate simulate m-1 --streams 20 --chart width");
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let page = desk.ok("gate simulate m-1 --streams 100 -o interval.svg --chart interval");
    let svg = std::fs::read_to_string(desk.at.join("interval.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("null margin"),
        "{svg}"
    );
    let sparks = |text: &str| text.lines().filter(|line| line.contains("median")).count();
    assert!(sparks(&page.out) >= 6, "{}", page.out);
    for line in page.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let simulated = desk.ok("gate simulate m-1 --streams 200 --json").json();
    let paths = simulated["data"]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{simulated:#}");
    for path in paths {
        let (units, wealth) = (&path["units"], &path["ln_wealth"]["p50"]);
        assert_eq!(
            units.as_array().unwrap().len(),
            wealth.as_array().unwrap().len()
        );
    }
    for line in simulated["data"]["simulated"].as_array().unwrap() {
        let shown = line["shown"].as_f64().unwrap();
        // 200 gates at alpha .05: more than 25 false claims have probability below 1e-4.
        assert!(line["line"] != "null" || shown <= 0.125, "{line}");
        assert!(
            line["line"] != "effect" || line["shape"] != "uniform" || shown > 0.3,
            "{line}"
        );
    }
}

#[test]
fn a_plan_is_sealed_and_revealed() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new bea --role arbiter");
    let words = [
        "family",
        "open",
        "quarter",
        "--method",
        "spend",
        "--alpha",
        "0.05",
        "--members",
        "3",
        "--membership",
        "gates",
    ];
    desk.ok_words(&words);
    let file = desk.file("units.txt", &(units().join("\n") + "\n"));
    let root = desk.ok(&format!("gate root {file} --json")).json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    let plan = desk.file("plan.yaml", &manifest("m-1", "exp-1", &root, 50_000));
    desk.ok(&format!("prereg sign {plan} --countersign --yes"));
    desk.file("secret.md", "first by domain\n");
    desk.ok(
        "prereg plan seal m-1 secret.md --salt-file salt --reveal-by 2027-01-01T00:00:00.000000Z",
    );
    desk.file("other.md", "first by length\n");
    desk.refused(
        &[
            "prereg",
            "plan",
            "reveal",
            "m-1",
            "other.md",
            "--salt-file",
            "salt",
        ],
        11,
        &["plan", "what opens to"],
    );
    desk.ok("prereg plan reveal m-1 secret.md --salt-file salt");
    assert!(desk.ok("prereg show m-1").out.contains("revealed"));
}

#[test]
fn a_manifest_of_the_peer_is_checked() {
    // source: agent-eval 0.170.0, signManifest.
    const SIGNED: &str = r#"{"id":"h-1","hypothesis":"candidate beats baseline","metric":"composite","direction":"increase","minEffect":0,"alpha":0.05,"power":0.8,"preRegisteredN":60,"registeredAt":"2026-06-10T00:00:00Z","contentHash":"88bd5b3c19386e2c5077ac7219bd82ab8f9ec4ef3ccde4b6f73bf8a622bb6115","algo":"sha256-rfc8785"}"#;
    let mut desk = Desk::with_ledger();
    let file = desk.file("peer.json", SIGNED);
    let checked = desk.ok(&format!("prereg check {file} --json")).json();
    assert_eq!(checked["verdict"], "unchanged");
    assert!(
        checked["data"]["sections"]
            .as_str()
            .unwrap()
            .contains("alpha_micro: 50000")
    );
    let changed = desk.file("changed.json", &SIGNED.replace("0.05", "0.10"));
    desk.refused(
        &["prereg", "check", &changed],
        3,
        &["contentHash", "the content hashes to"],
    );
    // A plan in which what it binds stands already; the rest is to be filled.
    let new = "prereg new --template gate --from";
    let words = format!("{new} {changed}");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(&words, 3, &["contentHash"]);
    let other = ["prereg", "new", "--template", "transport", "--from", &file];
    desk.refused(&other, 2, &["--template gate"]);
    desk.ok(&format!("{new} {file} -o plan.yaml"));
    let plan = std::fs::read_to_string(desk.at.join("plan.yaml")).unwrap();
    let left: Vec<_> = plan
        .lines()
        .filter(|line| line.contains("FILL: "))
        .collect();
    let digest = Digest([0xa7; 32]);
    let values = [
        ("experiment", "exp-1".to_owned()),
        ("    artifact_digest", Digest([0xa5; 32]).to_hex()),
        ("    artifact_digest", Digest([0xa6; 32]).to_hex()),
        ("  judge_digest", digest.to_hex()),
        ("  confirm_root", digest.to_base64()),
        ("  family", "quarter".to_owned()),
    ];
    assert_eq!(left.len(), values.len(), "{left:#?}");
    let mut filled = plan.clone();
    for (line, (key, value)) in left.iter().zip(&values) {
        assert!(line.starts_with(&format!("{key}:")), "{line}");
        filled = filled.replacen(*line, &format!("{key}: {value}"), 1);
    }
    let filled = desk.file("filled.yaml", &filled);
    let checked = desk.ok(&format!("prereg check {filled} --json")).json();
    assert_eq!(checked["data"]["manifest"], "h-1", "{checked:#}");
    for bound in [
        "\n  claim: \"candidate beats baseline\" ",
        "\n  metric: \"composite\" ",
        "\n  direction: increase ",
        "\n  alpha_micro: 50000 ",
        "\n  null_margin_micro: 0 ",
        "\n  n_max: 60 ",
    ] {
        assert!(plan.contains(bound), "{bound}\n{plan}");
    }
    // What millionths do not hold is not rounded.
    let fine = SIGNED.replace("0.05", "0.0500001");
    let hash = peer_manifest::content_digest(&fine).unwrap().to_hex();
    let at = fine.find("88bd5b").unwrap();
    let fine = desk.file("fine.json", &fine.replace(&fine[at..at + 64], &hash));
    let says = ["alpha: expected at most six decimals", "0.0500001"];
    let checked = desk.ok(&format!("prereg check {fine}")).out;
    assert!(
        checked.contains("unchanged") && checked.contains(says[0]),
        "{checked}"
    );
    let words = ["prereg", "new", "--template", "gate", "--from", &fine];
    desk.refused(&words, 4, &says);
}

/// What looks recorded is what anyone computes from the log: here, after a backup, imported again, and from the exported
/// lines.
#[test]
fn e_values_are_the_same_after_replay_and_export() {
    let mut desk = scored();
    desk.run("gate observe m-1 --through 6");
    desk.run("gate look m-1");
    desk.run("gate observe m-1 --all");
    desk.ok("gate decide m-1");
    let here = desk.ok("gate show m-1 --json").json()["data"].clone();
    assert_eq!(here["looks"].as_array().unwrap().len(), 2);
    desk.ok("export jsonl -o out");
    desk.ok("verify out/ledger.jsonl");
    let copy = desk.path("copy");
    let copy = copy.to_str().unwrap().to_owned();
    desk.ok_words(&["backup", &copy]);
    let there = desk
        .ok_words(&["gate", "show", "m-1", "--json", "--ledger", &copy])
        .json();
    assert_eq!(there["data"], here);
    // Imported again, with a snapshot of its own.
    desk.ok("export jsonl -o whole --blobs");
    desk.ok("import ledger whole --into again");
    let again = desk.ok("gate show m-1 --json --ledger again").json();
    assert_eq!(again["data"], here);
    // From the lines alone, with nothing of the ledger: the last recorded evidence, bit for bit.
    let text = std::fs::read_to_string(desk.at.join("out/ledger.jsonl")).unwrap();
    let mut terms = eprocess::GateTerms::new(1_000_000, 40);
    terms.alpha_kill = Some(50_000);
    let n = here["n"].as_u64().unwrap();
    terms.looks = eprocess::Looks::At(vec![n]);
    let mut gate = eprocess::Gate::open(eprocess::Design::new(terms).unwrap());
    let mut recorded = None;
    for line in text.lines() {
        let entry = clover::event::Entry::parse(line.as_bytes()).unwrap();
        let body: serde_json::Value = serde_json::from_slice(entry.signed.body()).unwrap();
        match body["kind"].as_str().unwrap() {
            "gate.observed" => {
                let delta = body["data"]["readings"][0]["delta_micro"].as_i64().unwrap();
                gate.push(delta).unwrap();
            }
            "gate.looked" => recorded = body["data"]["log_e"].as_f64(),
            _ => {}
        }
    }
    let found = gate.look().claim.unwrap().ln_wealth;
    assert_eq!(found.to_bits(), recorded.unwrap().to_bits());
}

/// Imports an export, which ends in snapshots of its head, and changes the first place of one of them that says so.
fn forge(desk: &mut Desk, (out, copy): (&str, &str), (fold, from, to): (&str, &str, &str)) {
    desk.ok(&format!("import ledger {out} --into {copy}"));
    let folder = desk.at.join(copy).join(".clover");
    std::fs::copy(desk.at.join(".clover/log.key"), folder.join("log.key")).unwrap();
    let conn = rusqlite::Connection::open(folder.join("ledger.db")).unwrap();
    let read = "SELECT state FROM snapshots WHERE fold = ?1";
    let kept: Vec<u8> = conn.query_row(read, [fold], |row| row.get(0)).unwrap();
    let kept = String::from_utf8(kept).unwrap();
    let forged = kept.replacen(from, to, 1);
    assert_ne!(forged, kept, "{from}");
    let write = "UPDATE snapshots SET state = ?1 WHERE fold = ?2";
    let change = rusqlite::params![forged.into_bytes(), fold];
    conn.execute(write, change).unwrap();
}

/// A snapshot with other counts, another level or another last look is no state that anything is computed from.
#[test]
fn a_forged_snapshot_is_refused() {
    let mut desk = scored();
    desk.run("gate observe m-1 --through 6");
    desk.run("gate look m-1");
    desk.run("gate observe m-1 --through 8");
    desk.ok("export jsonl -o out --blobs");
    for (from, to, verb) in [
        ("\"levels\":[[", "\"levels\":[[-400000,1],[", "look"),
        ("\"alpha_micro\":50000", "\"alpha_micro\":90000", "look"),
        ("\"cs_lo\":-", "\"cs_lo\":-1", "look"),
        ("\"n\":8", "\"n\":7", "observe"),
    ] {
        let copy = format!("copy-{}", from.len() + to.len());
        forge(&mut desk, ("out", &copy), ("gates", from, to));
        let all = if verb == "observe" { "--all" } else { "" };
        let ran = desk.run(&format!("gate {verb} m-1 {all} --ledger {copy}"));
        assert_eq!(ran.code, 3, "{from}\n{}{}", ran.out, ran.err);
        assert!(ran.err.contains("snapshot"), "{}", ran.err);
        let ran = desk.run(&format!("verify --ledger {copy}"));
        assert!(ran.code == 3 && ran.out.contains("snapshot"), "{}", ran.out);
    }
}

/// A gate is decided and promoted on, and a family closed, by no fold that is not what the entries give.
#[test]
fn nothing_ends_by_a_forged_snapshot_of_any_fold() {
    let mut desk = scored();
    desk.run("gate observe m-1 --all");
    let verbs = [
        "gate decide m-1",
        "gate promote m-1",
        "family close quarter --yes",
    ];
    for (at, verb) in verbs.into_iter().enumerate() {
        desk.ok(&format!("export jsonl -o out-{at} --blobs"));
        let copy = format!("copy-{at}");
        let change = ("manifests", "\"exposures\":1", "\"exposures\":2");
        forge(&mut desk, (&format!("out-{at}"), &copy), change);
        let ran = desk.run(&format!("{verb} --ledger {copy}"));
        assert_eq!(ran.code, 3, "{verb}\n{}{}", ran.out, ran.err);
        let word = "a snapshot of manifests";
        assert!(ran.err.contains(word), "{verb} {}", ran.err);
        if verb.starts_with("gate decide") {
            desk.ok(verb);
        }
    }
}

/// A gate is neither shown nor observed by a plan, or a family, that the log does not register so.
#[test]
fn a_forged_plan_is_not_shown() {
    let mut desk = scored();
    desk.run("gate observe m-1 --through 6");
    desk.ok("export jsonl -o out --blobs");
    for (at, (from, to)) in [
        ("\"repeats\":1", "\"repeats\":2"),
        ("\"members_max\":3", "\"members_max\":1"),
    ]
    .into_iter()
    .enumerate()
    {
        let copy = format!("copy-{at}");
        forge(&mut desk, ("out", &copy), ("manifests", from, to));
        for verb in ["show m-1", "look m-1", "observe m-1 --all"] {
            let ran = desk.run(&format!("gate {verb} --ledger {copy}"));
            assert_eq!(ran.code, 3, "{verb} {from}\n{}{}", ran.out, ran.err);
            assert!(ran.err.contains("a snapshot of manifests"), "{}", ran.err);
        }
    }
}

/// The whole life of a gate, on one thread and on two: the same entries under the same root.
#[test]
fn one_thread_and_two_make_the_same_ledger() {
    let life = || {
        let mut desk = scored();
        desk.run("gate observe m-1 --all");
        desk.run("gate decide m-1");
        let shown = desk.ok("gate show m-1 --json").json()["data"].clone();
        (desk.head(), shown)
    };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(life)
    };
    let (one, two) = (on(1), on(2));
    assert_eq!(one, two);
}

/// Outcomes of every unit, as JSON Lines or as a table.
fn outcomes(table: bool) -> String {
    let mut lines = String::new();
    if table {
        lines += "unit,baseline,candidate\n";
    }
    for (at, unit) in units().iter().enumerate().take(40) {
        let candidate = ["0.5", "0.7", "0.9"][at % 3];
        lines += &if table {
            format!("{unit},0.4,{candidate}\n")
        } else {
            format!("{{\"unit\":\"{unit}\",\"baseline\":[0.4],\"candidate\":{candidate}}}\n")
        };
    }
    lines
}

/// A desk with a gate that is open and exposed, and nothing scored.
fn exposed() -> Desk {
    let mut desk = opened(|_| {});
    desk.ok("exposure open m-1 --through 40 --yes");
    desk
}

#[test]
fn outcomes_in_a_file_are_recorded_in_the_order_drawn_and_observed() {
    let mut ends = Vec::new();
    for (name, table) in [("outcomes.jsonl", false), ("outcomes.csv", true)] {
        let mut desk = exposed();
        let file = desk.file(name, &outcomes(table));
        let before = desk.head();
        let shown = desk.ok(&format!(
            "gate observe m-1 --all --from {file} --dry-run --json"
        ));
        assert_eq!(shown.json()["data"]["bodies"].as_array().unwrap().len(), 80);
        assert_eq!(desk.head(), before);
        let ran = desk
            .ok(&format!("gate observe m-1 --all --from {file} --json"))
            .json();
        assert_eq!(
            (&ran["verdict"], &ran["data"]["recorded"]),
            (&"ship".into(), &80.into())
        );
        // Again: what is recorded stays, and nothing is recorded twice.
        let again = desk
            .ok(&format!("gate observe m-1 --all --from {file} --json"))
            .json();
        assert_eq!(again["data"]["recorded"], 0);
        ends.push((
            ran["data"]["n"].clone(),
            ran["data"]["look"]["log_e"].clone(),
        ));
        // Scores stand in the order drawn, both arms of a unit together.
        let log = desk
            .ok("log --kind score.recorded --limit 100 --json")
            .json();
        assert!(log["data"].is_object());
    }
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn a_bad_outcome_is_named_and_nothing_is_recorded() {
    let mut desk = exposed();
    let good = outcomes(false);
    let line = |at: usize| good.lines().nth(at).unwrap().to_owned();
    for (text, says) in [
        (
            good.replacen("0.5", "\"x\"", 1),
            "bad.jsonl:1: candidate: expected a number",
        ),
        (
            good.clone() + &line(0) + "\n",
            "bad.jsonl:41: unit: expected each unit once",
        ),
        (
            good.replacen("unit-03", "unit-99", 1),
            "bad.jsonl:4: unit: expected a unit of the gate's order",
        ),
        (
            good.replacen("[0.4]", "[0.4,0.4]", 1),
            "bad.jsonl:1: baseline: expected 1 draws, found 2",
        ),
        (
            good.replacen("0.7", "1.7", 1),
            "bad.jsonl:2: candidate: expected values from 0 to 1",
        ),
        (
            good.replacen("\"unit\"", "\"metric\":\"cost\",\"unit\"", 1),
            "bad.jsonl:1: metric: expected one of quality",
        ),
    ] {
        let file = desk.file("bad.jsonl", &text);
        desk.refused(
            &["gate", "observe", "m-1", "--all", "--from", &file],
            4,
            &[says],
        );
    }
    // A failed draw is no score; it counts against the candidate where that is asked for.
    let file = desk.file("some.jsonl", &good.replace(":0.9}", ":null}"));
    let ran = desk.run(&format!(
        "gate observe m-1 --all --missing --from {file} --json"
    ));
    assert_eq!(ran.json()["data"]["recorded"], 67);
}

#[test]
fn what_would_be_said_of_a_gate_is_shown_and_not_said() {
    let mut desk = opened(|desk| {
        let before = desk.head();
        let shown = desk.ok("gate open m-1 --units units.txt --judge judge-1 --dry-run --json");
        let bodies = shown.json()["data"]["bodies"].as_array().unwrap().clone();
        let kinds: Vec<_> = bodies
            .iter()
            .map(|body| {
                let body: serde_json::Value = serde_json::from_str(body.as_str().unwrap()).unwrap();
                body["kind"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(
            kinds,
            ["units.listed", "order.listed", "order.drawn", "gate.opened"]
        );
        assert_eq!(desk.head(), before);
        desk.file("shown", &bodies[1].to_string());
    });
    // The order shown is the one drawn.
    let drawn = desk.ok("log --kind order.listed --json").out;
    let shown = std::fs::read_to_string(desk.at.join("shown")).unwrap();
    let first = |text: &str| {
        let at = text.find("units").unwrap();
        let unit = text[at..].find("unit-").unwrap() + at;
        text[unit..unit + 7].to_owned()
    };
    assert!(
        shown.contains("unit-") && (!drawn.contains("unit-") || first(&shown) == first(&drawn))
    );
    let mut desk = scored();
    let before = desk.head();
    let shown = desk
        .ok("gate observe m-1 --through 3 --dry-run --json")
        .json();
    assert_eq!(shown["data"]["bodies"].as_array().unwrap().len(), 3);
    assert_eq!(desk.head(), before);
    // A plan is sealed before anything is seen.
    let mut desk = opened(|_| {});
    let before = desk.head();
    desk.file("plan.md", "what we shall do");
    let seal = "prereg plan seal m-1 plan.md --salt-file plan.salt --reveal-by 2027-01-31T00:00:00.000000Z";
    desk.ok(&format!("{seal} --dry-run"));
    assert!(!desk.at.join("plan.salt").exists());
    assert_eq!(desk.head(), before);
    desk.ok(seal);
    let before = desk.head();
    desk.ok("prereg plan reveal m-1 plan.md --salt-file plan.salt --dry-run");
    assert_eq!(desk.head(), before);
}

/// How fast scores and observations are recorded in bulk, on this machine and build; the long run prints it.
#[test]
fn observations_are_recorded_in_bulk() {
    let n = if crate::coverage::is_slow() {
        20_000
    } else {
        60
    };
    let mut desk = Desk::with_ledger();
    desk.ok("key new bea --role arbiter");
    let words = [
        "family",
        "open",
        "quarter",
        "--method",
        "spend",
        "--alpha",
        "0.05",
        "--members",
        "3",
        "--membership",
        "gates",
    ];
    desk.ok_words(&words);
    let units: Vec<_> = (0..n).map(|at| format!("unit-{at:06}")).collect();
    let file = desk.file("units.txt", &(units.join("\n") + "\n"));
    let root = desk.ok(&format!("gate root {file} --json")).json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    // A test that says nothing before all units are there.
    let plan = manifest("m-1", "exp-1", &root, 50_000)
        .replace("n_units: 40", &format!("n_units: {n}"))
        .replace("n_min: 5", &format!("n_min: {n}"))
        .replace("n_max: 40", &format!("n_max: {n}"));
    let plan = desk.file("plan.yaml", &plan);
    desk.ok(&format!("prereg sign {plan} --countersign --yes"));
    desk.ok("gate open m-1 --units units.txt --judge judge-1");
    desk.ok("exposure open m-1");
    let mut lines = String::new();
    for (at, unit) in units.iter().enumerate() {
        for (policy, score) in [
            ("baseline", 400_000),
            ("candidate", [300_000, 500_000][at % 2]),
        ] {
            lines += &format!(
                "{{\"kind\":\"score.recorded\",\"experiment\":\"exp-1\",\"data\":{{\"draw\":0,\"item\":\"{unit}\",\"judge\":\"judge-1\",\"policy\":\"{policy}\",\"score_micro\":{score}}}}}\n"
            );
        }
    }
    let bulk = desk.file("scores.jsonl", &lines);
    let since = std::time::Instant::now();
    desk.ok(&format!("append --bulk {bulk}"));
    let scores = f64::from(2 * n) / since.elapsed().as_secs_f64();
    let observed = desk.run("gate observe m-1 --all --json").json();
    assert_eq!(observed["data"]["n"], n);
    assert_eq!(observed["data"]["look"]["standing"], "undecided_at_n_max");
    let rate = observed["data"]["per_second"].as_f64().unwrap();
    println!("{n} units: {scores:.0} scores and {rate:.0} observations a second");
}
