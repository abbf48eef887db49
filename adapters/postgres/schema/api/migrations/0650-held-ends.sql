-- The api that ends an attachment for which Cinder must be told something once: no other one begins meanwhile.
alter table volumes add column end_holder uuid;
alter table volumes add column end_held_until timestamptz;
