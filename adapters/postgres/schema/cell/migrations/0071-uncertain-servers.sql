-- Since when it is unknown where the server runs, because the database has lost commits. Its owner may not start it until an operator has set
-- it to active.
alter table servers add column uncertain_since timestamptz;
