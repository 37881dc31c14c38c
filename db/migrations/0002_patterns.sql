-- How often iterations that served a finding had the same outcome: what patterns are made of. A row for each gain that was
-- measured, so that a median can be told without reading a million iterations.
CREATE TABLE pattern_counts (
  bundle       TEXT    NOT NULL,  -- its name
  rule         TEXT    NOT NULL,  -- that the change served
  architecture TEXT    NOT NULL,  -- sm_90
  resource     INTEGER NOT NULL,  -- pawl.v1.Resource of the effect
  direction    INTEGER NOT NULL,  -- pawl.v1.Direction of it
  gain         REAL    NOT NULL,  -- speedup over the parent, rounded by who writes; 0: not timed
  tried        INTEGER NOT NULL,
  kept         INTEGER NOT NULL,
  timed        INTEGER NOT NULL,
  predictions  INTEGER NOT NULL,  -- that were checked
  came_true    INTEGER NOT NULL,
  PRIMARY KEY (bundle, rule, architecture, resource, direction, gain)
) STRICT, WITHOUT ROWID;

CREATE TABLE pattern_files (
  source  TEXT PRIMARY KEY,
  content BLOB NOT NULL           -- pawl.v1.PatternFile that was imported
) STRICT, WITHOUT ROWID;
