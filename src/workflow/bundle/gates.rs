//! Gates: every number beside what it was held to, and what both profiles say; and the attacks of gate P7.

use clover_event::Payload;
use clover_event::payload::manifest::Profile;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::report::ReportPart;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Names;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;

use crate::predicate;
use crate::predicate::ProfileThresholds;

/// Numbers that decide, beside their thresholds, and the verdict of each gate.
pub(super) fn gates(story: &Story, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Gates,
        "Every gate that a candidate was put to. A candidate is accepted only if all of them pass under the profile that \
         binds; what could not be computed is inconclusive, and that is no pass.",
    );
    let mut verdicts = Table::new(
        "verdicts",
        "What each gate says",
        &[
            ("candidate", "candidate"),
            ("gate", "gate"),
            ("asks", "asks"),
            ("split", "on"),
            ("verdict", "binding verdict"),
            ("recommended", "recommended"),
            ("literal", "literal"),
        ],
    );
    let mut numbers = Table::new(
        "numbers",
        "Numbers beside their thresholds",
        &[
            ("candidate", "candidate"),
            ("gate", "gate"),
            ("split", "on"),
            ("number", "number"),
            ("value", "value"),
            ("threshold", "held to"),
            ("literal_threshold", "literal, if other"),
        ],
    );
    for (seq, gate) in story.gates() {
        let asks = predicate::gate(gate.gate).asks;
        verdicts.row(
            seq,
            vec![
                Cell::text(names.of(gate.candidate)),
                Cell::text(gate.gate.as_str().to_uppercase()),
                Cell::text(asks),
                Cell::text(gate.split.as_str()),
                gate.verdicts.under(gate.thresholds.profile).into(),
                gate.verdicts.recommended.into(),
                gate.verdicts.literal.into(),
            ],
        );
        lines(&mut numbers, seq, gate, names);
    }
    verdicts.plot = Some(Plot::Matrix {
        row: 0,
        column: (1, 3),
        value: 4,
    });
    if verdicts.rows.is_empty() {
        part.lacks("gates", story.why_no_gates());
    }
    part.table(verdicts);
    part.table(numbers);
    part
}

fn lines(table: &mut Table, seq: u64, gate: &GateEvaluated, names: &Names) {
    let show = predicate::gate(gate.gate).show;
    let under = |profile| {
        show(
            &gate.evidence,
            &ProfileThresholds::under(&gate.thresholds, profile),
        )
    };
    let (binding, literal) = (under(gate.thresholds.profile), under(Profile::Literal));
    for (at, shown) in binding.iter().enumerate() {
        let other = literal.get(at).filter(|other| other.held != shown.held);
        let held = |held: &str| {
            if held.is_empty() {
                Cell::Absent
            } else {
                Cell::text(held)
            }
        };
        table.row(
            seq,
            vec![
                Cell::text(names.of(gate.candidate)),
                Cell::text(gate.gate.as_str().to_uppercase()),
                Cell::text(gate.split.as_str()),
                Cell::text(shown.name.as_str()),
                Cell::maybe(shown.value, value),
                held(&shown.held),
                other.map_or(Cell::Absent, |other| held(&other.held)),
            ],
        );
    }
}

/// A number of a criterion as a cell: counts are shown as such.
pub fn value(value: f64) -> Cell {
    if (1.0..1e15).contains(&value) && value.fract() == 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 1 to 1e15"
        )]
        return Cell::count(value as u64);
    }
    Cell::number(value)
}

/// Uplift of each attack, the searched worst case, and what came back of earlier exploits.
pub(super) fn gaming(story: &Story, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Gaming,
        "What an answer gains by edits that earn nothing: each attack of the battery, the worst chain that a search \
         found, and exploits that came back.",
    );
    let (attacks, searched, unchecked) = attacked(story, names);
    for name in unchecked {
        part.lacks(
            format!("attacks on {name}"),
            "no battery ran: gate P7 is not_checked",
        );
    }
    if attacks.rows.is_empty() && part.missing.is_empty() {
        part.lacks("attacks", story.why_no_gates());
    }
    part.table(attacks);
    part.table(searched);
    let (chains, exploits) = found(story, names);
    part.table(chains);
    part.table(exploits);
    part
}

/// What gate P7 read of each candidate: its attacks, its search, and candidates on which no battery ran.
fn attacked(story: &Story, names: &Names) -> (Table, Table, Vec<String>) {
    let mut attacks = Table::new(
        "attacks",
        "Uplift of each attack",
        &[
            ("candidate", "candidate"),
            ("attack", "attack"),
            ("mean", "mean uplift"),
            ("mean_absolute", "mean absolute"),
            ("seeds", "seeds"),
            ("promised", "promised at most"),
        ],
    );
    let mut searched = Table::new(
        "searched",
        "Search and regressions",
        &[
            ("candidate", "candidate"),
            ("searched", "worst uplift found"),
            ("regressions", "exploits that came back"),
        ],
    );
    let mut unchecked = Vec::new();
    for (seq, gate) in story.gates() {
        let Evidence::P7(found) = &gate.evidence else {
            continue;
        };
        let name = names.of(gate.candidate);
        if found.attacks.is_empty() && found.searched.is_none() {
            unchecked.push(name);
            continue;
        }
        for attack in &found.attacks {
            attacks.row(
                seq,
                vec![
                    Cell::text(name.as_str()),
                    Cell::text(attack.attack.as_str()),
                    attack.mean.into(),
                    attack.mean_absolute.into(),
                    attack.seeds.into(),
                    Cell::maybe(attack.tighter_max, Cell::Number),
                ],
            );
        }
        searched.row(
            seq,
            vec![
                Cell::text(name),
                Cell::maybe(found.searched, Cell::Number),
                found.regressions.into(),
            ],
        );
    }
    (attacks, searched, unchecked)
}

/// The worst chains of attacks, and exploits that were discovered in the iteration.
fn found(story: &Story, names: &Names) -> (Table, Table) {
    let mut chains = Table::new(
        "chains",
        "Worst chains of attacks",
        &[
            ("attacked", "attacked"),
            ("chain", "chain"),
            ("mean", "mean uplift"),
            ("seeds", "seeds"),
        ],
    );
    let mut exploits = Table::new(
        "exploits",
        "Exploits that were discovered; they stay in the battery",
        &[
            ("chain", "chain"),
            ("uplift", "uplift"),
            ("policy", "policy"),
            ("item", "item"),
            ("rubric_hash", "rubric that pays for it"),
        ],
    );
    for said in &story.said {
        match &said.event.payload {
            Payload::BatteryEvaluated(battery) => {
                let attacked = battery.candidate.map_or_else(
                    || "the rubric in force".to_owned(),
                    |candidate| names.of(candidate),
                );
                for chain in &battery.chains {
                    chains.row(
                        said.seq,
                        vec![
                            Cell::text(attacked.as_str()),
                            Cell::text(chain.chain.as_str()),
                            chain.mean.into(),
                            chain.seeds.into(),
                        ],
                    );
                }
            }
            Payload::ExploitDiscovered(exploit) => exploits.row(
                said.seq,
                vec![
                    Cell::text(exploit.chain.as_str()),
                    Cell::micro(exploit.uplift_micro),
                    Cell::text(exploit.policy.as_str()),
                    Cell::text(exploit.item.as_str()),
                    exploit.rubric_hash.into(),
                ],
            ),
            _ => {}
        }
    }
    (chains, exploits)
}
