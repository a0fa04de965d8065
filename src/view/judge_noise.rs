//! How much scores of a judge behind HTTP waver.

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::payload::Verdict;
use crate::event::payload::model_runs::NoiseFigures;
use crate::num::Micro;
use crate::session::judge::noise::NoiseRun;
use crate::view::Exit;
use crate::view::View;
use crate::view::judge_ask;
use crate::view::text::thousands;
use crate::workflow::deploy::word;

/// How much scores of a judge waver, on rows that it was asked about twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeNoiseFound {
    /// The judge.
    pub judge: JudgeId,
    /// The run that asked again.
    pub run: Option<String>,
    /// What this run found; `null` where it did not end.
    pub figures: Option<NoiseFacts>,
    /// What every run of the judge that asked again found.
    pub pooled: Option<NoiseFacts>,
    /// The standard deviation that the plan allows, in millionths; `null` where each score has to come out the same.
    pub sd_max_micro: Option<u64>,
    /// What all runs together say; `null` where this one did not end.
    pub verdict: Option<Verdict>,
    /// Drawn rows that nobody asked about again.
    pub left: u64,
    /// Why it stopped before its end; `null` where it did not.
    pub stopped: Option<String>,
    /// What its calls cost, in millionths of a dollar.
    pub cost_usd_micro: u64,
}

/// Figures of scores that were given twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseFacts {
    /// Rows that were drawn.
    pub asked: u64,
    /// Rows that have both scores.
    pub answered: u64,
    /// Those whose scores differ.
    pub differing: u64,
    /// Rows whose second ask came to no answer.
    pub missed: u64,
    /// Standard deviation of one score, in millionths.
    pub sd_micro: Option<u64>,
    /// Mean of the second scores less the first ones, in millionths.
    pub shift_micro: Option<i64>,
    /// Half of the width of its interval of .95, in millionths.
    pub shift_half_micro: Option<u64>,
}

impl NoiseFacts {
    /// The figures of an entry.
    pub fn of(of: &NoiseFigures) -> Self {
        Self {
            asked: of.asked.value(),
            answered: of.answered.value(),
            differing: of.differing.value(),
            missed: of.missed.value(),
            sd_micro: of.sd_micro.map(crate::num::Count::value),
            shift_micro: of.shift_micro.map(Micro::value),
            shift_half_micro: of.shift_half_micro.map(crate::num::Count::value),
        }
    }
}

/// Millionths as a decimal, to the thousandth.
fn short(micro: i64) -> String {
    let thousandths = (micro.unsigned_abs() + 500) / 1_000;
    let sign = if micro < 0 && thousandths > 0 {
        "-"
    } else {
        ""
    };
    let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
    if whole == 0 {
        return format!("{sign}.{part:03}");
    }
    format!("{sign}{whole}.{part:03}")
}

/// The noise of a judge in a few words: `judge noise sd .041 (30 rows)`.
pub fn in_words(of: &NoiseFigures) -> Option<String> {
    let sd = i64::try_from(of.sd_micro?.value()).ok()?;
    Some(format!(
        "judge noise sd {} ({} rows)",
        short(sd),
        thousands(of.answered.value())
    ))
}

fn figures(view: &mut View, what: &str, of: &NoiseFigures) {
    let Some(words) = in_words(of) else {
        return;
    };
    let (mean, half) = (of.shift_micro, of.shift_half_micro);
    let (mean, half) = (
        mean.map_or(0, Micro::value),
        half.map_or(0, |of| i64::try_from(of.value()).unwrap_or(i64::MAX)),
    );
    view.sentence(format!(
        "{what}: {words}, {} of them scored otherwise, mean shift {} (.95 interval {} to {}).",
        thousands(of.differing.value()),
        short(mean),
        short(mean.saturating_sub(half)),
        short(mean.saturating_add(half))
    ));
}

/// What asking again found.
pub fn measured(judge: JudgeId, found: &NoiseRun) -> View {
    let said = found.said.as_ref();
    let counts = &found.counts;
    let facts = JudgeNoiseFound {
        judge,
        run: counts.run.as_ref().map(ToString::to_string),
        figures: said.map(|of| NoiseFacts::of(&of.figures)),
        pooled: said.map(|of| NoiseFacts::of(&of.pooled)),
        sd_max_micro: said
            .and_then(|of| of.sd_max_micro)
            .map(crate::num::Count::value),
        verdict: said.map(|of| of.verdict),
        left: counts.left,
        stopped: counts.stopped.map(|why| judge_ask::why(why, counts)),
        cost_usd_micro: counts.cost,
    };
    let exit = match facts.verdict {
        _ if counts.stopped.is_some() => judge_ask::exit(counts),
        Some(Verdict::Pass) => Exit::Done,
        Some(Verdict::Fail) => Exit::Fail,
        _ => Exit::Inconclusive,
    };
    let mut view = View::of(&facts);
    view.exit = exit;
    let allowed = facts.sd_max_micro.map_or_else(
        || "each score has to come out the same".to_owned(),
        |most| {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            format!("the plan allows sd {}, and no shift", short(most))
        },
    );
    match facts.verdict {
        None => view.sentence("Not measured: the same command goes on with it."),
        Some(verdict) => view.sentence(format!("{}: {}: {allowed}.", facts.judge, word(verdict))),
    }
    if let Some(said) = said {
        figures(&mut view, "This sample", &said.figures);
        if said.pooled.answered != said.figures.answered {
            figures(&mut view, "All samples", &said.pooled);
        }
    }
    if let Some(why) = &facts.stopped {
        view.sentence(format!("Stopped, with {} asks left: {why}.", facts.left));
    }
    view
}
