//! The command line: one file per noun, one error with one exit code, answers on standard output and
//! everything else on standard error.
//!
//! [`run`] parses, resolves settings, runs one verb and prints its answer as text or as one JSON object. A
//! [`World`] stands for everything outside, so that tests run verbs in process. Verbs hold no rule: they
//! read arguments, call the ledger, and word what it says.

mod access;
mod analyze;
mod approve;
mod assume;
mod at;
mod audit;
mod backup;
mod battery;
mod blob;
mod budget;
mod bulk;
mod calibrate;
mod campaign;
mod carried;
mod cassette;
mod cast;
mod checkpoint;
mod completions;
mod confirm;
mod ctx;
mod current;
mod demo;
mod demo_story;
mod deploy;
mod doctor;
mod doctor_endpoints;
mod endpoint;
mod endpoint_terms;
mod erase;
mod error;
mod estimate;
mod estimate_refusals;
mod experiment;
mod experiment_split;
mod explained;
mod export;
mod exposure;
mod family;
mod gate;
mod generator;
mod guide;
mod home;
mod ids;
mod import;
mod import_labels;
mod import_ledger;
mod import_rows;
mod import_tools;
mod init;
mod input;
mod intake;
mod intake_columns;
mod intake_draw;
mod intake_files;
mod intake_forms;
mod intake_found;
mod intake_logged;
mod intake_refusals;
mod intake_verbs;
mod iterate;
mod judge;
mod judge_ask;
mod judge_compare;
mod judge_drift;
mod judge_noise;
mod judge_refusals;
mod judge_rows;
mod key;
mod key_request;
mod label;
mod label_refusals;
mod line;
mod log;
mod meta;
mod objective;
mod ope;
mod patch;
mod plan;
mod ports;
mod prereg;
mod price;
mod prompt;
mod prove;
mod qualify;
mod recalibrate;
mod record;
mod refusals;
mod regime;
mod repair;
mod replay;
mod replicating;
mod report;
mod restore;
mod retain;
mod review;
mod rubric;
mod rulebook;
mod sandbox;
mod schema;
mod score;
mod seal;
mod selftest;
mod sgd;
mod show;
mod sign;
mod simulate;
mod simulate_iteration;
mod slate;
mod status;
mod submit;
mod sync;
mod synth;
mod synth_model;
mod top;
mod transport;
mod transport_environments;
mod transport_probes;
mod ui;
mod verify;
mod wallet;
mod workflow;
mod world;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use clap::Subcommand;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::input::with_negatives;
use crate::cli::line::ParsedLine;
use crate::cli::line::command;
use crate::cli::line::command_shown;
use crate::cli::line::parse;
use crate::cli::line::parse_in;
use crate::cli::refusals::command_line::parse_failure;
use crate::cli::refusals::command_line::usage;
use crate::cli::top::TOP;
use crate::cli::ui::Form;
use crate::view;
use crate::view::View;
use crate::view::text::COLUMNS;

pub use crate::view::Exit;
pub use world::World;

/// An event-sourced experiment ledger for governing LLM judges.
#[derive(Debug, Parser)]
#[command(name = "clover", version, override_help = TOP, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb; `clover --help` lists them.
#[derive(Clone, Debug, clap::Args)]
struct Globals {
    /// The ledger's folder
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// The key that signs
    #[arg(long, global = true, hide = true, value_name = "FILE|NAME")]
    key: Option<String>,
    /// Passphrase of that key
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Answer with one JSON object
    #[arg(long, global = true, hide = true)]
    json: bool,
    /// Answer as a document
    #[arg(
        long = "render",
        global = true,
        hide = true,
        value_enum,
        value_name = "FORM",
        conflicts_with = "json",
        default_value_t
    )]
    form: Form,
    /// No notes and no progress
    #[arg(long, short, global = true, hide = true)]
    quiet: bool,
    /// How long to wait for another process
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "SECONDS",
        default_value_t = 60
    )]
    busy_timeout: u64,
    /// Append although the newest entry is more than 400 days old
    #[arg(long, global = true, hide = true)]
    clock_ahead: bool,
    /// How progress is shown
    #[arg(
        long,
        global = true,
        hide = true,
        value_enum,
        value_name = "HOW",
        default_value_t
    )]
    progress: ui::ProgressMode,
    /// When colour is used
    #[arg(
        long,
        global = true,
        hide = true,
        value_enum,
        value_name = "WHEN",
        default_value_t
    )]
    color: ui::When,
}

/// Help without the blank line above the usage, for verbs with as many options as fit on a page.
const CLOSE: &str = "{about-with-newline}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Verbs, by what they are for.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a ledger here
    #[command(after_help = "Example:\n  clover init --holder Ada --roles all")]
    Init(init::Args),
    /// Show everything once: 10,000 signed events, verified, proven, tampered with and caught
    #[command(after_help = "Example:\n  clover demo --dir demo")]
    Demo(demo::Args),
    /// Four questions, and the commands that lead to what you want to know
    #[command(after_help = guide::EXAMPLE)]
    Guide(guide::Args),
    /// Keys: who may sign what
    #[command(subcommand)]
    Key(key::Verb),
    /// Sign and append one event
    #[command(
        after_help = "Example:\n  clover record note.recorded --data '{\"text\":\"calibration set frozen\"}'"
    )]
    Record(record::Args),
    /// Sign one event where the log is not written, for whoever writes it
    #[command(
        after_help = "Example:\n  clover sign note.recorded --data '{\"text\":\"seen\"}' -o note.jsonl"
    )]
    Sign(sign::SignSignArgs),
    /// Append what others signed, each file as a whole
    #[command(after_help = "Example:\n  clover submit bea/*.jsonl")]
    Submit(sign::SubmitArgs),
    /// Share a ledger through a folder: publish it, or follow it and hand in what was signed
    #[command(after_help = "Example:\n  clover sync /mnt/team/ledger")]
    Sync(sync::Args),
    /// Append many events from JSON Lines
    #[command(after_help = "Example:\n  clover append --bulk scores.jsonl --key scorer")]
    Append(bulk::Args),
    /// Take in files of scores and labels, or events signed elsewhere
    #[command(subcommand)]
    Import(import::Verb),
    /// List entries
    #[command(after_help = "Example:\n  clover log --kind score.recorded --limit 10")]
    Log(log::Args),
    /// Show one entry
    #[command(after_help = "Example:\n  clover show 17")]
    Show(show::Args),
    /// Run a reading verb as of an earlier entry
    #[command(after_help = "Example:\n  clover at 100 -- budget list")]
    At(at::Args),
    /// Estimate policies from files of judge-scored responses: exploratory, no ledger
    #[command(help_template = CLOSE, after_help = analyze::EXAMPLE)]
    Analyze(analyze::Args),
    /// Judges: scores that are asked for once
    #[command(subcommand)]
    Judge(judge::Verb),
    /// Models behind HTTP: where they are, what one can do, and a double to try it with
    #[command(subcommand)]
    Endpoint(endpoint::Verb),
    /// Runs of models as files that answer for them
    #[command(subcommand)]
    Cassette(cassette::Verb),
    /// What calls of models cost
    #[command(subcommand)]
    Price(price::Verb),
    /// Data with a known truth, for trials and planning
    #[command(subcommand)]
    Simulate(simulate::Verb),
    /// What policies are worth by the ledger's scores and labels, on the record
    #[command(help_template = CLOSE, override_usage = "clover estimate [OPTIONS] [POLICY]...   (default all policies)", after_help = "Example:\n  clover estimate --plot values.svg")]
    Estimate(estimate::EstimateEstimateArgs),
    /// Which differences of policies are real, on the record
    #[command(override_usage = estimate::COMPARE, after_help = "Example:\n  clover compare --all")]
    Compare(estimate::EstimateCompareArgs),
    /// Calibrators on record, and what new scores become
    #[command(subcommand)]
    Calibrate(calibrate::Verb),
    /// Audits that are run once, and the questions that an auditor asks of a log
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Environments that failed, and how rewards may be used there
    #[command(subcommand)]
    Regime(regime::Verb),
    /// How long each class of records is kept
    #[command(subcommand)]
    Retain(retain::Verb),
    /// How many scores, labels and probes, from the ledger's own variance
    #[command(subcommand)]
    Plan(plan::Verb),
    /// Compute decisions again from their recorded inputs, and compare
    #[command(after_help = replay::HELP)]
    Replay(replay::Args),
    /// Run reference vectors with known answers on this machine
    #[command(after_help = "Example:\n  clover qualify --json")]
    Qualify(qualify::Args),
    /// Check everything and say what was not checked
    #[command(
        after_help = "Example:\n  clover verify export/ledger.jsonl --log-key \"$(cat log.vkey)\""
    )]
    Verify(verify::Args),
    /// Write or check an inclusion proof: offline, that one entry is in the log
    #[command(after_help = "Example:\n  clover prove 17 -o 17.tlog-proof")]
    Prove(prove::Args),
    /// Signed sizes and roots of the log
    #[command(subcommand)]
    Checkpoint(checkpoint::Verb),
    /// Write the log in a format that needs no Clover, or what it says for other tools
    #[command(after_help = export::formats_help())]
    Export(export::Args),
    /// Content too large or too private for an event
    #[command(subcommand)]
    Blob(blob::Verb),
    /// Labels sealed until they are paid for
    #[command(subcommand)]
    Seal(seal::Verb),
    /// Designs by which rows are labelled
    #[command(subcommand)]
    Label(label::Verb),
    /// Sealed labels as a whole: status, acceptance, opening
    #[command(subcommand)]
    Confirm(confirm::Verb),
    /// Experiments
    #[command(subcommand)]
    Experiment(experiment::Verb),
    /// Name the experiment that commands are about
    #[command(after_help = current::EXAMPLE)]
    Use(current::Args),
    /// Plans that bind: manifests, their amendments and deviations
    #[command(subcommand)]
    Prereg(prereg::Verb),
    /// Rubrics: what a judge holds an answer to
    #[command(subcommand)]
    Rubric(rubric::Verb),
    /// Small edits to a rubric, checked and proposed
    #[command(subcommand)]
    Patch(patch::Verb),
    /// Workflows of model calls: checked, shown, run, compared
    #[command(subcommand)]
    Workflow(workflow::Verb),
    /// Mend a workflow where nobody knows what is right
    #[command(subcommand)]
    Repair(repair::Verb),
    /// Learn from repairs whose truth is known: updates that are tried before they take effect
    #[command(subcommand)]
    Meta(meta::Verb),
    /// Approve or refuse an accepted patch, by name
    #[command(after_help = approve::EXAMPLE)]
    Approve(approve::Args),
    /// What judges are told, version by version
    #[command(subcommand)]
    Prompt(prompt::Verb),
    /// Which committed prompt runs, its guardrails, and the way back
    #[command(subcommand)]
    Deploy(deploy::Verb),
    /// Policies that are tuned under the judge that runs
    #[command(subcommand)]
    Generator(generator::Verb),
    /// Iterations of a rubric
    #[command(subcommand)]
    Iterate(iterate::Verb),
    /// Lower the loss of a judge's prompt, step by step
    #[command(subcommand)]
    Sgd(sgd::Verb),
    /// Patches by an optimizer that sees only cards
    #[command(subcommand)]
    Synth(synth::Verb),
    /// Attacks on answers, and the exploits that are kept for good
    #[command(subcommand)]
    Battery(battery::Verb),
    /// Iterations of one experiment together
    #[command(subcommand)]
    Campaign(campaign::Verb),
    /// Reports of what was decided
    #[command(subcommand, after_help = report::FRAMEWORKS)]
    Report(report::Verb),
    /// Families of tests that share one error rate
    #[command(subcommand)]
    Family(family::Verb),
    /// Exposure of units to those who score them
    #[command(subcommand)]
    Exposure(exposure::Verb),
    /// Sequential gates: from the order of their units to the decision
    #[command(subcommand)]
    Gate(gate::Verb),
    /// Which rules judge this ledger's entries
    #[command(subcommand)]
    Rulebook(rulebook::Verb),
    /// Budget accounts
    #[command(subcommand)]
    Budget(budget::Verb),
    /// What every claim rests on, and waivers by two keys
    #[command(subcommand)]
    Assume(assume::Verb),
    /// Rows and labels released to a role, on record
    #[command(subcommand)]
    Access(access::Verb),
    /// Scores by judge and policy, draw by draw
    #[command(subcommand)]
    Score(score::Verb),
    /// Destroy a subject's key and record it
    #[command(after_help = "Example:\n  clover erase 9f2c… --basis 'request of 2026-11-20'")]
    Erase(erase::Args),
    /// Copy the ledger while it is in use
    #[command(after_help = "Example:\n  clover backup /mnt/backup/2026-11-20")]
    Backup(backup::Args),
    /// Restore a ledger and its keys from a backup of everything
    #[command(after_help = restore::EXAMPLE)]
    Restore(restore::Args),
    /// What stands in the ledger
    #[command(after_help = "Example:\n  clover status")]
    Status,
    /// Kinds of events and their JSON Schemas
    #[command(after_help = "Example:\n  clover schema score.recorded")]
    Schema(schema::Args),
    /// Check environment, files and clock
    #[command(after_help = "Example:\n  clover doctor --selftest")]
    Doctor(doctor::Args),
    /// Shell completions
    #[command(after_help = "Example:\n  clover completions bash > clover.bash")]
    Completions(completions::CompletionArgs),
    /// Ids of the ledger, one a line, for completions
    #[command(hide = true, after_help = "Example:\n  clover ids gate")]
    Ids(ids::Args),
    /// Man pages
    #[command(after_help = "Example:\n  clover man -o /usr/local/share/man/man1")]
    Man(completions::ManArgs),
}

/// Runs the program in the real world.
pub fn run(args: impl Iterator<Item = OsString>) -> std::process::ExitCode {
    let exit = match World::system() {
        Ok(mut world) => execute(args, &mut world),
        Err(_) => Exit::Unexpected,
    };
    exit.code().into()
}

/// Runs one command line in a world.
pub fn execute(args: impl IntoIterator<Item = OsString>, world: &mut World) -> Exit {
    let args = input::as_options(args.into_iter().collect());
    let parsed = match parse_in(&args, world.help_columns()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let mut options = args.iter().take_while(|arg| *arg != "--");
            let json = options.any(|arg| arg == "--json");
            return parse_failure(world, (&error, &args), json);
        }
    };
    let ParsedLine { cli, path, carried } = parsed;
    let mut ctx = Ctx::new(world, cli.globals);
    ctx.verb = path;
    let result = dispatch(&mut ctx, cli.verb);
    let result = slate::settle(&mut ctx, result);
    finish(&mut ctx, carried.on_answer(result))
}

#[expect(clippy::too_many_lines, reason = "a line for each verb")]
fn dispatch(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Init(args) => init::run(ctx, &args),
        Verb::Demo(args) => demo::run(ctx, &args),
        Verb::Guide(args) => guide::run(ctx, args),
        Verb::Key(verb) => key::run(ctx, verb),
        Verb::Record(args) => record::run(ctx, &args),
        Verb::Sign(args) => sign::sign(ctx, &args),
        Verb::Submit(args) => sign::take(ctx, &args),
        Verb::Sync(args) => sync::run(ctx, &args),
        Verb::Append(args) => bulk::run(ctx, &args),
        Verb::Import(verb) => import::run(ctx, &verb),
        Verb::Log(args) => log::run(ctx, &args),
        Verb::Show(args) => show::run(ctx, &args),
        Verb::At(args) => at::run(ctx, args),
        Verb::Analyze(args) => analyze::run(ctx, &args),
        Verb::Judge(verb) => judge::run(ctx, &verb),
        Verb::Endpoint(verb) => endpoint::run(ctx, verb),
        Verb::Cassette(verb) => cassette::run(ctx, &verb),
        Verb::Price(verb) => price::run(ctx, &verb),
        Verb::Simulate(verb) => simulate::run(ctx, &verb),
        Verb::Estimate(args) => estimate::estimate(ctx, &args),
        Verb::Compare(args) => estimate::compare(ctx, &args),
        Verb::Calibrate(verb) => calibrate::run(ctx, &verb),
        Verb::Audit(verb) => audit::run(ctx, &verb),
        Verb::Regime(verb) => regime::run(ctx, &verb),
        Verb::Retain(verb) => retain::run(ctx, &verb),
        Verb::Replay(args) => replay::run(ctx, &args),
        Verb::Plan(verb) => plan::run(ctx, &verb),
        Verb::Qualify(args) => qualify::run(ctx, &args),
        Verb::Verify(args) => verify::run(ctx, &args),
        Verb::Prove(args) => prove::run(ctx, &args),
        Verb::Checkpoint(verb) => checkpoint::run(ctx, verb),
        Verb::Export(args) => export::run(ctx, &args),
        Verb::Blob(verb) => blob::run(ctx, verb),
        Verb::Seal(verb) => seal::run(ctx, verb),
        Verb::Label(verb) => label::run(ctx, verb),
        Verb::Confirm(verb) => confirm::run(ctx, verb),
        Verb::Experiment(verb) => experiment::run(ctx, verb),
        Verb::Use(args) => current::run(ctx, &args),
        Verb::Prereg(verb) => prereg::run(ctx, verb),
        Verb::Rubric(verb) => rubric::run(ctx, &verb),
        Verb::Patch(verb) => patch::run(ctx, &verb),
        Verb::Workflow(verb) => workflow::run(ctx, &verb),
        Verb::Approve(args) => approve::run(ctx, &args),
        Verb::Prompt(verb) => prompt::run(ctx, &verb),
        Verb::Deploy(verb) => deploy::run(ctx, &verb),
        Verb::Generator(verb) => generator::run(ctx, &verb),
        Verb::Iterate(verb) => iterate::run(ctx, &verb),
        Verb::Sgd(verb) => sgd::run(ctx, &verb),
        Verb::Repair(verb) => repair::run(ctx, &verb),
        Verb::Meta(verb) => meta::run(ctx, &verb),
        Verb::Synth(verb) => synth::run(ctx, &verb),
        Verb::Battery(verb) => battery::run(ctx, &verb),
        Verb::Campaign(verb) => campaign::run(ctx, &verb),
        Verb::Report(verb) => report::run(ctx, &verb),
        Verb::Family(verb) => family::run(ctx, verb),
        Verb::Exposure(verb) => exposure::run(ctx, verb),
        Verb::Gate(verb) => gate::run(ctx, verb),
        Verb::Rulebook(verb) => rulebook::run(ctx, &verb),
        Verb::Budget(verb) => budget::run(ctx, &verb),
        Verb::Assume(verb) => assume::run(ctx, verb),
        Verb::Access(verb) => access::run(ctx, &verb),
        Verb::Score(verb) => score::run(ctx, &verb),
        Verb::Erase(args) => erase::run(ctx, &args),
        Verb::Backup(args) => backup::run(ctx, &args),
        Verb::Restore(args) => restore::run(ctx, &args),
        Verb::Status => status::run(ctx),
        Verb::Schema(args) => schema::run(&args),
        Verb::Doctor(args) => doctor::run(ctx, &args),
        Verb::Completions(args) => Ok(completions::shell(&args)),
        Verb::Ids(args) => ids::run(ctx, &args),
        Verb::Man(args) => completions::man(ctx, &args),
    }
}

/// Prints the answer or the error.
fn finish(ctx: &mut Ctx<'_>, result: Result<View, CliError>) -> Exit {
    let written = result.and_then(|answer| {
        let is_known = view::shapes::is_answer(&ctx.verb, answer.shape());
        debug_assert!(is_known, "{:?}: {}", ctx.verb, answer.shape());
        let text = match (ctx.globals.json, ctx.globals.form) {
            (true, _) => view::json::json(&answer, &ctx.warnings),
            (false, Form::Text) => view::text::text(&answer, ctx.colour(), ctx.screen()),
            // What a verb writes as it goes, such as a log, is no document.
            (false, _) if answer.blocks.is_empty() => String::new(),
            (false, Form::Markdown) => view::markdown::markdown(&answer),
            (false, Form::Html) => view::page::page(&format!("clover {}", ctx.verb), &answer),
        };
        ctx.out(&text)?;
        ctx.flush()?;
        Ok(answer)
    });
    match written {
        Ok(answer) => {
            let is_shown = !ctx.globals.json && ctx.globals.form == Form::Text;
            for next in answer.next.iter().filter(|_| is_shown) {
                ctx.note(&format!("next: {next}"));
            }
            answer.exit
        }
        Err(error) if error.closed => Exit::Done,
        Err(error) => {
            ui::tell(ctx, &error);
            error.exit
        }
    }
}

#[cfg(test)]
mod examples;

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `see` with the path of every verb and its help.
    pub(super) fn walk(
        command: &clap::Command,
        path: &str,
        see: &mut dyn FnMut(&str, &clap::Command),
    ) {
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            see(&path, verb);
            walk(verb, &path, see);
        }
    }

    #[test]
    fn every_help_fits_and_has_an_example() {
        let mut command = command();
        command.build();
        assert!(TOP.lines().count() <= 24);
        let mut unfit = String::new();
        walk(&command, "clover", &mut |path, verb| {
            let words = path.split(' ').chain(["--help"]);
            let help = super::command().try_get_matches_from(words).unwrap_err();
            let help = help.render().to_string();
            let is_leaf = verb.get_subcommands().next().is_none();
            let fits = help.lines().count() <= 24
                && help.lines().all(|line| line.chars().count() <= 100)
                && (!is_leaf || help.contains("Example:\n  clover "));
            if !fits {
                unfit.push_str(&format!("{path} --help:\n{help}\n"));
            }
        });
        assert!(unfit.is_empty(), "{unfit}");
    }

    #[test]
    fn every_verb_has_its_shape() {
        let mut command = command();
        command.build();
        let mut verbs = Vec::new();
        walk(&command, "", &mut |path, verb| {
            let path = path.trim_start();
            // It answers as the verb that it runs.
            let answers = verb.get_subcommands().next().is_none() && path != "at";
            if answers {
                verbs.push(path.to_owned());
            }
        });
        verbs.sort();
        let shapes = view::shapes::SHAPES.iter().map(|of| of.verb.to_owned());
        assert_eq!(shapes.collect::<Vec<_>>(), verbs);
    }

    #[test]
    fn the_top_help_names_every_verb_and_option_and_code() {
        let mut command = command();
        command.build();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(TOP.contains(verb.get_name()), "{}", verb.get_name());
        }
        for arg in command.get_arguments().filter(|arg| arg.is_global_set()) {
            let long = arg.get_long().unwrap();
            assert!(
                long == "help" || TOP.contains(&format!("--{long}")),
                "--{long}"
            );
        }
        for exit in Exit::ALL {
            assert!(
                TOP.contains(&format!("{} {}", exit.code(), exit.meaning())),
                "{exit:?}"
            );
        }
    }
}
