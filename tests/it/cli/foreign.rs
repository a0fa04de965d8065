//! What others wrote: checkpoints that are none, names that mislead, records without measure.

use crate::cli::Desk;
use crate::cli::says;

#[test]
fn a_checkpoint_that_is_none_is_a_finding_beside_the_others() {
    let mut desk = Desk::with_ledger();
    desk.ok("export jsonl -o out");
    let path = desk.at.join("out/checkpoint");
    let note = std::fs::read(&path).unwrap();
    for bad in [
        &note[..note.len() / 2],
        b"",
        b"\xff\n\n\xff\n",
        b"no note at all\n",
    ] {
        std::fs::write(&path, bad).unwrap();
        let ran = desk.run("verify out --json");
        assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
        let report = &ran.json()["data"]["report"];
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0]["rule"], "checkpoint");
        let last = report["events"].as_u64().unwrap() - 1;
        assert_eq!(findings[0]["seq"], last);
    }
    // What else is wrong is found too.
    let lines = desk.at.join("out/ledger.jsonl");
    let text = std::fs::read_to_string(&lines).unwrap();
    std::fs::write(&lines, text.replacen("\"seq\":1}", "\"seq\":7}", 1)).unwrap();
    let ran = desk.run("verify out");
    assert_eq!(ran.code, 3);
    for part in ["seq 1  seq", "seq 3  checkpoint", "first at seq 1"] {
        assert!(ran.out.contains(part), "{part} is not in {}", ran.out);
    }
    std::fs::write(&lines, text).unwrap();
    std::fs::write(&path, note).unwrap();
    desk.file("kept", "no checkpoint");
    let ran = desk.run("verify out --against kept");
    assert_eq!(ran.code, 3);
    assert!(
        ran.out.contains("a signed checkpoint in kept"),
        "{}",
        ran.out
    );
}

#[test]
fn holders_have_one_spelling() {
    let mut desk = Desk::new();
    desk.ok("init --separation strict --holder Ada");
    let mut refused = |holder: &str, part: &str| {
        let words = [
            "key",
            "new",
            "opt",
            "--role",
            "optimizer",
            "--holder",
            holder,
        ];
        desk.refused(&words, 2, &[part]);
    };
    refused("Bob\u{200b}", "an invisible character, \\u{200b}");
    refused("Bob ", "a space at an end, or two together");
    refused("B\u{a0}b", "a blank that is no space, \\u{a0}");
    refused("Bob\u{1f6dd}", "Unicode 13.0");
    for other in ["ada", "\u{410}da", "\u{ff21}da"] {
        refused(other, "looks like");
    }
    desk.ok_words(&[
        "key",
        "new",
        "opt",
        "--role",
        "optimizer",
        "--holder",
        "Ada",
    ]);
    let words = ["init", "other", "--holder", "Ada\u{200b}"];
    let ran = desk.words(&words);
    assert_eq!(ran.code, 2);
    says(&ran, &["an invisible character"]);
}

#[test]
fn names_of_policies_cannot_reorder_what_is_shown() {
    let mut desk = Desk::new();
    let lines: String = (0..40)
        .map(|at| {
            format!(
                "{{\"prompt_id\":\"p{at}\",\"judge_score\":0.{}}}\n",
                10 + at
            )
        })
        .collect();
    std::fs::create_dir_all(desk.at.join("in")).unwrap();
    for name in ["evil\u{202e}txt", "plain"] {
        desk.file(&format!("in/{name}_responses.jsonl"), &lines);
    }
    for line in ["analyze in", "analyze in --json"] {
        let ran = desk.ok(line);
        assert!(
            !ran.out.contains('\u{202e}') && !ran.err.contains('\u{202e}'),
            "{}",
            ran.out
        );
        assert!(ran.out.contains("202e"), "{}", ran.out);
    }
}

#[test]
fn a_record_is_no_longer_than_a_record() {
    let mut desk = Desk::new();
    std::fs::create_dir_all(desk.at.join("in")).unwrap();
    let long = "x".repeat(16 << 20);
    let line = format!("{{\"prompt_id\":\"p\",\"judge_score\":0.5,\"response\":\"{long}\"}}\n");
    desk.file("in/base_responses.jsonl", &line);
    let ran = desk.run("analyze in");
    assert_eq!(ran.code, 4);
    says(
        &ran,
        &["line 1", "expected a line of at most 16777216 bytes"],
    );
}
