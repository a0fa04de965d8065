//! Families of environments that a plan of audits names: found among the rows before anything is opened, and tested once by
//! the probes of a design.

use std::collections::BTreeSet;

use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::transport_probes;
use crate::event::Kind;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::FamilyId;
use crate::event::id::FieldId;
use crate::event::payload::environment::EnvironmentScope;
use crate::event::payload::environment::EnvironmentsTested;
use crate::event::payload::manifest::Manifest;
use crate::event::registry;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::ledger::rulebooks::Question;
use crate::projection::audits::obstacles;
use crate::projection::drifts::environments as planned;
use crate::session::estimates::Estimation;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::environments;
use crate::workflow::estimate::environments::EnvironmentAsk;
use crate::workflow::estimate::rows::Gathered;

/// Families that a plan names and that a design has not tested yet, each with its environments.
pub(super) struct UntestedFamilies<'a> {
    design: &'a DesignId,
    families: Vec<(FamilyId, Vec<(EnvironmentScope, bool)>)>,
    manifest: Digest,
    plan: Option<&'a Manifest>,
}

impl<'a> UntestedFamilies<'a> {
    /// Those of a plan; none without one, and none inside one environment.
    pub(super) fn of(
        read: &Estimation,
        design: &'a DesignId,
        plan: Option<(&'a Manifest, Digest)>,
    ) -> Result<Self, CliError> {
        let mut found = Self {
            design,
            families: Vec::new(),
            manifest: plan.map_or(Digest([0; 32]), |(_, digest)| digest),
            plan: plan.map(|(manifest, _)| manifest),
        };
        let transport = found.plan.and_then(|manifest| manifest.transport.as_ref());
        let Some(transport) = transport.filter(|_| read.terms.environment.is_none()) else {
            return Ok(found);
        };
        let names = transport.environments.iter();
        let names: BTreeSet<&FamilyId> = names.filter_map(|of| of.family.as_ref()).collect();
        for family in names {
            let fields = [design.as_str(), family.as_str()];
            let key = registry::natural_key_of(Kind::EnvironmentsTested, &read.experiment, &fields);
            if read.ledger.giver(&key)?.is_none() {
                let environments = planned::of_family(transport, family);
                found.families.push((family.clone(), environments));
            }
        }
        Ok(found)
    }

    /// Whether there is nothing to test.
    pub(super) fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// Fields of rows that decide which environment they are in.
    pub(super) fn fields(&self) -> Vec<FieldId> {
        let all = self.families.iter().flat_map(|(_, of)| of);
        environments::fields(all.map(|(scope, _)| scope))
    }

    /// Refuses, before a peek is paid, an environment that holds no scored row: its name or its field is another.
    pub(super) fn are_there(&self, gathered: &Gathered) -> Result<(), CliError> {
        let all = self.families.iter().flat_map(|(_, of)| of);
        for (scope, _) in all {
            let policies = gathered.dataset.policies.iter().enumerate();
            let has_row = policies
                .into_iter()
                .any(|(policy, of)| (0..of.len()).any(|row| gathered.is_in(policy, row, scope)));
            if !has_row {
                let (message, field) = match scope.window {
                    None => (
                        format!("no scored row has {scope}, which the plan names"),
                        shell::word(&scope.family),
                    ),
                    Some(_) => (
                        format!("no scored row was sampled in {scope}, which the plan names"),
                        "sampled_at".to_owned(),
                    ),
                };
                return Err(CliError::refused(
                    message,
                    format!("clover import cje FILE --field {field}"),
                ));
            }
        }
        Ok(())
    }

    /// Tests each family by the probes of the design.
    pub(super) fn test(
        &self,
        (state, experiment): (&State, &ExperimentId),
        found: &Found,
    ) -> Result<Vec<EnvironmentsTested>, CliError> {
        let transport = self.plan.and_then(|manifest| manifest.transport.as_ref());
        let Some(transport) = transport else {
            return Ok(Vec::new());
        };
        let mut tested = Vec::with_capacity(self.families.len());
        let newest = transport_probes::newest_label(state, experiment, found);
        let of = (experiment, self.design);
        let obstacles = obstacles::family_obstacles(state, of, &found.terms, newest);
        for (family, scopes) in &self.families {
            let ask = EnvironmentAsk {
                correction: transport.correction,
                design: self.design,
                environments: scopes,
                family,
                inside: state.asks(Question::InsideProbes),
                manifest: self.manifest,
                obstacles: &obstacles,
                q: planned::level(transport),
            };
            let of = environments::test(found, &ask).map_err(|error| estimate::refused(&error))?;
            tested.extend(of);
        }
        Ok(tested)
    }
}
