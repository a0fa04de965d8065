//! Iterations of one experiment together, and whether another is worth opening.

use serde::Serialize;

use crate::event::id::AccountId;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::Verdict;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::manifest::Template;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::budgets::Budgets;
use crate::projection::budgets::Purpose;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::campaign;
use crate::projection::iterations::campaign::Campaign;
use crate::projection::iterations::campaign::PATIENCE;
use crate::projection::manifests::ManifestVersion;
use crate::projection::manifests::Manifests;
use crate::report::shown;
use crate::view::View;
use crate::view::word;

/// What the residual audit of an iteration found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditCounts {
    /// Slices whose shrunk interval does not cover 0, or that have rows and no interval.
    pub off_zero: u64,
    /// The entry.
    pub seq: u64,
    /// Slices that are significant within their family.
    pub significant: u64,
    /// Slices that were audited.
    pub slices: u64,
}

/// One iteration of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Turn {
    /// Patches that were accepted in it.
    pub accepted: u64,
    /// What its residual audit found; `null` without one.
    pub audited: Option<AuditCounts>,
    /// The entry that closed it; `null` while it is open.
    pub closed_seq: Option<u64>,
    /// Its name.
    pub iteration: IterationId,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// How it ended; `null` while it is open.
    pub outcome: Option<IterationOutcome>,
    /// Whether there was nothing to find: no significant slice, every interval covers 0, transport passes.
    pub quiet: bool,
    /// Whether calibration held in every environment that was looked at while it was open.
    pub transport: Verdict,
}

/// Peeks left now in the account of the newest iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peeks {
    /// The account.
    pub account: AccountId,
    /// Peeks of a quarter.
    pub amount: u64,
    /// Peeks left in this quarter.
    pub left: u64,
    /// The quarter.
    pub quarter: String,
}

/// A deviation from a manifest of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviationFacts {
    /// The entry.
    pub seq: u64,
    /// What was done, in words.
    pub what: String,
}

/// The iterations of one experiment together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CampaignShown {
    /// What to do next, in words.
    pub advice: String,
    /// Deviations from its manifests, by entry.
    pub deviations: Vec<DeviationFacts>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Iterations in the order of their opening.
    pub iterations: Vec<Turn>,
    /// The iteration that is open; `null` where none is.
    pub open: Option<IterationId>,
    /// Quiet iterations in a row after which a campaign stops.
    pub patience: u64,
    /// Peeks of the newest iteration; `null` where no account of peeks is found.
    pub peeks: Option<Peeks>,
    /// Quiet iterations in a row up to the newest that ended.
    pub quiet_in_a_row: u64,
    /// Whether so many quiet iterations in a row say that nothing is left to find.
    pub stop: bool,
}

impl From<campaign::ResidualAudit> for AuditCounts {
    fn from(of: campaign::ResidualAudit) -> Self {
        Self {
            off_zero: of.off_zero as u64,
            seq: of.seq,
            significant: of.significant as u64,
            slices: of.slices as u64,
        }
    }
}

impl From<&campaign::Turn> for Turn {
    fn from(of: &campaign::Turn) -> Self {
        Self {
            accepted: of.accepted as u64,
            audited: of.audited.map(AuditCounts::from),
            closed_seq: of.closed.map(|(_, seq)| seq),
            iteration: of.iteration.clone(),
            opened_seq: of.opened_seq,
            outcome: of.closed.map(|(outcome, _)| outcome),
            quiet: of.is_quiet(),
            transport: of.transport,
        }
    }
}

fn peeks(state: &State, experiment: &ExperimentId) -> Option<Peeks> {
    let iterations = state.fold::<Iterations>().by_id.values();
    let of = iterations.filter(|it| it.experiment == *experiment);
    let newest = of.max_by_key(|it| it.opened_seq)?;
    let (_, record) = state.fold::<Manifests>().of_digest(newest.digest)?;
    let plan = record.version(newest.digest)?.manifest.iteration.as_ref()?;
    let name = &plan.design.as_ref()?.peek_account;
    let account = state.fold::<Budgets>().accounts.get(name)?;
    let now = state.keyring.recorded_at?;
    (account.purpose() == Purpose::Peeks).then(|| Peeks {
        account: name.clone(),
        amount: account.amount,
        left: account.left(now),
        quarter: now.quarter().to_string(),
    })
}

/// What to do next, in words and as a command.
fn advice(
    (state, experiment): (&State, &ExperimentId),
    campaign: &Campaign,
    peeks: Option<&Peeks>,
) -> (String, String) {
    if let Some(open) = campaign.open() {
        return (
            format!("{} is open since seq {}", open.iteration, open.opened_seq),
            format!("clover report iteration {}", shell::word(&open.iteration)),
        );
    }
    if campaign.has_stopped() {
        let words = format!(
            "stop: {PATIENCE} iterations in a row found no significant slice, every shrunk interval covers 0, and \
             transport passes"
        );
        return (words, "clover report iteration -o report.html".to_owned());
    }
    if peeks.is_some_and(|peeks| peeks.left == 0) {
        let words = "no peek is left this quarter: an iteration opens in the next".to_owned();
        return (words, "clover budget list".to_owned());
    }
    let number = campaign.turns.len() + 1;
    let quiet = campaign.quiet_in_a_row();
    let words =
        format!("go on: iteration {number} is next ({quiet} of {PATIENCE} quiet ones in a row)");
    (words, opening(state, experiment, number))
}

/// The command that opens the next iteration by a plan in force that none was opened by; without one, the command that drafts
/// a plan.
fn opening(state: &State, experiment: &ExperimentId, number: usize) -> String {
    let known = &state.fold::<Iterations>().by_id;
    let is_unused = |version: &ManifestVersion| {
        version.manifest.template == Template::Iteration
            && known.values().all(|it| it.digest != version.digest)
    };
    let manifests = state.fold::<Manifests>();
    let mut plans = manifests.in_force_of(experiment);
    let Some((plan, _)) = plans.find(|(_, version)| is_unused(version)) else {
        return "clover prereg new --template iteration --from-data -o plan.yaml".to_owned();
    };
    let name = (number..).map(|number| format!("it-{number}"));
    let mut free = name.filter(|name| known.keys().all(|id| id.as_str() != name));
    let name = free.next().unwrap_or_default();
    format!(
        "clover iterate open {name} --manifest {}",
        shell::word(&plan)
    )
}

/// What each iteration found, peeks left, and whether another is worth opening.
pub fn status(state: &State, experiment: &ExperimentId, campaign: &Campaign) -> View {
    let peeks = peeks(state, experiment);
    let (words, next) = advice((state, experiment), campaign, peeks.as_ref());
    let deviations = campaign
        .deviations
        .iter()
        .map(|(seq, what)| DeviationFacts {
            seq: *seq,
            what: what.clone(),
        });
    let facts = CampaignShown {
        advice: words,
        deviations: deviations.collect(),
        experiment: experiment.clone(),
        iterations: campaign.turns.iter().map(Turn::from).collect(),
        open: campaign.open().map(|turn| turn.iteration.clone()),
        patience: PATIENCE as u64,
        peeks,
        quiet_in_a_row: campaign.quiet_in_a_row() as u64,
        stop: campaign.has_stopped(),
    };
    let mut view = View::of(&facts);
    view.line(format!("experiment {experiment}"));
    view.gap();
    table(&mut view, &facts.iterations);
    view.gap();
    if let Some(peeks) = &facts.peeks {
        view.line(format!(
            "peeks  {} of {} left in {} ({})",
            peeks.left, peeks.amount, peeks.account, peeks.quarter
        ));
    }
    for DeviationFacts { seq, what } in &facts.deviations {
        view.sentence(format!("deviation at seq {seq}: {what}"));
    }
    view.sentence(facts.advice);
    view.with_next(next)
}

fn table(view: &mut View, turns: &[Turn]) {
    let rows = turns.iter().map(|turn| {
        let audited = |pick: fn(&AuditCounts) -> u64| {
            let found = turn.audited.as_ref();
            found.map_or("-".to_owned(), |of| format!("{}/{}", pick(of), of.slices))
        };
        vec![
            turn.iteration.to_string(),
            turn.outcome
                .map_or("open".to_owned(), |outcome| word(&outcome)),
            audited(|of| of.significant),
            audited(|of| of.off_zero),
            shown::word(turn.transport).to_owned(),
            turn.accepted.to_string(),
            if turn.quiet { "yes" } else { "no" }.to_owned(),
        ]
    });
    let head = [
        "iteration",
        "outcome",
        "significant",
        "off zero",
        "transport",
        "accepted",
        "quiet",
    ];
    view.table(&head, rows);
}
