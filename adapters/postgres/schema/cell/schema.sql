-- Written by `npm run schema`: the schema of a migrated database. Make changes in migrations/ and functions/.

create type ledger_batch as (
  consumers uuid[],
  consumer_owner integer[],
  owner_project text[],
  owner_user text[],
  owner_type text[],
  providers uuid[],
  classes text[],
  inventory_provider integer[],
  inventory_class integer[],
  change_step_end integer[],
  change_bumps boolean[],
  step_consumer integer[],
  step_expected integer[],
  step_move_to integer[],
  step_owner integer[],
  step_item_end integer[],
  item_inventory integer[],
  item_amount bigint[]
);

create type ledger_first_claims as (
  consumers uuid[],
  consumer_owner integer[],
  owner_project text[],
  owner_user text[],
  owner_type text[],
  providers uuid[],
  provider_raises integer[],
  classes text[],
  inventory_provider integer[],
  inventory_class integer[],
  inventory_demand bigint[],
  inventory_least bigint[],
  inventory_most bigint[],
  inventory_unit bigint[],
  item_consumer integer[],
  item_inventory integer[],
  item_amount bigint[]
);

create type ledger_rows as (
  generation integer[],
  owner integer[],
  holding_from integer[],
  holding_to integer[],
  owner_project text[],
  owner_user text[],
  owner_type text[],
  holding_amount bigint[],
  stored_provider integer[],
  stored_class integer[],
  provider_id integer[],
  inventory_provider integer[],
  inventory_class integer[],
  used bigint[],
  capacity bigint[],
  min_unit integer[],
  max_unit integer[],
  step_size integer[],
  inventory_row tid[],
  place_named integer[],
  place_stored integer[]
);

create type ledger_tree_batch as (
  tree_root integer[],
  provider_tree integer[],
  provider_uuid uuid[],
  provider_name text[],
  provider_parent integer[],
  provider_expected integer[],
  provider_owns_aggregates boolean[],
  classes text[],
  inventory_provider integer[],
  inventory_class integer[],
  inventory_total integer[],
  inventory_reserved integer[],
  inventory_min_unit integer[],
  inventory_max_unit integer[],
  inventory_step_size integer[],
  inventory_allocation_ratio double precision[],
  traits text[],
  trait_provider integer[],
  trait_trait integer[],
  aggregate_provider integer[],
  aggregate_uuid uuid[]
);

create type ledger_verdicts as (
  kind text[],
  detail jsonb[],
  generations integer[],
  generations_end integer[],
  generation integer[],
  owner integer[],
  type_owner integer[],
  holding_from integer[],
  holding_to integer[],
  used bigint[],
  holding_place integer[],
  step_held_from integer[],
  step_held_to integer[]
);

create type placement_writes as (
  kinds text[],
  targets uuid[],
  expected integer[],
  new_uuids uuid[],
  new_names text[],
  class_end integer[],
  classes text[],
  totals integer[],
  reserves integer[],
  min_units integer[],
  max_units integer[],
  step_sizes integer[],
  ratios double precision[],
  trait_end integer[],
  traits text[],
  aggregate_end integer[],
  aggregates uuid[]
);

create table agents (
  id text not null,
  seen_at timestamp with time zone not null,
  constraint agents_pkey PRIMARY KEY (id)
);

create table allocations (
  consumer_uuid uuid not null,
  provider_id integer not null,
  class_id integer not null,
  amount bigint not null,
  updated_at timestamp with time zone default now() not null,
  constraint allocations_amount_check CHECK ((amount > 0)),
  constraint allocations_pkey PRIMARY KEY (consumer_uuid, provider_id, class_id)
);
CREATE INDEX allocations_provider_id_idx ON public.allocations USING btree (provider_id);

create table attempts (
  task_id uuid not null,
  selection integer not null,
  server_uuid uuid not null,
  host text not null,
  started_at timestamp with time zone default now() not null,
  ended_at timestamp with time zone,
  result text,
  reason text,
  constraint attempts_pkey PRIMARY KEY (task_id, selection),
  constraint attempts_result_check CHECK ((result = ANY (ARRAY['success'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text])))
) with (fillfactor=50);
CREATE INDEX attempts_server_uuid_idx ON public.attempts USING btree (server_uuid);

create table closed_tasks (
  id uuid not null,
  server_uuid uuid not null,
  closed_at timestamp with time zone default now() not null,
  constraint closed_tasks_pkey PRIMARY KEY (id)
);
CREATE INDEX closed_tasks_server_uuid_idx ON public.closed_tasks USING btree (server_uuid);

create table compared_hosts (
  host text not null,
  incarnation text not null,
  compared_at timestamp with time zone default now() not null,
  constraint compared_hosts_pkey PRIMARY KEY (host)
);

create table conductors (
  id uuid not null,
  name text not null,
  lease_expires_at timestamp with time zone not null,
  renewed_at timestamp with time zone,
  constraint conductors_pkey PRIMARY KEY (id)
);

create table consumers (
  uuid uuid not null,
  generation integer not null,
  project_id text not null,
  user_id text not null,
  type text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint consumers_pkey PRIMARY KEY (uuid)
);
CREATE INDEX consumers_project_id_user_id_idx ON public.consumers USING btree (project_id, user_id);

create table group_members (
  server_uuid uuid not null,
  group_uuid uuid not null,
  constraint group_members_pkey PRIMARY KEY (server_uuid)
);
CREATE INDEX group_members_group_uuid_idx ON public.group_members USING btree (group_uuid);

create table hosts (
  name text not null,
  root_provider uuid not null,
  agent_id text not null,
  up boolean not null,
  disabled boolean default false not null,
  disabled_reason text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  hypervisor jsonb default '{}'::jsonb not null,
  forced_down boolean default false not null,
  constraint hosts_pkey PRIMARY KEY (name)
);
CREATE INDEX hosts_agent_id_idx ON public.hosts USING btree (agent_id) WHERE up;
CREATE INDEX hosts_agent_id_idx1 ON public.hosts USING btree (agent_id) WHERE (NOT up);
CREATE INDEX hosts_name_prefix_idx ON public.hosts USING btree (name COLLATE "C");
CREATE INDEX hosts_root_provider_idx ON public.hosts USING btree (root_provider) WHERE disabled;

create table incarnation (
  only_row boolean default true not null,
  id uuid default gen_random_uuid() not null,
  changed_at timestamp with time zone default now() not null,
  restored_at timestamp with time zone,
  timeline text default "left"(pg_walfile_name(pg_current_wal_lsn()), 8) not null,
  timeline_since timestamp with time zone,
  cell_name text,
  constraint incarnation_only_row_check CHECK (only_row),
  constraint incarnation_pkey PRIMARY KEY (only_row)
);

create table inventories (
  provider_id integer not null,
  class_id integer not null,
  total integer not null,
  reserved integer not null,
  min_unit integer not null,
  max_unit integer not null,
  step_size integer not null,
  allocation_ratio double precision not null,
  used bigint default 0 not null,
  updated_at timestamp with time zone default now() not null,
  constraint inventories_class_id_fkey FOREIGN KEY (class_id) REFERENCES resource_classes(id),
  constraint inventories_min_unit_check CHECK ((min_unit > 0)),
  constraint inventories_pkey PRIMARY KEY (provider_id, class_id),
  constraint inventories_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES resource_providers(id),
  constraint inventories_step_size_check CHECK ((step_size > 0)),
  constraint inventories_used_check CHECK ((used >= 0))
) with (fillfactor=70);
CREATE TRIGGER announce_updated AFTER UPDATE ON public.inventories REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_inventories();
CREATE TRIGGER inventory_in_use BEFORE DELETE ON public.inventories FOR EACH ROW WHEN ((old.used > 0)) EXECUTE FUNCTION refuse_inventory_in_use();

create table migrations (
  uuid uuid not null,
  server_uuid uuid not null,
  kind text not null,
  status text not null,
  source_host text,
  source_attempt_id text,
  dest_host text not null,
  dest_attempt_id text not null,
  ended boolean default false not null,
  holds_source boolean default false not null,
  runs boolean not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  updated_at timestamp with time zone default clock_timestamp() not null,
  note text default ''::text not null,
  constraint migrations_pkey PRIMARY KEY (uuid)
) with (fillfactor=70);
CREATE INDEX migrations_from_host ON public.migrations USING btree (source_host, created_at DESC, uuid);
CREATE INDEX migrations_in_flight ON public.migrations USING btree (created_at DESC, uuid) WHERE (NOT ended);
CREATE INDEX migrations_listed ON public.migrations USING btree (created_at DESC, uuid);
CREATE UNIQUE INDEX migrations_server_uuid_idx ON public.migrations USING btree (server_uuid) WHERE (NOT ended);
CREATE INDEX migrations_server_uuid_idx1 ON public.migrations USING btree (server_uuid);
CREATE INDEX migrations_source_host_idx ON public.migrations USING btree (source_host) WHERE holds_source;
CREATE INDEX migrations_to_host ON public.migrations USING btree (dest_host, created_at DESC, uuid);

create table plugged_ports (
  attempt_id text not null,
  port_id text not null,
  migration_uuid uuid not null,
  failed boolean not null,
  constraint plugged_ports_migration_uuid_fkey FOREIGN KEY (migration_uuid) REFERENCES migrations(uuid) ON DELETE CASCADE,
  constraint plugged_ports_pkey PRIMARY KEY (attempt_id, port_id)
);
CREATE INDEX plugged_ports_migration_uuid_idx ON public.plugged_ports USING btree (migration_uuid);

create table provider_aggregates (
  provider_id integer not null,
  aggregate uuid not null,
  constraint provider_aggregates_pkey PRIMARY KEY (provider_id, aggregate),
  constraint provider_aggregates_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES resource_providers(id)
);
CREATE INDEX provider_aggregates_aggregate_idx ON public.provider_aggregates USING btree (aggregate);

create table provider_traits (
  provider_id integer not null,
  trait_id integer not null,
  constraint provider_traits_pkey PRIMARY KEY (provider_id, trait_id),
  constraint provider_traits_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES resource_providers(id),
  constraint provider_traits_trait_id_fkey FOREIGN KEY (trait_id) REFERENCES traits(id)
);
CREATE INDEX provider_traits_trait_id_idx ON public.provider_traits USING btree (trait_id);

create table quarantined_guests (
  host text not null,
  attempt_id text not null,
  server_uuid text not null,
  state text not null,
  reason text not null,
  found_at timestamp with time zone default now() not null,
  condemned boolean default false not null,
  host_disabled boolean default false not null,
  holds boolean default true not null,
  constraint quarantined_guests_pkey PRIMARY KEY (host, attempt_id)
);
CREATE INDEX quarantined_guests_server_uuid_idx ON public.quarantined_guests USING btree (server_uuid);

create table ratio_overrides (
  root uuid not null,
  class text not null,
  ratio double precision not null,
  constraint ratio_overrides_pkey PRIMARY KEY (root, class),
  constraint ratio_overrides_ratio_check CHECK ((ratio > (0)::double precision))
);

create table reported_ratios (
  provider uuid not null,
  class text not null,
  ratio double precision not null,
  constraint reported_ratios_pkey PRIMARY KEY (provider, class)
);

create table reported_trees (
  root uuid not null,
  providers jsonb not null,
  kept jsonb default '[]'::jsonb not null,
  refusal text default ''::text not null,
  updated_at timestamp with time zone default now() not null,
  constraint reported_trees_pkey PRIMARY KEY (root),
  constraint reported_trees_root_fkey FOREIGN KEY (root) REFERENCES resource_providers(uuid) ON DELETE CASCADE
);

create table resource_classes (
  id integer generated always as identity not null,
  name text not null,
  updated_at timestamp with time zone default now() not null,
  constraint resource_classes_name_key UNIQUE (name),
  constraint resource_classes_pkey PRIMARY KEY (id)
);

create table resource_providers (
  id integer generated always as identity not null,
  uuid uuid not null,
  name text not null,
  parent_id integer,
  root_id integer not null,
  generation integer default 0 not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint resource_providers_name_key UNIQUE (name),
  constraint resource_providers_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES resource_providers(id),
  constraint resource_providers_pkey PRIMARY KEY (id),
  constraint resource_providers_root_id_fkey FOREIGN KEY (root_id) REFERENCES resource_providers(id) DEFERRABLE INITIALLY DEFERRED,
  constraint resource_providers_uuid_key UNIQUE (uuid)
) with (fillfactor=70);
CREATE INDEX resource_providers_parent_id_idx ON public.resource_providers USING btree (parent_id);
CREATE INDEX resource_providers_root_id_idx ON public.resource_providers USING btree (root_id);

create table schema_functions (
  name text not null,
  revision integer not null,
  checksum text not null,
  applied_at timestamp with time zone default now() not null,
  constraint schema_functions_pkey PRIMARY KEY (name)
);

create table schema_migrations (
  name text not null,
  kind text not null,
  checksum text not null,
  applied_at timestamp with time zone default now() not null,
  breaking boolean default false not null,
  constraint schema_migrations_pkey PRIMARY KEY (name)
);

create table servers (
  uuid uuid not null,
  status text not null,
  task_state text,
  spec bytea not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  host text,
  attempt_id text,
  fault text,
  fault_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone default now() not null,
  launched_at timestamp with time zone,
  deleted_at timestamp with time zone,
  revision integer default 0 not null,
  later_tasks uuid[] default '{}'::uuid[] not null,
  uncertain_since timestamp with time zone,
  constraint servers_pkey PRIMARY KEY (uuid),
  constraint servers_status_check CHECK ((status = ANY (ARRAY['BUILD'::text, 'ACTIVE'::text, 'ERROR'::text, 'DELETED'::text, 'CLOSED'::text, 'SHUTOFF'::text, 'PAUSED'::text, 'SUSPENDED'::text, 'RESCUE'::text, 'VERIFY_RESIZE'::text, 'SHELVED'::text, 'SHELVED_OFFLOADED'::text, 'SOFT_DELETED'::text])))
) with (fillfactor=50);
CREATE INDEX servers_deleted ON public.servers USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX servers_flavor ON public.servers USING btree (message_field(message_field(spec, 5), 1), created_at DESC, uuid) WHERE (deleted_at IS NULL);
CREATE INDEX servers_image ON public.servers USING btree (message_field(spec, 6), created_at DESC, uuid) WHERE (deleted_at IS NULL);
CREATE INDEX servers_key ON public.servers USING btree (message_late_field(spec, 24), created_at DESC, uuid) WHERE ((deleted_at IS NULL) AND (message_late_field(spec, 24) IS NOT NULL));
CREATE INDEX servers_listed_by_host ON public.servers USING btree (host, created_at DESC, uuid) WHERE (host IS NOT NULL);
CREATE INDEX servers_of_project ON public.servers USING btree (project_id, uuid);
CREATE INDEX servers_reservation ON public.servers USING btree (SUBSTRING(message_field(spec, 9) FROM 31)) WHERE (deleted_at IS NULL);
CREATE INDEX servers_tokens ON public.servers USING gin (spec_tokens(spec)) WITH (gin_pending_list_limit='256') WHERE ((deleted_at IS NULL) AND (spec_tokens(spec) IS NOT NULL));
CREATE INDEX servers_updated_at_idx ON public.servers USING brin (updated_at) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX servers_user ON public.servers USING btree (user_id, created_at DESC, uuid) WHERE (deleted_at IS NULL);
CREATE INDEX servers_without_host ON public.servers USING btree (created_at DESC, uuid) WHERE ((host IS NULL) AND (deleted_at IS NULL) AND (project_id <> ''::text));
CREATE TRIGGER announce_inserted AFTER INSERT ON public.servers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_servers();
CREATE TRIGGER announce_spec AFTER UPDATE ON public.servers FOR EACH ROW WHEN (((new.host IS NOT NULL) AND ((old.host IS NULL) OR (old.spec IS DISTINCT FROM new.spec)))) EXECUTE FUNCTION announce_spec();
CREATE TRIGGER announce_updated AFTER UPDATE ON public.servers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_servers();
CREATE TRIGGER follow_unusual AFTER UPDATE ON public.servers FOR EACH ROW WHEN (((old.status <> new.status) AND ((old.status <> ALL (ARRAY['BUILD'::text, 'ACTIVE'::text, 'DELETED'::text, 'CLOSED'::text])) OR (new.status <> ALL (ARRAY['BUILD'::text, 'ACTIVE'::text, 'DELETED'::text, 'CLOSED'::text]))))) EXECUTE FUNCTION follow_unusual_server();

create table tasks (
  id uuid not null,
  server_uuid uuid not null,
  kind text not null,
  payload bytea not null storage external,
  epoch integer default 0 not null,
  owner uuid,
  selection integer default 0 not null,
  created_at timestamp with time zone default now() not null,
  ended_at timestamp with time zone,
  outcome text,
  operation text,
  stage text,
  step integer default 0 not null,
  signal text,
  reason text default ''::text not null,
  takings text[] default '{}'::text[] not null,
  stages text[] default '{}'::text[] not null,
  constraint tasks_kind_check CHECK ((kind = ANY (ARRAY['build'::text, 'delete'::text, 'operate'::text]))),
  constraint tasks_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'error'::text, 'deleted'::text, 'cancelled'::text]))),
  constraint tasks_pkey PRIMARY KEY (id)
) with (fillfactor=40);
CREATE INDEX tasks_failed_replacements ON public.tasks USING btree (server_uuid) WHERE ((operation = ANY (ARRAY['swap-volume'::text, 'swap-volume-unconfirmed'::text])) AND (outcome = 'error'::text));
CREATE INDEX tasks_open ON public.tasks USING btree (server_uuid) WHERE (outcome IS NULL);

create table traits (
  id integer generated always as identity not null,
  name text not null,
  updated_at timestamp with time zone default now() not null,
  constraint traits_name_key UNIQUE (name),
  constraint traits_pkey PRIMARY KEY (id)
);

create table transfer_progress (
  migration_uuid uuid not null,
  memory_total bigint not null,
  memory_processed bigint not null,
  memory_remaining bigint not null,
  disk_total bigint not null,
  disk_processed bigint not null,
  disk_remaining bigint not null,
  constraint transfer_progress_migration_uuid_fkey FOREIGN KEY (migration_uuid) REFERENCES migrations(uuid) ON DELETE CASCADE,
  constraint transfer_progress_pkey PRIMARY KEY (migration_uuid)
) with (fillfactor=50);

create table unusual_servers (
  server_uuid uuid not null,
  status text not null,
  created_at timestamp with time zone not null,
  project_id text not null,
  constraint unusual_servers_pkey PRIMARY KEY (server_uuid)
);
CREATE INDEX unusual_servers_listed ON public.unusual_servers USING btree (status, created_at DESC, server_uuid);
CREATE INDEX unusual_servers_of_project ON public.unusual_servers USING btree (project_id, status, created_at DESC, server_uuid);


create function announce_inventories()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function announce_servers()
  returns trigger
  language plpgsql
  set enable_hashagg=off
  set search_path="$user", public;

create function announce_spec()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function cell_add_task(list uuid[], task uuid)
  returns uuid[]
  language sql;

create function cell_become_active(task_ids uuid[], server_uuids uuid[], epochs integer[], selections integer[], attempt_ids text[], conductor uuid)
  returns SETOF integer
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_begin(ops jsonb, bytes bytea, payload_starts integer[], payload_lengths integer[], changes ledger_batch)
  returns TABLE(at integer, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_claim_groups(server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host integer[], to_hosts text[], leaving_states text[])
  returns TABLE(at integer, conflicting text[], in_flight boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_claims(task_ids uuid[], server_uuids uuid[], epochs integer[], outcome text)
  returns TABLE(at integer, repeated boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_close(server_uuids uuid[])
  returns TABLE(at integer, present boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off;

create function cell_close_tasks(task_ids uuid[], server_uuids uuid[])
  returns TABLE(at integer, begun boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off;

create function cell_commit_active(task_ids uuid[], server_uuids uuid[], epochs integer[], selections integer[], attempt_ids text[])
  returns SETOF integer
  language sql;

create function cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs integer[])
  returns SETOF integer
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_commit_error(task_ids uuid[], server_uuids uuid[], epochs integer[], selections integer[], attempt_reasons text[], reasons text[])
  returns SETOF integer
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_commit_steps(steps jsonb, task_ids uuid[], server_uuids uuid[], epochs integer[], changes ledger_batch)
  returns TABLE(at integer, outcome text, detail jsonb, revision integer)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_dispatch(server_uuids uuid[], names text[], project_ids text[], user_ids text[], created_at_ms bigint[], hosts text[], attempt_ids text[], task_ids uuid[], bytes bytea, spec_starts integer[], spec_lengths integer[], payload_starts integer[], payload_lengths integer[], changes ledger_batch)
  returns TABLE(at integer, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_end_tasks(task_ids uuid[], server_uuids uuid[], epochs integer[], task_outcome text)
  returns void
  language sql;

create function cell_end_unreadable(task_ids uuid[], epochs integer[], reasons text[])
  returns TABLE(at integer, server_uuid uuid)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_evacuation_refusal(host_name text, unseen_ms double precision, fence_waived boolean)
  returns text
  language plpgsql;

create function cell_expire_hosts(unseen_ms double precision, share_max double precision, count_min integer)
  returns TABLE(name text, down boolean)
  language plpgsql;

create function cell_finish_tasks(task_ids uuid[], server_uuids uuid[], epochs integer[], task_outcome text, conductor uuid)
  returns void
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_first_taking(created_at timestamp with time zone, taker text)
  returns text[]
  language sql;

create function cell_give_back(task_ids uuid[], server_uuids uuid[], epochs integer[], outcome text)
  returns TABLE(at integer, repeated boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_hand_over(conductor uuid, task_ids uuid[], epochs integer[])
  returns TABLE(id uuid, epoch integer)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off;

create function cell_hold(conductor uuid, task_ids uuid[])
  returns SETOF uuid
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_homes(server_uuids uuid[])
  returns TABLE(uuid uuid, status text, host text, attempt_id text, revision integer, busy boolean, migration uuid, kind text, source_host text, source_attempt_id text, dest_host text, dest_attempt_id text, runs boolean)
  language plpgsql stable
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_hop(task_ids uuid[], server_uuids uuid[], epochs integer[], from_selections integer[], reasons text[], to_selections integer[], to_hosts text[], to_attempt_ids text[], changes ledger_batch)
  returns TABLE(at integer, outcome text, detail jsonb)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_hop_together(task_ids uuid[], server_uuids uuid[], epochs integer[], from_selections integer[], reasons text[], to_selections integer[], to_hosts text[], to_attempt_ids text[], changes ledger_batch)
  returns boolean
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_host_seen(host_name text, unseen_ms double precision)
  returns boolean
  language sql;

create function cell_incarnation()
  returns text
  language sql stable;

create function cell_join_groups(server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host integer[], to_hosts text[])
  returns TABLE(at integer, conflicting text[])
  language sql;

create function cell_leave(server_uuids uuid[], assignments integer[])
  returns TABLE(at integer, present boolean)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off;

create function cell_leave_behind(leftover uuid, of_server uuid, on_host text)
  returns void
  language sql;

create function cell_mirror_aggregates(add_root uuid[], add_aggregate uuid[], drop_root uuid[], drop_aggregate uuid[])
  returns void
  language plpgsql;

create function cell_note(list text[], entry text, most integer)
  returns text[]
  language sql;

create function cell_own(conductor uuid, task_ids uuid[])
  returns TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
  language sql;

create function cell_patch_holdings(server_uuids uuid[], revisions integer[], bytes bytea, spec_starts integer[], spec_lengths integer[], changes ledger_batch)
  returns TABLE(at integer, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_remove_host(host_name text, unseen_ms double precision)
  returns text
  language plpgsql;

create function cell_request_delete(server_uuids uuid[], task_ids uuid[], bytes bytea, payload_starts integer[], payload_lengths integer[])
  returns TABLE(at integer, outcome text, payload bytea)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_reset_status(server_uuids uuid[], statuses text[])
  returns TABLE(at integer, outcome text, running text)
  language plpgsql
  set enable_seqscan=off;

create function cell_residents(hosts text[])
  returns TABLE(uuid uuid, status text, host text, attempt_id text, revision integer, busy boolean, migration uuid, kind text, source_host text, source_attempt_id text, dest_host text, dest_attempt_id text, runs boolean)
  language plpgsql stable
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_set_host_disabled(host text, wanted boolean, reason text)
  returns boolean
  language plpgsql;

create function cell_set_ratios(roots uuid[], entry_root integer[], entry_class text[], entry_ratio double precision[])
  returns void
  language plpgsql
  set plan_cache_mode=force_custom_plan;

create function cell_shut(server_uuids uuid[])
  returns void
  language sql;

create function cell_sweep(conductor uuid, untaken_ms double precision, tasks_max integer, except_ids uuid[])
  returns TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
  language plpgsql
  set enable_bitmapscan=off
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off;

create function cell_take(conductor uuid, task_ids uuid[])
  returns TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function cell_without(changes ledger_batch, positions integer[])
  returns ledger_batch
  language plpgsql;

create function cell_write_step(w jsonb)
  returns integer
  language plpgsql
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function follow_unusual_server()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function ledger_add_tree_traits(batch ledger_tree_batch, ids integer[], trait_ids integer[])
  returns integer[]
  language plpgsql
  set plan_cache_mode=force_generic_plan;

create function ledger_apply(batch ledger_batch)
  returns TABLE(change integer, kind text, generations integer[], detail jsonb)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_capacity(total integer, reserved integer, allocation_ratio double precision)
  returns bigint
  language sql immutable parallel safe;

create function ledger_change_trees(roots uuid[], tree_disabled boolean[], tree_ratios jsonb[], tree_version text[], reports jsonb[], providers uuid[], generations integer[], set_provider integer[], set_class text[], set_total integer[], set_reserved integer[], set_min_unit integer[], set_max_unit integer[], set_step_size integer[], set_ratio double precision[], removed_provider integer[], removed_class text[], gained_provider integer[], gained_trait text[], lost_provider integer[], lost_trait text[])
  returns boolean
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_claim_alone(consumer uuid, owner_project text, owner_user text, owner_type text, provider uuid, raises boolean, classes text[], amounts bigint[])
  returns boolean
  language plpgsql
  set enable_bitmapscan=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_claim_first(batch ledger_first_claims)
  returns boolean
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_claim_together(batch ledger_batch)
  returns void
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_decide(batch ledger_batch, held ledger_rows)
  returns ledger_verdicts
  language plpgsql;

create function ledger_give_back(consumer_uuids uuid[])
  returns void
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_insert_providers(batch ledger_tree_batch, ids integer[], is_new boolean[])
  returns void
  language plpgsql
  set plan_cache_mode=force_generic_plan;

create function ledger_lock_consumers(batch ledger_batch)
  returns ledger_rows
  language plpgsql;

create function ledger_lock_inventories(batch ledger_batch, held ledger_rows)
  returns ledger_rows
  language plpgsql;

create function ledger_lock_trees(roots uuid[])
  returns void
  language plpgsql;

create function ledger_put_tree_inventories(batch ledger_tree_batch, ids integer[], class_ids integer[])
  returns integer[]
  language plpgsql
  set plan_cache_mode=force_generic_plan;

create function ledger_put_trees(batch ledger_tree_batch)
  returns TABLE(tree integer, kind text, generations integer[], detail jsonb)
  language plpgsql
  set enable_seqscan=off
  set plan_cache_mode=force_custom_plan;

create function ledger_put_trees_as_given(batch ledger_tree_batch)
  returns TABLE(tree integer, kind text, generations integer[], detail jsonb)
  language plpgsql
  set plan_cache_mode=force_custom_plan;

create function ledger_read_trees(roots uuid[])
  returns TABLE(root uuid, reported jsonb, kept jsonb, version text, is_disabled boolean, ratios json, displaced json, providers json)
  language plpgsql stable
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_shortfalls(first_item integer, last_item integer, first_step integer, last_step integer, step_move_to integer[], step_held_from integer[], step_held_to integer[], holding_place integer[], holding_amount bigint[], used bigint[], capacity bigint[], min_unit integer[], max_unit integer[], step_size integer[], item_inventory integer[], inventory_provider integer[], inventory_class integer[], providers uuid[], classes text[])
  returns jsonb
  language plpgsql immutable;

create function ledger_store(batch ledger_batch, held ledger_rows, decided ledger_verdicts)
  returns integer
  language plpgsql;

create function ledger_swap_together(batch ledger_batch)
  returns void
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function ledger_tree_refusals(batch ledger_tree_batch, among integer[])
  returns TABLE(tree integer, verdict text, fields jsonb)
  language plpgsql;

create function ledger_trees_share_names(batch ledger_tree_batch)
  returns boolean
  language plpgsql stable;

create function ledger_trees_that_differ(batch ledger_tree_batch)
  returns integer[]
  language plpgsql stable
  set plan_cache_mode=force_custom_plan;

create function ledger_under_operators_word(batch ledger_tree_batch)
  returns ledger_tree_batch
  language plpgsql stable
  set plan_cache_mode=force_custom_plan;

create function ledger_unknown_name(first_item integer, last_item integer, item_inventory integer[], place_named integer[], inventory_provider integer[], inventory_class integer[], providers uuid[], classes text[], provider_ids integer[])
  returns jsonb
  language plpgsql immutable;

create function ledger_write_tree_aggregates(batch ledger_tree_batch, ids integer[], left_out integer[])
  returns integer[]
  language plpgsql;

create function ledger_write_tree_inventories(batch ledger_tree_batch, ids integer[], left_out integer[], class_ids integer[])
  returns integer[]
  language plpgsql;

create function ledger_write_tree_traits(batch ledger_tree_batch, ids integer[], left_out integer[], trait_ids integer[])
  returns integer[]
  language plpgsql;

create function ledger_write_trees(batch ledger_tree_batch, going boolean[])
  returns integer[]
  language plpgsql;

create function message_field(message bytea, field integer)
  returns bytea
  language plpgsql immutable parallel safe strict;

create function message_late_field(message bytea, field integer)
  returns bytea
  language plpgsql immutable parallel safe strict;

create function placement_create_providers(batch placement_writes, locked_at integer[], locked_id integer[])
  returns TABLE(at integer, root uuid, generation integer, written_at_ms double precision)
  language plpgsql;

create function placement_set_aggregates(provider_uuid uuid, expected integer, wanted uuid[])
  returns TABLE(kind text, new_generation integer, written_at_ms double precision)
  language plpgsql;

create function placement_set_traits(provider_uuid uuid, expected integer, trait_names text[])
  returns TABLE(kind text, new_generation integer, written_at_ms double precision, names text[])
  language plpgsql;

create function placement_write(batch placement_writes)
  returns TABLE(at integer, root uuid, generation integer, written_at_ms double precision)
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function placement_write_inventories(provider_uuid uuid, expected integer, mode text, class_names text[], totals integer[], reserves integer[], min_units integer[], max_units integer[], step_sizes integer[], ratios double precision[])
  returns TABLE(kind text, new_generation integer, written_at_ms double precision, names text[])
  language plpgsql;

create function refuse_inventory_in_use()
  returns trigger
  language plpgsql;

create function spec_tokens(message bytea)
  returns text[]
  language plpgsql immutable parallel safe strict;

create publication berth_audit for table
  allocations (consumer_uuid, provider_id, class_id, amount),
  inventories (provider_id, class_id, total, reserved, allocation_ratio, used)
  with (publish = 'insert, update, delete, truncate');

create publication berth_inventory_rows for table
  inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used)
  with (publish = 'insert, delete, truncate');

create publication berth_ledger for table
  hosts (name, root_provider, up, disabled, hypervisor),
  inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used),
  provider_aggregates (provider_id, aggregate),
  provider_traits (provider_id, trait_id),
  resource_classes (id, name),
  resource_providers (id, uuid, name, parent_id, root_id, generation),
  traits (id, name)
  with (publish = 'insert, update, delete, truncate');

create publication berth_ledger_rows for table
  hosts (name, root_provider, up, disabled, hypervisor),
  provider_aggregates (provider_id, aggregate),
  provider_traits (provider_id, trait_id),
  resource_classes (id, name),
  resource_providers (id, uuid, name, parent_id, root_id, generation),
  traits (id, name)
  with (publish = 'insert, update, delete, truncate');

create publication berth_moves for table
  migrations (uuid, server_uuid, source_host, dest_host, ended)
  with (publish = 'insert, update, delete, truncate');

create publication berth_server_rows for table
  servers (uuid, status, task_state, spec, host)
  with (publish = 'delete, truncate');

create publication berth_servers for table
  servers (uuid, status, task_state, spec, host)
  with (publish = 'insert, update, delete, truncate');
