//! From planned rows to signed events: private texts, the original bytes, scores, labels and seals, each kind
//! under the key that may say it.

use std::collections::BTreeMap;

use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::intake::File;
use crate::cli::intake::Request;
use crate::cli::intake_counts::Counts;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::Base64Text;
use crate::event::id::EventId;
use crate::event::id::ItemId;
use crate::event::id::Root;
use crate::event::id::RowId;
use crate::event::id::SealRecipient;
use crate::event::id::Text;
use crate::event::payload::BlobRef;
use crate::event::payload::MediaType;
use crate::event::payload::PrivateRef;
use crate::event::payload::Role;
use crate::event::payload::custody::SubjectErased;
use crate::event::payload::intake::DataIngested;
use crate::event::payload::intake::ImportFormat;
use crate::event::payload::intake::Source;
use crate::event::payload::intake::SourceEnvelope;
use crate::event::payload::judge::ScoreConflict;
use crate::event::payload::label::LabelSealed;
use crate::ground::digest::Digest;
use crate::ground::seal;
use crate::ground::seal::LabelOpening;
use crate::ground::seal::SubjectKey;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Count;
use crate::session::Home;
use crate::workflow::import::Row;
use crate::workflow::import::Rows;
use crate::workflow::import::plan;
use crate::workflow::import::plan::Label;
use crate::workflow::import::plan::Plan;
use crate::workflow::import::plan::Standing;

/// Commands of one transaction.
const BATCH: usize = 16_384;

/// Keys that sign, looked for before anything is appended.
pub(super) struct Signers {
    scorer: Option<Signer>,
    labeler: Option<Signer>,
    custodian: Option<Signer>,
    recipient: Option<SealRecipient>,
}

impl Signers {
    /// A scorer alone, for rows that carry no labels.
    pub(super) fn of_scorer(scorer: Signer) -> Self {
        Self {
            scorer: Some(scorer),
            labeler: None,
            custodian: None,
            recipient: None,
        }
    }

    /// The scorer.
    pub(super) fn scorer(&self) -> &Signer {
        needed(self.scorer.as_ref())
    }

    fn find(
        ctx: &mut Ctx<'_>,
        state: &State,
        request: &Request,
        plans: &[Plan],
    ) -> Result<Self, CliError> {
        let mut total = Counts::default();
        for plan in plans {
            total.add(&Counts::of(plan));
        }
        let mut key =
            |kind: Kind, needed: bool| needed.then(|| wallet::signer(ctx, state, kind)).transpose();
        let scored = total.files.new + total.scores.new + total.logprobs.new > 0;
        let closed = plans
            .iter()
            .any(|plan| plan.ingested.is_none() && plan.stays_closed());
        Ok(Self {
            scorer: key(Kind::ScoreRecorded, scored)?,
            labeler: key(Kind::LabelRecorded, total.labels.new > 0)?,
            custodian: key(Kind::LabelSealed, total.sealed.new > 0)?,
            recipient: (closed || total.sealed.new > 0)
                .then(|| recipient(ctx, state, request))
                .transpose()?,
        })
    }
}

/// The recipient of seals: of the named key, else of the one live custodian that has any.
fn recipient(ctx: &Ctx<'_>, state: &State, request: &Request) -> Result<SealRecipient, CliError> {
    let next = "clover key new NAME --role custodian --seal";
    if let Some(named) = &request.to {
        let id = wallet::resolve(ctx, state, named)?;
        let recipient = state.keyring.keys[&id].seal_recipient.clone();
        return recipient.ok_or_else(|| {
            CliError::refused(format!("key {id} has no recipient to seal to"), next)
        });
    }
    let live = state.keyring.live();
    let custodians = live.filter(|(_, record)| record.roles.contains(Role::Custodian));
    let found: Vec<_> = custodians
        .filter_map(|(_, record)| record.seal_recipient.as_ref())
        .collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(CliError::refused(
            "labels that stay closed are kept for a custodian alone, and no live custodian key has a recipient",
            next,
        )),
        _ => Err(CliError::usage(
            "several custodians could open what is sealed",
            "the same command with --to KEY",
        )),
    }
}

/// Records the conflicts, and says so.
pub(super) fn conflicts(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    request: &Request,
    conflicts: Vec<ScoreConflict>,
) -> Result<CliError, CliError> {
    let signer = wallet::signer(ctx, ledger.state(), Kind::ScoreConflict)?;
    let count = conflicts.len();
    let first = &conflicts[0];
    let first = format!(
        "{} by {}: {} recorded, {} in the file",
        first.item, first.policy, first.recorded_micro, first.score_micro
    );
    let experiment = &request.ask.experiment;
    let commands: Vec<_> = conflicts
        .into_iter()
        .map(|conflict| Command::new(conflict, Some(experiment.clone())))
        .collect();
    let appended = ledger.append(&commands, &signer)?;
    ledger.settle()?;
    let message = format!(
        "score_once: {count} scores differ from what is recorded ({first}); each is on record as score.conflict, and nothing else was appended"
    );
    let mut error = CliError::refused(message, "clover log --kind score.conflict");
    let seqs: Vec<_> = appended.iter().map(|one| one.seq).collect();
    error.data = json!({"rule": "score_once", "conflicts": count, "seqs": seqs});
    Ok(error)
}

/// Appends what is new, file by file.
pub(super) fn append(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    request: &Request,
    files: &[File],
    plans: &[Plan],
) -> Result<Vec<Counts>, CliError> {
    let signers = Signers::find(ctx, ledger.state(), request, plans)?;
    let mut counts = Vec::with_capacity(files.len());
    for (file, plan) in files.iter().zip(plans) {
        let mut keys = Keys::new(ctx, home, ledger, &file.rows, plan)?;
        let ingested = match plan.ingested {
            Some(id) => id,
            None => ingest(ctx, home, ledger, request, (file, plan), &signers)?,
        };
        let batch = Batch {
            request,
            basis: ingested,
            rows: &file.rows,
            plan,
        };
        batch.checked(ledger, &signers)?;
        batch.scores(ctx, ledger, &mut keys, &signers)?;
        batch.labels(ledger, &signers)?;
        batch.seals(ctx, ledger, &signers)?;
        counts.push(Counts::of(plan));
    }
    Ok(counts)
}

/// Appends the new scores of planned rows that no file was taken in for; they stand on `basis`.
pub(super) fn scores(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    request: &Request,
    (rows, plan): (&Rows, &Plan),
    (basis, signers): (EventId, &Signers),
) -> Result<(), CliError> {
    let mut keys = Keys::new(ctx, home, ledger, rows, plan)?;
    let batch = Batch {
        request,
        basis,
        rows,
        plan,
    };
    batch.scores(ctx, ledger, &mut keys, signers)
}

pub(super) fn reference(bytes: &[u8], media: &str) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: count(bytes.len() as u64),
        media: MediaType::new(media).expect("BUG: media types here are literals"),
    }
}

fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: no file has 2^53 of anything")
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::new(
        Exit::Unexpected,
        "unexpected",
        error.to_string(),
        "clover doctor",
    )
}

/// Records the file itself: its rows, and its original bytes under a key.
fn ingest(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    request: &Request,
    (file, plan): (&File, &Plan),
    signers: &Signers,
) -> Result<EventId, CliError> {
    let rows = &file.rows;
    let (lines, root) = rows.root(&request.ask.judge);
    let media = match request.format {
        ImportFormat::Cje => "application/x-ndjson",
        ImportFormat::Csv => "text/csv",
    };
    let ambient = ctx.ambient();
    let (stored, source) = match &signers.recipient {
        Some(recipient) if plan.stays_closed() => {
            // Line feeds at the end change no row, and the length of the envelope tells little of its labels.
            let mut bytes = Zeroizing::new(file.bytes.clone());
            bytes.resize(seal::padded_len(file.bytes.len()), b'\n');
            let bytes = ambient
                .with_entropy(|entropy| seal::encrypt(&bytes, &[recipient.0], entropy))
                .map_err(failed)?;
            let source = SourceEnvelope {
                blob: reference(&bytes, "application/octet-stream"),
                recipient: recipient.clone(),
            };
            (bytes, Source::Envelope(source))
        }
        _ => {
            let subject = Digest(ambient.random()?);
            let key = ambient.with_entropy(SubjectKey::generate)?;
            home.vault(&ctx.ambient())?
                .add_subject(&subject, key.as_bytes())?;
            let sealed = ambient
                .with_entropy(|entropy| seal::encrypt_blob(&key, &file.bytes, entropy))
                .map_err(failed)?;
            let source = PrivateRef {
                blob: reference(&sealed.bytes, media),
                commitment: sealed.commitment,
                subject,
            };
            (sealed.bytes, Source::Private(source))
        }
    };
    let sampled = rows.sampled();
    let payload = DataIngested {
        format: request.format,
        labelled: count(rows.labelled()),
        rounded: count(rows.rounded),
        rows: reference(&lines, "application/x-ndjson"),
        rows_in: count(rows.read),
        rows_out: count(rows.rows.len() as u64),
        rows_root: Root(root),
        sampled_from: sampled.map(|(from, _)| from),
        sampled_to: sampled.map(|(_, to)| to),
        source,
    };
    let command = Command::new(payload, Some(request.ask.experiment.clone()));
    let signer = needed(signers.scorer.as_ref());
    let appended = ledger.append_with_blobs(&[command], signer, &[lines, stored])?;
    Ok(appended[0].id)
}

fn needed(signer: Option<&Signer>) -> &Signer {
    signer.expect("BUG: the keys that are needed were looked for")
}

/// Subject keys of the prompts whose texts are new, by item: one subject for a prompt, whoever answered.
struct Keys {
    by_item: BTreeMap<ItemId, (Digest, SubjectKey)>,
}

impl Keys {
    fn new(
        ctx: &Ctx<'_>,
        home: &Home,
        ledger: &Ledger,
        rows: &Rows,
        plan: &Plan,
    ) -> Result<Self, CliError> {
        let mut by_item = BTreeMap::new();
        let with_text = |(row, plan): &(&Row, &plan::RowPlan)| {
            plan.score == Standing::New && (row.prompt.is_some() || row.response.is_some())
        };
        let wanted: Vec<_> = rows.rows.iter().zip(&plan.rows).filter(with_text).collect();
        if wanted.is_empty() {
            return Ok(Self { by_item });
        }
        let vault = home.vault(&ctx.ambient())?;
        let pepper = Zeroizing::new(vault.pepper()?);
        let mut fresh = Vec::new();
        for (row, _) in wanted {
            if by_item.contains_key(&row.item) {
                continue;
            }
            let subject = seal::peppered_identifier(&pepper, &format!("item\n{}", row.item));
            let key = if let Some(bytes) = vault.subject_key(&subject)? {
                SubjectKey::from_bytes(&bytes)
            } else {
                not_erased(ledger, &subject, &rows.file, row)?;
                let key = ctx.ambient().with_entropy(SubjectKey::generate)?;
                fresh.push((subject, Zeroizing::new(*key.as_bytes())));
                key
            };
            by_item.insert(row.item.clone(), (subject, key));
        }
        vault.add_subjects(&fresh)?;
        Ok(Self { by_item })
    }

    fn seal(
        &self,
        ctx: &Ctx<'_>,
        item: &ItemId,
        text: Option<&str>,
        blobs: &mut Vec<Vec<u8>>,
    ) -> Result<Option<PrivateRef>, CliError> {
        let (Some(text), Some((subject, key))) = (text, self.by_item.get(item)) else {
            return Ok(None);
        };
        let sealed = ctx
            .ambient()
            .with_entropy(|entropy| seal::encrypt_blob(key, text.as_bytes(), entropy))
            .map_err(failed)?;
        let private = PrivateRef {
            blob: reference(&sealed.bytes, "text/plain"),
            commitment: sealed.commitment,
            subject: *subject,
        };
        blobs.push(sealed.bytes);
        Ok(Some(private))
    }
}

/// An erased subject's text is not taken in again.
fn not_erased(ledger: &Ledger, subject: &Digest, file: &str, row: &Row) -> Result<(), CliError> {
    let like = SubjectErased {
        basis: Text::new("").expect("BUG: nothing is a text"),
        subject: *subject,
    };
    let key = Payload::from(like).natural_key(None);
    let erased = match key {
        Some(key) => ledger.giver(&key)?,
        None => None,
    };
    match erased {
        None => Ok(()),
        Some(seq) => {
            let message = format!(
                "{file}:{}: the texts of {} were erased at seq {seq} and are not taken in again",
                row.line, row.item
            );
            Err(CliError::refused(message, format!("clover show {seq}")))
        }
    }
}

/// The rows of one file on their way into the log.
struct Batch<'a> {
    request: &'a Request,
    /// What they stand on.
    basis: EventId,
    rows: &'a Rows,
    plan: &'a Plan,
}

impl Batch<'_> {
    fn command(&self, payload: impl Into<Payload>) -> Command {
        let mut command = Command::new(payload, Some(self.request.ask.experiment.clone()));
        command.refs = vec![self.basis];
        command
    }

    fn pairs(&self) -> impl Iterator<Item = (&Row, &plan::RowPlan)> {
        self.rows.rows.iter().zip(&self.plan.rows)
    }

    fn scores(
        &self,
        ctx: &Ctx<'_>,
        ledger: &mut Ledger,
        keys: &mut Keys,
        signers: &Signers,
    ) -> Result<(), CliError> {
        let (mut commands, mut blobs) = (Vec::new(), Vec::new());
        for (row, plan) in self.pairs() {
            if plan.score == Standing::New {
                let mut score = plan::score_of(row, &self.request.ask.judge);
                score.prompt = keys.seal(ctx, &row.item, row.prompt.as_deref(), &mut blobs)?;
                score.response = keys.seal(ctx, &row.item, row.response.as_deref(), &mut blobs)?;
                commands.push(self.command(score));
            }
            if plan.logprob == Some(Standing::New) {
                commands.extend(plan::logprob_of(row).map(|logprob| self.command(logprob)));
            }
            if commands.len() >= BATCH {
                append_all(ledger, &mut commands, signers.scorer.as_ref(), &mut blobs)?;
            }
        }
        append_all(ledger, &mut commands, signers.scorer.as_ref(), &mut blobs)
    }

    /// What of the log-probabilities kept their contract. Said before the rows, so that a run that was cut says it again
    /// while something is left to append.
    fn checked(&self, ledger: &mut Ledger, signers: &Signers) -> Result<(), CliError> {
        if let (Some(checked), Some(signer)) = (&self.rows.checked, &signers.scorer) {
            let command = self.command(checked.said.clone());
            ledger.append_with_blobs(&[command], signer, std::slice::from_ref(&checked.lines))?;
        }
        Ok(())
    }

    fn labels(&self, ledger: &mut Ledger, signers: &Signers) -> Result<(), CliError> {
        let ask = &self.request.ask;
        let Some(open) = &ask.open else {
            return Ok(());
        };
        let fresh = self
            .pairs()
            .filter(|(_, plan)| plan.label == Label::Open(Standing::New));
        let mut commands: Vec<_> = fresh
            .filter_map(|(row, _)| Some(plan::label_of(row, row.label?, &ask.rater, open)))
            .map(|label| self.command(label))
            .collect();
        append_all(
            ledger,
            &mut commands,
            signers.labeler.as_ref(),
            &mut Vec::new(),
        )
    }

    fn seals(&self, ctx: &Ctx<'_>, ledger: &mut Ledger, signers: &Signers) -> Result<(), CliError> {
        let mut commands = Vec::new();
        let origin = ledger.state().keyring.origin.clone();
        for (row, plan) in self.pairs() {
            if let (Label::Sealed(Standing::New, id), Some(value)) = (&plan.label, row.label) {
                let label = self.sealed(ctx, &origin, id, value, signers)?;
                commands.push(self.command(label));
            }
        }
        append_all(
            ledger,
            &mut commands,
            signers.custodian.as_ref(),
            &mut Vec::new(),
        )
    }

    fn sealed(
        &self,
        ctx: &Ctx<'_>,
        origin: &str,
        row: &RowId,
        value: crate::num::Micro,
        signers: &Signers,
    ) -> Result<LabelSealed, CliError> {
        let (request, ambient) = (self.request, ctx.ambient());
        let wanted = request.ask.seal.clone().zip(request.reveal_by);
        let (design, reveal_by) = wanted.expect("BUG: rows are sealed in a design with a deadline");
        let recipient = signers.recipient.clone();
        let recipient = recipient.expect("BUG: the recipient was looked for");
        let opening = ambient.with_entropy(|entropy| LabelOpening::draw(value.value(), entropy))?;
        let envelope = ambient
            .with_entropy(|entropy| {
                seal::encrypt(opening.to_bytes().as_slice(), &[recipient.0], entropy)
            })
            .map_err(failed)?;
        Ok(LabelSealed {
            commitment: opening.commitment(origin, design.as_str(), row.as_str()),
            design,
            envelope: Base64Text(envelope),
            recipient,
            reveal_by,
            row: row.clone(),
        })
    }
}

/// Appends commands as few batches, each with one checkpoint.
fn append_all(
    ledger: &mut Ledger,
    commands: &mut Vec<Command>,
    signer: Option<&Signer>,
    blobs: &mut Vec<Vec<u8>>,
) -> Result<(), CliError> {
    if commands.is_empty() {
        return Ok(());
    }
    for batch in commands.chunks(BATCH) {
        ledger.append_with_blobs(batch, needed(signer), &std::mem::take(blobs))?;
    }
    commands.clear();
    Ok(())
}
