//! Terms under which models are asked: endpoints, and what calls cost there.

use std::fmt;

use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::INTEGER_MAX;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::calls::TokenCounts;
use crate::id::EndpointId;
use crate::id::PriceTableId;
use crate::id::Text;
use crate::payload::endpoint::AuthForm;
use crate::payload::endpoint::BaseUrl;
use crate::payload::endpoint::Dialect;
use crate::payload::endpoint::words;

words! {
    /// A class of text: what may be sent somewhere.
    TextClass {
        /// Cards, statistics and rubrics, which show no row.
        Aggregates "aggregates",
        /// Prompts and responses.
        Rows "rows",
        /// Texts that the program makes up.
        Synthetic "synthetic",
    }
}

words! {
    /// How a call is priced.
    PriceMode {
        /// In batches that may take a day.
        Batch "batch",
        /// At once.
        Live "live",
    }
}

/// Reads classes in order, each once, at least one.
fn classes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TextClass>, D::Error> {
    let classes = Vec::<TextClass>::deserialize(deserializer)?;
    let in_order = classes.windows(2).all(|pair| pair[0] < pair[1]);
    if in_order && !classes.is_empty() {
        return Ok(classes);
    }
    Err(D::Error::custom(
        "expected at least one class, in order, each once",
    ))
}

/// An endpoint of models: where it is, how it is asked, and which texts may be sent there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointRegistered {
    /// In which form the key is sent.
    pub auth: AuthForm,
    /// Which texts may be sent there, in order.
    #[serde(deserialize_with = "classes")]
    pub classes: Vec<TextClass>,
    /// The form of requests and answers.
    pub dialect: Dialect,
    /// Its name.
    pub endpoint: EndpointId,
    /// Whether calls cost nothing.
    pub free: bool,
    /// Whether plain http to another machine is allowed; every report repeats it.
    pub insecure: bool,
    /// The only model that may be asked there; absent where any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// Whoever runs it.
    pub provider: Text,
    /// What the provider may do with texts; absent where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Text>,
    /// The base URL.
    pub url: BaseUrl,
}

/// What calls of one model cost, in millionths of a dollar for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PriceRow {
    /// Input that is read from a cache.
    pub cache_read: Count,
    /// Input that is written to a cache.
    pub cache_write: Count,
    /// Input that is neither.
    pub input: Count,
    /// How calls are made.
    pub mode: PriceMode,
    /// The model.
    pub model: Text,
    /// Output.
    pub output: Count,
    /// Whoever runs the endpoint.
    pub provider: Text,
}

impl PriceRow {
    /// What it is the price of: no table has it twice.
    pub fn key(&self) -> (&str, &str, PriceMode) {
        (self.provider.as_str(), self.model.as_str(), self.mode)
    }

    /// The dearest price of input.
    pub fn dearest_input(&self) -> Count {
        self.input.max(self.cache_read).max(self.cache_write)
    }

    /// Whether calls cost nothing.
    pub fn is_zero(&self) -> bool {
        self.dearest_input().max(self.output) == Count::default()
    }

    /// What a call costs by its tokens, in millionths of a dollar, rounded up once.
    pub fn cost(&self, tokens: &TokenCounts) -> Count {
        let parts = [
            (tokens.input, self.input),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
            (tokens.output, self.output),
        ];
        let parts = parts.map(|(count, price)| times(count.value(), price));
        rounded_up(parts.iter().sum())
    }

    /// The most that a call of a request may cost, in millionths of a dollar: a token a byte at the dearest price of input, and
    /// the limit of output.
    pub fn bound(&self, bytes: usize, output_max: u64) -> Count {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let input = times(bytes.saturating_add(AROUND_BYTES), self.dearest_input());
        rounded_up(input + times(output_max, self.output))
    }
}

/// Tokens that prices are given for.
const PER_TOKENS: u128 = 1_000_000;
/// Bytes that a bound adds to a request, for what a provider puts around it.
const AROUND_BYTES: u64 = 256;

fn times(tokens: u64, price: Count) -> u128 {
    u128::from(tokens) * u128::from(price.value())
}

/// A sum of millionths of a dollar for a million tokens, as millionths of a dollar, rounded up; the greatest count where it is
/// none.
fn rounded_up(sum: u128) -> Count {
    let micro = u64::try_from(sum.div_ceil(PER_TOKENS)).ok();
    let most = || Count::new(INTEGER_MAX).expect("BUG: the greatest count is one");
    micro.and_then(Count::new).unwrap_or_else(most)
}

/// Reads rows in order of provider, model and mode, each once, at least one.
fn price_rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PriceRow>, D::Error> {
    let rows = Vec::<PriceRow>::deserialize(deserializer)?;
    let in_order = rows.windows(2).all(|pair| pair[0].key() < pair[1].key());
    if in_order && !rows.is_empty() {
        return Ok(rows);
    }
    Err(D::Error::custom(
        "expected at least one row, in order of provider, model and mode, each once",
    ))
}

/// What calls cost, as of a time. Prices age, and none ships with the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PriceTableRegistered {
    /// When these prices held.
    pub as_of: Timestamp,
    /// The table's name.
    pub prices: PriceTableId,
    /// In order of provider, model and mode.
    #[serde(deserialize_with = "price_rows")]
    pub rows: Vec<PriceRow>,
    /// Where they were found.
    pub source: Text,
}
