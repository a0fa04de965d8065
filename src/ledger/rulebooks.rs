//! Versions of the rulebook: which question is asked of an entry since which version.
//!
//! A ledger says which rulebook judges it: in `ledger.created`, and later in `rulebook.adopted` by its owner.
//! An entry is judged by the rulebook in force before it, so that a rule which a newer program adds never
//! turns an older history. What the rulebook in force did not ask is named as not asked.

use std::fmt::Write as _;

use serde::Deserialize;
use serde::Serialize;

use crate::fold::Breach;
use crate::rule_names::RuleName;

/// The rulebook of a ledger that names none.
pub const UNNAMED: u32 = 17;

/// The newest rulebook that this program knows.
pub const NEWEST: u32 = 29;

macro_rules! questions {
    ($($(#[$doc:meta])* $question:ident $name:literal since $since:literal rule $rule:ident: $words:literal;)*) => {
        /// A question that some rulebooks ask of an entry and others do not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Question {
            $($(#[$doc])* $question,)*
        }

        impl Question {
            /// Every question, in the order in which verdicts name them.
            pub const ALL: &[Self] = &[$(Self::$question),*];

            /// The name in verdicts.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$question => $name),* }
            }

            /// The first rulebook that asks it.
            pub fn since(self) -> u32 {
                match self { $(Self::$question => $since),* }
            }

            /// The rule whose finding answers it.
            pub fn rule(self) -> RuleName {
                match self { $(Self::$question => RuleName::$rule),* }
            }

            /// What is asked, for people.
            pub fn words(self) -> &'static str {
                match self { $(Self::$question => $words),* }
            }
        }
    };
}

questions! {
    /// Which rows a confirm criterion reads.
    ConfirmRows "confirm_rows" since 18 rule Sealing:
        "a confirm label is revealed only for the peek of its unsealing, and a confirm criterion reads every row of the block";
    /// When confirm labels were sealed.
    SealedBefore "sealed_before" since 18 rule Sealing:
        "a confirm label counts only if it was sealed before its iteration opened";
    /// Which account pays for a peek.
    PeekAccount "peek_account" since 18 rule Sealing:
        "a peek is paid from the account that the plan names, and a quarter allows three peeks over all accounts";
    /// Whether an order could be drawn again.
    OneOrder "one_order" since 18 rule Amendment:
        "what is tested binds from its first countersignature on: no amendment draws a second order, and another manifest that does is graded lower";
    /// Who may sign a deviation.
    DeviationSigners "deviation_signers" since 18 rule Role:
        "a deviation from a manifest is signed by an owner or a registrar";
    /// Which characters ids hold.
    AssignedIds "assigned_ids" since 18 rule Schema:
        "ids hold only characters that Unicode 13.0 assigns";
    /// Which checkpoint an order is drawn from.
    BeaconPlace "beacon_place" since 18 rule Order:
        "an order is drawn from the checkpoint right after the entry that fixes what is tested";
    /// When units of a gate are scored, and on which scale.
    ScoredInOrder "scored_in_order" since 18 rule Exposure:
        "an exposure names its last unit, and no unit of a gate is scored before it is exposed, or off the scale";
    /// Which claims may be about exactly the recorded units.
    FiniteClaims "finite_claims" since 18 rule Manifest:
        "a claim about exactly its own units is about scores without noise, has the grade finite, and no promotion rests on it alone";
    /// In how many families one candidate is tested.
    OneFamily "one_family" since 18 rule Gate:
        "a candidate is tested by one metric, judge or confirm set in one family, in whatever experiment, and a promotion counts its tests";
    /// Who could know outcomes when the order was fixed.
    KnownOutcomes "known_outcomes" since 18 rule Promotion:
        "a gate whose order was fixed by somebody who scores, labels, registers or optimizes has the grade self_governed";
    /// What a claim may rest on.
    TaintedEvidence "tainted_evidence" since 18 rule Promotion:
        "a gate that rests on entries of a compromised key, from its compromise on, is void";
    /// What one charge pays for.
    OneCharge "one_charge" since 18 rule Charge:
        "a charge opens labels of one design, or of one confirm block";
    /// How holders are spelled.
    OneSpelling "one_spelling" since 18 rule Separation:
        "a person holds keys under one spelling, without what nobody sees";
    /// Which plan units are exposed on.
    SealedPlan "sealed_plan" since 18 rule Plan:
        "units are exposed only on the sealed plan that the version in force binds";
    /// What a gate takes over from the one that it continues.
    CarriedGrade "carried_grade" since 18 rule Promotion:
        "a gate that continues another has no better grade than that one";
    /// What estimates and comparisons may claim.
    CheckedClaims "checked_claims" since 18 rule Transport:
        "a comparison tells apart only what own labels or a passed audit support, no estimate or audit has an interval of width zero, and a withheld level is refused everywhere";
    /// How an iteration may end after its peek.
    EndAfterPeek "end_after_peek" since 18 rule Acceptance:
        "an iteration whose confirm was unsealed ends as transport_failed after every gate of every sealed candidate";
    /// With which judge something may run.
    EvaluatedJudge "evaluated_judge" since 18 rule Deployment:
        "what was accepted runs on a calibrator that its gates were evaluated with, whichever judge is named, or is recalibrated";
    /// What an iteration may record once its protocol was replaced.
    ProtocolSteps "protocol_steps" since 19 rule Sdp:
        "an iteration whose protocol was replaced takes no step of any kind: its patches are rejected or withdrawn, and it closes";
    /// What stops once a judge contradicted itself.
    GovernedSteps "governed_steps" since 19 rule Blocked:
        "after a judge contradicted itself nobody looks at confirm, no gate moves or is decided to hold, and nothing is committed, deployed, tuned or promoted";
    /// Which judge is another but for what it is told.
    DerivedJudge "derived_judge" since 20 rule Judge:
        "a judge that is another but for what it is told is named after both, is a program, and differs in nothing else";
    /// Whose answers a patch is judged on that changes what the judge is told.
    RescoredAnew "rescored_anew" since 20 rule Predicate:
        "a patch that changes what the judge is told is judged on answers of the judge that was told so, and of no other";
    /// When those answers are given.
    RescoredBefore "rescored_before" since 20 rule Sealing:
        "a judge that was asked anew for a sealed candidate answers before confirm labels are shown";
    /// Whose scores what runs is judged on.
    JudgedPrompt "judged_prompt" since 20 rule Deployment:
        "what runs is judged by the judge that is told its prompt";
    /// How large the alpha of a member of a family may be.
    CappedAlpha "capped_alpha" since 20 rule Family:
        "no member of a family has an alpha above the family's own, whatever its share and the claims before it";
    /// What is owed after a peek, whatever people label by since.
    JudgedPeek "judged_peek" since 20 rule Acceptance:
        "an iteration whose confirm was unsealed ends as sdp_changed after every gate of every sealed candidate, which it may still evaluate";
    /// From when a protocol is in force.
    EffectiveLater "effective_later" since 20 rule Sdp:
        "a protocol that takes the place of another is not in force before it was recorded";
    /// Whether a judge that contradicted itself can be said to have not.
    LastingContradiction "lasting_contradiction" since 20 rule Blocked:
        "a judge that contradicted itself once has done so: no later re-score takes it back";
    /// Which roles of a holder count under `strict`.
    RolesEverHeld "roles_ever_held" since 20 rule Separation:
        "under strict a new key counts with every role that its holder ever held, on retired and compromised keys too";
    /// What a charge pays for that was not sealed yet.
    SealedWhenCharged "sealed_when_charged" since 20 rule Seal:
        "a charge opens what was sealed when it was charged, and nothing that was sealed later";
    /// Which plan an audit of transport is graded by.
    PlannedProbes "planned_probes" since 20 rule Thresholds:
        "an audit of transport is graded by a plan that was in force before a probe of its design was open, or by none";
    /// What is owed after a peek, whoever reads what since.
    TaintedPeek "tainted_peek" since 21 rule Acceptance:
        "an iteration whose confirm was unsealed ends as tainted after every gate of every sealed candidate";
    /// Which of several plans grades an audit.
    FirstPlan "first_plan" since 21 rule Thresholds:
        "of several plans of audits the one that was in force first grades; once it is withdrawn or changed, no audit of the design passes";
    /// How an audit is graded that nobody planned.
    UsualAudit "usual_audit" since 21 rule Thresholds:
        "an audit of transport that no plan grades is graded by the usual numbers or stricter ones, as one of as many audits as the design has policies";
    /// How labels count that were drawn by stratum.
    WeightedLabels "weighted_labels" since 21 rule Transport:
        "where a design for calibration has strata, labels are weighted by its probabilities, or correct nothing";
    /// What criterion P6 is about.
    ClaimedEnvironments "claimed_environments" since 21 rule Predicate:
        "criterion P6 is about every environment that the plan requires, and a plan that names none says that it claims none";
    /// Who pays for an accepted patch.
    ChargedPatches "charged_patches" since 21 rule Acceptance:
        "where an account of patches is open, an accepted patch names a charge to one that paid for no other, of its quarter";
    /// What a report says of assumptions.
    FoundOfEach "found_of_each" since 21 rule Recompute:
        "a report says of an assumption what audits of transport, criterion P6 and estimates found, and the worst policy counts";
    /// By which correction policies are compared, and by which weight they are estimated.
    PlannedEstimates "planned_estimates" since 22 rule Thresholds:
        "policies are compared by the correction, and estimated by the weight, of the plan that was in force first";
    /// What a report says of calibrators.
    ReportedSlope "reported_slope" since 22 rule Recompute:
        "a report says of each calibrator the slope of labels on its rewards";
    /// Of how many designs one draw is a probe.
    OneProbe "one_probe" since 22 rule Purpose:
        "a draw is a probe of one design, and a plan of audits grades only probes that no earlier design had opened";
    /// Whether probes are drawn by stratum.
    EvenProbes "even_probes" since 22 rule Design:
        "a design for audits has no strata, since an audit counts each of its probes alike";
    /// How often a rater labels one draw for calibration.
    OneLabel "one_label" since 22 rule ScoreOnce:
        "a rater gives one draw one label for calibration, whatever design it names, and it counts once";
    /// Which account pays for an accepted patch.
    PatchAccount "patch_account" since 22 rule Acceptance:
        "an accepted patch is paid from the account that the plan names, else from the first one, which no optimizer charges";
    /// When rows of confirm are scored.
    ScoredBefore "scored_before" since 22 rule Sealing:
        "each sealed row of a confirm block has a score from before it is unsealed, and no row of it is scored between its unsealing and the end of the iteration";
    /// When probes are scored.
    TimelyProbes "timely_probes" since 22 rule Transport:
        "a probe counts only if its score stands before its label can be read, and an audit that lacks one passes nothing";
    /// When fields are said.
    SaidBefore "said_before" since 22 rule Transport:
        "a covariate, a slice and the strata that weight labels are said by imports before the labels can be read";
    /// What answers a failed audit.
    AnsweredFailure "answered_failure" since 23 rule Transport:
        "a failed audit is answered only by as many new labels of its policy in a fit as it had prompts, or by a pass of as many";
    /// How wide the usual margin of an audit is.
    ScaledMargin "scaled_margin" since 23 rule Thresholds:
        "the usual margin of an audit is 0.05 of the width of the declared scale of labels";
    /// Of how many designs one answer is a probe.
    OnePrompt "one_prompt" since 23 rule Purpose:
        "an answer of a policy to a prompt is a probe of one design, whatever number its draw has";
    /// Which probes of a design an audit needs.
    AllProbes "all_probes" since 23 rule Transport:
        "an audit passes only where as many probes have a label as its design draws, and a design takes no probe of a policy once it audited it";
    /// When the calibrator of an audit was fitted, and on which terms.
    FittedBefore "fitted_before" since 23 rule Transport:
        "an audit passes only on a calibrator whose labels stood before the first of its probes could be read, on usual terms or on those of an earlier fit";
    /// Which policies share the error rate of an audit that nobody planned.
    WholeFamily "whole_family" since 23 rule Thresholds:
        "the family of an audit that no plan grades is every policy that had scores when the first probe of its design could be read";
    /// Whom a comparison tells apart where prompts lack.
    MissingPrompts "missing_prompts" since 23 rule Transport:
        "a comparison says which prompts both policies have scores of, and tells apart only where the worst scores of the others would not change that";
    /// On which scale labels lie.
    LabelsOnScale "labels_on_scale" since 23 rule Design:
        "a scale of labels holds every label of its experiment, and is said before the first sealed one";
    /// How many scales a judge has.
    ScoresOnScale "scores_on_scale" since 23 rule Judge:
        "a scale of scores is said before the first score of its judge, and holds every one";
    /// What a comparison of judges says.
    ComparedJudges "compared_judges" since 23 rule Judge:
        "a comparison of judges names the better one by its interval, and a plan that named it before the first label";
    /// What a battery keeps.
    AnsweredBattery "answered_battery" since 23 rule Battery:
        "a battery of a judge that is a program names what the program answered, and of the built-in judge nothing";
    /// What a report says of judges.
    ReportedKinship "reported_kinship" since 23 rule Recompute:
        "a report says of which policies a judge is the model, and which judges share a prompt";
    /// How an iteration reads labels.
    LabelShares "label_shares" since 23 rule Recompute:
        "an iteration reads labels as shares of the scale that was declared before it opened";
    /// How often an iteration counts what a rater said twice.
    LabelReadOnce "label_read_once" since 23 rule Recompute:
        "an iteration counts a label once that a rater gives one draw under several designs";
    /// Which rows of a policy count in its value.
    RowsBefore "rows_before" since 23 rule Transport:
        "a row counts in the value and rank of its policy if its score stands before the first label of the policy can be read, and others are counted and said";
    /// From when a plan is in force that takes the place of another.
    PlanInForce "plan_in_force" since 23 rule Thresholds:
        "a plan binds from its countersignature on where it needs one, and takes the place of another from there on";
    /// Which plan drift and overlap are judged by.
    FirstThresholds "first_thresholds" since 23 rule Thresholds:
        "drift is judged by the plan that was in force before the first anchor set was registered, and overlap by the one in force before the first score or label, else by the usual numbers";
    /// Which roles of a reader count under `strict`.
    ReadsEverHeld "reads_ever_held" since 23 rule Sealing:
        "under strict a release of labels or cards to a key taints where its holder ever held an optimizer's key, on a retired or compromised one too";
    /// Of how many orders a gate may choose one.
    OneOfOrders "one_of_orders" since 23 rule Promotion:
        "a gate is certified_amended at most where another manifest had drawn an order of the same units before the gate was opened";
    /// Which judge a planned comparison may call the better one.
    DoubtedJudges "doubted_judges" since 24 rule Judge:
        "a planned comparison of judges names the better one only where late and missing scores could not change that, and as many rows are labelled as their designs draw";
    /// Whom a comparison tells apart that share no prompt.
    CommonPrompts "common_prompts" since 24 rule Transport:
        "a comparison tells apart only policies that have scores of a prompt in common";
    /// What a report says that policies are worth.
    ReportedWorth "reported_worth" since 24 rule Recompute:
        "a report says what estimates over all rows are worth and rest on, gives direct values on the scale of labels, and names each failed criterion";
    /// What a judge of its own is told.
    OwnPrompt "own_prompt" since 24 rule Judge:
        "a program that is told a text of its own keeps that text on record, and no other judge of its own is told one";
    /// Which prompts a patch can change.
    RenderedPrompt "rendered_prompt" since 24 rule Predicate:
        "a patch changes what a judge is told only where that was nothing, or what the rubric of the iteration renders";
    /// Whose answers a battery keeps of a candidate that tells the judge something else.
    BothAnswers "both_answers" since 24 rule Battery:
        "a battery of a judge that a candidate tells something else keeps answers of it and of the judge of the iteration, and of no other";
    /// What a holder knew who becomes an optimizer.
    ReadsBefore "reads_before" since 24 rule Sealing:
        "under strict an optimizer's key taints where its holder was given labels before, once a probe was labelled or a sealed label was opened there";
    /// Through which entry an arbiter reads.
    NewestRead "newest_read" since 24 rule Transport:
        "what an arbiter computes reads every score, label and import of its kind that stands before it";
    /// Which rows confirm keeps from audits.
    ConfirmedRows "confirmed_rows" since 24 rule Transport:
        "confirm keeps from an audit only rows of its policy, in clusters that were listed before the first probe of the policy";
    /// Which probes an environment needs.
    InsideProbes "inside_probes" since 24 rule Transport:
        "an environment passes only where as many probes as the design draws have a label, of each policy and of its own rows, on a calibrator from before them";
    /// Which scale widens the usual margin.
    DeclaredMargin "declared_margin" since 24 rule Thresholds:
        "where no scale of labels is declared, the usual margin of an audit is at most 0.05";
    /// What entries of a compromised key are worth in estimates.
    TaintedClaims "tainted_claims" since 24 rule Transport:
        "an estimate claims nothing, and a comparison tells nothing apart, that rests on labels, scores or fits of a compromised key, from its compromise on";
    /// What follows a breach.
    AnsweredBreach "answered_breach" since 24 rule Rollback:
        "a check that found a breach is followed at once by the rollback of what runs";
    /// By how many prompts a failed audit is answered.
    AnsweredPrompts "answered_prompts" since 24 rule Transport:
        "a fit answers a failed audit by labels of as many new prompts of its policy as the audit had";
    /// What audits are worth that entries of a compromised key passed.
    TaintedAudits "tainted_audits" since 25 rule Transport:
        "an estimate claims nothing, and a comparison tells nothing apart, after a pass whose probes or result a compromised key signed, from its compromise on";
    /// What entries of a compromised key are worth in a comparison of judges.
    TaintedJudges "tainted_judges" since 25 rule Judge:
        "a comparison of judges names no better one by labels or scores of a compromised key, from its compromise on";
    /// Which splits keep rows from audits.
    FormedConfirm "formed_confirm" since 25 rule Transport:
        "confirm keeps from an audit only clusters of splits that were formed before the first label could be read";
    /// Which labels of a policy can be missing.
    OpenableRows "openable_rows" since 25 rule Judge:
        "a comparison of judges misses no label of a cluster that was listed for confirm before the first label could be read";
    /// With which version a judge that stands for another runs.
    TextOfJudge "text_of_judge" since 26 rule Deployment:
        "a judge that is another but for what it is told runs with a version whose criteria were evaluated with it";
    /// Over which iterations dev calls are counted.
    DevCallsOfPlan "dev_calls_of_plan" since 26 rule Predicate:
        "the dev objective answers as often as the plan says, counted over every iteration of the plan";
    /// What an open run of an optimizer keeps from being sealed.
    RunEndsFirst "run_ends_first" since 26 rule Sealing:
        "nothing is sealed while a run of an optimizer is open";
    /// Who wrote a patch that came of a run.
    ModelOfRun "model_of_run" since 26 rule Synth:
        "a patch that names a run is by the model of that run, and by no person";
    /// Which optimizers have the names of built-in ones.
    OwnNames "own_names" since 26 rule Synth:
        "a run has the name of a built-in optimizer exactly where that optimizer writes its candidates";
    /// Under how many keys a judge is asked about texts.
    OneAsk "one_ask" since 26 rule Ask:
        "a judge behind HTTP is asked about the same texts under one key, and a key is of one judge and the same texts";
    /// What a hold covers.
    HeldBounds "held_bounds" since 26 rule Hold:
        "a hold covers the bound of each of its calls";
    /// About which text a row that was missed is scored.
    SameText "same_text" since 26 rule Source:
        "a row that was missed is missed again and scored with the same text";
    /// On which gates a prompt of a run is promoted.
    SgdGate "sgd_gate" since 27 rule Sgd:
        "a prompt of a run is promoted on a gate that claims more agreement with the labels of confirm, by the metric of that run";
    /// From what the parts of a run's rows are drawn.
    SaltedRows "salted_rows" since 27 rule Sgd:
        "parts and batches of a run are drawn from the first checkpoint above its newest label, which an entry named";
    /// What a comparison says of earlier looks at its order.
    EarlierLooks "earlier_looks" since 27 rule Transport:
        "a comparison names the first earlier look at its order: by other rows, labels or terms, by another judge, by values alone, or in another experiment with its rows";
    /// Which labels a planned order waits for.
    OwnLabels "own_labels" since 28 rule Transport:
        "a planned order is due once as many rows of its policies, which its judge scored, have a label for calibration since";
    /// Which values are a look at an order.
    OneValue "one_value" since 28 rule Transport:
        "a value of one policy of a comparison, by other rows, labels or terms, is a look at its order";
    /// How often an order of the same rows may be claimed.
    OrderOnce "order_once" since 28 rule Transport:
        "a planned order names what another experiment with its rows compared and could claim, or looked at by a plan of its own";
    /// What scores of a run stand on whose judge is behind HTTP.
    AskedScores "asked_scores" since 29 rule Sgd:
        "a run whose judge is behind HTTP scores nothing but what calls on record answered, about rows that are due";
    /// Which values in other experiments are a look at an order.
    ValueElsewhere "value_elsewhere" since 29 rule Transport:
        "a value of one policy of a comparison, in another experiment with its rows, is a look at its order";
    /// When runs that judge an update may begin.
    OpenedArms "opened_arms" since 29 rule Repair:
        "no run that an update names is executed before all of them are opened";
}

/// A rulebook with the entry after which it judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulebookAdoption {
    /// The entry that names it; it judges those after it.
    pub seq: u64,
    /// Its version.
    pub version: u32,
}

/// A rulebook that is named is one that this program knows, and never an older one again.
pub(super) fn named(above: u32, version: u64) -> Option<Breach> {
    let known = u64::from(above) + 1..=u64::from(NEWEST);
    if known.contains(&version) {
        return None;
    }
    let expected = if known.is_empty() {
        format!("no rulebook: {NEWEST}, the newest, is in force")
    } else {
        format!("a rulebook above {above} and at most {NEWEST}")
    };
    Some(Breach::new(
        RuleName::Rulebook,
        expected,
        version.to_string(),
    ))
}

/// What a log was judged by, in words: `rules 17 through seq 5288, 18 since`.
pub fn in_words(adopted: &[RulebookAdoption]) -> String {
    let mut text = String::from("rules ");
    let first = adopted.first().map_or(UNNAMED, |first| first.version);
    let put = "BUG: writing to a string does not fail";
    write!(text, "{first}").expect(put);
    for pair in adopted.windows(2) {
        let RulebookAdoption { seq, version } = pair[1];
        write!(text, " through seq {seq}, {version} since").expect(put);
    }
    text
}

/// Names of the questions that some entry was not asked.
pub fn not_asked(adopted: &[RulebookAdoption]) -> Vec<&'static str> {
    let oldest = adopted.first().map_or(UNNAMED, |first| first.version);
    let all = Question::ALL.iter();
    let unasked = all.filter(|question| question.since() > oldest);
    unasked.map(|question| question.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use clover_ground::page;

    use super::*;

    #[test]
    fn the_page_lists_every_question() {
        let mut rows = String::new();
        for question in Question::ALL {
            let (name, since) = (question.as_str(), question.since());
            let (rule, words) = (question.rule(), question.words());
            rows.push_str(&format!("| `{name}` | {since} | `{rule}` | {words} |\n"));
        }
        let head = "| question | since | rule | what is asked |";
        page::hold("schema/FINDINGS.md", &[(head, rows)]);
    }

    #[test]
    fn every_question_is_asked_by_a_rulebook_that_this_program_knows() {
        for question in Question::ALL {
            assert!((UNNAMED + 1..=NEWEST).contains(&question.since()));
        }
    }

    #[test]
    fn a_log_says_by_which_rulebooks_it_was_judged() {
        let adopted = |seq, version| RulebookAdoption { seq, version };
        assert_eq!(in_words(&[adopted(0, 17)]), "rules 17");
        let both = [adopted(0, 17), adopted(5288, 18)];
        assert_eq!(in_words(&both), "rules 17 through seq 5288, 18 since");
        assert_eq!(not_asked(&both).len(), Question::ALL.len());
        let newer = not_asked(&[adopted(0, 18)]);
        assert_eq!(newer[..2], ["protocol_steps", "governed_steps"]);
        assert_eq!(not_asked(&[adopted(0, NEWEST)]).len(), 0);
    }
}
