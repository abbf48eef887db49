import { beforeEach, describe, expect, test } from "vitest";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid, resourceClass } from "../../core/ledger/ids.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { INSTANCE } from "../rigs/ledger-builders.ts";
import { conductorId, dispatchOf, hostTree as oneProvider, providerOf, serverId, taskId } from "./cell-fixtures.ts";
import { GPU, HOST, hostTree } from "./ledger-scene.ts";

interface Subject {
  readonly admin: HostAdminStore;
  readonly ledger: Ledger;
  readonly cell: CellStore;
}

const HOUR_MS = 3_600_000;

/** The guarantees of the removal of hosts and conductors. The cell has `host`, a tree of two providers, and `host-7`, both of `agent-1`. */
export function hostRemovals(subject: () => Subject): void {
  describe("the removal of a host", () => {
    const remove = (host: string, unseenMs = 0) => subject().admin.removeHost(host, unseenMs);
    const providers = async () => (await subject().ledger.dump()).providers.map(({ name }) => name).sort();
    const boot = (server: number, hosts: readonly number[]) =>
      subject().cell.dispatch([dispatchOf({ server, task: server, hosts })]);

    test("takes its tree, its settings and its ratios along, and leaves other hosts alone", async () => {
      const { admin, cell, ledger } = subject();
      await admin.setRatios([{ rootProvider: HOST, ratios: { VCPU: 8 } }]);
      await admin.setDisabled("host", true, "it is sold");
      expect(await remove("host")).toBe("removed");
      expect(await remove("host")).toBe("unknown");
      expect((await admin.adminHosts(null)).map(({ name }) => name)).toEqual(["host-7"]);
      expect(await providers()).toEqual(["host-7"]);
      await ledger.reportTrees([hostTree()]);
      await cell.hostsUp("agent-1", [{ name: "host", rootProvider: HOST }]);
      expect(await admin.adminHosts(["host"])).toMatchObject([
        { up: true, disabled: false, disabledReason: null, forcedDown: false },
      ]);
      const { providers: trees } = await ledger.dump();
      expect([...(trees.find(({ uuid }) => uuid === HOST)?.traits ?? [])]).toEqual([]);
      expect(await admin.inventories("host")).toMatchObject([
        { resourceClass: "CUSTOM_GPU_MILLI", allocationRatio: 1, reportedRatio: null },
        { resourceClass: "MEMORY_MB", allocationRatio: 1, reportedRatio: null },
        { resourceClass: "VCPU", allocationRatio: 1, reportedRatio: null },
      ]);
    });

    test("ends it: a host that comes up afterwards is no host without its tree, and is a new one with it", async () => {
      const { admin, cell, ledger } = subject();
      await admin.setForcedDown("host", true);
      expect(await remove("host", HOUR_MS)).toBe("removed");
      const both = [
        { name: "host", rootProvider: HOST },
        { name: "host-7", rootProvider: providerOf(7) },
      ];
      expect(await cell.hostsUp("agent-1", both)).toEqual(["host"]);
      expect((await admin.adminHosts(null)).map(({ name }) => name)).toEqual(["host-7"]);
      await ledger.reportTrees([hostTree()]);
      expect(await cell.hostsUp("agent-1", both)).toEqual([]);
      expect((await admin.adminHosts(null)).map(({ name }) => name)).toEqual(["host", "host-7"]);
    });

    test("and reports that bring the host up at the same moment: the host has its tree, or is gone with it", async () => {
      const { admin, cell } = subject();
      for (let host = 30; host < 50; host += 1) {
        const name = `host-${host}`;
        const up = () => cell.hostsUp("agent-3", [{ name, rootProvider: providerOf(host) }]);
        await subject().ledger.reportTrees([oneProvider(host, 8)]);
        if (host % 2 === 0) await up();
        const [removal] = await Promise.all([remove(name), up(), up()]);
        const stays = removal === "unknown";
        expect(removal).toBe(stays ? "unknown" : "removed");
        expect((await admin.adminHosts([name])).length).toBe(stays ? 1 : 0);
        expect((await providers()).includes(name)).toBe(stays);
      }
    });

    test("is refused while its agent is heard, unless an operator has forced the host down", async () => {
      const { admin } = subject();
      expect(await remove("host", HOUR_MS)).toBe("agent-seen");
      expect(await providers()).toEqual(["gpu", "host", "host-7"]);
      await admin.setForcedDown("host", true);
      expect(await remove("host", HOUR_MS)).toBe("removed");
      expect(await admin.adminHosts(["host"])).toEqual([]);
    });

    test("is refused while another consumer holds something of a provider of its tree", async () => {
      const { ledger } = subject();
      const held = { provider: GPU, resourceClass: resourceClass("CUSTOM_GPU_MILLI"), amount: 10 };
      await ledger.applyAllocations([claim(consumerUuid(serverId(1)), INSTANCE, [held])]);
      expect(await remove("host")).toBe("has-allocations");
      expect(await providers()).toEqual(["gpu", "host", "host-7"]);
    });

    describe("with a server", () => {
      const built = async () => {
        await boot(1, [7]);
        const [taken] = await subject().cell.takeTasks(conductorId(0), [taskId(1)]);
        if (taken === undefined) throw new Error("it cannot be taken");
        await subject().cell.commitActive([
          { taskId: taskId(1), serverUuid: serverId(1), epoch: taken.epoch, selection: 0 },
        ]);
      };
      beforeEach(async () => {
        await subject().ledger.reportTrees([oneProvider(8, 4)]);
        await subject().cell.hostsUp("agent-1", [{ name: "host-8", rootProvider: providerOf(8) }]);
        await subject().cell.renewLease({ id: conductorId(0), name: "c", leaseMs: HOUR_MS });
      });

      test("is refused while the server is built there, and while it lives there", async () => {
        await boot(2, [7]);
        expect(await remove("host-7")).toBe("has-servers");
        await built();
        expect(await remove("host-7")).toBe("has-servers");
        expect(await remove("host-8")).toBe("removed");
      });

      test("is refused at the source and at the destination of a move that has not ended", async () => {
        await built();
        const { outcome } = await beginOperationOn(subject().cell, { server: 1, kind: "migrate", hosts: [8] });
        expect(outcome.kind).toBe("begun");
        expect(await remove("host-8")).toBe("has-moves");
        expect(await remove("host-7")).toBe("has-servers");
      });
    });

    test("and builds that claim it at the same moment: either the host stays with the servers, or it is gone and nothing is claimed", async () => {
      const { admin, cell, ledger } = subject();
      for (let host = 20; host < 30; host += 1) {
        const name = `host-${host}`;
        await ledger.reportTrees([oneProvider(host, 8)]);
        await cell.hostsUp("agent-2", [{ name, rootProvider: providerOf(host) }]);
        const servers = [0, 1, 2, 3].map((at) => 10 * host + at);
        const [removal, ...claims] = await Promise.all([
          remove(name),
          ...servers.map((server) => boot(server, [host])),
        ]);
        const kinds = claims.flat().map(({ kind }) => kind);
        const isGone = removal === "removed";
        expect(removal).toBe(isGone ? "removed" : "has-servers");
        expect(kinds).toEqual(servers.map(() => (isGone ? "stale" : "dispatched")));
        expect((await admin.adminHosts([name])).length).toBe(isGone ? 0 : 1);
        const held = await Promise.all(servers.map((server) => ledger.allocationsOf(consumerUuid(serverId(server)))));
        expect(held.map(({ length }) => length)).toEqual(servers.map(() => (isGone ? 0 : 1)));
      }
    });
  });

  test("a conductor is forgotten only when its lease has expired", async () => {
    const { admin, cell } = subject();
    await cell.renewLease({ id: conductorId(1), name: "here", leaseMs: HOUR_MS });
    await cell.renewLease({ id: conductorId(2), name: "gone", leaseMs: 0 });
    expect(await admin.removeConductor(conductorId(1))).toBe(false);
    expect(await admin.removeConductor(conductorId(2))).toBe(true);
    expect((await admin.conductors()).map(({ name }) => name)).not.toContain("gone");
    expect((await admin.conductors()).map(({ name }) => name)).toContain("here");
  });
}
