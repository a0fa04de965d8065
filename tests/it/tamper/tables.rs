//! Rows dropped, swapped, doubled and changed through SQL, with the triggers taken off and put back.

use std::path::Path;
use std::time::Instant;

use clover::store::CreateOptions;
use proptest::prelude::Rng as _;
use proptest::test_runner::RngAlgorithm;
use proptest::test_runner::TestRng;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::stage::Counts;
use super::stage::Files;
use super::stage::Outcome;
use super::stage::Scene;
use super::stage::Stage;
use super::stage::judge_all;
use super::stage::slow;
use crate::support::TestLedger;
use crate::support::full;
use crate::support::score;

/// Every table, with its key column.
const TABLES: [(&str, &str); 13] = [
    ("entries", "seq"),
    ("authors", "id"),
    ("checkpoints", "size"),
    ("tiles", "id"),
    ("blobs", "id"),
    ("digest_index", "digest"),
    ("cursors", "name"),
    ("snapshots", "fold"),
    ("scores", "seq"),
    ("labels", "seq"),
    ("seals", "seq"),
    ("reveals", "seq"),
    ("kind_runs", "first"),
];

/// A ledger with every kind and `scores` scores, and its files.
fn ledger(scores: u64) -> (TestLedger, Files) {
    let mut test = TestLedger::unnamed(CreateOptions::default());
    full::every_kind(&mut test);
    let all: Vec<_> = (10..10 + scores).map(score).collect();
    for batch in all.chunks(97) {
        test.append(batch).unwrap();
    }
    test.check_all();
    let conn = Connection::open(test.path()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    let files = Files::copy(&test);
    (test, files)
}

/// Runs `change` on a plain connection without triggers, which are put back as they were.
pub fn without_triggers(path: &Path, change: impl FnOnce(&Connection)) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA synchronous=OFF; BEGIN").unwrap();
    let mut found = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid")
        .unwrap();
    let triggers: Vec<(String, String)> = found
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    drop(found);
    for (name, _) in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    change(&conn);
    for (_, sql) in &triggers {
        conn.execute_batch(sql).unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
}

fn columns(conn: &Connection, table: &str) -> Vec<String> {
    let mut found = conn
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
        .unwrap();
    found
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The keys of a table, in order.
fn keys(conn: &Connection, table: &str, key: &str) -> Vec<Value> {
    let mut found = conn
        .prepare(&format!("SELECT {key} FROM {table} ORDER BY {key}"))
        .unwrap();
    found
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The same value, a little off.
fn bent(value: Value, by: u64) -> Value {
    let step = i64::try_from(by % 3).unwrap() + 1;
    match value {
        Value::Integer(old) if by.is_multiple_of(2) => Value::Integer(old + step),
        Value::Integer(old) => Value::Integer(old - step),
        Value::Text(old) => Value::Text(format!("{old}x")),
        Value::Blob(mut old) if !old.is_empty() && !by.is_multiple_of(5) => {
            let at = usize::try_from(by).unwrap() % old.len();
            old[at] ^= 1 << (by % 8);
            Value::Blob(old)
        }
        Value::Blob(mut old) => {
            old.push(0);
            Value::Blob(old)
        }
        other => other,
    }
}

fn bend(conn: &Connection, table: &str, key: &str, of: &Value, column: &str, by: u64) -> bool {
    let select = format!("SELECT {column} FROM {table} WHERE {key} = ?1");
    let old: Value = conn.query_row(&select, [of], |row| row.get(0)).unwrap();
    let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {key} = ?2");
    // What a constraint refuses (a key that exists) is no change.
    conn.execute(&sql, rusqlite::params![bent(old, by), of])
        .is_ok()
}

fn drop_row(conn: &Connection, table: &str, key: &str, of: &Value) {
    conn.execute(&format!("DELETE FROM {table} WHERE {key} = ?1"), [of])
        .unwrap();
}

/// Exchanges everything but the keys of two rows.
fn swap(conn: &Connection, table: &str, key: &str, a: &Value, b: &Value) {
    let rest: Vec<_> = columns(conn, table)
        .into_iter()
        .filter(|name| name != key)
        .collect();
    let list = rest.join(", ");
    let row = |of: &Value| -> Vec<Value> {
        conn.query_row(
            &format!("SELECT {list} FROM {table} WHERE {key} = ?1"),
            [of],
            |row| (0..rest.len()).map(|at| row.get(at)).collect(),
        )
        .unwrap()
    };
    let (left, right) = (row(a), row(b));
    let marks: Vec<_> = (1..=rest.len() + 1).map(|n| format!("?{n}")).collect();
    for of in [a, b] {
        drop_row(conn, table, key, of);
    }
    for (of, values) in [(a, right), (b, left)] {
        let sql = format!(
            "INSERT INTO {table} ({key}, {list}) VALUES ({})",
            marks.join(", ")
        );
        let values = std::iter::once(of.clone()).chain(values);
        conn.execute(&sql, rusqlite::params_from_iter(values))
            .unwrap();
    }
}

/// Writes a row again under another key: the next one, or a bent one.
fn double(conn: &Connection, table: &str, key: &str, of: &Value, last: &Value) -> bool {
    let rest: Vec<_> = columns(conn, table)
        .into_iter()
        .filter(|name| name != key)
        .collect();
    let list = rest.join(", ");
    let other = match last {
        Value::Integer(last) => Value::Integer(last + 1),
        _ => bent(of.clone(), 1),
    };
    // A unique column refuses, then nothing changed.
    conn.execute(
        &format!(
            "INSERT INTO {table} ({key}, {list}) SELECT ?1, {list} FROM {table} WHERE {key} = ?2"
        ),
        rusqlite::params![other, of],
    )
    .is_ok()
}

/// One change of a table.
#[derive(Clone, Debug)]
enum Change {
    Drop(usize, usize),
    Bend(usize, usize, usize, u64),
    Swap(usize, usize, usize),
    Double(usize, usize),
    DropTrigger(usize),
    Byte(usize, u8),
}

/// Puts the files on the stage with one change. False when a constraint refused it.
fn apply(stage: &Stage, files: &Files, change: &Change) -> bool {
    if let Change::Byte(at, flip) = change {
        let mut files = files.clone();
        let at = at % files.db.len();
        files.db[at] ^= flip;
        stage.put(&files);
        return true;
    }
    stage.put(files);
    if let Change::DropTrigger(at) = change {
        let conn = Connection::open(stage.path()).unwrap();
        let names =
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name LIMIT 1 OFFSET ?1";
        let name: String = conn
            .query_row(names, [i64::try_from(at % 24).unwrap()], |row| row.get(0))
            .unwrap();
        conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        return true;
    }
    let mut changed = true;
    without_triggers(&stage.path(), |conn| {
        let pick = |table: usize| TABLES[table % TABLES.len()];
        let key_of = |table: usize, at: usize| {
            let (table, key) = pick(table);
            let keys = keys(conn, table, key);
            (keys[at % keys.len()].clone(), keys[keys.len() - 1].clone())
        };
        match change {
            Change::Drop(table, at) => {
                let (name, key) = pick(*table);
                drop_row(conn, name, key, &key_of(*table, *at).0);
            }
            Change::Bend(table, at, column, by) => {
                let (name, key) = pick(*table);
                let columns = columns(conn, name);
                let column = &columns[column % columns.len()];
                changed = bend(conn, name, key, &key_of(*table, *at).0, column, *by);
            }
            Change::Swap(table, a, b) => {
                let (name, key) = pick(*table);
                let (a, b) = (key_of(*table, *a).0, key_of(*table, *b).0);
                if a != b {
                    swap(conn, name, key, &a, &b);
                }
            }
            Change::Double(table, at) => {
                let (name, key) = pick(*table);
                let (of, last) = key_of(*table, *at);
                changed = double(conn, name, key, &of, &last);
            }
            Change::DropTrigger(_) | Change::Byte(..) => {}
        }
    });
    changed
}

#[test]
fn every_table_is_guarded_row_by_row_and_column_by_column() {
    let (test, files) = ledger(260);
    let scene = Scene::of(&test);
    let honest = Stage::new(&scene).honest(&files);
    let stage = Stage::new(&scene);
    let conn = Connection::open(test.path()).unwrap();
    let mut harmless = Vec::new();
    let mut counts = Counts::default();
    for (place, (table, key)) in TABLES.iter().enumerate() {
        let rows = keys(&conn, table, key).len();
        assert!(rows > 0, "{table} has rows");
        let columns = columns(&conn, table);
        let mut changes = vec![Change::Double(place, 0)];
        let ends = [0, rows / 2, rows - 1];
        changes.extend(ends.map(|at| Change::Drop(place, at)));
        for column in 0..columns.len() {
            let bends = |at| [1, 2].map(|by| Change::Bend(place, at, column, by));
            if slow() {
                changes.extend(ends.into_iter().flat_map(bends));
            } else {
                // Each column at one of the places.
                let [bend, _] = bends(ends[(place + column) % ends.len()]);
                changes.push(bend);
            }
        }
        if rows > 1 {
            changes.push(Change::Swap(place, 0, rows - 1));
        }
        for change in changes {
            if !apply(&stage, &files, &change) {
                continue;
            }
            let outcome = stage.judge(&honest);
            if outcome == Outcome::Harmless {
                harmless.push((*table, format!("{change:?}")));
            }
            counts.add(|| format!("{table} {change:?}"), outcome);
        }
    }
    // A snapshot is a cache: without it, or with one of another rulebook, the state is folded anew. Blobs
    // in another order are the same blobs, and cursors that read as far as each other are the same cursors.
    let unexpected: Vec<_> = harmless
        .iter()
        .filter(|(table, change)| {
            let is_order = change.starts_with("Swap(4") || change.starts_with("Swap(6");
            *table != "snapshots" && !is_order
        })
        .collect();
    eprintln!("harmless: {harmless:?}");
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    counts.finish("rows and columns");
}

#[test]
fn random_mutations_of_a_larger_ledger() {
    let began = Instant::now();
    let (scores, count) = if slow() { (2_970, 10_000) } else { (300, 80) };
    let (test, files) = ledger(scores);
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[42; 32]);
    let mut draw = |below: usize| usize::try_from(rng.next_u64() % below as u64).unwrap();
    let changes: Vec<_> = (0..count)
        .map(|_| {
            let (table, at) = (draw(TABLES.len()), draw(1 << 20));
            match draw(10) {
                0 => Change::Drop(table, at),
                1 | 2 => Change::Bend(table, at, draw(16), draw(1 << 16) as u64),
                3 => Change::Swap(table, at, draw(1 << 20)),
                4 => Change::Double(table, at),
                5 => Change::DropTrigger(at),
                // A blob replaced by other bytes.
                6 => Change::Bend(4, at, 2, draw(1 << 16) as u64),
                _ => Change::Byte(draw(1 << 30), 1 << draw(8)),
            }
        })
        .collect();
    let apply = |stage: &Stage, change: &Change| {
        apply(stage, &files, change);
    };
    let name = |change: &Change| format!("{change:?}");
    let counts = judge_all(&Scene::of(&test), &files, &changes, apply, name);
    let took = began.elapsed().as_secs_f64();
    eprintln!("a ledger of {} events, {took:.1} s", test.ledger.size());
    counts.finish("random mutations");
}

#[test]
fn insert_or_replace_cannot_overwrite_history() {
    let (test, files) = ledger(260);
    let stage = Stage::new(&Scene::of(&test));
    stage.put(&files);
    for (table, key) in TABLES {
        if ["digest_index", "cursors", "snapshots", "kind_runs"].contains(&table) {
            continue;
        }
        let conn = Connection::open(stage.path()).unwrap();
        let rest: Vec<_> = columns(&conn, table);
        let list = rest.join(", ");
        let count = || keys(&conn, table, key).len();
        let before = count();
        for sql in [
            format!("INSERT OR REPLACE INTO {table} ({list}) SELECT {list} FROM {table} LIMIT 1"),
            format!(
                "REPLACE INTO {table} ({list}) SELECT {list} FROM {table} ORDER BY {key} DESC LIMIT 1"
            ),
            format!("UPDATE OR REPLACE {table} SET {key} = {key}"),
            format!("DELETE FROM {table}"),
        ] {
            let error = conn.execute(&sql, []).unwrap_err().to_string();
            assert!(
                ["append-only", "out of order", "author_seq exists"]
                    .iter()
                    .any(|word| error.contains(word)),
                "{sql}: {error}"
            );
        }
        assert_eq!(count(), before);
    }
    // A new position with an old (author, author_seq) would take the old row away without the trigger.
    let conn = Connection::open(stage.path()).unwrap();
    let error = conn
        .execute(
            "INSERT OR REPLACE INTO entries SELECT (SELECT max(seq) + 1 FROM entries), author, author_seq, \
             recorded_at, body, signature FROM entries WHERE seq = 0",
            [],
        )
        .unwrap_err();
    assert!(error.to_string().contains("author_seq exists"), "{error}");
    let error = conn
        .execute(
            "INSERT OR REPLACE INTO blobs SELECT (SELECT max(id) + 1 FROM blobs), digest, x'00' FROM blobs \
             WHERE id = 1",
            [],
        )
        .unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
    let honest = Stage::new(&Scene::of(&test)).honest(&files);
    drop(conn);
    assert_eq!(stage.judge(&honest), Outcome::Harmless);
}
