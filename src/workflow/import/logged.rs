//! JSON Lines of logged responses with teacher-forced log-probabilities (CJE paper, table 11): held against the contract of
//! appendix E.2 row by row. What breaks it is counted and not recorded.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::judge::TargetLogprob;
use clover_event::payload::ope::ClauseCount;
use clover_event::payload::ope::LogprobsChecked;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::math;
use clover_stats::offpolicy::Aspect;
use clover_stats::offpolicy::ClauseFinding;
use clover_stats::offpolicy::Contract;
use clover_stats::offpolicy::TeacherForced;
use clover_stats::offpolicy::conforms;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::analyze::read::Record;
use crate::analyze::read::record;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::Logprobs;
use crate::import::row;
use crate::import::row::FieldError;
use crate::import::row::Fields;
use crate::import::row::Reader;
use crate::import::row::short;
use crate::ope::logs::CheckedRow;

/// Log-probabilities of the response under the policy that gave it: a sum, or one a token.
const BASE: [&str; 2] = ["logp_pi0", row::BASE_LOGPROB];
/// The same under other policies, by name.
const TARGETS: [&str; 2] = ["logp_pi_prime", row::TARGET_LOGPROBS];
/// Tokens of the response: their ids, or their count.
const TOKENS: &str = "tokens";
/// What else each call returned, by policy; `pi0` is the one that gave the response.
const CALLS: &str = "tf";
/// Configurations, of which a digest is kept.
const CONFIGS: [&str; 2] = ["judge_cfg", "run_cfg"];
/// A slice label, such as a time window.
const COHORT: &str = "cohort";

/// Hashes that every row must name.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Of the chat template.
    pub template: Option<Text>,
    /// Of the tokenizer.
    pub tokenizer: Option<Text>,
}

/// What a file's rows were held against, and what came of it.
#[derive(Clone, Debug)]
pub struct LogprobsAnswer {
    /// As it is recorded.
    pub said: LogprobsChecked,
    /// Its rows.
    pub lines: Vec<u8>,
}

/// Other names of fields in table 11.
fn names(name: &str) -> &'static [&'static str] {
    match name {
        row::PROMPT_ID => &["x_id", "prompt_id"],
        row::RESPONSE => &["continuation", "response"],
        row::JUDGE_SCORE => &["judge_S", "judge_score"],
        row::PROMPT => &["prompt"],
        row::ORACLE_LABEL => &["oracle_label"],
        row::DRAW_IDX => &["draw_idx"],
        row::SAMPLED_AT => &["sampled_at"],
        row::TARGET_POLICY => &["target_policy"],
        _ => &[],
    }
}

fn wrong(name: &str, expected: &str, raw: &RawValue) -> FieldError {
    let what = format!("expected {expected}, found {}", short(raw.get()));
    (name.to_owned(), what)
}

/// One line with its metadata, whose members count where the line has none of the name.
struct LoggedRecord<'a> {
    record: Record<'a>,
    metadata: Option<Record<'a>>,
}

impl LoggedRecord<'_> {
    /// The first member of these names that is there and not null.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, &RawValue)> {
        names.iter().find_map(|name| {
            let inner = || self.metadata.as_ref()?.get(name);
            Some((*name, self.record.get(name).or_else(inner)?))
        })
    }

    fn one(&self, name: &'static str) -> Option<&RawValue> {
        self.first(&[name]).map(|(_, raw)| raw)
    }
}

impl Fields for LoggedRecord<'_> {
    fn number(&self, name: &str) -> Result<Option<String>, FieldError> {
        let Some((found, raw)) = self.first(names(name)) else {
            return Ok(None);
        };
        let starts = raw
            .get()
            .starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if starts {
            Ok(Some(raw.get().to_owned()))
        } else {
            Err(wrong(found, "a number", raw))
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        let Some((found, raw)) = self.first(names(name)) else {
            return Ok(None);
        };
        let text = serde_json::from_str(raw.get()).map_err(|_| wrong(found, "a text", raw))?;
        Ok(Some(text))
    }

    fn word(&self, name: &str) -> Result<Option<String>, FieldError> {
        let inner = || self.metadata.as_ref()?.get(name);
        let Some(raw) = self.record.get(name).or_else(inner) else {
            return Ok(None);
        };
        match raw.get().as_bytes().first() {
            Some(b'"') => {
                let text = serde_json::from_str(raw.get());
                text.map(Some).map_err(|_| wrong(name, "a text", raw))
            }
            Some(b'{' | b'[') | None => Err(wrong(name, "a text, a number or a flag", raw)),
            Some(_) => Ok(Some(raw.get().to_owned())),
        }
    }

    fn targets(&self) -> Result<Option<Vec<(String, String)>>, FieldError> {
        Ok(None)
    }
}

/// A sum, or one number a token; null where there was no answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum LogprobValue {
    Sum(f64),
    Tokens(Vec<f64>),
    None(()),
}

impl LogprobValue {
    fn total(&self) -> Option<f64> {
        match self {
            Self::Sum(total) => Some(*total),
            Self::Tokens(tokens) => (!tokens.is_empty()).then(|| math::sum(tokens)),
            Self::None(()) => None,
        }
    }

    fn per_token(&self) -> Option<&[f64]> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Sum(_) | Self::None(()) => None,
        }
    }
}

/// What a call returned beside the log-probabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    logp: Option<f64>,
    logp_prompt: Option<f64>,
    logp_whole: Option<f64>,
    repeats: Option<Vec<f64>>,
    mask: Option<Vec<bool>>,
    renormalized: Option<bool>,
    template: Option<String>,
    tokenizer: Option<String>,
}

/// The teacher-forced part of a line.
struct TeacherForcing {
    base: Option<LogprobValue>,
    targets: BTreeMap<PolicyId, LogprobValue>,
    tokens: Option<u64>,
    calls: BTreeMap<String, Call>,
    configs: [Option<Digest>; 2],
    cohort: Option<Text>,
}

fn given(name: &str, raw: &RawValue) -> Result<LogprobValue, FieldError> {
    let expected = "a number, or a list of numbers";
    serde_json::from_str(raw.get()).map_err(|_| wrong(name, expected, raw))
}

fn forced(members: &LoggedRecord<'_>) -> Result<TeacherForcing, FieldError> {
    let base = members
        .first(&BASE)
        .map(|(name, raw)| given(name, raw))
        .transpose()?;
    let mut targets = BTreeMap::new();
    if let Some((name, raw)) = members.first(&TARGETS) {
        let inner: Record<'_> = serde_json::from_str(raw.get())
            .map_err(|_| wrong(name, "an object of policies, each name once", raw))?;
        for (policy, raw) in inner.0 {
            let field = format!("{name}.{policy}");
            let id = PolicyId::new(policy.into_owned())
                .map_err(|error| (field.clone(), error.to_string()))?;
            targets.insert(id, given(&field, raw)?);
        }
    }
    let tokens = match members.one(TOKENS) {
        None => None,
        Some(raw) => {
            let count = serde_json::from_str::<u64>(raw.get()).ok();
            let listed = || serde_json::from_str::<Vec<u64>>(raw.get()).ok();
            let count = count.or_else(|| listed().map(|ids| ids.len() as u64));
            Some(count.ok_or_else(|| wrong(TOKENS, "token ids, or their count", raw))?)
        }
    };
    let calls = match members.one(CALLS) {
        None => BTreeMap::new(),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
            (
                CALLS.to_owned(),
                format!("expected calls by policy: {error}"),
            )
        })?,
    };
    let mut configs = [None, None];
    for (found, name) in configs.iter_mut().zip(CONFIGS) {
        if let Some(raw) = members.one(name) {
            let value: Value =
                serde_json::from_str(raw.get()).map_err(|_| wrong(name, "JSON", raw))?;
            let bytes =
                canon::to_bytes(&value).map_err(|error| (name.to_owned(), error.to_string()))?;
            *found = Some(Digest::sha256(&bytes));
        }
    }
    let cohort = match members.one(COHORT) {
        None => None,
        Some(raw) => {
            let text: Option<String> = serde_json::from_str(raw.get()).ok();
            let text = text.and_then(Text::new);
            Some(text.ok_or_else(|| wrong(COHORT, "a text", raw))?)
        }
    };
    Ok(TeacherForcing {
        base,
        targets,
        tokens,
        calls,
        configs,
        cohort,
    })
}

impl TeacherForcing {
    /// Findings of every call; `None` without log-probabilities.
    fn judge(&self, pins: &Pins) -> Option<RowCheck> {
        let base = self.base.as_ref()?;
        let answered = |given: &LogprobValue| given.total().is_some();
        if !answered(base) || !self.targets.values().any(answered) {
            return None;
        }
        let mut judged = RowCheck::default();
        judged.take(self, "pi0", base, pins);
        for (policy, given) in &self.targets {
            judged.take(self, policy.as_str(), given, pins);
        }
        Some(judged)
    }

    fn logprobs(&self) -> Option<Logprobs> {
        let targets = self.targets.iter().filter_map(|(policy, given)| {
            Some(TargetLogprob {
                logprob: Finite::new(given.total()?)?,
                policy: policy.clone(),
            })
        });
        Some(Logprobs {
            base: Finite::new(self.base.as_ref()?.total()?)?,
            targets: targets.collect(),
        })
    }
}

/// What judging a row came to.
#[derive(Default)]
struct RowCheck {
    broken: Option<Aspect>,
    not_checked: BTreeSet<Aspect>,
}

impl RowCheck {
    fn take(&mut self, row: &TeacherForcing, name: &str, given: &LogprobValue, pins: &Pins) {
        let Some(summed) = given.total() else { return };
        let none = Call::default();
        let call = row.calls.get(name).unwrap_or(&none);
        let found = conforms(
            &TeacherForced {
                total: call.logp.unwrap_or(summed),
                per_token: given.per_token(),
                tokens: row.tokens.and_then(|tokens| usize::try_from(tokens).ok()),
                prompt: call.logp_prompt,
                whole: call.logp_whole,
                repeats: call.repeats.as_deref(),
                mask: call.mask.as_deref(),
                renormalised: call.renormalized,
                template: call.template.as_deref(),
                tokenizer: call.tokenizer.as_deref(),
            },
            &Contract {
                template: pins.template.as_ref().map(Text::as_str),
                tokenizer: pins.tokenizer.as_ref().map(Text::as_str),
                ..Contract::DEFAULT
            },
        );
        self.broken = self.broken.or(found.broken());
        let open = found
            .findings()
            .filter(|(_, of)| *of == ClauseFinding::NotChecked);
        self.not_checked.extend(open.map(|(aspect, _)| aspect));
    }
}

/// Reads one file.
///
/// # Errors
/// [`ImportError`] at the first line that is not a record.
pub fn rows(
    file: &str,
    bytes: &[u8],
    pins: &Pins,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let how = How {
        logprobs: false,
        ..how
    };
    let mut reader = Reader::new(file, how);
    let mut all = Vec::new();
    for (line, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let taken = taken(&mut reader, (line, bytes));
        all.extend(taken.map_err(|error| reader.ended(error))?);
    }
    let mut rows = reader.finish()?;
    checked(&mut rows, &all, pins)?;
    Ok(rows)
}

/// Takes one line; `None` for an empty one.
fn taken(
    reader: &mut Reader<'_>,
    (line, bytes): (u64, &[u8]),
) -> Result<Option<TeacherForcing>, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let what = format!("expected UTF-8, byte {} is not", error.valid_up_to() + 1);
        reader.error(line, None, what)
    })?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let record = record(text).map_err(|what| reader.error(line, None, what))?;
    let metadata = reader.metadata(line, &record)?;
    let members = LoggedRecord { record, metadata };
    let forced =
        forced(&members).map_err(|(field, what)| reader.error(line, Some(&field), what))?;
    reader.take(line, &members)?;
    Ok(Some(forced))
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

/// Rows by what became of their log-probabilities.
#[derive(Default)]
struct Tally {
    kept: usize,
    missing: usize,
    broken: BTreeMap<&'static str, usize>,
    open: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Counts a row; the clause that it broke, and whether its log-probabilities are kept.
    fn take(&mut self, judged: Option<&RowCheck>) -> (Option<Aspect>, bool) {
        let Some(judged) = judged else {
            self.missing += 1;
            return (None, false);
        };
        if let Some(aspect) = judged.broken {
            *self.broken.entry(aspect.name()).or_insert(0) += 1;
            return (Some(aspect), false);
        }
        self.kept += 1;
        for aspect in &judged.not_checked {
            *self.open.entry(aspect.name()).or_insert(0) += 1;
        }
        (None, true)
    }

    fn warning(&self, rows: usize) -> Option<String> {
        let counts = self.broken.iter();
        let mut why: Vec<String> = counts
            .map(|(clause, rows)| format!("{clause} {rows}"))
            .collect();
        why.extend((self.missing > 0).then(|| format!("missing {}", self.missing)));
        (self.kept < rows).then(|| {
            format!(
                "the log-probabilities of {} of {rows} rows are not recorded: {}",
                rows - self.kept,
                why.join(", ")
            )
        })
    }
}

fn clauses(of: &BTreeMap<&'static str, usize>) -> Vec<ClauseCount> {
    let counts = of.iter();
    counts
        .filter_map(|(clause, rows)| {
            Some(ClauseCount {
                clause: Text::new(*clause)?,
                rows: count(*rows),
            })
        })
        .collect()
}

/// The policy of every row.
fn one_policy(rows: &ImportRows) -> Result<PolicyId, ImportError> {
    let policies = rows.policies();
    match policies.first() {
        Some(policy) if policies.len() == 1 => Ok((*policy).clone()),
        _ => Err(ImportError::new(
            &rows.file,
            0,
            Some(row::TARGET_POLICY),
            "expected the responses of one policy".to_owned(),
        )),
    }
}

/// Keeps the log-probabilities that hold, and counts the rest.
fn checked(rows: &mut ImportRows, all: &[TeacherForcing], pins: &Pins) -> Result<(), ImportError> {
    let policy = one_policy(rows)?;
    let (mut tally, mut lines, mut tree) = (Tally::default(), Vec::new(), Frontier::new());
    for (row, forced) in rows.rows.iter_mut().zip(all) {
        let (clause, keeps) = tally.take(forced.judge(pins).as_ref());
        if keeps {
            row.logprobs = forced.logprobs();
        }
        let [judge_cfg, run_cfg] = forced.configs;
        let line = CheckedRow {
            broken: clause.and_then(|aspect| Text::new(aspect.name())),
            cohort: forced.cohort.clone(),
            draw: row.draw,
            item: row.item.clone(),
            judge_cfg,
            run_cfg,
            tokens: forced.tokens.and_then(Count::new),
        };
        let line = canon::to_bytes(&line).expect("BUG: ids and counts have a canonical form");
        tree.push(merkle::leaf_hash(&line));
        lines.extend_from_slice(&line);
        lines.push(b'\n');
    }
    rows.warnings.extend(tally.warning(all.len()));
    let configs = |at: usize| -> Vec<Digest> {
        let named = all.iter().filter_map(|forced| forced.configs[at]);
        named.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let media = MediaType::new("application/x-ndjson");
    rows.checked = Some(LogprobsAnswer {
        said: LogprobsChecked {
            additivity_micro: Micro::new(1).unwrap_or_default(),
            broken: clauses(&tally.broken),
            determinism_pico: count(100_000),
            judge_configs: configs(0),
            kept: count(tally.kept),
            missing: count(tally.missing),
            not_checked: clauses(&tally.open),
            policy,
            rows: BlobRef {
                blake3: Digest::blake3(&lines),
                bytes: count(lines.len()),
                media: media.expect("BUG: media types here are literals"),
            },
            rows_in: count(all.len()),
            rows_root: Root(tree.root()),
            run_configs: configs(1),
            template: pins.template.clone(),
            tokenizer: pins.tokenizer.clone(),
        },
        lines,
    });
    Ok(())
}
