//! `clover doctor --selftest`: installation and operation checked on a ledger in a temporary folder.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::demo;
use crate::cli::doctor::DoctorCheck;
use crate::cli::error::CliError;
use crate::cli::sandbox::Sandbox;
use crate::cli::ui;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::view::Exit;
use crate::view::surroundings::CheckResult;

/// A temporary folder of a run, not made yet.
pub(super) fn temporary(ctx: &Ctx<'_>, what: &str) -> Result<PathBuf, CliError> {
    let random = Digest::blake3(&ctx.ambient().random::<16>()?).to_hex();
    Ok(ambient::temporary_folder().join(format!("clover-{what}-{}", &random[..16])))
}

pub(super) fn run(ctx: &mut Ctx<'_>) -> Result<Vec<DoctorCheck>, CliError> {
    let folder = temporary(ctx, "selftest")?;
    let mut sandbox = Sandbox::new(ctx, &folder)?;
    let mut checks = Vec::new();
    for (what, step) in STEPS {
        let (found, seen) = match step(&mut sandbox) {
            Ok(seen) => (CheckResult::Good, seen),
            Err(error) => (
                CheckResult::Bad,
                format!("{}: {}", error.word, error.message),
            ),
        };
        checks.push((*what, found, seen));
        if found == CheckResult::Bad {
            break;
        }
    }
    ambient::remove_tree(&folder)?;
    Ok(checks)
}

type Step = fn(&mut Sandbox) -> Result<String, CliError>;

/// Steps in order; each builds on those before.
const STEPS: &[(&str, Step)] = &[
    ("IQ create", create),
    ("OQ append", append),
    ("OQ refuse", refuse),
    ("OQ seal", seal),
    ("OQ erase", erase),
    ("OQ verify", verify),
    ("OQ prove", prove),
    ("OQ export", export),
    ("OQ tamper", tamper),
    ("OQ roll back", roll_back),
];

fn create(sandbox: &mut Sandbox) -> Result<String, CliError> {
    sandbox.run(&[
        "init",
        "--origin",
        "selftest.local/oq",
        "--roles",
        "owner,registrar",
    ])?;
    sandbox.run(&["key", "new", "scorer", "--role", "scorer", "--machine"])?;
    sandbox.run(&["key", "new", "custodian", "--role", "custodian"])?;
    Ok("ledger, log key, owner and two more keys".to_owned())
}

fn append(sandbox: &mut Sandbox) -> Result<String, CliError> {
    sandbox.run(&[
        "experiment",
        "register",
        "oq",
        "--title",
        "OQ",
        "--purpose",
        "self-test",
    ])?;
    let budget = r#"{"account":"peeks","amount":2,"period":"once","purpose":"OQ","spenders":["custodian"],"unit":"peek"}"#;
    sandbox.run(&["record", "budget.opened", "--data", budget])?;
    let line = |item: u64| {
        format!(
            "{{\"kind\":\"score.recorded\",\"experiment\":\"oq\",\"data\":{{\"draw\":0,\"item\":\"i{item}\",\"judge\":\"j\",\"policy\":\"p\",\"score_micro\":{item}}}}}"
        )
    };
    let lines: Vec<_> = (0..600).map(line).collect();
    let lines = ui::lines(&lines);
    let file = sandbox.path("scores.jsonl");
    ambient::replace(&file, lines.as_bytes(), false)?;
    let file = file.display().to_string();
    let first = sandbox.run(&["append", "--bulk", &file])?;
    let again = sandbox.run(&["append", "--bulk", &file])?;
    expect(
        first.facts()["appended"] == 600 && again.facts()["already"] == 600,
        "600 appended once",
    )
}

/// Passes with `seen`, or fails with it.
fn expect(holds: bool, seen: &str) -> Result<String, CliError> {
    if holds {
        return Ok(seen.to_owned());
    }
    let message = format!("expected: {seen}");
    Err(CliError::new(
        Exit::Unexpected,
        "unexpected",
        message,
        "clover doctor --selftest",
    ))
}

fn refuse(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let charge = r#"{"account":"peeks","amount":3,"for":"OQ"}"#;
    let refused = sandbox.run(&["record", "budget.charged", "--data", charge]);
    let exit = refused.map_or_else(|error| error.exit, |answer| answer.exit);
    expect(exit == Exit::Refused, "an overdraft is refused")
}

fn seal(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let row = ["--experiment", "oq", "--design", "confirm", "--row", "1"];
    let by = [
        "--value",
        "0.25",
        "--to",
        "custodian",
        "--reveal-by",
        "2999-01-01T00:00:00.000000Z",
        "--yes",
    ];
    sandbox.run(&[&["seal", "label"], &row[..], &by[..]].concat())?;
    sandbox.run(&[&["seal", "accept"], &row[..]].concat())?;
    let charge = r#"{"account":"peeks","amount":1,"for":"OQ"}"#;
    let charged = sandbox.run(&["record", "budget.charged", "--data", charge])?;
    let paid = ["--charge", charged.events[0].as_str()];
    let revealed = sandbox.run(&[&["seal", "reveal"], &row[..], &paid[..]].concat())?;
    expect(
        revealed.facts()["value_micro"] == 250_000,
        "a label sealed, accepted, paid for, revealed",
    )
}

fn erase(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let file = sandbox.path("private.txt");
    ambient::replace(&file, b"private content", false)?;
    let file = file.display().to_string();
    let put = sandbox.run(&[
        "blob",
        "put",
        &file,
        "--media",
        "text/plain",
        "--subject",
        "new",
    ])?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let subject = text(&put.facts()["reference"]["subject"]);
    let digest = text(&put.facts()["reference"]["blob"]["blake3"]);
    let out = sandbox.path("out.txt").display().to_string();
    let get = ["blob", "get", &digest, "--subject", &subject, "-o", &out];
    sandbox.run(&get)?;
    let read = ambient::read(sandbox.path("out.txt").as_path())?;
    sandbox.run(&["erase", &subject, "--basis", "self-test", "--yes"])?;
    let gone = sandbox
        .run(&get)
        .is_err_and(|error| error.exit == Exit::NotFound);
    expect(
        read == b"private content" && gone,
        "a subject's content is read, erased, and gone",
    )
}

fn verify(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let verified = sandbox.run(&["verify"])?;
    expect(verified.exit == Exit::Done, verified.text().trim_end())
}

fn prove(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let (proof, line) = (sandbox.path("7.tlog-proof"), sandbox.path("7.line"));
    let (proof, line_path) = (proof.display().to_string(), line.display().to_string());
    sandbox.run(&["prove", "7", "-o", &proof])?;
    let shown = sandbox.run(&["show", "7", "--line"])?;
    ambient::replace(&line, shown.text().as_bytes(), false)?;
    let checked = sandbox.run(&["prove", "--check", &proof, "--line", &line_path])?;
    expect(checked.exit == Exit::Done, "entry 7 is proven offline")
}

fn export(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let folder = sandbox.path("export").display().to_string();
    sandbox.run(&["export", "jsonl", "-o", &folder])?;
    let verified = sandbox.run(&["verify", &folder])?;
    expect(verified.exit == Exit::Done, "an export verifies by itself")
}

fn tamper(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let copy = sandbox.path("copy");
    sandbox.run(&["backup", &copy.display().to_string()])?;
    let database = copy.join("ledger.db");
    demo::change_a_score(&database, 300)?;
    let verified = sandbox.run(&["verify", &database.display().to_string()])?;
    expect(
        verified.exit == Exit::Integrity,
        "one changed byte is found",
    )
}

fn roll_back(sandbox: &mut Sandbox) -> Result<String, CliError> {
    let old = sandbox.path("old");
    let old = old.display().to_string();
    sandbox.run(&["backup", &old])?;
    sandbox.run(&["record", "note.recorded", "--data", r#"{"text":"later"}"#])?;
    let refused = sandbox.run(&["status", "--ledger", &old]);
    let word = refused.map_or_else(|error| error.word, |answer| answer.verdict);
    expect(
        word == "rolled_back",
        "yesterday's copy is refused against the pin",
    )
}
