import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { FakeDriver } from "./fake-driver.ts";
import type { FakeScript } from "./fake-script.ts";
import type { HostConfig } from "./host-config.ts";
import { hostsOfNodes } from "./hosts-of-nodes.ts";
import type { GuestName } from "./journal.ts";
import { MetalNodes } from "./metal-nodes.ts";
import { fileNodeStore, type NodeStore } from "./node-store.ts";

const CLEAN_MS = 60_000;
const NEVER = new AbortController().signal;
const GOLD = { CUSTOM_BAREMETAL_GOLD: { total: 1 } };
const guest = (server: string, host = "n1"): GuestName => ({ host, serverUuid: server, attemptId: `${server}/0` });

let clock: ManualClock;
let dir: string;
/** The ends of cleanings that could not be stored. */
let unsaved: string[];
/** What the nodes said when they were closed and opened. */
let said: (string | null)[];
beforeEach(() => {
  clock = new ManualClock();
  said = [];
  unsaved = [];
  dir = mkdtempSync(join(tmpdir(), "berth-nodes-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
});

type Node = NonNullable<HostConfig["bare_metal"]>;
const PLAIN: HostConfig = { name: "n1", inventories: GOLD };
const hostOf = (node: Node): HostConfig => ({ name: "n1", inventories: GOLD, bare_metal: node });

/** The nodes of an agent's process, which keeps them in a file. The process has taken over the guests of the last one, unless a test does that itself. */
function opened(
  node: Node = { clean_ms: CLEAN_MS },
  { adopts = true, store = fileNodeStore(join(dir, "nodes.json")) } = {},
) {
  const onUnsaved = (host: string, reason: string) => unsaved.push(`${host}: ${reason}`);
  const nodes = new MetalNodes({ clock, store, onState: (_, reason) => said.push(reason), onUnsaved });
  onTestFinished(() => nodes.close());
  let hosts: readonly HostConfig[] = [hostOf(node)];
  const source = hostsOfNodes({ isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null }, nodes);
  source.look();
  if (adopts) nodes.adopt([]);
  const describeNode = (now: Node | null) => {
    hosts = [now === null ? PLAIN : hostOf(now)];
    source.look();
  };
  const reserved = () => source.present?.().hosts[0]?.inventories?.CUSTOM_BAREMETAL_GOLD?.reserved ?? 0;
  return { nodes, source, reserved, describeNode };
}

function driverOf(nodes: MetalNodes, script: FakeScript = {}): FakeDriver {
  const scripts = new Map([["n1", script]]);
  return new FakeDriver({
    ...{ clock, seed: 1, scripts, byMetadata: false, nodes, crash: () => {}, loseConnections: () => {} },
  });
}
const control = { signal: NEVER, onStep: () => {} };
const orderOf = (server: string) => ({
  ...{ ...guest(server), server: serverSpec(1), movedFrom: null, allocation: undefined },
});

/** A store in memory, whose next writes can be made to fail. */
function fallibleStore() {
  let kept: ReturnType<NodeStore["load"]> = {};
  const store = {
    saves: 0,
    failures: 0,
    load: () => structuredClone(kept),
    save(nodes: ReturnType<NodeStore["load"]>) {
      if (store.failures > 0) {
        store.failures -= 1;
        throw new Error("no space left on the device");
      }
      store.saves += 1;
      kept = structuredClone(nodes);
    },
  };
  return store;
}

describe("a bare metal node", () => {
  test("is reserved while a server has it and while it is cleaned, and only then", () => {
    const { nodes, reserved } = opened();
    expect(reserved()).toBe(0);
    expect(nodes.take(guest("a"))).toBeNull();
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, "it is in use by server a"]);
    nodes.release(guest("a"));
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, "it is being cleaned"]);
    clock.advance(CLEAN_MS - 1);
    expect(reserved()).toBe(1);
    clock.advance(1);
    expect([reserved(), nodes.closed()]).toEqual([0, {}]);
    expect(said).toEqual(["it is in use by server a", "it is being cleaned", null]);
  });

  test("tells its agent of each change, after the change is stored", () => {
    const { nodes, source } = opened();
    const stored: boolean[] = [];
    source.watch?.(() => stored.push(fileNodeStore(join(dir, "nodes.json")).load().n1?.isCleaning ?? false));
    nodes.take(guest("a"));
    nodes.release(guest("a"));
    clock.advance(CLEAN_MS);
    expect(stored).toEqual([false, true, false]);
  });

  test("is refused to another server while it is closed, and a server that has it gets it again", () => {
    const { nodes, describeNode } = opened();
    nodes.take(guest("a"));
    expect(nodes.take(guest("b"))).toBe("bare metal node n1 is not available: it is in use by server a");
    const again = { ...guest("a"), attemptId: "a/1" };
    expect(nodes.take(again)).toBeNull();
    nodes.release(guest("a"));
    expect(nodes.closedBecause("n1")).toBe("it is in use by server a");
    nodes.release(again);
    expect(nodes.take(guest("b"))).toBe("bare metal node n1 is not available: it is being cleaned");
    describeNode({ maintenance: "bad fan" });
    clock.advance(CLEAN_MS);
    expect(nodes.take(guest("b"))).toBe("bare metal node n1 is not available: it is in maintenance: bad fan");
    // What never got the node does not give it back.
    nodes.release(guest("b"));
    describeNode({});
    expect(nodes.take(guest("b"))).toBeNull();
  });

  test("whose cleaning fails is in maintenance with the reason until an operator has ended that, and is cleaned again", () => {
    const node = { clean_ms: CLEAN_MS, clean_failures: 1 };
    const { nodes, reserved, describeNode } = opened(node);
    nodes.take(guest("a"));
    nodes.release(guest("a"));
    clock.advance(CLEAN_MS * 3);
    expect(nodes.closedBecause("n1")).toMatch(/^it is in maintenance: cleaning it failed .*repair the node/);
    // Another look alone does not open it.
    describeNode(node);
    expect(reserved()).toBe(1);
    describeNode({ ...node, maintenance: "a new disk" });
    describeNode(node);
    expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
    clock.advance(CLEAN_MS);
    expect(reserved()).toBe(0);
  });

  test.each([
    ["in use", false],
    ["being cleaned", true],
  ])(
    "that was %s when its agent died is reserved from the next agent's first look on, and is cleaned whole",
    (_, isOver) => {
      const first = opened();
      first.nodes.take(guest("a"));
      if (isOver) first.nodes.release(guest("a"));
      clock.advance(CLEAN_MS / 2);
      first.nodes.close();
      const { nodes, reserved } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
      expect(reserved()).toBe(1);
      // The journal no longer has the guest.
      nodes.adopt([]);
      expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
      clock.advance(CLEAN_MS - 1);
      expect(reserved()).toBe(1);
      clock.advance(1);
      expect(reserved()).toBe(0);
    },
  );

  test("whose guest outlived the agent is in use, even if its file is lost", () => {
    const { nodes, reserved } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
    nodes.adopt([guest("a")]);
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, "it is in use by server a"]);
  });

  test("is not offered by an agent that cannot understand its file", () => {
    writeFileSync(join(dir, "nodes.json"), '{"n1":{"users":3}}');
    expect(() => opened()).toThrow(/nodes\.json is damaged .*move it away/);
  });

  test("is closed to the fake driver's builds, and is cleaned after a build that failed", async () => {
    const { nodes } = opened();
    const driver = driverOf(nodes, { outcome: "reschedule", first: 1 });
    expect(await driver.prepare(orderOf("a"), control)).toMatchObject({ kind: "failed", reason: "the disk is full" });
    await driver.destroy(guest("a"), NEVER);
    const refused = await driver.prepare(orderOf("b"), control);
    const reason = "bare metal node n1 is not available: it is being cleaned";
    expect(refused).toEqual({ kind: "failed", failure: "reschedule", reason });
    await driver.destroy(guest("b"), NEVER);
    clock.advance(CLEAN_MS);
    expect(await driver.prepare(orderOf("b"), control)).toEqual({ kind: "prepared" });
    expect(nodes.closedBecause("n1")).toBe("it is in use by server b");
  });
});

describe("a bare metal node whose agent or file fails", () => {
  test.each([["kept"], ["lost"], ["in neither list, but in the file"]])(
    "is in use by a guest that the last process has %s until that is destroyed, and is only then cleaned",
    async (how) => {
      const first = opened();
      await driverOf(first.nodes).prepare(orderOf("a"), control);
      first.nodes.close();
      const { nodes, reserved } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
      const driver = driverOf(nodes, { destroy_ms: CLEAN_MS * 2 });
      await driver.adopt(
        how === "kept" ? [{ ...guest("a"), state: "running" }] : [],
        how === "lost" ? [guest("a")] : [],
      );
      const removal = driver.destroy(guest("a"), NEVER);
      clock.advance(CLEAN_MS);
      // What the journal does not know at all is gone already.
      const isGone = how !== "kept" && how !== "lost";
      expect(nodes.closedBecause("n1")).toBe(isGone ? null : "it is in use by server a");
      clock.advance(CLEAN_MS);
      await removal;
      expect(nodes.closedBecause("n1")).toBe(isGone ? null : "it is being cleaned");
      clock.advance(CLEAN_MS);
      expect(reserved()).toBe(0);
    },
  );

  test("has no file yet, and is cleaned after a guest that the last process was building when the host became a node", async () => {
    const { nodes } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
    const driver = driverOf(nodes);
    await driver.adopt([], [guest("a")]);
    await driver.destroy(guest("a"), NEVER);
    expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
  });

  test("stays in use when its release cannot be stored, and is cleaned and opened after the next try", async () => {
    const store = fallibleStore();
    const { nodes, reserved } = opened({ clean_ms: CLEAN_MS }, { store });
    const driver = driverOf(nodes);
    await driver.prepare(orderOf("a"), control);
    store.failures = 1;
    await expect(driver.destroy(guest("a"), NEVER)).rejects.toThrow("no space left");
    expect(nodes.closedBecause("n1")).toBe("it is in use by server a");
    await driver.destroy(guest("a"), NEVER);
    expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
    store.failures = 1;
    clock.advance(CLEAN_MS);
    expect([nodes.closedBecause("n1"), unsaved]).toEqual(["it is being cleaned", ["n1: no space left on the device"]]);
    clock.advance(CLEAN_MS);
    expect(reserved()).toBe(0);
  });

  test("is not taken when that cannot be stored", () => {
    const store = fallibleStore();
    const { nodes } = opened({ clean_ms: CLEAN_MS }, { store });
    store.failures = 1;
    expect(() => nodes.take(guest("a"))).toThrow("no space left");
    nodes.release(guest("a"));
    expect(nodes.closedBecause("n1")).toBeNull();
  });

  test("is in use, and every guest is known, when nothing can be stored while the agent starts", async () => {
    const store = fallibleStore();
    const { nodes } = opened({ clean_ms: CLEAN_MS }, { adopts: false, store });
    const driver = driverOf(nodes);
    const kept = ["n1", "plain"].map((host) => ({ ...guest("a", host), state: "running" as const }));
    store.failures = 1;
    await expect(driver.adopt(kept)).rejects.toThrow("no space left");
    expect(await driver.powersOf(kept)).toEqual(["running", "running"]);
    expect(nodes.closedBecause("n1")).toBe("it is in use by server a");
  });

  test("is taken over with all others in one write, or in none if nothing has changed", () => {
    const store = fallibleStore();
    const hosts = Array.from({ length: 20 }, (_, n) => ({ ...hostOf({}), name: `n${n}` }));
    const start = () => {
      const { nodes } = opened({}, { adopts: false, store });
      nodes.describe(hosts);
      nodes.adopt(hosts.map(({ name }) => guest("a", name)));
      return store.saves;
    };
    expect([start(), start()]).toEqual([1, 1]);
  });

  test("is read again when the last process can no longer write, before which nothing is written or begun", () => {
    const first = opened();
    const { nodes, describeNode, reserved } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
    first.nodes.take(guest("a"));
    first.nodes.release(guest("a"));
    first.nodes.close();
    describeNode({ clean_ms: CLEAN_MS });
    clock.advance(CLEAN_MS);
    nodes.adopt([]);
    expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
    clock.advance(CLEAN_MS);
    expect(reserved()).toBe(0);
  });

  test("is neither given away nor written by an agent that has closed its nodes", async () => {
    const store = fallibleStore();
    const { nodes } = opened({ clean_ms: CLEAN_MS }, { store });
    const driver = driverOf(nodes);
    await driver.prepare(orderOf("a"), control);
    nodes.close();
    const before = store.saves;
    await driver.destroy(guest("a"), NEVER);
    clock.advance(CLEAN_MS);
    await driver.prepare(orderOf("b"), { ...control, signal: AbortSignal.abort() });
    expect(store.saves).toBe(before);
    const next = opened({ clean_ms: CLEAN_MS }, { store });
    expect(next.nodes.closedBecause("n1")).toBe("it is being cleaned");
  });
});

describe("a host whose bare_metal changes", () => {
  test("is in use by the guests that it has when it becomes a node, and is cleaned after them", async () => {
    const { nodes, describeNode, reserved } = opened();
    describeNode(null);
    const driver = driverOf(nodes);
    for (const server of ["a", "b", "c"]) await driver.prepare(orderOf(server), control);
    await driver.destroy(guest("b"), NEVER);
    expect(reserved()).toBe(0);
    describeNode({ clean_ms: CLEAN_MS });
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, "it is in use by server a"]);
    await driver.destroy(guest("a"), NEVER);
    expect(nodes.closedBecause("n1")).toBe("it is in use by server c");
    await driver.destroy(guest("c"), NEVER);
    expect(nodes.closedBecause("n1")).toBe("it is being cleaned");
  });

  test("does not become a node when that cannot be stored", async () => {
    const store = fallibleStore();
    const { nodes, describeNode } = opened({ clean_ms: CLEAN_MS }, { store });
    describeNode(null);
    nodes.take(guest("a"));
    store.failures = 1;
    expect(() => describeNode({ clean_ms: CLEAN_MS })).toThrow("no space left");
    expect(nodes.take(guest("b"))).toBeNull();
    describeNode({ clean_ms: CLEAN_MS });
    expect(nodes.closedBecause("n1")).toBe("it is in use by server a");
  });

  test("stays a node until nobody has it and it is cleaned, also over a restart of the agent", () => {
    const { nodes, describeNode, reserved } = opened();
    nodes.take(guest("a"));
    describeNode(null);
    expect([reserved(), nodes.closed()]).toEqual([1, { n1: "it is in use by server a" }]);
    nodes.close();
    const next = opened({}, { adopts: false });
    next.describeNode(null);
    next.nodes.adopt([guest("a")]);
    next.nodes.release(guest("a"));
    expect([next.reserved(), next.nodes.closedBecause("n1")]).toEqual([1, "it is being cleaned"]);
    clock.advance(0);
    expect([next.reserved(), next.nodes.closed()]).toEqual([0, {}]);
    expect([next.nodes.take(guest("b")), next.nodes.take(guest("c"))]).toEqual([null, null]);
  });

  test.each([
    ["failed", { clean_ms: CLEAN_MS, clean_failures: 1 }, /^it is in maintenance: cleaning it failed/],
    ["is not over", { clean_ms: CLEAN_MS * 3 }, /^it is being cleaned$/],
  ])("is not opened when bare_metal is taken away after a cleaning that %s", (_, node, reason) => {
    const { nodes, describeNode, reserved } = opened(node);
    nodes.take(guest("a"));
    nodes.release(guest("a"));
    clock.advance(CLEAN_MS);
    describeNode(null);
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, expect.stringMatching(reason)]);
    expect(nodes.take(guest("b"))).toMatch(/not available/);
  });

  test("is cleaned again when the maintenance after a failed cleaning ended while its agent was down", () => {
    const node = { clean_ms: CLEAN_MS, clean_failures: 1 };
    const first = opened(node);
    first.nodes.take(guest("a"));
    first.nodes.release(guest("a"));
    clock.advance(CLEAN_MS);
    first.nodes.close();
    const second = opened(node);
    expect(second.nodes.closedBecause("n1")).toMatch(/failed/);
    second.nodes.close();
    opened({ ...node, maintenance: "a new disk" }).nodes.close();
    expect(opened(node).nodes.closedBecause("n1")).toBe("it is being cleaned");
  });
});

test("a host that is no node is never closed, and leaves no file", () => {
  const { nodes, reserved } = opened({ clean_ms: CLEAN_MS }, { adopts: false });
  nodes.describe([PLAIN]);
  nodes.adopt([guest("a")]);
  expect([nodes.take(guest("b")), reserved()]).toEqual([null, 0]);
  nodes.release(guest("b"));
  expect(existsSync(join(dir, "nodes.json"))).toBe(false);
});
