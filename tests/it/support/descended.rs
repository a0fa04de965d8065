//! A short run that lowers the loss of a judge's prompt, with everything that a run may say: a proposal that is rejected and
//! one that a person approves, steps that make val worse and are taken back, a stop, a step without a patch.

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::id::RunId;
use clover::event::payload::Role;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::sgd::SgdDocument;
use clover::event::payload::sgd::SgdPart;
use clover::event::payload::sgd::SgdRowsListed;
use clover::event::payload::sgd::SgdScored;
use clover::event::payload::sgd::SgdSplit;
use clover::event::payload::sgd::SgdTarget;
use clover::event::payload::sgd_steps::SgdEnd;
use clover::event::payload::sgd_steps::SgdGradientReturned;
use clover::event::payload::sgd_steps::SgdPatchApproved;
use clover::event::payload::sgd_steps::SgdPatchProposed;
use clover::event::payload::sgd_steps::SgdPatchRejected;
use clover::event::payload::sgd_steps::SgdStopped;
use clover::event::payload::sgd_steps::SgdWord;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::num::Count;
use clover::num::Micro;
use clover::projection::sgd::SgdRun;
use clover::projection::sgd::SgdRuns;
use clover::projection::sgd::draws::beacon_of;
use clover::projection::sgd::draws::parts_seed;
use clover::projection::sgd::draws::seed_of;
use clover::projection::sgd::due::SgdDue;
use clover::projection::sgd::rules::part_root;
use clover::prompt::JudgePrompt;
use clover::prompt::Lexicon;
use clover::prompt::Proposal;
use clover::prompt::SectionPatch;
use clover::workflow::sgd::agents::Agents;
use clover::workflow::sgd::agents::Aggregate;
use clover::workflow::sgd::course;
use clover::workflow::sgd::course::SgdCourse;
use clover::workflow::sgd::rows;
use clover::workflow::sgd::verdict::PatchVerdict;
use serde_json::json;

use super::TestLedger;
use super::key_added;
use super::planned;
use super::signer;

/// The run.
pub const RUN: &str = "descent-1";
/// A run whose steps make its prompt better.
pub const BETTER: &str = "descent-better";
/// The byte of the agents' key.
pub const AGENTS: u8 = 62;
/// Rows of the experiment.
const ROWS: u64 = 20;

/// Prompt 0, as Markdown.
pub const PROMPT: &str = "You judge how well an answer explains what was asked, for a reader who is new to the matter. \
Read the question first, then the answer, and score the answer by the share of the question that it explains.\n\n\
## Bias\n<!-- clover: kind=anti_bias editable -->\nTreat every answer alike, whoever wrote it and whatever it claims.\n\n\
## Output\nAnswer with one number from 0 to 1 and nothing else, with two decimals and without any words around it.\n";

fn count(value: u64) -> Count {
    Count::new(value).unwrap()
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

pub fn prompt() -> JudgePrompt {
    JudgePrompt::from_file("prompt.md", PROMPT.as_bytes()).unwrap()
}

/// What is said before a run: the judge, the design and the labels.
pub fn before() -> Vec<Payload> {
    let judge = json!({
        "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "extract/1",
        "judge": "sim", "model": "simulated-judge/1", "port": "builtin",
        "prompt_hash": Digest::sha256(b""), "tool_snapshot": Digest::sha256(b""),
    });
    let design = json!({
        "design": "read", "inclusion_micro": 1_000_000, "protocol": "blind", "purpose": DesignPurpose::Calibrate.as_str(),
    });
    let mut said = vec![
        planned::payload("judge.registered", &judge),
        planned::payload("label.design_registered", &design),
    ];
    for row in 0..ROWS {
        let value = [100_000, 200_000, 800_000, 900_000][usize::try_from(row % 4).unwrap()];
        let label = json!({
            "design": "read", "draw": 0, "item": format!("p{row:02}"), "policy": "base", "purpose": "calibrate",
            "rater": "ann", "value_micro": value,
        });
        said.push(planned::payload("label.recorded", &label));
    }
    said
}

/// What opens a run of so many steps, by what stands before it; `agents` is the byte of the agents' key.
pub fn opened(
    ledger: &Ledger,
    of: &ExperimentId,
    (run, agents, steps): (&str, u8, u64),
) -> Payload {
    let state = ledger.state();
    let first = state.fold::<SgdRuns>().first_of(of);
    let through = first.map_or(ledger.size() - 1, |first| first.said.through_seq.value());
    let all = rows::labelled(ledger, (of, through), SgdTarget::Mean).unwrap();
    let beacon = beacon_of(state, of, Some(ledger.seen()));
    let parts = rows::parts(all, parts_seed(state, of, beacon).unwrap());
    let prompt = prompt();
    let root = |split| part_root(&parts[&split]);
    let mut said = json!({
        "agents": "aggregate", "build": "clover 0.1.0", "judge": "sim", "key": signer(agents).id(),
        "lexicon": Lexicon::built_in().digest(), "model": "aggregate/1",
        "prompt": String::from_utf8(prompt.to_json()).unwrap(), "prompt_digest": prompt.digest(), "run": run,
        "seed": seed_of(state, of, (beacon, run)).unwrap(),
        "splits": {
            "confirm": root(SgdSplit::Confirm), "test": root(SgdSplit::Test), "train": root(SgdSplit::Train),
            "val": root(SgdSplit::Val),
        },
        "terms": {
            "alpha_micro": 1_000_000, "batch": 6, "beta_micro": 500_000, "distance": "mae", "eta_micro": 100_000,
            "extra": 3, "gamma_micro": 0, "lr_max_micro": 1_000_000, "lr_min_micro": 50_000, "ranking": "logistic",
            "repeats": 2, "reverts": true, "steps": steps, "target": "mean", "tau_micro": 500_000, "warmup": 0,
            "zeta_micro": 2_000_000,
        },
        "through_seq": through,
    });
    if let Some(beacon) = beacon {
        said["beacon"] = json!({"root": beacon.root, "size": beacon.size});
    }
    planned::payload("sgd.opened", &said)
}

/// Scores of rows: near their targets under prompt 0, and the other way round under every other; of the better run the other
/// way about.
fn scores(run: &SgdRun, part: SgdPart, prompt: Digest) -> Vec<Vec<Micro>> {
    let (_, rows) = course::unscored(run, part, prompt);
    let is_base = (prompt == run.said.prompt_digest) != (run.said.run.as_str() == BETTER);
    let of = |target: Micro| {
        let target = target.value();
        let mean = if is_base { target } else { 1_000_000 - target };
        vec![micro(mean - 10_000), micro(mean + 20_000)]
    };
    rows.into_iter().map(|row| of(row.target_micro)).collect()
}

/// Edits the frozen output section.
fn frozen(prompt: &JudgePrompt) -> Proposal {
    let section = prompt.sections().last().unwrap().section_id.clone();
    let patch = SectionPatch::edit(prompt, &section, "Answer with a word.");
    Proposal {
        addresses: vec![0],
        patch,
        rationale: "A word is shorter.".to_owned(),
    }
}

fn proposed(run: &SgdRun, course: &SgdCourse<'_>) -> Payload {
    let step = run.going().unwrap();
    let is_first = run.taken() == 0 && step.proposed.is_empty();
    let patch = if is_first {
        String::from_utf8(frozen(course.current().unwrap()).to_json()).unwrap()
    } else {
        let ask = course.ask().unwrap();
        Aggregate.propose(&ask).unwrap().unwrap()
    };
    SgdPatchProposed {
        call: None,
        attempt: count(step.proposed.len() as u64),
        parent_digest: run.digest(),
        patch: SgdDocument::new(patch).unwrap(),
        run: run.said.run.clone(),
        step: count(run.taken()),
    }
    .into()
}

fn judged(run: &SgdRun, course: &SgdCourse<'_>) -> Payload {
    let step = run.going().unwrap();
    let standing = step.standing().unwrap();
    match course.verdict().unwrap() {
        PatchVerdict::Broken(violations) => SgdPatchRejected {
            attempt: standing.attempt,
            run: run.said.run.clone(),
            step: standing.step,
            violations,
        }
        .into(),
        PatchVerdict::Valid(_) if run.taken() == 0 && step.approvals.is_empty() => {
            SgdPatchApproved {
                attempt: standing.attempt,
                decision: SgdWord::Approve,
                patch_digest: Digest::sha256(standing.patch.as_str().as_bytes()),
                run: run.said.run.clone(),
                step: standing.step,
            }
            .into()
        }
        PatchVerdict::Valid(patch) => scored(run, SgdPart::Val, patch.prompt.digest()),
        PatchVerdict::Waits => panic!("the pair never says always"),
    }
}

fn scored(run: &SgdRun, part: SgdPart, prompt: Digest) -> Payload {
    let (first, _) = course::unscored(run, part, prompt);
    let step = if part == SgdPart::Base {
        0
    } else {
        run.taken()
    };
    SgdScored {
        first: count(first as u64),
        missed: Vec::new(),
        part,
        prompt_digest: prompt,
        run: run.said.run.clone(),
        scores: scores(run, part, prompt),
        step: count(step),
    }
    .into()
}

/// Scores of confirm under a prompt.
pub fn confirmed(run: &SgdRun, prompt: Digest) -> Payload {
    scored(run, SgdPart::Confirm, prompt)
}

/// What is said next of the run; `None` after its end.
pub fn next(ledger: &Ledger, (of, run): (&ExperimentId, &str)) -> Option<Payload> {
    let state = ledger.state();
    let run = &state.fold::<SgdRuns>().by_id[&run.parse::<RunId>().unwrap()];
    let due = run.due()?;
    let course = || SgdCourse::of(run).unwrap();
    let step = count(run.taken());
    let id = run.said.run.clone();
    Some(match due {
        SgdDue::Rows(split) => {
            let through = (of, run.said.through_seq.value());
            let all = rows::labelled(ledger, through, run.said.terms.target).unwrap();
            let parts = rows::parts(all, parts_seed(state, of, run.said.beacon).unwrap());
            SgdRowsListed {
                first: count(0),
                rows: parts[&split].clone(),
                run: id,
                split,
            }
            .into()
        }
        SgdDue::Scores(part) => {
            let prompt = course().scored_prompt(part).unwrap().digest();
            scored(run, part, prompt)
        }
        SgdDue::Loss(part) => course().loss_computed(part).unwrap().into(),
        SgdDue::Batch | SgdDue::Checkpoint => {
            let course = course();
            let reverted = course.reverted().unwrap().map(Payload::from);
            let stop = || course.stop().unwrap().map(Payload::from);
            let other = || match due {
                SgdDue::Batch => course.batch().unwrap().into(),
                _ => course.checkpoint().unwrap().into(),
            };
            reverted.or_else(stop).unwrap_or_else(other)
        }
        SgdDue::Request => course().requested().unwrap().into(),
        SgdDue::Gradient => {
            let request = run.going().unwrap().request.as_ref().unwrap();
            let gradient = Aggregate.gradient(request.request.as_str()).unwrap();
            SgdGradientReturned {
                call: None,
                gradient: SgdDocument::new(gradient).unwrap(),
                run: id,
                step,
            }
            .into()
        }
        // The last step is taken without a patch.
        SgdDue::Proposal if run.taken() + 1 == run.said.terms.steps.value() => {
            course().committed().unwrap().into()
        }
        SgdDue::Proposal => proposed(run, &course()),
        SgdDue::Judgement => judged(run, &course()),
        SgdDue::Commit => course().committed().unwrap().into(),
        SgdDue::Test => {
            let chosen = run.checkpoint.as_ref().unwrap().prompt_digest;
            let both = [run.said.prompt_digest, chosen];
            let mut open = both.iter().filter(|digest| !run.test.contains_key(*digest));
            match open.next() {
                Some(digest) => scored(run, SgdPart::Test, *digest),
                None => course().test_read().unwrap().into(),
            }
        }
        SgdDue::End => SgdStopped {
            reason: SgdEnd::Completed,
            run: id,
            steps: step,
        }
        .into(),
    })
}

/// Whether the agents sign it.
pub fn is_theirs(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::SgdGradientReturned(_) | Payload::SgdPatchProposed(_)
    )
}

/// Tells the whole run in an experiment that is registered; the agents' key joins before.
pub fn tell(test: &mut TestLedger, experiment: &str) {
    let of: ExperimentId = experiment.parse().unwrap();
    let agents = signer(AGENTS);
    let added = key_added(&agents, "Dee", &[Role::Optimizer]);
    test.append(&[Command::new(added, None)]).unwrap();
    for payload in before() {
        test.append(&[Command::new(payload, Some(of.clone()))])
            .unwrap();
    }
    let said = opened(&test.ledger, &of, (RUN, AGENTS, 3));
    test.append(&[Command::new(said, Some(of.clone()))])
        .unwrap();
    while let Some(payload) = next(&test.ledger, (&of, RUN)) {
        let by = signer(if is_theirs(&payload) { AGENTS } else { 1 });
        let command = Command::new(payload, Some(of.clone()));
        test.ledger.append(&[command], &by).unwrap();
    }
}
