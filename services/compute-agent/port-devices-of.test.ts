import { expect, test } from "vitest";
import type { HostDevice } from "../../core/pinning/host-device.ts";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { MemoryDisk } from "./memory-journal.ts";
import { portDevicesOf } from "./port-devices-of.ts";

const GUEST = { host: "h", serverUuid: "s", attemptId: "a" };
const UNPINNED = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null };
const told = (...devices: readonly HostDevice[]) => portDevicesOf(GUEST, () => ({ ...UNPINNED, devices }));
const port = { portId: "p", mac: "m", slot: 1, connection: null };

test("names the functions of direct ports, as Neutron wants to have them", () => {
  const known = { vendorInfo: "8086:154c", physicalNetwork: "physnet1" };
  const devices = told({ kind: "pci", address: "v0" }, { kind: "pci", address: "v1", port: { ...port, ...known } });
  expect(devices).toEqual({
    devices: [{ portId: "p", pciSlot: "v1", pciVendorInfo: "8086:154c", physicalNetwork: "physnet1" }],
  });
  expect(told({ kind: "pci", address: "v1", port })?.devices).toMatchObject([
    { pciVendorInfo: "", physicalNetwork: "" },
  ]);
});

test("names none for a guest without direct ports, and for one whose record cannot be read", () => {
  expect(told({ kind: "pci", address: "v0" })).toBeUndefined();
  const unreadable = () => {
    throw new Error("guest.json is damaged");
  };
  expect(portDevicesOf(GUEST, unreadable)).toBeUndefined();
});

test("names them also when an order is answered again, since the first answer may have been lost", async () => {
  const driver = new NotingDriver();
  await driver.adopt([{ ...GUEST, state: "running" }]);
  Object.assign(driver, { pinningOf: () => ({ ...UNPINNED, devices: [{ kind: "pci", address: "v1", port }] }) });
  const disk: MemoryDisk = { records: [{ kind: "guest", ...GUEST, state: "running", atMs: 1 }] };
  const { orders, stream, answers } = await openGuestOrders(disk, { driver, clock: systemClock });
  const none = {
    imageId: "",
    snapshot: undefined,
    files: [],
    rescueImage: undefined,
    volume: undefined,
    interfaces: undefined,
  };
  for (const [at, verb, revision] of [
    [1, "start", 1],
    [2, "start", 1],
    [3, "stop", 2],
  ] as const) {
    orders.power({ ...GUEST, verb, orderId: `o/${revision}`, revision, ...none }, stream);
    await eventually("the answer", () => answers.length === at);
  }
  expect(answers.map((answer) => answer.devices?.devices.map(({ pciSlot }) => pciSlot))).toEqual([
    ["v1"],
    ["v1"],
    undefined,
  ]);
});
