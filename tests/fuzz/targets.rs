//! What every parser of foreign bytes owes: it ends, it never panics, and what it accepts is exactly what it
//! would write. `tests/it/bytes.rs` runs the same functions on stable.

use std::io::BufReader;
use std::sync::Arc;

use clover::attack::Chain;
use clover::attack::Operator;
use clover::attack::Step;
use clover::event::Draft;
use clover::event::Entry;
use clover::event::header;
use clover::flow;
use clover::flow::Data;
use clover::flow::Workflow;
use clover::flow::number::Number;
use clover::flow::patch::JsonPatch;
use clover::flow::template::Template;
use clover::ground::ambient::Ambient;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::keyfile;
use clover::ground::merkle;
use clover::ground::note::Note;
use clover::ground::note::ProofFile;
use clover::ground::note::SignedCheckpoint;
use clover::ground::note::VerifierKey;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::seal::Recipient;
use clover::ground::time::Timestamp;
use clover::ground::words;
use clover::ground::yaml::Document;
use clover::ledger::verify;
use clover::ledger::verify::EntryLines;
use clover::ledger::verify::Signatures;
use clover::ledger::verify::VerifyOptions;
use clover::num::Micro;
use clover::prompt::Gradient;
use clover::prompt::JudgePrompt;
use clover::prompt::Lexicon;
use clover::prompt::PatchTerms;
use clover::prompt::Proposal;
use clover::prompt::SectionPatch;
use clover::prompt::StepContext;
use clover::prompt::diff;
use clover::prompt::diff::SectionDiff;
use clover::prompt::markdown;
use clover::prompt::validate;
use clover::rubric::Patch;
use clover::rubric::Rubric;

use clover::rubric::extract::Source;
use clover::rubric::extract::extract;
use clover::rubric::extract::recorded::Facts;
use clover::rubric::extract::recorded::Traces;
use clover::workflow::RULEBOOK;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::read;
use clover::workflow::analyze::read::FieldNames;
use clover::workflow::ask::cassette;
use clover::workflow::ask::cassette::CassetteError;
use clover::workflow::import;
use clover::workflow::import::Brings;
use clover::workflow::import::How;
use clover::workflow::import::tools;
use clover::workflow::import::tools::TakenAs;
use clover::workflow::import::tools::Tool;
use clover::workflow::import::tools::ToolTerms;
use clover::workflow::judge::builtin;
use clover::workflow::patches::Bench;

/// A key that anybody may know.
fn known() -> VerifierKey {
    let text = "ledger.example/exp1+4fdfa565+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
    text.parse().expect("a worked example")
}

pub fn entry_line(bytes: &[u8]) {
    if let Ok(entry) = Entry::parse(bytes) {
        assert_eq!(entry.to_line(), bytes);
        assert_eq!(entry.leaf(), merkle::leaf_hash(bytes));
        event_body(entry.signed.body());
    }
}

pub fn event_body(bytes: &[u8]) {
    let Ok(decoded) = header::decode(bytes) else {
        return;
    };
    canon::check(bytes).expect("what decodes is canonical");
    assert_eq!(decoded.id.0, Digest::sha256(bytes));
    let Ok(payload) = decoded.payload else {
        return;
    };
    // A retired version is upcast: it is read, and never written again.
    if payload.kind().version() == decoded.v {
        let header = decoded.header;
        let again = Draft { header, payload }.to_body();
        assert_eq!(again.as_deref(), Ok(bytes));
    }
}

pub fn canonical(bytes: &[u8]) {
    let Ok(value) = canon::parse(bytes) else {
        return;
    };
    let Ok(written) = canon::to_bytes(&value) else {
        assert!(canon::check(bytes).is_err());
        return;
    };
    canon::check(&written).expect("what is written is canonical");
    assert_eq!(canon::check(bytes).is_ok(), written == bytes);
}

pub fn note(bytes: &[u8]) {
    if let Ok(note) = Note::parse(bytes) {
        assert_eq!(note.encode(), bytes);
        note.verify(&[known()]).ok();
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(key) = text.parse::<VerifierKey>()
    {
        assert_eq!(key.to_string(), text);
    }
}

pub fn checkpoint(bytes: &[u8]) {
    if let Ok(signed) = SignedCheckpoint::parse(bytes) {
        assert_eq!(signed.encode(), bytes);
        assert_eq!(signed.checkpoint().to_text(), signed.note().text());
        signed.verify(&[known()]).ok();
    }
}

pub fn proof(bytes: &[u8]) {
    if let Ok(proof) = ProofFile::parse(bytes) {
        assert_eq!(proof.encode(), bytes);
        proof.verify(&Digest([7; 32]), &[known()]).ok();
    }
}

pub fn age_envelope(bytes: &[u8]) {
    let identity = [Identity::from_bytes(&[5; 32])];
    let opened = seal::decrypt(bytes, &identity);
    if opened.is_ok() {
        seal::check_header(bytes, &identity).expect("what opens has a good header");
    } else {
        seal::check_header(bytes, &identity).ok();
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(recipient) = text.parse::<Recipient>()
    {
        assert_eq!(recipient.to_string(), text);
    }
}

pub fn key_file(bytes: &[u8]) {
    keyfile::is_encrypted(bytes).ok();
    // Without a passphrase: deriving a key from one costs what the file says.
    keyfile::read_private(bytes, None).ok();
    if let Ok(key) = keyfile::read_public(bytes) {
        let again = keyfile::read_public(keyfile::write_public(&key).as_bytes());
        assert_eq!(again.expect("what is written is read"), key);
    }
}

pub fn numbers(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok((micro, rounded)) = Micro::parse(text) {
        let (again, twice) = Micro::parse(&micro.to_string()).expect("what is shown is a number");
        assert_eq!((again, twice), (micro, false));
        assert!(rounded || text.len() >= micro.to_string().len().min(2) - 1);
    }
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(time.to_string(), text);
        assert_eq!(Timestamp::from_micros(time.micros()), Some(time));
    }
    if let Some(digest) = Digest::from_hex(text) {
        assert_eq!(digest.to_hex(), text);
    }
    if let Some(digest) = Digest::from_base64(text) {
        assert_eq!(digest.to_base64(), text);
    }
}

/// What is accepted is JSON with a place for every line, and a typed error names one of them.
pub fn yaml(bytes: &[u8]) {
    let Ok(document) = Document::parse(bytes) else {
        return;
    };
    let lines = bytes.split(|byte| *byte == b'\n' || *byte == b'\r').count();
    if !document.json().is_empty() {
        canon::parse(document.json().as_bytes())
            .expect("what is accepted is JSON without a second key");
    }
    if let Err(error) = document.decode::<clover::event::payload::manifest::Manifest>() {
        assert!(error.place.line <= lines + 1 && !error.message.is_empty());
    }
}

/// The least rubric, and one with something of everything.
const RUBRICS: [&str; 2] = [
    "rubric: {version: '1.0', target: Y, sdp_version: v1}",
    "rubric:\n  version: '1.0'\n  target: Y\n  sdp_version: v1\n  obligations:\n    factual_adequacy:\n      \
     required: true\n      verification: {allowed_domains: [nih.gov], mismatch_penalty: 0.35}\n    \
     risk_accounting: {requires_stakeholders: true}\n  guards:\n    length_bias_cap: {if_tokens_gt: 500, \
     max_raw_score: 0.5}\n  abstention: {triggers: [tax]}\n",
];

/// What is accepted changes something, by as much as it says, and what results is a rubric.
pub fn cassette(bytes: &[u8]) {
    let mut written = Vec::new();
    let read = cassette::each(bytes, |_, call| {
        written.extend(call.to_line());
        Ok::<_, CassetteError>(())
    });
    match read {
        Ok(_) => assert_eq!(written, bytes),
        Err(error) => assert!(bytes.starts_with(&written) && !error.to_string().is_empty()),
    }
}

pub fn patch(bytes: &[u8]) {
    if let Err(fault) = Patch::parse(bytes) {
        assert!(!fault.to_string().is_empty() && fault.place.line <= bytes.len() + 1);
    }
    for text in RUBRICS {
        let rubric = Rubric::parse(text.as_bytes()).expect("it is one");
        let Ok((_, checked)) = Bench::loose(rubric.clone()).check(bytes, None) else {
            continue;
        };
        assert!(!checked.diff.is_empty() && checked.rubric.hash() != rubric.hash());
        assert!((1..=150).contains(&checked.length.kappa()));
        let again = Rubric::parse(checked.rubric.to_yaml().as_bytes());
        assert_eq!(again.expect("what results is a rubric"), checked.rubric);
    }
}

/// What is accepted is read back from its own YAML.
pub fn rubric(bytes: &[u8]) {
    let Ok(rubric) = Rubric::parse(bytes) else {
        return;
    };
    let again = Rubric::parse(rubric.to_yaml().as_bytes()).expect("what is written is read");
    assert_eq!((again.hash(), again), (rubric.hash(), rubric.clone()));
    rubric.rules();
}

/// A prompt to be edited.
pub const JUDGE_PROMPT: &str = concat!(
    "Judge one answer.\n\n## Tone\n<!-- clover: kind=policy editable -->\nA judge should be kind.\nLength is no merit.\n",
    "\n## Output\nThe number alone.\n"
);

/// A prompt file of each form: what is read is written, and read again as the same.
pub fn judge_prompt(bytes: &[u8]) {
    for name in ["a.md", "a.yaml", "a.json"] {
        match JudgePrompt::from_file(name, bytes) {
            Err(fault) => assert!(!fault.to_string().is_empty() && fault.line <= bytes.len() + 1),
            Ok(prompt) => {
                let again =
                    JudgePrompt::from_json(&prompt.to_json()).expect("what is written is read");
                assert_eq!((again.digest(), &again), (prompt.digest(), &prompt));
                drop(JudgePrompt::from_file(
                    "a.md",
                    markdown::write(&prompt).as_bytes(),
                ));
            }
        }
    }
}

/// A diff, and an answer of an agent: a diff that applies is the diff of the two texts, or another way to the same.
pub fn section_diff(bytes: &[u8]) {
    drop(Gradient::from_json(bytes));
    let text = String::from_utf8_lossy(bytes);
    let prompt = JudgePrompt::from_file("a.md", JUDGE_PROMPT.as_bytes()).expect("it is one");
    let old = &prompt.section("tone").expect("it has one").text;
    let Ok(read) = SectionDiff::parse(&text) else {
        return;
    };
    let Ok(new) = read.apply(old) else {
        return;
    };
    let shortest = diff::between("tone", Some(old), Some(&new));
    if !shortest.is_empty() && !new.is_empty() {
        let again = SectionDiff::parse(&shortest).expect("what is written is read");
        assert_eq!(again.apply(old).as_deref(), Ok(new.as_str()));
    }
}

/// A proposal, as JSON or as a diff alone: what is taken is within every bound, and applies without the validator.
pub fn proposal(bytes: &[u8]) {
    let prompt = JudgePrompt::from_file("a.md", JUDGE_PROMPT.as_bytes()).expect("it is one");
    let alone = || Proposal {
        addresses: vec![0],
        patch: SectionPatch {
            diff: String::from_utf8_lossy(bytes).into_owned(),
            ..SectionPatch::edit(&prompt, "tone", "")
        },
        rationale: String::new(),
    };
    let proposal = Proposal::from_json(bytes).unwrap_or_else(|_| alone());
    let (approvals, terms) = (std::collections::BTreeSet::new(), PatchTerms::default());
    let context = StepContext {
        approvals: &approvals,
        current: &prompt,
        gradient_items: 1,
        lexicon: Lexicon::built_in(),
        prompt0: &prompt,
        step: 3,
        terms: &terms,
    };
    match validate(&context, &proposal) {
        Err(violations) => assert!(!violations.is_empty()),
        Ok(taken) => {
            assert!(taken.measures.effective <= taken.measures.effective_max);
            assert_eq!(
                prompt.applied(&proposal.patch, terms.section_chars_max),
                Some(taken.prompt)
            );
        }
    }
}

/// Prose of a prompt and a response, attacked by a chain that the first bytes choose: it is read, scored and rewritten to
/// the same twice, and places lie within the text.
pub fn prose(bytes: &[u8]) {
    let Some((picks, text)) = bytes.split_at_checked(4) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let (prompt, response) = text.split_once('\n').unwrap_or(("Is it so?", &text));
    for range in words::addresses(response) {
        assert!(!response[range].is_empty());
    }
    assert!(words::sentences(response).all(|sentence| !sentence.is_empty()));
    let edits: Vec<_> = Operator::ALL
        .into_iter()
        .flat_map(Operator::edits)
        .collect();
    let steps = picks[1..].iter().take(1 + usize::from(picks[0]) % 3);
    let steps = steps.map(|pick| Step {
        edit: edits[usize::from(*pick) % edits.len()],
        seed: u32::from(*pick),
    });
    let chain = Chain::new(steps.collect()).expect("one to three steps");
    let attacked = chain.apply(response);
    assert_eq!(chain.apply(response), attacked);
    assert_eq!(attacked.changed, attacked.text != response);
    assert!(attacked.text.len() <= 400 * (response.len() + 1000));
    let (facts, traces) = (Facts::of([prompt]), Traces::of([prompt]));
    for response in [response, &attacked.text] {
        let source = Source {
            prompt,
            response,
            traces: Some(&traces),
            facts: Some(&facts),
            ..Source::default()
        };
        let evidence = extract(&source);
        assert_eq!(extract(&source), evidence);
        let score = builtin::score(prompt, response, &evidence);
        assert!((0..=1_000_000).contains(&score.value()));
    }
}

pub fn ledger_lines(bytes: &[u8]) {
    let verify = |signatures| {
        let lines = EntryLines {
            lines: Box::new(BufReader::new(bytes)),
            checkpoint: None,
            blobs: None,
        };
        let options = VerifyOptions {
            signatures,
            ..VerifyOptions::default()
        };
        let ambient = Arc::new(Ambient::system());
        verify::verify_lines(lines, &options, &RULEBOOK, &ambient, &mut |_, _| {})
            .expect("bytes can be read")
    };
    let report = verify(Signatures::Strict);
    let count = bytes.split_inclusive(|byte| *byte == b'\n').count();
    assert_eq!(report.events, count as u64);
    assert_eq!(report.findings_total == 0, report.first.is_none());
    report.verdict_line();
}

/// Files of other tools: what is accepted are rows within the scale, each draw once, and remarks on draws that are named.
pub fn tools(bytes: &[u8]) {
    let (zero, one) = (Micro::parse("0"), Micro::parse("1"));
    let (zero, one) = (zero.expect("a number").0, one.expect("a number").0);
    for brings in [Brings::Scores, Brings::Texts, Brings::Labels] {
        let how = How {
            policy: None,
            logprobs: false,
            brings,
            scale: (zero, one),
            label_scale: None,
            fields: &[],
            name_prompt: &|prompt| format!("prompt-{}", prompt.len()),
        };
        let policy = "base".parse().expect("a name");
        for tool in Tool::ALL {
            let terms = ToolTerms {
                taken_as: (brings == Brings::Labels).then_some(TakenAs::Label),
                scores_only: bytes.len().is_multiple_of(2),
                ..ToolTerms::default()
            };
            let named = How {
                policy: bytes.len().is_multiple_of(3).then_some(&policy),
                ..how
            };
            match tools::rows(tool, ("here", bytes), terms, named) {
                Ok(found) => {
                    assert!(!found.rows.is_empty() && found.read >= found.rows.len() as u64);
                    let scores = found.rows.iter().map(|row| row.score);
                    assert!(
                        scores
                            .into_iter()
                            .all(|score| (zero..=one).contains(&score))
                    );
                    if brings == Brings::Scores {
                        import::distinct(std::slice::from_ref(&found)).expect("each draw once");
                        let again = found.responses();
                        import::cje::rows("again", again.as_bytes(), how)
                            .expect("what is written is read");
                    }
                }
                Err(error) => {
                    assert_eq!(error.file, "here");
                    assert!(!error.to_string().is_empty() && !error.what.is_empty());
                }
            }
        }
    }
}

pub fn responses(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for covariates in [Vec::new(), vec![read::RESPONSE_LENGTH.to_owned()]] {
        let fields = FieldNames {
            covariates,
            ..FieldNames::default()
        };
        let found = match read::responses("here", text, &fields) {
            Ok(found) => found,
            Err(error) => {
                assert_eq!(error.source_name, "here");
                assert!(error.line <= text.lines().count());
                error.to_string();
                continue;
            }
        };
        let rows = found.scores.len();
        assert!(rows > 0 && found.lines.len() == rows && found.policies.len() == rows);
        assert!(found.lines.windows(2).all(|pair| pair[0] < pair[1]));
        let numbers = found.scores.iter().chain(found.labels.iter().flatten());
        assert!(
            numbers
                .chain(found.covariates.iter().flatten())
                .all(|value| value.is_finite())
        );
        assert!(found.covariates.iter().all(|column| column.len() == rows));
        // What was read, written plainly, is read as the same.
        let plain = |row: usize| {
            let mut record = serde_json::json!({
                "prompt_id": found.prompts[row], "judge_score": found.scores[row],
                "oracle_label": found.labels[row], "draw_idx": found.draws[row],
                "target_policy": found.policies[row],
            });
            if let Some(column) = found.covariates.first() {
                record[read::RESPONSE_LENGTH] = column[row].into();
            }
            record.to_string() + "\n"
        };
        let plain: String = (0..rows).map(plain).collect();
        let again = read::responses("here", &plain, &fields).expect("what is written is read");
        assert_eq!(again.prompts, found.prompts);
        assert_eq!(
            (&again.draws, &again.policies),
            (&found.draws, &found.policies)
        );
        assert_eq!(
            (&again.scores, &again.labels),
            (&found.scores, &found.labels)
        );
        assert_eq!(again.covariates, found.covariates);
        if let Ok((dataset, prompts)) = read::dataset(&[(None, found)], &fields.covariates) {
            assert_eq!(
                dataset.policies.iter().map(Policy::len).sum::<usize>(),
                rows
            );
            assert!(prompts.ids().len() <= rows);
        }
    }
}

/// Answers every ask with the same text, whatever it is.
struct Echo<'a>(&'a str);

impl flow::executor::Executor for Echo<'_> {
    fn ask(
        &mut self,
        _: &flow::executor::StepAsk<'_>,
    ) -> Result<flow::executor::StepAnswer, flow::executor::ExecutorFault> {
        let usage = flow::executor::Usage {
            calls: 1,
            ..flow::executor::Usage::default()
        };
        Ok(flow::executor::StepAnswer::Text(self.0.to_owned(), usage))
    }
}

/// What is accepted prints as itself, and its runs end within their bounds, whatever the model says.
pub fn workflow(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let workflow = match Workflow::parse(text) {
        Ok(workflow) => workflow,
        Err(fault) => {
            assert!(fault.at.line >= 1 && fault.at.column >= 1 && !fault.to_string().is_empty());
            assert!(fault.at.line <= text.split('\n').count());
            return;
        }
    };
    let again = Workflow::parse(&workflow.print()).expect("what is printed is read");
    assert_eq!(again.digest(), workflow.digest());
    assert_eq!(flow::difference::between(&workflow, &again).changes, []);
    let bounds = flow::Bounds::default();
    for answer in ["{\"total\":3,\"date\":\"01.02.2026\"}", "{", text] {
        let given = Data::parse("{\"text\":\"12 EUR\",\"limit\":40,\"rules\":[\"a\"]}", 100);
        let given = given.expect("an input");
        let inputs = workflow
            .inputs()
            .iter()
            .map(|name| (name.clone(), given.clone()));
        let outcome = flow::run(&workflow, &inputs.collect(), &mut Echo(answer), bounds, 0);
        let outcome = outcome.expect("it always answers");
        assert!(outcome.trace.steps.len() <= bounds.steps);
        assert!(outcome.usage.calls <= bounds.calls as u64);
        assert_eq!(outcome.output.is_some(), outcome.crash().is_none());
        outcome.trace.digest();
    }
}

/// What is accepted is written as itself, and applies whole or not at all.
pub fn json_patch(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(patch) = JsonPatch::parse(text) else {
        return;
    };
    let written = patch.document().to_string();
    assert_eq!(JsonPatch::parse(&written).as_ref(), Ok(&patch));
    let document = Data::parse(flow::task::Family::Invoices.first_program(), 10_000);
    let document = document.expect("a first program");
    if let Ok(after) = patch.apply(&document) {
        let back = JsonPatch::between(&document, &after);
        assert_eq!(back.apply(&document).as_ref(), Ok(&after));
        Workflow::of(&after).ok();
    }
    // Any two values have a difference.
    let between = JsonPatch::between(&document, &patch.document());
    assert_eq!(between.apply(&document).as_ref(), Ok(&patch.document()));
}

/// A template that is accepted has its holes filled once, and a number that is read is shown as it is read.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(template) = Template::parse(text) {
        assert_eq!(template.as_str(), text);
        let holes = template.paths().count();
        let value = Data::text("{{x}}");
        let filled = template.fill(|_| Some(std::borrow::Cow::Borrowed(&value)));
        let filled = filled.expect("every hole has a value");
        assert!(filled.matches("{{x}}").count() >= holes);
        assert_eq!(template.fill(|_| None).is_err(), holes > 0);
    }
    if let Some((number, _)) = Number::parse(text) {
        assert_eq!(Number::parse(&number.to_string()), Some((number, false)));
        let json = canon::to_bytes(&number).expect("a number has a canonical form");
        assert_eq!(json, number.to_string().as_bytes());
    }
    if let Ok(value) = Data::parse(text, 10_000) {
        let again = Data::parse(&value.canonical(), 1 << 20);
        assert_eq!(again.as_ref(), Ok(&value));
        assert_eq!(Data::parse(&value.pretty(&[], 40), 1 << 20), Ok(value));
    }
    flow::repair::edit_text::parse(text).ok();
    flow::task::TaskSet::parse(text).ok();
    flow::executor::table::Table::default().add_line(text).ok();
}
