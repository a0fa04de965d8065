//! What a run of an optimizer that is a model would send and cost, before anything is sent.

use clover_event::calls::TokenCounts;
use clover_event::id::RunId;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::synth_runs::LeakTest;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::budgets::Budgets;
use clover_workflow::ask::WireForm;
use clover_workflow::synth::ask;
use clover_workflow::synth::view::OptimizerView;

use crate::append;
use crate::asking::ModelTerms;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::synth;
use crate::iterate::synth::SynthTerms;
use crate::iterate::synth_ask;
use crate::ports::Ports;
use crate::ports::Question;

/// Bytes of a request for each token of it, in tenths, where nothing is known of its model's tokens.
const BYTES_PER_TEN_TOKENS: u64 = 36;
/// The share of the limit of an answer that it takes, where nothing is known.
const OUTPUT_SHARE: u64 = 3;
/// Money of which no consent is needed, at most: one dollar.
const UNASKED_USD_MICRO: u64 = 1_000_000;

/// What a run would send and cost.
#[derive(Clone, Debug)]
pub struct SynthOutlook {
    /// The account, and what is left there in millionths of a dollar.
    pub account: Option<(String, u64)>,
    /// Asks that it may have, one a round.
    pub asks: u64,
    /// Bytes of the first request.
    pub bytes: u64,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap: Option<u64>,
    /// What its asks would probably cost, and the most, in millionths of a dollar; none at a free endpoint.
    pub cost: Option<[u64; 2]>,
    /// What was looked through.
    pub leak_test: LeakTest,
    /// The run that would go on; none where a new one is opened.
    pub open: Option<RunId>,
    /// Tokens of input and output of all of its asks, guessed by bytes.
    pub tokens: [u64; 2],
    /// What would be sent.
    pub view: OptimizerView,
    /// SHA-256 of it.
    pub view_digest: Digest,
}

/// The model that terms name.
fn model(terms: &SynthTerms) -> Result<&ModelTerms, IterationError> {
    let of = terms.asks.as_ref();
    of.ok_or_else(|| IterationError::Optimizer("no model is named".to_owned()))
}

/// What a run on these terms would send and cost; later views are somewhat longer than the first. Nothing is sent and nothing
/// goes on record.
///
/// # Errors
/// As [`synth::view`] has, and what prices and accounts lack.
pub fn outlook(
    bench: &Bench,
    terms: &SynthTerms,
    wire: &dyn WireForm,
) -> Result<SynthOutlook, SessionError> {
    let (view, leak_test) = synth::view(bench, terms.k)?;
    let bytes = view.bytes();
    let open = bench.record.open_synth();
    let said = open.map(|run| &run.opened.said);
    let opened = said.and_then(|said| said.asked.clone());
    let money = match &opened {
        Some(asked) => ModelTerms::of(asked).tariff(&bench.ledger)?,
        None => model(terms)?.tariff(&bench.ledger)?,
    };
    let asked = match opened {
        Some(asked) => asked,
        None => model(terms)?.asked(money.as_ref(), ask::FORM),
    };
    let asks = match open {
        Some(run) => {
            let rounds = run.opened.said.rounds.value();
            rounds.saturating_sub(run.returned.len() as u64)
        }
        None => terms.rounds.value(),
    };
    let name = said.map_or_else(|| synth::next_name(bench), |said| Ok(said.run.clone()))?;
    let (request, bound) = synth_ask::request(&asked, (&name, 0), (&bytes, wire), money.as_ref())?;
    let length = request.body.len() as u64;
    let input = (length * 10 / BYTES_PER_TEN_TOKENS).saturating_mul(asks);
    let output = asked.max_output_tokens.value() / OUTPUT_SHARE;
    let tokens = [input, output.saturating_mul(asks)];
    let most = bound.saturating_mul(asks);
    let count = |of: u64| Count::new(of).unwrap_or_default();
    let cost = money.as_ref().map(|of| {
        let all = TokenCounts {
            input: count(tokens[0]),
            output: count(tokens[1]),
            ..TokenCounts::default()
        };
        [of.row.cost(&all).value().min(most), most]
    });
    let now = append::now(&bench.ledger);
    let budgets = bench.ledger.state().fold::<Budgets>();
    let account = money.and_then(|of| {
        let account = budgets.accounts.get(&of.account)?;
        Some((of.account.to_string(), account.left(now)))
    });
    Ok(SynthOutlook {
        account,
        asks,
        bytes: length,
        cap: asked.cap_usd_micro.map(Count::value),
        cost,
        leak_test,
        open: said.map(|said| said.run.clone()),
        tokens,
        view_digest: Digest::sha256(&bytes),
        view,
    })
}

/// More than a dollar needs a yes.
pub(super) fn consent(
    bench: &Bench,
    ports: &mut dyn Ports,
    terms: &SynthTerms,
    wire: &dyn WireForm,
) -> Result<(), SessionError> {
    let of = outlook(bench, terms, wire)?;
    let most = of.cost.map_or(0, |[_, most]| most);
    let most = of.cap.map_or(most, |cap| most.min(cap));
    if terms.yes || most <= UNASKED_USD_MICRO {
        return Ok(());
    }
    ports.ask(&Question::Spend {
        account: of.account.map(|(name, _)| name),
        asks: of.asks,
        late: 0,
        most,
    })?;
    Ok(())
}

/// What an open run asks, beside what is asked for now.
pub(super) fn compared(
    opened: &AskedModel,
    asked: &ModelTerms,
) -> Vec<(&'static str, String, String)> {
    let word = |of: Option<String>| of.unwrap_or_else(|| "none".to_owned());
    let mut all = vec![
        (
            "model",
            opened.model.as_str().to_owned(),
            asked.model.as_str().to_owned(),
        ),
        (
            "most tokens of an answer",
            opened.max_output_tokens.to_string(),
            asked.max_output_tokens.to_string(),
        ),
    ];
    // An account and a cap that nobody names stay as they were.
    if let Some(account) = &asked.account {
        let before = opened.account.as_ref().map(ToString::to_string);
        all.push(("account", word(before), account.to_string()));
    }
    if let Some(cap) = asked.cap {
        let before = opened.cap_usd_micro.map(|cap| cap.to_string());
        all.push(("cap", word(before), cap.to_string()));
    }
    all
}
