-- The name of the cell that this database belongs to, so that no URL gives it to another cell by mistake. Null until `berth cell add`, `berth db migrate`
-- or a conductor has named it, as in databases of older versions.
alter table incarnation add column cell_name text;
