-- A database of the kind `api` as the last version before the baseline has left it, with some data: the output of pg_dump for a database to
-- which all migrations that the baseline replaces were applied. The bodies of functions are left out, as each is replaced when the database
-- is taken over. This file never changes, because those databases do not change either.
CREATE FUNCTION public.calls_beyond_limit(uuids uuid[], projects text[], calls integer[], open_max integer) RETURNS TABLE(refused_call integer, open_already integer)
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.follow_requests() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET search_path TO '$user', 'public'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.forget_removed_requests() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.is_open_request(state text, arrived boolean) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.open_accepted_requests() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE TABLE public.aggregate_changes (
    single boolean DEFAULT true NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT aggregate_changes_single_check CHECK (single)
);
CREATE TABLE public.aggregate_hosts (
    aggregate_id integer NOT NULL,
    host text NOT NULL
);
CREATE TABLE public.aggregate_ratios (
    aggregate_id integer NOT NULL,
    class text NOT NULL,
    ratio double precision NOT NULL,
    CONSTRAINT aggregate_ratios_ratio_check CHECK ((ratio > (0)::double precision))
);
CREATE TABLE public.aggregates (
    id integer NOT NULL,
    uuid uuid NOT NULL,
    name text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone
);
ALTER TABLE public.aggregates ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.aggregates_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.cell_claims (
    kind text NOT NULL,
    key text NOT NULL,
    cell text NOT NULL,
    token uuid DEFAULT gen_random_uuid() NOT NULL,
    claimed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cell_claims_kind_check CHECK ((kind = ANY (ARRAY['provider-uuid'::text, 'provider-name'::text, 'consumer'::text])))
);
CREATE TABLE public.cells (
    name text NOT NULL,
    database_url text NOT NULL,
    nats_url text,
    disabled boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.decisions (
    id bigint NOT NULL,
    server_uuid uuid NOT NULL,
    request_id text NOT NULL,
    scheduler text NOT NULL,
    at timestamp with time zone NOT NULL,
    decision jsonb NOT NULL
);
ALTER TABLE public.decisions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.decisions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.flavors (
    id text NOT NULL,
    name text NOT NULL,
    vcpus integer NOT NULL,
    memory_mib integer NOT NULL,
    disk_gib integer NOT NULL,
    ephemeral_gib integer DEFAULT 0 NOT NULL,
    swap_mib integer DEFAULT 0 NOT NULL,
    rxtx_factor double precision DEFAULT 1 NOT NULL,
    is_public boolean DEFAULT true NOT NULL,
    description text,
    extra_specs jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.former_aggregates (
    uuid uuid NOT NULL,
    deleted_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.host_map (
    cell text NOT NULL,
    host text NOT NULL
);
CREATE TABLE public.host_ratios (
    host text NOT NULL,
    class text NOT NULL,
    ratio double precision NOT NULL,
    CONSTRAINT host_ratios_ratio_check CHECK ((ratio > (0)::double precision))
);
CREATE TABLE public.images (
    id uuid NOT NULL,
    name text,
    owner text NOT NULL,
    visibility text NOT NULL,
    disk_format text,
    container_format text,
    min_disk_gib integer NOT NULL,
    min_ram_mib integer NOT NULL,
    is_protected boolean NOT NULL,
    tags jsonb NOT NULL,
    properties jsonb NOT NULL,
    created_at_ms bigint NOT NULL,
    updated_at_ms bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.moves (
    id uuid NOT NULL,
    server_uuid uuid NOT NULL,
    kind text NOT NULL,
    request bytea NOT NULL,
    state text DEFAULT 'accepted'::text NOT NULL,
    fault text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    cell text,
    retry_at timestamp with time zone,
    put_offs integer DEFAULT 0 NOT NULL,
    asked_at timestamp with time zone,
    CONSTRAINT moves_state_check CHECK ((state = ANY (ARRAY['accepted'::text, 'begun'::text, 'refused'::text])))
);
CREATE TABLE public.open_requests (
    server_uuid uuid NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    cell text,
    accepted_at timestamp with time zone DEFAULT now() NOT NULL,
    retry_at timestamp with time zone,
    put_offs integer DEFAULT 0 NOT NULL,
    project_id text
)
WITH (fillfactor='90');
CREATE TABLE public.ports (
    id uuid NOT NULL,
    project_id text NOT NULL,
    network_id text NOT NULL,
    name text NOT NULL,
    groups jsonb NOT NULL,
    created_at_ms bigint NOT NULL,
    server_uuid uuid,
    bound_at timestamp with time zone
);
CREATE TABLE public.requests (
    server_uuid uuid NOT NULL,
    state text NOT NULL,
    cell text,
    spec bytea NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    fault text,
    cancel_request_id text,
    cancelled_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    arrived boolean DEFAULT false NOT NULL,
    gone boolean DEFAULT false NOT NULL,
    CONSTRAINT requests_state_check CHECK ((state = ANY (ARRAY['accepted'::text, 'dispatched'::text, 'failed'::text, 'cancelled'::text, 'deleted'::text])))
)
WITH (fillfactor='70');
CREATE TABLE public.reservations (
    id text NOT NULL,
    server_uuids uuid[] NOT NULL,
    min_count integer NOT NULL,
    decision text,
    fault text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT reservations_decision_check CHECK ((decision = ANY (ARRAY['placed'::text, 'refused'::text])))
);
CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    kind text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    breaking boolean DEFAULT false NOT NULL
);
CREATE TABLE public.server_group_members (
    server_uuid uuid NOT NULL,
    group_uuid uuid NOT NULL,
    cell text,
    added_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE VIEW public.server_group_servers AS
 SELECT m.group_uuid,
    m.server_uuid,
    m.cell,
    r.state
   FROM (public.server_group_members m
     JOIN public.requests r ON ((r.server_uuid = m.server_uuid)))
  WHERE (r.state <> ALL (ARRAY['cancelled'::text, 'deleted'::text]));
CREATE TABLE public.server_groups (
    uuid uuid NOT NULL,
    name text NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    policy text NOT NULL,
    max_server_per_host integer,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT server_groups_policy_check CHECK ((policy = ANY (ARRAY['affinity'::text, 'anti-affinity'::text, 'soft-affinity'::text, 'soft-anti-affinity'::text])))
);
CREATE TABLE public.settings (
    section text NOT NULL,
    version bigint NOT NULL,
    "values" jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
INSERT INTO public.aggregate_changes VALUES
  (true, 0);
INSERT INTO public.cells VALUES
  ('c1', 'postgres://cell', NULL, false, '2026-11-22 18:29:59.448097+00');
INSERT INTO public.flavors VALUES
  ('1', 'm1.tiny', 1, 512, 1, 0, 0, 1, true, NULL, '{}', '2026-11-22 18:29:59.658742+00');
INSERT INTO public.open_requests VALUES

  ('0000000b-0000-4000-8000-000000000001', '2026-11-22 18:29:59.477798+00', 'dispatched', 'c1', '2026-11-22 18:29:59.470243+00', NULL, 0, 'project-1'),
  ('0000000b-0000-4000-8000-000000000002', '2026-11-22 18:29:59.477798+00', 'dispatched', 'c1', '2026-11-22 18:29:59.470243+00', NULL, 0, 'project-1'),
  ('0000000b-0000-4000-8000-000000000003', '2026-11-22 18:29:59.477798+00', 'dispatched', 'c1', '2026-11-22 18:29:59.470243+00', NULL, 0, 'project-1');

INSERT INTO public.requests VALUES

  ('0000000b-0000-4000-8000-000000000001', 'dispatched', 'c1', '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303112106e616d6520226f66222031205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fcd095ffbc31', 'project-1', 'user-1', 'name "of" 1 \ ü', NULL, NULL, NULL, '2023-11-14 22:13:20.124+00', '2026-11-22 18:29:59.477798+00', false, false),
  ('0000000b-0000-4000-8000-000000000002', 'dispatched', 'c1', '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303212106e616d6520226f66222032205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fdd095ffbc31', 'project-1', 'user-1', 'name "of" 2 \ ü', NULL, NULL, NULL, '2023-11-14 22:13:20.125+00', '2026-11-22 18:29:59.477798+00', false, false),
  ('0000000b-0000-4000-8000-000000000003', 'dispatched', 'c1', '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303312106e616d6520226f66222033205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fed095ffbc31', 'project-1', 'user-1', 'name "of" 3 \ ü', NULL, NULL, NULL, '2023-11-14 22:13:20.126+00', '2026-11-22 18:29:59.477798+00', false, false),
  ('0000000b-0000-4000-8000-000000000005', 'deleted', NULL, '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303512106e616d6520226f66222035205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d315080d195ffbc31', 'project-1', 'user-1', 'name "of" 5 \ ü', NULL, 'req-c', '2026-11-22 18:29:59.484734+00', '2023-11-14 22:13:20.128+00', '2026-11-22 18:29:59.513817+00', false, true),
  ('0000000b-0000-4000-8000-000000000004', 'failed', NULL, '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303412106e616d6520226f66222034205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150ffd095ffbc31', 'project-1', 'user-1', 'name "of" 4 \ ü', 'no valid host', NULL, NULL, '2023-11-14 22:13:20.127+00', '2026-11-22 18:29:59.51585+00', false, false);

INSERT INTO public.schema_migrations VALUES
  ('0001-api', 'api', '0970b9bd44934649bc1fa3117c3bfe5cd102149c72c7fdfec1a515791c77d17d', '2026-11-22 18:29:53.925833+00', false),
  ('0002-arrived', 'api', '34a7e7cc4144044399d8c9199612ea39a4f7ff5667459c0c0ee256a1496ffe8a', '2026-11-22 18:29:53.931346+00', false),
  ('0003-aggregates', 'api', '0c76039cd3427d4d225b3a7b33d897b826ccc60cdf024693ff2529426b49569b', '2026-11-22 18:29:53.954771+00', false),
  ('0004-images-ports', 'api', '2c737728d049830cffe24d5f2acd945c79f78c07482c1e843432025b8ee20e88', '2026-11-22 18:29:53.961616+00', false),
  ('0005-server-groups', 'api', '94065cda98da50097aaf2a83d55ed35d99d4fecb48782ab034e113b8c76b31f8', '2026-11-22 18:29:53.974509+00', false),
  ('0006-settings', 'api', 'd3503673a47aa4cf7d2462cb5c4faf85c9cd2b8a419f59c7d59453298e9607ec', '2026-11-22 18:29:53.98263+00', false),
  ('0007-decisions', 'api', '2a96dcbc5d5f4f9f5f30665d42e3e9d61d7873300b85355593c3b44a58708df8', '2026-11-22 18:29:53.987121+00', false),
  ('0008-moves', 'api', 'ecdbe17773c0b3a6d04d08fabb24db2b24e479b2154864885d4eba1e0ec2e71a', '2026-11-22 18:29:53.993811+00', false),
  ('0009-port-bindings', 'api', 'c223062272ae4cf2a35991cb780c3934323ad676ad583da05bff2b8caa1c5f74', '2026-11-22 18:29:53.998778+00', false),
  ('0010-reservation-age', 'api', '09a12d076c2b5e20abaacad703e49462c7c50e2615bdfcf8954731df641dddaf', '2026-11-22 18:29:54.002728+00', false),
  ('0011-open-requests', 'api', 'a357ccabc9fa67f2cdeb2c4a59032229a0ebee993924d03e6e061d1fb7feb09f', '2026-11-22 18:29:54.008096+00', false),
  ('0012-put-off', 'api', '4dc1d8e0fd51fa3c1ce081a53658fc900f160dca468bc9907241708d5148a48b', '2026-11-22 18:29:54.009612+00', false),
  ('0020-living-requests', 'api', '7c04496a56bc591a8a636a7e15166b10aac2703683a6451a7af8ff4230516605', '2026-11-22 18:29:54.011372+00', false),
  ('0021-lists-by-index', 'api', '72654137dc1b3e5435da807109154045189f608f9a32c47e321e4e215c62557c', '2026-11-22 18:29:54.023318+00', false),
  ('0022-cell-claims', 'api', 'de9ad5d59377268ab809f4ed0c852da4b9216bf42334c02f4ee13a9f0f3d4329', '2026-11-22 18:29:54.029815+00', false),
  ('0040-open-limit', 'api', '49ce726b7930c5323be48314fdf6886ba4519af343e21023cda128a8eda5f429', '2026-11-22 18:29:54.037789+00', false),
  ('0045-host-map', 'api', '2be941eb88c67a1eeca9bfd6bc305a6c8382b4889b5270df909bcfb0104cf3d8', '2026-11-22 18:29:54.045807+00', false);
INSERT INTO public.server_group_members VALUES
  ('0000000b-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', NULL, '2026-11-22 18:29:59.655698+00');
INSERT INTO public.server_groups VALUES
  ('00000000-0000-4000-8000-000000000001', 'g', 'project-1', 'user-1', 'anti-affinity', NULL, '2026-11-22 18:29:59.654688+00');
SELECT pg_catalog.setval('public.aggregates_id_seq', 1, false);
SELECT pg_catalog.setval('public.decisions_id_seq', 1, false);
ALTER TABLE ONLY public.aggregate_changes
    ADD CONSTRAINT aggregate_changes_pkey PRIMARY KEY (single);
ALTER TABLE ONLY public.aggregate_hosts
    ADD CONSTRAINT aggregate_hosts_pkey PRIMARY KEY (aggregate_id, host);
ALTER TABLE ONLY public.aggregate_ratios
    ADD CONSTRAINT aggregate_ratios_pkey PRIMARY KEY (aggregate_id, class);
ALTER TABLE ONLY public.aggregates
    ADD CONSTRAINT aggregates_name_key UNIQUE (name);
ALTER TABLE ONLY public.aggregates
    ADD CONSTRAINT aggregates_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.aggregates
    ADD CONSTRAINT aggregates_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.cell_claims
    ADD CONSTRAINT cell_claims_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY public.cells
    ADD CONSTRAINT cells_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.flavors
    ADD CONSTRAINT flavors_name_key UNIQUE (name);
ALTER TABLE ONLY public.flavors
    ADD CONSTRAINT flavors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.former_aggregates
    ADD CONSTRAINT former_aggregates_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.host_map
    ADD CONSTRAINT host_map_pkey PRIMARY KEY (cell, host);
ALTER TABLE ONLY public.host_ratios
    ADD CONSTRAINT host_ratios_pkey PRIMARY KEY (host, class);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.moves
    ADD CONSTRAINT moves_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.open_requests
    ADD CONSTRAINT open_requests_pkey PRIMARY KEY (server_uuid);
ALTER TABLE ONLY public.ports
    ADD CONSTRAINT ports_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (server_uuid);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.server_group_members
    ADD CONSTRAINT server_group_members_pkey PRIMARY KEY (server_uuid);
ALTER TABLE ONLY public.server_groups
    ADD CONSTRAINT server_groups_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (section);
CREATE INDEX aggregate_hosts_host_idx ON public.aggregate_hosts USING btree (host);
CREATE INDEX cell_claims_claimed_at_idx ON public.cell_claims USING btree (claimed_at);
CREATE INDEX decisions_at ON public.decisions USING brin (at);
CREATE INDEX decisions_server ON public.decisions USING btree (server_uuid, id DESC);
CREATE INDEX images_created_at_ms_id_idx ON public.images USING btree (created_at_ms DESC, id);
CREATE INDEX moves_server_uuid_created_at_idx ON public.moves USING btree (server_uuid, created_at DESC);
CREATE INDEX moves_updated_at_idx ON public.moves USING btree (updated_at) WHERE (state = 'accepted'::text);
CREATE UNIQUE INDEX moves_waiting ON public.moves USING btree (server_uuid) WHERE (state = 'accepted'::text);
CREATE INDEX open_requests_project_id_idx ON public.open_requests USING btree (project_id);
CREATE INDEX ports_project_id_created_at_ms_id_idx ON public.ports USING btree (project_id, created_at_ms, id);
CREATE INDEX requests_living ON public.requests USING btree (created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX requests_living_of_project ON public.requests USING btree (project_id, created_at DESC, server_uuid) WHERE (NOT gone);
CREATE INDEX reservations_created_at_idx ON public.reservations USING btree (created_at);
CREATE INDEX server_group_members_group_uuid_idx ON public.server_group_members USING btree (group_uuid);
CREATE INDEX server_groups_project_id_created_at_uuid_idx ON public.server_groups USING btree (project_id, created_at, uuid);
CREATE TRIGGER follow AFTER UPDATE ON public.requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.follow_requests();
CREATE TRIGGER forget_removed AFTER DELETE OR TRUNCATE ON public.requests FOR EACH STATEMENT EXECUTE FUNCTION public.forget_removed_requests();
CREATE TRIGGER open_accepted AFTER INSERT ON public.requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.open_accepted_requests();
ALTER TABLE ONLY public.aggregate_hosts
    ADD CONSTRAINT aggregate_hosts_aggregate_id_fkey FOREIGN KEY (aggregate_id) REFERENCES public.aggregates(id);
ALTER TABLE ONLY public.aggregate_ratios
    ADD CONSTRAINT aggregate_ratios_aggregate_id_fkey FOREIGN KEY (aggregate_id) REFERENCES public.aggregates(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.server_group_members
    ADD CONSTRAINT server_group_members_group_uuid_fkey FOREIGN KEY (group_uuid) REFERENCES public.server_groups(uuid) ON DELETE CASCADE;
