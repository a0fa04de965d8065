//! Bytes and what they mean: one encoding for every value, and no parser that foreign bytes can break.
//!
//! The functions of `tests/fuzz/targets.rs` are the fuzz targets; here they run on stable, over arbitrary
//! bytes and over changed good ones.

#[path = "../fuzz/targets.rs"]
mod targets;

use std::sync::LazyLock;

use clover::event::Draft;
use clover::event::Entry;
use clover::event::Header;
use clover::event::Kind;
use clover::event::Payload;
use clover::event::SeenCheckpoint;
use clover::event::header;
use clover::event::id::EventId;
use clover::event::id::Root;
use clover::event::registry;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::sign::KeyId;
use clover::ground::time::Timestamp;
use clover::num::Count;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::support::TestLedger;
use crate::support::decided;
use crate::support::deployed;
use crate::support::drifted;
use crate::support::full;
use crate::support::iterated;
use crate::support::planned;
use crate::support::released;
use crate::support::tuned;
use crate::support::valued;

fn config(cases: u32) -> Config {
    let many = if std::env::var_os("RUN_SLOW_TESTS").is_some() {
        50
    } else {
        1
    };
    Config {
        cases: cases * many,
        failure_persistence: None,
        ..Config::default()
    }
}

const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Any JSON value with integers that every reader holds exactly.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-INTEGER_MAX..=INTEGER_MAX).prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(Value::from),
        any::<f32>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|value| Value::from(f64::from(value))),
        any::<String>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        "[\u{0}-\u{20}\"\\\\/\u{7f}\u{80}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,12}"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let key = prop_oneof![
            "\\PC{0,6}",
            any::<String>(),
            "[a-c\u{e9}\u{ff61}\u{10000}\u{fffd}]{0,3}",
        ];
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            vec((key, inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn reference(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap()
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn the_encoder_is_the_reference_canonicalizer(value in json_value()) {
        let expected = reference(&value);
        // Whole doubles from 2^53 to 1e21 are written as digits, which are no integer that is read.
        let Ok(bytes) = canon::to_bytes(&value) else {
            prop_assert!(canon::check(&expected).is_err());
            return Ok(());
        };
        prop_assert_eq!(text(&bytes), text(&expected));
        canon::check(&bytes).unwrap();
        // Read strictly and written again, from canonical and from pretty text.
        let pretty = serde_json::to_vec_pretty(&value).unwrap();
        for text in [&bytes, &pretty] {
            prop_assert_eq!(&canon::to_bytes(&canon::parse(text).unwrap()).unwrap(), &bytes);
        }
        let pretty_is_canonical = pretty == bytes;
        prop_assert_eq!(canon::check(&pretty).is_ok(), pretty_is_canonical);
    }

    #[test]
    fn integers_beyond_what_all_readers_hold_are_refused(value in (1_u64 << 53)..=u64::MAX) {
        prop_assert!(canon::to_bytes(&value).is_err());
        prop_assert!(canon::check(value.to_string().as_bytes()).is_err());
        if let Ok(negative) = i64::try_from(value) {
            prop_assert!(canon::to_bytes(&-negative).is_err());
        }
    }
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[ -~]{1,40}",
        "[a-z0-9_.:/-]{1,200}",
        "[\u{e9}\u{fc}\u{4e2d}\u{1f600}\"\\\\a-c]{1,30}",
    ]
    .prop_map(Value::from)
}

fn free_text() -> impl Strategy<Value = Value> {
    prop_oneof!["[\n\t -~]{0,60}", "[\n\u{e9}\u{4e2d}\u{1f600}\"\\\\]{0,40}"].prop_map(Value::from)
}

fn hex() -> impl Strategy<Value = Value> {
    any::<[u8; 32]>().prop_map(|bytes| Value::from(Digest(bytes).to_hex()))
}

fn base64(len: usize) -> impl Strategy<Value = Value> {
    use base64ct::Encoding as _;
    vec(any::<u8>(), len).prop_map(|bytes| Value::from(base64ct::Base64::encode_string(&bytes)))
}

fn count(least: i64) -> impl Strategy<Value = Value> {
    prop_oneof![least..5_000, Just(INTEGER_MAX), least..=INTEGER_MAX].prop_map(Value::from)
}

fn micro() -> impl Strategy<Value = Value> {
    const MAX: i64 = 1_000_000_000_000;
    prop_oneof![-5_i64..2_000_000, -MAX..=MAX, Just(MAX), Just(-MAX)].prop_map(Value::from)
}

fn time() -> impl Strategy<Value = Value> {
    (0..253_402_300_800_000_000_i64)
        .prop_map(|micros| Value::from(Timestamp::from_micros(micros).unwrap().to_string()))
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(words).prop_map(Value::from)
}

fn roles() -> impl Strategy<Value = Value> {
    use clover::event::payload::Role;
    proptest::sample::subsequence(Role::ALL.to_vec(), 1..=Role::ALL.len())
        .prop_map(|roles| serde_json::to_value(roles).unwrap())
}

fn blob() -> impl Strategy<Value = Value> {
    (hex(), count(0)).prop_map(
        |(blake3, bytes)| json!({"blake3": blake3, "bytes": bytes, "media": "text/plain"}),
    )
}

fn private() -> impl Strategy<Value = Value> {
    (blob(), hex(), hex()).prop_map(|(blob, commitment, subject)| {
        json!({"blob": blob, "commitment": commitment, "subject": subject})
    })
}

fn texts() -> impl Strategy<Value = Value> {
    (hex(), hex()).prop_map(|(a_hash, x_hash)| json!({"a_hash": a_hash, "x_hash": x_hash}))
}

fn noise_figures() -> impl Strategy<Value = Value> {
    count(0).prop_map(|of| {
        json!({"answered": of, "asked": of, "differing": of, "missed": of, "sd_micro": of, "shift_half_micro": of})
    })
}

fn call_of() -> impl Strategy<Value = Value> {
    (hex(), texts()).prop_map(|(call, texts)| json!({"call": call, "texts": texts}))
}

fn vkey() -> impl Strategy<Value = Value> {
    use clover::ground::note::Origin;
    use clover::ground::note::VerifierKey;
    any::<u8>().prop_map(|byte| {
        let origin: Origin = "ledger.example/any".parse().unwrap();
        let public = crate::support::signer(byte).public_bytes();
        Value::from(VerifierKey::ed25519(origin, public).unwrap().to_string())
    })
}

fn recipient() -> impl Strategy<Value = Value> {
    any::<[u8; 32]>().prop_map(|seed| {
        let identity = clover::ground::seal::Identity::from_bytes(&seed);
        Value::from(identity.recipient().to_string())
    })
}

/// Fields that are there, and fields that may be.
type Fields = Vec<(&'static str, BoxedStrategy<Value>, bool)>;

/// One vector file of a qualification.
fn qualified_file() -> impl Strategy<Value = Value> {
    (count(0), hex(), count(0), free_text(), count(0)).prop_map(
        |(cases, digest, failed, name, not_run)| {
            serde_json::json!({
                "cases": cases, "digest": digest, "failed": failed, "name": name, "not_run": not_run,
            })
        },
    )
}

fn fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    match kind {
        Kind::LedgerCreated => vec![
            must("format", count(0).boxed()),
            must("log_vkey", vkey().boxed()),
            must("origin", Just(Value::from("ledger.example/any")).boxed()),
            must(
                "owner",
                (id(), any::<bool>(), base64(32), roles())
                    .prop_map(|(holder, human, public_key, roles)| {
                        json!({"holder": holder, "human": human, "public_key": public_key, "roles": roles})
                    })
                    .boxed(),
            ),
            must(
                "policy",
                word(&["solo", "strict"])
                    .prop_map(|word| json!({"separation": word}))
                    .boxed(),
            ),
        ],
        Kind::KeyAdded => vec![
            must("holder", id().boxed()),
            must("human", any::<bool>().prop_map(Value::from).boxed()),
            must("key_id", hex().boxed()),
            must("proof", base64(64).boxed()),
            must("public_key", base64(32).boxed()),
            must("roles", roles().boxed()),
            may("seal_recipient", recipient().boxed()),
        ],
        Kind::KeyRetired => vec![
            must("key_id", hex().boxed()),
            must("reason", free_text().boxed()),
        ],
        Kind::KeyCompromised => vec![
            must("key_id", hex().boxed()),
            must("reason", free_text().boxed()),
            must("since_seq", count(0).boxed()),
        ],
        Kind::PolicyAdopted => vec![
            must("reason", free_text().boxed()),
            must("separation", word(&["solo", "strict"]).boxed()),
        ],
        Kind::RulebookAdopted => vec![must("version", count(0).boxed())],
        Kind::LogKeyRotated => vec![
            must("reason", free_text().boxed()),
            must("vkey", vkey().boxed()),
        ],
        Kind::RetentionSet => vec![
            must("basis", free_text().boxed()),
            must("class", id().boxed()),
            must("days", count(1).boxed()),
        ],
        Kind::SubjectErased => vec![
            must("basis", free_text().boxed()),
            must("subject", hex().boxed()),
        ],
        Kind::BudgetOpened => vec![
            must("account", id().boxed()),
            must("amount", count(1).boxed()),
            must("period", word(&["once", "quarter"]).boxed()),
            must("purpose", free_text().boxed()),
            must("spenders", roles().boxed()),
            must("unit", id().boxed()),
        ],
        Kind::EndpointRegistered => vec![
            must("auth", word(&["api_key", "bearer", "none"]).boxed()),
            must(
                "classes",
                Just(json!(["aggregates", "rows", "synthetic"])).boxed(),
            ),
            must("dialect", word(&["anthropic", "openai_chat"]).boxed()),
            must("endpoint", id().boxed()),
            must("free", any::<bool>().prop_map(Value::from).boxed()),
            must("insecure", any::<bool>().prop_map(Value::from).boxed()),
            may("model", free_text().boxed()),
            must("provider", free_text().boxed()),
            may("terms", free_text().boxed()),
            must(
                "url",
                word(&["https://api.example.com/v1", "http://[::1]:8080"]).boxed(),
            ),
        ],
        Kind::PriceTableRegistered => vec![
            must("as_of", time().boxed()),
            must("prices", id().boxed()),
            must(
                "rows",
                (count(0), count(0), free_text())
                    .prop_map(|(input, output, model)| {
                        json!([{"cache_read": input, "cache_write": input, "input": input, "mode": "live",
                            "model": model, "output": output, "provider": "example"}])
                    })
                    .boxed(),
            ),
            must("source", free_text().boxed()),
        ],
        Kind::JudgeRunOpened => vec![
            may("account", id().boxed()),
            must("asks", count(0).boxed()),
            must("asks_root", base64(32).boxed()),
            must("build", free_text().boxed()),
            may("cap_usd_micro", count(0).boxed()),
            must("endpoint", id().boxed()),
            must("judge", id().boxed()),
            may("prices", id().boxed()),
            must("run", id().boxed()),
        ],
        Kind::JudgeRunResumed => vec![must("epoch", count(0).boxed()), must("run", id().boxed())],
        Kind::JudgeRunClosed => vec![
            must(
                "by_outcome",
                count(0)
                    .prop_map(|calls| json!([{"calls": calls, "outcome": "answered"}]))
                    .boxed(),
            ),
            must("cost_usd_micro", count(0).boxed()),
            must("end", word(&["capped", "completed", "stopped"]).boxed()),
            must("left", count(0).boxed()),
            must("run", id().boxed()),
            must("settled_usd_micro", count(0).boxed()),
        ],
        Kind::SynthOpened => vec![
            may(
                "asked",
                (id(), free_text(), count(1))
                    .prop_map(|(endpoint, model, most)| {
                        json!({"account": endpoint, "cap_usd_micro": most, "endpoint": endpoint, "form": "propose/1",
                            "max_output_tokens": most, "model": model, "pin": model, "prices": endpoint,
                            "seeded": true})
                    })
                    .boxed(),
            ),
            must("build", free_text().boxed()),
            must("dev_calls", count(0).boxed()),
            must("iteration", id().boxed()),
            must("k", count(0).boxed()),
            must("key", hex().boxed()),
            must("model", free_text().boxed()),
            must("optimizer", word(&["cards", "command", "endpoint"]).boxed()),
            must("rounds", count(0).boxed()),
            must("run", id().boxed()),
        ],
        Kind::SynthAsked => vec![
            must("build", free_text().boxed()),
            must("inputs", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must("iteration", id().boxed()),
            must(
                "leak_test",
                count(0)
                    .prop_map(|ids| json!({"ids": ids, "texts": ids, "unreadable": 0}))
                    .boxed(),
            ),
            must("round", count(0).boxed()),
            must("run", id().boxed()),
            must("through_seq", count(0).boxed()),
            must("view", blob().boxed()),
            must("view_digest", hex().boxed()),
        ],
        Kind::SynthReturned => vec![
            may("answer", blob().boxed()),
            may("call", hex().boxed()),
            must(
                "candidates",
                (hex(), free_text())
                    .prop_map(|(hash, yaml)| {
                        json!([{"cards": [hash.clone()], "patch_hash": hash, "yaml": yaml}, {"code": "beyond_k"}])
                    })
                    .boxed(),
            ),
            must("iteration", id().boxed()),
            must("round", count(0).boxed()),
            must("run", id().boxed()),
            must("state", word(&["oversize", "read", "unreadable"]).boxed()),
        ],
        Kind::SynthStopped => vec![
            must("dev_calls", count(0).boxed()),
            must("iteration", id().boxed()),
            must("proposed", vec(id(), 0..3).prop_map(Value::from).boxed()),
            must("reason", word(&["dev_calls", "empty", "person"]).boxed()),
            must("rounds", count(0).boxed()),
            must("run", id().boxed()),
        ],
        Kind::SgdOpened => vec![
            must("agents", word(&["aggregate", "command"]).boxed()),
            must("build", free_text().boxed()),
            must("judge", id().boxed()),
            must("key", hex().boxed()),
            must("lexicon", hex().boxed()),
            must("model", free_text().boxed()),
            must("prompt", free_text().boxed()),
            must("prompt_digest", hex().boxed()),
            must("run", id().boxed()),
            must("seed", hex().boxed()),
            must(
                "splits",
                (count(0), base64(32))
                    .prop_map(|(count, root)| {
                        let part = json!({"count": count, "root": root});
                        json!({"confirm": part, "test": part, "train": part, "val": part})
                    })
                    .boxed(),
            ),
            must("terms", sgd_terms()),
            must("through_seq", count(0).boxed()),
        ],
        Kind::SgdRowsListed => vec![
            must("first", count(0).boxed()),
            must(
                "rows",
                (count(0), id(), micro())
                    .prop_map(|(draw, item, target)| {
                        json!([{"draw": draw, "item": item, "policy": item, "target_micro": target}])
                    })
                    .boxed(),
            ),
            must("run", id().boxed()),
            must("split", word(&["confirm", "test", "train", "val"]).boxed()),
        ],
        Kind::SgdBatchDrawn => vec![
            must("confusable", count(0).boxed()),
            must("high", count(0).boxed()),
            must("low", count(0).boxed()),
            must("root", base64(32).boxed()),
            must("rows", vec(count(0), 0..4).prop_map(Value::from).boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdScored => vec![
            must("first", count(0).boxed()),
            must("part", word(&["base", "batch", "test", "val"]).boxed()),
            must("prompt_digest", hex().boxed()),
            must("run", id().boxed()),
            must("scores", micro().prop_map(|of| json!([[of], []])).boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdLossComputed => vec![
            must("loss", sgd_loss()),
            must("part", word(&["base", "batch", "val"]).boxed()),
            must("prompt_digest", hex().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdGradientRequested => vec![
            must(
                "leak_test",
                count(0)
                    .prop_map(|ids| json!({"ids": ids, "texts": ids, "unreadable": 0}))
                    .boxed(),
            ),
            must("request", free_text().boxed()),
            must("request_digest", hex().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdGradientReturned => vec![
            must("gradient", free_text().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdPatchProposed => vec![
            must("attempt", count(0).boxed()),
            must("parent_digest", hex().boxed()),
            must("patch", free_text().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdPatchRejected => vec![
            must("attempt", count(0).boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
            must(
                "violations",
                free_text()
                    .prop_map(|of| json!([{"bound": of, "found": of, "rule": of}]))
                    .boxed(),
            ),
        ],
        Kind::SgdPatchApproved => vec![
            must("attempt", count(0).boxed()),
            must("decision", word(&["approve", "refuse"]).boxed()),
            must("patch_digest", hex().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
        ],
        Kind::SgdStepCommitted => vec![
            may("attempt", count(0).boxed()),
            must("best", count(0).boxed()),
            must("error", real()),
            must("lr_micro", micro().boxed()),
            may(
                "measured",
                (count(0), micro())
                    .prop_map(|(of, effective)| {
                        json!({"chars": of, "effective_micro": effective, "modal_delta": of, "soft_to_hard": of})
                    })
                    .boxed(),
            ),
            must("new_digest", hex().boxed()),
            must("parent_digest", hex().boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
            must("summary", free_text().boxed()),
            must("train", sgd_loss()),
            must("val", sgd_loss()),
        ],
        Kind::SgdReverted => vec![
            must("best", count(0).boxed()),
            must("best_loss", real()),
            must("run", id().boxed()),
            must("se", real()),
            must("step", count(0).boxed()),
            must("to_digest", hex().boxed()),
            must("val_loss", real()),
        ],
        Kind::SgdStopTriggered => vec![
            must("extra", count(0).boxed()),
            must("run", id().boxed()),
            must("step", count(0).boxed()),
            must(
                "triggers",
                word(&["contraction", "rank", "selfvar"])
                    .prop_map(|of| json!([of]))
                    .boxed(),
            ),
        ],
        Kind::SgdCheckpointSelected => vec![
            must("best", count(0).boxed()),
            must("prompt_digest", hex().boxed()),
            must("run", id().boxed()),
            must("val_loss", real()),
        ],
        Kind::SgdTestRead => vec![
            must("base", sgd_loss()),
            must("chosen", sgd_loss()),
            must("prompt_digest", hex().boxed()),
            must("run", id().boxed()),
        ],
        Kind::SgdStopped => vec![
            must("reason", word(&["completed", "person"]).boxed()),
            must("run", id().boxed()),
            must("steps", count(0).boxed()),
        ],
        Kind::WfRunStarted => vec![
            must("build", free_text().boxed()),
            must(
                "cell",
                Just(json!({"edits": "prompt", "executor": "weak", "optimizer": "strong", "outer": false})).boxed(),
            ),
            must("context", free_text().boxed()),
            must("context_digest", hex().boxed()),
            must("executor", word(&["endpoint", "simulator", "table"]).boxed()),
            must("executor_model", free_text().boxed()),
            must("inputs", blob().boxed()),
            must(
                "items",
                (id(), hex())
                    .prop_map(|(id, input)| json!([{"id": id, "input": input}]))
                    .boxed(),
            ),
            must("meta", free_text().boxed()),
            must("meta_digest", hex().boxed()),
            must("optimizer", word(&["endpoint", "templates"]).boxed()),
            must("optimizer_key", hex().boxed()),
            must("optimizer_model", free_text().boxed()),
            must("part", word(&["deploy", "train", "validate"]).boxed()),
            must("program", free_text().boxed()),
            must("program_digest", hex().boxed()),
            must("run", id().boxed()),
            must("seed", hex().boxed()),
            must("templates", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must(
                "terms",
                (count(0), micro(), locality())
                    .prop_map(|(of, weight, edits)| {
                        json!({
                            "beam": of, "budget": {"calls": of, "tokens": of, "usd_micro": of}, "edits": edits,
                            "iterations": of, "least_gain_micro": weight, "proposals": of, "reruns": of,
                            "stagnation": of, "theta_micro": weight,
                        })
                    })
                    .boxed(),
            ),
            must("truth", hex().boxed()),
            may("update", id().boxed()),
            must("verifier", free_text().boxed()),
            must("verifier_digest", hex().boxed()),
            must("verifier_key", hex().boxed()),
        ],
        Kind::WfCandidateAdded => vec![
            must("candidate", hex().boxed()),
            must("edit", free_text().boxed()),
            must("ir", free_text().boxed()),
            must("iteration", count(0).boxed()),
            must("locality", locality()),
            must("number", count(0).boxed()),
            must("operator", word(OPERATORS).boxed()),
            must("parent", hex().boxed()),
            must("patch", free_text().boxed()),
            must("run", id().boxed()),
        ],
        Kind::WfEditRejected => vec![
            must("detail", free_text().boxed()),
            must("edit", free_text().boxed()),
            must("iteration", count(0).boxed()),
            must("number", count(0).boxed()),
            must("operator", word(OPERATORS).boxed()),
            must("parent", hex().boxed()),
            must("reason", word(&["invalid", "known", "over_budget"]).boxed()),
            must("run", id().boxed()),
        ],
        Kind::WfCalled => vec![
            may("answer", hex().boxed()),
            may("ask", hex().boxed()),
            must("attempt", count(0).boxed()),
            must("candidate", hex().boxed()),
            may("error", word(&["failed", "timeout"]).boxed()),
            must("item", count(0).boxed()),
            must("ms", count(0).boxed()),
            must("number", count(0).boxed()),
            must("request", hex().boxed()),
            must("rerun", count(0).boxed()),
            must("run", id().boxed()),
            must("step", free_text().boxed()),
            must("tokens_in", count(0).boxed()),
            must("tokens_out", count(0).boxed()),
            must("usd_micro", count(0).boxed()),
        ],
        Kind::WfExecuted => vec![
            may("answers", blob().boxed()),
            must("candidate", hex().boxed()),
            must("cost", usage()),
            may("crash", word(&["bound", "parse", "type"]).boxed()),
            must("item", count(0).boxed()),
            may("output", hex().boxed()),
            must("rerun", count(0).boxed()),
            must("run", id().boxed()),
            must("trace", free_text().boxed()),
            must("trace_digest", hex().boxed()),
        ],
        Kind::WfFeedbackGiven => vec![
            must(
                "blame",
                (free_text(), micro())
                    .prop_map(|(of, sure)| {
                        json!([{"confidence_micro": sure, "kind": "io", "operator": "rewire_io", "rule": of, "step": of}])
                    })
                    .boxed(),
            ),
            must("candidate", hex().boxed()),
            must("crashed", count(0).boxed()),
            must("critic", vec(micro(), 0..3).prop_map(Value::from).boxed()),
            must("evidence", hex().boxed()),
            must("feedback_digest", hex().boxed()),
            must(
                "flags",
                (free_text(), micro(), any::<bool>())
                    .prop_map(|(of, weight, ok)| {
                        json!([{"hard": ok, "id": of, "kept": of, "ok": ok, "weight_micro": weight}])
                    })
                    .boxed(),
            ),
            must(
                "observations",
                (free_text(), hex())
                    .prop_map(|(of, detail)| json!([{"code": "crash", "detail": detail, "step": of}]))
                    .boxed(),
            ),
            must(
                "parts",
                micro()
                    .prop_map(|of| {
                        json!({"cost_micro": of, "critic_micro": of, "satisfied_micro": of, "stability_micro": of})
                    })
                    .boxed(),
            ),
            must("run", id().boxed()),
            may(
                "suggestion",
                free_text()
                    .prop_map(|of| json!({"operator": "split_step", "rationale": of, "rule": of, "step": of}))
                    .boxed(),
            ),
            must("verifier_digest", hex().boxed()),
        ],
        Kind::WfScored => vec![
            must("candidate", hex().boxed()),
            must("feedback_digest", hex().boxed()),
            must("passes", any::<bool>().prop_map(Value::from).boxed()),
            must("run", id().boxed()),
            may("score_micro", micro().boxed()),
        ],
        Kind::WfPruned => vec![
            must("dropped", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must("iteration", count(0).boxed()),
            must("kept", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must("run", id().boxed()),
        ],
        Kind::WfIterationClosed => vec![
            must("added", count(0).boxed()),
            may("best_micro", micro().boxed()),
            must("iteration", count(0).boxed()),
            must(
                "left",
                count(0)
                    .prop_map(|of| json!({"calls": of, "tokens": of, "usd_micro": of}))
                    .boxed(),
            ),
            must("locality", locality()),
            must("rejected", count(0).boxed()),
            must("run", id().boxed()),
        ],
        Kind::WfStopped => vec![
            must("candidates", count(0).boxed()),
            must("iterations", count(0).boxed()),
            must("passed", any::<bool>().prop_map(Value::from).boxed()),
            must("reason", word(&["budget", "crash_out", "pass", "person", "stagnation"]).boxed()),
            must("run", id().boxed()),
            must("spent", usage()),
            may("winner", hex().boxed()),
        ],
        Kind::EditPairRecorded => vec![
            must("control", arm()),
            must("draw", count(0).boxed()),
            must("eligible", vec(free_text(), 0..3).prop_map(Value::from).boxed()),
            must("number", count(0).boxed()),
            must("operator", word(OPERATORS).boxed()),
            must("parent", hex().boxed()),
            must("propensity_micro", micro().boxed()),
            must("run", id().boxed()),
            must("targeted", arm()),
        ],
        Kind::UtilityRecorded => vec![
            must("candidate", hex().boxed()),
            must("run", id().boxed()),
            must("salt", hex().boxed()),
            must("scorer", free_text().boxed()),
            must("truth", blob().boxed()),
            must("utilities_micro", vec(micro(), 0..3).prop_map(Value::from).boxed()),
        ],
        Kind::MetaTriggered => vec![
            must("cases", meta_cases()),
            must("class", word(&["false_negative", "false_positive", "slow", "stagnation"]).boxed()),
            must("looked", count(0).boxed()),
            must("trigger", id().boxed()),
            must("useful_micro", micro().boxed()),
        ],
        Kind::MetaUpdated => vec![
            must("alpha_micro", micro().boxed()),
            must("document", free_text().boxed()),
            must("margin_micro", micro().boxed()),
            must("new_digest", hex().boxed()),
            must(
                "pairs",
                (id(), id())
                    .prop_map(|(new, old)| json!([{"new": new, "old": old}]))
                    .boxed(),
            ),
            must("parent_digest", hex().boxed()),
            must("target", word(&["library", "meta", "program", "verifier"]).boxed()),
            must("triggers", vec(id(), 0..3).prop_map(Value::from).boxed()),
            must("update", id().boxed()),
            must("useful_micro", micro().boxed()),
            must("why", free_text().boxed()),
        ],
        Kind::MetaValidated => vec![
            must("gamma", meta_gate()),
            must("kappa", meta_gate()),
            must("success", meta_gate()),
            must("update", id().boxed()),
            must("verdict", word(&["fail", "pass"]).boxed()),
        ],
        Kind::MetaPlanned => vec![
            must("alpha_micro", micro().boxed()),
            must("claims", meta_claim().prop_map(|claim| json!([claim, claim, claim])).boxed()),
            must("plan", id().boxed()),
            must("tasks", count(0).boxed()),
            must("update", id().boxed()),
            must("useful_micro", micro().boxed()),
        ],
        Kind::MetaConcluded => vec![
            must(
                "claims",
                (meta_claim(), meta_gate(), any::<bool>(), real())
                    .prop_map(|(claim, gate, holds, log)| {
                        let one = json!({"claim": claim, "gate": gate, "holds": holds, "log_closed": log});
                        json!([one, one, one])
                    })
                    .boxed(),
            ),
            must("plan", id().boxed()),
        ],
        Kind::LibTemplateAdded => vec![
            must("applies_to", free_text().boxed()),
            must("distilled_from", meta_cases()),
            must("ir", free_text().boxed()),
            must("template_digest", hex().boxed()),
            must("update", id().boxed()),
        ],
        Kind::BudgetReserved => vec![
            must("account", id().boxed()),
            must("amount", count(1).boxed()),
            must("asks", count(0).boxed()),
            must("hold", free_text().boxed()),
            must("run", id().boxed()),
        ],
        Kind::BudgetSettled => vec![
            must("amount", count(0).boxed()),
            must("hold", free_text().boxed()),
            must("overrun", any::<bool>().prop_map(Value::from).boxed()),
            must("run", id().boxed()),
            must("unknown", count(0).boxed()),
        ],
        Kind::CallRecorded => vec![
            must("ask", hex().boxed()),
            must(
                "attempts",
                count(0)
                    .prop_map(|ms| json!([{"class": "ok", "ms": ms, "status": 200}]))
                    .boxed(),
            ),
            must("bound_usd_micro", count(0).boxed()),
            must("cost_usd_micro", count(0).boxed()),
            may("detail", free_text().boxed()),
            must("epoch", count(0).boxed()),
            may("fingerprint", free_text().boxed()),
            may("hold", free_text().boxed()),
            must("judge", id().boxed()),
            may("model_returned", free_text().boxed()),
            must("nth", count(0).boxed()),
            must("outcome", word(&["answered", "unparsed"]).boxed()),
            may("provider_request", free_text().boxed()),
            may("response", private().boxed()),
            must("run", id().boxed()),
            may("score_micro", micro().boxed()),
            must("texts", texts().boxed()),
            may(
                "tokens",
                count(0)
                    .prop_map(|of| json!({"cache_read": of, "cache_write": of, "input": of, "output": of, "reasoning": of}))
                    .boxed(),
            ),
            must("usage", word(&["absent", "ok", "suspect"]).boxed()),
        ],
        Kind::ModelCallRecorded => vec![
            must("ask", hex().boxed()),
            must(
                "attempts",
                count(0)
                    .prop_map(|ms| json!([{"class": "ok", "ms": ms, "status": 200}]))
                    .boxed(),
            ),
            must("bound_usd_micro", count(0).boxed()),
            must("build", free_text().boxed()),
            must("cost_usd_micro", count(0).boxed()),
            may("detail", free_text().boxed()),
            may("fingerprint", free_text().boxed()),
            may("hold", free_text().boxed()),
            may("model_returned", free_text().boxed()),
            must("nth", count(0).boxed()),
            must("outcome", word(&["answered", "refused"]).boxed()),
            must("place", count(0).boxed()),
            may("provider_request", free_text().boxed()),
            must("purpose", word(&["propose"]).boxed()),
            may("response", blob().boxed()),
            must("run", id().boxed()),
            must("shown", hex().boxed()),
            may("text", blob().boxed()),
            may(
                "tokens",
                count(0)
                    .prop_map(|of| json!({"cache_read": of, "cache_write": of, "input": of, "output": of, "reasoning": of}))
                    .boxed(),
            ),
            must("usage", word(&["absent", "ok", "suspect"]).boxed()),
        ],
        Kind::NoiseMeasured => vec![
            must("figures", noise_figures().boxed()),
            must("judge", id().boxed()),
            must("pooled", noise_figures().boxed()),
            must("run", id().boxed()),
            may("sd_max_micro", count(0).boxed()),
            must("verdict", word(&["pass", "fail", "inconclusive", "not_checked"]).boxed()),
        ],
        Kind::ScoreMissed => vec![
            must("call", call_of().boxed()),
            must("draw", count(0).boxed()),
            must("item", id().boxed()),
            must("judge", id().boxed()),
            must("nth", count(0).boxed()),
            must("policy", id().boxed()),
            must("reason", word(&["exhausted", "refused"]).boxed()),
        ],
        Kind::BudgetCharged => vec![
            must("account", id().boxed()),
            must("amount", count(1).boxed()),
            must("for", free_text().boxed()),
        ],
        Kind::ExperimentRegistered => vec![
            may("judges", vec(id(), 0..4).prop_map(Value::from).boxed()),
            may("policies", vec(id(), 0..4).prop_map(Value::from).boxed()),
            must("purpose", free_text().boxed()),
            must("title", free_text().boxed()),
        ],
        Kind::ExperimentClosed => vec![
            must("outcome", word(&["completed", "aborted"]).boxed()),
            must("reason", free_text().boxed()),
        ],
        _ => data_fields(kind),
    }
}

fn data_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    match kind {
        Kind::ScoreRecorded => vec![
            may("call", call_of().boxed()),
            must("draw", count(0).boxed()),
            must("item", id().boxed()),
            must("judge", id().boxed()),
            must("policy", id().boxed()),
            may("prompt", private().boxed()),
            may("response", private().boxed()),
            must("score_micro", micro().boxed()),
        ],
        Kind::JudgeRegistered => vec![
            may(
                "asked",
                (id(), free_text(), blob(), hex())
                    .prop_map(|(endpoint, pin, plan, digest)| {
                        json!({"endpoint": endpoint, "pin": pin, "plan": plan, "plan_digest": digest})
                    })
                    .boxed(),
            ),
            must(
                "decoding",
                micro()
                    .prop_map(|value| json!({"temperature_micro": value}))
                    .boxed(),
            ),
            must("evidence_schema", free_text().boxed()),
            must("extractor", free_text().boxed()),
            must("judge", id().boxed()),
            may("known", blob().boxed()),
            must("model", free_text().boxed()),
            may("of", id().boxed()),
            must("port", word(&["builtin", "command", "recorded"]).boxed()),
            may("prompt", blob().boxed()),
            must("prompt_hash", hex().boxed()),
            must("tool_snapshot", hex().boxed()),
        ],
        Kind::EvidenceRecorded => vec![
            must("judge", id().boxed()),
            must("records", blob().boxed()),
            must("records_count", count(0).boxed()),
            must("records_root", base64(32).boxed()),
        ],
        Kind::ScoreReplayed => vec![
            must("judge", id().boxed()),
            must("keys", count(0).boxed()),
            must("keys_root", base64(32).boxed()),
            must("mismatches", count(0).boxed()),
            must("seed", count(0).boxed()),
        ],
        Kind::LabelRecorded => vec![
            must("design", id().boxed()),
            must("draw", count(0).boxed()),
            must("item", id().boxed()),
            must("policy", id().boxed()),
            must("purpose", word(&["calibrate", "audit"]).boxed()),
            must("rater", id().boxed()),
            must("value_micro", micro().boxed()),
        ],
        Kind::LabelSealed => vec![
            must("commitment", hex().boxed()),
            must("design", id().boxed()),
            must("envelope", base64(300).boxed()),
            must("recipient", recipient().boxed()),
            must("reveal_by", time().boxed()),
            must("row", id().boxed()),
        ],
        Kind::SealAccepted => vec![
            must("design", id().boxed()),
            must("envelope_sha256", hex().boxed()),
            must("row", id().boxed()),
        ],
        Kind::LabelRevealed => vec![
            must("charge", hex().boxed()),
            must("design", id().boxed()),
            must("row", id().boxed()),
            must("salt", base64(32).boxed()),
            must("value_micro", micro().boxed()),
        ],
        Kind::DataRead => vec![
            must("class", id().boxed()),
            must("outcome", word(&["allowed", "denied"]).boxed()),
            must("purpose", free_text().boxed()),
            must("reader", hex().boxed()),
            may("role", word(&["auditor", "labeler", "optimizer"]).boxed()),
            may("rows_root", base64(32).boxed()),
        ],
        Kind::ReviewRecorded => vec![
            must("findings", free_text().boxed()),
            must("from_seq", count(0).boxed()),
            must("outcome", word(&["accepted", "disputed", "noted"]).boxed()),
            may("patch", id().boxed()),
            must("through_seq", count(0).boxed()),
        ],
        Kind::AuditAttested => vec![
            must("root", base64(32).boxed()),
            must("size", count(0).boxed()),
            must("statement", free_text().boxed()),
            must(
                "verdict",
                word(&["pass", "fail", "inconclusive", "not_checked"]).boxed(),
            ),
        ],
        Kind::NoteRecorded => vec![
            may("blob", blob().boxed()),
            must("text", free_text().boxed()),
        ],
        Kind::QualificationRecorded => vec![
            must("build", free_text().boxed()),
            must(
                "files",
                vec(qualified_file(), 0..3).prop_map(Value::from).boxed(),
            ),
            must("platform", free_text().boxed()),
            must(
                "verdict",
                word(&["pass", "fail", "inconclusive", "not_checked"]).boxed(),
            ),
        ],
        other => intake_fields(other),
    }
}

/// A manifest with some of its sections and numbers changed.
fn manifest() -> BoxedStrategy<Value> {
    let gate = planned::gate("exp-1", "m-1");
    let audits = planned::audits("exp-1", "m-1");
    let sections = vec(any::<bool>(), 8);
    (
        select(vec![gate, audits]),
        sections,
        id(),
        micro(),
        count(1),
        (free_text(), blob(), hex()),
    )
        .prop_map(
            |(mut value, keep, name, micro, version, (text, blob, hex))| {
                let optional = [
                    "arms",
                    "data",
                    "estimand",
                    "metric",
                    "multiplicity",
                    "test",
                    "transport",
                ];
                for (section, keep) in optional.iter().zip(&keep) {
                    if !keep {
                        value.as_object_mut().unwrap().remove(*section);
                    }
                }
                if keep[7] {
                    value["annex"] = blob;
                    value["parent_digest"] = hex.clone();
                    value["roles"] = json!({"registrar": hex});
                }
                for (section, field) in [("test", "null_margin_micro"), ("transport", "bias_micro")]
                {
                    if let Some(section) = value.get_mut(section) {
                        section[field] = micro.clone();
                    }
                }
                value["manifest"] = name;
                value["version"] = version;
                value["title"] = text;
                value
            },
        )
        .boxed()
}

fn plan_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    match kind {
        Kind::FamilyOpened => vec![
            must("alpha_micro", micro().boxed()),
            must("family", id().boxed()),
            may(
                "gamma_micro",
                vec(micro(), 0..4).prop_map(Value::from).boxed(),
            ),
            may("members", vec(id(), 0..4).prop_map(Value::from).boxed()),
            must("members_max", count(0).boxed()),
            must("membership", free_text().boxed()),
            must(
                "method",
                word(&["closed_ebh", "closed_mean", "ebh", "elond", "spend"]).boxed(),
            ),
        ],
        Kind::ManifestRegistered => vec![
            must("digest", hex().boxed()),
            must("h0_digest", hex().boxed()),
            must("manifest", manifest()),
        ],
        Kind::ManifestCountersigned => vec![must("digest", hex().boxed())],
        Kind::ManifestAmended => vec![
            must("class", count(0).boxed()),
            must("digest", hex().boxed()),
            must("h0_digest", hex().boxed()),
            must("manifest", manifest()),
            must("parent_digest", hex().boxed()),
            must("reason", free_text().boxed()),
        ],
        Kind::ManifestDeviated => vec![
            must("digest", hex().boxed()),
            must("impact", free_text().boxed()),
            must("known_at_seq", count(0).boxed()),
            must("outcome_seen", any::<bool>().prop_map(Value::from).boxed()),
            must("rule_path", free_text().boxed()),
            must("what", free_text().boxed()),
            must("why", free_text().boxed()),
        ],
        Kind::PlanSealed => vec![
            must("commitment", hex().boxed()),
            must("manifest", id().boxed()),
            must("reveal_by", time().boxed()),
        ],
        Kind::PlanRevealed => vec![
            must("manifest", id().boxed()),
            must("plan", blob().boxed()),
            must("salt", base64(32).boxed()),
        ],
        Kind::ExposureOpened => vec![
            must("confirm_root", base64(32).boxed()),
            must("digest", hex().boxed()),
            must("exposure", count(0).boxed()),
            must("first_unit", count(0).boxed()),
            must("last_unit", count(0).boxed()),
        ],
        other => trust_fields(other),
    }
}

/// Kinds of the assumptions ledger.
fn trust_fields(kind: Kind) -> Fields {
    use clover::event::payload::assumption::Assumption;
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    let real = || (-1e9..1e9_f64).prop_map(Value::from).boxed();
    match kind {
        Kind::SdpVersionRegistered => vec![
            must("document", hex().boxed()),
            must("effective_at", time().boxed()),
            must("sdp_version", id().boxed()),
            must("target", word(&["Y", "Y_star"]).boxed()),
        ],
        Kind::BridgeAssessed => vec![
            may("ci_hi", real()),
            may("ci_lo", real()),
            must("document", hex().boxed()),
            may("estimate", real()),
            must("expires_at", time().boxed()),
            must(
                "kind",
                word(&["attestation", "construct", "pte", "stability"]).boxed(),
            ),
            must("sdp_version", id().boxed()),
            must(
                "status",
                word(&["fail", "inconclusive", "pass", "warn"]).boxed(),
            ),
        ],
        Kind::AssumptionWaived => vec![
            must(
                "code",
                select(&Assumption::ALL)
                    .prop_map(|code| Value::from(code.as_str()))
                    .boxed(),
            ),
            must("expires_at", time().boxed()),
            must("reason", free_text().boxed()),
        ],
        Kind::AssumptionCountersigned => vec![must("waiver", hex().boxed())],
        other => valued_fields(other),
    }
}

/// An event of the estimates with some of its numbers, texts and optional members changed.
fn valued_fields(kind: Kind) -> Fields {
    let of = |data: Value| -> Fields {
        let Value::Object(members) = data else {
            unreachable!("data is an object");
        };
        let members = members.into_iter();
        members
            .map(|(name, value)| {
                let name: &'static str = name.leak();
                (name, varied(value), !OPTIONAL.contains(&name))
            })
            .collect()
    };
    match kind {
        Kind::CalibratorFitted => of(valued::fitted(5, 2)),
        Kind::EstimateRecorded => of(valued::estimate(5, Some(("fail", 9)))),
        Kind::ContrastRecorded => of(valued::contrast(5)),
        Kind::OuaEstimated => of(valued::oua(5)),
        Kind::CoverageChecked => of(valued::coverage(5)),
        Kind::TransportTested => of(valued::tested(5, "probes", "fail")),
        Kind::EnvironmentsTested => {
            let found = [("law", "fail"), ("medicine", "pass")];
            let of_plan = ("probes", &valued::digest(9));
            of(valued::environments(5, of_plan, "domain", &found))
        }
        Kind::RegimeSelected => {
            let scope = valued::scope("domain", "law");
            of(valued::regime("2", &scope, 9, Some(5)))
        }
        Kind::PlanRecorded => of(valued::planned()),
        Kind::LogprobsChecked => of(valued::checked()),
        Kind::JudgeDriftChecked => {
            let said = drifted::written("judge-1", "anchors-1", true);
            let said = said.as_object().unwrap().clone().into_iter();
            said.map(|(name, value)| (&*name.leak(), Just(value).boxed(), true))
                .collect()
        }
        Kind::JudgeCompared => of(valued::judges_compared()),
        Kind::OpeDiagnosed => of(valued::diagnosed()),
        Kind::OpeEstimated => of(valued::weighted(5)),
        other => rubric_fields(other),
    }
}

fn leaf_value() -> BoxedStrategy<Value> {
    prop_oneof![
        count(0).prop_map(|value| json!({"count": value})),
        any::<bool>().prop_map(|value| json!({"flag": value})),
        vec("[a-z.]{0,9}", 0..3).prop_map(|value| json!({"list": value})),
        micro().prop_map(|value| json!({"share_micro": value})),
        free_text().prop_map(|value| json!({"text": value})),
    ]
    .boxed()
}

fn changes() -> BoxedStrategy<Value> {
    let change = ("[a-z._]{1,20}", leaf_value(), word(&["append", "set"]))
        .prop_map(|(path, value, op)| json!({"op": op, "path": path, "value": value}));
    vec(change, 0..3).prop_map(Value::from).boxed()
}

fn length() -> BoxedStrategy<Value> {
    (count(0), count(0), count(0), count(0), count(0), count(0))
        .prop_map(|(a, b, c, d, e, f)| {
            json!({
                "abstention_edits": a, "kappa": b, "new_fields": c, "new_guards": d, "tokens_added": e,
                "tokens_removed": f,
            })
        })
        .boxed()
}

fn anchor_rows() -> BoxedStrategy<Value> {
    (count(0), id(), base64(32))
        .prop_map(
            |(count, policy, root)| json!({"count": count, "policy": policy, "rows_root": root}),
        )
        .boxed()
}

/// The parameters of an iteration, with and without what it runs on.
fn params() -> BoxedStrategy<Value> {
    let plan = iterated::plan("exp-1", "m-1")["iteration"].clone();
    (any::<bool>(), micro(), count(0), id(), free_text())
        .prop_map(move |(keep, micro, count, id, text)| {
            let mut plan = plan.clone();
            plan["eta_micro"] = micro.clone();
            if keep {
                let design = &mut plan["design"];
                design["dev_calls_max"] = count;
                design["anchors"] = id.clone();
                design["topics"] = json!([text]);
                design["slices"][0]["cells"][0]["slice"] = id;
                design["slices"][0]["cells"][0]["stakes_micro"] = micro;
            } else {
                plan.as_object_mut().unwrap().remove("design");
            }
            plan
        })
        .boxed()
}

fn rubric_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    let source = || "[ -~\n\u{e9}]{0,200}".prop_map(Value::from).boxed();
    match kind {
        Kind::RubricRegistered => {
            let leaf = ("[a-z._]{1,20}", leaf_value())
                .prop_map(|(path, value)| json!({"path": path, "value": value}));
            vec![
                must("leaves", vec(leaf, 0..3).prop_map(Value::from).boxed()),
                must("rubric_hash", hex().boxed()),
                must("version", word(&["1.0", "2.11"]).boxed()),
                must("yaml", source()),
            ]
        }
        Kind::AnchorSetRegistered => vec![
            must("anchors", id().boxed()),
            must("high", anchor_rows()),
            must("low", anchor_rows()),
        ],
        Kind::IterationOpened => vec![
            must("digest", hex().boxed()),
            must("iteration", id().boxed()),
            must("params", params()),
            must("params_hash", hex().boxed()),
            must("quarter", word(&["2026Q4"]).boxed()),
            must("rubric_hash", hex().boxed()),
        ],
        Kind::IterationClosed => vec![
            must("iteration", id().boxed()),
            must(
                "outcome",
                word(&["accepted", "no_candidate", "stopped"]).boxed(),
            ),
            must("reason", free_text().boxed()),
        ],
        Kind::PatchProposed => vec![
            must("author_kind", word(&["human", "llm"]).boxed()),
            must("diff", changes()),
            must("family", id().boxed()),
            must("inputs", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must("iteration", id().boxed()),
            must("length", length()),
            may("model", free_text().boxed()),
            must("patch", id().boxed()),
            must("patch_hash", hex().boxed()),
            may("prompt_digest", hex().boxed()),
            must("result_hash", hex().boxed()),
            may("run", id().boxed()),
            must("yaml", source()),
        ],
        Kind::PatchRejected => vec![
            must("code", free_text().boxed()),
            must("gate_refs", vec(hex(), 0..3).prop_map(Value::from).boxed()),
            must("iteration", id().boxed()),
            may("patch", id().boxed()),
            must(
                "stage",
                word(&["confirm", "dev", "schema", "selection"]).boxed(),
            ),
            must("yaml_sha256", hex().boxed()),
        ],
        Kind::PatchWithdrawn => vec![
            must("iteration", id().boxed()),
            must("patch", id().boxed()),
            must("reason", free_text().boxed()),
        ],
        other => gate_fields(other),
    }
}

fn real() -> BoxedStrategy<Value> {
    (-1e9..1e9_f64).prop_map(Value::from).boxed()
}

/// An object of some of these fields, each a real number.
fn sgd_terms() -> BoxedStrategy<Value> {
    (count(0), micro(), any::<bool>())
        .prop_map(|(of, weight, reverts)| {
            json!({
                "alpha_micro": weight, "batch": of, "beta_micro": weight, "distance": "huber", "eta_micro": weight,
                "extra": of, "gamma_micro": weight, "lr_max_micro": weight, "lr_min_micro": weight,
                "ranking": "hinge", "repeats": of, "reverts": reverts, "steps": of, "target": "median",
                "tau_micro": weight, "warmup": of, "zeta_micro": weight,
            })
        })
        .boxed()
}

fn sgd_loss() -> BoxedStrategy<Value> {
    (count(0), real(), any::<bool>())
        .prop_map(|(pairs, of, is_whole)| {
            let mut loss = json!({
                "abs": of, "contraction": of, "entropy": of, "failures": of, "loss": of, "pairs": pairs,
                "selfvar": of,
            });
            if is_whole {
                for field in ["concordance", "rank", "sd_ratio", "spearman", "tau_b"] {
                    loss[field] = of.clone();
                }
            }
            loss
        })
        .boxed()
}

/// Operators of edits.
const OPERATORS: &[&str] = &["edit_prompt", "insert_check", "split_step"];

fn locality() -> BoxedStrategy<Value> {
    count(0)
        .prop_map(|of| json!({"ast_nodes": of, "new_llm_calls": of, "prompt_chars": of, "steps_touched": of}))
        .boxed()
}

fn usage() -> BoxedStrategy<Value> {
    count(0)
        .prop_map(
            |of| json!({"calls": of, "ms": of, "tokens_in": of, "tokens_out": of, "usd_micro": of}),
        )
        .boxed()
}

fn arm() -> BoxedStrategy<Value> {
    (free_text(), hex(), locality())
        .prop_map(|(of, candidate, locality)| {
            json!({"candidate": candidate, "edit": of, "ir": of, "locality": locality, "patch": of, "step": of})
        })
        .boxed()
}

fn meta_cases() -> BoxedStrategy<Value> {
    (hex(), id())
        .prop_map(|(candidate, run)| json!([{"candidate": candidate, "run": run}]))
        .boxed()
}

fn meta_claim() -> BoxedStrategy<Value> {
    word(&["outer_gamma", "outer_kappa", "structure_kappa"]).boxed()
}

fn meta_gate() -> BoxedStrategy<Value> {
    (count(0), real(), any::<bool>())
        .prop_map(|(pairs, wealth, reached)| json!({"log_wealth": wealth, "pairs": pairs, "reached": reached}))
        .boxed()
}

fn wealth() -> BoxedStrategy<Value> {
    let names = select(vec!["claim", "futile", "kill", "second"]);
    let map = proptest::collection::btree_map(names, real(), 0..4);
    map.prop_map(|map| json!(map)).boxed()
}

fn bettor() -> Value {
    planned::gate("exp-1", "m-1")["test"]["bettor"].clone()
}

fn gate_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    let ids = || vec(id(), 0..4).prop_map(Value::from).boxed();
    let prediction = (micro(), id(), count(0)).prop_map(|(predicted, stratum, units)| {
        json!({"predicted_micro": predicted, "stratum": stratum, "units": units})
    });
    let test = option::of(vec(prediction, 0..3)).prop_map(|strata| {
        let mut test = planned::gate("exp-1", "m-1")["test"].clone();
        if let Some(strata) = strata {
            test["control_variate"] = strata.into();
        }
        test
    });
    let test = test.boxed();
    match kind {
        Kind::UnitsListed => vec![
            must("confirm_root", base64(32).boxed()),
            must("first", count(0).boxed()),
            may("strata", ids()),
            must("units", ids()),
        ],
        Kind::OrderListed => vec![
            must("digest", hex().boxed()),
            must("first", count(0).boxed()),
            must("units", ids()),
        ],
        Kind::OrderDrawn => vec![
            must(
                "beacon",
                (count(0), base64(32))
                    .prop_map(|(size, root)| json!({"root": root, "size": size}))
                    .boxed(),
            ),
            must("confirm_root", base64(32).boxed()),
            must("digest", hex().boxed()),
            must("n_units", count(0).boxed()),
            must("permutation_root", base64(32).boxed()),
            must("seed", hex().boxed()),
        ],
        Kind::GateOpened => vec![
            must("digest", hex().boxed()),
            must("gate", id().boxed()),
            must(
                "sources",
                (id(), id())
                    .prop_map(|(judge, metric)| json!([{"judge": judge, "metric": metric}]))
                    .boxed(),
            ),
            must("test", test),
        ],
        Kind::GateObserved => vec![
            must("digest", hex().boxed()),
            must("gate", id().boxed()),
            must(
                "readings",
                (micro(), micro(), count(0))
                    .prop_map(|(a, b, draw)| {
                        json!([{
                            "baseline": [a], "baseline_missing": [draw], "candidate": [b], "delta_micro": a,
                        }])
                    })
                    .boxed(),
            ),
            may("stratum", id().boxed()),
            must("t", count(0).boxed()),
            must("unit", id().boxed()),
        ],
        Kind::GateLooked => vec![
            must("alpha_micro", micro().boxed()),
            must("bettor", Just(bettor()).boxed()),
            must("cs_hi_micro", micro().boxed()),
            must("cs_lo_micro", micro().boxed()),
            must("digest", hex().boxed()),
            must("gate", id().boxed()),
            may(
                "guardrails",
                vec(real(), 0..3).prop_map(Value::from).boxed(),
            ),
            must("log_e", real()),
            must("log_wealth", wealth()),
            must("n", count(0).boxed()),
            must("p", (0.0..1.0_f64).prop_map(Value::from).boxed()),
            must("standing", word(&["continue", "different", "leading", "promote"]).boxed()),
            must("state_digest", hex().boxed()),
        ],
        other => claim_fields(other),
    }
}

fn claim_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    let ids = || vec(id(), 0..4).prop_map(Value::from).boxed();
    match kind {
        Kind::GateDecided => vec![
            must("class", word(&["asymptotic", "exact"]).boxed()),
            must("digest", hex().boxed()),
            must("gate", id().boxed()),
            must("log_e", real()),
            must("n", count(0).boxed()),
            must(
                "outcome",
                word(&["different", "futile", "promote", "void"]).boxed(),
            ),
        ],
        Kind::GateEstimated => vec![
            must("alpha_micro", micro().boxed()),
            must(
                "beacon",
                (count(0), base64(32))
                    .prop_map(|(size, root)| json!({"root": root, "size": size}))
                    .boxed(),
            ),
            must("class", word(&["asymptotic", "exact"]).boxed()),
            must("cs_hi_micro", micro().boxed()),
            must("cs_lo_micro", micro().boxed()),
            must("design", id().boxed()),
            must("digest", hex().boxed()),
            must("gate", id().boxed()),
            must("grade", word(&["asymptotic", "void"]).boxed()),
            must("labels", count(0).boxed()),
            must("n", count(0).boxed()),
            must("pi_micro", micro().boxed()),
            must("seed", hex().boxed()),
            must("shows", any::<bool>().prop_map(Value::from).boxed()),
        ],
        Kind::GateContinued => vec![
            must("carried", wealth()),
            must("gate", id().boxed()),
            must("h0_digest", hex().boxed()),
            must("parent", id().boxed()),
        ],
        Kind::FamilyClosed => vec![
            must("alpha_micro", micro().boxed()),
            must("evidence", named("member", "log_e", real())),
            must("family", id().boxed()),
            must("members_max", count(0).boxed()),
            must("method", word(&["closed_ebh", "ebh", "spend"]).boxed()),
            must("rejected", ids()),
        ],
        Kind::PromotionIssued => vec![
            must("candidate_digest", hex().boxed()),
            may("expires_at", time().boxed()),
            must("gates", ids()),
            must("grade", word(&["certified", "void"]).boxed()),
        ],
        Kind::PromotionRevoked => vec![
            must("promotion", hex().boxed()),
            must("reason", free_text().boxed()),
        ],
        other => decided_fields(other),
    }
}

/// An event of the decisions with its shares, counts and flags changed within their ranges.
fn decided_fields(kind: Kind) -> Fields {
    let plan = iterated::plan("exp-1", "m-1");
    let candidate = Digest([7; 32]);
    let gate = |id: &str| decided::gate(&plan, candidate, "dev", &decided::passing(id));
    let payload = match kind {
        Kind::LabelProcessAudited => decided::label_process(),
        Kind::PrenticeChecked => decided::prentice(),
        Kind::ResidualsAudited => decided::audited(),
        Kind::SlicesClassified => decided::classified(),
        Kind::BatteryEvaluated => {
            decided::battery(Some(Digest([1; 32])), Digest([2; 32]), &[20_000])
        }
        Kind::CardPublished => decided::card(),
        Kind::ScoresRecomputed => decided::recomputed(Digest([1; 32]), Digest([2; 32])),
        Kind::DevObjectiveQueried => decided::asked(Digest([1; 32]), KeyId(Digest([2; 32]))),
        Kind::ExploitDiscovered => decided::exploit(&"2".repeat(64)),
        Kind::IterationPausedForLabels => decided::paused(0.5),
        Kind::GateEvaluated => {
            let all = clover::event::payload::predicate::Criterion::ALL;
            let evidence = all.map(|id| within(decided::passing(id.as_str())));
            let mut fields = members(&gate("p1"));
            fields.retain(|(name, ..)| *name != "evidence");
            let evidence = proptest::strategy::Union::new(evidence).boxed();
            fields.push(("evidence", evidence, true));
            return fields;
        }
        Kind::CandidatesSealed => decided::sealed(&[candidate, Digest([8; 32])]),
        Kind::ConfirmLooked => decided::looked(),
        Kind::ConfirmUnsealed => decided::unsealed(&"0".repeat(64), &"1".repeat(64)),
        Kind::DeploymentActivated => deployed::activated(
            (&"2".repeat(64), "1.1"),
            &"3".repeat(64),
            Some(&"4".repeat(64)),
        ),
        Kind::RecalibrationCompleted => deployed::recalibrated(&"2".repeat(64), &"3".repeat(64)),
        Kind::GuardrailChecked => {
            deployed::checked(&plan, &"2".repeat(64), &deployed::good(), (3, 9))
        }
        Kind::DeploymentRolledBack => {
            let (id, hash) = ("2".repeat(64), "3".repeat(64));
            deployed::back(&id, Some(&id), Some((&id, &hash)))
        }
        Kind::GeneratorRunOpened => tuned::opened("tune-1", &"2".repeat(64), &"3".repeat(64)),
        Kind::GeneratorObjectiveQueried => tuned::asked("tune-1", 1),
        Kind::GeneratorValidated => tuned::validated(&plan, ("tune-1", "ab-1"), 1, 0.01),
        Kind::GeneratorRolledBack => tuned::back("tune-1", Some(&"2".repeat(64))),
        Kind::ApprovalGranted => released::granted("Petra Weiss", &"2".repeat(64)),
        Kind::ApprovalRefused => released::refused("Petra Weiss", &"2".repeat(64)),
        Kind::PromptCommitted => {
            let ids = ["2".repeat(64)];
            let (acceptance, parent) = ((ids[0].as_str(), 7), (ids[0].as_str(), "1.1"));
            released::committed(&released::patch(), acceptance, parent, &ids, &ids)
        }
        Kind::PatchAccepted => decided::accepted(&decided::patches()[0], 1, &["2".repeat(64)]),
        Kind::ReportPublished => decided::reported(decided::BUNDLE, 9),
        other => panic!("{other} has no fields here: give it a line"),
    };
    members(&payload)
}

fn members(payload: &Payload) -> Fields {
    let Ok(Value::Object(members)) = serde_json::to_value(payload) else {
        unreachable!("data is an object");
    };
    let members = members.into_iter();
    members
        .map(|(name, value)| {
            let name: &'static str = name.leak();
            (name, within(value), true)
        })
        .collect()
}

/// The value with other fractions from 0 to 1 and other flags.
fn within(value: Value) -> BoxedStrategy<Value> {
    match value {
        Value::Object(members) => {
            let mut all = Just(Map::new()).boxed();
            for (name, value) in members {
                all = (all, within(value))
                    .prop_map(move |(mut map, value)| {
                        map.insert(name.clone(), value);
                        map
                    })
                    .boxed();
            }
            all.prop_map(Value::Object).boxed()
        }
        Value::Array(items) => {
            let items: Vec<_> = items.into_iter().map(within).collect();
            items.prop_map(Value::Array).boxed()
        }
        Value::Number(number) if number.is_f64() => {
            prop_oneof![0.0..1.0_f64, Just(0.5), Just(1e-300)]
                .prop_map(Value::from)
                .boxed()
        }
        Value::Bool(_) => any::<bool>().prop_map(Value::from).boxed(),
        other => Just(other).boxed(),
    }
}

/// Members that may be absent.
const OPTIONAL: &[&str] = &[
    "answer",
    "better",
    "cle_factor",
    "conservative",
    "df",
    "df_method",
    "evaluation",
    "interval_clipped",
    "labels_only",
    "prices",
    "residuals",
    "slope_high",
    "transport",
    "template",
    "tokenizer",
    "ttc_by_total",
    "zero_null_p_adjusted",
];

/// The same value with other numbers: fractions stay fractions or become whole, counts stay counts.
fn varied(value: Value) -> BoxedStrategy<Value> {
    match value {
        Value::Object(members) => {
            let mut all = Just(Map::new()).boxed();
            for (name, value) in members {
                all = (all, varied(value))
                    .prop_map(move |(mut map, value)| {
                        map.insert(name.clone(), value);
                        map
                    })
                    .boxed();
            }
            all.prop_map(Value::Object).boxed()
        }
        Value::Number(number) if number.is_f64() => prop_oneof![
            -1e9..1e9_f64,
            Just(0.5),
            Just(1e-300),
            (-1_000..1_000_i32).prop_map(f64::from),
        ]
        .prop_map(Value::from)
        .boxed(),
        Value::Number(_) => count(0)
            .prop_map(|value| {
                // Amounts are bounded to a million millions.
                Value::from(value.as_u64().unwrap_or(0) % 1_000_000_000_000)
            })
            .boxed(),
        same => Just(same).boxed(),
    }
}

/// A list of objects with one name, in its order and each once.
fn named(
    name: &'static str,
    field: &'static str,
    value: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    let map = proptest::collection::btree_map("[a-z]{1,9}", value, 0..4);
    map.prop_map(move |map| {
        let items = map.into_iter();
        items
            .map(|(key, value)| json!({name: key, field: value}))
            .collect::<Vec<_>>()
            .into()
    })
    .boxed()
}

fn intake_fields(kind: Kind) -> Fields {
    let must = |name, strategy| (name, strategy, true);
    let may = |name, strategy| (name, strategy, false);
    let probability = || (1..=1_000_000_i64).prop_map(Value::from).boxed();
    let logprob = || (-1e9..0.0_f64).prop_map(Value::from).boxed();
    let part =
        || (count(0), base64(32)).prop_map(|(count, root)| json!({"count": count, "root": root}));
    let draw = || {
        vec![
            must("draw", count(0).boxed()),
            must("item", id().boxed()),
            must("policy", id().boxed()),
        ]
    };
    let mut fields = match kind {
        Kind::DataIngested => vec![
            must("format", word(&["cje", "csv"]).boxed()),
            must("labelled", count(0).boxed()),
            must("rounded", count(0).boxed()),
            must("rows", blob().boxed()),
            must("rows_in", count(0).boxed()),
            must("rows_out", count(0).boxed()),
            must("rows_root", base64(32).boxed()),
            may("sampled_from", time().boxed()),
            may("sampled_to", time().boxed()),
            must(
                "source",
                prop_oneof![
                    private().prop_map(|private| json!({"private": private})),
                    (blob(), recipient()).prop_map(
                        |(blob, recipient)| json!({"envelope": {"blob": blob, "recipient": recipient}})
                    ),
                ]
                .boxed(),
            ),
        ],
        Kind::LogprobRecorded => vec![
            must("base", logprob()),
            must("targets", named("policy", "logprob", logprob())),
        ],
        Kind::ScoreConflict => vec![
            must("judge", id().boxed()),
            must("recorded", hex().boxed()),
            must("recorded_micro", micro().boxed()),
            must("score_micro", micro().boxed()),
        ],
        Kind::LabelDesignRegistered => vec![
            must("design", id().boxed()),
            must("inclusion_micro", probability()),
            must("protocol", id().boxed()),
            must("purpose", word(&["audit", "calibrate", "confirm"]).boxed()),
            may("strata", named("stratum", "inclusion_micro", probability())),
        ],
        Kind::LabelScaleDeclared => vec![
            must("high_micro", micro().boxed()),
            must("low_micro", micro().boxed()),
        ],
        Kind::ScoreScaleDeclared => vec![
            must("high_micro", micro().boxed()),
            must("judge", id().boxed()),
            must("low_micro", micro().boxed()),
        ],
        Kind::SplitsListed => vec![
            may(
                "by",
                (count(0), word(&["hashed", "time"]))
                    .prop_map(|(seed, separation)| {
                        json!({"cluster_rule": "blake2b-mod3/1", "seed": seed, "separation": separation})
                    })
                    .boxed(),
            ),
            must("clusters", vec(id(), 0..4).prop_map(Value::from).boxed()),
            must("first", count(0).boxed()),
            must("part", word(&["confirm", "dev", "fit"]).boxed()),
            must("split", id().boxed()),
        ],
        Kind::SplitsFormed => vec![
            must("cluster_rule", word(&["blake2b-mod3/1"]).boxed()),
            must("confirm", part().boxed()),
            must("dev", part().boxed()),
            must("fit", part().boxed()),
            must("gap", word(&["pass", "not_checked"]).boxed()),
            may("gap_seconds", count(0).boxed()),
            must("seed", count(0).boxed()),
            must("separation", word(&["hashed", "time"]).boxed()),
            must("split", id().boxed()),
            may("t1", time().boxed()),
            may("t2", time().boxed()),
        ],
        other => plan_fields(other),
    };
    if matches!(kind, Kind::LogprobRecorded | Kind::ScoreConflict) {
        fields.extend(draw());
    }
    fields
}

/// The data of a kind, as its author may write it.
fn data(kind: Kind) -> BoxedStrategy<Value> {
    let mut all = Just(Map::new()).boxed();
    for (name, strategy, must) in fields(kind) {
        let value = if must {
            strategy.prop_map(Some).boxed()
        } else {
            option::of(strategy).boxed()
        };
        all = (all, value)
            .prop_map(move |(mut map, value)| {
                map.extend(value.map(|value| (name.to_owned(), value)));
                map
            })
            .boxed();
    }
    all.prop_map(Value::Object).boxed()
}

fn payload() -> impl Strategy<Value = (Kind, Value, Payload)> {
    select(Kind::ALL).prop_flat_map(|kind| {
        data(kind).prop_map(move |data| {
            let text = serde_json::to_string(&data).unwrap();
            let decoded = registry::decode(kind.as_str(), kind.version(), &text);
            let (payload, _) = decoded.unwrap_or_else(|error| panic!("{error}: {text}"));
            (kind, data, payload)
        })
    })
}

fn draft() -> impl Strategy<Value = (Kind, Value, Draft)> {
    let seen = (any::<[u8; 32]>(), 0..=INTEGER_MAX.unsigned_abs()).prop_map(|(root, size)| {
        SeenCheckpoint {
            root: Root(Digest(root)),
            size: Count::new(size).unwrap(),
        }
    });
    let experiment = option::of("[ -~\u{e9}]{1,40}");
    let refs = vec(any::<[u8; 32]>(), 0..4);
    let at = 0..253_402_300_800_000_000_i64;
    let origin = "[a-z0-9./\u{e9}\"]{1,40}";
    (
        payload(),
        (any::<[u8; 32]>(), 0..=INTEGER_MAX.unsigned_abs()),
        option::of(seen),
        experiment,
        refs,
        at,
        origin,
    )
        .prop_map(
            |((kind, data, payload), (author, author_seq), seen, experiment, refs, at, origin)| {
                let header = Header {
                    at: Timestamp::from_micros(at).unwrap(),
                    author: KeyId(Digest(author)),
                    author_seq,
                    experiment: experiment.map(|id| id.parse().unwrap()),
                    ledger: origin.into(),
                    refs: refs.into_iter().map(|id| EventId(Digest(id))).collect(),
                    seen,
                };
                (kind, data, Draft { header, payload })
            },
        )
}

/// The body as a plain JSON value: what any other program would build.
fn plain(kind: Kind, data: &Value, header: &Header) -> Value {
    json!({
        "at": header.at.to_string(),
        "author": header.author.to_string(),
        "author_seq": header.author_seq,
        "data": data,
        "experiment": header.experiment.as_ref().map(clover::event::id::ExperimentId::as_str),
        "kind": kind.as_str(),
        "ledger": header.ledger,
        "refs": header.refs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seen": header.seen.map(|seen| {
            json!({"root": seen.root.0.to_base64(), "size": seen.size.value()})
        }),
        "v": kind.version(),
    })
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_typed_body_is_the_canonical_form_of_its_plain_value((kind, data, draft) in draft()) {
        let body = draft.to_body().unwrap();
        let plain = plain(kind, &data, &draft.header);
        prop_assert_eq!(text(&body), text(&reference(&plain)));
        let decoded = header::decode(&body).unwrap();
        prop_assert_eq!(&decoded.header, &draft.header);
        prop_assert_eq!(decoded.v, kind.version());
        let payload = decoded.payload.unwrap();
        prop_assert_eq!(&payload, &draft.payload);
        let again = Draft { header: decoded.header, payload };
        prop_assert_eq!(again.to_body().unwrap(), body);
    }

    #[test]
    fn no_changed_byte_of_a_body_is_the_same_event(
        (_, _, draft) in draft(),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>(), 0..3_u8), 24),
    ) {
        let body = draft.to_body().unwrap();
        let id = EventId(Digest::sha256(&body));
        for (at, byte, how) in changes {
            let changed = changed(&body, at.index(body.len()), byte, how);
            if changed == body {
                continue;
            }
            if let Ok(decoded) = header::decode(&changed) {
                prop_assert_ne!(decoded.id, id);
                let same = decoded.header == draft.header
                    && decoded.payload.as_ref() == Ok(&draft.payload)
                    && decoded.v == draft.payload.kind().version();
                prop_assert!(!same, "{} says the same", String::from_utf8_lossy(&changed));
            }
            targets::event_body(&changed);
        }
    }
}

/// One byte flipped, removed or put in.
fn changed(bytes: &[u8], at: usize, byte: u8, how: u8) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match how {
        0 => out[at] ^= byte,
        1 => drop(out.remove(at)),
        _ => out.insert(at, byte),
    }
    out
}

/// Good bytes of every parser, to be changed.
struct Good {
    lines: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
    jsonl: Vec<u8>,
    note: Vec<u8>,
    proof: Vec<u8>,
    envelope: Vec<u8>,
    keys: Vec<Vec<u8>>,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let mut test = TestLedger::unnamed(clover::store::CreateOptions::default());
    full::every_kind(&mut test);
    let mut good = Good {
        lines: Vec::new(),
        bodies: Vec::new(),
        jsonl: Vec::new(),
        note: test.ledger.head_checkpoint().unwrap().encode(),
        proof: Vec::new(),
        envelope: Vec::new(),
        keys: Vec::new(),
    };
    test.ledger
        .entries(0, test.ledger.size(), |read| {
            let it = read.stored;
            let mut line = Vec::new();
            clover::event::entry::write_line(
                &mut line,
                it.seq,
                it.recorded_at,
                &it.body,
                &it.author,
                &it.signature,
            );
            good.jsonl.extend_from_slice(&line);
            good.jsonl.push(b'\n');
            good.lines.push(line);
            good.bodies.push(it.body);
            Ok::<_, clover::ledger::LedgerError>(())
        })
        .unwrap();
    let head = test.ledger.head_checkpoint().unwrap();
    good.proof = test.ledger.prove(5, head).unwrap().encode();
    let identity = clover::ground::seal::Identity::from_bytes(&[5; 32]);
    let mut entropy = clover::ground::ambient::SeededEntropy::new([3; 32]);
    let sealed = clover::ground::seal::encrypt(&[7; 40], &[identity.recipient()], &mut entropy);
    good.envelope = sealed.unwrap();
    let key = crate::support::signer(9);
    for passphrase in [None, Some("pass")] {
        let file = clover::ground::keyfile::write_private(key.key(), passphrase, &mut entropy);
        good.keys.push(file.unwrap().as_bytes().to_vec());
    }
    let public = clover::ground::keyfile::write_public(&key.public_bytes());
    good.keys.push(public.into_bytes());
    good
});

/// A call on a cassette.
const CASSETTE: &str = concat!(
    r#"{"ask":{"decoding":{"max_output_tokens":600,"seed":7,"temperature_micro":0},"endpoint":"openai-main","format":{"form":"answer/1","kind":"json","levels":[1,2,3,4,5],"reasoning":"before"},"messages":[{"role":"system","text":"Judge."},{"role":"user","text":"Hi"}],"model":"m-1","pin":"m-1-2026-01-15","repeat":0,"series":"score","v":"ask/1"},"attempts":[{"class":"limited","ms":2,"status":429},{"class":"ok","ms":9,"status":200}],"body":"{\"id\":7}","key":"7f5786eafc02f8b7f89503d8132634ed9b8396be5238369b20fbebe73c350327","nth":0,"place":3,"provider_request":"req_9","salt":"0707070707070707070707070707070707070707070707070707070707070707"}"#,
    "\n"
);

/// Responses in every form that is read.
const RESPONSES: &str = concat!(
    r#"{"prompt_id":"a","judge_score":0.85,"oracle_label":null,"response":"two words"}"#,
    "\n\n",
    r#"{"prompt_id":17,"judge_score":1,"oracle_label":0.6,"response_length":14,"draw_idx":3}"#,
    "\r\n",
    r#"{"prompt":"Why?","response":"\u00e9 so","metadata":{"judge_score":-2.5e-3},"target_policy":"b"}"#,
    "\n",
);

/// A chain, a prompt and a response with something of whatever operators and extraction look for.
const PROSE: &str = "\x02abc\x1bMay I take 20 mg of ibuprofen, see https://nih.gov/a?b=c\nIt isn’t safe above 1,200.5𝒢. \
    Maybe \u{200d}３０ ｇ is; I called `search(ibuprofen)`.\n- **Low** doses are not risky [1] (www.nih.gov/x). 水は安全です。";

/// A workflow with something of every step.
const FLOW: &str = r#"{"ir":"wf/1","inputs":["x","c"],"defaults":{"temperature":0.5,"seed":3},"steps":[
{"id":"d","kind":"llm","prompt":{"user":"{{x.text}}"},"out":{"as":"json","schema":{"type":"object"}},"reads":["x.text"],"writes":"d"},
{"id":"k","kind":"check","expr":{"op":"and","of":[{"op":"le","a":{"path":"d.total"},"b":{"path":"c.limit"}},{"op":"regex","path":"d.date","pattern":"^\\d\\d"}]},"hard":true},
{"id":"g","kind":"guard","target":"d","when":{"op":"not","of":{"op":"flag","id":"k"}},"max_tries":2,"note":"{{flags}}"},
{"id":"r","kind":"return","path":"d","when":{"op":"exists","path":"d.x"}},
{"id":"m","kind":"map","fn":"round","args":{"path":"d.total","decimals":1},"writes":"y"}],"return":"y"}"#;

/// A patch of a workflow.
const JSON_PATCH: &str = r#"[{"op":"test","path":"/ir","value":"wf/1"},{"op":"add","path":"/steps/1","value":{"id":"k"}},
{"op":"replace","path":"/steps/0/prompt/user","value":"a~1"},{"op":"remove","path":"/steps/0/out"}]"#;

/// Runs every parser over the same bytes.
fn every_parser(bytes: &[u8]) {
    targets::entry_line(bytes);
    targets::event_body(bytes);
    targets::canonical(bytes);
    targets::note(bytes);
    targets::checkpoint(bytes);
    targets::proof(bytes);
    targets::age_envelope(bytes);
    targets::key_file(bytes);
    targets::numbers(bytes);
    targets::responses(bytes);
    targets::yaml(bytes);
    targets::cassette(bytes);
    targets::patch(bytes);
    targets::rubric(bytes);
    targets::judge_prompt(bytes);
    targets::section_diff(bytes);
    targets::proposal(bytes);
    targets::prose(bytes);
    targets::tools(bytes);
    targets::workflow(bytes);
    targets::json_patch(bytes);
    targets::template(bytes);
}

/// A diff of the prompt to be edited.
const SECTION_DIFF: &str = concat!(
    "--- a/sections/tone.md\n+++ b/sections/tone.md\n@@ -1,2 +1,3 @@\n",
    " A judge should be kind.\n-Length is no merit.\n+Length earns nothing.\n+Praise earns nothing.\n"
);

/// A file of each shape of another tool.
const TOOLS: [&[u8]; 9] = [
    include_bytes!("../../fixtures/imports/inspect.eval"),
    include_bytes!("../../fixtures/imports/inspect.json"),
    include_bytes!("../../fixtures/imports/promptfoo-export.json"),
    include_bytes!("../../fixtures/imports/promptfoo-outputs.json"),
    include_bytes!("../../fixtures/imports/langfuse-page.json"),
    include_bytes!("../../fixtures/imports/langfuse-export.csv"),
    include_bytes!("../../fixtures/imports/openai-evals.jsonl"),
    include_bytes!("../../fixtures/imports/otel.json"),
    include_bytes!("../../fixtures/imports/otel-collector.jsonl"),
];

/// Changes good bytes in several places: flips, cuts, repeats, and parts of others.
fn mutated(good: &[u8], edits: &[(proptest::sample::Index, u8, u8)]) -> Vec<u8> {
    let mut out = good.to_vec();
    for (at, byte, how) in edits {
        if out.is_empty() {
            return out;
        }
        let at = at.index(out.len());
        match how % 6 {
            0..=2 => out = changed(&out, at, *byte, how % 3),
            3 => out.truncate(at),
            4 => {
                let end = (at + usize::from(*byte)).min(out.len());
                let part = out[at..end].to_vec();
                out.splice(at..at, part);
            }
            _ => {
                let end = (at + usize::from(*byte)).min(out.len());
                out.drain(at..end);
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn arbitrary_bytes_break_no_parser(bytes in vec(any::<u8>(), 0..600)) {
        every_parser(&bytes);
    }

    #[test]
    fn arbitrary_text_breaks_no_parser(text in "\\PC{0,200}", number in "-?[0-9.eE+-]{0,30}") {
        every_parser(text.as_bytes());
        every_parser(number.as_bytes());
    }

    #[test]
    fn changed_good_bytes_break_no_parser(
        which in any::<proptest::sample::Index>(),
        edits in vec((any::<proptest::sample::Index>(), any::<u8>(), any::<u8>()), 1..5),
    ) {
        let good = &*GOOD;
        let pick = |from: &[Vec<u8>]| from[which.index(from.len())].clone();
        targets::entry_line(&mutated(&pick(&good.lines), &edits));
        targets::event_body(&mutated(&pick(&good.bodies), &edits));
        targets::canonical(&mutated(&pick(&good.bodies), &edits));
        targets::note(&mutated(&good.note, &edits));
        targets::checkpoint(&mutated(&good.note, &edits));
        targets::proof(&mutated(&good.proof, &edits));
        targets::age_envelope(&mutated(&good.envelope, &edits));
        targets::key_file(&mutated(&pick(&good.keys), &edits));
        targets::numbers(&mutated(b"-123456.7890125e-3", &edits));
        targets::yaml(&mutated(include_bytes!("../../src/view/prereg/gate.yaml"), &edits));
        targets::cassette(CASSETTE.as_bytes());
        targets::cassette(&mutated(CASSETTE.as_bytes(), &edits));
        targets::patch(&mutated(iterated::PATCH.as_bytes(), &edits));
        targets::rubric(&mutated(iterated::RUBRIC.as_bytes(), &edits));
        targets::judge_prompt(&mutated(targets::JUDGE_PROMPT.as_bytes(), &edits));
        targets::section_diff(&mutated(SECTION_DIFF.as_bytes(), &edits));
        targets::proposal(&mutated(SECTION_DIFF.as_bytes(), &edits));
        targets::prose(&mutated(PROSE.as_bytes(), &edits));
        targets::workflow(&mutated(FLOW.as_bytes(), &edits));
        targets::json_patch(&mutated(JSON_PATCH.as_bytes(), &edits));
        targets::template(&mutated(b"Task: {{x.text}}, {{ c.rules.0 }} of 12.50", &edits));
        targets::numbers(&mutated(b"2026-11-20T10:00:00.000000Z", &edits));
        targets::responses(&mutated(RESPONSES.as_bytes(), &edits));
        targets::tools(&mutated(TOOLS[which.index(TOOLS.len())], &edits));
    }

    #[test]
    fn no_changed_byte_of_a_line_is_the_same_entry(
        which in any::<proptest::sample::Index>(),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>(), 0..3_u8), 40),
    ) {
        let line = &GOOD.lines[which.index(GOOD.lines.len())];
        let entry = Entry::parse(line).unwrap();
        for (at, byte, how) in changes {
            let changed = changed(line, at.index(line.len()), byte, how);
            if changed == *line {
                continue;
            }
            if let Ok(other) = Entry::parse(&changed) {
                prop_assert_ne!(&other, &entry);
                prop_assert_ne!(other.leaf(), entry.leaf());
            }
        }
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn changed_ledgers_are_walked_to_the_end(
        edits in vec((any::<proptest::sample::Index>(), any::<u8>(), any::<u8>()), 1..6),
        noise in vec(any::<u8>(), 0..300),
    ) {
        targets::ledger_lines(&mutated(&GOOD.jsonl, &edits));
        targets::ledger_lines(&noise);
    }
}

#[test]
fn every_kind_is_drawn_above() {
    for kind in Kind::ALL {
        assert!(!fields(*kind).is_empty(), "{kind}");
    }
}
