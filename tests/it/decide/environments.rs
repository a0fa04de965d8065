//! Which environments may share rows.

use clover::event::payload::environment::EnvironmentScope;
use clover::event::payload::environment::TimeWindow;
use clover::ground::time::Timestamp;

fn value(family: &str, environment: &str) -> EnvironmentScope {
    EnvironmentScope {
        environment: environment.parse().unwrap(),
        family: family.parse().unwrap(),
        window: None,
    }
}

fn window(months: (u8, u8)) -> EnvironmentScope {
    let day =
        |month: u8| Timestamp::parse(&format!("2027-{month:02}-01T00:00:00.000000Z")).unwrap();
    EnvironmentScope {
        window: Some(TimeWindow {
            from: day(months.0),
            to: day(months.1),
        }),
        ..value("quarter", "q")
    }
}

/// Given two environments, when a level inside one is asked for while the other failed, then only those are apart that no row
/// can be in at once.
#[test]
fn only_other_values_of_a_field_and_windows_that_do_not_meet_are_apart() {
    let law = value("domain", "law");
    assert!(law.is_apart(&value("domain", "medicine")));
    assert!(!law.is_apart(&law));
    assert!(!law.is_apart(&value("policy", "base")));
    let spring = window((1, 4));
    assert!(!law.is_apart(&spring) && !spring.is_apart(&law));
    assert!(spring.is_apart(&window((4, 7))) && window((4, 7)).is_apart(&spring));
    assert!(!spring.is_apart(&window((3, 5))));
    // The words of two scopes can be the same; their keys are not.
    let (one, two) = (value("a=b", "c"), value("a", "b=c"));
    assert_eq!(one.to_string(), two.to_string());
    assert_ne!(one.key(), two.key());
}
