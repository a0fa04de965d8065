//! Endpoints of models and prices of calls, as they are registered.

use serde::Serialize;

use crate::event::id::EndpointId;
use crate::event::id::PriceTableId;
use crate::event::payload::endpoint::AuthForm;
use crate::event::payload::endpoint::Dialect;
use crate::event::payload::model_terms::PriceMode;
use crate::event::payload::model_terms::PriceRow;
use crate::event::payload::model_terms::TextClass;
use crate::ground::shell;
use crate::num::Micro;
use crate::projection::endpoints::EndpointRecord;
use crate::projection::endpoints::Endpoints;
use crate::projection::endpoints::PriceRecord;
use crate::view::View;

/// An endpoint as it is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndpointShown {
    /// Its name.
    pub endpoint: EndpointId,
    /// The base URL.
    pub url: String,
    /// The form of requests and answers.
    pub dialect: Dialect,
    /// In which form the key is sent.
    pub auth: AuthForm,
    /// The variable of the environment where its key is looked for.
    pub key_variable: String,
    /// Whoever runs it.
    pub provider: String,
    /// Which texts may be sent there.
    pub classes: Vec<TextClass>,
    /// The only model that may be asked there; `null` where any may.
    pub model: Option<String>,
    /// Whether calls cost nothing.
    pub free: bool,
    /// Whether plain http to another machine is allowed.
    pub insecure: bool,
    /// What the provider may do with texts; `null` where nobody said.
    pub terms: Option<String>,
    /// The entry that registered it.
    pub seq: u64,
}

/// Every endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndpointList {
    /// By name.
    pub endpoints: Vec<EndpointShown>,
}

/// What calls of a model cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PriceShown {
    /// Whoever runs the endpoint.
    pub provider: String,
    /// The model.
    pub model: String,
    /// How calls are made.
    pub mode: PriceMode,
    /// Millionths of a dollar for a million tokens of input.
    pub input: u64,
    /// The same, of input that is read from a cache.
    pub cache_read: u64,
    /// The same, of input that is written to a cache.
    pub cache_write: u64,
    /// The same, of output.
    pub output: u64,
}

/// A table of prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PriceTableShown {
    /// Its name.
    pub prices: PriceTableId,
    /// When these prices held.
    pub as_of: String,
    /// Where they were found.
    pub source: String,
    /// In order of provider, model and mode.
    pub rows: Vec<PriceShown>,
    /// The entry that registered it.
    pub seq: u64,
}

/// Every table of prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PriceTableList {
    /// By name.
    pub tables: Vec<PriceTableShown>,
}

/// The variable of the environment where the key of an endpoint is looked for: `CLOVER_KEY_` and its name in capitals, with an
/// underscore for whatever is neither a letter nor a digit.
pub fn key_variable(endpoint: &EndpointId) -> String {
    let plain = |of: char| {
        if of.is_ascii_alphanumeric() {
            of.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = endpoint.as_str().chars().map(plain).collect();
    format!("CLOVER_KEY_{name}")
}

fn endpoint_shown(of: &EndpointRecord) -> EndpointShown {
    let said = &of.said;
    EndpointShown {
        endpoint: said.endpoint.clone(),
        url: said.url.to_string(),
        dialect: said.dialect,
        auth: said.auth,
        key_variable: key_variable(&said.endpoint),
        provider: said.provider.as_str().to_owned(),
        classes: said.classes.clone(),
        model: said.model.as_ref().map(|of| of.as_str().to_owned()),
        free: said.free,
        insecure: said.insecure,
        terms: said.terms.as_ref().map(|of| of.as_str().to_owned()),
        seq: of.seq,
    }
}

fn words(classes: &[TextClass]) -> String {
    let words: Vec<_> = classes.iter().map(|of| of.as_str()).collect();
    words.join(", ")
}

fn price_word(free: bool) -> &'static str {
    if free {
        "none: it is free"
    } else {
        "by a table"
    }
}

/// Every endpoint, by name.
pub fn endpoints(found: &Endpoints) -> View {
    let all = found.by_id.values().map(endpoint_shown);
    let facts = EndpointList {
        endpoints: all.collect(),
    };
    let mut view = View::of(&facts);
    if facts.endpoints.is_empty() {
        view.line("no endpoint is registered");
        view.next = vec!["clover endpoint add --help".to_owned()];
        return view;
    }
    let rows = facts.endpoints.iter().map(|of| {
        vec![
            of.endpoint.to_string(),
            of.dialect.to_string(),
            of.url.clone(),
            words(&of.classes),
            if of.free { "free" } else { "priced" }.to_owned(),
            if of.insecure { "plain http" } else { "" }.to_owned(),
        ]
    });
    view.table(&["endpoint", "dialect", "url", "texts", "cost", ""], rows);
    view
}

/// One endpoint.
pub fn endpoint(of: &EndpointRecord) -> View {
    let facts = endpoint_shown(of);
    let mut view = View::of(&facts);
    let none = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
    let key = match facts.auth {
        AuthForm::None => "none is sent".to_owned(),
        auth => format!("{auth}, from {}", facts.key_variable),
    };
    view.pairs([
        ("endpoint", facts.endpoint.to_string()),
        ("url", facts.url.clone()),
        ("dialect", facts.dialect.to_string()),
        ("key", key),
        ("provider", facts.provider.clone()),
        ("texts", words(&facts.classes)),
        ("terms", none(&facts.terms, "nobody said")),
        ("model", none(&facts.model, "any")),
        ("prices", price_word(facts.free).to_owned()),
        ("registered", format!("seq {}", facts.seq)),
    ]);
    if facts.insecure {
        view.sentence("Texts and the key go to another machine by plain http: whoever stands between reads them.");
    }
    view.next = vec![probe_command(&facts)];
    view
}

/// The command that shows an endpoint.
pub fn show_command(endpoint: &EndpointId) -> String {
    format!("clover endpoint show {}", shell::word(endpoint))
}

/// The command that shows a table of prices.
pub fn table_command(prices: &PriceTableId) -> String {
    format!("clover price show {}", shell::word(prices))
}

/// The command that asks what a registered endpoint can do.
fn probe_command(of: &EndpointShown) -> String {
    let model = of.model.as_deref().unwrap_or("MODEL");
    format!(
        "clover endpoint probe {} --model {}",
        shell::word(&of.endpoint),
        shell::word(model)
    )
}

fn price_shown(of: &PriceRow) -> PriceShown {
    PriceShown {
        provider: of.provider.as_str().to_owned(),
        model: of.model.as_str().to_owned(),
        mode: of.mode,
        input: of.input.value(),
        cache_read: of.cache_read.value(),
        cache_write: of.cache_write.value(),
        output: of.output.value(),
    }
}

fn table_shown(of: &PriceRecord) -> PriceTableShown {
    PriceTableShown {
        prices: of.said.prices.clone(),
        as_of: of.said.as_of.to_string(),
        source: of.said.source.as_str().to_owned(),
        rows: of.said.rows.iter().map(price_shown).collect(),
        seq: of.seq,
    }
}

/// Every table of prices, by name.
pub fn price_tables(found: &Endpoints) -> View {
    let all = found.prices.values().map(table_shown);
    let facts = PriceTableList {
        tables: all.collect(),
    };
    let mut view = View::of(&facts);
    if facts.tables.is_empty() {
        view.line("no table of prices is registered");
        view.next = vec!["clover price import --help".to_owned()];
        return view;
    }
    let rows = facts.tables.iter().map(|of| {
        vec![
            of.prices.to_string(),
            of.rows.len().to_string(),
            of.as_of.clone(),
            of.source.clone(),
        ]
    });
    view.table(&["prices", "rows", "as of", "source"], rows);
    view
}

/// Millionths as dollars.
fn dollars(micro: u64) -> String {
    let micro = i64::try_from(micro).ok().and_then(Micro::new);
    micro.map_or_else(|| "more".to_owned(), |of| of.to_string())
}

/// One table of prices.
pub fn price_table(of: &PriceRecord) -> View {
    let facts = table_shown(of);
    let mut view = View::of(&facts);
    view.pairs([
        ("prices", facts.prices.to_string()),
        ("as of", facts.as_of.clone()),
        ("source", facts.source.clone()),
        ("registered", format!("seq {}", facts.seq)),
    ]);
    view.gap();
    let rows = facts.rows.iter().map(|of| {
        vec![
            of.provider.clone(),
            of.model.clone(),
            of.mode.to_string(),
            dollars(of.input),
            dollars(of.cache_read),
            dollars(of.cache_write),
            dollars(of.output),
        ]
    });
    let heads = [
        "provider",
        "model",
        "mode",
        "input",
        "cache read",
        "cache write",
        "output",
    ];
    view.table(&heads, rows);
    view.sentence("Prices are dollars for a million tokens.");
    view
}
