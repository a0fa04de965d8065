//! Environments in which a calibrator was tested, and how rewards may be used in each.

use serde::Serialize;

use crate::event::payload::Verdict;
use crate::event::payload::environment::EnvironmentRegime;
use crate::event::payload::environment::EnvironmentScope;
use crate::projection::audits::environments::EnvironmentRecord;
use crate::session::regimes::RegimeProposal;
use crate::stats::environment::LOCAL_LABELS_MIN;
use crate::view::View;

/// A regime that was selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelectedRegime {
    /// `1`, `2` or `3`.
    pub regime: EnvironmentRegime,
    /// Why, in words.
    pub reason: String,
    /// Digest of the local calibrator of regime 2; `null` for the others.
    pub calibrator: Option<String>,
    /// Its entry.
    pub seq: u64,
}

/// An environment that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnvironmentRow {
    /// Which rows it is.
    pub scope: EnvironmentScope,
    /// Whether a claim needs it to pass.
    pub required: bool,
    /// What the newest test found.
    pub newest: Verdict,
    /// Its entry.
    pub newest_seq: u64,
    /// The failed test that stands; `null` where none does.
    pub failed_seq: Option<u64>,
    /// The regime that was selected last; `null` where none was.
    pub selected: Option<SelectedRegime>,
    /// The regime that the order of CLOVER proposes.
    pub proposed: EnvironmentRegime,
    /// Why it does.
    pub why: String,
    /// Labels for calibration inside it.
    pub labels: u64,
}

/// Every environment that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegimeList {
    /// In the order of their words.
    pub environments: Vec<EnvironmentRow>,
}

fn verdict(of: Verdict) -> &'static str {
    match of {
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::NotChecked => "NOT CHECKED",
        Verdict::Pass => "PASS",
    }
}

fn why(of: &RegimeProposal) -> String {
    let (labels, least) = (of.labels, LOCAL_LABELS_MIN);
    match of.proposed {
        EnvironmentRegime::Global => "no failed test stands".to_owned(),
        EnvironmentRegime::Local => format!("it failed, and has {labels} labels: {least} will do"),
        EnvironmentRegime::LabelsAlone => {
            format!("it failed, and has {labels} labels: a local calibrator needs {least}")
        }
    }
}

fn row(of: &RegimeProposal) -> EnvironmentRow {
    let record = &of.record;
    EnvironmentRow {
        scope: record.scope.clone(),
        required: record.required,
        newest: record.newest,
        newest_seq: record.newest_seq,
        failed_seq: record.failed_seq,
        selected: record.regime.as_ref().map(|of| SelectedRegime {
            regime: of.regime,
            reason: of.reason.clone(),
            calibrator: of.calibrator.map(|digest| digest.to_hex()),
            seq: of.seq,
        }),
        proposed: of.proposed,
        why: why(of),
        labels: of.labels as u64,
    }
}

/// How an environment stands, in a line; `None` where nothing is to be said of it.
pub(super) fn line(record: &EnvironmentRecord) -> Option<String> {
    let failed = record.failed_seq.map(|seq| {
        let withheld = if record.required {
            "a claim needs it, so every level is withheld until a later test of it passes"
        } else {
            "no level inside it may be claimed until an audit of its own passes"
        };
        format!("FAIL at seq {seq}: {withheld}")
    });
    let regime = record.regime.as_ref().map(|of| {
        let (number, words) = (of.regime.as_str(), of.regime.words());
        format!("regime {number} ({words}) since seq {}", of.seq)
    });
    let parts: Vec<String> = failed.into_iter().chain(regime).collect();
    (!parts.is_empty()).then(|| format!("environment {}  {}", record.scope, parts.join("; ")))
}

/// The view of all environments.
pub fn list(found: &[RegimeProposal]) -> View {
    let facts = RegimeList {
        environments: found.iter().map(row).collect(),
    };
    let mut view = View::of(&facts);
    if facts.environments.is_empty() {
        view.line("no environment was tested".to_owned());
        return view.with_next("clover prereg new --template transport --from-data -o audits.yaml");
    }
    let head = [
        "environment",
        "required",
        "newest test",
        "seq",
        "regime",
        "proposed",
        "why",
    ];
    let rows = facts.environments.iter().map(|of| {
        let regime = of.selected.as_ref();
        vec![
            of.scope.to_string(),
            if of.required { "yes" } else { "no" }.to_owned(),
            verdict(of.newest).to_owned(),
            of.newest_seq.to_string(),
            regime.map_or("-", |of| of.regime.as_str()).to_owned(),
            of.proposed.as_str().to_owned(),
            of.why.clone(),
        ]
    });
    view.table(&head, rows);
    if found.iter().any(|of| of.record.failed_seq.is_some()) {
        view.gap();
        view.sentence(
            "A patch of the rubric comes before regimes 1 and 2 where the failing environments share a hint: the cards of \
             an iteration show one, and a patch is tested again.",
        );
    }
    let untried = found.iter().find(|of| {
        of.record.failed_seq.is_some()
            && of.record.regime.as_ref().map(|of| of.regime) != Some(of.proposed)
    });
    match untried {
        None => view,
        Some(of) => {
            let scope = format!("{}={}", of.record.scope.family, of.record.scope.environment);
            let scope = crate::ground::shell::word(&scope);
            view.with_next(match of.proposed {
                EnvironmentRegime::Local => format!("clover estimate --environment {scope}"),
                other => format!(
                    "clover regime select {scope} --regime {} --reason TEXT",
                    other.as_str()
                ),
            })
        }
    }
}
