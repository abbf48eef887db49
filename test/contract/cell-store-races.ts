import { describe, expect, test } from "vitest";
import type { DispatchOutcome } from "../../core/stores/cell/cell-store.ts";
import {
  closingOf,
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  serverId,
  swapTo,
  taskId,
} from "./cell-fixtures.ts";
import { type CellUnderTest, HOST_VCPUS, tenureOf } from "./cell-under-test.ts";

/** Each race is run this often, on servers of its own. */
const ROUNDS = 24;
const rounds = Array.from({ length: ROUNDS }, (_, round) => round + 1);
const FAR_LEASE_MS = 3_600_000;

/** The guarantees of races, whichever side comes first. Titles name the race. */
export function raceContract(cell: () => CellUnderTest): void {
  const makeRoom = async (): Promise<void> => {
    await cell().ledger.putTrees([0, 1, 2].map((host) => hostTree(host, ROUNDS * 4)));
  };
  /** Builds of this many servers, taken by conductor 0. */
  const taken = async (servers: readonly number[]) => {
    await makeRoom();
    await cell().store.dispatch(servers.map((server) => dispatchOf({ server, task: server, hosts: [0, 1] })));
    return (await cell().store.takeTasks(conductorId(0), servers.map(taskId))).map(tenureOf);
  };

  test("the same requests dispatched by four schedulers at once, in different orders", async () => {
    await makeRoom();
    const { store } = cell();
    const batches = [0, 1, 2, 3].map((scheduler) =>
      rounds
        .map((server) => dispatchOf({ server, task: 1000 * (scheduler + 1) + server, hosts: [scheduler % 3] }))
        .sort((a, b) => (a.task.id < b.task.id ? -1 : 1) * (scheduler % 2 === 0 ? 1 : -1)),
    );
    const outcomes = await Promise.all(batches.map((batch) => store.dispatch(batch)));
    const kinds = new Map<string, string[]>();
    batches.forEach((batch, at) => {
      batch.forEach((dispatch, index) => {
        const uuid = dispatch.task.server?.uuid ?? "";
        kinds.set(uuid, [...(kinds.get(uuid) ?? []), outcomes[at]?.[index]?.kind ?? "none"]);
      });
    });
    for (const ofServer of kinds.values()) {
      expect(ofServer.sort()).toEqual(["already-dispatched", "already-dispatched", "already-dispatched", "dispatched"]);
    }
    const used = await cell().used();
    expect(used.reduce((sum, amount) => sum + amount)).toBe(ROUNDS);
  });

  test("more claims than room, from four schedulers at once", async () => {
    const { store } = cell();
    const batches = [0, 1, 2, 3].map((scheduler) =>
      Array.from({ length: HOST_VCPUS }, (_, index) => {
        const server = 100 * (scheduler + 1) + index;
        return dispatchOf({ server, task: server, hosts: [index % 2] });
      }),
    );
    const outcomes = (await Promise.all(batches.map((batch) => store.dispatch(batch)))).flat();
    const count = (kind: DispatchOutcome["kind"]): number => outcomes.filter((one) => one.kind === kind).length;
    expect([count("dispatched"), count("no-capacity")]).toEqual([2 * HOST_VCPUS, 2 * HOST_VCPUS]);
    expect(await cell().used()).toEqual([HOST_VCPUS, HOST_VCPUS, 0]);
    expect((await cell().ledger.dump()).consumers).toHaveLength(2 * HOST_VCPUS);
  });

  test("requestDelete against dispatch: either the server exists with a delete task, or it is never dispatched", async () => {
    await makeRoom();
    const { store } = cell();
    await Promise.all(
      rounds.map(async (server) => {
        const [[dispatched], [deleted]] = await Promise.all([
          store.dispatch([dispatchOf({ server, task: server, hosts: [0] })]),
          store.requestDelete([deleteTask(server, 1000 + server)]),
        ]);
        const kinds = [dispatched?.kind, deleted?.kind];
        expect([
          ["dispatched", "queued"],
          ["closed", "deleted"],
        ]).toContainEqual(kinds);
        const [left] = await store.servers([serverId(server)]);
        expect(left?.taskState).toBe(dispatched?.kind === "dispatched" ? "deleting" : undefined);
        expect(await store.takeTasks(conductorId(0), [taskId(server)])).toEqual([]);
      }),
    );
  });

  test("close against dispatch: never both dispatched and closed", async () => {
    await makeRoom();
    const { store } = cell();
    await Promise.all(
      rounds.map(async (server) => {
        const [[dispatched], [closed]] = await Promise.all([
          store.dispatch([dispatchOf({ server, task: server, hosts: [0] })]),
          store.close([closingOf(server)]),
        ]);
        expect([
          ["dispatched", "present"],
          ["closed", "closed"],
        ]).toContainEqual([dispatched?.kind, closed]);
      }),
    );
  });

  describe("a cell that is opened again to servers that have left it", () => {
    /** Dispatches the server under an assignment. */
    const dispatchUnder = async (server: number, assignment: number, task = server) => {
      const dispatch = { ...dispatchOf({ server, task, hosts: [0] }), assignment };
      return (await cell().store.dispatch([dispatch]))[0]?.kind;
    };
    /** The cell is closed to all servers under assignment 1. */
    const leave = async () => {
      await makeRoom();
      await cell().store.close(rounds.map((server) => closingOf(server, 1)));
    };

    test("a dispatch under the present assignment against one under an earlier assignment: one claim", async () => {
      await leave();
      await Promise.all(
        rounds.map(async (server) => {
          const kinds = await Promise.all([dispatchUnder(server, 2), dispatchUnder(server, 1, 1000 + server)]);
          expect([
            ["dispatched", "closed"],
            ["dispatched", "already-dispatched"],
            ["already-dispatched", "dispatched"],
          ]).toContainEqual(kinds);
        }),
      );
      expect(await cell().used()).toEqual([ROUNDS, 0, 0]);
    });

    test("two schedulers under the present assignment: one claim", async () => {
      await leave();
      await Promise.all(
        rounds.map(async (server) => {
          const kinds = await Promise.all([dispatchUnder(server, 2), dispatchUnder(server, 2, 1000 + server)]);
          expect(kinds.sort()).toEqual(["already-dispatched", "dispatched"]);
        }),
      );
      expect(await cell().used()).toEqual([ROUNDS, 0, 0]);
    });

    test("requestDelete against the dispatch: either the server has a delete task, or no assignment opens the cell to it", async () => {
      await leave();
      const outcomes = await Promise.all(
        rounds.map(async (server) => {
          const [dispatched, [deleted]] = await Promise.all([
            dispatchUnder(server, 2),
            cell().store.requestDelete([deleteTask(server, 1000 + server)]),
          ]);
          expect([
            ["dispatched", "queued"],
            ["closed", "deleted"],
          ]).toContainEqual([dispatched, deleted?.kind]);
          expect(await dispatchUnder(server, 3, 2000 + server)).toBe(
            dispatched === "closed" ? "closed" : "already-dispatched",
          );
          return dispatched;
        }),
      );
      const claims = outcomes.filter((kind) => kind === "dispatched").length;
      expect(await cell().used()).toEqual([claims, 0, 0]);
    });

    test("a close under an earlier assignment against the dispatch: the server is dispatched", async () => {
      await leave();
      await Promise.all(
        rounds.map(async (server) => {
          const [dispatched, [closed]] = await Promise.all([
            dispatchUnder(server, 2),
            cell().store.close([closingOf(server, 1)]),
          ]);
          expect(dispatched).toBe("dispatched");
          expect(["closed", "present"]).toContain(closed);
        }),
      );
      expect(await cell().used()).toEqual([ROUNDS, 0, 0]);
    });

    test("a close under the present assignment against the dispatch: never both dispatched and closed", async () => {
      await leave();
      const outcomes = await Promise.all(
        rounds.map(async (server) => {
          const [dispatched, [closed]] = await Promise.all([
            dispatchUnder(server, 2),
            cell().store.close([closingOf(server, 2)]),
          ]);
          expect([
            ["dispatched", "present"],
            ["closed", "closed"],
          ]).toContainEqual([dispatched, closed]);
          if (dispatched === "closed") expect(await dispatchUnder(server, 1, 2000 + server)).toBe("closed");
          return dispatched;
        }),
      );
      const claims = outcomes.filter((kind) => kind === "dispatched").length;
      expect(await cell().used()).toEqual([claims, 0, 0]);
    });
  });

  test("two conductors take one task: one has it", async () => {
    const { store } = cell();
    await makeRoom();
    await store.dispatch(rounds.map((server) => dispatchOf({ server, task: server, hosts: [0] })));
    const ids = rounds.map(taskId);
    const [one, two] = await Promise.all([
      store.takeTasks(conductorId(0), ids),
      store.takeTasks(conductorId(1), [...ids].reverse()),
    ]);
    const all = [...one, ...two];
    expect(new Set(all.map((task) => task.task.id)).size).toBe(ROUNDS);
    expect(all.map((task) => task.epoch)).toEqual(rounds.map(() => 1));
  });

  test("two conductors sweep at once: each task goes to one of them", async () => {
    const { store } = cell();
    await taken(rounds);
    await store.renewLease({ id: conductorId(0), name: "gone", leaseMs: 0 });
    await store.renewLease({ id: conductorId(2), name: "third", leaseMs: FAR_LEASE_MS });
    const sweepers = [1, 2, 1, 2].map((conductor) => store.sweepTasks(conductorId(conductor), 0, ROUNDS));
    const swept = (await Promise.all(sweepers)).flat();
    // One sweep skipped the tasks that the other had locked. The next sweep finds no free task.
    const rest = await store.sweepTasks(conductorId(1), 0, ROUNDS);
    const ids = [...swept, ...rest].map((task) => task.task.id);
    expect(ids.sort()).toEqual(rounds.map(taskId).sort());
    expect([...swept, ...rest].every((task) => task.epoch === 2)).toBe(true);
  });

  test("commitActive by a conductor that is being fenced: either the server is ACTIVE, or the other conductor owns the task", async () => {
    const { store } = cell();
    const claims = await taken(rounds);
    await store.renewLease({ id: conductorId(0), name: "slow", leaseMs: 0 });
    await Promise.all(
      claims.map(async (claim) => {
        const [[committed], stolen] = await Promise.all([
          store.commitActive([{ ...claim, selection: 0 }]),
          store.takeTasks(conductorId(1), [claim.taskId]),
        ]);
        const [server] = await store.servers([claim.serverUuid]);
        expect([committed?.kind, stolen.length, server?.status]).toEqual(
          committed?.kind === "committed" ? ["committed", 0, "ACTIVE"] : ["fenced", 1, "BUILD"],
        );
      }),
    );
  });

  test("commitActive against requestDelete: a delete task follows in any case, and the guest has one home", async () => {
    const { store } = cell();
    const claims = await taken(rounds);
    await Promise.all(
      claims.map(async (claim, index) => {
        const server = index + 1;
        const [[committed], [deleted]] = await Promise.all([
          store.commitActive([{ ...claim, selection: 0 }]),
          store.requestDelete([deleteTask(server, 1000 + server)]),
        ]);
        expect(deleted?.kind).toBe("queued");
        const [left] = await store.servers([claim.serverUuid]);
        expect([left?.status, left?.taskState]).toEqual([
          committed?.kind === "committed" ? "ACTIVE" : "BUILD",
          "deleting",
        ]);
      }),
    );
  });

  test("a hop against requestDelete: the delete task finds the server where its allocation is", async () => {
    const { store, ledger } = cell();
    const claims = await taken(rounds);
    await Promise.all(
      claims.map(async (claim, index) => {
        const server = index + 1;
        const hop = { ...claim, from: 0, reason: "broken", to: 1, toHost: hostName(1), change: swapTo(server, 1) };
        const [[hopped]] = await Promise.all([
          store.hop([hop]),
          store.requestDelete([deleteTask(server, 1000 + server)]),
        ]);
        const deletion = await cell().take(1000 + server);
        expect(deletion.host).toBe(hopped?.kind === "committed" ? "host-1" : "host-0");
        expect(await store.commitDeleted([tenureOf(deletion)])).toEqual([{ kind: "committed" }]);
      }),
    );
    expect((await ledger.dump()).consumers).toEqual([]);
    expect(await cell().used()).toEqual([0, 0, 0]);
  });

  test("hops of many servers in both directions at once never deadlock and never overbook", async () => {
    const { store } = cell();
    const claims = await taken(rounds);
    for (let turn = 0; turn < 6; turn += 1) {
      const to = 1 - (turn % 2);
      const hops = claims.map((claim, index) => ({
        ...claim,
        from: 1 - to,
        reason: "broken",
        to,
        toHost: hostName(to),
        change: swapTo(index + 1, to),
      }));
      const half = hops.length / 2;
      const batches = [hops.slice(0, half), hops.slice(half).reverse()];
      const outcomes = await Promise.all(batches.map((batch) => store.hop(batch)));
      expect(outcomes.flat().every((outcome) => outcome.kind === "committed")).toBe(true);
    }
    expect(await cell().used()).toEqual([ROUNDS, 0, 0]);
  });

  test("commits, deletes, takes and sweeps of overlapping batches at once end, and used stays equal to the allocations", async () => {
    const { store, ledger } = cell();
    const claims = await taken(rounds);
    const errors = claims.map((claim) => ({ ...claim, selection: 0, attemptReason: "a", reason: "r" }));
    const hops = claims.map((claim, index) => ({
      ...claim,
      from: 0,
      reason: "broken",
      to: 1,
      toHost: hostName(1),
      change: swapTo(index + 1, 1),
    }));
    await Promise.all([
      store.commitActive(claims.map((claim) => ({ ...claim, selection: 0 }))),
      store.commitError([...errors].reverse()),
      store.hop(hops),
      store.requestDelete(rounds.map((server) => deleteTask(server, 1000 + server))),
      store.takeTasks(conductorId(0), rounds.map(taskId).reverse()),
      store.sweepTasks(conductorId(1), 0, ROUNDS),
      store.close(rounds.map((server) => closingOf(server)).reverse()),
    ]);
    const dump = await ledger.dump();
    const held = dump.consumers.flatMap((consumer) => consumer.items).reduce((sum, item) => sum + item.amount, 0);
    expect((await cell().used()).reduce((sum, amount) => sum + amount)).toBe(held);
    const servers = await store.servers(rounds.map(serverId));
    expect(servers.filter((server) => server.host !== null).length).toBe(held);
    for (const server of servers) expect(server.host === null).toBe(server.status === "DELETED");
  });
}
