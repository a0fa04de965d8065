//! Budgets are accounts: opened with an amount, charged by events, never overdrawn.

use clover_num::Count;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::AccountId;
use crate::id::Text;
use crate::id::UnitId;
use crate::payload::Roles;

/// When an account fills again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Period {
    /// Never.
    Once,
    /// At the start of each UTC calendar quarter of `recorded_at`; nothing carries over.
    Quarter,
}

/// Reads a count of at least 1.
pub(super) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
    let count = Count::deserialize(deserializer)?;
    if count.value() == 0 {
        return Err(D::Error::custom(
            "expected an integer from 1 to 9007199254740991, found 0",
        ));
    }
    Ok(count)
}

/// An account is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetOpened {
    /// Its name.
    pub account: AccountId,
    /// How much it holds per period, at least 1.
    #[serde(deserialize_with = "at_least_one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub amount: Count,
    /// When it fills again.
    pub period: Period,
    /// What it is for.
    pub purpose: Text,
    /// Roles that may charge it.
    pub spenders: Roles,
    /// What it counts.
    pub unit: UnitId,
}

/// An account is charged; there are no refunds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetCharged {
    /// The account.
    pub account: AccountId,
    /// How much, at least 1.
    #[serde(deserialize_with = "at_least_one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub amount: Count,
    /// What for.
    #[serde(rename = "for")]
    pub purpose: Text,
}
