//! The outer loop: an update is proposed, tried on pairs of runs, and takes effect where its gates say so. Everything is on
//! record before the next step, so a loop that was cut goes on with the same call.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::payload::meta::LibTemplateAdded;
use clover_event::payload::meta::MetaCase;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta::MetaVerdict;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::wf::MetaUpdate;
use clover_projection::wf::WfRuns;
use clover_workflow::wf::lesson;
use clover_workflow::wf::measure;
use clover_workflow::wf::measures;
use clover_workflow::wf::words;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Ports;
use crate::wf::RepairError;
use crate::wf::many;
use crate::wf::meta_plan;
use crate::wf::meta_plan::MetaRequest;
use crate::wf::meta_plan::update_of;
use crate::wf::need;
use crate::wf::running::RepairPause;

/// Every kind that an outer loop says by itself, and every kind of the runs that it opens.
const KINDS: [Kind; 6] = [
    Kind::MetaUpdated,
    Kind::MetaValidated,
    Kind::WfRunStarted,
    Kind::WfCandidateAdded,
    Kind::WfFeedbackGiven,
    Kind::UtilityRecorded,
];

/// An outer loop on the table.
pub struct MetaBench {
    /// The ledger's folder.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// What it is asked for.
    pub request: MetaRequest,
}

impl std::fmt::Debug for MetaBench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetaBench({})", self.request.update)
    }
}

impl MetaBench {
    fn update(&self) -> Result<&MetaUpdate, RepairError> {
        let runs = self.ledger.state().fold::<WfRuns>();
        update_of(runs, &self.request.update)
    }

    fn say(&mut self, ports: &mut dyn Ports, payloads: Vec<Payload>) -> Result<(), SessionError> {
        let Some(first) = payloads.first() else {
            return Ok(());
        };
        let signer = ports.signer(self.ledger.state(), need(first.kind()))?;
        let experiment = &self.request.experiment;
        let commands = payloads.into_iter();
        let commands = commands.map(|payload| Command::new(payload, Some(experiment.clone())));
        let commands: Vec<Command> = commands.collect();
        append::append_with(ports, &mut self.ledger, &commands, &signer, &[])?;
        Ok(())
    }

    /// Goes on until the update is validated: proposes it where it is not on record, opens all its runs before any of them is
    /// executed, executes all before any truth is opened, and reads its gates over all pairs.
    ///
    /// # Errors
    /// [`RepairError`]; no key, before anything is said; what the ledger says. What was said stands, and the same call goes on.
    pub fn go(mut self, ports: &mut dyn Ports) -> Result<(Self, RepairPause), SessionError> {
        let runs = self.ledger.state().fold::<WfRuns>();
        if !runs.updates.contains_key(&self.request.update) {
            // Everything that the whole loop needs is looked for first.
            ports.check(self.ledger.state(), &KINDS.map(need))?;
            let plan = meta_plan::plan(&self.ledger, &self.request)?;
            self.say(ports, vec![plan.trigger.into(), plan.update.into()])?;
        }
        if self.update()?.validated.is_none() {
            let requests = meta_plan::arms(&self.ledger, &self.request)?;
            let pairs = self.update()?.said.pairs.iter();
            let names = pairs.flat_map(|of| [of.new.clone(), of.old.clone()]);
            let names: Vec<RunId> = names.collect();
            let Self {
                home,
                ledger,
                request,
            } = self;
            let ((home, ledger), pause) =
                many::gone_through(ports, (home, ledger), (&requests, &names))?;
            self = Self {
                home,
                ledger,
                request,
            };
            if pause == RepairPause::Cut {
                return Ok((self, pause));
            }
            let runs = self.ledger.state().fold::<WfRuns>();
            let said = measure::validated(runs, &self.update()?.said).map_err(RepairError::from)?;
            self.say(ports, vec![said.into()])?;
        }
        let template = self.template()?;
        self.say(ports, template.map(Payload::from).into_iter().collect())?;
        Ok((self, RepairPause::Ended))
    }

    /// The template that an update brings which passed, where the library has it not.
    fn template(&self) -> Result<Option<LibTemplateAdded>, RepairError> {
        let runs = self.ledger.state().fold::<WfRuns>();
        let update = self.update()?;
        let (said, validated) = (&update.said, update.validated.as_ref());
        let passed = validated.is_some_and(|of| of.verdict == MetaVerdict::Pass);
        let is_due = passed
            && said.target == MetaTarget::Library
            && !runs.library.contains_key(&said.new_digest);
        if !is_due {
            return Ok(None);
        }
        let triggers = said.triggers.iter();
        let cases = triggers.filter_map(|name| runs.triggers.get(name));
        let cases = cases.flat_map(|of| &of.cases).cloned();
        let cases: Vec<MetaCase> = cases.collect();
        let shown: Vec<_> = cases
            .iter()
            .filter_map(|of| runs.by_id.get(&of.run))
            .collect();
        let is_it = |of: &&MetaCase| of.candidate == said.new_digest;
        let own: Vec<MetaCase> = cases.iter().filter(is_it).cloned().collect();
        let first = lesson::distilled(&own, &shown).or(own.first());
        let family = first.and_then(|of| runs.by_id.get(&of.run));
        let family = family.map(measures::family).unwrap_or_default();
        Ok(Some(LibTemplateAdded {
            applies_to: words::text(&family),
            distilled_from: own,
            ir: said.document.clone(),
            template_digest: said.new_digest,
            update: said.update.clone(),
        }))
    }
}
