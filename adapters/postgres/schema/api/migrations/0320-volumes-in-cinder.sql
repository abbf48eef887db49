-- With Cinder, a row stands for a volume there that a server has, will get, or had last.
alter table volumes add column in_cinder boolean not null default false;
