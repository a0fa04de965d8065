//! The rule `sgd`, as far as it needs no computing: the steps of a run come in their order, each by whoever may say it, on
//! the rows that were committed before the first; test is read once. What follows from numbers and texts, `workflow` asks.

use clover_event::Payload;
use clover_event::id::Root;
use clover_event::payload::Role;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::intake::PartRoot;
use clover_event::payload::sgd::REPEATS_MAX;
use clover_event::payload::sgd::SgdAgents;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdRowsListed;
use clover_event::payload::sgd::SgdScored;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdTerms;
use clover_event::payload::sgd::SgdTestRead;
use clover_event::payload::sgd_steps::BATCH_MAX;
use clover_event::payload::sgd_steps::SgdEnd;
use clover_event::payload::sgd_steps::SgdGradientReturned;
use clover_event::payload::sgd_steps::SgdPatchApproved;
use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_event::payload::sgd_steps::SgdStopped;
use clover_ground::digest::Digest;
use clover_ground::merkle::Frontier;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Count;

use super::SgdRun;
use super::SgdRuns;
use super::asked_scores;
use super::called;
use super::draws::beacon_of;
use super::draws::seed_of;
use super::due;
use super::gate;
use super::run_of;
use crate::judges::Judges;
use crate::manifests::Manifests;
use crate::splits::member_leaf_of;

/// The rule of runs that lower the loss of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct SgdRule;

/// Most steps of a run.
pub const STEPS_MAX: u64 = 200;

/// The leaf of a row in the tree of its part.
pub fn row_leaf(row: &SgdRow) -> Digest {
    let (draw, target) = (row.draw.to_string(), row.target_micro.value().to_string());
    member_leaf_of(&[row.item.as_str(), row.policy.as_str(), &draw, &target])
}

/// The root over rows of a part, in their order.
pub fn rows_root<'a>(rows: impl IntoIterator<Item = &'a SgdRow>) -> Digest {
    let mut tree = Frontier::new();
    for row in rows {
        tree.push(row_leaf(row));
    }
    tree.root()
}

/// Count and root of a part.
pub fn part_root(rows: &[SgdRow]) -> PartRoot {
    PartRoot {
        count: Count::new(rows.len() as u64).unwrap_or_default(),
        root: Root(rows_root(rows)),
    }
}

fn within(what: &str, found: u64, (least, most): (u64, u64)) -> RuleAnswer {
    let expected = format!("{what} from {least} to {most}");
    ensure!((least..=most).contains(&found), expected, found.to_string());
    Ok(())
}

/// Whether constants are ones that a run may have, whatever their schedule.
///
/// # Errors
/// The first that is none.
pub fn check_terms(terms: &SgdTerms) -> RuleAnswer {
    within("repeats", terms.repeats.value(), (1, REPEATS_MAX as u64))?;
    within("steps", terms.steps.value(), (1, STEPS_MAX))?;
    within("batch", terms.batch.value(), (3, BATCH_MAX as u64))?;
    let is_thirds = terms.batch.value().is_multiple_of(3);
    ensure!(
        is_thirds,
        "a batch of three equal strata",
        terms.batch.to_string()
    );
    within("warmup", terms.warmup.value(), (0, terms.steps.value()))?;
    within("extra", terms.extra.value(), (0, STEPS_MAX))?;
    let rates = [
        0,
        terms.lr_min_micro.value(),
        terms.lr_max_micro.value(),
        1_000_000,
    ];
    let are_ordered = rates.windows(2).all(|pair| pair[0] <= pair[1]);
    let found = format!("{} to {}", terms.lr_min_micro, terms.lr_max_micro);
    ensure!(
        are_ordered,
        "learning rates from 0 to 1, lowest first",
        found
    );
    let tau = terms.tau_micro.value();
    ensure!(
        (0..=1_000_000).contains(&tau),
        "tau from 0 to 1",
        tau.to_string()
    );
    let weights = [
        terms.alpha_micro,
        terms.beta_micro,
        terms.gamma_micro,
        terms.eta_micro,
        terms.zeta_micro,
    ];
    let are_weights = weights
        .iter()
        .all(|of| (0..=100_000_000).contains(&of.value()));
    ensure!(are_weights, "weights from 0 to 100", "another");
    // Ranking rewards gaps beyond the human one: it may not outweigh the distance.
    let found = format!("{} against {}", terms.beta_micro, terms.alpha_micro);
    ensure!(
        terms.beta_micro <= terms.alpha_micro && terms.alpha_micro.value() > 0,
        "a ranking that weighs no more than the distance",
        found
    );
    Ok(())
}

/// A run is opened on rows that no other choice could have given, by agents that neither score nor label.
fn check_opened(state: &State, event: &ProposedEvent<'_>, said: &SgdOpened) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let runs = state.fold::<SgdRuns>();
    if let Some(known) = runs.by_id.get(&said.run) {
        return unmet("a name that no run had", known.said.run.to_string());
    }
    let mut own = runs.by_id.values();
    let open = own.find(|run| run.end.is_none() && run.experiment == *experiment);
    if let Some(open) = open {
        let expected = format!("no other open run in {experiment}");
        return unmet(expected, open.said.run.to_string());
    }
    let key = state.keyring.keys.get(&said.key);
    let may = key.is_some_and(|key| key.end.is_none() && key.roles.contains(Role::Optimizer));
    ensure!(may, "a live key in role optimizer", said.key.to_string());
    let judged = runs.judged.contains(&said.key);
    let expected = "an optimizer's key that signed no score and no label";
    ensure!(!judged, expected, said.key.to_string());
    let first = said.model.as_str().split_whitespace().next();
    let own = first.unwrap_or_default().to_ascii_lowercase();
    let is_own = own.starts_with("aggregate/");
    let is_aggregate = said.agents == SgdAgents::Aggregate;
    let expected = "the name of the built-in pair exactly where it writes the patches";
    ensure!(is_own == is_aggregate, expected, said.model.as_str());
    called::check_model(said)?;
    let judges = state.fold::<Judges>().of(experiment);
    let known = judges.is_some_and(|of| of.judges.contains_key(&said.judge));
    ensure!(known, "a registered judge", said.judge.to_string());
    asked_scores::check_opened(state, experiment, said)?;
    let beacon = beacon_of(state, experiment, event.event.header.seen);
    if state.asks(Question::SaltedRows) {
        beacon.required("a checkpoint above the newest label of the experiment")?;
    }
    let shown = |beacon: Option<DrawnFrom>| {
        beacon.map_or_else(
            || "none".to_owned(),
            |of| format!("checkpoint {} {}", of.size, of.root.0.to_base64()),
        )
    };
    let expected = format!("drawn from {}", shown(beacon));
    ensure!(said.beacon == beacon, expected, shown(said.beacon));
    let seed = seed_of(state, experiment, (beacon, said.run.as_str()));
    let seed = seed.required("experiment.registered of the experiment")?;
    let expected = format!("the seed that experiment and run give, {seed}");
    ensure!(said.seed == seed, expected, said.seed.to_string());
    let through = said.through_seq.value();
    let expected = "labels of entries before the run".to_owned();
    ensure!(through < event.seq, expected, through.to_string());
    let newest = runs.labels.get(experiment).copied().unwrap_or(0);
    // A later run has the rows of the first.
    let is_whole = through >= newest || runs.first_of(experiment).is_some();
    let expected = format!("labels through the newest, at seq {newest}");
    ensure!(is_whole, expected, through.to_string());
    for split in due::LISTED {
        let count = said.splits.of(split).count.value();
        ensure!(count > 0, format!("rows of {split}"), "none");
    }
    if let Some(first) = runs.first_of(experiment) {
        let expected = format!(
            "the rows of {}, the first run of {experiment}",
            first.said.run
        );
        let is_same = first.said.splits == said.splits;
        ensure!(is_same, expected, "others");
    }
    check_terms(&said.terms)
}

/// Rows go on where the part stands, in order, and are those that were committed.
fn check_rows(run: &SgdRun, said: &SgdRowsListed) -> RuleAnswer {
    let listed = run.rows(said.split);
    let expected = format!("rows from place {}", listed.len());
    let first = said.first.value();
    ensure!(first == listed.len() as u64, expected, first.to_string());
    ensure!(!said.rows.is_empty(), "a row", "none");
    let key = |row: &SgdRow| (row.item.clone(), row.policy.clone(), row.draw);
    let mut all = listed.last().into_iter().chain(&said.rows);
    let mut before = all.next().map(key);
    for row in all {
        let next = Some(key(row));
        ensure!(before < next, "rows in ascending order", row.item.as_str());
        before = next;
    }
    // A cluster is in one part.
    for (split, rows) in &run.rows {
        if *split == said.split {
            continue;
        }
        for row in &said.rows {
            let place = rows.partition_point(|of| of.item < row.item);
            let is_there = rows.get(place).is_some_and(|of| of.item == row.item);
            let expected = format!("a cluster in {} alone", said.split);
            ensure!(!is_there, expected, format!("{} in {split} too", row.item));
        }
    }
    let all = run.said.splits.of(said.split);
    let count = (listed.len() + said.rows.len()) as u64;
    let expected = format!("{} rows of {}", all.count, said.split);
    ensure!(count <= all.count.value(), expected, count.to_string());
    if count == all.count.value() {
        let root = rows_root(listed.iter().chain(&said.rows));
        let expected = format!("the root of {}, {}", said.split, all.root.0);
        ensure!(root == all.root.0, expected, root.to_string());
    }
    Ok(())
}

/// Scores go on where the part stands, by no agent, under the prompt that is due.
fn check_scored(state: &State, run: &SgdRun, said: &SgdScored) -> RuleAnswer {
    let step = run.going();
    let (scored, rows, digest, number) = match said.part {
        SgdPart::Base => (
            run.base.len(),
            run.count(SgdSplit::Train),
            run.said.prompt_digest,
            0,
        ),
        SgdPart::Batch => (
            step.map_or(0, |of| of.scores.len()),
            step.and_then(|of| of.batch.as_ref())
                .map_or(0, |of| of.rows.len()),
            run.digest(),
            run.taken(),
        ),
        SgdPart::Val => (
            step.map_or(run.best_scores.len(), |of| of.val_scores.len()),
            run.count(SgdSplit::Val),
            // What the proposal results in, its patch says; `workflow` applies it.
            step.map_or(run.said.prompt_digest, |_| said.prompt_digest),
            run.taken(),
        ),
        SgdPart::Confirm => {
            check_confirm(state, run, said.prompt_digest)?;
            (
                run.confirm.get(&said.prompt_digest).map_or(0, Vec::len),
                run.count(SgdSplit::Confirm),
                said.prompt_digest,
                run.taken(),
            )
        }
        SgdPart::Test => {
            let chosen = run.checkpoint.as_ref();
            let chosen = chosen.required("sgd.checkpoint_selected before test is read")?;
            check_test(state, run)?;
            let known = [run.said.prompt_digest, chosen.prompt_digest];
            let is_known = known.contains(&said.prompt_digest);
            let expected = "test under prompt 0 or the checkpoint";
            ensure!(is_known, expected, said.prompt_digest.to_string());
            let scored = run.test.get(&said.prompt_digest).map_or(0, Vec::len);
            (
                scored,
                run.count(SgdSplit::Test),
                said.prompt_digest,
                run.taken(),
            )
        }
    };
    let expected = format!("scores from place {scored} of {rows}");
    let (first, count) = (said.first.value(), said.scores.len() as u64);
    let is_next = first == scored as u64 && count > 0 && first + count <= rows as u64;
    ensure!(is_next, expected, format!("{count} from {first}"));
    let expected = format!("scores under {digest}");
    let found = said.prompt_digest;
    ensure!(found == digest, expected, found.to_string());
    let expected = format!("scores of step {number}");
    ensure!(said.step.value() == number, expected, said.step.to_string());
    let most = run.said.terms.repeats.value();
    for of in &said.scores {
        let expected = format!("at most {most} scores of a row, each from 0 to 1");
        let are_scores = of.iter().all(|z| (0..=1_000_000).contains(&z.value()));
        let fits = of.len() as u64 <= most && are_scores;
        ensure!(fits, expected, format!("{} of a row", of.len()));
    }
    Ok(())
}

/// Confirm is scored after the end, under prompt 0 and the checkpoint, while a gate of the run is open.
pub(super) fn check_confirm(state: &State, run: &SgdRun, prompt: Digest) -> RuleAnswer {
    let name = &run.said.run;
    let is_ended = run.end == Some(SgdEnd::Completed);
    let expected = format!("the end of {name}, completed, before confirm is scored");
    ensure!(is_ended, expected, "none");
    let chosen = run.checkpoint.as_ref();
    let chosen = chosen.required(&format!("sgd.checkpoint_selected of {name}"))?;
    let known = [run.said.prompt_digest, chosen.prompt_digest];
    let is_known = known.contains(&prompt);
    let expected = "confirm under prompt 0 or the checkpoint";
    ensure!(is_known, expected, prompt.to_string());
    gate::check_open(state, run)
}

/// Rows of test are read in one run of an experiment.
pub(super) fn check_test(state: &State, run: &SgdRun) -> RuleAnswer {
    let runs = state.fold::<SgdRuns>();
    if let Some(other) = runs.tested_in(&run.experiment)
        && other.said.run != run.said.run
    {
        let expected = format!("rows of test that {} has not read", other.said.run);
        return unmet(expected, format!("{}, on the same rows", run.said.run));
    }
    Ok(())
}

/// Test is said once, of the checkpoint, with every row scored under both prompts.
fn check_test_read(state: &State, run: &SgdRun, said: &SgdTestRead) -> RuleAnswer {
    check_test(state, run)?;
    let chosen = run.checkpoint.as_ref();
    let chosen = chosen.required("sgd.checkpoint_selected before test is read")?;
    let expected = format!("test of the checkpoint, {}", chosen.prompt_digest);
    ensure!(
        said.prompt_digest == chosen.prompt_digest,
        expected,
        said.prompt_digest.to_string()
    );
    for digest in [run.said.prompt_digest, chosen.prompt_digest] {
        let scored = run.test.get(&digest).map_or(0, Vec::len);
        let expected = format!("{} rows of test under {digest}", run.count(SgdSplit::Test));
        let is_whole = scored == run.count(SgdSplit::Test);
        ensure!(is_whole, expected, scored.to_string());
    }
    Ok(())
}

/// A gradient of a model is what it said.
fn check_returned(
    (state, event): (&State, &ProposedEvent<'_>),
    (run, said): (&SgdRun, &SgdGradientReturned),
) -> RuleAnswer {
    let nothing = called::no_gradient(run.taken());
    let of = (said.call, &said.gradient, Some(nothing.as_str()));
    called::check_called((state, event), run, of)
}

fn check_proposed(
    (state, event): (&State, &ProposedEvent<'_>),
    (run, said): (&SgdRun, &SgdPatchProposed),
) -> RuleAnswer {
    called::check_called((state, event), run, (said.call, &said.patch, None))?;
    let proposed = run.going().map_or(0, |of| of.proposed.len() as u64);
    let expected = format!("proposal {proposed} of the step");
    let attempt = said.attempt.value();
    ensure!(attempt == proposed, expected, attempt.to_string());
    let expected = format!("a patch of {}", run.digest());
    let parent = said.parent_digest;
    ensure!(parent == run.digest(), expected, parent.to_string());
    Ok(())
}

/// A person speaks about the proposal that stands, and no agent does.
fn check_approved(
    state: &State,
    event: &ProposedEvent<'_>,
    (run, said): (&SgdRun, &SgdPatchApproved),
) -> RuleAnswer {
    let standing = run.going().and_then(|of| of.standing());
    let standing = standing.required("a proposal that stands")?;
    let expected = format!("a word about proposal {}", standing.attempt);
    let is_it = said.attempt == standing.attempt;
    ensure!(is_it, expected, said.attempt.to_string());
    let digest = Digest::sha256(standing.patch.as_str().as_bytes());
    let expected = format!("a word about {digest}");
    let found = said.patch_digest;
    ensure!(found == digest, expected, found.to_string());
    let author = event.event.header.author;
    let key = state.keyring.keys.get(&author);
    let is_person = key.is_some_and(|key| key.human) && author != run.said.key;
    let expected = "a person's key that is none of the agents'";
    ensure!(is_person, expected, author.to_string());
    Ok(())
}

fn check_stopped(run: &SgdRun, said: &SgdStopped) -> RuleAnswer {
    let expected = format!("{} steps", run.taken());
    let steps = said.steps.value();
    ensure!(steps == run.taken(), expected, steps.to_string());
    let is_whole = said.reason != SgdEnd::Completed || run.test_read.is_some();
    let expected = "sgd.test_read before its end is told as completed";
    ensure!(is_whole, expected, "none");
    Ok(())
}

/// What names a run is of one that is open, in its experiment, and due.
fn check_in_run(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    let payload = &event.event.payload;
    let Some(name) = run_of(payload) else {
        return Ok(());
    };
    let run = state.fold::<SgdRuns>().by_id.get(name);
    let run = run.required(&format!("sgd.opened of {name}"))?;
    let experiment = event.event.header.experiment.as_ref();
    let expected = format!("the experiment of {name}, {}", run.experiment);
    let found = experiment.map_or("none", |of| of.as_str());
    ensure!(experiment == Some(&run.experiment), expected, found);
    let is_confirm = matches!(payload, Payload::SgdScored(said) if said.part == SgdPart::Confirm);
    let due = run.due();
    if due.is_none() && !is_confirm {
        return unmet(format!("a run that is open, as {name} is not"), "its end");
    }
    asked_scores::check_quiet(state, run)?;
    let author = event.event.header.author;
    let is_agents = matches!(
        payload,
        Payload::SgdGradientReturned(_) | Payload::SgdPatchProposed(_)
    );
    let expected = if is_agents {
        format!("the agents' key of {name}, {}", run.said.key)
    } else {
        format!("another key than that of the agents of {name}")
    };
    let is_theirs = author == run.said.key;
    ensure!(is_theirs == is_agents, expected, author.to_string());
    let (part, split) = match payload {
        Payload::SgdScored(said) => (Some(said.part), None),
        Payload::SgdLossComputed(said) => (Some(said.part), None),
        Payload::SgdRowsListed(said) => (None, Some(said.split)),
        _ => (None, None),
    };
    let kind = event.event.kind();
    if let Some(due) = due.filter(|_| !is_confirm) {
        let is_due = due::is_due(due, kind, (part, split));
        let found = part.map_or_else(|| kind.to_string(), |part| format!("{kind} of {part}"));
        ensure!(is_due, format!("{due} first"), found);
    }
    check_step(payload, run)?;
    match payload {
        Payload::SgdRowsListed(said) => check_rows(run, said),
        Payload::SgdScored(said) => check_scored(state, run, said),
        Payload::SgdTestRead(said) => check_test_read(state, run, said),
        Payload::SgdGradientReturned(said) => check_returned((state, event), (run, said)),
        Payload::SgdPatchProposed(said) => check_proposed((state, event), (run, said)),
        Payload::SgdPatchApproved(said) => check_approved(state, event, (run, said)),
        Payload::SgdStopped(said) => check_stopped(run, said),
        _ => Ok(()),
    }
}

/// What names a step names the one that goes on; a reversion and a stop the one before.
fn check_step(payload: &Payload, run: &SgdRun) -> RuleAnswer {
    let (step, due) = match payload {
        Payload::SgdBatchDrawn(said) => (said.step, run.taken()),
        Payload::SgdGradientRequested(said) => (said.step, run.taken()),
        Payload::SgdGradientReturned(said) => (said.step, run.taken()),
        Payload::SgdLossComputed(said) => (said.step, run.taken()),
        Payload::SgdPatchApproved(said) => (said.step, run.taken()),
        Payload::SgdPatchProposed(said) => (said.step, run.taken()),
        Payload::SgdPatchRejected(said) => (said.step, run.taken()),
        Payload::SgdStepCommitted(said) => (said.step, run.taken()),
        Payload::SgdReverted(said) => (said.step, run.taken().saturating_sub(1)),
        Payload::SgdStopTriggered(said) => (said.step, run.taken().saturating_sub(1)),
        _ => return Ok(()),
    };
    let expected = format!("step {due}");
    ensure!(step.value() == due, expected, step.to_string());
    Ok(())
}

/// Whoever writes gradients and patches neither scores nor labels.
fn check_judged(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    let author = &event.event.header.author;
    let is_agent = state.fold::<SgdRuns>().is_agent(author);
    let expected = "a key that is not of the agents of a run";
    ensure!(!is_agent, expected, author.to_string());
    Ok(())
}

/// A prompt of a run is promoted as its checkpoint, after test was read, on gates that hold it against prompt 0 on the
/// clusters that the run kept for confirm.
fn check_promotion(state: &State, said: &PromotionIssued) -> RuleAnswer {
    let left_it = |run: &&SgdRun| {
        let mut steps = run.steps.iter().filter_map(|step| step.committed.as_ref());
        steps.any(|of| of.attempt.is_some() && of.new_digest == said.candidate_digest)
    };
    // Several runs may leave the same prompt: one of them whose checkpoint it is, and that read test, is enough.
    let mut answer = Ok(());
    for run in state.fold::<SgdRuns>().by_id.values().filter(left_it) {
        match check_promoted(state, run, said) {
            Ok(()) => return Ok(()),
            breach if answer.is_ok() => answer = breach,
            Err(_) => {}
        }
    }
    answer
}

/// The same, of one run that left the prompt.
fn check_promoted(state: &State, run: &SgdRun, said: &PromotionIssued) -> RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let name = &run.said.run;
    let chosen = run.checkpoint.as_ref().map(|of| of.prompt_digest);
    let expected = format!("the checkpoint of {name}");
    let is_chosen = chosen == Some(said.candidate_digest);
    ensure!(is_chosen, expected, said.candidate_digest.to_string());
    let read = run.test_read.as_ref();
    read.required(&format!("sgd.test_read of {name}"))?;
    for id in &said.gates {
        let version = manifests.by_id.get(id).and_then(|of| of.in_force());
        let manifest = &version.required("a version in force")?.manifest;
        gate::check_bound(run, (id, manifest))?;
        if state.asks(Question::SgdGate) {
            gate::check_claim(state, run, (id, manifest))?;
        }
    }
    Ok(())
}

impl Rule for SgdRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let answer = match &event.event.payload {
            Payload::SgdOpened(said) => check_opened(state, event, said),
            Payload::ScoreRecorded(said) => check_judged(state, event)
                .and_then(|()| gate::check_agreement(state, event, said))
                .and_then(|()| {
                    let of = (&said.judge, said.call.as_ref().map(|of| of.call));
                    let row = (&said.policy, &said.item, said.draw);
                    let experiment = event.event.header.experiment.as_ref();
                    asked_scores::check_row(state, experiment, of, row)
                }),
            Payload::ScoreMissed(said) => {
                let of = (&said.judge, Some(said.call.call));
                let row = (&said.policy, &said.item, said.draw);
                let experiment = event.event.header.experiment.as_ref();
                asked_scores::check_row(state, experiment, of, row)
            }
            Payload::JudgeRunOpened(said) => asked_scores::check_asked(state, event, said),
            Payload::LabelRecorded(_) | Payload::LabelSealed(_) => check_judged(state, event),
            Payload::PromotionIssued(said) => check_promotion(state, said),
            payload if run_of(payload).is_some() => check_in_run(state, event),
            _ => return,
        };
        breaches.take(RuleName::Sgd, answer);
    }
}
