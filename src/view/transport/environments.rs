//! What tests of environments found: the sentences that answer, and a table for each family.

use crate::event::payload::Verdict;
use crate::event::payload::environment::EnvironmentOutcome;
use crate::event::payload::environment::EnvironmentsTested;
use crate::event::payload::estimate::FamilyCorrection;
use crate::event::payload::estimated::AuditObstacle;
use crate::num::Finite;
use crate::num::Probability;
use crate::view::View;
use crate::view::answer;
use crate::view::values;

fn word(of: Verdict) -> &'static str {
    match of {
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::NotChecked => "NOT CHECKED",
        Verdict::Pass => "PASS",
    }
}

fn outcomes(tested: &[EnvironmentsTested]) -> impl Iterator<Item = &EnvironmentOutcome> {
    tested.iter().flat_map(|of| &of.environments)
}

/// For which environments the calibrator holds, a sentence for each answer.
pub(super) fn sentences(tested: &[EnvironmentsTested]) -> Vec<String> {
    let found = [
        (Verdict::Pass, "No bias above 0.05 shows in"),
        (Verdict::Fail, "The calibrator is biased in"),
        (
            Verdict::Inconclusive,
            "There are too few labels to rule out a bias in",
        ),
        (Verdict::NotChecked, "No label checks it in"),
    ];
    let sentence = |(verdict, text): (Verdict, &str)| {
        let of = outcomes(tested).filter(|of| of.verdict == verdict);
        let names: Vec<String> = of.map(|of| of.scope.to_string()).collect();
        let names = answer::names(names.iter().map(String::as_str));
        (!names.is_empty()).then(|| format!("{text} {names}."))
    };
    let mut parts: Vec<String> = found.into_iter().filter_map(sentence).collect();
    // Every family is tested by the same probes.
    if let Some(of) = tested.iter().find(|of| of.late.value() > 0) {
        let all = of.late.value() + of.probes.value();
        parts.push(format!(
            "Of all {all} probes, {} were scored or placed once their label could be read: no environment passes without them.",
            of.late
        ));
    }
    parts.extend(tested.first().and_then(in_the_way));
    parts
}

/// Why no environment of a family passes, whatever its numbers are: every family is tested by the same probes.
fn in_the_way(of: &EnvironmentsTested) -> Option<String> {
    let design = &of.design;
    let sentence = |obstacle: &AuditObstacle| match obstacle {
        AuditObstacle::FewerProbes => {
            format!("of a policy fewer rows are probes of {design} than it draws")
        }
        AuditObstacle::MoreProbes => {
            format!("of a policy more rows are probes of {design} than it draws")
        }
        AuditObstacle::FittedLate => {
            "the calibrator has labels from after the first probe could be read".to_owned()
        }
        AuditObstacle::OtherTerms => {
            "nobody fitted on these terms before the first probe could be read".to_owned()
        }
    };
    let why: Vec<String> = of.obstacles.iter().map(sentence).collect();
    (!why.is_empty()).then(|| format!("No environment passes: {}.", why.join("; ")))
}

/// Whether a test decided anything.
pub(super) fn is_said(tested: &[EnvironmentsTested]) -> bool {
    outcomes(tested).any(|of| matches!(of.verdict, Verdict::Fail | Verdict::Pass))
}

/// What they come to: one that fails fails all, one that a claim needs has to pass, and where none is needed one has to.
pub(super) fn verdict(tested: &[EnvironmentsTested]) -> Verdict {
    let passes = |of: &EnvironmentOutcome| of.verdict == Verdict::Pass;
    let lacks_one = outcomes(tested).any(|of| of.required && !passes(of));
    let has_none = !tested.is_empty() && !outcomes(tested).any(passes);
    if outcomes(tested).any(|of| of.verdict == Verdict::Fail) {
        Verdict::Fail
    } else if lacks_one || has_none {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    }
}

/// A table for each family, and what follows.
pub(super) fn tables(view: &mut View, tested: &[EnvironmentsTested]) {
    for family in tested {
        view.gap();
        let correction = match family.correction {
            None => "BH",
            Some(FamilyCorrection::BenjaminiYekutieli) => "BY",
            Some(FamilyCorrection::Bonferroni) => "Bonferroni",
            Some(FamilyCorrection::Holm) => "Holm",
        };
        let p = format!("p ({correction})");
        let head = [
            "environment".to_owned(),
            "required".to_owned(),
            "verdict".to_owned(),
            "residual".to_owned(),
            "95 % interval".to_owned(),
            "n".to_owned(),
            p,
            "bias seen at 0.80".to_owned(),
        ];
        view.table(&head, family.environments.iter().map(row));
        view.sentence(format!(
            "family {}, level {}, on the scale of 0 to 1; residuals count the calibrator's own error too. \
             The p decides a failure, n and the bias a pass; the interval is for reading. {} probes are in no environment of it",
            family.family, family.q_micro, family.without
        ));
    }
    for of in outcomes(tested).filter(|of| of.verdict == Verdict::Fail) {
        let withheld = if of.required {
            "a claim needs it: every level is withheld from here on, until a later test of it passes"
        } else {
            "no level inside it may be claimed from here on, until an audit of its own passes"
        };
        view.sentence(format!("{}  {withheld}", of.scope));
    }
}

fn row(of: &EnvironmentOutcome) -> Vec<String> {
    let signed = |value: Option<Finite>| {
        value.map_or("-".to_owned(), |value| format!("{:+.3}", value.value()))
    };
    let p =
        |value: Option<Probability>| value.map_or("-".to_owned(), |value| values::p(value.value()));
    let interval = of.interval.map_or("none".to_owned(), |at| {
        format!("[{:+.3}, {:+.3}]", at.low.value(), at.high.value())
    });
    let bias = of.detectable_bias;
    vec![
        of.scope.to_string(),
        if of.required { "yes" } else { "no" }.to_owned(),
        word(of.verdict).to_owned(),
        signed(of.mean),
        interval,
        of.rows.to_string(),
        p(of.p_adjusted),
        bias.map_or("-".to_owned(), |bias| format!("{:.3}", bias.value())),
    ]
}
