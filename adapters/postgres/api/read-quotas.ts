import type { Pool, PoolClient } from "pg";
import { assert } from "../../../core/assert.ts";
import { ProjectQuota } from "../../../core/stores/api/project-quota.ts";
import {
  type ClassAmounts,
  NO_SERVERS,
  NO_SET_LIMITS,
  NO_USAGE,
  onlyLimits,
  type QuotaLimits,
  type QuotaResource,
  type ServerAmounts,
  type ServerUsage,
  type SetLimits,
  type StatedLimits,
  sumOf,
} from "../../../core/stores/api/quota-limits.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryRows } from "../client/store-query.ts";
import { countedClasses } from "./class-amounts.ts";

interface LimitRow {
  readonly project_id: string | null;
  readonly user_id: string;
  readonly resource: QuotaResource;
  readonly hard_limit: number;
}

interface UsageRow extends Omit<ServerAmounts, "classes"> {
  readonly project_id: string;
  readonly user_id: string;
}

/** From here to the end of the transaction no other transaction decides about the quotas of these projects. Locks in the order of the keys. */
export async function lockQuotas(client: PoolClient, projects: readonly string[]): Promise<void> {
  await queryRows(client, {
    name: "lock_quotas",
    text: `select pg_advisory_xact_lock(k.key) from (
        select distinct hashtextextended('quotas of ' || p.project, 0) as key from unnest($1::text[]) as p (project) order by 1
      ) k`,
    values: [textArrayLiteral(projects)],
  });
}

/** The limits that operators set, by project. Every asked project is in the answer. */
export async function readSetLimits(
  client: Pool | PoolClient,
  projects: readonly string[],
): Promise<ReadonlyMap<string, SetLimits>> {
  const rows = await queryRows<LimitRow>(client, {
    name: "set_limits",
    text: `select project_id, user_id, resource, hard_limit from quotas where project_id = any ($1)
      union all select null, '', resource, hard_limit from quota_classes where class = 'default'`,
    values: [textArrayLiteral(projects)],
  });
  const byDefault = limitsOfRows(rows.filter((row) => row.project_id === null));
  return new Map(
    projects.map((project) => {
      const own = Map.groupBy(
        rows.filter((row) => row.project_id === project),
        (row) => row.user_id,
      );
      const ofProject = limitsOfRows(own.get("") ?? []);
      own.delete("");
      return [
        project,
        { byDefault, ofProject, ofUsers: new Map([...own].map(([user, ofUser]) => [user, limitsOfRows(ofUser)])) },
      ];
    }),
  );
}

/** The limits that another service states, if it does, or those that operators set. Every asked project is in the answer. */
export async function limitsOfProjects(
  client: PoolClient,
  projects: readonly string[],
  stated: ReadonlyMap<string, StatedLimits> | undefined,
): Promise<ReadonlyMap<string, SetLimits>> {
  if (stated === undefined) return readSetLimits(client, projects);
  return new Map(
    projects.map((project) => {
      const limits = stated.get(project);
      assert(limits !== undefined, `no limits are stated for project ${project}`);
      return [project, onlyLimits(limits)];
    }),
  );
}

/**
 * One project's limits with its use, under the lock of its quotas. `stated` are limits that another service states. It may lock servers of the project, so the caller
 * has locked none, and names the one that it locks next if that is deleted softly.
 */
export async function readQuota(
  client: PoolClient,
  project: string,
  {
    defaults,
    stated,
    next = null,
  }: { readonly defaults: QuotaLimits; readonly stated: StatedLimits | undefined; readonly next?: string | null },
): Promise<ProjectQuota> {
  const given = stated && new Map([[project, stated]]);
  const limits = (await limitsOfProjects(client, [project], given)).get(project) ?? NO_SET_LIMITS;
  const used = await judgedUsages(client, [project], given, next);
  return new ProjectQuota(limits, defaults, used.get(project) ?? NO_USAGE);
}

/** The use with which calls are judged under the lock of these projects' quotas: with resource classes where another service states limits. */
export async function judgedUsages(
  client: PoolClient,
  projects: readonly string[],
  stated: ReadonlyMap<string, StatedLimits> | undefined,
  next: string | null = null,
): Promise<ReadonlyMap<string, ServerUsage>> {
  // The projects are counted first where they have to be, which changes no other sum.
  const classes = stated === undefined ? null : await countedClasses(client, projects, next);
  const usages = await readUsages(client, projects);
  return classes === null
    ? usages
    : new Map([...usages].map(([project, usage]) => [project, withClasses(usage, classes.get(project))]));
}

/** Adds the amounts by class to the use of the whole project. */
export function withClasses(usage: ServerUsage, classes: ClassAmounts = new Map()): ServerUsage {
  return { ...usage, ofProject: { ...usage.ofProject, classes } };
}

/** The sums of the amounts of the projects' living servers. Projects without servers may be left out. Cost: a few rows a user and project. */
export async function readUsages(
  client: Pool | PoolClient,
  projects: readonly string[],
): Promise<ReadonlyMap<string, ServerUsage>> {
  const rows = await queryRows<UsageRow>(client, {
    name: "quota_usages",
    text: `select project_id, user_id, sum(instances)::int as instances, sum(cores)::int as cores, sum(ram_mib)::float8 as ram
      from quota_usages where project_id = any ($1) group by 1, 2`,
    values: [textArrayLiteral(projects)],
  });
  const byProject = Map.groupBy(rows, (row) => row.project_id);
  return new Map(
    [...byProject].map(([project, ofUsers]) => [
      project,
      {
        ofProject: ofUsers.reduce((sum: ServerAmounts, row) => sumOf(sum, row), NO_SERVERS),
        ofUsers: new Map(ofUsers.map(({ user_id, instances, cores, ram }) => [user_id, { cores, instances, ram }])),
      },
    ]),
  );
}

/** Returns the limits of rows that are all of one scope. */
export function limitsOfRows(rows: readonly Pick<LimitRow, "resource" | "hard_limit">[]): Partial<QuotaLimits> {
  return Object.fromEntries(rows.map((row) => [row.resource, row.hard_limit]));
}
