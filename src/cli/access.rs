//! `clover access`: rows and labels released to a role, each release on record before anything leaves.
//!
//! The log itself is readable to whoever has the file; what is kept from a role is what it is not handed. A release
//! that its role may not have is recorded as denied and gives nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::iterate::bench;
use crate::cli::key;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ClassId;
use crate::event::id::ExperimentId;
use crate::event::id::Root;
use crate::event::payload::Role;
use crate::event::payload::label::row_of_draw;
use crate::event::payload::record::DataRead;
use crate::event::payload::record::ReadOutcome;
use crate::ground::ambient;
use crate::ground::canon;
use crate::ground::digest::Digest;
use crate::ground::merkle::Frontier;
use crate::ground::sign::KeyId;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::access::Access;
use crate::projection::splits::member_leaf;
use crate::workflow::iterate::compute::cards::FULL_LABEL;
use crate::workflow::iterate::course::Course;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Reads on record by key and class, and tainted experiments
    #[command(after_help = "Example:\n  clover access list")]
    List,
    /// Record a read, then write what is read to a file
    #[command(
        after_help = "Example:\n  clover access release row --to opal --as optimizer --for synthesis -o rows.jsonl"
    )]
    Release(ReleaseArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ReleaseArgs {
    /// row: ingested rows without texts and labels; label: open and revealed labels; card.public:
    /// cards as patches are written from them; label.card: full cards, which name rows
    #[arg(value_parser = ["card.public", "label", "label.card", "row"])]
    pub class: String,
    /// The reader's key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub to: String,
    /// The role in which it reads; all that it holds when absent
    #[arg(long = "as", value_name = "ROLE")]
    pub role: Option<String>,
    /// What for
    #[arg(long = "for", value_name = "TEXT")]
    pub purpose: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The iteration whose cards they are
    #[arg(long, value_name = "ID")]
    #[arg(required_if_eq_any([("class", "card.public"), ("class", "label.card")]))]
    pub iteration: Option<String>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::List => list(ctx),
        Verb::Release(args) => release(ctx, args),
    }
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let access = state.fold::<Access>();
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (reader, classes) in &access.reads {
        let key = state.keyring.keys.get(reader);
        let holder = key.map_or("unknown", |key| key.holder.as_str());
        for (class, tally) in classes {
            rows.push(vec![
                reader.0.short().to_string(),
                holder.to_owned(),
                class.to_string(),
                tally.allowed.to_string(),
                tally.denied.to_string(),
                tally.last_seq.to_string(),
            ]);
            data.push(json!({
                "reader": reader.to_string(), "holder": holder, "class": class.as_str(),
                "allowed": tally.allowed, "denied": tally.denied, "last_seq": tally.last_seq,
            }));
        }
    }
    let head = ["reader", "holder", "class", "allowed", "denied", "last seq"];
    let mut text = ui::table(&head, rows);
    text.push_str(&ui::lines(&taint_lines(state)));
    let data = json!({"reads": data, "tainted": taints_json(state)});
    Ok(Answer::new(text, data))
}

/// A line for each tainted experiment.
pub(super) fn taint_lines(state: &State) -> Vec<String> {
    let taints = state.fold::<Access>().taints.iter();
    taints
        .map(|(experiment, taint)| ui::escape(&taint.line(experiment)).into_owned())
        .collect()
}

pub(super) fn taints_json(state: &State) -> Vec<Value> {
    let taints = state.fold::<Access>().taints.iter();
    taints
        .map(|(experiment, taint)| {
            json!({
                "experiment": experiment.as_str(), "class": taint.class.as_str(), "role": taint.role,
                "reader": taint.reader.to_string(), "seq": taint.seq,
            })
        })
        .collect()
}

/// What is released: lines, and the rows that they are about.
#[derive(Default)]
struct Released {
    lines: Vec<u8>,
    count: u64,
    rows: BTreeSet<String>,
}

impl Released {
    fn push(&mut self, line: &[u8], row: String) {
        self.push_line(line);
        self.rows.insert(row);
    }

    fn push_line(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        self.count += 1;
    }

    /// The root over its rows, of what names some.
    fn root(&self) -> Option<Root> {
        let rows = self.rows.iter().map(String::as_str);
        (!self.rows.is_empty()).then(|| rows_root(rows))
    }
}

/// Root over row ids `policy/item/draw` in ascending order, each once.
pub(super) fn rows_root<'a>(rows: impl IntoIterator<Item = &'a str>) -> Root {
    let mut tree = Frontier::new();
    for row in rows {
        tree.push(member_leaf(row));
    }
    Root(tree.root())
}

#[derive(serde::Deserialize)]
struct IngestedRow {
    draw: crate::num::Count,
    item: crate::event::id::ItemId,
    policy: crate::event::id::PolicyId,
}

/// Ingested rows: their canonical lines, without texts and labels.
fn rows(ledger: &Ledger, experiment: &ExperimentId) -> Result<Released, CliError> {
    let mut blobs: Vec<Digest> = Vec::new();
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        if let Payload::DataIngested(ingested) = &read.event.payload
            && read.event.header.experiment.as_ref() == Some(experiment)
        {
            blobs.push(ingested.rows.blake3);
        }
        Ok(())
    })?;
    let mut released = Released::default();
    for blob in blobs {
        let damaged = |what: &str| {
            let message = format!("the rows {blob}: {what}");
            CliError::integrity("damaged", message, "clover verify")
        };
        let bytes = ledger.store().reader().blob(&blob)?;
        let bytes = bytes.ok_or_else(|| damaged("not there"))?;
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let row: IngestedRow =
                serde_json::from_slice(line).map_err(|error| damaged(&error.to_string()))?;
            released.push(line, row_of_draw(&row.policy, &row.item, row.draw));
        }
    }
    Ok(released)
}

/// Labels that are open, and those that were revealed.
fn labels(ledger: &Ledger, experiment: &ExperimentId) -> Result<Released, CliError> {
    let mut released = Released::default();
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        if read.event.header.experiment.as_ref() != Some(experiment) {
            return Ok(());
        }
        let (design, row, value) = match &read.event.payload {
            Payload::LabelRecorded(label) => {
                let row = row_of_draw(&label.policy, &label.item, label.draw);
                (&label.design, row, label.value_micro)
            }
            Payload::LabelRevealed(label) => (&label.design, label.row.to_string(), label.value_micro),
            _ => return Ok(()),
        };
        let line = json!({
            "design": design.as_str(), "row": row, "seq": read.stored.seq, "value_micro": value.value(),
        });
        released.push(line.to_string().as_bytes(), row);
        Ok(())
    })?;
    Ok(released)
}

/// Published cards of an iteration, by public digest: `full` as they were before they were redacted, computed again from
/// the rows that they read, each the one whose digest is on record.
fn cards(
    ledger: &Ledger,
    experiment: &ExperimentId,
    name: &str,
    full: bool,
) -> Result<Released, CliError> {
    let id = bench::named(name)?;
    let record = bench::recorded(ledger, &id, ledger.size())?;
    if record.experiment != *experiment {
        let message = format!(
            "iteration {id} is of {}, not of {experiment}",
            record.experiment
        );
        return Err(CliError::refused(message, "clover iterate list"));
    }
    let mut released = Released::default();
    if !full {
        for card in &record.cards {
            released.push_line(&canonical(&json!(card.said))?);
        }
        return Ok(released);
    }
    let Some(first) = record.cards.first() else {
        return Ok(released);
    };
    // What attacks had earned by then stands in them too.
    let then = bench::recorded(ledger, &id, first.seq)?;
    let course = Course::bound(ledger, &then, first.seq).map_err(bench::failed)?;
    let again = course.cards(&then).map_err(bench::failed)?;
    for card in &record.cards {
        let said = &card.said;
        let found = again
            .iter()
            .find(|again| again.public.card == said.card.card);
        let found = found.cloned().map(|found| match said.build {
            Some(_) => found,
            None => found.without_basis(),
        });
        let found = found.filter(|found| canon::digest(FULL_LABEL, found) == said.full_digest);
        let found = found.ok_or_else(|| {
            let message = format!(
                "card {} at seq {}: computed again it is not the one on record",
                said.card.card, card.seq
            );
            CliError::refused(message, format!("clover replay {}", card.seq))
        })?;
        let line = json!({"full": found, "full_digest": said.full_digest, "public_digest": said.public_digest});
        released.push_line(&canonical(&line)?);
        let rows = found.exemplars.into_iter().chain(found.counterexamples);
        released.rows.extend(rows.map(|row| row.row));
    }
    Ok(released)
}

fn canonical(value: &Value) -> Result<Vec<u8>, CliError> {
    canon::to_bytes(value).map_err(|error| {
        CliError::integrity("damaged", error.to_string(), "clover verify --recompute")
    })
}

/// A read as an event.
pub(super) fn read(
    class: &str,
    outcome: ReadOutcome,
    purpose: &str,
    (reader, role): (KeyId, Option<Role>),
    rows_root: Option<Root>,
) -> Result<DataRead, CliError> {
    let class = ClassId::new(class).expect("BUG: classes here are literals");
    Ok(DataRead {
        class,
        outcome,
        purpose: key::text("for", purpose)?,
        reader,
        role,
        rows_root,
    })
}

/// What a class holds; nothing at all is an error.
fn of_class(
    ledger: &Ledger,
    experiment: &ExperimentId,
    args: &ReleaseArgs,
) -> Result<Released, CliError> {
    let (released, next) = match (args.class.as_str(), &args.iteration) {
        (class @ ("card.public" | "label.card"), Some(id)) => (
            cards(ledger, experiment, id, class == "label.card")?,
            "clover iterate cards ID",
        ),
        (class, Some(_)) => {
            let message = format!("--iteration is of cards, and {class} is of an experiment");
            return Err(CliError::usage(message, "clover access release --help"));
        }
        ("label", None) => (
            labels(ledger, experiment)?,
            "clover import cje PATH --labels",
        ),
        (_, None) => (rows(ledger, experiment)?, "clover import cje PATH"),
    };
    if released.count == 0 {
        let message = format!("nothing of class {} in {experiment}", args.class);
        return Err(CliError::not_found(message, next));
    }
    Ok(released)
}

fn release(ctx: &mut Ctx<'_>, args: &ReleaseArgs) -> Result<Answer, CliError> {
    let role = args.role.as_deref().map(|text| {
        text.parse::<Role>().map_err(|error| {
            CliError::usage(
                format!("--as {text:?}: {error}"),
                "clover access release --help",
            )
        })
    });
    let role = role.transpose()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let experiment = intake::experiment(ledger.state(), args.experiment.as_deref())?;
    let reader = wallet::resolve(ctx, ledger.state(), &args.to)?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::DataRead)?;
    let barred = ledger
        .state()
        .fold::<Access>()
        .barred(&reader, role, &args.class);
    if let Some(barred) = barred {
        let denied = read(
            &args.class,
            ReadOutcome::Denied,
            &args.purpose,
            (reader, role),
            None,
        )?;
        let appended = ledger.append(&[Command::new(denied, Some(experiment))], &signer)?;
        let message = format!(
            "access: {} is not for role {barred}; on record as denied at seq {}, and nothing was released",
            args.class, appended[0].seq
        );
        return Err(CliError::refused(message, "clover access list"));
    }
    let released = of_class(&ledger, &experiment, args)?;
    let root = released.root();
    let allowed = read(
        &args.class,
        ReadOutcome::Allowed,
        &args.purpose,
        (reader, role),
        root,
    )?;
    // On record first: what cannot be recorded is not released.
    let path = ctx.path(&args.output);
    let appended = ledger.append(&[Command::new(allowed, Some(experiment.clone()))], &signer)?;
    crate::cli::submit::warn_of_pin(ctx, &ledger);
    ambient::replace_private(&path, &released.lines, true)?;
    let (seq, count) = (appended[0].seq, ui::thousands(released.count));
    let root = root.map(|root| root.0.to_base64());
    let of_rows = root
        .as_ref()
        .map_or(String::new(), |root| format!(", rows root {root}"));
    let text = format!(
        "{}: {count} of class {}, on record at seq {seq}{of_rows}\n",
        path.display(),
        args.class,
    );
    let data = json!({
        "class": args.class, "count": released.count, "rows": released.rows.len(), "rows_root": root,
        "seq": seq, "file": path.display().to_string(),
    });
    let mut answer = Answer::new(text, data).with_events(&appended);
    answer.verdict = "released";
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}
