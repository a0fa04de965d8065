//! JSON Patch (RFC 6902) of `add`, `remove`, `replace` and `test`, applied with zero fuzz: what an operation names must
//! be there exactly as it says, or nothing is changed at all.

use std::collections::BTreeMap;

use crate::decode::Spot;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::path::index;
use crate::syntax;
use crate::value::Data;

/// Most operations of a patch.
pub const OPERATIONS_MAX: usize = 64;
/// Longest lists whose items are matched one by one; longer ones are replaced.
const MATCHED_MAX: usize = 128;
/// Most bytes of a patch.
pub const BYTES_MAX: usize = 64 * 1024;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub kind: OperationKind,
    /// Where, as names of members and places in lists; `-` is the place after a list's end.
    pub at: Vec<String>,
}

impl Operation {
    /// Does it to a document; `None` and no change where it does not fit.
    pub(crate) fn apply(&self, document: &mut Data) -> Option<()> {
        apply(document, self)
    }
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Puts a value where none was, or before an item of a list.
    Add(Data),
    /// Takes a value away.
    Remove,
    /// Puts a value in the place of another.
    Replace(Data),
    /// Demands that a value stands there.
    Test(Data),
}

/// Operations in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPatch(pub Vec<Operation>);

impl JsonPatch {
    /// Reads a patch.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let node = syntax::parse(text, BYTES_MAX)?;
        let operations = Spot::root(&node).list(OPERATIONS_MAX)?;
        let operations = operations.iter().map(operation);
        Ok(Self(operations.collect::<Result<_, _>>()?))
    }

    /// The patch as JSON.
    pub fn document(&self) -> Data {
        let operation = |of: &Operation| {
            let at = ("path", Data::Text(pointer(&of.at)));
            match &of.kind {
                OperationKind::Add(value) => {
                    Data::object([("op", "add".into()), at, ("value", value.clone())])
                }
                OperationKind::Remove => Data::object([("op", "remove".into()), at]),
                OperationKind::Replace(value) => {
                    Data::object([("op", "replace".into()), at, ("value", value.clone())])
                }
                OperationKind::Test(value) => {
                    Data::object([("op", "test".into()), at, ("value", value.clone())])
                }
            }
        };
        Data::List(self.0.iter().map(operation).collect())
    }

    /// The document after all operations.
    ///
    /// # Errors
    /// [`FaultKind::NothingThere`] with the place of the first operation that does not fit.
    pub fn apply(&self, document: &Data) -> Result<Data, FaultKind> {
        let mut after = document.clone();
        for operation in &self.0 {
            apply(&mut after, operation)
                .ok_or_else(|| FaultKind::NothingThere(pointer(&operation.at)))?;
        }
        Ok(after)
    }

    /// A patch that makes `b` of `a`. Items of lists are matched by their member `id`, or by being the same.
    pub fn between(a: &Data, b: &Data) -> Self {
        let mut patch = Self::default();
        differ(a, b, &mut Vec::new(), &mut patch.0);
        patch
    }
}

fn operation(spot: &Spot<'_>) -> Result<Operation, Fault> {
    let op = spot.member("op")?;
    let words = &[("add", 0), ("remove", 1), ("replace", 2), ("test", 3)];
    let op = op.word(words, "add, remove, replace or test")?;
    let fields = match op {
        1 => spot.fields(&["op", "path"])?,
        _ => spot.fields(&["op", "path", "value"])?,
    };
    let path = fields.need("path")?;
    let Data::Text(text) = path.data()? else {
        return Err(path.expected("a pointer such as /steps/0/prompt/user"));
    };
    let at = segments(&text);
    let at = at.ok_or_else(|| path.expected("a pointer such as /steps/0/prompt/user"))?;
    let kind = match op {
        0 => OperationKind::Add(fields.need("value")?.data()?),
        1 => OperationKind::Remove,
        2 => OperationKind::Replace(fields.need("value")?.data()?),
        _ => OperationKind::Test(fields.need("value")?.data()?),
    };
    Ok(Operation { kind, at })
}

/// Segments of a JSON Pointer (RFC 6901).
fn segments(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let parts = text.strip_prefix('/')?.split('/');
    let part = |part: &str| {
        let mut out = String::new();
        let mut letters = part.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '~' => out.push(match letters.next()? {
                    '0' => '~',
                    '1' => '/',
                    _ => return None,
                }),
                letter => out.push(letter),
            }
        }
        Some(out)
    };
    parts.map(part).collect()
}

/// A JSON Pointer of segments.
pub fn pointer(at: &[String]) -> String {
    let segment = |part: &String| format!("/{}", part.replace('~', "~0").replace('/', "~1"));
    at.iter().map(segment).collect()
}

/// What stands at segments.
pub(crate) fn find<'a>(document: &'a Data, at: &[String]) -> Option<&'a Data> {
    at.iter()
        .try_fold(document, |within, segment| match within {
            Data::Object(members) => members.get(segment),
            Data::List(items) => items.get(index(segment)?),
            _ => None,
        })
}

fn apply(document: &mut Data, operation: &Operation) -> Option<()> {
    if let OperationKind::Test(value) = &operation.kind {
        return (find(document, &operation.at)? == value).then_some(());
    }
    let Some((last, before)) = operation.at.split_last() else {
        return match &operation.kind {
            OperationKind::Add(value) | OperationKind::Replace(value) => {
                *document = value.clone();
                Some(())
            }
            _ => None,
        };
    };
    let mut within = document;
    for segment in before {
        within = match within {
            Data::Object(members) => members.get_mut(segment)?,
            Data::List(items) => items.get_mut(index(segment)?)?,
            _ => return None,
        };
    }
    match within {
        Data::Object(members) => in_object(members, last, &operation.kind),
        Data::List(items) => in_list(items, last, &operation.kind),
        _ => None,
    }
}

fn in_object(members: &mut BTreeMap<String, Data>, name: &str, kind: &OperationKind) -> Option<()> {
    match kind {
        OperationKind::Add(value) => {
            members.insert(name.to_owned(), value.clone());
        }
        OperationKind::Replace(value) => *members.get_mut(name)? = value.clone(),
        _ => {
            members.remove(name)?;
        }
    }
    Some(())
}

fn in_list(items: &mut Vec<Data>, segment: &str, kind: &OperationKind) -> Option<()> {
    let at = match (segment, kind) {
        ("-", OperationKind::Add(_)) => items.len(),
        _ => index(segment)?,
    };
    match kind {
        OperationKind::Add(value) if at <= items.len() => items.insert(at, value.clone()),
        OperationKind::Replace(value) => *items.get_mut(at)? = value.clone(),
        OperationKind::Remove if at < items.len() => {
            items.remove(at);
        }
        _ => return None,
    }
    Some(())
}

fn differ(a: &Data, b: &Data, at: &mut Vec<String>, out: &mut Vec<Operation>) {
    if a == b {
        return;
    }
    match (a, b) {
        (Data::Object(a), Data::Object(b)) => {
            for name in a.keys().filter(|name| !b.contains_key(*name)) {
                at.push(name.clone());
                out.push(Operation {
                    kind: OperationKind::Remove,
                    at: at.clone(),
                });
                at.pop();
            }
            for (name, after) in b {
                at.push(name.clone());
                match a.get(name) {
                    Some(before) => differ(before, after, at, out),
                    None => out.push(Operation {
                        kind: OperationKind::Add(after.clone()),
                        at: at.clone(),
                    }),
                }
                at.pop();
            }
        }
        (Data::List(a), Data::List(b)) if a.len().max(b.len()) <= MATCHED_MAX => {
            differ_lists(a, b, at, out);
        }
        _ => out.push(Operation {
            kind: OperationKind::Replace(b.clone()),
            at: at.clone(),
        }),
    }
}

/// What an item of a list is known by.
fn key(item: &Data) -> &Data {
    item.member("id").unwrap_or(item)
}

fn differ_lists(a: &[Data], b: &[Data], at: &mut Vec<String>, out: &mut Vec<Operation>) {
    // Lengths of the longest common subsequences of what is left from each pair of places on.
    let mut common = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if key(&a[i]) == key(&b[j]) {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        // What stands before this place is done, so the place counts in the list as it becomes.
        at.push(j.to_string());
        if i < a.len() && j < b.len() && key(&a[i]) == key(&b[j]) {
            differ(&a[i], &b[j], at, out);
            i += 1;
            j += 1;
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            out.push(Operation {
                kind: OperationKind::Remove,
                at: at.clone(),
            });
            i += 1;
        } else {
            out.push(Operation {
                kind: OperationKind::Add(b[j].clone()),
                at: at.clone(),
            });
            j += 1;
        }
        at.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(document: &str, patch: &str) -> Option<String> {
        let document = Data::parse(document, 10_000).unwrap();
        let patch = JsonPatch::parse(patch).unwrap();
        assert_eq!(
            JsonPatch::parse(&patch.document().to_string()),
            Ok(patch.clone())
        );
        Some(patch.apply(&document).ok()?.to_string())
    }

    #[test]
    fn operations_fit_or_nothing_changes() {
        // source: RFC 6902, appendix A
        let cases = [
            (
                r#"{"foo":"bar"}"#,
                r#"[{"op":"add","path":"/baz","value":"qux"}]"#,
                Some(r#"{"baz":"qux","foo":"bar"}"#),
            ),
            (
                r#"{"foo":["bar","baz"]}"#,
                r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
                Some(r#"{"foo":["bar","qux","baz"]}"#),
            ),
            (
                r#"{"baz":"qux","foo":"bar"}"#,
                r#"[{"op":"remove","path":"/baz"}]"#,
                Some(r#"{"foo":"bar"}"#),
            ),
            (
                r#"{"foo":["bar","qux","baz"]}"#,
                r#"[{"op":"remove","path":"/foo/1"}]"#,
                Some(r#"{"foo":["bar","baz"]}"#),
            ),
            (
                r#"{"baz":"qux"}"#,
                r#"[{"op":"replace","path":"/baz","value":"boo"}]"#,
                Some(r#"{"baz":"boo"}"#),
            ),
            (
                r#"{"baz":"qux"}"#,
                r#"[{"op":"test","path":"/baz","value":"bar"}]"#,
                None,
            ),
            (
                r#"{"foo":"bar"}"#,
                r#"[{"op":"add","path":"/baz/bat","value":"qux"}]"#,
                None,
            ),
            (
                r#"{"/":9,"~1":10}"#,
                r#"[{"op":"test","path":"/~01","value":10}]"#,
                Some(r#"{"/":9,"~1":10}"#),
            ),
            (
                r#"{"foo":["bar"]}"#,
                r#"[{"op":"add","path":"/foo/-","value":["abc"]}]"#,
                Some(r#"{"foo":["bar",["abc"]]}"#),
            ),
            ("[1]", r#"[{"op":"add","path":"/2","value":1}]"#, None),
            ("[1]", r#"[{"op":"replace","path":"/-","value":1}]"#, None),
            ("[1]", r#"[{"op":"remove","path":""}]"#, None),
            (
                "[1]",
                r#"[{"op":"replace","path":"","value":2}]"#,
                Some("2"),
            ),
            ("[1,2]", r#"[{"op":"remove","path":"/00"}]"#, None),
        ];
        for (document, patch, after) in cases {
            assert_eq!(
                applied(document, patch).as_deref(),
                after,
                "{patch} on {document}"
            );
        }
    }

    #[test]
    fn other_operations_are_refused() {
        for bad in [
            r#"[{"op":"move","path":"/a","from":"/b"}]"#,
            r#"[{"op":"add","path":"a","value":1}]"#,
            r#"[{"op":"add","path":"/a~2","value":1}]"#,
            r#"[{"op":"remove","path":"/a","value":1}]"#,
            "{}",
        ] {
            assert!(JsonPatch::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_difference_makes_one_of_the_other() {
        let texts = [
            "1",
            "[]",
            "[1,2,3]",
            "[3,1]",
            r#"{"steps":[{"id":"a","x":1},{"id":"b","x":2},{"id":"c"}]}"#,
            r#"{"steps":[{"id":"b","x":3},{"id":"d"},{"id":"c"}]}"#,
            r#"{"steps":[{"id":"d","a/b":{"~":1}}],"more":null}"#,
        ];
        for a in texts {
            for b in texts {
                let (a, b) = (Data::parse(a, 999).unwrap(), Data::parse(b, 999).unwrap());
                let patch = JsonPatch::between(&a, &b);
                assert_eq!(
                    patch.apply(&a).as_ref(),
                    Ok(&b),
                    "{a} -> {b}: {}",
                    patch.document()
                );
                assert_eq!(patch.0.is_empty(), a == b);
            }
        }
        let moved = JsonPatch::between(
            &Data::parse(texts[4], 999).unwrap(),
            &Data::parse(texts[5], 999).unwrap(),
        );
        assert_eq!(moved.0.len(), 3, "{}", moved.document());
    }
}
