import type { Pool, PoolClient } from "pg";
import type { AcceptLimits, AcceptOutcome } from "../../../core/stores/api/api-store.ts";
import { countedAmounts } from "../../../core/stores/api/counted-amounts.ts";
import { ProjectQuota } from "../../../core/stores/api/project-quota.ts";
import {
  amountsOf,
  NO_SERVERS,
  NO_SET_LIMITS,
  NO_USAGE,
  type QuotaExcess,
  type QuotaLimits,
  SERVER_RESOURCES,
  type ServerAmounts,
  type ServerUsage,
  type SetLimits,
  sumOf,
} from "../../../core/stores/api/quota-limits.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, type StoreQuery } from "../client/store-query.ts";
import { inTransaction, retryConflicts } from "../client/transaction.ts";
import { jsonOfClasses } from "./class-amounts.ts";
import { countClasses, countUsage } from "./count-usage.ts";
import { judgedUsages, limitsOfProjects, lockQuotas } from "./read-quotas.ts";

// Lock order: the quotas of the projects, then the keys of their open requests, then as in write-requests.ts.

type Calls = readonly (readonly ServerSpec[])[];

interface AnswerRow {
  readonly refused_call: number | null;
  readonly open_already: number | null;
}

/** Whether the statement looks at open requests, for projects with quotas, and at requests that are known already. */
interface InsertOptions {
  readonly openMax: number | null;
  /** Inserts nothing when a project of the batch has a quota of its own; such calls have to be judged under a lock. */
  readonly unlessQuotas: boolean;
  readonly again: boolean;
  /** The amounts with which servers are counted by resource class; null or absent where that is not done. */
  readonly classes?: AmountsOf | null;
}

type AmountsOf = (spec: ServerSpec) => ServerAmounts;
const ofFlavor: AmountsOf = (spec) => amountsOf(spec.flavor);

/** Returns the amounts of these servers with their resource classes, each translated once. */
function countedAmountsOf(specs: readonly ServerSpec[]): AmountsOf {
  const known = new Map(specs.map((spec) => [spec, countedAmounts(spec)]));
  return (spec) => known.get(spec) ?? countedAmounts(spec);
}

/** Cost: one round trip, one row a request and one a user. */
export async function acceptRequests(pool: Pool, specs: readonly ServerSpec[]): Promise<void> {
  if (specs.length === 0) return;
  await insertTwiceAtMost("accept_requests", (again) =>
    retryConflicts(() => queryRows(pool, insertion([specs], { openMax: null, unlessQuotas: false, again }))),
  );
}

/**
 * Cost if no project has a quota: one round trip, as without quotas. Otherwise a transaction of four statements, in which calls of one
 * project wait for each other's commits; with `openMax` also a look at each open request of the projects.
 */
export async function acceptWithinLimits(
  pool: Pool,
  calls: Calls,
  { openMax, quotas, stated }: AcceptLimits,
): Promise<readonly AcceptOutcome[]> {
  if (calls.flat().length === 0) return calls.map(() => ({ kind: "accepted" }));
  if (quotas === null || (stated === undefined && SERVER_RESOURCES.every((resource) => quotas[resource] < 0))) {
    const options = { openMax, unlessQuotas: quotas !== null };
    const { rows, closed } = await insertTwiceAtMost("accept_requests", (again) =>
      again ? insertAgain(pool, calls, options) : insertFirst(pool, calls, options),
    );
    const isJudged = rows.every((row) => row.refused_call !== null);
    if (quotas === null || isJudged) return outcomesOf(calls, rows, { closed, excesses: new Map() });
  }
  return insertTwiceAtMost("accept_in_quota", (again) =>
    inTransaction(pool, (client) => acceptInQuota(client, calls, { openMax, quotas, stated, again }), [CLOSED]),
  );
}

interface Inserted {
  readonly rows: readonly AnswerRow[];
  /** The calls of which a UUID was closed. */
  readonly closed: ReadonlySet<number>;
}

async function insertFirst(pool: Pool, calls: Calls, options: Omit<InsertOptions, "again">): Promise<Inserted> {
  const query = insertion(calls, { ...options, again: false });
  return { rows: await retryConflicts(() => queryRows<AnswerRow>(pool, query)), closed: new Set() };
}

/** Inserts calls of which some servers have requests already: those that were accepted before stay, and those of which a UUID was closed are left out. */
function insertAgain(pool: Pool, calls: Calls, options: Omit<InsertOptions, "again">): Promise<Inserted> {
  return inTransaction(
    pool,
    async (client) => {
      const closed = closedCalls(calls, await knownServers(client, calls.flat()));
      return { rows: await insertOpen(client, without(calls, closed), { ...options, again: true }), closed };
    },
    [CLOSED],
  );
}

/** The code of an attempt during which a UUID was closed. The next attempt sees that it is. */
const CLOSED = "closed meanwhile";

/** Inserts calls of which no UUID is closed. Throws `CLOSED` if one has been closed meanwhile, since the statement passes over it in silence. */
async function insertOpen(client: PoolClient, calls: Calls, options: InsertOptions): Promise<readonly AnswerRow[]> {
  const specs = calls.flat();
  if (specs.length === 0) return [];
  const rows = await queryRows<AnswerRow>(client, insertion(calls, options));
  if (options.again && closedCalls(calls, await knownServers(client, specs)).size > 0)
    throw Object.assign(new Error("the UUID of a server was closed while its request was being accepted"), {
      code: CLOSED,
    });
  return rows;
}

const without = (calls: Calls, some: ReadonlySet<number>): Calls =>
  calls.map((specs, index) => (some.has(index) ? [] : specs));

/** The calls that have a server whose UUID has a request of another project, by their numbers. */
function closedCalls(calls: Calls, known: ReadonlyMap<string, string>): ReadonlySet<number> {
  const isClosed = ({ uuid, projectId }: ServerSpec) => (known.get(uuid) ?? projectId) !== projectId;
  return new Set(calls.flatMap((specs, index) => (specs.some(isClosed) ? index : [])));
}

/** Judges the calls under the lock of their projects' quotas, and inserts those that are within. */
async function acceptInQuota(
  client: PoolClient,
  calls: Calls,
  options: {
    readonly openMax: number | null;
    readonly quotas: QuotaLimits;
    readonly stated: AcceptLimits["stated"];
    readonly again: boolean;
  },
): Promise<readonly AcceptOutcome[]> {
  const projects = [...new Set(calls.flat().map((spec) => spec.projectId))];
  await lockQuotas(client, projects);
  const limits = await limitsOfProjects(client, projects, options.stated);
  const used = await judgedUsages(client, projects, options.stated);
  const amounts = options.stated === undefined ? ofFlavor : countedAmountsOf(calls.flat());
  const judge = (open: Calls, known: ReadonlyMap<string, string>) =>
    overQuota(open, { limits, used, known, amounts }, options.quotas);
  let excesses = judge(calls, new Map());
  // A call that was accepted before, and whose answer was lost, is counted already.
  const known = options.again || excesses.size > 0 ? await knownServers(client, calls.flat()) : new Map();
  const closed = closedCalls(calls, known);
  const open = without(calls, closed);
  if (known.size > 0) excesses = judge(open, known);
  const classes = options.stated === undefined ? null : amounts;
  const insert = { openMax: options.openMax, unlessQuotas: false, again: known.size > 0, classes };
  const rows = await insertOpen(client, without(open, new Set(excesses.keys())), insert);
  return outcomesOf(calls, rows, { closed, excesses });
}

/** Returns the calls that exceed a quota, by their numbers. Calls of known servers are admitted and not counted. */
function overQuota(
  calls: Calls,
  of: {
    readonly limits: ReadonlyMap<string, SetLimits>;
    readonly used: ReadonlyMap<string, ServerUsage>;
    readonly known: ReadonlyMap<string, string>;
    readonly amounts: AmountsOf;
  },
  defaults: QuotaLimits,
): ReadonlyMap<number, QuotaExcess> {
  const standing = new Map<string, ProjectQuota>();
  const refused = new Map<number, QuotaExcess>();
  for (const [index, specs] of calls.entries()) {
    const [first] = specs;
    if (first === undefined || of.known.has(first.uuid)) continue;
    const { projectId } = first;
    const usage = of.used.get(projectId) ?? NO_USAGE;
    const quota =
      standing.get(projectId) ?? new ProjectQuota(of.limits.get(projectId) ?? NO_SET_LIMITS, defaults, usage);
    standing.set(projectId, quota);
    const asked = specs.reduce((sum, spec) => sumOf(sum, of.amounts(spec)), NO_SERVERS);
    const excess = quota.admit(first.userId, asked, of.amounts(first));
    if (excess !== null) refused.set(index, excess);
  }
  return refused;
}

/** The servers that have a request, and its project. */
async function knownServers(client: PoolClient, specs: readonly ServerSpec[]): Promise<ReadonlyMap<string, string>> {
  const rows = await queryRows<{ uuid: string; project_id: string }>(client, {
    name: "known_servers",
    text: "select server_uuid::text as uuid, project_id from requests where server_uuid = any ($1)",
    values: [textArrayLiteral(specs.map(({ uuid }) => uuid))],
  });
  return new Map(rows.map((row) => [row.uuid, row.project_id]));
}

function outcomesOf(
  calls: Calls,
  rows: readonly AnswerRow[],
  refused: { readonly closed: ReadonlySet<number>; readonly excesses: ReadonlyMap<number, QuotaExcess> },
): readonly AcceptOutcome[] {
  const overLimit = new Map(rows.map((row) => [row.refused_call, row.open_already ?? 0]));
  return calls.map((_, index) => {
    if (refused.closed.has(index)) return { kind: "closed" };
    const excess = refused.excesses.get(index);
    if (excess !== undefined) return { kind: "over-quota", excess };
    const open = overLimit.get(index);
    return open === undefined ? { kind: "accepted" } : { kind: "over-limit", open };
  });
}

/**
 * The statement that inserts the requests of the calls and counts them. It returns the calls beyond `openMax`, or a row of nulls when it
 * inserted nothing because of quotas. `on conflict` costs a look-up and a log record for each row, and is needed only when an answer was
 * lost. So only the second try uses it.
 */
function insertion(calls: Calls, { openMax, unlessQuotas, again, classes = null }: InsertOptions): StoreQuery {
  const specs = calls.flat();
  const values = [...acceptedValues(specs)];
  const isLimited = openMax !== null;
  // The columns of requests that most batches do not have, each as a parameter, its type and its name.
  const more: (readonly [string, string, string])[] = [];
  if (isLimited) {
    const numbers = calls.flatMap((call, index) => call.map(() => index));
    more.push([`$${values.push(arrayLiteral(numbers))}`, "int[]", "call"]);
  }
  const limit = isLimited ? `$${values.push(openMax)}` : "";
  const isTagged = specs.some(({ tags }) => tags.length > 0);
  if (isTagged) more.push([`$${values.push(tagsOf(specs))}`, "text[]", "changes"]);
  const isCounted = classes !== null;
  if (isCounted) more.push([`$${values.push(classesOf(specs, classes))}`, "text[]", "classes"]);
  const text = `with refused as materialized (
      ${isLimited ? `select refused_call, open_already from calls_beyond_limit($4::uuid[], $5::text[], ${more[0]?.[0]}::int[], ${limit}::int)` : NOTHING_REFUSED}
    ), has_quotas as materialized (
      select ${unlessQuotas ? "has_server_quotas($5::text[])" : "false"} as found
    ), added as (
      insert into requests (server_uuid, state, spec, project_id, user_id, name, created_at, cores, ram_mib${isTagged ? ", changes" : ""}${isCounted ? ", classes" : ""})
      select w.uuid, 'accepted', substring($1::bytea from w.start for w.length), w.project_id, w.user_id, w.name,
        to_timestamp(w.created_at_ms / 1000), w.cores, w.ram_mib${isTagged ? ", w.changes::jsonb" : ""}${isCounted ? ", w.classes::jsonb" : ""}
      from unnest(${[...COLUMNS, ...more].map(([value, type]) => `${value}::${type}`).join(", ")})
        as w (${[...COLUMNS, ...more].map(([, , column]) => column).join(", ")})
      where not (select found from has_quotas)
        ${isLimited ? "and not exists (select from refused where refused_call = w.call)" : ""}
      order by w.uuid ${again ? "on conflict do nothing" : ""}
      returning project_id, user_id, cores, ram_mib${isCounted ? ", classes" : ""}
    ), ${countUsage("counted", "added", 1)}${isCounted ? `, ${countClasses("classes_counted", "added", 1)}` : ""}
    select refused_call, open_already from refused where not (select found from has_quotas)
    union all select null, null where (select found from has_quotas)`;
  const name = [
    "accept",
    isTagged && "tagged",
    isCounted && "counted",
    isLimited && "in_limit",
    unlessQuotas && "unless_quotas",
    again && "again",
  ];
  return { name: name.filter((part) => part !== false).join("_"), text, values };
}

const NOTHING_REFUSED = "select null::int as refused_call, null::int as open_already where false";

/** The parameters of `acceptedValues` after the first, with their types and names. */
const COLUMNS: readonly (readonly [string, string, string])[] = [
  ["$2", "int[]", "start"],
  ["$3", "int[]", "length"],
  ["$4", "uuid[]", "uuid"],
  ["$5", "text[]", "project_id"],
  ["$6", "text[]", "user_id"],
  ["$7", "text[]", "name"],
  ["$8", "float8[]", "created_at_ms"],
  ["$9", "int[]", "cores"],
  ["$10", "int[]", "ram_mib"],
];

function acceptedValues(specs: readonly ServerSpec[]): readonly unknown[] {
  const packed = packBytes(specs.map((spec) => encodeOnce(ServerSpec, spec)));
  const amounts = specs.map((spec) => amountsOf(spec.flavor));
  return [
    packed.bytes,
    arrayLiteral(packed.starts),
    arrayLiteral(packed.lengths),
    textArrayLiteral(specs.map((spec) => spec.uuid)),
    textArrayLiteral(specs.map((spec) => spec.projectId)),
    textArrayLiteral(specs.map((spec) => spec.userId)),
    textArrayLiteral(specs.map((spec) => spec.name)),
    arrayLiteral(specs.map((spec) => spec.createdAtMs)),
    arrayLiteral(amounts.map(({ cores }) => cores)),
    arrayLiteral(amounts.map(({ ram }) => ram)),
  ];
}

/** The tags of the servers, null for a server without any. */
function tagsOf(specs: readonly ServerSpec[]): string {
  return textArrayLiteral(specs.map(({ tags }) => (tags.length === 0 ? null : JSON.stringify({ tags }))));
}

const classesOf = (specs: readonly ServerSpec[], amounts: AmountsOf): string =>
  textArrayLiteral(specs.map((spec) => jsonOfClasses(amounts(spec).classes ?? new Map())));

/** Runs the second way when some of the requests are known already, because an earlier answer was lost. */
function insertTwiceAtMost<Result>(name: string, insert: (again: boolean) => Promise<Result>): Promise<Result> {
  return runStored(name, async () => {
    try {
      return await insert(false);
    } catch (error) {
      if (!isKnownAlready(error)) throw error;
      return insert(true);
    }
  });
}

/** Whether some of the requests exist already: the error has the SQLSTATE of unique_violation. */
function isKnownAlready(error: unknown): boolean {
  const cause = error instanceof StoreError ? error.cause : error;
  return (cause as { readonly code?: unknown } | null)?.code === "23505";
}
