-- Campaigns that were moved into a file (db/archive.h). Their numbers, and those of their events, are not given again.
CREATE TABLE archived (
  campaign      INTEGER PRIMARY KEY,
  last_sequence INTEGER NOT NULL,  -- of its latest event
  content       TEXT    NOT NULL,  -- hash of what the file holds
  file          TEXT    NOT NULL,  -- as it was named then
  time_us       INTEGER NOT NULL
) STRICT;
CREATE INDEX archived_by_sequence ON archived (last_sequence);

DROP TRIGGER events_have_no_gaps;
CREATE TRIGGER events_have_no_gaps BEFORE INSERT ON events
WHEN NEW.sequence IS NOT 1 + max(coalesce((SELECT max(sequence) FROM events), 0),
                                 coalesce((SELECT max(last_sequence) FROM archived), 0))
BEGIN SELECT RAISE(ABORT, 'the sequence of events rises by one'); END;
