import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { claim } from "../../core/ledger/allocation-change.ts";
import { aggregateUuid, consumerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import type { Provider } from "../../core/ledger/model.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import { type Transition, writeOf } from "../../core/tasks/operation-writes.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { INSTANCE, inventory, spec, tree } from "../rigs/ledger-builders.ts";
import {
  conductorId,
  dispatchOf,
  numbered,
  hostTree as oneProvider,
  providerOf,
  serverId,
  taskId,
} from "./cell-fixtures.ts";
import { hostRemovals } from "./host-removal.ts";
import { GPU, HOST, hostTree } from "./ledger-scene.ts";

export interface HostAdminSubject {
  readonly admin: HostAdminStore;
  readonly ledger: Ledger;
  readonly cell: CellStore;
  /** Advances a clock that stands still. */
  advance(): void;
  close(): Promise<void>;
}

const RED = "11111111-0000-4000-8000-000000000001";
const BLUE = "11111111-0000-4000-8000-000000000002";
const FOREIGN = "11111111-0000-4000-8000-000000000003";
const DISABLED = trait("COMPUTE_STATUS_DISABLED");

/** The transition of an evacuation from the prepared destination to its start. In this cloud hosts count as unseen at once. */
const SWITCH: Transition = {
  ...{ from: { stage: "preparing", selection: 0 }, to: "starting", selection: 0 },
  ...{ reason: "", noted: [], unseenMs: 0 },
};

/** The guarantees of both implementations of the operators' settings for a cell's hosts. */
export function hostAdminContract(name: string, makeSubject: () => Promise<HostAdminSubject>): void {
  describe(`operators' settings for hosts in ${name}`, () => {
    let subject: HostAdminSubject;
    let admin: HostAdminStore;
    beforeEach(async () => {
      subject = await makeSubject();
      admin = subject.admin;
      await subject.ledger.reportTrees([hostTree(), oneProvider(7, 4)]);
      await subject.cell.hostsUp("agent-1", [
        { name: "host", rootProvider: HOST },
        { name: "host-7", rootProvider: providerOf(7) },
      ]);
    });
    afterEach(() => subject.close());
    hostRemovals(() => subject);

    const providerAt = async (uuid: string): Promise<Provider> => {
      const found = (await subject.ledger.dump()).providers.find((provider) => provider.uuid === uuid);
      if (found === undefined) throw new Error(`no provider ${uuid}`);
      return found;
    };
    const ratiosOf = async (host: string) =>
      Object.fromEntries(
        (await admin.inventories(host)).map((one) => [one.resourceClass, [one.allocationRatio, one.reportedRatio]]),
      );

    test("a host that is forced down is fenced, and allocations that evacuations hold there can be released", async () => {
      const { cell, ledger } = subject;
      await ledger.reportTrees([oneProvider(8, 4)]);
      await cell.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
      await cell.dispatch([dispatchOf({ server: 1, task: 1, hosts: [7] })]);
      const take = async (id: string) => {
        const [taken] = await cell.takeTasks(conductorId(0), [id]);
        if (taken === undefined) throw new Error("it cannot be taken");
        return { taskId: id, serverUuid: serverId(1), epoch: taken.epoch };
      };
      await cell.commitActive([{ ...(await take(taskId(1))), selection: 0 }]);
      await admin.setForcedDown("host-7", true);
      const moveId = numbered(0xe, 1);
      const begun = await beginOperationOn(cell, { server: 1, kind: "evacuate", hosts: [8], taskId: moveId });
      if (begun.task === null) throw new Error("it did not begin");
      const facts = factsOf(begun.task);
      const at = { selection: 0, reason: "", noted: [], unseenMs: 0 };
      const claim = await take(moveId);
      const arrows = [
        { ...at, from: { stage: "preparing", selection: 0 }, to: "starting" },
        { ...at, from: { stage: "starting", selection: 0 }, to: "succeed" },
      ] as const;
      for (const [index, transition] of arrows.entries())
        await cell.commitStep([{ ...claim, step: index + 1, ...writeOf(facts, transition) }]);
      expect(await cell.fencedSources()).toEqual(["host-7"]);
      await admin.setForcedDown("host-7", false);
      expect(await cell.fencedSources()).toEqual([]);
      await admin.setForcedDown("host-7", true);
      expect(
        await cell.releaseEvacuated((await cell.fencedSources()).map((host) => ({ host, remaining: [] }))),
      ).toEqual([[moveId]]);
      expect(await cell.fencedSources()).toEqual([]);
    });

    describe("hosts that fall silent at once", () => {
      const names = (...numbers: readonly number[]) => numbers.map((number) => `host-${number}`);
      const up = async (hosts: readonly number[]) => {
        await subject.ledger.reportTrees(hosts.map((host) => oneProvider(host, 4)));
        for (const host of hosts)
          await subject.cell.hostsUp(`agent-${host}`, [{ name: `host-${host}`, rootProvider: providerOf(host) }]);
      };
      /** Eight hosts, of which at most a quarter may be down. The hosts that `beforeEach` has made are forced down. */
      const limit = { shareMax: 0.25, countMin: 1 };
      beforeEach(async () => {
        await up([20, 21, 22, 23, 24, 25, 26, 27]);
        for (const host of ["host", "host-7"]) await admin.setForcedDown(host, true);
      });

      test("go down up to the limit; the others stay up and are reported", async () => {
        expect(await subject.cell.expireAgents(0, limit)).toEqual({
          down: names(20, 21),
          heldUp: names(22, 23, 24, 25, 26, 27),
        });
        expect(await subject.cell.expireAgents(0, limit)).toEqual({
          down: [],
          heldUp: names(22, 23, 24, 25, 26, 27),
        });
      });

      test("make room when an operator has forced down or disabled those that are down", async () => {
        await subject.cell.expireAgents(0, limit);
        await admin.setForcedDown("host-20", true);
        await admin.setDisabled("host-21", true, "it is dead");
        // Seven hosts are not forced down, and a quarter of them is one.
        expect((await subject.cell.expireAgents(0, limit)).down).toEqual(names(22));
      });

      test("may all go down in a small cell", async () => {
        const { down, heldUp } = await subject.cell.expireAgents(0, { shareMax: 0.25, countMin: 8 });
        expect([down.length, heldUp]).toEqual([8, []]);
      });

      test("go down one at a time when conductors check at the same moment, and no more than the limit", async () => {
        const both = await Promise.all([subject.cell.expireAgents(0, limit), subject.cell.expireAgents(0, limit)]);
        expect(both.flatMap(({ down }) => down).sort()).toEqual(names(20, 21));
      });
    });

    describe("an evacuation", () => {
      const moveId = numbered(0xe, 1);
      const take = async (id: string) => {
        const [taken] = await subject.cell.takeTasks(conductorId(0), [id]);
        if (taken === undefined) throw new Error("it cannot be taken");
        return { taskId: id, serverUuid: serverId(1), epoch: taken.epoch };
      };
      /** The evacuation of host-7 as it would begin now. */
      const evacuate = (fenceWaived = false) =>
        beginOperationOn(subject.cell, { server: 1, kind: "evacuate", hosts: [8], taskId: moveId, fenceWaived });
      beforeEach(async () => {
        await subject.ledger.reportTrees([oneProvider(8, 4)]);
        await subject.cell.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
        await subject.cell.dispatch([dispatchOf({ server: 1, task: 1, hosts: [7] })]);
        await subject.cell.commitActive([{ ...(await take(taskId(1))), selection: 0 }]);
      });

      test("of a host that is merely unseen is refused until an operator forces the host down", async () => {
        await subject.cell.expireAgents(0);
        expect((await evacuate()).outcome).toEqual({ kind: "host-unfenced" });
        await admin.setForcedDown("host-7", true);
        expect((await evacuate()).outcome.kind).toBe("begun");
      });

      test("of a host that is merely unseen begins where the fence is waived", async () => {
        await subject.cell.expireAgents(0);
        expect((await evacuate(true)).outcome.kind).toBe("begun");
      });

      test("of a host that is forced down begins and switches although its agent is still heard", async () => {
        await admin.setForcedDown("host-7", true);
        await subject.cell.agentsSeen(["agent-1"], 0);
        const begun = await evacuate();
        expect(begun.outcome.kind).toBe("begun");
        if (begun.task === null) return;
        await subject.cell.agentArrived("agent-1", ["host-7"]);
        const write = writeOf(factsOf(begun.task), SWITCH);
        expect(await subject.cell.commitStep([{ ...(await take(moveId)), step: 1, ...write }])).toMatchObject([
          { kind: "committed" },
        ]);
      });

      test("does not switch when the operator has revoked the fence in the meantime", async () => {
        await admin.setForcedDown("host-7", true);
        const begun = await evacuate();
        if (begun.task === null) throw new Error("it did not begin");
        await admin.setForcedDown("host-7", false);
        const write = writeOf(factsOf(begun.task), SWITCH);
        expect(await subject.cell.commitStep([{ ...(await take(moveId)), step: 1, ...write }])).toMatchObject([
          { kind: "refused", why: expect.stringContaining("host-7") },
        ]);
      });
    });

    test("a host is shown with everything that is known about it", async () => {
      const [host] = await admin.adminHosts(["host"]);
      expect(host).toMatchObject({
        ...{ name: "host", rootProvider: HOST, agentId: "agent-1", up: true },
        ...{ disabled: false, disabledReason: null, forcedDown: false },
      });
      expect((await admin.adminHosts(null)).map((one) => one.name)).toEqual(["host", "host-7"]);
      expect(await admin.adminHosts(["nobody"])).toEqual([]);
    });

    test("conductors are shown by id, alive as long as their lease holds, with the tasks that they have not finished", async () => {
      const leave = { id: "00000000-0000-4000-8000-00000000000d", name: "gone", leaseMs: 0 };
      await subject.cell.renewLease({ id: "00000000-0000-4000-8000-00000000000c", name: "here", leaseMs: 60_000 });
      await subject.cell.renewLease(leave);
      const tasks = [1, 2, 3].map((number) => dispatchOf({ server: number, task: number, hosts: [7] }));
      await subject.cell.dispatch(tasks);
      const taken = await subject.cell.takeTasks("00000000-0000-4000-8000-00000000000c", [taskId(1), taskId(2)]);
      const [first] = taken;
      if (first === undefined) throw new Error("no task was taken");
      const ended = { taskId: taskId(1), serverUuid: serverId(1), epoch: first.epoch, selection: 0 };
      await subject.cell.commitActive([ended]);
      const renewedAtMs = expect.any(Number);
      expect(await admin.conductors()).toEqual([
        { id: "00000000-0000-4000-8000-00000000000c", name: "here", alive: true, renewedAtMs, tasks: 1 },
        { id: "00000000-0000-4000-8000-00000000000d", name: "gone", alive: false, renewedAtMs, tasks: 0 },
      ]);
    });

    test("a conductor shows when it last renewed its lease", async () => {
      const conductor = { id: "00000000-0000-4000-8000-00000000000c", name: "here", leaseMs: 60_000 };
      const renewedAt = async () => {
        subject.advance();
        await subject.cell.renewLease(conductor);
        return (await admin.conductors()).find(({ id }) => id === conductor.id)?.renewedAtMs ?? 0;
      };
      const first = await renewedAt();
      await eventually("a later time", async () => (await renewedAt()) > first);
    });

    test("disabling writes the row, its reason and the root's trait together, and a report keeps the trait", async () => {
      expect(await admin.setDisabled("host", true, "smells")).toBe(true);
      expect(await admin.adminHosts(["host"])).toMatchObject([{ disabled: true, disabledReason: "smells" }]);
      expect((await providerAt(HOST)).traits).toEqual(new Set([DISABLED]));
      await subject.ledger.reportTrees([hostTree(4)]);
      expect((await providerAt(HOST)).traits).toEqual(new Set([DISABLED]));
      expect((await providerAt(GPU)).traits.has(DISABLED)).toBe(false);
      expect(await subject.ledger.reportTrees([hostTree(4)])).toMatchObject([{ kind: "unchanged" }]);
      await admin.setDisabled("host", false, null);
      expect(await admin.adminHosts(["host"])).toMatchObject([{ disabled: false, disabledReason: null }]);
      expect((await providerAt(HOST)).traits).toEqual(new Set());
    });

    test("an unknown host can be neither disabled nor forced down", async () => {
      expect(await admin.setDisabled("nobody", true, null)).toBe(false);
      expect(await admin.setForcedDown("nobody", true)).toBe(false);
    });

    test("a host that is forced down stays down until the operator revokes that", async () => {
      const hosts = [{ name: "host", rootProvider: HOST }];
      await admin.setForcedDown("host", true);
      expect(await admin.adminHosts(["host"])).toMatchObject([{ up: false, forcedDown: true }]);
      await subject.cell.hostsUp("agent-1", hosts);
      expect(await subject.cell.agentsSeen(["agent-1"], 0)).toMatchObject({ down: [] });
      expect(await admin.adminHosts(["host"])).toMatchObject([{ up: false }]);
      await admin.setForcedDown("host", false);
      expect(await subject.cell.agentsSeen(["agent-1"], 0)).toMatchObject({ down: ["agent-1"] });
      await subject.cell.hostsUp("agent-1", hosts);
      expect(await admin.adminHosts(["host"])).toMatchObject([{ up: true, forcedDown: false }]);
    });

    test("aggregates are mirrored on roots; those of other clients stay, and reports change none of them", async () => {
      await subject.ledger.reportTrees([
        tree(spec(HOST, "host", { inventories: { VCPU: inventory(8) }, aggregates: [aggregateUuid(FOREIGN)] })),
      ]);
      await admin.mirrorAggregates([
        { rootProvider: HOST, add: [RED, BLUE], remove: [] },
        { rootProvider: "99999999-0000-4000-8000-000000000000", add: [RED], remove: [BLUE] },
      ]);
      const { generation } = await providerAt(HOST);
      await admin.mirrorAggregates([{ rootProvider: HOST, add: [RED], remove: [BLUE] }]);
      expect(await providerAt(HOST)).toMatchObject({
        aggregates: new Set([aggregateUuid(RED), aggregateUuid(FOREIGN)]),
        generation: generation + 1,
      });
      await admin.mirrorAggregates([{ rootProvider: HOST, add: [RED], remove: [BLUE] }]);
      expect((await providerAt(HOST)).generation).toBe(generation + 1);
      await subject.ledger.reportTrees([hostTree(4)]);
      const [state] = await admin.operatorState([RED, BLUE]);
      expect(state).toEqual({ host: "host", rootProvider: HOST, aggregates: [RED], ratios: {}, ratiosHold: true });
    });

    test("a ratio overrides the agent's for the whole tree, and the agent's returns when it is removed", async () => {
      await admin.setRatios([{ rootProvider: HOST, ratios: { VCPU: 8, CUSTOM_GPU_MILLI: 2 } }]);
      expect(await ratiosOf("host")).toEqual({ CUSTOM_GPU_MILLI: [2, 1], MEMORY_MB: [1, null], VCPU: [8, 1] });
      expect(await ratiosOf("host-7")).toEqual({ VCPU: [1, null] });
      const { generation } = await providerAt(HOST);
      expect(await subject.ledger.reportTrees([hostTree()])).toMatchObject([{ kind: "unchanged" }]);
      await subject.ledger.reportTrees([
        tree(spec(HOST, "host", { inventories: { VCPU: inventory(8, { allocationRatio: 3 }) } })),
      ]);
      expect(await ratiosOf("host")).toEqual({ VCPU: [8, 3] });
      expect((await providerAt(HOST)).generation).toBe(generation + 1);
      await admin.setRatios([{ rootProvider: HOST, ratios: {} }]);
      expect(await ratiosOf("host")).toEqual({ VCPU: [3, null] });
    });

    test("a report between the setting of a ratio and its removal loses neither another's ratio nor that of a class in use", async () => {
      const other = { ...inventory(10, { allocationRatio: 4 }) };
      const before = await providerAt(HOST);
      const inventories = Object.fromEntries([...before.inventories].map(([key, { used: _, ...one }]) => [key, one]));
      const gpu = hostTree().providers.find(({ uuid }) => uuid === GPU);
      await subject.ledger.putTrees([
        tree(spec(HOST, "host", { inventories: { ...inventories, CUSTOM_OTHER: other } }), gpu!),
      ]);
      const claimed = { provider: GPU, resourceClass: resourceClass("CUSTOM_GPU_MILLI"), amount: 10 };
      await subject.ledger.applyAllocations([claim(consumerUuid(serverId(1)), INSTANCE, [claimed])]);
      await admin.setRatios([{ rootProvider: HOST, ratios: { CUSTOM_OTHER: 8, CUSTOM_GPU_MILLI: 2 } }]);
      await subject.ledger.reportTrees([hostTree(4)]);
      expect(await ratiosOf("host")).toMatchObject({ CUSTOM_OTHER: [8, 4], CUSTOM_GPU_MILLI: [2, 1] });
      // Twice, because the vanished provider is merged in another way the second time.
      for (const vcpus of [5, 6])
        await subject.ledger.reportTrees([tree(spec(HOST, "host", { inventories: { VCPU: inventory(vcpus) } }))]);
      expect(await ratiosOf("host")).toMatchObject({ CUSTOM_OTHER: [8, 4], CUSTOM_GPU_MILLI: [2, 1] });
      await admin.setRatios([{ rootProvider: HOST, ratios: {} }]);
      expect(await ratiosOf("host")).toMatchObject({ CUSTOM_OTHER: [4, null], CUSTOM_GPU_MILLI: [1, null] });
    });

    test("a host's tree is shown with its owners, its traits, and the use beyond its capacity", async () => {
      const claimed = { provider: GPU, resourceClass: resourceClass("CUSTOM_GPU_MILLI"), amount: 10 };
      await subject.ledger.applyAllocations([claim(consumerUuid(serverId(1)), INSTANCE, [claimed])]);
      const [root] = hostTree().providers;
      await subject.ledger.reportTrees([tree(root!)]);
      const shown = await admin.treeOf("host");
      expect(shown).toMatchObject({
        providers: [
          { provider: GPU, providerName: "gpu", parent: HOST, isReported: true },
          { provider: HOST, providerName: "host", parent: null, isReported: true, traits: [] },
        ],
        kept: [{ provider: GPU, name: "gpu", resourceClass: "CUSTOM_GPU_MILLI", used: 10, capacity: null }],
        refusal: "",
      });
      expect(shown.providers[0]?.traits).toEqual(["CUSTOM_BERTH_VANISHED", "CUSTOM_GPU_T4"]);
      expect(await admin.treeOf("nobody")).toEqual({ providers: [], kept: [], refusal: "" });
    });

    test("a ratio that is set repeatedly does not lose the agent's reported values", async () => {
      for (const ratio of [2, 4, 4, 6]) await admin.setRatios([{ rootProvider: HOST, ratios: { VCPU: ratio } }]);
      expect(await admin.operatorState([])).toMatchObject([{ ratios: { VCPU: 6 }, ratiosHold: true }, { ratios: {} }]);
      expect((await ratiosOf("host")).VCPU).toEqual([6, 1]);
      await admin.setRatios([{ rootProvider: HOST, ratios: { MEMORY_MB: 1.5 } }]);
      expect(await ratiosOf("host")).toMatchObject({ VCPU: [1, null], MEMORY_MB: [1.5, 1] });
    });

    test("a ratio that was set before its tree exists applies from the first report on", async () => {
      const root = providerOf(9);
      await admin.setRatios([{ rootProvider: root, ratios: { VCPU: 5 } }]);
      await subject.ledger.reportTrees([oneProvider(9, 4)]);
      await subject.cell.hostsUp("agent-1", [{ name: "host-9", rootProvider: root }]);
      expect(await ratiosOf("host-9")).toEqual({ VCPU: [5, 1] });
    });
  });
}
