-- The ledger file. Tables of history refuse UPDATE, DELETE and any INSERT out of order; the Merkle tree is
-- the real guard. Every other table can be rebuilt from `entries` and is compared with it by `verify`.

CREATE TABLE authors (
  id     INTEGER PRIMARY KEY, -- small number that stands for the key in entries, from 1 in order of first use
  key_id BLOB NOT NULL        -- SHA-256 of the key's SPKI DER, 32 bytes: the envelope's keyid
) STRICT;

CREATE TABLE entries (
  seq         INTEGER PRIMARY KEY, -- position in the log, from 0 without gaps
  author      INTEGER NOT NULL,    -- authors.id of the signing key
  author_seq  INTEGER NOT NULL,    -- the author's own counter, as in the body
  recorded_at INTEGER NOT NULL,    -- microseconds since 1970 UTC, never decreasing
  body        BLOB NOT NULL,       -- the exact bytes that were signed
  signature   BLOB NOT NULL,       -- Ed25519 over the DSSE encoding of body, 64 bytes
  UNIQUE (author, author_seq)
) STRICT;

CREATE TABLE checkpoints (
  size INTEGER PRIMARY KEY, -- entries under the checkpoint
  note BLOB NOT NULL        -- the signed note
) STRICT;

CREATE TABLE tiles (
  id     INTEGER PRIMARY KEY, -- level * 2^48 + index of a full tile
  root   BLOB NOT NULL,       -- root of the 256 hashes, 32 bytes
  hashes BLOB NOT NULL        -- 256 hashes, 8192 bytes
) STRICT;

CREATE TABLE blobs (
  id     INTEGER PRIMARY KEY, -- order of arrival, from 1
  digest BLOB NOT NULL UNIQUE, -- BLAKE3-256 of bytes
  bytes  BLOB NOT NULL        -- content; private content is ciphertext
) STRICT;

CREATE TABLE digest_index (
  digest BLOB PRIMARY KEY, -- event id, natural key, seal or charge digest
  seq    INTEGER NOT NULL  -- the entry that first gave it
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
  name    TEXT PRIMARY KEY, -- what is filled: digest_index
  through INTEGER NOT NULL  -- entries taken in so far
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
  fold     TEXT PRIMARY KEY, -- name of the fold
  rulebook INTEGER NOT NULL, -- version of the rulebook that folded it
  size     INTEGER NOT NULL, -- entries folded
  root     BLOB NOT NULL,    -- root of the tree of that size
  state    BLOB NOT NULL     -- canonical JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE scores (
  seq         INTEGER PRIMARY KEY, -- the score.recorded entry
  experiment  TEXT NOT NULL,       -- experiment id
  judge       TEXT NOT NULL,       -- judge id
  policy      TEXT NOT NULL,       -- policy id
  item        TEXT NOT NULL,       -- item id
  draw        INTEGER NOT NULL,    -- draw of the policy on the item, from 0
  score_micro INTEGER NOT NULL     -- score in millionths
) STRICT;

CREATE TABLE labels (
  seq         INTEGER PRIMARY KEY, -- the label.recorded entry
  experiment  TEXT NOT NULL,       -- experiment id
  design      TEXT NOT NULL,       -- label design id
  policy      TEXT NOT NULL,       -- policy id
  item        TEXT NOT NULL,       -- item id
  draw        INTEGER NOT NULL,    -- draw of the policy on the item, from 0
  rater       TEXT NOT NULL,       -- rater id
  purpose     TEXT NOT NULL,       -- calibrate or audit
  value_micro INTEGER NOT NULL     -- label in millionths
) STRICT;

CREATE TABLE seals (
  seq        INTEGER PRIMARY KEY, -- the label.sealed entry
  experiment TEXT NOT NULL,       -- experiment id
  design     TEXT NOT NULL,       -- label design id
  row        TEXT NOT NULL,       -- row id
  commitment BLOB NOT NULL,       -- salted commitment to the label, 32 bytes
  reveal_by  INTEGER NOT NULL     -- deadline, microseconds since 1970 UTC
) STRICT;

CREATE TABLE reveals (
  seq         INTEGER PRIMARY KEY, -- the label.revealed entry
  experiment  TEXT NOT NULL,       -- experiment id
  design      TEXT NOT NULL,       -- label design id
  row         TEXT NOT NULL,       -- row id
  charge      BLOB NOT NULL,       -- id of the budget.charged event that paid, 32 bytes
  value_micro INTEGER NOT NULL     -- label in millionths
) STRICT;

CREATE TRIGGER authors_keep BEFORE UPDATE ON authors BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER authors_stay BEFORE DELETE ON authors BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER authors_next BEFORE INSERT ON authors
  WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM authors) OR length(NEW.key_id) <> 32
  BEGIN SELECT RAISE(ABORT, 'out of order'); END;

CREATE TRIGGER entries_keep BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
-- Here and in the read models FAIL, not ABORT: nothing of the row is written when this speaks, and a
-- statement that never has to undo a part of itself needs no journal of its own.
CREATE TRIGGER entries_next BEFORE INSERT ON entries
  WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), -1) + 1 FROM entries) OR length(NEW.signature) <> 64
    OR EXISTS (SELECT 1 FROM entries WHERE author = NEW.author AND author_seq = NEW.author_seq)
  BEGIN
    SELECT RAISE(FAIL, 'author_seq exists')
      WHERE EXISTS (SELECT 1 FROM entries WHERE author = NEW.author AND author_seq = NEW.author_seq);
    SELECT RAISE(FAIL, 'out of order');
  END;

CREATE TRIGGER checkpoints_keep BEFORE UPDATE ON checkpoints BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER checkpoints_stay BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER checkpoints_next BEFORE INSERT ON checkpoints
  WHEN NEW.size <= (SELECT max(size) FROM checkpoints)
  BEGIN SELECT RAISE(ABORT, 'out of order'); END;

CREATE TRIGGER tiles_keep BEFORE UPDATE ON tiles BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER tiles_stay BEFORE DELETE ON tiles BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER tiles_once BEFORE INSERT ON tiles
  WHEN EXISTS (SELECT 1 FROM tiles WHERE id = NEW.id) OR length(NEW.hashes) <> 8192
  BEGIN SELECT RAISE(ABORT, 'out of order'); END;

CREATE TRIGGER blobs_keep BEFORE UPDATE ON blobs BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_stay BEFORE DELETE ON blobs BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_next BEFORE INSERT ON blobs
  WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM blobs)
    OR EXISTS (SELECT 1 FROM blobs WHERE digest = NEW.digest)
  BEGIN SELECT RAISE(ABORT, 'out of order'); END;

CREATE TRIGGER scores_keep BEFORE UPDATE ON scores BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER scores_stay BEFORE DELETE ON scores BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER scores_next BEFORE INSERT ON scores
  WHEN NEW.seq <= (SELECT max(seq) FROM scores) BEGIN SELECT RAISE(FAIL, 'out of order'); END;

CREATE TRIGGER labels_keep BEFORE UPDATE ON labels BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER labels_stay BEFORE DELETE ON labels BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER labels_next BEFORE INSERT ON labels
  WHEN NEW.seq <= (SELECT max(seq) FROM labels) BEGIN SELECT RAISE(FAIL, 'out of order'); END;

CREATE TRIGGER seals_keep BEFORE UPDATE ON seals BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER seals_stay BEFORE DELETE ON seals BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER seals_next BEFORE INSERT ON seals
  WHEN NEW.seq <= (SELECT max(seq) FROM seals) BEGIN SELECT RAISE(FAIL, 'out of order'); END;

CREATE TRIGGER reveals_keep BEFORE UPDATE ON reveals BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER reveals_stay BEFORE DELETE ON reveals BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER reveals_next BEFORE INSERT ON reveals
  WHEN NEW.seq <= (SELECT max(seq) FROM reveals) BEGIN SELECT RAISE(FAIL, 'out of order'); END;
