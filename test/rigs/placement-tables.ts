import pg from "pg";
import { dropDatabase, ensureDatabase } from "../../adapters/postgres/client/databases.ts";

/** The tables of upstream's Placement that an import reads (release 8.0.0, PostgreSQL). */
const TABLES = `
  create table resource_classes (id serial primary key, name varchar(255) not null unique);
  create table traits (id serial primary key, name varchar(255) not null unique);
  create table placement_aggregates (id serial primary key, uuid varchar(36) unique);
  create table projects (id serial primary key, external_id varchar(255) not null unique);
  create table users (id serial primary key, external_id varchar(255) not null unique);
  create table consumer_types (id serial primary key, name varchar(255) not null unique);
  create table resource_providers (id serial primary key, uuid varchar(36) not null unique, name varchar(200) unique,
    generation int, root_provider_id int references resource_providers (id),
    parent_provider_id int references resource_providers (id));
  create table resource_provider_traits (trait_id int references traits (id), resource_provider_id int references resource_providers (id),
    primary key (trait_id, resource_provider_id));
  create table resource_provider_aggregates (resource_provider_id int, aggregate_id int, primary key (resource_provider_id, aggregate_id));
  create table inventories (id serial primary key, resource_provider_id int not null, resource_class_id int not null,
    total int not null, reserved int not null, min_unit int not null, max_unit int not null, step_size int not null,
    allocation_ratio float not null, unique (resource_provider_id, resource_class_id));
  create table consumers (id serial primary key, uuid varchar(36) not null unique, project_id int not null, user_id int not null,
    generation int not null default 0, consumer_type_id int);
  create table allocations (id serial primary key, resource_provider_id int not null, consumer_id varchar(36) not null,
    resource_class_id int not null, used int not null);
`;
const DATED = ["resource_providers", "inventories", "consumers", "allocations"];

export interface PlacementTables {
  readonly url: string;
  readonly client: pg.Client;
  drop(): Promise<void>;
}

/** An empty database with upstream's tables, beside the other databases of the tests. */
export async function createPlacementTables(adminUrl: string, name: string): Promise<PlacementTables> {
  await ensureDatabase(adminUrl, name);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(TABLES);
  for (const table of DATED)
    await client.query(
      `alter table ${table} add column created_at timestamp default '2024-02-03 04:05:06', add column updated_at timestamp`,
    );
  return {
    url: url.href,
    client,
    drop: async () => {
      await client.end();
      await dropDatabase(adminUrl, name);
    },
  };
}

const uuidOf = (kind: string, number: number): string =>
  `${kind}0000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
export const providerUuidOf = (id: number): string => uuidOf("a", id);
export const consumerUuidOf = (id: number): string => uuidOf("c", id);

/**
 * Eight providers: the trees 1 → 2 → 8 → 3 (8 was inserted later, so it is younger than its child) and 4 → 5, and the roots 6 and 7, of
 * which 6 shares disks. Four consumers, the last of which no longer holds anything.
 */
export async function fillPlacementTables(client: pg.Client): Promise<void> {
  const parents: readonly (readonly [id: number, root: number, parent: number | null])[] = [
    [1, 1, null],
    [2, 1, 2 - 1],
    [4, 4, null],
    [5, 4, 4],
    [6, 6, null],
    [7, 7, null],
    [8, 1, 2],
    [3, 1, 8],
  ];
  for (const [id, root] of parents)
    await client.query(
      "insert into resource_providers (id, uuid, name, generation, root_provider_id, updated_at) values ($1, $2, $3, $4, null, $5)",
      [id, providerUuidOf(id), `host ${id}`, id * 10, id === root ? "2025-01-02 03:04:05" : null],
    );
  for (const [id, root, parent] of parents)
    await client.query("update resource_providers set root_provider_id = $2, parent_provider_id = $3 where id = $1", [
      id,
      root,
      parent,
    ]);
  await client.query(`
    insert into resource_classes (id, name) values (1, 'VCPU'), (2, 'DISK_GB'), (10000, 'CUSTOM_GPU');
    insert into traits (id, name) values (5, 'HW_CPU_X86_AVX2'), (6, 'CUSTOM_FAST');
    insert into placement_aggregates (id, uuid) values (1, 'B0000000-0000-4000-8000-000000000001');
    insert into projects (id, external_id) values (1, 'project-1'), (2, 'project-2');
    insert into users (id, external_id) values (1, 'user-1');
    insert into consumer_types (id, name) values (1, 'INSTANCE');
    insert into resource_provider_traits (resource_provider_id, trait_id) values (1, 5), (3, 5), (3, 6), (6, 6);
    insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1), (6, 1);
    insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      values (1, 1, 8, 1, 1, 8, 1, 4.0), (3, 10000, 2, 0, 1, 1, 1, 1.0), (4, 1, 16, 0, 1, 16, 1, 1.5),
             (6, 2, 1000, 100, 10, 1000, 10, 1.0), (7, 1, 4, 0, 1, 4, 1, 1.0);
    insert into consumers (id, uuid, project_id, user_id, generation, consumer_type_id)
      values (1, '${consumerUuidOf(1)}', 1, 1, 3, 1), (2, '${consumerUuidOf(2)}', 2, 1, 1, null),
             (3, '${consumerUuidOf(3)}', 1, 1, 2, 1), (4, '${consumerUuidOf(4)}', 1, 1, 9, 1);
    insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
      values (1, '${consumerUuidOf(1)}', 1, 4), (3, '${consumerUuidOf(1)}', 10000, 1), (6, '${consumerUuidOf(1)}', 2, 50),
             (4, '${consumerUuidOf(2)}', 1, 7), (1, '${consumerUuidOf(3)}', 1, 2), (1, '${consumerUuidOf(3)}', 1, 3)`);
}
