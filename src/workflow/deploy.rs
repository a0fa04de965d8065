//! Deployments: what may run, on which calibrator, what recalibration it needs, and the way back. The rules
//! `deployment`, `recalibration`, `guardrail` and `rollback`; `schema/DEPLOYMENT.md` says what they ask.

use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::payload::Verdict;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::deployment::DeploymentActivated;
use crate::event::payload::deployment::DeploymentRolledBack;
use crate::event::payload::deployment::GuardrailChecked;
use crate::event::payload::deployment::Recalibrated;
use crate::event::payload::deployment::RecalibrationCompleted;
use crate::event::payload::deployment::Versions;
use crate::event::payload::estimated::TransportState;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::ground::time::Timestamp;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::assumptions::Assumptions;
use crate::projection::decisions::AllDecisions;
use crate::projection::deployments::Deployments;
use crate::projection::deployments::OfExperiment;
use crate::projection::designs::Designs;
use crate::projection::releases::Acceptance;
use crate::projection::releases::Commit;
use crate::projection::releases::Releases;
use crate::projection::rubrics::Registered;
use crate::projection::rubrics::Rubrics;
use crate::rubric::between;
use crate::rubric::is_hard_rule;
use crate::workflow::guardrails;
use crate::workflow::patches;
use crate::workflow::predicate;
use crate::workflow::prompts;

/// Fresh labels that a recalibration takes.
const LABELS_MIN: u64 = 100;
/// Rows and sets of anchors, and how far they may move.
const ANCHOR_ROWS_MIN: u64 = 200;
const ANCHOR_SETS_MIN: usize = 2;
const DRIFT_MAX: f64 = 0.01;

fn optional(id: Option<EventId>) -> String {
    id.map_or("none".to_owned(), |id| id.to_string())
}

/// The rules `deployment`, `recalibration`, `guardrail` and `rollback`.
#[derive(Clone, Copy, Debug)]
pub struct Deploying;

impl Rule for Deploying {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let none = OfExperiment::default();
        let of = state.fold::<Deployments>().of(experiment);
        let asked = Asked {
            state,
            experiment,
            of: of.unwrap_or(&none),
            now: event.recorded_at,
        };
        let breach = asked.breach_first(event);
        breaches
            .extend(breach.map(|(wanted, found)| Breach::new(RuleName::Rollback, wanted, found)));
        let (rule, found) = match &event.event.payload {
            Payload::DeploymentActivated(said) => (RuleName::Deployment, asked.activated(said)),
            Payload::RecalibrationCompleted(said) => {
                (RuleName::Recalibration, asked.recalibrated(said))
            }
            Payload::GuardrailChecked(said) => {
                (RuleName::Guardrail, asked.checked(event.seq, said))
            }
            Payload::DeploymentRolledBack(said) => (RuleName::Rollback, asked.back(said)),
            _ => return,
        };
        breaches.extend(found.map(|(wanted, found)| Breach::new(rule, wanted, found)));
    }
}

/// What is asked of a deployment, before it is there.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// State before it.
    pub state: &'a State,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Its deployments.
    pub of: &'a OfExperiment,
    /// Ledger time.
    pub now: Timestamp,
}

impl Asked<'_> {
    fn accepted(&self, commit: EventId) -> Option<(&Acceptance, &Commit)> {
        let releases = self.state.fold::<Releases>().of(self.experiment)?;
        let commit = releases.commit(commit)?;
        Some((releases.acceptances.get(&commit.acceptance)?, commit))
    }

    fn registered(&self, commit: EventId) -> Option<&Registered> {
        self.state.fold::<Rubrics>().of_id(self.experiment, commit)
    }

    /// After a breach nothing of the experiment is recorded before its rollback.
    fn breach_first(&self, event: &Candidate<'_>) -> Judged {
        let breach = self.of.breach()?;
        if let Payload::DeploymentRolledBack(said) = &event.event.payload
            && said.breach == Some(breach.id)
        {
            return None;
        }
        let (experiment, seq) = (self.experiment, breach.seq);
        no(
            format!("deployment.rolled_back of {experiment} next, after the breach at seq {seq}"),
            event.event.kind().to_string(),
        )
    }

    fn activated(&self, said: &DeploymentActivated) -> Judged {
        let Some(registered) = self.registered(said.commit) else {
            let expected = format!(
                "a prompt.committed or rubric.registered of {}",
                self.experiment
            );
            return no(expected, said.commit.to_string());
        };
        self.may_run(registered)
            .or_else(|| self.consistent(said, registered))
            .or_else(|| self.approved(said.commit))
            .or_else(|| self.waived(said.commit))
            .or_else(|| self.by_protocol(&said.versions, registered))
            .or_else(|| self.calibrated(&said.versions))
            .or_else(|| self.evaluated(said, registered))
            .or_else(|| self.fresh(said, registered))
            .or_else(|| {
                (said.previous != self.of.active).then(|| {
                    let expected = format!("previous {}", optional(self.of.active));
                    (expected, optional(said.previous))
                })
            })
    }

    /// The head runs; the first rubric only as the first deployment, and nothing that was rolled back.
    fn may_run(&self, registered: &Registered) -> Judged {
        if let Some(seq) = self.of.rolled_back(registered.id) {
            let expected = "a commit that was not rolled back; accept the patch anew";
            let found = format!("{}, rolled back at seq {seq}", registered.version);
            return no(expected, found);
        }
        let head = prompts::head(self.state, self.experiment)?;
        if head.id != registered.id {
            let expected = format!("the head, {}", head.version);
            return no(expected, registered.version.clone());
        }
        if self.accepted(registered.id).is_none()
            && let Some(first) = self.of.deployments.first()
        {
            let expected = "a committed prompt; the first rubric is deployed first or never";
            return no(
                expected,
                format!("{} after seq {}", registered.version, first.seq),
            );
        }
        None
    }

    fn consistent(&self, said: &DeploymentActivated, registered: &Registered) -> Judged {
        let told = prompts::told(self.state, self.experiment, registered)?;
        let versions = &said.versions;
        let model = self.of.models.get(&versions.judge);
        let pairs = [
            (
                "rubric_hash",
                registered.hash.to_string(),
                said.rubric_hash.to_string(),
            ),
            (
                "prompt_hash",
                told.hash.to_string(),
                versions.prompt_hash.to_string(),
            ),
            (
                "rubric_version",
                registered.version.clone(),
                versions.rubric_version.clone(),
            ),
            (
                "model",
                model.cloned().unwrap_or(versions.model.as_str().to_owned()),
                versions.model.as_str().to_owned(),
            ),
        ];
        let differs = pairs.into_iter().find(|(_, wanted, found)| wanted != found);
        differs.and_then(|(name, wanted, found)| no(format!("{name} {wanted}"), found))
    }

    /// Approvals stand where they are needed, and no refusal does.
    fn approved(&self, commit: EventId) -> Judged {
        let (accepted, _) = self.accepted(commit)?;
        prompts::approved(self.state, self.experiment, accepted).err()
    }

    /// What nobody could check before acceptance needs a waiver that was granted after it.
    fn waived(&self, commit: EventId) -> Judged {
        let (accepted, _) = self.accepted(commit)?;
        let decided = self.state.fold::<AllDecisions>().of(&accepted.iteration)?;
        let judged = decided.candidate(accepted.patch_hash)?;
        let unchecked = |gate| {
            let said = judged.said(gate, GateSplit::Dev);
            said.is_some_and(|said| said.verdict == Verdict::NotChecked)
        };
        let codes = [
            (GateId::P0, Assumption::CloverJ2),
            (GateId::P7, Assumption::Adv),
        ];
        codes.into_iter().find_map(|(gate, code)| {
            let row = self
                .state
                .fold::<Assumptions>()
                .row(code, Some(self.experiment));
            let granted = row.and_then(|row| row.granted.as_ref());
            let agreed = granted.and_then(|of| of.agreed).map(|agreed| agreed.seq);
            let fresh = agreed > Some(accepted.seq);
            let open = granted.is_some_and(|of| self.now < of.expires_at);
            if !unchecked(gate) || fresh && open {
                return None;
            }
            no(
                format!("a waiver of {code} by two keys after seq {}", accepted.seq),
                agreed.map_or("none".to_owned(), |seq| format!("one at seq {seq}")),
            )
        })
    }

    /// Where the protocol in force was registered.
    fn protocol(&self) -> Option<(&str, u64)> {
        let force = self.state.fold::<Assumptions>().sdp_in_force(self.now)?;
        Some((force.version.as_str(), force.seq))
    }

    fn by_protocol(&self, versions: &Versions, registered: &Registered) -> Judged {
        let rubric = patches::rubric_of(registered)?;
        let found = versions.sdp_version.as_str();
        if rubric.sdp_version() != found {
            let expected = format!("sdp_version {}, as in the rubric", rubric.sdp_version());
            return no(expected, found);
        }
        if let Some((force, seq)) = self.protocol()
            && force != found
        {
            let expected = format!("a rubric by protocol {force}, in force since seq {seq}");
            return no(expected, found);
        }
        let failed = self
            .state
            .fold::<Assumptions>()
            .failed(Assumption::A0, None)?;
        no("A0 that does not fail", format!("fail since seq {failed}"))
    }

    /// A calibrator of this judge that no protocol voided.
    fn calibrated(&self, versions: &Versions) -> Judged {
        let fitted = self.of.calibrators.get(&versions.calibrator);
        let Some(fitted) = fitted.filter(|of| of.judge == versions.judge) else {
            let expected = format!("a calibrator that was fitted for {}", versions.judge);
            return no(expected, versions.calibrator.to_string());
        };
        let (protocol, since) = self.protocol()?;
        if fitted.seq > since {
            return None;
        }
        no(
            format!("a calibrator fitted after {protocol}, which voids those before seq {since}"),
            format!("one fitted at seq {}", fitted.seq),
        )
    }

    /// What was accepted runs on the calibrator that its gates were evaluated with, unless it was recalibrated since.
    fn evaluated(&self, said: &DeploymentActivated, registered: &Registered) -> Judged {
        self.accepted(said.commit)?;
        let hashes = prompts::judged_as(self.state, self.experiment, registered);
        let (judge, own) = (&said.versions.judge, said.versions.calibrator);
        let newest = self.of.evaluated(judge, &hashes)?;
        let fitted = self.of.calibrators.get(&own);
        let is = fitted.is_some_and(|of| of.is_of(&hashes));
        if is || said.recalibration.is_some() {
            return None;
        }
        no(
            format!("calibrator {newest}, with which its gates were evaluated, or a recalibration"),
            own.to_string(),
        )
    }

    /// Why a deployment needs a recalibration, if it does.
    pub fn recalibration(&self, versions: &Versions, registered: &Registered) -> Option<String> {
        let running = self.of.running();
        if let Some(running) = running.filter(|of| of.versions.model != versions.model) {
            return Some(format!("the model was {}", running.versions.model.as_str()));
        }
        let accepted = self.accepted(registered.id);
        let before = match (running, accepted) {
            (Some(running), _) => self.registered(running.commit),
            (None, Some((_, commit))) => self.registered(commit.parent),
            (None, None) => None,
        }?;
        let (before, after) = (patches::rubric_of(before)?, patches::rubric_of(registered)?);
        let (changes, _) = between(&before, &after);
        let hard = changes
            .into_iter()
            .find(|change| is_hard_rule(&change.path));
        hard.map(|change| format!("{} changes", change.path))
    }

    /// The recalibration that a deployment names is of it, and one is named where one is needed.
    fn fresh(&self, said: &DeploymentActivated, registered: &Registered) -> Judged {
        let needed = self.recalibration(&said.versions, registered);
        match (needed, said.recalibration) {
            (None, None) => None,
            (Some(why), None) => no(
                format!("a recalibration, because {why} (clover deploy recalibrate)"),
                "none",
            ),
            (_, Some(id)) => {
                let found = self.of.recalibrations.get(&id);
                let fits = found.is_some_and(|of| {
                    of.commit == said.commit
                        && of.calibrator == said.versions.calibrator
                        && of.judge == said.versions.judge
                });
                if fits {
                    return None;
                }
                let expected = "a recalibration.completed of this commit, judge and calibrator";
                no(expected, id.to_string())
            }
        }
    }

    fn recalibrated(&self, said: &RecalibrationCompleted) -> Judged {
        let Some(registered) = self.registered(said.commit) else {
            let expected = format!(
                "a prompt.committed or rubric.registered of {}",
                self.experiment
            );
            return no(expected, said.commit.to_string());
        };
        let labels = said.labels.value();
        if labels < LABELS_MIN {
            let expected = format!("at least {LABELS_MIN} fresh labels");
            return no(expected, labels.to_string());
        }
        let design = self
            .state
            .fold::<Designs>()
            .design(self.experiment, &said.design);
        let fresh = design.filter(|design| {
            let known = design.registered.as_ref();
            known.is_some_and(|of| of.seq > registered.seq && of.purpose != DesignPurpose::Confirm)
        });
        let given = fresh.map_or(0, |design| design.open + design.revealed);
        if given < labels {
            let expected = format!(
                "{labels} open labels of {}, registered after seq {}",
                said.design, registered.seq
            );
            return no(expected, given.to_string());
        }
        match (&said.computed, said.transport) {
            (Some(computed), None) => self.computed(computed, registered).or_else(|| steady(said)),
            (None, Some(transport)) => self.audited(said, transport, registered.seq),
            (computed, _) => {
                let found = if computed.is_some() {
                    "both"
                } else {
                    "neither"
                };
                no("what it was computed from, or a transport.tested", found)
            }
        }
    }

    /// Residuals pass by the thresholds of the plan.
    fn computed(&self, said: &Recalibrated, registered: &Registered) -> Judged {
        let Some(plan) = prompts::plan_told(self.state, self.experiment, registered) else {
            return no("a rubric with the plan of an iteration", "none");
        };
        if said.thresholds != guardrails::thresholds(plan) {
            return no("the thresholds of the plan", "others");
        }
        let environments = &said.transport.environments;
        if environments.first().is_none_or(|of| !of.required) {
            return no(
                "residuals of all fresh labels first, which must pass",
                "none",
            );
        }
        let verdict = predicate::verdicts(&Evidence::P6(said.transport.clone()), &said.thresholds);
        (verdict.recommended != Verdict::Pass).then(|| {
            let expected = "residuals on fresh labels that pass".to_owned();
            (expected, word(verdict.recommended).to_owned())
        })
    }

    /// A calibrator that was fitted for the judge, with an audit of transport that passed.
    fn audited(&self, said: &RecalibrationCompleted, transport: EventId, since: u64) -> Judged {
        let fitted = self.of.calibrators.get(&said.calibrator);
        if fitted.is_none_or(|of| of.judge != said.judge) {
            let expected = format!("a calibrator that was fitted for {}", said.judge);
            return no(expected, said.calibrator.to_string());
        }
        let tested = self.of.transports.get(&transport);
        let passed = tested.filter(|of| of.calibrator == said.calibrator && of.seq > since);
        match passed.map(|of| of.state) {
            Some(TransportState::Pass) => steady(said),
            found => no(
                format!("a transport.tested of this calibrator after seq {since} that passed"),
                found.map_or("none".to_owned(), |state| state.to_string()),
            ),
        }
    }

    fn checked(&self, seq: u64, said: &GuardrailChecked) -> Judged {
        let running = self.of.running();
        let Some(running) = running.filter(|of| of.id == said.deployment) else {
            let expected = format!("the running deployment, {}", optional(self.of.active));
            return no(expected, said.deployment.to_string());
        };
        let registered = self.registered(running.commit)?;
        let Some(plan) = prompts::plan_told(self.state, self.experiment, registered) else {
            return no("a rubric with the plan of an iteration", "none");
        };
        if said.thresholds != guardrails::thresholds(plan) {
            return no("the thresholds of the plan", "others");
        }
        let (from, through) = (
            said.window.from_seq.value(),
            said.window.through_seq.value(),
        );
        if from <= running.seq || through < from || through >= seq {
            let expected = format!("a window from above seq {} to below {seq}", running.seq);
            return no(expected, format!("{from} to {through}"));
        }
        if let Some(found) = self.window(running.seq, said) {
            return Some(found);
        }
        let wanted = guardrails::verdicts(&said.evidence, &said.thresholds);
        let pairs = wanted.each().into_iter().zip(said.verdicts.each());
        pairs
            .into_iter()
            .find(|(wanted, found)| wanted != found)
            .and_then(|((name, wanted), (_, found))| {
                no(format!("{name} {}", word(wanted)), word(found))
            })
    }

    /// Evidence from live rows is read from the activation on, or from the last check on, and is not given by hand too.
    fn window(&self, since: u64, said: &GuardrailChecked) -> Judged {
        let inputs = said.inputs?;
        if said.by_hand.is_some() {
            return no("evidence from rows or by hand", "both");
        }
        let last = self.of.checked.map(|of| of.seq + 1);
        let (from, through) = (
            said.window.from_seq.value(),
            said.window.through_seq.value(),
        );
        let starts = from == since + 1 || Some(from) == last;
        if starts && inputs.through_seq == said.window.through_seq {
            return None;
        }
        let or = last.map_or(String::new(), |seq| format!(" or {seq}"));
        no(
            format!(
                "live rows from seq {}{or} on, through the window",
                since + 1
            ),
            format!("{from} to {through}"),
        )
    }

    fn back(&self, said: &DeploymentRolledBack) -> Judged {
        if self.of.active != Some(said.deployment) {
            let expected = format!("the running deployment, {}", optional(self.of.active));
            return no(expected, said.deployment.to_string());
        }
        let breach = self.of.breach().map(|of| of.id);
        if said.breach.is_some() && said.breach != breach {
            let expected = format!("the breach of it, {}", optional(breach));
            return no(expected, optional(said.breach));
        }
        let before = self.of.before();
        let restored = before.map(|of| of.id);
        if said.restored != restored {
            let expected = format!("restored {}, which ran before", optional(restored));
            return no(expected, optional(said.restored));
        }
        let hash = before.map(|of| of.rubric_hash);
        (said.rubric_hash != hash).then(|| {
            let shown = |hash: Option<crate::ground::digest::Digest>| {
                hash.map_or("none".to_owned(), |hash| hash.to_string())
            };
            let expected = format!("rubric_hash {}", shown(hash));
            (expected, shown(said.rubric_hash))
        })
    }
}

/// Anchors of a recalibration stay where they are.
fn steady(said: &RecalibrationCompleted) -> Judged {
    let anchors = &said.anchors.anchors;
    if anchors.len() < ANCHOR_SETS_MIN {
        let expected = format!("{ANCHOR_SETS_MIN} anchor policies");
        return no(expected, anchors.len().to_string());
    }
    let moved = anchors
        .iter()
        .find(|anchor| anchor.rows.value() < ANCHOR_ROWS_MIN || anchor.drift.value() > DRIFT_MAX)?;
    no(
        format!(
            "a drift of at most {DRIFT_MAX} on {ANCHOR_ROWS_MIN} rows of {}",
            moved.policy
        ),
        format!("{} on {}", moved.drift, moved.rows),
    )
}

/// The word of a verdict.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "not_checked",
        Verdict::Pass => "pass",
    }
}
