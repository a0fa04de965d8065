//! Numbers: exact millionths and bounded counts for what is recorded, finite doubles and fixed-order
//! arithmetic for what is computed.
//!
//! Scores, labels and paired deltas are integers in millionths ([`Micro`]), parsed from decimal text
//! and never through a double, so that sums over them are exact. Counts and positions ([`Count`]) stay
//! within 2^53 - 1, the largest integer that every JSON reader holds exactly. Computed statistics are
//! [`Finite`] doubles; [`math`] is the only door to transcendental functions and fixes the order of sums.

pub mod draws;
pub mod mass;
pub mod math;
pub mod paired;

mod finite;
mod micro;
#[cfg(feature = "schema")]
mod schema;

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

pub use finite::Finite;
pub use finite::Probability;
pub use micro::Micro;
pub use micro::MicroError;

/// Largest integer that a JSON number holds exactly in every reader (RFC 8785, 3.2.2.3).
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// A count or position: 0 to 2^53 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(u64);

impl Count {
    /// `None` above 2^53 - 1.
    pub fn new(value: u64) -> Option<Self> {
        (value <= INTEGER_MAX).then_some(Self(value))
    }

    /// The value.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected an integer from 0 to 9007199254740991, found {value}"
            ))
        })
    }
}
