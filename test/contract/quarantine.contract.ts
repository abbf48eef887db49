import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { MOVE_BROKEN_OFF } from "../../core/stores/cell/operation-store.ts";
import {
  type DoomedGuest,
  QUARANTINE_DISABLES,
  type QuarantineAdmin,
  SERVER_UNCERTAIN,
} from "../../core/stores/cell/quarantine.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  numbered,
  providerOf,
  serverId,
  taskId,
} from "./cell-fixtures.ts";
import { testInventedGuests } from "./invented-guests.ts";
import { testStartsBesideQuarantine } from "./starts-beside-quarantine.ts";
import { testUnseenGuests } from "./unseen-guests.ts";

export interface QuarantineSubject {
  readonly cell: CellStore;
  readonly admin: HostAdminStore;
  readonly quarantine: QuarantineAdmin;
  readonly ledger: Ledger;
  close(): Promise<void>;
}

/** The guarantees of both implementations of the quarantine. */
export function quarantineContract(name: string, makeSubject: () => Promise<QuarantineSubject>): void {
  describe(`the quarantine in ${name}`, () => {
    let subject: QuarantineSubject;
    let cell: CellStore;
    beforeEach(async () => {
      subject = await makeSubject();
      cell = subject.cell;
      await subject.ledger.putTrees([hostTree(0, 8), hostTree(1, 8)]);
      for (const host of [0, 1])
        await cell.hostsUp(`agent-${host}`, [{ name: hostName(host), rootProvider: providerOf(host) }]);
      await cell.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
      // Server 1 is ACTIVE on host-0 by the first attempt of its build.
      await cell.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0, 1] })]);
      const [taken] = await cell.takeTasks(conductorId(0), [taskId(1)]);
      if (taken === undefined) throw new Error("it cannot be taken");
      await cell.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken.epoch, selection: 0 }]);
    });
    afterEach(() => subject.close());
    testInventedGuests(() => subject);
    testStartsBesideQuarantine(() => subject);
    testUnseenGuests(() => subject);

    const stranger = (fields: Partial<DoomedGuest> = {}): DoomedGuest => ({
      host: "host-1",
      serverUuid: serverId(9),
      attemptId: `${numbered(0xe, 9)}/0`,
      state: "running",
      revision: 0,
      incarnation: "",
      ...fields,
    });
    const uncertainServer = {
      ...{ serverUuid: serverId(1), host: hostName(0), attemptId: `${taskId(1)}/0`, fault: "It may run elsewhere." },
    };
    const kinds = async (...guests: DoomedGuest[]) => (await cell.judgeGuests(guests)).map(({ kind }) => kind);
    const same = () => cell.incarnation();

    test("lets known guests be destroyed, and reports unknown ones", async () => {
      const incarnation = await same();
      const failed = stranger({ serverUuid: serverId(1), attemptId: `${taskId(1)}/0`, incarnation });
      const nonsense = stranger({ attemptId: "nonsense", incarnation });
      expect(await kinds(failed, stranger({ incarnation }), nonsense)).toEqual(["destroy", "unknown", "unknown"]);
      expect(await subject.quarantine.quarantined()).toEqual([]);
      expect(await subject.admin.adminHosts(["host-1"])).toMatchObject([{ disabled: false }]);
    });

    test("keeps a guest that an earlier incarnation does not know, and its host takes no new servers", async () => {
      const before = await same();
      const renewed = await subject.quarantine.renewIncarnation();
      expect([renewed !== before, await same()]).toEqual([true, renewed]);
      expect(await cell.restoredAgoMs()).toBeGreaterThanOrEqual(0);
      const unknown = stranger({ incarnation: before });
      // The build has not reached its second selection, and the move is not known at all.
      const later = stranger({ serverUuid: serverId(1), attemptId: `${taskId(1)}/1`, incarnation: before });
      const moved = stranger({ serverUuid: serverId(1), attemptId: `${numbered(0xe, 7)}/0`, incarnation: before });
      const known = { ...later, host: "host-0", attemptId: `${taskId(1)}/0` };
      expect(await cell.judgeGuests([unknown, later, moved, known])).toEqual([
        { kind: "quarantined", reason: expect.stringContaining("does not know its server") },
        { kind: "quarantined", reason: expect.stringContaining("does not know this attempt") },
        { kind: "quarantined", reason: expect.stringContaining("does not know this attempt") },
        { kind: "destroy", reason: null },
      ]);
      expect(await subject.quarantine.quarantined()).toHaveLength(3);
      expect(await subject.admin.adminHosts(null)).toMatchObject([
        { name: "host-0", disabled: false },
        { name: "host-1", disabled: true, disabledReason: QUARANTINE_DISABLES },
      ]);
      await subject.admin.setDisabled("host-1", false, null);
      // By now the agent knows the new incarnation. The guest stays in quarantine, and is reported once.
      expect(await cell.judgeGuests([{ ...unknown, incarnation: renewed }])).toEqual([
        { kind: "quarantined", reason: null },
      ]);
      // The operator's setting for the host stands.
      expect(await subject.admin.adminHosts(["host-1"])).toMatchObject([{ disabled: false }]);
    });

    test("goes by its own comparisons of the host where the agent has lost its journal, and keeps unknown guests if there was none", async () => {
      const known = stranger({ serverUuid: serverId(1), attemptId: `${taskId(1)}/0` });
      await cell.noteCompared([{ host: "host-1", incarnation: await same() }]);
      expect(await kinds(known, stranger())).toEqual(["destroy", "unknown"]);
      await subject.quarantine.renewIncarnation();
      expect(await cell.judgeGuests([known, stranger(), stranger({ host: "host-2" })])).toEqual([
        { kind: "destroy", reason: null },
        { kind: "quarantined", reason: expect.stringContaining("was never compared with its host") },
        { kind: "quarantined", reason: expect.stringContaining("does not know its server") },
      ]);
      await cell.noteCompared([{ host: "host-1", incarnation: await same() }]);
      expect(await kinds(stranger(), stranger({ attemptId: "another/0" }))).toEqual(["quarantined", "unknown"]);
    });

    test("disables a host that reports only later", async () => {
      const incarnation = await same();
      await subject.quarantine.renewIncarnation();
      const guest = stranger({ incarnation, host: "host-2" });
      expect(await kinds(guest)).toEqual(["quarantined"]);
      await subject.ledger.putTrees([hostTree(2, 8)]);
      await cell.hostsUp("agent-2", [{ name: "host-2", rootProvider: providerOf(2) }]);
      expect(await kinds(guest)).toEqual(["quarantined"]);
      expect(await subject.admin.adminHosts(["host-2"])).toMatchObject([{ disabled: true }]);
    });

    test("keeps a guest that has obeyed a later order than its server's row knows of, whatever the incarnation", async () => {
      const guest = stranger({ serverUuid: serverId(1), attemptId: `${taskId(1)}/0`, incarnation: await same() });
      const [server] = await cell.servers([serverId(1)]);
      const revision = server?.revision ?? 0;
      expect(await kinds({ ...guest, revision })).toEqual(["destroy"]);
      expect(await kinds({ ...guest, revision: revision + 1 })).toEqual(["quarantined"]);
      await cell.raiseRevisions([
        { serverUuid: serverId(1), revision: revision + 4 },
        { serverUuid: serverId(1), revision: revision + 2 },
        { serverUuid: serverId(9), revision: 1 },
      ]);
      expect(await cell.servers([serverId(1)])).toMatchObject([{ revision: revision + 4 }]);
      await cell.raiseRevisions([{ serverUuid: serverId(1), revision }]);
      expect(await cell.servers([serverId(1)])).toMatchObject([{ revision: revision + 4 }]);
    });

    test("marks a server at rest as uncertain once, and only for an order that its row does not know", async () => {
      const [server] = await cell.servers([serverId(1)]);
      const revision = (server?.revision ?? 0) + 3;
      const uncertain = { ...uncertainServer, revision };
      expect(
        await cell.markUncertain([
          { ...uncertain, host: hostName(1) },
          { ...uncertain, serverUuid: serverId(9) },
        ]),
      ).toEqual([false, false]);
      expect(await cell.markUncertain([{ ...uncertain, attemptId: `${taskId(1)}/1` }])).toEqual([false]);
      expect(await cell.markUncertain([{ ...uncertain, revision: server?.revision ?? 0 }])).toEqual([false]);
      expect(await cell.servers([serverId(1)])).toMatchObject([{ status: "ACTIVE", fault: null }]);
      expect(await cell.markUncertain([uncertain])).toEqual([true]);
      const marked = {
        status: "ERROR",
        revision,
        host: hostName(0),
        fault: { message: "It may run elsewhere." },
      };
      expect(await cell.servers([serverId(1)])).toMatchObject([marked]);
      expect(await cell.markUncertain([{ ...uncertain, revision: revision + 1 }])).toEqual([false]);
    });

    test.each(["hard-reboot", "rebuild"] as const)(
      "refuses a %s of an uncertain server until an operator has set it to active",
      async (kind) => {
        const begin = async () => {
          const hosts = kind === "rebuild" ? [0] : [];
          return (await beginOperationOn(cell, { server: 1, kind, hosts })).outcome;
        };
        const refused = { kind: "refused", why: SERVER_UNCERTAIN, inFlight: false };
        const reset = (status: "ACTIVE" | "ERROR") => cell.resetStatus([{ serverUuid: serverId(1), status }]);
        expect(await cell.markUncertain([{ ...uncertainServer, revision: 7 }])).toEqual([true]);
        expect(await begin()).toEqual(refused);
        await reset("ERROR");
        expect(await begin()).toEqual(refused);
        await reset("ACTIVE");
        await reset("ERROR");
        expect(await begin()).toMatchObject({ kind: "begun" });
      },
    );

    test("lets an uncertain server be deleted", async () => {
      expect(await cell.markUncertain([{ ...uncertainServer, revision: 7 }])).toEqual([true]);
      expect(await cell.requestDelete([deleteTask(1, 1_001)])).toMatchObject([{ kind: "queued" }]);
    });

    test("lets an uncertain server be deleted softly, and then does not restore it until an operator has set it to active", async () => {
      expect(await cell.markUncertain([{ ...uncertainServer, revision: 7 }])).toEqual([true]);
      const { task } = await beginOperationOn(cell, { server: 1, kind: "soft-delete" });
      await new OperationByHand(cell, task?.id ?? "").goOn("succeed");
      const restored = await beginOperationOn(cell, { server: 1, kind: "restore" });
      expect(restored.outcome).toEqual({ kind: "refused", why: SERVER_UNCERTAIN, inFlight: false });
    });

    test("marks a server as uncertain whose operation ends because guests have obeyed forgotten orders", async () => {
      const { task } = await beginOperationOn(cell, { server: 1, kind: "hard-reboot" });
      await new OperationByHand(cell, task?.id ?? "").goOn("lost", 0, true);
      const again = await beginOperationOn(cell, { server: 1, kind: "hard-reboot" });
      expect(again.outcome).toEqual({ kind: "refused", why: SERVER_UNCERTAIN, inFlight: false });
    });

    test("does not mark a server as uncertain while a task of it runs", async () => {
      await beginOperationOn(cell, { server: 1, kind: "stop" });
      expect(await cell.markUncertain([{ ...uncertainServer, revision: 99 }])).toEqual([false]);
    });

    describe("of a guest that has run", () => {
      const guestOf = async (fields: Pick<DoomedGuest, "host" | "attemptId">, server = 1) =>
        stranger({ serverUuid: serverId(server), incarnation: await same(), ...fields });
      const unstarted = {
        kind: "quarantined",
        reason: expect.stringContaining("does not know that this attempt of its server was started"),
      };

      test("keeps one whose build has not succeeded as far as the database knows", async () => {
        await cell.dispatch([dispatchOf({ server: 2, task: 2, hosts: [0, 1] })]);
        const guest = await guestOf({ host: "host-0", attemptId: `${taskId(2)}/0` }, 2);
        const prepared = { ...guest, state: "prepared" };
        expect(await cell.judgeGuests([prepared, guest])).toEqual([{ kind: "destroy", reason: null }, unstarted]);
        // It is kept until an operator decides, even when it is found in another state.
        expect(await cell.judgeGuests([prepared])).toEqual([{ kind: "quarantined", reason: null }]);
      });

      test("lets one be destroyed whose build has succeeded, or whose server was deleted", async () => {
        expect(await kinds(await guestOf({ host: "host-0", attemptId: `${taskId(1)}/0` }))).toEqual(["destroy"]);
        await cell.dispatch([dispatchOf({ server: 2, task: 2, hosts: [0, 1] })]);
        const [deleting] = await cell.requestDelete([deleteTask(2, 1_002)]);
        const [taken] = await cell.takeTasks(conductorId(0), [taskId(1_002)]);
        expect([deleting?.kind, taken?.epoch]).toEqual(["queued", 1]);
        const claim = { taskId: taskId(1_002), serverUuid: serverId(2), epoch: 1 };
        expect(await cell.commitDeleted([{ ...claim, migrations: [], left: [] }])).toEqual([{ kind: "committed" }]);
        expect(await kinds(await guestOf({ host: "host-0", attemptId: `${taskId(2)}/0` }, 2))).toEqual(["destroy"]);
      });

      test("keeps a move's destination until the move has reached its start", async () => {
        const { task } = await beginOperationOn(cell, { server: 1, kind: "live-migrate", hosts: [1] });
        const id = task?.id ?? "";
        const byHand = new OperationByHand(cell, id);
        const destination = await guestOf({ host: "host-1", attemptId: `${id}/0` });
        for (const stage of ["handing-over", "starting"] as const) {
          expect(await cell.judgeGuests([{ ...destination, state: "prepared" }])).toMatchObject([{ kind: "destroy" }]);
          await byHand.goOn(stage);
        }
        expect(await kinds(destination, { ...destination, state: "stopped" })).toEqual(["destroy", "destroy"]);
      });

      test("keeps a move's destination that the move has left before starting it", async () => {
        const { task } = await beginOperationOn(cell, { server: 1, kind: "live-migrate", hosts: [1] });
        const id = task?.id ?? "";
        const byHand = new OperationByHand(cell, id);
        for (const to of ["handing-over", "restoring", "give-up"] as const) await byHand.goOn(to);
        const destination = await guestOf({ host: "host-1", attemptId: `${id}/0` });
        expect(await cell.judgeGuests([destination])).toEqual([unstarted]);
      });
    });

    test.each(["rebuild", "hard-reboot", "rescue"] as const)(
      "refuses a %s of a server in ERROR whose last move was broken off",
      async (kind) => {
        const { task } = await beginOperationOn(cell, { server: 1, kind: "live-migrate", hosts: [1] });
        const id = task?.id ?? "";
        expect(await new OperationByHand(cell, id).goOn("lost")).toMatchObject({ kind: "committed" });
        expect(await cell.servers([serverId(1)])).toMatchObject([{ status: "ERROR", taskState: null, host: "host-0" }]);
        // Its allocation is not all at its home, and it may run elsewhere.
        const again = await beginOperationOn(cell, { server: 1, kind, hosts: kind === "rebuild" ? [0] : [] });
        expect(again.outcome).toEqual({ kind: "refused", why: MOVE_BROKEN_OFF, inFlight: false });
        expect(await cell.requestDelete([deleteTask(1, 1_001)])).toMatchObject([{ kind: "queued" }]);
      },
    );

    describe("with a guest of a server in it, which may run", () => {
      const quarantine = async (server: number) => {
        const incarnation = await same();
        await subject.quarantine.renewIncarnation();
        const guest = { incarnation, serverUuid: serverId(server), attemptId: `${numbered(0xe, server)}/0` };
        expect(await kinds(stranger(guest))).toEqual(["quarantined"]);
      };
      const boot = (server: number) => dispatchOf({ server, task: server, hosts: [0] });

      test("does not build the server until an operator has condemned the guest", async () => {
        await quarantine(2);
        const batch = [boot(3), boot(2), boot(1)];
        expect(await cell.dispatch(batch)).toMatchObject([
          { kind: "dispatched" },
          { kind: "quarantined" },
          { kind: "already-dispatched" },
        ]);
        expect(await cell.servers([serverId(2)])).toEqual([]);
        expect(await cell.holdings([serverId(2), serverId(3)])).toMatchObject([null, { items: [{}] }]);
        await subject.quarantine.condemn([serverId(2)]);
        expect(await cell.dispatch([boot(2)])).toMatchObject([{ kind: "dispatched" }]);
      });

      test("tells a scheduler that leaves the cell, so that the server is not built in another one", async () => {
        await quarantine(2);
        const closing = (server: number) => ({ serverUuid: serverId(server), assignment: 1 });
        expect(await cell.close([closing(1), closing(2), closing(3)])).toEqual(["present", "quarantined", "closed"]);
        expect(await cell.dispatch([boot(2)])).toMatchObject([{ kind: "quarantined" }]);
        await subject.quarantine.condemn(null);
        expect(await cell.close([closing(2)])).toEqual(["closed"]);
        expect(await cell.dispatch([boot(2)])).toMatchObject([{ kind: "closed" }]);
      });

      test("tells attempts of the server from those of others, and from the guest's own attempt", async () => {
        await quarantine(2);
        const attempt = (server: number, task: string) => ({ serverUuid: serverId(server), attemptId: `${task}/0` });
        const asked = [attempt(1, taskId(1)), attempt(2, taskId(2)), attempt(2, numbered(0xe, 2))];
        expect(await cell.othersInQuarantine(asked)).toEqual([false, true, false]);
        await subject.quarantine.condemn(null);
        expect(await cell.othersInQuarantine(asked)).toEqual([false, false, false]);
      });

      test("does not make the server ACTIVE at the end of its build, but others as usual, and repeats an earlier commit", async () => {
        const builds = [2, 3];
        await cell.dispatch(builds.map(boot));
        const taken = await cell.takeTasks(conductorId(0), builds.map(taskId));
        const commits = taken.map(({ task, epoch }) => ({
          ...{ taskId: task.id, serverUuid: task.server?.uuid ?? "", epoch, selection: 0 },
        }));
        commits.sort((a, b) => (a.taskId < b.taskId ? -1 : 1));
        await quarantine(2);
        expect(await cell.commitActive(commits)).toEqual([{ kind: "quarantined" }, { kind: "committed" }]);
        expect(await cell.servers(builds.map(serverId))).toMatchObject([{ status: "BUILD" }, { status: "ACTIVE" }]);
        await subject.quarantine.condemn([serverId(2)]);
        expect(await cell.commitActive(commits)).toEqual([{ kind: "committed" }, { kind: "committed" }]);
        await quarantine(3);
        expect(await cell.commitActive(commits)).toEqual([{ kind: "committed" }, { kind: "committed" }]);
      });

      test("makes the server ACTIVE whose own guest is the one in quarantine", async () => {
        await cell.dispatch([boot(2)]);
        const [taken] = await cell.takeTasks(conductorId(0), [taskId(2)]);
        const own = { serverUuid: serverId(2), host: hostName(0), attemptId: `${taskId(2)}/0`, revision: 7 };
        expect(await kinds(stranger(own))).toEqual(["quarantined"]);
        const commit = { taskId: taskId(2), serverUuid: serverId(2), epoch: taken?.epoch ?? 0, selection: 0 };
        expect(await cell.commitActive([commit])).toEqual([{ kind: "committed" }]);
      });
    });

    test("lets a guest be destroyed that an operator has condemned", async () => {
      const incarnation = await same();
      await subject.quarantine.renewIncarnation();
      const [one, other] = [
        stranger({ incarnation }),
        stranger({ incarnation, serverUuid: serverId(8), attemptId: "x/0" }),
      ];
      await cell.judgeGuests([one, other]);
      expect(await subject.quarantine.condemn([serverId(9), serverId(5)])).toBe(1);
      expect(await kinds(one, other)).toEqual(["destroy", "quarantined"]);
      expect(await subject.quarantine.quarantined()).toMatchObject([
        { host: "host-1", serverUuid: serverId(9), state: "running", condemned: true, foundAtMs: expect.any(Number) },
        { host: "host-1", serverUuid: serverId(8), condemned: false },
      ]);
      expect(await subject.quarantine.condemn(null)).toBe(2);
      expect(await kinds(other)).toEqual(["destroy"]);
    });

    test("forgets guests that are gone from the compared hosts", async () => {
      const incarnation = await same();
      const renewed = await subject.quarantine.renewIncarnation();
      const there = stranger({ incarnation });
      await cell.judgeGuests([
        there,
        stranger({ incarnation, attemptId: "gone/0" }),
        stranger({ incarnation, host: "host-0" }),
      ]);
      const quarantined = async () =>
        (await cell.hostRecords(["host-1", "host-0", "elsewhere"])).map((record) => record.quarantined);
      expect(await quarantined()).toEqual([[there.attemptId, "gone/0"].sort(), [there.attemptId], []]);
      expect(await cell.hostRecords(["host-0"])).toMatchObject([{ incarnation: renewed }]);
      await cell.keepQuarantined([
        { host: "host-1", attemptIds: [there.attemptId] },
        { host: "elsewhere", attemptIds: [] },
      ]);
      expect(await quarantined()).toEqual([[there.attemptId], [there.attemptId], []]);
      expect(await subject.quarantine.quarantined()).toMatchObject([
        { host: "host-0", attemptId: there.attemptId },
        { host: "host-1", attemptId: there.attemptId },
      ]);
      await cell.noteCompared(["host-0", "host-1"].map((host) => ({ host, incarnation: renewed })));
      expect(await cell.guestsLeft([there.serverUuid, serverId(77)])).toEqual([true, false]);
    });
  });
}
