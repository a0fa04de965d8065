//! Reading a case and comparing what was computed with what was expected.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::slips::Slip;

/// Characters of a value that a message shows.
const SHOWN: usize = 60;

/// Why a case ended before its comparisons.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The statistics refuse the input; right where the file expects an error.
    #[error("refused: {0}")]
    Refused(String),
    /// The case needs something that is not here.
    #[error("not run: {0}")]
    NotRun(String),
    /// The file does not have the shape of its kind.
    #[error("{at}: expected {expected}")]
    Malformed {
        /// Where in the case.
        at: String,
        /// What should stand there.
        expected: &'static str,
    },
}

/// Turns a refusal of the statistics into the end of a case.
pub fn refused(error: impl std::fmt::Display) -> Stop {
    Stop::Refused(error.to_string())
}

/// A value of a case, with its path.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    value: &'a Value,
    path: String,
    /// Paths of members that were asked for, of the part of a case that is watched.
    asked: Option<&'a RefCell<BTreeSet<String>>>,
}

impl<'a> Node<'a> {
    /// The root of a part of a case: `input` or `expected`.
    pub fn root(name: &str, value: &'a Value) -> Self {
        Self {
            value,
            path: name.to_owned(),
            asked: None,
        }
    }

    /// The same; which of its members are asked for is kept.
    pub fn watched(name: &str, value: &'a Value, asked: &'a RefCell<BTreeSet<String>>) -> Self {
        Self {
            asked: Some(asked),
            ..Self::root(name, value)
        }
    }

    fn member(&self, name: &str, value: &'a Value) -> Self {
        let path = format!("{}.{name}", self.path);
        if let Some(asked) = self.asked {
            asked.borrow_mut().insert(path.clone());
        }
        Self {
            value,
            path,
            asked: self.asked,
        }
    }

    /// Where it stands: `expected.slices.chat.p`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A member that must be there.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn at(&self, name: &str) -> Result<Self, Stop> {
        let value = self.value.get(name).ok_or_else(|| Stop::Malformed {
            at: format!("{}.{name}", self.path),
            expected: "a value",
        })?;
        Ok(self.member(name, value))
    }

    /// A member that may be absent or null.
    pub fn maybe(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.member(name, value))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// An element of an array.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn index(&self, index: usize) -> Result<Self, Stop> {
        let value = self
            .value
            .get(index)
            .ok_or_else(|| self.malformed("a longer array"))?;
        Ok(Self {
            value,
            path: format!("{}[{index}]", self.path),
            asked: self.asked,
        })
    }

    /// Elements of an array.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn elements(&self) -> Result<Vec<Self>, Stop> {
        let length = self
            .value
            .as_array()
            .ok_or_else(|| self.malformed("an array"))?
            .len();
        (0..length).map(|index| self.index(index)).collect()
    }

    /// Members of an object, in the order of their names.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn members(&self) -> Result<Vec<(&'a str, Self)>, Stop> {
        let object = self
            .value
            .as_object()
            .ok_or_else(|| self.malformed("an object"))?;
        let mut names: Vec<_> = object.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|name| Ok((name, self.at(name)?)))
            .collect()
    }

    /// Its text as JSON.
    pub fn json(&self) -> String {
        self.value.to_string()
    }

    /// A number; `"inf"`, `"-inf"` and `"Infinity"` are infinities, null and `"NaN"` are NaN.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn number(&self) -> Result<f64, Stop> {
        match self.value {
            Value::Null => Ok(f64::NAN),
            Value::String(text) if text == "NaN" => Ok(f64::NAN),
            Value::String(text) if text == "inf" || text == "Infinity" => Ok(f64::INFINITY),
            Value::String(text) if text == "-inf" => Ok(f64::NEG_INFINITY),
            other => other.as_f64().ok_or_else(|| self.malformed("a number")),
        }
    }

    /// A count.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn count(&self) -> Result<usize, Stop> {
        self.value
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| self.malformed("a count"))
    }

    /// A Boolean.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn flag(&self) -> Result<bool, Stop> {
        self.value
            .as_bool()
            .ok_or_else(|| self.malformed("true or false"))
    }

    /// A text.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn text(&self) -> Result<&'a str, Stop> {
        self.value.as_str().ok_or_else(|| self.malformed("a text"))
    }

    /// An array of numbers.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn numbers(&self) -> Result<Vec<f64>, Stop> {
        self.elements()?.iter().map(Self::number).collect()
    }

    /// An array of counts.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn counts(&self) -> Result<Vec<usize>, Stop> {
        self.elements()?.iter().map(Self::count).collect()
    }

    /// An array of texts.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn texts(&self) -> Result<Vec<&'a str>, Stop> {
        self.elements()?.iter().map(Self::text).collect()
    }

    /// An array of Booleans.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn flags(&self) -> Result<Vec<bool>, Stop> {
        self.elements()?.iter().map(Self::flag).collect()
    }

    /// The end of a case that asks for what no runner does.
    pub fn unsupported(&self, done: &str) -> Stop {
        let mut found: String = self.json();
        if found.chars().count() > SHOWN {
            found = found.chars().take(SHOWN).chain("…".chars()).collect();
        }
        Stop::NotRun(format!("{} is {found}: run are only {done}", self.path))
    }

    /// A whole number, negative ones too.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn integer(&self) -> Result<i64, Stop> {
        self.value
            .as_i64()
            .ok_or_else(|| self.malformed("a whole number"))
    }

    /// The error for another shape than expected.
    pub fn malformed(&self, expected: &'static str) -> Stop {
        Stop::Malformed {
            at: self.path.clone(),
            expected,
        }
    }
}

/// One case of a vector file.
#[derive(Debug)]
pub struct Case<'a> {
    /// Its name.
    pub name: &'a str,
    /// What goes in.
    pub input: Node<'a>,
    /// What must come out.
    pub expected: Node<'a>,
    /// Folder texts of the real sample, where the caller has them.
    pub arena: Option<&'a dyn Arena>,
    /// Slips of the peer in this file's answers.
    pub slips: &'a [Slip],
}

/// The real sample that some cases name instead of carrying data: file texts by name under its folder.
pub trait Arena: std::fmt::Debug {
    /// The text of a file such as `fresh_draws/base_responses.jsonl`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn text(&self, name: &str) -> Result<String, String>;
}

/// Largest deviations that a file allows. A number passes if it is within either the absolute or the relative one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Absolute, in the units of the number.
    pub abs: Option<f64>,
    /// Relative to the expected number.
    pub rel: Option<f64>,
    /// Relative, for p-values.
    pub p_rel: Option<f64>,
}

/// A comparison that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The case.
    pub case: String,
    /// Where in the case.
    pub at: String,
    /// What happened.
    pub what: String,
}

/// The comparison closest to, or furthest past, its tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// The case.
    pub case: String,
    /// Where in the case.
    pub at: String,
    /// The deviation, absolute or relative as the tolerance that judged it.
    pub deviation: f64,
    /// The deviation as a share of what is allowed.
    pub share: f64,
}

/// Compares the results of one case.
#[derive(Debug)]
pub struct Check<'a> {
    case: &'a str,
    tolerance: Tolerance,
    seen: RefCell<BTreeSet<String>>,
    failures: Vec<Failure>,
    worst: Option<Worst>,
    compared: usize,
}

impl<'a> Check<'a> {
    /// Compares under a file's tolerance.
    pub fn new(case: &'a str, tolerance: Tolerance) -> Self {
        Self {
            case,
            tolerance,
            seen: RefCell::default(),
            failures: Vec::new(),
            worst: None,
            compared: 0,
        }
    }

    /// A number under the file's tolerance; NaN must be NaN, an infinity the same infinity.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn number(&mut self, expected: &Node<'_>, got: f64) -> Result<(), Stop> {
        let (abs, rel) = (self.tolerance.abs, self.tolerance.rel);
        self.within(expected, got, abs, rel)
    }

    /// A p-value under the file's tolerance for them, else its common one.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn p_value(&mut self, expected: &Node<'_>, got: f64) -> Result<(), Stop> {
        match self.tolerance.p_rel {
            Some(rel) => self.within(expected, got, None, Some(rel)),
            None => self.number(expected, got),
        }
    }

    /// A number that may be absent: null is `None`.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn maybe(&mut self, expected: &Node<'_>, got: Option<f64>) -> Result<(), Stop> {
        self.number(expected, got.unwrap_or(f64::NAN))
    }

    /// Numbers, all of them and no more.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn numbers(&mut self, expected: &Node<'_>, got: &[f64]) -> Result<(), Stop> {
        let elements = expected.elements()?;
        self.same(expected, &elements.len(), &got.len(), "length");
        for (element, &value) in elements.iter().zip(got) {
            self.number(element, value)?;
        }
        self.saw(expected);
        Ok(())
    }

    /// A count, exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn count(&mut self, expected: &Node<'_>, got: usize) -> Result<(), Stop> {
        let want = expected.number()?;
        self.saw(expected);
        self.same_number(expected, want, got as f64);
        Ok(())
    }

    /// Counts, exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn counts(&mut self, expected: &Node<'_>, got: &[usize]) -> Result<(), Stop> {
        let want = expected.counts()?;
        self.saw(expected);
        self.same(expected, want.as_slice(), got, "counts");
        Ok(())
    }

    /// A text, exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn text(&mut self, expected: &Node<'_>, got: &str) -> Result<(), Stop> {
        let want = expected.text()?;
        self.saw(expected);
        self.same(expected, want, got, "text");
        Ok(())
    }

    /// A Boolean, exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn flag(&mut self, expected: &Node<'_>, got: bool) -> Result<(), Stop> {
        let want = expected.flag()?;
        self.saw(expected);
        self.same(expected, &want, &got, "flag");
        Ok(())
    }

    /// That something holds which an expected part says in another form.
    pub fn flag_of(&mut self, expected: &Node<'_>, holds: bool, what: &str) {
        self.saw(expected);
        self.same(expected, &true, &holds, what);
    }

    /// Booleans, exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn flags(&mut self, expected: &Node<'_>, got: &[bool]) -> Result<(), Stop> {
        let want = expected.flags()?;
        self.saw(expected);
        self.same(expected, want.as_slice(), got, "flags");
        Ok(())
    }

    /// That a list has `got` elements, exactly.
    pub fn count_of(&mut self, expected: &Node<'_>, got: usize) {
        let want = expected.elements().map_or(0, |elements| elements.len());
        self.same(expected, &want, &got, "length");
    }

    /// A part that is not compared, with the reason (wording, another representation of compared numbers, …).
    pub fn informative(&mut self, expected: &Node<'_>, reason: &'static str) {
        debug_assert!(!reason.is_empty(), "a reason is named");
        self.saw(expected);
    }

    /// A failure in the runner's own words.
    pub fn fail(&mut self, at: &Node<'_>, what: String) {
        self.failures.push(Failure {
            case: self.case.to_owned(),
            at: at.path().to_owned(),
            what,
        });
    }

    fn saw(&self, node: &Node<'_>) {
        self.seen.borrow_mut().insert(node.path().to_owned());
    }

    fn same<T: PartialEq + std::fmt::Debug + ?Sized>(
        &mut self,
        at: &Node<'_>,
        want: &T,
        got: &T,
        what: &str,
    ) {
        self.compared += 1;
        if want != got {
            self.fail(at, format!("{what}: expected {want:?}, found {got:?}"));
        }
    }

    fn same_number(&mut self, at: &Node<'_>, want: f64, got: f64) {
        self.compared += 1;
        if (want - got).abs() > 0.0 {
            self.fail(at, format!("expected {want}, found {got}"));
        }
    }

    /// A number within either tolerance, with neither exactly.
    ///
    /// # Errors
    /// [`Stop::Malformed`].
    pub fn within(
        &mut self,
        expected: &Node<'_>,
        got: f64,
        abs: Option<f64>,
        rel: Option<f64>,
    ) -> Result<(), Stop> {
        let want = expected.number()?;
        self.saw(expected);
        self.compared += 1;
        if want.is_nan() || got.is_nan() || want.is_infinite() || got.is_infinite() {
            let same = want.is_nan() && got.is_nan() || (want.total_cmp(&got)).is_eq();
            if !same {
                self.fail(expected, format!("expected {want}, found {got}"));
            }
            return Ok(());
        }
        let deviation = (got - want).abs();
        let share = |allowed: f64, deviation: f64| {
            if deviation <= 0.0 {
                0.0
            } else {
                deviation / allowed
            }
        };
        let absolute = abs.map(|abs| (deviation, share(abs, deviation)));
        let relative = rel.map(|rel| {
            let deviation = deviation / want.abs().max(f64::MIN_POSITIVE);
            (deviation, share(rel, deviation))
        });
        let (deviation, share) = match (absolute, relative) {
            (Some(absolute), Some(relative)) if absolute.1 <= relative.1 => absolute,
            (_, Some(relative)) => relative,
            (Some(absolute), None) => absolute,
            (None, None) => (deviation, share(0.0, deviation)),
        };
        if self.worst.as_ref().is_none_or(|worst| share > worst.share) {
            self.worst = Some(Worst {
                case: self.case.to_owned(),
                at: expected.path().to_owned(),
                deviation,
                share,
            });
        }
        if share > 1.0 {
            self.fail(expected, format!("expected {want:e}, found {got:e}"));
        }
        Ok(())
    }

    /// Ends a case: what the file expects and nobody compared is a failure.
    pub fn finish(mut self, expected: &Node<'_>) -> CaseResult {
        let mut unseen = Vec::new();
        {
            let seen = self.seen.borrow();
            leaves(expected, &seen, &mut unseen);
        }
        for at in unseen {
            self.failures.push(Failure {
                case: self.case.to_owned(),
                at,
                what: "expected by the file, compared by nobody".to_owned(),
            });
        }
        if self.compared == 0 {
            self.fail(expected, "no comparison was made".to_owned());
        }
        CaseResult {
            failures: self.failures,
            worst: self.worst,
        }
    }
}

/// What comparing one case came to.
#[derive(Debug)]
pub struct CaseResult {
    /// All that failed.
    pub failures: Vec<Failure>,
    /// The closest to its tolerance.
    pub worst: Option<Worst>,
}

/// Paths of values that no comparison named, by themselves or through what holds them.
fn leaves(node: &Node<'_>, seen: &BTreeSet<String>, unseen: &mut Vec<String>) {
    if seen.contains(node.path()) {
        return;
    }
    if let Ok(members) = node.members() {
        for (_, member) in &members {
            leaves(member, seen, unseen);
        }
    } else if let Ok(elements) = node.elements() {
        for element in &elements {
            leaves(element, seen, unseen);
        }
    } else {
        unseen.push(node.path().to_owned());
    }
}
