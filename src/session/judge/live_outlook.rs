//! What a run of a judge behind HTTP would ask and cost, before anything is sent.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::TokenCounts;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::budgets::Budgets;
use clover_projection::runs::ModelRun;

use crate::append;
use crate::error::SessionError;
use crate::judge::live::AskTerms;
use crate::judge::live_rows::LiveRows;
use crate::listing;
use crate::tariff::Tariff;

/// Bytes of a request for each token of it, in tenths, where nothing is known of the judge's tokens.
const BYTES_PER_TEN_TOKENS: u64 = 36;
/// The share of the limit of an answer that it takes, where nothing is known.
const OUTPUT_SHARE: u64 = 3;
/// Calls of the judge that say how many tokens one has, at most.
const CALLS_READ: u64 = 1_000;

/// What a run would ask and cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOutlook {
    /// Rows that have a score.
    pub already: u64,
    /// Rows that were missed before, and about which nobody asks again.
    pub missed_before: u64,
    /// Asks that would be sent.
    pub asks: u64,
    /// Tokens of input and output that they would probably have.
    pub tokens: [u64; 2],
    /// Calls of the judge on record that say so; 0 where bytes do.
    pub calls: u64,
    /// What they would probably cost, and the most, in millionths of a dollar; none at a free endpoint.
    pub cost: Option<[u64; 2]>,
    /// The account, and what is left there in millionths of a dollar.
    pub account: Option<(String, u64)>,
    /// The most that the run may cost.
    pub cap: Option<u64>,
    /// Rows to be asked about whose policy has labels that can be read: their scores count in no value as things stand.
    pub late: u64,
    /// The run that would go on, and what it holds in millionths of a dollar.
    pub open: Option<(RunId, u64)>,
}

/// Tokens of calls of a judge that were answered: how many calls, and their input and output.
fn known(ledger: &Ledger, judge: &JudgeId) -> Result<(u64, [u64; 2]), SessionError> {
    let (mut calls, mut tokens) = (0, [0_u64; 2]);
    let of = KindQuery {
        kind: Kind::CallRecorded,
        takes: &|_| true,
    };
    listing::each::<SessionError>(ledger, &of, (0, ledger.size()), |read| {
        let Payload::CallRecorded(said) = &read.event.payload else {
            return Ok(true);
        };
        if let Some(of) = said.tokens.as_ref().filter(|_| said.judge == *judge) {
            calls += 1;
            tokens[0] += of.input.value() + of.cache_read.value() + of.cache_write.value();
            tokens[1] += of.output.value();
        }
        Ok(calls < CALLS_READ)
    })?;
    Ok((calls, tokens))
}

/// Tokens that the asks of a run will probably have: as the judge's own calls had, else by bytes and the limit of answers.
fn tokens(
    ledger: &Ledger,
    judge: &JudgeId,
    (rows, output_max): (&LiveRows, u64),
) -> Result<(u64, [u64; 2]), SessionError> {
    let asks = rows.asks.len() as u64;
    let (calls, [input, output]) = known(ledger, judge)?;
    if let (Some(input), Some(output)) = (
        (asks * input).checked_div(calls),
        (asks * output).checked_div(calls),
    ) {
        return Ok((calls, [input, output]));
    }
    let bytes: u64 = rows.requests.iter().map(|of| of.body.len() as u64).sum();
    let input = bytes * 10 / BYTES_PER_TEN_TOKENS;
    Ok((0, [input, asks * output_max / OUTPUT_SHARE]))
}

/// What the rows of a run would ask and cost; nothing is sent and nothing goes on record.
pub(super) fn of_rows(
    ledger: &Ledger,
    judge: &JudgeId,
    rows: &LiveRows,
    (terms, tariff): (&AskTerms<'_>, Option<&Tariff>),
    (experiment, open): (&ExperimentId, Option<&ModelRun>),
) -> Result<LiveOutlook, SessionError> {
    let (calls, tokens) = tokens(ledger, judge, (rows, terms.plan.max_output_tokens))?;
    let bounds = rows.asks.iter().map(|of| of.bound.value());
    let most = bounds.fold(0, u64::saturating_add);
    let cost = tariff.map(|of| {
        let count = |of: u64| Count::new(of).unwrap_or_default();
        let all = TokenCounts {
            input: count(tokens[0]),
            output: count(tokens[1]),
            ..TokenCounts::default()
        };
        [of.row.cost(&all).value().min(most), most]
    });
    let now = append::now(ledger);
    let budgets = ledger.state().fold::<Budgets>();
    let account = tariff.and_then(|of| {
        let account = budgets.accounts.get(&of.account)?;
        Some((of.account.to_string(), account.left(now)))
    });
    Ok(LiveOutlook {
        account,
        already: rows.already,
        asks: rows.asks.len() as u64,
        calls,
        cap: terms.cap.map(Count::value),
        cost,
        late: rows.late(ledger, experiment),
        open: open.map(|of| {
            let held = of.hold.as_ref().map_or(0, |hold| hold.amount);
            (of.said.run.clone(), held)
        }),
        missed_before: rows.missed_before,
        tokens,
    })
}
