import { describe, expect, test } from "vitest";
import type { DispatchOutcome, Hop } from "../../core/stores/cell/cell-store.ts";
import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import {
  conductorId,
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  numbered,
  serverId,
  swapTo,
  taskId,
} from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const group = (policy: string, number: number, maxServerPerHost = 0): ServerGroupMembership => ({
  uuid: numbered(0xe, number),
  policy,
  maxServerPerHost,
});
const APART = group("anti-affinity", 1);
const PAIRS = group("anti-affinity", 2, 2);
const TOGETHER = group("affinity", 3);

const DISPATCHED = { kind: "dispatched", xid: expect.any(Number) };
const full = (...hosts: number[]) => ({
  kind: "group-conflict",
  policy: "anti-affinity",
  hosts: hosts.map(hostName),
  inFlight: true,
});
const onlyOn = (...hosts: number[]) => ({
  kind: "group-conflict",
  policy: "affinity",
  hosts: hosts.map(hostName),
  inFlight: true,
});

/** The guarantees about server groups: their rules hold for each claim, whichever process makes it. */
export function groupContract(cell: () => CellUnderTest): void {
  /** Tasks have the same numbers as their servers. */
  const build = (server: number, hosts: readonly number[], of: ServerGroupMembership | undefined, vcpus = 1) =>
    dispatchOf({ server, task: server, hosts, vcpus, spec: { group: of } });
  const hopTo = async (server: number, to: number, of: ServerGroupMembership, host = to): Promise<Hop> => {
    const tenure = tenureOf(await cell().take(server));
    return {
      ...tenure,
      from: to - 1,
      reason: "broken",
      to,
      toHost: hostName(host),
      change: swapTo(server, host),
      group: of,
    };
  };

  describe("anti-affinity", () => {
    test("refuses a host that has a server of the group, and names the occupied hosts", async () => {
      const { store } = cell();
      expect(await store.dispatch([build(1, [0], APART), build(2, [1], APART)])).toEqual([DISPATCHED, DISPATCHED]);
      expect(await store.dispatch([build(3, [1], APART)])).toEqual([full(0, 1)]);
      expect(await store.servers([serverId(3)])).toEqual([]);
      expect(await cell().used()).toEqual([1, 1, 0]);
      expect(await store.dispatch([build(3, [2], APART)])).toEqual([DISPATCHED]);
    });

    test("decides the servers of one batch one after the other, and a server that lacks room occupies no place", async () => {
      const { store } = cell();
      const batch = [build(1, [0], APART, 11), build(2, [0], APART), build(3, [0], APART), build(4, [0], undefined)];
      expect((await store.dispatch(batch)).map((outcome) => outcome.kind)).toEqual([
        "no-capacity",
        "dispatched",
        "group-conflict",
        "dispatched",
      ]);
    });

    test("lets up to max_server_per_host of them share a host", async () => {
      const { store } = cell();
      const outcomes = await store.dispatch([build(1, [0], PAIRS), build(2, [0], PAIRS), build(3, [0], PAIRS)]);
      expect(outcomes).toEqual([DISPATCHED, DISPATCHED, full(0)]);
    });

    test("concerns only one group: servers of other groups, of soft ones and of none go anywhere", async () => {
      const { store } = cell();
      const soft = group("soft-anti-affinity", 4);
      const batch = [build(1, [0], APART), build(2, [0], group("anti-affinity", 5)), build(3, [0], soft)];
      expect(await store.dispatch([...batch, build(4, [0], soft), build(5, [0], undefined)])).toEqual(
        Array.from({ length: 5 }, () => DISPATCHED),
      );
    });

    test("recognises a server that is already here, whichever host it is sent to this time", async () => {
      const { store } = cell();
      await store.dispatch([build(1, [0], APART), build(2, [1], APART)]);
      expect(await store.dispatch([build(1, [1], APART)])).toEqual([{ kind: "already-dispatched" }]);
    });

    test("skips an alternate that has a server of the group, and hops to one without any", async () => {
      const { store } = cell();
      await store.dispatch([build(1, [0, 1, 2], APART), build(2, [1], APART)]);
      const hop = await hopTo(1, 1, APART);
      expect(await store.hop([hop])).toEqual([
        {
          kind: "skipped",
          why: "its server group has no place left there as long as one of its servers is moving",
        },
      ]);
      expect(await cell().used()).toEqual([1, 1, 0]);
      const next = { ...hop, from: 0, to: 2, toHost: hostName(2), change: swapTo(1, 2) };
      expect(await store.hop([next])).toEqual([{ kind: "committed" }]);
      expect(await cell().used()).toEqual([0, 1, 1]);
      expect((await store.attempts(serverId(1))).map(({ result }) => result)).toEqual(["failed", "skipped", null]);
    });

    test("frees a host after a hop, an error, and a delete", async () => {
      const { store } = cell();
      await store.dispatch([build(1, [0, 1], APART)]);
      expect(await store.hop([await hopTo(1, 1, APART)])).toEqual([{ kind: "committed" }]);
      expect(await store.dispatch([build(2, [0], APART)])).toEqual([DISPATCHED]);
      const failing = { ...tenureOf(await cell().take(1)), selection: 1, attemptReason: "broken", reason: "broken" };
      await store.commitError([failing]);
      expect(await store.dispatch([build(3, [1], APART)])).toEqual([DISPATCHED]);
      await store.requestDelete([deleteTask(2, 102)]);
      expect(await store.dispatch([build(4, [0], APART)])).toEqual([full(0, 1)]);
      await store.commitDeleted([tenureOf(await cell().take(102))]);
      expect(await store.dispatch([build(4, [0], APART)])).toEqual([DISPATCHED]);
    });
  });

  describe("affinity", () => {
    test("sends every server to the first one's host", async () => {
      const { store } = cell();
      const batch = [build(1, [1], TOGETHER), build(2, [0], TOGETHER), build(3, [1], TOGETHER)];
      expect(await store.dispatch(batch)).toEqual([DISPATCHED, onlyOn(1), DISPATCHED]);
    });

    test("lets the first server leave a host that fails as long as no other one is there", async () => {
      const { store } = cell();
      await store.dispatch([build(1, [0, 1], TOGETHER)]);
      expect(await store.hop([await hopTo(1, 1, TOGETHER)])).toEqual([{ kind: "committed" }]);
      expect(await store.dispatch([build(2, [0], TOGETHER), build(2, [1], TOGETHER)])).toEqual([onlyOn(1), DISPATCHED]);
      expect(await store.hop([await hopTo(1, 2, TOGETHER)])).toEqual([
        {
          kind: "skipped",
          why: "its server group must stay together on host-1 as long as one of its servers is moving",
        },
      ]);
    });

    test("starts again without a host once no member holds anything", async () => {
      const { store } = cell();
      await store.dispatch([build(1, [0], TOGETHER)]);
      await store.requestDelete([deleteTask(1, 101)]);
      await store.commitDeleted([tenureOf(await cell().take(101))]);
      expect(await store.dispatch([build(2, [2], TOGETHER)])).toEqual([DISPATCHED]);
    });
  });

  describe("with concurrent claims", () => {
    const ROOM = 40;
    const makeRoom = (hosts: number): Promise<unknown> =>
      cell().ledger.putTrees(Array.from({ length: hosts }, (_, host) => hostTree(host, ROOM)));
    const kinds = (outcomes: readonly DispatchOutcome[]): string[] => outcomes.map(({ kind }) => kind);
    const homes = async (servers: readonly number[]): Promise<string[]> =>
      (await cell().store.homes(servers.map(serverId))).flatMap(({ host }) => host ?? []);

    test("of forty servers of an anti-affinity group from four schedulers for ten hosts, each host gets one", async () => {
      await makeRoom(10);
      const { store } = cell();
      const batches = [0, 1, 2, 3].map((scheduler) =>
        Array.from({ length: 10 }, (_, at) => build(1 + scheduler * 10 + at, [(at + scheduler * 3) % 10], APART)),
      );
      const outcomes = (await Promise.all(batches.map((batch) => store.dispatch(batch)))).flat();
      expect(kinds(outcomes).filter((kind) => kind === "dispatched")).toHaveLength(10);
      const at = await homes(Array.from({ length: 40 }, (_, index) => index + 1));
      expect(new Set(at).size).toBe(10);
      expect(at).toHaveLength(10);
    });

    test("of first claims of an affinity group on four hosts at once, one host wins", async () => {
      await makeRoom(4);
      const { store } = cell();
      const outcomes = await Promise.all(
        [0, 1, 2, 3].map((host) => store.dispatch([build(host + 1, [host], TOGETHER)])),
      );
      expect(kinds(outcomes.flat()).sort()).toEqual([
        "dispatched",
        "group-conflict",
        "group-conflict",
        "group-conflict",
      ]);
    });

    test("of hops of an anti-affinity group to one free host and a claim for it at once, one gets it", async () => {
      await makeRoom(6);
      const { store } = cell();
      await store.dispatch([0, 1, 2, 3].map((host) => build(host + 1, [host, 5], APART)));
      await store.takeTasks(conductorId(0), [1, 2, 3, 4].map(taskId));
      const hops = await Promise.all([1, 2, 3, 4].map((server) => hopTo(server, 1, APART, 5)));
      const [claimed, ...hopped] = await Promise.all([
        store.dispatch([build(9, [5], APART)]),
        ...hops.map((hop) => store.hop([hop])),
      ]);
      const won = [...kinds(claimed), ...hopped.flat().map(({ kind }) => kind)].filter(
        (kind) => kind === "dispatched" || kind === "committed",
      );
      expect(won).toHaveLength(1);
      const at = await homes([1, 2, 3, 4, 9]);
      expect(new Set(at).size).toBe(at.length);
    });

    test("when the first server of an affinity group leaves its host while a second one claims it, they end together, or the first stays", async () => {
      await makeRoom(3);
      const { store } = cell();
      for (let round = 0; round < 12; round += 1) {
        const of = group("affinity", 100 + round);
        const [first, second] = [200 + round * 2, 201 + round * 2];
        await store.dispatch([build(first, [0, 1], of)]);
        const hop = await hopTo(first, 1, of);
        const [[claimed], [hopped]] = await Promise.all([store.dispatch([build(second, [0], of)]), store.hop([hop])]);
        expect([
          ["dispatched", "skipped"],
          ["group-conflict", "committed"],
        ]).toContainEqual([claimed?.kind, hopped?.kind]);
        expect(new Set(await homes([first, second])).size).toBe(1);
      }
    });
  });
}
