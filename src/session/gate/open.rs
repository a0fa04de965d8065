//! The opening of a gate: units, their order and the opening itself, each where it does not stand yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::id::Root;
use clover_event::id::StratumId;
use clover_event::payload::gate::GateSource;
use clover_event::payload::manifest::Manifest;
use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Breach;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_projection::gates;
use clover_projection::gates::Gates;
use clover_projection::manifests::ManifestVersion;
use clover_projection::manifests::Manifests;
use clover_projection::orders;
use clover_projection::orders::DrawnOrder;
use clover_projection::orders::Orders;
use clover_workflow::gates::outcomes;
use clover_workflow::gates::outcomes::OutcomeTerms;
use clover_workflow::gates::steps;
use clover_workflow::gates::steps::Confirm;

use crate::append;
use crate::append::Rehearsal;
use crate::error::SessionError;
use crate::gate::error::GateError;
use crate::gate::outcomes::OutcomeFile;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

/// Units of a confirm set, and the file that names them.
#[derive(Clone, Debug)]
pub struct UnitFile {
    /// How refusals call the file.
    pub file: String,
    /// Its units.
    pub confirm: Confirm,
}

/// A gate that may be opened: its manifest is in force, and binds these units.
#[derive(Clone, Debug)]
pub struct GateSetup {
    /// The version whose order is drawn.
    bound: ManifestVersion,
    id: ManifestId,
    root: Root,
    units: Confirm,
    /// The version in force.
    version: ManifestVersion,
}

/// A gate that was opened.
#[derive(Clone, Debug)]
pub struct GateOpening {
    /// The event that opened it.
    pub appended: Vec<AppendedEvent>,
    /// The order of its units.
    pub order: Option<DrawnOrder>,
}

impl GateSetup {
    /// Holds units against the manifest that a gate is named after.
    ///
    /// # Errors
    /// [`GateError`]: no manifest, none in force, and other units or strata than it binds.
    pub fn of(state: &State, id: &ManifestId, units: &UnitFile) -> Result<Self, GateError> {
        let record = state.fold::<Manifests>().by_id.get(id);
        let record = record.ok_or_else(|| GateError::NoManifest(id.clone()))?;
        let versions = record.in_force().zip(record.bound());
        let (version, bound) = versions.ok_or_else(|| GateError::NotInForce(id.clone()))?;
        strata_fit(units, &bound.manifest)?;
        let root = root_fits(units, &bound.manifest)?;
        Ok(Self {
            bound: bound.clone(),
            id: id.clone(),
            root,
            units: units.confirm.clone(),
            version: version.clone(),
        })
    }

    /// The manifest in force, which names the metrics that need sources.
    pub fn manifest(&self) -> &Manifest {
        &self.version.manifest
    }

    /// Holds the outcomes of a file against the gate before anything is listed or drawn, and answers with the units that have
    /// none of the main metric.
    ///
    /// # Errors
    /// [`GateError::Outcome`] names the line.
    pub fn check_outcomes(
        &self,
        sources: &[GateSource],
        from: &OutcomeFile,
    ) -> Result<Vec<ItemId>, GateError> {
        let of = OutcomeTerms {
            manifest: self.manifest(),
            sources,
        };
        let without = outcomes::before(of, &self.units.units, &from.outcomes);
        without.map_err(|error| GateError::Outcome {
            file: from.file.clone(),
            error,
        })
    }

    /// Lists the units, draws their order and opens the gate. Every key is looked for, and the opening is held against its
    /// rule, before anything is appended.
    ///
    /// # Errors
    /// [`GateError::Reused`], [`GateError::NoGatePlan`], [`GateError::NoConfirmSet`], [`SessionError::Breach`], and what the
    /// port says where a key lacks.
    pub fn open(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        sources: Vec<GateSource>,
    ) -> Result<GateOpening, SessionError> {
        self.check(ports, ledger)?;
        let opened = steps::open(&self.version, sources);
        let opened = opened.ok_or_else(|| GateError::NoGatePlan(self.id.clone()))?;
        let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::GateOpened))?;
        // Nothing is listed or drawn for a gate that could not be opened then.
        let whose = (signer.id(), Some(self.experiment()));
        let is_new = !ledger.state().fold::<Gates>().by_id.contains_key(&self.id);
        let checked = gates::may_open(ledger.state(), whose, &opened);
        if is_new && let Err(Unmet { expected, found }) = checked {
            return Err(Breach::new(RuleName::Gate, expected, found).into());
        }
        if !self.is_listed(ledger) {
            self.say(
                ports,
                ledger,
                Seat::Custodian,
                steps::list_units(&self.units),
            )?;
        }
        if !self.is_drawn(ledger) {
            let events = self.order(ledger);
            let events = events.ok_or_else(|| GateError::NoConfirmSet(self.id.clone()))?;
            self.say(ports, ledger, Seat::Runner, events)?;
        }
        let appended = append::append(ports, ledger, &self.commands([opened]), &signer)?;
        let orders = &ledger.state().fold::<Orders>().by_digest;
        let order = orders.get(&self.bound.digest);
        Ok(GateOpening {
            appended,
            order: order.and_then(|order| order.drawn.clone()),
        })
    }

    /// The bodies that would be appended; the first event is judged, since those after it build on it.
    ///
    /// # Errors
    /// [`GateError::Reused`], [`SessionError::Breach`], and what the port says where a key lacks.
    pub fn rehearse(
        &self,
        ports: &mut dyn Ports,
        ledger: &Ledger,
        sources: Vec<GateSource>,
    ) -> Result<Vec<Rehearsal>, SessionError> {
        self.check(ports, ledger)?;
        let opened = steps::open(&self.version, sources);
        let mut steps = Vec::new();
        if !self.is_listed(ledger) {
            steps.push((steps::list_units(&self.units), Seat::Custodian));
        }
        if !self.is_drawn(ledger) {
            steps.push((self.order(ledger).unwrap_or_default(), Seat::Runner));
        }
        let opened = opened.into_iter().map(Payload::from).collect();
        steps.push((opened, Seat::Runner));
        let (mut rehearsed, mut numbers) = (Vec::new(), BTreeMap::new());
        for (events, seat) in steps {
            let Some(signer) = signer_of(ports, ledger, seat, &events)? else {
                continue;
            };
            let commands = self.commands(events);
            let next = numbers
                .entry(signer.id())
                .or_insert_with(|| append::next_author_seq(ledger, &signer));
            // Only what nothing unsaid comes before can be judged.
            let judged = usize::from(rehearsed.is_empty());
            rehearsed.extend(append::rehearse(
                ledger,
                &commands,
                &signer,
                (*next, judged),
            )?);
            *next += commands.len() as u64;
        }
        Ok(rehearsed)
    }

    fn experiment(&self) -> &ExperimentId {
        &self.version.manifest.experiment
    }

    /// What is asked before anything is listed: that the units are new, and that every key is at hand.
    fn check(&self, ports: &mut dyn Ports, ledger: &Ledger) -> Result<(), SessionError> {
        let is_drawn = self.is_drawn(ledger);
        if !is_drawn {
            self.not_ordered(ledger)?;
        }
        let mut needs = Vec::new();
        if !self.is_listed(ledger) {
            needs.push(KeyNeed::of(Seat::Custodian, Kind::UnitsListed));
        }
        if !is_drawn {
            needs.push(KeyNeed::runner(Kind::OrderListed));
        }
        needs.push(KeyNeed::runner(Kind::GateOpened));
        Ok(ports.check(ledger.state(), &needs)?)
    }

    /// No unit may stand in an order before the manifest came into force; this is asked before the units are listed.
    fn not_ordered(&self, ledger: &Ledger) -> Result<(), SessionError> {
        for unit in &self.units.units {
            let earlier = ledger.giver(&orders::ordered(unit))?;
            if let Some(seq) = earlier.filter(|seq| *seq < orders::in_force_since(&self.bound)) {
                let unit = unit.clone();
                return Err(GateError::Reused { unit, seq }.into());
            }
        }
        Ok(())
    }

    fn is_listed(&self, ledger: &Ledger) -> bool {
        let root = self.root.0;
        let known = ledger.state().fold::<Orders>().units.get(self.experiment());
        let complete = known.and_then(|of| of.get(&root));
        complete.is_some_and(|listing| listing.units.root() == root)
    }

    fn is_drawn(&self, ledger: &Ledger) -> bool {
        let orders = ledger.state().fold::<Orders>();
        let order = orders.by_digest.get(&self.bound.digest);
        order.is_some_and(|order| order.drawn.is_some())
    }

    /// The events that draw the order, from what the next entry will have seen.
    fn order(&self, ledger: &Ledger) -> Option<Vec<Payload>> {
        let seen = Some(ledger.seen());
        let beacon = orders::beacon(ledger.state(), &self.bound, seen)?;
        steps::draw(&self.bound, beacon, &self.units.units)
    }

    fn commands<E: Into<Payload>>(&self, events: impl IntoIterator<Item = E>) -> Vec<Command> {
        let command = |event| Command::new(event, Some(self.experiment().clone()));
        events.into_iter().map(command).collect()
    }

    /// Appends events by the key of a seat.
    fn say(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        seat: Seat,
        events: Vec<Payload>,
    ) -> Result<(), SessionError> {
        if let Some(signer) = signer_of(ports, ledger, seat, &events)? {
            append::append(ports, ledger, &self.commands(events), &signer)?;
        }
        Ok(())
    }
}

/// The key of a seat that signs these events, of one kind or one author's; `None` where there are none.
fn signer_of(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    seat: Seat,
    events: &[Payload],
) -> Result<Option<Arc<Signer>>, SessionError> {
    let first = events.first();
    let need = first.map(|event| KeyNeed::of(seat, event.kind()));
    let signer = need.map(|need| ports.signer(ledger.state(), need));
    Ok(signer.transpose()?)
}

/// The root of the file's units, which the manifest binds.
fn root_fits(units: &UnitFile, manifest: &Manifest) -> Result<Root, GateError> {
    let (root, n) = (units.confirm.root(), units.confirm.units.len() as u64);
    let bound = manifest.data.as_ref();
    let other = bound.filter(|data| data.confirm_root != root || data.n_units.value() != n);
    match other {
        None => Ok(root),
        Some(data) => Err(GateError::Units {
            gate: manifest.manifest.clone(),
            file: units.file.clone(),
            found: Box::new((n, root)),
            bound: Box::new((data.n_units.value(), data.confirm_root)),
        }),
    }
}

/// The strata of the file are those that the plan counts. They are compared before two roots that say less.
fn strata_fit(units: &UnitFile, manifest: &Manifest) -> Result<(), GateError> {
    let test = manifest.test.as_ref();
    let Some(planned) = test.and_then(|test| test.control_variate.as_ref()) else {
        return Ok(());
    };
    let planned = planned.iter().map(|one| (&one.stratum, one.units.value()));
    let planned: BTreeMap<_, _> = planned.collect();
    let found = units.confirm.counts();
    if planned == found {
        return Ok(());
    }
    Err(GateError::Strata {
        file: units.file.clone(),
        expected: difference(&planned, &found),
        found: if units.confirm.strata.is_none() {
            "no strata: a tab and the stratum after each name".to_owned()
        } else {
            difference(&found, &planned)
        },
    })
}

/// Counts of the strata that another table has otherwise: there may be many strata.
fn difference(of: &BTreeMap<&StratumId, u64>, other: &BTreeMap<&StratumId, u64>) -> String {
    let differ = of
        .iter()
        .filter(|(stratum, units)| other.get(*stratum) != Some(units));
    let differ = differ.map(|(stratum, units)| format!("{units} in {:?}", stratum.as_str()));
    let differ: Vec<_> = differ.collect();
    if differ.is_empty() {
        "none more".to_owned()
    } else {
        differ.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_that_differ_are_counted() {
        let [easy, hard]: [StratumId; 2] = ["easy", "hard"].map(|name| name.parse().unwrap());
        let one = BTreeMap::from([(&easy, 3), (&hard, 2)]);
        let two = BTreeMap::from([(&easy, 3), (&hard, 1)]);
        assert_eq!(difference(&one, &two), "2 in \"hard\"");
        assert_eq!(difference(&one, &one), "none more");
    }
}
