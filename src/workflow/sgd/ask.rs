//! What a model behind HTTP is asked for in a run of a prompt: a gradient for a request, then patches for a gradient, in the form
//! `descend/1`. An ask follows from the record of the run before it, so it is made again from the log.

use clover_event::Kind;
use clover_event::id::RunId;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::sgd::DOCUMENT_MAX;
use clover_ledger::RequiredFact;
use clover_ledger::Unmet;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::called::no_gradient;
use clover_projection::sgd::due::SgdDue;

use crate::ask::AnswerFormat;
use crate::ask::ModelAsk;
use crate::sgd::course::SgdCourse;
use crate::sgd::course::unmet;
use crate::synth::ask::ask_of;

/// The name of the form of asks.
pub const FORM: &str = "descend/1";

/// The instructions for a gradient: they never change, another text is another form.
const GRADIENT: &str = include_str!("gradient_1.txt");
/// The instructions for a patch.
const PATCH: &str = include_str!("patch_1.txt");

/// The ask that a run waits for.
///
/// # Errors
/// [`Unmet`] where the run asks no model, waits for nothing, or its form is one that this program does not know.
pub fn due(run: &SgdRun) -> Result<ModelAsk, Unmet> {
    let asked = run.said.asked.as_ref().required("a model that is asked")?;
    if asked.form.as_str() != FORM {
        return Err(unmet(FORM, asked.form.as_str()));
    }
    let (place, _) = run.awaited().required("an ask that waits")?;
    if run.due() == Some(SgdDue::Gradient) {
        let request = run.going().and_then(|step| step.request.as_ref());
        let request = request.required(Kind::SgdGradientRequested.as_str())?;
        let shown = request.request.as_str();
        return Ok(of(asked, (&run.said.run, place), [GRADIENT, shown]));
    }
    let shown = SgdCourse::of(run)?.ask()?.to_json();
    Ok(of(asked, (&run.said.run, place), [PATCH, &shown]))
}

fn of(asked: &AskedModel, (run, place): (&RunId, u64), said: [&str; 2]) -> ModelAsk {
    let place = (CallPurpose::Descend, run, place);
    ask_of(asked, place, (said, AnswerFormat::Text))
}

/// The gradient that an answer is: its text byte for byte, or one without items where it is none of the prompt that stands.
///
/// # Errors
/// [`Unmet`] where the record has no prompt.
pub fn gradient_of(run: &SgdRun, text: Option<&str>) -> Result<String, Unmet> {
    let course = SgdCourse::of(run)?;
    course.current()?;
    let is_one = |text: &&str| text.len() <= DOCUMENT_MAX && course.checked(text).is_ok();
    let text = text.filter(is_one);
    Ok(text.map_or_else(|| no_gradient(run.taken()), str::to_owned))
}

/// The proposal that an answer is; none where it has none, or is too long to be one.
pub fn proposal_of(text: Option<&str>) -> Option<&str> {
    text.filter(|text| text.trim() != "null" && text.len() <= DOCUMENT_MAX)
}
