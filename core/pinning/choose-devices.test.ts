import { expect, test } from "vitest";
import { chooseDevices, claimedDevices, type DeviceHost } from "./choose-devices.ts";

const LAYOUT = {
  ...{ places: [], cores: [] },
  devices: [
    { provider: "card", resourceClass: "SRIOV_NET_VF", addresses: ["v0", "v1", "v2"], mdev: null },
    { provider: "card", resourceClass: "CUSTOM_PCI_8086_1572", addresses: ["p0"], mdev: null },
    {
      provider: "gpu",
      resourceClass: "VGPU",
      addresses: [],
      mdev: { parent: "g0", type: "nvidia-35" },
      headsOfEach: 2,
    },
    { provider: "own", resourceClass: "CUSTOM_GPU", addresses: ["g1"], mdev: null },
  ],
  deviceClasses: ["CUSTOM_GPU", "CUSTOM_GONE"],
};
const host = (changes: Partial<DeviceHost> = {}): DeviceHost => ({
  ...{ layout: LAYOUT, taken: new Set<string>(), own: [], existing: () => [], newUuid: (index) => `u${index}` },
  ...changes,
});
const claim = (provider: string, resourceClass: string, amount = 1) => ({ provider, resourceClass, amount });
const pci = (address: string) => ({ kind: "pci" as const, address });
const mdev = (uuid: string) => ({ kind: "mdev" as const, uuid, parent: "g0", type: "nvidia-35" });

test("the parts of a claim that are devices are told from the others", () => {
  const items = [
    ...[claim("n", "VCPU", 2), claim("n", "MEMORY_MB", 64), claim("n", "CUSTOM_GOLD"), claim("a", "VGPU", 0)],
    ...[claim("b", "CUSTOM_PCI_10DE_1EB8"), claim("c", "SRIOV_NET_VF"), claim("d", "PGPU", 2)],
  ];
  expect(claimedDevices({ items, mappings: {} }).map(({ provider }) => provider)).toEqual(["b", "c", "d"]);
  expect(claimedDevices(undefined)).toEqual([]);
});

test("a class that the operator has made up is one of devices where the host gives it to devices, also while it has none", () => {
  const items = [claim("own", "CUSTOM_GPU"), claim("n", "CUSTOM_LICENCE", 3), claim("gone", "CUSTOM_GONE")];
  const claimed = claimedDevices({ items, mappings: {} }, LAYOUT);
  expect(claimed.map(({ provider }) => provider)).toEqual(["own", "gone"]);
  // The operator has taken the class away, or has renamed it, while a server has the device.
  const without = { ...LAYOUT, deviceClasses: ["CUSTOM_OTHER"], deviceProviders: ["own", "card"] };
  const left = claimedDevices({ items, mappings: {} }, without);
  expect(left).toEqual([claim("own", "CUSTOM_GPU")]);
  expect(chooseDevices(left, host({ layout: { ...without, devices: [] } }))).toMatchObject({
    ...{ kind: "refused", reason: expect.stringContaining("needs 1 CUSTOM_GPU of resource provider own") },
  });
  expect(claimedDevices({ items, mappings: {} }, null)).toEqual([]);
  expect(chooseDevices(claimed.slice(0, 1), host())).toEqual({ kind: "chosen", devices: [pci("g1")] });
  expect(chooseDevices(claimed, host())).toEqual({
    kind: "refused",
    reason: expect.stringContaining("1 CUSTOM_GONE of resource provider gone, and the host's agent does not know"),
  });
});

test("displays need no device of their own, but the devices of their card that drive them", () => {
  const heads = (amount: number, provider = "gpu") => claim(provider, "VGPU_DISPLAY_HEAD", amount);
  const chosen = (...claimed: readonly ReturnType<typeof claim>[]) => chooseDevices(claimed, host());
  expect(chosen(heads(4), claim("gpu", "VGPU", 2))).toEqual({ kind: "chosen", devices: [mdev("u0"), mdev("u1")] });
  for (const [claimed, reason] of [
    [[heads(3), claim("gpu", "VGPU")], "the guest needs 3 VGPU_DISPLAY_HEAD of resource provider gpu, and the 1 VGPU"],
    [[heads(1)], "and the 0 VGPU that it claims there have 0"],
    [[heads(1, "elsewhere"), claim("gpu", "VGPU")], "does not know which devices these are"],
  ] as const)
    expect(chosen(...claimed)).toEqual({ kind: "refused", reason: expect.stringContaining(reason) });
});

test("a guest gets free devices of the providers that its claim names", () => {
  const claimed = [claim("card", "SRIOV_NET_VF", 2), claim("card", "CUSTOM_PCI_8086_1572"), claim("gpu", "VGPU", 2)];
  expect(chooseDevices(claimed, host({ taken: new Set(["v0"]) }))).toEqual({
    kind: "chosen",
    devices: [pci("v1"), pci("v2"), pci("p0"), mdev("u3"), mdev("u4")],
  });
});

test("a server that stays on its host keeps the devices that it has", () => {
  const own = [pci("v2"), mdev("old")];
  const claimed = [claim("card", "SRIOV_NET_VF", 2), claim("gpu", "VGPU", 2)];
  expect(chooseDevices(claimed, host({ own }))).toEqual({
    kind: "chosen",
    devices: [pci("v2"), pci("v0"), mdev("old"), mdev("u2")],
  });
});

test("mediated devices that are nobody's come before new ones, and say that they were there before", () => {
  const existing = ({ type }: { readonly type: string }) => (type === "nvidia-35" ? ["e0", "e1", "old", "e2"] : []);
  const changes = { own: [mdev("old")], taken: new Set(["e0"]), existing };
  expect(chooseDevices([claim("gpu", "VGPU", 2), claim("gpu", "VGPU", 2)], host(changes))).toEqual({
    kind: "chosen",
    devices: [mdev("old"), { ...mdev("e1"), isFound: true }, { ...mdev("e2"), isFound: true }, mdev("u2")],
  });
});

test("two claims of one provider get different devices", () => {
  const claimed = [claim("card", "SRIOV_NET_VF"), claim("card", "SRIOV_NET_VF", 2)];
  expect(chooseDevices(claimed, host())).toEqual({ kind: "chosen", devices: [pci("v0"), pci("v1"), pci("v2")] });
});

test.each([
  ["too few are free", [claim("card", "SRIOV_NET_VF", 3)], { taken: new Set(["v1"]) }, "of which 2 are free"],
  ["the provider has no such devices", [claim("card", "VGPU")], {}, "the host's agent does not know which devices"],
  ["the host only says how many it has", [claim("card", "SRIOV_NET_VF")], { layout: null }, "start it with --discover"],
])("a guest is refused when %s", (_when, claimed, changes, reason) => {
  const chosen = chooseDevices(claimed, host(changes));
  expect(chosen).toEqual({ kind: "refused", reason: expect.stringContaining(reason) });
});
