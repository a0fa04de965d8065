//! `audits/`: a good ledger and many tampered ones, and two verifiers that must find the same in each.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use clover::event::Kind;
use clover::workflow::recompute::Recomputation;

use crate::support::computed;
use crate::support::computed_reports;
use crate::support::decided;
use crate::support::deployed;
use crate::support::forger::World;
use crate::support::gated;
use crate::support::iterated;
use crate::support::labelled;
use crate::support::planned;
use crate::support::released;
use crate::support::samples;
use crate::support::sequenced;
use crate::support::tampered;
use crate::support::tampered::Sample;
use crate::support::tampered_asked;
use crate::support::tampered_chosen;
use crate::support::tampered_claims;
use crate::support::tampered_descents;
use crate::support::tampered_drifts;
use crate::support::tampered_endpoints;
use crate::support::tampered_environments;
use crate::support::tampered_noise;
use crate::support::tampered_prompts;
use crate::support::tampered_repairs;
use crate::support::tampered_runs;
use crate::support::tampered_scales;
use crate::support::tampered_synths;
use crate::support::tuned;
use crate::support::verifiers;
use crate::support::verifiers::Case;
use crate::support::verifiers::Outcome;

/// Every file of a folder under `audits/`, by path.
fn files(sample: &Sample) -> BTreeMap<String, Vec<u8>> {
    let Case {
        ledger,
        checkpoint,
        pin,
        blobs,
        log_key,
    } = sample.case.clone();
    let mut files = BTreeMap::from([("ledger.jsonl".to_owned(), ledger)]);
    let optional = [
        ("checkpoint", checkpoint),
        ("pin", pin),
        (
            "log_key",
            log_key.map(|key| format!("{key}\n").into_bytes()),
        ),
    ];
    for (name, bytes) in optional {
        if let Some(bytes) = bytes {
            files.insert(name.to_owned(), bytes);
        }
    }
    for (name, bytes) in blobs.unwrap_or_default() {
        files.insert(format!("blobs/{name}"), bytes);
    }
    for (name, text) in tampered::documents(sample) {
        files.insert(name.to_owned(), text.into_bytes());
    }
    files
}

fn found(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inner = found(&path).into_iter();
            files.extend(inner.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn folders_are_those_of_the_generator() {
    let audits = verifiers::repository().join("audits");
    let samples = tampered::all();
    let names: BTreeSet<_> = samples.iter().map(|sample| sample.name).collect();
    assert_eq!(names.len(), samples.len(), "two samples share a name");
    for sample in samples {
        let folder = audits.join(sample.name);
        if std::env::var_os("UPDATE").is_some() {
            fs::remove_dir_all(&folder).ok();
            sample.case.write(&folder);
            for (name, text) in tampered::documents(sample) {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        assert!(
            found(&folder) == files(sample),
            "audits/{} is not what the generator makes; UPDATE=1 writes it",
            sample.name
        );
    }
    for entry in fs::read_dir(&audits).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let known = names.contains(name.as_str())
            || !entry.path().is_dir()
            || ["verify", "worked"].contains(&name.as_str());
        assert!(known, "audits/{name} is made by nobody");
    }
}

/// Modules of `audits/verify` in the order in which its `__main__.py` has them read.
fn modules_as_read() -> Vec<String> {
    let main = fs::read_to_string(verifiers::audits_verify().join("__main__.py")).unwrap();
    let listed = main.lines().filter_map(|line| line.strip_prefix("  "));
    listed
        .filter_map(|line| line.split_once(".py  "))
        .map(|(module, _)| module.to_owned())
        .collect()
}

/// Modules that a module of `audits/verify` imports from its folders.
fn imports_of(text: &str, folders: &BTreeSet<&str>) -> Vec<String> {
    let mut imports = Vec::new();
    for statement in text.split("\nfrom ").skip(1) {
        let (from, rest) = statement.split_once(" import ").unwrap();
        let folder = from.split('.').next().unwrap();
        if !folders.contains(folder) {
            continue;
        }
        if folder != from {
            imports.push(from.replace('.', "/"));
            continue;
        }
        let end = if rest.starts_with('(') { ')' } else { '\n' };
        // The next statement may follow at once.
        let names = rest.split(end).next().unwrap_or(rest);
        let names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
        let named = names.filter(|name| !name.is_empty());
        imports.extend(named.map(|name| format!("{folder}/{name}")));
    }
    imports
}

/// Whoever reads the verifier from top to bottom meets nothing that was not read before.
#[test]
fn modules_of_the_verifier_import_only_what_is_read_before() {
    let order = modules_as_read();
    let mut written: BTreeSet<_> = found(&verifiers::audits_verify()).into_keys().collect();
    written.retain(|path| !path.contains("__"));
    let listed: BTreeSet<_> = order.iter().map(|module| format!("{module}.py")).collect();
    assert_eq!(written, listed, "__main__.py lists every module");
    let folders: BTreeSet<_> = order
        .iter()
        .filter_map(|module| module.split('/').next())
        .collect();
    for (at, module) in order.iter().enumerate() {
        let path = verifiers::audits_verify().join(format!("{module}.py"));
        let text = fs::read_to_string(path).unwrap();
        assert!(text.lines().count() <= 600, "{module}.py is too long");
        for import in imports_of(&text, &folders) {
            assert!(order[..at].contains(&import), "{module} imports {import}");
        }
    }
}

/// The entry lines of a sample.
fn lines_of(sample: &Sample) -> Vec<Vec<u8>> {
    let lines = sample.case.ledger.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// A new kind needs no line of Python to be recorded and verified by us. Once `audits/verify` is taught it, the
/// story must tell it.
#[test]
fn the_good_ledger_holds_every_kind_that_both_verifiers_know() {
    let story = samples::good();
    let mut items = World::of(&story.lines).items;
    items.extend(World::of(&planned::story().lines).items);
    items.extend(World::of(&iterated::story().lines).items);
    items.extend(World::of(&gated::story().lines).items);
    items.extend(World::of(&labelled::story().lines).items);
    items.extend(tampered_drifts::good().items);
    items.extend(tampered_environments::whole().items);
    items.extend(World::of(&decided::story().lines).items);
    items.extend(World::of(&sequenced::story().lines).items);
    items.extend(World::of(&released::story().lines).items);
    items.extend(World::of(&deployed::story().lines).items);
    items.extend(World::of(&deployed::recalibration().lines).items);
    items.extend(World::of(&tuned::story().lines).items);
    for sample in tampered_chosen::all()
        .into_iter()
        .chain(tampered_claims::all())
        .chain(tampered_prompts::all())
        .chain(tampered_scales::all())
        .chain(tampered_endpoints::all())
        .chain(tampered_runs::all())
        .chain(tampered_noise::all())
        .chain(tampered_synths::all())
        .chain(tampered_asked::all())
        .chain(tampered_descents::all())
        .chain(tampered_repairs::all())
    {
        items.extend(World::of(&lines_of(&sample)).items);
    }
    let said: BTreeSet<_> = items
        .iter()
        .map(|item| item.body["kind"].as_str().unwrap().to_owned())
        .collect();
    let python = fs::read_to_string(verifiers::audits_verify().join("events/kinds.py")).unwrap();
    for kind in Kind::ALL {
        if python.contains(&format!("(\"{kind}\", {})", kind.version())) {
            assert!(
                said.contains(kind.as_str()),
                "tell {kind} in tests/it/support/samples/"
            );
        } else {
            println!("audits/verify does not know {kind} v{} yet", kind.version());
        }
    }
    assert!(said.len() >= 21);
}

/// Demands of a verifier what the samples declare; shows every sample where it says something else.
fn demand(verify: impl Fn(&[Sample]) -> Vec<Outcome>) {
    let mut wrong = Vec::new();
    let samples = tampered::all();
    let outcomes = verify(samples);
    assert_eq!(outcomes.len(), samples.len());
    for (sample, outcome) in samples.iter().zip(outcomes) {
        let expected = sample
            .first
            .map(|(seq, rule)| (seq as u64, rule.to_owned()));
        if outcome.first != expected {
            wrong.push(format!(
                "{}: expected {expected:?}, found {:?}",
                sample.name, outcome.all
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn our_verifier_finds_what_must_be_found() {
    demand(|samples| {
        let ours = samples.iter().map(|sample| verifiers::ours(&sample.case));
        ours.collect()
    });
}

/// Whoever follows the samples asks for everything. What holds then holds too: its numbers are those that its rows give.
/// Under an older rulebook numbers may say by themselves what nobody asked.
#[test]
fn what_holds_is_computed_again() {
    let samples = tampered::all();
    let (begun, mut wrong) = (Instant::now(), Vec::new());
    let holding = samples.iter().filter(|sample| sample.first.is_none());
    for sample in holding {
        let outcome = verifiers::ours_again(&sample.case);
        let expected = computed::found_again(sample.name);
        let found = outcome.first.as_ref().map(|(_, rule)| rule.as_str());
        if found != expected {
            let all: Vec<_> = outcome.all.iter().take(8).collect();
            wrong.push(format!(
                "{}: expected {expected:?}, found {all:?}",
                sample.name
            ));
        }
    }
    println!("computed again in {:?}", begun.elapsed());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever has rows is not told that nothing could be computed: of what iterations say, every number is.
#[test]
fn samples_that_are_computed_come_with_what_they_are_computed_from() {
    let samples = tampered::all();
    for name in computed::COMPUTED {
        let sample = samples.iter().find(|sample| sample.name == *name).unwrap();
        let gone = verifiers::not_recomputed(&sample.case);
        assert!(gone <= 2, "{name}: {gone} numbers are not computed again");
    }
}

/// A report is written again by `clover replay` alone.
#[test]
fn a_report_that_hides_what_was_found_is_another_when_it_is_written_again() {
    let samples = tampered::all();
    for (name, path) in [
        ("good-decision", None),
        ("good-report", None),
        (computed::HIDES, Some(computed::DIFFERING)),
    ] {
        let sample = samples.iter().find(|sample| sample.name == name).unwrap();
        let again = computed_reports::written_again(&sample.case);
        let [again] = &again[..] else {
            panic!("{name}: {again:?}");
        };
        let found = match again {
            Recomputation::Identical => None,
            Recomputation::Differs(differences) => Some(differences[0].path.as_str()),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, path, "{name}");
    }
}

#[test]
fn the_independent_verifier_finds_what_must_be_found() {
    if verifiers::python() {
        demand(|samples| {
            let cases: Vec<_> = samples.iter().map(|sample| sample.case.clone()).collect();
            let theirs = verifiers::theirs_of_many(&cases).into_iter();
            theirs.map(Result::unwrap).collect()
        });
    }
}

/// A note ends at its limit, whatever it begins with: lines of strangers' signatures may follow the log's own.
#[test]
fn a_checkpoint_beyond_its_limit_is_none() {
    let samples = tampered::all();
    let good = samples.iter().find(|sample| sample.name == "good").unwrap();
    let head = good.case.checkpoint.clone().unwrap();
    let stranger = format!("\u{2014} stranger {}\n", "AAAA".repeat(400));
    let longer = |lines: usize, zeros: usize| {
        let lines = stranger.repeat(lines).into_bytes();
        [head.clone(), lines, vec![b'0'; zeros]].concat()
    };
    for (note, is_found) in [
        (longer(40, 0), false),
        (longer(41, 0), true),
        (longer(0, 1 << 21), true),
    ] {
        assert_eq!(note.len() > 65_536, is_found);
        for is_pin in [false, true] {
            let mut case = good.case.clone();
            let place = if is_pin {
                &mut case.pin
            } else {
                &mut case.checkpoint
            };
            *place = Some(note.clone());
            let ours = verifiers::ours(&case);
            let rule = ours.first.as_ref().map(|(_, rule)| rule.as_str());
            assert_eq!(rule, is_found.then_some("checkpoint"), "{:?}", ours.all);
            if verifiers::python() {
                let theirs = verifiers::theirs_of_many(&[case]).remove(0);
                assert_eq!(theirs, Ok(ours));
            }
        }
    }
}

/// As an auditor calls it, over the files as they stand: one that holds, and one that does not.
/// The sample exposes units under a plan whose custodian never agreed; the answer says it, beside the finding.
#[test]
fn a_plan_that_nobody_countersigned_was_not_in_force_before() {
    if !verifiers::python() {
        return;
    }
    let sample = verifiers::audits_verify().with_file_name("missing-countersignature");
    let output = verifiers::python3()
        .arg(verifiers::audits_verify())
        .arg(sample.join("ledger.jsonl"))
        .args(["--ask", "plans", "--json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let plans = report["answers"]["plans"].as_array().unwrap();
    let late = plans.iter().filter(|plan| plan["timing"] == "after");
    let late: Vec<_> = late.map(|plan| &plan["manifest"]).collect();
    assert_eq!(late, ["m-4"]);
}

#[test]
fn the_independent_verifier_is_a_program_of_its_own() {
    if verifiers::python() {
        let samples = tampered::all();
        for holds in [true, false] {
            let sample = samples
                .iter()
                .find(|sample| sample.first.is_none() == holds);
            let sample = sample.unwrap();
            let folder = verifiers::repository().join("audits").join(sample.name);
            let outcome = verifiers::theirs(&sample.case.arguments(&folder));
            assert_eq!(outcome.first.is_none(), holds, "{}", sample.name);
        }
    }
}
