//! `clover doctor` on endpoints: what each is used for, and what a run there would miss.

use crate::cli::ctx::Ctx;
use crate::cli::doctor::DoctorCheck;
use crate::event::payload::endpoint::AuthForm;
use crate::event::payload::model_terms::PriceMode;
use crate::ledger::State;
use crate::projection::asked::AskedRuns;
use crate::projection::endpoints::EndpointRecord;
use crate::projection::endpoints::Endpoints;
use crate::projection::judges::Judges;
use crate::view::model_terms::key_variable;
use crate::view::surroundings::CheckResult;

/// What is asked at an endpoint, each once, and the models that have to answer.
fn uses(state: &State, of: &EndpointRecord) -> (Vec<String>, Vec<String>) {
    let (mut used, mut pins) = (Vec::new(), Vec::new());
    for (experiment, judges) in &state.fold::<Judges>().by_experiment {
        for (judge, record) in &judges.judges {
            if let Some(asked) = &record.said.asked
                && asked.endpoint == of.said.endpoint
            {
                used.push(format!("judge {judge} of {experiment}"));
                pins.push(asked.pin.as_str().to_owned());
            }
        }
    }
    for (run, asked) in &state.fold::<AskedRuns>().by_id {
        if asked.asked.endpoint == of.said.endpoint {
            used.push(format!("{} in {run}", asked.purpose.as_str()));
            pins.push(asked.asked.pin.as_str().to_owned());
        }
    }
    pins.sort_unstable();
    pins.dedup();
    (used, pins)
}

/// A check of each endpoint.
pub(super) fn checked(ctx: &Ctx<'_>, state: &State, checks: &mut Vec<DoctorCheck>) {
    let endpoints = state.fold::<Endpoints>();
    for (name, of) in &endpoints.by_id {
        let (used, pins) = uses(state, of);
        let used = match used.as_slice() {
            [] => "used for nothing yet".to_owned(),
            some => format!("used for {}", some.join(", ")),
        };
        let mut missing = Vec::new();
        let variable = key_variable(name);
        if of.said.auth != AuthForm::None && ctx.variable(&variable).is_none() {
            missing.push(format!("{variable} is not set"));
        }
        let provider = of.said.provider.as_str();
        let unpriced = pins.iter().filter(|pin| {
            !of.said.free && endpoints.price(provider, pin, PriceMode::Live).is_none()
        });
        missing.extend(unpriced.map(|pin| format!("{pin} has no price at {provider}")));
        let seen = if missing.is_empty() {
            format!("{name}: {used}")
        } else {
            format!("{name}: {used}; {}", missing.join("; "))
        };
        let found = if missing.is_empty() {
            CheckResult::Good
        } else {
            CheckResult::Remark
        };
        checks.push(("endpoint", found, seen));
    }
}
