//! Reading a document member by member, with the path and place of what is wrong.

use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::number::Number;
use crate::syntax::Node;
use crate::syntax::NodeKind;
use crate::value::Data;

/// A value of a document with its path.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'a> {
    node: &'a Node,
    path: String,
}

/// An object of a document, of which all members are known.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    spot: Spot<'a>,
}

impl<'a> Spot<'a> {
    /// The root of a document.
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node,
            path: String::new(),
        }
    }

    /// A fault at this place.
    pub(crate) fn fault(&self, kind: FaultKind) -> Fault {
        Fault {
            at: self.node.at,
            path: self.path.clone(),
            kind,
        }
    }

    /// A fault: something else was to stand here.
    pub(crate) fn expected(&self, wanted: &'static str) -> Fault {
        let found = match &self.node.is {
            NodeKind::Text(text) => crate::value::shortened(text),
            _ => self.node.noun(),
        };
        self.fault(FaultKind::Expected { wanted, found })
    }

    /// The value without places. Numbers with more than six decimals are refused.
    pub(crate) fn data(&self) -> Result<Data, Fault> {
        exact(self.node, &self.path)?;
        Ok(self.node.clone().into_data())
    }

    /// The value without places, whatever its numbers were rounded to.
    pub(crate) fn rounded(&self) -> Data {
        self.node.clone().into_data()
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.is, NodeKind::List(_))
    }

    /// A text of 1 to `most` characters.
    pub(crate) fn text(&self, most: usize) -> Result<&'a str, Fault> {
        let NodeKind::Text(text) = &self.node.is else {
            return Err(self.expected("a text"));
        };
        let found = text.chars().count();
        if found > most {
            let what = "characters";
            return Err(self.fault(FaultKind::TooMany { what, most, found }));
        }
        if text.is_empty() {
            return Err(self.expected("a text that is not empty"));
        }
        Ok(text)
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(
        &self,
        words: &[(&str, T)],
        wanted: &'static str,
    ) -> Result<T, Fault> {
        let NodeKind::Text(text) = &self.node.is else {
            return Err(self.expected(wanted));
        };
        let found = words.iter().find(|(word, _)| word == text);
        found
            .map(|(_, of)| *of)
            .ok_or_else(|| self.expected(wanted))
    }

    pub(crate) fn bool(&self) -> Result<bool, Fault> {
        match self.node.is {
            NodeKind::Bool(value) => Ok(value),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(crate) fn number(&self) -> Result<Number, Fault> {
        match self.node.is {
            NodeKind::Number(value, false) => Ok(value),
            _ => Err(self.expected("a number with at most six decimals")),
        }
    }

    /// A count from `least` to `most`.
    pub(crate) fn count(&self, least: u64, most: u64, wanted: &'static str) -> Result<u64, Fault> {
        let count = self.number().ok().and_then(Number::whole);
        let count = count.and_then(|count| u64::try_from(count).ok());
        count
            .filter(|count| (least..=most).contains(count))
            .ok_or_else(|| self.expected(wanted))
    }

    /// Items of a list of at most `most`.
    pub(crate) fn list(&self, most: usize) -> Result<Vec<Self>, Fault> {
        let NodeKind::List(items) = &self.node.is else {
            return Err(self.expected("a list"));
        };
        if items.len() > most {
            return Err(self.fault(FaultKind::TooMany {
                what: "items",
                most,
                found: items.len(),
            }));
        }
        let item = |(at, node): (usize, &'a Node)| Self {
            node,
            path: format!("{}[{at}]", self.path),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Members of an object, whatever their names.
    pub(crate) fn members(&self) -> Result<Vec<(&'a str, Self)>, Fault> {
        let NodeKind::Object(members) = &self.node.is else {
            return Err(self.expected("an object"));
        };
        let members = members.iter();
        Ok(members
            .map(|of| (of.name.as_str(), self.below(&of.name, &of.node)))
            .collect())
    }

    fn below(&self, name: &str, node: &'a Node) -> Self {
        let gap = if self.path.is_empty() { "" } else { "." };
        Self {
            node,
            path: format!("{}{gap}{name}", self.path),
        }
    }

    /// An object that has no members but these.
    pub(crate) fn fields(&self, known: &'static [&'static str]) -> Result<Fields<'a>, Fault> {
        let NodeKind::Object(members) = &self.node.is else {
            return Err(self.expected("an object"));
        };
        for member in members {
            if !known.contains(&member.name.as_str()) {
                let spot = self.below(&member.name, &member.node);
                let mut fault = spot.fault(FaultKind::UnknownMember(known));
                fault.at = member.at;
                return Err(fault);
            }
        }
        Ok(Fields { spot: self.clone() })
    }

    /// One member of an object, whatever else it has.
    pub(crate) fn member(&self, name: &'static str) -> Result<Self, Fault> {
        let found = self.members()?.into_iter().find(|(of, _)| *of == name);
        let missing = || self.fault(FaultKind::MissingMember(name));
        found.map(|(_, spot)| spot).ok_or_else(missing)
    }
}

impl<'a> Fields<'a> {
    /// A member that need not be there.
    pub(crate) fn get(&self, name: &str) -> Option<Spot<'a>> {
        let NodeKind::Object(members) = &self.spot.node.is else {
            return None;
        };
        let found = members.iter().find(|member| member.name == name)?;
        Some(self.spot.below(name, &found.node))
    }

    /// A member that must be there.
    pub(crate) fn need(&self, name: &'static str) -> Result<Spot<'a>, Fault> {
        let missing = || self.spot.fault(FaultKind::MissingMember(name));
        self.get(name).ok_or_else(missing)
    }
}

/// Refuses numbers that were rounded.
fn exact(node: &Node, path: &str) -> Result<(), Fault> {
    match &node.is {
        NodeKind::Number(_, true) => Err(Fault {
            at: node.at,
            path: path.to_owned(),
            kind: FaultKind::Expected {
                wanted: "a number with at most six decimals",
                found: "one with more".to_owned(),
            },
        }),
        NodeKind::List(items) => items.iter().try_for_each(|item| exact(item, path)),
        NodeKind::Object(members) => members
            .iter()
            .try_for_each(|member| exact(&member.node, path)),
        _ => Ok(()),
    }
}
