//! Deployments: what may run, on which calibrator, what recalibration it needs, and the way back. The rules
//! `deployment`, `recalibration`, `guardrail` and `rollback`; `schema/DEPLOYMENT.md` says what they ask.

use clover_ledger::ensure;
mod recalibrations;

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::Verdict;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::deployment::DeploymentRolledBack;
use clover_event::payload::deployment::GuardrailChecked;
use clover_event::payload::deployment::Versions;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_projection::assumptions::Assumptions;
use clover_projection::decisions::AllDecisions;
use clover_projection::deployments;
use clover_projection::deployments::Deployments;
use clover_projection::deployments::ExperimentDeployments;
use clover_projection::deployments::GuardrailCheck;
use clover_projection::judges::Judges;
use clover_projection::releases::Acceptance;
use clover_projection::releases::Commit;
use clover_projection::releases::Releases;
use clover_projection::rubrics::RubricRegistration;
use clover_projection::rubrics::Rubrics;
use clover_rubric::between;
use clover_rubric::is_hard_rule;

use crate::guardrails;
use crate::patches;
use crate::prompts;

fn optional(id: Option<EventId>) -> String {
    id.map_or("none".to_owned(), |id| id.to_string())
}

/// How far an anchor may move where a recalibration is needed, in units of the reward from 0 to 1; a plan may let a patch be accepted
/// that moves one further.
pub const RECALIBRATED_DRIFT_MAX: f64 = recalibrations::DRIFT_MAX;

/// The rules `deployment`, `recalibration`, `guardrail` and `rollback`.
#[derive(Clone, Copy, Debug)]
pub struct DeploymentRules;

impl Rule for DeploymentRules {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if let Some((of, breach)) = deployments::open_breach(state) {
            let answered = check_answered(event, (of, breach));
            breaches.take(RuleName::Rollback, answered);
        }
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let none = ExperimentDeployments::default();
        let of = state.fold::<Deployments>().of(experiment);
        let asked = DeploymentContext {
            state,
            experiment,
            of: of.unwrap_or(&none),
            now: event.recorded_at,
        };
        if !state.asks(Question::AnsweredBreach) {
            breaches.take(RuleName::Rollback, asked.check_breach_first(event));
        }
        let (rule, checked) = match &event.event.payload {
            Payload::DeploymentActivated(said) => {
                (RuleName::Deployment, asked.check_activated(said))
            }
            Payload::RecalibrationCompleted(said) => {
                (RuleName::Recalibration, asked.check_recalibrated(said))
            }
            Payload::GuardrailChecked(said) => {
                (RuleName::Guardrail, asked.check_guardrail(event.seq, said))
            }
            Payload::DeploymentRolledBack(said) => (RuleName::Rollback, asked.check_back(said)),
            _ => return,
        };
        breaches.take(rule, checked);
    }
}

/// The next entry after a breach is its rollback, whatever the experiment of the entry.
fn check_answered(
    event: &ProposedEvent<'_>,
    (experiment, breach): (&ExperimentId, GuardrailCheck),
) -> RuleAnswer {
    let is_back = matches!(&event.event.payload,
        Payload::DeploymentRolledBack(said) if said.breach == Some(breach.id));
    ensure!(
        is_back,
        format!(
            "deployment.rolled_back of {experiment} next, after the breach at seq {}",
            breach.seq
        ),
        event.event.kind().to_string()
    );
    Ok(())
}

/// What is asked of a deployment, before it is there.
#[derive(Clone, Copy, Debug)]
pub struct DeploymentContext<'a> {
    /// State before it.
    pub state: &'a State,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Its deployments.
    pub of: &'a ExperimentDeployments,
    /// Ledger time.
    pub now: Timestamp,
}

impl DeploymentContext<'_> {
    fn accepted(&self, commit: EventId) -> Option<(&Acceptance, &Commit)> {
        let releases = self.state.fold::<Releases>().of(self.experiment)?;
        let commit = releases.commit(commit)?;
        Some((releases.acceptances.get(&commit.acceptance)?, commit))
    }

    /// The first rubric of an experiment was accepted by nobody: what is asked of accepted patches is not asked of it.
    fn is_first_rubric(&self, commit: EventId) -> bool {
        let releases = self.state.fold::<Releases>().of(self.experiment);
        releases.and_then(|of| of.commit(commit)).is_none()
    }

    /// The acceptance of what a patch brought.
    fn acceptance(&self, commit: EventId) -> Result<&Acceptance, Unmet> {
        let accepted = self.accepted(commit);
        let (accepted, _) = accepted.required("the acceptance of the commit")?;
        Ok(accepted)
    }

    fn registered(&self, commit: EventId) -> Option<&RubricRegistration> {
        self.state.fold::<Rubrics>().of_id(self.experiment, commit)
    }

    /// What is named to run, or to be recalibrated.
    fn named(&self, commit: EventId) -> Result<&RubricRegistration, Unmet> {
        self.registered(commit).ok_or_else(|| Unmet {
            expected: format!(
                "a prompt.committed or rubric.registered of {}",
                self.experiment
            ),
            found: commit.to_string(),
        })
    }

    /// After a breach nothing of the experiment is recorded before its rollback.
    fn check_breach_first(&self, event: &ProposedEvent<'_>) -> RuleAnswer {
        let Some(breach) = self.of.breach() else {
            return Ok(());
        };
        if let Payload::DeploymentRolledBack(said) = &event.event.payload
            && said.breach == Some(breach.id)
        {
            return Ok(());
        }
        let (experiment, seq) = (self.experiment, breach.seq);
        unmet(
            format!("deployment.rolled_back of {experiment} next, after the breach at seq {seq}"),
            event.event.kind().to_string(),
        )
    }

    fn check_activated(&self, said: &DeploymentActivated) -> RuleAnswer {
        let registered = self.named(said.commit)?;
        self.check_may_run(registered)?;
        self.check_consistent(said, registered)?;
        self.check_approved(said.commit)?;
        self.check_waived(said.commit)?;
        self.check_protocol(&said.versions, registered)?;
        self.check_calibrated(&said.versions)?;
        self.check_told(said, registered)?;
        self.check_evaluated(said, registered)?;
        self.check_fresh(said, registered)?;
        ensure!(
            said.previous == self.of.active,
            format!("previous {}", optional(self.of.active)),
            optional(said.previous)
        );
        Ok(())
    }

    /// The head runs; the first rubric only as the first deployment, and nothing that was rolled back.
    fn check_may_run(&self, registered: &RubricRegistration) -> RuleAnswer {
        if let Some(seq) = self.of.rolled_back(registered.id) {
            let expected = "a commit that was not rolled back; accept the patch anew";
            let found = format!("{}, rolled back at seq {seq}", registered.version);
            return unmet(expected, found);
        }
        let head = prompts::head(self.state, self.experiment).required("a head")?;
        ensure!(
            head.id == registered.id,
            format!("the head, {}", head.version),
            registered.version.clone()
        );
        if self.accepted(registered.id).is_none()
            && let Some(first) = self.of.deployments.first()
        {
            let expected = "a committed prompt; the first rubric is deployed first or never";
            return unmet(
                expected,
                format!("{} after seq {}", registered.version, first.seq),
            );
        }
        Ok(())
    }

    fn check_consistent(
        &self,
        said: &DeploymentActivated,
        registered: &RubricRegistration,
    ) -> RuleAnswer {
        let told = prompts::told(self.state, self.experiment, registered);
        let told = told.required("leaves that are a rubric")?;
        let versions = &said.versions;
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
        ];
        for (name, wanted, found) in pairs {
            ensure!(wanted == found, format!("{name} {wanted}"), found);
        }
        let model = versions.model.as_str();
        // A judge that is not registered has scores that were handed over: nothing says which model gave them.
        if let Some(wanted) = self.of.models.get(&versions.judge) {
            ensure!(wanted == model, format!("model {wanted}"), model);
        }
        Ok(())
    }

    /// Approvals stand where they are needed, and no refusal does.
    fn check_approved(&self, commit: EventId) -> RuleAnswer {
        if self.is_first_rubric(commit) {
            return Ok(());
        }
        let accepted = self.acceptance(commit)?;
        prompts::approved(self.state, self.experiment, accepted).map(|_| ())
    }

    /// What nobody could check before acceptance needs a waiver that was granted after it.
    fn check_waived(&self, commit: EventId) -> RuleAnswer {
        if self.is_first_rubric(commit) {
            return Ok(());
        }
        let accepted = self.acceptance(commit)?;
        let decided = self.state.fold::<AllDecisions>().of(&accepted.iteration);
        let gates = decided.and_then(|of| of.candidate(accepted.patch_hash));
        let gates = gates.required("gates of the accepted patch")?;
        let codes = [
            (Criterion::P0, Assumption::CloverJ2),
            (Criterion::P7, Assumption::Adv),
        ];
        for (gate, code) in codes {
            let said = gates.said(gate, CriterionSplit::Dev);
            let is_unchecked = said.is_some_and(|said| said.verdict == Verdict::NotChecked);
            if is_unchecked {
                self.check_waiver(code, accepted.seq)?;
            }
        }
        Ok(())
    }

    /// Two keys answer for an assumption since an entry, and still do.
    fn check_waiver(&self, code: Assumption, since: u64) -> RuleAnswer {
        let assumptions = self.state.fold::<Assumptions>();
        let row = assumptions.row(code, Some(self.experiment));
        let granted = row.and_then(|row| row.granted.as_ref());
        let agreed = granted.and_then(|of| of.agreed).map(|agreed| agreed.seq);
        let is_fresh = agreed.is_some_and(|agreed| agreed > since);
        let is_open = granted.is_some_and(|of| self.now < of.expires_at);
        ensure!(
            is_fresh && is_open,
            format!("a waiver of {code} by two keys after seq {since}"),
            agreed.map_or("none".to_owned(), |seq| format!("one at seq {seq}"))
        );
        Ok(())
    }

    /// The protocol in force and where it was registered; `None` before the first one.
    fn protocol(&self) -> Option<(&str, u64)> {
        let force = self.state.fold::<Assumptions>().sdp_in_force(self.now)?;
        Some((force.version.as_str(), force.seq))
    }

    fn check_protocol(&self, versions: &Versions, registered: &RubricRegistration) -> RuleAnswer {
        let rubric = patches::rubric_of(registered).required("leaves that are a rubric")?;
        let found = versions.sdp_version.as_str();
        ensure!(
            rubric.sdp_version() == found,
            format!("sdp_version {}, as in the rubric", rubric.sdp_version()),
            found
        );
        if let Some((force, seq)) = self.protocol() {
            ensure!(
                force == found,
                format!("a rubric by protocol {force}, in force since seq {seq}"),
                found
            );
        }
        let assumptions = self.state.fold::<Assumptions>();
        if let Some(failed) = assumptions.failed(Assumption::A0, None) {
            return unmet("A0 that does not fail", format!("fail since seq {failed}"));
        }
        Ok(())
    }

    /// A calibrator of this judge that no protocol voided.
    fn check_calibrated(&self, versions: &Versions) -> RuleAnswer {
        let fitted = self.of.fit(&versions.judge, versions.calibrator);
        let Some(fitted) = fitted else {
            let expected = format!("a calibrator that was fitted for {}", versions.judge);
            return unmet(expected, versions.calibrator.to_string());
        };
        if let Some((protocol, since)) = self.protocol() {
            ensure!(
                fitted.seq > since,
                format!(
                    "a calibrator fitted after {protocol}, which voids those before seq {since}"
                ),
                format!("one fitted at seq {}", fitted.seq)
            );
        }
        Ok(())
    }

    /// A judge that is another but for what it is told runs with a version whose criteria were evaluated with it: it is told
    /// the prompt of that one, and of no other.
    fn check_told(
        &self,
        said: &DeploymentActivated,
        registered: &RubricRegistration,
    ) -> RuleAnswer {
        if !self.state.asks(Question::TextOfJudge) {
            return Ok(());
        }
        let judge = &said.versions.judge;
        let judges = self
            .state
            .fold::<Judges>()
            .by_experiment
            .get(self.experiment);
        let known = judges.and_then(|of| of.judges.get(judge));
        if known.is_none_or(|of| of.said.of.is_none()) {
            return Ok(());
        }
        let hashes = prompts::judged_as(self.state, self.experiment, registered);
        ensure!(
            self.of.evaluated(judge, &hashes).is_some(),
            format!(
                "a judge that is told the prompt of version {}, with which its criteria were evaluated",
                registered.version
            ),
            judge.to_string()
        );
        Ok(())
    }

    /// What was accepted runs on the calibrator that its gates were evaluated with, unless it was recalibrated since.
    fn check_evaluated(
        &self,
        said: &DeploymentActivated,
        registered: &RubricRegistration,
    ) -> RuleAnswer {
        let is_recalibrated = said.recalibration.is_some();
        if self.is_first_rubric(said.commit) || is_recalibrated {
            return Ok(());
        }
        let hashes = prompts::judged_as(self.state, self.experiment, registered);
        let (judge, own) = (&said.versions.judge, said.versions.calibrator);
        // Until rulebook 18 a judge that no gate was evaluated with ran on any calibrator of its own.
        let of_any = self.state.asks(Question::EvaluatedJudge);
        let judged = self
            .of
            .calibrators
            .iter()
            .filter(|(_, of)| of.is_of(&hashes));
        let judged = judged.filter(|(_, of)| of_any || of.judge == *judge);
        let Some((newest, _)) = judged.max_by_key(|(_, of)| of.seq) else {
            // Gates whose numbers were given by hand were evaluated with no calibrator on record.
            return Ok(());
        };
        let fitted = self.of.calibrators.get(&own);
        ensure!(
            fitted.is_some_and(|of| of.is_of(&hashes)),
            format!("calibrator {newest}, with which its gates were evaluated, or a recalibration"),
            own.to_string()
        );
        Ok(())
    }

    /// Why a deployment needs a recalibration, if it does.
    ///
    /// # Errors
    /// Where what it follows is not on record.
    pub fn recalibration(
        &self,
        versions: &Versions,
        registered: &RubricRegistration,
    ) -> Result<Option<String>, Unmet> {
        let running = self.of.running();
        if let Some(running) = running.filter(|of| of.versions.model != versions.model) {
            return Ok(Some(format!(
                "the model was {}",
                running.versions.model.as_str()
            )));
        }
        let commit = match (running, self.accepted(registered.id)) {
            (Some(running), _) => running.commit,
            (None, Some((_, commit))) => commit.parent,
            // The first rubric, where nothing runs, follows nothing.
            (None, None) => return Ok(None),
        };
        let before = self.registered(commit).required("what it follows")?;
        let read = |of| patches::rubric_of(of).required("leaves that are a rubric");
        let (changes, _) = between(&read(before)?, &read(registered)?);
        let mut changes = changes.into_iter();
        let hard = changes.find(|change| is_hard_rule(&change.path));
        Ok(hard.map(|change| format!("{} changes", change.path)))
    }

    /// The recalibration that a deployment names is of it, and one is named where one is needed.
    fn check_fresh(
        &self,
        said: &DeploymentActivated,
        registered: &RubricRegistration,
    ) -> RuleAnswer {
        let needed = self.recalibration(&said.versions, registered)?;
        match (needed, said.recalibration) {
            (None, None) => Ok(()),
            (Some(why), None) => unmet(
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
                let expected = "a recalibration.completed of this commit, judge and calibrator";
                ensure!(fits, expected, id.to_string());
                Ok(())
            }
        }
    }

    /// The plan that the judge is told by.
    fn plan(&self, registered: &RubricRegistration) -> Result<&IterationPlan, Unmet> {
        let plan = prompts::plan_told(self.state, self.experiment, registered);
        plan.required("a rubric with the plan of an iteration")
    }

    fn check_guardrail(&self, seq: u64, said: &GuardrailChecked) -> RuleAnswer {
        let running = self.of.running();
        let Some(running) = running.filter(|of| of.id == said.deployment) else {
            let expected = format!("the running deployment, {}", optional(self.of.active));
            return unmet(expected, said.deployment.to_string());
        };
        let registered = self.registered(running.commit);
        let plan = self.plan(registered.required("the rubric of what runs")?)?;
        ensure!(
            said.thresholds == guardrails::thresholds(plan),
            "the thresholds of the plan",
            "others"
        );
        let (from, through) = (
            said.window.from_seq.value(),
            said.window.through_seq.value(),
        );
        ensure!(
            from > running.seq && through >= from && through < seq,
            format!("a window from above seq {} to below {seq}", running.seq),
            format!("{from} to {through}")
        );
        self.check_window(running.seq, said)?;
        let wanted = guardrails::verdicts(&said.evidence, &said.thresholds);
        let pairs = wanted.each().into_iter().zip(said.verdicts.each());
        for ((name, wanted), (_, found)) in pairs {
            ensure!(
                wanted == found,
                format!("{name} {}", word(wanted)),
                word(found)
            );
        }
        Ok(())
    }

    /// Evidence from live rows is read from the activation on, or from the last check on, and is not given by hand too.
    fn check_window(&self, since: u64, said: &GuardrailChecked) -> RuleAnswer {
        let Some(inputs) = said.inputs else {
            // Evidence that was given by hand.
            return Ok(());
        };
        ensure!(
            said.by_hand.is_none(),
            "evidence from rows or by hand",
            "both"
        );
        let last = self.of.checked.map(|of| of.seq + 1);
        let (from, through) = (
            said.window.from_seq.value(),
            said.window.through_seq.value(),
        );
        let starts = from == since + 1 || Some(from) == last;
        let or = last.map_or(String::new(), |seq| format!(" or {seq}"));
        ensure!(
            starts && inputs.through_seq == said.window.through_seq,
            format!(
                "live rows from seq {}{or} on, through the window",
                since + 1
            ),
            format!("{from} to {through}")
        );
        Ok(())
    }

    fn check_back(&self, said: &DeploymentRolledBack) -> RuleAnswer {
        ensure!(
            self.of.active == Some(said.deployment),
            format!("the running deployment, {}", optional(self.of.active)),
            said.deployment.to_string()
        );
        let breach = self.of.breach().map(|of| of.id);
        // A person rolls back without one.
        ensure!(
            said.breach.is_none() || said.breach == breach,
            format!("the breach of it, {}", optional(breach)),
            optional(said.breach)
        );
        let before = self.of.before();
        let restored = before.map(|of| of.id);
        ensure!(
            said.restored == restored,
            format!("restored {}, which ran before", optional(restored)),
            optional(said.restored)
        );
        let hash = before.map(|of| of.rubric_hash);
        let shown = |hash: Option<Digest>| hash.map_or("none".to_owned(), |hash| hash.to_string());
        ensure!(
            said.rubric_hash == hash,
            format!("rubric_hash {}", shown(hash)),
            shown(said.rubric_hash)
        );
        Ok(())
    }
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
