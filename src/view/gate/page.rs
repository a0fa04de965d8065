//! One gate's whole life on one page, read from the log again.

use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::event::payload::custody::Separation;
use crate::event::payload::decision::Grade;
use crate::event::payload::gate::GateObserved;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::MetricDirection;
use crate::event::payload::manifest::Side;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::drifts;
use crate::projection::gates;
use crate::projection::gates::Gates;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::orders::Orders;
use crate::report::chart::Chart;
use crate::report::spark;
use crate::session::SessionError;
use crate::session::gate::check;
use crate::view::View;
use crate::view::gate::GateDecision;
use crate::view::gate::GateEstimate;
use crate::view::gate::Order;
use crate::view::gate::beside;
use crate::view::gate::charts;
use crate::view::gate::command;
use crate::view::gate::decided_by;
use crate::view::gate::deviation;
use crate::view::gate::effect;
use crate::view::gate::facts::GateFacts;
use crate::view::gate::facts::Promotion;
use crate::view::gate::facts::RecordedLook;
use crate::view::gate::facts::Stale;
use crate::view::gate::facts::Stratum;
use crate::view::gate::facts::strata;
use crate::view::gate::observe_all;
use crate::view::gate::outcome_of;
use crate::view::gate::plan;
use crate::view::gate::verdict;
use crate::view::gate::verdict::Course;
use crate::view::gate::weakest;
use crate::view::prereg::Deviation;
use crate::view::word;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::evidence::GateContext;
use crate::workflow::gates::replay;
use crate::workflow::gates::replay::Life;
use crate::workflow::gates::replay::Path;

/// Looks that the page lists; more are counted.
const LOOKS_MAX: usize = 12;
/// Blocks of a line, so that what they span fits beside them.
const SPARKS: usize = 60;

/// A gate as its entries make it.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    id: &'a ManifestId,
    state: &'a State,
    of: GateContext<'a>,
    life: Life,
    path: Path,
}

impl<'a> Page<'a> {
    /// Reads the entries of an opened gate.
    ///
    /// # Errors
    /// [`SessionError::Gate`] where it is not open, and [`SessionError::Ledger`] where the log cannot be read.
    pub fn read(
        ledger: &Ledger,
        state: &'a State,
        id: &'a ManifestId,
    ) -> Result<Self, SessionError> {
        let of = check::known(state, id)?;
        let life = replay::read(ledger, id, of, state.size)?;
        let path = replay::path(of, &life).unwrap_or_default();
        Ok(Self {
            id,
            state,
            of,
            life,
            path,
        })
    }

    /// A plot by its name, `wealth` or `interval`; there is no other.
    pub fn chart(&self, name: &str) -> Option<Chart> {
        match name {
            "wealth" => Some(charts::wealth(self.of, &self.path)),
            "interval" => Some(charts::interval(self.of, (&self.life, &self.path))),
            _ => None,
        }
    }

    /// The page.
    ///
    /// # Errors
    /// [`SessionError::Gate`] where the entries make another gate, and [`SessionError::Ledger`] where an entry cannot be read.
    pub fn show(&self, ledger: &Ledger) -> Result<View, SessionError> {
        let Self { id, state, of, .. } = *self;
        check::same(id, of, &self.life)?;
        let now = state.keyring.recorded_at;
        let facts = self.facts(now);
        let mut view = View::of(&facts);
        view.answer(facts.answer.text.clone());
        view.broken_pairs(plan::rows(of, id));
        view.broken_pairs(order(state, of));
        observed(&mut view, &facts, &self.life);
        strata_table(&mut view, &facts.strata);
        looks(&mut view, &facts);
        self.sparks(&mut view);
        ending(&mut view, state, (id, of), now);
        promotions(&mut view, ledger, &facts.promotions)?;
        match facts.grade {
            Some(grade) if facts.n > 0 => view.line(format!("grade now: {}", word(&grade))),
            Some(Grade::Void) => view.line("grade now: void"),
            _ => view.line("no grade before a unit is observed"),
        }
        differences(&mut view, of);
        if let Some(Stale { judge, check_seq }) = &facts.stale {
            view.sentence(format!(
                "STALE: judge {judge} failed its drift check at seq {check_seq}; nothing is observed, looked at or decided before a deviation on {} says how that is handled",
                drifts::JUDGE_PATH
            ));
        }
        Ok(view.with_next(self.next(facts.stale.is_some())))
    }

    /// What to do next.
    fn next(&self, is_stale: bool) -> String {
        let Self { id, state, of, .. } = *self;
        match &of.gate.look {
            _ if is_stale => deviation(id),
            _ if may_promote(state, id, of) => command("gate promote", id),
            _ if of.gate.decided.is_some() => command("prereg diff", id),
            Some(look) if gates::outcome_of(look.standing).is_some() => command("gate decide", id),
            _ if check::waits(of) => command("gate continue", id),
            _ if of.record.units <= of.gate.n => command("exposure open", id),
            _ => observe_all(id),
        }
    }

    /// Terms of the plan in force, and how far the gate has come, each with its words.
    pub fn terms(&self) -> Vec<(&'static str, String)> {
        let mut rows = plan::rows(self.of, self.id);
        rows.extend(order(self.state, self.of));
        rows
    }

    /// Observations in order, each with its entry.
    pub fn observed(&self) -> &[(u64, GateObserved)] {
        &self.life.observed
    }

    /// Draws that were observed as missing.
    pub fn missing(&self) -> u64 {
        missing(&self.life)
    }

    /// What the page says, where the entries make the same gate again.
    ///
    /// # Errors
    /// [`SessionError::Gate`] where they make another.
    pub fn checked_facts(&self) -> Result<GateFacts, SessionError> {
        check::same(self.id, self.of, &self.life)?;
        Ok(self.facts(self.state.keyring.recorded_at))
    }

    fn facts(&self, now: Option<Timestamp>) -> GateFacts {
        let Self { id, state, of, .. } = *self;
        let gate = of.gate;
        // What is decided has forgotten its observations.
        let log_e_now = match gate.decided {
            Some(_) => Some(gate.log_e()),
            None => evidence::found(of).ok().map(|found| found.log_e),
        };
        let looks = self.life.looks.iter().cloned();
        let order = state.fold::<Orders>().of(of.record);
        let promotions = state.fold::<Gates>().promotions.iter();
        let promotions = promotions.filter(|one| one.gates.contains(id));
        let stale = drifts::stale_gate(state, id).filter(|_| gate.decided.is_none());
        let in_force = of.record.in_force();
        let stale = stale.map(|of| Stale {
            check_seq: of.check_seq,
            judge: of.judge,
        });
        let decided = gate.decided.map(GateDecision::from);
        let grade = now.map(|now| gates::graded(gate, of.record, state, now));
        let course = Course {
            n: gate.n,
            looked: gate.look.as_ref().map(|look| look.standing),
            decided,
            interval: gate.look.as_ref().map(|look| (look.cs_lo, look.cs_hi)),
            stale: stale.as_ref(),
            grade,
            is_solo: state.keyring.separation() == Some(Separation::Solo),
        };
        GateFacts {
            answer: verdict::answer(&course, &gate.test),
            child: gate.child.clone(),
            decided,
            deviations: of.record.deviations.iter().map(Deviation::from).collect(),
            digest: in_force.map(|version| version.digest),
            estimated: gate.estimated.map(GateEstimate::from),
            experiment: gate.experiment.clone(),
            exposed: of.record.exposed.clone(),
            gate: id.clone(),
            grade,
            interval: self.path.interval.clone(),
            log_e_now,
            looks: looks
                .map(|(seq, look)| RecordedLook { look, seq })
                .collect(),
            n: gate.n,
            opened_seq: gate.opened_seq,
            order: order.map(|(_, drawn)| Order::from(drawn)),
            parent: gate.parent.clone(),
            plan: in_force.map(|version| version.manifest.clone()),
            promotions: promotions.map(Promotion::from).collect(),
            replay_identical: true,
            sources: gate.sources.clone(),
            stale,
            state_digest: self.life.state_digest,
            strata: strata(of, &self.life),
            wealth: self.path.wealth.clone(),
        }
    }

    /// The path of the gate as lines of blocks.
    fn sparks(&self, view: &mut View) {
        let (of, path) = (self.of, &self.path);
        let wealth: Vec<f64> = path.wealth.iter().map(|(_, log)| *log).collect();
        let bar = design::ln_stop(of.gate.test.alpha_micro.value(), of.family);
        let least = wealth.iter().copied().fold(0.0, f64::min).max(-bar);
        if !wealth.is_empty() {
            let line = spark::line(&wealth, (least, bar));
            let line = format!("wealth    {line}  {least:.2} to the end at {bar:.2}");
            view.chart(vec![line], Some(charts::wealth(of, path).svg()));
        }
        // As many as of the wealth, the last of each stretch.
        let step = path.interval.len().div_ceil(SPARKS).max(1);
        let places = || path.interval.rchunks(step).rev();
        let ends = |end: fn(&(u64, i64, i64)) -> i64| {
            let last = places().filter_map(<[_]>::last);
            last.map(|place| end(place) as f64 / 1e6)
                .collect::<Vec<_>>()
        };
        let (highs, lows) = (ends(|place| place.2), ends(|place| place.1));
        let least = lows.iter().copied().fold(0.0, f64::min);
        let most = highs.iter().copied().fold(0.0, f64::max);
        if !lows.is_empty() {
            let lines = [("effect <", highs), ("effect >", lows)].map(|(name, values)| {
                let line = spark::line(&values, (least, most));
                format!("{name}  {line}  {least:+.3} to {most:+.3}")
            });
            let svg = charts::interval(of, (&self.life, path)).svg();
            view.chart(lines.to_vec(), Some(svg));
        }
    }
}

/// Gates of the same candidate in no family of this one: whoever registers many may find one that holds by luck.
fn elsewhere(state: &State, id: &ManifestId, of: GateContext<'_>) -> Vec<ManifestId> {
    let Some(own) = of.record.in_force().map(|version| &version.manifest) else {
        return Vec::new();
    };
    let family = |manifest: &Manifest| Some(manifest.multiplicity.as_ref()?.family.clone());
    let all = state.fold::<Manifests>().by_id.iter();
    let others = all.filter(|(other, record)| {
        let manifest = record.versions.last().map(|version| &version.manifest);
        *other != id
            && manifest.is_some_and(|manifest| {
                let alone = family(manifest).is_none() || family(manifest) != family(own);
                manifests::is_candidate_shared(manifest, own) && alone
            })
    });
    others.map(|(other, _)| other.clone()).collect()
}

/// Whether its claim was decided to hold, and nothing was promoted on it yet.
fn may_promote(state: &State, id: &ManifestId, of: GateContext<'_>) -> bool {
    let gates = state.fold::<Gates>();
    let promoted = gates.promotions.iter().any(|one| one.gates.contains(id));
    let kind = of
        .record
        .in_force()
        .map(|version| version.manifest.hypothesis.kind);
    kind.is_some_and(gates::favours)
        && !promoted
        && of.gate.decided.is_some_and(|one| gates::holds(one.outcome))
}

fn order(state: &State, of: GateContext<'_>) -> Vec<(&'static str, String)> {
    let mut rows = vec![("registered", entries(of))];
    if let Some((_, drawn)) = state.fold::<Orders>().of(of.record) {
        rows.push((
            "order",
            format!(
                "drawn at seq {} from checkpoint {} {}",
                drawn.seq,
                drawn.beacon.size,
                drawn.beacon.root.0.to_base64()
            ),
        ));
    }
    rows.push(("opened", format!("seq {}", of.gate.opened_seq)));
    if let Some(parent) = &of.gate.parent {
        rows.push(("continues", parent.to_string()));
    }
    let exposed = of.record.exposed.iter();
    let exposed: Vec<_> = exposed
        .map(|(units, seq)| format!("{units} by seq {seq}"))
        .collect();
    let text = if exposed.is_empty() {
        "nothing yet".to_owned()
    } else {
        exposed.join(", ")
    };
    rows.push(("exposed", text));
    rows
}

fn entries(of: GateContext<'_>) -> String {
    let versions = of.record.versions.iter().map(|one| {
        let agreed = one.countersigned_seq;
        let agreed = agreed.map_or(String::new(), |seq| format!(", countersigned at {seq}"));
        format!(
            "version {} at seq {}{agreed}",
            one.manifest.version, one.seq
        )
    });
    versions.collect::<Vec<_>>().join("; ")
}

/// Draws that were observed as missing.
fn missing(life: &Life) -> u64 {
    let readings = life.observed.iter().flat_map(|(_, said)| &said.readings);
    let missing = readings.map(|one| {
        one.baseline_missing.as_ref().map_or(0, Vec::len)
            + one.candidate_missing.as_ref().map_or(0, Vec::len)
    });
    missing.map(|count| count as u64).sum()
}

fn observed(view: &mut View, facts: &GateFacts, life: &Life) {
    let span = match (life.observed.first(), life.observed.last()) {
        (Some((first, _)), Some((last, _))) => format!(", seq {first} to {last}"),
        _ => String::new(),
    };
    let missing = missing(life);
    view.pairs([
        (
            "observed",
            format!("{} units{span}, {missing} draws missing", facts.n),
        ),
        ("replay", format!("identical: state {}", life.state_digest)),
    ]);
}

fn strata_table(view: &mut View, strata: &[Stratum]) {
    if strata.is_empty() {
        return;
    }
    let rows = strata.iter().map(|of| {
        let mean = of.mean_difference.map(|mean| format!("{mean:+.6}"));
        vec![
            of.stratum.to_string(),
            of.units.to_string(),
            format!("{:+.6}", of.predicted_micro.value() as f64 / 1e6),
            of.observed.to_string(),
            of.missing.to_string(),
            mean.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let head = [
        "stratum",
        "units",
        "predicted",
        "observed",
        "draws missing",
        "mean difference",
    ];
    view.table(&head, rows);
    view.line("differences: candidate less baseline, of units whose draws are all there");
}

fn looks(view: &mut View, facts: &GateFacts) {
    if facts.looks.is_empty() {
        return view.line("no looks yet");
    }
    let skipped = facts.looks.len().saturating_sub(LOOKS_MAX);
    let rows = facts.looks.iter().skip(skipped).map(|of| {
        let look = &of.look;
        vec![
            of.seq.to_string(),
            look.n.to_string(),
            format!("{:.4}", look.log_e.value()),
            format!("{:.6}", look.p.value()),
            effect(look.cs_lo_micro.value(), look.cs_hi_micro.value()),
            word(&look.standing),
        ]
    });
    let head = ["look", "units", "log e", "p", "mean effect", "standing"];
    view.table(&head, rows);
    let plan = facts.plan.as_ref();
    if let Some(test) = plan.and_then(|plan| plan.test.as_ref())
        && test.side != Side::TwoSided
    {
        view.sentence(format!(
            "The interval of the mean effect has two sides, together at error rate {}; the test has one, and may decide \
             while the interval holds the margin.",
            test.alpha_micro
        ));
    }
    let metric = plan.and_then(|plan| plan.metric.as_ref());
    if metric.is_some_and(|metric| metric.direction == MetricDirection::Decrease) {
        view.line("less is better: an effect above 0 is a candidate below its baseline");
    }
    if skipped > 0 {
        view.line(format!("{skipped} earlier looks"));
    }
}

fn ending(
    view: &mut View,
    state: &State,
    (id, of): (&ManifestId, GateContext<'_>),
    now: Option<Timestamp>,
) {
    if let Some(look) = &of.gate.look {
        let (word, _) = outcome_of(of.gate);
        view.line(format!(
            "standing: {} ({word})",
            check::meaning(look.standing)
        ));
        if let Some(number) = decided_by(look) {
            view.sentence(format!("decided by {number}"));
        }
        let parts = weakest(of.gate, look);
        if !parts.is_empty() {
            let text = format!("log e {:.4}{parts}", look.log_e.value());
            view.sentence(text);
        }
    }
    let others = elsewhere(state, id, of);
    if let Some(first) = others.first() {
        let (one, more) = (others.len() == 1, others.len() - 1);
        let more = if one {
            String::new()
        } else {
            format!(" and {more} more")
        };
        view.sentence(format!(
            "its candidate is tested outside its family too, which its level does not count: {first}{more}"
        ));
    }
    match of.gate.decided {
        None => view.line("not decided"),
        Some(decided) => view.line(format!(
            "decided at seq {}: {} after {} units, {}",
            decided.seq,
            word(&decided.outcome),
            decided.n,
            word(&decided.class)
        )),
    }
    if let Some(found) = &of.gate.estimated {
        view.sentence(beside(found));
    }
    if let Some(child) = &of.gate.child {
        view.line(format!("continued by {child}"));
    }
    if let (Some(plan), Some(now)) = (&of.record.plan, now) {
        let standing = match plan.revealed_seq {
            Some(seq) if plan.revealed_at > Some(plan.reveal_by) => {
                format!("VOID: revealed at seq {seq}, after {}", plan.reveal_by)
            }
            Some(seq) => format!("revealed at seq {seq}"),
            None if now > plan.reveal_by => format!("VOID: not revealed by {}", plan.reveal_by),
            None => format!("to be revealed by {}", plan.reveal_by),
        };
        view.line(format!("sealed plan: {standing}"));
    }
}

/// What was promoted on the gate, as the entries say it.
fn promotions(view: &mut View, ledger: &Ledger, all: &[Promotion]) -> Result<(), LedgerError> {
    for one in all {
        let revoked = one.revoked_seq;
        let revoked = revoked.map_or(String::new(), |seq| format!(", revoked at seq {seq}"));
        let read = ledger.entry(one.seq)?.map(|read| read.event.payload);
        let Some(Payload::PromotionIssued(said)) = &read else {
            continue;
        };
        let grade = word(&said.grade);
        view.line(format!("promotion at seq {}{revoked}, {grade}", one.seq));
        view.line(format!("  of {}", said.candidate_digest));
    }
    Ok(())
}

/// What was registered at the first look against what is in force, and what was done otherwise.
fn differences(view: &mut View, of: GateContext<'_>) {
    let looked = of.record.first_look.as_ref().and_then(|look| look.digest);
    let from = looked.and_then(|digest| of.record.version(digest));
    if let (Some(from), Some(to)) = (from, of.record.in_force()) {
        let changes = manifests::changes(&from.manifest, &to.manifest);
        if changes.is_empty() {
            view.line("executed as registered at the first look");
        }
        for change in changes {
            let none = || "none".to_owned();
            let (from, to) = (
                change.from.unwrap_or_else(none),
                change.to.unwrap_or_else(none),
            );
            let text = format!(
                "changed since the first look: {} {from} to {to}",
                change.path
            );
            view.sentence(text);
        }
    }
    for one in &of.record.deviations {
        let seen = if one.outcome_seen {
            ", outcome seen"
        } else {
            ""
        };
        let text = format!(
            "deviation at seq {}{seen}: {}: {}",
            one.seq, one.rule_path, one.what
        );
        view.sentence(text);
    }
}
