-- A database of the kind `cell` as the last version before the baseline has left it, with some data: the output of pg_dump for a database
-- to which all migrations that the baseline replaces were applied. The bodies of functions are left out, as each is replaced when the
-- database is taken over. This file never changes, because those databases do not change either.
CREATE TYPE public.ledger_batch AS (
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
CREATE TYPE public.ledger_first_claims AS (
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
CREATE TYPE public.ledger_tree_batch AS (
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
CREATE TYPE public.placement_writes AS (
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
CREATE FUNCTION public.cell_add_task(list uuid[], task uuid) RETURNS uuid[]
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_begin(ops jsonb, bytes bytea, payload_starts integer[], payload_lengths integer[], changes public.ledger_batch) RETURNS TABLE(at integer, outcome text, detail jsonb, xid bigint)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_claim_groups(server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host integer[], to_hosts text[], leaving_states text[]) RETURNS TABLE(at integer, conflicting text[], in_flight boolean)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_claims(task_ids uuid[], server_uuids uuid[], epochs integer[], outcome text) RETURNS TABLE(at integer, repeated boolean)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_close(server_uuids uuid[]) RETURNS TABLE(at integer, present boolean)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_commit_active(task_ids uuid[], server_uuids uuid[], epochs integer[], selections integer[], attempt_ids text[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs integer[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_commit_error(task_ids uuid[], server_uuids uuid[], epochs integer[], selections integer[], attempt_reasons text[], reasons text[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_commit_steps(steps jsonb, task_ids uuid[], server_uuids uuid[], epochs integer[], changes public.ledger_batch) RETURNS TABLE(at integer, outcome text, detail jsonb, revision integer)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_dispatch(server_uuids uuid[], names text[], project_ids text[], user_ids text[], created_at_ms bigint[], hosts text[], attempt_ids text[], task_ids uuid[], bytes bytea, spec_starts integer[], spec_lengths integer[], payload_starts integer[], payload_lengths integer[], changes public.ledger_batch) RETURNS TABLE(at integer, outcome text, detail jsonb, xid bigint)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_end_tasks(task_ids uuid[], server_uuids uuid[], epochs integer[], task_outcome text) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_end_unreadable(task_ids uuid[], epochs integer[], reasons text[]) RETURNS TABLE(at integer, server_uuid uuid)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_evacuation_refusal(host_name text, unseen_ms double precision, fence_waived boolean) RETURNS text
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_expire_hosts(unseen_ms double precision, share_max double precision, count_min integer) RETURNS TABLE(name text, down boolean)
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_give_back(task_ids uuid[], server_uuids uuid[], epochs integer[], outcome text) RETURNS TABLE(at integer, repeated boolean)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_hand_over(conductor uuid, task_ids uuid[], epochs integer[]) RETURNS TABLE(id uuid, epoch integer)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_homes(server_uuids uuid[]) RETURNS TABLE(uuid uuid, status text, host text, attempt_id text, revision integer, busy boolean, migration uuid, kind text, source_host text, source_attempt_id text, dest_host text, dest_attempt_id text, runs boolean)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_hop(task_ids uuid[], server_uuids uuid[], epochs integer[], from_selections integer[], reasons text[], to_selections integer[], to_hosts text[], to_attempt_ids text[], changes public.ledger_batch) RETURNS TABLE(at integer, outcome text, detail jsonb)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_host_seen(host_name text, unseen_ms double precision) RETURNS boolean
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_incarnation() RETURNS text
    LANGUAGE plpgsql STABLE
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_join_groups(server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host integer[], to_hosts text[]) RETURNS TABLE(at integer, conflicting text[])
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_leave_behind(leftover uuid, of_server uuid, on_host text) RETURNS void
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_mirror_aggregates(add_root uuid[], add_aggregate uuid[], drop_root uuid[], drop_aggregate uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_note(list text[], entry text, most integer) RETURNS text[]
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_own(conductor uuid, task_ids uuid[]) RETURNS TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_patch_holdings(server_uuids uuid[], revisions integer[], bytes bytea, spec_starts integer[], spec_lengths integer[], changes public.ledger_batch) RETURNS TABLE(at integer, outcome text, detail jsonb, xid bigint)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_request_delete(server_uuids uuid[], task_ids uuid[], bytes bytea, payload_starts integer[], payload_lengths integer[]) RETURNS TABLE(at integer, outcome text, payload bytea)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_reset_status(server_uuids uuid[], statuses text[]) RETURNS TABLE(at integer, outcome text, running text)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_set_host_disabled(host text, wanted boolean, reason text) RETURNS boolean
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_set_ratios(roots uuid[], entry_root integer[], entry_class text[], entry_ratio double precision[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_shut(server_uuids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_sweep(conductor uuid, untaken_ms double precision, tasks_max integer, except_ids uuid[]) RETURNS TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_bitmapscan TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_take(conductor uuid, task_ids uuid[]) RETURNS TABLE(id uuid, payload bytea, epoch integer, selection integer, host text, attempt_id text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_without(changes public.ledger_batch, positions integer[]) RETURNS public.ledger_batch
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.cell_write_step(w jsonb) RETURNS integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_apply(batch public.ledger_batch) RETURNS TABLE(change integer, kind text, generations integer[], detail jsonb)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_capacity(total integer, reserved integer, allocation_ratio double precision) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_claim_first(batch public.ledger_first_claims) RETURNS boolean
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_claim_together(batch public.ledger_batch) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_give_back(consumer_uuids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_put_trees(batch public.ledger_tree_batch) RETURNS TABLE(tree integer, kind text, generations integer[], detail jsonb)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_put_trees_as_given(batch public.ledger_tree_batch) RETURNS TABLE(tree integer, kind text, generations integer[], detail jsonb)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_swap_together(batch public.ledger_batch) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_trees_that_differ(batch public.ledger_tree_batch) RETURNS integer[]
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_custom_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.ledger_under_operators_word(batch public.ledger_tree_batch) RETURNS public.ledger_tree_batch
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_custom_plan'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.placement_set_aggregates(provider_uuid uuid, expected integer, wanted uuid[]) RETURNS TABLE(kind text, new_generation integer, written_at_ms double precision)
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.placement_set_traits(provider_uuid uuid, expected integer, trait_names text[]) RETURNS TABLE(kind text, new_generation integer, written_at_ms double precision, names text[])
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.placement_write(batch public.placement_writes) RETURNS TABLE(at integer, root uuid, generation integer, written_at_ms double precision)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.placement_write_inventories(provider_uuid uuid, expected integer, mode text, class_names text[], totals integer[], reserves integer[], min_units integer[], max_units integer[], step_sizes integer[], ratios double precision[]) RETURNS TABLE(kind text, new_generation integer, written_at_ms double precision, names text[])
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE FUNCTION public.refuse_inventory_in_use() RETURNS trigger
    LANGUAGE plpgsql
    AS 'begin raise exception ''the text of a version before the baseline''; end';
CREATE TABLE public.agents (
    id text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.allocations (
    consumer_uuid uuid NOT NULL,
    provider_id integer NOT NULL,
    class_id integer NOT NULL,
    amount bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT allocations_amount_check CHECK ((amount > 0))
);
CREATE TABLE public.attempts (
    task_id uuid NOT NULL,
    selection integer NOT NULL,
    server_uuid uuid NOT NULL,
    host text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    result text,
    reason text,
    CONSTRAINT attempts_result_check CHECK ((result = ANY (ARRAY['success'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text])))
)
WITH (fillfactor='50');
CREATE TABLE public.conductors (
    id uuid NOT NULL,
    name text NOT NULL,
    lease_expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.consumers (
    uuid uuid NOT NULL,
    generation integer NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.group_members (
    server_uuid uuid NOT NULL,
    group_uuid uuid NOT NULL
);
CREATE TABLE public.hosts (
    name text NOT NULL,
    root_provider uuid NOT NULL,
    agent_id text NOT NULL,
    up boolean NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    disabled_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    hypervisor jsonb DEFAULT '{}'::jsonb NOT NULL,
    forced_down boolean DEFAULT false NOT NULL
);
CREATE TABLE public.incarnation (
    only_row boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT incarnation_only_row_check CHECK (only_row)
);
CREATE TABLE public.inventories (
    provider_id integer NOT NULL,
    class_id integer NOT NULL,
    total integer NOT NULL,
    reserved integer NOT NULL,
    min_unit integer NOT NULL,
    max_unit integer NOT NULL,
    step_size integer NOT NULL,
    allocation_ratio double precision NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT inventories_min_unit_check CHECK ((min_unit > 0)),
    CONSTRAINT inventories_step_size_check CHECK ((step_size > 0)),
    CONSTRAINT inventories_used_check CHECK ((used >= 0))
)
WITH (fillfactor='70');
CREATE TABLE public.migrations (
    uuid uuid NOT NULL,
    server_uuid uuid NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    source_host text,
    source_attempt_id text,
    dest_host text NOT NULL,
    dest_attempt_id text NOT NULL,
    ended boolean DEFAULT false NOT NULL,
    holds_source boolean DEFAULT false NOT NULL,
    runs boolean NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    note text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.provider_aggregates (
    provider_id integer NOT NULL,
    aggregate uuid NOT NULL
);
CREATE TABLE public.provider_traits (
    provider_id integer NOT NULL,
    trait_id integer NOT NULL
);
CREATE TABLE public.quarantined_guests (
    host text NOT NULL,
    attempt_id text NOT NULL,
    server_uuid text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    found_at timestamp with time zone DEFAULT now() NOT NULL,
    condemned boolean DEFAULT false NOT NULL,
    host_disabled boolean DEFAULT false NOT NULL
);
CREATE TABLE public.ratio_overrides (
    root uuid NOT NULL,
    class text NOT NULL,
    ratio double precision NOT NULL,
    CONSTRAINT ratio_overrides_ratio_check CHECK ((ratio > (0)::double precision))
);
CREATE TABLE public.reported_ratios (
    provider uuid NOT NULL,
    class text NOT NULL,
    ratio double precision NOT NULL
);
CREATE TABLE public.resource_classes (
    id integer NOT NULL,
    name text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.resource_classes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.resource_classes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.resource_providers (
    id integer NOT NULL,
    uuid uuid NOT NULL,
    name text NOT NULL,
    parent_id integer,
    root_id integer NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE public.resource_providers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.resource_providers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    kind text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    breaking boolean DEFAULT false NOT NULL
);
CREATE TABLE public.servers (
    uuid uuid NOT NULL,
    status text NOT NULL,
    task_state text,
    spec bytea NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    host text,
    attempt_id text,
    fault text,
    fault_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    launched_at timestamp with time zone,
    deleted_at timestamp with time zone,
    revision integer DEFAULT 0 NOT NULL,
    later_tasks uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    CONSTRAINT servers_status_check CHECK ((status = ANY (ARRAY['BUILD'::text, 'ACTIVE'::text, 'ERROR'::text, 'DELETED'::text, 'CLOSED'::text, 'SHUTOFF'::text, 'PAUSED'::text, 'VERIFY_RESIZE'::text, 'SHELVED'::text, 'SHELVED_OFFLOADED'::text])))
)
WITH (fillfactor='50');
CREATE TABLE public.tasks (
    id uuid NOT NULL,
    server_uuid uuid NOT NULL,
    kind text NOT NULL,
    payload bytea NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    owner uuid,
    selection integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    operation text,
    stage text,
    step integer DEFAULT 0 NOT NULL,
    signal text,
    reason text DEFAULT ''::text NOT NULL,
    takings text[] DEFAULT '{}'::text[] NOT NULL,
    stages text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT tasks_kind_check CHECK ((kind = ANY (ARRAY['build'::text, 'delete'::text, 'operate'::text]))),
    CONSTRAINT tasks_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'error'::text, 'deleted'::text, 'cancelled'::text])))
)
WITH (fillfactor='40');
ALTER TABLE ONLY public.tasks ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE TABLE public.traits (
    id integer NOT NULL,
    name text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.traits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.traits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO public.agents VALUES
  ('agent', '2026-11-22 18:29:59.415342+00');
INSERT INTO public.allocations VALUES
  ('0000000b-0000-4000-8000-000000000001', 1, 1, 2, '2026-11-22 18:29:59.521851+00'),
  ('0000000b-0000-4000-8000-000000000002', 2, 1, 2, '2026-11-22 18:29:59.550996+00'),
  ('0000000b-0000-4000-8000-000000000003', 3, 1, 2, '2026-11-22 18:29:59.620311+00'),
  ('0000000c-0000-4000-8000-000000000021', 1, 1, 2, '2026-11-22 18:29:59.620311+00');
INSERT INTO public.attempts VALUES

  ('0000000c-0000-4000-8000-000000000001', 0, '0000000b-0000-4000-8000-000000000001', 'host-0', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.546488+00', 'success', NULL),
  ('0000000c-0000-4000-8000-000000000003', 0, '0000000b-0000-4000-8000-000000000003', 'host-0', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.546488+00', 'success', NULL),
  ('0000000c-0000-4000-8000-000000000002', 0, '0000000b-0000-4000-8000-000000000002', 'host-0', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.550996+00', 'failed', 'no room'),
  ('0000000c-0000-4000-8000-000000000002', 1, '0000000b-0000-4000-8000-000000000002', 'host-1', '2026-11-22 18:29:59.550996+00', NULL, NULL, NULL),
  ('0000000c-0000-4000-8000-000000000021', 0, '0000000b-0000-4000-8000-000000000003', 'host-2', '2026-11-22 18:29:59.620311+00', NULL, NULL, NULL);
INSERT INTO public.conductors VALUES
  ('0000000d-0000-4000-8000-000000000000', 'conductor', '2026-11-22 18:29:59.660539+00');
INSERT INTO public.consumers VALUES
  ('0000000b-0000-4000-8000-000000000001', 1, 'project-1', 'user-1', 'INSTANCE', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.521851+00'),
  ('0000000b-0000-4000-8000-000000000002', 2, 'project-1', 'user-1', 'INSTANCE', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.550996+00'),
  ('0000000b-0000-4000-8000-000000000003', 1, 'project-1', 'user-1', 'INSTANCE', '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.620311+00'),
  ('0000000c-0000-4000-8000-000000000021', 1, 'project-1', 'user-1', 'MIGRATION', '2026-11-22 18:29:59.620311+00', '2026-11-22 18:29:59.620311+00');
INSERT INTO public.hosts VALUES

  ('host-0', '0000000a-0000-4000-8000-000000000000', 'agent', true, false, NULL, '2026-11-22 18:29:59.415342+00', '2026-11-22 18:29:59.415342+00', '{}', false),
  ('host-1', '0000000a-0000-4000-8000-000000000001', 'agent', true, false, NULL, '2026-11-22 18:29:59.415342+00', '2026-11-22 18:29:59.415342+00', '{}', false),
  ('host-2', '0000000a-0000-4000-8000-000000000002', 'agent', true, false, NULL, '2026-11-22 18:29:59.415342+00', '2026-11-22 18:29:59.415342+00', '{}', false);

INSERT INTO public.incarnation VALUES
  (true, 'f0328266-9de8-47f1-ae1b-9e562c4fba8a', '2026-11-22 18:29:56.502201+00');
INSERT INTO public.inventories VALUES
  (1, 1, 10, 0, 1, 10, 1, 1, 4, '2026-11-22 18:29:59.296164+00'), (2, 1, 10, 0, 1, 10, 1, 1, 2, '2026-11-22 18:29:59.296164+00'),
  (3, 1, 10, 0, 1, 10, 1, 1, 2, '2026-11-22 18:29:59.296164+00');
INSERT INTO public.migrations VALUES

  ('0000000c-0000-4000-8000-000000000021', '0000000b-0000-4000-8000-000000000003', 'resize', 'pre-migrating', 'host-0', '0000000c-0000-4000-8000-000000000003/0', 'host-2', '0000000c-0000-4000-8000-000000000021/0', false, false, true, '2026-11-22 18:29:59.643703+00', '2026-11-22 18:29:59.650892+00', '');

INSERT INTO public.ratio_overrides VALUES
  ('0000000a-0000-4000-8000-000000000002', 'VCPU', 4);
INSERT INTO public.resource_classes OVERRIDING SYSTEM VALUE VALUES
  (1, 'VCPU', '2026-11-22 18:29:56.349853+00'), (2, 'MEMORY_MB', '2026-11-22 18:29:56.349853+00'), (3, 'DISK_GB', '2026-11-22 18:29:56.349853+00'),
  (4, 'PCI_DEVICE', '2026-11-22 18:29:56.349853+00'), (5, 'SRIOV_NET_VF', '2026-11-22 18:29:56.349853+00'),
  (6, 'NUMA_SOCKET', '2026-11-22 18:29:56.349853+00'), (7, 'NUMA_CORE', '2026-11-22 18:29:56.349853+00'),
  (8, 'NUMA_THREAD', '2026-11-22 18:29:56.349853+00'), (9, 'NUMA_MEMORY_MB', '2026-11-22 18:29:56.349853+00'),
  (10, 'IPV4_ADDRESS', '2026-11-22 18:29:56.349853+00'), (11, 'VGPU', '2026-11-22 18:29:56.349853+00'),
  (12, 'VGPU_DISPLAY_HEAD', '2026-11-22 18:29:56.349853+00'), (13, 'NET_BW_EGR_KILOBIT_PER_SEC', '2026-11-22 18:29:56.349853+00'),
  (14, 'NET_BW_IGR_KILOBIT_PER_SEC', '2026-11-22 18:29:56.349853+00'), (15, 'PCPU', '2026-11-22 18:29:56.349853+00'),
  (16, 'MEM_ENCRYPTION_CONTEXT', '2026-11-22 18:29:56.349853+00'), (17, 'FPGA', '2026-11-22 18:29:56.349853+00'),
  (18, 'PGPU', '2026-11-22 18:29:56.349853+00'), (19, 'NET_PACKET_RATE_KILOPACKET_PER_SEC', '2026-11-22 18:29:56.349853+00'),
  (20, 'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC', '2026-11-22 18:29:56.349853+00'),
  (21, 'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC', '2026-11-22 18:29:56.349853+00');
INSERT INTO public.resource_providers OVERRIDING SYSTEM VALUE VALUES
  (1, '0000000a-0000-4000-8000-000000000000', 'host-0', NULL, 1, 0, '2026-11-22 18:29:59.296164+00', '2026-11-22 18:29:59.296164+00'),
  (2, '0000000a-0000-4000-8000-000000000001', 'host-1', NULL, 2, 0, '2026-11-22 18:29:59.296164+00', '2026-11-22 18:29:59.296164+00'),
  (3, '0000000a-0000-4000-8000-000000000002', 'host-2', NULL, 3, 0, '2026-11-22 18:29:59.296164+00', '2026-11-22 18:29:59.296164+00');
INSERT INTO public.schema_migrations VALUES
  ('0001-ledger', 'cell', '7315c38a361b338984246e12ebcd0c501f052e4d3d62944244f3f0e926816bc6', '2026-11-22 18:29:56.272223+00', false),
  ('0002-cell', 'cell', '749ed1a2d7e20463b425b32e835552d63aa8a52f3fcc3f657e9af7fb99952faf', '2026-11-22 18:29:56.307789+00', false),
  ('0003-ledger-apply', 'cell', 'f5397f5205df249c05d56dd6f160c7a6fddc7fef9bebe0591f20895c76ecaa56', '2026-11-22 18:29:56.325156+00', false),
  ('0004-cell-functions', 'cell', 'cdd04f74ca0bfc8baa84930ec0415518f90b65daf97dd881a0492dff401d5848', '2026-11-22 18:29:56.340828+00', false),
  ('0005-publication', 'cell', '7afaec08b65aa9a01652925c2ffa8146efd19188446a137115efe5318c25fb18', '2026-11-22 18:29:56.343577+00', false),
  ('0006-standard-names', 'cell', '49335f4f6b9af87efb050582d2a608483193c0b7c89d5f65eb2153a8a8a690ee', '2026-11-22 18:29:56.360472+00', false),
  ('0007-ledger-put-trees', 'cell', 'd3cc0975d58b1443cc1c0adf647883ffd22f38dbc966f6b0a921bb34837c85c7', '2026-11-22 18:29:56.367042+00', false),
  ('0008-hand-over', 'cell', '6b255040e7a7d2ba9ace8ae0848c40c17e8e679ab6270551d4d14b595736a80a', '2026-11-22 18:29:56.377209+00', false),
  ('0009-placement-writes', 'cell', '1041290ca42aa7147d6f7434ac1407180124f9d8dfeb6f2e81988c5fde85e0a1', '2026-11-22 18:29:56.380642+00', false),
  ('0010-server-groups', 'cell', '0f44f7d8dadbe825ee4add7491f4953eecda15a493f1c723705bee4e6ce41344', '2026-11-22 18:29:56.388115+00', false),
  ('0011-lean-writes', 'cell', 'a21b417662dda28745004f910a2a14ddf05ae4a9674f9a2937c6d55860a73748', '2026-11-22 18:29:56.401824+00', false),
  ('0012-host-facts', 'cell', '5e58f6aaa527296de6bdd40ba5045b2690165772f6343f5443c981c611e0a155', '2026-11-22 18:29:56.403833+00', false),
  ('0013-operations', 'cell', '782fd1c5c465a87e14f6c2a1a2bc077f26ace31e38ea650ae891805cefb355ee', '2026-11-22 18:29:56.41394+00', false),
  ('0014-patch-holdings', 'cell', '752b89ff46ca751240825d4b3f439f3ba6a0cf3843b3ee43293a5b75f40e0898', '2026-11-22 18:29:56.421799+00', false),
  ('0015-reset-status', 'cell', '660c92a27e2409835d75f8d80bb01943af56d961339752a62727ec6e2ab67235', '2026-11-22 18:29:56.425803+00', false),
  ('0016-patch-servers', 'cell', '48690cf86dd8c3244930ef7ef2953130b249ae66a27b371b9ac9b408df1d821b', '2026-11-22 18:29:56.433289+00', false),
  ('0021-operators-word', 'cell', 'c52976ad43dd3da0146eb8e15b90a2aca06cc0acb04f48784ac1370f650fe0af', '2026-11-22 18:29:56.438536+00', false),
  ('0022-audit-feed', 'cell', '7af11afdcad3fb776a9566d66967f7259b45cb5defac619c414b73d8fb936924', '2026-11-22 18:29:56.440296+00', false),
  ('0023-first-claims', 'cell', '864033e8283c565a85c20e795d0523b1a352417376262d540dff5e9dc10a55f3', '2026-11-22 18:29:56.449902+00', false),
  ('0024-provider-writes', 'cell', 'efc01fd7a3a805c55bbe1ac189322680efd432df76cf94379c7f6dd29a527f56', '2026-11-22 18:29:56.457167+00', false),
  ('0025-many-shortfalls', 'cell', 'f07514832c30c7be2d4189eec934a82ad64747b2e1b70250e940075a344829a8', '2026-11-22 18:29:56.465799+00', false),
  ('0026-writes-before-looks', 'cell', '1de3827c82734848fba5c294c2e93e9640e57730d2bac072eb5915e1089a555b', '2026-11-22 18:29:56.468131+00', false),
  ('0027-commits-in-one-pass', 'cell', 'e0b81d1cc05106722bf63644ffb5a671b3330a68de0154cf0cd585a4396600e3', '2026-11-22 18:29:56.47262+00', false),
  ('0028-open-tasks', 'cell', 'e1be56dec6066f45443b8939f6f179825fd4f4a2c9ec71ff847bc1752ca61fe1', '2026-11-22 18:29:56.475842+00', false),
  ('0030-hops-in-one-pass', 'cell', 'a8a19743518e9d2e64d0b0afdd8ffa2989d16a14e120886d88588a9c6c5554b8', '2026-11-22 18:29:56.481803+00', false),
  ('0031-homes', 'cell', 'd8a3643cef24c7d83da294085cfcad4d8eeda5083c0d0d6c6c308b55da991aec', '2026-11-22 18:29:56.488336+00', false),
  ('0032-groups-by-index', 'cell', 'ebb97a7347575165f401f152cd33ba0a4509765b89c3ea255b530098f25830bd', '2026-11-22 18:29:56.490254+00', false),
  ('0035-sixth-law', 'cell', '8bcf8712bf69a0aa802fa6ef2cdc2c602fed39435847ccd254192fbe4c7834ef', '2026-11-22 18:29:56.499857+00', false),
  ('0045-evacuation-fences', 'cell', '415266563f0644f7ff88ace34663f7e5ec345837ca9108caa6f44c34376a3b69', '2026-11-22 18:29:56.501048+00', false),
  ('0046-expiry-limit', 'cell', 'eb649be948fcd60da7365034c4ee5ba1f50d5ca196ed100b06d5a5f764c09403', '2026-11-22 18:29:56.501877+00', false),
  ('0047-incarnation', 'cell', '35b1e9a430bdc9e44efe4d999daefab657e269b6a7e68fc84d4e9464fa16ad88', '2026-11-22 18:29:56.513868+00', false),
  ('0050-groups-with-moves', 'cell', 'dfb23727c6e87907f7842a889ea09d5f42b2d3c4d230f4b725e651c107ac271b', '2026-11-22 18:29:56.516129+00', false),
  ('0058-payloads-external', 'cell', 'fe6406181c068f7d35039c983ff826b9693fa80821047d96ebaf1c189643da9f', '2026-11-22 18:29:56.517918+00', false),
  ('0070-unreadable-tasks', 'cell', '3a84f63df9ab0d2342c7eb6841eef7d01d648daec4192a89d6b077b63cf54751', '2026-11-22 18:29:56.519105+00', false),
  ('0073-whole-life', 'cell', 'ba2b044132da02fd6c46e73da832d042eb3ea5ba2f589f05e654f75cac986daa', '2026-11-22 18:29:56.525216+00', false),
  ('0079-lean-expiry', 'cell', 'af863550f59fa0a654a1f8bde3fe05753dbff3748d1364e4b285d1723f838469', '2026-11-22 18:29:56.564538+00', false);
INSERT INTO public.servers VALUES

  ('0000000b-0000-4000-8000-000000000001', 'ACTIVE', NULL, '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303112106e616d6520226f66222031205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fcd095ffbc31', 'project-1', 'user-1', 'name "of" 1 \ ü', 'host-0', '0000000c-0000-4000-8000-000000000001/0', NULL, NULL, '2023-11-14 22:13:20.124+00', '2026-11-22 18:29:59.546488+00', '2026-11-22 18:29:59.546488+00', NULL, 0, '{}'),
  ('0000000b-0000-4000-8000-000000000002', 'BUILD', 'spawning', '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303212106e616d6520226f66222032205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fdd095ffbc31', 'project-1', 'user-1', 'name "of" 2 \ ü', 'host-1', '0000000c-0000-4000-8000-000000000002/1', NULL, NULL, '2023-11-14 22:13:20.125+00', '2026-11-22 18:29:59.550996+00', NULL, NULL, 0, '{}'),
  ('0000000b-0000-4000-8000-000000000003', 'ACTIVE', 'resize_prep', '\x0a2430303030303030622d303030302d343030302d383030302d30303030303030303030303312106e616d6520226f66222033205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fed095ffbc31', 'project-1', 'user-1', 'name "of" 3 \ ü', 'host-0', '0000000c-0000-4000-8000-000000000003/0', NULL, NULL, '2023-11-14 22:13:20.126+00', '2026-11-22 18:29:59.620311+00', '2026-11-22 18:29:59.546488+00', NULL, 1, '{0000000c-0000-4000-8000-000000000021}');

INSERT INTO public.tasks VALUES

  ('0000000c-0000-4000-8000-000000000002', '0000000b-0000-4000-8000-000000000002', 'build', '\x0a2430303030303030632d303030302d343030302d383030302d3030303030303030303030321299010a2430303030303030622d303030302d343030302d383030302d30303030303030303030303212106e616d6520226f66222032205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fdd095ffbc311aa2020a8e010a06686f73742d30122430303030303030612d303030302d343030302d383030302d3030303030303030303030301a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303012045643505518021226122430303030303030612d303030302d343030302d383030302d3030303030303030303030300a8e010a06686f73742d31122430303030303030612d303030302d343030302d383030302d3030303030303030303030311a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303112045643505518021226122430303030303030612d303030302d343030302d383030302d303030303030303030303031', 1, '0000000d-0000-4000-8000-000000000000', 1, '2026-11-22 18:29:59.521851+00', NULL, NULL, NULL, NULL, 0, NULL, '', '{1795372199539/0000000d-0000-4000-8000-000000000000/conductor}', '{}'),
  ('0000000c-0000-4000-8000-000000000001', '0000000b-0000-4000-8000-000000000001', 'build', '\x0a2430303030303030632d303030302d343030302d383030302d3030303030303030303030311299010a2430303030303030622d303030302d343030302d383030302d30303030303030303030303112106e616d6520226f66222031205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fcd095ffbc311aa2020a8e010a06686f73742d30122430303030303030612d303030302d343030302d383030302d3030303030303030303030301a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303012045643505518021226122430303030303030612d303030302d343030302d383030302d3030303030303030303030300a8e010a06686f73742d31122430303030303030612d303030302d343030302d383030302d3030303030303030303030311a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303112045643505518021226122430303030303030612d303030302d343030302d383030302d303030303030303030303031', 1, '0000000d-0000-4000-8000-000000000000', 0, '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.546488+00', 'success', NULL, NULL, 0, NULL, '', '{1795372199539/0000000d-0000-4000-8000-000000000000/conductor}', '{}'),
  ('0000000c-0000-4000-8000-000000000003', '0000000b-0000-4000-8000-000000000003', 'build', '\x0a2430303030303030632d303030302d343030302d383030302d3030303030303030303030331299010a2430303030303030622d303030302d343030302d383030302d30303030303030303030303312106e616d6520226f66222033205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fed095ffbc311aa2020a8e010a06686f73742d30122430303030303030612d303030302d343030302d383030302d3030303030303030303030301a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303012045643505518021226122430303030303030612d303030302d343030302d383030302d3030303030303030303030300a8e010a06686f73742d31122430303030303030612d303030302d343030302d383030302d3030303030303030303030311a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303112045643505518021226122430303030303030612d303030302d343030302d383030302d303030303030303030303031', 1, '0000000d-0000-4000-8000-000000000000', 0, '2026-11-22 18:29:59.521851+00', '2026-11-22 18:29:59.546488+00', 'success', NULL, NULL, 0, NULL, '', '{1795372199539/0000000d-0000-4000-8000-000000000000/conductor}', '{}'),
  ('0000000c-0000-4000-8000-000000000021', '0000000b-0000-4000-8000-000000000003', 'operate', '\x0a2430303030303030632d303030302d343030302d383030302d3030303030303030303032311299010a2430303030303030622d303030302d343030302d383030302d30303030303030303030303312106e616d6520226f66222033205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791802208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fed095ffbc312ac7030a06726573697a6512620a06686f73742d30122630303030303030632d303030302d343030302d383030302d3030303030303030303030332f301a300a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303012045643505518021a8e010a06686f73742d32122430303030303030612d303030302d343030302d383030302d3030303030303030303030321a046e6f766122580a2e0a2430303030303030612d303030302d343030302d383030302d30303030303030303030303212045643505518021226122430303030303030612d303030302d343030302d383030302d3030303030303030303030322a99010a2430303030303030622d303030302d343030302d383030302d30303030303030303030303312106e616d6520226f66222033205c20c3bc1a0970726f6a6563742d312206757365722d312a280a013112076d312e74696e791801208004280142130a0e7265736f75726365733a564350551201313207696d6167652d313a0b0a04726f6c6512037765624a057265712d3150fed095ffbc3132064143544956453a2430303030303030632d303030302d343030302d383030302d303030303030303030303231', 0, NULL, 0, '2026-11-22 18:29:59.620311+00', NULL, NULL, 'resize', 'preparing', 1, NULL, '', '{}', '{1795372199650/0/preparing}');

INSERT INTO public.traits OVERRIDING SYSTEM VALUE VALUES
  (1, 'COMPUTE_ACCELERATORS', '2026-11-22 18:29:56.349853+00'), (2, 'COMPUTE_ADDRESS_SPACE_EMULATED', '2026-11-22 18:29:56.349853+00'),
  (3, 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH', '2026-11-22 18:29:56.349853+00'), (4, 'COMPUTE_ARCH_AARCH64', '2026-11-22 18:29:56.349853+00'),
  (5, 'COMPUTE_ARCH_MIPSEL', '2026-11-22 18:29:56.349853+00'), (6, 'COMPUTE_ARCH_PPC64LE', '2026-11-22 18:29:56.349853+00'),
  (7, 'COMPUTE_ARCH_RISCV64', '2026-11-22 18:29:56.349853+00'), (8, 'COMPUTE_ARCH_S390X', '2026-11-22 18:29:56.349853+00'),
  (9, 'COMPUTE_ARCH_X86_64', '2026-11-22 18:29:56.349853+00'), (10, 'COMPUTE_CONFIG_DRIVE_REGENERATION', '2026-11-22 18:29:56.349853+00'),
  (11, 'COMPUTE_DEVICE_TAGGING', '2026-11-22 18:29:56.349853+00'), (12, 'COMPUTE_EPHEMERAL_ENCRYPTION', '2026-11-22 18:29:56.349853+00'),
  (13, 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKS', '2026-11-22 18:29:56.349853+00'),
  (14, 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKSV2', '2026-11-22 18:29:56.349853+00'),
  (15, 'COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN', '2026-11-22 18:29:56.349853+00'), (16, 'COMPUTE_FIRMWARE_BIOS', '2026-11-22 18:29:56.349853+00'),
  (17, 'COMPUTE_FIRMWARE_UEFI', '2026-11-22 18:29:56.349853+00'), (18, 'COMPUTE_GRAPHICS_MODEL_BOCHS', '2026-11-22 18:29:56.349853+00'),
  (19, 'COMPUTE_GRAPHICS_MODEL_CIRRUS', '2026-11-22 18:29:56.349853+00'), (20, 'COMPUTE_GRAPHICS_MODEL_GOP', '2026-11-22 18:29:56.349853+00'),
  (21, 'COMPUTE_GRAPHICS_MODEL_NONE', '2026-11-22 18:29:56.349853+00'), (22, 'COMPUTE_GRAPHICS_MODEL_QXL', '2026-11-22 18:29:56.349853+00'),
  (23, 'COMPUTE_GRAPHICS_MODEL_VGA', '2026-11-22 18:29:56.349853+00'), (24, 'COMPUTE_GRAPHICS_MODEL_VIRTIO', '2026-11-22 18:29:56.349853+00'),
  (25, 'COMPUTE_GRAPHICS_MODEL_VMVGA', '2026-11-22 18:29:56.349853+00'), (26, 'COMPUTE_GRAPHICS_MODEL_XEN', '2026-11-22 18:29:56.349853+00'),
  (27, 'COMPUTE_IMAGE_TYPE_AKI', '2026-11-22 18:29:56.349853+00'), (28, 'COMPUTE_IMAGE_TYPE_AMI', '2026-11-22 18:29:56.349853+00'),
  (29, 'COMPUTE_IMAGE_TYPE_ARI', '2026-11-22 18:29:56.349853+00'), (30, 'COMPUTE_IMAGE_TYPE_ISO', '2026-11-22 18:29:56.349853+00'),
  (31, 'COMPUTE_IMAGE_TYPE_PLOOP', '2026-11-22 18:29:56.349853+00'), (32, 'COMPUTE_IMAGE_TYPE_QCOW2', '2026-11-22 18:29:56.349853+00'),
  (33, 'COMPUTE_IMAGE_TYPE_RAW', '2026-11-22 18:29:56.349853+00'), (34, 'COMPUTE_IMAGE_TYPE_VDI', '2026-11-22 18:29:56.349853+00'),
  (35, 'COMPUTE_IMAGE_TYPE_VHD', '2026-11-22 18:29:56.349853+00'), (36, 'COMPUTE_IMAGE_TYPE_VHDX', '2026-11-22 18:29:56.349853+00'),
  (37, 'COMPUTE_IMAGE_TYPE_VMDK', '2026-11-22 18:29:56.349853+00'), (38, 'COMPUTE_MANAGED_PCI_DEVICE', '2026-11-22 18:29:56.349853+00'),
  (39, 'COMPUTE_MEM_BACKING_FILE', '2026-11-22 18:29:56.349853+00'), (40, 'COMPUTE_MIGRATE_AUTO_CONVERGE', '2026-11-22 18:29:56.349853+00'),
  (41, 'COMPUTE_MIGRATE_POST_COPY', '2026-11-22 18:29:56.349853+00'), (42, 'COMPUTE_NET_ATTACH_INTERFACE', '2026-11-22 18:29:56.349853+00'),
  (43, 'COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG', '2026-11-22 18:29:56.349853+00'),
  (44, 'COMPUTE_NET_VIF_MODEL_E1000', '2026-11-22 18:29:56.349853+00'), (45, 'COMPUTE_NET_VIF_MODEL_E1000E', '2026-11-22 18:29:56.349853+00'),
  (46, 'COMPUTE_NET_VIF_MODEL_IGB', '2026-11-22 18:29:56.349853+00'), (47, 'COMPUTE_NET_VIF_MODEL_LAN9118', '2026-11-22 18:29:56.349853+00'),
  (48, 'COMPUTE_NET_VIF_MODEL_NE2K_PCI', '2026-11-22 18:29:56.349853+00'), (49, 'COMPUTE_NET_VIF_MODEL_NETFRONT', '2026-11-22 18:29:56.349853+00'),
  (50, 'COMPUTE_NET_VIF_MODEL_PCNET', '2026-11-22 18:29:56.349853+00'), (51, 'COMPUTE_NET_VIF_MODEL_RTL8139', '2026-11-22 18:29:56.349853+00'),
  (52, 'COMPUTE_NET_VIF_MODEL_SPAPR_VLAN', '2026-11-22 18:29:56.349853+00'), (53, 'COMPUTE_NET_VIF_MODEL_SRIOV', '2026-11-22 18:29:56.349853+00'),
  (54, 'COMPUTE_NET_VIF_MODEL_VIRTIO', '2026-11-22 18:29:56.349853+00'), (55, 'COMPUTE_NET_VIF_MODEL_VMXNET', '2026-11-22 18:29:56.349853+00'),
  (56, 'COMPUTE_NET_VIF_MODEL_VMXNET3', '2026-11-22 18:29:56.349853+00'), (57, 'COMPUTE_NET_VIRTIO_PACKED', '2026-11-22 18:29:56.349853+00'),
  (58, 'COMPUTE_NODE', '2026-11-22 18:29:56.349853+00'), (59, 'COMPUTE_REMOTE_MANAGED_PORTS', '2026-11-22 18:29:56.349853+00'),
  (60, 'COMPUTE_RESCUE_BFV', '2026-11-22 18:29:56.349853+00'), (61, 'COMPUTE_SAME_HOST_COLD_MIGRATE', '2026-11-22 18:29:56.349853+00'),
  (62, 'COMPUTE_SECURITY_STATELESS_FIRMWARE', '2026-11-22 18:29:56.349853+00'), (63, 'COMPUTE_SECURITY_TPM_1_2', '2026-11-22 18:29:56.349853+00'),
  (64, 'COMPUTE_SECURITY_TPM_2_0', '2026-11-22 18:29:56.349853+00'), (65, 'COMPUTE_SECURITY_TPM_CRB', '2026-11-22 18:29:56.349853+00'),
  (66, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT', '2026-11-22 18:29:56.349853+00'),
  (67, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST', '2026-11-22 18:29:56.349853+00'),
  (68, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER', '2026-11-22 18:29:56.349853+00'),
  (69, 'COMPUTE_SECURITY_TPM_TIS', '2026-11-22 18:29:56.349853+00'), (70, 'COMPUTE_SECURITY_UEFI_SECURE_BOOT', '2026-11-22 18:29:56.349853+00'),
  (71, 'COMPUTE_SHARE_LOCAL_FS', '2026-11-22 18:29:56.349853+00'), (72, 'COMPUTE_SOCKET_PCI_NUMA_AFFINITY', '2026-11-22 18:29:56.349853+00'),
  (73, 'COMPUTE_SOUND_MODEL_AC97', '2026-11-22 18:29:56.349853+00'), (74, 'COMPUTE_SOUND_MODEL_ES1370', '2026-11-22 18:29:56.349853+00'),
  (75, 'COMPUTE_SOUND_MODEL_ICH6', '2026-11-22 18:29:56.349853+00'), (76, 'COMPUTE_SOUND_MODEL_ICH9', '2026-11-22 18:29:56.349853+00'),
  (77, 'COMPUTE_SOUND_MODEL_PCSPK', '2026-11-22 18:29:56.349853+00'), (78, 'COMPUTE_SOUND_MODEL_SB16', '2026-11-22 18:29:56.349853+00'),
  (79, 'COMPUTE_SOUND_MODEL_USB', '2026-11-22 18:29:56.349853+00'), (80, 'COMPUTE_SOUND_MODEL_VIRTIO', '2026-11-22 18:29:56.349853+00'),
  (81, 'COMPUTE_STATUS_DISABLED', '2026-11-22 18:29:56.349853+00'), (82, 'COMPUTE_STORAGE_BUS_FDC', '2026-11-22 18:29:56.349853+00'),
  (83, 'COMPUTE_STORAGE_BUS_IDE', '2026-11-22 18:29:56.349853+00'), (84, 'COMPUTE_STORAGE_BUS_LXC', '2026-11-22 18:29:56.349853+00'),
  (85, 'COMPUTE_STORAGE_BUS_SATA', '2026-11-22 18:29:56.349853+00'), (86, 'COMPUTE_STORAGE_BUS_SCSI', '2026-11-22 18:29:56.349853+00'),
  (87, 'COMPUTE_STORAGE_BUS_UML', '2026-11-22 18:29:56.349853+00'), (88, 'COMPUTE_STORAGE_BUS_USB', '2026-11-22 18:29:56.349853+00'),
  (89, 'COMPUTE_STORAGE_BUS_VIRTIO', '2026-11-22 18:29:56.349853+00'), (90, 'COMPUTE_STORAGE_BUS_XEN', '2026-11-22 18:29:56.349853+00'),
  (91, 'COMPUTE_STORAGE_VIRTIO_FS', '2026-11-22 18:29:56.349853+00'), (92, 'COMPUTE_TRUSTED_CERTS', '2026-11-22 18:29:56.349853+00'),
  (93, 'COMPUTE_USB_MODEL_NEC_XHCI', '2026-11-22 18:29:56.349853+00'), (94, 'COMPUTE_USB_MODEL_QEMU_XHCI', '2026-11-22 18:29:56.349853+00'),
  (95, 'COMPUTE_VIOMMU_MODEL_AUTO', '2026-11-22 18:29:56.349853+00'), (96, 'COMPUTE_VIOMMU_MODEL_INTEL', '2026-11-22 18:29:56.349853+00'),
  (97, 'COMPUTE_VIOMMU_MODEL_SMMUV3', '2026-11-22 18:29:56.349853+00'), (98, 'COMPUTE_VIOMMU_MODEL_VIRTIO', '2026-11-22 18:29:56.349853+00'),
  (99, 'COMPUTE_VOLUME_ATTACH', '2026-11-22 18:29:56.349853+00'), (100, 'COMPUTE_VOLUME_ATTACH_WITH_TAG', '2026-11-22 18:29:56.349853+00'),
  (101, 'COMPUTE_VOLUME_EXTEND', '2026-11-22 18:29:56.349853+00'), (102, 'COMPUTE_VOLUME_MULTI_ATTACH', '2026-11-22 18:29:56.349853+00'),
  (103, 'HW_ARCH_AARCH64', '2026-11-22 18:29:56.349853+00'), (104, 'HW_ARCH_ALPHA', '2026-11-22 18:29:56.349853+00'),
  (105, 'HW_ARCH_ARMV6', '2026-11-22 18:29:56.349853+00'), (106, 'HW_ARCH_ARMV7', '2026-11-22 18:29:56.349853+00'),
  (107, 'HW_ARCH_ARMV7B', '2026-11-22 18:29:56.349853+00'), (108, 'HW_ARCH_CRIS', '2026-11-22 18:29:56.349853+00'),
  (109, 'HW_ARCH_I686', '2026-11-22 18:29:56.349853+00'), (110, 'HW_ARCH_IA64', '2026-11-22 18:29:56.349853+00'),
  (111, 'HW_ARCH_LM32', '2026-11-22 18:29:56.349853+00'), (112, 'HW_ARCH_M68K', '2026-11-22 18:29:56.349853+00'),
  (113, 'HW_ARCH_MICROBLAZE', '2026-11-22 18:29:56.349853+00'), (114, 'HW_ARCH_MICROBLAZEEL', '2026-11-22 18:29:56.349853+00'),
  (115, 'HW_ARCH_MIPS', '2026-11-22 18:29:56.349853+00'), (116, 'HW_ARCH_MIPS64', '2026-11-22 18:29:56.349853+00'),
  (117, 'HW_ARCH_MIPS64EL', '2026-11-22 18:29:56.349853+00'), (118, 'HW_ARCH_MIPSEL', '2026-11-22 18:29:56.349853+00'),
  (119, 'HW_ARCH_OPENRISC', '2026-11-22 18:29:56.349853+00'), (120, 'HW_ARCH_PARISC', '2026-11-22 18:29:56.349853+00'),
  (121, 'HW_ARCH_PARISC64', '2026-11-22 18:29:56.349853+00'), (122, 'HW_ARCH_PPC', '2026-11-22 18:29:56.349853+00'),
  (123, 'HW_ARCH_PPC64', '2026-11-22 18:29:56.349853+00'), (124, 'HW_ARCH_PPC64LE', '2026-11-22 18:29:56.349853+00'),
  (125, 'HW_ARCH_PPCEMB', '2026-11-22 18:29:56.349853+00'), (126, 'HW_ARCH_PPCLE', '2026-11-22 18:29:56.349853+00'),
  (127, 'HW_ARCH_S390', '2026-11-22 18:29:56.349853+00'), (128, 'HW_ARCH_S390X', '2026-11-22 18:29:56.349853+00'),
  (129, 'HW_ARCH_SH4', '2026-11-22 18:29:56.349853+00'), (130, 'HW_ARCH_SH4EB', '2026-11-22 18:29:56.349853+00'),
  (131, 'HW_ARCH_SPARC', '2026-11-22 18:29:56.349853+00'), (132, 'HW_ARCH_SPARC64', '2026-11-22 18:29:56.349853+00'),
  (133, 'HW_ARCH_UNICORE32', '2026-11-22 18:29:56.349853+00'), (134, 'HW_ARCH_X86_64', '2026-11-22 18:29:56.349853+00'),
  (135, 'HW_ARCH_XTENSA', '2026-11-22 18:29:56.349853+00'), (136, 'HW_ARCH_XTENSAEB', '2026-11-22 18:29:56.349853+00'),
  (137, 'HW_CPU_AARCH64_AES', '2026-11-22 18:29:56.349853+00'), (138, 'HW_CPU_AARCH64_ASIMD', '2026-11-22 18:29:56.349853+00'),
  (139, 'HW_CPU_AARCH64_ASIMDDP', '2026-11-22 18:29:56.349853+00'), (140, 'HW_CPU_AARCH64_ASIMDHP', '2026-11-22 18:29:56.349853+00'),
  (141, 'HW_CPU_AARCH64_ASIMDRDM', '2026-11-22 18:29:56.349853+00'), (142, 'HW_CPU_AARCH64_ATOMICS', '2026-11-22 18:29:56.349853+00'),
  (143, 'HW_CPU_AARCH64_CPUID', '2026-11-22 18:29:56.349853+00'), (144, 'HW_CPU_AARCH64_CRC32', '2026-11-22 18:29:56.349853+00'),
  (145, 'HW_CPU_AARCH64_DCPOP', '2026-11-22 18:29:56.349853+00'), (146, 'HW_CPU_AARCH64_EVTSTRM', '2026-11-22 18:29:56.349853+00'),
  (147, 'HW_CPU_AARCH64_FCMA', '2026-11-22 18:29:56.349853+00'), (148, 'HW_CPU_AARCH64_FP', '2026-11-22 18:29:56.349853+00'),
  (149, 'HW_CPU_AARCH64_FPHP', '2026-11-22 18:29:56.349853+00'), (150, 'HW_CPU_AARCH64_JSCVT', '2026-11-22 18:29:56.349853+00'),
  (151, 'HW_CPU_AARCH64_LRCPC', '2026-11-22 18:29:56.349853+00'), (152, 'HW_CPU_AARCH64_PMULL', '2026-11-22 18:29:56.349853+00'),
  (153, 'HW_CPU_AARCH64_SHA1', '2026-11-22 18:29:56.349853+00'), (154, 'HW_CPU_AARCH64_SHA2', '2026-11-22 18:29:56.349853+00'),
  (155, 'HW_CPU_AARCH64_SHA3', '2026-11-22 18:29:56.349853+00'), (156, 'HW_CPU_AARCH64_SHA512', '2026-11-22 18:29:56.349853+00'),
  (157, 'HW_CPU_AARCH64_SM3', '2026-11-22 18:29:56.349853+00'), (158, 'HW_CPU_AARCH64_SM4', '2026-11-22 18:29:56.349853+00'),
  (159, 'HW_CPU_AARCH64_SVE', '2026-11-22 18:29:56.349853+00'), (160, 'HW_CPU_AMD_SEV', '2026-11-22 18:29:56.349853+00'),
  (161, 'HW_CPU_HYPERTHREADING', '2026-11-22 18:29:56.349853+00'), (162, 'HW_CPU_PPC64LE_POWER8', '2026-11-22 18:29:56.349853+00'),
  (163, 'HW_CPU_PPC64LE_POWER9', '2026-11-22 18:29:56.349853+00'), (164, 'HW_CPU_X86_3DNOW', '2026-11-22 18:29:56.349853+00'),
  (165, 'HW_CPU_X86_ABM', '2026-11-22 18:29:56.349853+00'), (166, 'HW_CPU_X86_AESNI', '2026-11-22 18:29:56.349853+00'),
  (167, 'HW_CPU_X86_AMD_IBPB', '2026-11-22 18:29:56.349853+00'), (168, 'HW_CPU_X86_AMD_NO_SSB', '2026-11-22 18:29:56.349853+00'),
  (169, 'HW_CPU_X86_AMD_SEV', '2026-11-22 18:29:56.349853+00'), (170, 'HW_CPU_X86_AMD_SEV_ES', '2026-11-22 18:29:56.349853+00'),
  (171, 'HW_CPU_X86_AMD_SEV_SNP', '2026-11-22 18:29:56.349853+00'), (172, 'HW_CPU_X86_AMD_SSBD', '2026-11-22 18:29:56.349853+00'),
  (173, 'HW_CPU_X86_AMD_SVM', '2026-11-22 18:29:56.349853+00'), (174, 'HW_CPU_X86_AMD_VIRT_SSBD', '2026-11-22 18:29:56.349853+00'),
  (175, 'HW_CPU_X86_AMXBF16', '2026-11-22 18:29:56.349853+00'), (176, 'HW_CPU_X86_AMXINT8', '2026-11-22 18:29:56.349853+00'),
  (177, 'HW_CPU_X86_AMXTILE', '2026-11-22 18:29:56.349853+00'), (178, 'HW_CPU_X86_ASF', '2026-11-22 18:29:56.349853+00'),
  (179, 'HW_CPU_X86_AVX', '2026-11-22 18:29:56.349853+00'), (180, 'HW_CPU_X86_AVX2', '2026-11-22 18:29:56.349853+00'),
  (181, 'HW_CPU_X86_AVX512BITALG', '2026-11-22 18:29:56.349853+00'), (182, 'HW_CPU_X86_AVX512BW', '2026-11-22 18:29:56.349853+00'),
  (183, 'HW_CPU_X86_AVX512CD', '2026-11-22 18:29:56.349853+00'), (184, 'HW_CPU_X86_AVX512DQ', '2026-11-22 18:29:56.349853+00'),
  (185, 'HW_CPU_X86_AVX512ER', '2026-11-22 18:29:56.349853+00'), (186, 'HW_CPU_X86_AVX512F', '2026-11-22 18:29:56.349853+00'),
  (187, 'HW_CPU_X86_AVX512GFNI', '2026-11-22 18:29:56.349853+00'), (188, 'HW_CPU_X86_AVX512IFMA', '2026-11-22 18:29:56.349853+00'),
  (189, 'HW_CPU_X86_AVX512PF', '2026-11-22 18:29:56.349853+00'), (190, 'HW_CPU_X86_AVX512VAES', '2026-11-22 18:29:56.349853+00'),
  (191, 'HW_CPU_X86_AVX512VBMI', '2026-11-22 18:29:56.349853+00'), (192, 'HW_CPU_X86_AVX512VBMI2', '2026-11-22 18:29:56.349853+00'),
  (193, 'HW_CPU_X86_AVX512VL', '2026-11-22 18:29:56.349853+00'), (194, 'HW_CPU_X86_AVX512VNNI', '2026-11-22 18:29:56.349853+00'),
  (195, 'HW_CPU_X86_AVX512VPCLMULQDQ', '2026-11-22 18:29:56.349853+00'), (196, 'HW_CPU_X86_AVX512VPOPCNTDQ', '2026-11-22 18:29:56.349853+00'),
  (197, 'HW_CPU_X86_BMI', '2026-11-22 18:29:56.349853+00'), (198, 'HW_CPU_X86_BMI2', '2026-11-22 18:29:56.349853+00'),
  (199, 'HW_CPU_X86_CLMUL', '2026-11-22 18:29:56.349853+00'), (200, 'HW_CPU_X86_F16C', '2026-11-22 18:29:56.349853+00'),
  (201, 'HW_CPU_X86_FMA3', '2026-11-22 18:29:56.349853+00'), (202, 'HW_CPU_X86_FMA4', '2026-11-22 18:29:56.349853+00'),
  (203, 'HW_CPU_X86_INTEL_MD_CLEAR', '2026-11-22 18:29:56.349853+00'), (204, 'HW_CPU_X86_INTEL_PCID', '2026-11-22 18:29:56.349853+00'),
  (205, 'HW_CPU_X86_INTEL_SPEC_CTRL', '2026-11-22 18:29:56.349853+00'), (206, 'HW_CPU_X86_INTEL_SSBD', '2026-11-22 18:29:56.349853+00'),
  (207, 'HW_CPU_X86_INTEL_TDX', '2026-11-22 18:29:56.349853+00'), (208, 'HW_CPU_X86_INTEL_VMX', '2026-11-22 18:29:56.349853+00'),
  (209, 'HW_CPU_X86_MMX', '2026-11-22 18:29:56.349853+00'), (210, 'HW_CPU_X86_MPX', '2026-11-22 18:29:56.349853+00'),
  (211, 'HW_CPU_X86_PDPE1GB', '2026-11-22 18:29:56.349853+00'), (212, 'HW_CPU_X86_SGX', '2026-11-22 18:29:56.349853+00'),
  (213, 'HW_CPU_X86_SHA', '2026-11-22 18:29:56.349853+00'), (214, 'HW_CPU_X86_SSE', '2026-11-22 18:29:56.349853+00'),
  (215, 'HW_CPU_X86_SSE2', '2026-11-22 18:29:56.349853+00'), (216, 'HW_CPU_X86_SSE3', '2026-11-22 18:29:56.349853+00'),
  (217, 'HW_CPU_X86_SSE41', '2026-11-22 18:29:56.349853+00'), (218, 'HW_CPU_X86_SSE42', '2026-11-22 18:29:56.349853+00'),
  (219, 'HW_CPU_X86_SSE4A', '2026-11-22 18:29:56.349853+00'), (220, 'HW_CPU_X86_SSSE3', '2026-11-22 18:29:56.349853+00'),
  (221, 'HW_CPU_X86_STIBP', '2026-11-22 18:29:56.349853+00'), (222, 'HW_CPU_X86_SVM', '2026-11-22 18:29:56.349853+00'),
  (223, 'HW_CPU_X86_TBM', '2026-11-22 18:29:56.349853+00'), (224, 'HW_CPU_X86_TSX', '2026-11-22 18:29:56.349853+00'),
  (225, 'HW_CPU_X86_VMX', '2026-11-22 18:29:56.349853+00'), (226, 'HW_CPU_X86_XOP', '2026-11-22 18:29:56.349853+00'),
  (227, 'HW_GPU_API_DIRECT2D', '2026-11-22 18:29:56.349853+00'), (228, 'HW_GPU_API_DIRECT3D_V10_0', '2026-11-22 18:29:56.349853+00'),
  (229, 'HW_GPU_API_DIRECT3D_V10_1', '2026-11-22 18:29:56.349853+00'), (230, 'HW_GPU_API_DIRECT3D_V11_0', '2026-11-22 18:29:56.349853+00'),
  (231, 'HW_GPU_API_DIRECT3D_V11_1', '2026-11-22 18:29:56.349853+00'), (232, 'HW_GPU_API_DIRECT3D_V11_2', '2026-11-22 18:29:56.349853+00'),
  (233, 'HW_GPU_API_DIRECT3D_V11_3', '2026-11-22 18:29:56.349853+00'), (234, 'HW_GPU_API_DIRECT3D_V12_0', '2026-11-22 18:29:56.349853+00'),
  (235, 'HW_GPU_API_DIRECT3D_V6_0', '2026-11-22 18:29:56.349853+00'), (236, 'HW_GPU_API_DIRECT3D_V7_0', '2026-11-22 18:29:56.349853+00'),
  (237, 'HW_GPU_API_DIRECT3D_V8_0', '2026-11-22 18:29:56.349853+00'), (238, 'HW_GPU_API_DIRECT3D_V8_1', '2026-11-22 18:29:56.349853+00'),
  (239, 'HW_GPU_API_DIRECT3D_V9_0', '2026-11-22 18:29:56.349853+00'), (240, 'HW_GPU_API_DIRECT3D_V9_0B', '2026-11-22 18:29:56.349853+00'),
  (241, 'HW_GPU_API_DIRECT3D_V9_0C', '2026-11-22 18:29:56.349853+00'), (242, 'HW_GPU_API_DIRECT3D_V9_0L', '2026-11-22 18:29:56.349853+00'),
  (243, 'HW_GPU_API_DIRECTX_V10', '2026-11-22 18:29:56.349853+00'), (244, 'HW_GPU_API_DIRECTX_V11', '2026-11-22 18:29:56.349853+00'),
  (245, 'HW_GPU_API_DIRECTX_V12', '2026-11-22 18:29:56.349853+00'), (246, 'HW_GPU_API_DXVA', '2026-11-22 18:29:56.349853+00'),
  (247, 'HW_GPU_API_OPENCL_V1_0', '2026-11-22 18:29:56.349853+00'), (248, 'HW_GPU_API_OPENCL_V1_1', '2026-11-22 18:29:56.349853+00'),
  (249, 'HW_GPU_API_OPENCL_V1_2', '2026-11-22 18:29:56.349853+00'), (250, 'HW_GPU_API_OPENCL_V2_0', '2026-11-22 18:29:56.349853+00'),
  (251, 'HW_GPU_API_OPENCL_V2_1', '2026-11-22 18:29:56.349853+00'), (252, 'HW_GPU_API_OPENCL_V2_2', '2026-11-22 18:29:56.349853+00'),
  (253, 'HW_GPU_API_OPENGL_V1_1', '2026-11-22 18:29:56.349853+00'), (254, 'HW_GPU_API_OPENGL_V1_2', '2026-11-22 18:29:56.349853+00'),
  (255, 'HW_GPU_API_OPENGL_V1_3', '2026-11-22 18:29:56.349853+00'), (256, 'HW_GPU_API_OPENGL_V1_4', '2026-11-22 18:29:56.349853+00'),
  (257, 'HW_GPU_API_OPENGL_V1_5', '2026-11-22 18:29:56.349853+00'), (258, 'HW_GPU_API_OPENGL_V2_0', '2026-11-22 18:29:56.349853+00'),
  (259, 'HW_GPU_API_OPENGL_V2_1', '2026-11-22 18:29:56.349853+00'), (260, 'HW_GPU_API_OPENGL_V3_0', '2026-11-22 18:29:56.349853+00'),
  (261, 'HW_GPU_API_OPENGL_V3_1', '2026-11-22 18:29:56.349853+00'), (262, 'HW_GPU_API_OPENGL_V3_2', '2026-11-22 18:29:56.349853+00'),
  (263, 'HW_GPU_API_OPENGL_V3_3', '2026-11-22 18:29:56.349853+00'), (264, 'HW_GPU_API_OPENGL_V4_0', '2026-11-22 18:29:56.349853+00'),
  (265, 'HW_GPU_API_OPENGL_V4_1', '2026-11-22 18:29:56.349853+00'), (266, 'HW_GPU_API_OPENGL_V4_2', '2026-11-22 18:29:56.349853+00'),
  (267, 'HW_GPU_API_OPENGL_V4_3', '2026-11-22 18:29:56.349853+00'), (268, 'HW_GPU_API_OPENGL_V4_4', '2026-11-22 18:29:56.349853+00'),
  (269, 'HW_GPU_API_OPENGL_V4_5', '2026-11-22 18:29:56.349853+00'), (270, 'HW_GPU_API_VULKAN', '2026-11-22 18:29:56.349853+00'),
  (271, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_0', '2026-11-22 18:29:56.349853+00'),
  (272, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_1', '2026-11-22 18:29:56.349853+00'),
  (273, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_2', '2026-11-22 18:29:56.349853+00'),
  (274, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_3', '2026-11-22 18:29:56.349853+00'),
  (275, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_0', '2026-11-22 18:29:56.349853+00'),
  (276, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_1', '2026-11-22 18:29:56.349853+00'),
  (277, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_0', '2026-11-22 18:29:56.349853+00'),
  (278, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_2', '2026-11-22 18:29:56.349853+00'),
  (279, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_5', '2026-11-22 18:29:56.349853+00'),
  (280, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_7', '2026-11-22 18:29:56.349853+00'),
  (281, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_0', '2026-11-22 18:29:56.349853+00'),
  (282, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_2', '2026-11-22 18:29:56.349853+00'),
  (283, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_3', '2026-11-22 18:29:56.349853+00'),
  (284, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_0', '2026-11-22 18:29:56.349853+00'),
  (285, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_1', '2026-11-22 18:29:56.349853+00'),
  (286, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_2', '2026-11-22 18:29:56.349853+00'),
  (287, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0', '2026-11-22 18:29:56.349853+00'),
  (288, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_1', '2026-11-22 18:29:56.349853+00'),
  (289, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_2', '2026-11-22 18:29:56.349853+00'), (290, 'HW_GPU_CUDA_SDK_V10_0', '2026-11-22 18:29:56.349853+00'),
  (291, 'HW_GPU_CUDA_SDK_V6_5', '2026-11-22 18:29:56.349853+00'), (292, 'HW_GPU_CUDA_SDK_V7_5', '2026-11-22 18:29:56.349853+00'),
  (293, 'HW_GPU_CUDA_SDK_V8_0', '2026-11-22 18:29:56.349853+00'), (294, 'HW_GPU_CUDA_SDK_V9_0', '2026-11-22 18:29:56.349853+00'),
  (295, 'HW_GPU_CUDA_SDK_V9_1', '2026-11-22 18:29:56.349853+00'), (296, 'HW_GPU_CUDA_SDK_V9_2', '2026-11-22 18:29:56.349853+00'),
  (297, 'HW_GPU_MAX_DISPLAY_HEADS_1', '2026-11-22 18:29:56.349853+00'), (298, 'HW_GPU_MAX_DISPLAY_HEADS_2', '2026-11-22 18:29:56.349853+00'),
  (299, 'HW_GPU_MAX_DISPLAY_HEADS_4', '2026-11-22 18:29:56.349853+00'), (300, 'HW_GPU_MAX_DISPLAY_HEADS_6', '2026-11-22 18:29:56.349853+00'),
  (301, 'HW_GPU_MAX_DISPLAY_HEADS_8', '2026-11-22 18:29:56.349853+00'), (302, 'HW_GPU_RESOLUTION_W1024H600', '2026-11-22 18:29:56.349853+00'),
  (303, 'HW_GPU_RESOLUTION_W1024H768', '2026-11-22 18:29:56.349853+00'), (304, 'HW_GPU_RESOLUTION_W1152H864', '2026-11-22 18:29:56.349853+00'),
  (305, 'HW_GPU_RESOLUTION_W1280H1024', '2026-11-22 18:29:56.349853+00'), (306, 'HW_GPU_RESOLUTION_W1280H720', '2026-11-22 18:29:56.349853+00'),
  (307, 'HW_GPU_RESOLUTION_W1280H768', '2026-11-22 18:29:56.349853+00'), (308, 'HW_GPU_RESOLUTION_W1280H800', '2026-11-22 18:29:56.349853+00'),
  (309, 'HW_GPU_RESOLUTION_W1360H768', '2026-11-22 18:29:56.349853+00'), (310, 'HW_GPU_RESOLUTION_W1366H768', '2026-11-22 18:29:56.349853+00'),
  (311, 'HW_GPU_RESOLUTION_W1440H900', '2026-11-22 18:29:56.349853+00'), (312, 'HW_GPU_RESOLUTION_W1600H1200', '2026-11-22 18:29:56.349853+00'),
  (313, 'HW_GPU_RESOLUTION_W1600H900', '2026-11-22 18:29:56.349853+00'), (314, 'HW_GPU_RESOLUTION_W1680H1050', '2026-11-22 18:29:56.349853+00'),
  (315, 'HW_GPU_RESOLUTION_W1920H1080', '2026-11-22 18:29:56.349853+00'), (316, 'HW_GPU_RESOLUTION_W1920H1200', '2026-11-22 18:29:56.349853+00'),
  (317, 'HW_GPU_RESOLUTION_W2560H1440', '2026-11-22 18:29:56.349853+00'), (318, 'HW_GPU_RESOLUTION_W2560H1600', '2026-11-22 18:29:56.349853+00'),
  (319, 'HW_GPU_RESOLUTION_W320H240', '2026-11-22 18:29:56.349853+00'), (320, 'HW_GPU_RESOLUTION_W3840H2160', '2026-11-22 18:29:56.349853+00'),
  (321, 'HW_GPU_RESOLUTION_W640H480', '2026-11-22 18:29:56.349853+00'), (322, 'HW_GPU_RESOLUTION_W7680H4320', '2026-11-22 18:29:56.349853+00'),
  (323, 'HW_GPU_RESOLUTION_W800H600', '2026-11-22 18:29:56.349853+00'), (324, 'HW_NIC_ACCEL_DEFLATE', '2026-11-22 18:29:56.349853+00'),
  (325, 'HW_NIC_ACCEL_DIFFIEH', '2026-11-22 18:29:56.349853+00'), (326, 'HW_NIC_ACCEL_ECC', '2026-11-22 18:29:56.349853+00'),
  (327, 'HW_NIC_ACCEL_IPSEC', '2026-11-22 18:29:56.349853+00'), (328, 'HW_NIC_ACCEL_LZS', '2026-11-22 18:29:56.349853+00'),
  (329, 'HW_NIC_ACCEL_RSA', '2026-11-22 18:29:56.349853+00'), (330, 'HW_NIC_ACCEL_SSL', '2026-11-22 18:29:56.349853+00'),
  (331, 'HW_NIC_ACCEL_TLS', '2026-11-22 18:29:56.349853+00'), (332, 'HW_NIC_DCB_ETS', '2026-11-22 18:29:56.349853+00'),
  (333, 'HW_NIC_DCB_PFC', '2026-11-22 18:29:56.349853+00'), (334, 'HW_NIC_DCB_QCN', '2026-11-22 18:29:56.349853+00'),
  (335, 'HW_NIC_MULTIQUEUE', '2026-11-22 18:29:56.349853+00'), (336, 'HW_NIC_OFFLOAD_FDF', '2026-11-22 18:29:56.349853+00'),
  (337, 'HW_NIC_OFFLOAD_GENEVE', '2026-11-22 18:29:56.349853+00'), (338, 'HW_NIC_OFFLOAD_GRE', '2026-11-22 18:29:56.349853+00'),
  (339, 'HW_NIC_OFFLOAD_GRO', '2026-11-22 18:29:56.349853+00'), (340, 'HW_NIC_OFFLOAD_GSO', '2026-11-22 18:29:56.349853+00'),
  (341, 'HW_NIC_OFFLOAD_L2CRC', '2026-11-22 18:29:56.349853+00'), (342, 'HW_NIC_OFFLOAD_LRO', '2026-11-22 18:29:56.349853+00'),
  (343, 'HW_NIC_OFFLOAD_LSO', '2026-11-22 18:29:56.349853+00'), (344, 'HW_NIC_OFFLOAD_QINQ', '2026-11-22 18:29:56.349853+00'),
  (345, 'HW_NIC_OFFLOAD_RDMA', '2026-11-22 18:29:56.349853+00'), (346, 'HW_NIC_OFFLOAD_RX', '2026-11-22 18:29:56.349853+00'),
  (347, 'HW_NIC_OFFLOAD_RXHASH', '2026-11-22 18:29:56.349853+00'), (348, 'HW_NIC_OFFLOAD_RXVLAN', '2026-11-22 18:29:56.349853+00'),
  (349, 'HW_NIC_OFFLOAD_SCS', '2026-11-22 18:29:56.349853+00'), (350, 'HW_NIC_OFFLOAD_SG', '2026-11-22 18:29:56.349853+00'),
  (351, 'HW_NIC_OFFLOAD_SWITCHDEV', '2026-11-22 18:29:56.349853+00'), (352, 'HW_NIC_OFFLOAD_TCS', '2026-11-22 18:29:56.349853+00'),
  (353, 'HW_NIC_OFFLOAD_TSO', '2026-11-22 18:29:56.349853+00'), (354, 'HW_NIC_OFFLOAD_TX', '2026-11-22 18:29:56.349853+00'),
  (355, 'HW_NIC_OFFLOAD_TXUDP', '2026-11-22 18:29:56.349853+00'), (356, 'HW_NIC_OFFLOAD_TXVLAN', '2026-11-22 18:29:56.349853+00'),
  (357, 'HW_NIC_OFFLOAD_UCS', '2026-11-22 18:29:56.349853+00'), (358, 'HW_NIC_OFFLOAD_UFO', '2026-11-22 18:29:56.349853+00'),
  (359, 'HW_NIC_OFFLOAD_VXLAN', '2026-11-22 18:29:56.349853+00'), (360, 'HW_NIC_PROGRAMMABLE_PIPELINE', '2026-11-22 18:29:56.349853+00'),
  (361, 'HW_NIC_SRIOV', '2026-11-22 18:29:56.349853+00'), (362, 'HW_NIC_SRIOV_MULTIQUEUE', '2026-11-22 18:29:56.349853+00'),
  (363, 'HW_NIC_SRIOV_QOS_RX', '2026-11-22 18:29:56.349853+00'), (364, 'HW_NIC_SRIOV_QOS_TX', '2026-11-22 18:29:56.349853+00'),
  (365, 'HW_NIC_SRIOV_TRUSTED', '2026-11-22 18:29:56.349853+00'), (366, 'HW_NIC_VMDQ', '2026-11-22 18:29:56.349853+00'),
  (367, 'HW_NUMA_ROOT', '2026-11-22 18:29:56.349853+00'), (368, 'HW_NVME_BES', '2026-11-22 18:29:56.349853+00'),
  (369, 'HW_NVME_CES', '2026-11-22 18:29:56.349853+00'), (370, 'HW_NVME_WZS', '2026-11-22 18:29:56.349853+00'),
  (371, 'HW_PCI_LIVE_MIGRATABLE', '2026-11-22 18:29:56.349853+00'), (372, 'HW_PCI_ONE_TIME_USE', '2026-11-22 18:29:56.349853+00'),
  (373, 'MISC_SHARES_VIA_AGGREGATE', '2026-11-22 18:29:56.349853+00'), (374, 'OWNER_CYBORG', '2026-11-22 18:29:56.349853+00'),
  (375, 'OWNER_NOVA', '2026-11-22 18:29:56.349853+00'), (376, 'STORAGE_DISK_HDD', '2026-11-22 18:29:56.349853+00'),
  (377, 'STORAGE_DISK_SSD', '2026-11-22 18:29:56.349853+00');
SELECT pg_catalog.setval('public.resource_classes_id_seq', 21, true);
SELECT pg_catalog.setval('public.resource_providers_id_seq', 3, true);
SELECT pg_catalog.setval('public.traits_id_seq', 377, true);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_pkey PRIMARY KEY (consumer_uuid, provider_id, class_id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (task_id, selection);
ALTER TABLE ONLY public.conductors
    ADD CONSTRAINT conductors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.consumers
    ADD CONSTRAINT consumers_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.group_members
    ADD CONSTRAINT group_members_pkey PRIMARY KEY (server_uuid);
ALTER TABLE ONLY public.hosts
    ADD CONSTRAINT hosts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.incarnation
    ADD CONSTRAINT incarnation_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.inventories
    ADD CONSTRAINT inventories_pkey PRIMARY KEY (provider_id, class_id);
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.provider_aggregates
    ADD CONSTRAINT provider_aggregates_pkey PRIMARY KEY (provider_id, aggregate);
ALTER TABLE ONLY public.provider_traits
    ADD CONSTRAINT provider_traits_pkey PRIMARY KEY (provider_id, trait_id);
ALTER TABLE ONLY public.quarantined_guests
    ADD CONSTRAINT quarantined_guests_pkey PRIMARY KEY (host, attempt_id);
ALTER TABLE ONLY public.ratio_overrides
    ADD CONSTRAINT ratio_overrides_pkey PRIMARY KEY (root, class);
ALTER TABLE ONLY public.reported_ratios
    ADD CONSTRAINT reported_ratios_pkey PRIMARY KEY (provider, class);
ALTER TABLE ONLY public.resource_classes
    ADD CONSTRAINT resource_classes_name_key UNIQUE (name);
ALTER TABLE ONLY public.resource_classes
    ADD CONSTRAINT resource_classes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_name_key UNIQUE (name);
ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.servers
    ADD CONSTRAINT servers_pkey PRIMARY KEY (uuid);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.traits
    ADD CONSTRAINT traits_name_key UNIQUE (name);
ALTER TABLE ONLY public.traits
    ADD CONSTRAINT traits_pkey PRIMARY KEY (id);
CREATE INDEX allocations_provider_id_idx ON public.allocations USING btree (provider_id);
CREATE INDEX attempts_server_uuid_idx ON public.attempts USING btree (server_uuid);
CREATE INDEX consumers_project_id_user_id_idx ON public.consumers USING btree (project_id, user_id);
CREATE INDEX group_members_group_uuid_idx ON public.group_members USING btree (group_uuid);
CREATE INDEX hosts_agent_id_idx ON public.hosts USING btree (agent_id) WHERE up;
CREATE INDEX hosts_agent_id_idx1 ON public.hosts USING btree (agent_id) WHERE (NOT up);
CREATE INDEX hosts_root_provider_idx ON public.hosts USING btree (root_provider) WHERE disabled;
CREATE INDEX migrations_created_at_idx ON public.migrations USING btree (created_at);
CREATE UNIQUE INDEX migrations_server_uuid_idx ON public.migrations USING btree (server_uuid) WHERE (NOT ended);
CREATE INDEX migrations_server_uuid_idx1 ON public.migrations USING btree (server_uuid);
CREATE INDEX migrations_source_host_idx ON public.migrations USING btree (source_host) WHERE holds_source;
CREATE INDEX provider_aggregates_aggregate_idx ON public.provider_aggregates USING btree (aggregate);
CREATE INDEX provider_traits_trait_id_idx ON public.provider_traits USING btree (trait_id);
CREATE INDEX resource_providers_parent_id_idx ON public.resource_providers USING btree (parent_id);
CREATE INDEX resource_providers_root_id_idx ON public.resource_providers USING btree (root_id);
CREATE INDEX servers_host_idx ON public.servers USING btree (host) WHERE (host IS NOT NULL);
CREATE INDEX servers_updated_at_idx ON public.servers USING brin (updated_at) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX tasks_open ON public.tasks USING btree (server_uuid) WHERE (outcome IS NULL);
CREATE TRIGGER inventory_in_use BEFORE DELETE ON public.inventories FOR EACH ROW WHEN ((old.used > 0)) EXECUTE FUNCTION public.refuse_inventory_in_use();
ALTER TABLE ONLY public.inventories
    ADD CONSTRAINT inventories_class_id_fkey FOREIGN KEY (class_id) REFERENCES public.resource_classes(id);
ALTER TABLE ONLY public.inventories
    ADD CONSTRAINT inventories_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.resource_providers(id);
ALTER TABLE ONLY public.provider_aggregates
    ADD CONSTRAINT provider_aggregates_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.resource_providers(id);
ALTER TABLE ONLY public.provider_traits
    ADD CONSTRAINT provider_traits_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.resource_providers(id);
ALTER TABLE ONLY public.provider_traits
    ADD CONSTRAINT provider_traits_trait_id_fkey FOREIGN KEY (trait_id) REFERENCES public.traits(id);
ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.resource_providers(id);
ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_root_id_fkey FOREIGN KEY (root_id) REFERENCES public.resource_providers(id) DEFERRABLE INITIALLY DEFERRED;
CREATE PUBLICATION berth_audit WITH (publish = 'insert, update, delete, truncate');
CREATE PUBLICATION berth_ledger WITH (publish = 'insert, update, delete, truncate');
CREATE PUBLICATION berth_moves WITH (publish = 'insert, update, delete, truncate');
CREATE PUBLICATION berth_servers WITH (publish = 'insert, update, delete, truncate');
ALTER PUBLICATION berth_audit ADD TABLE ONLY public.allocations (consumer_uuid, provider_id, class_id, amount);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.hosts (name, root_provider, up, disabled, hypervisor);
ALTER PUBLICATION berth_audit ADD TABLE ONLY public.inventories (provider_id, class_id, total, reserved, allocation_ratio, used);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used);
ALTER PUBLICATION berth_moves ADD TABLE ONLY public.migrations (uuid, server_uuid, source_host, dest_host, ended);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.provider_aggregates (provider_id, aggregate);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.provider_traits (provider_id, trait_id);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.resource_classes (id, name);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.resource_providers (id, uuid, name, parent_id, root_id, generation);
ALTER PUBLICATION berth_servers ADD TABLE ONLY public.servers (uuid, status, task_state, spec, host);
ALTER PUBLICATION berth_ledger ADD TABLE ONLY public.traits (id, name);
