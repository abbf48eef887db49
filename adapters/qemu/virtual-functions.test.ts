import { rmSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { HostDevice, PortConnection } from "../../core/pinning/host-device.ts";
import { makeSysroot, sriovCard } from "../../test/rigs/made-up-sysroot.ts";
import { FunctionNotes } from "./function-notes.ts";
import { QemuError } from "./qemu-error.ts";
import { functionOf, VirtualFunctions } from "./virtual-functions.ts";

const VFS = ["0000:3b:02.0", "0000:3b:02.1"] as const;
const NEVER = new AbortController().signal;
const MAC = "fa:16:3e:00:00:01";
const CLEARED = "mac 00:00:00:00:00:00 vlan 0";
const unused = () => false;
/** The runs that set MAC addresses and VLANs, or clear them. */
const addressed = () => ran.filter((line) => line.includes(" mac "));
const lastTrust = () => /trust \w+$/.exec(ran.findLast((line) => line.includes("trust")) ?? "")?.[0];

let root: string;
/** The programs that were run. */
let ran: string[];
/** What becomes of each run. */
let answer: () => Promise<unknown>;
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
    `ip link set dev ens1f0 vf 1 mac ${MAC} vlan 0`,
    "ip link set dev ens1f0 vf 1 trust on",
    `ip link set dev ens1f0 vf 1 ${CLEARED}`,
    "ip link set dev ens1f0 vf 1 trust off",
  ]);
});

test("a function that was trusted is not trusted when its port is no longer, and not for the next guest, whatever is recorded", async () => {
  const [trusted, untrusted] = [true, false].map((isTrusted) => device(VFS[0], { vlan: 5, isTrusted }));
  await functions.connect(guest("/a", trusted!), NEVER);
  await functions.connect(guest("/a", untrusted!), NEVER);
  expect(lastTrust()).toBe("trust off");
  await functions.connect(guest("/a", trusted!), NEVER);
  await functions.release(guest("/a", untrusted!), unused);
  expect(lastTrust()).toBe("trust off");
  // Nothing was cleared for a guest whose record could not be read.
  await functions.connect(guest("/b", trusted!), NEVER);
  await functions.connect(guest("/c", untrusted!), NEVER);
  expect(lastTrust()).toBe("trust off");
});

test.each([
  ["knows no trust", [{ vf: 0 }], null],
  [
    "does not trust the function",
    [
      { vf: 1, trust: true },
      { vf: 0, trust: false },
    ],
    null,
  ],
  ["trusts the function", [{ vf: 0, trust: true }], "may be trusted still, because the card did not end that"],
  ["does not show the function", [{ vf: 1, trust: false }], "may be trusted still"],
])("a card that refuses to end the trust, and %s", async (_, shown, reason) => {
  answer = async () => {
    if (ran.at(-1)?.endsWith("trust off")) throw new Error("ip link: RTNETLINK answers: Operation not supported");
    return ran.at(-1)?.includes("show") ? JSON.stringify([{ ifname: "ens1f0", vfinfo_list: shown }]) : "";
  };
  const one = guest("/a", device(VFS[0]));
  const outcomes = [() => functions.connect(one, NEVER), () => functions.release(one, unused)];
  for (const outcome of outcomes)
    if (reason === null) await outcome();
    else await expect(outcome()).rejects.toThrow(reason);
});

test("a card that cannot trust a function is named together with the port that asks for it", async () => {
  answer = () =>
    ran.at(-1)?.endsWith("trust on") ? Promise.reject(new Error("Operation not supported")) : Promise.resolve();
  await expect(functions.connect(guest("/a", device(VFS[0], { vlan: 5, isTrusted: true })), NEVER)).rejects.toThrow(
    `virtual function 0 of ens1f0 (${VFS[0]}) could not be trusted, as port p1 asks (Operation not supported): take "trusted" out`,
  );
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
  expect(addressed()).toHaveLength(4);
});

test("a card that refuses the empty MAC address gets another one that no port has", async () => {
  answer = () => (ran.at(-1)?.includes(CLEARED) ? Promise.reject(new Error("Invalid argument")) : Promise.resolve());
  await functions.release(guest("/a", device(VFS[0])), unused);
  expect(addressed().at(-1)).toBe("ip link set dev ens1f0 vf 0 mac 02:00:00:00:00:00 vlan 0");
});

test.each([
  ["keeps the port's MAC address", { address: MAC.toUpperCase() }, "keeps the MAC address and the VLAN of port p1"],
  ["keeps it, and an older ip shows it", { mac: MAC }, "keeps the MAC address and the VLAN of port p1"],
  ["does not show its MAC address", {}, "keeps the MAC address and the VLAN of port p1"],
  ["has another MAC address, since the port's was never set", { address: "5e:00:00:00:00:01" }, null],
])("a function whose clearing is refused, and which %s", async (_, values, reason) => {
  answer = async () => {
    if (!ran.at(-1)?.includes("show")) throw new Error("ip link: RTNETLINK answers: Operation not permitted");
    return JSON.stringify([{ vfinfo_list: [{ vf: 0, trust: false, ...values }] }]);
  };
  const clearing = functions.release(guest("/a", device(VFS[0])), unused);
  if (reason === null) await clearing;
  else await expect(clearing).rejects.toThrow(reason);
});

test("a host without the program has nothing to clear, since nothing was set there", async () => {
  answer = () => Promise.reject(new QemuError("unavailable", "ip is not installed on this host"));
  const one = guest("/a", device(VFS[0]));
  await expect(functions.connect(one, NEVER)).rejects.toThrow("ip is not installed on this host");
  await functions.release(one, unused);
});

test("a function that could not be set for one guest is cleared for the other one that had it before", async () => {
  await functions.connect(guest("/a", device(VFS[0])), NEVER);
  answer = () => Promise.reject(new Error("Device or resource busy"));
  await expect(functions.connect(guest("/b", device(VFS[0])), NEVER)).rejects.toThrow("busy");
  answer = async () => {};
  await functions.release(guest("/a", device(VFS[0])), unused);
  expect(addressed().at(-1)).toContain(CLEARED);
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
  expect(addressed()).toHaveLength(2);
  // An agent that has just started knows of the other guest by its QEMU.
  const next = new VirtualFunctions(root, async (_, args) => void ran.push(args.join(" ")));
  await next.release(guest("/a", device(VFS[0])), (address) => address === VFS[0]);
  expect(addressed()).toHaveLength(2);
  await next.release(guest("/b", device(VFS[0])), unused);
  expect(addressed()).toHaveLength(3);
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
  expect(addressed().map((one) => one.includes(CLEARED))).toEqual([false, true, false]);
});

describe("functions that are left over", () => {
  const notesAt = (path: string | null) => new FunctionNotes({ path, boot: "b" });
  const withNotes = (notes: FunctionNotes) =>
    new VirtualFunctions(
      root,
      (program, args) => {
        ran.push([program, ...args].join(" "));
        return answer();
      },
      notes,
    );
  const busy = () =>
    ran.at(-1)?.includes(" mac ") ? Promise.reject(new Error("Device or resource busy")) : Promise.resolve();
  const plain = (address: string): HostDevice => ({ kind: "pci", address });

  test("are cleared by the next process, if no guest uses them, whatever the guests' records say", async () => {
    const path = join(root, "notes.json");
    await withNotes(notesAt(path)).connect(guest("/a", device(VFS[0])), NEVER);
    await withNotes(notesAt(path)).connect(guest("/b", device(VFS[1])), NEVER);
    ran = [];
    const next = withNotes(notesAt(path));
    expect(await next.clearLeft((address, dir) => address === VFS[0] && dir === "/a")).toEqual([]);
    expect(ran).toEqual([`ip link set dev ens1f0 vf 1 ${CLEARED}`, "ip link set dev ens1f0 vf 1 trust off"]);
    expect(await next.clearLeft(unused)).toEqual([]);
    expect(addressed().at(-1)).toBe(`ip link set dev ens1f0 vf 0 ${CLEARED}`);
    expect(notesAt(path).all().size).toBe(0);
  });

  test("are tried again when a card has kept them, and not while it is the function of a guest that has started since", async () => {
    await functions.connect(guest("/a", device(VFS[0])), NEVER);
    answer = busy;
    await expect(functions.release(guest("/a", device(VFS[0])), unused)).rejects.toThrow("busy");
    expect(await functions.clearLeft(unused)).toEqual([
      { dir: "/a", error: expect.objectContaining({ message: expect.stringContaining("keeps the MAC address") }) },
    ]);
    answer = async () => {};
    await functions.connect(guest("/b", device(VFS[0])), NEVER);
    ran = [];
    // Its QEMU may not have been started yet.
    expect(await functions.clearLeft(unused)).toEqual([]);
    expect(ran).toEqual([]);
    answer = busy;
    await expect(functions.release(guest("/b", device(VFS[0])), unused)).rejects.toThrow("busy");
    answer = async () => {};
    expect(await functions.clearLeft(unused)).toEqual([]);
    expect(addressed().at(-1)).toBe(`ip link set dev ens1f0 vf 0 ${CLEARED}`);
  });

  test("are cleared before a guest gets one of them for no port, which it does not get while the card keeps them", async () => {
    await functions.connect(guest("/a", device(VFS[0])), NEVER);
    ran = [];
    answer = busy;
    await expect(functions.connect(guest("/b", plain(VFS[0])), NEVER)).rejects.toThrow(
      `virtual function 0 of ens1f0 (${VFS[0]}) keeps the MAC address and the VLAN of port p1`,
    );
    answer = async () => {};
    await functions.connect(guest("/b", plain(VFS[0])), NEVER);
    expect(addressed().at(-1)).toBe(`ip link set dev ens1f0 vf 0 ${CLEARED}`);
    ran = [];
    // Nothing is noted of these: their settings are the operator's.
    await functions.connect(guest("/b", plain(VFS[0]), plain(VFS[1])), NEVER);
    expect(ran).toEqual([]);
  });

  test("are not cleared for a guest that gets one of them for no port while another guest runs with it", async () => {
    await functions.connect(guest("/a", device(VFS[0])), NEVER);
    ran = [];
    await functions.connect(guest("/b", plain(VFS[0])), NEVER, (address, dir) => address === VFS[0] && dir === "/a");
    expect(ran).toEqual([]);
  });

  test("are known of a guest whose record cannot be read, when it is destroyed", async () => {
    await functions.connect(guest("/a", device(VFS[0]), device(VFS[1])), NEVER);
    await functions.connect(guest("/b", device(VFS[1])), NEVER);
    ran = [];
    await functions.releaseAll({ dir: "/a", devices: undefined }, unused);
    expect(addressed()).toEqual([`ip link set dev ens1f0 vf 0 ${CLEARED}`]);
    await functions.releaseAll({ dir: "/a", devices: undefined }, unused);
    expect(addressed()).toHaveLength(1);
  });

  test("of an agent without notes are noted while its guests run, and those that are noted stay as they are", async () => {
    const notes = notesAt(null);
    const one = withNotes(notes);
    one.remember(guest("/a", device(VFS[0]), plain(VFS[1])));
    expect([...notes.all()]).toEqual([[VFS[0], { dir: "/a", portId: "p1", mac: MAC }]]);
    one.remember(guest("/b", device(VFS[0])));
    expect(notes.all().get(VFS[0])?.dir).toBe("/a");
    expect(ran).toEqual([]);
  });

  test("stay known when another guest starts in vain whose connection is unknown, of which the card is not told", async () => {
    await functions.connect(guest("/a", device(VFS[0])), NEVER);
    answer = busy;
    await expect(functions.release(guest("/a", device(VFS[0])), unused)).rejects.toThrow("busy");
    await expect(functions.connect(guest("/b", device(VFS[0], null)), NEVER)).rejects.toThrow("VLAN");
    await functions.releaseAll(guest("/b", device(VFS[0], null)), unused);
    expect(await functions.clearLeft(unused)).toMatchObject([{ dir: "/a" }]);
    answer = async () => {};
    await functions.connect(guest("/c", plain(VFS[0])), NEVER);
    expect(addressed().at(-1)).toBe(`ip link set dev ens1f0 vf 0 ${CLEARED}`);
  });

  test("stay known when a card keeps them from another guest's start, also to the next process, with each MAC address that it may have", async () => {
    const path = join(root, "notes.json");
    const OTHER = "fa:16:3e:00:00:02";
    const other: HostDevice = {
      ...{ kind: "pci", address: VFS[0] },
      port: { portId: "p2", mac: OTHER, slot: 1, connection: { vlan: 1, isTrusted: false } },
    };
    const one = withNotes(notesAt(path));
    await one.connect(guest("/a", device(VFS[0])), NEVER);
    const shownMac = { address: MAC };
    answer = async () => {
      if (ran.at(-1)?.includes("show")) return JSON.stringify([{ vfinfo_list: [{ vf: 0, ...shownMac }] }]);
      if (ran.at(-1)?.includes(" mac ")) throw new Error("Device or resource busy");
      return "";
    };
    await expect(one.release(guest("/a", device(VFS[0])), unused)).rejects.toThrow("busy");
    await expect(one.connect(guest("/b", other), NEVER)).rejects.toThrow("could not get the MAC address");
    expect(await one.clearLeft(unused)).toHaveLength(1);
    await expect(one.releaseAll(guest("/b", other), unused)).rejects.toThrow("keeps the MAC address");
    const next = withNotes(notesAt(path));
    expect(await next.clearLeft(unused)).toHaveLength(1);
    // The card has neither guest's address: somebody has set another one.
    shownMac.address = "5e:00:00:00:00:01";
    expect(await next.clearLeft(unused)).toEqual([]);
    expect(notesAt(path).all().size).toBe(0);
  });
});
