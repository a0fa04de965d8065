//! Fields of evidence that a program returns beside its score: which there are, and what each holds. A field that is named
//! as a feature of the evidence record takes the place of what the extractor found; rubrics read it from there.

use std::collections::BTreeMap;
use std::fmt;

use clover_num::Count;
use clover_rubric::evidence;
use clover_rubric::evidence::Evidence;
use clover_rubric::evidence::Feature;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::judge::JudgeError;

/// Fields of a schema, at most.
const FIELDS_MAX: usize = 100;
/// Characters of a name, at most.
const NAME_MAX: usize = 64;
/// Characters of a text, at most.
const TEXT_MAX: usize = 10_000;

/// Evidence as a program returned it.
pub type ReturnedEvidence = Map<String, Value>;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Flag,
    Count,
    Number,
    Text,
}

impl Holds {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Flag, "bool"),
        (Self::Count, "count"),
        (Self::Number, "number"),
        (Self::Text, "text"),
    ];

    fn word(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(of, _)| *of == self);
        found.map_or("", |(_, word)| word)
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Flag => value.is_boolean(),
            Self::Count => value.as_u64().and_then(Count::new).is_some(),
            Self::Number => value.is_number(),
            Self::Text => value
                .as_str()
                .is_some_and(|text| text.chars().count() <= TEXT_MAX),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Count => "a whole number from 0",
            Self::Number => "a number",
            Self::Text => "a text of at most 10,000 characters",
        }
    }
}

/// What a field holds, and whether it may be missing: `bool`, `count`, `number` or `text`, with `?` where it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldType {
    holds: Holds,
    is_optional: bool,
}

impl TryFrom<String> for FieldType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let word = text.strip_suffix('?');
        let is_optional = word.is_some();
        let word = word.unwrap_or(&text);
        let mut all = Holds::ALL.into_iter();
        let found = all.find(|(_, name)| *name == word);
        let (holds, _) = found.ok_or_else(|| {
            format!("expected bool, count, number or text, with ? where it may be missing, found {text:?}")
        })?;
        Ok(Self { holds, is_optional })
    }
}

impl From<FieldType> for String {
    fn from(of: FieldType) -> Self {
        of.to_string()
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_optional { "?" } else { "" };
        write!(f, "{}{end}", self.holds.word())
    }
}

/// The schema as its file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    fields: BTreeMap<String, FieldType>,
    schema: String,
}

/// The fields of a schema that has a name: anybody can name one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SchemaFile")]
pub struct EvidenceFields {
    fields: BTreeMap<String, FieldType>,
    schema: String,
}

/// Letters, digits and what is between them.
fn is_name(text: &str, also: &[char]) -> bool {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || also.contains(&c);
    let first = text.chars().next();
    (1..=NAME_MAX).contains(&text.len())
        && text.chars().all(is_good)
        && first.is_some_and(|c| c.is_ascii_lowercase())
}

/// What a field has to hold where rubrics read it.
fn of_feature(feature: Feature) -> FieldType {
    let holds = match feature {
        Feature::RiskTerms => Holds::Count,
        _ => Holds::Flag,
    };
    FieldType {
        holds,
        is_optional: feature == Feature::FactualError,
    }
}

impl TryFrom<SchemaFile> for EvidenceFields {
    type Error = String;

    fn try_from(file: SchemaFile) -> Result<Self, Self::Error> {
        let SchemaFile { fields, schema } = file;
        if !is_name(&schema, &['-', '/', '.']) {
            return Err(format!(
                "evidence.schema: expected a name such as acme/1, found {schema:?}"
            ));
        }
        if !(1..=FIELDS_MAX).contains(&fields.len()) {
            let count = fields.len();
            return Err(format!(
                "evidence.fields: expected 1 to {FIELDS_MAX} fields, found {count}"
            ));
        }
        for (name, of) in &fields {
            if !is_name(name, &['_']) {
                return Err(format!(
                    "evidence.fields: expected a name such as cites_law, found {name:?}"
                ));
            }
            let expected = Feature::named(name).map(of_feature);
            if let Some(expected) = expected.filter(|expected| expected.holds != of.holds) {
                return Err(format!(
                    "evidence.fields.{name}: rubrics read it; expected {expected}, found {of}"
                ));
            }
        }
        Ok(Self { fields, schema })
    }
}

impl EvidenceFields {
    /// Version of the evidence record of a judge that returns these fields.
    pub fn version(&self) -> String {
        format!("{}+{}", evidence::SCHEMA, self.schema)
    }

    /// Reads what a program returned with the answer to an ask.
    ///
    /// # Errors
    /// [`JudgeError::Evidence`], at the first field in the order of names.
    pub fn read(&self, ask: u64, said: Option<Value>) -> Result<ReturnedEvidence, JudgeError> {
        let fault = |field: &str, expected: &str, found: String| JudgeError::Evidence {
            ask,
            field: format!("evidence{field}"),
            expected: expected.to_owned(),
            found,
        };
        let said = match said {
            Some(Value::Object(said)) => said,
            None => return Err(fault("", "an object", "none".to_owned())),
            Some(other) => return Err(fault("", "an object", shown(&other))),
        };
        if let Some((name, value)) = said
            .iter()
            .find(|(name, _)| !self.fields.contains_key(*name))
        {
            let known: Vec<&str> = self.fields.keys().map(String::as_str).collect();
            let expected = format!("only fields of {}: {}", self.schema, known.join(", "));
            return Err(fault(&format!(".{name}"), &expected, shown(value)));
        }
        for (name, of) in &self.fields {
            let value = said.get(name).filter(|value| !value.is_null());
            let is_good = value.map_or(of.is_optional, |value| of.holds.takes(value));
            if !is_good {
                let found = value.map_or_else(|| "none".to_owned(), shown);
                return Err(fault(&format!(".{name}"), of.holds.expected(), found));
            }
        }
        Ok(said)
    }

    /// A record with the features that another one of the same text has from the program.
    pub fn copied(&self, mut to: Evidence, from: &Evidence) -> Evidence {
        for name in self.fields.keys() {
            match Feature::named(name) {
                Some(Feature::RiskTerms) => to.risk_terms = from.risk_terms,
                Some(feature) => set(&mut to, feature, from.feature(feature)),
                None => {}
            }
        }
        to
    }
}

/// A value in an error.
fn shown(value: &Value) -> String {
    const SHOWN: usize = 80;
    value.to_string().chars().take(SHOWN).collect()
}

/// A record with the features that a program returned in the place of what the extractor found. A feature that the program
/// left out is as the extractor has it.
pub fn merged(mut evidence: Evidence, said: &ReturnedEvidence) -> Evidence {
    for feature in Feature::ALL {
        match said.get(feature.name()) {
            Some(Value::Bool(found)) => set(&mut evidence, feature, Some(*found)),
            Some(Value::Number(found)) if feature == Feature::RiskTerms => {
                let count = found.as_u64().and_then(Count::new);
                evidence.risk_terms = count.unwrap_or(evidence.risk_terms);
            }
            _ => {}
        }
    }
    evidence
}

/// Sets a feature that is true or false; only one of them may be unknown.
fn set(evidence: &mut Evidence, feature: Feature, found: Option<bool>) {
    if feature == Feature::FactualError {
        evidence.factual_error = found;
        return;
    }
    let Some(found) = found else {
        return;
    };
    match feature {
        Feature::Concise => evidence.concise = found,
        Feature::Confident => evidence.confident = found,
        Feature::Contradiction => evidence.contradiction = found,
        Feature::CounterPosition => evidence.counter_position = found,
        Feature::CriticalInfoMissing => evidence.critical_info_missing = found,
        Feature::NeedsEvidence => evidence.needs_evidence = found,
        Feature::Stakeholders => evidence.stakeholders = found,
        Feature::FactualError | Feature::RiskTerms => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> EvidenceFields {
        let file = json!({"schema": "acme/1", "fields": {
            "factual_error": "bool?", "quote": "text", "risk_terms": "count", "share": "number?",
        }});
        serde_json::from_value(file).unwrap()
    }

    #[test]
    fn a_schema_names_fields_of_its_own() {
        assert_eq!(fields().version(), "evidence/1+acme/1");
        for (file, expected) in [
            (
                json!({"schema": "Acme 1", "fields": {"a": "bool"}}),
                "evidence.schema: expected a name",
            ),
            (
                json!({"schema": "acme/1", "fields": {}}),
                "expected 1 to 100 fields",
            ),
            (
                json!({"schema": "acme/1", "fields": {"a b": "bool"}}),
                "expected a name such as cites_law",
            ),
            (
                json!({"schema": "acme/1", "fields": {"a": "flag"}}),
                "expected bool, count, number or text",
            ),
            (
                json!({"schema": "acme/1", "fields": {"concise": "text"}}),
                "rubrics read it; expected bool, found text",
            ),
        ] {
            let error = serde_json::from_value::<EvidenceFields>(file.clone()).unwrap_err();
            assert!(error.to_string().contains(expected), "{file}: {error}");
        }
    }

    #[test]
    fn what_a_program_returns_is_held_to_the_schema_by_field() {
        let good = json!({"quote": "it is so", "risk_terms": 3});
        assert_eq!(
            fields().read(1, Some(good.clone())),
            Ok(good.as_object().unwrap().clone())
        );
        for (said, expected) in [
            (
                None,
                "the answer to ask 7: evidence: expected an object, found none",
            ),
            (Some(json!(3)), "evidence: expected an object, found 3"),
            (
                Some(json!({"quote": 3, "risk_terms": 3})),
                "evidence.quote: expected a text of at most 10,000 characters, found 3",
            ),
            (
                Some(json!({"quote": "a"})),
                "evidence.risk_terms: expected a whole number from 0, found none",
            ),
            (
                Some(json!({"quote": "a", "risk_terms": -1})),
                "evidence.risk_terms: expected a whole number from 0, found -1",
            ),
            (
                Some(json!({"quote": "a", "risk_terms": 1, "tone": 1})),
                "evidence.tone: expected only fields of acme/1: factual_error, quote",
            ),
            (
                Some(json!({"quote": "a", "risk_terms": 1, "factual_error": "no"})),
                "evidence.factual_error: expected true or false, found \"no\"",
            ),
        ] {
            let error = fields().read(7, said.clone()).unwrap_err().to_string();
            assert!(error.contains(expected), "{said:?}: {error}");
        }
    }

    #[test]
    fn features_take_the_place_of_what_the_extractor_found() {
        let said = json!({"factual_error": true, "quote": "it is so", "risk_terms": 3});
        let found = Evidence {
            concise: true,
            ..Evidence::default()
        };
        let merged = merged(found.clone(), said.as_object().unwrap());
        let expected = Evidence {
            factual_error: Some(true),
            risk_terms: Count::new(3).unwrap(),
            ..found.clone()
        };
        assert_eq!(merged, expected);
        assert_eq!(fields().copied(found, &merged), expected);
        for feature in Feature::ALL {
            let mut evidence = Evidence::default();
            set(&mut evidence, feature, Some(true));
            let is_flag = feature != Feature::RiskTerms;
            assert_eq!(evidence.feature(feature), Some(is_flag), "{feature:?}");
        }
    }
}
