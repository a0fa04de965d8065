//! What an iteration starts from: rows that a judge scored, and labels of which some are sealed.

use std::collections::BTreeMap;
use std::error::Error;

use clover::event::id::ExperimentId;
use clover::event::id::PolicyId;
use clover::event::payload::budget::BudgetOpened;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::intake::ImportFormat;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelPurpose;
use clover::num::Micro;
use clover::session::append::Intent;
use clover::session::confirm;
use clover::session::intake::InputFile;
use clover::session::intake::IntakeRequest;
use clover::session::intake::import;
use clover::session::iterate::open;
use clover::session::iterate::open::AnchorTerms;
use clover::session::judge::Assignment;
use clover::session::judge::assignment::JudgeSpec;
use clover::session::judge::assignment::Model;
use clover::session::judge::judging;
use clover::session::split;
use clover::session::split::SplitRequest;
use clover::workflow::import::Brings;
use clover::workflow::import::How;
use clover::workflow::import::ImportRows;
use clover::workflow::import::cje;
use clover::workflow::import::plan::ImportTerms;
use clover::workflow::patches;
use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::split::Apart;
use serde_json::json;

use super::desk::Desk;

/// Takes in a data set: the experiment and its rubric, rows with scores, a split, labels and anchors.
pub(crate) fn take_in(desk: &mut Desk, of: &ShippedDataset) -> Result<(), Box<dyn Error>> {
    let experiment: ExperimentId = of.name.parse()?;
    register(desk, of, &experiment)?;
    let (file, mut request) = judge(desk, of, &experiment)?;
    import_rows(desk, &request, &file)?;

    // Which rows are confirm is drawn before a label comes in: their labels are sealed, the others are open.
    let (t1, _, t2) = of.world().times();
    let apart = Apart::Time {
        t1,
        t2,
        gap_seconds: 72 * 3_600,
    };
    let seed = serde_json::from_value(json!(1))?;
    let asked = SplitRequest {
        experiment: experiment.clone(),
        split: "main".parse()?,
        seed,
        apart,
    };
    let parts = split::plan(&desk.ledger, &asked)?;
    split::form(&mut desk.keys, &mut desk.ledger, parts)?;
    request.ask.open = Some(("calib".parse()?, LabelPurpose::Calibrate));
    request.ask.opens = true;
    request.ask.seal = Some("hold".parse()?);
    request.reveal_by = Some(desk.ledger.ambient().now().plus_seconds(90 * 86_400));
    import_rows(desk, &request, &file)?;
    confirm::accept(
        &mut desk.keys,
        &mut desk.ledger,
        &experiment,
        &"hold".parse()?,
    )?;
    let anchors = AnchorTerms {
        anchors: "ends".parse()?,
        experiment,
        low: "anchor_low".parse()?,
        high: "anchor_high".parse()?,
        judge: None,
    };
    open::anchors(&mut desk.keys, &mut desk.ledger, anchors, Intent::Append)?;
    Ok(())
}

/// Registers the experiment, its rubric, the account of peeks and the label designs.
fn register(
    desk: &mut Desk,
    of: &ShippedDataset,
    experiment: &ExperimentId,
) -> Result<(), Box<dyn Error>> {
    let about = json!({"title": of.name, "purpose": "an example"});
    desk.say_json::<ExperimentRegistered>(about, experiment)?;
    desk.say(patches::register(&of.rubric)?, experiment)?;
    let account = json!({
        "account": "confirm-peeks", "amount": 2, "period": "quarter", "purpose": "looks at confirm labels",
        "spenders": ["custodian"], "unit": "peek",
    });
    desk.say_json::<BudgetOpened>(account, experiment)?;
    for (design, purpose) in [("calib", "calibrate"), ("hold", "confirm")] {
        let data = json!({
            "design": design, "purpose": purpose, "inclusion_micro": 1_000_000, "protocol": "all",
        });
        desk.say_json::<LabelDesignRegistered>(data, experiment)?;
    }
    Ok(())
}

/// The judge scores every row; answers with the rows and how they are taken in, without labels.
fn judge(
    desk: &mut Desk,
    of: &ShippedDataset,
    experiment: &ExperimentId,
) -> Result<(InputFile, IntakeRequest), Box<dyn Error>> {
    let files: BTreeMap<_, _> = of
        .files()
        .into_iter()
        .map(|file| (file.path, file.bytes))
        .collect();
    let pepper = desk.home.vault(desk.ledger.ambient())?.pepper()?;
    let read = |path: &str| rows(path, &files[path]);
    let base = read("responses/base_responses.jsonl")?;
    let (low, high) = (
        "anchors/anchor_low_responses.jsonl",
        "anchors/anchor_high_responses.jsonl",
    );
    let all = [base.clone(), read(low)?, read(high)?];
    let spec = JudgeSpec {
        judge: "builtin".parse()?,
        model: Model::Builtin,
        prompt: String::new(),
        known: Some((
            files["known.json"].clone(),
            serde_json::from_slice(&files["known.json"])?,
        )),
        scale: None,
    };
    let judged = all.into_iter().flat_map(|file| file.rows).collect();
    let assignment = Assignment::new(experiment.clone(), spec, pepper, judged, 2);
    judging::run(&mut desk.keys, &desk.home, &mut desk.ledger, assignment)?;
    let file = InputFile {
        bytes: files["responses/base_responses.jsonl"].clone(),
        rows: base,
    };
    let request = IntakeRequest {
        ask: ImportTerms {
            experiment: experiment.clone(),
            judge: "builtin".parse()?,
            rater: "oracle".parse()?,
            open: None,
            opens: false,
            seal: None,
        },
        format: ImportFormat::Cje,
        label_scale: None,
        score_scale: None,
        reveal_by: None,
        to: None,
    };
    Ok((file, request))
}

/// Rows of a file whose name says the policy.
fn rows(path: &str, bytes: &[u8]) -> Result<ImportRows, Box<dyn Error>> {
    let stem = path
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix("_responses.jsonl"));
    let policy = PolicyId::new(stem.ok_or("a file of responses")?)?;
    let how = How {
        policy: Some(&policy),
        logprobs: false,
        brings: Brings::Scores,
        scale: (Micro::default(), serde_json::from_value(json!(1_000_000))?),
        label_scale: None,
        fields: &["domain".parse()?, "level".parse()?],
        name_prompt: &|prompt| prompt.to_owned(),
    };
    Ok(cje::rows(path, bytes, how)?)
}

/// Appends what a file says that is new.
fn import_rows(
    desk: &mut Desk,
    request: &IntakeRequest,
    file: &InputFile,
) -> Result<(), Box<dyn Error>> {
    let files = std::slice::from_ref(file);
    let plans = import::plans(&desk.ledger, files, &request.ask)?;
    import::import(
        &mut desk.keys,
        &desk.home,
        &mut desk.ledger,
        request,
        (files, &plans),
    )?;
    Ok(())
}
