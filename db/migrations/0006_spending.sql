-- What trials took, by the author of their campaign and the hour in which they ended. Limits by author are of this, so that it
-- stays when campaigns are archived.
CREATE TABLE spending (
  author      TEXT    NOT NULL,
  hour        INTEGER NOT NULL,  -- since 1970
  gpu_seconds REAL    NOT NULL,
  dollars     REAL    NOT NULL,
  PRIMARY KEY (author, hour)
) STRICT, WITHOUT ROWID;
-- SQL can't read the events of earlier campaigns. The orchestrator counts them when it next loads the database, and removes the
-- mark.
INSERT INTO meta (key, value) SELECT 'uncounted spending', x'' WHERE EXISTS (SELECT 1 FROM campaigns);

-- What is asked of a campaign after it was archived: by a submission that is repeated, and for what its baseline took.
ALTER TABLE archived ADD COLUMN request_id TEXT;  -- NULL: it had none, or an older Pawl archived it
ALTER TABLE archived ADD COLUMN summary BLOB;     -- pawl.v1.Campaign, without what is long; NULL: an older Pawl archived it
CREATE INDEX archived_requests ON archived (request_id);
