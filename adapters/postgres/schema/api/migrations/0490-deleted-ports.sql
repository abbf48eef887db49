-- The ports that Neutron has reported as deleted since the note was last settled. Only these may leave the server's record.
alter table port_notes add column deleted_ports uuid[] not null default '{}';
