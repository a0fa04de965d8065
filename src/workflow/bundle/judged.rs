//! What is estimated and by whom: target, anchors, versions, policy values.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::Text;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimated::Claim;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::ope::OpeDiagnosed;
use clover_event::payload::overlap::Admissibility;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::report::ReportPart;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_projection::assumptions::Assumptions;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Names;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;
use clover_projection::rubrics::RubricRegistration;

use crate::bundle::decided::leaf;
use crate::judge;

fn anchors(story: &Story) -> Option<(u64, &AnchorSetRegistered)> {
    let design = story.opened()?.1.params.design.as_ref()?;
    let wanted = design.anchors.as_ref()?;
    story.first(|payload| match payload {
        Payload::AnchorSetRegistered(said) if said.anchors == *wanted => Some(&**said),
        _ => None,
    })
}

fn leaf_of(rubric: &RubricRegistration, path: &str) -> Option<Cell> {
    let found = rubric.leaves.iter().find(|leaf| leaf.path == path)?;
    let text = leaf(&found.value);
    Some(Cell::text(text.trim_matches('"')))
}

/// Y or Y*, the protocol of labels, and the anchor policies with how far candidates move them.
pub(super) fn target(story: &Story, state: &State, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Target,
        "What rewards estimate, by which labelling protocol, and stored answers of a bad and a good policy that hold the \
         scale in place.",
    );
    match story.rubric(state) {
        Some(rubric) => {
            for (path, key, title) in [
                ("target", "target", "Target"),
                ("sdp_version", "sdp_version", "Labelling protocol"),
            ] {
                if let Some(cell) = leaf_of(rubric, path) {
                    part.fact(rubric.seq, key, title, cell);
                }
            }
        }
        None => part.lacks(
            "the target",
            "the rubric that it starts from was not registered as such",
        ),
    }
    match anchors(story) {
        Some((seq, said)) => part.table(anchor_table(seq, said)),
        None => part.lacks("anchors", "the manifest registers no anchor set"),
    }
    let drift = drift(story, names);
    if drift.rows.is_empty() {
        part.lacks("drift of anchors", story.why_no_gates());
    }
    part.table(drift);
    part
}

/// Both anchor policies.
fn anchor_table(seq: u64, said: &AnchorSetRegistered) -> Table {
    let mut table = Table::new(
        "anchors",
        "Anchor policies",
        &[
            ("anchor", "anchor"),
            ("policy", "policy"),
            ("rows", "stored rows"),
        ],
    );
    for (word, rows) in [("low", &said.low), ("high", &said.high)] {
        table.row(
            seq,
            vec![
                Cell::text(word),
                Cell::text(rows.policy.as_str()),
                rows.count.into(),
            ],
        );
    }
    table
}

/// How far gate P5 saw candidates move each anchor.
fn drift(story: &Story, names: &Names) -> Table {
    let mut drift = Table::new(
        "drift",
        "How far candidates move the anchors",
        &[
            ("candidate", "candidate"),
            ("policy", "policy"),
            ("drift", "mean shift"),
            ("rows", "rows"),
        ],
    );
    for (seq, gate) in story.gates() {
        let Evidence::P5(found) = &gate.evidence else {
            continue;
        };
        for anchor in &found.anchors {
            drift.row(
                seq,
                vec![
                    Cell::text(names.of(gate.candidate)),
                    Cell::text(anchor.policy.as_str()),
                    anchor.drift.into(),
                    anchor.rows.into(),
                ],
            );
        }
    }
    drift
}

/// Model, prompt, rubric, calibrator, protocol, anchors.
pub(super) fn versions(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
        ReportPart::Versions,
        "What every number here depends on: change one of these, and it is another judge.",
    );
    let judges = judges(story);
    if judges.rows.is_empty() {
        part.lacks(
            "judge model and prompt",
            "no judge is registered: its scores were imported without saying whose they are",
        );
    }
    part.table(judges);
    if state.asks(Question::ReportedKinship) {
        let shared = kinship(story, state);
        if !shared.rows.is_empty() {
            part.table(shared);
        }
    }
    match story.rubric(state) {
        Some(rubric) => {
            let version = Cell::text(rubric.version.as_str());
            part.fact(rubric.seq, "rubric_version", "Rubric version", version);
            part.fact(rubric.seq, "rubric_hash", "Rubric hash", rubric.hash);
        }
        None => part.lacks("the rubric's version", "it was not registered as such"),
    }
    computed(story, &mut part);
    let now = super::ledger_time(state);
    match state.fold::<Assumptions>().sdp_in_force(now) {
        Some(version) => part.fact(
            version.seq,
            "sdp_version",
            "Labelling protocol in force",
            Cell::text(version.version.as_str()),
        ),
        None => part.lacks(
            "the labelling protocol in force",
            "no version of it is registered",
        ),
    }
    match anchors(story) {
        Some((seq, said)) => part.fact(
            seq,
            "anchors",
            "Anchors",
            Cell::text(format!("{}, {}", said.low.policy, said.high.policy)),
        ),
        None => part.lacks("anchors", "the manifest registers no anchor set"),
    }
    part
}

/// Judges of the experiment as they were registered.
fn judges(story: &Story) -> Table {
    let mut judges = Table::new(
        "judges",
        "Judges",
        &[
            ("judge", "judge"),
            ("model", "model"),
            ("port", "asked by"),
            ("temperature", "temperature"),
            ("prompt_hash", "prompt"),
            ("extractor", "extractor"),
            ("evidence_schema", "evidence"),
        ],
    );
    let registered = story.all(|payload| match payload {
        Payload::JudgeRegistered(said) => Some(said),
        _ => None,
    });
    for (seq, said) in registered {
        judges.row(
            seq,
            vec![
                Cell::text(said.judge.as_str()),
                Cell::text(said.model.as_str()),
                Cell::text(said.port.as_str()),
                Cell::micro(said.decoding.temperature_micro),
                said.prompt_hash.into(),
                Cell::text(said.extractor.as_str()),
                Cell::text(said.evidence_schema.as_str()),
            ],
        );
    }
    judges
}

/// What judges share with policies that they score, and with each other.
fn kinship(story: &Story, state: &State) -> Table {
    let mut table = Table::new(
        "kinship",
        "What judges share",
        &[("judge", "judge"), ("shares", "what a reader must know")],
    );
    let registered = story.all(|payload| match payload {
        Payload::JudgeRegistered(said) => Some(said),
        _ => None,
    });
    for (seq, said) in registered {
        for shared in judge::kinship::of(state, &story.experiment, said, &[]) {
            let words = Cell::text(shared.to_string());
            table.row(seq, vec![Cell::text(said.judge.as_str()), words]);
        }
    }
    table
}

/// Calibrator, algorithm, build and rows of the residual audit.
fn computed(story: &Story, part: &mut Section) {
    let Some((seq, audited)) = story.audited() else {
        part.lacks("the calibrator", "residuals were not audited");
        return;
    };
    part.fact(seq, "calibrator", "Calibrator", audited.calibrator);
    part.fact(
        seq,
        "algorithm",
        "Residual audit",
        Cell::text(audited.algorithm.as_str()),
    );
    part.fact(
        seq,
        "build",
        "Computed by",
        Cell::text(audited.build.as_str()),
    );
    part.fact(seq, "rows_digest", "Rows as read", audited.inputs.digest);
}

/// What a value rests on, in the words of `clover estimate`.
fn rests_on(said: &EstimateRecorded) -> String {
    let audit = said.transport.map_or("NOT CHECKED".to_owned(), |of| {
        let state = of.state.as_str().replace('_', " ").to_uppercase();
        format!("{state} at entry {}", of.seq)
    });
    match said.claim {
        Claim::OwnLabels => "own labels".to_owned(),
        Claim::BorrowedChecked | Claim::BorrowedUnchecked => audit,
        Claim::Refused => "REFUSE-LEVEL".to_owned(),
        Claim::Uncalibrated => "uncalibrated".to_owned(),
    }
}

/// The newest estimate of a policy, as a row with the entries behind it.
fn valued(
    story: &Story,
    (seq, said): (u64, &EstimateRecorded),
    is_asked: bool,
) -> (Vec<u64>, Vec<Cell>) {
    let failed = story.failed(&said.terms.judge, &said.policy);
    let refused = said.claim == Claim::Refused || failed.is_some();
    let shown = |cell: Cell| if refused { Cell::Absent } else { cell };
    let ends = said.interval_clipped.or(said.interval);
    let mut events = vec![seq];
    events.extend(failed.map(|of| of.seq.value()));
    let claim = match failed {
        Some(of) => failed_at(of.seq.value()),
        None if is_asked => rests_on(said),
        None if said.claim == Claim::BorrowedUnchecked && said.off_mode.is_some() => {
            "NOT CHECKED: no result until an audit passes".to_owned()
        }
        None => said.claim.as_str().replace('_', " "),
    };
    let cells = vec![
        Cell::text(said.terms.judge.as_str()),
        Cell::text(said.policy.as_str()),
        shown(said.estimate.into()),
        shown(Cell::maybe(ends, |ends| {
            Cell::Interval(ends.low, ends.high)
        })),
        shown(Cell::maybe(said.se, Cell::Number)),
        Cell::maybe(said.share, Cell::Number),
        said.labels.into(),
        said.rows.into(),
        Cell::text(claim),
    ];
    (events, cells)
}

/// What policies are worth, newest estimate of each: from rulebook 24 on those over all rows.
pub(super) fn values(story: &Story, state: &State) -> Section {
    let is_asked = state.asks(Question::ReportedWorth);
    let (intro, claim) = if is_asked {
        (
            "What each policy is worth on the scale of labels, by the newest estimate over all rows. Intervals count the \
             calibrator's own uncertainty. A level that the labels do not support is withheld. clover estimate says whether a \
             value may be claimed.",
            "rests on",
        )
    } else {
        (
            "What each policy is worth on the scale of labels. Intervals count the calibrator's own uncertainty. A level that \
             the labels do not support is withheld.",
            "may be claimed",
        )
    };
    let mut part = Section::new(ReportPart::Values, intro);
    let mut newest: BTreeMap<_, (u64, &EstimateRecorded)> = BTreeMap::new();
    let recorded = story.all(|payload| match payload {
        Payload::EstimateRecorded(said) => Some(said),
        _ => None,
    });
    for (seq, said) in recorded {
        if said.terms.environment.is_none() || !is_asked {
            newest.insert((&said.terms.judge, &said.policy), (seq, said));
        }
    }
    let mut table = Table::new(
        "values",
        "Policy values",
        &[
            ("judge", "judge"),
            ("policy", "policy"),
            ("estimate", "value"),
            ("interval", "interval"),
            ("se", "standard error"),
            ("share", "calibrator's share"),
            ("labels", "own labels"),
            ("rows", "rows"),
            ("claim", claim),
        ],
    );
    for said in newest.values() {
        let (events, cells) = valued(story, *said, is_asked);
        table.row_of(events, cells);
    }
    table.plot = Some(Plot::Forest {
        label: (1, 1),
        estimate: 2,
        interval: Some(3),
        reference: None,
        axis: "mean label",
        before: None,
    });
    if table.rows.is_empty() {
        part.lacks(
            "policy values",
            "no estimate is on record: clover estimate records them",
        );
    }
    part.table(table);
    if story.has_rows() {
        off_policy(story, &mut part);
    }
    part
}

/// What may be read of a policy whose failed audit stands.
fn failed_at(seq: u64) -> String {
    format!("refused: transport FAIL at entry {seq}")
}

/// What logged responses say of other policies, by estimators that may be read.
fn off_policy(story: &Story, part: &mut Section) {
    let mut diagnosed: BTreeMap<_, (u64, &OpeDiagnosed)> = BTreeMap::new();
    let all = story.all(|payload| match payload {
        Payload::OpeDiagnosed(said) => Some(said),
        _ => None,
    });
    for (seq, said) in all {
        diagnosed.insert(&said.policy, (seq, said));
    }
    let mut table = Table::new(
        "off_policy",
        "What logged responses say of other policies, by each estimator of the guide",
        &[
            ("policy", "policy"),
            ("estimator", "estimator"),
            ("verdict", "may be read"),
            ("estimate", "value"),
            ("interval", "interval"),
            ("rows", "rows"),
            ("reasons", "why"),
        ],
    );
    for (policy, (at, guide)) in &diagnosed {
        let failed = story.failed(&guide.terms.estimate.judge, policy);
        for entry in &guide.guide {
            let newest = story.all(|payload| match payload {
                Payload::OpeEstimated(said)
                    if said.policy == **policy && said.estimator == entry.estimator =>
                {
                    Some(said)
                }
                _ => None,
            });
            let readable = matches!(
                entry.verdict,
                Admissibility::Admissible | Admissibility::Warned
            );
            let found = newest.filter(|_| readable && failed.is_none()).last();
            let mut events = vec![*at];
            events.extend(found.map(|(seq, _)| seq));
            events.extend(failed.map(|of| of.seq.value()));
            let verdict = match failed {
                Some(of) => failed_at(of.seq.value()),
                None => entry.verdict.as_str().to_owned(),
            };
            let reasons: Vec<&str> = entry.reasons.iter().map(Text::as_str).collect();
            let ends = found.and_then(|(_, said)| said.interval);
            table.row_of(
                events,
                vec![
                    Cell::text(policy.as_str()),
                    Cell::text(entry.estimator.as_str()),
                    Cell::text(verdict),
                    Cell::maybe(found, |(_, said)| said.estimate.into()),
                    Cell::maybe(ends, |ends| Cell::Interval(ends.low, ends.high)),
                    Cell::maybe(found, |(_, said)| said.rows.into()),
                    Cell::text(reasons.join("; ")),
                ],
            );
        }
    }
    if table.rows.is_empty() {
        part.lacks(
            "off-policy values",
            "no logged responses were diagnosed: clover estimate --ope records them",
        );
    }
    part.table(table);
}
