//! What calls of a model cost, and who pays.

use clover_event::id::AccountId;
use clover_event::id::EndpointId;
use clover_event::id::PriceTableId;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_ground::sign::Signer;
use clover_ledger::Ledger;
use clover_projection::budgets::Budgets;
use clover_projection::endpoints::Endpoints;

use crate::error::SessionError;
use crate::judge::JudgingError;

/// What a run needs to know of money: prices and the account.
#[derive(Clone, Debug)]
pub(crate) struct Tariff {
    pub account: AccountId,
    pub prices: PriceTableId,
    pub row: PriceRow,
}

/// Of which model at which endpoint, and who is to pay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TariffTerms<'a> {
    pub endpoint: &'a EndpointId,
    pub pin: &'a str,
    pub account: Option<&'a AccountId>,
    /// The account and the table of a run that is open.
    pub opened: Option<(&'a AccountId, &'a PriceTableId)>,
}

/// What calls cost, and who pays: of a run that is open, as it was opened; none at a free endpoint.
pub(crate) fn of(ledger: &Ledger, terms: TariffTerms<'_>) -> Result<Option<Tariff>, SessionError> {
    let state = ledger.state();
    let endpoints = state.fold::<Endpoints>();
    let place = endpoints.by_id.get(terms.endpoint);
    let place = place.ok_or_else(|| JudgingError::NoEndpoint(terms.endpoint.clone()))?;
    if place.said.free {
        return Ok(None);
    }
    let provider = place.said.provider.as_str();
    let kept = terms.opened.and_then(|(account, prices)| {
        let table = endpoints.prices.get(prices)?;
        let row = table.row(provider, terms.pin, PriceMode::Live)?;
        Some(Tariff {
            account: account.clone(),
            prices: prices.clone(),
            row: row.clone(),
        })
    });
    if kept.is_some() {
        return Ok(kept);
    }
    let priced = endpoints.price(provider, terms.pin, PriceMode::Live);
    let (prices, row) = priced.ok_or_else(|| JudgingError::Unpriced {
        model: terms.pin.to_owned(),
        provider: provider.to_owned(),
    })?;
    let account = terms.account.ok_or(JudgingError::NoAccount)?;
    if !state.fold::<Budgets>().accounts.contains_key(account) {
        return Err(JudgingError::UnknownAccount(account.clone()).into());
    }
    Ok(Some(Tariff {
        account: account.clone(),
        prices: prices.clone(),
        row: row.clone(),
    }))
}

/// Whoever signs calls also spends from their account: one key signs what goes on record together.
pub(crate) fn spender(
    ledger: &Ledger,
    signer: &Signer,
    account: Option<&AccountId>,
) -> Result<(), SessionError> {
    let Some(account) = account else {
        return Ok(());
    };
    let state = ledger.state();
    let key = state.keyring.keys.get(&signer.id());
    let of = state.fold::<Budgets>().accounts.get(account);
    let spends = key.zip(of).is_some_and(|(key, account)| {
        let mut roles = key.roles.as_slice().iter();
        roles.any(|role| account.spenders.contains(*role))
    });
    if spends {
        return Ok(());
    }
    let spenders = of.map_or_else(String::new, |of| of.spenders.to_string());
    let account = account.clone();
    Err(JudgingError::NoSpender { account, spenders }.into())
}
