import { expect, test } from "vitest";
import type { HostDevice } from "../../core/pinning/host-device.ts";
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
