//! What `SQLite` itself and the schema say of the whole file.

use std::io::Read as _;

use clover_ground::ambient;
use rusqlite::Connection;

use crate::Store;
use crate::StoreError;
use crate::database::APPLICATION_ID;
use crate::database::MIGRATIONS;
use crate::database::schema_rows;

/// A part of the file that can be wrong by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What `SQLite` checks of any database.
    Sqlite,
    /// Tables, triggers, indexes and header values.
    Schema,
    /// Rows of the log before its first entry.
    Entries,
    /// Rows of checkpoints before the first.
    Checkpoints,
}

/// What is wrong with a part of the file: the part, what was expected and what was found.
pub type Fault = (Part, String, String);

impl Store {
    /// What `SQLite`'s own checks and the schema say: empty when all is well. Each finding is (what, expected,
    /// found).
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read at all.
    pub fn integrity(&self) -> Result<Vec<Fault>, StoreError> {
        let mut findings = Vec::new();
        // At most one line: `SQLite` first checks every tree, and where one is damaged it must not walk its
        // rows, which may repeat without end.
        let mut check = self.conn.prepare("PRAGMA integrity_check(1)")?;
        let lines = check.query_map([], |row| row.get::<_, String>(0));
        let lines: Result<Vec<_>, _> = lines.and_then(Iterator::collect);
        match lines {
            Ok(lines) if lines == ["ok"] => {}
            Ok(lines) => {
                findings.extend(
                    lines
                        .into_iter()
                        .map(|line| (Part::Sqlite, "integrity_check: ok".to_owned(), line)),
                );
            }
            Err(error) => findings.push((
                Part::Sqlite,
                "integrity_check: ok".to_owned(),
                error.to_string(),
            )),
        }
        findings.extend(self.unwritable()?);
        // A damaged tree has its finding already.
        findings.extend(self.reader().stray().ok().flatten());
        self.compare_schema(&mut findings)?;
        Ok(findings)
    }

    /// Byte 18 of the file is the format version needed to write it. `SQLite` knows 1 and 2, and opens a file
    /// that claims more for reading only: whole to every reader, and closed to the next append.
    fn unwritable(&self) -> Result<Option<Fault>, StoreError> {
        let io = |error: &dyn std::fmt::Display| StoreError::Io(error.to_string());
        let mut file = ambient::reader(self.path()).map_err(|error| io(&error))?;
        let mut header = [0; 19];
        file.read_exact(&mut header).map_err(|error| io(&error))?;
        Ok((!(1..=2).contains(&header[18])).then(|| {
            let expected = "a file format version for writing of 1 or 2".to_owned();
            (Part::Sqlite, expected, header[18].to_string())
        }))
    }

    /// Compares schema and header values with those that the migrations up to the file's own make in an empty database: a file
    /// that was only read since has not got the later ones.
    fn compare_schema(&self, findings: &mut Vec<Fault>) -> Result<(), StoreError> {
        let fresh = Connection::open_in_memory()?;
        fresh.pragma_update(None, "application_id", APPLICATION_ID)?;
        let found: i64 = self
            .conn
            .pragma_query_value(None, "user_version", |row| row.get(0))?;
        for (version, sql) in (1..).zip(MIGRATIONS) {
            if version > 1 && version > found {
                break;
            }
            fresh.execute_batch(sql)?;
            fresh.pragma_update(None, "user_version", version)?;
        }
        let expected = schema_rows(&fresh)?;
        match schema_rows(&self.conn) {
            Err(error) => findings.push((
                Part::Schema,
                "a readable schema".to_owned(),
                error.to_string(),
            )),
            Ok(found) => {
                let other = differing(expected, found).into_iter();
                findings.extend(other.map(|(want, have)| (Part::Schema, want, have)));
            }
        }
        for name in ["user_version", "application_id", "auto_vacuum", "encoding"] {
            let value = |conn: &Connection| {
                conn.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            };
            let (want, have) = (value(&fresh)?, value(&self.conn)?);
            if want != have {
                findings.push((
                    Part::Schema,
                    format!("{name} {want:?}"),
                    format!("{name} {have:?}"),
                ));
            }
        }
        Ok(())
    }
}

/// The objects that only one of two schemas has, each beside the other's of its type and name. In which order they were made
/// means nothing.
fn differing(expected: Vec<String>, mut found: Vec<String>) -> Vec<(String, String)> {
    let mut take = |is: &dyn Fn(&str) -> bool| {
        let at = found.iter().position(|have| is(have))?;
        Some(found.swap_remove(at))
    };
    let mut missing = expected;
    missing.retain(|want| take(&|have| have == want).is_none());
    let name = |row: &str| row.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut other = Vec::new();
    for want in missing {
        let have = take(&|have| name(have) == name(&want));
        other.push((want, have.unwrap_or_else(|| "none".to_owned())));
    }
    other.extend(found.into_iter().map(|have| ("none".to_owned(), have)));
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[&str]) -> Vec<String> {
        of.iter().map(|row| (*row).to_owned()).collect()
    }

    #[test]
    fn only_what_differs_is_named_whatever_the_order() {
        let expected = rows(&["table a a 1", "trigger t a 2", "table b b 3"]);
        let same = rows(&["table b b 3", "trigger t a 2", "table a a 1"]);
        assert!(differing(expected.clone(), same).is_empty());
        let pair = |want: &str, have: &str| (want.to_owned(), have.to_owned());
        let changed = rows(&["table b b 3", "trigger t a 9", "table a a 1", "view v v 4"]);
        assert_eq!(
            differing(expected.clone(), changed),
            [
                pair("trigger t a 2", "trigger t a 9"),
                pair("none", "view v v 4")
            ]
        );
        // An object that stands twice is one too many.
        let twice = rows(&["table a a 1", "table a a 1", "table b b 3"]);
        assert_eq!(
            differing(expected, twice),
            [pair("trigger t a 2", "none"), pair("none", "table a a 1")]
        );
    }
}
