import type { MemoryApiStore } from "../adapters/memory/api/memory-api-store.ts";
import type { MemoryMoveStore } from "../adapters/memory/api/memory-move-store.ts";
import type { MemoryCellStore } from "../adapters/memory/cell/memory-cell-store.ts";
import type { MemoryHostAdminStore } from "../adapters/memory/cell/memory-host-admin-store.ts";
import type { AgentListener } from "../core/agent/link.ts";
import type { AllocationChange, AllocationOutcome } from "../core/ledger/allocation-change.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import { type Networking, OWN_NAME } from "../core/stores/networking.ts";
import { StoreError } from "../core/stores/store-error.ts";
import { OPERATION_KINDS, OPERATIONS, type OperationKind } from "../core/tasks/operation-kinds.ts";
import type { Edges, Route, Stage } from "../core/tasks/operation-routes.ts";
import type { StepWrite } from "../core/tasks/operation-step.ts";
import type { Tenure } from "../core/tasks/tenure.ts";
import type { Closable } from "../runtime/closable.ts";
import { overriding } from "../runtime/overriding.ts";
import type { Driver } from "../services/compute-agent/driver.ts";
import type { Journal } from "../services/compute-agent/journal.ts";
import { anyAgentSpeaks } from "./any-agent-speaks.ts";
import { JOURNAL_MUTATIONS } from "./journal-mutations.ts";
import { KEPT_GUEST_MUTATIONS } from "./kept-guest-mutations.ts";
import { LEFT_GUEST_MUTATIONS } from "./left-guest-mutations.ts";
import { REPLACEMENT_MUTATIONS } from "./replacement-mutations.ts";
import { SILENCE_MUTATIONS } from "./silence-mutations.ts";
import { SNAPSHOT_MUTATIONS } from "./snapshot-mutations.ts";

/** A bug that is injected on purpose, to show that the simulator finds it. Each part wraps or replaces the real one. */
export interface Mutation {
  readonly name: string;
  readonly about: string;
  /** The profile in which the bug shows; `storm` by default. */
  readonly profile?: string;
  /** Wraps each change of a cell's ledger within a transaction. */
  readonly ledger?: (change: AllocationChange, apply: ApplyChange) => AllocationOutcome;
  readonly cellStore?: (store: MemoryCellStore) => MemoryCellStore;
  readonly apiStore?: (store: MemoryApiStore) => MemoryApiStore;
  readonly moveStore?: (store: MemoryMoveStore) => MemoryMoveStore;
  /** Replaces the routes of these operations. */
  readonly routes?: Partial<Record<OperationKind, Route>>;
  /** Wraps what a conductor hears of agents. */
  readonly listener?: (listener: AgentListener & Closable) => AgentListener & Closable;
  readonly driver?: (driver: Driver) => Driver;
  readonly journal?: (journal: Journal) => Journal;
  /** Wraps the client of Neutron of an api or a conductor. */
  readonly networking?: (networking: Networking) => Networking;
  /** Wraps the client of Cinder of an api or a conductor. */
  readonly blockStorage?: (storage: BlockStorage) => BlockStorage;
}
type ApplyChange = (change: AllocationChange) => AllocationOutcome;

const COMMITTED: AllocationOutcome = { kind: "committed", generations: new Map() };
const isRelease = ({ steps: [step] }: AllocationChange) => step?.kind === "replace" && step.items.length === 0;
const isClaim = ({ steps: [step] }: AllocationChange) => step?.kind === "replace" && step.expected === null;
/** Makes each write look as if it came from the task's owner. */
const asOwners = <Write extends Tenure>(store: MemoryCellStore, writes: readonly Write[]): Write[] => {
  const epochs = new Map(store.tasks().map(({ id, epoch }) => [id, epoch]));
  return writes.map((write) => ({ ...write, epoch: epochs.get(write.taskId) ?? write.epoch }));
};
/** Makes evacuations look as if none of them needed a fence. */
const withoutFence = <Write extends StepWrite>(write: Write): Write =>
  write.evacuated ? { ...write, evacuated: { ...write.evacuated, fenceWaived: true } } : write;
const allFenced = (admin: MemoryHostAdminStore): MemoryHostAdminStore =>
  overriding(admin, {
    adminHosts: async (names) => (await admin.adminHosts(names)).map((host) => ({ ...host, forcedDown: !host.up })),
  });

/** A Neutron that binds a port only once. */
const boundOnce = (networking: Networking): Networking =>
  overriding(networking, {
    hasBindings: async () => false,
    updatePort: async (id, update, revision, by = OWN_NAME) => {
      const [port] = await networking.ports({ id }, OWN_NAME);
      const { host = "" } = update;
      if (port === undefined || port.host === "" || host === "" || port.host === host)
        return networking.updatePort(id, update, revision, by);
      return { kind: "updated", port: { ...port, host } };
    },
  });

/** A Cinder whose volumes look filled as soon as it was asked to fill them. */
const filledAtOnce = (storage: BlockStorage): BlockStorage => {
  const images = new Map<string, string>();
  return overriding(storage, {
    reimage: (asked) => {
      images.set(asked.volumeId, asked.imageId);
      return storage.reimage(asked);
    },
    volume: async (id, by) => {
      const volume = await storage.volume(id, by);
      const image_id = images.get(id);
      if (volume?.status !== "downloading" || image_id === undefined) return volume;
      return { ...volume, status: "reserved", imageProperties: { image_id } };
    },
  });
};

/** Rejects when the signal is aborted, as if the call had ended then. */
const unheard = (signal: AbortSignal, call: (deaf: AbortSignal) => Promise<void>): Promise<void> =>
  new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("given up")), { once: true });
    call(new AbortController().signal).then(resolve, reject);
  });

/** Makes operations follow the routes of the mutation. Returns a function that undoes this. */
export function mutateRoutes(mutation: Mutation | null): () => void {
  const kept = new Map(OPERATION_KINDS.map((kind) => [kind, OPERATIONS[kind].route]));
  for (const kind of OPERATION_KINDS)
    Object.assign(OPERATIONS[kind], { route: mutation?.routes?.[kind] ?? kept.get(kind) });
  return () => {
    for (const [kind, route] of kept) Object.assign(OPERATIONS[kind], { route });
  };
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: "retracted-is-arrived",
    about:
      "a live migration or a rebuild goes on to its end although the destination did not start, and has destroyed its guest",
    profile: "silent-moves",
    routes: Object.fromEntries(
      (["live-migrate", "rebuild"] as const).map((kind) => [
        kind,
        new Map<Stage, Edges>(OPERATIONS[kind].route).set("retracting", {
          ...OPERATIONS[kind].route.get("retracting")!,
          done: "cleaning",
        }),
      ]),
    ),
  },
  ...SILENCE_MUTATIONS,
  {
    name: "release-forgotten",
    about: "what a server held is not given back at its end",
    ledger: (change, apply) => (isRelease(change) ? COMMITTED : apply(change)),
  },
  {
    name: "claim-forgotten",
    about: "a first claim is answered as committed and not written",
    ledger: (change, apply) => (isClaim(change) ? COMMITTED : apply(change)),
  },
  {
    name: "hop-keeps-the-old-host",
    about: "a hop to an alternate writes nothing to the ledger: the failed host's allocation stays",
    ledger: (change, apply) => (isClaim(change) || isRelease(change) ? apply(change) : COMMITTED),
  },
  {
    name: "sweep-blind",
    about: "conductors do not take over the tasks of dead ones",
    cellStore: (store) => overriding(store, { sweepTasks: async () => [] }),
  },
  {
    name: "lease-endless",
    about: "a conductor's lease does not run out",
    cellStore: (store) =>
      overriding(store, { renewLease: (conductor) => store.renewLease({ ...conductor, leaseMs: 86_400_000 }) }),
  },
  {
    name: "fence-dropped",
    about: "what is written for a task is taken from whoever had it before, too",
    profile: "stalled-moves",
    cellStore: (store) =>
      overriding(store, {
        commitActive: (commits) => store.commitActive(asOwners(store, commits)),
        hop: (hops) => store.hop(asOwners(store, hops)),
        commitError: (errors) => store.commitError(asOwners(store, errors)),
        commitDeleted: (deletes) => store.commitDeleted(asOwners(store, deletes)),
        commitStep: (steps) => store.commitStep(asOwners(store, steps)),
      }),
  },
  {
    name: "door-left-open",
    about: "a cell that a request leaves is not shut for it",
    // A claim has to be under way for as long as a hop takes.
    profile: "rivals",
    cellStore: (store) => overriding(store, { close: async (closings) => closings.map(() => "closed" as const) }),
  },
  {
    name: "delete-task-lost",
    about: "a delete is answered as queued and not stored",
    cellStore: (store) =>
      overriding(store, { requestDelete: async (tasks) => tasks.map((task) => ({ kind: "queued" as const, task })) }),
  },
  {
    name: "accept-lost",
    about: "one call in ten is accepted and not stored",
    apiStore: (store) =>
      overriding(store, {
        acceptWithin: async (calls, limits) => {
          const lost = calls.map(() => Math.random() < 0.1);
          const kept = calls.filter((_, at) => lost[at] === false);
          const outcomes = [...(await store.acceptWithin(kept, limits))];
          return lost.map((isLost) => (isLost ? { kind: "accepted" as const } : outcomes.shift()!));
        },
      }),
  },
  {
    name: "stale-blind",
    about: "schedulers do not find requests that nobody touched",
    apiStore: (store) => overriding(store, { stale: async () => [] }),
  },
  {
    name: "assigned-by-all",
    about: "a request is assigned to a cell without a look at where it was before",
    profile: "rivals",
    apiStore: (store) =>
      overriding(store, {
        assignCells: async (assignments) => {
          const records = await store.requests(assignments.map(({ serverUuid }) => serverUuid));
          const at = new Map(
            records.map(({ serverUuid, cell, assignment }) => [serverUuid, { from: cell, assignment }]),
          );
          return store.assignCells(assignments.map((one) => ({ ...one, ...at.get(one.serverUuid) })));
        },
      }),
  },
  {
    name: "taken-over-unnoticed",
    about:
      "a scheduler that takes a request over does not renew its assignment, so the other scheduler does not learn of it",
    profile: "full-disks",
    apiStore: (store) =>
      overriding(store, {
        assignCells: (assignments) =>
          store.assignCells(
            assignments.map((one) => (one.from === one.to ? { ...one, next: one.assignment ?? 0 } : one)),
          ),
      }),
  },
  {
    name: "cancelled-is-deleted",
    about: "a request counts as deleted as soon as it is cancelled, before its cell has done anything",
    apiStore: (store) =>
      overriding(store, {
        cancel: async (uuid, requestId) => {
          const record = await store.cancel(uuid, requestId);
          await store.markDeleted([{ cell: record?.cell ?? null, serverUuid: uuid }]);
          return record;
        },
      }),
  },
  {
    name: "deletes-put-off",
    about: "no delete is ever accepted",
    apiStore: (store) =>
      overriding(store, {
        cancel: () => Promise.reject(new StoreError("unavailable", "cancel", new Error("put off"))),
      }),
  },
  {
    name: "active-not-written",
    about: "a build is answered as committed and not written",
    cellStore: (store) =>
      overriding(store, { commitActive: async (commits) => commits.map(() => ({ kind: "committed" as const })) }),
  },
  {
    name: "homes-unknown",
    about: "conductors that compare an agent's guests with the database find none of them there",
    cellStore: (store) => overriding(store, { homes: async () => [] }),
  },
  {
    name: "quarantine-ignored",
    about:
      "a guest that the database does not want is destroyed, also when the database was restored and has forgotten why it is there",
    profile: "restores",
    cellStore: (store) =>
      overriding(store, {
        judgeGuests: async (guests) => guests.map(() => ({ kind: "destroy" as const, reason: null })),
      }),
  },
  {
    name: "attaching-forgotten",
    about:
      "a volume whose attaching its cell does not know is released, also when the cell's database was restored and has forgotten it",
    profile: "volumes-restored",
    cellStore: (store) => overriding(store, { restoredAgoMs: async () => null }),
  },
  {
    name: "start-lies",
    about: "a guest is called started and stands still",
    driver: (driver) =>
      overriding(driver, {
        start: async () => {},
        power: async (guest, verb, signal) => (verb === "start" ? undefined : driver.power(guest, verb, signal)),
      }),
  },
  {
    name: "destroy-lies",
    about: "a guest is called destroyed and goes on",
    driver: (driver) => overriding(driver, { destroy: async () => {} }),
  },
  {
    name: "unseen-is-fenced",
    about: "a host that nobody sees counts as one that an operator has forced down",
    profile: "cut-off",
    cellStore: (store) =>
      overriding(store, {
        hostAdmin: () => allFenced(store.hostAdmin()),
        begin: (begins) => store.begin(begins.map((begin) => ({ ...begin, write: withoutFence(begin.write) }))),
        commitStep: (steps) => store.commitStep(steps.map((step) => withoutFence(step))),
      }),
  },
  {
    name: "any-agent-speaks",
    about: "reports about a host count whichever agent sends them",
    profile: "lies",
    listener: anyAgentSpeaks,
  },
  {
    name: "journal-forgets",
    about: "one record in two does not outlive the agent's process",
    journal: (journal) =>
      overriding(journal, { append: async (record) => (Math.random() < 0.5 ? undefined : journal.append(record)) }),
  },
  {
    name: "step-not-written",
    about: "a step of an operation is answered as committed and not written",
    cellStore: (store) =>
      overriding(store, {
        commitStep: async (steps) => steps.map(() => ({ kind: "committed" as const, revision: 1 })),
      }),
  },
  {
    name: "hand-over-lies",
    about: "a guest is called handed over and goes on",
    driver: (driver) => overriding(driver, { handOff: async () => {} }),
  },
  {
    name: "power-lies",
    about: "a guest is called stopped or started and is neither",
    driver: (driver) => overriding(driver, { power: async () => {} }),
  },
  {
    name: "driver-deaf",
    about: "a driver that is told to give up a start or a stop says at once that it has, and goes on",
    // Only calls that take a while can be given up.
    profile: "slow",
    driver: (driver) =>
      overriding(driver, {
        start: (guest, signal) => unheard(signal, (deaf) => driver.start(guest, deaf)),
        power: (guest, verb, signal) => unheard(signal, (deaf) => driver.power(guest, verb, deaf)),
      }),
  },
  {
    name: "groups-left-behind",
    about: "the rule of a server group is not asked when a move or a hop claims a host",
    cellStore: (store) =>
      overriding(store, {
        hop: (hops) => store.hop(hops.map((hop) => ({ ...hop, group: undefined }))),
        begin: (operations) =>
          store.begin(operations.map((one) => ({ ...one, write: { ...one.write, group: undefined } }))),
        commitStep: (steps) => store.commitStep(steps.map((step) => ({ ...step, group: undefined }))),
      }),
  },
  {
    name: "ports-kept",
    about: "a port is called deleted and is still there",
    profile: "ports",
    networking: (networking) => overriding(networking, { deletePort: async () => "deleted" }),
  },
  {
    name: "switch-unbound",
    about:
      "a port that is bound is called bound to another host and is not, where Neutron has no bindings to several hosts",
    profile: "ports",
    networking: boundOnce,
  },
  {
    name: "bindings-kept",
    about: "the binding of a host that a server has left is called deleted and is still there",
    profile: "ports",
    networking: (networking) => overriding(networking, { deleteBinding: async () => {} }),
  },
  {
    name: "fill-not-awaited",
    about: "a volume counts as filled with an image as soon as Cinder was asked to fill it",
    profile: "reimages",
    blockStorage: filledAtOnce,
  },
  ...SNAPSHOT_MUTATIONS,
  ...KEPT_GUEST_MUTATIONS,
  ...JOURNAL_MUTATIONS,
  ...LEFT_GUEST_MUTATIONS,
  ...REPLACEMENT_MUTATIONS,
  {
    name: "moves-lost",
    about: "one accepted move in two is not stored",
    moveStore: (store) =>
      overriding(store, {
        accept: async (moves) =>
          Math.random() < 0.5 ? moves.map(() => ({ kind: "accepted" as const })) : store.accept(moves),
      }),
  },
  {
    name: "move-sweep-blind",
    about: "schedulers do not find moves that nobody touched",
    moveStore: (store) => overriding(store, { staleMoves: async () => [] }),
  },
];
