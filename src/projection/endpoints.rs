//! Endpoints of models and prices as they were registered, and the rule `endpoint`: plain http stays on the machine unless
//! somebody signs otherwise, and rows go only where terms are named.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EndpointId;
use clover_event::id::PriceTableId;
use clover_event::payload::model_terms::EndpointRegistered;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_event::payload::model_terms::PriceTableRegistered;
use clover_event::payload::model_terms::TextClass;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::EndpointRegistered, Kind::PriceTableRegistered];

/// An endpoint with the entry that registered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointRecord {
    /// As it was registered.
    pub said: EndpointRegistered,
    /// Where.
    pub seq: u64,
}

/// A table of prices with the entry that registered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceRecord {
    /// As it was registered.
    pub said: PriceTableRegistered,
    /// Where.
    pub seq: u64,
}

impl PriceRecord {
    /// What calls of a model cost.
    pub fn row(&self, provider: &str, model: &str, mode: PriceMode) -> Option<&PriceRow> {
        let mut rows = self.said.rows.iter();
        rows.find(|row| row.key() == (provider, model, mode))
    }
}

/// Endpoints and prices by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Endpoints.
    pub by_id: BTreeMap<EndpointId, EndpointRecord>,
    /// Tables of prices.
    pub prices: BTreeMap<PriceTableId, PriceRecord>,
}

impl Endpoints {
    /// The newest table that has a price of a model; `None` where none has.
    pub fn price(
        &self,
        provider: &str,
        model: &str,
        mode: PriceMode,
    ) -> Option<(&PriceTableId, &PriceRow)> {
        let tables = self.prices.iter();
        let priced =
            tables.filter_map(|(id, of)| Some((of.seq, id, of.row(provider, model, mode)?)));
        let newest = priced.max_by_key(|(seq, ..)| *seq);
        newest.map(|(_, id, row)| (id, row))
    }
}

impl Fold for Endpoints {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let seq = event.seq();
        match &event.event().payload {
            Payload::EndpointRegistered(said) => {
                let known = self.by_id.entry(said.endpoint.clone());
                known.or_insert_with(|| EndpointRecord {
                    said: (**said).clone(),
                    seq,
                });
            }
            Payload::PriceTableRegistered(said) => {
                let known = self.prices.entry(said.prices.clone());
                known.or_insert_with(|| PriceRecord {
                    said: (**said).clone(),
                    seq,
                });
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// What an endpoint may be.
fn check_endpoint(said: &EndpointRegistered) -> RuleAnswer {
    let goes_out_plain = said.url.is_plain() && !said.url.is_loopback();
    ensure!(
        said.insecure || !goes_out_plain,
        "https, or plain http to 127.0.0.0/8 or [::1], or insecure: true",
        said.url.to_string()
    );
    ensure!(
        !said.insecure || goes_out_plain,
        "insecure: true only of plain http to another machine",
        said.url.to_string()
    );
    let names_terms = said
        .terms
        .as_ref()
        .is_some_and(|of| !of.as_str().is_empty());
    ensure!(
        names_terms || !said.classes.contains(&TextClass::Rows),
        "terms, which say what the provider may do with rows",
        "none"
    );
    Ok(())
}

/// The rule `endpoint`.
#[derive(Clone, Copy, Debug)]
pub struct EndpointRule;

impl Rule for EndpointRule {
    fn check(&self, _state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if let Payload::EndpointRegistered(said) = &event.event.payload {
            breaches.take(RuleName::Endpoint, check_endpoint(said));
        }
    }
}
