-- What happened, in order, over all campaigns. Everything else but blobs, workers and meta follows from it.
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,  -- 1, 2, 3, ... without gaps
  campaign INTEGER NOT NULL REFERENCES campaigns (number),
  time_us  INTEGER NOT NULL,     -- since 1970
  kind     INTEGER NOT NULL,     -- which field of the Event's oneof
  payload  BLOB    NOT NULL      -- pawl.v1.Event
) STRICT;
CREATE INDEX events_by_campaign ON events (campaign);

-- Append-only, whoever writes. The third also stops INSERT OR REPLACE.
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_have_no_gaps BEFORE INSERT ON events
WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM events)
BEGIN SELECT RAISE(ABORT, 'the sequence of events rises by one'); END;

CREATE TABLE campaigns (
  number     INTEGER PRIMARY KEY,
  state      INTEGER NOT NULL,   -- pawl.v1.CampaignState
  ended      INTEGER NOT NULL CHECK (ended IN (0, 1)),  -- and nothing of it is being verified
  request_id TEXT UNIQUE,        -- of the submission; NULL: it had none
  summary    BLOB    NOT NULL    -- pawl.v1.Campaign
) STRICT;
CREATE INDEX campaigns_unfinished ON campaigns (number) WHERE ended = 0;

CREATE TABLE iterations (
  sequence   INTEGER PRIMARY KEY REFERENCES events (sequence),  -- of the event that judged it
  campaign   INTEGER NOT NULL REFERENCES campaigns (number),
  number     INTEGER NOT NULL,
  parent     INTEGER,            -- NULL: the start variant
  verdict    INTEGER NOT NULL CHECK (verdict IN (1, 2, 3)),  -- pawl.v1.Verdict
  comparison INTEGER NOT NULL,   -- pawl.v1.ComparisonResult
  variable   TEXT    NOT NULL,   -- that was changed; empty: none
  finding    TEXT    NOT NULL,   -- rule that the change served; empty: none
  speedup    REAL    NOT NULL,   -- over the start variant; 0: not compared
  time_us    REAL    NOT NULL,
  summary    BLOB    NOT NULL    -- pawl.v1.Iteration
) STRICT;
-- One index for each filter and order, so that any page of a list is one range of an index. Lists of all verdicts merge
-- the ranges of the three, which halves the number of indexes that every insert pays for.
CREATE UNIQUE INDEX iterations_all ON iterations (campaign, number);
CREATE INDEX iterations_verdict ON iterations (campaign, verdict, number);
CREATE INDEX iterations_verdict_speedup ON iterations (campaign, verdict, speedup, number);
CREATE INDEX iterations_variable ON iterations (campaign, verdict, variable, number);
CREATE INDEX iterations_variable_speedup ON iterations (campaign, verdict, variable, speedup, number);
CREATE INDEX iterations_finding ON iterations (campaign, verdict, finding, number);
CREATE INDEX iterations_finding_speedup ON iterations (campaign, verdict, finding, speedup, number);
CREATE INDEX iterations_variable_finding ON iterations (campaign, verdict, variable, finding, number);
CREATE INDEX iterations_variable_finding_speedup ON iterations (campaign, verdict, variable, finding, speedup, number);

CREATE TABLE blobs (
  hash    TEXT PRIMARY KEY,      -- SHA-256 of content, hexadecimal
  kind    INTEGER NOT NULL,      -- pawl.v1.Blob.Kind
  bytes   INTEGER NOT NULL,
  content BLOB    NOT NULL
) STRICT;

CREATE TABLE workers (
  name     TEXT PRIMARY KEY,
  instance TEXT NOT NULL,
  summary  BLOB NOT NULL         -- pawl.v1.Worker
) STRICT;

-- secret: 32 random bytes, made with the file. probe: how often it was tried whether the file can be written.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
