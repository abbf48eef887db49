-- When an operator last said that this database was restored (berth cell restored). Null if nobody has said so since this column exists.
alter table incarnation add column restored_at timestamptz;
