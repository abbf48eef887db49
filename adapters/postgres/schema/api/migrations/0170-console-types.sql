-- The type of the console to which a token gives access. Older apis make tokens of serial consoles only.
alter table console_tokens add column console_type text not null default 'serial';
