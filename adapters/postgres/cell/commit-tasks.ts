import type { Pool, PoolClient } from "pg";
import { assert } from "../../../core/assert.ts";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { ActiveOutcome, CommitOutcome, Hop, HopOutcome } from "../../../core/stores/cell/cell-store.ts";
import { describeGroupConflict, groupsEntangle, isHardGroup } from "../../../core/tasks/group-rule.ts";
import { keepChange, leftoverUuid } from "../../../core/tasks/move-change.ts";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import type { Tenure } from "../../../core/tasks/tenure.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored, type StoreQuery } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { decodeOutcome, encodeChanges } from "../ledger/encode-changes.ts";
import { type GroupedClaim, joinGroups, withheld } from "./join-groups.ts";
import { readOthersInQuarantine } from "./others-in-quarantine.ts";
import { releaseMigrations } from "./read-migrations.ts";

const FENCED = { kind: "fenced" } as const;
const COMMITTED = { kind: "committed" } as const;
const taskOf = (tenure: Tenure): string => tenure.taskId;

/** Cost: one round trip, and one more where a commit was not written. */
export function commitActive(
  pool: Pool,
  commits: readonly (Tenure & { readonly selection: number })[],
): Promise<readonly ActiveOutcome[]> {
  return inRounds(commits, taskOf, async (round) => {
    const outcomes = await commitPositions(pool, round.length, {
      name: "cell_become_active",
      text: "select cell_become_active($1, $2, $3, $4, $5, $6) as at",
      values: [
        ...tenureArrays(round),
        arrayLiteral(round.map((commit) => commit.selection)),
        textArrayLiteral(round.map((commit) => attemptIdOf(commit.taskId, commit.selection))),
        conductorOf(round),
      ],
    });
    return quarantinedAmong(pool, round, outcomes);
  });
}

/**
 * Tells the commits that were not written because of a guest in quarantine from those that are fenced. If a commit is both, the ERROR that
 * follows is fenced, too.
 */
async function quarantinedAmong(
  pool: Pool,
  commits: readonly (Tenure & { readonly selection: number })[],
  outcomes: readonly CommitOutcome[],
): Promise<readonly ActiveOutcome[]> {
  if (outcomes.every(({ kind }) => kind === "committed")) return outcomes;
  const attempts = commits.map(({ taskId, serverUuid, selection }) => ({
    serverUuid,
    attemptId: attemptIdOf(taskId, selection),
  }));
  const isBeside = await readOthersInQuarantine(pool, attempts);
  return outcomes.map((outcome, at) => (outcome.kind === "fenced" && isBeside[at] ? { kind: "quarantined" } : outcome));
}

/** Cost: one round trip. */
export function commitError(
  pool: Pool,
  errors: readonly (Tenure & {
    readonly selection: number;
    readonly attemptReason: string;
    readonly reason: string;
  })[],
): Promise<readonly CommitOutcome[]> {
  return inRounds(errors, taskOf, (round) =>
    commitPositions(pool, round.length, {
      name: "cell_commit_error",
      text: "select cell_commit_error($1, $2, $3, $4, $5, $6) as at",
      values: [
        ...tenureArrays(round),
        arrayLiteral(round.map((error) => error.selection)),
        textArrayLiteral(round.map((error) => error.attemptReason)),
        textArrayLiteral(round.map((error) => error.reason)),
      ],
    }),
  );
}

/** Cost: one round trip, but five for servers that are being moved, and seven where a guest may be left. */
export function commitDeleted(pool: Pool, deletes: readonly Tenure[]): Promise<readonly CommitOutcome[]> {
  return inRounds(deletes, taskOf, (round) => {
    const query = {
      name: "cell_commit_deleted",
      text: "select cell_commit_deleted($1, $2, $3) as at",
      values: tenureArrays(round),
    };
    return round.some(({ migrations = [], left = [] }) => migrations.length > 0 || left.length > 0)
      ? commitDeletedMoving(pool, round, query)
      : commitPositions(pool, round.length, query);
  });
}

/** Also releases the allocations of the deleted servers' migrations, except on hosts where a guest may be left. */
function commitDeletedMoving(
  pool: Pool,
  deletes: readonly Tenure[],
  query: StoreQuery,
): Promise<readonly CommitOutcome[]> {
  return runStored("cell_commit_deleted", () =>
    inTransaction(pool, async (client) => {
      await lockServers(client, deletes);
      for (const tenure of deletes) await keepLeft(client, tenure);
      const outcomes = outcomesAt(await queryRows<{ at: number }>(client, query), deletes.length);
      const committed = deletes.filter((_, at) => outcomes[at] === COMMITTED);
      const rows = await queryRows<{ uuid: string; holds_source: boolean }>(client, {
        name: "end_migrations_of_deleted",
        text: `update migrations m set ended = true, status = 'error', note = '', updated_at = now(),
            holds_source = coalesce(m.source_host = any (string_to_array(w.hosts, E'\\n')), false)
          from unnest($1::uuid[], $2::text[]) as w (uuid, hosts)
          where m.uuid = w.uuid and not m.ended returning m.uuid, m.holds_source`,
        values: [
          textArrayLiteral(committed.flatMap(({ migrations = [] }) => migrations)),
          textArrayLiteral(
            committed.flatMap(({ migrations = [], left = [] }) => migrations.map(() => left.join("\n"))),
          ),
        ],
      });
      await releaseMigrations(client, rows.flatMap((row) => (row.holds_source ? [] : row.uuid)).sort());
      return outcomes;
    }),
  );
}

/** Locks the servers in the order of their UUIDs, before anything else is locked. */
async function lockServers(client: PoolClient, tenures: readonly Tenure[]): Promise<void> {
  await queryRows(client, {
    name: "lock_servers",
    text: "select from servers where uuid = any ($1) order by uuid for no key update",
    values: [textArrayLiteral(tenures.map((tenure) => tenure.serverUuid))],
  });
}

/**
 * Transfers the server's allocation to a leftover if it is on a host where its guest may be left. That host is the destination of the
 * server's open move, or else its home. Locks the server and its task first, as the following commit does. Does nothing for a task that has
 * another owner or has ended.
 */
async function keepLeft(client: PoolClient, { taskId, serverUuid, epoch, left = [] }: Tenure): Promise<void> {
  if (left.length === 0) return;
  const [found] = await queryRows<{ host: string; spec: Buffer }>(client, {
    name: "left_of_deleted",
    text: `select coalesce(m.dest_host, s.host) as host, s.spec
      from servers s join tasks t on t.server_uuid = s.uuid
      left join migrations m on m.server_uuid = s.uuid and not m.ended
      where s.uuid = $1 and t.id = $2 and t.epoch = $3 and t.ended_at is null
      for no key update of t`,
    values: [serverUuid, taskId, epoch],
  });
  if (found === undefined || !left.includes(found.host)) return;
  const spec = ServerSpec.decode(found.spec);
  const change = keepChange(spec, taskId);
  const [row] = await queryRows<{ kind: string }>(client, {
    name: "keep_left",
    text: "select kind from ledger_apply($1::ledger_batch)",
    values: [encodeChanges([change])],
  });
  // A server without an allocation leaves nothing to hold, unless its guest may still have volumes.
  if (row?.kind !== "committed" && spec.volumes.length === 0) return;
  await queryRows(client, {
    name: "leave_behind",
    text: "select cell_leave_behind($1, $2, $3)",
    values: [leftoverUuid(taskId), serverUuid, found.host],
  });
}

/** Runs a function that returns the positions of the committed steps. The other positions are fenced. */
async function commitPositions(pool: Pool, count: number, query: StoreQuery): Promise<readonly CommitOutcome[]> {
  return outcomesAt(await queryStored<{ at: number }>(pool, query), count);
}

function outcomesAt(rows: readonly { readonly at: number }[], count: number): readonly CommitOutcome[] {
  const outcomes = new Array<CommitOutcome>(count).fill(FENCED);
  for (const { at } of rows) outcomes[at - 1] = COMMITTED;
  return outcomes;
}

interface HopRow {
  readonly at: number;
  readonly outcome: AllocationOutcome["kind"];
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/**
 * Cost: one round trip. If a hop is fenced, an alternate refused, a host was never called, or a server is of a group whose rule its claims must keep, it is a
 * transaction of three to five.
 */
export function hopTasks(pool: Pool, hops: readonly Hop[]): Promise<readonly HopOutcome[]> {
  return inRounds(
    hops,
    taskOf,
    async (round) => {
      if (round.every(isPlain) && (await hopTogether(pool, round))) return round.map(() => COMMITTED);
      return runStored("cell_hop", () => inTransaction(pool, (client) => hopRound(client, round)));
    },
    (hop, round) => round.some((other) => groupsEntangle(groupedOf(other), groupedOf(hop))),
  );
}

/** Whether the hop needs no other statement than the one that writes it. */
const isPlain = ({ group, result }: Hop): boolean => result !== "skipped" && !isHardGroup(group);

/** Writes all of the hops, or none. */
async function hopTogether(pool: Pool, hops: readonly Hop[]): Promise<boolean> {
  const [row] = await queryStored<{ hopped: boolean }>(pool, {
    name: "cell_hop_together",
    text: "select cell_hop_together($1, $2, $3, $4, $5, $6, $7, $8, $9) as hopped",
    values: hopValues(hops),
  });
  return row?.hopped === true;
}

function hopValues(hops: readonly Hop[]): readonly string[] {
  return [
    ...tenureArrays(hops),
    arrayLiteral(hops.map((hop) => hop.from)),
    textArrayLiteral(hops.map((hop) => hop.reason)),
    arrayLiteral(hops.map((hop) => hop.to)),
    textArrayLiteral(hops.map((hop) => hop.toHost)),
    textArrayLiteral(hops.map((hop) => attemptIdOf(hop.taskId, hop.to))),
    encodeChanges(hops.map((hop) => hop.change)),
  ];
}

const groupedOf = ({ serverUuid, group, toHost }: Hop): GroupedClaim => ({ serverUuid, group, host: toHost });

/** An alternate that the group's rule refuses is skipped like one without room. */
async function hopRound(client: PoolClient, asked: readonly Hop[]): Promise<readonly HopOutcome[]> {
  const conflicts = await joinGroups(client, asked.map(groupedOf));
  const hops = asked.map((hop, at) => (conflicts.has(at) ? { ...hop, change: withheld(hop.change) } : hop));
  const rows = await queryRows<HopRow>(client, {
    name: "cell_hop",
    text: "select at, outcome, detail from cell_hop($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    values: hopValues(hops),
  });
  const outcomes = new Array<HopOutcome>(hops.length).fill(FENCED);
  const skipped: { readonly hop: Hop; readonly why: string }[] = [];
  for (const row of rows) {
    const hop = hops[row.at - 1];
    assert(hop !== undefined, `an answer for hop ${row.at} of ${hops.length}`);
    const conflict = conflicts.get(row.at - 1);
    const why = conflict ? describeGroupConflict(conflict) : refusalOf(row, hop.change);
    if (why !== null) skipped.push({ hop, why });
    outcomes[row.at - 1] = why === null ? COMMITTED : { kind: "skipped", why };
  }
  if (skipped.length > 0) await noteSkipped(client, skipped);
  const uncalled = rows.flatMap(({ at }) => hops[at - 1] ?? []).filter(({ result }) => result === "skipped");
  if (uncalled.length > 0) await noteUncalled(client, uncalled);
  return outcomes;
}

function refusalOf({ outcome: kind, detail }: HopRow, change: AllocationChange): string | null {
  if (kind === "committed") return null;
  const outcome = decodeOutcome(change, { kind, generations: null, detail });
  return outcome.kind === "committed" ? null : describeAllocationRefusal(outcome);
}

async function noteSkipped(
  client: PoolClient,
  skipped: readonly { readonly hop: Hop; readonly why: string }[],
): Promise<void> {
  await queryRows(client, {
    name: "note_skipped",
    text: `update attempts a set reason = w.why
      from unnest($1::uuid[], $2::int[], $3::text[]) as w (task_id, selection, why)
      where a.task_id = w.task_id and a.selection = w.selection`,
    values: [
      textArrayLiteral(skipped.map(({ hop }) => hop.taskId)),
      arrayLiteral(skipped.map(({ hop }) => hop.to)),
      textArrayLiteral(skipped.map(({ why }) => why)),
    ],
  });
}

/** Marks attempts whose hosts were never called as skipped, where `cell_hop` has marked them as failed in this transaction. Earlier marks stay. */
async function noteUncalled(client: PoolClient, uncalled: readonly Hop[]): Promise<void> {
  await queryRows(client, {
    name: "note_uncalled",
    text: `update attempts a set result = 'skipped'
      from unnest($1::uuid[], $2::int[]) as w (task_id, selection)
      where a.task_id = w.task_id and a.selection = w.selection and a.result = 'failed' and a.ended_at = now()`,
    values: [textArrayLiteral(uncalled.map(({ taskId }) => taskId)), arrayLiteral(uncalled.map(({ from }) => from))],
  });
}

/** The conductor that has begun some of these tasks without taking them. All are its own, since it writes them. */
const conductorOf = (tenures: readonly Tenure[]): string | null =>
  tenures.find(({ untakenBy }) => untakenBy !== undefined)?.untakenBy ?? null;

/** The first three parameters of every function that writes for tasks. */
function tenureArrays(tenures: readonly Tenure[]): readonly string[] {
  return [
    textArrayLiteral(tenures.map((tenure) => tenure.taskId)),
    textArrayLiteral(tenures.map((tenure) => tenure.serverUuid)),
    arrayLiteral(tenures.map((tenure) => tenure.epoch)),
  ];
}
