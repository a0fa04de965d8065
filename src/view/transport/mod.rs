//! How audits of transport are shown: whether calibration holds on labels that it never saw.

mod environments;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::DesignId;
use crate::event::id::PolicyId;
use crate::event::payload::Verdict;
use crate::event::payload::audit::AuditTerms;
use crate::event::payload::audit::ResidualWidth;
use crate::event::payload::audit::TransportTested;
use crate::event::payload::environment::EnvironmentScope;
use crate::event::payload::environment::EnvironmentsTested;
use crate::event::payload::estimated::AuditObstacle;
use crate::event::payload::estimated::TransportState;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Count;
use crate::num::Micro;
use crate::view::Exit;
use crate::view::View;
use crate::view::answer;
use crate::view::answer::Answer;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::estimate::state;
use crate::view::values;
use crate::workflow::estimate::planning::PlanError;

/// Audits of transport.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditsFacts {
    /// For which policies the calibrator holds, and whether that may be claimed.
    pub answer: Answer,
    /// What each audit says, policy by policy.
    pub audits: Vec<TransportTested>,
    /// What tests of environments found, family by family; empty where the plan names none.
    pub environments: Vec<EnvironmentsTested>,
    /// Largest acceptable absolute mean residual, in millionths of a label unit; `null` where none was declared.
    pub margin_micro: Option<Micro>,
    /// Error rate of the family, in millionths.
    pub alpha_micro: Micro,
    /// Audits that share the error rate.
    pub family_size: Count,
    /// Digest of the manifest that registers the numbers; `null` where none does.
    pub manifest: Option<Digest>,
    /// Policies that are planned to be audited and have no probe.
    pub not_checked: Vec<String>,
}

/// What an audit would open first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitingLabels {
    /// The design of the probes.
    pub design: DesignId,
    /// Its labels that are sealed.
    pub waiting: u64,
}

/// What a dry run of an audit would open.
pub fn waiting(account: &str, design: &DesignId, waiting: u64, outlook: &AuditOutlook) -> View {
    let mut view = View::of(&WaitingLabels {
        design: design.clone(),
        waiting,
    });
    view.line(format!(
        "would charge one unit of {account} and open {waiting} sealed labels of {design}"
    ));
    view.line(outlook.words());
    view.with_verdict("dry_run")
}

/// What the probes of an audit can show, before they are paid for.
#[derive(Clone, Debug)]
pub struct AuditOutlook {
    /// Ends of the scale of labels.
    pub ends: (f64, f64),
    /// Policies of which fewer rows wait than the design draws, each with both numbers.
    pub short: Vec<(PolicyId, u64, u64)>,
    /// Largest acceptable mean residual.
    pub margin: Micro,
    /// Probability that the audit of each policy passes where nothing is wrong.
    pub passes: Result<BTreeMap<PolicyId, f64>, PlanError>,
    /// Clusters of probes, by policy.
    pub probes: BTreeMap<PolicyId, u64>,
    /// Policies that are scored and have no probe.
    pub without: Vec<PolicyId>,
    /// Labels that wait, and those of them whose row has no score, where the rulebook asks for one.
    pub unscored: Option<(usize, usize)>,
}

impl AuditOutlook {
    /// In words, to be asked about.
    pub fn words(&self) -> String {
        let margin = margin_words(self.margin, self.ends);
        let mut words = match &self.passes {
            Err(error) => format!("whether an audit can pass cannot be said: {error}"),
            Ok(passes) => {
                let most = passes.values().fold(0.0_f64, |most, of| most.max(*of));
                let each = passes.iter().map(|(policy, passes)| {
                    let probes = self.probes.get(policy).copied().unwrap_or(0);
                    format!("{policy} with probability {passes:.2} by {probes} probes")
                });
                let each: Vec<String> = each.collect();
                let start = if most < 0.005 {
                    "no audit can pass"
                } else {
                    "where nothing is wrong, audits pass"
                };
                let mut words = format!("{start} within {margin}: {}", each.join(", "));
                if most < 0.5 {
                    words += &format!(
                        " (clover plan audit {} says how many it takes)",
                        self.margin
                    );
                }
                words
            }
        };
        if let Some((all, rows)) = self.unscored.filter(|(_, rows)| *rows > 0) {
            words += &format!(
                "; {rows} of {all} probes have no score, and an audit that lacks one passes nothing: score them first"
            );
        }
        for (policy, waiting, drawn) in &self.short {
            words += &format!(
                "; of {policy} {waiting} labels wait, and the design draws about {drawn}: no audit of it passes; seal the others \
                 first"
            );
        }
        if !self.without.is_empty() {
            let names: Vec<&str> = self.without.iter().map(PolicyId::as_str).collect();
            words += &format!(
                "; {} of {} policies have no probe, and this audit says nothing of them: {}",
                names.len(),
                names.len() + self.probes.len(),
                names.join(", ")
            );
        }
        words
    }
}

/// A margin with the scale that it is of.
pub fn margin_words(margin: Micro, (low, high): (f64, f64)) -> String {
    format!("{margin} of labels from {low} to {high}")
}

/// Audits with what was asked.
#[derive(Clone, Debug)]
pub struct Audits<'a> {
    /// The design of the probes.
    pub design: &'a DesignId,
    /// How many rows of each policy the design draws, about.
    pub drawn: BTreeMap<PolicyId, u64>,
    /// Ends of the scale of labels.
    pub ends: (f64, f64),
    /// The usual margin, in millionths of a label unit.
    pub usual: i64,
    /// What was found of environments.
    pub environments: Vec<EnvironmentsTested>,
    /// What was found.
    pub tested: Vec<TransportTested>,
    /// How it was graded.
    pub terms: &'a AuditTerms,
    /// What the record says against a claim.
    pub basis: &'a ClaimBasis,
    /// What rests on entries of a compromised key, a sentence each.
    pub tainted: Vec<String>,
    /// Policies that are planned to be audited and have no probe.
    pub missing: Vec<String>,
}

/// The interval that decided an audit, and what it counts: residuals alone where they alone lie beyond the margin.
pub fn deciding(of: &TransportTested) -> (&ResidualWidth, &'static str) {
    let is_by_residuals = of.state == TransportState::Fail
        && of.wide.state != TransportState::Fail
        && of.narrow.state == TransportState::Fail;
    if is_by_residuals {
        (&of.narrow, "residuals alone")
    } else {
        (&of.wide, "residuals and calibrator")
    }
}

fn bracket(of: &ResidualWidth) -> String {
    of.interval.map_or("none".to_owned(), |at| {
        format!("[{:+.3}, {:+.3}]", at.low.value(), at.high.value())
    })
}

/// Probes that were scored late or never, and all of them, where there is one.
fn lacking(of: &TransportTested) -> Option<(u64, u64)> {
    let late = of.late.map_or(0, Count::value);
    (late > 0).then(|| (late, late + of.rows.value()))
}

/// Whether nothing passes here for another reason than its numbers.
fn is_kept_back(of: &TransportTested) -> bool {
    let has_reason = lacking(of).is_some() || !of.obstacles.is_empty();
    of.state == TransportState::Inconclusive && has_reason
}

impl Audits<'_> {
    /// Why the audit of a policy passes nothing, a sentence or two.
    pub fn obstacle(&self, of: &TransportTested, obstacle: AuditObstacle) -> String {
        let (policy, design) = (&of.policy, &of.design);
        let labels = of.rows;
        let drawn = self.drawn.get(policy).copied().unwrap_or_default();
        let counted =
            format!("Of {policy} {labels} rows are probes of {design}, which draws about {drawn}");
        match obstacle {
            AuditObstacle::FewerProbes => {
                format!("{counted}: labels are missing, or somebody chose among them.")
            }
            AuditObstacle::MoreProbes => format!("{counted}: somebody chose among them."),
            AuditObstacle::FittedLate => format!(
                "The calibrator has labels from after the first probe of {policy} could be read: only probes of another design \
                 can audit it."
            ),
            AuditObstacle::OtherTerms => format!(
                "Nobody fitted on these terms before the first probe of {policy} could be read. Record an estimate on them, and \
                 audit by probes of another design."
            ),
        }
    }

    /// The sentence that answers: for which policies the calibrator holds.
    fn answer(&self, on_record: bool) -> Answer {
        let margin = self.terms.margin_micro;
        let margin = margin.map_or(String::new(), |of| {
            format!(" {}", margin_words(of, self.ends))
        });
        let found = [
            (
                TransportState::Pass,
                format!("The calibrator transfers, within the margin{margin}, to"),
            ),
            (
                TransportState::Fail,
                "The calibrator does not transfer to".to_owned(),
            ),
            (
                TransportState::Inconclusive,
                format!(
                    "There are too few labels to say whether it holds within the margin{margin} for"
                ),
            ),
            (
                TransportState::NotGraded,
                "No margin says what would be acceptable for".to_owned(),
            ),
        ];
        let mut parts = Vec::new();
        for (state, text) in found {
            let of = self.tested.iter().filter(|of| of.state == state);
            let of = of.filter(|of| !is_kept_back(of));
            let names = answer::names(of.map(|of| of.policy.as_str()));
            if !names.is_empty() {
                parts.push(format!("{text} {names}."));
            }
        }
        for of in &self.tested {
            if let Some((late, all)) = lacking(of) {
                parts.push(format!(
                    "Of the {all} probes of {}, {late} had no score before their label could be read: they do not count, and \
                     nothing passes without them.",
                    of.policy
                ));
            }
        }
        for of in &self.tested {
            let obstacles = of.obstacles.iter();
            parts.extend(obstacles.map(|obstacle| self.obstacle(of, *obstacle)));
        }
        parts.extend(environments::sentences(&self.environments));
        let missing = answer::names(self.missing.iter().map(String::as_str));
        if !missing.is_empty() {
            parts.push(format!("No label checks it for {missing}."));
        }
        let is_said =
            |of: &TransportTested| matches!(of.state, TransportState::Pass | TransportState::Fail);
        let against = self.basis.failing().iter().chain(&self.tainted);
        parts.extend(against.cloned());
        let is_decided =
            self.tested.iter().any(is_said) || environments::is_said(&self.environments);
        let is_found = is_decided && self.basis.failing().is_empty() && self.tainted.is_empty();
        let may_be_claimed = on_record && is_found;
        parts.push(match (on_record, is_found) {
            (false, _) => answer::UNRECORDED.to_owned(),
            (true, false) => answer::UNCLAIMED.to_owned(),
            (true, true) => self.claimed(),
        });
        Answer {
            text: answer::within(scope(&self.tested), parts.join(" ")),
            may_be_claimed,
        }
    }

    /// What may be claimed, as estimates and comparisons say it, and whose margin it is.
    fn claimed(&self) -> String {
        let claimed = answer::CLAIMED;
        match (self.terms.manifest, self.terms.margin_micro) {
            (None, Some(margin)) if margin.value() > self.usual => {
                format!(
                    "{claimed} No plan registered the margin {margin}, which is wider than the usual one."
                )
            }
            (None, _) => {
                format!("{claimed} The margin is the usual one or less, which takes no plan.")
            }
            (Some(_), _) => claimed.to_owned(),
        }
    }

    /// The view. What was planned and has no probes passes nothing.
    pub fn view(self, recorded: Option<View>) -> View {
        let (tested, terms) = (&self.tested, self.terms);
        let facts = AuditsFacts {
            answer: self.answer(recorded.is_some()),
            audits: tested.clone(),
            environments: self.environments.clone(),
            margin_micro: terms.margin_micro,
            alpha_micro: terms.alpha_micro,
            family_size: terms.family_size,
            manifest: terms.manifest,
            not_checked: self.missing.clone(),
        };
        let mut view = View::of(&facts);
        view.answer(facts.answer.text.clone());
        if !tested.is_empty() {
            table(&mut view, tested);
            view.gap();
            view.sentence(graded(terms, self.ends));
        }
        for of in tested {
            if of.state == TransportState::Inconclusive
                && !is_kept_back(of)
                && let Some(margin) = of.wide.min_margin_for_pass
            {
                let seen = match of.wide.detectable_bias {
                    Some(bias) => format!(
                        "a bias of {:.3} would be seen with power 0.80",
                        bias.value()
                    ),
                    None => "no bias within the scale would be seen with power 0.80".to_owned(),
                };
                view.sentence(format!(
                    "{}  would pass at a margin of {:.3}; {seen}",
                    of.policy,
                    margin.value(),
                ));
            }
        }
        for of in tested.iter().filter(|of| of.state == TransportState::Fail) {
            view.sentence(format!(
                "{}  every estimate of it is marked from here on, until it is calibrated on {}",
                of.policy,
                answer::new_labels(of.clusters.value())
            ));
        }
        for name in &self.missing {
            let not_checked = state(TransportState::NotChecked);
            let design = self.design;
            view.sentence(format!(
                "{name}  {not_checked}: {design} has no probe of it"
            ));
        }
        environments::tables(&mut view, &self.environments);
        let mut view = values::on_record(view, &facts, recorded, "dry_run");
        let of_environments = environments::verdict(&self.environments);
        let any = |state: TransportState| tested.iter().any(|of| of.state == state);
        let all_pass = tested.iter().all(|of| of.state == TransportState::Pass);
        (view.verdict, view.exit) = if any(TransportState::Fail) || of_environments == Verdict::Fail
        {
            ("fail", Exit::Fail)
        } else if all_pass && self.missing.is_empty() && of_environments == Verdict::Pass {
            ("pass", Exit::Done)
        } else {
            ("inconclusive", Exit::Inconclusive)
        };
        if of_environments == Verdict::Fail {
            return view.with_next("clover regime list");
        }
        view.with_next(next_estimate(tested))
    }
}

/// The command that estimates by the scores of the judge that was audited.
fn next_estimate(tested: &[TransportTested]) -> String {
    let judge = tested.first().map(|of| &of.terms.judge);
    match judge.filter(|judge| judge.as_str() != "judge") {
        Some(judge) => format!("clover estimate --judge {}", shell::word(judge)),
        None => "clover estimate".to_owned(),
    }
}

/// The environment whose rows alone were audited.
fn scope(tested: &[TransportTested]) -> Option<&EnvironmentScope> {
    tested.first()?.terms.environment.as_ref()
}

fn table(view: &mut View, tested: &[TransportTested]) {
    let head = [
        answer::headed(scope(tested), "policy"),
        "state".to_owned(),
        "residual".to_owned(),
        "interval".to_owned(),
        "of".to_owned(),
        "n".to_owned(),
        "p (BH)".to_owned(),
    ];
    let rows = tested.iter().map(|of| {
        let p = of.zero_null_p_adjusted.map(|p| values::p(p.value()));
        let decided = deciding(of);
        vec![
            of.policy.to_string(),
            state(of.state).to_owned(),
            format!("{:+.3}", of.mean_residual.value()),
            bracket(decided.0),
            decided.1.to_owned(),
            of.rows.to_string(),
            // The p on record is that of the interval with the calibrator's error.
            p.filter(|_| *decided.0 == of.wide)
                .unwrap_or_else(|| "-".to_owned()),
        ]
    });
    view.table(&head, rows);
}

/// How audits were graded.
fn graded(terms: &AuditTerms, ends: (f64, f64)) -> String {
    let margin = terms.margin_micro.map_or("no margin".to_owned(), |of| {
        format!("margin {}", margin_words(of, ends))
    });
    let whence = if terms.manifest.is_some() {
        "as registered"
    } else {
        "not registered"
    };
    format!(
        "{margin}, alpha {} over a family of {}, {whence}; the interval shown is the one that decided: a pass needs the \
         calibrator's own error in it, a failure may come of residuals alone",
        terms.alpha_micro, terms.family_size
    )
}
