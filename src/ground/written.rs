//! Plans as people write them: amounts as `alpha: 0.05` where a type holds `alpha_micro: 50000`, and days as
//! `2027-01-31` where it holds a time to the microsecond.
//!
//! The ending of a name is its unit, so that no number has two readings: with `_micro` whole millionths, without it units,
//! exact to the millionth. What a type holds stays as it is, and so does what is signed of it.
//!
//! ```
//! use clover_ground::yaml::Document;
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Plan { alpha_micro: u64 }
//! let plan = Document::parse(b"alpha: 0.05\n").unwrap();
//! assert_eq!(clover_ground::written::decode::<Plan>(plan).unwrap().0.alpha_micro, 50_000);
//! ```

use clover_num::Micro;
use clover_num::MicroError;
use serde::de::DeserializeOwned;

use crate::time::Timestamp;
use crate::yaml::Document;
use crate::yaml::NodePosition;
use crate::yaml::YamlError;

/// How the name of a number of millionths ends.
const MILLIONTHS: &str = "_micro";
/// How a type begins to say that a text is no time.
const NO_TIME: &str = "expected a UTC time such as";

/// A document as a value of a type, and the document in the words of that type.
///
/// # Errors
/// [`YamlError`] at the node that the type refuses, or that is no exact amount.
pub fn decode<T: DeserializeOwned>(mut document: Document) -> Result<(T, Document), YamlError> {
    loop {
        // Each turn puts one node into the words of the type, and none twice.
        match document.decode() {
            Ok(value) => return Ok((value, document)),
            Err(error) => {
                if !restate(&mut document, &error)? {
                    return Err(hinted(error));
                }
            }
        }
    }
}

/// Puts the node that a type refused into its words; `false` where that is not how it can be read.
fn restate(document: &mut Document, error: &YamlError) -> Result<bool, YamlError> {
    if let Some(name) = unknown(&error.message) {
        let millionths = format!("{name}{MILLIONTHS}");
        if error.message.contains(&format!("`{millionths}`")) {
            return amount(document, &error.place, name);
        }
    }
    if error.message.starts_with(NO_TIME) {
        return Ok(time(document, &error.place));
    }
    Ok(false)
}

/// The field that a type does not know.
fn unknown(message: &str) -> Option<&str> {
    message
        .strip_prefix("unknown field `")?
        .split('`')
        .next()
        .filter(|name| !name.ends_with(MILLIONTHS))
}

fn refused(place: &NodePosition, message: impl Into<String>) -> YamlError {
    YamlError {
        place: place.clone(),
        message: message.into(),
    }
}

/// The lines of a key and of its value.
fn lines_of(document: &Document, path: &str) -> Option<(usize, usize)> {
    let key = document.places.iter().position(|of| of.path == path)?;
    (key + 1 < document.places.len()).then_some((key, key + 1))
}

fn put(document: &mut Document, line: usize, json: &str) {
    let mut lines: Vec<&str> = document.json.lines().collect();
    let comma = if lines[line].starts_with(',') {
        ","
    } else {
        ""
    };
    let json = format!("{comma}{json}");
    lines[line] = &json;
    document.json = lines.join("\n") + "\n";
}

/// An amount in units as whole millionths, under the name that says so.
fn amount(document: &mut Document, at: &NodePosition, name: &str) -> Result<bool, YamlError> {
    let path = format!("{}{MILLIONTHS}", at.path);
    if document.places.iter().any(|of| of.path == path) {
        let message = format!("expected one of {name} and {name}{MILLIONTHS}, found both");
        return Err(refused(at, message));
    }
    let Some((key, value)) = lines_of(document, &at.path) else {
        return Ok(false);
    };
    let text = document.texts[value].clone();
    if text.is_empty() {
        return Ok(false);
    }
    let found = match Micro::parse(&text) {
        Ok((found, false)) => found,
        Ok((_, true)) => {
            let message = format!("expected an exact number of millionths, found {text}");
            return Err(refused(&document.places[value], message));
        }
        Err(error @ (MicroError::NotANumber | MicroError::OutOfRange)) => {
            let message = format!("{error}, found {text}");
            return Err(refused(&document.places[value], message));
        }
    };
    put(document, key, &format!("\"{name}{MILLIONTHS}\":"));
    put(document, value, &found.value().to_string());
    document.places[key].path.clone_from(&path);
    document.places[value].path = path;
    Ok(true)
}

/// A day, or a time with fewer decimals, in the one form that is signed.
fn time(document: &mut Document, at: &NodePosition) -> bool {
    let places = document.places.iter().enumerate().rev();
    let mut values = places.filter(|(_, of)| of.path == at.path);
    let Some((line, _)) = values.next() else {
        return false;
    };
    let json = document.json.lines().nth(line).unwrap_or_default();
    let text = serde_json::from_str::<String>(json.trim_start_matches(','));
    let found = text.ok().filter(|text| Timestamp::parse(text).is_none());
    let found = found.and_then(|text| Timestamp::parse_written(&text));
    if let Some(found) = found {
        put(document, line, &format!("\"{found}\""));
    }
    found.is_some()
}

/// What a type refused, with the way to write it.
fn hinted(mut error: YamlError) -> YamlError {
    let name = error.place.path.rsplit('.').next().unwrap_or_default();
    if let Some(name) = name.strip_suffix(MILLIONTHS)
        && error.message.contains("floating point")
    {
        let message = format!(
            "expected whole millionths; an amount in units stands as {name}: {}",
            error.message.split('`').nth(1).unwrap_or("0.05")
        );
        error.message = message;
    }
    if error.message.starts_with(NO_TIME) {
        error.message =
            error
                .message
                .replacen(NO_TIME, "expected a UTC time such as 2026-11-20 or", 1);
    }
    error
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Plan {
        alpha_micro: Micro,
        #[serde(default)]
        arms: Vec<Arm>,
        #[serde(default)]
        until: Option<Timestamp>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arm {
        margin_micro: Micro,
    }

    fn read(text: &str) -> Result<(Plan, Document), String> {
        let document = Document::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        decode(document).map_err(|error| error.to_string())
    }

    #[test]
    fn units_and_days_are_read_as_what_is_signed() {
        let text = "alpha: 0.05\narms:\n  - {margin: -1}\n  - margin_micro: 7\nuntil: 2027-01-31\n";
        let (plan, document) = read(text).unwrap();
        let margins: Vec<i64> = plan.arms.iter().map(|of| of.margin_micro.value()).collect();
        assert_eq!(
            (plan.alpha_micro.value(), margins),
            (50_000, vec![-1_000_000, 7])
        );
        assert_eq!(plan.until, Timestamp::parse("2027-01-31T00:00:00.000000Z"));
        // What is said of a field later finds the line that it was written on.
        let place = document.place("arms[0].margin_micro").unwrap();
        assert_eq!((place.line, place.column), (3, 14));
        for (text, until) in [
            ("2027-01-31T00:00:00Z", "2027-01-31T00:00:00.000000Z"),
            ("'2027-01-31T02:00:00+02:00'", "2027-01-31T00:00:00.000000Z"),
        ] {
            let (plan, _) = read(&format!("alpha_micro: 1\nuntil: {text}\n")).unwrap();
            assert_eq!(plan.until.unwrap().to_string(), until);
        }
    }

    #[test]
    fn no_amount_is_rounded_and_none_has_two_readings() {
        for (text, expected) in [
            (
                "alpha: 0.0000001\n",
                "1:8: alpha: expected an exact number of millionths, found 0.0000001",
            ),
            (
                "alpha: 0.1000000000000000055\n",
                "1:8: alpha: expected an exact number",
            ),
            (
                "alpha: 1000001\n",
                "1:8: alpha: expected a magnitude of at most 1000000, found 1000001",
            ),
            ("alpha: 0x10\n", "1:8: alpha: expected a decimal number"),
            ("alpha: half\n", "1:8: alpha: expected a decimal number"),
            ("alpha: .5\n", "1:8: alpha: expected a decimal number"),
            ("alpha: '0.05'\n", "1:1: alpha: unknown field"),
            ("alpha: [0.05]\n", "1:1: alpha: unknown field"),
            ("alpha:\n", "1:1: alpha: unknown field"),
            (
                "alpha_micro: 1\nalpha: 0.05\n",
                "2:1: alpha: expected one of alpha and alpha_micro, found both",
            ),
            (
                "alpha: 0.05\nalpha_micro: 1\n",
                "1:1: alpha: expected one of alpha and alpha_micro, found both",
            ),
            (
                "alpha_micro: 0.05\n",
                "1:14: alpha_micro: expected whole millionths; an amount in units stands as alpha: 0.05",
            ),
            (
                "alpha_micro: 1\nuntil: tomorrow\n",
                "2:8: until: expected a UTC time such as 2026-11-20 or 2026",
            ),
            ("alpha_micro: 1\nbeta: 0.05\n", "2:1: beta: unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
