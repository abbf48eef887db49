import { rmSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { HostDevice, PortConnection } from "../../core/pinning/host-device.ts";
import { makeSysroot, sriovCard } from "../../test/rigs/made-up-sysroot.ts";
import { functionOf, VirtualFunctions } from "./virtual-functions.ts";

const VFS = ["0000:3b:02.0", "0000:3b:02.1"] as const;
const NEVER = new AbortController().signal;
const MAC = "fa:16:3e:00:00:01";
const CLEARED = "mac 00:00:00:00:00:00 vlan 0";
const unused = () => false;

let root: string;
/** The programs that were run. */
let ran: string[];
/** What becomes of each run. */
let answer: () => Promise<void>;
let functions: VirtualFunctions;
beforeEach(() => {
  root = makeSysroot(sriovCard());
  ran = [];
  answer = async () => {};
  functions = new VirtualFunctions(root, (program, args) => {
    ran.push([program, ...args].join(" "));
    return answer();
  });
});

const device = (address: string, connection: PortConnection | null = { vlan: 105, isTrusted: false }): HostDevice => ({
  ...{ kind: "pci", address },
  port: { portId: "p1", mac: MAC, slot: 1, connection },
});
const guest = (dir: string, ...devices: readonly HostDevice[]) => ({ dir, devices });

test("finds the card's interface and the function's number there, and neither for other functions", () => {
  expect(VFS.map((address) => functionOf(address, root))).toEqual([0, 1].map((index) => ({ card: "ens1f0", index })));
  expect(functionOf("0000:3b:00.0", root)).toBeNull();
  rmSync(join(root, "sys/devices/pci0000:3a/0000:3b:00.0/net"), { recursive: true });
  expect(functionOf(VFS[0], root)).toBeNull();
});

test("a function gets the MAC address and the VLAN of its port, and loses both at the end; others are left alone", async () => {
  const trusted = device(VFS[1], { vlan: 0, isTrusted: true });
  const one = guest("/a", { kind: "pci", address: VFS[0] }, trusted);
  await functions.connect(one, NEVER);
  await functions.release(one, unused);
  expect(ran).toEqual([
    `ip link set dev ens1f0 vf 1 mac ${MAC} vlan 0 trust on`,
    `ip link set dev ens1f0 vf 1 ${CLEARED} trust off`,
  ]);
});

test("a port whose connection is unknown, and a card that has no interface, are errors that say what to do", async () => {
  await expect(functions.connect(guest("/a", device(VFS[0], null)), NEVER)).rejects.toThrow(
    "it is not known how port p1 is connected on this host, because Neutron has not told its VLAN",
  );
  await expect(functions.connect(guest("/a", device("0000:99:00.0")), NEVER)).rejects.toThrow(
    "PCI device 0000:99:00.0 of port p1 has no MAC address to set",
  );
  expect(ran).toEqual([]);
});

test("what the card refuses is an error with the card's words, at the setting and at the clearing", async () => {
  answer = () => Promise.reject(new Error("ip link: RTNETLINK answers: Operation not permitted"));
  const one = guest("/a", device(VFS[0]));
  await expect(functions.connect(one, NEVER)).rejects.toThrow(
    `virtual function 0 of ens1f0 (${VFS[0]}) could not get the MAC address ${MAC} and the VLAN 105 of port p1 (ip link: RTNETLINK answers: Operation not permitted): the agent's user needs`,
  );
  await expect(functions.release(one, unused)).rejects.toThrow("keeps the MAC address and the VLAN of port p1");
  answer = async () => {};
  await functions.release(one, unused);
  expect(ran).toHaveLength(3);
});

test("a function that has left its host has nothing to clear", async () => {
  rmSync(join(root, "sys/bus/pci/devices", VFS[0]));
  await functions.release(guest("/a", device(VFS[0])), unused);
  expect(ran).toEqual([]);
});

test("a function that another guest of the server uses by now is not cleared for the former one", async () => {
  await functions.connect(guest("/a", device(VFS[0])), NEVER);
  await functions.connect(guest("/b", device(VFS[0])), NEVER);
  await functions.release(guest("/a", device(VFS[0])), unused);
  expect(ran).toHaveLength(2);
  // An agent that has just started knows of the other guest by its QEMU.
  const next = new VirtualFunctions(root, async (program) => void ran.push(program));
  await next.release(guest("/a", device(VFS[0])), (address) => address === VFS[0]);
  expect(ran).toHaveLength(2);
  await next.release(guest("/b", device(VFS[0])), unused);
  expect(ran).toHaveLength(3);
});

test("the clearing for one guest ends before the setting for the next, also if it is slow", async () => {
  const slow = Promise.withResolvers<void>();
  await functions.connect(guest("/a", device(VFS[0])), NEVER);
  answer = () => slow.promise;
  const clearing = functions.release(guest("/a", device(VFS[0])), unused);
  answer = async () => {};
  const setting = functions.connect(guest("/b", device(VFS[0])), NEVER);
  slow.resolve();
  await Promise.all([clearing, setting]);
  expect(ran.map((one) => one.includes(CLEARED))).toEqual([false, true, false]);
});
