//! Label designs: what was registered before the first label, and the rules `design`, `purpose` and
//! `score_once`, by which a draw serves one purpose and a score stands once.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::id::ProtocolId;
use clover_event::id::RaterId;
use clover_event::id::RowId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::judge::ScoreConflict;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelDesignRegistered;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::LabelSealed;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::label::row_of_draw;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::fold::said;
use clover_ledger::rulebooks;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::label_once;
use crate::label_scales;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::LedgerCreated,
    Kind::RulebookAdopted,
    Kind::LabelDesignRegistered,
    Kind::LabelRecorded,
    Kind::LabelScaleDeclared,
    Kind::LabelSealed,
    Kind::SealAccepted,
    Kind::LabelRevealed,
    Kind::ScoreConflict,
];

/// What was registered of a design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesignRegistration {
    /// Probability of a label outside of named strata, in millionths.
    pub inclusion_micro: i64,
    /// By which protocol people label.
    pub protocol: ProtocolId,
    /// What its labels are for.
    pub purpose: DesignPurpose,
    /// The entry that registered it.
    pub seq: u64,
    /// Strata with probabilities of their own, in millionths.
    pub strata: BTreeMap<String, i64>,
}

/// One design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Envelopes that the custodian accepted.
    pub accepted: u64,
    /// The entry of its first label.
    pub first_label_seq: Option<u64>,
    /// The entry of its first label that could be seen.
    pub first_open_seq: Option<u64>,
    /// Open labels.
    pub open: u64,
    /// The first open probe among the designs that share one with it; `None` where it shares none.
    pub shared_open_seq: Option<u64>,
    /// Of a design for audits: the policies that it has labels of, open or sealed.
    pub policies: BTreeSet<PolicyId>,
    /// Who gave it open labels.
    pub raters: BTreeSet<RaterId>,
    /// What was registered, if anything was.
    pub registered: Option<DesignRegistration>,
    /// Sealed labels that were revealed.
    pub revealed: u64,
    /// Sealed labels.
    pub sealed: u64,
}

impl Design {
    /// The entry by which a probe of it was open, or one of a design that shares a probe with it.
    pub fn opened(&self) -> Option<u64> {
        let all = [self.first_open_seq, self.shared_open_seq];
        all.into_iter().flatten().min()
    }
}

/// The designs of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentDesigns {
    /// By name.
    pub designs: BTreeMap<DesignId, Design>,
    /// The entry of the first open label that is no probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_since: Option<u64>,
    /// The least and the greatest label that could be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelled: Option<ScaleEnds>,
    /// The scale of labels, where it was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleEnds>,
    /// Draws that are open probes, with the first design of each, while the rulebook lets another one label them too.
    pub probes: BTreeMap<String, DesignId>,
    /// Scores that differ from the recorded one.
    pub score_conflicts: u64,
}

impl ExperimentDesigns {
    /// Whether labels need a registered design: from the first one on.
    pub fn is_governed(&self) -> bool {
        let mut designs = self.designs.values();
        designs.any(|design| design.registered.is_some())
    }

    /// Remembers a label that can be seen.
    fn seen(&mut self, value: Micro) {
        let range = self.labelled.get_or_insert(ScaleEnds {
            high_micro: value,
            low_micro: value,
        });
        range.high_micro = range.high_micro.max(value);
        range.low_micro = range.low_micro.min(value);
    }

    /// The first label of the first design that has sealed ones.
    pub fn sealed_since(&self) -> Option<u64> {
        let designs = self.designs.values();
        let sealed = designs.filter(|design| design.sealed > 0);
        sealed.filter_map(|design| design.first_label_seq).min()
    }

    /// Remembers of which design a draw is a probe first; two that share one count from the first open probe of both.
    fn share(&mut self, design: &DesignId, row: String) {
        let first = match self.probes.get(&row) {
            None => {
                self.probes.insert(row, design.clone());
                return;
            }
            Some(first) if first == design => return,
            Some(first) => first.clone(),
        };
        let both = [&first, design];
        let opened = both.iter().filter_map(|of| self.designs.get(*of)?.opened());
        let opened = opened.min();
        for of in both {
            if let Some(design) = self.designs.get_mut(of) {
                design.shared_open_seq = opened;
            }
        }
    }

    /// Remembers the policy of a probe, which a design for audits has labels of.
    fn probe(&mut self, design: &DesignId, policy: impl FnOnce() -> Option<PolicyId>) {
        let Some(design) = self.designs.get_mut(design) else {
            return;
        };
        let purpose = design.registered.as_ref().map(|of| of.purpose);
        if purpose == Some(DesignPurpose::Audit) {
            design.policies.extend(policy());
        }
    }
}

/// Designs by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Designs {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentDesigns>,
    /// Whether the rulebook in force lets a draw be a probe of one design alone.
    pub has_one_probe: bool,
}

impl Designs {
    /// A design by experiment and name.
    pub fn design(&self, experiment: &ExperimentId, design: &DesignId) -> Option<&Design> {
        self.by_experiment.get(experiment)?.designs.get(design)
    }

    /// The scale that the labels of an experiment were declared to have.
    pub fn scale(&self, experiment: &ExperimentId) -> Option<ScaleEnds> {
        self.by_experiment.get(experiment)?.scale
    }

    /// What was registered of a design.
    pub fn registered(
        &self,
        experiment: &ExperimentId,
        design: &DesignId,
    ) -> Option<&DesignRegistration> {
        self.design(experiment, design)?.registered.as_ref()
    }

    /// A rulebook is in force: from the one on that asks it, no further design can share a probe.
    fn adopt(&mut self, version: Option<Count>) {
        let version = version.map_or(u64::from(rulebooks::UNNAMED), Count::value);
        if version >= u64::from(Question::OneProbe.since()) {
            self.has_one_probe = true;
            for of in self.by_experiment.values_mut() {
                of.probes.clear();
            }
        }
    }
}

impl Fold for Designs {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        match &event.event().payload {
            Payload::LedgerCreated(of) => return self.adopt(of.rulebook),
            Payload::RulebookAdopted(of) => return self.adopt(Some(of.version)),
            _ => {}
        }
        let Some(id) = &event.event().header.experiment else {
            return;
        };
        let of = match self.by_experiment.get_mut(id) {
            Some(of) => of,
            None => self.by_experiment.entry(id.clone()).or_default(),
        };
        let seq = event.seq();
        let mut design = |id: &DesignId, count: fn(&mut Design) -> &mut u64| {
            let design = match of.designs.get_mut(id) {
                Some(design) => design,
                None => of.designs.entry(id.clone()).or_default(),
            };
            *count(design) += 1;
            design.first_label_seq.get_or_insert(seq);
            if design.open > 0 || design.revealed > 0 {
                design.first_open_seq.get_or_insert(seq);
            }
        };
        match &event.event().payload {
            Payload::LabelDesignRegistered(new) => {
                let design = of.designs.entry(new.design.clone()).or_default();
                let strata = new.strata.iter().flatten();
                let strata = strata.map(|of| (of.stratum.to_string(), of.inclusion_micro.value()));
                design.registered.get_or_insert_with(|| DesignRegistration {
                    inclusion_micro: new.inclusion_micro.value(),
                    protocol: new.protocol.clone(),
                    purpose: new.purpose,
                    seq,
                    strata: strata.collect(),
                });
            }
            Payload::LabelRecorded(label) => {
                design(&label.design, |design| &mut design.open);
                of.seen(label.value_micro);
                if label.purpose != LabelPurpose::Audit {
                    of.calibrated_since.get_or_insert(seq);
                }
                of.probe(&label.design, || Some(label.policy.clone()));
                if let Some(design) = of.designs.get_mut(&label.design) {
                    design.raters.insert(label.rater.clone());
                }
                if label.purpose == LabelPurpose::Audit && !self.has_one_probe {
                    let row = row_of_draw(&label.policy, &label.item, label.draw);
                    of.share(&label.design, row);
                }
            }
            Payload::LabelSealed(label) => {
                design(&label.design, |design| &mut design.sealed);
                of.probe(&label.design, || {
                    draw_of_row(&label.row).map(|(policy, ..)| policy)
                });
            }
            Payload::SealAccepted(label) => design(&label.design, |design| &mut design.accepted),
            Payload::LabelRevealed(label) => {
                design(&label.design, |design| &mut design.revealed);
                of.seen(label.value_micro);
            }
            Payload::LabelScaleDeclared(new) => of.scale = of.scale.or(new.ends()),
            Payload::ScoreConflict(_) => of.score_conflicts += 1,
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Digest under which it is known that a draw's label serves this purpose: `calibrate`, `audit` or `sealed`.
pub fn draw_serves(experiment: Option<&ExperimentId>, row: &str, purpose: &str) -> Digest {
    canon::digest("clover/draw/v1", &(experiment, row, purpose))
}

/// A design is registered before its labels, its strata in order; one for audits has none.
fn new_design(
    state: &State,
    experiment: &ExperimentId,
    new: &LabelDesignRegistered,
    breaches: &mut Vec<Breach>,
) {
    let known = state.fold::<Designs>().design(experiment, &new.design);
    if let Some(seq) = known.and_then(|design| design.first_label_seq) {
        breaches.push(Breach::new(
            RuleName::Design,
            "a design that is registered before its first label",
            format!("{}, labelled since seq {seq}", new.design),
        ));
    }
    if new.purpose == DesignPurpose::Audit
        && new.strata.as_ref().is_some_and(|of| !of.is_empty())
        && state.asks(Question::EvenProbes)
    {
        breaches.push(Breach::new(
            RuleName::Design,
            "a design for audits without strata: an audit counts each of its probes alike",
            "strata",
        ));
    }
    let strata: Vec<_> = new.strata.iter().flatten().map(|of| &of.stratum).collect();
    if !strata.windows(2).all(|pair| pair[0] < pair[1]) {
        let expected = "strata in order of their names, each once";
        breaches.push(Breach::new(RuleName::Design, expected, "another order"));
    }
}

/// The rules `design` and `purpose`.
#[derive(Clone, Copy, Debug)]
pub struct Purposes;

impl Rule for Purposes {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let designs = state.fold::<Designs>();
        match &event.event.payload {
            Payload::LabelDesignRegistered(new) => new_design(state, experiment, new, breaches),
            Payload::LabelRecorded(label) => {
                open_label(designs, experiment, label, breaches);
                if label.purpose == LabelPurpose::Audit {
                    let of = (&label.policy, &label.item);
                    breaches.extend(label_once::check_prompt(
                        state,
                        experiment,
                        of,
                        &label.design,
                    ));
                }
                breaches.extend(label_scales::off_scale(
                    state,
                    experiment,
                    label.value_micro,
                ));
            }
            Payload::LabelRevealed(label) => {
                breaches.extend(label_scales::off_scale(
                    state,
                    experiment,
                    label.value_micro,
                ));
            }
            Payload::LabelScaleDeclared(said) if state.asks(Question::LabelsOnScale) => {
                let of = designs.by_experiment.get(experiment);
                breaches.take(RuleName::Design, label_scales::check(of, said));
            }
            Payload::LabelSealed(label) => {
                sealed_label(designs, experiment, label, breaches);
                if is_for_audit(designs, experiment, &label.design)
                    && let Some((policy, item, _)) = draw_of_row(&label.row)
                {
                    let of = (&policy, &item);
                    breaches.extend(label_once::check_prompt(
                        state,
                        experiment,
                        of,
                        &label.design,
                    ));
                }
            }
            _ => {}
        }
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        if let (Payload::LabelRecorded(label), Some(experiment)) =
            (&event.event.payload, &event.event.header.experiment)
        {
            label_once::labelled_once(state, experiment, label, facts);
        }
        if let (Payload::LabelSealed(label), Some(experiment)) =
            (&event.event.payload, &event.event.header.experiment)
            && is_for_audit(state.fold::<Designs>(), experiment, &label.design)
            && let Some((policy, ..)) = draw_of_row(&label.row)
        {
            facts.extend(label_once::once_audited(
                state,
                experiment,
                (&policy, &label.design),
            ));
        }
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let mut draw = |row: &str, serves: &str, not: [&str; 2]| {
            facts.push(Fact::Gives {
                digest: draw_serves(experiment, row, serves),
                once: None,
            });
            facts.extend(not.map(|other| Fact::Forbids {
                digest: draw_serves(experiment, row, other),
                rule: RuleName::Purpose,
            }));
        };
        match &event.event.payload {
            Payload::LabelRecorded(label) => {
                let row = row_of_draw(&label.policy, &label.item, label.draw);
                let other = match label.purpose {
                    LabelPurpose::Audit => "calibrate",
                    LabelPurpose::Calibrate => "audit",
                };
                draw(&row, &label.purpose.to_string(), [other, "sealed"]);
            }
            Payload::LabelSealed(label) => {
                draw(label.row.as_str(), "sealed", ["calibrate", "audit"]);
                let again = Fact::Forbids {
                    digest: draw_serves(experiment, label.row.as_str(), "sealed"),
                    rule: RuleName::Purpose,
                };
                // Rows of designs that are no draws are their design's own.
                facts.extend(draw_of_row(&label.row).map(|_| again));
            }
            _ => {}
        }
    }
}

/// The registered design that a label names, when its experiment needs one.
fn needed<'d>(
    designs: &'d Designs,
    experiment: &ExperimentId,
    design: &DesignId,
    breaches: &mut Vec<Breach>,
) -> Option<&'d DesignRegistration> {
    let of = designs.by_experiment.get(experiment)?;
    let registered = of.designs.get(design).and_then(|of| of.registered.as_ref());
    if registered.is_none() && of.is_governed() {
        breaches.push(Breach::new(
            RuleName::Design,
            format!("a registered label design of {experiment}"),
            format!("{design}, not registered"),
        ));
    }
    registered
}

/// Whether a design is registered for audits.
fn is_for_audit(designs: &Designs, experiment: &ExperimentId, design: &DesignId) -> bool {
    let registered = designs.registered(experiment, design);
    registered.is_some_and(|of| of.purpose == DesignPurpose::Audit)
}

fn open_label(
    designs: &Designs,
    experiment: &ExperimentId,
    label: &LabelRecorded,
    breaches: &mut Vec<Breach>,
) {
    let Some(design) = needed(designs, experiment, &label.design, breaches) else {
        return;
    };
    if !design.purpose.admits(label.purpose) {
        breaches.push(Breach::new(
            RuleName::Purpose,
            format!("a label for {}, as {} has it", design.purpose, label.design),
            format!("an open label for {}", label.purpose),
        ));
    }
}

fn sealed_label(
    designs: &Designs,
    experiment: &ExperimentId,
    label: &LabelSealed,
    breaches: &mut Vec<Breach>,
) {
    let Some(design) = needed(designs, experiment, &label.design, breaches) else {
        return;
    };
    if design.purpose == DesignPurpose::Calibrate {
        breaches.push(Breach::new(
            RuleName::Purpose,
            "a design for audit or confirm",
            format!("{}, for calibrate", label.design),
        ));
    }
    if draw_of_row(&label.row).is_none() {
        breaches.push(Breach::new(
            RuleName::Design,
            "a row of the form policy/item/draw",
            row_text(&label.row),
        ));
    }
}

fn row_text(row: &RowId) -> String {
    row.to_string()
}

/// The rule `score_once`.
#[derive(Clone, Copy, Debug)]
pub struct ScoreOnce;

impl Rule for ScoreOnce {
    fn check(&self, _: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if let Payload::ScoreConflict(conflict) = &event.event.payload
            && conflict.recorded_micro == conflict.score_micro
        {
            breaches.push(Breach::new(
                RuleName::ScoreOnce,
                "another score than the recorded one",
                format!("the same, {}", conflict.score_micro),
            ));
        }
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let Payload::ScoreConflict(conflict) = &event.event.payload else {
            return;
        };
        let experiment = event.event.experiment();
        facts.push(Fact::Needs {
            digest: conflict.recorded.0,
            before: event.seq,
            rule: RuleName::Refs,
        });
        facts.push(Fact::Recorded {
            digest: conflict.recorded.0,
            rule: RuleName::ScoreOnce,
            said: said(conflict.recorded_micro.value()),
        });
        facts.extend(scored(conflict, experiment).map(|digest| Fact::Needs {
            digest,
            before: event.seq,
            rule: RuleName::ScoreOnce,
        }));
    }
}

/// The natural key of the score that a conflict is with.
fn scored(conflict: &ScoreConflict, experiment: Option<&ExperimentId>) -> Option<Digest> {
    let score = ScoreRecorded {
        call: None,
        draw: conflict.draw,
        item: conflict.item.clone(),
        judge: conflict.judge.clone(),
        policy: conflict.policy.clone(),
        prompt: None,
        response: None,
        score_micro: conflict.recorded_micro,
    };
    Payload::from(score).natural_key(experiment)
}
