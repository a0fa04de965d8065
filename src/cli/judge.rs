//! `clover judge`: ask a judge for scores that are kept once, list judges, and see whether one says the same again.

use std::path::PathBuf;

use crate::cli::CLOSE;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_files::KeptFields;
use crate::cli::intake_files::Scores;
use crate::cli::judge_ask;
use crate::cli::judge_compare;
use crate::cli::judge_drift;
use crate::cli::judge_noise;
use crate::cli::judge_rows::Desk;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::session::judge::history;
use crate::session::judge::judging;
use crate::session::judge::scoring;
use crate::session::judge::scoring::Rescore;
use crate::view::Exit;
use crate::view::View;
use crate::view::judge;
use crate::view::judge::JudgeRun;
use crate::view::judge::JudgeStability;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Score rows that have no score of this judge yet, and record what was found in them
    #[command(
        help_template = CLOSE,
        after_help = "Example:\n  clover judge run --judge llm --rows sim/responses --known sim/known.json -- python3 judge.py"
    )]
    Run(JudgeRunArgs),
    /// Let a model behind HTTP score rows, as a run on record: held, sent, answered, settled
    #[command(
        help_template = CLOSE,
        override_usage = "clover judge ask --plan <FILE> --rows <PATH> [OPTIONS]",
        after_help = "Example:\n  clover judge ask --plan plan.yaml --rows rows --account judges --cap-usd 2"
    )]
    Ask(Box<judge_ask::Args>),
    /// End a run of judge ask that nobody goes on with: what it holds is charged
    #[command(
        after_help = "What was sent under its hold is not known, so the hold is charged as a whole. Its asks may be asked by a later run.\n\n\
                      Example:\n  clover judge stop run-12"
    )]
    Stop(judge_ask::StopArgs),
    /// Which of two judges agrees better with the labels of the same rows
    #[command(
        after_help = "Only what a plan named before the first label may be claimed: clover prereg new --template compare\n\n\
                      Example:\n  clover judge compare llm llm-2"
    )]
    Compare(judge_compare::Args),
    /// Ask a model again about rows that it scored, to see how much its scores waver
    #[command(
        help_template = CLOSE,
        override_usage = "clover judge noise --plan <FILE> --rows <PATH> [OPTIONS]",
        mut_arg("dry_run", |arg| arg.hide(true)),
        after_help = "Example:\n  clover judge noise --plan plan.yaml --rows rows --account judges -n 50"
    )]
    Noise(Box<judge_noise::NoiseArgs>),
    /// Judges that are registered
    #[command(after_help = "Example:\n  clover judge list")]
    List,
    /// Score a sample of recorded rows again and record whether anything differs
    #[command(
        help_template = CLOSE,
        after_help = "Example:\n  clover judge rescore-check --judge builtin --rows sim/responses --known sim/known.json"
    )]
    RescoreCheck(JudgeCheckArgs),
    /// Score the anchors again and record whether the judge still ranks and scores them as it did
    #[command(
        help_template = CLOSE,
        override_usage = "clover judge drift --judge <ID> --rows <PATH> [OPTIONS] [-- COMMAND...]",
        mut_arg("command", |arg| arg.hide(true)),
        mut_arg("recorded", |arg| arg.hide(true)),
        after_help = "Recorded however it ends; exit 0 where it passes, 10 where it fails, 12 where it is inconclusive.\n\n\
                      Example:\n  clover judge drift --judge llm --anchors anchors-1 --rows anchors -- python3 judge.py"
    )]
    Drift(judge_drift::Args),
}

/// Who judges what.
#[derive(Debug, clap::Args)]
pub(super) struct JudgeArgs {
    /// The judge's name; builtin is the stand-in for trials
    #[arg(long, value_name = "ID")]
    pub judge: String,
    /// Rows with prompts and responses; default those that `import rows` took in
    #[arg(
        long,
        value_name = "PATH",
        help = "JSON Lines of prompts and responses; default those of import rows"
    )]
    pub rows: Vec<PathBuf>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from file name or `target_policy`
    #[arg(
        long,
        value_name = "ID",
        help = "Whose responses; default from file name or target_policy"
    )]
    pub policy: Option<String>,
    /// What is known of sources, facts and tool calls, and which fields of evidence the judge returns
    #[arg(
        long,
        value_name = "FILE",
        help = "JSON of known sources, facts and tool calls; and of what the judge finds"
    )]
    pub known: Option<PathBuf>,
    /// A text that the program is told in every ask, as `judge_prompt`; it is kept on record
    #[arg(
        long,
        value_name = "FILE",
        help = "A text that the program is told in every ask; kept on record, public"
    )]
    pub prompt: Option<PathBuf>,
    /// Name of the model behind a command
    #[arg(long, value_name = "TEXT", default_value = "command")]
    pub model: String,
    /// Scale of a program's answers [else 0:1]
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub scale: Option<String>,
    /// Take the scores that were imported
    #[arg(long, conflicts_with = "command")]
    pub recorded: bool,
    /// Ask the built-in judge, a stand-in for trials; a judge that is named builtin is it too
    #[arg(
        long,
        conflicts_with_all = ["command", "recorded"],
        hide = true
    )]
    pub builtin: bool,
    /// Seconds for one answer of a command
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// Children that are asked side by side
    #[arg(short = 'j', value_name = "N", default_value_t = 1)]
    pub children: u16,
    /// A program: {"id":1,"response":…} in, {"id":1,"score":0.7} out, a line each; its files are part of who the judge is
    #[arg(
        last = true,
        value_name = "COMMAND",
        help = r#"A program: {"id":1,"response":…} in, {"id":1,"score":0.7} out, a line each"#
    )]
    pub command: Vec<String>,
}

impl JudgeArgs {
    /// The command that asks the same judge about a sample of the same rows again.
    fn check_command(&self) -> String {
        let mut words = format!(
            "clover judge rescore-check --judge {}",
            shell::word(&self.judge)
        );
        let mut add = |option: &str, value: &dyn std::fmt::Display| {
            words.push_str(&format!(" --{option} {}", shell::word(value)));
        };
        for rows in &self.rows {
            add("rows", &rows.display());
        }
        let files = [("known", &self.known), ("prompt", &self.prompt)];
        for (option, file) in files {
            if let Some(file) = file {
                add(option, &file.display());
            }
        }
        let texts = [
            ("experiment", &self.experiment),
            ("policy", &self.policy),
            ("scale", &self.scale),
        ];
        for (option, text) in texts {
            if let Some(text) = text {
                add(option, text);
            }
        }
        if !self.command.is_empty() && self.model != "command" {
            add("model", &self.model);
        }
        if self.recorded {
            words.push_str(" --recorded");
        }
        if self.builtin {
            words.push_str(" --builtin");
        }
        if !self.command.is_empty() {
            let command = self.command.iter().map(shell::word);
            words.push_str(&format!(" -- {}", command.collect::<Vec<_>>().join(" ")));
        }
        words
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct JudgeRunArgs {
    #[command(flatten)]
    pub common: JudgeArgs,
    /// Keep a field of each row, public, for slices
    #[arg(
        long,
        value_name = "NAME",
        help = "With --rows: keep a field of each row for slices: public, as domain"
    )]
    pub field: Vec<String>,
    /// Keep when each row was sampled, for splits in time
    #[arg(
        long,
        help = "With --rows: keep when each row was sampled, for splits in time"
    )]
    pub times: bool,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY", hide = true)]
    pub scorer: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct JudgeCheckArgs {
    #[command(flatten)]
    pub common: JudgeArgs,
    /// What the sample is drawn with
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY")]
    pub scorer: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Run(args) => score(ctx, args),
        Verb::Ask(args) => judge_ask::run(ctx, args),
        Verb::Stop(args) => judge_ask::stop(ctx, args),
        Verb::Noise(args) => judge_noise::run(ctx, args),
        Verb::Compare(args) => judge_compare::run(ctx, args),
        Verb::List => list(ctx),
        Verb::RescoreCheck(args) => check(ctx, args),
        Verb::Drift(args) => judge_drift::run(ctx, args),
    }
}

fn score(ctx: &mut Ctx<'_>, args: &JudgeRunArgs) -> Result<View, CliError> {
    let keeps = args.times || !args.field.is_empty();
    if keeps && args.common.rows.is_empty() {
        return Err(CliError::usage(
            "--field and --times are of the file in --rows; rows that were taken in keep their own fields and times",
            "clover import rows --help",
        ));
    }
    let kept = KeptFields {
        fields: &args.field,
        times: args.times,
    };
    let mut desk = Desk::open_with(ctx, &args.common, Scores::Asked, kept)?;
    if keeps {
        desk.take_in(ctx, args.scorer.as_ref())?;
    }
    let judge = desk.assignment.judge().clone();
    for shared in desk.kinship() {
        ctx.warn(shared.to_string());
    }
    if args.common.prompt.is_some() && !desk.assignment.is_told() {
        ctx.warn(format!(
            "judge {judge} is not told the text of --prompt: only its hash is on record; a judge of another name is told it"
        ));
    }
    let ports = ctx.ports().with_scorer(args.scorer.as_ref());
    let mut ports = ports.with_program(&desk.program).with_interrupts()?;
    let counts = judging::run(&mut ports, &desk.home, &mut desk.ledger, desk.assignment)?;
    finished(
        &desk.ledger,
        &JudgeRun::of(judge, counts),
        &args.common.check_command(),
    )
}

/// The answer of a run.
fn finished(ledger: &Ledger, facts: &JudgeRun, check: &str) -> Result<View, CliError> {
    let conflicts = facts.conflicts;
    if conflicts > 0 {
        let message = format!(
            "score_once: {conflicts} scores differ from what is recorded; each is on record as score.conflict, and the first stands"
        );
        let mut error = CliError::refused(message, "clover log --kind score.conflict");
        error.data = View::of(facts).facts().clone();
        return Err(error);
    }
    Ok(facts.view(ledger, check))
}

fn check(ctx: &mut Ctx<'_>, args: &JudgeCheckArgs) -> Result<View, CliError> {
    let seed = Count::new(args.seed).ok_or_else(|| {
        CliError::usage(
            "--seed: expected below 2^53",
            "clover judge rescore-check --help",
        )
    })?;
    let mut desk = Desk::open(ctx, &args.common, Scores::Asked)?;
    let ports = ctx.ports().with_scorer(args.scorer.as_ref());
    let mut ports = ports.with_program(&desk.program);
    let found = scoring::rescore(&mut ports, &mut desk.ledger, desk.assignment, seed)?;
    rescored(&found)
}

/// The answer of a re-score.
fn rescored(found: &Rescore) -> Result<View, CliError> {
    let (facts, appended) = (JudgeStability::of(&found.said), &found.appended);
    let (keys, mismatches) = (facts.keys, facts.mismatches);
    if mismatches > 0 {
        let message = format!(
            "{mismatches} of {keys} rows were scored differently this time; it is on record as score.replayed"
        );
        let next = format!("clover show {}", appended[0].seq);
        let mut error = CliError::new(Exit::Fail, "failed", message, next);
        error.data = View::of(&facts).facts().clone();
        return Err(error);
    }
    Ok(facts.view(appended))
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, _) = home::view(ctx)?;
    let end = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let judges = history::judges(&ledger, end)?;
    Ok(judge::list(&judges))
}
