//! What earlier entries have in the way of events that are about to be said, asked before anything is appended.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::digest::Digest;

use crate::Ledger;
use crate::append::admit;
use crate::append::agree_breach;
use crate::append::plan;
use crate::catch_up;
use crate::error::LedgerError;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::read;
use crate::rule_names::RuleName;

/// A demand that an event does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetDemand {
    /// Which of the events.
    pub index: usize,
    /// What is demanded.
    pub breach: Breach,
    /// The entry in its way; `None` where it is an event before it.
    pub in_the_way: Option<u64>,
}

/// The digest that is looked up for a fact; `None` where it demands nothing, or a number that is read at the append.
fn asked(fact: &Fact) -> Option<&Digest> {
    match fact {
        Fact::Gives {
            digest,
            once: Some(_),
        }
        | Fact::Needs { digest, .. }
        | Fact::Forbids { digest, .. }
        | Fact::ForbidsBelow { digest, .. }
        | Fact::Agrees { digest, .. } => Some(digest),
        _ => None,
    }
}

impl Ledger {
    /// The first demand on earlier entries that events at the head, to be appended one after the other, would not meet. `given`
    /// is what events before them give; what they give themselves is put beside it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn unmet(
        &self,
        events: &[ProposedEvent<'_>],
        given: &mut BTreeSet<Digest>,
    ) -> Result<Option<UnmetDemand>, LedgerError> {
        let state = self.state();
        let facts_of = |event: &ProposedEvent<'_>| {
            let mut facts = Vec::new();
            catch_up::all_facts(state.rulebook(), event, None, &mut facts);
            for rule in state.rulebook().every_rule() {
                rule.requires(state, event, &mut facts);
            }
            facts
        };
        let facts: Vec<Vec<Fact>> = events.iter().map(facts_of).collect();
        let wanted: BTreeSet<Digest> = facts.iter().flatten().filter_map(asked).copied().collect();
        let wanted: Vec<Digest> = wanted.into_iter().collect();
        let found = plan::find(&self.head, self.store.reader(), &wanted)?;
        let givers: BTreeMap<Digest, u64> = wanted
            .into_iter()
            .zip(found)
            .filter_map(|(digest, giver)| Some((digest, giver?)))
            .collect();
        for (index, facts) in facts.iter().enumerate() {
            for (fact, digest) in facts.iter().filter_map(|fact| Some((fact, asked(fact)?))) {
                let giver = givers.get(digest).copied();
                let refusal = self.unmet_fact(fact, giver, given.contains(digest))?;
                if let Some((breach, in_the_way)) = refusal {
                    return Ok(Some(UnmetDemand {
                        index,
                        breach,
                        in_the_way,
                    }));
                }
            }
            given.extend(catch_up::given_by(self.size(), facts).map(|(digest, _)| digest));
        }
        Ok(None)
    }

    /// Judges a fact by the entry that gave its digest, or by an event before it that gives it.
    fn unmet_fact(
        &self,
        fact: &Fact,
        giver: Option<u64>,
        is_given: bool,
    ) -> Result<Option<(Breach, Option<u64>)>, LedgerError> {
        if let Fact::Agrees {
            digest,
            value,
            rule,
        } = fact
        {
            let said = match giver {
                Some(seq) => self.said_at(seq, digest)?,
                None => None,
            };
            let breach = agree_breach(*rule, *value, said);
            return Ok(breach.map(|breach| (breach, giver)));
        }
        if is_given && giver.is_none() {
            return Ok(match fact {
                Fact::Gives {
                    once: Some(rule), ..
                }
                | Fact::Forbids { rule, .. } => Some((twice(*rule), None)),
                _ => None,
            });
        }
        let of = |_: &Digest| giver;
        Ok(admit::judge_fact(of, self.size(), fact).err())
    }

    /// What an entry said under a natural key, with its position.
    fn said_at(&self, seq: u64, key: &Digest) -> Result<Option<(u64, i64)>, LedgerError> {
        let all = read::measured(self.under(self.store.reader()), &[seq])?;
        let said = all.into_iter().find_map(|(_, said)| said);
        let said = said.filter(|(of, _)| of == key);
        Ok(said.map(|(_, value)| (seq, value)))
    }
}

/// Two events of one append that cannot both stand.
fn twice(rule: RuleName) -> Breach {
    Breach::new(
        rule,
        "one of its kind",
        "another before it in the same append",
    )
}
