-- When a call last opened the note, until it is settled: Neutron may still carry out what that call has asked for.
alter table port_notes add column called_at timestamptz;
