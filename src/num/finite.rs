//! Doubles that cannot be NaN or infinite.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

/// A finite double; negative zero is held as zero, so that equal values have equal bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Finite(f64);

impl Finite {
    /// `None` for NaN and the infinities.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value + 0.0))
    }

    /// The value.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Finite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| D::Error::custom("expected a finite number"))
    }
}

/// A probability: a finite double from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(Finite);

impl Probability {
    /// Certain.
    pub const ONE: Self = Self(Finite(1.0));

    /// `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        let finite = Finite::new(value)?;
        (0.0..=1.0)
            .contains(&finite.value())
            .then_some(Self(finite))
    }

    /// The value.
    pub fn value(self) -> f64 {
        self.0.value()
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value)
            .ok_or_else(|| D::Error::custom(format_args!("expected 0 to 1, found {value}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_none() {
        assert!(Finite::new(f64::NAN).is_none());
        assert!(Finite::new(f64::INFINITY).is_none());
        assert!(Finite::new(-0.0).unwrap().value().is_sign_positive());
        assert!(Probability::new(1.0 + f64::EPSILON).is_none());
        assert!(Probability::new(-1e-300).is_none());
        assert!((Probability::new(1.0).unwrap().value() - 1.0).abs() < f64::EPSILON);
        assert!(serde_json::from_str::<Probability>("1.5").is_err());
        assert_eq!(
            serde_json::to_string(&Finite::new(-0.0).unwrap()).unwrap(),
            "0.0"
        );
    }
}
