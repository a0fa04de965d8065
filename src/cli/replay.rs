//! `clover replay`: what was decided, computed again from its recorded inputs, and compared.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::explained;
use crate::cli::home;
use crate::cli::record;
use crate::cli::ui;
use crate::event::Kind;
use crate::ledger::Ledger;
use crate::ledger::read::Read;
use crate::session::texts::Texts;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::recompute;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Elsewhere;
use crate::workflow::recompute::Outcome;
use crate::workflow::recompute::Shared;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A position or an event id
    #[arg(value_name = "SEQ|ID", required_unless_present = "all")]
    pub event: Option<String>,
    /// Everything that can be computed again
    #[arg(long, conflicts_with = "event")]
    pub all: bool,
    /// Show inputs, numbers, gates and verdict of each, and every number that differs
    #[arg(long)]
    pub explain: bool,
}

/// Differences that are shown without `--explain`.
const SHOWN: usize = 3;

/// One event, computed again.
struct Replayed {
    seq: u64,
    kind: Kind,
    outcome: Outcome,
    /// What it is on one page, where that was asked for.
    page: Option<String>,
}

impl Replayed {
    fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Identical => "identical",
            Outcome::Within => "within 1e-9",
            Outcome::Differs(_) => "DIFFERS",
            Outcome::Gone(_) => "cannot be computed again",
            Outcome::Told(_) => "a person's word",
        }
    }

    fn json(&self) -> Value {
        let differences = match &self.outcome {
            Outcome::Differs(differences) => differences
                .iter()
                .map(|of| {
                    json!({"path": of.path, "recorded": of.recorded, "recomputed": of.recomputed})
                })
                .collect(),
            _ => Vec::new(),
        };
        let why = match &self.outcome {
            Outcome::Gone(why) | Outcome::Told(why) => Some(why),
            _ => None,
        };
        json!({
            "seq": self.seq, "kind": self.kind.as_str(), "outcome": self.word(),
            "differences": differences, "why": why,
        })
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    let one = match &args.event {
        Some(named) => Some(named_event(&ledger, named)?),
        None => None,
    };
    let mut texts = Texts::new(&home, &ledger)?;
    let mut shared = Shared::default();
    let mut context = Context::new(&ledger, &mut texts, &mut shared).over(&ledger);
    let mut replayed = Vec::new();
    let (reads, elsewhere) = match one {
        Some(read) => (vec![read], Vec::new()),
        None => decided(&ledger)?,
    };
    let mut progress = ctx.progress("decisions");
    for (done, read) in reads.iter().enumerate() {
        let kind = read.event.kind();
        let Some((outcome, again)) = context.replay(read.stored.seq, &read.event)? else {
            let why = recompute::elsewhere(kind).map_or_else(
                || format!("{kind} is taken as it was said: no other entries give it"),
                |of| format!("{kind} {}: rule {} of clover verify", of.why, of.rule),
            );
            return Err(CliError::usage(why, "clover replay --all"));
        };
        let page = again
            .filter(|_| args.explain)
            .map(|again| explained::page(&ledger, &again));
        replayed.push(Replayed {
            seq: read.stored.seq,
            kind,
            outcome,
            page: page.transpose()?,
        });
        progress.at(done as u64 + 1, reads.len() as u64);
    }
    drop(progress);
    Ok(answer(args, &replayed, &elsewhere))
}

fn named_event(ledger: &Ledger, named: &str) -> Result<Read, CliError> {
    let seq = match named.parse::<u64>() {
        Ok(seq) => Some(seq),
        Err(_) => ledger.find(record::event_id(named)?)?,
    };
    let read = match seq {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    read.ok_or_else(|| CliError::not_found(format!("no event {named}"), "clover log"))
}

/// Kinds without a recipe, with how many events of each there are.
type Others = Vec<(Elsewhere, usize)>;

/// Every event with a recipe, and what an arbiter said that has none.
fn decided(ledger: &Ledger) -> Result<(Vec<Read>, Others), CliError> {
    let (mut reads, mut others) = (Vec::new(), Others::new());
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let kind = read.event.kind();
        if recompute::recipe(kind).is_some() {
            reads.push(read);
        } else if let Some(of) = recompute::elsewhere(kind) {
            match others.iter_mut().find(|(known, _)| known.kind == kind) {
                Some((_, count)) => *count += 1,
                None => others.push((of, 1)),
            }
        }
        Ok(())
    })?;
    Ok((reads, others))
}

fn answer(args: &Args, replayed: &[Replayed], others: &[(Elsewhere, usize)]) -> View {
    let mut text = String::new();
    let rows = replayed.iter().map(|of| {
        vec![
            of.seq.to_string(),
            of.kind.to_string(),
            of.word().to_owned(),
        ]
    });
    text.push_str(&ui::table(&["seq", "kind", "again"], rows.collect()));
    for of in replayed {
        text.push_str(&remarks(of, args.explain));
    }
    let count = |word: fn(&Outcome) -> bool| replayed.iter().filter(|of| word(&of.outcome)).count();
    let differs = count(|of| matches!(of, Outcome::Differs(_)));
    let gone = count(|of| matches!(of, Outcome::Gone(_)));
    let told = count(|of| matches!(of, Outcome::Told(_)));
    let same = replayed.len() - differs - gone - told;
    text.push_str(&format!(
        "\n{same} the same · {differs} differ · {gone} cannot be computed again"
    ));
    if told > 0 {
        text.push_str(&format!(" · {told} said by people"));
    }
    text.push('\n');
    if gone > 0 && differs == 0 {
        text.push_str(&ui::wrapped(
            "NOT CHECKED where it cannot be computed again: nothing differs, and not everything is shown to be the same",
        ));
    }
    for (of, count) in others {
        let (kind, rule, why) = (of.kind, of.rule, of.why);
        text.push_str(&ui::wrapped(&format!(
            "{count} {kind} not computed here: {why} (rule {rule}, at every clover verify)"
        )));
    }
    let data = json!({
        "same": same, "differ": differs, "gone": gone, "told": told,
        "elsewhere": others.iter().map(|(of, count)| {
            json!({"kind": of.kind.as_str(), "events": count, "rule": of.rule, "why": of.why})
        }).collect::<Vec<_>>(),
        "events": replayed.iter().map(Replayed::json).collect::<Vec<_>>(),
    });
    let mut answer = View::untyped(text, data);
    answer.verdict = if differs > 0 {
        answer.exit = Exit::Integrity;
        "differs"
    } else if gone > 0 {
        answer.exit = Exit::Inconclusive;
        "incomplete"
    } else {
        "reproduced"
    };
    answer
}

fn remarks(of: &Replayed, explain: bool) -> String {
    let mut out = String::new();
    match &of.outcome {
        Outcome::Differs(differences) => {
            let shown = if explain { differences.len() } else { SHOWN };
            for one in differences.iter().take(shown) {
                out.push_str(&ui::wrapped(&ui::escape(&format!(
                    "seq {}  {}: recorded {}, computed {}",
                    of.seq, one.path, one.recorded, one.recomputed
                ))));
            }
            if differences.len() > shown {
                let more = differences.len() - shown;
                out.push_str(&format!(
                    "seq {}  and {more} more: --explain shows them\n",
                    of.seq
                ));
            }
        }
        Outcome::Gone(why) | Outcome::Told(why) => {
            out.push_str(&ui::wrapped(&ui::escape(&format!("seq {}  {why}", of.seq))));
        }
        Outcome::Identical | Outcome::Within => {}
    }
    if let Some(page) = &of.page {
        out.push_str(&format!(
            "\nseq {}  {}, computed again\n{page}",
            of.seq, of.kind
        ));
    }
    out
}
