//! One iteration on one page: inputs, numbers, gates, verdict.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::id::PatchId;
use crate::event::payload::Verdict;
use crate::event::payload::diagnosis::LabelProcessAudited;
use crate::event::payload::diagnosis::PrenticeChecked;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::manifest::ConfirmSeparation;
use crate::event::payload::manifest::IterationDesign;
use crate::event::payload::predicate::CriterionSplit;
use crate::event::payload::rubric::RejectStage;
use crate::ground::digest::Digest;
use crate::ground::sign::KeyId;
use crate::num::Micro;
use crate::projection::iterations::record::IterationRecord;
use crate::report::shown;
use crate::view::View;
use crate::view::answer;
use crate::view::answer::Answer;
use crate::view::iterate::gates;
use crate::view::iterate::gates::CriterionShown;
use crate::view::iterate::ground;
use crate::view::iterate::ground::SliceAudit;
use crate::view::iterate::number;
use crate::view::iterate::sequential;
use crate::view::iterate::sequential::ConfirmLook;
use crate::view::word;
use crate::workflow::iterate::course::Course;

/// A candidate: a patch, or a composite of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CandidateShown {
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// Its patches by name, joined by ` + `.
    pub patches: String,
    /// What became of it, in words.
    pub standing: String,
    /// Its gates on dev.
    pub dev: Vec<CriterionShown>,
    /// Its gates on the confirm block.
    pub confirm: Vec<CriterionShown>,
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationShown {
    /// What became of its patches, and what may be claimed.
    pub answer: Answer,
    /// Its name.
    pub iteration: IterationId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// Digest of its parameters.
    pub params_hash: Digest,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
    /// The audit of residuals by slice.
    pub audit: SliceAudit,
    /// Candidates: patches in the order proposed, then composites.
    pub candidates: Vec<CandidateShown>,
    /// How rows came to be labelled; `null` before the fit.
    pub label_process: Option<LabelProcessAudited>,
    /// Whether anything but the reward predicts residuals; `null` before the fit.
    pub prentice: Option<PrenticeChecked>,
    /// Looks at confirm, where the test is sequential.
    pub looks: Vec<ConfirmLook>,
    /// How it ended; `null` while it is open.
    pub outcome: Option<IterationOutcome>,
    /// Patches that were accepted, by rank.
    pub accepted: Vec<PatchId>,
}

/// One iteration; of one that paused with its course, which tells whether the pause can be lifted. Of one that rests on an entry
/// of a compromised key nothing is claimed.
pub fn show(
    record: &IterationRecord,
    course: Option<&Course>,
    tainted: Option<(u64, KeyId)>,
) -> View {
    let hypotheses = hypotheses(record).into_iter();
    let candidates = hypotheses.map(|(candidate, patches)| CandidateShown {
        candidate,
        patches,
        standing: standing(record, candidate),
        dev: gates::gates_of(record, candidate, CriterionSplit::Dev),
        confirm: gates::gates_of(record, candidate, CriterionSplit::Confirm),
    });
    let facts = IterationShown {
        answer: answered(record, tainted),
        iteration: record.iteration.clone(),
        experiment: record.experiment.clone(),
        opened_seq: record.opened.seq,
        params_hash: record.opened.said.params_hash,
        rubric_hash: record.opened.said.rubric_hash,
        audit: ground::audit(record),
        candidates: candidates.collect(),
        label_process: record.label_process.as_ref().map(|of| of.said.clone()),
        prentice: record.prentice.as_ref().map(|of| of.said.clone()),
        looks: sequential::looks(record),
        outcome: record.closed.as_ref().map(|of| of.said.outcome),
        accepted: (record.accepted.iter())
            .map(|of| of.said.patch.clone())
            .collect(),
    };
    let mut view = View::of(&facts);
    view.answer(facts.answer.text.clone());
    view.pairs(head(record));
    if record.audited.is_some() {
        view.gap();
        view.line("slices on dev");
        ground::put(&mut view, &facts.audit.slices);
        ground::paused(&mut view, record, course);
    }
    if !record.looks.is_empty() {
        view.gap();
        view.line("looks at confirm");
        sequential::put(&mut view, record);
    }
    for of in &facts.candidates {
        candidate(&mut view, record, of);
    }
    if let Some(closed) = &record.closed {
        view.gap();
        let (outcome, seq) = (word(&closed.said.outcome), closed.seq);
        let reason = shown::reason(closed.said.reason.as_str());
        view.sentence(match closed.said.outcome {
            // What is said of the pause above tells what labels could do.
            IterationOutcome::PausedForLabels => format!("{outcome}  seq {seq}"),
            _ => format!("{outcome}  seq {seq}: {reason}"),
        });
    }
    super::paused(view, record)
}

/// The sentence that answers about an iteration. Of one that rests on an entry of a compromised key nothing is claimed.
pub fn answered(record: &IterationRecord, tainted: Option<(u64, KeyId)>) -> Answer {
    untainted(answer(record), tainted)
}

/// What may be claimed beside an entry that its key signed from its compromise on.
fn untainted(of: Answer, tainted: Option<(u64, KeyId)>) -> Answer {
    let Some((seq, key)) = tainted else {
        return of;
    };
    let text = format!(
        "Nothing may be claimed: it rests on the entry at seq {seq}, which key {key} signed from its compromise on. On record it says: {}",
        of.text
    );
    Answer {
        text,
        may_be_claimed: false,
    }
}

/// The sentence that answers: which patches were accepted, or why none was.
fn answer(record: &IterationRecord) -> Answer {
    let Some(closed) = &record.closed else {
        let text = match record.paused {
            None => "Not decided: the iteration is open. Nothing may be claimed yet.",
            Some(_) => {
                "Not decided: it paused for labels, and waits to be closed. Nothing may be claimed of any patch."
            }
        };
        return Answer {
            text: text.to_owned(),
            may_be_claimed: false,
        };
    };
    let found = match closed.said.outcome {
        IterationOutcome::Accepted => {
            let patches = record.accepted.iter().map(|of| of.said.patch.as_str());
            let names = answer::names(patches);
            let passed = passed(record);
            let text = match record.accepted.len() {
                1 => format!("Patch {names} is accepted: it passed {passed}."),
                _ => format!("Patches {names} are accepted: they passed {passed}."),
            };
            let claim = match record.opened.said.params.confirm_separation {
                ConfirmSeparation::Hashed => {
                    "This may be claimed with the remark that confirm is not time-separated."
                }
                ConfirmSeparation::Time => answer::CLAIMED,
            };
            let design = record.opened.said.params.design.as_ref();
            let nowhere = design.is_some_and(IterationDesign::claims_no_environment);
            let beside = if nowhere {
                " The plan claims no environment: nothing was tested there."
            } else {
                ""
            };
            let wider = gates::wider(record).map_or_else(String::new, |of| format!(" {of}"));
            return Answer {
                text: format!("{text} {claim}{beside}{wider}"),
                may_be_claimed: true,
            };
        }
        IterationOutcome::NoCandidate => {
            "No patch passed its criteria on dev. No confirm label was opened."
        }
        IterationOutcome::NoneAccepted => {
            "No sealed patch passed its criteria on the confirm labels."
        }
        IterationOutcome::PausedForLabels => {
            "Undecided: it paused, since its calibrator is not certain enough of its rows."
        }
        IterationOutcome::SdpChanged => "Undecided: the labelling protocol changed meanwhile.",
        IterationOutcome::Stopped => "Undecided: the iteration was given up.",
        IterationOutcome::Tainted => {
            "Undecided: whoever proposed the patches saw what they may not see."
        }
        IterationOutcome::TransportFailed => {
            "No patch is accepted: the rubric itself fails in an environment."
        }
    };
    Answer {
        text: format!("{found} Nothing may be claimed of any patch."),
        may_be_claimed: false,
    }
}

/// What accepted patches passed on the confirm labels, and which criteria were not run.
fn passed(record: &IterationRecord) -> String {
    let accepted = |candidate: Digest| {
        let mut all = record.accepted.iter();
        all.any(|of| of.said.candidate == candidate)
    };
    let not_run = record.gates.iter().filter(|gate| {
        let said = &gate.said;
        said.split == CriterionSplit::Confirm
            && accepted(said.candidate)
            && said.verdicts.under(said.thresholds.profile) == Verdict::NotChecked
    });
    let names: BTreeSet<String> = not_run
        .map(|gate| gate.said.gate.as_str().to_uppercase())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => "every criterion on the confirm labels".to_owned(),
        [only] => format!(
            "every criterion that was run on the confirm labels; {only} was not (NOT CHECKED)"
        ),
        all => format!(
            "every criterion that was run on the confirm labels; {} were not (NOT CHECKED)",
            answer::names(all.iter().copied())
        ),
    }
}

fn candidate(view: &mut View, record: &IterationRecord, of: &CandidateShown) {
    view.gap();
    view.line(format!("{}  {}", of.patches, of.standing));
    let hash = of.candidate;
    if record.is_judged(hash, CriterionSplit::Dev) || !record.gates.is_empty() {
        gates::table_of(view, record, hash, CriterionSplit::Dev);
    }
    if record.is_judged(hash, CriterionSplit::Confirm) {
        view.line("on confirm");
        gates::table_of(view, record, hash, CriterionSplit::Confirm);
    }
    let patches: Vec<&str> = of.patches.split(" + ").collect();
    if let Some(words) = gates::undeployable(record, hash, &patches) {
        view.sentence(words);
    }
    if of.standing.starts_with("rejected")
        && let Some(words) = gates::unattacked(record, hash)
    {
        view.sentence(format!("{} {words}", of.patches));
    }
}

/// Inputs, and what was found before candidates.
fn head(record: &IterationRecord) -> Vec<(&'static str, String)> {
    let plan = &record.opened.said.params;
    let micro = |value: Micro| number(value.value() as f64 / 1e6);
    let mut pairs = vec![
        (
            "iteration",
            format!(
                "{} of {}, opened at seq {}",
                record.iteration, record.experiment, record.opened.seq
            ),
        ),
        ("rubric", record.opened.said.rubric_hash.to_hex()),
        ("parameters", record.opened.said.params_hash.to_hex()),
        (
            "held to",
            format!(
                "eta {}, tau {}, alpha {}, q {}, profile {}",
                micro(plan.eta_micro),
                micro(plan.tau_micro),
                micro(plan.alpha_micro),
                micro(plan.q_micro),
                word(&plan.profile)
            ),
        ),
    ];
    pairs.extend(found(record));
    pairs
}

/// What was found before candidates, and what was sealed and seen.
fn found(record: &IterationRecord) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    if let Some(of) = &record.label_process {
        pairs.push((
            "rows",
            format!(
                "{} through seq {}",
                of.said.inputs.rows, of.said.inputs.through_seq
            ),
        ));
        pairs.push((
            "labels (L1)",
            format!(
                "{}: {} before confirm, {} without a design",
                shown::word(of.said.verdict),
                of.said.labelled,
                of.said.orphans
            ),
        ));
    }
    if let Some(of) = &record.prentice {
        pairs.push((
            "residuals (S1)",
            format!(
                "{}: p {}, largest {}",
                shown::word(of.said.verdict),
                number(of.said.p.value()),
                of.said.top_term.as_str()
            ),
        ));
    }
    if let Some(of) = record.replayed.last() {
        pairs.push((
            "scored again",
            format!(
                "{} of {} differ, seq {}",
                of.said.mismatches, of.said.keys, of.seq
            ),
        ));
    }
    if let Some(of) = &record.sealed {
        pairs.push((
            "sealed",
            format!(
                "{} hypotheses at seq {}, alpha divided by {}",
                of.said.hypotheses.len(),
                of.seq,
                of.said.divisor
            ),
        ));
    }
    if let Some(of) = &record.unsealed {
        pairs.push((
            "unsealed",
            format!("seq {}, under charge {}", of.seq, of.said.charge.0.short()),
        ));
    }
    pairs
}

/// Every candidate with a gate, and every patch.
pub(in crate::view) fn hypotheses(record: &IterationRecord) -> Vec<(Digest, String)> {
    let mut found: Vec<(Digest, String)> = record
        .proposed
        .iter()
        .map(|patch| (patch.said.patch_hash, patch.said.patch.to_string()))
        .collect();
    for gate in &record.gates {
        let hash = gate.said.candidate;
        if found.iter().all(|(of, _)| *of != hash) {
            let sealed = record
                .sealed
                .iter()
                .flat_map(|sealed| &sealed.said.hypotheses);
            let mut sealed = sealed.filter(|one| one.candidate == hash);
            let names = sealed
                .next()
                .map_or("composite, not sealed".to_owned(), |one| {
                    gates::names_of(record, &one.patches)
                });
            found.push((hash, names));
        }
    }
    found
}

/// What became of a candidate.
fn standing(record: &IterationRecord, hash: Digest) -> String {
    if let Some(of) = record.accepted.iter().find(|of| of.said.candidate == hash) {
        return format!("accepted, rank {}", of.said.rank);
    }
    let patch = record
        .proposed
        .iter()
        .find(|patch| patch.said.patch_hash == hash);
    let rejected = record.rejected.iter().find(|of| {
        of.said.patch.is_some() && of.said.patch.as_ref() == patch.map(|patch| &patch.said.patch)
    });
    if let Some(of) = rejected {
        let stage = word(&of.said.stage);
        // The record names the first gate that failed; a reader mends all of them.
        let failed = match of.said.stage {
            RejectStage::Confirm => gates::failed(record, hash, CriterionSplit::Confirm),
            RejectStage::Dev => gates::failed(record, hash, CriterionSplit::Dev),
            RejectStage::Schema | RejectStage::Selection => None,
        };
        let code = of.said.code.as_str();
        return format!("rejected ({stage}): {}", failed.as_deref().unwrap_or(code));
    }
    let sealed = record.sealed.iter().any(|sealed| {
        let mut all = sealed.said.hypotheses.iter();
        all.any(|one| one.candidate == hash)
    });
    match (sealed, patch) {
        (true, _) => "sealed".to_owned(),
        (false, Some(patch)) if record.withdrawn.contains(&patch.said.patch) => {
            "withdrawn".to_owned()
        }
        (false, Some(_)) => "proposed".to_owned(),
        (false, None) => "judged on dev".to_owned(),
    }
}
