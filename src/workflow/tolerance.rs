//! How far a number that is computed again may be from the recorded one: every tolerance of the program.

/// What kind of number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// A fraction that another build of the program computed.
    OtherBuild,
    /// A log wealth: a sum of as many logarithms as there are units.
    LogWealth,
    /// A probability.
    Probability,
}

/// The largest difference, in the unit that each kind of number has.
const LARGEST: f64 = 1e-9;

impl Tolerance {
    /// The unit of a difference between two numbers.
    fn unit(self, expected: f64, found: f64) -> f64 {
        match self {
            Self::OtherBuild => expected.abs().max(found.abs()),
            Self::LogWealth => expected.abs().max(1.0),
            Self::Probability => 1.0,
        }
    }

    /// Whether a number is near enough to the one that is expected. What is not a number is near to nothing.
    pub(super) fn admits(self, expected: f64, found: f64) -> bool {
        (expected - found).abs() <= LARGEST * self.unit(expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_number_has_its_unit() {
        let all = [
            (Tolerance::OtherBuild, 0.5, 0.5 + 4e-10, true),
            (Tolerance::OtherBuild, 0.5, 0.5 + 6e-10, false),
            (Tolerance::OtherBuild, 1e6, 1e6 + 9e-4, true),
            (Tolerance::LogWealth, 0.5, 0.5 + 9e-10, true),
            (Tolerance::LogWealth, 100.0, 100.0 + 9e-8, true),
            (Tolerance::LogWealth, 100.0, 100.0 + 2e-7, false),
            (Tolerance::Probability, 0.5, 0.5 + 9e-10, true),
            (Tolerance::Probability, 0.5, 0.5 + 2e-9, false),
            (Tolerance::Probability, f64::NAN, f64::NAN, false),
        ];
        for (tolerance, expected, found, near) in all {
            assert_eq!(
                tolerance.admits(expected, found),
                near,
                "{tolerance:?} {found}"
            );
        }
    }
}
