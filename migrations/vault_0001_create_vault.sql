-- The vault: secrets whose destruction is the point. Never part of the ledger file.

CREATE TABLE subjects (
  subject BLOB PRIMARY KEY, -- the subject's public handle, 32 bytes
  secret  BLOB NOT NULL     -- its key, 32 bytes; the row is deleted on erasure
) STRICT;

CREATE TABLE pepper (
  id     INTEGER PRIMARY KEY CHECK (id = 1), -- one row
  secret BLOB NOT NULL                       -- key of identifiers that belong to no subject, 32 bytes
) STRICT;
