import { describe, expect, test } from "vitest";
import type { ComparedHost } from "../../core/stores/cell/operation-store.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import { conductorId, dispatchOf, hostName, numbered, providerOf, serverId, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";
import { moveId, operationsIn, UNSEEN_MS } from "./operations-under-test.ts";

/** Hosts that were compared and have no guests for which anything is held. */
const gone = (...hosts: string[]): ComparedHost[] => hosts.map((host) => ({ host, remaining: [] }));

/** The guarantees for operations: how they begin, and how their steps are committed. */
export function operationContract(cell: () => CellUnderTest): void {
  const { boot, begin, take, transition, held } = operationsIn(cell);

  describe("an operation that begins", () => {
    test("claims its destination, and transfers the source's allocation to the migration", async () => {
      const { store } = cell();
      await boot();
      expect((await begin()).outcome).toEqual({ kind: "begun", xid: expect.any(Number) });
      expect(await held(serverId(1), moveId)).toEqual([3, 2]);
      expect(await cell().used()).toEqual([2, 3, 0]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "ACTIVE", taskState: "resize_prep", host: "host-0", revision: 1 },
      ]);
      expect(await store.migrations({ serverUuid: serverId(1), limit: 9 })).toMatchObject([
        {
          uuid: moveId,
          kind: "resize",
          status: "pre-migrating",
          sourceHost: "host-0",
          sourceAttemptId: `${taskId(1)}/0`,
          destHost: "host-1",
          destAttemptId: `${moveId}/0`,
          ended: false,
          holdsSource: false,
        },
      ]);
      expect(await store.homes([serverId(1)])).toMatchObject([
        {
          busy: true,
          revision: 1,
          move: { uuid: moveId, kind: "resize", dest: { host: "host-1", attemptId: `${moveId}/0` } },
        },
      ]);
      const [position] = await store.positions([moveId, "nonsense", taskId(1)]);
      expect(position).toEqual({
        taskId: moveId,
        stage: "preparing",
        step: 1,
        selection: 0,
        signal: null,
        reason: "",
        revision: 1,
      });
    });

    test("is the only one: a second operation learns which one runs, and a repeated one that it exists", async () => {
      const { store } = cell();
      await boot();
      const first = await begin();
      const again = { taskState: null, revision: 1 };
      const [server] = await store.servers([serverId(1)]);
      expect(server?.taskState).not.toBe(again.taskState);
      expect((await begin({ taskId: numbered(0xe, 2), kind: "stop" })).outcome).toEqual({
        kind: "busy",
        running: "resize_prep",
      });
      const write = writeOf(factsOf(first.task as Task), {
        from: null,
        to: "preparing",
        selection: 0,
        reason: "",
        noted: [],
        unseenMs: 0,
      });
      const task = first.task as Task;
      const other = { ...task, id: numbered(0xe, 3) };
      expect(
        await store.begin([
          { task, revision: 0, status: "ACTIVE", write },
          { task: other, revision: 1, status: "ACTIVE", write },
        ]),
      ).toEqual([{ kind: "already-begun" }, { kind: "busy", running: "resize" }]);
      expect(await held(serverId(1), moveId)).toEqual([3, 2]);
    });

    test("requires the server as it was planned for, and finds room", async () => {
      const { store } = cell();
      await boot();
      await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [1], vcpus: 9 })]);
      expect((await begin()).outcome).toMatchObject({
        kind: "no-capacity",
        shortfalls: [{ reason: "capacity", requested: 3, used: 9, limit: 10 }],
      });
      expect(await held(serverId(1), moveId)).toEqual([2, null]);
      expect(await store.migrations({ limit: 9 })).toEqual([]);
      const stop = await begin({ kind: "stop" });
      const task = { ...(stop.task as Task), id: numbered(0xe, 4) };
      const write = writeOf(factsOf(task), {
        from: null,
        to: "powering",
        selection: 0,
        reason: "",
        noted: [],
        unseenMs: 0,
      });
      await store.commitStep([transition(await take(moveId), 1, "succeed", { stage: "powering", selection: 0 })]);
      expect(await store.begin([{ task, revision: 0, status: "ACTIVE", write }])).toEqual([{ kind: "changed" }]);
      expect((await begin({ kind: "pause" })).outcome).toMatchObject({ kind: "wrong-status", status: "SHUTOFF" });
    });

    test("on the same host needs only the difference, in either direction", async () => {
      await boot(8);
      expect((await begin({ hosts: [0], vcpus: 10 })).outcome.kind).toBe("begun");
      expect(await held(serverId(1), moveId)).toEqual([10, null]);
      await cell().store.commitStep([transition(await take(moveId), 1, "restoring")]);
      expect(await held(serverId(1), moveId)).toEqual([8, null]);
    });

    test("as an evacuation without a fence needs a host that was not seen lately", async () => {
      const { store } = cell();
      await boot();
      await store.hostsUp("agent-0", [{ name: hostName(0), rootProvider: providerOf(0) }]);
      const evacuate = { kind: "evacuate", hosts: [1], vcpus: 2, fenceWaived: true } as const;
      expect((await begin(evacuate)).outcome).toEqual({ kind: "host-seen" });
      await store.expireAgents(0);
      expect((await begin(evacuate)).outcome).toEqual({ kind: "host-seen" });
      expect((await begin({ ...evacuate, unseenMs: 0 })).outcome.kind).toBe("begun");
      await store.agentArrived("agent-0", ["host-0"]);
      const taken = await take(moveId);
      expect(await store.commitStep([transition(taken, 1, "starting")])).toMatchObject([{ kind: "refused" }]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-0" }]);
    });
  });

  test("as an evacuation without a fence notices a host that comes back with an agent of another name", async () => {
    const { store } = cell();
    await boot();
    await store.hostsUp("agent-0", [{ name: hostName(0), rootProvider: providerOf(0) }]);
    await store.expireAgents(0);
    const evacuate = { kind: "evacuate", hosts: [1], vcpus: 2, fenceWaived: true, unseenMs: 0 } as const;
    expect((await begin(evacuate)).outcome.kind).toBe("begun");
    await store.agentArrived("agent-0-reinstalled", ["host-0", "a host that the cell does not know"]);
    const taken = await take(moveId);
    expect(await store.commitStep([transition(taken, 1, "starting")])).toMatchObject([{ kind: "refused" }]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-0" }]);
    expect(await store.sightings(["host-0"])).toMatchObject([{ name: "host-0", up: false }]);
  });

  describe("a step of an operation", () => {
    test("is written once, under its epoch, after the previous step", async () => {
      const { store } = cell();
      await boot();
      await begin();
      const old = await take(moveId);
      const taken = await take(moveId);
      const step = transition(taken, 1, "handing-over");
      expect(await store.commitStep([transition(old, 1, "handing-over")])).toEqual([{ kind: "fenced" }]);
      expect(await store.commitStep([step, step])).toEqual([
        { kind: "committed", revision: 2 },
        { kind: "committed", revision: 2 },
      ]);
      expect(await store.commitStep([transition(taken, 1, "restoring")])).toEqual([{ kind: "fenced" }]);
      expect(await store.commitStep([transition(taken, 3, "starting")])).toEqual([{ kind: "fenced" }]);
      expect(await store.positions([moveId])).toMatchObject([{ stage: "handing-over", step: 2, revision: 2 }]);
    });

    test("hops to the alternate: the first destination's claim is swapped for the second's, and a full host is refused", async () => {
      const { store } = cell();
      await boot();
      await begin();
      const taken = await take(moveId);
      await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [2], vcpus: 9 })]);
      const hop = transition(taken, 1, "preparing", { stage: "preparing", selection: 0 }, 1);
      expect(await store.commitStep([hop])).toMatchObject([
        { kind: "refused", why: expect.stringContaining("9 of 10") },
      ]);
      expect(await cell().used()).toEqual([2, 3, 9]);
      const [other] = await store.takeTasks(conductorId(0), [taskId(2)]);
      if (other !== undefined)
        await store.commitError([{ ...tenureOf(other), selection: 0, attemptReason: "x", reason: "x" }]);
      expect(await store.commitStep([hop])).toEqual([{ kind: "committed", revision: 2 }]);
      expect(await cell().used()).toEqual([2, 0, 3]);
      expect(await store.migrations({ host: "host-2", limit: 9 })).toMatchObject([{ destAttemptId: `${moveId}/1` }]);
      expect((await store.attempts(serverId(1))).filter((attempt) => attempt.taskId === moveId)).toMatchObject([
        { selection: 0, result: null },
        { selection: 1, host: "host-2", result: null },
      ]);
    });

    test("that ended a move leaves it to be confirmed, in pages by the UUIDs of the servers", async () => {
      const { store } = cell();
      await boot();
      await store.dispatch([dispatchOf({ server: 2, task: 2, hosts: [0], vcpus: 2 })]);
      await store.commitActive([{ ...tenureOf(await cell().take(2)), selection: 0 }]);
      for (const server of [2, 1]) {
        await begin({ server, kind: "migrate", hosts: [server], vcpus: 2, taskId: numbered(0xe, server) });
        const byHand = new OperationByHand(store, numbered(0xe, server));
        for (const to of ["handing-over", "starting", "succeed"] as const)
          expect(await byHand.goOn(to)).toMatchObject({ kind: "committed" });
      }
      const pageAfter = async (after: string | null, limit: number) =>
        (await store.unconfirmed(0, limit, after)).map(({ serverUuid }) => serverUuid);
      expect(await pageAfter(null, 9)).toEqual([serverId(1), serverId(2)]);
      expect(await pageAfter(null, 1)).toEqual([serverId(1)]);
      expect(await pageAfter(serverId(0), 1)).toEqual([serverId(1)]);
      expect(await pageAfter(serverId(1), 1)).toEqual([serverId(2)]);
      expect(await pageAfter(serverId(2), 1)).toEqual([]);
    });

    test("brings the server to its destination, and a confirmation settles the source", async () => {
      const { store } = cell();
      await boot();
      await begin();
      const taken = await take(moveId);
      await store.commitStep([transition(taken, 1, "starting")]);
      await store.commitStep([transition(taken, 2, "succeed", { stage: "starting", selection: 0 })]);
      expect(await store.servers([serverId(1)])).toMatchObject([
        { status: "VERIFY_RESIZE", taskState: null, host: "host-1", attemptId: `${moveId}/0`, revision: 3 },
      ]);
      expect(await store.unconfirmed(0, 9, null)).toMatchObject([{ uuid: moveId, status: "finished" }]);
      expect(await store.unconfirmed(UNSEEN_MS, 9, null)).toEqual([]);
      const confirmId = numbered(0xe, 5);
      expect((await begin({ kind: "confirm", taskId: confirmId })).outcome.kind).toBe("begun");
      const confirm = await take(confirmId);
      await store.commitStep([transition(confirm, 1, "succeed", { stage: "cleaning", selection: 0 })]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", host: "host-1" }]);
      expect(await held(serverId(1), moveId)).toEqual([3, null]);
      expect(await store.migrations({ inFlightOnly: true, limit: 9 })).toEqual([]);
    });

    test("restores everything when it goes back to the source", async () => {
      const { store } = cell();
      await boot();
      await begin();
      const taken = await take(moveId);
      await store.commitStep([transition(taken, 1, "starting")]);
      await store.commitStep([transition(taken, 2, "restoring", { stage: "starting", selection: 0 })]);
      expect(await store.servers([serverId(1)])).toMatchObject([{ host: "host-0", attemptId: `${taskId(1)}/0` }]);
      expect(await held(serverId(1), moveId)).toEqual([2, null]);
      expect(await cell().used()).toEqual([2, 0, 0]);
    });
  });

  test("an evacuated host's allocation stays until the host is back", async () => {
    const { store } = cell();
    await boot();
    await begin({ kind: "evacuate", hosts: [1], vcpus: 2 });
    const taken = await take(moveId);
    await store.commitStep([transition(taken, 1, "starting")]);
    await store.commitStep([transition(taken, 2, "succeed", { stage: "starting", selection: 0 })]);
    expect(await store.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", host: "host-1" }]);
    expect(await cell().used()).toEqual([2, 2, 0]);
    expect(await store.releaseEvacuated(gone("host-1"))).toEqual([[]]);
    expect(await store.releaseEvacuated(gone("host-1", "host-0", "nowhere"))).toEqual([[], [moveId], []]);
    expect(await store.releaseEvacuated(gone("host-0"))).toEqual([[]]);
    expect(await cell().used()).toEqual([0, 2, 0]);
  });
}
