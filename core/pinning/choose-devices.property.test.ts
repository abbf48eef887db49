import { expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { chooseDevices } from "./choose-devices.ts";
import { deviceName, type HostDevice } from "./host-device.ts";

const ADDRESSES = ["v0", "v1", "v2", "v3"];
const GPUS = ["g0", "g1"].map((parent) => ({ parent, type: "nvidia-35" }));
const LAYOUT = {
  ...{ places: [], cores: [] },
  devices: [
    { provider: "card", resourceClass: "SRIOV_NET_VF", addresses: ADDRESSES, mdev: null },
    ...GPUS.map((mdev) => ({ provider: mdev.parent, resourceClass: "VGPU", addresses: [], mdev })),
  ],
};

const uuid = fc.constantFrom("e0", "e1", "e2", "e3", "u0", "u1");
/** A mediated device of a UUID is always on the same card. */
const cardOf = (name: string) => GPUS[Number(name.at(-1)) % GPUS.length]!;
const mdev = uuid.map((name): HostDevice => ({ kind: "mdev", uuid: name, ...cardOf(name) }));
const pci = fc.constantFrom(...ADDRESSES).map((address): HostDevice => ({ kind: "pci", address }));
const claim = fc.record({ provider: fc.constantFrom("card", "g0", "g1"), amount: fc.integer({ min: 1, max: 3 }) });
const world = fc.record({
  claims: fc.array(claim, { minLength: 1, maxLength: 4 }),
  // Two guests of the server may have recorded the same device.
  own: fc.array(fc.oneof(mdev, pci), { maxLength: 6 }),
  taken: fc.array(fc.oneof(uuid, fc.constantFrom(...ADDRESSES)), { maxLength: 4 }),
  existing: fc.array(uuid, { maxLength: 6 }),
});

test("no device is given twice or taken from another server, and each is of a provider that the claim names", () => {
  fc.assert(
    fc.property(world, ({ claims, own, taken, existing }) => {
      const claimed = claims.map(({ provider, amount }) => ({
        ...{ provider, amount, resourceClass: provider === "card" ? "SRIOV_NET_VF" : "VGPU" },
      }));
      const chosen = chooseDevices(claimed, {
        ...{ layout: LAYOUT, taken: new Set(taken), own },
        existing: (source) => existing.filter((name) => cardOf(name).parent === source.parent),
        newUuid: (index) => `new ${index}`,
      });
      const wanted = (provider: string) =>
        claims.reduce((sum, one) => sum + (one.provider === provider ? one.amount : 0), 0);
      const isTooMuch = wanted("card") > ADDRESSES.filter((address) => !taken.includes(address)).length;
      expect(chosen.kind).toBe(isTooMuch ? "refused" : "chosen");
      if (chosen.kind === "refused") return;
      const names = chosen.devices.map(deviceName);
      expect(names).toEqual([...new Set(names)]);
      expect(names.filter((name) => taken.includes(name))).toEqual([]);
      const count = (provider: string) =>
        chosen.devices.filter((one) => (one.kind === "pci" ? "card" : one.parent) === provider).length;
      for (const provider of ["card", "g0", "g1"]) expect(count(provider)).toBe(wanted(provider));
      // A device that the server has already is used before any other one.
      for (const { parent } of GPUS) {
        const had = own.filter((one) => one.kind === "mdev" && one.parent === parent).map(deviceName);
        const free = [...new Set(had)].filter((name) => !taken.includes(name));
        const used = free.filter((name) => names.includes(name)).length;
        expect(used).toBe(Math.min(free.length, wanted(parent)));
      }
    }),
    { numRuns: 500 },
  );
});
