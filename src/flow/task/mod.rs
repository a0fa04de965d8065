//! Task sets: items with inputs, the rules of their context, and, for those who may know it, what is right.
//!
//! JSON Lines. The first line is the set: `{"task_set":"wf-tasks/1","family":"invoices","rules":[…]}`. A rule is
//! `{"id","text","hard","weight","check"}`; its check is an expression over the inputs `x` and `c` and the output `y`.
//! Every further line is an [`Item`]. A set of one's own needs no `truth` and no `sim`.

mod families;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::canon;
use clover_ground::digest::Digest;

pub use families::Family;
pub use families::Split;

use crate::decode::Spot;
use crate::expr::Expr;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::item::Item;
use crate::item::LINE_MAX;
use crate::memory::Memory;
use crate::number::Number;
use crate::scope::Scope;
use crate::syntax;
use crate::value::Data;

/// The word of the language.
pub const LANGUAGE: &str = "wf-tasks/1";
/// Domain of the digest of a set's first line.
const CONTEXT_LABEL: &str = "clover/wf-context/v1";
/// Most rules.
pub(crate) const RULES_MAX: usize = 32;
/// Most items.
pub const ITEMS_MAX: usize = 100_000;

/// A rule of a context that can be checked without knowing what is right.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextRule {
    /// Its id.
    pub id: String,
    /// The rule as a model is told it.
    pub text: String,
    /// Whether an output is of no use where it is broken.
    pub is_hard: bool,
    /// Its weight among the others, above 0.
    pub weight: Number,
    /// What must be true of `x`, `c` and `y`.
    pub check: Expr,
    /// The check as JSON.
    pub document: Data,
}

/// Items and the rules of their context.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSet {
    /// The family that it belongs to.
    pub family: String,
    /// The rules, in the order of the set.
    pub rules: Vec<ContextRule>,
    /// Weights of members of what is right; 1 where none is given.
    pub weights: BTreeMap<String, Number>,
    /// Items, in order.
    pub items: Vec<Item>,
    /// Digest of the set's first line: family, rules and weights.
    pub context: Digest,
}

/// Whether a line is the first of a set, and no item.
pub fn is_head(line: &str) -> bool {
    let line = Data::parse(line, LINE_MAX);
    line.is_ok_and(|line| line.member("task_set").is_some())
}

/// A fault of a set, with its line.
pub type LineFault = (usize, Fault);

impl TaskSet {
    /// Reads a set.
    ///
    /// # Errors
    /// The number of the first line that is refused, from 1, and its [`Fault`].
    pub fn parse(text: &str) -> Result<Self, LineFault> {
        let mut lines = (1..)
            .zip(text.lines())
            .filter(|(_, line)| !line.trim().is_empty());
        let (at, first) = lines.next().unwrap_or((1, ""));
        let mut set = Self::head(first).map_err(|fault| (at, fault))?;
        let mut ids = BTreeSet::new();
        for (at, line) in lines {
            let item = Item::parse(line, at).map_err(|fault| (at, fault))?;
            if !ids.insert(item.id.clone()) || set.items.len() == ITEMS_MAX {
                let kind = FaultKind::Twice(item.id);
                let fault = Fault {
                    at: crate::TextPosition { line: 1, column: 1 },
                    path: "id".to_owned(),
                    kind,
                };
                return Err((at, fault));
            }
            set.items.push(item);
        }
        Ok(set)
    }

    /// Items of no set: they have no rules.
    pub fn of_items(items: Vec<Item>) -> Self {
        Self {
            family: String::new(),
            rules: Vec::new(),
            weights: BTreeMap::new(),
            items,
            context: canon::digest(CONTEXT_LABEL, &Data::Null),
        }
    }

    /// Reads the first line of a set, without items.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused.
    pub fn head(line: &str) -> Result<Self, Fault> {
        let node = syntax::parse(line, LINE_MAX)?;
        let root = Spot::root(&node);
        root.member("task_set")?
            .word(&[(LANGUAGE, ())], "the language \"wf-tasks/1\"")?;
        let fields = root.fields(&["task_set", "family", "rules", "weights"])?;
        let rules = ContextRule::list(&fields.need("rules")?)?;
        let mut weights = BTreeMap::new();
        if let Some(spot) = fields.get("weights") {
            for (name, spot) in spot.members()? {
                weights.insert(name.to_owned(), weight(&spot)?);
            }
        }
        Ok(Self {
            family: fields.need("family")?.text(64)?.to_owned(),
            rules,
            weights,
            items: Vec::new(),
            context: canon::digest(CONTEXT_LABEL, &root.data()?),
        })
    }

    /// The first line as JSON, in canonical form: [`TaskSet::head`] reads it, and it has the digest `context`.
    ///
    /// # Errors
    /// [`Fault`] where the line is none.
    pub fn head_document(line: &str) -> Result<Data, Fault> {
        let node = syntax::parse(line, LINE_MAX)?;
        Spot::root(&node).data()
    }

    /// How much an output is worth, 0 to 1,000,000: the weighted share of the members of what is right that it has
    /// exactly so. `None` where nobody says what is right.
    pub fn utility(&self, item: &Item, output: Option<&Data>) -> Option<u64> {
        let truth = item.truth.as_ref()?;
        let Data::Object(members) = truth else {
            return Some(if output == Some(truth) { 1_000_000 } else { 0 });
        };
        let one = Number::of_count(1);
        let weight = |name: &String| self.weights.get(name).copied().unwrap_or(one).millionths();
        let all: i128 = members.keys().map(weight).sum();
        let right = members
            .iter()
            .filter(|(name, value)| output.and_then(|output| output.member(name)) == Some(*value));
        let right: i128 = right.map(|(name, _)| weight(name)).sum();
        u64::try_from(right * 1_000_000 / all.max(1)).ok()
    }
}

fn weight(spot: &Spot<'_>) -> Result<Number, Fault> {
    let number = spot.number()?;
    let fits = (1..=1_000_000_000).contains(&number.millionths());
    fits.then_some(number)
        .ok_or_else(|| spot.expected("a weight above 0 and up to 1000"))
}

impl ContextRule {
    /// Reads a list of rules; no two have one id.
    pub(crate) fn list(spot: &Spot<'_>) -> Result<Vec<Self>, Fault> {
        let mut rules: Vec<Self> = Vec::new();
        for spot in spot.list(RULES_MAX)? {
            let rule = Self::decode(&spot)?;
            if rules.iter().any(|of| of.id == rule.id) {
                return Err(spot.fault(FaultKind::Twice(rule.id)));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    pub(crate) fn decode(spot: &Spot<'_>) -> Result<Self, Fault> {
        let fields = spot.fields(&["id", "text", "hard", "weight", "check"])?;
        let check = fields.need("check")?;
        let scope = Scope::new(["x", "c", "y"]);
        Ok(Self {
            id: fields.need("id")?.text(32)?.to_owned(),
            text: fields.need("text")?.text(400)?.to_owned(),
            is_hard: fields.get("hard").map_or(Ok(true), |spot| spot.bool())?,
            weight: fields
                .get("weight")
                .map_or(Ok(Number::of_count(1)), |spot| weight(&spot))?,
            check: Expr::decode(&check, &scope)?,
            document: check.data()?,
        })
    }

    /// The rule as JSON, as it is read.
    pub fn described(&self) -> Data {
        Data::object([
            ("id", self.id.as_str().into()),
            ("text", self.text.as_str().into()),
            ("hard", self.is_hard.into()),
            ("weight", self.weight.into()),
            ("check", self.document.clone()),
        ])
    }

    /// Whether an output keeps the rule. Work that does not end in time is a breach.
    pub fn holds(&self, item: &Item, output: &Data) -> bool {
        let mut values = item.inputs.clone();
        values.insert("y".to_owned(), output.clone());
        self.check.eval(&Memory::new(values)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::simulator::SimulatedModel;
    use crate::executor::simulator::Strength;
    use crate::run::Bounds;
    use crate::run::run;
    use crate::workflow::Workflow;

    /// Mean utility, and the share of items whose rules all hold.
    fn measured(family: Family, split: Split) -> (u64, usize) {
        let set = TaskSet::parse(&family.lines(split, 7, 100)).unwrap();
        let workflow = Workflow::parse(family.first_program()).unwrap();
        let (mut total, mut passed) = (0, 0);
        for item in &set.items {
            let mut model =
                SimulatedModel::new(7, Strength::Weak, &item.id, item.model.as_ref().unwrap());
            let outcome = run(&workflow, &item.inputs, &mut model, Bounds::default(), 0).unwrap();
            let output = outcome.output.as_ref();
            total += set.utility(item, output).unwrap();
            passed += usize::from(
                output.is_some_and(|y| set.rules.iter().all(|rule| rule.holds(item, y))),
            );
        }
        (total / set.items.len() as u64, passed)
    }

    #[test]
    fn the_shift_breaks_each_first_program() {
        for family in Family::ALL {
            let general = measured(family, Split::General);
            let local = measured(family, Split::Local);
            assert!(
                general.0 > 850_000 && general.1 > 70,
                "{family:?} {general:?}"
            );
            assert!(local.0 < 700_000 && local.1 < 30, "{family:?} {local:?}");
        }
    }

    #[test]
    fn what_is_right_keeps_the_rules() {
        for family in Family::ALL {
            for split in [Split::General, Split::Local] {
                let text = family.lines(split, 3, 40);
                assert_eq!(text, family.lines(split, 3, 40));
                assert_ne!(text, family.lines(split, 4, 40));
                let set = TaskSet::parse(&text).unwrap();
                for (item, line) in set.items.iter().zip(text.lines().skip(1)) {
                    let line = Data::parse(line, LINE_MAX).unwrap();
                    let answer = line.member("sim").unwrap().member("answer").unwrap();
                    assert_eq!(set.utility(item, Some(answer)), Some(1_000_000), "{line}");
                    for rule in &set.rules {
                        assert!(rule.holds(item, answer), "{} {line}", rule.id);
                    }
                }
            }
        }
    }

    #[test]
    fn a_fault_names_its_line() {
        let (line, fault) = TaskSet::parse("{\"task_set\":\"wf-tasks/2\"}").unwrap_err();
        assert_eq!((line, fault.path.as_str()), (1, "task_set"));
        let head = "{\"task_set\":\"wf-tasks/1\",\"family\":\"own\",\"rules\":[]}\n";
        let (line, _) =
            TaskSet::parse(&format!("{head}\n{{\"input\":{{}}}}\n{{\"in\":1}}")).unwrap_err();
        assert_eq!(line, 4);
        let twice = "{\"id\":\"a\",\"input\":{}}\n".repeat(2);
        assert_eq!(TaskSet::parse(&format!("{head}{twice}")).unwrap_err().0, 3);
    }
}
