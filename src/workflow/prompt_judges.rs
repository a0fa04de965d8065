//! What is asked of a patch that changes what the judge is told: that the judge was told so before it was judged, and that the
//! judge which was told so is the one that runs. `schema/SCORING.md` says how it is asked.
//!
//! The rules stand on this floor because they edit rubrics and render prompts, which no projection may do.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::rubric::LeafChange;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::scoring::ScoresRecomputed;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_projection::decisions::AllDecisions;
use clover_projection::decisions::composite_of;
use clover_projection::iterations::Iteration;
use clover_projection::iterations::Iterations;
use clover_projection::judges::ExperimentJudges;
use clover_projection::judges::Judges;
use clover_projection::releases::Releases;
use clover_projection::rubrics::Rubrics;

use crate::patches;
use crate::prompts;
use crate::prompts::JudgePrompt;

/// The questions `rescored_anew`, `rescored_before`, `judged_prompt` and `rendered_prompt`.
#[derive(Clone, Copy, Debug)]
pub struct PromptJudges;

impl Rule for PromptJudges {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let place = PromptContext { state, experiment };
        let payload = &event.event.payload;
        if state.asks(Question::RescoredAnew) {
            breaches.take(RuleName::Predicate, place.check_step(payload));
        }
        if let Payload::ScoreRecorded(said) = payload
            && state.asks(Question::RescoredBefore)
        {
            breaches.take(RuleName::Sealing, place.check_answered(said));
        }
        if let Payload::DeploymentActivated(said) = payload
            && state.asks(Question::JudgedPrompt)
        {
            breaches.take(RuleName::Deployment, place.check_runs(said));
        }
    }
}

/// The state before an event, and its experiment.
struct PromptContext<'a> {
    state: &'a State,
    experiment: &'a ExperimentId,
}

/// A candidate that changes what the judge is told.
struct PromptChange<'a> {
    it: &'a Iteration,
    /// What the rubric that it edits renders.
    base: JudgePrompt,
    prompt: JudgePrompt,
}

impl<'a> PromptContext<'a> {
    fn judges(&self) -> Option<&'a ExperimentJudges> {
        self.state.fold::<Judges>().of(self.experiment)
    }

    /// What the patches of a candidate change; nothing where it is no candidate, which the rule `predicate` says itself.
    fn diffs(&self, it: &'a Iteration, candidate: Digest) -> Vec<&'a [LeafChange]> {
        let proposals = &self.state.fold::<Releases>().proposals;
        let all: Vec<_> = it.candidates.iter().collect();
        let of = |wanted: &[Digest]| {
            let mine = all
                .iter()
                .filter(|(_, one)| wanted.contains(&one.patch_hash));
            let diffs = mine.filter_map(|(id, _)| proposals.get(*id));
            diffs.map(|of| of.diff.as_slice()).collect::<Vec<_>>()
        };
        if all.iter().any(|(_, one)| one.patch_hash == candidate) {
            return of(&[candidate]);
        }
        let hashes = all.iter().map(|(_, one)| one.patch_hash);
        let pairs = hashes
            .clone()
            .flat_map(|a| hashes.clone().map(move |b| [a, b]));
        let mut both = pairs.filter(|pair| pair[0] < pair[1] && composite_of(pair) == candidate);
        both.next().map_or_else(Vec::new, |pair| of(&pair))
    }

    /// What a candidate of an iteration tells the judge, where that is something else than the rubric which it edits.
    fn changed(
        &self,
        iteration: &IterationId,
        candidate: Digest,
    ) -> Result<Option<PromptChange<'a>>, Unmet> {
        let Some(it) = self.state.fold::<Iterations>().by_id.get(iteration) else {
            // The rule `predicate` says that it was never opened.
            return Ok(None);
        };
        let diffs = self.diffs(it, candidate);
        if diffs.is_empty() {
            return Ok(None);
        }
        let rubrics = self.state.fold::<Rubrics>();
        let base = rubrics.of_hash(self.experiment, it.rubric_hash);
        let base = base.and_then(patches::rubric_of);
        let base = base.required("the rubric of the iteration")?;
        let plan = patches::plan_of(self.state, it).required("the plan of the iteration")?;
        let mut after = base.clone();
        for diff in diffs {
            let patched = prompts::patched(&after, diff, base.version()).ok();
            after = patched.required("a rubric that results")?;
        }
        let prompt = prompts::rendered(&after, Some(plan));
        let base = prompts::rendered(&base, Some(plan));
        let is_changed = prompt.hash != base.hash;
        Ok(is_changed.then_some(PromptChange { it, base, prompt }))
    }

    /// The judge that a candidate is asked of: that of the iteration, told what the candidate changes.
    fn judge_of(&self, changed: &PromptChange<'_>) -> Result<JudgeRegistered, Unmet> {
        let plan = patches::plan_of(self.state, changed.it);
        let named = plan.and_then(|plan| plan.design.as_ref()?.judge.as_ref());
        let judge = self.judges().and_then(|of| of.of_plan(named));
        let judge = judge.required("a registered judge of the iteration")?;
        if self.state.asks(Question::RenderedPrompt)
            && !prompts::can_be_retold(&judge.said, &changed.base)
        {
            return Err(Unmet {
                expected:
                    "a judge that was told nothing, or what the rubric of the iteration renders"
                        .to_owned(),
                found: format!("{}, which is told a text of its own", judge.said.judge),
            });
        }
        let prompt = &changed.prompt;
        let told = judge
            .said
            .told(prompts::reference(&prompt.text), prompt.hash);
        told.required("a name of at most 200 bytes")
    }

    /// The judge that was asked anew for a candidate.
    fn asked(&self, iteration: &IterationId, candidate: Digest) -> Result<&'a JudgeId, Unmet> {
        let asked = self
            .judges()
            .and_then(|of| of.asked_for(iteration, candidate));
        asked.required("scores.recomputed of the judge that was told what the candidate changes")
    }

    fn check_step(&self, payload: &Payload) -> RuleAnswer {
        match payload {
            Payload::ScoresRecomputed(said) => self.check_recomputed(said),
            Payload::CalibratorFitted(said) => self.check_fitted(&said.terms),
            Payload::GateEvaluated(said) => self.check_criterion(said),
            Payload::BatteryEvaluated(said) => self.check_battery(said),
            _ => Ok(()),
        }
    }

    /// Scores under a candidate come from the judge that was told what it changes, or from what was read where it changes
    /// nothing that a judge is told.
    fn check_recomputed(&self, said: &ScoresRecomputed) -> RuleAnswer {
        let word = |of: Option<&JudgeId>| of.map_or("none".to_owned(), JudgeId::to_string);
        let Some(changed) = self.changed(&said.iteration, said.candidate)? else {
            let is_read = said.judge.is_none() && said.rescored.value() == 0;
            let found = format!(
                "{} rescored, judge {}",
                said.rescored,
                word(said.judge.as_ref())
            );
            ensure!(
                is_read,
                "no judge asked anew for a candidate that changes nothing that it is told",
                found
            );
            return Ok(());
        };
        let judge = self.judge_of(&changed)?;
        ensure!(
            said.judge.as_ref() == Some(&judge.judge),
            format!(
                "scores of {}, which is told what the candidate changes",
                judge.judge
            ),
            word(said.judge.as_ref())
        );
        let registered = self.judges().and_then(|of| of.judges.get(&judge.judge));
        let registered = registered.required(&format!("judge {} registered first", judge.judge))?;
        ensure!(
            registered.said == judge,
            format!("judge {} as the candidate tells it", judge.judge),
            "another registration under its name"
        );
        let rescored = said.rescored.value();
        ensure!(
            said.recomputed.value() == 0 && rescored > 0,
            "every row rescored, and none recomputed from old answers",
            format!("{} recomputed, {rescored} rescored", said.recomputed)
        );
        ensure!(
            registered.scores >= rescored,
            format!("{rescored} scores of {} on record first", judge.judge),
            registered.scores.to_string()
        );
        Ok(())
    }

    /// The calibrator of a candidate is fitted on the scores of the judge that was asked anew.
    fn check_fitted(&self, terms: &EstimateTerms) -> RuleAnswer {
        let Some(of) = &terms.iteration else {
            return Ok(());
        };
        let Some(candidate) = of.candidate else {
            return Ok(());
        };
        if self.changed(&of.iteration, candidate)?.is_none() {
            return Ok(());
        }
        self.check_same("a calibrator", &of.iteration, candidate, &terms.judge)
    }

    fn check_same(
        &self,
        what: &str,
        iteration: &IterationId,
        candidate: Digest,
        found: &JudgeId,
    ) -> RuleAnswer {
        let judge = self.asked(iteration, candidate)?;
        ensure!(
            judge == found,
            format!("{what} of {judge}, which was asked anew"),
            found.to_string()
        );
        Ok(())
    }

    /// Nothing is measured of a candidate before the judge was asked anew; that it was not, p0 may say.
    fn check_criterion(&self, said: &GateEvaluated) -> RuleAnswer {
        let says_no = matches!(&said.evidence, Evidence::P0(of) if !of.valid);
        if says_no || self.changed(&said.iteration, said.candidate)?.is_none() {
            return Ok(());
        }
        self.asked(&said.iteration, said.candidate).map(|_| ())
    }

    fn check_battery(&self, said: &BatteryEvaluated) -> RuleAnswer {
        let Some(candidate) = said.candidate else {
            return Ok(());
        };
        if self.changed(&said.iteration, candidate)?.is_none() {
            return Ok(());
        }
        self.check_same("a battery", &said.iteration, candidate, &said.judge)
    }

    /// Whoever sees confirm labels chooses no answer any more.
    fn check_answered(&self, said: &ScoreRecorded) -> RuleAnswer {
        let of = self.judges();
        let judge = of.and_then(|of| of.judges.get(&said.judge));
        let Some((of, _)) = of.zip(judge).filter(|(_, judge)| judge.said.of.is_some()) else {
            return Ok(());
        };
        let open = self.state.fold::<Iterations>().open_in(self.experiment);
        let Some((id, _)) = open else {
            return Ok(());
        };
        let decided = self.state.fold::<AllDecisions>().of(id);
        let unsealed = decided.and_then(|of| Some((of.sealed.as_ref()?, of.unsealed.as_ref()?)));
        let Some((sealed, unsealed)) = unsealed else {
            return Ok(());
        };
        let mut candidates = sealed.hypotheses.iter().map(|one| one.candidate);
        let is_sealed =
            candidates.any(|candidate| of.asked_for(id, candidate) == Some(&said.judge));
        ensure!(
            !is_sealed,
            format!("scores of {} before confirm was unsealed", said.judge),
            format!("unsealed at seq {}", unsealed.seq)
        );
        Ok(())
    }

    /// What an iteration changed of a prompt runs on the judge that was told so, and so does every later version with that
    /// prompt.
    fn check_runs(&self, said: &DeploymentActivated) -> RuleAnswer {
        let versions = &said.versions;
        let prompt_hash = versions.prompt_hash;
        let of = self.judges();
        let told: Vec<&JudgeId> = of
            .into_iter()
            .flat_map(|of| of.told(prompt_hash))
            .map(|of| &of.said.judge)
            .collect();
        if told.is_empty() && !self.is_changed(said)? {
            return Ok(());
        }
        if told.contains(&&versions.judge) {
            return Ok(());
        }
        let expected = format!("a judge that is told the prompt {prompt_hash}");
        unmet(expected, versions.judge.to_string())
    }

    /// Whether the iteration that brought a version changed what the judge is told.
    fn is_changed(&self, said: &DeploymentActivated) -> Result<bool, Unmet> {
        let releases = self.state.fold::<Releases>().of(self.experiment);
        let Some(commit) = releases.and_then(|of| of.commit(said.commit)) else {
            return Ok(false);
        };
        let it = self.state.fold::<Iterations>().by_id.get(&commit.iteration);
        let it = it.required("the iteration of the commit")?;
        let rubrics = self.state.fold::<Rubrics>();
        let base = rubrics.of_hash(self.experiment, it.rubric_hash);
        let base = base.and_then(patches::rubric_of);
        let base = base.required("the rubric of the iteration")?;
        let plan = patches::plan_of(self.state, it);
        Ok(prompts::rendered(&base, plan).hash != said.versions.prompt_hash)
    }
}
