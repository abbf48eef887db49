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
/** The key for the number of the notes that older processes have changed what is counted here. */
const RECOUNTS = "recounts";

export const jsonOfClasses = (classes: ClassAmounts): string => JSON.stringify(Object.fromEntries(classes));

/** The classes with which a request is counted, or those of its spec while it is not. */
function classesOfRow(row: {
  readonly classes: Readonly<Record<string, number>> | null;
  readonly spec: Uint8Array;
}): ClassAmounts {
  return row.classes === null ? classAmountsOf(ServerSpec.decode(row.spec)) : new Map(Object.entries(row.classes));
}

/**
 * Returns the sums of the amounts of the projects' living servers by resource class, exactly. A project that has servers which are not counted by class, or
 * that an older process has changed, is counted first. The caller has locked the quotas of the projects, and no server, but may lock `next` afterwards.
 * Cost: one read; while a project is counted, one read and one write of each of its servers.
 */
export async function countedClasses(
  client: PoolClient,
  projects: readonly string[],
  next: string | null = null,
): Promise<ReadonlyMap<string, ClassAmounts>> {
  const sums = await readClasses(client, projects);
  const uncounted = projects.filter((project) => {
    const sum = sums.get(project);
    return (sum?.get(COUNTED) ?? 0) !== (sum?.get(INSTANCES) ?? 0) || (sum?.get(RECOUNTS) ?? 0) > 0;
  });
  if (uncounted.length === 0) return sums;
  for (const project of uncounted.toSorted()) await countAnew(client, project, next);
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
      union all select project_id, '${INSTANCES}', sum(instances)::float8 from quota_usages where project_id = any ($1) group by 1
      union all select project_id, '${RECOUNTS}', count(*)::float8 from class_recounts where project_id = any ($1) group by 1`,
    values: [textArrayLiteral(projects)],
  });
  const byProject = Map.groupBy(rows, (row) => row.project_id);
  return new Map([...byProject].map(([project, own]) => [project, new Map(own.map((row) => [row.class, row.amount]))]));
}

/** Lets the servers be looked at in their cells, since they may have been resized. */
export async function noteForSettling(client: PoolClient, serverUuids: readonly string[]): Promise<void> {
  if (serverUuids.length === 0) return;
  await queryRows(client, {
    name: "note_for_settling",
    text: `insert into charged_resizes as c (server_uuid, version, looked_at) select uuid, 1, clock_timestamp() from unnest($1::uuid[]) as w (uuid) order by 1
      on conflict (server_uuid) do update set version = c.version + 1, looked_at = clock_timestamp()`,
    values: [textArrayLiteral(serverUuids)],
  });
}

interface UncountedRow {
  readonly server_uuid: string;
  readonly classes: Readonly<Record<string, number>> | null;
  readonly gone: boolean;
  readonly state: string;
  /** What was charged for a resize, if that is not settled. */
  readonly charged: Readonly<Record<string, number>> | null;
  readonly spec: Buffer;
}

/** The most of each class that an uncounted server may have: by its spec, or by a resize that is not settled. */
export function classesWithCharge(row: Pick<UncountedRow, "classes" | "charged" | "spec">): ClassAmounts {
  const classes = classesOfRow(row);
  if (row.classes !== null || row.charged === null) return classes;
  const charged = new Map(Object.entries(row.charged));
  const names = new Set([...classes.keys(), ...charged.keys()]);
  return new Map([...names].map((name) => [name, Math.max(classes.get(name) ?? 0, charged.get(name) ?? 0)]));
}

/**
 * Counts the servers of a project by class: those that were accepted without limits of classes, and all sums, since an older process may have deleted
 * or restored servers without counting them. The locks, of which `next` is one, make concurrent deletions come before or after it. A server that runs may have
 * been resized since it was requested, or an older process may have settled its resize, so it is noted as one whose resize is to be settled.
 */
async function countAnew(client: PoolClient, project: string, next: string | null): Promise<void> {
  const rows = await queryRows<UncountedRow>(client, {
    name: "lock_for_counting",
    text: `select r.server_uuid, r.classes, r.gone, r.state, c.classes as charged, case when r.classes is null then r.spec end as spec
      from requests r left join charged_resizes c on c.server_uuid = r.server_uuid
      where r.project_id = $1 and not r.gone or r.server_uuid = $2 order by r.server_uuid for no key update of r`,
    values: [project, next],
  });
  const missing = rows.filter(({ classes, gone }) => classes === null && !gone);
  await queryRows(client, {
    name: "count_classes_of_servers",
    text: `update requests r set classes = w.classes::jsonb from unnest($1::uuid[], $2::text[]) as w (uuid, classes) where r.server_uuid = w.uuid`,
    values: [
      textArrayLiteral(missing.map((row) => row.server_uuid)),
      textArrayLiteral(missing.map((row) => jsonOfClasses(classesWithCharge(row)))),
    ],
  });
  // Before the sums are made: what a note says is in them then, and a note that is written meanwhile stays.
  const notes = await queryRows<{ server_uuid: string | null }>(client, {
    name: "take_class_recounts",
    text: "delete from class_recounts where project_id = $1 returning server_uuid",
    values: [project],
  });
  const resized = new Set(missing.filter(({ state }) => state === "dispatched").map((row) => row.server_uuid));
  for (const { server_uuid: uuid } of notes) if (uuid !== null) resized.add(uuid);
  await noteForSettling(client, [...resized]);
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
