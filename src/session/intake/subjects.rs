//! The keys under which private texts of prompts are kept, each erased with its subject.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::ItemId;
use clover_event::payload::PrivateRef;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::SubjectKey;
use clover_ledger::Ledger;
use clover_workflow::import::ImportRow;
use clover_workflow::import::ImportRows;
use clover_workflow::import::plan::ImportPlan;
use clover_workflow::import::plan::Presence;
use zeroize::Zeroizing;

use crate::custody::erasure;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::batch;
use crate::intake::error::IntakeError;

/// Subject keys of the prompts whose texts are new, by item: one subject for a prompt, whoever answered.
pub(super) struct SubjectKeys {
    by_item: BTreeMap<ItemId, (Digest, SubjectKey)>,
}

impl SubjectKeys {
    /// The keys of rows whose texts are new; a prompt that comes for the first time gets one.
    pub(super) fn new(
        home: &Home,
        ledger: &Ledger,
        rows: &ImportRows,
        plan: &ImportPlan,
    ) -> Result<Self, SessionError> {
        let mut by_item = BTreeMap::new();
        let wanted: Vec<_> = with_text(rows, plan).collect();
        if wanted.is_empty() {
            return Ok(Self { by_item });
        }
        let vault = home.vault(ledger.ambient())?;
        let pepper = Zeroizing::new(vault.pepper()?);
        let (mut fresh, mut items) = (Vec::new(), BTreeSet::new());
        for row in wanted {
            if by_item.contains_key(&row.item) || items.contains(&row.item) {
                continue;
            }
            let subject = seal::peppered_identifier(&pepper, &format!("item\n{}", row.item));
            if let Some(bytes) = vault.subject_key(&subject)? {
                let key = SubjectKey::from_bytes(&bytes);
                by_item.insert(row.item.clone(), (subject, key));
                continue;
            }
            not_erased(ledger, &subject, &rows.file, row)?;
            let key = ledger.ambient().with_entropy(SubjectKey::generate)?;
            fresh.push((row.item.clone(), subject, Zeroizing::new(*key.as_bytes())));
            items.insert(row.item.clone());
        }
        // Another process may have kept a key of the same prompt meanwhile: the one that stands is taken.
        let new: Vec<_> = fresh
            .iter()
            .map(|(_, of, key)| (*of, key.clone()))
            .collect();
        let keys = vault.keep_subjects(&new)?;
        for ((item, subject, _), key) in fresh.into_iter().zip(keys) {
            by_item.insert(item, (subject, SubjectKey::from_bytes(&key)));
        }
        Ok(Self { by_item })
    }

    /// Seals a text under its prompt's key; its bytes go to `blobs`.
    pub(super) fn seal(
        &self,
        ambient: &Ambient,
        item: &ItemId,
        text: Option<&str>,
        blobs: &mut Vec<Vec<u8>>,
    ) -> Result<Option<PrivateRef>, IntakeError> {
        let (Some(text), Some((subject, key))) = (text, self.by_item.get(item)) else {
            return Ok(None);
        };
        let sealed =
            ambient.with_entropy(|entropy| seal::encrypt_blob(key, text.as_bytes(), entropy))?;
        let private = PrivateRef {
            blob: batch::reference(&sealed.bytes, "text/plain"),
            commitment: sealed.commitment,
            subject: *subject,
        };
        blobs.push(sealed.bytes);
        Ok(Some(private))
    }
}

/// Rows whose texts are new.
fn with_text<'r>(
    rows: &'r ImportRows,
    plan: &'r ImportPlan,
) -> impl Iterator<Item = &'r ImportRow> {
    let pairs = rows.rows.iter().zip(&plan.rows);
    let fresh = pairs.filter(|(_, plan)| plan.score == Presence::New);
    fresh
        .map(|(row, _)| row)
        .filter(|row| row.prompt.is_some() || row.response.is_some())
}

/// Refuses planned rows whose texts were erased, before anything of any file is appended.
pub(super) fn planned(
    home: &Home,
    ledger: &Ledger,
    rows: &ImportRows,
    plan: &ImportPlan,
) -> Result<(), SessionError> {
    let found = with_text(rows, plan);
    checked(home, ledger, &rows.file, found)
}

/// Refuses rows whose texts were erased.
pub(super) fn none_erased(
    home: &Home,
    ledger: &Ledger,
    rows: &ImportRows,
) -> Result<(), SessionError> {
    checked(home, ledger, &rows.file, rows.rows.iter())
}

/// Refuses rows that are about to be sent somewhere though their texts were erased.
pub(crate) fn none_erased_of<'r>(
    home: &Home,
    ledger: &Ledger,
    rows: impl Iterator<Item = &'r ImportRow>,
) -> Result<(), SessionError> {
    checked(home, ledger, "--rows", rows)
}

fn checked<'r>(
    home: &Home,
    ledger: &Ledger,
    file: &str,
    rows: impl Iterator<Item = &'r ImportRow>,
) -> Result<(), SessionError> {
    let Some(vault) = home.known_vault(ledger.ambient())? else {
        return Ok(());
    };
    let pepper = Zeroizing::new(vault.pepper()?);
    let mut seen = BTreeSet::new();
    for row in rows.filter(|row| seen.insert(&row.item)) {
        let subject = seal::peppered_identifier(&pepper, &format!("item\n{}", row.item));
        not_erased(ledger, &subject, file, row)?;
    }
    Ok(())
}

/// An erased subject's text is not taken in again.
fn not_erased(
    ledger: &Ledger,
    subject: &Digest,
    file: &str,
    row: &ImportRow,
) -> Result<(), SessionError> {
    let erased = erasure::erased_at(ledger, subject)?;
    match erased {
        None => Ok(()),
        Some(seq) => {
            let erased = IntakeError::Erased {
                file: file.to_owned(),
                line: row.line,
                item: row.item.clone(),
                seq,
            };
            Err(erased.into())
        }
    }
}
