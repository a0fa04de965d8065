//! A judge whose fault lies in what it is told: a patch tells it otherwise, it is asked anew, and the patch is accepted on what
//! it answers then.

use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use super::shipped::PEEKS;
use super::shipped::lay_out;
use super::shipped::opening;
use super::shipped::plan;
use crate::support::verifiers;

/// Pays for asked terms and digits, and for anything that looks like an address; told that evidence is mandatory, only for
/// addresses that it knows. It stops before its time where a file says after how many asks.
const JUDGE: &str = r#"import json, os, sys
left = int(open("asks_left").read()) if os.path.exists("asks_left") else 10**9
known = json.load(open("retold/known.json"))["citations"]["known"]
exists = [address for address, of in known.items() if of["resolved"]]
for line in sys.stdin:
    ask = json.loads(line)
    if ask["id"] > left:
        sys.exit(3)
    answer = ask["response"].lower()
    terms = ask["prompt"].split(": ")[1].rstrip(".").split(", ")
    micro = 500000 * sum(term in answer for term in terms) // len(terms)
    micro += 20000 * min(10, sum(any(c.isdigit() for c in part) for part in answer.split(". ")))
    if "Evidence is mandatory" in ask.get("judge_prompt", ""):
        cited = any(address in answer for address in exists)
    else:
        cited = "http" in answer
    micro = min(1000000, micro + 300000 * cited)
    print('{"id":%d,"score":%.6f}' % (ask["id"], micro / 1e6), flush=True)
"#;

/// What the judge is to be told.
const PATCH: &str = "patch:\n  family: evidence_verification\n  id: evidence-is-mandatory\n  rationale: Answers with sources \
    that do not exist are over-scored.\n  changes:\n    obligations.factual_adequacy.required: true\n  constraints:\n    \
    max_tokens_added: 10\n    affects_rescore: true\n";

fn of() -> ShippedDataset {
    let [mended, _] = shipped();
    ShippedDataset {
        name: "retold",
        ..mended
    }
}

/// The scores that the program gives, so that the files say what it says: whoever imports them finds no other.
fn scored(desk: &Desk, file: &str) {
    let script = format!(
        "import json, subprocess, sys\npath = 'retold/{file}_responses.jsonl'\nrows = [json.loads(l) for l in open(path)]\n\
         asks = ''.join(json.dumps({{'id': n + 1, 'prompt': r['prompt'], 'response': r['response']}}) + '\\n' for n, r in \
         enumerate(rows))\nout = subprocess.run(['python3', 'judge.py'], input=asks, capture_output=True, text=True, \
         check=True).stdout\nlines = out.splitlines()\n\
         with open(path, 'w') as to:\n    for r, l in zip(rows, lines):\n        r['judge_score'] = json.loads(l)['score']\n        \
         to.write(json.dumps(r) + '\\n')\n"
    );
    let ran = verifiers::python3()
        .current_dir(&desk.at)
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// A ledger with an open iteration, whose judge is a program or the built-in one.
fn opened(program: Option<&str>) -> Desk {
    opened_as(program, &of(), |_| ())
}

/// The same under another rubric, with something done to the files before they are taken in.
fn opened_as(program: Option<&str>, of: &ShippedDataset, change: impl Fn(&Desk)) -> Desk {
    let is_program = program.is_some();
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer,releaser";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new mal --role adversary");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    lay_out(&desk.at, of);
    change(&desk);
    desk.file("judge.py", program.unwrap_or_default());
    desk.file("patch.yaml", PATCH);
    if is_program {
        for file in [
            "responses/base",
            "anchors/anchor_high",
            "anchors/anchor_low",
        ] {
            scored(&desk, file);
        }
        let mut plan = plan(of);
        plan["iteration"]["design"]["judge"] = "prog".into();
        desk.file("retold.yaml", &plan.to_string());
    }
    for line in opening(of) {
        let line = if is_program {
            line.replace("--judge builtin", "--judge prog")
        } else {
            line
        };
        let told = if desk.at.join("told.txt").exists() {
            " --prompt told.txt"
        } else {
            ""
        };
        let line = if is_program && line.starts_with("judge run") {
            format!("{line}{told} --model prog-1 -- python3 judge.py")
        } else {
            line
        };
        desk.ok(&line);
    }
    desk
}

/// A ledger with an open iteration, whose judge is a program that has a record of the anchors alone.
pub(super) fn unscored(program: &str) -> Desk {
    let of = of();
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer,releaser";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    lay_out(&desk.at, &of);
    desk.file("judge.py", program);
    let mut plan = plan(&of);
    plan["iteration"]["design"]["judge"] = "prog".into();
    desk.file("retold.yaml", &plan.to_string());
    for line in opening(&of) {
        if line.starts_with("prereg sign") {
            desk.ok("judge run --experiment retold --judge prog --rows retold/anchors -- python3 judge.py");
        }
        desk.ok(&line);
    }
    desk
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    list["data"]["entries"].as_array().unwrap().clone()
}

/// What an entry says.
fn said(desk: &mut Desk, entry: &Value) -> Value {
    let shown = desk.ok(&format!("show {} --json", entry["seq"])).json();
    let text = shown["data"].to_string();
    serde_json::from_str(&text).unwrap()
}

/// The data of an entry.
fn said_of(desk: &mut Desk, entry: &Value) -> Value {
    said(desk, entry)["body"]["data"].clone()
}

#[test]
fn a_patch_takes_the_place_of_a_rendered_prompt_and_of_no_other() {
    if !verifiers::python() {
        return;
    }
    // Given a judge that is told a text of its own, when a patch changes what it is told, then nothing is proposed.
    let own = |desk: &Desk| {
        desk.file("told.txt", "Padding earns nothing.\n");
    };
    let mut desk = opened_as(Some(JUDGE), &of(), own);
    let head = desk.head();
    for verb in ["check", "propose"] {
        let program = if verb == "check" {
            " -- python3 judge.py"
        } else {
            ""
        };
        let line = format!("patch {verb} patch.yaml --iteration it-retold{program}");
        let refused = desk.run(&line);
        assert_eq!(refused.code, 11, "{}{}", refused.out, refused.err);
        says(
            &refused,
            &[
                "judge prog is told",
                "a text of its own",
                "clover prompt checkout",
            ],
        );
    }
    assert_eq!(desk.head(), head);
    // What is computed from its answers changes nothing that it is told.
    desk.ok("patch check retold/patch.yaml --iteration it-retold");
    // Given one that is told what the rubric renders, then the patch is asked of it.
    let rendered = |desk: &Desk| {
        let data = of();
        let rubric = clover::rubric::Rubric::parse(data.rubric.as_bytes()).unwrap();
        let topics = plan(&data)["iteration"]["design"]["topics"].clone();
        let topics: std::collections::BTreeSet<String> = serde_json::from_value(topics).unwrap();
        desk.file(
            "told.txt",
            &clover::rubric::prompt::render(&rubric, &topics),
        );
    };
    let mut desk = opened_as(Some(JUDGE), &of(), rendered);
    let checked =
        desk.ok("patch check patch.yaml --iteration it-retold --json -- python3 judge.py");
    let asks = checked.json()["data"]["asks"].clone();
    assert!(
        asks["judge"].as_str().unwrap().starts_with("prog+"),
        "{asks:#}"
    );
}

#[test]
fn a_patch_of_what_the_judge_is_told_is_accepted_on_what_it_answers_then() {
    if !verifiers::python() {
        return;
    }
    let mut desk = opened(Some(JUDGE));
    let judge = "-- python3 judge.py";
    // Given an iteration whose judge is a program, when no program is named, then the check says how to name one.
    let head = desk.head();
    let check = "patch check patch.yaml --iteration it-retold";
    let unnamed = desk.run(check);
    assert_eq!(unnamed.code, 2, "{}{}", unnamed.out, unnamed.err);
    says(
        &unnamed,
        &["judge prog+", "which is a program", "-- COMMAND"],
    );
    // Another program than the judge's, or none, is not asked.
    desk.file("other.py", "print()");
    for (program, code, said) in [
        (
            "python3 other.py",
            11,
            "expected the program that it was registered with",
        ),
        (
            "no-such-judge-here",
            5,
            "no no-such-judge-here in any folder of PATH",
        ),
    ] {
        let other = desk.run(&format!("{check} -- {program}"));
        assert_eq!(other.code, code, "{}{}", other.out, other.err);
        says(&other, &[said]);
    }
    assert_eq!(desk.head(), head);
    let checked = desk.ok(&format!("{check} --json {judge}")).json();
    let (asks, needs) = (&checked["data"]["asks"], &checked["data"]["needs_rescore"]);
    assert_eq!((&asks["rows"], needs), (&2_500.into(), &true.into()));
    let name = asks["judge"].as_str().unwrap().to_owned();
    let hash = name.strip_prefix("prog+").unwrap();
    assert_eq!(hash.len(), 12, "{name}");
    // When its worth is asked for before the judge was asked anew, then nothing is known of it.
    desk.ok(&format!("iterate run it-retold --to cards {judge}"));
    let early = desk.run("patch objective patch.yaml --iteration it-retold");
    assert_eq!(early.code, 11, "{}{}", early.out, early.err);
    says(&early, &["changes what the judge is told"]);
    let absent = ["iterate", "run", "it-retold", "--propose", "none.yaml"];
    desk.refused(&absent, 5, &["none.yaml"]);
    let early = "iterate run it-retold --to cards --propose patch.yaml --json";
    let early = desk.ok(early).json();
    assert_eq!(early["data"]["proposed"], json!([]), "{early:#}");
    assert!(early["warnings"].to_string().contains("is not proposed"));
    // A run whose gates would ask the program, which is not named, records nothing of the patch.
    let head = desk.head();
    let untold = desk.run("iterate run it-retold --yes --propose patch.yaml");
    assert_eq!(untold.code, 2, "{}{}", untold.out, untold.err);
    says(&untold, &["is a program", "-- COMMAND"]);
    assert_eq!(desk.head(), head);
    let propose = "iterate run it-retold --to propose --propose patch.yaml --json";
    let proposed = desk.ok(propose).json();
    let one = &proposed["data"]["proposed"][0];
    assert_eq!(one["appended"], 1, "{proposed:#}");
    assert_eq!(proposed["verdict"], "appended");
    assert_eq!(desk.ok(propose).json()["verdict"], "already_recorded");
    // When the gates are due and no program is named, then nothing is recorded.
    let head = desk.head();
    let untold = desk.run("iterate gate it-retold");
    assert_ne!(untold.code, 0, "{}", untold.out);
    says(&untold, &["is a program", "-- COMMAND"]);
    assert_eq!(desk.head(), head);
    // When the program stops half-way, then what it answered stands and the same command goes on.
    desk.file("asks_left", "300");
    let cut = desk.run(&format!("iterate gate it-retold --timeout 5 {judge}"));
    assert_ne!(cut.code, 0, "{}", cut.out);
    says(&cut, &["ask 301", "300 rows were recorded"]);
    std::fs::remove_file(desk.at.join("asks_left")).unwrap();
    let gated = desk
        .ok(&format!("iterate gate it-retold --json {judge}"))
        .json();
    let asked = &gated["data"]["patches"][0]["asked"];
    assert_eq!(asked["judge"], json!(name), "{gated:#}");
    assert!(asked["again"].as_u64().unwrap() >= 30, "{gated:#}");
    // Then the judge is registered as it is told, and answered about all rows but those of confirm.
    let judges = entries(&mut desk, "judge.registered");
    assert_eq!(judges.len(), 2);
    let told = said(&mut desk, &judges[1]);
    let text = told.to_string();
    assert!(text.contains(&name) && text.contains("\"of\""), "{told:#}");
    let recomputed = entries(&mut desk, "scores.recomputed");
    let recomputed = said(&mut desk, &recomputed[0]).to_string();
    assert!(recomputed.contains("\"rescored\":1900"), "{recomputed}");
    assert!(recomputed.contains(&name), "{recomputed}");
    assert!(!recomputed.contains("\"recomputed\":1900"), "{recomputed}");
    let shown = desk.ok("iterate show it-retold --json").json()["data"].clone();
    for gate in shown["candidates"][0]["dev"].as_array().unwrap() {
        // The plan claims no environment: P6 has nothing to test.
        let expected = if gate["gate"] == "p6" {
            "not_checked"
        } else {
            "pass"
        };
        assert_eq!(gate["recommended"], expected, "{gate:#}");
    }
    // When it goes on, then confirm is asked about before its labels are shown, and the patch is accepted.
    let ran = desk.ok(&format!("iterate run it-retold --yes {judge}"));
    println!("{}", ran.out);
    let shown = desk.ok("iterate show it-retold --json").json()["data"].clone();
    assert_eq!(shown["outcome"], "accepted", "{shown:#}");
    assert_eq!(entries(&mut desk, "score.conflict").len(), 0);
    let seq = |entry: &Value| entry["seq"].as_u64().unwrap();
    let evidence = entries(&mut desk, "evidence.recorded");
    let unsealed = entries(&mut desk, "confirm.unsealed");
    assert!(seq(evidence.last().unwrap()) < seq(&unsealed[0]));
    assert!(asked["differ"].as_u64().unwrap() > 100, "{gated:#}");
    // Then whoever has the ledger computes all of it again, and no judge is called.
    std::fs::remove_file(desk.at.join("judge.py")).unwrap();
    answers_are_kept(&mut desk, &name);
    desk.ok("verify");
    desk.ok("verify --recompute");
}

/// Whatever the programs answered to attacks is on record, and the batteries are computed again from it.
fn answers_are_kept(desk: &mut Desk, told: &str) {
    let batteries = entries(desk, "battery.evaluated");
    assert!(!batteries.is_empty());
    let mut asked = Vec::new();
    for battery in &batteries {
        let said = said(desk, battery);
        let data = &said["body"]["data"];
        let answers = data["answers"]
            .as_array()
            .unwrap_or_else(|| panic!("{said:#}"));
        for of in answers {
            assert!(of["records_count"].as_u64().unwrap() > 1_000, "{of}");
            asked.push(of["judge"].as_str().unwrap().to_owned());
        }
    }
    assert!(asked.iter().any(|judge| judge == told), "{asked:?}");
    let replayed = desk.replayed("");
    let events = replayed["events"].as_array().unwrap().iter();
    let of = events.filter(|event| event["kind"] == "battery.evaluated");
    let outcomes: Vec<_> = of.map(|event| event["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes.len(), batteries.len());
    assert!(outcomes.iter().all(|of| *of == "identical"), "{outcomes:?}");
}

#[test]
fn a_patch_of_what_the_judge_is_told_needs_one_that_can_be_told() {
    if !verifiers::python() {
        return;
    }
    let mut desk = opened(None);
    let head = desk.head();
    let check = desk.run("patch check patch.yaml --iteration it-retold -- python3 judge.py");
    assert_eq!(check.code, 11, "{}{}", check.out, check.err);
    says(
        &check,
        &[
            "judge builtin is the built-in one, which is told nothing",
            "iteration.design.judge",
            "clover judge run --judge ID --rows PATH -- COMMAND",
        ],
    );
    // A patch that only computes otherwise asks nobody.
    let other = desk
        .ok("patch check retold/patch.yaml --iteration it-retold --json")
        .json();
    assert_eq!(other["data"]["needs_rescore"], false, "{other:#}");
    assert_eq!(other["data"]["asks"], Value::Null, "{other:#}");
    // Whether a source that is listed anew needs to be verified is decided by the answers on record.
    let listed = PATCH
        .replace("evidence-is-mandatory", "list-a-source")
        .replace(
            "obligations.factual_adequacy.required: true",
            "obligations.factual_adequacy.verification: {allowed_domains+: [archive.example.org]}",
        )
        .replace("affects_rescore: true", "affects_rescore: false");
    desk.file("listed.yaml", &listed);
    let listed = desk
        .ok("patch check listed.yaml --iteration it-retold --json")
        .json();
    assert_eq!(listed["data"]["needs_rescore"], false, "{listed:#}");
    assert_eq!(desk.head(), head);
}

/// Pays for anything that looks like an address, whatever it is told, and says of each answer whether its sources exist.
fn witness() -> String {
    let told = JUDGE.find("    if \"Evidence").unwrap();
    let rest = JUDGE.find("    micro = min").unwrap();
    let pays = "    exists_all = \"http\" not in answer or any(address in answer for address in exists)\n    \
                cited = \"http\" in answer\n";
    let all = format!("{}{pays}{}", &JUDGE[..told], &JUDGE[rest..]);
    let says = all.find("    print(").unwrap();
    format!(
        "{}    print(json.dumps({{\"id\": ask[\"id\"], \"score\": round(micro / 1e6, 6), \"evidence\": \
         {{\"counter_position\": exists_all}}}}), flush=True)\n",
        &all[..says]
    )
}

/// A rubric that asks for what the program found, at no price.
const UNWEIGHED: &str =
    "    sources:\n      requires_counter_position: true\n      penalty: 0\n  guards:\n";

/// The judge is told that evidence is mandatory, and what it finds then has a price.
const WEIGHED: &str = "patch:\n  family: evidence_verification\n  id: weigh-evidence\n  rationale: Answers with sources that \
    do not exist are over-scored.\n  changes:\n    obligations.factual_adequacy.required: true\n    \
    obligations.sources.penalty: 0.35\n  constraints:\n    max_tokens_added: 20\n    affects_rescore: true\n";

#[test]
fn a_patch_that_weighs_what_a_program_found_is_judged_on_what_it_finds_then() {
    if !verifiers::python() {
        return;
    }
    let of = of();
    let of = ShippedDataset {
        rubric: of.rubric.replace("  guards:\n", UNWEIGHED),
        ..of
    };
    let mut desk = opened_as(Some(&witness()), &of, |desk| {
        let path = desk.at.join("retold/known.json");
        let mut known: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        known["evidence"] = json!({"schema": "acme/1", "fields": {"counter_position": "bool"}});
        std::fs::write(&path, known.to_string()).unwrap();
    });
    desk.file("weigh.yaml", WEIGHED);
    let judge = "-- python3 judge.py";
    let ran = desk.run(&format!(
        "iterate run it-retold --propose weigh.yaml --yes {judge}"
    ));
    assert!([0, 10].contains(&ran.code), "{}{}", ran.out, ran.err);
    let shown = desk.ok("iterate show it-retold --json").json()["data"].clone();
    // Then the price of what was found mends the scores; whether an attack outbids it is another criterion's to say.
    let gates = shown["candidates"][0]["dev"].as_array().unwrap().clone();
    let mends = gates.iter().find(|gate| gate["gate"] == "p1").unwrap();
    assert_eq!(mends["recommended"], "pass", "{}\n{shown:#}", ran.out);
    // Then every row was asked about anew, and its evidence is that of the judge as it is told.
    let recomputed = entries(&mut desk, "scores.recomputed");
    let recomputed = said(&mut desk, &recomputed[0])["body"]["data"].clone();
    assert_eq!(recomputed["rescored"], 1_900, "{recomputed:#}");
    let told = recomputed["judge"].as_str().unwrap().to_owned();
    assert!(told.starts_with("prog+"), "{told}");
    let (mut all, mut without) = (0, 0);
    for entry in entries(&mut desk, "evidence.recorded") {
        let data = said(&mut desk, &entry)["body"]["data"].clone();
        if data["judge"] != told.as_str() {
            continue;
        }
        let blob = data["records"]["blake3"].as_str().unwrap().to_owned();
        for line in desk.ok(&format!("blob get {blob}")).out.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            all += 1;
            without += usize::from(record["evidence"]["counter_position"] == false);
        }
    }
    // The price falls on some answers, and not on all.
    assert!(
        all > 1_900 && without > 50 && without < all / 2,
        "{without} of {all}"
    );
    // Then whoever has the ledger computes all of it again, and no judge is called.
    std::fs::remove_file(desk.at.join("judge.py")).unwrap();
    answers_are_kept(&mut desk, &told);
    desk.ok("verify --recompute");
}

/// What the judge pays for an address, whatever it is told.
const HONEST: &str = r#"    if "Evidence is mandatory" in ask.get("judge_prompt", ""):"#;

/// Runs an iteration over the patch with a judge that is no better for what it is told; gives what the steps said.
fn pretended(desk: &mut Desk) -> String {
    let judge = "-- python3 judge.py";
    let ran = desk.run(&format!(
        "iterate run it-retold --propose patch.yaml --yes {judge}"
    ));
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    let shown = desk.ok("iterate show it-retold --json").json()["data"].clone();
    assert_eq!(shown["outcome"], "no_candidate", "{shown:#}");
    for kind in ["patch.accepted", "confirm.unsealed", "budget.charged"] {
        assert_eq!(entries(desk, kind).len(), 0, "{kind}");
    }
    std::fs::remove_file(desk.at.join("judge.py")).unwrap();
    desk.replayed("");
    desk.ok("verify");
    desk.ok("verify --recompute");
    let words: Vec<_> = ran.out.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn its_twin_that_only_pretends_is_not_accepted() {
    if !verifiers::python() {
        return;
    }
    // Given the same judge and patch, when the judge takes no notice of what it is told, then the patch changes nothing.
    let mut desk = opened(Some(&JUDGE.replace(HONEST, "    if False:")));
    // Exploits are known before, as in a second iteration: the battery of the patch measures them under both judges.
    let judge = "-- python3 judge.py";
    desk.ok(&format!("iterate run it-retold --to cards {judge}"));
    let attacked = desk.run(&format!("battery run it-retold {judge}"));
    assert_eq!(attacked.code, 10, "{}{}", attacked.out, attacked.err);
    assert!(!entries(&mut desk, "exploit.discovered").is_empty());
    let said = pretended(&mut desk);
    let batteries = entries(&mut desk, "battery.evaluated");
    let of_patch = said_of(&mut desk, batteries.last().unwrap());
    let answers = of_patch["answers"].as_array().unwrap().clone();
    let names: Vec<_> = answers
        .iter()
        .map(|of| of["judge"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "prog", "{of_patch:#}");
    assert!(
        names.len() == 2 && names[1].starts_with("prog+"),
        "{names:?}"
    );
    let judges = entries(&mut desk, "judge.registered");
    assert_eq!(judges.len(), 2);
    for part in [
        "answers all 1900 rows as prog did: what the patch tells it changes nothing that it says",
        "evidence-is-mandatory leaves the squared error on dev as it is, and is rejected: p1",
        "no peek was spent",
    ] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}

#[test]
fn a_judge_that_mends_itself_about_confirm_alone_is_not_asked_about_it() {
    if !verifiers::python() {
        return;
    }
    // Given a judge that answers about rows of the last weeks, which are sealed, as if it were mended, and about all others
    // as before.
    let (_, from, _) = of().world().times();
    let from = String::from_utf8(from.to_text().to_vec()).unwrap();
    let late = format!(
        "rows = map(json.loads, open('retold/responses/base_responses.jsonl'))\nlate = {{row['prompt_id'] for row in rows if \
         row['sampled_at'] >= '{from}'}}\nassert len(late) > 500\nfor line"
    );
    let mended = HONEST.replace(':', " and ask[\"item\"] in late:");
    let script = JUDGE
        .replace(HONEST, &mended)
        .replacen("for line", &late, 1);
    let mut desk = opened(Some(&script));
    let said = pretended(&mut desk);
    // Then it is asked about none of them: the answers before are the same, and no peek is spent on the rest.
    for part in [
        "answers all 1900 rows as prog did",
        "was asked about 1900 rows",
    ] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}
