import type { CellStore, Hop, TakenTask } from "../../core/stores/cell/cell-store.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  numbered,
  providerOf,
  serverId,
  swapTo,
  taskId,
} from "../contract/cell-fixtures.ts";
import fc from "./property.ts";

export const SERVERS = Array.from({ length: 12 }, (_, server) => server);
export const HOSTS = [0, 1, 2];
const CONDUCTORS = [0, 1];
const FAR_MS = 3_600_000;

/** A generated call of a cell's store. Tasks and claims are numbered in the order in which they were created. */
export type CellCall =
  | {
      readonly kind: "dispatch";
      readonly builds: readonly { readonly server: number; readonly hosts: number[]; readonly vcpus: number }[];
    }
  | { readonly kind: "close"; readonly servers: readonly number[] }
  | { readonly kind: "request-delete"; readonly servers: readonly number[] }
  | { readonly kind: "take"; readonly conductor: number; readonly tasks: readonly number[] }
  | { readonly kind: "sweep"; readonly conductor: number; readonly atOnce: boolean; readonly limit: number }
  | { readonly kind: "lease"; readonly conductor: number; readonly lease: "far" | "over" | "given-up" }
  | {
      readonly kind: "active" | "error" | "deleted" | "hand-over";
      readonly claims: readonly { readonly claim: number; readonly selection: number }[];
    }
  | {
      readonly kind: "hop";
      readonly hops: readonly {
        readonly claim: number;
        readonly from: number;
        readonly to: number;
        readonly vcpus: number;
        readonly result: "failed" | "skipped";
      }[];
    }
  | { readonly kind: "hosts-up"; readonly agent: number; readonly hosts: readonly number[] }
  | { readonly kind: "agents"; readonly expire: boolean };

/** The results of the calls so far: the number of named tasks, and all claims that conductors got when they took tasks, including old ones. */
export interface Drawn {
  tasks: number;
  readonly claims: Tenure[];
}

const server = fc.constantFrom(...SERVERS);
const host = fc.constantFrom(...HOSTS);
const conductor = fc.constantFrom(...CONDUCTORS);
const some = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value[]> =>
  fc.array(value, { minLength: 1, maxLength: 4 });
const vcpus = fc.integer({ min: 1, max: 4 });
const result = fc.constantFrom("failed" as const, "skipped" as const);
// Counted from the newest, so that the claim is usually still valid.
const back = fc.oneof({ weight: 2, arbitrary: fc.nat({ max: 2 }) }, { weight: 1, arbitrary: fc.nat({ max: 8 }) });
const selection = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat({ max: 2 }) });

const anyCall: fc.Arbitrary<CellCall> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("dispatch" as const),
      builds: some(fc.record({ server, hosts: some(host), vcpus })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close" as const), servers: some(server) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("request-delete" as const), servers: some(server) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("take" as const), conductor, tasks: some(back) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("sweep" as const),
      conductor,
      atOnce: fc.boolean(),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("lease" as const),
      conductor,
      lease: fc.constantFrom("far" as const, "over" as const, "given-up" as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("active" as const, "error" as const, "deleted" as const, "hand-over" as const),
      claims: some(fc.record({ claim: back, selection })),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("hop" as const),
      hops: some(fc.record({ claim: back, from: selection, to: selection, vcpus, result })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("hosts-up" as const), agent: fc.nat({ max: 1 }), hosts: fc.array(host) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("agents" as const), expire: fc.boolean() }) },
);

export const cellCalls = fc.array(anyCall, { maxLength: 60, size: "max" });

/** The call as a function that can be run on any number of stores. Claims of the tasks that the first run took are added to `drawn`. */
export function perform(call: CellCall, drawn: Drawn): (store: CellStore) => Promise<unknown> {
  const firstTask = drawn.tasks;
  switch (call.kind) {
    case "dispatch": {
      const dispatches = call.builds.map((build, at) =>
        dispatchOf({ ...build, task: firstTask + at, spec: { group: groupOf(build.server) } }),
      );
      drawn.tasks += dispatches.length;
      return (store) => store.dispatch(dispatches);
    }
    case "close":
      return (store) => store.close(call.servers.map((server) => ({ serverUuid: serverId(server), assignment: 0 })));
    case "request-delete": {
      const tasks = call.servers.map((uuid, at) => deleteTask(uuid, firstTask + at));
      drawn.tasks += tasks.length;
      return (store) => store.requestDelete(tasks);
    }
    case "take":
      return remember(drawn, (store) =>
        store.takeTasks(
          conductorId(call.conductor),
          call.tasks.map((at) => taskId(Math.max(0, firstTask - 1 - at))),
        ),
      );
    case "sweep":
      return remember(drawn, (store) =>
        store.sweepTasks(conductorId(call.conductor), call.atOnce ? 0 : FAR_MS, call.limit),
      );
    case "lease":
      return performLease(call.conductor, call.lease);
    case "hosts-up": {
      const hosts = call.hosts.map((at) => ({ name: hostName(at), rootProvider: providerOf(at) }));
      return (store) => store.hostsUp(`agent-${call.agent}`, hosts);
    }
    case "agents":
      return async (store) => [
        call.expire ? await store.expireAgents(0) : null,
        await store.agentsSeen(["agent-0", "agent-1"], FAR_MS),
      ];
    case "hop": {
      const hops = call.hops.flatMap(({ claim: back, from, to, vcpus, result }): Hop[] => {
        const claim = claimAt(drawn, back);
        if (claim === null) return [];
        const change = swapTo(serverOf(claim), to, vcpus);
        const group = groupOf(serverOf(claim));
        return [{ ...claim, from, reason: `failed ${from}`, result, to, toHost: hostName(to), change, group }];
      });
      return (store) => store.hop(hops);
    }
    default: {
      const claims = call.claims.flatMap(({ claim: back, selection }) => {
        const claim = claimAt(drawn, back);
        return claim === null ? [] : [{ ...claim, selection, attemptReason: "broken", reason: "all broken" }];
      });
      if (call.kind === "hand-over") return (store) => store.releaseTasks(conductorId(0), claims);
      if (call.kind === "active") return (store) => store.commitActive(claims);
      return call.kind === "error" ? (store) => store.commitError(claims) : (store) => store.commitDeleted(claims);
    }
  }
}

function performLease(at: number, lease: "far" | "over" | "given-up"): (store: CellStore) => Promise<unknown> {
  const id = conductorId(at);
  if (lease === "given-up") return (store) => store.giveUpLease(id);
  const leaseMs = lease === "far" ? FAR_MS : 0;
  return async (store) => {
    await store.renewLease({ id, name: id, leaseMs });
    return store.ownedTasks(id);
  };
}

function remember(
  drawn: Drawn,
  take: (store: CellStore) => Promise<readonly TakenTask[]>,
): (store: CellStore) => Promise<readonly TakenTask[]> {
  let first = true;
  return async (store) => {
    const taken = await take(store);
    if (first) {
      for (const { task, epoch } of taken) {
        drawn.claims.push({ taskId: task.id, serverUuid: task.server?.uuid ?? "", epoch });
      }
    }
    first = false;
    return taken;
  };
}

function claimAt(drawn: Drawn, back: number): Tenure | null {
  return drawn.claims[drawn.claims.length - 1 - back] ?? null;
}

/** Half of the servers are in a group. */
const GROUPS: readonly ServerGroupMembership[] = [
  { uuid: numbered(0xe, 1), policy: "anti-affinity", maxServerPerHost: 0 },
  { uuid: numbered(0xe, 2), policy: "affinity", maxServerPerHost: 0 },
  { uuid: numbered(0xe, 3), policy: "anti-affinity", maxServerPerHost: 2 },
];

function groupOf(server: number): ServerGroupMembership | undefined {
  return server < SERVERS.length / 2 ? undefined : GROUPS[server % GROUPS.length];
}

function serverOf(claim: Tenure): number {
  return SERVERS.find((at) => serverId(at) === claim.serverUuid) ?? 0;
}
