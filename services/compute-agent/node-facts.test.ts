import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { FakeDriver } from "./fake-driver.ts";
import type { HostConfig } from "./host-config.ts";
import { hostsOfNodes } from "./hosts-of-nodes.ts";
import type { GuestName } from "./journal.ts";
import { MetalNodes } from "./metal-nodes.ts";
import type { NodeStore } from "./node-store.ts";

const CLEAN_MS = 60_000;
const NEVER = new AbortController().signal;
const control = { signal: NEVER, onStep: () => {} };
const guest = (server: string, host = "n1"): GuestName => ({ host, serverUuid: server, attemptId: `${server}/0` });
const orderOf = (server: string) => ({
  ...{ ...guest(server), server: serverSpec(1), movedFrom: null, allocation: undefined },
});
const nodeOf = (name: string, node: NonNullable<HostConfig["bare_metal"]>): HostConfig => ({
  ...{ name, inventories: { CUSTOM_BAREMETAL_GOLD: { total: 1 } }, bare_metal: node },
});

let clock: ManualClock;
let kept: ReturnType<NodeStore["load"]>;
beforeEach(() => {
  clock = new ManualClock();
  kept = {};
});

/** The nodes of a process of the agent. All processes of a test share the stored states. */
function opened(hosts: readonly HostConfig[], guests: readonly GuestName[] = []) {
  const store: NodeStore = {
    load: () => structuredClone(kept),
    save: (nodes) => {
      kept = structuredClone(nodes);
    },
  };
  const nodes = new MetalNodes({ clock, store, onState: () => {}, onUnsaved: () => {} });
  onTestFinished(() => nodes.close());
  const source = hostsOfNodes({ isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null }, nodes);
  source.look();
  nodes.adopt(guests);
  const driver = new FakeDriver({
    ...{ clock, seed: 1, scripts: new Map(), byMetadata: false, nodes, crash: () => {}, loseConnections: () => {} },
  });
  return { nodes, source, driver };
}

describe("a bare metal node", () => {
  test("shows its states in Ironic's words", async () => {
    const { source, driver } = opened([nodeOf("n1", { clean_ms: CLEAN_MS, clean_failures: 1 })]);
    const shown = () => {
      const [host] = source.present?.().hosts ?? [];
      return [host?.node?.provisionState, host?.node?.powerState, host?.node?.closedBecause];
    };
    expect(shown()).toEqual(["available", "power off", ""]);
    await driver.prepare(orderOf("a"), control);
    expect(shown()).toEqual(["active", "power off", "it is in use by server a"]);
    let changes = 0;
    source.watch?.(() => {
      changes += 1;
    });
    await driver.start(guest("a"), NEVER);
    expect([changes, ...shown()]).toEqual([1, "active", "power on", "it is in use by server a"]);
    await driver.destroy(guest("a"), NEVER);
    expect(shown()).toEqual(["cleaning", "power off", "it is being cleaned"]);
    clock.advance(CLEAN_MS);
    expect(shown()).toEqual([
      "clean failed",
      "power off",
      expect.stringMatching(/^it is in maintenance: cleaning it failed/),
    ]);
    expect(source.present?.().hosts[0]).toBe(source.present?.().hosts[0]);
  });

  test("is taken by no build of an agent that is being stopped: the build does not end before the agent gives it up", async () => {
    const hosts = [nodeOf("n1", {})];
    const { nodes, driver } = opened(hosts);
    const [stop, told] = [new AbortController(), [] as unknown[]];
    nodes.close();
    const build = driver
      .prepare(orderOf("a"), { ...control, signal: stop.signal })
      .then((outcome) => told.push(outcome));
    await driver.prepare({ ...orderOf("b"), host: "no-node" }, { ...control, signal: AbortSignal.abort() });
    expect(told).toEqual([]);
    stop.abort();
    await build;
    expect(told).toEqual([{ kind: "failed", failure: "reschedule", reason: "the agent was stopped" }]);
    // The next process finds the node as free as it was.
    expect(opened(hosts).nodes.closedBecause("n1")).toBeNull();
  });

  test("that vanishes from the hosts file stays in use, is cleaned only after it is back, and is forgotten while it is free", () => {
    const both = ["n1", "n2"].map((name) => nodeOf(name, { clean_ms: CLEAN_MS }));
    const first = opened(both).nodes;
    first.take(guest("a", "n1"));
    first.take(guest("b", "n2"));
    first.release(guest("b", "n2"));
    clock.advance(CLEAN_MS);
    first.close();
    expect(Object.keys(kept)).toEqual(["n1", "n2"]);
    const second = opened([{ name: "other" }], [guest("a", "n1")]).nodes;
    // The free one is forgotten, and the other one is in use.
    expect([Object.keys(kept), second.closed()]).toEqual([["n1"], { n1: "it is in use by server a" }]);
    second.release(guest("a", "n1"));
    clock.advance(CLEAN_MS * 10);
    expect(second.closed()).toEqual({ n1: "it is being cleaned" });
    second.close();
    const third = opened(both).nodes;
    expect(third.closedBecause("n1")).toBe("it is being cleaned");
    clock.advance(CLEAN_MS - 1);
    expect(third.closedBecause("n1")).toBe("it is being cleaned");
    clock.advance(1);
    expect(third.closed()).toEqual({});
    third.close();
  });
});
