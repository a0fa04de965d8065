//! Read models: plain tables, one row for the entry that wrote it, never updated.
//!
//! A pure projection turns an event into [`RowChange`]s; they are inserted in the append's transaction,
//! and [`RowCursor`] reads them back in lockstep with the log so that `verify` can compare row by row.

use clover_ground::digest::Digest;
use rusqlite::CachedStatement;
use rusqlite::Rows;
use rusqlite::ToSql;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::types::ValueRef;

use crate::Reader;
use crate::RowsIn;
use crate::StoreError;
use crate::entries::Ascending;
use crate::entries::count;
use crate::entries::out_of_order;
use crate::entries::sql_int;

/// A row of `scores`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described in the migration")]
pub struct ScoreRow<'a> {
    pub seq: u64,
    pub experiment: &'a str,
    pub judge: &'a str,
    pub policy: &'a str,
    pub item: &'a str,
    pub draw: u64,
    pub score_micro: i64,
}

/// A row of `labels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described in the migration")]
pub struct LabelRow<'a> {
    pub seq: u64,
    pub experiment: &'a str,
    pub design: &'a str,
    pub policy: &'a str,
    pub item: &'a str,
    pub draw: u64,
    pub rater: &'a str,
    pub purpose: &'a str,
    pub value_micro: i64,
}

/// A row of `seals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described in the migration")]
pub struct SealRow<'a> {
    pub seq: u64,
    pub experiment: &'a str,
    pub design: &'a str,
    pub row: &'a str,
    pub commitment: &'a Digest,
    pub reveal_by: i64,
}

/// A row of `reveals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described in the migration")]
pub struct RevealRow<'a> {
    pub seq: u64,
    pub experiment: &'a str,
    pub design: &'a str,
    pub row: &'a str,
    pub charge: &'a Digest,
    pub value_micro: i64,
}

/// A row that an event adds to a read model. Closed: a new table is a new variant and a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChange<'a> {
    /// Into `labels`.
    Label(LabelRow<'a>),
    /// Into `reveals`.
    Reveal(RevealRow<'a>),
    /// Into `scores`.
    Score(ScoreRow<'a>),
    /// Into `seals`.
    Seal(SealRow<'a>),
}

/// The read-model tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// `label.recorded`
    Labels,
    /// `label.revealed`
    Reveals,
    /// `score.recorded`
    Scores,
    /// `label.sealed`
    Seals,
}

const SELECT_SCORES: &str =
    "SELECT seq, experiment, judge, policy, item, draw, score_micro FROM scores ORDER BY seq";
const INSERT_SCORE: &str = "INSERT OR FAIL INTO scores (seq, experiment, judge, policy, item, draw, score_micro) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const SELECT_LABELS: &str = "SELECT seq, experiment, design, policy, item, draw, rater, purpose, value_micro FROM labels ORDER BY seq";
const INSERT_LABEL: &str = "INSERT OR FAIL INTO labels (seq, experiment, design, policy, item, draw, rater, purpose, value_micro) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const SELECT_SEALS: &str =
    "SELECT seq, experiment, design, row, commitment, reveal_by FROM seals ORDER BY seq";
const INSERT_SEAL: &str = "INSERT OR FAIL INTO seals (seq, experiment, design, row, commitment, reveal_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const SELECT_REVEALS: &str =
    "SELECT seq, experiment, design, row, charge, value_micro FROM reveals ORDER BY seq";
const INSERT_REVEAL: &str = "INSERT OR FAIL INTO reveals (seq, experiment, design, row, charge, value_micro) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

impl Table {
    /// Every read-model table.
    pub const ALL: [Self; 4] = [Self::Labels, Self::Reveals, Self::Scores, Self::Seals];

    /// The table's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Reveals => "reveals",
            Self::Scores => "scores",
            Self::Seals => "seals",
        }
    }

    fn select(self) -> &'static str {
        match self {
            Self::Labels => SELECT_LABELS,
            Self::Reveals => SELECT_REVEALS,
            Self::Scores => SELECT_SCORES,
            Self::Seals => SELECT_SEALS,
        }
    }

    fn last(self) -> &'static str {
        match self {
            Self::Labels => "SELECT max(seq) FROM labels",
            Self::Reveals => "SELECT max(seq) FROM reveals",
            Self::Scores => "SELECT max(seq) FROM scores",
            Self::Seals => "SELECT max(seq) FROM seals",
        }
    }

    fn insert(self) -> &'static str {
        match self {
            Self::Labels => INSERT_LABEL,
            Self::Reveals => INSERT_REVEAL,
            Self::Scores => INSERT_SCORE,
            Self::Seals => INSERT_SEAL,
        }
    }
}

impl RowChange<'_> {
    /// The entry that writes it.
    fn seq(&self) -> u64 {
        match self {
            Self::Label(row) => row.seq,
            Self::Reveal(row) => row.seq,
            Self::Score(row) => row.seq,
            Self::Seal(row) => row.seq,
        }
    }

    /// The table it belongs to.
    pub fn table(&self) -> Table {
        match self {
            Self::Label(_) => Table::Labels,
            Self::Reveal(_) => Table::Reveals,
            Self::Score(_) => Table::Scores,
            Self::Seal(_) => Table::Seals,
        }
    }

    /// Hands the columns, in table order, to `take`.
    fn with_columns<T>(&self, take: impl FnOnce(&[Column<'_>]) -> T) -> T {
        use Column::Blob;
        use Column::Integer;
        use Column::Text;
        let position = |value: u64| Integer(sql_int(value));
        match self {
            Self::Score(r) => take(&[
                position(r.seq),
                Text(r.experiment),
                Text(r.judge),
                Text(r.policy),
                Text(r.item),
                position(r.draw),
                Integer(r.score_micro),
            ]),
            Self::Label(r) => take(&[
                position(r.seq),
                Text(r.experiment),
                Text(r.design),
                Text(r.policy),
                Text(r.item),
                position(r.draw),
                Text(r.rater),
                Text(r.purpose),
                Integer(r.value_micro),
            ]),
            Self::Seal(r) => take(&[
                position(r.seq),
                Text(r.experiment),
                Text(r.design),
                Text(r.row),
                Blob(&r.commitment.0),
                Integer(r.reveal_by),
            ]),
            Self::Reveal(r) => take(&[
                position(r.seq),
                Text(r.experiment),
                Text(r.design),
                Text(r.row),
                Blob(&r.charge.0),
                Integer(r.value_micro),
            ]),
        }
    }

    /// The row as text, for findings.
    pub fn describe(&self) -> String {
        let parts =
            self.with_columns(|columns| columns.iter().map(Column::describe).collect::<Vec<_>>());
        format!("{} row ({})", self.table().as_str(), parts.join(", "))
    }
}

/// A column value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column<'a> {
    Blob(&'a [u8]),
    Integer(i64),
    Text(&'a str),
}

impl Column<'_> {
    fn matches(&self, found: ValueRef<'_>) -> bool {
        match (self, found) {
            (Self::Blob(want), ValueRef::Blob(have)) => *want == have,
            (Self::Integer(want), ValueRef::Integer(have)) => *want == have,
            (Self::Text(want), ValueRef::Text(have)) => want.as_bytes() == have,
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Blob(bytes) => bytes
                .iter()
                .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")),
            Self::Integer(value) => value.to_string(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

impl ToSql for Column<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self {
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl RowsIn<'_> {
    /// Inserts rows.
    ///
    /// # Errors
    /// [`StoreError`]; a row of an entry before the last of its table is refused.
    pub fn insert_rows(&self, rows: &[RowChange<'_>]) -> Result<(), StoreError> {
        for table in Table::ALL {
            let mut of_table = rows.iter().filter(|row| row.table() == table).peekable();
            if of_table.peek().is_none() {
                continue;
            }
            let mut last = if self.judges {
                self.reader().last_row(table)?
            } else {
                None
            };
            let mut insert = self.conn.prepare_cached(table.insert())?;
            for row in of_table {
                if last.is_some_and(|last| row.seq() <= last) {
                    return Err(out_of_order(table.as_str(), row.seq()));
                }
                last = self.judges.then_some(row.seq());
                row.with_columns(|columns| insert.execute(rusqlite::params_from_iter(columns)))?;
            }
        }
        Ok(())
    }
}

impl<'a> Reader<'a> {
    /// The statement of a [`RowCursor`] over every row, those of no entry included.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn row_statement(self, table: Table) -> Result<RowStatement<'a>, StoreError> {
        Ok(RowStatement {
            statement: self.conn.prepare_cached(table.select())?,
        })
    }

    /// The entry that wrote the last row of a read model.
    fn last_row(self, table: Table) -> Result<Option<u64>, StoreError> {
        let mut last = self.conn.prepare_cached(table.last())?;
        let last: Option<i64> = last.query_row([], |row| row.get(0))?;
        last.map(|seq| count(seq, "seq of a row")).transpose()
    }

    /// How many rows a read model holds.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn row_count(self, table: Table) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table.as_str());
        count(
            self.conn.query_row(&sql, [], |row| row.get(0))?,
            "count of rows",
        )
    }
}

/// Keeps the prepared statement that a [`RowCursor`] walks.
pub struct RowStatement<'a> {
    statement: CachedStatement<'a>,
}

impl RowStatement<'_> {
    /// Starts at the first row.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn cursor(&mut self) -> Result<RowCursor<'_>, StoreError> {
        let mut cursor = RowCursor {
            rows: self.statement.query([])?,
            order: Ascending::default(),
            seq: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }
}

/// Walks a read model by entry, one row at a time.
pub struct RowCursor<'a> {
    rows: Rows<'a>,
    order: Ascending<i64>,
    seq: Option<i64>,
}

impl RowCursor<'_> {
    /// The entry that wrote the row at hand; `None` past the end.
    pub fn seq(&self) -> Option<i64> {
        self.seq
    }

    /// Moves to the next row.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn advance(&mut self) -> Result<(), StoreError> {
        self.seq = match self.rows.next()? {
            Some(row) => Some(row.get(0)?),
            None => None,
        };
        match self.seq {
            Some(seq) => self.order.next(seq, "rows of a read model"),
            None => Ok(()),
        }
    }

    /// Whether the row at hand is exactly `row`.
    pub fn matches(&self, row: &RowChange<'_>) -> bool {
        self.rows.get().is_some_and(|found| {
            row.with_columns(|columns| {
                columns
                    .iter()
                    .enumerate()
                    .all(|(at, want)| found.get_ref(at).is_ok_and(|have| want.matches(have)))
            })
        })
    }

    /// The row at hand as text, for findings.
    pub fn describe(&self) -> String {
        let Some(row) = self.rows.get() else {
            return "no row".to_owned();
        };
        let part = |at| match row.get_ref(at) {
            Ok(ValueRef::Blob(bytes)) => Column::Blob(bytes).describe(),
            Ok(ValueRef::Integer(value)) => value.to_string(),
            Ok(ValueRef::Text(text)) => format!("{:?}", String::from_utf8_lossy(text)),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        };
        let parts: Vec<_> = (0..row.as_ref().column_count()).map(part).collect();
        format!("row ({})", parts.join(", "))
    }
}
