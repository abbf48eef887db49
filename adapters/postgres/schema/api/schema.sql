-- Written by `npm run schema`: the schema of a migrated database. Make changes in migrations/ and functions/.


create table address_cursors (
  network_id text not null,
  next bigint not null,
  constraint address_cursors_pkey PRIMARY KEY (network_id)
);

create table aggregate_changes (
  single boolean default true not null,
  version bigint not null,
  constraint aggregate_changes_pkey PRIMARY KEY (single),
  constraint aggregate_changes_single_check CHECK (single)
);

create table aggregate_hosts (
  aggregate_id integer not null,
  host text not null,
  constraint aggregate_hosts_aggregate_id_fkey FOREIGN KEY (aggregate_id) REFERENCES aggregates(id),
  constraint aggregate_hosts_pkey PRIMARY KEY (aggregate_id, host)
);
CREATE INDEX aggregate_hosts_host_idx ON public.aggregate_hosts USING btree (host);

create table aggregate_ratios (
  aggregate_id integer not null,
  class text not null,
  ratio double precision not null,
  constraint aggregate_ratios_aggregate_id_fkey FOREIGN KEY (aggregate_id) REFERENCES aggregates(id) ON DELETE CASCADE,
  constraint aggregate_ratios_pkey PRIMARY KEY (aggregate_id, class),
  constraint aggregate_ratios_ratio_check CHECK ((ratio > (0)::double precision))
);

create table aggregates (
  id integer generated always as identity not null,
  uuid uuid not null,
  name text not null,
  metadata jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint aggregates_name_key UNIQUE (name),
  constraint aggregates_pkey PRIMARY KEY (id),
  constraint aggregates_uuid_key UNIQUE (uuid)
);

create table cell_claims (
  kind text not null,
  key text not null,
  cell text not null,
  token uuid default gen_random_uuid() not null,
  claimed_at timestamp with time zone default now() not null,
  constraint cell_claims_kind_check CHECK ((kind = ANY (ARRAY['provider-uuid'::text, 'provider-name'::text, 'consumer'::text]))),
  constraint cell_claims_pkey PRIMARY KEY (kind, key)
);
CREATE INDEX cell_claims_claimed_at_idx ON public.cell_claims USING btree (claimed_at);

create table cells (
  name text not null,
  database_url text not null,
  nats_url text,
  disabled boolean default false not null,
  created_at timestamp with time zone default now() not null,
  constraint cells_pkey PRIMARY KEY (name)
);

create table charged_resizes (
  server_uuid uuid not null,
  version bigint not null,
  looked_at timestamp with time zone default now() not null,
  classes jsonb,
  settles_classes boolean,
  constraint charged_resizes_pkey PRIMARY KEY (server_uuid)
);
CREATE TRIGGER note_unsettled_classes AFTER DELETE ON public.charged_resizes FOR EACH ROW WHEN ((old.settles_classes IS NULL)) EXECUTE FUNCTION note_unsettled_classes();

create table class_recounts (
  id bigint generated always as identity not null,
  project_id text not null,
  server_uuid uuid,
  constraint class_recounts_pkey PRIMARY KEY (id)
);
CREATE INDEX class_recounts_of_project ON public.class_recounts USING btree (project_id);

create table console_tokens (
  token_sha256 text not null,
  server_uuid uuid not null,
  host text not null,
  port integer not null,
  session text not null,
  expires_at timestamp with time zone not null,
  console_type text default 'serial'::text not null,
  constraint console_tokens_pkey PRIMARY KEY (token_sha256)
);
CREATE INDEX console_tokens_expires_at ON public.console_tokens USING btree (expires_at);

create table decisions (
  id bigint generated always as identity not null,
  server_uuid uuid not null,
  request_id text not null,
  scheduler text not null,
  at timestamp with time zone not null,
  decision jsonb not null,
  constraint decisions_pkey PRIMARY KEY (id)
);
CREATE INDEX decisions_at ON public.decisions USING brin (at);
CREATE INDEX decisions_server ON public.decisions USING btree (server_uuid, id DESC);

create table flavor_projects (
  flavor_id text not null,
  project_id text not null,
  constraint flavor_projects_flavor_id_fkey FOREIGN KEY (flavor_id) REFERENCES flavors(id) ON DELETE CASCADE,
  constraint flavor_projects_pkey PRIMARY KEY (flavor_id, project_id)
);
CREATE INDEX flavor_projects_project_id_idx ON public.flavor_projects USING btree (project_id);

create table flavors (
  id text not null,
  name text not null,
  vcpus integer not null,
  memory_mib integer not null,
  disk_gib integer not null,
  ephemeral_gib integer default 0 not null,
  swap_mib integer default 0 not null,
  rxtx_factor double precision default 1 not null,
  is_public boolean default true not null,
  description text,
  extra_specs jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone default now() not null,
  constraint flavors_name_key UNIQUE (name),
  constraint flavors_pkey PRIMARY KEY (id)
);

create table former_aggregates (
  uuid uuid not null,
  deleted_at timestamp with time zone default now() not null,
  constraint former_aggregates_pkey PRIMARY KEY (uuid)
);

create table host_map (
  cell text not null,
  host text not null,
  constraint host_map_pkey PRIMARY KEY (cell, host)
);

create table host_ratios (
  host text not null,
  class text not null,
  ratio double precision not null,
  constraint host_ratios_pkey PRIMARY KEY (host, class),
  constraint host_ratios_ratio_check CHECK ((ratio > (0)::double precision))
);

create table images (
  id uuid not null,
  name text,
  owner text not null,
  visibility text not null,
  disk_format text,
  container_format text,
  min_disk_gib integer not null,
  min_ram_mib integer not null,
  is_protected boolean not null,
  tags jsonb not null,
  properties jsonb not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  version bigint default 0 not null,
  upload jsonb,
  deleted_at_ms bigint,
  data jsonb,
  shelved_server uuid,
  unshelve_asked_at_ms bigint,
  constraint images_pkey PRIMARY KEY (id)
);
CREATE INDEX images_listed ON public.images USING btree (created_at_ms DESC, id) WHERE (deleted_at_ms IS NULL);
CREATE INDEX images_of_shelved_servers ON public.images USING btree (shelved_server) WHERE ((shelved_server IS NOT NULL) AND (deleted_at_ms IS NULL));
CREATE INDEX images_owner ON public.images USING btree (owner) WHERE (deleted_at_ms IS NULL);
CREATE INDEX images_unshelve_asked ON public.images USING btree (id) WHERE ((unshelve_asked_at_ms IS NOT NULL) AND (deleted_at_ms IS NULL));
CREATE INDEX images_upload ON public.images USING btree (id) WHERE (upload IS NOT NULL);

create table keypairs (
  id integer generated always as identity not null,
  user_id text not null,
  name text not null,
  type text not null,
  public_key text not null,
  fingerprint text not null,
  created_at timestamp with time zone not null,
  constraint keypairs_pkey PRIMARY KEY (user_id, name),
  constraint keypairs_type_check CHECK ((type = ANY (ARRAY['ssh'::text, 'x509'::text])))
);

create table moves (
  id uuid not null,
  server_uuid uuid not null,
  kind text not null,
  request bytea not null,
  state text default 'accepted'::text not null,
  fault text,
  created_at timestamp with time zone default clock_timestamp() not null,
  updated_at timestamp with time zone default clock_timestamp() not null,
  cell text,
  retry_at timestamp with time zone,
  put_offs integer default 0 not null,
  asked_at timestamp with time zone,
  constraint moves_pkey PRIMARY KEY (id),
  constraint moves_state_check CHECK ((state = ANY (ARRAY['accepted'::text, 'begun'::text, 'refused'::text])))
);
CREATE INDEX moves_server_uuid_created_at_idx ON public.moves USING btree (server_uuid, created_at DESC);
CREATE INDEX moves_updated_at_idx ON public.moves USING btree (updated_at) WHERE (state = 'accepted'::text);
CREATE UNIQUE INDEX moves_waiting ON public.moves USING btree (server_uuid) WHERE (state = 'accepted'::text);

create table open_requests (
  server_uuid uuid not null,
  updated_at timestamp with time zone not null,
  state text not null,
  cell text,
  accepted_at timestamp with time zone default now() not null,
  retry_at timestamp with time zone,
  put_offs integer default 0 not null,
  project_id text,
  constraint open_requests_pkey PRIMARY KEY (server_uuid)
) with (fillfactor=50);
CREATE INDEX open_requests_project_id_idx ON public.open_requests USING btree (project_id);

create table port_notes (
  server_uuid uuid not null,
  kept_ports uuid[] not null,
  version integer default 1 not null,
  open_since timestamp with time zone,
  deleted_ports uuid[] default '{}'::uuid[] not null,
  called_at timestamp with time zone,
  constraint port_notes_pkey PRIMARY KEY (server_uuid)
);
CREATE INDEX port_notes_open ON public.port_notes USING btree (server_uuid) WHERE (open_since IS NOT NULL);

create table ports (
  id uuid not null,
  project_id text not null,
  network_id text not null,
  name text not null,
  groups jsonb not null,
  created_at_ms bigint not null,
  server_uuid uuid,
  bound_at timestamp with time zone,
  address inet,
  ends_with_server boolean default false not null,
  security_groups uuid[],
  constraint ports_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ports_address ON public.ports USING btree (network_id, address) WHERE (address IS NOT NULL);
CREATE INDEX ports_owned ON public.ports USING btree (project_id) WHERE (NOT ends_with_server);
CREATE INDEX ports_project_id_created_at_ms_id_idx ON public.ports USING btree (project_id, created_at_ms, id);
CREATE INDEX ports_security_groups ON public.ports USING gin (security_groups) WHERE (security_groups IS NOT NULL);
CREATE INDEX ports_server ON public.ports USING btree (server_uuid) WHERE (server_uuid IS NOT NULL);

create table quota_class_usages (
  project_id text not null,
  class text not null,
  shard integer not null,
  amount bigint not null,
  constraint quota_class_usages_pkey PRIMARY KEY (project_id, class, shard)
) with (fillfactor=50);

create table quota_classes (
  class text not null,
  resource text not null,
  hard_limit integer not null,
  constraint quota_classes_hard_limit_check CHECK ((hard_limit >= '-1'::integer)),
  constraint quota_classes_pkey PRIMARY KEY (class, resource)
);

create table quota_usages (
  project_id text not null,
  user_id text not null,
  shard integer not null,
  instances integer not null,
  cores integer not null,
  ram_mib bigint not null,
  constraint quota_usages_pkey PRIMARY KEY (project_id, user_id, shard)
) with (fillfactor=50);

create table quotas (
  project_id text not null,
  user_id text default ''::text not null,
  resource text not null,
  hard_limit integer not null,
  constraint quotas_hard_limit_check CHECK ((hard_limit >= '-1'::integer)),
  constraint quotas_pkey PRIMARY KEY (project_id, user_id, resource)
);

create table requests (
  server_uuid uuid not null,
  state text not null,
  cell text,
  spec bytea not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  fault text,
  cancel_request_id text,
  cancelled_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone default now() not null,
  arrived boolean default false not null,
  gone boolean default false not null,
  cores integer default 0 not null,
  ram_mib integer default 0 not null,
  changes jsonb,
  assignment integer default 0 not null,
  classes jsonb,
  classes_aside boolean,
  constraint requests_pkey PRIMARY KEY (server_uuid),
  constraint requests_state_check CHECK ((state = ANY (ARRAY['accepted'::text, 'dispatched'::text, 'failed'::text, 'cancelled'::text, 'deleted'::text])))
) with (fillfactor=50);
CREATE INDEX requests_changed ON public.requests USING btree (created_at DESC, server_uuid) WHERE (changes ?| ARRAY['accessIpV4'::text, 'accessIpV6'::text, 'description'::text, 'hostname'::text, 'manualDisk'::text, 'name'::text]);
CREATE INDEX requests_failed ON public.requests USING btree (created_at DESC, server_uuid) WHERE ((fault IS NOT NULL) AND (NOT gone));
CREATE INDEX requests_living ON public.requests USING btree (created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX requests_living_by_name ON public.requests USING btree (name COLLATE "C", created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX requests_living_of_project ON public.requests USING btree (project_id, created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX requests_living_of_project_by_name ON public.requests USING btree (project_id, name COLLATE "C", created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX requests_locked ON public.requests USING btree (created_at DESC, server_uuid) WHERE ((changes ->> 'lock'::text) IS NOT NULL);
CREATE INDEX requests_name ON public.requests USING gin (name gin_trgm_ops) WITH (gin_pending_list_limit='256') WHERE (NOT gone);
CREATE INDEX requests_odd_names ON public.requests USING btree (created_at DESC, server_uuid) WHERE ((NOT gone) AND ((SUBSTRING(name FROM 1 FOR 63) ~ ('[^A-Za-z0-9 _.-]'::text COLLATE "C")) OR (SUBSTRING(name FROM 1 FOR 63) !~ ('[A-Za-z0-9]'::text COLLATE "C"))));
CREATE INDEX requests_tags ON public.requests USING gin (((changes -> 'tags'::text))) WHERE (changes ? 'tags'::text);
CREATE INDEX requests_updated_at ON public.requests USING brin (updated_at) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX requests_with_changes ON public.requests USING btree (server_uuid) WHERE (changes IS NOT NULL);
CREATE TRIGGER follow AFTER UPDATE ON public.requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION follow_requests();
CREATE TRIGGER forget_removed AFTER DELETE OR TRUNCATE ON public.requests FOR EACH STATEMENT EXECUTE FUNCTION forget_removed_requests();
CREATE TRIGGER note_class_recount AFTER UPDATE OF gone ON public.requests FOR EACH ROW WHEN (((old.gone <> new.gone) AND (old.classes IS NOT NULL) AND (NOT (old.classes_aside IS DISTINCT FROM new.classes_aside)))) EXECUTE FUNCTION note_class_recount();
CREATE TRIGGER open_accepted AFTER INSERT ON public.requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION open_accepted_requests();

create table reservations (
  id text not null,
  server_uuids uuid[] not null,
  min_count integer not null,
  decision text,
  fault text,
  created_at timestamp with time zone default now() not null,
  constraint reservations_decision_check CHECK ((decision = ANY (ARRAY['placed'::text, 'refused'::text]))),
  constraint reservations_pkey PRIMARY KEY (id)
);
CREATE INDEX reservations_created_at_idx ON public.reservations USING btree (created_at);

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

create table security_group_rules (
  id uuid not null,
  group_id uuid not null,
  project_id text not null,
  direction text not null,
  ether_type text not null,
  protocol text,
  port_min integer,
  port_max integer,
  remote_prefix text,
  remote_group_id uuid,
  description text not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  constraint security_group_rules_group_id_fkey FOREIGN KEY (group_id) REFERENCES security_groups(id) ON DELETE CASCADE,
  constraint security_group_rules_pkey PRIMARY KEY (id),
  constraint security_group_rules_remote_group_id_fkey FOREIGN KEY (remote_group_id) REFERENCES security_groups(id) ON DELETE CASCADE
);
CREATE INDEX security_group_rules_group ON public.security_group_rules USING btree (group_id);
CREATE INDEX security_group_rules_remote ON public.security_group_rules USING btree (remote_group_id) WHERE (remote_group_id IS NOT NULL);
CREATE UNIQUE INDEX security_group_rules_same ON public.security_group_rules USING btree (group_id, direction, ether_type, protocol, port_min, port_max, remote_prefix, remote_group_id) NULLS NOT DISTINCT;

create table security_groups (
  id uuid not null,
  project_id text not null,
  name text not null,
  description text not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  constraint security_groups_pkey PRIMARY KEY (id)
);
CREATE INDEX security_groups_project ON public.security_groups USING btree (project_id, name, id);

create table server_group_members (
  server_uuid uuid not null,
  group_uuid uuid not null,
  cell text,
  added_at timestamp with time zone default now() not null,
  constraint server_group_members_group_uuid_fkey FOREIGN KEY (group_uuid) REFERENCES server_groups(uuid) ON DELETE CASCADE,
  constraint server_group_members_pkey PRIMARY KEY (server_uuid)
);
CREATE INDEX server_group_members_group_uuid_idx ON public.server_group_members USING btree (group_uuid);

create table server_groups (
  uuid uuid not null,
  name text not null,
  project_id text not null,
  user_id text not null,
  policy text not null,
  max_server_per_host integer,
  created_at timestamp with time zone default clock_timestamp() not null,
  constraint server_groups_pkey PRIMARY KEY (uuid),
  constraint server_groups_policy_check CHECK ((policy = ANY (ARRAY['affinity'::text, 'anti-affinity'::text, 'soft-affinity'::text, 'soft-anti-affinity'::text])))
);
CREATE INDEX server_groups_project_id_created_at_uuid_idx ON public.server_groups USING btree (project_id, created_at, uuid);

create table settings (
  section text not null,
  version bigint not null,
  "values" jsonb not null,
  updated_at timestamp with time zone default now() not null,
  constraint settings_pkey PRIMARY KEY (section)
);

create table shared_keys (
  name text not null,
  key bytea not null,
  made_at timestamp with time zone default now() not null,
  constraint shared_keys_key_check CHECK ((octet_length(key) = 32)),
  constraint shared_keys_pkey PRIMARY KEY (name)
);

create table soft_deletions (
  server_uuid uuid not null,
  aim text not null,
  version integer default 1 not null,
  asked_by jsonb not null,
  deleted_at timestamp with time zone not null,
  tries integer default 0 not null,
  settled boolean default false not null,
  looked_at timestamp with time zone not null,
  constraint soft_deletions_aim_check CHECK ((aim = ANY (ARRAY['deleted'::text, 'restored'::text, 'reclaimed'::text]))),
  constraint soft_deletions_pkey PRIMARY KEY (server_uuid)
);
CREATE INDEX soft_deletions_deleted_at ON public.soft_deletions USING btree (deleted_at) WHERE (aim = 'deleted'::text);
CREATE INDEX soft_deletions_open ON public.soft_deletions USING btree (looked_at) WHERE (NOT settled);

create table volumes (
  id uuid not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  description text,
  size_gib integer not null,
  metadata jsonb not null,
  availability_zone text not null,
  is_bootable boolean not null,
  created_at_ms bigint not null,
  updated_at_ms bigint,
  revision integer default 0 not null,
  phase text,
  phase_at timestamp with time zone,
  reserved_at timestamp with time zone,
  attached_at_ms bigint,
  server_uuid uuid,
  cell text,
  attachment_id uuid,
  mapping_uuid uuid,
  device text,
  tag text,
  delete_on_termination boolean,
  task_id uuid,
  in_cinder boolean default false not null,
  making text,
  volume_id uuid,
  end_holder uuid,
  end_held_until timestamp with time zone,
  constraint shared_volumes_are_attached CHECK (((volume_id IS NULL) OR (phase IS NOT NULL))),
  constraint volumes_check CHECK ((num_nonnulls(phase, phase_at, reserved_at, server_uuid, cell, attachment_id, mapping_uuid, device, delete_on_termination) = ANY (ARRAY[0, 9]))),
  constraint volumes_making_check CHECK ((making = ANY (ARRAY['asked'::text, 'made'::text]))),
  constraint volumes_phase_check CHECK ((phase = ANY (ARRAY['attaching'::text, 'attached'::text, 'detaching'::text]))),
  constraint volumes_pkey PRIMARY KEY (id),
  constraint volumes_size_gib_check CHECK ((size_gib > 0))
);
CREATE INDEX volumes_listed ON public.volumes USING btree (created_at_ms DESC, id);
CREATE INDEX volumes_of_projects ON public.volumes USING btree (project_id, created_at_ms DESC, id);
CREATE UNIQUE INDEX volumes_of_servers ON public.volumes USING btree (server_uuid, device) WHERE (server_uuid IS NOT NULL);
CREATE UNIQUE INDEX volumes_shared ON public.volumes USING btree (volume_id, server_uuid) WHERE (volume_id IS NOT NULL);
CREATE INDEX volumes_unsettled ON public.volumes USING btree (id) WHERE (phase = ANY (ARRAY['attaching'::text, 'detaching'::text]));
CREATE INDEX volumes_unsettled_by_volume ON public.volumes USING btree (COALESCE(volume_id, id)) WHERE (phase = ANY (ARRAY['attaching'::text, 'detaching'::text]));
CREATE TRIGGER end_making BEFORE UPDATE ON public.volumes FOR EACH ROW WHEN (((new.making IS NOT NULL) AND ((new.attached_at_ms IS NOT NULL) OR (new.phase IS NULL)))) EXECUTE FUNCTION end_volume_making();

create view server_group_servers (
  group_uuid uuid,
  server_uuid uuid,
  cell text,
  state text
) of requests, server_group_members;

create function calls_beyond_limit(uuids uuid[], projects text[], calls integer[], open_max integer)
  returns TABLE(refused_call integer, open_already integer)
  language plpgsql
  set enable_bitmapscan=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan;

create function end_volume_making()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function follow_requests()
  returns trigger
  language plpgsql
  set enable_hashjoin=off
  set enable_mergejoin=off
  set enable_seqscan=off
  set plan_cache_mode=force_generic_plan
  set search_path="$user", public;

create function forget_removed_requests()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function has_server_quotas(projects text[])
  returns boolean
  language plpgsql stable;

create function is_open_request(state text, arrived boolean)
  returns boolean
  language sql immutable;

create function note_class_recount()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function note_unsettled_classes()
  returns trigger
  language plpgsql
  set search_path="$user", public;

create function open_accepted_requests()
  returns trigger
  language plpgsql
  set search_path="$user", public;

