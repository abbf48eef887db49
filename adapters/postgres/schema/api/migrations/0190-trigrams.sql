-- Lists by name look for a text within the names, which only an index of trigrams serves. The extension is part of PostgreSQL, and the owner of a
-- database may create it.
create extension if not exists pg_trgm;
