//! Expressions that are true or false of what a run holds.
//!
//! Each says of what it names that it is there and so: a comparison with something that is not there, or of two kinds,
//! is false, and so is its opposite. `not` turns a truth value over, and nothing else does.

use std::cmp::Ordering;

use crate::decode::Spot;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::memory::Memory;
use crate::memory::Spent;
use crate::number::Number;
use crate::path::Path;
use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::shape;
use crate::shape::Shape;
use crate::value::Data;

/// Most nested expressions.
pub(crate) const DEPTH_MAX: usize = 8;
/// Most members of one `and` or `or`.
const TERMS_MAX: usize = 16;
/// Most characters of a name.
pub(crate) const NAME_MAX: usize = 400;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All are true; of none, true.
    And(Vec<Expr>),
    /// At least one is true; of none, false.
    Or(Vec<Expr>),
    /// It is false.
    Not(Box<Expr>),
    /// Two values compare so.
    Compare(Comparison, Operand, Operand),
    /// The first is an item of the second (a list), a part of it (a text), or the name of a member (an object).
    In(Operand, Operand),
    /// A text in which a pattern is found.
    Regex(Path, Pattern),
    /// A value that looks so.
    Schema(Path, Box<Shape>),
    /// Something stands there, `null` included.
    Exists(Path),
    /// A check was true.
    Flag(String),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both are there and the same.
    Eq,
    /// Both are there and differ.
    Ne,
    /// Two numbers, or two texts by their code points: less.
    Lt,
    /// Less or the same.
    Le,
    /// Greater.
    Gt,
    /// Greater or the same.
    Ge,
}

/// A value of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// What stands at a path.
    Path(Path),
    /// Itself.
    Const(Data),
    /// Characters of a text, items of a list, members of an object.
    Len(Path),
}

#[derive(Clone, Copy)]
enum Op {
    And,
    Or,
    Not,
    Compare(Comparison),
    In,
    Regex,
    Schema,
    Exists,
    Flag,
}

const OPS: &[(&str, Op)] = &[
    ("and", Op::And),
    ("or", Op::Or),
    ("not", Op::Not),
    ("eq", Op::Compare(Comparison::Eq)),
    ("ne", Op::Compare(Comparison::Ne)),
    ("lt", Op::Compare(Comparison::Lt)),
    ("le", Op::Compare(Comparison::Le)),
    ("gt", Op::Compare(Comparison::Gt)),
    ("ge", Op::Compare(Comparison::Ge)),
    ("in", Op::In),
    ("regex", Op::Regex),
    ("schema", Op::Schema),
    ("exists", Op::Exists),
    ("flag", Op::Flag),
];

impl Expr {
    /// Reads an expression whose paths and flags a scope holds.
    pub(crate) fn decode(spot: &Spot<'_>, scope: &Scope) -> Result<Self, Fault> {
        Self::decode_at(spot, scope, 0)
    }

    fn decode_at(spot: &Spot<'_>, scope: &Scope, depth: usize) -> Result<Self, Fault> {
        if depth == DEPTH_MAX {
            return Err(spot.expected("no expression nested more than 8 deep"));
        }
        let op = spot.member("op")?;
        let op = op.word(
            OPS,
            "and, or, not, eq, ne, lt, le, gt, ge, in, regex, schema, exists or flag",
        )?;
        Ok(match op {
            Op::And | Op::Or => {
                let terms = spot.fields(&["op", "of"])?.need("of")?.list(TERMS_MAX)?;
                let term = |spot: &Spot<'_>| Self::decode_at(spot, scope, depth + 1);
                let terms = terms.iter().map(term).collect::<Result<_, _>>()?;
                if matches!(op, Op::And) {
                    Self::And(terms)
                } else {
                    Self::Or(terms)
                }
            }
            Op::Not => {
                let of = spot.fields(&["op", "of"])?.need("of")?;
                Self::Not(Box::new(Self::decode_at(&of, scope, depth + 1)?))
            }
            Op::Compare(_) | Op::In => {
                let fields = spot.fields(&["op", "a", "b"])?;
                let a = Operand::decode(&fields.need("a")?, scope)?;
                let b = Operand::decode(&fields.need("b")?, scope)?;
                match op {
                    Op::Compare(comparison) => Self::Compare(comparison, a, b),
                    _ => Self::In(a, b),
                }
            }
            Op::Regex => {
                let fields = spot.fields(&["op", "path", "pattern"])?;
                let pattern = shape::pattern(&fields.need("pattern")?)?;
                Self::Regex(scope.path(&fields.need("path")?)?, pattern)
            }
            Op::Schema => {
                let fields = spot.fields(&["op", "path", "schema"])?;
                let shape = Shape::decode(&fields.need("schema")?)?;
                Self::Schema(scope.path(&fields.need("path")?)?, Box::new(shape))
            }
            Op::Exists => {
                let path = spot.fields(&["op", "path"])?.need("path")?;
                Self::Exists(scope.path(&path)?)
            }
            Op::Flag => {
                let id = spot.fields(&["op", "id"])?.need("id")?;
                Self::Flag(scope.flag(&id)?)
            }
        })
    }

    /// Whether it is true of what a run holds.
    ///
    /// # Errors
    /// [`Spent`] where the work of the run is.
    pub fn eval(&self, memory: &Memory) -> Result<bool, Spent> {
        memory.fuel.spend(1)?;
        Ok(match self {
            Self::And(terms) => {
                for term in terms {
                    if !term.eval(memory)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Or(terms) => {
                for term in terms {
                    if term.eval(memory)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Not(of) => !of.eval(memory)?,
            Self::Compare(comparison, a, b) => compare(*comparison, a, b, memory)?,
            Self::In(a, b) => is_in(a, b, memory)?,
            Self::Regex(path, pattern) => match memory.find(path) {
                Some(Data::Text(text)) => {
                    memory.fuel.spend_match(pattern, text)?;
                    pattern.is_match(text)
                }
                _ => false,
            },
            Self::Schema(path, shape) => match memory.find(path) {
                Some(value) => shape.misfit(value, &memory.fuel)?.is_none(),
                None => false,
            },
            Self::Exists(path) => memory.find(path).is_some(),
            Self::Flag(id) => memory.flag(id) == Some(true),
        })
    }

    /// Paths that it names, in order.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.iter().flat_map(Self::paths).collect(),
            Self::Not(of) => of.paths(),
            Self::Compare(_, a, b) | Self::In(a, b) => {
                a.path().into_iter().chain(b.path()).collect()
            }
            Self::Regex(path, _) | Self::Schema(path, _) | Self::Exists(path) => vec![path],
            Self::Flag(_) => Vec::new(),
        }
    }

    /// Flags that it names, in order.
    pub fn flags(&self) -> Vec<&str> {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.iter().flat_map(Self::flags).collect(),
            Self::Not(of) => of.flags(),
            Self::Flag(id) => vec![id],
            _ => Vec::new(),
        }
    }
}

impl Operand {
    fn decode(spot: &Spot<'_>, scope: &Scope) -> Result<Self, Fault> {
        let fields = spot.fields(&["path", "const", "op"])?;
        let given = ["path", "const"].map(|name| fields.get(name));
        match (given, fields.get("op")) {
            ([Some(path), None], None) => Ok(Self::Path(scope.path(&path)?)),
            ([None, Some(value)], None) => Ok(Self::Const(value.data()?)),
            ([Some(path), None], Some(op)) => {
                op.word(&[("len", ())], "len")?;
                Ok(Self::Len(scope.path(&path)?))
            }
            _ => Err(spot.fault(FaultKind::Expected {
                wanted: "{\"path\":…}, {\"const\":…} or {\"op\":\"len\",\"path\":…}",
                found: "other members".to_owned(),
            })),
        }
    }

    /// The path that it names.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Len(path) => Some(path),
            Self::Const(_) => None,
        }
    }

    fn value<'a>(&'a self, memory: &'a Memory) -> Option<std::borrow::Cow<'a, Data>> {
        use std::borrow::Cow;
        Some(match self {
            Self::Path(path) => Cow::Borrowed(memory.find(path)?),
            Self::Const(value) => Cow::Borrowed(value),
            Self::Len(path) => {
                let count = match memory.find(path)? {
                    Data::Text(text) => text.chars().count(),
                    Data::List(items) => items.len(),
                    Data::Object(members) => members.len(),
                    _ => return None,
                };
                Cow::Owned(Data::Number(Number::of_count(count)))
            }
        })
    }
}

fn compare(
    comparison: Comparison,
    a: &Operand,
    b: &Operand,
    memory: &Memory,
) -> Result<bool, Spent> {
    let (Some(a), Some(b)) = (a.value(memory), b.value(memory)) else {
        return Ok(false);
    };
    memory.fuel.spend(a.weight().min(b.weight()))?;
    let order = match (&*a, &*b) {
        (Data::Number(a), Data::Number(b)) => Some(a.cmp(b)),
        (Data::Text(a), Data::Text(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let is = |wanted: fn(Ordering) -> bool| order.is_some_and(wanted);
    Ok(match comparison {
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
        Comparison::Lt => is(Ordering::is_lt),
        Comparison::Le => is(Ordering::is_le),
        Comparison::Gt => is(Ordering::is_gt),
        Comparison::Ge => is(Ordering::is_ge),
    })
}

fn is_in(a: &Operand, b: &Operand, memory: &Memory) -> Result<bool, Spent> {
    let (Some(a), Some(b)) = (a.value(memory), b.value(memory)) else {
        return Ok(false);
    };
    memory.fuel.spend(b.weight())?;
    Ok(match (&*a, &*b) {
        (item, Data::List(items)) => items.contains(item),
        (Data::Text(part), Data::Text(text)) => text.contains(part.as_str()),
        (Data::Text(name), Data::Object(members)) => members.contains_key(name),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;
    use std::collections::BTreeMap;

    fn eval(expr: &str) -> bool {
        let scope = Scope::new(["x", "n"]);
        let node = syntax::parse(expr, 10_000).unwrap();
        let expr = Expr::decode(&Spot::root(&node), &scope).unwrap();
        let x = r#"{"a":"one","l":[1,"b",{"k":2}],"t":0.5,"z":null}"#;
        let x = Data::parse(x, 1000).unwrap();
        let memory = Memory::new(BTreeMap::from([("x".to_owned(), x)]));
        expr.eval(&memory).unwrap()
    }

    #[test]
    fn a_comparison_with_nothing_is_false_and_so_is_its_opposite() {
        let two = |op: &str, a: &str, b: &str| eval(&format!(r#"{{"op":"{op}","a":{a},"b":{b}}}"#));
        let (gone, half, one) = (
            r#"{"path":"x.gone"}"#,
            r#"{"path":"x.t"}"#,
            r#"{"const":1}"#,
        );
        for op in ["eq", "ne", "lt", "le", "gt", "ge", "in"] {
            assert!(!two(op, gone, one) && !two(op, one, gone), "{op}");
        }
        assert!(two("lt", half, one) && two("ne", half, one) && !two("ge", half, one));
        assert!(two("eq", half, r#"{"const":0.50}"#));
        assert!(!two("lt", r#"{"const":"1"}"#, r#"{"const":2}"#));
        assert!(two("gt", r#"{"const":"é"}"#, r#"{"const":"z"}"#));
        assert!(two("in", r#"{"const":{"k":2}}"#, r#"{"path":"x.l"}"#));
        assert!(two("in", r#"{"const":"ne"}"#, r#"{"path":"x.a"}"#));
        assert!(two("in", r#"{"const":"a"}"#, r#"{"path":"x"}"#));
        assert!(two("eq", r#"{"op":"len","path":"x.l"}"#, r#"{"const":3}"#));
        assert!(!two("eq", r#"{"op":"len","path":"x.t"}"#, r#"{"const":3}"#));
        assert!(
            eval(r#"{"op":"exists","path":"x.z"}"#) && !eval(r#"{"op":"exists","path":"x.y"}"#)
        );
        assert!(eval(r#"{"op":"and","of":[]}"#) && !eval(r#"{"op":"or","of":[]}"#));
        assert!(eval(
            r#"{"op":"not","of":{"op":"regex","path":"x.t","pattern":"."}}"#
        ));
        assert!(eval(
            r#"{"op":"schema","path":"x.l.2","schema":{"required":["k"]}}"#
        ));
        assert!(eval(r#"{"op":"regex","path":"x.a","pattern":"^o.e$"}"#));
    }

    #[test]
    fn what_is_no_expression_is_named() {
        let fault = |expr: &str| {
            let node = syntax::parse(expr, 10_000).unwrap();
            let fault = Expr::decode(&Spot::root(&node), &Scope::new(["x"])).unwrap_err();
            fault.to_string()
        };
        assert_eq!(
            fault(r#"{"op":"exists","path":"y.a"}"#),
            "1:23: path: no input and no earlier step writes \"y\""
        );
        assert_eq!(
            fault(r#"{"op":"flag","id":"f"}"#),
            "1:19: id: no earlier check sets the flag \"f\""
        );
        assert!(
            fault(r#"{"op":"eq","a":{},"b":{"const":1}}"#).contains("a: expected {\"path\":…}")
        );
        assert!(
            fault(r#"{"op":"exists","path":"x","more":1}"#)
                .contains("more: expected one of op, path")
        );
        let deep = format!(
            "{}{{\"op\":\"exists\",\"path\":\"x\"}}{}",
            r#"{"op":"not","of":"#.repeat(8),
            "}".repeat(8)
        );
        assert!(fault(&deep).contains("nested more than 8 deep"));
    }
}
