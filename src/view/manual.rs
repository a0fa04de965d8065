//! What tells how to use the program: completions, man pages, and schemas of what is recorded.

use serde::Serialize;
use serde_json::Value;

use crate::event::Kind;
use crate::event::registry::Scope;
use crate::event::registry::Signers;
use crate::view::View;
use crate::workflow::recompute::Way;
use crate::workflow::recompute::way;

/// A script for a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Script {
    /// The script.
    pub script: String,
}

/// One man page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ManPage {
    /// The page, in roff.
    pub page: String,
}

/// Man pages that were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ManPages {
    /// Names of their files.
    pub pages: Vec<String>,
}

/// Who computes the numbers of a kind again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComputedAgain {
    /// The command: `replay` or `verify`.
    pub by: &'static str,
    /// The rule that does it; absent for `replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// Why a rule does it; absent for `replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

/// A kind of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindRow {
    /// Its name.
    pub kind: &'static str,
    /// The version that is written.
    pub version: u32,
    /// Who may sign it, in words.
    pub signed_by: String,
    /// To what it belongs, in words.
    pub belongs_to: &'static str,
    /// Who computes it again; `null` for what is taken as it was said.
    pub computed_again: Option<ComputedAgain>,
}

/// Every kind of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindList {
    /// In the order of the registry.
    pub kinds: Vec<KindRow>,
}

/// The JSON Schema of an event's `data`, as free JSON: the file of its kind in `schema/event/`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct KindSchema(pub Value);

/// A script for a shell.
pub fn script(script: String) -> View {
    let facts = Script { script };
    let mut view = View::of(&facts);
    view.source(facts.script);
    view
}

/// A man page.
pub fn page(page: String) -> View {
    let facts = ManPage { page };
    let mut view = View::of(&facts);
    view.source(facts.page);
    view
}

/// Man pages that were written into a folder.
pub fn pages(pages: Vec<String>, folder: &str) -> View {
    let facts = ManPages { pages };
    let mut view = View::of(&facts);
    view.line(format!("{} pages in {folder}", facts.pages.len()));
    view
}

/// The schema of a kind.
pub fn schema(schema: &KindSchema) -> View {
    let mut view = View::of(schema);
    view.source(format!("{:#}", schema.0));
    view
}

fn signers(kind: Kind) -> String {
    match kind.signers() {
        Signers::Any => "any live key".to_owned(),
        Signers::Genesis => "the first owner".to_owned(),
        Signers::Role(role) => role.to_string(),
        Signers::Spenders => "a spender of the account".to_owned(),
    }
}

fn scope(kind: Kind) -> &'static str {
    match kind.scope() {
        Scope::Anywhere => "anywhere",
        Scope::Experiment => "an open experiment",
        Scope::NewExperiment => "the experiment it begins",
    }
}

/// Who computes a kind again: a replay, or a rule of a verification in its place.
fn again(kind: Kind) -> Option<ComputedAgain> {
    match way(kind) {
        Way::Again(_) => Some(ComputedAgain {
            by: "replay",
            rule: None,
            why: None,
        }),
        Way::Held(of) => Some(ComputedAgain {
            by: "verify",
            rule: Some(of.rule.as_str()),
            why: Some(of.why),
        }),
        Way::Said => None,
    }
}

/// Every kind of events.
pub fn kinds() -> View {
    let kinds = Kind::ALL.iter().map(|kind| KindRow {
        kind: kind.as_str(),
        version: kind.version(),
        signed_by: signers(*kind),
        belongs_to: scope(*kind),
        computed_again: again(*kind),
    });
    let facts = KindList {
        kinds: kinds.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.kinds.iter().map(|of| {
        let again = of.computed_again.as_ref();
        let again = again.map(|again| match again.rule {
            Some(rule) => format!("rule {rule}"),
            None => again.by.to_owned(),
        });
        vec![
            of.kind.to_owned(),
            format!("v{}", of.version),
            of.signed_by.clone(),
            of.belongs_to.to_owned(),
            again.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let head = [
        "kind",
        "version",
        "signed by",
        "belongs to",
        "computed again",
    ];
    view.table(&head, rows);
    view.with_next("clover schema KIND")
}
