//! A small subset of JSON Schema: what a value must look like.
//!
//! `type` (a word or a list of them; `integer` is a whole number), `enum`, `const`, `properties`, `required`,
//! `additionalProperties` (true or false), `items`, `minItems`, `maxItems`, `minLength`, `maxLength` (characters),
//! `pattern` (finds a match somewhere), `minimum`, `maximum`, and `title` and `description`, which say nothing to the
//! checker. Each means what JSON Schema 2020-12 says: a word about objects says nothing about a list.

use std::collections::BTreeMap;

use crate::decode::Fields;
use crate::decode::Spot;
use crate::fault::Fault;
use crate::memory::Fuel;
use crate::memory::Spent;
use crate::number::Number;
use crate::pattern::Pattern;
use crate::value::Data;

/// Most nested schemas.
const DEPTH_MAX: usize = 8;
/// Most members of one object, words of one enumeration, and so on.
const WORDS_MAX: usize = 64;
/// Most characters of a name or a title.
const TEXT_MAX: usize = 400;

const MEMBERS: &[&str] = &[
    "type",
    "title",
    "description",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
];

const TYPES: &[(&str, &str)] = &[
    ("null", "null"),
    ("boolean", "boolean"),
    ("integer", "integer"),
    ("number", "number"),
    ("string", "string"),
    ("array", "array"),
    ("object", "object"),
];

/// What a value must look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    document: Data,
    types: Vec<&'static str>,
    choices: Option<Vec<Data>>,
    properties: BTreeMap<String, Shape>,
    required: Vec<String>,
    is_closed: bool,
    items: Option<Box<Shape>>,
    lengths: (Option<u64>, Option<u64>),
    counts: (Option<u64>, Option<u64>),
    pattern: Option<Pattern>,
    range: (Option<Number>, Option<Number>),
}

impl Shape {
    pub(crate) fn decode(spot: &Spot<'_>) -> Result<Self, Fault> {
        Self::decode_at(spot, 0)
    }

    fn decode_at(spot: &Spot<'_>, depth: usize) -> Result<Self, Fault> {
        if depth == DEPTH_MAX {
            return Err(spot.expected("no schema nested more than 8 deep"));
        }
        let fields = spot.fields(MEMBERS)?;
        let types = match fields.get("type") {
            None => Vec::new(),
            Some(spot) if spot.is_list() => {
                let words = spot.list(TYPES.len())?;
                let word = |spot: &Spot<'_>| spot.word(TYPES, "the name of a type");
                words.iter().map(word).collect::<Result<_, _>>()?
            }
            Some(spot) => vec![spot.word(TYPES, "the name of a type")?],
        };
        let mut properties = BTreeMap::new();
        if let Some(spot) = fields.get("properties") {
            for (name, spot) in spot.members()?.into_iter().take(WORDS_MAX) {
                properties.insert(name.to_owned(), Self::decode_at(&spot, depth + 1)?);
            }
        }
        let items = fields.get("items");
        let items = items.map(|spot| Self::decode_at(&spot, depth + 1).map(Box::new));
        let pattern = fields.get("pattern").map(|spot| pattern(&spot));
        for name in ["title", "description"] {
            fields
                .get(name)
                .map(|spot| spot.text(TEXT_MAX))
                .transpose()?;
        }
        let number = |name: &str| fields.get(name).map(|spot| spot.number()).transpose();
        let closed = fields.get("additionalProperties");
        Ok(Self {
            document: spot.data()?,
            types,
            choices: choices(&fields)?,
            properties,
            required: texts(&fields, "required")?,
            is_closed: !closed.map_or(Ok(true), |spot| spot.bool())?,
            items: items.transpose()?,
            lengths: (count(&fields, "minLength")?, count(&fields, "maxLength")?),
            counts: (count(&fields, "minItems")?, count(&fields, "maxItems")?),
            pattern: pattern.transpose()?,
            range: (number("minimum")?, number("maximum")?),
        })
    }

    /// The schema as JSON.
    pub fn document(&self) -> &Data {
        &self.document
    }

    /// Names of the members that it knows, in order of their bytes.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.properties.keys().map(String::as_str)
    }

    /// Where a value first does not fit, as a path below it; `None` where it fits. The path has names of the schema and
    /// places in lists, and no name of the value's own: of a member that the schema does not know, it is the object.
    pub(crate) fn misfit(&self, value: &Data, fuel: &Fuel) -> Result<Option<String>, Spent> {
        fuel.spend(1)?;
        let here = || Ok(Some(String::new()));
        let whole = value.as_number().is_some_and(|of| of.whole().is_some());
        let is_type = |name: &&str| *name == value.kind() || (*name == "integer" && whole);
        if !self.types.is_empty() && !self.types.iter().any(is_type) {
            return here();
        }
        if let Some(choices) = &self.choices {
            fuel.spend(choices.len() + value.nodes())?;
            if !choices.contains(value) {
                return here();
            }
        }
        match value {
            Data::Text(text) => {
                fuel.spend(text.len())?;
                if let Some(pattern) = &self.pattern {
                    fuel.spend_match(pattern, text)?;
                    if !pattern.is_match(text) {
                        return here();
                    }
                }
                if !within(text.chars().count(), self.lengths) {
                    return here();
                }
            }
            Data::Number(number) => {
                let (low, high) = self.range;
                if low.is_some_and(|low| *number < low) || high.is_some_and(|high| *number > high) {
                    return here();
                }
            }
            Data::List(items) => return self.misfit_list(items, fuel),
            Data::Object(members) => return self.misfit_object(members, fuel),
            Data::Null | Data::Bool(_) => {}
        }
        Ok(None)
    }

    fn misfit_list(&self, items: &[Data], fuel: &Fuel) -> Result<Option<String>, Spent> {
        if !within(items.len(), self.counts) {
            return Ok(Some(String::new()));
        }
        let Some(shape) = &self.items else {
            return Ok(None);
        };
        for (at, item) in items.iter().enumerate() {
            if let Some(below) = shape.misfit(item, fuel)? {
                return Ok(Some(format!(".{at}{below}")));
            }
        }
        Ok(None)
    }

    fn misfit_object(
        &self,
        members: &BTreeMap<String, Data>,
        fuel: &Fuel,
    ) -> Result<Option<String>, Spent> {
        if let Some(gone) = self.required.iter().find(|of| !members.contains_key(*of)) {
            return Ok(Some(format!(".{gone}")));
        }
        for (name, member) in members {
            match self.properties.get(name) {
                Some(shape) => {
                    if let Some(below) = shape.misfit(member, fuel)? {
                        return Ok(Some(format!(".{name}{below}")));
                    }
                }
                None if self.is_closed => return Ok(Some(String::new())),
                None => fuel.spend(1)?,
            }
        }
        Ok(None)
    }
}

/// Whether a length is within ends.
fn within(found: usize, (least, most): (Option<u64>, Option<u64>)) -> bool {
    let found = found as u64;
    least.is_none_or(|least| found >= least) && most.is_none_or(|most| found <= most)
}

/// A pattern of a document.
pub(crate) fn pattern(spot: &Spot<'_>) -> Result<Pattern, Fault> {
    Pattern::new(spot.text(TEXT_MAX)?).map_err(|kind| spot.fault(kind))
}

fn count(fields: &Fields<'_>, name: &str) -> Result<Option<u64>, Fault> {
    let count = fields.get(name);
    let count = count.map(|spot| spot.count(0, 1_000_000, "a whole number from 0 to 1000000"));
    count.transpose()
}

fn texts(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, Fault> {
    let Some(spot) = fields.get(name) else {
        return Ok(Vec::new());
    };
    let items = spot.list(WORDS_MAX)?;
    let text = |spot: &Spot<'_>| spot.text(TEXT_MAX).map(str::to_owned);
    items.iter().map(text).collect()
}

/// The values of `enum` and `const` that are left.
fn choices(fields: &Fields<'_>) -> Result<Option<Vec<Data>>, Fault> {
    let of = match fields.get("enum") {
        None => None,
        Some(spot) => {
            let items = spot.list(WORDS_MAX)?;
            let items = items.iter().map(Spot::data);
            Some(items.collect::<Result<Vec<_>, _>>()?)
        }
    };
    let Some(spot) = fields.get("const") else {
        return Ok(of);
    };
    let only = spot.data()?;
    Ok(Some(match of {
        Some(of) if !of.contains(&only) => Vec::new(),
        _ => vec![only],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;

    fn shape(text: &str) -> Result<Shape, Fault> {
        Shape::decode(&Spot::root(&syntax::parse(text, 10_000).unwrap()))
    }

    fn misfit(schema: &str, value: &str) -> Option<String> {
        let value = Data::parse(value, 1000).unwrap();
        shape(schema)
            .unwrap()
            .misfit(&value, &Fuel::full())
            .unwrap()
    }

    #[test]
    fn values_fit_as_json_schema_says() {
        let invoice = r#"{"type":"object","required":["total"],"additionalProperties":false,"properties":{
            "total":{"type":"number","minimum":0},"currency":{"enum":["EUR","USD"]},
            "lines":{"type":"array","minItems":1,"items":{"type":"integer"}},
            "note":{"type":["string","null"],"maxLength":3,"pattern":"^[a-z]*$"}}}"#;
        for fits in [
            r#"{"total":0}"#,
            r#"{"total":1.5,"currency":"EUR","lines":[1,2],"note":null}"#,
            r#"{"total":1,"note":"abc"}"#,
        ] {
            assert_eq!(misfit(invoice, fits), None, "{fits}");
        }
        for (value, at) in [
            ("[]", ""),
            ("{}", ".total"),
            (r#"{"total":-1}"#, ".total"),
            (r#"{"total":1,"x":1}"#, ""),
            (r#"{"total":1,"currency":"GBP"}"#, ".currency"),
            (r#"{"total":1,"lines":[]}"#, ".lines"),
            (r#"{"total":1,"lines":[1,1.5]}"#, ".lines.1"),
            (r#"{"total":1,"note":"abcd"}"#, ".note"),
            (r#"{"total":1,"note":"A"}"#, ".note"),
        ] {
            assert_eq!(misfit(invoice, value).as_deref(), Some(at), "{value}");
        }
        assert_eq!(misfit(r#"{"minLength":3}"#, "[]"), None);
        assert_eq!(misfit(r#"{"const":1}"#, "1.0"), None);
        assert_eq!(
            misfit(r#"{"const":1,"enum":[2]}"#, "1"),
            Some(String::new())
        );
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        for bad in [
            r#"{"$ref":"x"}"#,
            r#"{"type":"text"}"#,
            r#"{"items":[]}"#,
            r#"{"pattern":"("}"#,
            r#"{"minimum":0.1234567}"#,
            r#"{"minItems":-1}"#,
        ] {
            assert!(shape(bad).is_err(), "{bad}");
        }
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(9), "}".repeat(9));
        assert!(shape(&deep).is_err());
    }
}
