-- Where the entries of each kind stand, as runs of neighbours. Rebuilt from `entries`, which it may lag behind, and compared
-- with them by `verify`: no rule reads it, and what it points at is held against the entry itself.

CREATE TABLE kind_runs (
  kind    TEXT NOT NULL,    -- kind of the events
  first   INTEGER NOT NULL, -- first entry of the run
  entries INTEGER NOT NULL, -- how many entries of the kind follow one another from there, at least 1
  PRIMARY KEY (kind, first)
) STRICT, WITHOUT ROWID;
