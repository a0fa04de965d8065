//! The rule `recompute`: numbers that the entries before do not give are refused at append, and found in a ledger that
//! was written around the program by `verify --recompute`.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::Verdict;
use clover::event::payload::custody::Separation;
use clover::event::payload::estimate::EstimateRecorded;
use clover::event::payload::estimated::Claim;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelPurpose;
use clover::event::payload::label::LabelRecorded;
use clover::ledger::Command;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::ledger::verify::VerifyOptions;
use clover::num::Count;
use clover::num::Finite;
use clover::num::Micro;
use clover::workflow::estimate::compute;
use clover::workflow::estimate::compute::Found;
use clover::workflow::estimate::form;
use clover::workflow::estimate::form::Form;
use clover::workflow::estimate::rows;
use clover::workflow::estimate::rows::NoCovariates;
use clover::workflow::estimate::rows::Which;
use clover::workflow::estimate::terms;

use crate::support::TestLedger;
use crate::support::forge::Forge;
use crate::support::signer;
use crate::support::text;

const EXP: &str = "exp-1";

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

/// Two policies on forty prompts, every second response of one labelled.
fn story() -> Vec<Payload> {
    let mut said: Vec<Payload> = vec![
        ExperimentRegistered {
            judges: None,
            policies: None,
            purpose: text("testing"),
            title: text("Experiment"),
        }
        .into(),
        LabelDesignRegistered {
            design: "calib".parse().unwrap(),
            inclusion_micro: micro(500_000),
            protocol: "sdp-1".parse().unwrap(),
            purpose: DesignPurpose::Calibrate,
            strata: None,
        }
        .into(),
    ];
    for policy in ["base", "tuned"] {
        for i in 0..40_i64 {
            let shift = if policy == "base" { 0 } else { 40_000 };
            said.push(
                ScoreRecorded {
                    call: None,
                    draw: Count::new(0).unwrap(),
                    item: format!("p-{i}").parse().unwrap(),
                    judge: "judge".parse().unwrap(),
                    policy: policy.parse().unwrap(),
                    prompt: None,
                    response: None,
                    score_micro: micro(100_000 + 20_000 * i + shift),
                }
                .into(),
            );
        }
    }
    for i in (0..40_i64).step_by(2) {
        said.push(
            LabelRecorded {
                design: "calib".parse().unwrap(),
                draw: Count::new(0).unwrap(),
                item: format!("p-{i}").parse().unwrap(),
                policy: "base".parse().unwrap(),
                purpose: LabelPurpose::Calibrate,
                rater: "oracle".parse().unwrap(),
                value_micro: micro(100_000 + 15_000 * i + 90_000 * (i % 3)),
            }
            .into(),
        );
    }
    said
}

fn told() -> TestLedger {
    let mut test = TestLedger::new();
    let commands: Vec<_> = story()
        .into_iter()
        .map(|said| Command::new(said, Some(EXP.parse().unwrap())))
        .collect();
    for command in commands {
        test.append(&[command]).unwrap();
    }
    test
}

fn found(test: &TestLedger) -> Found {
    let (experiment, mut terms) = (
        EXP.parse().unwrap(),
        terms::usual("judge".parse().unwrap(), Vec::new()),
    );
    terms.rows = form::use_of_rows(test.ledger.state());
    let which = Which {
        experiment: &experiment,
        judge: &terms.judge,
        environment: None,
        covariates: &[],
        fields: &[],
        places: &[],
        use_of_rows: terms.rows,
        strata: false,
        rows_below: test.ledger.size(),
        audits_below: test.ledger.size(),
    };
    let gathered = rows::gather(&test.ledger, &which, &mut NoCovariates).unwrap();
    compute::compute(gathered, terms, &[], None, None).unwrap()
}

/// What an honest arbiter says, and the estimate of one policy.
fn honest(found: &Found) -> (Vec<Payload>, EstimateRecorded) {
    let experiment = EXP.parse().unwrap();
    let base = found.gathered.policy("base").unwrap();
    let mut said: Vec<Payload> = vec![found.fitted().unwrap().event.into()];
    said.extend(found.oua(base).map(Payload::from));
    said.extend(found.coverage(base).map(Payload::from));
    let contrasts = found
        .contrasts(&experiment, &[0, 1], None, Form::NEWEST)
        .unwrap();
    said.extend(contrasts.into_iter().map(Payload::from));
    (said, found.estimate(&experiment, base, Form::NEWEST))
}

fn changed(mut estimate: EstimateRecorded) -> EstimateRecorded {
    let better = estimate.estimate.value() + 1e-6;
    estimate.estimate = Finite::new(better).unwrap();
    estimate
}

fn append(test: &mut TestLedger, said: Payload, blobs: &[Vec<u8>]) -> Result<(), LedgerError> {
    let command = Command::new(said, Some(EXP.parse().unwrap()));
    let owner = signer(1);
    let appended = test.ledger.append_with_blobs(&[command], &owner, blobs);
    appended.map(drop)
}

#[test]
fn numbers_that_rows_do_not_give_are_refused() {
    let mut test = told();
    let found = found(&test);
    let (said, estimate) = honest(&found);
    let blobs = found.fitted().unwrap().blobs;
    for one in said {
        append(&mut test, one, &blobs).unwrap();
    }
    let refused = append(&mut test, changed(estimate.clone()).into(), &[]).unwrap_err();
    let LedgerError::Refused { breach, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(breach.rule, RuleName::Recompute);
    let expected = format!("estimate {}", estimate.estimate.value());
    assert_eq!(breach.expected, expected);
    let mut stranger = estimate.clone();
    stranger.policy = "nobody".parse().unwrap();
    stranger.claim = Claim::BorrowedUnchecked;
    stranger.rows = Count::default();
    let refused = append(&mut test, stranger.into(), &[]).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("its rows have no policy nobody"),
        "{refused}"
    );
    append(&mut test, estimate.into(), &[]).unwrap();
    test.check_all();
    let report = test.verify(&VerifyOptions {
        recompute: true,
        ..VerifyOptions::default()
    });
    assert_eq!(
        (report.verdict, report.first.is_none()),
        (Verdict::Pass, true)
    );
    assert!(
        !report
            .not_checked
            .iter()
            .any(|what| what.contains("recompute"))
    );
}

/// The same history, written by somebody who holds the arbiter's key and does not ask the program.
fn forged(estimate: EstimateRecorded, said: Vec<Payload>) -> Forge {
    let mut forge = Forge::new(Separation::Solo, &Role::ALL);
    let owner = signer(1);
    for payload in story().into_iter().chain(said) {
        forge.say(&owner, payload, Some(EXP));
    }
    forge.say(&owner, estimate, Some(EXP));
    forge
}

#[test]
fn a_changed_number_is_found_under_recompute_and_named_without() {
    let found = found(&told());
    let (said, estimate) = honest(&found);
    let recompute = VerifyOptions {
        recompute: true,
        ..VerifyOptions::default()
    };
    let honest = forged(estimate.clone(), said.clone()).verify_with(&recompute);
    assert_eq!(honest.verdict, Verdict::Pass, "{:?}", honest.findings);
    let forge = forged(changed(estimate), said);
    let default = forge.verify();
    assert_eq!(default.verdict, Verdict::Pass);
    assert!(default.not_checked.contains(&"recompute".to_owned()));
    let report = forge.verify_with(&recompute);
    let first = report.first.unwrap();
    assert_eq!(
        (first.seq, first.rule),
        (forge.size() - 1, RuleName::Recompute)
    );
}
