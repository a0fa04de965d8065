//! Which commands lead from where a person stands to what they want to know, ready to paste, and which is next.
//!
//! The paths are those of `tests/journeys`, with the person's own names of files.

mod case;
mod held_out;
mod iterated;
mod mark;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Kind;
use crate::ground::shell;
use crate::view::View;
use crate::view::guide::mark::StepMark;
use crate::view::word;

/// Files that steps write, by the names that the commands give them.
pub const WRITTEN: [&str; 3] = ["gate.yaml", "patch.yaml", "plan.yaml"];

pub use case::Company;
pub use case::GuideAim;
pub use case::GuideCase;
pub use case::GuideData;
pub use case::GuideFile;
pub use case::GuideNames;
pub use case::JudgeCount;
pub use case::LabelledShare;
pub use case::PromptPlace;
pub use mark::GuideRecord;

/// A command of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GuideStep {
    /// What it is for.
    pub why: String,
    /// The command, ready to paste.
    pub command: String,
    /// Whether the ledger here shows that it was taken; `null` where nothing is recorded by it.
    pub taken: Option<bool>,
}

/// The path to what a person wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Guide {
    /// What they want to know.
    pub want: GuideAim,
    /// What they have.
    pub have: Vec<GuideData>,
    /// How many judges score.
    pub judges: JudgeCount,
    /// Who works on it.
    pub company: Company,
    /// What the path needs, and they have not.
    pub missing: Vec<GuideData>,
    /// The commands, in order.
    pub steps: Vec<GuideStep>,
}

/// The steps of a path, as they are gathered.
#[derive(Default)]
struct GuidePath {
    steps: Vec<(String, String, Option<StepMark>)>,
    missing: Vec<GuideData>,
}

impl GuidePath {
    /// A step that is seen by the entries of a kind, of which there are so many after it.
    fn seen(&mut self, why: &str, command: String, kind: Kind, entries: u64) {
        self.signed(why, command, StepMark::Entries(kind, entries));
    }

    /// A step that is seen by what else it leaves.
    fn signed(&mut self, why: &str, command: String, sign: StepMark) {
        self.steps.push((why.to_owned(), command, Some(sign)));
    }

    fn step(&mut self, why: &str, command: String) {
        self.steps.push((why.to_owned(), command, None));
    }
}

/// The judge that verbs take where none is named.
const JUDGE: &str = "judge";

/// Names of the judges, those on record first: of one the name that every verb takes by itself.
fn judges(case: &GuideCase) -> Vec<String> {
    let known = &case.names.judges;
    match case.judges {
        JudgeCount::One => vec![known.first().map_or(JUDGE, String::as_str).to_owned()],
        JudgeCount::Several => {
            let count = case.names.scores.len().max(2).max(known.len());
            let all = (0..count).map(|at| known.get(at).cloned().ok_or(at + 1));
            all.map(|name| name.unwrap_or_else(|at| format!("judge-{at}")))
                .collect()
        }
    }
}

/// `--judge NAME`, where a verb would not take it by itself.
fn of_judge(case: &GuideCase, judge: &str) -> String {
    match case.judges {
        JudgeCount::One if judge == JUDGE => String::new(),
        JudgeCount::One | JudgeCount::Several => format!(" --judge {}", shell::word(&judge)),
    }
}

fn found(path: &mut GuidePath, case: &GuideCase) {
    let (holder, experiment) = (
        shell::word(&case.names.holder),
        shell::word(&case.names.experiment),
    );
    let is_planned = matches!(case.want, GuideAim::Rubric | GuideAim::Gate);
    let roles = match case.company {
        Company::Alone => "--roles all",
        Company::Colleagues => "--roles owner,registrar,scorer,labeler,arbiter --separation strict",
    };
    let custodian = if is_planned || case.company == Company::Colleagues {
        " --custodian cem"
    } else {
        ""
    };
    path.seen(
        "Make a ledger here, and the keys that sign.",
        format!("clover init --holder {holder} {roles}{custodian}"),
        Kind::LedgerCreated,
        1,
    );
    let rubric = match case.want {
        GuideAim::Rubric => " --rubric rubric.yaml",
        GuideAim::Best | GuideAim::Value | GuideAim::Gate => "",
    };
    let why = match case.want {
        GuideAim::Rubric => {
            "Say what is to be found out; clover rubric new -o rubric.yaml writes a rubric to begin with."
        }
        GuideAim::Best | GuideAim::Value | GuideAim::Gate => "Say what is to be found out.",
    };
    path.seen(
        why,
        format!(
            "clover experiment register {experiment} --title {experiment} --purpose {}{rubric}",
            shell::word(case.want.meaning())
        ),
        Kind::ExperimentRegistered,
        1,
    );
    if case.company == Company::Colleagues {
        colleagues(path, case);
    }
}

fn colleagues(path: &mut GuidePath, case: &GuideCase) {
    let role = match case.want {
        GuideAim::Rubric => "optimizer",
        GuideAim::Best | GuideAim::Value => "labeler",
        GuideAim::Gate => "approver",
    };
    path.step(
        "Your colleague runs this; clover status names your ledger, for ORIGIN. The private key stays there.",
        format!("clover key request --for ORIGIN --roles {role} --holder Bea -o bea.request"),
    );
    path.seen(
        "Take the key in, once the fingerprint was compared by voice.",
        "clover key admit bea.request".to_owned(),
        Kind::KeyAdded,
        2,
    );
    path.step(
        "Share the ledger through a folder; your colleague runs the same.",
        "clover sync /mnt/team/ledger".to_owned(),
    );
}

/// What a run of a judge is for.
const ASKED: &str = "Ask the judge; each score is recorded once. Where it answers on another scale than 0 to 1, say it: --scale 0:100.";

/// Scores on record: imported, or asked for.
fn scored(path: &mut GuidePath, case: &GuideCase, labels: &str) {
    let has_scores = case.have.contains(&GuideData::Scores);
    let has_texts = case.have.contains(&GuideData::Texts);
    if !has_scores && !has_texts {
        path.missing.push(GuideData::Texts);
    }
    if has_texts || !has_scores {
        let why = if has_scores {
            "Take in prompts and responses: they are kept beside scores and labels, and another judge can be asked."
        } else {
            "Take in prompts and responses."
        };
        path.signed(why, case.names.texts.command(""), StepMark::Texts);
    }
    for (at, judge) in judges(case).iter().enumerate() {
        if has_scores {
            let named = |at: usize| format!("scores-{}", at + 1);
            let scores = case.names.scores.get(at).cloned();
            let scores = scores.unwrap_or_else(|| GuideFile::unread("cje", &named(at)));
            let command = scores.command(&format!("{}{labels}", of_judge(case, judge)));
            let why = "Record the scores, one signed event each.";
            path.signed(why, command, StepMark::Scored(judge.clone()));
        } else {
            let command = format!(
                "clover judge run --judge {} -- {}",
                shell::word(judge),
                case.names.judge
            );
            path.signed(ASKED, command, StepMark::Scored(judge.clone()));
        }
    }
}

/// From scores and labels to values.
fn valued(path: &mut GuidePath, case: &GuideCase) {
    let has_labels = case.have.contains(&GuideData::Labels);
    let has_scores = case.have.contains(&GuideData::Scores);
    let (labelled, probed) = held_out::probabilities(case);
    let of_hundred = labelled.parse::<f64>().map_or(0.0, |share| share * 100.0);
    let of_hundred = format!("{of_hundred:.2}");
    let of_hundred = of_hundred.trim_end_matches('0').trim_end_matches('.');
    let why = if held_out::is_known(case) {
        format!("Say with which probability a row was labelled: of 100 rows, {of_hundred} here.")
    } else {
        format!(
            "Say with which probability a row was labelled: {of_hundred} of 100 rows stand for your own share."
        )
    };
    path.seen(
        &why,
        format!("clover label design new calib --purpose calibrate --probability {labelled}"),
        Kind::LabelDesignRegistered,
        1,
    );
    path.seen(
        "And with which probability a row is labelled to test the calibrator.",
        format!("clover label design new probes --purpose audit --probability {probed}"),
        Kind::LabelDesignRegistered,
        2,
    );
    // Files of other tools bring scores alone.
    let in_scores = has_labels
        && has_scores
        && case.names.labels.is_none()
        && case.names.scores.iter().all(GuideFile::may_hold_labels);
    // Once labels can be read, who scores may have seen them: of several judges all score before the first label.
    let beside = in_scores && case.judges == JudgeCount::One;
    scored(path, case, if beside { " --labels" } else { "" });
    let first = judges(case)
        .first()
        .map_or(String::new(), |judge| of_judge(case, judge));
    if !has_labels {
        path.seen(
            "Learn how many labels show a difference of 0.02, at your prices.",
            format!("clover plan labels 0.02 --score-price 0.01 --label-price 0.16{first}"),
            Kind::PlanRecorded,
            1,
        );
    }
    labelled_rows(path, case, (in_scores, &first), beside);
    checked(path, case, &first);
}

/// Labels on record, unless they came beside the scores of the one judge.
fn labelled_rows(
    path: &mut GuidePath,
    case: &GuideCase,
    (in_scores, first): (bool, &str),
    beside: bool,
) {
    if in_scores && !beside {
        let scores = case.names.scores.first().cloned();
        let scores = scores.unwrap_or_else(|| GuideFile::unread("cje", "scores-1"));
        path.signed(
            "Every judge has scored: record the labels that stand beside the scores of the first.",
            scores.command(&format!("{first} --labels")),
            StepMark::Labelled("calib"),
        );
    }
    if !in_scores {
        let labels = case.names.labels.clone();
        let labels = labels.unwrap_or_else(|| GuideFile::unread("labels", "labels.csv"));
        let fit = if held_out::is_held_out(case) {
            path.step(
                if labels.prompt.is_some() {
                    "Hold the labels of one prompt in ten out by lot, to test the calibrator: it is not fitted on them."
                } else {
                    "Hold one label in ten out by lot, to test the calibrator: it is not fitted on them. Keep lines of one prompt together."
                },
                held_out::command(&labels),
            );
            held_out::part(&labels, "calib")
        } else {
            labels
        };
        let why = match case.company {
            Company::Alone => "Record the labels of rows drawn at random.",
            Company::Colleagues => {
                "Record the labels of rows drawn at random. You do; a colleague does it on the copy there, and syncs."
            }
        };
        let command = fit.command(" --design calib");
        path.signed(why, command, StepMark::Labelled("calib"));
    }
}

/// A file of labelled rows in the form of the scores, which nobody named.
fn like_scores(case: &GuideCase) -> GuideFile {
    let scores = case.names.scores.first();
    let Some(scores) = scores.filter(|of| of.may_hold_labels()) else {
        return GuideFile::unread("cje", "probes");
    };
    let file = match scores.verb.as_str() {
        "csv" => "probes.csv",
        "logged" => "probes.jsonl",
        _ => "probes",
    };
    GuideFile {
        before: String::new(),
        file: file.to_owned(),
        ..scores.clone()
    }
}

/// From labelled rows of every policy to what may be claimed.
fn checked(path: &mut GuidePath, case: &GuideCase, first: &str) {
    let held = case
        .names
        .labels
        .as_ref()
        .filter(|_| held_out::is_held_out(case));
    let probes = match (&case.names.probes, held) {
        (Some(probes), _) => probes.clone(),
        (None, Some(labels)) => held_out::part(labels, "probes"),
        (None, None) if case.have.contains(&GuideData::Scores) => like_scores(case),
        (None, None) => GuideFile::unread("labels", "probes"),
    };
    let probed = if probes.verb == "labels" {
        probes.command(" --design probes --purpose audit")
    } else {
        probes.command(&format!(" --labels --purpose audit{first}"))
    };
    let is_named = case.names.probes.is_some() || held.is_some();
    let why = if is_named {
        "Record labelled rows of every policy, for the test."
    } else {
        "Record labels of every policy that calibrate nothing, for the test. Without any, leave this and the next out: only labelled policies are claimed then."
    };
    path.signed(why, probed, StepMark::Labelled("probes"));
    path.seen(
        "Test whether the calibrator holds for every policy.",
        format!("clover audit transport{first}"),
        Kind::TransportTested,
        1,
    );
    if let [one, two, ..] = &judges(case)[..] {
        path.step(
            "Which judge agrees better with the labels?",
            format!("clover judge compare {one} {two}"),
        );
    }
    match case.want {
        GuideAim::Best => path.seen(
            "Which differences are real?",
            format!("clover compare --all{first}"),
            Kind::ContrastRecorded,
            1,
        ),
        GuideAim::Value | GuideAim::Rubric | GuideAim::Gate => path.seen(
            "What is each worth?",
            format!("clover estimate{first}"),
            Kind::EstimateRecorded,
            1,
        ),
    }
}

/// A sequential gate of a candidate.
fn gated(path: &mut GuidePath, case: &GuideCase) {
    path.seen(
        "Open the family that shares one error rate.",
        "clover family open quarter --method spend --alpha 0.05 --members 3 --membership 'gates of this quarter'".to_owned(),
        Kind::FamilyOpened,
        1,
    );
    path.signed(
        "Draft the plan: units, one a line, and the files of both and of the judge.",
        format!(
            "clover gate plan m-1 --units units.txt --baseline old.txt --candidate new.txt --judge judge.txt --claim {} -o gate.yaml",
            shell::word("the candidate scores higher")
        ),
        StepMark::Written("gate.yaml"),
    );
    path.seen(
        "Sign the plan and countersign it: from here on it binds.",
        "clover prereg sign gate.yaml --countersign".to_owned(),
        Kind::ManifestCountersigned,
        1,
    );
    path.seen(
        "Open the gate; the order of its units is drawn.",
        "clover gate open m-1 --units units.txt --judge judge-1".to_owned(),
        Kind::GateOpened,
        1,
    );
    path.seen(
        "Let the units be seen: the answer names those that may be scored now.",
        "clover exposure open m-1".to_owned(),
        Kind::ExposureOpened,
        1,
    );
    let outcomes = case
        .names
        .scores
        .first()
        .filter(|_| case.have.contains(&GuideData::Scores));
    let has_scores = case.have.contains(&GuideData::Scores);
    let why = if has_scores {
        "Give it the outcomes: unit, baseline, candidate."
    } else {
        "Let the judge score both on those units; write unit, baseline and candidate to outcomes.csv, and give it that."
    };
    let (before, outcomes) = outcomes.map_or(("", "outcomes.csv"), |of| (&of.before, &of.file));
    path.seen(
        why,
        format!("{before}clover gate observe m-1 --all --from {outcomes}"),
        Kind::GateObserved,
        1,
    );
    path.seen(
        "The decision.",
        "clover gate decide m-1".to_owned(),
        Kind::GateDecided,
        1,
    );
}

/// The path of a case.
fn path(case: &GuideCase) -> GuidePath {
    let mut path = GuidePath::default();
    found(&mut path, case);
    match case.want {
        GuideAim::Best | GuideAim::Value => valued(&mut path, case),
        GuideAim::Rubric => iterated::steps(&mut path, case),
        GuideAim::Gate => gated(&mut path, case),
    }
    path
}

/// Kinds by whose entries it is seen which steps of a case were taken, with how many of each it takes at most.
pub fn counted(case: &GuideCase) -> BTreeMap<Kind, u64> {
    let mut all = BTreeMap::new();
    for (_, _, mark) in path(case).steps {
        let (kind, entries) = match mark {
            Some(StepMark::Entries(kind, entries)) => (kind, entries),
            Some(StepMark::Texts) => (Kind::DataIngested, 1),
            _ => continue,
        };
        let most: &mut u64 = all.entry(kind).or_default();
        *most = entries.max(*most);
    }
    all
}

/// The path of a case; `record` is of the ledger here, where there is one.
pub fn guide(case: &GuideCase, record: Option<&GuideRecord<'_>>) -> View {
    let path = path(case);
    let steps = path
        .steps
        .into_iter()
        .map(|(why, command, sign)| GuideStep {
            why,
            command,
            taken: sign.and_then(|sign| {
                let place = (&case.names.written, case.names.experiment.as_str());
                sign.seen(record, place)
            }),
        });
    let facts = Guide {
        want: case.want,
        have: case.have.iter().copied().collect(),
        judges: case.judges,
        company: case.company,
        missing: path.missing,
        steps: steps.collect(),
    };
    shown(&facts)
}

/// The first step that comes after every step that is seen to be taken.
fn next(steps: &[GuideStep]) -> Option<&GuideStep> {
    let last = steps.iter().rposition(|of| of.taken == Some(true));
    let first = steps.iter().position(|of| of.taken == Some(false));
    let after = match (first, last) {
        // What was passed over comes first.
        (Some(first), Some(last)) if first < last => first,
        (_, Some(last)) => last + 1,
        (_, None) => 0,
    };
    steps.get(after)
}

fn shown(facts: &Guide) -> View {
    let mut view = View::of(facts);
    view.answer(format!(
        "You want to know {}. These {} commands lead there; names of files and numbers are yours to change.",
        facts.want.meaning(),
        facts.steps.len()
    ));
    for missing in &facts.missing {
        view.sentence(format!(
            "This needs {}, which you did not name: gather them before you begin.",
            word(missing)
        ));
    }
    for (at, step) in facts.steps.iter().enumerate() {
        let taken = match step.taken {
            Some(true) => " Done.",
            Some(false) | None => "",
        };
        view.line(format!("# {}. {}{taken}", at + 1, step.why));
        view.line(step.command.clone());
    }
    let next = next(&facts.steps).map_or("clover verify", |step| step.command.as_str());
    view.with_next(next)
}
