import { expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { HostConfig } from "./host-config.ts";
import { hostsOfNodes, hostsWithoutNodes } from "./hosts-of-nodes.ts";
import { MetalNodes } from "./metal-nodes.ts";

const NODE: HostConfig = { name: "n1", inventories: { CUSTOM_BAREMETAL_GOLD: { total: 1 } }, bare_metal: {} };
const CARD = { name: "card", inventories: { VGPU: { total: 4 } } };
const NUMA = { name: "numa0", inventories: { VCPU: { total: 8, reserved: 1 } }, children: [CARD] };
const PLAIN: HostConfig = { name: "n1", inventories: { DISK_GB: { total: 100 } }, children: [NUMA] };

test("a host that is no longer described as a node is reserved with all its providers until it is cleaned", () => {
  const clock = new ManualClock();
  const store = { load: () => ({}), save: () => undefined };
  const nodes = new MetalNodes({ clock, store, onState: () => undefined, onUnsaved: () => undefined });
  onTestFinished(() => nodes.close());
  let hosts = [NODE];
  const source = hostsOfNodes({ isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null }, nodes);
  const free = { provisionState: "available", powerState: "power off", closedBecause: "" };
  expect(source.look().hosts).toEqual([{ ...NODE, node: free }]);
  nodes.adopt([]);
  const guest = { host: "n1", serverUuid: "a", attemptId: "a/0" };
  nodes.take(guest);
  hosts = [PLAIN];
  const card = { ...CARD, inventories: { VGPU: { total: 4, reserved: 4 } } };
  const numa = { ...NUMA, inventories: { VCPU: { total: 8, reserved: 8 } }, children: [card] };
  expect(source.look().hosts).toEqual([
    {
      ...{ name: "n1", inventories: { DISK_GB: { total: 100, reserved: 100 } }, children: [numa] },
      node: { ...free, provisionState: "active", closedBecause: "it is in use by server a" },
    },
  ]);
  nodes.release(guest);
  clock.advance(0);
  expect(source.present?.().hosts).toEqual([PLAIN]);
});

test("a driver that knows no nodes refuses a hosts file with one, at its start and at a later look", () => {
  let hosts = [PLAIN];
  const source = hostsWithoutNodes({ isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null });
  expect(source.look().hosts).toEqual([PLAIN]);
  hosts = [PLAIN, { ...NODE, name: "n2" }];
  expect(() => source.look()).toThrow(
    /^host n2 has bare_metal in the hosts file, which only --driver fake knows: remove it/,
  );
});
