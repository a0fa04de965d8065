//! What the reader of JSON and YAML says of a text, in words for whoever wrote it: the field, what was expected, what stands
//! there.

/// A message with every phrase of the reader said plainly. What is no phrase of it stays as it is.
pub(in crate::cli) fn plain(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((at, said, len)) = first_phrase(rest) {
        out.push_str(&rest[..at]);
        out.push_str(&said);
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    out
}

/// The phrase that stands first: where, in plain words, and how long it was.
fn first_phrase(text: &str) -> Option<(usize, String, usize)> {
    let found = READERS.iter().filter_map(|(begins, read)| {
        let at = text.find(begins)?;
        let (said, len) = read(&text[at..])?;
        Some((at, said, len))
    });
    found.min_by_key(|(at, _, len)| (*at, usize::MAX - len))
}

/// Reads a phrase at the beginning of a text: its plain words, and how long it was.
type PhraseReader = fn(&str) -> Option<(String, usize)>;

/// How a phrase begins, and what reads it.
const READERS: &[(&str, PhraseReader)] = &[
    ("missing field `", missing),
    ("duplicate field `", doubled),
    ("unknown field `", unknown_field),
    ("unknown variant `", unknown_variant),
    ("invalid type: ", wrong),
    ("invalid value: ", wrong),
    ("invalid length ", wrong_length),
    (" at line ", place),
    ("data did not match any variant of untagged enum ", no_form),
    ("EOF while parsing ", cut_short),
    ("expected value", |text| {
        whole(text, "expected value", "expected a JSON value")
    }),
    ("expected `", expected_mark),
    ("expected ident", |text| {
        whole(text, "expected ident", "expected true, false or null")
    }),
    ("trailing characters", |text| {
        whole(
            text,
            "trailing characters",
            "expected one value, found more after it",
        )
    }),
    ("trailing comma", |text| {
        whole(
            text,
            "trailing comma",
            "expected another member after the comma",
        )
    }),
    ("key must be a string", |text| {
        whole(
            text,
            "key must be a string",
            "expected the name of a field in double quotes",
        )
    }),
    (
        "control character (\\u0000-\\u001F) found while parsing a string",
        |text| {
            let phrase = "control character (\\u0000-\\u001F) found while parsing a string";
            whole(
                text,
                phrase,
                "expected no line break or other control character within a text",
            )
        },
    ),
    ("invalid escape", |text| {
        whole(
            text,
            "invalid escape",
            "expected a character that may follow a backslash",
        )
    }),
    ("invalid number", |text| {
        whole(text, "invalid number", "expected a number such as 0.5")
    }),
    ("number out of range", |text| {
        whole(text, "number out of range", "expected a smaller number")
    }),
    ("lone leading surrogate in hex escape", |text| {
        let phrase = "lone leading surrogate in hex escape";
        whole(text, phrase, "expected two halves of a character")
    }),
    ("unexpected end of hex escape", |text| {
        let phrase = "unexpected end of hex escape";
        whole(text, phrase, "expected four hex digits after \\u")
    }),
    ("recursion limit exceeded", |text| {
        whole(
            text,
            "recursion limit exceeded",
            "expected fewer levels within one another",
        )
    }),
    ("invalid digit found in string", |text| {
        whole(
            text,
            "invalid digit found in string",
            "expected a whole number",
        )
    }),
];

fn whole(text: &str, phrase: &str, said: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix(phrase)?;
    // Part of a longer word, it is somebody else's.
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
    ends.then(|| (said.to_owned(), phrase.len()))
}

/// What stands in the first pair of backticks, and where it ends.
fn ticked(text: &str) -> Option<(&str, usize)> {
    let from = text.find('`')? + 1;
    let to = from + text[from..].find('`')?;
    Some((&text[from..to], to + 1))
}

fn missing(text: &str) -> Option<(String, usize)> {
    let (field, end) = ticked(text)?;
    Some((format!("expected the field {field}, found none"), end))
}

fn doubled(text: &str) -> Option<(String, usize)> {
    let (field, end) = ticked(text)?;
    Some((
        format!("expected the field {field} once, found it again"),
        end,
    ))
}

/// The names after `, expected `, and where they end.
fn names(text: &str) -> (Vec<&str>, usize) {
    let Some(mut rest) = text.strip_prefix(", expected ") else {
        return (Vec::new(), 0);
    };
    rest = rest.strip_prefix("one of ").unwrap_or(rest);
    let mut names = Vec::new();
    while rest.starts_with('`') {
        let Some((name, end)) = ticked(rest) else {
            break;
        };
        names.push(name);
        rest = &rest[end..];
        let next = rest
            .strip_prefix(", ")
            .or_else(|| rest.strip_prefix(" or "));
        match next {
            Some(next) if next.starts_with('`') => rest = next,
            _ => break,
        }
    }
    (names, text.len() - rest.len())
}

fn unknown(text: &str, what: &str, none: &str) -> Option<(String, usize)> {
    let (found, end) = ticked(text)?;
    if let Some(rest) = text[end..].strip_prefix(none) {
        let said = format!("expected no {what}, found {found}");
        return Some((said, text.len() - rest.len()));
    }
    let (names, more) = names(&text[end..]);
    let said = match names.as_slice() {
        [] => format!("found {found}, which is no {what} here"),
        [one] => format!("expected {one}, found {found}"),
        names => format!("expected one of {}, found {found}", names.join(", ")),
    };
    Some((said, end + more))
}

fn unknown_field(text: &str) -> Option<(String, usize)> {
    unknown(text, "field", ", there are no fields")
}

fn unknown_variant(text: &str) -> Option<(String, usize)> {
    unknown(text, "choice", ", there are no variants")
}

/// What the reader would have taken, as people call it.
fn expected_thing(text: &str) -> String {
    let known = [
        ("a string", "a text"),
        ("a borrowed string", "a text"),
        ("str", "a text"),
        ("a character", "one character"),
        ("a boolean", "true or false"),
        ("a sequence", "a list"),
        ("a map", "an object with fields"),
        ("unit", "null"),
        ("f64", "a number"),
        ("f32", "a number"),
        ("any valid JSON value", "a JSON value"),
        ("any value", "a JSON value"),
        ("option", "a value or null"),
    ];
    if let Some((_, said)) = known.iter().find(|(of, _)| *of == text) {
        return (*said).to_owned();
    }
    let is_integer = |of: &str| {
        let digits = of.strip_prefix(['u', 'i']);
        digits.is_some_and(|digits| ["8", "16", "32", "64", "128", "size"].contains(&digits))
    };
    if is_integer(text) || text.starts_with("a nonzero") {
        return "a whole number".to_owned();
    }
    let begins = |of: &str| text.starts_with(of);
    if begins("struct ") || begins("internally tagged enum") || begins("adjacently tagged enum") {
        return "an object with fields".to_owned();
    }
    if begins("tuple ") || begins("a tuple of ") || begins("an array of ") {
        return "a list".to_owned();
    }
    if begins("enum ") || begins("variant ") || begins("variant identifier") {
        return "one of its choices".to_owned();
    }
    if begins("field identifier") {
        return "the name of a field".to_owned();
    }
    text.to_owned()
}

/// What stands there, as people call it.
fn found_thing(text: &str) -> String {
    let after = |of: &str| text.strip_prefix(of).map(|rest| rest.replace('`', ""));
    if let Some(number) = after("integer ").or_else(|| after("floating point ")) {
        return format!("the number {}", number.trim());
    }
    if let Some(boolean) = after("boolean ") {
        return boolean;
    }
    if let Some(quoted) = text.strip_prefix("string ") {
        return format!("the text {quoted}");
    }
    match text {
        "sequence" => "a list".to_owned(),
        "map" => "an object".to_owned(),
        "null" | "unit value" | "Option value" => "null".to_owned(),
        other => other.to_owned(),
    }
}

/// Where `, expected ` stands outside of the quotes of what was found.
fn between(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted && text[at..].starts_with(", expected ") => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where what was expected ends: at the place, at the next part of the message, or with the line.
fn end_of_expected(text: &str) -> usize {
    let ends = [" at line ", "; ", "\n"];
    let found = ends.iter().filter_map(|end| text.find(end));
    found.min().unwrap_or(text.len())
}

fn wrong(text: &str) -> Option<(String, usize)> {
    let from = text.find(": ")? + 2;
    let middle = from + between(&text[from..])?;
    let after = middle + ", expected ".len();
    let end = after + end_of_expected(&text[after..]);
    let said = format!(
        "expected {}, found {}",
        expected_thing(&text[after..end]),
        found_thing(&text[from..middle])
    );
    Some((said, end))
}

fn wrong_length(text: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix("invalid length ")?;
    let count = rest.split(',').next()?;
    count
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(())?;
    let after = text.find(", expected ")? + ", expected ".len();
    let end = after + end_of_expected(&text[after..]);
    let expected = expected_thing(&text[after..end]);
    Some((format!("expected {expected}, found a list of {count}"), end))
}

fn place(text: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix(" at line ")?;
    let (line, rest) = number(rest)?;
    let rest = rest.strip_prefix(" column ")?;
    let (column, rest) = number(rest)?;
    let said = match column {
        "0" => format!(" (line {line})"),
        column => format!(" (line {line}, column {column})"),
    };
    Some((said, text.len() - rest.len()))
}

/// The digits that a text begins with, and the rest.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn no_form(text: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix("data did not match any variant of untagged enum ")?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let said = "expected one of the forms that may stand here, found another";
    Some((said.to_owned(), text.len() - rest.len() + end))
}

fn cut_short(text: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix("EOF while parsing ")?;
    let parts = [
        (
            "an object",
            "expected the end of an object, a }, found the end of the text",
        ),
        (
            "a list",
            "expected the end of a list, a ], found the end of the text",
        ),
        (
            "a string",
            "expected the closing quote of a text, found the end",
        ),
        (
            "a value",
            "expected a JSON value, found the end of the text",
        ),
    ];
    let (of, said) = parts.iter().find(|(of, _)| rest.starts_with(of))?;
    Some(((*said).to_owned(), text.len() - rest.len() + of.len()))
}

fn expected_mark(text: &str) -> Option<(String, usize)> {
    let marks = [
        (
            "expected `,` or `}`",
            "expected a comma or the end of the object, a }",
        ),
        (
            "expected `,` or `]`",
            "expected a comma or the end of the list, a ]",
        ),
        ("expected `:`", "expected a colon after the name of a field"),
        ("expected `\"`", "expected a text in double quotes"),
    ];
    let (mark, said) = marks.iter().find(|(mark, _)| text.starts_with(mark))?;
    Some(((*said).to_owned(), mark.len()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read, and never looked at")]
    struct Row {
        name: String,
        count: u32,
        share: Option<f64>,
        kind: Option<Choice>,
        list: Option<Vec<bool>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        One,
        Two,
    }

    fn said(text: &str) -> String {
        plain(&serde_json::from_str::<Row>(text).unwrap_err().to_string())
    }

    /// What a text of JSON is refused with.
    const PHRASES: &[(&str, &str)] = &[
        (
            "{}",
            "expected the field name, found none (line 1, column 2)",
        ),
        (
            "{\"name\":\"a\",\"name\":\"b\"}",
            "expected the field name once, found it again (line 1, column 18)",
        ),
        (
            "{\"x\":1}",
            "expected one of name, count, share, kind, list, found x (line 1, column 4)",
        ),
        (
            "{\"name\":5}",
            "expected a text, found the number 5 (line 1, column 9)",
        ),
        (
            "{\"count\":\"5, expected\"}",
            "expected a whole number, found the text \"5, expected\" (line 1, column 22)",
        ),
        (
            "{\"count\":-1}",
            "expected a whole number, found the number -1 (line 1, column 11)",
        ),
        (
            "{\"share\":true}",
            "expected a number, found true (line 1, column 13)",
        ),
        (
            "{\"kind\":\"three\"}",
            "expected one of one, two, found three (line 1, column 15)",
        ),
        (
            "{\"list\":[null]}",
            "expected true or false, found null (line 1, column 13)",
        ),
        (
            "{\"list\":{}}",
            "expected a list, found an object (line 1, column 8)",
        ),
        (
            "[]",
            "expected an object with fields, found a list of 0 (line 1, column 2)",
        ),
        (
            "\"text\"",
            "expected an object with fields, found the text \"text\" (line 1, column 6)",
        ),
        (
            "",
            "expected a JSON value, found the end of the text (line 1)",
        ),
        (
            "{",
            "expected the end of an object, a }, found the end of the text (line 1, column 1)",
        ),
        (
            "{\"name\":\"a",
            "expected the closing quote of a text, found the end (line 1, column 10)",
        ),
        (
            "{\"name\" 1}",
            "expected a colon after the name of a field (line 1, column 9)",
        ),
        (
            "{\"name\":\"a\" 1}",
            "expected a comma or the end of the object, a } (line 1, column 13)",
        ),
        (
            "{\"name\":\"a\",}",
            "expected another member after the comma (line 1, column 13)",
        ),
        (
            "{1:2}",
            "expected the name of a field in double quotes (line 1, column 2)",
        ),
        ("x", "expected a JSON value (line 1, column 1)"),
    ];

    #[test]
    fn every_phrase_of_the_reader_is_said_plainly() {
        for (text, expected) in PHRASES {
            assert_eq!(said(text), *expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_phrase_stays() {
        for text in [
            "bad.jsonl:2: candidate: expected values from 0 to 1",
            "expected 5, found 6 at line",
            "`x`",
        ] {
            assert_eq!(plain(text), text);
        }
    }
}
