//! Edits from feedback by fixed templates: the optimizer that needs no model.

use crate::expr::Expr;
use crate::repair::edit::Edit;
use crate::repair::edit::PromptPart;
use crate::repair::feedback::Blame;
use crate::repair::feedback::BlameKind;
use crate::shape::Shape;
use crate::task::ContextRule;
use crate::value::Data;
use crate::workflow::Action;
use crate::workflow::LlmStep;
use crate::workflow::Workflow;

/// Tries of a guard that is put in.
const TRIES: u64 = 2;

/// At most so many edits for what is blamed, in its order.
///
/// Each blame has an edit of its own; where there are fewer than wanted, edits of the structure for the same blames
/// follow. What comes of an edit, and whether it is within its budget, is for whoever applies it.
pub fn propose(
    workflow: &Workflow,
    rules: &[ContextRule],
    blame: &[Blame],
    most: usize,
) -> Vec<Edit> {
    let mut all: Vec<Edit> = Vec::new();
    let own = blame.iter().map(|blame| of_blame(workflow, rules, blame));
    let further = blame.iter().map(|blame| structural(workflow, rules, blame));
    let own: Vec<_> = own.collect();
    for edit in own.into_iter().chain(further).flatten() {
        if all.len() < most && !all.contains(&edit) {
            all.push(edit);
        }
    }
    all
}

fn found<'a>(
    workflow: &'a Workflow,
    rules: &'a [ContextRule],
    blame: &Blame,
) -> Option<(&'a ContextRule, &'a LlmStep, usize)> {
    let rule = rules.iter().find(|rule| rule.id == blame.rule)?;
    let place = workflow.place_of(&blame.step)?;
    match &workflow.steps()[place].action {
        Action::Llm(llm) => Some((rule, llm, place)),
        _ => None,
    }
}

/// The first edit for one blame; `None` where its rule, or its step as one that asks a model, is not there.
pub fn of_blame(workflow: &Workflow, rules: &[ContextRule], blame: &Blame) -> Option<Edit> {
    let (rule, llm, _) = found(workflow, rules, blame)?;
    match blame.kind {
        BlameKind::Prompt => Some(Edit::EditPrompt {
            step: blame.step.clone(),
            part: PromptPart::User,
            find: None,
            text: rule.text.clone(),
        }),
        BlameKind::Io => {
            let unread = rule.check.paths().into_iter().filter(|path| {
                let is_input = path.root() == "c" || path.root() == "x";
                is_input && !llm.reads.iter().any(|read| path.is_within(read))
            });
            let mut reads: Vec<String> = unread.map(ToString::to_string).collect();
            reads.dedup();
            Some(Edit::RewireIo {
                step: blame.step.clone(),
                reads,
            })
        }
        BlameKind::Structure => structural(workflow, rules, blame),
    }
}

/// The next edit around a step: a check of the rule, a guard on the check, a split of the step.
fn structural(workflow: &Workflow, rules: &[ContextRule], blame: &Blame) -> Option<Edit> {
    let (rule, llm, place) = found(workflow, rules, blame)?;
    let expr = renamed(&rule.document, &llm.writes);
    let check = workflow.steps().iter().find(|step| match &step.action {
        Action::Check(check) => is_check_of(&check.expr, rule, &llm.writes),
        _ => false,
    });
    let Some(check) = check else {
        return Some(Edit::InsertCheck {
            after: blame.step.clone(),
            id: free(workflow, &format!("k_{}", rule.id)),
            expr,
            hard: rule.is_hard,
        });
    };
    let Action::Check(of) = &check.action else {
        return None;
    };
    let is_guarded = workflow.steps().iter().any(|step| match &step.action {
        Action::Guard(guard) => {
            guard.target == place && guard.when.flags().contains(&of.flag.as_str())
        }
        _ => false,
    });
    if !is_guarded {
        let flag = Data::object([("op", "flag".into()), ("id", of.flag.as_str().into())]);
        return Some(Edit::InsertRetryGuard {
            step: blame.step.clone(),
            id: free(workflow, &format!("g_{}", rule.id)),
            when: Data::object([("op", "not".into()), ("of", flag)]),
            max_tries: TRIES,
            note: Some(format!(
                "Not kept: {{{{flags}}}}. {}",
                without_holes(&rule.text)
            )),
        });
    }
    let names: Vec<String> = llm
        .shape
        .iter()
        .flat_map(Shape::properties)
        .map(str::to_owned)
        .collect();
    (names.len() >= 2).then(|| Edit::SplitStep {
        step: blame.step.clone(),
        second: names[names.len().div_ceil(2)..].to_vec(),
    })
}

/// A text that holds no hole.
fn without_holes(text: &str) -> String {
    text.replace("{{", "{ {")
}

/// An id that no step has.
fn free(workflow: &Workflow, wanted: &str) -> String {
    let clean: String = wanted
        .to_ascii_lowercase()
        .replace('-', "_")
        .chars()
        .take(28)
        .collect();
    let taken = |id: &String| workflow.place_of(id).is_some();
    let numbered = (2..100).map(|at| format!("{clean}_{at}"));
    std::iter::once(clean.clone())
        .chain(numbered)
        .find(|id| !taken(id))
        .unwrap_or(clean)
}

/// A check of an output as a check of what a step writes: paths below `y` begin with its name.
fn renamed(document: &Data, name: &str) -> Data {
    match document {
        Data::List(items) => Data::List(items.iter().map(|of| renamed(of, name)).collect()),
        Data::Object(members) => {
            let member = |(key, of): (&String, &Data)| {
                let of = match of {
                    Data::Text(path) if key == "path" && path == "y" => Data::text(name),
                    Data::Text(path) if key == "path" => match path.strip_prefix("y.") {
                        Some(rest) => Data::Text(format!("{name}.{rest}")),
                        None => of.clone(),
                    },
                    // A schema and a constant hold no paths of ours.
                    _ if key == "schema" || key == "const" => of.clone(),
                    _ => renamed(of, name),
                };
                (key.clone(), of)
            };
            Data::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

/// Whether a check of a workflow asks what a rule does.
fn is_check_of(expr: &Expr, rule: &ContextRule, name: &str) -> bool {
    let node = crate::syntax::parse(&renamed(&rule.document, name).canonical(), 1 << 16);
    let scope = crate::scope::Scope::new(["x", "c", name]);
    let wanted = node.ok().and_then(|node| {
        let spot = crate::decode::Spot::root(&node);
        Expr::decode(&spot, &scope).ok()
    });
    wanted.as_ref() == Some(expr)
}
