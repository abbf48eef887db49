import { describe, expect, test } from "vitest";
import type { TreeOptions } from "./host-tree.ts";
import type { PhysicalNetwork } from "./physical-network-trait.ts";
import { below, build, NO_DEVICE, rootOf, twoNodes } from "./some-host.ts";

describe("PCI devices in the tree", () => {
  const card = { ...NO_DEVICE, address: "0000:3b:00.0", numaNode: 1, sriov: { totalVfs: 4, numVfs: 2, vfs: [] } };
  const vf = (address: string) => ({ ...NO_DEVICE, address, device: "154c", physicalFunction: "0000:3b:00.0" });
  const vfs = [vf("0000:3b:02.0"), vf("0000:3b:02.1")];
  const named = (...devices: readonly string[]): TreeOptions["pciDevices"] =>
    devices.map((device) => ({ device, resourceClass: null, traits: [] }));
  const divides = (...types: readonly string[]): TreeOptions["mdevOffers"] =>
    types.map((type) => ({ type, resourceClass: "VGPU", traits: [], instancesMax: null, addresses: [] }));
  const gpu = { ...NO_DEVICE, address: "0000:84:00.0", vendor: "10de", device: "13bb", class: "030200" };

  test("virtual functions are units of their physical function's provider, which is near its NUMA node, and the physical function itself is not offered", () => {
    const root = rootOf(twoNodes({ pci: [card, ...vfs] }), { pciDevices: named("8086:1572") });
    expect(root.children?.[1]?.children).toEqual([
      {
        name: "0000:3b:00.0",
        inventories: { SRIOV_NET_VF: { total: 2 } },
        traits: ["COMPUTE_MANAGED_PCI_DEVICE", "HW_NIC_SRIOV"],
      },
    ]);
    expect(below(rootOf(twoNodes({ pci: [card, ...vfs] }), { pciDevices: named("0000:3b:02.1") }))).toMatchObject({
      "0000:3b:00.0": { SRIOV_NET_VF: { total: 1 } },
    });
  });

  test("a device of a node without memory is below the node that has that node's CPUs", () => {
    const [first, second] = twoNodes().numaNodes ?? [];
    const numaNodes = [first!, { ...second!, joinedNodes: [4] }];
    const root = rootOf(twoNodes({ numaNodes, pci: [{ ...gpu, numaNode: 4 }] }));
    expect(root.children?.map(({ name, children }) => [name, children?.map((one) => one.name)])).toEqual([
      ["numa0", undefined],
      ["numa1", ["0000:84:00.0"]],
    ]);
  });

  test("virtual functions have the trait of the physical network that the card is connected to, by its interface or its address", () => {
    const nic = { name: "ens1f0", macAddress: null, speedMbps: null, master: null };
    const pci = [{ ...card, nics: [nic] }, ...vfs];
    const traitsOf = (...physicalNetworks: readonly PhysicalNetwork[]) =>
      rootOf(twoNodes({ pci }), { physicalNetworks }).children?.[1]?.children?.[0]?.traits;
    const own = ["COMPUTE_MANAGED_PCI_DEVICE", "HW_NIC_SRIOV"];
    expect(traitsOf({ name: "physnet-1.a", card: "ens1f0" })).toEqual([...own, "CUSTOM_PHYSNET_PHYSNET_1_A"]);
    expect(traitsOf({ name: "other", card: "ens9" }, { name: "b", card: "0000:3b:00.0" })).toEqual([
      ...own,
      "CUSTOM_PHYSNET_B",
    ]);
    const { warnings } = build(twoNodes({ pci }), { physicalNetworks: [{ name: "b", card: "ens9" }] });
    expect(warnings.join()).toContain("physical-networks names cards that the host does not have: ens9");
  });

  test("a card that is named under several physical networks is connected to the first one, and a warning names the others", () => {
    const nic = { name: "ens1f0", macAddress: null, speedMbps: null, master: null };
    const [byName, byAddress] = [
      { name: "a", card: "ens1f0" },
      { name: "b", card: "0000:3b:00.0" },
    ];
    const seen = (...physicalNetworks: readonly PhysicalNetwork[]) => {
      const { tree, warnings } = build(twoNodes({ pci: [{ ...card, nics: [nic] }, ...vfs] }), { physicalNetworks });
      if (tree.kind !== "tree") throw new Error(tree.reason);
      return { networks: tree.devices.map(({ physicalNetwork }) => physicalNetwork), warnings };
    };
    expect(seen(byAddress, byName)).toEqual({
      networks: ["b"],
      warnings: [
        "physical-networks connects 0000:3b:00.0 to several networks: it counts as connected to b, and not to a",
      ],
    });
    expect(seen(byName, { ...byAddress, name: "a" })).toEqual({ networks: ["a"], warnings: [] });
  });

  test("warns of physical networks whose names become the same trait, and names them", () => {
    const nic = (name: string) => ({ name, macAddress: null, speedMbps: null, master: null });
    const pci = [{ ...card, nics: [nic("ens1f0"), nic("ens1f1")] }, ...vfs];
    const warned = (...names: readonly string[]) =>
      build(twoNodes({ pci }), {
        physicalNetworks: names.map((name) => ({ name, card: "ens1f0" })),
      }).warnings.filter((warning) => warning.includes("the same trait"));
    expect(warned("phys-net", "phys.net")).toEqual([
      "physical-networks names phys-net and phys.net, which become the same trait, CUSTOM_PHYSNET_PHYS_NET: servers of the one get functions of the other. Rename one of them, also in Neutron",
    ]);
    expect(warned("physnet1", "physnet2", "physnet1")).toEqual([]);
  });

  test("a physical function without virtual ones is a device, and one of another kind has its virtual ones by their id", () => {
    expect(below(rootOf(twoNodes({ pci: [card] }), { pciDevices: named("0000:3b:00.0") }))["0000:3b:00.0"]).toEqual({
      CUSTOM_PCI_8086_1572: { total: 1 },
    });
    const disk = { ...card, class: "010802" };
    expect(below(rootOf(twoNodes({ pci: [disk, ...vfs] })))["0000:3b:00.0"]).toEqual({
      CUSTOM_PCI_8086_154C: { total: 2 },
    });
  });

  test("without a choice of the operator only virtual functions and accelerators are offered, under the root when no node is near", () => {
    const root = rootOf(twoNodes({ pci: [{ ...NO_DEVICE, class: "060000" }, gpu] }));
    expect(root.children?.at(-1)).toEqual({
      ...{ name: "0000:84:00.0", inventories: { CUSTOM_PCI_10DE_13BB: { total: 1 } } },
      traits: ["COMPUTE_MANAGED_PCI_DEVICE"],
    });
    expect(root.children).toHaveLength(3);
  });

  test("a device has the class and the traits of the first specification that names it", () => {
    const display = { ...gpu, class: "030000", address: "0000:85:00.0" };
    const pciDevices = [
      { device: "0000:84:00.0", resourceClass: "PGPU", traits: ["HW_GPU_API_VULKAN", "CUSTOM_A100"] },
      { device: "10de:13bb", resourceClass: "CUSTOM_PCI_GPU", traits: [] },
    ];
    const { tree } = build(twoNodes({ pci: [gpu, display] }), { pciDevices });
    if (tree.kind !== "tree") throw new Error(tree.reason);
    expect(tree.root.children?.slice(2)).toEqual([
      {
        ...{ name: "0000:84:00.0", inventories: { PGPU: { total: 1 } } },
        traits: ["COMPUTE_MANAGED_PCI_DEVICE", "HW_GPU_API_VULKAN", "CUSTOM_A100"],
      },
      {
        ...{ name: "0000:85:00.0", inventories: { CUSTOM_PCI_GPU: { total: 1 } } },
        traits: ["COMPUTE_MANAGED_PCI_DEVICE"],
      },
    ]);
    expect(tree.devices.map(({ functions }) => functions)).toEqual([
      { PGPU: ["0000:84:00.0"] },
      { CUSTOM_PCI_GPU: ["0000:85:00.0"] },
    ]);
  });

  test("virtual functions get the class of their own or their card's specification, and the card only the traits of all of them", () => {
    const pf = { ...card, class: "030200" };
    const own = { device: "0000:3b:02.1", resourceClass: "FPGA", traits: ["CUSTOM_ALL", "CUSTOM_SECOND"] };
    const ofCard = { device: "0000:3b:00.0", resourceClass: "PGPU", traits: ["CUSTOM_ALL"] };
    const host = twoNodes({ pci: [pf, ...vfs] });
    const { warnings } = build(host, { pciDevices: [own, ofCard] });
    const provider = rootOf(host, { pciDevices: [own, ofCard] }).children?.[1]?.children?.[0];
    expect(provider?.inventories).toEqual({ PGPU: { total: 1 }, FPGA: { total: 1 } });
    expect(provider?.traits).toEqual(["COMPUTE_MANAGED_PCI_DEVICE", "CUSTOM_ALL"]);
    expect(warnings).toEqual([
      "pci-devices gives only some functions of 0000:3b:00.0 the traits CUSTOM_SECOND: the card does not get them, since guests get any of its functions",
    ]);
  });

  test("a card is divided into the first of its enabled types, and is then not offered as a device itself", () => {
    const type = (name: string, available: number | null) => ({
      ...{ type: name, name: null, deviceApi: null, description: null, available, existing: 1 },
    });
    const divided = { ...gpu, mdevTypes: [type("nvidia-35", 14), type("nvidia-36", null)] };
    const [offer] = divides("nvidia-35");
    const own = [{ ...offer!, resourceClass: "CUSTOM_SMALL", traits: ["CUSTOM_A100"] }];
    expect(rootOf(twoNodes({ pci: [divided] }), { mdevOffers: own }).children?.at(-1)).toEqual({
      ...{ name: "0000:84:00.0", inventories: { CUSTOM_SMALL: { total: 15 } }, traits: ["CUSTOM_A100"] },
    });
    const root = rootOf(twoNodes({ pci: [divided] }), { mdevOffers: divides("nvidia-99", "nvidia-35") });
    expect(below(root)["0000:84:00.0"]).toEqual({ VGPU: { total: 15 } });
    const unknown = build(twoNodes({ pci: [divided] }), { mdevOffers: divides("nvidia-36") });
    expect(unknown.warnings).toEqual([
      "nvidia-36 of 0000:84:00.0 is not reported: the number that exists or can be created is unknown",
    ]);
  });

  test("a virtual function that is divided is not also offered whole", () => {
    const mdevTypes = [{ type: "t", name: null, deviceApi: null, description: null, available: 1, existing: 0 }];
    const pci = [{ ...card, class: "030200" }, { ...vfs[0]!, mdevTypes }, vfs[1]!];
    expect(below(rootOf(twoNodes({ pci }), { mdevOffers: divides("t") }))).toMatchObject({
      "0000:3b:00.0": { CUSTOM_PCI_8086_154C: { total: 1 } },
      "0000:3b:02.0": { VGPU: { total: 1 } },
    });
  });

  test("a virtual function of a type that is enabled for other functions is offered only if it is named", () => {
    const mdevTypes = [{ type: "t", name: null, deviceApi: null, description: null, available: 1, existing: 0 }];
    const pci = [{ ...card, class: "030200" }, ...vfs.map((one) => ({ ...one, mdevTypes }))];
    const mdevOffers = divides("t").map((one) => ({ ...one, addresses: ["0000:3b:02.0"] }));
    const found = (pciDevices: TreeOptions["pciDevices"]) => {
      const all = below(rootOf(twoNodes({ pci }), { mdevOffers, pciDevices }));
      return Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith("0000:")));
    };
    const divided = { "0000:3b:02.0": { VGPU: { total: 1 } } };
    expect(found(null)).toEqual(divided);
    const whole = { "0000:3b:00.0": { CUSTOM_PCI_8086_154C: { total: 1 } } };
    expect(found(named("0000:3b:02.1"))).toEqual({ ...divided, ...whole });
  });

  test("warns of named devices and types that the host does not have", () => {
    const mdevOffers = divides("t").map((one) => ({ ...one, addresses: ["0000:99:00.0"] }));
    const { warnings } = build(twoNodes({ pci: [gpu] }), { pciDevices: named("8086:0001"), mdevOffers });
    expect(warnings).toEqual([
      "pci-devices names devices that the host does not have: 8086:0001",
      "enabled-mdev-types names types that no device has: t",
      "mdev-device-addresses names cards that the host does not have: 0000:99:00.0",
    ]);
  });
});
