//! The keys under which private texts of prompts are kept, each erased with its subject.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::ItemId;
use clover_event::id::Text;
use clover_event::payload::PrivateRef;
use clover_event::payload::custody::SubjectErased;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::SubjectKey;
use clover_ledger::Ledger;
use clover_workflow::import::Row;
use clover_workflow::import::Rows;
use clover_workflow::import::plan;
use clover_workflow::import::plan::Plan;
use clover_workflow::import::plan::Standing;
use zeroize::Zeroizing;

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
        rows: &Rows,
        plan: &Plan,
    ) -> Result<Self, SessionError> {
        let mut by_item = BTreeMap::new();
        let with_text = |(row, plan): &(&Row, &plan::RowPlan)| {
            plan.score == Standing::New && (row.prompt.is_some() || row.response.is_some())
        };
        let wanted: Vec<_> = rows.rows.iter().zip(&plan.rows).filter(with_text).collect();
        if wanted.is_empty() {
            return Ok(Self { by_item });
        }
        let vault = home.vault(ledger.ambient())?;
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
                let key = ledger.ambient().with_entropy(SubjectKey::generate)?;
                fresh.push((subject, Zeroizing::new(*key.as_bytes())));
                key
            };
            by_item.insert(row.item.clone(), (subject, key));
        }
        vault.add_subjects(&fresh)?;
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

/// An erased subject's text is not taken in again.
fn not_erased(
    ledger: &Ledger,
    subject: &Digest,
    file: &str,
    row: &Row,
) -> Result<(), SessionError> {
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
