import type { PoolClient } from "pg";
import { classAmountsOf } from "../../../core/stores/api/counted-amounts.ts";
import type { ClassAmounts } from "../../../core/stores/api/quota-limits.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryRows } from "../client/store-query.ts";
import { COUNTED } from "./count-usage.ts";

interface AmountRow {
  readonly project_id: string;
  readonly class: string;
  readonly amount: number;
}

/** The key under which the number of all servers comes beside those of classes. */
const INSTANCES = "instances";

export const jsonOfClasses = (classes: ClassAmounts): string => JSON.stringify(Object.fromEntries(classes));

/** The classes with which a request is counted, or those of its spec while it is not. */
export function classesOfRow(row: {
  readonly classes: Readonly<Record<string, number>> | null;
  readonly spec: Uint8Array;
}): ClassAmounts {
  return row.classes === null ? classAmountsOf(ServerSpec.decode(row.spec)) : new Map(Object.entries(row.classes));
}

/**
 * Returns the sums of the amounts of the projects' living servers by resource class, exactly. A project that has servers which are not counted by class is
 * counted first. The caller has locked the quotas of the projects. Cost: one read; while a project is counted, one read and one write of each of its servers.
 */
export async function countedClasses(
  client: PoolClient,
  projects: readonly string[],
): Promise<ReadonlyMap<string, ClassAmounts>> {
  const sums = await readClasses(client, projects);
  const uncounted = projects.filter((project) => {
    const sum = sums.get(project);
    return (sum?.get(COUNTED) ?? 0) !== (sum?.get(INSTANCES) ?? 0);
  });
  if (uncounted.length === 0) return sums;
  for (const project of uncounted.toSorted()) await countAnew(client, project);
  return readClasses(client, projects);
}

/** The sums as they are counted now, with the number of the counted servers and of all of them. */
export async function readClasses(
  client: Pick<PoolClient, "query">,
  projects: readonly string[],
): Promise<ReadonlyMap<string, ClassAmounts>> {
  // One statement, so that both numbers of servers are of one moment.
  const rows = await queryRows<AmountRow>(client as PoolClient, {
    name: "quota_class_usages",
    text: `select project_id, class, sum(amount)::float8 as amount from quota_class_usages where project_id = any ($1) group by 1, 2
      union all select project_id, '${INSTANCES}', sum(instances)::float8 from quota_usages where project_id = any ($1) group by 1`,
    values: [textArrayLiteral(projects)],
  });
  const byProject = Map.groupBy(rows, (row) => row.project_id);
  return new Map([...byProject].map(([project, own]) => [project, new Map(own.map((row) => [row.class, row.amount]))]));
}

/**
 * Counts the servers of a project by class: those that were accepted without limits of classes, and all sums, since an older process may have deleted
 * servers without taking them off. The locks make concurrent deletions come before or after it. A server that runs may have been resized since it was
 * requested, so it is noted as one whose resize is to be settled.
 */
async function countAnew(client: PoolClient, project: string): Promise<void> {
  const rows = await queryRows<{ server_uuid: string; classes: Record<string, number> | null; spec: Buffer }>(client, {
    name: "lock_for_counting",
    text: `select server_uuid, classes, case when classes is null then spec end as spec from requests
      where project_id = $1 and not gone order by server_uuid for no key update`,
    values: [project],
  });
  const missing = rows.filter(({ classes }) => classes === null);
  await queryRows(client, {
    name: "count_classes_of_servers",
    text: `with counted as (
        update requests r set classes = w.classes::jsonb from unnest($1::uuid[], $2::text[]) as w (uuid, classes)
        where r.server_uuid = w.uuid returning r.server_uuid, r.state
      )
      insert into charged_resizes as c (server_uuid, version, looked_at)
      select server_uuid, 1, clock_timestamp() from counted where state = 'dispatched'
      on conflict (server_uuid) do update set version = c.version + 1, looked_at = clock_timestamp()`,
    values: [
      textArrayLiteral(missing.map((row) => row.server_uuid)),
      textArrayLiteral(missing.map((row) => jsonOfClasses(classesOfRow(row)))),
    ],
  });
  await queryRows(client, {
    name: "forget_class_usages",
    text: "delete from quota_class_usages where project_id = $1",
    values: [project],
  });
  await queryRows(client, {
    name: "sum_class_usages",
    text: `insert into quota_class_usages (project_id, class, shard, amount)
      select $1, c.key, 0, sum(c.value::bigint)
      from requests r cross join lateral jsonb_each_text(r.classes || '{"${COUNTED}": 1}') c
      where r.project_id = $1 and not r.gone group by 2 order by 2`,
    values: [project],
  });
}
