//! Probes of an audit against what their design draws, and a calibrator against when they could be read.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::transport::Args;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::payload::audit::AuditTerms;
use crate::event::payload::audit::TransportTested;
use crate::event::payload::estimated::AuditObstacle;
use crate::event::payload::estimated::EnvironmentRows;
use crate::ground::shell;
use crate::ledger::State;
use crate::ledger::rulebooks::Question;
use crate::num::Count;
use crate::projection::audits;
use crate::projection::audits::FitRecord;
use crate::projection::audits::obstacles;
use crate::projection::audits::obstacles::ProbedFit;
use crate::projection::designs::Designs;
use crate::projection::drifts;
use crate::projection::tainted;
use crate::session::estimates::Estimation;
use crate::view::transport::Audits;
use crate::workflow::estimate::compute::Found;

/// How many audits share the error rate where nobody planned them.
pub(super) fn family(read: &Estimation, design: &DesignId, probed: usize) -> Count {
    let state = read.ledger.state();
    let known = state.fold::<Designs>().design(&read.experiment, design);
    let policies = known.map_or(0, |of| of.policies.len());
    let least = drifts::usual::family_least(state, &read.experiment, design);
    let family = (probed.max(policies).max(1) as u64).max(least);
    Count::new(family).unwrap_or_default()
}

/// The entry at which a policy was audited by the probes of a design.
pub(super) fn on_record(
    read: &Estimation,
    design: &DesignId,
    policy: &str,
) -> Result<Option<u64>, CliError> {
    let Ok(policy) = PolicyId::new(policy) else {
        return Ok(None);
    };
    let environment = read.terms.environment.as_ref();
    let digest = audits::rules::audited(&read.experiment, design, (&policy, environment));
    Ok(read.ledger.giver(&digest)?)
}

/// Probes serve one audit. Where that was of another judge, margin or error rate, this one is not on record: it needs probes of
/// its own.
pub(super) fn finished(
    read: &Estimation,
    (design, terms): (&DesignId, Option<&AuditTerms>),
    (policy, seq): (&str, u64),
) -> Result<CliError, CliError> {
    let entry = read.ledger.entry(seq)?;
    let said = entry.and_then(|entry| match entry.event.payload {
        Payload::TransportTested(said) => Some(said),
        _ => None,
    });
    let other = said.and_then(|said| {
        let (judge, audit) = (&said.terms.judge, &said.audit);
        if *judge != read.terms.judge {
            Some(format!("of judge {judge}"))
        } else if terms.is_some_and(|terms| {
            (audit.margin_micro, audit.alpha_micro) != (terms.margin_micro, terms.alpha_micro)
        }) {
            Some("by another margin or error rate".to_owned())
        } else {
            None
        }
    });
    let by = format!("transport: {policy} was audited by the probes of {design}");
    let (message, next) = match other {
        None => (
            format!("{by}: this audit is on record at seq {seq}, and is not run again"),
            format!("clover show {seq}"),
        ),
        Some(other) => (
            format!(
                "{by} at seq {seq}, {other}: probes serve one audit, and this one needs labels of a design of its own"
            ),
            "clover label design new DESIGN --purpose audit --probability P".to_owned(),
        ),
    };
    let mut error = CliError::refused(message, next);
    error.data = json!({"rule": "transport", "policy": policy, "in_the_way": seq});
    Ok(error)
}

/// How many rows of each audited policy a design draws, about.
pub(super) fn drawn(
    read: &Estimation,
    design: &DesignId,
    tested: &[TransportTested],
) -> BTreeMap<PolicyId, u64> {
    let state = read.ledger.state();
    let drawn = tested.iter().filter_map(|of| {
        let place = (&of.policy, design);
        let drawn = match of.drawn {
            Some(rows) => {
                let designs = state.fold::<Designs>();
                let design = designs.registered(&read.experiment, design)?;
                obstacles::of_rows(rows, design.inclusion_micro)
            }
            None => obstacles::drawn(state, &read.experiment, place, &of.terms.judge)?,
        };
        Some((of.policy.clone(), drawn.expected()))
    });
    drawn.collect()
}

/// Policies of which fewer rows wait for an audit than its design draws, each with how many wait and how many it draws about.
pub(super) fn short_of_draw(
    read: &Estimation,
    design: &DesignId,
    waiting: &BTreeMap<PolicyId, u64>,
) -> Vec<(PolicyId, u64, u64)> {
    let state = read.ledger.state();
    if !state.asks(Question::AllProbes) {
        return Vec::new();
    }
    let short = waiting.iter().filter_map(|(policy, labels)| {
        let of = (policy, design);
        let drawn = obstacles::drawn(state, &read.experiment, of, &read.terms.judge)?;
        let obstacle = drawn.obstacle(*labels)?;
        let is_short = obstacle == AuditObstacle::FewerProbes;
        is_short.then(|| (policy.clone(), *labels, drawn.expected()))
    });
    short.collect()
}

/// The newest label of a calibrator, as its fit on record has it, else as it would be put there.
pub(super) fn newest_label(state: &State, experiment: &ExperimentId, found: &Found) -> Option<u64> {
    let sources = found.gathered.sources.iter();
    let newest_label = sources.filter_map(|of| of.newest_label).max();
    let fit = found.digest().and_then(|digest| {
        let audits = state.fold::<audits::Audits>();
        let scope = (&found.terms.judge, found.terms.environment.as_ref());
        audits.fit(experiment, scope, &digest)
    });
    fit.map_or(newest_label, FitRecord::newest)
}

/// What keeps the audit of a policy from passing.
pub(super) fn obstacles_of(
    state: &State,
    (experiment, design): (&ExperimentId, &DesignId),
    found: &Found,
    (policy, labels): (usize, usize),
    inside: Option<EnvironmentRows>,
) -> Vec<AuditObstacle> {
    let of = ProbedFit {
        design,
        experiment,
        inside,
        labels: labels as u64,
        newest_label: newest_label(state, experiment, found),
        policy: &found.name(policy),
        terms: &found.terms,
    };
    obstacles::obstacles(state, &of)
}

impl Args {
    /// The same audit of a design, as it is typed again.
    pub(super) fn again(&self, design: &DesignId) -> String {
        let mut words = format!("clover audit transport --design {}", shell::word(design));
        let mut add = |option: &str, value: &str| {
            words.push_str(&format!(" --{option} {}", shell::word(value)));
        };
        let fit = &self.fit;
        for policy in &self.policies {
            add("policy", policy);
        }
        for covariate in &fit.covariate {
            add("covariate", covariate);
        }
        for (option, value) in [
            ("margin", &self.margin),
            ("alpha", &self.alpha),
            ("experiment", &fit.experiment),
            ("environment", &fit.environment),
            ("judge", &fit.judge),
        ] {
            if let Some(value) = value {
                add(option, value);
            }
        }
        for (option, value, usual) in [
            ("account", &self.account, "confirm-peeks"),
            ("mode", &fit.mode, "auto"),
        ] {
            if value != usual {
                add(option, value);
            }
        }
        if let Some(ends) = fit.scale {
            add("scale", &format!("{}:{}", ends.low_micro, ends.high_micro));
        }
        words
    }
}

/// Refuses to put an audit on record that cannot pass for want of labels: nobody could add them afterwards.
pub(super) fn are_all_labelled(shown: &Audits<'_>, args: &Args) -> Result<(), CliError> {
    let is_short = |of: &&TransportTested| of.obstacles.contains(&AuditObstacle::FewerProbes);
    if args.yes || args.fit.dry_run {
        return Ok(());
    }
    let families = shown.environments.iter();
    let mut families = families.filter(|of| of.obstacles.contains(&AuditObstacle::FewerProbes));
    let short = shown.tested.iter().find(is_short);
    let message = match (short, families.next()) {
        (Some(of), _) => {
            let words = shown.obstacle(of, AuditObstacle::FewerProbes);
            format!("{words} An audit of it passes nothing, and is run once.")
        }
        (None, Some(of)) => format!(
            "of a policy fewer rows are probes of {} than it draws: no environment passes, and each is tested once",
            of.design
        ),
        (None, None) => return Ok(()),
    };
    Err(CliError::refused(
        format!("{message} Label the others first, or pass --yes."),
        format!("{} --yes", args.again(shown.design)),
    ))
}

/// What is said where every probe was scored late.
pub(super) fn unscored(design: &DesignId) -> CliError {
    let message = format!(
        "no probe of {design} had a score before its label could be read: there is nothing to audit; score rows first, and label others under a new design"
    );
    CliError::refused(message, "clover label design new --help")
}

/// Audits whose probes, labels, scores or fit a compromised key signed, from its compromise on; a sentence each.
pub(super) fn tainted(
    state: &State,
    (experiment, design): (&ExperimentId, &DesignId),
    found: &Found,
    tested: &[TransportTested],
) -> Vec<String> {
    let calibrator = found.digest();
    let by = |of: &TransportTested| {
        let rows = (&of.terms.judge, &of.policy);
        let probed = tainted::probed(state, experiment, (design, &of.policy));
        probed.or_else(|| tainted::claimed(state, experiment, rows, calibrator.as_ref()))
    };
    let all = tested.iter().filter_map(|of| Some((of, by(of)?)));
    all.map(|(of, key)| {
        format!(
            "The audit of {} rests on entries of key {key} from its compromise on: nothing is claimed by it.",
            of.policy
        )
    })
    .collect()
}
