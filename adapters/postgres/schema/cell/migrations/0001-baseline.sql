-- The database of one cell: its ledger, and what it knows of its hosts, servers and tasks. Its tables are as they were when the
-- migrations up to here were put together into one.
--
-- Lock order, everywhere: groups (by the number of their lock) → servers (by uuid) → tasks (by id) → consumers (by uuid) → providers
-- (by id) → inventories (by provider_id, class_id). Batches that lock in another order deadlock.
--
-- requires: refuse_inventory_in_use

create table resource_classes (
  id int generated always as identity primary key,
  name text not null unique,
  -- The Placement API answers with it as last-modified.
  updated_at timestamptz not null default now()
);

create table traits (
  id int generated always as identity primary key,
  name text not null unique,
  updated_at timestamptz not null default now()
);

-- The fillfactor leaves room for heap-only updates: over the Placement API each write of allocations raises generations.
create table resource_providers (
  id int generated always as identity primary key,
  uuid uuid not null unique,
  name text not null unique,
  parent_id int references resource_providers (id),
  root_id int not null references resource_providers (id) deferrable initially deferred,
  generation int not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
) with (fillfactor = 70);
create index on resource_providers (root_id);
create index on resource_providers (parent_id);

-- The fillfactor leaves room for heap-only updates: `used` changes with every claim and no index covers it. `updated_at` is when the
-- inventory itself was last written; claims leave it alone.
create table inventories (
  provider_id int not null references resource_providers (id),
  class_id int not null references resource_classes (id),
  total int not null,
  reserved int not null,
  min_unit int not null check (min_unit > 0),
  max_unit int not null,
  step_size int not null check (step_size > 0),
  allocation_ratio double precision not null,
  -- The sum of the allocations of this provider and class (law 1). Only the functions that write allocations write it.
  used bigint not null default 0 check (used >= 0),
  updated_at timestamptz not null default now(),
  primary key (provider_id, class_id)
) with (fillfactor = 70);
create trigger inventory_in_use before delete on inventories
  for each row when (old.used > 0) execute function refuse_inventory_in_use();

create table provider_traits (
  provider_id int not null references resource_providers (id),
  trait_id int not null references traits (id),
  primary key (provider_id, trait_id)
);
create index on provider_traits (trait_id);

create table provider_aggregates (
  provider_id int not null references resource_providers (id),
  aggregate uuid not null,
  primary key (provider_id, aggregate)
);
create index on provider_aggregates (aggregate);

-- A consumer exists as long as it holds something.
create table consumers (
  uuid uuid primary key,
  generation int not null,
  project_id text not null,
  user_id text not null,
  type text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on consumers (project_id, user_id);

-- No foreign keys: their checks cost more than the claim itself (nine look-ups and row locks for one claim of three classes). The functions
-- that write allocations hold the locks of the consumer and of the inventories, and an inventory that is in use is never removed (trigger
-- inventory_in_use). `berth audit` looks for rows that break this.
create table allocations (
  consumer_uuid uuid not null,
  provider_id int not null,
  class_id int not null,
  amount bigint not null check (amount > 0),
  updated_at timestamptz not null default now(),
  primary key (consumer_uuid, provider_id, class_id)
);
create index on allocations (provider_id);

-- One row for each agent process; its heartbeats write this row alone, and not a row for each of its hosts.
create table agents (
  id text primary key,
  seen_at timestamptz not null
);

create table hosts (
  name text primary key,
  root_provider uuid not null,
  agent_id text not null,
  up boolean not null,
  disabled boolean not null default false,
  disabled_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- As the host's agent reports it: HypervisorFacts of core/cell/hypervisor-facts.ts.
  hypervisor jsonb not null default '{}',
  -- Down whatever its agent says, until the operator who forced it down takes that back.
  forced_down boolean not null default false
);
create index on hosts (agent_id) where up;
create index on hosts (agent_id) where not up;
create index on hosts (root_provider) where disabled;

create table conductors (
  id uuid primary key,
  name text not null,
  lease_expires_at timestamptz not null
);

-- A server of this cell. `spec` is the ServerSpec of proto/berth/shared.proto. A row with status CLOSED is no server: it
-- says that the server of this uuid shall never come to be in this cell (deleted, or placed elsewhere, before it got here),
-- and makes a dispatch that comes too late fail on the primary key.
create table servers (
  uuid uuid primary key,
  status text not null check (status in (
    'BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED', 'SHUTOFF', 'PAUSED', 'VERIFY_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED'
  )),
  task_state text,
  spec bytea not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  -- The server's home: the host that holds its allocation, and the attempt that may run there.
  host text,
  attempt_id text,
  fault text,
  fault_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null default now(),
  launched_at timestamptz,
  deleted_at timestamptz,
  -- Rises with each step of an operation: a plan names the revision that it was made for, and hosts refuse orders of older steps.
  revision int not null default 0,
  -- Operations and deletes, the oldest first. Tasks that have ended are in no index by server; a build's is found by its attempts.
  later_tasks uuid[] not null default '{}'
) with (fillfactor = 50);
-- Becoming ACTIVE must stay a heap-only update (so for the tables below, too): a batch of builds lies on a few pages and
-- is written in one transaction, hence half of each page is left free; `status` is in no index, nor in a predicate (a server that is
-- DELETED has no host), and `updated_at` in a summarizing one alone.
create index on servers (host) where host is not null;
create index on servers using brin (updated_at) with (pages_per_range = 16, autosummarize = on);

-- A durable task, and the outbox row of its message. `payload` is the Task of proto/berth/cell.proto. `epoch` rises each
-- time a conductor takes it: a conductor that writes with an older epoch writes nothing. No foreign keys from here on: tasks and
-- attempts are written by the functions cell_* alone, under the lock of their server's row.
create table tasks (
  id uuid primary key,
  server_uuid uuid not null,
  kind text not null check (kind in ('build', 'delete', 'operate')),
  payload bytea not null,
  epoch int not null default 0,
  owner uuid,
  -- Which selection of the plan is being tried (0 is the chosen host). An attempt's id is `<task id>/<selection>`.
  selection int not null default 0,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  outcome text check (outcome in ('success', 'error', 'deleted', 'cancelled')),
  -- Of an operation: its kind and its stage (docs/decisions/0006-moves.md).
  operation text,
  stage text,
  -- How many steps were committed: each is written on the one before.
  step int not null default 0,
  -- A word for the conductor that carries it out: abort, force.
  signal text,
  -- Why it goes back; empty while it goes forward.
  reason text not null default '',
  -- Lists with the oldest entry first. A taking is `<milliseconds since the epoch>/<conductor>/<its name>`, a stage
  -- `<milliseconds since the epoch>/<selection>/<stage>`. They are written by updates that are made anyway, and are in no index.
  takings text[] not null default '{}',
  stages text[] not null default '{}'
) with (fillfactor = 40);
-- Never compressed: to compress a long payload would cost more time than it saves space.
alter table tasks alter column payload set storage external;
-- One index of the open tasks alone, by server: each index costs a record of the log for every task that is stored, and another one when it
-- ends. A query for the tasks of a server means its open ones, and sweeps look at every open task anyway. Tasks that have ended are found by
-- their ids, which attempts and migrations have.
--
-- Queries that look for open tasks say `outcome is null`, as only that finds this index; queries by id say `ended_at is null`, as that does
-- not. The two columns are written together.
create index tasks_open on tasks (server_uuid) where outcome is null;

-- What became of each selection of each task: what `os-instance-actions` shows.
create table attempts (
  task_id uuid not null,
  selection int not null,
  server_uuid uuid not null,
  host text not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  -- null while it runs; `success`, `failed`, `skipped` (the alternate no longer fitted; counts as no attempt), `cancelled`
  result text check (result in ('success', 'failed', 'skipped', 'cancelled')),
  reason text,
  primary key (task_id, selection)
) with (fillfactor = 50);
create index on attempts (server_uuid);

-- Moves, past and present. The uuid is that of the task that began it, whose payload has the rest.
create table migrations (
  uuid uuid primary key,
  server_uuid uuid not null,
  kind text not null,
  status text not null,
  source_host text,
  source_attempt_id text,
  dest_host text not null,
  dest_attempt_id text not null,
  -- A move that has not ended keeps its guests from being cleared away, and may hold allocations of the source.
  ended boolean not null default false,
  -- It has ended, and holds the source's allocation all the same: an evacuated host that has not come back.
  holds_source boolean not null default false,
  -- Whether the server runs while it waits for its confirmation.
  runs boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- What people should know of the move now: what it waits for and what they can do, or why it was not confirmed. Empty: nothing.
  note text not null default ''
) with (fillfactor = 70);
create unique index on migrations (server_uuid) where not ended;
create index on migrations (server_uuid);
create index on migrations (source_host) where holds_source;
create index on migrations (created_at);

-- The servers of server groups, by server. A member is on the host that `servers.host` names, so leaving a group needs no lock and no write:
-- an error, a delete or a hop changes the host, and the next claim sees it (cell_claim_groups).
create table group_members (
  server_uuid uuid primary key,
  group_uuid uuid not null
);
create index on group_members (group_uuid);

-- Allocation ratios that operators set for all inventories of a class in the tree of this root. They are kept here, so that a report of a
-- tree is written under them without a question to the API tier.
create table ratio_overrides (
  root uuid not null,
  class text not null,
  ratio double precision not null check (ratio > 0),
  primary key (root, class)
);

-- What the agent reported where an override takes its place: it comes back when the override goes. No foreign key: a tree that is
-- reported without a provider must not fail on it.
create table reported_ratios (
  provider uuid not null,
  class text not null,
  ratio double precision not null,
  primary key (provider, class)
);

-- Which state of this cell's database this is. A restored database, or one that failed over, may have forgotten servers that exist: agents
-- remember the incarnation that they were last compared with, and nothing that they have is destroyed on the word of another one.
create table incarnation (
  only_row boolean primary key default true check (only_row),
  id uuid not null default gen_random_uuid(),
  changed_at timestamptz not null default now()
);
insert into incarnation default values;

-- Guests that hosts have, that this database would have destroyed, and that are kept until an operator decides.
create table quarantined_guests (
  host text not null,
  attempt_id text not null,
  server_uuid text not null,
  state text not null,
  reason text not null,
  found_at timestamptz not null default now(),
  condemned boolean not null default false,
  -- Its host was disabled for it; an operator may enable the host again.
  host_disabled boolean not null default false,
  primary key (host, attempt_id)
);

-- What the functions of the ledger take: parallel arrays, whose literals adapters/postgres makes. All indexes count from 1.

-- A batch of allocation changes. Changes own consecutive steps and steps own consecutive items, each up to an `_end`.
create type ledger_batch as (
  -- Each consumer that a step names, once, ascending; and the owner it is created with when the batch's first step for it
  -- is a claim (0: some other step comes first).
  consumers uuid[],
  consumer_owner int[],
  owner_project text[],
  owner_user text[],
  owner_type text[],
  -- Each provider and class name once; and each (provider, class) that an item names, once.
  providers uuid[],
  classes text[],
  inventory_provider int[],
  inventory_class int[],
  change_step_end int[],
  change_bumps boolean[],
  step_consumer int[],
  -- -1: any; -2: must not exist; else the generation.
  step_expected int[],
  -- 0: a replace; else a move to this consumer. A move takes nothing but the type of its owner.
  step_move_to int[],
  step_owner int[],
  step_item_end int[],
  item_inventory int[],
  item_amount bigint[]
);

-- A batch of provider trees. Every tree is well formed in itself: its root first, parents before children, no uuid and no name twice.
create type ledger_tree_batch as (
  -- The root of each tree, as an index into the providers.
  tree_root int[],
  provider_tree int[],
  provider_uuid uuid[],
  provider_name text[],
  -- An index into the providers; 0: the root.
  provider_parent int[],
  -- -1: any; -2: must be new; else the generation.
  provider_expected int[],
  -- False: its aggregates stay as they are.
  provider_owns_aggregates boolean[],
  classes text[],
  inventory_provider int[],
  inventory_class int[],
  inventory_total int[],
  inventory_reserved int[],
  inventory_min_unit int[],
  inventory_max_unit int[],
  inventory_step_size int[],
  inventory_allocation_ratio double precision[],
  traits text[],
  trait_provider int[],
  trait_trait int[],
  aggregate_provider int[],
  aggregate_uuid uuid[]
);

-- First claims of consumers that are new, at the least cost: all of them fit, or none is made.
create type ledger_first_claims as (
  -- Ascending.
  consumers uuid[],
  consumer_owner int[],
  owner_project text[],
  owner_user text[],
  owner_type text[],
  -- Each provider and class name once. Raises: by how much the provider's generation rises; 0: its row is left alone.
  providers uuid[],
  provider_raises int[],
  classes text[],
  -- Each (provider, class) that an item names, once: the sum of the items' amounts, the least and the greatest of them, and
  -- their greatest common divisor.
  inventory_provider int[],
  inventory_class int[],
  inventory_demand bigint[],
  inventory_least bigint[],
  inventory_most bigint[],
  inventory_unit bigint[],
  item_consumer int[],
  item_inventory int[],
  item_amount bigint[]
);

-- Writes of the Placement API: a provider, its inventories, its traits, its aggregates. A write owns the classes, traits and aggregates up
-- to its `_end` of each.
create type placement_writes as (
  -- create | inventories | traits | aggregates
  kinds text[],
  -- The provider, which no other write of the batch is about; of a creation the parent, or null.
  targets uuid[],
  -- Null: not checked.
  expected int[],
  -- Of creations.
  new_uuids uuid[],
  new_names text[],
  class_end int[],
  classes text[],
  totals int[],
  reserves int[],
  min_units int[],
  max_units int[],
  step_sizes int[],
  ratios double precision[],
  trait_end int[],
  traits text[],
  aggregate_end int[],
  aggregates uuid[]
);

-- Publications. Every table's replica identity is its primary key, the default: a deleted row arrives as its key.

-- What ledger views follow. The lists of columns leave out what no view shows (timestamps most of all: the dearest to send and decode).
create publication berth_ledger for table
  resource_classes (id, name),
  traits (id, name),
  resource_providers (id, uuid, name, parent_id, root_id, generation),
  inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used),
  provider_traits (provider_id, trait_id),
  provider_aggregates (provider_id, aggregate),
  hosts (name, root_provider, up, disabled, hypervisor);

-- What schedulers follow beside the ledger: which servers are on which host, and which moves they are on. An api process needs neither in memory,
-- and is not sent them. No tables of their own: the rows are in the log anyway, so a boot writes nothing more for it.
create publication berth_servers for table servers (uuid, status, task_state, host, spec);
create publication berth_moves for table migrations (uuid, server_uuid, source_host, dest_host, ended);

-- What an auditor that watches follows (berth audit --watch): every claim and release, with its effect on `used`. Apart from the
-- views' publication: a view needs no allocations, and is not sent them. It costs nothing while nobody watches.
create publication berth_audit for table
  inventories (provider_id, class_id, total, reserved, allocation_ratio, used),
  allocations (consumer_uuid, provider_id, class_id, amount);

-- The names that every OpenStack cloud knows (os-resource-classes, os-traits). They always exist and cannot be changed; a cloud's own
-- names begin with CUSTOM_.
insert into resource_classes (name) select unnest(array[
  'VCPU', 'MEMORY_MB', 'DISK_GB', 'PCI_DEVICE', 'SRIOV_NET_VF', 'NUMA_SOCKET', 'NUMA_CORE', 'NUMA_THREAD',
  'NUMA_MEMORY_MB', 'IPV4_ADDRESS', 'VGPU', 'VGPU_DISPLAY_HEAD', 'NET_BW_EGR_KILOBIT_PER_SEC',
  'NET_BW_IGR_KILOBIT_PER_SEC', 'PCPU', 'MEM_ENCRYPTION_CONTEXT', 'FPGA', 'PGPU',
  'NET_PACKET_RATE_KILOPACKET_PER_SEC', 'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC',
  'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC'
]);

insert into traits (name) select unnest(array[
  'COMPUTE_ACCELERATORS', 'COMPUTE_ADDRESS_SPACE_EMULATED', 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH',
  'COMPUTE_ARCH_AARCH64', 'COMPUTE_ARCH_MIPSEL', 'COMPUTE_ARCH_PPC64LE', 'COMPUTE_ARCH_RISCV64',
  'COMPUTE_ARCH_S390X', 'COMPUTE_ARCH_X86_64', 'COMPUTE_CONFIG_DRIVE_REGENERATION', 'COMPUTE_DEVICE_TAGGING',
  'COMPUTE_EPHEMERAL_ENCRYPTION', 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKS', 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKSV2',
  'COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN', 'COMPUTE_FIRMWARE_BIOS', 'COMPUTE_FIRMWARE_UEFI',
  'COMPUTE_GRAPHICS_MODEL_BOCHS', 'COMPUTE_GRAPHICS_MODEL_CIRRUS', 'COMPUTE_GRAPHICS_MODEL_GOP',
  'COMPUTE_GRAPHICS_MODEL_NONE', 'COMPUTE_GRAPHICS_MODEL_QXL', 'COMPUTE_GRAPHICS_MODEL_VGA',
  'COMPUTE_GRAPHICS_MODEL_VIRTIO', 'COMPUTE_GRAPHICS_MODEL_VMVGA', 'COMPUTE_GRAPHICS_MODEL_XEN',
  'COMPUTE_IMAGE_TYPE_AKI', 'COMPUTE_IMAGE_TYPE_AMI', 'COMPUTE_IMAGE_TYPE_ARI', 'COMPUTE_IMAGE_TYPE_ISO',
  'COMPUTE_IMAGE_TYPE_PLOOP', 'COMPUTE_IMAGE_TYPE_QCOW2', 'COMPUTE_IMAGE_TYPE_RAW', 'COMPUTE_IMAGE_TYPE_VDI',
  'COMPUTE_IMAGE_TYPE_VHD', 'COMPUTE_IMAGE_TYPE_VHDX', 'COMPUTE_IMAGE_TYPE_VMDK', 'COMPUTE_MANAGED_PCI_DEVICE',
  'COMPUTE_MEM_BACKING_FILE', 'COMPUTE_MIGRATE_AUTO_CONVERGE', 'COMPUTE_MIGRATE_POST_COPY',
  'COMPUTE_NET_ATTACH_INTERFACE', 'COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG', 'COMPUTE_NET_VIF_MODEL_E1000',
  'COMPUTE_NET_VIF_MODEL_E1000E', 'COMPUTE_NET_VIF_MODEL_IGB', 'COMPUTE_NET_VIF_MODEL_LAN9118',
  'COMPUTE_NET_VIF_MODEL_NE2K_PCI', 'COMPUTE_NET_VIF_MODEL_NETFRONT', 'COMPUTE_NET_VIF_MODEL_PCNET',
  'COMPUTE_NET_VIF_MODEL_RTL8139', 'COMPUTE_NET_VIF_MODEL_SPAPR_VLAN', 'COMPUTE_NET_VIF_MODEL_SRIOV',
  'COMPUTE_NET_VIF_MODEL_VIRTIO', 'COMPUTE_NET_VIF_MODEL_VMXNET', 'COMPUTE_NET_VIF_MODEL_VMXNET3',
  'COMPUTE_NET_VIRTIO_PACKED', 'COMPUTE_NODE', 'COMPUTE_REMOTE_MANAGED_PORTS', 'COMPUTE_RESCUE_BFV',
  'COMPUTE_SAME_HOST_COLD_MIGRATE', 'COMPUTE_SECURITY_STATELESS_FIRMWARE', 'COMPUTE_SECURITY_TPM_1_2',
  'COMPUTE_SECURITY_TPM_2_0', 'COMPUTE_SECURITY_TPM_CRB', 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT',
  'COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST', 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER',
  'COMPUTE_SECURITY_TPM_TIS', 'COMPUTE_SECURITY_UEFI_SECURE_BOOT', 'COMPUTE_SHARE_LOCAL_FS',
  'COMPUTE_SOCKET_PCI_NUMA_AFFINITY', 'COMPUTE_SOUND_MODEL_AC97', 'COMPUTE_SOUND_MODEL_ES1370',
  'COMPUTE_SOUND_MODEL_ICH6', 'COMPUTE_SOUND_MODEL_ICH9', 'COMPUTE_SOUND_MODEL_PCSPK',
  'COMPUTE_SOUND_MODEL_SB16', 'COMPUTE_SOUND_MODEL_USB', 'COMPUTE_SOUND_MODEL_VIRTIO',
  'COMPUTE_STATUS_DISABLED', 'COMPUTE_STORAGE_BUS_FDC', 'COMPUTE_STORAGE_BUS_IDE', 'COMPUTE_STORAGE_BUS_LXC',
  'COMPUTE_STORAGE_BUS_SATA', 'COMPUTE_STORAGE_BUS_SCSI', 'COMPUTE_STORAGE_BUS_UML', 'COMPUTE_STORAGE_BUS_USB',
  'COMPUTE_STORAGE_BUS_VIRTIO', 'COMPUTE_STORAGE_BUS_XEN', 'COMPUTE_STORAGE_VIRTIO_FS',
  'COMPUTE_TRUSTED_CERTS', 'COMPUTE_USB_MODEL_NEC_XHCI', 'COMPUTE_USB_MODEL_QEMU_XHCI',
  'COMPUTE_VIOMMU_MODEL_AUTO', 'COMPUTE_VIOMMU_MODEL_INTEL', 'COMPUTE_VIOMMU_MODEL_SMMUV3',
  'COMPUTE_VIOMMU_MODEL_VIRTIO', 'COMPUTE_VOLUME_ATTACH', 'COMPUTE_VOLUME_ATTACH_WITH_TAG',
  'COMPUTE_VOLUME_EXTEND', 'COMPUTE_VOLUME_MULTI_ATTACH', 'HW_ARCH_AARCH64', 'HW_ARCH_ALPHA', 'HW_ARCH_ARMV6',
  'HW_ARCH_ARMV7', 'HW_ARCH_ARMV7B', 'HW_ARCH_CRIS', 'HW_ARCH_I686', 'HW_ARCH_IA64', 'HW_ARCH_LM32',
  'HW_ARCH_M68K', 'HW_ARCH_MICROBLAZE', 'HW_ARCH_MICROBLAZEEL', 'HW_ARCH_MIPS', 'HW_ARCH_MIPS64',
  'HW_ARCH_MIPS64EL', 'HW_ARCH_MIPSEL', 'HW_ARCH_OPENRISC', 'HW_ARCH_PARISC', 'HW_ARCH_PARISC64',
  'HW_ARCH_PPC', 'HW_ARCH_PPC64', 'HW_ARCH_PPC64LE', 'HW_ARCH_PPCEMB', 'HW_ARCH_PPCLE', 'HW_ARCH_S390',
  'HW_ARCH_S390X', 'HW_ARCH_SH4', 'HW_ARCH_SH4EB', 'HW_ARCH_SPARC', 'HW_ARCH_SPARC64', 'HW_ARCH_UNICORE32',
  'HW_ARCH_X86_64', 'HW_ARCH_XTENSA', 'HW_ARCH_XTENSAEB', 'HW_CPU_AARCH64_AES', 'HW_CPU_AARCH64_ASIMD',
  'HW_CPU_AARCH64_ASIMDDP', 'HW_CPU_AARCH64_ASIMDHP', 'HW_CPU_AARCH64_ASIMDRDM', 'HW_CPU_AARCH64_ATOMICS',
  'HW_CPU_AARCH64_CPUID', 'HW_CPU_AARCH64_CRC32', 'HW_CPU_AARCH64_DCPOP', 'HW_CPU_AARCH64_EVTSTRM',
  'HW_CPU_AARCH64_FCMA', 'HW_CPU_AARCH64_FP', 'HW_CPU_AARCH64_FPHP', 'HW_CPU_AARCH64_JSCVT',
  'HW_CPU_AARCH64_LRCPC', 'HW_CPU_AARCH64_PMULL', 'HW_CPU_AARCH64_SHA1', 'HW_CPU_AARCH64_SHA2',
  'HW_CPU_AARCH64_SHA3', 'HW_CPU_AARCH64_SHA512', 'HW_CPU_AARCH64_SM3', 'HW_CPU_AARCH64_SM4',
  'HW_CPU_AARCH64_SVE', 'HW_CPU_AMD_SEV', 'HW_CPU_HYPERTHREADING', 'HW_CPU_PPC64LE_POWER8',
  'HW_CPU_PPC64LE_POWER9', 'HW_CPU_X86_3DNOW', 'HW_CPU_X86_ABM', 'HW_CPU_X86_AESNI', 'HW_CPU_X86_AMD_IBPB',
  'HW_CPU_X86_AMD_NO_SSB', 'HW_CPU_X86_AMD_SEV', 'HW_CPU_X86_AMD_SEV_ES', 'HW_CPU_X86_AMD_SEV_SNP',
  'HW_CPU_X86_AMD_SSBD', 'HW_CPU_X86_AMD_SVM', 'HW_CPU_X86_AMD_VIRT_SSBD', 'HW_CPU_X86_AMXBF16',
  'HW_CPU_X86_AMXINT8', 'HW_CPU_X86_AMXTILE', 'HW_CPU_X86_ASF', 'HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2',
  'HW_CPU_X86_AVX512BITALG', 'HW_CPU_X86_AVX512BW', 'HW_CPU_X86_AVX512CD', 'HW_CPU_X86_AVX512DQ',
  'HW_CPU_X86_AVX512ER', 'HW_CPU_X86_AVX512F', 'HW_CPU_X86_AVX512GFNI', 'HW_CPU_X86_AVX512IFMA',
  'HW_CPU_X86_AVX512PF', 'HW_CPU_X86_AVX512VAES', 'HW_CPU_X86_AVX512VBMI', 'HW_CPU_X86_AVX512VBMI2',
  'HW_CPU_X86_AVX512VL', 'HW_CPU_X86_AVX512VNNI', 'HW_CPU_X86_AVX512VPCLMULQDQ', 'HW_CPU_X86_AVX512VPOPCNTDQ',
  'HW_CPU_X86_BMI', 'HW_CPU_X86_BMI2', 'HW_CPU_X86_CLMUL', 'HW_CPU_X86_F16C', 'HW_CPU_X86_FMA3',
  'HW_CPU_X86_FMA4', 'HW_CPU_X86_INTEL_MD_CLEAR', 'HW_CPU_X86_INTEL_PCID', 'HW_CPU_X86_INTEL_SPEC_CTRL',
  'HW_CPU_X86_INTEL_SSBD', 'HW_CPU_X86_INTEL_TDX', 'HW_CPU_X86_INTEL_VMX', 'HW_CPU_X86_MMX', 'HW_CPU_X86_MPX',
  'HW_CPU_X86_PDPE1GB', 'HW_CPU_X86_SGX', 'HW_CPU_X86_SHA', 'HW_CPU_X86_SSE', 'HW_CPU_X86_SSE2',
  'HW_CPU_X86_SSE3', 'HW_CPU_X86_SSE41', 'HW_CPU_X86_SSE42', 'HW_CPU_X86_SSE4A', 'HW_CPU_X86_SSSE3',
  'HW_CPU_X86_STIBP', 'HW_CPU_X86_SVM', 'HW_CPU_X86_TBM', 'HW_CPU_X86_TSX', 'HW_CPU_X86_VMX', 'HW_CPU_X86_XOP',
  'HW_GPU_API_DIRECT2D', 'HW_GPU_API_DIRECT3D_V10_0', 'HW_GPU_API_DIRECT3D_V10_1', 'HW_GPU_API_DIRECT3D_V11_0',
  'HW_GPU_API_DIRECT3D_V11_1', 'HW_GPU_API_DIRECT3D_V11_2', 'HW_GPU_API_DIRECT3D_V11_3',
  'HW_GPU_API_DIRECT3D_V12_0', 'HW_GPU_API_DIRECT3D_V6_0', 'HW_GPU_API_DIRECT3D_V7_0',
  'HW_GPU_API_DIRECT3D_V8_0', 'HW_GPU_API_DIRECT3D_V8_1', 'HW_GPU_API_DIRECT3D_V9_0',
  'HW_GPU_API_DIRECT3D_V9_0B', 'HW_GPU_API_DIRECT3D_V9_0C', 'HW_GPU_API_DIRECT3D_V9_0L',
  'HW_GPU_API_DIRECTX_V10', 'HW_GPU_API_DIRECTX_V11', 'HW_GPU_API_DIRECTX_V12', 'HW_GPU_API_DXVA',
  'HW_GPU_API_OPENCL_V1_0', 'HW_GPU_API_OPENCL_V1_1', 'HW_GPU_API_OPENCL_V1_2', 'HW_GPU_API_OPENCL_V2_0',
  'HW_GPU_API_OPENCL_V2_1', 'HW_GPU_API_OPENCL_V2_2', 'HW_GPU_API_OPENGL_V1_1', 'HW_GPU_API_OPENGL_V1_2',
  'HW_GPU_API_OPENGL_V1_3', 'HW_GPU_API_OPENGL_V1_4', 'HW_GPU_API_OPENGL_V1_5', 'HW_GPU_API_OPENGL_V2_0',
  'HW_GPU_API_OPENGL_V2_1', 'HW_GPU_API_OPENGL_V3_0', 'HW_GPU_API_OPENGL_V3_1', 'HW_GPU_API_OPENGL_V3_2',
  'HW_GPU_API_OPENGL_V3_3', 'HW_GPU_API_OPENGL_V4_0', 'HW_GPU_API_OPENGL_V4_1', 'HW_GPU_API_OPENGL_V4_2',
  'HW_GPU_API_OPENGL_V4_3', 'HW_GPU_API_OPENGL_V4_4', 'HW_GPU_API_OPENGL_V4_5', 'HW_GPU_API_VULKAN',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_0', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_1',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_2', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_3',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_0', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_1',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_0', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_2',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_5', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_7',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_0', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_2',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_3', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_0',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_1', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_2',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0', 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_1',
  'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_2', 'HW_GPU_CUDA_SDK_V10_0', 'HW_GPU_CUDA_SDK_V6_5',
  'HW_GPU_CUDA_SDK_V7_5', 'HW_GPU_CUDA_SDK_V8_0', 'HW_GPU_CUDA_SDK_V9_0', 'HW_GPU_CUDA_SDK_V9_1',
  'HW_GPU_CUDA_SDK_V9_2', 'HW_GPU_MAX_DISPLAY_HEADS_1', 'HW_GPU_MAX_DISPLAY_HEADS_2',
  'HW_GPU_MAX_DISPLAY_HEADS_4', 'HW_GPU_MAX_DISPLAY_HEADS_6', 'HW_GPU_MAX_DISPLAY_HEADS_8',
  'HW_GPU_RESOLUTION_W1024H600', 'HW_GPU_RESOLUTION_W1024H768', 'HW_GPU_RESOLUTION_W1152H864',
  'HW_GPU_RESOLUTION_W1280H1024', 'HW_GPU_RESOLUTION_W1280H720', 'HW_GPU_RESOLUTION_W1280H768',
  'HW_GPU_RESOLUTION_W1280H800', 'HW_GPU_RESOLUTION_W1360H768', 'HW_GPU_RESOLUTION_W1366H768',
  'HW_GPU_RESOLUTION_W1440H900', 'HW_GPU_RESOLUTION_W1600H1200', 'HW_GPU_RESOLUTION_W1600H900',
  'HW_GPU_RESOLUTION_W1680H1050', 'HW_GPU_RESOLUTION_W1920H1080', 'HW_GPU_RESOLUTION_W1920H1200',
  'HW_GPU_RESOLUTION_W2560H1440', 'HW_GPU_RESOLUTION_W2560H1600', 'HW_GPU_RESOLUTION_W320H240',
  'HW_GPU_RESOLUTION_W3840H2160', 'HW_GPU_RESOLUTION_W640H480', 'HW_GPU_RESOLUTION_W7680H4320',
  'HW_GPU_RESOLUTION_W800H600', 'HW_NIC_ACCEL_DEFLATE', 'HW_NIC_ACCEL_DIFFIEH', 'HW_NIC_ACCEL_ECC',
  'HW_NIC_ACCEL_IPSEC', 'HW_NIC_ACCEL_LZS', 'HW_NIC_ACCEL_RSA', 'HW_NIC_ACCEL_SSL', 'HW_NIC_ACCEL_TLS',
  'HW_NIC_DCB_ETS', 'HW_NIC_DCB_PFC', 'HW_NIC_DCB_QCN', 'HW_NIC_MULTIQUEUE', 'HW_NIC_OFFLOAD_FDF',
  'HW_NIC_OFFLOAD_GENEVE', 'HW_NIC_OFFLOAD_GRE', 'HW_NIC_OFFLOAD_GRO', 'HW_NIC_OFFLOAD_GSO',
  'HW_NIC_OFFLOAD_L2CRC', 'HW_NIC_OFFLOAD_LRO', 'HW_NIC_OFFLOAD_LSO', 'HW_NIC_OFFLOAD_QINQ',
  'HW_NIC_OFFLOAD_RDMA', 'HW_NIC_OFFLOAD_RX', 'HW_NIC_OFFLOAD_RXHASH', 'HW_NIC_OFFLOAD_RXVLAN',
  'HW_NIC_OFFLOAD_SCS', 'HW_NIC_OFFLOAD_SG', 'HW_NIC_OFFLOAD_SWITCHDEV', 'HW_NIC_OFFLOAD_TCS',
  'HW_NIC_OFFLOAD_TSO', 'HW_NIC_OFFLOAD_TX', 'HW_NIC_OFFLOAD_TXUDP', 'HW_NIC_OFFLOAD_TXVLAN',
  'HW_NIC_OFFLOAD_UCS', 'HW_NIC_OFFLOAD_UFO', 'HW_NIC_OFFLOAD_VXLAN', 'HW_NIC_PROGRAMMABLE_PIPELINE',
  'HW_NIC_SRIOV', 'HW_NIC_SRIOV_MULTIQUEUE', 'HW_NIC_SRIOV_QOS_RX', 'HW_NIC_SRIOV_QOS_TX',
  'HW_NIC_SRIOV_TRUSTED', 'HW_NIC_VMDQ', 'HW_NUMA_ROOT', 'HW_NVME_BES', 'HW_NVME_CES', 'HW_NVME_WZS',
  'HW_PCI_LIVE_MIGRATABLE', 'HW_PCI_ONE_TIME_USE', 'MISC_SHARES_VIA_AGGREGATE', 'OWNER_CYBORG', 'OWNER_NOVA',
  'STORAGE_DISK_HDD', 'STORAGE_DISK_SSD'
]);

-- The migrations that this one stands for, with the checksums of their files: a database that has all of them is taken over as it is.
-- replaces: 0001-ledger 7315c38a361b338984246e12ebcd0c501f052e4d3d62944244f3f0e926816bc6
-- replaces: 0002-cell 749ed1a2d7e20463b425b32e835552d63aa8a52f3fcc3f657e9af7fb99952faf
-- replaces: 0003-ledger-apply f5397f5205df249c05d56dd6f160c7a6fddc7fef9bebe0591f20895c76ecaa56
-- replaces: 0004-cell-functions cdd04f74ca0bfc8baa84930ec0415518f90b65daf97dd881a0492dff401d5848
-- replaces: 0005-publication 7afaec08b65aa9a01652925c2ffa8146efd19188446a137115efe5318c25fb18
-- replaces: 0006-standard-names 49335f4f6b9af87efb050582d2a608483193c0b7c89d5f65eb2153a8a8a690ee
-- replaces: 0007-ledger-put-trees d3cc0975d58b1443cc1c0adf647883ffd22f38dbc966f6b0a921bb34837c85c7
-- replaces: 0008-hand-over 6b255040e7a7d2ba9ace8ae0848c40c17e8e679ab6270551d4d14b595736a80a
-- replaces: 0009-placement-writes 1041290ca42aa7147d6f7434ac1407180124f9d8dfeb6f2e81988c5fde85e0a1
-- replaces: 0010-server-groups 0f44f7d8dadbe825ee4add7491f4953eecda15a493f1c723705bee4e6ce41344
-- replaces: 0011-lean-writes a21b417662dda28745004f910a2a14ddf05ae4a9674f9a2937c6d55860a73748
-- replaces: 0012-host-facts 5e58f6aaa527296de6bdd40ba5045b2690165772f6343f5443c981c611e0a155
-- replaces: 0013-operations 782fd1c5c465a87e14f6c2a1a2bc077f26ace31e38ea650ae891805cefb355ee
-- replaces: 0014-patch-holdings 752b89ff46ca751240825d4b3f439f3ba6a0cf3843b3ee43293a5b75f40e0898
-- replaces: 0015-reset-status 660c92a27e2409835d75f8d80bb01943af56d961339752a62727ec6e2ab67235
-- replaces: 0016-patch-servers 48690cf86dd8c3244930ef7ef2953130b249ae66a27b371b9ac9b408df1d821b
-- replaces: 0021-operators-word c52976ad43dd3da0146eb8e15b90a2aca06cc0acb04f48784ac1370f650fe0af
-- replaces: 0022-audit-feed 7af11afdcad3fb776a9566d66967f7259b45cb5defac619c414b73d8fb936924
-- replaces: 0023-first-claims 864033e8283c565a85c20e795d0523b1a352417376262d540dff5e9dc10a55f3
-- replaces: 0024-provider-writes efc01fd7a3a805c55bbe1ac189322680efd432df76cf94379c7f6dd29a527f56
-- replaces: 0025-many-shortfalls f07514832c30c7be2d4189eec934a82ad64747b2e1b70250e940075a344829a8
-- replaces: 0026-writes-before-looks 1de3827c82734848fba5c294c2e93e9640e57730d2bac072eb5915e1089a555b
-- replaces: 0027-commits-in-one-pass e0b81d1cc05106722bf63644ffb5a671b3330a68de0154cf0cd585a4396600e3
-- replaces: 0028-open-tasks e1be56dec6066f45443b8939f6f179825fd4f4a2c9ec71ff847bc1752ca61fe1
-- replaces: 0030-hops-in-one-pass a8a19743518e9d2e64d0b0afdd8ffa2989d16a14e120886d88588a9c6c5554b8
-- replaces: 0031-homes d8a3643cef24c7d83da294085cfcad4d8eeda5083c0d0d6c6c308b55da991aec
-- replaces: 0032-groups-by-index ebb97a7347575165f401f152cd33ba0a4509765b89c3ea255b530098f25830bd
-- replaces: 0035-sixth-law 8bcf8712bf69a0aa802fa6ef2cdc2c602fed39435847ccd254192fbe4c7834ef
-- replaces: 0045-evacuation-fences 415266563f0644f7ff88ace34663f7e5ec345837ca9108caa6f44c34376a3b69
-- replaces: 0046-expiry-limit eb649be948fcd60da7365034c4ee5ba1f50d5ca196ed100b06d5a5f764c09403
-- replaces: 0047-incarnation 35b1e9a430bdc9e44efe4d999daefab657e269b6a7e68fc84d4e9464fa16ad88
-- replaces: 0050-groups-with-moves dfb23727c6e87907f7842a889ea09d5f42b2d3c4d230f4b725e651c107ac271b
-- replaces: 0058-payloads-external fe6406181c068f7d35039c983ff826b9693fa80821047d96ebaf1c189643da9f
-- replaces: 0070-unreadable-tasks 3a84f63df9ab0d2342c7eb6841eef7d01d648daec4192a89d6b077b63cf54751
-- replaces: 0073-whole-life ba2b044132da02fd6c46e73da832d042eb3ea5ba2f589f05e654f75cac986daa
-- replaces: 0079-lean-expiry af863550f59fa0a654a1f8bde3fe05753dbff3748d1364e4b285d1723f838469
