//! Which rows an environment holds: one notion for iterations, audits and local calibrators.

use clover_event::id::FieldId;
use clover_event::payload::environment::EnvironmentScope;
use clover_ground::time::Timestamp;

/// The field that has the time at which a row was sampled, as an import kept it.
pub const SAMPLED_AT: &str = "sampled_at";

/// Whether a row is in an environment; `word` gives a field of the row, `policy` among them. A row without the field or the
/// time is in none.
pub fn holds<'a>(scope: &EnvironmentScope, word: impl Fn(&str) -> Option<&'a str>) -> bool {
    let Some(window) = scope.window else {
        return word(scope.family.as_str()) == Some(scope.environment.as_str());
    };
    let at = word(SAMPLED_AT).and_then(Timestamp::parse);
    at.is_some_and(|at| window.from <= at && at < window.to)
}

/// The field that decides whether a row is in an environment.
pub fn field(scope: &EnvironmentScope) -> Option<FieldId> {
    let name = match scope.window {
        Some(_) => SAMPLED_AT,
        None => scope.family.as_str(),
    };
    FieldId::new(name).ok()
}

#[cfg(test)]
mod tests {
    use clover_event::payload::environment::TimeWindow;

    use super::*;

    fn scope(window: Option<(&str, &str)>) -> EnvironmentScope {
        EnvironmentScope {
            environment: "law".parse().unwrap(),
            family: "domain".parse().unwrap(),
            window: window.map(|(from, to)| TimeWindow {
                from: Timestamp::parse(from).unwrap(),
                to: Timestamp::parse(to).unwrap(),
            }),
        }
    }

    #[test]
    fn a_row_is_in_an_environment_by_its_field_or_by_its_time_and_without_either_in_none() {
        let row = |field: &str| match field {
            "domain" => Some("law"),
            SAMPLED_AT => Some("2027-02-01T00:00:00.000000Z"),
            _ => None,
        };
        assert!(holds(&scope(None), row));
        assert!(!holds(&scope(None), |_| None));
        let first = "2027-01-01T00:00:00.000000Z";
        let at = "2027-02-01T00:00:00.000000Z";
        let last = "2027-03-01T00:00:00.000000Z";
        // A window begins with its first moment and ends before the other.
        assert!(holds(&scope(Some((at, last))), row));
        assert!(!holds(&scope(Some((first, at))), row));
        assert!(!holds(&scope(Some((first, last))), |_| None));
        assert_eq!(field(&scope(None)).unwrap().as_str(), "domain");
        assert_eq!(
            field(&scope(Some((first, at)))).unwrap().as_str(),
            SAMPLED_AT
        );
    }
}
