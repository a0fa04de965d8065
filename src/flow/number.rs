//! Numbers of workflows: exact decimals, never doubles.
//!
//! A number is a whole one up to 2^53 - 1 in magnitude, or has at most six decimals and a magnitude below 10^9. So it
//! has at most fifteen significant digits beside a whole one, each reader that uses doubles gives the same digits back,
//! and its canonical form is its decimal text.

use std::fmt;

use clover_num::INTEGER_MAX;
use serde::Serialize;
use serde::Serializer;

/// Millionths of one.
const SCALE: i128 = 1_000_000;
/// Least magnitude, in millionths, at which a number has no decimals any more.
const DECIMAL_END: i128 = 1_000_000_000_000_000;
/// Most bytes of a number's text.
const TEXT_MAX: usize = 64;
/// Most decimals.
pub const DECIMALS_MAX: u32 = 6;

/// An exact decimal, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(i128);

/// Which way a half goes when a number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// To the even digit, as in 2.5 -> 2.
    Even,
    /// Away from zero, as in 2.5 -> 3.
    Away,
}

impl Number {
    /// A count.
    pub fn of_count(count: usize) -> Self {
        Self(i128::try_from(count).unwrap_or(i128::MAX / SCALE) * SCALE)
    }

    /// A number of millionths; `None` where it is out of range.
    pub fn of_millionths(millionths: i128) -> Option<Self> {
        let whole = millionths % SCALE == 0;
        let most = if whole {
            i128::from(INTEGER_MAX) * SCALE
        } else {
            DECIMAL_END - 1
        };
        (-most..=most)
            .contains(&millionths)
            .then_some(Self(millionths))
    }

    /// Millionths.
    pub fn millionths(self) -> i128 {
        self.0
    }

    /// The whole number that it is.
    pub fn whole(self) -> Option<i64> {
        (self.0 % SCALE == 0)
            .then(|| i64::try_from(self.0 / SCALE).ok())
            .flatten()
    }

    /// The nearest double.
    pub fn double(self) -> f64 {
        // Both are exact below 10^15 millionths, and a division is rounded once.
        match self.whole() {
            Some(whole) => whole as f64,
            None => self.0 as f64 / SCALE as f64,
        }
    }

    /// Reads the text of a JSON number, and says whether decimals beyond the sixth were rounded, halves to even.
    ///
    /// `None` for what is no JSON number, too long, or out of range.
    pub fn parse(text: &str) -> Option<(Self, bool)> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, decimals) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leads = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leads || !is_digits(whole) || !is_digits(decimals) {
            return None;
        }
        let digits = format!("{whole}{decimals}");
        let digits = digits.trim_start_matches('0');
        let decimals = i32::try_from(decimals.len()).ok()?;
        let shift = i64::from(exponent) - i64::from(decimals) + i64::from(DECIMALS_MAX);
        let (magnitude, rounded) = scaled(digits, shift)?;
        let signed = if negative { -magnitude } else { magnitude };
        Some((Self::of_millionths(signed)?, rounded))
    }

    /// Rounded to so many decimals, 0 to 6. `None` where the result is out of range.
    pub fn round(self, decimals: u32, ties: Ties) -> Option<Self> {
        let mut unit = 1;
        for _ in decimals..DECIMALS_MAX {
            unit *= 10;
        }
        let (whole, rest) = (self.0.abs() / unit, self.0.abs() % unit);
        let up = match (rest * 2).cmp(&unit) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => ties == Ties::Away || whole % 2 == 1,
        };
        let magnitude = (whole + i128::from(up)) * unit;
        Self::of_millionths(magnitude * self.0.signum())
    }
}

/// `digits` times 10^`shift`, halves to even, and whether anything was rounded. `None` beyond 24 digits.
fn scaled(digits: &str, shift: i64) -> Option<(i128, bool)> {
    const DIGITS_MAX: usize = 24;
    if digits.is_empty() {
        return Some((0, false));
    }
    if shift >= 0 {
        let zeros = usize::try_from(shift).ok()?;
        if digits.len().saturating_add(zeros) > DIGITS_MAX {
            return None;
        }
        let text = format!("{digits}{}", "0".repeat(zeros));
        return Some((text.parse().ok()?, false));
    }
    let cut = usize::try_from(-shift).ok()?;
    if cut > digits.len() {
        return Some((0, true));
    }
    let (head, tail) = digits.split_at(digits.len() - cut);
    if head.len() > DIGITS_MAX {
        return None;
    }
    let head: i128 = if head.is_empty() {
        0
    } else {
        head.parse().ok()?
    };
    let rest = tail[1..].bytes().any(|digit| digit != b'0');
    let up = match tail.as_bytes()[0] {
        b'0'..=b'4' => false,
        b'5' if !rest => head % 2 == 1,
        _ => true,
    };
    let rounded = rest || !tail.starts_with('0');
    Some((head + i128::from(up), rounded))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.abs() / SCALE, self.0.abs() % SCALE);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let decimals = format!("{rest:06}");
        write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole() {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.double()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, bool)> {
        Number::parse(text).map(|(number, rounded)| (number.to_string(), rounded))
    }

    #[test]
    fn decimals_are_exact_and_halves_go_to_even() {
        let same = |text: &str| assert_eq!(read(text), Some((text.to_owned(), false)), "{text}");
        for text in [
            "0",
            "-1",
            "0.000001",
            "999999999.999999",
            "9007199254740991",
            "-12.5",
        ] {
            same(text);
        }
        let cases = [
            ("1e3", "1000", false),
            ("1.50", "1.5", false),
            ("-0", "0", false),
            ("0.0000005", "0", true),
            ("0.0000015", "0.000002", true),
            ("0.00000051", "0.000001", true),
            ("1e-400", "0", true),
            ("0.30000000000000004", "0.3", true),
            ("0e999999", "0", false),
        ];
        for (text, shown, rounded) in cases {
            assert_eq!(read(text), Some((shown.to_owned(), rounded)), "{text}");
        }
        for bad in [
            "",
            "-",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "1e99",
            "9007199254740992",
            "1000000000.5",
            "NaN",
            "1 ",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_written_as_a_double_is_the_decimal() {
        for text in [
            "0.1",
            "0.000001",
            "999999999.999999",
            "-123456789.012345",
            "4.35",
        ] {
            let number = Number::parse(text).unwrap().0;
            let bytes = clover_ground::canon::to_bytes(&number).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), text);
        }
    }

    #[test]
    fn rounding_knows_both_conventions() {
        let round = |text: &str, decimals, ties| {
            let number = Number::parse(text).unwrap().0;
            number.round(decimals, ties).unwrap().to_string()
        };
        assert_eq!(round("2.5", 0, Ties::Even), "2");
        assert_eq!(round("2.5", 0, Ties::Away), "3");
        assert_eq!(round("-2.5", 0, Ties::Away), "-3");
        assert_eq!(round("0.125", 2, Ties::Even), "0.12");
        assert_eq!(round("0.125", 2, Ties::Away), "0.13");
        assert_eq!(round("1.234567", 6, Ties::Even), "1.234567");
    }
}
