import { withClient } from "../adapters/postgres/client/databases.ts";
import { ServerSpec } from "../proto/gen/berth/shared.ts";
import { specOf } from "./scheduling/mixed-cloud.ts";

interface FullCell {
  /** Distinguishes the cell's servers and hosts from those of other cells. */
  readonly cell: number;
  readonly servers: number;
  readonly hosts: number;
}

/** SQL of the UUID of the n-th server of a cell, drawn evenly as those of real servers are. */
export const uuidSql = (cell: number): string => `md5('server ' || ${cell} || ' ' || n)::uuid`;

/** Fills a migrated cell database by SQL: every server is ACTIVE and has three allocations on its host, of which there is room for 1,000 a class. */
export async function fillCell(url: string, cell: FullCell): Promise<void> {
  await withClient(url, async (client) => {
    for (const statement of statementsOf(cell)) await client.query(statement);
  });
}

function statementsOf({ cell, servers, hosts }: FullCell): readonly string[] {
  const provider = `md5('host ' || ${cell} || ' ' || n)::uuid`;
  const spec = `'\\x${Buffer.from(ServerSpec.encode(specOf(0, "full")).finish()).toString("hex")}'`;
  return [
    "insert into resource_classes (name) values ('VCPU'), ('MEMORY_MB'), ('DISK_GB') on conflict do nothing",
    `insert into resource_providers (id, uuid, name, root_id) overriding system value
     select n, ${provider}, 'host-${cell}-' || n, n from generate_series(1, ${hosts}) n`,
    `insert into hosts (name, root_provider, agent_id, up)
     select 'host-${cell}-' || n, ${provider}, 'agent', true from generate_series(1, ${hosts}) n`,
    `insert into servers (uuid, status, spec, project_id, user_id, name, host, attempt_id, created_at)
     select ${uuidSql(cell)}, 'ACTIVE', ${spec}, 'p', 'u', 's' || n, 'host-${cell}-' || (n % ${hosts} + 1), 'a', now()
     from generate_series(1, ${servers}) n`,
    `insert into consumers (uuid, generation, project_id, user_id, type)
     select ${uuidSql(cell)}, 1, 'p', 'u', 'INSTANCE' from generate_series(1, ${servers}) n`,
    `insert into allocations (consumer_uuid, provider_id, class_id, amount)
     select ${uuidSql(cell)}, n % ${hosts} + 1, c.id, 1
     from generate_series(1, ${servers}) n, resource_classes c where c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`,
    `insert into inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used)
     select provider_id, class_id, 1000, 0, 1, 1000, 1, 1, sum(amount) from allocations group by provider_id, class_id`,
    "vacuum analyze",
  ];
}
