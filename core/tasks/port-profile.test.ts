import { expect, test } from "vitest";
import { withDevice, withoutDevice } from "./port-profile.ts";

const DEVICE = { portId: "p", pciSlot: "0000:3b:02.0", pciVendorInfo: "8086:154c", physicalNetwork: "physnet1" };
const FIELDS = { pci_slot: "0000:3b:02.0", pci_vendor_info: "8086:154c", physical_network: "physnet1" };

test("a profile names the function of the host, and keeps what users have written", () => {
  expect(withDevice({ trusted: "true", pci_slot: "old" }, DEVICE)).toEqual({ trusted: "true", ...FIELDS });
  const { pci_slot } = FIELDS;
  expect(withDevice({ ...FIELDS }, { ...DEVICE, pciVendorInfo: "", physicalNetwork: "" })).toEqual({ pci_slot });
});

test("a profile that needs no change is the same object", () => {
  for (const profile of [{}, { trusted: "true" }]) {
    expect(withDevice(profile, undefined)).toBe(profile);
    expect(withoutDevice(profile)).toBe(profile);
  }
  const told = { trusted: "true", ...FIELDS };
  expect(withDevice(told, DEVICE)).toBe(told);
});

test("a port that leaves its host loses the function and nothing else", () => {
  expect(withoutDevice({ trusted: "true", ...FIELDS })).toEqual({ trusted: "true" });
});
