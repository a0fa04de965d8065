//! A ledger that holds at least one event of every kind.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::id::Vkey;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::PrivateRef;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::Verdict;
use clover::event::payload::assumption::Assessment;
use clover::event::payload::assumption::Assumption;
use clover::event::payload::assumption::AssumptionCountersigned;
use clover::event::payload::assumption::AssumptionWaived;
use clover::event::payload::assumption::BridgeAssessed;
use clover::event::payload::assumption::BridgeKind;
use clover::event::payload::assumption::SdpVersionRegistered;
use clover::event::payload::assumption::Target;
use clover::event::payload::budget::BudgetCharged;
use clover::event::payload::budget::BudgetOpened;
use clover::event::payload::budget::Period;
use clover::event::payload::custody::KeyCompromised;
use clover::event::payload::custody::KeyRetired;
use clover::event::payload::custody::LogKeyRotated;
use clover::event::payload::custody::PolicyAdopted;
use clover::event::payload::custody::RetentionSet;
use clover::event::payload::custody::RulebookAdopted;
use clover::event::payload::custody::Separation;
use clover::event::payload::custody::SubjectErased;
use clover::event::payload::endpoint::AuthForm;
use clover::event::payload::endpoint::BaseUrl;
use clover::event::payload::endpoint::Dialect;
use clover::event::payload::experiment::ExperimentClosed;
use clover::event::payload::experiment::ExperimentOutcome;
use clover::event::payload::intake::DataIngested;
use clover::event::payload::intake::ImportFormat;
use clover::event::payload::intake::Source;
use clover::event::payload::judge::LogprobRecorded;
use clover::event::payload::judge::ScoreConflict;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::judge::ScoreScaleDeclared;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelPurpose;
use clover::event::payload::label::LabelRecorded;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelScaleDeclared;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::model_terms::EndpointRegistered;
use clover::event::payload::model_terms::PriceMode;
use clover::event::payload::model_terms::PriceRow;
use clover::event::payload::model_terms::PriceTableRegistered;
use clover::event::payload::model_terms::TextClass;
use clover::event::payload::record::AuditAttested;
use clover::event::payload::record::DataRead;
use clover::event::payload::record::NoteRecorded;
use clover::event::payload::record::ReadOutcome;
use clover::event::payload::record::ReviewOutcome;
use clover::event::payload::record::ReviewRecorded;
use clover::event::payload::scoring::Decoding;
use clover::event::payload::scoring::EvidenceRecorded;
use clover::event::payload::scoring::JudgePort;
use clover::event::payload::scoring::JudgeRegistered;
use clover::event::payload::scoring::ScoreReplayed;
use clover::ground::digest::Digest;
use clover::ground::note::Origin;
use clover::ground::note::VerifierKey;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::Command;
use clover::num::Count;
use clover::num::Finite;
use clover::num::Micro;

use super::EXPERIMENT;
use super::ORIGIN;
use super::TestLedger;
use super::decided;
use super::deployed;
use super::drifted;
use super::experiment;
use super::gated;
use super::iterated;
use super::key_added;
use super::labelled;
use super::planned;
use super::released;
use super::score;
use super::sequenced;
use super::signer;
use super::text;
use super::tuned;
use super::valued;
use clover::workflow::split;
use serde_json::Value;
use serde_json::json;

/// The log key after the rotation.
pub const NEXT_LOG_KEY: u8 = 12;

fn count(value: u64) -> Count {
    Count::new(value).unwrap()
}

pub fn blob_ref(bytes: &[u8]) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: count(bytes.len() as u64),
        media: MediaType::new("application/octet-stream").unwrap(),
    }
}

fn private(bytes: &[u8]) -> PrivateRef {
    PrivateRef {
        blob: blob_ref(bytes),
        commitment: Digest::sha256(bytes),
        subject: Digest::sha256(b"subject"),
    }
}

pub fn note(words: &str) -> Command {
    let payload = NoteRecorded {
        blob: None,
        text: text(words),
    };
    Command::new(payload, None)
}

/// Bytes of the first batch's blobs.
pub fn blobs() -> Vec<Vec<u8>> {
    vec![
        b"the prompt, encrypted".to_vec(),
        vec![0xb1; 700],
        b"an attachment".to_vec(),
        planned::PLAN.to_vec(),
        valued::MODEL.to_vec(),
        valued::ROWS.to_vec(),
        decided::BUNDLE.to_vec(),
    ]
}

/// Sealed, accepted, charged and revealed, each checkpointed before the next.
fn sealed(test: &mut TestLedger) {
    let (design, row) = ("design-1", "row-1");
    let envelope = b"age-encryption.org/v1\nan envelope".to_vec();
    let label = LabelSealed {
        commitment: seal::commitment(ORIGIN, design, row, &[9; 32], 250_000),
        design: design.parse().unwrap(),
        envelope: Base64Text(envelope.clone()),
        recipient: SealRecipient(Identity::from_bytes(&[5; 32]).recipient()),
        reveal_by: Timestamp::parse("2027-01-01T00:00:00.000000Z").unwrap(),
        row: row.parse().unwrap(),
    };
    let accepted = SealAccepted {
        design: design.parse().unwrap(),
        envelope_sha256: Digest::sha256(&envelope),
        row: row.parse().unwrap(),
    };
    let charged = BudgetCharged {
        account: "peeks".parse().unwrap(),
        amount: count(1),
        purpose: text("row-1"),
    };
    let batch = [
        Command::new(label, experiment()),
        Command::new(accepted, experiment()),
        Command::new(charged, None),
    ];
    let charge = test.append(&batch).unwrap()[2].id;
    let revealed = LabelRevealed {
        charge,
        design: design.parse().unwrap(),
        row: row.parse().unwrap(),
        salt: Base64Bytes([9; 32]),
        value_micro: Micro::new(250_000).unwrap(),
    };
    let mut reveal = Command::new(revealed, experiment());
    reveal.refs = vec![charge];
    test.append(&[reveal]).unwrap();
}

fn custody(test: &mut TestLedger) {
    let mut custodian = key_added(&signer(3), "Cy", &[Role::Custodian]);
    custodian.seal_recipient = Some(SealRecipient(Identity::from_bytes(&[5; 32]).recipient()));
    let policy = PolicyAdopted {
        reason: text("as it is"),
        separation: Separation::Solo,
    };
    let batch = [
        Command::new(custodian, None),
        Command::new(key_added(&signer(4), "Di", &[Role::Scorer]), None),
        Command::new(key_added(&signer(5), "Ed", &[Role::Scorer]), None),
        Command::new(
            KeyRetired {
                key_id: signer(4).id(),
                reason: text("left"),
            },
            None,
        ),
        Command::new(
            KeyCompromised {
                key_id: signer(5).id(),
                reason: text("stolen"),
                since_seq: count(1),
            },
            None,
        ),
        Command::new(policy, None),
        Command::new(
            RetentionSet {
                basis: text("contract"),
                class: "prompts".parse().unwrap(),
                days: count(90),
            },
            None,
        ),
    ];
    test.append(&batch).unwrap();
    // The key that was added signs too, so that there is more than one author.
    let erased = SubjectErased {
        basis: text("asked to"),
        requester: None,
        subject: Digest::sha256(b"subject"),
    };
    test.ledger
        .append(&[Command::new(erased, None)], &signer(3))
        .unwrap();
}

fn data(test: &mut TestLedger) -> EventId {
    let blobs = blobs();
    let score = ScoreRecorded {
        call: None,
        draw: count(0),
        item: "item-a".parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "base".parse().unwrap(),
        prompt: Some(private(&blobs[0])),
        response: Some(private(&blobs[1])),
        score_micro: Micro::new(731_000).unwrap(),
    };
    let label = LabelRecorded {
        design: "design-0".parse().unwrap(),
        draw: count(0),
        item: "item-a".parse().unwrap(),
        policy: "base".parse().unwrap(),
        purpose: LabelPurpose::Calibrate,
        rater: "rater-1".parse().unwrap(),
        value_micro: Micro::new(-5).unwrap(),
    };
    let noted = NoteRecorded {
        blob: Some(blob_ref(&blobs[2])),
        text: text("see the attachment"),
    };
    let batch = [
        Command::new(score, experiment()),
        Command::new(label, experiment()),
        Command::new(noted, experiment()),
        super::score(1),
    ];
    let owner = signer(1);
    let appended = test.ledger.append_with_blobs(&batch, &owner, &blobs);
    appended.unwrap()[0].id
}

/// Rows taken in, a design, a split, and a score that came out differently the second time.
fn intake(test: &mut TestLedger, scored: EventId) {
    let blobs = blobs();
    let ingested = DataIngested {
        fields: None,
        format: ImportFormat::Csv,
        labelled: count(0),
        rounded: count(0),
        rows: blob_ref(&blobs[2]),
        rows_in: count(1),
        rows_out: count(1),
        rows_root: Root(clover::ground::merkle::leaf_hash(b"{}")),
        sampled_from: None,
        sampled_to: None,
        source: Source::Private(private(&blobs[0])),
    };
    let batch = [Command::new(ingested, experiment())];
    let owner = signer(1);
    let appended = test.ledger.append_with_blobs(&batch, &owner, &blobs);
    appended.unwrap();
    let design = LabelDesignRegistered {
        design: "design-9".parse().unwrap(),
        inclusion_micro: Micro::new(500_000).unwrap(),
        protocol: "sdp-1".parse().unwrap(),
        purpose: DesignPurpose::Audit,
        strata: None,
    };
    let logprob = LogprobRecorded {
        base: Finite::new(-0.5).unwrap(),
        draw: count(0),
        item: "item-a".parse().unwrap(),
        policy: "base".parse().unwrap(),
        targets: Vec::new(),
    };
    let conflict = ScoreConflict {
        draw: count(0),
        item: "item-a".parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "base".parse().unwrap(),
        recorded: scored,
        recorded_micro: Micro::new(731_000).unwrap(),
        score_micro: Micro::new(1).unwrap(),
    };
    let clusters = (0..20)
        .map(|i| (format!("cluster-{i}").parse().unwrap(), None))
        .collect();
    let parts = split::parts(&clusters, 7, split::Apart::Hashed).unwrap();
    let name = "split-1".parse().unwrap();
    let events = split::events(&name, count(7), split::Apart::Hashed, &parts);
    scoring(test);
    let mut batch = vec![Command::new(logprob, experiment())];
    batch.extend(
        events
            .into_iter()
            .map(|event| Command::new(event, experiment())),
    );
    // After it no governed step is taken.
    batch.push(Command::new(conflict, experiment()));
    test.append(&batch).unwrap();
    test.register("exp-9");
    let designed = Command::new(design, Some("exp-9".parse().unwrap()));
    let scale = LabelScaleDeclared {
        high_micro: Micro::new(5_000_000).unwrap(),
        low_micro: Micro::new(1_000_000).unwrap(),
    };
    let scaled = Command::new(scale, Some("exp-9".parse().unwrap()));
    let scores = ScoreScaleDeclared {
        high_micro: Micro::new(100_000_000).unwrap(),
        judge: "judge-0".parse().unwrap(),
        low_micro: Micro::new(0).unwrap(),
    };
    let scores = Command::new(scores, Some("exp-9".parse().unwrap()));
    test.append(&[designed, scaled, scores]).unwrap();
}

/// A judge by its name, what was found in what it scored, and a re-score.
fn scoring(test: &mut TestLedger) {
    let blobs = blobs();
    let registered = JudgeRegistered {
        asked: None,
        decoding: Decoding {
            temperature_micro: Micro::new(0).unwrap(),
        },
        evidence_schema: text("evidence/1"),
        extractor: text("clover-text/1"),
        judge: "judge-9".parse().unwrap(),
        known: Some(blob_ref(&blobs[2])),
        model: text("builtin-text/1"),
        of: None,
        prompt: None,
        port: JudgePort::Builtin,
        prompt_hash: Digest::sha256(b""),
        repeat: None,
        scale: None,
        tool_snapshot: Digest::sha256(&blobs[2]),
    };
    let found = EvidenceRecorded {
        judge: "judge-9".parse().unwrap(),
        records: blob_ref(&blobs[2]),
        records_count: count(1),
        records_root: Root(clover::ground::merkle::leaf_hash(b"{}")),
    };
    let replayed = ScoreReplayed {
        judge: "judge-9".parse().unwrap(),
        keys: count(30),
        keys_root: Root(Digest::sha256(b"keys")),
        mismatches: count(0),
        seed: count(1),
    };
    let batch = [
        Command::new(registered, experiment()),
        Command::new(found, experiment()),
        Command::new(replayed, experiment()),
    ];
    let owner = signer(1);
    test.ledger
        .append_with_blobs(&batch, &owner, &blobs)
        .unwrap();
}

/// An endpoint, and what calls cost there.
fn models(test: &mut TestLedger) {
    let endpoint = EndpointRegistered {
        auth: AuthForm::Bearer,
        classes: vec![TextClass::Rows],
        dialect: Dialect::OpenaiChat,
        endpoint: "main".parse().unwrap(),
        free: false,
        insecure: false,
        model: Some(text("m-1")),
        provider: text("example"),
        terms: Some(text("keeps nothing")),
        url: BaseUrl::new("https://api.example.com/v1").unwrap(),
    };
    let row = PriceRow {
        cache_read: count(25_000),
        cache_write: count(312_500),
        input: count(250_000),
        mode: PriceMode::Live,
        model: text("m-1"),
        output: count(2_000_000),
        provider: text("example"),
    };
    let prices = PriceTableRegistered {
        as_of: Timestamp::parse("2026-11-01T00:00:00.000000Z").unwrap(),
        prices: "2026-11".parse().unwrap(),
        rows: vec![row],
        source: text("page of the provider"),
    };
    let account = BudgetOpened {
        account: "judges".parse().unwrap(),
        amount: count(20_000),
        period: Period::Once,
        purpose: text("judges"),
        spenders: Roles::new([Role::Owner]).unwrap(),
        unit: "usd_micro".parse().unwrap(),
    };
    let batch = [
        Command::new(endpoint, None),
        Command::new(prices, None),
        Command::new(account, None),
    ];
    test.append(&batch).unwrap();
    run(test);
}

/// A run of a judge behind HTTP, cut, resumed and ended.
fn run(test: &mut TestLedger) {
    use clover::event::calls::AttemptClass;
    use clover::event::calls::CallAttempt;
    use clover::event::calls::CallOutcome;
    use clover::event::payload::model_runs as runs;
    use clover::event::payload::scoring::AskedAt;

    let blobs = blobs();
    let name: clover::event::id::RunId = "run-1".parse().unwrap();
    let judge = JudgeRegistered {
        asked: Some(AskedAt {
            noise_sd_max_micro: None,
            endpoint: "main".parse().unwrap(),
            pin: text("m-1"),
            plan: blob_ref(&blobs[2]),
            plan_digest: Digest::sha256(b"plan"),
            weighed_levels: None,
        }),
        decoding: Decoding {
            temperature_micro: Micro::new(0).unwrap(),
        },
        evidence_schema: text("evidence/1"),
        extractor: text("clover-text/1"),
        judge: "live-1".parse().unwrap(),
        known: None,
        model: text("m-1"),
        of: None,
        prompt: None,
        port: JudgePort::Endpoint,
        prompt_hash: Digest::sha256(b""),
        repeat: None,
        scale: None,
        tool_snapshot: Digest::sha256(b""),
    };
    let opened = runs::JudgeRunOpened {
        rescore: None,
        account: Some("judges".parse().unwrap()),
        asks: count(1),
        asks_root: Root(Digest::sha256(b"asks")),
        build: text("clover 0.1.0"),
        cap_usd_micro: Some(count(10_000)),
        endpoint: "main".parse().unwrap(),
        judge: "live-1".parse().unwrap(),
        prices: Some("2026-11".parse().unwrap()),
        run: name.clone(),
        sgd: None,
    };
    let resumed = runs::JudgeRunResumed {
        epoch: count(1),
        run: name.clone(),
    };
    let held = runs::BudgetReserved {
        account: "judges".parse().unwrap(),
        amount: count(1_000),
        asks: count(1),
        hold: text("run-1/1/0"),
        run: name.clone(),
    };
    let texts = runs::AskedTexts {
        a_hash: Digest::sha256(b"a"),
        x_hash: Digest::sha256(b"x"),
    };
    let attempt = CallAttempt {
        class: AttemptClass::Limited,
        ms: count(9),
        status: Some(count(429)),
    };
    let call = runs::CallRecorded {
        first: None,
        ask: Digest::sha256(b"ask"),
        attempts: vec![attempt],
        bound_usd_micro: count(1_000),
        cost_usd_micro: count(0),
        detail: None,
        epoch: count(1),
        fingerprint: None,
        hold: Some(text("run-1/1/0")),
        judge: "live-1".parse().unwrap(),
        masses: None,
        model_returned: None,
        nth: count(0),
        outcome: CallOutcome::Exhausted,
        provider_request: None,
        response: None,
        run: name.clone(),
        score_micro: None,
        texts,
        tokens: None,
        usage: runs::UsageState::Absent,
    };
    let batch = [
        Command::new(judge, experiment()),
        Command::new(opened.clone(), experiment()),
        Command::new(resumed, experiment()),
        Command::new(held.clone(), None),
        Command::new(call.clone(), experiment()),
    ];
    let stand = test.append(&batch).unwrap();
    let missed = runs::ScoreMissed {
        call: runs::CallOf {
            call: stand[4].id,
            texts,
        },
        draw: count(0),
        item: "item-live".parse().unwrap(),
        judge: "live-1".parse().unwrap(),
        nth: count(0),
        policy: "baseline".parse().unwrap(),
        reason: CallOutcome::Exhausted,
    };
    let mut missed = Command::new(missed, experiment());
    missed.refs = vec![stand[4].id];
    let settled = runs::BudgetSettled {
        amount: count(0),
        hold: text("run-1/1/0"),
        overrun: false,
        run: name.clone(),
        unknown: count(0),
    };
    let closed = runs::JudgeRunClosed {
        by_outcome: vec![runs::OutcomeCount {
            calls: count(1),
            outcome: CallOutcome::Exhausted,
        }],
        cost_usd_micro: count(0),
        end: runs::RunEnd::Completed,
        left: count(0),
        run: name.clone(),
        settled_usd_micro: count(0),
    };
    let batch = [
        missed,
        Command::new(settled, None),
        Command::new(closed, experiment()),
    ];
    test.append(&batch).unwrap();
    rescored(test, (opened, held, call));
}

/// The judge scores a row, and is asked about it again.
fn rescored(
    test: &mut TestLedger,
    (opened, held, call): (
        clover::event::payload::model_runs::JudgeRunOpened,
        clover::event::payload::model_runs::BudgetReserved,
        clover::event::payload::model_runs::CallRecorded,
    ),
) {
    use clover::event::calls::AttemptClass;
    use clover::event::calls::CallAttempt;
    use clover::event::calls::CallOutcome;
    use clover::event::payload::model_runs as runs;
    use clover::projection::runs::ModelRuns;
    use clover::projection::runs::noise;

    let begun = |run: &str, rescore: Option<(runs::RescoreTerms, Root)>| {
        let mut opened = opened.clone();
        opened.run = run.parse().unwrap();
        if let Some((terms, root)) = rescore {
            opened.rescore = Some(terms);
            opened.asks_root = root;
        }
        let mut held = held.clone();
        held.run = opened.run.clone();
        held.hold = text(&format!("{run}/0/0"));
        [Command::new(opened, experiment()), Command::new(held, None)]
    };
    let answered = |run: &str, ask: &[u8], first: Option<runs::FirstCall>| {
        let mut call = call.clone();
        call.ask = Digest::sha256(ask);
        call.attempts = vec![CallAttempt {
            class: AttemptClass::Ok,
            ms: count(9),
            status: Some(count(200)),
        }];
        call.cost_usd_micro = count(1_000);
        call.epoch = count(0);
        call.first = first;
        call.hold = Some(text(&format!("{run}/0/0")));
        call.model_returned = Some(text("m-1"));
        call.outcome = CallOutcome::Answered;
        call.run = run.parse().unwrap();
        call.score_micro = Micro::new(750_000);
        call.texts.a_hash = Digest::sha256(b"b");
        Command::new(call, experiment())
    };
    let ended = |run: &str| {
        let settled = runs::BudgetSettled {
            amount: count(1_000),
            hold: text(&format!("{run}/0/0")),
            overrun: false,
            run: run.parse().unwrap(),
            unknown: count(0),
        };
        let closed = runs::JudgeRunClosed {
            by_outcome: vec![runs::OutcomeCount {
                calls: count(1),
                outcome: CallOutcome::Answered,
            }],
            cost_usd_micro: count(1_000),
            end: runs::RunEnd::Completed,
            left: count(0),
            run: run.parse().unwrap(),
            settled_usd_micro: count(1_000),
        };
        [
            Command::new(settled, None),
            Command::new(closed, experiment()),
        ]
    };
    test.append(&begun("run-2", None)).unwrap();
    let first = test.append(&[answered("run-2", b"again", None)]).unwrap();
    let (id, seq) = (first[0].id, first[0].seq);
    let score = ScoreRecorded {
        call: Some(runs::CallOf {
            call: id,
            texts: runs::AskedTexts {
                a_hash: Digest::sha256(b"b"),
                x_hash: Digest::sha256(b"x"),
            },
        }),
        draw: count(1),
        item: "item-live".parse().unwrap(),
        judge: "live-1".parse().unwrap(),
        policy: "baseline".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: Micro::new(750_000).unwrap(),
    };
    let mut score = Command::new(score, experiment());
    score.refs = vec![id];
    test.append(&[score]).unwrap();
    test.append(&ended("run-2")).unwrap();
    let terms = runs::RescoreTerms {
        number: count(1),
        of: count(1),
    };
    let root = noise::frame_root(&[seq]);
    test.append(&begun("run-3", Some((terms, root)))).unwrap();
    let first = runs::FirstCall {
        call: id,
        score_micro: Micro::new(750_000).unwrap(),
        seq: count(seq),
    };
    test.append(&[answered("run-3", b"anew", Some(first))])
        .unwrap();
    test.append(&ended("run-3")).unwrap();
    let state = test.ledger.state();
    let run = &state.fold::<ModelRuns>().by_id[&"run-3".parse().unwrap()];
    let said = noise::measured(state, run, run.rescored.as_ref().unwrap()).unwrap();
    test.append(&[Command::new(said, experiment())]).unwrap();
}

fn records(test: &mut TestLedger) {
    let read = DataRead {
        class: "prompts".parse().unwrap(),
        outcome: ReadOutcome::Denied,
        purpose: text("debugging"),
        reader: signer(3).id(),
        role: Some(Role::Custodian),
        rows_root: Some(Root(Digest::sha256(b"rows"))),
    };
    let review = ReviewRecorded {
        findings: text("none"),
        from_seq: count(0),
        outcome: ReviewOutcome::Accepted,
        patch: None,
        through_seq: count(3),
    };
    let audit = AuditAttested {
        root: Root(test.ledger.root()),
        size: count(test.ledger.size()),
        statement: text("verified"),
        verdict: Verdict::Pass,
    };
    let batch = [
        Command::new(read, None),
        Command::new(review, None),
        Command::new(audit, None),
        Command::new(crate::support::qualification(), None),
    ];
    test.append(&batch).unwrap();
}

fn plans(test: &mut TestLedger) {
    test.register("exp-3");
    let custodian = signer(41);
    test.add_key(&custodian, "Cem", &[Role::Custodian]).unwrap();
    let first = planned::gate("exp-3", "m-1");
    let mut second = planned::next(&first, &first);
    second["title"] = "Answers, autumn".into();
    let exp = || Some("exp-3".parse().unwrap());
    test.append(&[Command::new(planned::family(), None)])
        .unwrap();
    let said =
        |test: &mut TestLedger, payload| test.append(&[Command::new(payload, exp())]).unwrap();
    said(test, planned::registered(&first));
    let agreed = Command::new(planned::countersigned(&first), exp());
    test.ledger.append(&[agreed], &custodian).unwrap();
    said(
        test,
        planned::plan_sealed(ORIGIN, "m-1", [9; 32], planned::PLAN),
    );
    said(test, planned::amended(&second, &first, 0));
    said(test, planned::exposed(&second, 1, 0, 9));
    said(test, planned::deviated(&second));
    let revealed = Command::new(planned::plan_revealed("m-1", [9; 32], planned::PLAN), exp());
    let owner = signer(1);
    let blobs = [planned::PLAN.to_vec()];
    test.ledger
        .append_with_blobs(&[revealed], &owner, &blobs)
        .unwrap();
}

/// A family of environments that a plan names and a design tested, and a regime for the one that failed.
fn environments(test: &mut TestLedger) {
    test.register("exp-env");
    let exp = || Some("exp-env".parse().unwrap());
    let mut plan = planned::audits("exp-env", "audits-env");
    let law = json!({"clusters": 130, "environment": "law", "family": "domain", "required": true});
    plan["transport"]["environments"] = json!([plan["transport"]["environments"][0], law]);
    let registered = planned::registered(&plan);
    let manifest = serde_json::to_value(&registered).unwrap()["digest"].clone();
    let design = json!({
        "design": "probes-env", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "audit",
    });
    let label = json!({
        "design": "probes-env", "draw": 0, "item": "item-env", "policy": "base", "purpose": "audit",
        "rater": "rater-1", "value_micro": 0,
    });
    let of_plan = ("probes-env", &manifest);
    let mut tested = valued::environments(5, of_plan, "domain", &[("law", "fail")]);
    tested["probes"] = 1.into();
    let batch = [
        valued::payload(Kind::LabelDesignRegistered, &design),
        registered,
        valued::payload(Kind::LabelRecorded, &label),
        valued::payload(Kind::CalibratorFitted, &valued::fitted(5, 2)),
        valued::payload(Kind::EnvironmentsTested, &tested),
    ];
    let batch = batch.map(|payload| Command::new(payload, exp()));
    let blobs = [valued::MODEL.to_vec(), valued::ROWS.to_vec()];
    let said = test.ledger.append_with_blobs(&batch, &signer(1), &blobs);
    let tested_seq = said.unwrap()[4].seq;
    let scope = valued::scope("domain", "law");
    let regime = valued::regime("1", &scope, tested_seq, None);
    let regime = valued::payload(Kind::RegimeSelected, &regime);
    test.append(&[Command::new(regime, exp())]).unwrap();
}

/// A protocol, its bridge, and a waiver by two keys.
fn trust(test: &mut TestLedger) {
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let second = signer(42);
    test.add_key(&second, "Paul", &[Role::Approver]).unwrap();
    let sdp = SdpVersionRegistered {
        document: Digest::sha256(b"how people label"),
        effective_at: at("2026-01-01T00:00:00.000000Z"),
        sdp_version: "sdp-1".parse().unwrap(),
        target: Target::Y,
    };
    let bridge = BridgeAssessed {
        ci_hi: Finite::new(0.75),
        ci_lo: Finite::new(0.5),
        document: Digest::sha256(b"what was found"),
        estimate: Finite::new(0.625),
        expires_at: at("2027-01-01T00:00:00.000000Z"),
        kind: BridgeKind::Pte,
        sdp_version: "sdp-1".parse().unwrap(),
        status: Assessment::Pass,
    };
    let waived = AssumptionWaived {
        code: Assumption::S2,
        expires_at: at("2027-01-01T00:00:00.000000Z"),
        reason: text("one environment only"),
    };
    let batch = [
        Command::new(sdp, None),
        Command::new(bridge, None),
        Command::new(waived, experiment()),
    ];
    let waiver = test.append(&batch).unwrap()[2].id;
    let agreed = Command::new(AssumptionCountersigned { waiver }, experiment());
    test.ledger.append(&[agreed], &second).unwrap();
}

/// What was estimated of the rows, in an experiment with a design for audits.
fn estimates(test: &mut TestLedger) {
    let checked = valued::payload(Kind::LogprobsChecked, &valued::checked());
    let said = valued::every(5, "design-9").into_iter();
    let compared = valued::payload(Kind::JudgeCompared, &valued::judges_compared());
    let said = said.chain([("held", checked), ("compared", compared)]);
    let batch: Vec<_> = said
        .map(|(_, payload)| Command::new(payload, Some("exp-9".parse().unwrap())))
        .collect();
    let owner = signer(1);
    let blobs = [valued::MODEL.to_vec(), valued::ROWS.to_vec()];
    test.ledger
        .append_with_blobs(&batch, &owner, &blobs)
        .unwrap();
}

/// A rubric, an iteration, and patches that ended in each way.
fn iterations(test: &mut TestLedger) {
    test.register("exp-it");
    let exp = || Some("exp-it".parse().unwrap());
    let plan = iterated::plan("exp-it", "m-it");
    let quarter = test.ledger.ambient().now().quarter().to_string();
    test.append(&[Command::new(iterated::peek_account(), None)])
        .unwrap();
    let second = iterated::patch("concise-1", "length_bias_cap", iterated::CONCISE);
    let said = [
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        planned::registered(&plan),
        iterated::opened(&plan, "it-1", &quarter),
        iterated::proposed("it-1", iterated::PATCH),
        iterated::proposed("it-1", &second),
        iterated::rejected("it-1", "dev", "P4", Some("concise-1"), &second),
        iterated::withdrawn("it-1", "len-cite-guard-001"),
        iterated::closed("it-1", "no_candidate"),
    ];
    for payload in said {
        test.append(&[Command::new(payload, exp())]).unwrap();
    }
}

/// A gate that promotes, another that continues one without a decision, and the closing of their family.
fn gates(test: &mut TestLedger) {
    let (custodian, owner) = (signer(41), signer(1));
    let family = json!({
        "alpha_micro": 100_000, "family": "of-gates", "members_max": 3, "membership": "three gates",
        "method": "spend",
    });
    let family = planned::payload("family.opened", &family);
    test.append(&[Command::new(family, None)]).unwrap();
    let mut parent: Option<String> = None;
    for (experiment, id, flip) in [
        ("exp-4", "g-1", false),
        ("exp-5", "g-2", true),
        ("exp-6", "g-3", false),
    ] {
        test.register(experiment);
        let units = gated::units(id, 14);
        let mut gate = gated::gate(experiment, id, &units);
        gate["multiplicity"] =
            json!({"family": "of-gates", "family_alpha_micro": 100_000, "method": "spend"});
        gate["test"]["alpha_micro"] = if id == "g-1" { 50_000 } else { 25_000 }.into();
        if let (Some(digest), "g-3") = (&parent, id) {
            gate["test"]["continuation_of"] = Value::from(digest.clone());
        } else {
            gate["test"]["n_max"] = 8.into();
        }
        let mut say = |key: &Signer, payload: Payload| {
            let command = Command::new(payload, Some(experiment.parse().unwrap()));
            let appended = test.ledger.append(&[command], key);
            appended.unwrap_or_else(|error| panic!("{error}"));
            (test.ledger.size(), test.ledger.root())
        };
        say(&owner, planned::registered(&gate));
        let (size, root) = say(&custodian, planned::countersigned(&gate));
        let mut life = gated::Life::new(&gate, &units);
        for payload in life.listed() {
            say(&custodian, payload);
        }
        let (listed, drawn) = life.drawn(root, size);
        say(&owner, listed.into());
        say(&owner, drawn.into());
        say(&owner, life.opened().into());
        if id == "g-3" {
            let steps = clover::workflow::gates::steps::proceed;
            let known = clover::workflow::gates::evidence::known;
            let state = test.ledger.state();
            let name = "g-3".parse().unwrap();
            let payload = steps(state, known(state, &name).unwrap()).unwrap();
            let command = Command::new(payload, Some(experiment.parse().unwrap()));
            test.ledger.append(&[command], &owner).unwrap();
            continue;
        }
        say(&custodian, life.exposed(1, 0, 7));
        for t in 1..=8 {
            let (low, high) = (gated::values(0), gated::values(1_000_000));
            let arms: [&[Option<i64>]; 2] = if flip && t % 2 == 0 {
                [&high, &low]
            } else {
                [&low, &high]
            };
            for score in life.scores(t, &[arms]) {
                say(&owner, score);
            }
            let observed = life.observed(t, &[arms]);
            say(&owner, observed.into());
        }
        let look = life.looked();
        say(&owner, look.into());
        let decided = life.decided();
        say(&owner, decided.into());
        parent = Some(life.manifest.digest().to_hex());
    }
    closing(test, &owner);
}

/// A gate of its own, and what labels of a sample say beside its verdict.
fn beside(test: &mut TestLedger) {
    let (custodian, owner) = (signer(41), signer(1));
    test.register("exp-b");
    let (gate, units) = labelled::manifest("exp-b", "g-b");
    let mut gate = gate;
    gate["multiplicity"] =
        json!({"family": "of-one", "family_alpha_micro": 50_000, "method": "spend"});
    let family = json!({
        "alpha_micro": 50_000, "family": "of-one", "members_max": 1, "membership": "one gate",
        "method": "spend",
    });
    let family = planned::payload("family.opened", &family);
    test.append(&[Command::new(family, None)]).unwrap();
    let mut say = |key: &Signer, payload: Payload| {
        let command = Command::new(payload, Some("exp-b".parse().unwrap()));
        let appended = test.ledger.append(&[command], key);
        appended.unwrap_or_else(|error| panic!("{error}"));
        (test.ledger.size(), test.ledger.root())
    };
    say(&owner, planned::registered(&gate));
    let (size, root) = say(&custodian, planned::countersigned(&gate));
    let mut life = gated::Life::new(&gate, &units);
    for payload in life.listed() {
        say(&custodian, payload);
    }
    let (listed, drawn) = life.drawn(root, size);
    say(&owner, listed.into());
    say(&owner, drawn.into());
    say(&owner, life.opened().into());
    say(&custodian, life.exposed(1, 0, labelled::N as u64 - 1));
    for t in 1..=labelled::N {
        let [baseline, candidate] = labelled::judged(t).map(|value| [Some(value)]);
        let arms: [&[Option<i64>]; 2] = [&baseline, &candidate];
        for score in life.scores(t, &[arms]) {
            say(&owner, score);
        }
        let observed = life.observed(t, &[arms]);
        say(&owner, observed.into());
    }
    let look = life.looked();
    say(&owner, look.into());
    let (size, root) = say(&owner, life.decided().into());
    say(&owner, labelled::design());
    for label in labelled::labels(&life, root) {
        say(&owner, label);
    }
    say(&owner, labelled::estimated(&life, root, size).into());
}

/// Anchors, and a judge that still says of them what it said.
fn drifts(test: &mut TestLedger) {
    test.register("exp-d");
    drifted::anchor(test, "exp-d");
    let checked = drifted::checked(test, "exp-d", |_| 0);
    let exp = Some("exp-d".parse().unwrap());
    test.append(&[Command::new(checked, exp)]).unwrap();
}

fn closing(test: &mut TestLedger, owner: &Signer) {
    let state = test.ledger.state();
    let family = "of-gates".parse().unwrap();
    let closed = clover::workflow::gates::family::closing(state, &family).unwrap();
    assert_eq!(closed.rejected.len(), 1);
    let arms = gated::gate("exp-4", "g-1", &gated::units("g-1", 14))["arms"].clone();
    let issued = json!({
        "candidate_digest": arms[1]["artifact_digest"], "gates": ["g-1"], "grade": "certified",
    });
    let issued = planned::payload("promotion.issued", &issued);
    let commands = [Command::new(closed, None), Command::new(issued, None)];
    let appended = test.ledger.append(&commands, owner).unwrap();
    let revoked = clover::event::payload::decision::PromotionRevoked {
        promotion: appended[1].id,
        reason: text("the judge was withdrawn"),
    };
    test.append(&[Command::new(revoked, None)]).unwrap();
}

/// An iteration that was decided, and one that paused for labels.
fn decisions(test: &mut TestLedger) {
    test.register("exp-decided");
    let exp = || Some("exp-decided".parse().unwrap());
    let plan = iterated::plan("exp-decided", "m-decided");
    let quarter = test.ledger.ambient().now().quarter().to_string();
    let patch = decided::patches()[0].clone();
    let candidate = decided::patch_of(&patch).0;
    let mut said = vec![
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        planned::registered(&plan),
    ];
    said.extend(decided::split_events());
    said.extend([
        iterated::opened(&plan, decided::IT, &quarter),
        decided::label_process(),
        decided::prentice(),
        decided::audited(),
        decided::classified(),
        decided::judge(),
        decided::battery_in_force(),
        decided::card(),
        decided::asked(candidate, signer(1).id()),
        patch.clone(),
        decided::battery(Some(candidate), decided::patch_of(&patch).1, &[]),
    ]);
    let before = said.len();
    said.extend(decided::gates(&plan, candidate, "dev"));
    said.push(decided::recomputed(candidate, decided::patch_of(&patch).1));
    said.push(decided::sealed(&[candidate]));
    let mut ids = Vec::new();
    let mut say = |test: &mut TestLedger, payload| {
        let id = test.append(&[Command::new(payload, exp())]).unwrap()[0].id;
        ids.push(id.0.to_hex());
    };
    for payload in said {
        let is_card = matches!(payload, Payload::CardPublished(_));
        say(test, payload);
        if is_card {
            synthesis(test);
        }
    }
    let exploit = decided::exploit(&ids[before - 5]);
    test.append(&[Command::new(exploit, exp())]).unwrap();
    let charge = test
        .append(&[Command::new(decided::charge(), None)])
        .unwrap()[0]
        .id;
    let sealing = ids.last().unwrap().clone();
    let unsealing = decided::unsealed(&charge.0.to_hex(), &sealing);
    test.append(&[Command::new(unsealing, exp())]).unwrap();
    let mut gates = ids[before..before + 8].to_vec();
    for payload in decided::gates(&plan, candidate, "confirm") {
        let id = test.append(&[Command::new(payload, exp())]).unwrap()[0].id;
        gates.push(id.0.to_hex());
    }
    let index = test.ledger.size();
    let accepted = decided::accepted(&patch, 1, &gates);
    let accepted = test.append(&[Command::new(accepted, exp())]).unwrap()[0].id;
    let closed = iterated::closed(decided::IT, "accepted");
    test.append(&[Command::new(closed, exp())]).unwrap();
    let through = test.ledger.size() - 1;
    let report = decided::reported(decided::BUNDLE, through);
    test.append(&[Command::new(report, exp())]).unwrap();
    released(
        test,
        (&patch, &gates),
        (&accepted.0.to_hex(), index),
        &ids[0],
    );
    paused(test);
}

/// Two runs of optimizers that a person stopped after their first answers: a program, and a model behind HTTP.
fn synthesis(test: &mut TestLedger) {
    let optimizer = signer(61);
    let exp = || Some("exp-decided".parse().unwrap());
    let added = key_added(&optimizer, "Opal", &[Role::Optimizer]);
    test.append(&[Command::new(added, None)]).unwrap();
    let place = json!({
        "auth": "none", "classes": ["aggregates"], "dialect": "openai_chat", "endpoint": "here", "free": true,
        "insecure": false, "provider": "here", "url": "http://127.0.0.1:8080",
    });
    let place = planned::payload("endpoint.registered", &place);
    test.append(&[Command::new(place, None)]).unwrap();
    let view = blobs().remove(2);
    let answer = json!({
        "answer": blob_ref(&view), "candidates": [], "iteration": decided::IT, "round": 0, "run": "it-3-1",
        "state": "unreadable",
    });
    let program = shown(
        test,
        &optimizer,
        json!({"model": "optimizer.py", "optimizer": "command", "run": "it-3-1"}),
    );
    let answer = Command::new(planned::payload("synth.returned", &answer), exp());
    test.ledger.append(&[answer], &optimizer).unwrap();
    test.append(&[Command::new(program, exp())]).unwrap();
    let asked = json!({
        "endpoint": "here", "form": "propose/1", "max_output_tokens": 4_096, "model": "m-1", "pin": "m-1",
        "seeded": true,
    });
    let opened =
        json!({"asked": asked, "model": "m-1 at here", "optimizer": "endpoint", "run": "it-3-2"});
    let stopped = shown(test, &optimizer, opened);
    let call = json!({
        "ask": Digest::sha256(b"ask"), "attempts": [{"class": "ok", "ms": 9, "status": 200}], "bound_usd_micro": 0,
        "build": "clover 0.1.0", "cost_usd_micro": 0, "model_returned": "m-1", "nth": 0, "outcome": "refused",
        "place": 0, "purpose": "propose", "response": blob_ref(&view), "run": "it-3-2",
        "shown": Digest::sha256(&view), "usage": "absent",
    });
    let call = Command::new(planned::payload("model_call.recorded", &call), exp());
    let call = test.ledger.append(&[call], &optimizer).unwrap()[0].id;
    let answer = json!({
        "call": call, "candidates": [], "iteration": decided::IT, "round": 0, "run": "it-3-2", "state": "unreadable",
    });
    let mut answer = Command::new(planned::payload("synth.returned", &answer), exp());
    answer.refs = vec![call];
    test.ledger.append(&[answer], &optimizer).unwrap();
    test.append(&[Command::new(stopped, exp())]).unwrap();
}

/// Opens a run and hands its first view over; gives its end, which a person chose.
fn shown(test: &mut TestLedger, optimizer: &Signer, mut opened: Value) -> Payload {
    let exp = || Some("exp-decided".parse().unwrap());
    let (iteration, run, view) = (decided::IT, opened["run"].clone(), blobs().remove(2));
    let terms = json!({
        "build": "clover 0.1.0", "dev_calls": 10, "iteration": iteration, "k": 4, "key": optimizer.id(), "rounds": 6,
    });
    for (name, value) in terms.as_object().unwrap() {
        opened[name] = value.clone();
    }
    let mut said = vec![planned::payload("synth.opened", &opened)];
    for class in ["card.public", "dev_receipt", "rubric", "schema"] {
        let read = json!({
            "class": class, "outcome": "allowed", "purpose": run, "reader": optimizer.id(), "role": "optimizer",
        });
        said.push(planned::payload("data.read", &read));
    }
    let asked = json!({
        "build": "clover 0.1.0", "inputs": [iterated::rubric().hash()], "iteration": iteration,
        "leak_test": {"ids": 9, "texts": 18, "unreadable": 0}, "round": 0, "run": run,
        "through_seq": test.ledger.size(), "view": blob_ref(&view), "view_digest": Digest::sha256(&view),
    });
    said.push(planned::payload("synth.asked", &asked));
    for payload in said {
        test.append(&[Command::new(payload, exp())]).unwrap();
    }
    let stopped = json!({
        "dev_calls": 0, "iteration": iteration, "proposed": [], "reason": "person", "rounds": 1, "run": run,
    });
    planned::payload("synth.stopped", &stopped)
}

/// Approved by two keys beside the author's, and committed.
fn released(
    test: &mut TestLedger,
    (patch, gates): (&Payload, &[String]),
    acceptance: (&str, u64),
    parent: &str,
) {
    let exp = || Some("exp-decided".parse().unwrap());
    let people = [(31, "Petra"), (32, "Paul")].map(|(seed, name)| (signer(seed), name));
    let mut approvals = Vec::new();
    for (key, name) in &people {
        test.add_key(key, name, &[Role::Approver]).unwrap();
        let no = Command::new(released::refused(name, acceptance.0), exp());
        let yes = Command::new(released::granted(name, acceptance.0), exp());
        let said = test.ledger.append(&[no, yes], key).unwrap();
        approvals.push(said[1].id.0.to_hex());
    }
    let (text, parent) = (released::told(), (parent, "1.1"));
    let commit = released::committed(patch, acceptance, parent, gates, &approvals);
    test.ledger.put_blobs(&[text]).unwrap();
    let commit = test.append(&[Command::new(commit, exp())]).unwrap()[0].id;
    deployed(test, &commit.0.to_hex());
}

/// The committed prompt runs, breaks a guardrail and is rolled back: nothing ran before it.
fn deployed(test: &mut TestLedger, commit: &str) {
    let exp = || Some("exp-decided".parse().unwrap());
    let blobs = deployed::blobs().map(<[u8]>::to_vec);
    test.ledger.put_blobs(&blobs).unwrap();
    let say = |test: &mut TestLedger, payload: Payload| {
        test.append(&[Command::new(payload, exp())]).unwrap()[0]
            .id
            .0
            .to_hex()
    };
    say(test, deployed::fitted());
    let rubrics = test
        .ledger
        .state()
        .fold::<clover::projection::rubrics::Rubrics>();
    let head = rubrics.in_force(&"exp-decided".parse().unwrap());
    let hash = head.unwrap().hash.to_hex();
    let since = test.ledger.size();
    let runs = say(test, deployed::activated((commit, "1.1"), &hash, None));
    say(test, deployed::probes());
    for number in 0..100 {
        say(test, deployed::label(number));
    }
    let tested = say(test, deployed::tested());
    say(test, deployed::recalibrated(commit, &tested));
    let plan = iterated::plan("exp-decided", "m-decided");
    say(test, tuned::opened("tune-1", &runs, &hash));
    say(test, tuned::asked("tune-1", 1));
    say(test, tuned::design("ab-1"));
    for label in tuned::labels("ab-1") {
        say(test, label);
    }
    let none = tuned::validated(&plan, ("tune-1", "ab-1"), 1, -0.01);
    let none = say(test, none);
    say(test, tuned::back("tune-1", Some(&none)));
    let window = (since + 1, since + 1);
    let check = deployed::checked(&plan, &runs, &deployed::moved(), window);
    let breach = say(test, check);
    say(test, deployed::back(&runs, Some(&breach), None));
}

/// A confirm test with looks.
fn sequence(test: &mut TestLedger) {
    struct To<'t>(&'t mut TestLedger);
    impl sequenced::Teach for To<'_> {
        fn say(&mut self, _: u8, _: &'static str, payload: Payload) -> EventId {
            let exp = Some("exp-sequence".parse().unwrap());
            self.0.append(&[Command::new(payload, exp)]).unwrap()[0].id
        }
        fn charge(&mut self) -> EventId {
            let charge = Command::new(decided::charge(), None);
            self.0.append(&[charge]).unwrap()[0].id
        }
        fn head(&self) -> clover::event::payload::gate::DrawnFrom {
            sequenced::head(&self.0.ledger)
        }
        fn origin(&self) -> &'static str {
            ORIGIN
        }
        fn quarter(&self) -> String {
            self.0.ledger.ambient().now().quarter().to_string()
        }
        fn recipient(&self) -> SealRecipient {
            SealRecipient(Identity::from_bytes(&[5; 32]).recipient())
        }
    }
    test.register("exp-sequence");
    sequenced::iteration(&mut To(test), "exp-sequence", "m-sequence");
}

fn paused(test: &mut TestLedger) {
    test.register("exp-6");
    let exp = || Some("exp-6".parse().unwrap());
    let mut plan = iterated::plan("exp-6", "m-paused");
    plan["iteration"]["eta_micro"] = 2_000.into();
    let quarter = test.ledger.ambient().now().quarter().to_string();
    let open = iterated::opened(&plan, "it-4", &quarter);
    let mut said = vec![
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        planned::registered(&plan),
        open,
    ];
    for payload in [
        decided::audited(),
        decided::classified(),
        decided::paused(0.5),
    ] {
        said.push(decided::of(&payload, "it-4"));
    }
    said.push(iterated::closed("it-4", "paused_for_labels"));
    for payload in said {
        test.append(&[Command::new(payload, exp())]).unwrap();
    }
}

fn ends(test: &mut TestLedger) {
    let version = count(18);
    let adopted = RulebookAdopted { version };
    test.append(&[Command::new(adopted, None)]).unwrap();
    test.register("exp-2");
    let closed = ExperimentClosed {
        outcome: ExperimentOutcome::Aborted,
        reason: text("no data"),
    };
    let exp = Some("exp-2".parse().unwrap());
    test.append(&[Command::new(closed, exp)]).unwrap();
    let next = signer(NEXT_LOG_KEY);
    let vkey = VerifierKey::ed25519(ORIGIN.parse::<Origin>().unwrap(), next.public_bytes());
    test.ledger.set_next_log_key(next);
    let rotated = LogKeyRotated {
        reason: text("yearly"),
        vkey: Vkey::new(vkey.unwrap()).unwrap(),
    };
    test.append(&[Command::new(rotated, None)]).unwrap();
    test.log_key = NEXT_LOG_KEY;
    test.append(&[score(2), score(3)]).unwrap();
}

/// Scores, labels, blobs, a budget, and a label that is sealed, charged for and revealed: something in every table of the file,
/// in few entries. Gives the first score.
pub fn few_kinds(test: &mut TestLedger) -> EventId {
    test.register(EXPERIMENT);
    let opened = BudgetOpened {
        account: "peeks".parse().unwrap(),
        amount: count(5),
        period: Period::Quarter,
        purpose: text("peeks"),
        spenders: Roles::new([Role::Custodian]).unwrap(),
        unit: "peek".parse().unwrap(),
    };
    test.append(&[Command::new(opened, None)]).unwrap();
    let scored = data(test);
    sealed(test);
    scored
}

/// Appends at least one event of every kind to a ledger that has only its `ledger.created`.
pub fn every_kind(test: &mut TestLedger) {
    custody(test);
    let scored = few_kinds(test);
    intake(test, scored);
    estimates(test);
    records(test);
    models(test);
    plans(test);
    environments(test);
    iterations(test);
    gates(test);
    drifts(test);
    beside(test);
    decisions(test);
    sequence(test);
    test.register("exp-descended");
    super::descended::tell(test, "exp-descended");
    test.register("exp-repaired");
    super::repaired::tell(test, "exp-repaired");
    trust(test);
    ends(test);
    for kind in Kind::ALL {
        let mut seen = false;
        test.ledger
            .entries(0, test.ledger.size(), |read| {
                seen |= read.event.kind() == *kind;
                Ok::<_, clover::ledger::LedgerError>(())
            })
            .unwrap();
        assert!(seen, "no {kind}");
    }
}
