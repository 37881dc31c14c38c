-- What was handed out of pattern_counts, by its content: a file of it that comes back counts already.
CREATE TABLE pattern_exports (
  hash TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
