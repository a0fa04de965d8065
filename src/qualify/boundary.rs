//! `boundary` vectors: the peer's boundary card.

use clover_stats::boundary;
use clover_stats::boundary::Status;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Stop;
use crate::check::refused;

/// Compares one case.
///
/// # Errors
/// [`Stop`].
pub fn boundary(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let target = input.at("S_policy")?.numbers()?;
    let labelled = input.at("S_oracle")?.numbers()?;
    let rewards = input.at("R_policy")?.numbers()?;
    let card = boundary::card(
        Values::new("S_policy", &target).map_err(refused)?,
        Values::new("S_oracle", &labelled).map_err(refused)?,
        Values::new("R_policy", &rewards).map_err(refused)?,
        input.at("R_min")?.number()?,
        input.at("R_max")?.number()?,
    )
    .map_err(refused)?;
    let status = match card.status {
        Status::Ok => "OK",
        Status::Caution => "CAUTION",
        Status::RefuseLevel => "REFUSE-LEVEL",
    };
    let expected = &case.expected;
    check.text(&expected.at("status")?, status)?;
    check.number(&expected.at("out_of_range")?, card.out_of_range)?;
    check.number(&expected.at("saturation")?, card.saturation)?;
    check.maybe(&expected.at("partial_id_width")?, card.partial_id_width)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn the_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/boundary.json");
        let report = run("boundary.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases);
    }
}
