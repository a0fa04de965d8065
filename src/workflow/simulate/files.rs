//! A world as files: rows in the form that `clover import cje` reads, and what else is known of them.

use std::collections::BTreeMap;

use clover_rubric::extract;
use clover_rubric::extract::recorded::Traces;
use serde::Serialize;
use serde_json::json;

use crate::judge::builtin;
use crate::judge::run::ProbeEvidence;
use crate::simulate::truth::Worth;
use crate::simulate::world::Fault;
use crate::simulate::world::Kind;
use crate::simulate::world::NAME;
use crate::simulate::world::SimulatedRow;
use crate::simulate::world::World;

/// Rows of each anchor policy.
pub const ANCHOR_ROWS: u64 = 500;

/// A file of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the data set's folder.
    pub path: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// One line of a file of rows, in the field order of its documentation.
#[derive(Serialize)]
struct FileRecord<'a> {
    prompt_id: &'a str,
    target_policy: &'a str,
    draw_idx: u64,
    judge_score: Box<serde_json::value::RawValue>,
    oracle_label: Box<serde_json::value::RawValue>,
    sampled_at: String,
    prompt: &'a str,
    response: &'a str,
    metadata: Slice<'a>,
}

#[derive(Serialize)]
struct Slice<'a> {
    domain: &'a str,
    level: &'a str,
}

fn number(value: clover_num::Micro) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(value.to_string()).expect("BUG: a decimal is JSON")
}

fn push(out: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *out, line).expect("BUG: texts and numbers are JSON");
    out.push(b'\n');
}

fn lines<'a>(world: &World, rows: impl IntoIterator<Item = &'a SimulatedRow>) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        let (domain, level) = world.slice(row.slice);
        let sampled_at = row.sampled_at.to_text();
        push(
            &mut out,
            &FileRecord {
                prompt_id: row.item.as_str(),
                target_policy: row.policy.as_str(),
                draw_idx: row.draw().value(),
                judge_score: number(row.base),
                oracle_label: number(row.label),
                sampled_at: String::from_utf8_lossy(&sampled_at).into_owned(),
                prompt: &row.prompt,
                response: &row.response,
                metadata: Slice { domain, level },
            },
        );
    }
    out
}

/// Slices of items, one JSON object a line.
fn slices(world: &World, rows: &[SimulatedRow]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        let (domain, level) = world.slice(row.slice);
        push(
            &mut out,
            &json!({"item": row.item.as_str(), "domain": domain, "level": level}),
        );
    }
    out
}

/// What was recorded before anything was scored: sources that exist, and tool calls that were made.
fn known(rows: &[SimulatedRow]) -> ProbeEvidence {
    let none = BTreeMap::<String, Traces>::new();
    let traces = rows.iter().fold(none, |mut by_item, row| {
        if let Some(call) = &row.call {
            by_item.insert(row.item.to_string(), Traces::of([call.as_str()]));
        }
        by_item
    });
    ProbeEvidence {
        evidence: None,
        citations: Some(World::citations(rows)),
        facts: None,
        traces: Some(traces),
    }
}

fn compact(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("BUG: texts and numbers are JSON");
    bytes.push(b'\n');
    bytes
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("BUG: texts and numbers are JSON");
    bytes.push(b'\n');
    bytes
}

/// The rubric to start from, as a file.
pub fn rubric_yaml(fault: Fault) -> String {
    let penalty = if fault == Fault::Length { "0.3" } else { "0" };
    let (tokens, cap) = if fault == Fault::Length {
        ("5000", "0.9")
    } else {
        ("200", "0.25")
    };
    format!(
        "rubric:\n  version: \"1.0\"\n  target: Y\n  sdp_version: sdp-1\n  obligations:\n    factual_adequacy:\n      \
         verification:\n        allowed_domains: [data.example.edu, example.org]\n        mismatch_penalty: {penalty}\n  \
         guards:\n    length_bias_cap:\n      if_tokens_gt: {tokens}\n      max_raw_score: {cap}\n    \
         tool_trace_consistency: true\n"
    )
}

/// Name of the patch that mends the fault; without a fault, of one that mends nothing.
pub fn patch_id(fault: Fault) -> &'static str {
    match fault {
        Fault::Length => "cap-padded-answers",
        Fault::Citations | Fault::None => "verify-sources",
    }
}

/// That patch, as a file.
pub fn patch_yaml(fault: Fault) -> String {
    let (family, rationale, changes) = match fault {
        Fault::Length => (
            "length_bias_cap",
            "Long answers are over-scored; cap them.",
            "    guards.length_bias_cap:\n      if_tokens_gt: 200\n      max_raw_score: 0.25\n",
        ),
        Fault::Citations | Fault::None => (
            "evidence_verification",
            "Answers with sources that do not resolve are over-scored; subtract what they gain.",
            "    obligations.factual_adequacy.verification.mismatch_penalty: 0.3\n",
        ),
    };
    format!(
        "patch:\n  family: {family}\n  id: {}\n  rationale: {rationale}\n  changes:\n{changes}  constraints:\n    \
         max_tokens_added: 10\n    affects_rescore: false\n",
        patch_id(fault)
    )
}

/// What is true of a world, as a file; with the worth of its patch where it was computed.
pub fn truth_json(world: &World, seed: u64, worth: Option<&Worth>) -> Vec<u8> {
    let (t1, confirm_from, t2) = world.times();
    let text = |time: clover_ground::time::Timestamp| {
        String::from_utf8_lossy(&time.to_text()).into_owned()
    };
    let fault = world.setting().fault;
    let faulty = (fault != Fault::None).then(|| world.slice(world.faulty_slice()));
    pretty(&json!({
        "world": NAME,
        "seed": seed,
        "setting": world.setting(),
        "judge": builtin::MODEL,
        "extractor": extract::VERSION,
        "faulty_slice": faulty.map(|(domain, level)| json!({"domain": domain, "level": level})),
        "windows": {"t1": text(t1), "confirm_from": text(confirm_from), "t2": text(t2)},
        "patch": patch_id(fault),
        "worth": worth,
    }))
}

/// Every file of the data set but `truth.json`, in order of paths.
pub fn files(world: &World, rows: &[SimulatedRow]) -> Vec<File> {
    let anchors = |kind| -> Vec<SimulatedRow> {
        (0..ANCHOR_ROWS)
            .map(|number| world.row(kind, number))
            .collect()
    };
    let (low, high) = (anchors(Kind::AnchorLow), anchors(Kind::AnchorHigh));
    let every: Vec<SimulatedRow> = rows.iter().chain(&low).chain(&high).cloned().collect();
    let fault = world.setting().fault;
    let file = |path, bytes| File { path, bytes };
    vec![
        file("anchors/anchor_high_responses.jsonl", lines(world, &high)),
        file("anchors/anchor_low_responses.jsonl", lines(world, &low)),
        file("known.json", compact(&known(&every))),
        file("patch.yaml", patch_yaml(fault).into_bytes()),
        file("responses/base_responses.jsonl", lines(world, rows)),
        file("rubric.yaml", rubric_yaml(fault).into_bytes()),
        file("slices.jsonl", slices(world, &every)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clover_num::Micro;
    use clover_rubric::Context;
    use clover_rubric::Family;
    use clover_rubric::Rubric;
    use clover_rubric::check;
    use clover_rubric::extract::vocabulary;

    use super::*;
    use crate::simulate::Setting;
    use crate::simulate::SettingError as E;
    use crate::simulate::truth;

    fn world(fault: Fault, seed: u64) -> World {
        World::new(
            Setting {
                fault,
                ..Setting::default()
            },
            seed,
        )
        .unwrap()
    }

    #[test]
    fn rows_are_what_their_world_says() {
        for fault in Fault::ALL {
            let world = world(fault, 3);
            let rows: Vec<SimulatedRow> = (0..1500)
                .map(|number| world.row(Kind::Base, number))
                .collect();
            assert_eq!(rows[7], world.row(Kind::Base, 7));
            let faulty = rows.iter().filter(|row| row.faulty).count();
            // Eight percent of 1,500 within five standard deviations of a binomial count.
            let expected = if fault == Fault::None { 0 } else { 120 };
            assert!(
                faulty.abs_diff(expected) <= if expected == 0 { 0 } else { 53 },
                "{fault}: {faulty}"
            );
            for row in &rows {
                assert!(!row.faulty || row.slice == world.faulty_slice());
                // What the judge pays beyond worth: 0.3 for the fault, 0.04 for a tone of authority, and nothing else.
                let authority = if row.evidence.confident { 0.04 } else { 0.0 };
                let over = if row.faulty { 0.3 } else { 0.0 } + authority;
                let paid = row.base.value() as f64 / 1e6;
                assert!(
                    (paid - (row.worth + over).min(1.0)).abs() < 1e-9,
                    "{fault}: {row:#?}"
                );
                assert_eq!(
                    row.evidence.tool_trace_claims,
                    row.evidence.tool_trace_matches
                );
                assert!(
                    row.faulty || truth::score(row, &world.rules()).unwrap() > paid - 1e-9,
                    "{row:#?}"
                );
            }
        }
    }

    #[test]
    fn the_rules_leave_one_fault_open_and_the_patch_mends_it() {
        for fault in [Fault::Citations, Fault::Length] {
            let world = world(fault, 4);
            let faulty = (0..3000)
                .map(|number| world.row(Kind::Fresh, number))
                .filter(|row| row.faulty);
            for row in faulty.take(40) {
                let before = truth::score(&row, &world.rules()).unwrap();
                let after = truth::score(&row, &world.patched_rules()).unwrap();
                assert!((before - row.base.value() as f64 / 1e6).abs() < 1e-9);
                match fault {
                    Fault::Citations => {
                        assert!((before - after - 0.3).abs() < 1e-6 || after.abs() < 1e-9);
                    }
                    _ => assert!(after <= 0.25),
                }
            }
        }
    }

    #[test]
    fn a_true_fix_is_worth_something_and_nothing_is_worth_nothing() {
        let worth = |fault| {
            let world = world(fault, 5);
            truth::of_rules(
                &world,
                (&world.rules(), &world.patched_rules()),
                6000,
                &mut |_| {},
            )
            .unwrap()
        };
        let fix = worth(Fault::Citations);
        assert!(
            fix.dmse < -0.002 && fix.dmse > -0.010 && fix.se < 0.0006,
            "{fix:?}"
        );
        assert_eq!(fix.by_slice.len(), 12);
        assert!(
            fix.by_slice[11] < 0.0 && fix.by_slice[..11].iter().all(|d| d.abs() < 0.003),
            "{fix:?}"
        );
        assert!(worth(Fault::Length).dmse < -0.002);
        let none = worth(Fault::None);
        assert!(none.dmse.abs() < 1e-12, "{none:?}");
    }

    #[test]
    fn anchors_are_rows_like_the_others_somewhat_apart() {
        let world = world(Fault::Citations, 6);
        let of = |kind| -> Vec<SimulatedRow> {
            (0..4 * ANCHOR_ROWS)
                .map(|number| world.row(kind, number))
                .collect()
        };
        let mean = |rows: &[SimulatedRow]| {
            rows.iter().map(|row| row.worth).sum::<f64>() / rows.len() as f64
        };
        let (low, base, high) = (of(Kind::AnchorLow), of(Kind::Base), of(Kind::AnchorHigh));
        // source: E q is .25, .5 and .75 for the least, middle and largest of three uniforms, q^2 on average .1, .3 and .6;
        // worth .7 q + .3 q^2 for a fifth of rows: apart by .047 below and .053 above, less what the fault takes.
        for (one, other) in [(&low, &base), (&base, &high)] {
            let apart = mean(other) - mean(one);
            assert!((0.025..0.075).contains(&apart), "{apart}");
        }
        for rows in [low, high] {
            // Eight percent of 2,000 within five standard deviations of a binomial count.
            let faulty = rows.iter().filter(|row| row.faulty).count();
            assert!(faulty.abs_diff(160) <= 61, "{faulty}");
        }
    }

    #[test]
    fn the_files_say_what_the_rules_are() {
        for fault in Fault::ALL {
            let world = world(fault, 1);
            let rubric = Rubric::parse(rubric_yaml(fault).as_bytes()).unwrap();
            assert_eq!(rubric.rules(), world.rules(), "{fault}");
            let none = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let context = Context {
                rubric: &rubric,
                families: &[Family::EvidenceVerification, Family::LengthBiasCap].into(),
                frozen: &none.0,
                vocabulary: &vocabulary::tags(),
                unverified: None,
                ids: &none.1,
                hashes: &none.2,
            };
            let (patch, checked) = check(patch_yaml(fault).as_bytes(), &context).unwrap();
            assert_eq!(patch.id, patch_id(fault));
            assert_eq!(checked.rubric.rules(), world.patched_rules(), "{fault}");
            assert_eq!(checked.needs_rescore, Some(false));
        }
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let of = |setting| World::new(setting, 1).map(|_| ()).unwrap_err();
        let setting = Setting::default();
        assert_eq!(
            of(Setting {
                slices: 5,
                ..setting
            }),
            E::Slices
        );
        assert_eq!(
            of(Setting {
                window_rows: 0,
                ..setting
            }),
            E::Rows
        );
        let micro = |value| Micro::new(value).unwrap();
        assert_eq!(
            of(Setting {
                share_micro: micro(90_000),
                ..setting
            }),
            E::Share
        );
        assert_eq!(
            of(Setting {
                label_noise_micro: micro(-1),
                ..setting
            }),
            E::Noise
        );
    }
}
