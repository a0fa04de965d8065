//! `Timestamp`: microseconds since the Unix epoch, written as RFC 3339 UTC with exactly six decimals.
//!
//! `2026-11-20T10:00:00.000100Z` (27 bytes) is the one accepted form, so that a time has one encoding
//! and text order is time order. Calendar arithmetic is chrono's; only the fixed-width digits are
//! written and read here. Reading a clock is `ambient`'s.

use std::fmt;
use std::ops::Add;

use chrono::DateTime;
use chrono::Datelike;
use chrono::NaiveDate;
use chrono::Timelike;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

/// Bytes of the text form.
pub const TEXT_LEN: usize = 27;

/// Microseconds since 1970-01-01T00:00:00Z, within years 0001 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A UTC calendar quarter, the period of quarterly budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quarter {
    /// Calendar year.
    pub year: i32,
    /// 1 to 4.
    pub quarter: u32,
}

impl fmt::Display for Quarter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Q{}", self.year, self.quarter)
    }
}

impl Timestamp {
    /// The epoch.
    pub const EPOCH: Self = Self(0);
    const MIN: i64 = -62_135_596_800_000_000;
    const MAX: i64 = 253_402_300_799_999_999;

    /// From microseconds since the epoch; `None` outside years 0001 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (Self::MIN..=Self::MAX)
            .contains(&micros)
            .then_some(Self(micros))
    }

    /// Microseconds since the epoch.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// This time plus whole seconds, held within years 0001 to 9999.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(
            self.0
                .saturating_add(seconds.saturating_mul(1_000_000))
                .clamp(Self::MIN, Self::MAX),
        )
    }

    /// The UTC quarter that holds this time.
    pub fn quarter(self) -> Quarter {
        let date = self.date_time();
        Quarter {
            year: date.year(),
            quarter: date.month0() / 3 + 1,
        }
    }

    fn date_time(self) -> DateTime<chrono::Utc> {
        DateTime::from_timestamp_micros(self.0).expect("BUG: a Timestamp is within chrono's range")
    }

    /// Parses the one accepted form.
    pub fn parse(text: &str) -> Option<Self> {
        let b: &[u8; TEXT_LEN] = text.as_bytes().try_into().ok()?;
        let punctuation = [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
            (26, b'Z'),
        ];
        if punctuation.iter().any(|&(at, c)| b[at] != c) {
            return None;
        }
        let number = |from: usize, to: usize| {
            b[from..to].iter().try_fold(0u32, |n, c| {
                c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0'))
            })
        };
        let year = i32::try_from(number(0, 4)?)
            .ok()
            .filter(|&year| year >= 1)?;
        let date = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
        let time = date.and_hms_micro_opt(
            number(11, 13)?,
            number(14, 16)?,
            number(17, 19)?,
            number(20, 26)?,
        )?;
        // chrono takes microseconds of 1,000,000 and more as a leap second; six digits cannot hold one.
        Self::from_micros(time.and_utc().timestamp_micros())
    }

    /// Reads RFC 3339 with any offset and at most six decimals of a second: the form of foreign files.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?;
        let exact = at.timestamp_subsec_nanos() % 1_000 == 0;
        // chrono holds a leap second as nanoseconds beyond the second.
        let plain = at.timestamp_subsec_nanos() < 1_000_000_000;
        Self::from_micros(at.timestamp_micros()).filter(|_| exact && plain)
    }

    /// Reads what people write: a day, `2027-01-31`, which is its first moment in UTC, or RFC 3339 with any offset and at
    /// most six decimals of a second.
    pub fn parse_written(text: &str) -> Option<Self> {
        let is_day = text.len() == "2027-01-31".len();
        let first = || Self::parse(&format!("{text}T00:00:00.000000Z"));
        if is_day {
            first()
        } else {
            Self::parse_rfc3339(text)
        }
    }

    /// The day of a date with points between, the day of the month first: `31.01.2027`. It is no form that is read: whoever
    /// refuses it can say how it is written.
    pub fn dotted_day(text: &str) -> Option<String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [day, month, year] = parts.as_slice() else {
            return None;
        };
        let written = format!("{year}-{month:0>2}-{day:0>2}");
        Self::parse_written(&written).filter(|_| year.len() == 4)?;
        Some(written)
    }

    /// The 27 bytes of the text form.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn to_text(self) -> [u8; TEXT_LEN] {
        let at = self.date_time();
        let mut out = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |from: usize, to: usize, mut value: u32| {
            for digit in out[from..to].iter_mut().rev() {
                *digit = b'0' + u8::try_from(value % 10).expect("BUG: a digit fits a byte");
                value /= 10;
            }
        };
        put(
            0,
            4,
            u32::try_from(at.year()).expect("BUG: years are 1 to 9999"),
        );
        put(5, 7, at.month());
        put(8, 10, at.day());
        put(11, 13, at.hour());
        put(14, 16, at.minute());
        put(17, 19, at.second());
        put(20, 26, at.timestamp_subsec_micros());
        out
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;
    /// Adds microseconds, held within years 0001 to 9999.
    fn add(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros).clamp(Self::MIN, Self::MAX))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_text()).expect("BUG: digits are ASCII"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .serialize_str(std::str::from_utf8(&self.to_text()).expect("BUG: digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected a UTC time such as 2026-11-20T10:00:00.000000Z, found {text:?}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_only() {
        // source: `date -u -d 2026-11-20T10:00:00Z +%s` prints 1795168800
        let at = Timestamp::parse("2026-11-20T10:00:00.000100Z").unwrap();
        assert_eq!(at.micros(), 1_795_168_800_000_100);
        assert_eq!(at.to_string(), "2026-11-20T10:00:00.000100Z");
        for bad in [
            "2026-11-20T10:00:00Z",
            "2026-11-20T10:00:00.0001000",
            "2026-11-20 10:00:00.000100Z",
            "2026-02-30T10:00:00.000100Z",
            "2026-11-20T24:00:00.000100Z",
            "2026-11-20T10:00:60.000100Z",
            "0000-11-20T10:00:00.000100Z",
            "+026-11-20T10:00:00.000100Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_day_is_its_first_moment_and_every_other_form_is_exact() {
        let written = |text: &str| Timestamp::parse_written(text).map(|at| at.to_string());
        for (text, expected) in [
            ("2027-01-31", Some("2027-01-31T00:00:00.000000Z")),
            ("2027-01-31T00:00:00Z", Some("2027-01-31T00:00:00.000000Z")),
            (
                "2027-01-31T01:30:00+01:00",
                Some("2027-01-31T00:30:00.000000Z"),
            ),
            (
                "2027-01-31T00:00:00.000001Z",
                Some("2027-01-31T00:00:00.000001Z"),
            ),
            ("2027-01-31T00:00:00.0000001Z", None),
            ("2027-02-29", None),
            ("2027-1-31", None),
            ("31.01.2027", None),
            ("2027-01-31T00:00", None),
            ("", None),
        ] {
            assert_eq!(written(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn quarters_follow_the_utc_calendar() {
        let quarter = |text: &str| Timestamp::parse(text).unwrap().quarter().to_string();
        assert_eq!(quarter("2026-09-30T23:59:59.999999Z"), "2026Q3");
        assert_eq!(quarter("2026-10-01T00:00:00.000000Z"), "2026Q4");
    }
}
