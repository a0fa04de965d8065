//! The vault: subject keys and the ledger's pepper, in a database of their own.
//!
//! `journal_mode=DELETE` and `secure_delete=ON`: a destroyed key stays in no WAL, no free page and no
//! backup of the ledger.

use std::path::Path;

use clover_ground::digest::Digest;
use rusqlite::Connection;
use rusqlite::OptionalExtension as _;
use rusqlite::Transaction;
use rusqlite::TransactionBehavior;
use rusqlite::params;
use zeroize::Zeroizing;

use crate::StoreError;

const SCHEMA: &str = include_str!("../../migrations/vault_0001_create_vault.sql");
const SUBJECT: &str = "SELECT secret FROM subjects WHERE subject = ?1";
const SUBJECTS: &str = "SELECT count(*) FROM subjects";
const INSERT_SUBJECT: &str = "INSERT INTO subjects (subject, secret) VALUES (?1, ?2)";
const KEEP_SUBJECT: &str = "INSERT OR IGNORE INTO subjects (subject, secret) VALUES (?1, ?2)";
const DELETE_SUBJECT: &str = "DELETE FROM subjects WHERE subject = ?1";
const PEPPER: &str = "SELECT secret FROM pepper WHERE id = 1";
const INSERT_PEPPER: &str = "INSERT INTO pepper (id, secret) VALUES (1, ?1)";
const NO_PEPPER: &str = "the vault holds no pepper: restore vault.db from a backup";
/// `PRAGMA application_id` of a vault: "Clvv".
const APPLICATION_ID: i64 = 0x436c_7676;

/// An open vault.
#[derive(Debug)]
pub struct Vault {
    conn: Connection,
}

fn secret(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::Damaged("a vault secret is not 32 bytes".to_owned()))
}

fn application_id(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

/// Makes tables, pepper and mark in one transaction: a process killed at any moment leaves a vault or none.
/// Returns the mark that stands, which another process may have written first.
fn create(conn: &Connection, pepper: &[u8; 32]) -> Result<i64, StoreError> {
    let txn = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    let found = application_id(&txn)?;
    if found != 0 {
        return Ok(found);
    }
    txn.execute_batch(SCHEMA)?;
    txn.execute(INSERT_PEPPER, params![&pepper[..]])?;
    txn.pragma_update(None, "application_id", APPLICATION_ID)?;
    txn.commit()?;
    Ok(APPLICATION_ID)
}

impl Vault {
    /// Opens the vault, making it when it is not there. The file must lie in a folder only its owner can
    /// read.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, pepper: &[u8; 32]) -> Result<Self, StoreError> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(std::time::Duration::from_secs(60))?;
        conn.pragma_update(None, "secure_delete", true)?;
        conn.pragma_update(None, "journal_mode", "DELETE")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        let made = match application_id(&conn)? {
            0 => create(&conn, pepper)?,
            found => found,
        };
        if made != APPLICATION_ID {
            return Err(StoreError::NotALedger {
                path: path.to_owned(),
                found: format!("a database of application {made:#x}"),
            });
        }
        Ok(Self { conn })
    }

    /// A subject's key, `None` when unknown or erased.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn subject_key(&self, subject: &Digest) -> Result<Option<[u8; 32]>, StoreError> {
        let found: Option<Vec<u8>> = self
            .conn
            .query_row(SUBJECT, [&subject.0[..]], |row| row.get(0))
            .optional()?;
        found.map(|bytes| secret(&bytes)).transpose()
    }

    /// Subjects whose keys are held.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn subject_count(&self) -> Result<u64, StoreError> {
        super::entries::count(
            self.conn.query_row(SUBJECTS, [], |row| row.get(0))?,
            "count of subjects",
        )
    }

    /// Keeps a new subject's key.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn add_subject(&self, subject: &Digest, key: &[u8; 32]) -> Result<(), StoreError> {
        self.conn
            .execute(INSERT_SUBJECT, params![&subject.0[..], &key[..]])?;
        Ok(())
    }

    /// Keeps the keys of subjects, all or none. Gives the key of each as it stands: where another process kept one first, that
    /// one, since texts are sealed under it already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn keep_subjects(
        &self,
        subjects: &[(Digest, Zeroizing<[u8; 32]>)],
    ) -> Result<Vec<Zeroizing<[u8; 32]>>, StoreError> {
        let txn = self.conn.unchecked_transaction()?;
        let mut keys = Vec::with_capacity(subjects.len());
        {
            let mut keep = txn.prepare(KEEP_SUBJECT)?;
            let mut read = txn.prepare(SUBJECT)?;
            for (subject, key) in subjects {
                keep.execute(params![&subject.0[..], &key[..]])?;
                let stands: Vec<u8> = read.query_row([&subject.0[..]], |row| row.get(0))?;
                keys.push(Zeroizing::new(secret(&stands)?));
            }
        }
        txn.commit()?;
        Ok(keys)
    }

    /// Destroys a subject's key. Returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn destroy_subject(&self, subject: &Digest) -> Result<bool, StoreError> {
        Ok(self.conn.execute(DELETE_SUBJECT, params![&subject.0[..]])? > 0)
    }

    /// Writes a copy to `target`, which must not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn backup(&self, target: &Path) -> Result<(), StoreError> {
        if super::database::exists(target)? {
            return Err(StoreError::Exists(target.to_owned()));
        }
        Ok(self
            .conn
            .backup("main", target, None::<fn(rusqlite::backup::Progress)>)?)
    }

    /// The pepper of identifiers that belong to no subject.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where the vault holds none.
    pub fn pepper(&self) -> Result<[u8; 32], StoreError> {
        let found: Option<Vec<u8>> = self
            .conn
            .query_row(PEPPER, [], |row| row.get(0))
            .optional()?;
        secret(&found.ok_or_else(|| StoreError::Damaged(NO_PEPPER.to_owned()))?)
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "a test looks at the files themselves"
    )]
    use super::*;

    /// A file with tables alone is what no moment of the making leaves; its pepper is never made again, as identifiers
    /// under another one would part from those recorded.
    #[test]
    fn a_vault_is_made_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.db");
        let conn = Connection::open(&path).unwrap();
        let refused = |conn: &Connection| {
            conn.execute_batch("CREATE TABLE pepper (id INTEGER PRIMARY KEY)")
                .unwrap();
            create(conn, &[9; 32]).unwrap_err();
            application_id(conn).unwrap()
        };
        assert_eq!(refused(&conn), 0, "a making that fails leaves no mark");
        conn.execute_batch("DROP TABLE pepper").unwrap();
        assert_eq!(create(&conn, &[9; 32]).unwrap(), APPLICATION_ID);
        assert_eq!(create(&conn, &[1; 32]).unwrap(), APPLICATION_ID);
        let vault = Vault::open(&path, &[1; 32]).unwrap();
        assert_eq!(vault.pepper().unwrap(), [9; 32]);
        conn.execute_batch("DELETE FROM pepper").unwrap();
        let missing = Vault::open(&path, &[1; 32]).unwrap().pepper();
        assert!(matches!(missing, Err(StoreError::Damaged(_))));
    }

    #[test]
    fn the_key_that_was_kept_first_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.db");
        let (one, other) = (
            Vault::open(&path, &[9; 32]).unwrap(),
            Vault::open(&path, &[9; 32]).unwrap(),
        );
        let of = |name: &str, key| (Digest::sha256(name.as_bytes()), Zeroizing::new([key; 32]));
        let keys =
            |found: Vec<Zeroizing<[u8; 32]>>| found.iter().map(|key| key[0]).collect::<Vec<_>>();
        assert_eq!(
            keys(one.keep_subjects(&[of("a", 1), of("b", 2)]).unwrap()),
            [1, 2]
        );
        assert_eq!(
            keys(other.keep_subjects(&[of("b", 3), of("c", 4)]).unwrap()),
            [2, 4]
        );
        assert_eq!(one.subject_key(&of("b", 0).0).unwrap(), Some([2; 32]));
        assert_eq!(one.subject_count().unwrap(), 3);
    }

    #[test]
    fn a_destroyed_key_is_in_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.db");
        let vault = Vault::open(&path, &[9; 32]).unwrap();
        let key: [u8; 32] = Digest::sha256(b"subject key").0;
        let subject = Digest::sha256(b"subject");
        vault.add_subject(&subject, &key).unwrap();
        let holds = || {
            let files = std::fs::read_dir(folder.path()).unwrap();
            files.into_iter().any(|file| {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                bytes.windows(32).any(|window| window == key)
            })
        };
        assert!(holds());
        assert!(vault.destroy_subject(&subject).unwrap());
        assert!(!holds());
        assert!(!vault.destroy_subject(&subject).unwrap());
        assert_eq!(vault.pepper().unwrap(), [9; 32]);
        drop(vault);
        assert_eq!(
            Vault::open(&path, &[1; 32]).unwrap().pepper().unwrap(),
            [9; 32]
        );
    }
}
