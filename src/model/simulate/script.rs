//! Scripts of faults: one rule of JSON a line, and the first that fits a request says what is done with it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// What a script cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: String,
}

/// Rules of faults, in order.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<FaultRule>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultRule {
    #[serde(default)]
    when: FaultWhen,
    r#do: Fault,
}

/// Which requests a rule fits: all of what it says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultWhen {
    /// A text in the body.
    contains: Option<String>,
    /// Each N-th request, from the first on.
    every: Option<u64>,
    /// Which requests, from 0: `3`, or `3..5` without the last, or `3..`.
    nth: Option<NthRange>,
    /// A text in the path.
    path: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
struct NthRange {
    from: u64,
    until: u64,
}

impl TryFrom<Value> for NthRange {
    type Error = String;
    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || "nth: expected a number, or FROM..UNTIL".to_owned();
        if let Some(from) = value.as_u64() {
            return Ok(Self {
                from,
                until: from.saturating_add(1),
            });
        }
        let text = value.as_str().ok_or_else(wrong)?;
        let (from, until) = text.split_once("..").ok_or_else(wrong)?;
        let until = match until {
            "" => u64::MAX,
            until => until.parse().map_err(|_| wrong())?,
        };
        let from = from.parse().map_err(|_| wrong())?;
        Ok(Self { from, until })
    }
}

/// What a double does with the tokens that it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SaidUsage {
    /// It does not say them.
    Absent,
    /// It says far too many.
    Huge,
}

/// How a double says that it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SaidStop {
    /// At the limit of tokens.
    Limit,
    /// It declined.
    Refusal,
}

/// What is done with a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// The body, in place of the answer.
    pub(super) body: Option<String>,
    /// The connection is closed after so many bytes of the body.
    pub(super) cut_at: Option<usize>,
    /// So long before the first byte.
    pub(super) delay_ms: Option<u64>,
    /// So long between parts of the body.
    pub(super) drip_ms: Option<u64>,
    /// Headers of the answer.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// Parameters that are taken and not followed: `json_schema`, `logprobs`, `seed`, `temperature`, `limit`.
    #[serde(default)]
    pub(super) ignore: Vec<String>,
    /// The model that it says it is.
    pub(super) model: Option<String>,
    /// The name of the request; no script says it.
    #[serde(skip)]
    pub(super) request: Option<String>,
    /// The connection is reset after so many bytes of the whole answer.
    pub(super) reset_at: Option<usize>,
    /// Nothing more comes after so many bytes of the body.
    pub(super) stall_at: Option<usize>,
    /// The status.
    pub(super) status: Option<u16>,
    /// How it says that it stopped.
    pub(super) stop: Option<SaidStop>,
    /// What the model says, in place of what its seed gives: a program of an optimizer, round by round.
    pub(super) text: Option<String>,
    /// Tokens that it says.
    pub(super) usage: Option<SaidUsage>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let rules = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| ScriptError {
                line: at + 1,
                error: error.to_string(),
            })
        });
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// What is done with a request: nothing where no rule fits.
    pub(super) fn fault(&self, n: u64, path: &str, body: &str) -> Fault {
        let fits = |rule: &&FaultRule| {
            let of = &rule.when;
            of.contains
                .as_deref()
                .is_none_or(|text| body.contains(text))
                && of
                    .every
                    .is_none_or(|every| every > 0 && n.is_multiple_of(every))
                && of.nth.is_none_or(|nth| (nth.from..nth.until).contains(&n))
                && of.path.as_deref().is_none_or(|text| path.contains(text))
        };
        let rule = self.0.iter().find(fits);
        rule.map(|rule| rule.r#do.clone()).unwrap_or_default()
    }
}
