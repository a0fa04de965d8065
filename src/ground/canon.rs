//! The only canonical encoder: RFC 8785 (JCS) bytes from serde values, and the strict reader of such
//! bytes.
//!
//! Typed values stream straight into the output. Keys that arrive in order (payload structs declare
//! their fields sorted) cost one comparison each; keys that do not are put in order when the object
//! closes, so the bytes never depend on declaration order. What JSON cannot hold exactly is an error,
//! never a rounding: integers beyond 2^53 - 1, NaN, infinities, duplicate keys.
//!
//! ```
//! let bytes = clover_ground::canon::to_bytes(&std::collections::BTreeMap::from([("b", 1), ("a", 2)]));
//! assert_eq!(bytes.unwrap(), br#"{"a":2,"b":1}"#);
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde::Serializer;
use serde::ser;

use super::digest::Digest;
pub use super::json::Value;
pub use super::json::parse;
use clover_num::INTEGER_MAX;

/// Why a value has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonError {
    /// An object repeats a key.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// An integer outside ±(2^53 - 1).
    #[error("integer {0} is outside ±9007199254740991")]
    IntegerRange(String),
    /// An object key is not a string.
    #[error("an object key is not a string")]
    KeyNotString,
    /// A NaN or an infinity.
    #[error("a number is not finite")]
    NotFinite,
    /// The text is not JSON, or a value refused to be read or written.
    #[error("{0}")]
    Value(String),
}

impl ser::Error for CanonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Value(message.to_string())
    }
}

/// Canonical bytes of `value`.
///
/// # Errors
/// [`CanonError`] when the value has no canonical form.
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonError> {
    let mut out = Vec::with_capacity(512);
    write(&mut out, value)?;
    Ok(out)
}

/// A value of a closed set of words as events write it: its canonical form without the quotes. Empty where it has none.
pub fn word<T: Serialize + ?Sized>(value: &T) -> String {
    let bytes = to_bytes(value).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_matches('"').to_owned()
}

/// Appends the canonical bytes of `value` to `out`; on error `out` holds a partial value.
///
/// # Errors
/// [`CanonError`] when the value has no canonical form.
pub fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), CanonError> {
    value.serialize(Canon { out })
}

/// The digest of a value's canonical form in a domain of its own: SHA-256(label ‖ 0x00 ‖ bytes).
///
/// # Panics
/// If the value has no canonical form, which ids, digests, texts and counts always have.
pub fn digest<T: Serialize + ?Sized>(label: &str, value: &T) -> Digest {
    let bytes = to_bytes(value).expect("BUG: ids, texts and counts have a canonical form");
    Digest::labelled(label, &bytes)
}

/// Whether `bytes` are exactly the canonical form of the value they hold.
///
/// # Errors
/// [`CanonError`] saying why not.
pub fn check(bytes: &[u8]) -> Result<(), CanonError> {
    let again = to_bytes(&parse(bytes)?)?;
    if again == bytes {
        return Ok(());
    }
    let at = again.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    Err(CanonError::Value(format!(
        "not in canonical form from byte {at} on"
    )))
}

struct Canon<'a> {
    out: &'a mut Vec<u8>,
}

fn write_integer(out: &mut Vec<u8>, negative: bool, magnitude: u64) -> Result<(), CanonError> {
    if magnitude > INTEGER_MAX {
        let sign = if negative { "-" } else { "" };
        return Err(CanonError::IntegerRange(format!("{sign}{magnitude}")));
    }
    if negative && magnitude != 0 {
        out.push(b'-');
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = magnitude;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("BUG: a digit fits a byte");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    Ok(())
}

/// Refuses what would not be read back: a double from 2^53 to below 1e21 has the form of an integer that
/// is out of range.
fn write_float(out: &mut Vec<u8>, value: f64) -> Result<(), CanonError> {
    if !value.is_finite() {
        return Err(CanonError::NotFinite);
    }
    let text = float_text(value);
    let integer = text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit());
    if integer && value.abs() > INTEGER_MAX as f64 {
        return Err(CanonError::IntegerRange(text));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// ECMAScript `Number::toString` (ECMA-262, 6.1.6.1.20), from the shortest round-trip digits, of a finite
/// value.
fn float_text(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // Of two shortest forms equally near, ECMAScript takes the even one, and so does serde_json; the
    // standard library's formatting does not.
    let shortest = serde_json::to_string(&value).expect("BUG: a finite double has a JSON form");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().expect("BUG: an exponent is an integer");
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let length = |text: &str| i32::try_from(text.len()).expect("BUG: a double has few digits");
    let significant = digits.trim_start_matches('0');
    // The value is 0.d1d2d3… x 10^n with k digits.
    let n = length(whole) + exponent - (length(&digits) - length(significant));
    let digits = significant.trim_end_matches('0');
    let k = length(digits);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if k <= n && n <= 21 {
        format!("{sign}{digits}{}", zeros(n - k))
    } else if 0 < n && n <= 21 {
        let (whole, part) = digits.split_at(usize::try_from(n).unwrap_or(0));
        format!("{sign}{whole}.{part}")
    } else if -6 < n && n <= 0 {
        format!("{sign}0.{}{digits}", zeros(-n))
    } else {
        let plus = if n > 0 { "+" } else { "" };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}e{plus}{}", n - 1)
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let (bytes, mut done) = (text.as_bytes(), 0);
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // Almost every text is as it is. Counting looks at many bytes at once, and never stops early.
    let count = bytes.iter().filter(|byte| special(byte)).count();
    let places = bytes.iter().enumerate().filter(|(_, byte)| special(byte));
    for (at, byte) in places.take(count) {
        out.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// JCS key order: by UTF-16 code units.
fn key_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        a.cmp(b)
    } else {
        a.encode_utf16().cmp(b.encode_utf16())
    }
}

/// An object or array under construction.
struct Compound<'a> {
    out: &'a mut Vec<u8>,
    /// Where the opening bracket stands.
    start: usize,
    /// Key and offset of each member's text (without its comma).
    members: Vec<(Cow<'static, str>, usize)>,
    sorted: bool,
    /// A variant wrapper `{"Name":…}` is open around this compound.
    wrapped: bool,
}

impl<'a> Compound<'a> {
    /// `members` is how many there will be of an object, where that is known.
    fn open(out: &'a mut Vec<u8>, bracket: u8, wrapper: Option<&str>, members: usize) -> Self {
        if let Some(name) = wrapper {
            out.push(b'{');
            write_string(out, name);
            out.push(b':');
        }
        let start = out.len();
        out.push(bracket);
        Self {
            out,
            start,
            members: Vec::with_capacity(members),
            sorted: true,
            wrapped: wrapper.is_some(),
        }
    }

    fn comma(&mut self) {
        if self.out.len() > self.start + 1 {
            self.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
        self.comma();
        write(self.out, value)
    }

    fn key(&mut self, key: Cow<'static, str>) -> Result<(), CanonError> {
        self.comma();
        if let Some((last, _)) = self.members.last() {
            match key_order(last, &key) {
                Ordering::Less => {}
                Ordering::Equal => return Err(CanonError::DuplicateKey(key.into_owned())),
                Ordering::Greater => self.sorted = false,
            }
        }
        let at = self.out.len();
        write_string(self.out, &key);
        self.out.push(b':');
        self.members.push((key, at));
        Ok(())
    }

    fn close(self, bracket: u8) -> Result<(), CanonError> {
        if !self.sorted {
            return self.reorder();
        }
        self.out.push(bracket);
        if self.wrapped {
            self.out.push(b'}');
        }
        Ok(())
    }

    fn reorder(self) -> Result<(), CanonError> {
        let ends = self
            .members
            .iter()
            .skip(1)
            .map(|(_, at)| at - 1)
            .chain([self.out.len()]);
        let mut parts: Vec<_> = self
            .members
            .iter()
            .zip(ends)
            .map(|((key, from), to)| (key, *from, to))
            .collect();
        parts.sort_by(|a, b| key_order(a.0, b.0));
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(CanonError::DuplicateKey(pair[0].0.to_string()));
        }
        let mut text = Vec::with_capacity(self.out.len() - self.start + 1);
        text.push(b'{');
        for (at, (_, from, to)) in parts.into_iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.out[from..to]);
        }
        text.push(b'}');
        self.out.truncate(self.start);
        self.out.append(&mut text);
        if self.wrapped {
            self.out.push(b'}');
        }
        Ok(())
    }
}

impl<'a> Serializer for Canon<'a> {
    type Ok = ();
    type Error = CanonError;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), CanonError> {
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }
    fn serialize_i8(self, value: i8) -> Result<(), CanonError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<(), CanonError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<(), CanonError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<(), CanonError> {
        write_integer(self.out, value < 0, value.unsigned_abs())
    }
    fn serialize_u8(self, value: u8) -> Result<(), CanonError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<(), CanonError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<(), CanonError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<(), CanonError> {
        write_integer(self.out, false, value)
    }
    fn serialize_f32(self, value: f32) -> Result<(), CanonError> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<(), CanonError> {
        write_float(self.out, value)
    }
    fn serialize_char(self, value: char) -> Result<(), CanonError> {
        write_string(self.out, value.encode_utf8(&mut [0; 4]));
        Ok(())
    }
    fn serialize_str(self, value: &str) -> Result<(), CanonError> {
        write_string(self.out, value);
        Ok(())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), CanonError> {
        Err(CanonError::Value(
            "bytes have no JSON form; write base64 text".to_owned(),
        ))
    }
    fn serialize_none(self) -> Result<(), CanonError> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), CanonError> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), CanonError> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), CanonError> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), CanonError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), CanonError> {
        let mut object = Compound::open(self.out, b'{', None, 1);
        object.key(Cow::Borrowed(variant))?;
        write(object.out, value)?;
        object.close(b'}')
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'[', None, 0))
    }
    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'[', None, 0))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'[', None, 0))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'[', Some(variant), 0))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'{', None, 0))
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'{', None, len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a>, CanonError> {
        Ok(Compound::open(self.out, b'{', Some(variant), len))
    }
}

macro_rules! elements {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = CanonError;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
                self.element(value)
            }
            fn end(self) -> Result<(), CanonError> {
                self.close(b']')
            }
        }
    )*};
}
elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = CanonError;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), CanonError> {
                self.key(Cow::Borrowed(key))?;
                write(self.out, value)
            }
            fn end(self) -> Result<(), CanonError> {
                self.close(b'}')
            }
        }
    )*};
}
fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = CanonError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonError> {
        let mut text = Vec::new();
        write(&mut text, key)?;
        if text.first() != Some(&b'"') {
            return Err(CanonError::KeyNotString);
        }
        let key: String =
            serde_json::from_slice(&text).map_err(|error| CanonError::Value(error.to_string()))?;
        self.key(Cow::Owned(key))
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
        write(self.out, value)
    }
    fn end(self) -> Result<(), CanonError> {
        self.close(b'}')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canon(text: &str) -> String {
        String::from_utf8(to_bytes(&parse(text.as_bytes()).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn numbers_follow_ecmascript() {
        // source: RFC 8785, appendix B, and ECMAScript `Number::toString`
        for (bits, text) in [
            (0x0000_0000_0000_0001_u64, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x8000_0000_0000_0000, "0"),
            // Two are equally near, …12 and …13: the even one stands (ECMA-262, 6.1.6.1.20, note 2).
            (0xc2e7_40fd_1792_6aa4, "-204543132210005.12"),
            (0xc069_5bed_4000_0000, "-202.87271118164062"),
        ] {
            let value = f64::from_bits(bits);
            assert_eq!(float_text(value), text, "{bits:x}");
            // What is written is read back: digits alone beyond 2^53 - 1 are not.
            let readable = check(text.as_bytes()).is_ok();
            assert_eq!(to_bytes(&value).is_ok(), readable, "{bits:x}");
            assert_eq!(readable, text == "0" || text.contains(['.', 'e']), "{text}");
        }
        assert_eq!(to_bytes(&f64::NAN), Err(CanonError::NotFinite));
        assert_eq!(
            to_bytes(&9_007_199_254_740_993_u64),
            Err(CanonError::IntegerRange("9007199254740993".into()))
        );
        assert_eq!(
            to_bytes(&i64::MIN),
            Err(CanonError::IntegerRange("-9223372036854775808".into()))
        );
    }

    #[test]
    fn keys_are_sorted_by_utf16_and_strings_escape_the_minimum() {
        // source: RFC 8785, 3.2.3
        let input = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let output = canon(input);
        let order = [
            "Carriage Return",
            "One",
            "Control",
            "Latin",
            "Euro",
            "Emoji",
            "Hebrew",
        ];
        let at: Vec<_> = order
            .iter()
            .map(|word| output.find(word).unwrap())
            .collect();
        assert!(at.is_sorted(), "{output}");
        assert_eq!(
            canon(r#"["\u000f\u0008\n\"\\\/A\u007f"]"#),
            "[\"\\u000f\\b\\n\\\"\\\\/A\u{7f}\"]"
        );
    }

    #[test]
    fn duplicates_and_other_forms_are_refused() {
        assert!(
            matches!(parse(br#"{"a":1,"a":2}"#), Err(CanonError::Value(text)) if text.contains("duplicate key"))
        );
        assert!(check(br#"{"a":1,"b":2}"#).is_ok());
        for bad in [
            &br#"{"b":1,"a":2}"#[..],
            br#"{"a": 1}"#,
            br#"{"a":1.0}"#,
            br#"["\u0041"]"#,
            b"[1]x",
            b"[1e2]",
        ] {
            assert!(check(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn declaration_order_takes_no_part() {
        #[derive(Serialize)]
        struct Unsorted {
            z: u8,
            a: Option<u8>,
            m: Inner,
        }
        #[derive(Serialize)]
        enum Inner {
            Tuple(u8, u8),
        }
        let value = Unsorted {
            z: 1,
            a: None,
            m: Inner::Tuple(2, 3),
        };
        assert_eq!(
            to_bytes(&value).unwrap(),
            br#"{"a":null,"m":{"Tuple":[2,3]},"z":1}"#
        );
    }
}
