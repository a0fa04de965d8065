//! What a run is held to, read from what opened it.

use clover_event::payload::repair::WfRunStarted;
use clover_flow::Fault;
use clover_flow::Workflow;
use clover_flow::item::Item;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::charter::Verifier;
use clover_flow::repair::edit::EditBudget;
use clover_flow::task::ContextRule;
use clover_flow::task::TaskSet;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_num::Count;

/// What a run is held to.
#[derive(Clone, Debug)]
pub struct RepairPlan {
    /// Family, rules of the context and weights, with the items that the run adapts to.
    pub set: TaskSet,
    /// Rules that candidates are judged by: those of the context, then those of the verifier.
    pub rules: Vec<ContextRule>,
    /// How candidates are scored.
    pub verifier: Verifier,
    /// Which edits are allowed.
    pub meta: MetaPrompt,
    /// Most that one edit may touch.
    pub edits: EditBudget,
}

/// A document that cannot be read.
fn unread(expected: &str, fault: &Fault) -> Unmet {
    Unmet {
        expected: expected.to_owned(),
        found: format!(
            "{}:{}: {}: {}",
            fault.at.line, fault.at.column, fault.path, fault.kind
        ),
    }
}

/// A workflow of an event.
///
/// # Errors
/// [`Unmet`] where it is none.
pub fn workflow(text: &str) -> Result<Workflow, Unmet> {
    Workflow::parse(text).map_err(|fault| unread("a workflow", &fault))
}

fn size(of: Count) -> usize {
    usize::try_from(of.value()).unwrap_or(usize::MAX)
}

impl RepairPlan {
    /// The plan of a run, without its items.
    ///
    /// # Errors
    /// [`Unmet`] where a document of it is none.
    pub fn of(said: &WfRunStarted) -> Result<Self, Unmet> {
        let set = TaskSet::head(said.context.as_str());
        let set = set.map_err(|fault| unread("the first line of a task set", &fault))?;
        let verifier = Verifier::parse(said.verifier.as_str());
        let verifier = verifier.map_err(|fault| unread("a verifier", &fault))?;
        let meta = MetaPrompt::parse(said.meta.as_str());
        let meta = meta.map_err(|fault| unread("a meta prompt", &fault))?;
        let edits = &said.terms.edits;
        let rules = set.rules.iter().chain(&verifier.rules);
        Ok(Self {
            rules: rules.cloned().collect(),
            verifier,
            meta,
            edits: EditBudget {
                ast_nodes: size(edits.ast_nodes),
                new_llm_calls: size(edits.new_llm_calls),
                prompt_chars: size(edits.prompt_chars),
                steps_touched: size(edits.steps_touched),
            },
            set,
        })
    }

    /// The plan with the items of the blob that the run names.
    ///
    /// # Errors
    /// [`Unmet`] where the lines are not those that the run names.
    pub fn with_items(said: &WfRunStarted, lines: &[u8]) -> Result<Self, Unmet> {
        let mut plan = Self::of(said)?;
        let lines = std::str::from_utf8(lines).ok().required("text")?;
        for (at, line) in (1..).zip(lines.lines()) {
            let item = Item::parse(line, at);
            plan.set
                .items
                .push(item.map_err(|fault| unread("an item", &fault))?);
        }
        let found = plan.set.items.iter();
        let found = found.map(|item| (item.id.as_str(), item.input_digest()));
        let wanted = said.items.iter().map(|item| (item.id.as_str(), item.input));
        if found.eq(wanted) {
            return Ok(plan);
        }
        Err(Unmet {
            expected: "the items that the run names".to_owned(),
            found: "others".to_owned(),
        })
    }
}
