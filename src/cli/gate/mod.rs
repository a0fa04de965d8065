//! `clover gate`: sequential tests that bind, from the order of their units to the decision, and estimates beside it.

mod estimate;
mod open;
mod plan;
mod promote;
mod refusals;
mod run;
mod show;
mod simulate;

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::ManifestId;
use crate::view::View;
use crate::view::gate;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write the plan of a gate from the files of its arms, its judge and its units
    #[command(
        override_usage = "clover gate plan ID --units FILE --baseline FILE --candidate FILE --judge FILE --claim TEXT",
        after_help = "Example:\n  clover gate plan m-1 --units units.txt --baseline old.txt --candidate new.txt --judge judge.py \\\n    --claim 'the new prompt scores higher' -o gate.yaml"
    )]
    Plan(plan::Args),
    /// List units, draw their order and open the gate of a manifest in force
    #[command(
        after_help = "Example:\n  clover gate open m-1 --units units.txt --judge judge-1 --custodian cem --from outcomes.csv"
    )]
    Open(GateOpenArgs),
    /// Observe the next units from their recorded scores, up to where the test ends
    #[command(after_help = "Example:\n  clover gate observe m-1 --all --from outcomes.jsonl")]
    Observe(ObserveArgs),
    /// Record what the observations show by now
    #[command(after_help = "Example:\n  clover gate look m-1")]
    Look(OneArgs),
    /// End the gate as its last look found
    #[command(after_help = "Example:\n  clover gate decide m-1")]
    Decide(OneArgs),
    /// Beside the verdict: what labels of a sample say, asymptotically; it decides nothing
    #[command(after_help = "Example:\n  clover gate estimate m-1 --design audit-1")]
    Estimate(GateEstimateArgs),
    /// Go on with the evidence of the undecided gate that the manifest names
    #[command(after_help = "Example:\n  clover gate continue m-2")]
    Continue(OneArgs),
    /// Promote the candidate on decided gates, with the grade that follows from how they ran
    #[command(after_help = "Example:\n  clover gate promote m-1")]
    Promote(PromoteArgs),
    /// Take a promotion back
    #[command(after_help = "Example:\n  clover gate revoke 118 --reason 'the judge was withdrawn'")]
    Revoke(RevokeArgs),
    /// A gate's whole life on one page, replayed from the log
    #[command(after_help = "Example:\n  clover gate show m-1 -o wealth.svg")]
    Show(GateShowArgs),
    /// Number and Merkle root of units, for a manifest's section data
    #[command(after_help = "Example:\n  clover gate root units.txt")]
    Root(RootArgs),
    /// Every gate and how it stands
    #[command(after_help = "Example:\n  clover gate list")]
    List,
    /// What a design, registered or not, does to streams of known effect
    #[command(
        override_usage = "clover gate simulate <ID | --plan FILE> [OPTIONS]",
        after_help = "Example:\n  clover gate simulate --plan plan.yaml --streams 2000 -o wealth.svg"
    )]
    Simulate(SimulateArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct GateOpenArgs {
    /// The gate: its manifest's name
    pub id: String,
    /// Names of its units, one a line, each with its stratum after a tab where they have some; - for standard input
    #[arg(long, value_name = "FILE")]
    pub units: PathBuf,
    /// The judge whose scores are its values: JUDGE, or METRIC=JUDGE for a guardrail
    #[arg(long, value_name = "[METRIC=]JUDGE")]
    pub judge: Vec<String>,
    /// The design whose revealed labels are its values, in the same form
    #[arg(long, value_name = "[METRIC=]DESIGN")]
    pub design: Vec<String>,
    /// Check these outcomes first, as `gate observe` reads them: nothing is drawn where a line is wrong
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The custodian's key, where several may list units
    #[arg(long, value_name = "FILE|NAME")]
    pub custodian: Option<String>,
    /// Print the canonical unsigned bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ObserveArgs {
    /// The gate
    pub id: String,
    /// Every unit that is exposed and has its scores
    #[arg(long, conflicts_with = "through")]
    pub all: bool,
    /// Units up to the Nth
    #[arg(long, value_name = "N")]
    pub through: Option<u64>,
    /// Draws without a score have failed: the end of the scale against the candidate stands for each
    #[arg(long)]
    pub missing: bool,
    /// Record these outcomes first, as scores: JSON Lines or CSV of unit, baseline, candidate and, of a guardrail, metric;
    /// several draws as [0.4,null] or, in CSV, "0.4 null", null where one failed
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The scorer's key, where several may record scores
    #[arg(long, value_name = "FILE|NAME", requires = "from")]
    pub scorer: Option<String>,
    /// Print the canonical unsigned bodies and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// The gate
    pub id: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromoteArgs {
    /// The gates that it rests on, all of one candidate
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Until when it may be relied on, as 2026-11-20T10:00:00.000000Z
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RevokeArgs {
    /// Entry of the promotion
    pub seq: u64,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct GateEstimateArgs {
    /// The gate, which is decided
    pub id: String,
    /// The design whose labels are read; without it the units drawn for labels are printed
    #[arg(long, value_name = "DESIGN")]
    pub design: Option<String>,
    /// Units of the order up to the Nth; all that were observed when absent
    #[arg(long, value_name = "N")]
    pub through: Option<u64>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct GateShowArgs {
    /// The gate
    pub id: String,
    /// Write a plot
    #[arg(short = 'o', long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Which: wealth by units, or the interval by units
    #[arg(long, value_name = "NAME", default_value = "wealth")]
    pub chart: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct RootArgs {
    /// Names of the units, one a line, each with its stratum after a tab where they have some; - for standard input
    pub units: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct SimulateArgs {
    /// The gate's manifest, as it is in force
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    pub id: Option<String>,
    /// A manifest that is not registered yet; its family is the ledger's, if that has it
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Gates for each line
    #[arg(
        long,
        value_name = "N",
        help = "Gates for each line [default: 2000, fewer of more than 25000 units]"
    )]
    pub streams: Option<u64>,
    /// Mean effect in millionths [else the planned one, else 50000 beyond the null]
    #[arg(long, value_name = "MICRO", allow_hyphen_values = true)]
    pub effect: Option<i64>,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a plot of the paths
    #[arg(short = 'o', long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Which: wealth by units, or the interval
    #[arg(long, value_name = "NAME", default_value = "wealth")]
    pub chart: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Plan(args) => plan::run(ctx, &args),
        Verb::Open(args) => open::run(ctx, &args),
        Verb::Observe(args) => run::observe(ctx, &args),
        Verb::Look(args) => run::look(ctx, &args),
        Verb::Decide(args) => run::decide(ctx, &args),
        Verb::Estimate(args) => estimate::run(ctx, &args),
        Verb::Continue(args) => run::proceed(ctx, &args),
        Verb::Promote(args) => promote::promote(ctx, &args),
        Verb::Revoke(args) => promote::revoke(ctx, &args),
        Verb::Show(args) => show::run(ctx, &args),
        Verb::Root(args) => open::root(ctx, &args),
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(gate::list::list(at.state(&ledger)))
        }
        Verb::Simulate(args) => simulate::run(ctx, &args),
    }
}

pub(super) fn gate_id(id: &str) -> Result<ManifestId, CliError> {
    id.parse()
        .map_err(|error| CliError::usage(format!("gate {id:?}: {error}"), "clover gate list"))
}
