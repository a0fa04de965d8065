//! Edits as JSON, as an optimizer that is a model writes them.

use crate::decode::Spot;
use crate::fault::Fault;
use crate::repair::edit::Edit;
use crate::repair::edit::Operator;
use crate::repair::edit::PromptPart;
use crate::syntax;
use crate::value::Data;

/// Most characters of an argument that is a text.
const TEXT_MAX: usize = 2_000;
/// Most items of an argument that is a list.
const ITEMS_MAX: usize = 16;

/// Operators by their words.
pub(crate) const OPERATORS: &[(&str, Operator)] = &[
    ("edit_prompt", Operator::EditPrompt),
    ("insert_check", Operator::InsertCheck),
    ("insert_retry_guard", Operator::InsertRetryGuard),
    ("split_step", Operator::SplitStep),
    ("rewire_io", Operator::RewireIo),
    ("delete_step", Operator::DeleteStep),
    ("replace_model", Operator::ReplaceModel),
];

fn own(spot: &Spot<'_>) -> Result<String, Fault> {
    spot.text(TEXT_MAX).map(str::to_owned)
}

/// A text that may be absent or `null`.
fn optional(spot: Option<Spot<'_>>) -> Result<Option<String>, Fault> {
    match spot {
        Some(spot) if spot.rounded() != Data::Null => own(&spot).map(Some),
        _ => Ok(None),
    }
}

fn texts(spot: &Spot<'_>) -> Result<Vec<String>, Fault> {
    spot.list(ITEMS_MAX)?.iter().map(own).collect()
}

/// Reads an edit: `{"operator":…,"args":…}`.
///
/// # Errors
/// [`Fault`] at the first place that is refused.
pub fn parse(text: &str) -> Result<Edit, Fault> {
    let node = syntax::parse(text, crate::patch::BYTES_MAX)?;
    let fields = Spot::root(&node).fields(&["operator", "args"])?;
    let operator = fields.need("operator")?;
    let operator = operator.word(OPERATORS, "the name of an operator")?;
    let args = fields.need("args")?;
    match operator {
        Operator::EditPrompt => edit_prompt(&args),
        Operator::InsertCheck => insert_check(&args),
        Operator::InsertRetryGuard => insert_guard(&args),
        Operator::SplitStep => {
            let of = args.fields(&["step", "second"])?;
            Ok(Edit::SplitStep {
                step: own(&of.need("step")?)?,
                second: texts(&of.need("second")?)?,
            })
        }
        Operator::RewireIo => {
            let of = args.fields(&["step", "reads"])?;
            Ok(Edit::RewireIo {
                step: own(&of.need("step")?)?,
                reads: texts(&of.need("reads")?)?,
            })
        }
        Operator::DeleteStep => Ok(Edit::DeleteStep {
            step: own(&args.fields(&["step"])?.need("step")?)?,
        }),
        Operator::ReplaceModel => {
            let of = args.fields(&["step", "model"])?;
            Ok(Edit::ReplaceModel {
                step: own(&of.need("step")?)?,
                model: own(&of.need("model")?)?,
            })
        }
    }
}

fn edit_prompt(args: &Spot<'_>) -> Result<Edit, Fault> {
    let of = args.fields(&["step", "part", "find", "text"])?;
    let parts = &[("system", PromptPart::System), ("user", PromptPart::User)];
    Ok(Edit::EditPrompt {
        step: own(&of.need("step")?)?,
        part: of.need("part")?.word(parts, "system or user")?,
        find: optional(of.get("find"))?,
        text: own(&of.need("text")?)?,
    })
}

fn insert_check(args: &Spot<'_>) -> Result<Edit, Fault> {
    let of = args.fields(&["after", "id", "expr", "hard"])?;
    Ok(Edit::InsertCheck {
        after: own(&of.need("after")?)?,
        id: own(&of.need("id")?)?,
        expr: of.need("expr")?.data()?,
        hard: of.need("hard")?.bool()?,
    })
}

fn insert_guard(args: &Spot<'_>) -> Result<Edit, Fault> {
    let of = args.fields(&["step", "id", "when", "max_tries", "note"])?;
    let tries = of.need("max_tries")?;
    Ok(Edit::InsertRetryGuard {
        step: own(&of.need("step")?)?,
        id: own(&of.need("id")?)?,
        when: of.need("when")?.data()?,
        max_tries: tries.count(1, 3, "a whole number from 1 to 3")?,
        note: optional(of.get("note"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::edit::EditBudget;
    use crate::repair::edit::Rejection;
    use crate::task::Family;
    use crate::workflow::Workflow;

    fn applied(args: &str) -> Result<Workflow, Rejection> {
        let first = Workflow::parse(Family::Invoices.first_program()).unwrap();
        let edit = parse(args).unwrap();
        let made = edit.apply(&first, &Operator::STANDARD, &EditBudget::default())?;
        assert_eq!(
            made.patch.apply(first.document()).as_ref(),
            Ok(made.workflow.document())
        );
        // What is written of an edit is read as the same.
        let word = OPERATORS
            .iter()
            .find(|(_, of)| *of == edit.operator())
            .unwrap()
            .0;
        let written = Data::object([("operator", word.into()), ("args", edit.document())]);
        assert_eq!(parse(&written.canonical()).as_ref(), Ok(&edit));
        Ok(made.workflow)
    }

    #[test]
    fn every_operator_has_a_result_or_a_reason() {
        let edit = |operator: &str, args: &str| {
            applied(&format!(r#"{{"operator":"{operator}","args":{args}}}"#))
        };
        let told = edit(
            "edit_prompt",
            r#"{"step":"draft","part":"system","find":"invoices","text":"bills"}"#,
        );
        assert!(told.unwrap().print().contains("You read bills."));
        let twice = edit(
            "edit_prompt",
            r#"{"step":"draft","part":"user","find":"a","text":"b"}"#,
        );
        assert!(matches!(twice, Err(Rejection::TextNotOnce(of)) if of > 1));
        let hole = edit(
            "edit_prompt",
            r#"{"step":"draft","part":"user","text":"{{c.secret}}"}"#,
        );
        assert!(matches!(hole, Err(Rejection::Invalid(_))));
        let long = format!(
            r#"{{"step":"draft","part":"user","text":"{}"}}"#,
            "a".repeat(401)
        );
        let most = 400;
        assert_eq!(
            edit("edit_prompt", &long).unwrap_err(),
            Rejection::OverBudget {
                what: "characters of prompts",
                found: 402,
                most
            }
        );
        let check =
            r#"{"after":"draft","id":"k","expr":{"op":"exists","path":"draft.date"},"hard":true}"#;
        assert_eq!(edit("insert_check", check).unwrap().steps()[1].id, "k");
        let guard = r#"{"step":"draft","id":"g","when":{"op":"exists","path":"draft.x"},"max_tries":2,"note":"no x"}"#;
        assert_eq!(
            edit("insert_retry_guard", guard).unwrap().steps()[1].id,
            "g"
        );
        let halves = r#"{"step":"draft","second":["total","currency"]}"#;
        // What moves from one half to the other is no change: a split fits the default however wide the step is.
        let split = edit("split_step", halves).unwrap();
        let ids: Vec<_> = split.steps().iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, ["draft", "draft_b", "draft_m", "answer"]);
        let none = edit("split_step", r#"{"step":"draft","second":["sum"]}"#);
        assert_eq!(none.unwrap_err(), Rejection::NoSplit);
        let wired = edit("rewire_io", r#"{"step":"draft","reads":["c.currencies"]}"#).unwrap();
        assert!(wired.print().contains("c.currencies: {{c.currencies}}"));
        let gone = edit("delete_step", r#"{"step":"answer"}"#);
        assert_eq!(
            gone.unwrap_err(),
            Rejection::NotAllowed(Operator::DeleteStep)
        );
        let map = edit("rewire_io", r#"{"step":"answer","reads":["c"]}"#);
        assert!(matches!(map, Err(Rejection::NoStep(_))));
    }
}
