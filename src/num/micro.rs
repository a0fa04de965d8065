//! Exact millionths, parsed from decimal text and never through a double.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

/// An exact number of millionths, at most a million in magnitude (10^12 millionths).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micro(i64);

/// Why a decimal text is not an exact number of millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MicroError {
    /// Not a decimal number.
    #[error("expected a decimal number such as 0.85 or 8.5e-1")]
    NotANumber,
    /// Beyond a million in magnitude.
    #[error("expected a magnitude of at most 1000000")]
    OutOfRange,
}

impl Micro {
    /// Largest magnitude, in millionths.
    pub const MAX: i64 = 1_000_000_000_000;

    /// `None` beyond 10^12 millionths in magnitude.
    pub fn new(millionths: i64) -> Option<Self> {
        (millionths.unsigned_abs() <= Self::MAX.unsigned_abs()).then_some(Self(millionths))
    }

    /// Millionths.
    pub fn value(self) -> i64 {
        self.0
    }

    /// `part` of `whole` in millionths, half to even; `None` where `whole` is 0 or the result does not fit. `part` is below 2^107.
    pub fn share(part: u128, whole: u128) -> Option<Self> {
        let scaled = part.checked_mul(1_000_000)?;
        let (down, rest) = (scaled.checked_div(whole)?, scaled.checked_rem(whole)?);
        let up = rest > whole - rest || (rest == whole - rest && down % 2 == 1);
        Self::new(i64::try_from(down + u128::from(up)).ok()?)
    }

    /// Parses JSON number text exactly, rounding half to even at the sixth decimal.
    /// Returns the value and whether anything was rounded away.
    ///
    /// # Errors
    /// [`MicroError::NotANumber`] for anything that is not a JSON number, [`MicroError::OutOfRange`]
    /// beyond a million.
    pub fn parse(text: &str) -> Result<(Self, bool), MicroError> {
        let (negative, digits, exponent) = decimal(text).ok_or(MicroError::NotANumber)?;
        // The value is 0.d1d2d3… x 10^point.
        let leading = digits.iter().take_while(|&&d| d == 0).count();
        let digits = &digits[leading..];
        let point = exponent - i64::try_from(leading).map_err(|_| MicroError::OutOfRange)?;
        if digits.is_empty() {
            return Ok((Self(0), false));
        }
        if point > 7 {
            return Err(MicroError::OutOfRange);
        }
        let keep = point + 6;
        let mut value: i64 = 0;
        for at in 0..keep.max(0) {
            let digit = usize::try_from(at)
                .ok()
                .and_then(|at| digits.get(at))
                .copied()
                .unwrap_or(0);
            value = value * 10 + i64::from(digit);
        }
        let (mut above_half, mut exactly_half, mut rounded) = (false, false, false);
        if keep < 0 {
            rounded = true;
        } else if let Some(rest) = usize::try_from(keep)
            .ok()
            .and_then(|keep| digits.get(keep..))
        {
            let tail = rest.iter().skip(1).any(|&d| d != 0);
            let first = rest.first().copied().unwrap_or(0);
            above_half = first > 5 || first == 5 && tail;
            exactly_half = first == 5 && !tail;
            rounded = first != 0 || tail;
        }
        if above_half || exactly_half && value % 2 == 1 {
            value += 1;
        }
        let value =
            Self::new(if negative { -value } else { value }).ok_or(MicroError::OutOfRange)?;
        Ok((value, rounded))
    }
}

/// Splits JSON number text into sign, digits and the power of ten of `0.digits`.
fn decimal(text: &str) -> Option<(bool, Vec<u8>, i64)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => {
            let exponent = &rest[at + 1..];
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if unsigned.is_empty()
                || unsigned.len() > 9
                || !unsigned.bytes().all(|c| c.is_ascii_digit())
            {
                return None;
            }
            (
                &rest[..at],
                exponent
                    .strip_prefix('+')
                    .unwrap_or(exponent)
                    .parse::<i64>()
                    .ok()?,
            )
        }
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    let plain = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || leading_zero || !plain(whole) || !plain(fraction) {
        return None;
    }
    let digits = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|c| c - b'0')
        .collect();
    Some((
        negative,
        digits,
        exponent + i64::try_from(whole.len()).ok()?,
    ))
}

impl fmt::Display for Micro {
    /// Decimal text with no trailing zeros: `0.85`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (
            self.0.unsigned_abs() / 1_000_000,
            self.0.unsigned_abs() % 1_000_000,
        );
        let text = format!("{sign}{whole}.{part:06}");
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Micro {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for Micro {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected millionths within ±1000000000000, found {value}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_half_to_even() {
        let of = |part, whole| Micro::share(part, whole).map(Micro::value);
        assert_eq!(
            [of(1, 2), of(1, 3), of(2, 3)],
            [Some(500_000), Some(333_333), Some(666_667)]
        );
        // 0.5 and 1.5 millionths.
        assert_eq!([of(1, 2_000_000), of(3, 2_000_000)], [Some(0), Some(2)]);
        assert_eq!(
            [of(0, 7), of(7, 7), of(1, 0)],
            [Some(0), Some(1_000_000), None]
        );
        assert_eq!(of(u128::MAX, 1), None);
    }

    #[test]
    fn decimal_text_is_read_exactly_half_to_even() {
        let parse = |text| Micro::parse(text).map(|(micro, rounded)| (micro.value(), rounded));
        assert_eq!(parse("0.85"), Ok((850_000, false)));
        assert_eq!(parse("-1"), Ok((-1_000_000, false)));
        assert_eq!(parse("8.5e-1"), Ok((850_000, false)));
        assert_eq!(parse("0.0000005"), Ok((0, true)));
        assert_eq!(parse("0.0000015"), Ok((2, true)));
        assert_eq!(parse("0.0000025"), Ok((2, true)));
        assert_eq!(parse("0.00000250000000000000000000001"), Ok((3, true)));
        assert_eq!(parse("1e-400"), Ok((0, true)));
        assert_eq!(parse("0.731000"), Ok((731_000, false)));
        assert_eq!(parse("1000000"), Ok((Micro::MAX, false)));
        assert_eq!(parse("1000000.000001"), Err(MicroError::OutOfRange));
        assert_eq!(parse("9999999999"), Err(MicroError::OutOfRange));
        assert_eq!(parse("1e999999999"), Err(MicroError::OutOfRange));
        for bad in [
            "", "NaN", "01", ".5", "5.", "1e", "1e+", "--1", "0x1", "1_000", "Infinity", " 1",
        ] {
            assert_eq!(parse(bad), Err(MicroError::NotANumber), "{bad:?}");
        }
    }

    #[test]
    fn micro_prints_as_decimal() {
        assert_eq!(Micro::new(850_000).unwrap().to_string(), "0.85");
        assert_eq!(Micro::new(-1).unwrap().to_string(), "-0.000001");
        assert_eq!(Micro::new(0).unwrap().to_string(), "0");
    }
}
