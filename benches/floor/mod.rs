//! What the primitives of an append cost by themselves: one signature, two hashes and an insert.

use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use clover::event::PAYLOAD_TYPE;
use clover::ground::merkle;
use clover::ground::sign;
use clover::ground::sign::Signer;
use ed25519_dalek::Signer as _;

/// Calls that are timed together.
pub(crate) const SAMPLE: usize = 20_000;
/// Commands per transaction, as `append --bulk` has it.
pub(crate) const BATCH: u64 = 16_384;

/// User plus system time of this process; the kernel counts it in hundredths of a second.
pub(crate) fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// What one call costs each core while all make it, in microseconds.
pub(crate) fn together(count: usize, work: impl Fn() + Sync) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| (0..count).for_each(|_| work()));
        }
    });
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// Signing bodies of so many bytes on all cores at once, the peer's or ours, whichever is faster.
pub(crate) fn sign(bytes: usize) -> f64 {
    let owner = Signer::from_seed(&[1; 32]);
    let signing = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let message = sign::pae(PAYLOAD_TYPE, &vec![b'x'; bytes]);
    let peer = together(SAMPLE, || {
        std::hint::black_box(signing.sign(&message));
    });
    peer.min(together(SAMPLE, || {
        std::hint::black_box(owner.sign(&message));
    }))
}

/// The leaf of an entry whose body has so many bytes, and a node over it.
pub(crate) fn hash(bytes: usize) -> f64 {
    // The body in base64, and what stands around it.
    let line = vec![b'x'; 330 + bytes * 4 / 3];
    together(SAMPLE, || {
        let leaf = merkle::leaf_hash(&line);
        std::hint::black_box(merkle::node_hash(&leaf, &leaf));
    })
}

/// A plain table of the same columns in large transactions, without triggers or indexes, of bodies of so many bytes.
pub(crate) fn insert(folder: &Path, bytes: usize) -> f64 {
    let path = folder.join("floor.db");
    std::fs::remove_file(&path).ok();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch(
        "CREATE TABLE e (seq INTEGER PRIMARY KEY, author INTEGER, author_seq INTEGER, at INTEGER, \
         body BLOB, signature BLOB) STRICT",
    )
    .unwrap();
    let (body, signature) = (vec![b'x'; bytes], vec![b'y'; 64]);
    let before = cpu();
    let count = 200_000;
    for from in (0..count).step_by(BATCH as usize) {
        conn.execute_batch("BEGIN").unwrap();
        let mut insert = conn
            .prepare_cached("INSERT INTO e VALUES (?1, 1, ?1, ?1, ?2, ?3)")
            .unwrap();
        for seq in from..count.min(from + BATCH as i64) {
            insert
                .execute(rusqlite::params![seq, body, signature])
                .unwrap();
        }
        drop(insert);
        conn.execute_batch("COMMIT").unwrap();
    }
    (cpu() - before).as_secs_f64() * 1e6 / count as f64
}
