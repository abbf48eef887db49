import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { FakeDriver } from "./fake-driver.ts";
import { type HostConfig, readHostsFile } from "./host-config.ts";
import { hostsOfNodes } from "./hosts-of-nodes.ts";
import type { GuestName } from "./journal.ts";
import { MetalNodes } from "./metal-nodes.ts";
import { fileNodeStore } from "./node-store.ts";

const CLEAN_MS = 60_000;
const NEVER = new AbortController().signal;
const GOLD = { CUSTOM_BAREMETAL_GOLD: { total: 1 } };
const guest = (server: string, host = "n1"): GuestName => ({ host, serverUuid: server, attemptId: `${server}/0` });

let clock: ManualClock;
let dir: string;
/** What the nodes said when they were closed and opened. */
let said: (string | null)[];
beforeEach(() => {
  clock = new ManualClock();
  said = [];
  dir = mkdtempSync(join(tmpdir(), "berth-nodes-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
});

type Node = NonNullable<HostConfig["bare_metal"]>;
const hostOf = (node: Node): HostConfig => ({ name: "n1", inventories: GOLD, bare_metal: node });

/** The nodes of an agent's process, which keeps them in a file. */
function opened(node: Node = { clean_ms: CLEAN_MS }) {
  const store = fileNodeStore(join(dir, "nodes.json"));
  const nodes = new MetalNodes({ clock, store, onState: (_, reason) => said.push(reason) });
  onTestFinished(() => nodes.close());
  let hosts: readonly HostConfig[] = [hostOf(node)];
  const source = hostsOfNodes({ isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null }, nodes);
  source.look();
  const describeNode = (now: Node) => {
    hosts = [hostOf(now)];
    source.look();
  };
  const reserved = () => source.present?.().hosts[0]?.inventories?.CUSTOM_BAREMETAL_GOLD?.reserved ?? 0;
  return { nodes, source, reserved, describeNode };
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
      const { nodes, reserved } = opened();
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
    const { nodes, reserved } = opened();
    nodes.adopt([guest("a")]);
    expect([reserved(), nodes.closedBecause("n1")]).toEqual([1, "it is in use by server a"]);
  });

  test("is not offered by an agent that cannot understand its file", () => {
    writeFileSync(join(dir, "nodes.json"), '{"n1":{"users":3}}');
    expect(() => opened()).toThrow(/nodes\.json is damaged .*move it away/);
  });

  test("is closed to the fake driver's builds, and is cleaned after a build that failed", async () => {
    const { nodes } = opened();
    const scripts = new Map([["n1", { outcome: "reschedule", first: 1 } as const]]);
    const driver = new FakeDriver({
      ...{ clock, seed: 1, scripts, byMetadata: false, nodes, crash: () => {}, loseConnections: () => {} },
    });
    const control = { signal: NEVER, onStep: () => {} };
    const orderOf = (server: string) => ({
      ...{ ...guest(server), server: serverSpec(1), movedFrom: null, allocation: undefined },
    });
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

test("a host that is no node is never closed, and leaves no file", () => {
  const { nodes, reserved } = opened();
  nodes.describe([{ name: "n1", inventories: GOLD }]);
  nodes.adopt([guest("a")]);
  expect([nodes.take(guest("b")), reserved()]).toEqual([null, 0]);
  nodes.release(guest("b"));
  expect(existsSync(join(dir, "nodes.json"))).toBe(false);
});

test.each([
  ["another class", { VCPU: { total: 1 } }, {}],
  ["more than one unit", { CUSTOM_BAREMETAL_GOLD: { total: 2 } }, {}],
  ["two classes", { ...GOLD, CUSTOM_BAREMETAL_IRON: { total: 1 } }, {}],
  ["children", GOLD, { children: [{ name: "gpu0" }] }],
])("a hosts file with a node that offers %s is refused", (_, inventories, more) => {
  const path = join(dir, "hosts.json");
  writeFileSync(path, JSON.stringify({ hosts: [{ name: "n1", inventories, ...more, bare_metal: {} }] }));
  expect(() => readHostsFile(path)).toThrow(
    "host n1 has bare_metal, so its inventories must be one of a class CUSTOM_",
  );
});
