//! Numbers and words of repairs, as their events and as the pure search have them.

use clover_event::id::Text;
use clover_event::payload::repair::WfDocument;
use clover_event::payload::repair::WfLocality;
use clover_event::payload::repair::WfOperator;
use clover_event::payload::repair::WfRejection;
use clover_event::payload::repair::WfUsage;
use clover_flow::difference::Locality;
use clover_flow::executor::Usage;
use clover_flow::repair::edit::Operator;
use clover_flow::repair::edit::Rejection;
use clover_flow::value::Data;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_num::Micro;
use clover_projection::wf::count;

/// Most characters of what is said of an edit that was rejected.
const DETAIL_MAX: usize = 400;

/// An operator, as events have it.
pub fn operator(of: Operator) -> WfOperator {
    match of {
        Operator::DeleteStep => WfOperator::DeleteStep,
        Operator::EditPrompt => WfOperator::EditPrompt,
        Operator::InsertCheck => WfOperator::InsertCheck,
        Operator::InsertRetryGuard => WfOperator::InsertRetryGuard,
        Operator::ReplaceModel => WfOperator::ReplaceModel,
        Operator::RewireIo => WfOperator::RewireIo,
        Operator::SplitStep => WfOperator::SplitStep,
    }
}

/// Why an edit is rejected, as events have it.
pub fn rejection(of: &Rejection) -> WfRejection {
    match of {
        Rejection::Invalid(_) => WfRejection::Invalid,
        Rejection::NoSplit => WfRejection::NoSplit,
        Rejection::NoStep(_) => WfRejection::NoStep,
        Rejection::NotAllowed(_) => WfRejection::NotAllowed,
        Rejection::OverBudget { .. } => WfRejection::OverBudget,
        Rejection::TextNotOnce(_) => WfRejection::TextNotOnce,
        Rejection::Unchanged => WfRejection::Unchanged,
    }
}

/// How much an edit touches, as events have it.
pub fn locality(of: &Locality) -> WfLocality {
    WfLocality {
        ast_nodes: count(of.ast_nodes as u64),
        new_llm_calls: count(of.new_llm_calls as u64),
        prompt_chars: count(of.prompt_chars as u64),
        steps_touched: count(of.steps_touched as u64),
    }
}

/// What was spent, as events have it.
pub fn usage(of: Usage) -> WfUsage {
    WfUsage {
        calls: count(of.calls),
        ms: count(of.ms),
        tokens_in: count(of.tokens_in),
        tokens_out: count(of.tokens_out),
        usd_micro: count(of.usd_micro),
    }
}

/// Millionths, as events have them; the largest where there are more.
pub fn micro(millionths: i64) -> Micro {
    Micro::new(millionths.clamp(-Micro::MAX, Micro::MAX)).unwrap_or_default()
}

/// Millionths of a share.
pub fn share(millionths: u64) -> Micro {
    micro(i64::try_from(millionths).unwrap_or(Micro::MAX))
}

/// A text; what is no text is left out of it, and a long one is cut.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn text(of: &str) -> Text {
    let clean = of.chars().take(DETAIL_MAX);
    let clean = clean.map(|letter| if letter.is_control() { ' ' } else { letter });
    Text::new(clean.collect::<String>()).expect("BUG: 400 characters without controls are a text")
}

/// A document in its canonical form.
///
/// # Errors
/// [`Unmet`] beyond 65,536 bytes.
pub fn document(of: &Data) -> Result<WfDocument, Unmet> {
    WfDocument::new(of.canonical()).required("a document of at most 65536 bytes")
}
