-- Until version 3 the rows of iterations and campaigns were not always what the events make of them: a total gain corrected
-- one row where the state corrects every product of steps, and counts of changes included iteration 0 and changes that a
-- recording lacks. SQL can't replay events, so that a database with campaigns is marked here. The orchestrator replaces its
-- rows when it next loads it, and removes the mark.
INSERT INTO meta (key, value) SELECT 'outdated rows', x'' WHERE EXISTS (SELECT 1 FROM campaigns);
