//! `clover prereg`: from a template to an amended manifest, and what is refused where.

use clover::event::payload::manifest::Template;
use clover::ground::digest::Digest;

use super::Desk;
use super::says;

/// Fills every line of a template that is marked.
fn filled(desk: &mut Desk, template: &str, id: &str) -> String {
    let text = desk.ok(&format!("prereg new --template {template}")).out;
    let lines = text.lines().map(|line| {
        let Some((field, _)) = line.split_once("# FILL:") else {
            return line.to_owned();
        };
        let field = field.trim_end();
        let name = field.trim().trim_start_matches("- ").trim_end_matches(':');
        let value = match name {
            "experiment" => "exp-1".to_owned(),
            "manifest" => id.to_owned(),
            name if name.ends_with("_root") => Digest::sha256(name.as_bytes()).to_base64(),
            name if name.ends_with("_digest") || name.ends_with("_hash") || name == "seed" => {
                Digest::sha256(name.as_bytes()).to_hex()
            }
            "family" => "primary".to_owned(),
            "second" => "another".to_owned(),
            "policies" => "[base, tuned]".to_owned(),
            "alpha_micro" => "50000 ".to_owned(),
            _ => "something".to_owned(),
        };
        format!("{field} {value}")
    });
    lines.map(|line| line + "\n").collect()
}

fn family(desk: &mut Desk) {
    let data = r#"{"alpha_micro":50000,"family":"primary","members_max":3,"membership":"all","method":"spend"}"#;
    desk.ok_words(&["record", "family.opened", "--data", data, "--key", "owner"]);
}

#[test]
fn every_template_is_accepted_once_it_is_filled_in() {
    for template in Template::ALL {
        let mut desk = Desk::with_ledger();
        family(&mut desk);
        let text = filled(&mut desk, template.as_str(), "m-1");
        let file = desk.file("plan.yaml", &text);
        let checked = desk.run(&format!("prereg check {file}"));
        assert!(checked.out.contains("h0 digest"), "{}", checked.out);
        // An iteration that names no anchors accepts no patch: that is said, and is no success.
        let (code, next) = match template {
            Template::Iteration => (
                12,
                format!("next: mend {file}, then clover prereg check {file}"),
            ),
            _ => (0, format!("next: clover prereg sign {file}")),
        };
        assert_eq!(checked.code, code, "{}{}", checked.out, checked.err);
        assert!(checked.err.contains(&next), "{}", checked.err);
        let signed = desk.ok(&format!("prereg sign {file} --json --yes")).json();
        assert_eq!(signed["data"]["in_force"], template != Template::Gate);
        let again = desk.ok(&format!("prereg sign {file} --json")).json();
        assert_eq!(again["verdict"], "already_recorded");
        desk.ok("prereg show m-1");
        desk.head();
    }
}

#[test]
fn a_template_that_is_not_filled_in_is_refused_with_every_field_that_it_lacks() {
    for template in Template::ALL {
        let mut desk = Desk::with_ledger();
        let name = template.as_str();
        desk.ok(&format!("prereg new --template {name} -o plan.yaml"));
        let text = std::fs::read_to_string(desk.at.join("plan.yaml")).unwrap();
        let marked = text.lines().enumerate().filter_map(|(at, line)| {
            let (_, meaning) = line.split_once("# FILL: ")?;
            Some((at + 1, meaning.to_owned()))
        });
        let marked: Vec<_> = marked.collect();
        let count = format!("plan.yaml: {} fields are to be filled", marked.len());
        for verb in ["check", "sign"] {
            let ran = desk.refused(&["prereg", verb, "plan.yaml"], 4, &[&count]);
            for (line, meaning) in &marked {
                let expected = format!("plan.yaml:{line}: ");
                let mut lines = ran.err.lines();
                let said = lines.any(|of| of.contains(&expected) && of.ends_with(meaning.as_str()));
                assert!(said, "{expected}{meaning}\n{}", ran.err);
            }
        }
    }
}

#[test]
fn what_is_not_filled_is_told_beside_what_else_is_wrong() {
    let mut desk = Desk::with_ledger();
    let text = filled(&mut desk, "iteration", "m-1");
    // A gap without its mark is told with the words of the template, and so is one in a section that was taken in.
    let seed = text
        .lines()
        .find(|line| line.contains("seed:"))
        .unwrap()
        .to_owned();
    let gap = text.replacen(&seed, "    seed:", 1);
    let file = desk.file("plan.yaml", &gap);
    let says = [
        "plan.yaml: 1 field is to be filled",
        "iteration.design.seed: 64 hex digits, for folds",
    ];
    desk.refused(&["prereg", "check", &file], 4, &says);
    let both = text
        .replacen(&seed, "    seed:     # FILL: yours", 1)
        .replacen("  profile: recommended", "  profil: recommended", 1);
    let file = desk.file("plan.yaml", &both);
    let says = [
        "iteration.design.seed: yours",
        "iteration.profil: expected one of ",
    ];
    let ran = desk.refused(&["prereg", "check", &file, "--json"], 4, &[]);
    for part in says {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let faults = ran.json()["data"]["faults"].as_array().unwrap().len();
    assert_eq!(faults, 2, "{}", ran.out);
}

#[test]
fn amounts_and_days_of_a_plan_are_signed_as_millionths_and_times() {
    let mut desk = Desk::with_ledger();
    family(&mut desk);
    let exact = filled(&mut desk, "gate", "m-1").replace(
        "# expiry:\n",
        "expiry:\n  must_start_before: 2027-06-30T00:00:00.000000Z\n",
    );
    let digest = |desk: &mut Desk, text: &str| {
        let file = desk.file("plan.yaml", text);
        let checked = desk.ok(&format!("prereg check {file} --json")).json();
        checked["data"]["digest"].as_str().unwrap().to_owned()
    };
    let expected = digest(&mut desk, &exact);
    let written = exact
        .replace("\n  alpha_micro: 50000", "\n  alpha: 0.05")
        .replace("  family_alpha_micro: 50000", "  family_alpha: 5e-2")
        .replace("scale_hi_micro: 1000000", "scale_hi: 1")
        .replace("2027-06-30T00:00:00.000000Z", "2027-06-30");
    assert_ne!(written, exact);
    assert_eq!(digest(&mut desk, &written), expected);
    let at = written.replace("2027-06-30", "2027-06-30T02:00:00+02:00");
    assert_eq!(digest(&mut desk, &at), expected);
    // A fault of a size names the line on which the amount stands.
    let line = |text: &str| {
        1 + text
            .lines()
            .position(|line| line.contains("  alpha: "))
            .unwrap()
    };
    for (from, to, says) in [
        ("  alpha: 0.05", "  alpha: 0.06", "E_FAMILY_BUDGET"),
        (
            "  alpha: 0.05",
            "  alpha: 0.0500001",
            "exact number of millionths",
        ),
        (
            "  alpha: 0.05",
            "  alpha: 0.05\n  alpha_micro: 50000",
            "expected one of alpha and alpha_micro, found both",
        ),
        (
            "2027-06-30",
            "30.06.2027",
            "expected a UTC time such as 2026-11-20",
        ),
    ] {
        let text = written.replace(from, to);
        let place = format!("plan.yaml:{}:", line(&text));
        let place = if to.contains("alpha") {
            place
        } else {
            "plan.yaml:".to_owned()
        };
        let file = desk.file("plan.yaml", &text);
        desk.refused(&["prereg", "check", &file], 4, &[&place, says]);
    }
}

#[test]
fn a_gate_that_takes_a_whole_family_is_told_so() {
    let mut desk = Desk::with_ledger();
    let text = filled(&mut desk, "gate", "m-1");
    let whole = desk.file("whole.yaml", &text);
    let says = "it takes the whole error rate of family primary";
    let checked = desk.ok(&format!("prereg check {whole}"));
    assert!(checked.out.contains(says), "{}", checked.out);
    let part = text.replacen("\n  alpha_micro: 50000", "\n  alpha: 0.01", 1);
    let part = desk.file("part.yaml", &part);
    let checked = desk.ok(&format!("prereg check {part} --json"));
    assert_eq!(checked.json()["data"]["notes"].as_array().unwrap().len(), 0);
    let measures = checked.json();
    let measures = measures["data"]["preflight"].as_array().unwrap().clone();
    let share = measures.iter().find(|of| {
        of["name"]
            .as_str()
            .unwrap()
            .starts_with("share of the family")
    });
    assert_eq!(share.unwrap()["value"], 0.2);
}

#[test]
fn a_gate_is_signed_exposed_and_amended() {
    let mut desk = Desk::with_ledger();
    family(&mut desk);
    let text = filled(&mut desk, "gate", "m-1");
    let file = desk.file("plan.yaml", &text);
    let signed = desk.ok(&format!(
        "prereg sign {file} --countersign --key owner --custodian cem --json --yes"
    ));
    let signed = signed.json();
    assert_eq!(signed["data"]["in_force"], true);
    assert_eq!(signed["data"]["seqs"].as_array().unwrap().len(), 2);
    let digest = signed["data"]["digest"].as_str().unwrap().to_owned();
    let root = Digest::sha256(b"confirm_root").to_base64();
    let data = format!(
        r#"{{"confirm_root":"{root}","digest":"{digest}","exposure":1,"first_unit":0,"last_unit":9,"through":"unit-9"}}"#
    );
    desk.ok_words(&[
        "record",
        "exposure.opened",
        "--experiment",
        "exp-1",
        "--data",
        &data,
    ]);
    // What other events keep is an account too.
    let accounts = desk.ok("budget list --json").json();
    let accounts = accounts["data"]["budgets"].as_array().unwrap();
    let left: Vec<_> = accounts
        .iter()
        .map(|of| {
            (
                of["account"].as_str().unwrap(),
                of["spent"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(left, [("alpha:primary", 50_000), ("exposures:m-1", 1)]);
    let shown = desk.ok("budget show exposures:m-1 --json").json();
    assert_eq!(shown["data"]["charges"][0]["for"], "units 0 to 9");
    let alpha = desk.file(
        "alpha.yaml",
        &text.replace("  alpha_micro: 50000", "  alpha_micro: 40000"),
    );
    let words = ["prereg", "amend", &alpha, "--reason", "less"];
    desk.refused(&words, 11, &["amendment", "test.alpha_micro (E_ALPHA)"]);
    let judge = Digest::sha256(b"judge_digest").to_hex();
    let other = desk.file("judge.yaml", &text.replace(&judge, &digest));
    let words = ["prereg", "amend", &other, "--reason", "another judge"];
    desk.refused(
        &words,
        11,
        &[
            "amendment",
            "a new manifest with supersedes",
            "E_JUDGE_DIGEST",
        ],
    );
    let grid = desk.file("grid.yaml", &text.replace("grid: 20", "grid: 40"));
    let amended = desk
        .ok(&format!("prereg amend {grid} --reason finer --json"))
        .json();
    assert_eq!(
        (&amended["data"]["class"], &amended["data"]["in_force"]),
        (&2.into(), &true.into())
    );
    let diff = desk.ok("prereg diff m-1 --json").json();
    assert_eq!(diff["data"]["changes"][0]["path"], "test.bettor.grid");
    assert_eq!(diff["data"]["against"], "in force at the first look");
    let words = [
        "prereg",
        "deviation",
        "m-1",
        "--rule-path",
        "test.n_max",
        "--what",
        "stopped",
        "--why",
        "no budget",
        "--impact",
        "less power",
        "--outcome-seen",
        "--key",
        "owner",
    ];
    desk.ok_words(&words);
    let shown = desk.ok("prereg show m-1").out;
    for part in [
        "in force",
        "amended",
        "deviation at seq",
        "10 of 200 units",
        "50000 of 50000 millionths",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    desk.refused(&["prereg", "show", "m-9"], 5, &["no manifest m-9"]);
    desk.head();
}

#[test]
fn sizes_that_cannot_work_are_refused_with_the_number_that_would() {
    for (template, from, to, parts) in [
        (
            "transport",
            "clusters: 200",
            "clusters: 30",
            &["clusters: expected at least ", "found 30 (E_N)"][..],
        ),
        (
            "transport",
            "bias_micro: 0 ",
            "bias_micro: 60000 ",
            &["transport.bias_micro"],
        ),
        (
            "iteration",
            "confirm_rows: 3000",
            "confirm_rows: 300",
            &["expected at least 2169 rows, found 300"],
        ),
        (
            "iteration",
            "effect_micro: 2500",
            "effect_micro: 1000",
            &["iteration.effect_micro", "eta_micro 1000"],
        ),
        (
            "iteration",
            "slice_rows_min: 200",
            "slice_rows_min: 60",
            &["expected at least 80 rows, found 60"],
        ),
        ("gate", "n_max: 200 ", "n_max: 4 ", &["test.n_min"]),
        (
            "gate",
            "  alpha_micro: 50000 ",
            "  alpha_micro: 60000 ",
            &["E_FAMILY_BUDGET"],
        ),
    ] {
        let mut desk = Desk::with_ledger();
        let text = filled(&mut desk, template, "m-1");
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{from}");
        let line = 1 + changed
            .lines()
            .zip(text.lines())
            .position(|(a, b)| a != b)
            .unwrap();
        let file = desk.file("plan.yaml", &changed);
        let ran = desk.refused(&["prereg", "check", &file], 4, parts);
        assert!(ran.err.contains("plan.yaml:"), "{line}: {}", ran.err);
    }
    // Fewer units than the best ones need.
    let mut desk = Desk::with_ledger();
    let text = filled(&mut desk, "gate", "m-1");
    let text = text
        .replace("n_max: 200 ", "n_max: 4 ")
        .replace("n_min: 20 ", "n_min: 2 ");
    let file = desk.file("plan.yaml", &text);
    desk.refused(
        &["prereg", "check", &file],
        4,
        &["test.n_max: expected at least 7: the best units need as many, found 4 (E_HORIZON)"],
    );
}

/// Small steady numbers for the generator below.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// A good manifest with one thing wrong.
fn malformed(dice: &mut Dice, good: &str) -> String {
    let mut lines: Vec<_> = good.lines().map(str::to_owned).collect();
    let said: Vec<_> = (0..lines.len())
        .filter(|at| !lines[*at].trim_start().starts_with('#') && lines[*at].contains(": "))
        .collect();
    let at = said[dice.below(said.len())];
    let line = lines[at].split(" #").next().unwrap().trim_end().to_owned();
    let (field, value) = line.split_once(':').unwrap();
    let field = field.to_owned();
    let text = value.trim().parse::<i64>().is_err();
    lines[at] = match dice.below(12) {
        0 => format!("{field}x: {value}"),
        1 => format!("{field}: &a {value}"),
        2 => format!("{field}: !!str {value}"),
        3 => format!("{field}: *a"),
        4 => format!("{field}: .nan"),
        5 => format!("{field}: [{value}"),
        6 => format!("{field}: {{a: 1}}"),
        7 => format!("{line}\n{line}"),
        8 => format!("{field}: 9007199254740992"),
        9 if text => format!("{field}: ''\n  \tx"),
        9 => format!("{field}: {}.5", value.trim()),
        10 => format!("{field}: 'unfinished"),
        _ => format!("{line}\n---\n{line}"),
    };
    lines.join("\n")
}

#[test]
fn a_thousand_malformed_manifests_are_refused_at_their_place_and_change_nothing() {
    let mut desk = Desk::with_ledger();
    family(&mut desk);
    let good: Vec<_> = Template::ALL
        .iter()
        .map(|template| filled(&mut desk, template.as_str(), "m-1"))
        .collect();
    let before = desk.head();
    let mut dice = Dice(7);
    let mut accepted = Vec::new();
    for n in 0..1_000 {
        let template = dice.below(good.len());
        let text = malformed(&mut dice, &good[template]);
        let file = desk.file("plan.yaml", &text);
        let verb = if n % 2 == 0 { "check" } else { "sign" };
        let ran = desk.run(&format!("prereg {verb} {file} --json"));
        if ran.code != 4 {
            accepted.push(format!("{n}: exit {}\n{}\n{text}", ran.code, ran.out));
            continue;
        }
        says(&ran, &["plan.yaml:"]);
        let place = &ran.json();
        let place = &place["data"];
        let line = place["line"].as_u64().unwrap_or(0);
        assert!(
            line >= 1 && line <= text.lines().count() as u64 + 1,
            "{line}: {}\n{text}",
            ran.err
        );
    }
    assert!(
        accepted.is_empty(),
        "{} accepted, such as\n{}",
        accepted.len(),
        accepted[0]
    );
    assert_eq!(desk.head(), before);
}

#[test]
fn an_amended_version_is_countersigned_from_its_file() {
    let mut desk = Desk::with_ledger();
    family(&mut desk);
    let text = filled(&mut desk, "gate", "m-1");
    let file = desk.file("plan.yaml", &text);
    desk.ok(&format!(
        "prereg sign {file} --countersign --key owner --custodian cem --yes"
    ));
    let less = text.replace("  alpha_micro: 50000", "  alpha_micro: 40000");
    let less = desk.file("less.yaml", &less);
    let amended = desk.ok(&format!("prereg amend {less} --reason less --json"));
    let amended = amended.json();
    assert_eq!(
        (&amended["data"]["class"], &amended["data"]["in_force"]),
        (&1.into(), &false.into())
    );
    assert_eq!(
        amended["next"][0],
        format!("clover prereg sign {less} --countersign")
    );
    let agreed = desk.ok(&format!("prereg sign {less} --countersign --json --yes"));
    let agreed = agreed.json();
    assert_eq!(agreed["data"]["in_force"], true);
    assert_eq!(agreed["data"]["digest"], amended["data"]["digest"]);
    assert_eq!(agreed["data"]["seqs"].as_array().unwrap().len(), 1);
    desk.head();
}
