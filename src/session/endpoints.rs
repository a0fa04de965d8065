//! Endpoints of models and prices of calls, as a registrar signs them.

use clover_event::payload::model_terms::EndpointRegistered;
use clover_event::payload::model_terms::PriceTableRegistered;
use clover_ledger::Command;
use clover_ledger::Ledger;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::Ports;

/// Registers an endpoint.
///
/// # Errors
/// [`SessionError::Port`] without a key, and [`SessionError::Ledger`] where a rule refuses; then nothing was appended.
pub fn register(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    endpoint: EndpointRegistered,
    intent: Intent,
) -> Result<Submission, SessionError> {
    append::submit_one(ports, ledger, Command::new(endpoint, None), intent)
}

/// Registers a table of prices.
///
/// # Errors
/// As [`register`].
pub fn price(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    prices: PriceTableRegistered,
    intent: Intent,
) -> Result<Submission, SessionError> {
    append::submit_one(ports, ledger, Command::new(prices, None), intent)
}
