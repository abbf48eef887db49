import { describe, expect, test } from "vitest";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import type { ChangesQuery } from "../../core/stores/cell/cell-store.ts";
import { attemptIdOf, type Server } from "../../core/tasks/server.ts";
import {
  changesSince,
  closingOf,
  conductorId,
  deleteTask,
  dispatchOf,
  numbered,
  owner,
  providerOf,
  serverId,
  taskId,
  VCPU,
} from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

/** The guarantees for schedulers and the api. */
export function dispatchContract(cell: () => CellUnderTest): void {
  test("a dispatch stores the claim, the server, the task and the first attempt", async () => {
    const { store, ledger } = cell();
    const dispatch = dispatchOf({ server: 1, task: 1, hosts: [0, 1], vcpus: 3 });
    expect(await store.dispatch([dispatch])).toEqual([{ kind: "dispatched", xid: expect.any(Number) }]);
    expect(await store.servers([serverId(1)])).toEqual([
      {
        uuid: serverId(1),
        status: "BUILD",
        taskState: "spawning",
        spec: dispatch.task.server,
        host: "host-0",
        attemptId: attemptIdOf(taskId(1), 0),
        fault: null,
        createdAtMs: dispatch.task.server?.createdAtMs,
        updatedAtMs: expect.any(Number),
        launchedAtMs: null,
        deletedAtMs: null,
        revision: 0,
      },
    ]);
    expect(await store.attempts(serverId(1))).toEqual([
      {
        taskId: taskId(1),
        selection: 0,
        serverUuid: serverId(1),
        host: "host-0",
        startedAtMs: expect.any(Number),
        endedAtMs: null,
        result: null,
        reason: null,
      },
    ]);
    expect(await ledger.allocationsOf(consumerUuid(serverId(1)))).toEqual([
      { provider: providerOf(0), resourceClass: VCPU, amount: 3 },
    ]);
    expect(await cell().take(1)).toEqual({
      task: dispatch.task,
      epoch: 1,
      selection: 0,
      host: "host-0",
      attemptId: attemptIdOf(taskId(1), 0),
    });
  });

  test("dispatches of one batch take effect in their order, independently of each other", async () => {
    const { store } = cell();
    const outcomes = await store.dispatch([
      dispatchOf({ server: 1, task: 1, hosts: [0], vcpus: 6 }),
      dispatchOf({ server: 2, task: 2, hosts: [0], vcpus: 6 }),
      dispatchOf({ server: 3, task: 3, hosts: [0], vcpus: 4 }),
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(["dispatched", "no-capacity", "dispatched"]);
    expect(outcomes[1]).toEqual({
      kind: "no-capacity",
      shortfalls: [
        { provider: providerOf(0), resourceClass: VCPU, reason: "capacity", requested: 6, used: 6, limit: 10 },
      ],
    });
    expect(await store.servers([3, 2, 1].map(serverId))).toMatchObject([{ uuid: serverId(3) }, { uuid: serverId(1) }]);
    expect(await store.takeTasks(conductorId(0), [taskId(2)])).toEqual([]);
    expect(await cell().used()).toEqual([10, 0, 0]);
  });

  test("a refused server may be dispatched again elsewhere, even in the same batch", async () => {
    const { store } = cell();
    const outcomes = await store.dispatch([
      dispatchOf({ server: 1, task: 1, hosts: [0], vcpus: 11 }),
      dispatchOf({ server: 1, task: 1, hosts: [1], vcpus: 1 }),
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(["no-capacity", "dispatched"]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-1" }]);
  });

  test("a request that is delivered twice is dispatched once", async () => {
    const { store } = cell();
    const twice = [1, 2].map((task) => dispatchOf({ server: 1, task, hosts: [task] }));
    expect((await store.dispatch(twice)).map((outcome) => outcome.kind)).toEqual(["dispatched", "already-dispatched"]);
    expect(await store.dispatch([dispatchOf({ server: 1, task: 3, hosts: [0] })])).toEqual([
      { kind: "already-dispatched" },
    ]);
    expect(await cell().used()).toEqual([0, 1, 0]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-1" }]);
  });

  test("a claim without enough capacity returns the shortfalls, and writes nothing", async () => {
    const { store } = cell();
    const [gone, none, taken] = [1, 2, 3].map((server) => dispatchOf({ server, task: server, hosts: [0] }));
    const items = [{ provider: providerUuid(numbered(0xa, 99)), resourceClass: VCPU, amount: 1 }];
    const others = [{ provider: providerUuid(providerOf(0)), resourceClass: resourceClass("DISK_GB"), amount: 1 }];
    await cell().ledger.applyAllocations([
      claim(
        consumerUuid(serverId(3)),
        owner,
        taken!.change.steps.flatMap((step) => (step.kind === "replace" ? step.items : [])),
      ),
    ]);
    expect(
      await store.dispatch([
        { task: gone!.task, change: claim(consumerUuid(serverId(1)), owner, items) },
        { task: none!.task, change: claim(consumerUuid(serverId(2)), owner, others) },
        taken!,
      ]),
    ).toEqual([
      { kind: "stale", why: `provider ${numbered(0xa, 99)} is gone` },
      { kind: "stale", why: `provider ${providerOf(0)} has no DISK_GB` },
      { kind: "consumer-taken", why: `consumer ${serverId(3)} already exists, at generation 1` },
    ]);
    expect(await store.servers([1, 2, 3].map(serverId))).toEqual([]);
    expect(await store.homes([1, 2, 3].map(serverId))).toEqual([]);
  });

  describe("closing", () => {
    test("marks the UUID of an absent server as closed, repeatedly", async () => {
      const { store } = cell();
      expect(await store.close([closingOf(1), closingOf(2), closingOf(1)])).toEqual(["closed", "closed", "closed"]);
      expect(await store.close([closingOf(2)])).toEqual(["closed"]);
      expect(await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })])).toEqual([{ kind: "closed" }]);
      expect(await cell().used()).toEqual([0, 0, 0]);
      expect(await store.servers([serverId(1)])).toEqual([]);
      expect(await store.homes([serverId(1)])).toEqual([]);
      expect(await store.serversChanged(changesSince(0))).toEqual({ kind: "found", servers: [] });
    });

    test("holds for its assignment and earlier ones, and a higher one opens the cell to the server again", async () => {
      const { store } = cell();
      const dispatchUnder = async (server: number, assignment: number) => {
        const dispatch = dispatchOf({ server, task: server, hosts: [0] });
        return (await store.dispatch([{ ...dispatch, assignment }]))[0]?.kind;
      };
      // The lower number comes later, from a slow scheduler.
      await store.close([closingOf(1, 1), closingOf(1, 0), closingOf(2, 1)]);
      expect(await dispatchUnder(1, 0)).toBe("closed");
      expect(await dispatchUnder(1, 1)).toBe("closed");
      expect(await dispatchUnder(1, 2)).toBe("dispatched");
      expect(await store.close([closingOf(1, 2)])).toEqual(["present"]);
      await store.close([closingOf(2, 3)]);
      expect(await dispatchUnder(2, 3)).toBe("closed");
      expect(await dispatchUnder(2, 4)).toBe("dispatched");
      expect(await cell().used()).toEqual([2, 0, 0]);
    });

    test("is for good when a delete comes after it, whatever the number", async () => {
      const { store } = cell();
      await store.close([closingOf(1)]);
      expect(await store.requestDelete([deleteTask(1, 11)])).toEqual([{ kind: "deleted" }]);
      await store.close([closingOf(1, 1)]);
      const dispatch = dispatchOf({ server: 1, task: 1, hosts: [0] });
      expect(await store.dispatch([{ ...dispatch, assignment: 5 }])).toEqual([{ kind: "closed" }]);
    });

    test("a dispatch that is refused after it has opened the cell leaves nothing behind", async () => {
      const { store } = cell();
      await store.close([closingOf(1)]);
      const tooLarge = dispatchOf({ server: 1, task: 1, hosts: [0], vcpus: 1_000 });
      expect(await store.dispatch([{ ...tooLarge, assignment: 1 }])).toMatchObject([{ kind: "no-capacity" }]);
      expect(await store.servers([serverId(1)])).toEqual([]);
      expect(await store.close([closingOf(1, 1)])).toEqual(["closed"]);
      const dispatch = dispatchOf({ server: 1, task: 2, hosts: [0] });
      expect(await store.dispatch([{ ...dispatch, assignment: 1 }])).toEqual([{ kind: "closed" }]);
    });

    test("is refused for a present server, but not for a deleted one", async () => {
      const { store } = cell();
      await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0] })));
      await store.requestDelete([deleteTask(2, 12)]);
      await store.commitDeleted([tenureOf(await cell().take(12))]);
      expect(await store.close([closingOf(1), closingOf(2)])).toEqual(["present", "closed"]);
      expect(await store.dispatch([dispatchOf({ server: 2, task: 22, hosts: [0] })])).toEqual([{ kind: "closed" }]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "BUILD" }]);
    });
  });

  describe("a delete", () => {
    test("of an absent server marks its UUID as closed", async () => {
      const { store } = cell();
      expect(await store.requestDelete([deleteTask(1, 11)])).toEqual([{ kind: "deleted" }]);
      expect(await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })])).toEqual([{ kind: "closed" }]);
      expect(await store.requestDelete([deleteTask(1, 12)])).toEqual([{ kind: "deleted" }]);
    });

    test("fences the build at once, and is a separate task", async () => {
      const { store } = cell();
      await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 1] })]);
      const build = tenureOf(await cell().take(1));
      const task = deleteTask(1, 11);
      expect(await store.requestDelete([task])).toEqual([{ kind: "queued", task }]);
      expect(await store.commitActive([{ ...build, selection: 0 }])).toEqual([{ kind: "fenced" }]);
      expect(await store.takeTasks(conductorId(0), [taskId(1)])).toEqual([]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "BUILD", taskState: "deleting", host: "host-0", attemptId: attemptIdOf(taskId(1), 0) },
      ]);
      expect(await store.attempts(serverId(1))).toMatchObject([{ result: "cancelled", endedAtMs: expect.any(Number) }]);
      expect(await cell().used()).toEqual([1, 0, 0]);
      expect(await cell().take(11)).toEqual({
        task,
        epoch: 1,
        selection: 0,
        host: "host-0",
        attemptId: attemptIdOf(taskId(1), 0),
      });
    });

    test("is one task when it is requested twice", async () => {
      const { store } = cell();
      await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
      const first = deleteTask(1, 11);
      expect(await store.requestDelete([first, deleteTask(1, 12)])).toEqual([
        { kind: "queued", task: first },
        { kind: "queued", task: first },
      ]);
      expect(await store.requestDelete([deleteTask(1, 13)])).toEqual([{ kind: "queued", task: first }]);
      expect(await store.takeTasks(conductorId(0), [taskId(12), taskId(13)])).toEqual([]);
    });

    test("of a server without an allocation ends at once", async () => {
      const { store } = cell();
      await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
      const build = tenureOf(await cell().take(1));
      await store.commitError([{ ...build, selection: 0, attemptReason: "no disk", reason: "no host could" }]);
      expect(await store.requestDelete([deleteTask(1, 11)])).toEqual([{ kind: "deleted" }]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "DELETED", taskState: null, host: null, deletedAtMs: expect.any(Number) },
      ]);
      expect(await store.takeTasks(conductorId(0), [taskId(11)])).toEqual([]);
      expect(await store.requestDelete([deleteTask(1, 12)])).toEqual([{ kind: "deleted" }]);
    });

    test("of a running server waits for its host, then releases everything", async () => {
      const { store, ledger } = cell();
      await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
      await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
      await store.requestDelete([deleteTask(1, 11)]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", taskState: "deleting" }]);
      const claimed = tenureOf(await cell().take(11));
      expect(await store.commitDeleted([claimed])).toEqual([{ kind: "committed" }]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "DELETED", taskState: null, host: null, attemptId: null, deletedAtMs: expect.any(Number) },
      ]);
      expect((await ledger.dump()).consumers).toEqual([]);
      expect(await cell().used()).toEqual([0, 0, 0]);
      expect(await store.commitDeleted([claimed])).toEqual([{ kind: "committed" }]);
      expect(await store.serverCountByHost()).toEqual(new Map());
    });
  });

  test("servers are returned in the order of the UUIDs, and malformed UUIDs are left out", async () => {
    const { store } = cell();
    await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [server] })));
    const asked = [serverId(2), "nonsense", serverId(9), serverId(1)];
    expect((await store.servers(asked)).map((server) => server.uuid)).toEqual([serverId(2), serverId(1)]);
    expect(await store.attempts("nonsense")).toEqual([]);
    expect(await store.attempts(serverId(9))).toEqual([]);
    const attempts = await store.attemptsOfAll([serverId(2), "nonsense", serverId(9), serverId(1)]);
    expect(attempts).toEqual([...(await store.attempts(serverId(1))), ...(await store.attempts(serverId(2)))]);
    expect(attempts.map((attempt) => attempt.serverUuid)).toEqual([serverId(1), serverId(2)]);
  });

  test("changed servers are returned from one given millisecond to another, with the oldest change first", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3]) await store.dispatch([dispatchOf({ server, task: server, hosts: [0] })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
    const of = async (query: Partial<ChangesQuery>): Promise<readonly Server[]> => {
      const answer = await store.serversChanged({ ...changesSince(0), ...query });
      if (answer.kind !== "found") throw new Error(`the answer is ${answer.kind}`);
      return answer.servers;
    };
    const all = await of({});
    expect(all).toEqual(await store.servers([2, 3, 1].map(serverId)));
    const [first, last] = [all[0]!.updatedAtMs, all[2]!.updatedAtMs];
    expect((await of({ sinceMs: last })).map((server) => server.uuid)).toContain(serverId(1));
    expect(await of({ sinceMs: last + 1 })).toEqual([]);
    expect(await of({ beforeMs: last })).toEqual(all);
    expect((await of({ beforeMs: first })).map((server) => server.uuid)).toContain(serverId(2));
    expect(await of({ beforeMs: first - 1 })).toEqual([]);
    expect(await of({ sinceMs: first, beforeMs: last, projectId: all[0]!.spec.projectId })).toEqual(all);
    expect(await of({ projectId: "another" })).toEqual([]);
  });

  test("no changed servers are returned when there are more than may be looked at, whatever their project is", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3]) await store.dispatch([dispatchOf({ server, task: server, hosts: [0] })]);
    expect(await store.serversChanged({ ...changesSince(0), looksMax: 3 })).toHaveProperty("servers.length", 3);
    for (const projectId of [null, "another"])
      expect(await store.serversChanged({ ...changesSince(0), projectId, looksMax: 2 })).toEqual({ kind: "too-many" });
  });

  test("of the changed servers, only those that are deleted are returned and counted when these are asked for", async () => {
    const { store } = cell();
    for (const server of [1, 2, 3]) await store.dispatch([dispatchOf({ server, task: server, hosts: [0] })]);
    const deleted = { ...changesSince(0), deleted: true, looksMax: 1 };
    expect(await store.serversChanged(deleted)).toEqual({ kind: "found", servers: [] });
    await store.requestDelete([deleteTask(2, 9)]);
    expect(await store.serversChanged(deleted)).toEqual({ kind: "found", servers: [] });
    await store.commitDeleted([tenureOf(await cell().take(9))]);
    const found = await store.serversChanged(deleted);
    expect(found).toEqual({ kind: "found", servers: await store.servers([serverId(2)]) });
    const [server] = await store.servers([serverId(2)]);
    expect(server?.status).toBe("DELETED");
    const later = { ...deleted, sinceMs: server!.updatedAtMs + 1 };
    expect(await store.serversChanged(later)).toEqual({ kind: "found", servers: [] });
  });
}
