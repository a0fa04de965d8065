//! `clover demo`: the whole of it once, in a folder of its own: a ledger with keys and roles, 10,000 signed
//! events, verification, an offline proof, and a forgery that is caught; then two governed iterations, a prompt, a report
//! and an export. Exits 0 only when all of it held.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::sandbox::Sandbox;
use crate::cli::selftest;
use crate::cli::ui;
use crate::ground::ambient;
use crate::ground::ambient::Stopwatch;
use crate::store::OpenOptions;
use crate::store::Store;
use crate::view::Exit;
use crate::view::View;
use crate::view::surroundings;
use crate::view::surroundings::Demonstration;

/// Commands of the demo, made by the fixture generator: grouped by who signs them.
const EVENTS: &str = include_str!("../../fixtures/demo.jsonl");
/// The entry that is proven, and then forged.
const CHOSEN: u64 = 4_711;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the demo; default a new one among temporary files
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The member of a score's body that is forged.
const FIELD: &[u8] = b"\"score_micro\":";

/// Which key signs which kinds of the fixture.
const SIGNERS: [(&str, &str); 6] = [
    ("experiment.registered", "owner"),
    ("budget.opened", "owner"),
    ("score.recorded", "scorer"),
    ("label.recorded", "labeler"),
    ("note.recorded", "owner"),
    ("budget.charged", "custodian"),
];

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let folder = match &args.dir {
        Some(dir) => ctx.path(dir),
        None => selftest::temporary(ctx, "demo")?,
    };
    if ambient::exists(&folder.join(".clover"))? {
        let message = format!("{} holds a ledger already", folder.display());
        return Err(CliError::refused(message, "clover demo --dir OTHER-FOLDER"));
    }
    let sandbox = Sandbox::new(ctx, &folder)?;
    let mut demo = Demo {
        ctx,
        sandbox,
        watch: Stopwatch::start(),
    };
    demo.say(&format!("Clover demo in {}\n", folder.display()))?;
    demo.found()?;
    let appended = demo.append()?;
    demo.verify()?;
    demo.prove()?;
    let found = demo.forge()?;
    demo.story()?;
    let seconds = demo.watch.seconds();
    demo.say(&format!(
        "\nAll of it held, in {seconds:.1} s. The ledger stays there: clover status --ledger {}\n",
        folder.display()
    ))?;
    Ok(surroundings::demonstrated(&Demonstration {
        folder: folder.display().to_string(),
        appended,
        caught: found,
    }))
}

/// The demo as it runs.
pub(super) struct Demo<'c, 'w> {
    pub(super) ctx: &'c mut Ctx<'w>,
    pub(super) sandbox: Sandbox,
    watch: Stopwatch,
}

impl Demo<'_, '_> {
    /// Text for people; with `--json` only the final object goes to standard output.
    pub(super) fn say(&mut self, text: &str) -> Result<(), CliError> {
        if self.ctx.globals.json {
            return Ok(());
        }
        self.ctx.out(text)?;
        self.ctx.flush()
    }

    /// Runs one command and shows it with the first and the last lines of its answer.
    pub(super) fn step(
        &mut self,
        words: &[&str],
        first: usize,
        last: usize,
    ) -> Result<View, CliError> {
        let shown = words.iter().map(|word| self.relative(word));
        let shown = shown.collect::<Vec<_>>().join(" ");
        let seconds = self.watch.seconds();
        self.line(&format!("{seconds:5.1}s  $ clover {shown}"))?;
        let answer = self.sandbox.run(words)?;
        let text = answer.text();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<_> = lines.collect();
        let head = first.min(lines.len());
        let tail = lines.len() - last.min(lines.len() - head);
        for line in lines[..head].iter().chain(&lines[tail..]) {
            let line = self.relative(line);
            self.line(&format!("        {line}"))?;
        }
        Ok(answer)
    }

    /// A line cut to the width of a terminal.
    fn line(&mut self, text: &str) -> Result<(), CliError> {
        let text = ui::cut(text, self.ctx.screen().columns());
        self.say(&format!("{text}\n"))
    }

    /// Text with the demo's folder left out.
    fn relative(&self, text: &str) -> String {
        let root = self.sandbox.path("x").display().to_string();
        text.replace(root.trim_end_matches('x'), "")
    }

    fn found(&mut self) -> Result<(), CliError> {
        self.step(
            &[
                "init",
                "--holder",
                "Ada",
                "--roles",
                "owner,registrar,arbiter,optimizer,releaser",
            ],
            0,
            5,
        )?;
        self.step(
            &["key", "new", "scorer", "--role", "scorer", "--machine"],
            0,
            0,
        )?;
        self.step(
            &[
                "key", "new", "labeler", "--role", "labeler", "--holder", "Lin",
            ],
            0,
            0,
        )?;
        self.step(
            &[
                "key",
                "new",
                "custodian",
                "--role",
                "custodian",
                "--holder",
                "Cem",
                "--seal",
            ],
            0,
            0,
        )?;
        self.step(&["key", "list"], 0, 5).map(drop)
    }

    /// Appends the fixture in the runs of equal signers in which it stands.
    fn append(&mut self) -> Result<u64, CliError> {
        let watch = Stopwatch::start();
        let mut total = 0;
        let mut number = 0;
        let mut lines = EVENTS.lines().peekable();
        while let Some(first) = lines.next() {
            let signer = signer_of(first)?;
            let mut run = format!("{first}\n");
            while let Some(line) = lines.next_if(|line| signer_of(line).is_ok_and(|s| s == signer))
            {
                run.push_str(line);
                run.push('\n');
            }
            number += 1;
            let file = self.sandbox.path(&format!("{number}-{signer}.jsonl"));
            ambient::replace(&file, run.as_bytes(), false)?;
            let file = file.display().to_string();
            let answer = self.step(&["append", "--bulk", &file, "--key", signer], 0, 1)?;
            total += answer.facts()["appended"].as_u64().unwrap_or(0);
        }
        let seconds = watch.seconds();
        self.say(&format!(
            "        {} signed events, {:.0} us each, every one durable\n",
            ui::thousands(total),
            seconds * 1e6 / total.max(1) as f64,
        ))?;
        Ok(total)
    }

    fn verify(&mut self) -> Result<(), CliError> {
        let answer = self.step(&["verify"], 0, 1)?;
        Self::demand(answer.exit == Exit::Done, "the ledger verifies")
    }

    fn prove(&mut self) -> Result<(), CliError> {
        let chosen = CHOSEN.to_string();
        let (proof, line) = (
            self.sandbox.path("4711.tlog-proof"),
            self.sandbox.path("4711.line"),
        );
        let (proof, line_path) = (proof.display().to_string(), line.display().to_string());
        self.step(&["prove", &chosen, "-o", &proof], 0, 1)?;
        let shown = self.sandbox.run(&["show", &chosen, "--line"])?;
        ambient::replace(&line, shown.text().as_bytes(), false)?;
        let key = self.sandbox.run(&["key", "export", "--log"])?;
        let key = key.text().trim().to_owned();
        let words = [
            "prove",
            "--check",
            &proof,
            "--line",
            &line_path,
            "--log-key",
            &key,
        ];
        let answer = self.step(&words, 0, 1)?;
        Self::demand(answer.exit == Exit::Done, "the proof holds")
    }

    /// Changes one digit of one score in a copy, on disk, and has it found.
    fn forge(&mut self) -> Result<u64, CliError> {
        let copy = self.sandbox.path("copy");
        let copy_path = copy.display().to_string();
        self.step(&["backup", &copy_path], 0, 1)?;
        let database = copy.join("ledger.db");
        let (offset, before, after) = change_a_score(&database, CHOSEN)?;
        let seconds = self.watch.seconds();
        self.say(&format!(
            "{seconds:5.1}s  one byte of copy/ledger.db changed: offset {offset}, '{before}' to '{after}', the score of entry {CHOSEN}\n"
        ))?;
        let database = database.display().to_string();
        let answer = self.step(&["verify", &database], 3, 1)?;
        let first = answer.facts()["report"]["first"]["seq"].as_u64();
        Self::demand(
            answer.exit == Exit::Integrity && first == Some(CHOSEN),
            "the forgery is caught at its entry",
        )?;
        Ok(CHOSEN)
    }

    pub(super) fn demand(holds: bool, what: &str) -> Result<(), CliError> {
        if holds {
            return Ok(());
        }
        let message = format!("expected that {what}");
        Err(CliError::new(
            Exit::Unexpected,
            "unexpected",
            message,
            "clover doctor --selftest",
        ))
    }
}

fn signer_of(line: &str) -> Result<&'static str, CliError> {
    let kind = |(kind, _): &&(&str, &str)| line.contains(&format!("\"kind\":\"{kind}\""));
    let found = SIGNERS.iter().find(kind);
    found.map(|(_, signer)| *signer).ok_or_else(|| {
        CliError::new(
            Exit::Unexpected,
            "unexpected",
            "the demo has an unknown kind",
            "clover doctor",
        )
    })
}

/// Changes the last digit of a score in a ledger file behind the database's back. Gives offset, old and new digit.
pub(super) fn change_a_score(database: &Path, seq: u64) -> Result<(u64, char, char), CliError> {
    let lost = || {
        let message = format!("entry {seq} is no score that stands in one piece in the file");
        CliError::new(Exit::Unexpected, "unexpected", message, "clover verify")
    };
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    let store = Store::open(database, options)?;
    let body = store.reader().entry(seq)?.ok_or_else(lost)?.body;
    drop(store);
    let field = find(&body, FIELD).ok_or_else(lost)?;
    let rest = &body[field + FIELD.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digit = field + FIELD.len() + digits.checked_sub(1).ok_or_else(lost)?;
    let file = ambient::read(database)?;
    let at = find(&file, &body).ok_or_else(lost)? + digit;
    let before = file[at];
    let after = if before == b'9' { b'8' } else { before + 1 };
    ambient::overwrite(database, at as u64, &[after])?;
    Ok((at as u64, char::from(before), char::from(after)))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
