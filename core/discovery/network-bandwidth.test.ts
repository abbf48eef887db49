import { expect, test } from "vitest";
import type { InterfaceBandwidth } from "./network-bandwidth.ts";
import { build, NO_DEVICE, rootOf, twoNodes } from "./some-host.ts";

const nic = (name: string, speedMbps: number | null) => ({ name, macAddress: null, speedMbps, master: null });
const SRIOV = { totalVfs: 4, numVfs: 1, vfs: ["0000:3b:02.0"] };
const PCI = [
  { ...NO_DEVICE, address: "0000:3b:00.0", nics: [nic("ens1f0", 10_000)], sriov: SRIOV },
  { ...NO_DEVICE, address: "0000:3b:02.0", device: "154c", physicalFunction: "0000:3b:00.0" },
  { ...NO_DEVICE, address: "0000:5e:00.0", nics: [nic("ens2", null)] },
];
const HOST = twoNodes({ pci: PCI });
const NETWORKS = [
  { name: "fast", card: "0000:3b:00.0" },
  { name: "slow", card: "ens2" },
  { name: "bonded", card: "bond0" },
];
const measured = (interfaceName: string): InterfaceBandwidth => ({ interfaceName, stated: null });
const stated = (interfaceName: string, egressKbps: number, ingressKbps: number): InterfaceBandwidth => ({
  interfaceName,
  stated: { egressKbps, ingressKbps },
});
const networkOf = (...bandwidths: readonly InterfaceBandwidth[]) =>
  rootOf(HOST, { bandwidths, physicalNetworks: NETWORKS }).children?.find(({ name }) => name === "network");
const warningsOf = (...bandwidths: readonly InterfaceBandwidth[]) =>
  build(HOST, { bandwidths, physicalNetworks: NETWORKS }).warnings.filter((one) => one.includes("bandwidth"));

test("interfaces are below a provider of their own, with their bandwidth in each direction, their network and their kinds of ports", () => {
  expect(networkOf(measured("ens1f0"), stated("bond0", 20_000_000, 0))).toEqual({
    ...{ name: "network", inventories: {}, traits: ["CUSTOM_VNIC_TYPE_NORMAL", "CUSTOM_VNIC_TYPE_DIRECT"] },
    children: [
      {
        name: "ens1f0",
        inventories: {
          NET_BW_EGR_KILOBIT_PER_SEC: { total: 10_000_000 },
          NET_BW_IGR_KILOBIT_PER_SEC: { total: 10_000_000 },
        },
        traits: ["CUSTOM_PHYSNET_FAST", "CUSTOM_VNIC_TYPE_NORMAL", "CUSTOM_VNIC_TYPE_DIRECT"],
      },
      {
        name: "bond0",
        inventories: { NET_BW_EGR_KILOBIT_PER_SEC: { total: 20_000_000 } },
        traits: ["CUSTOM_PHYSNET_BONDED", "CUSTOM_VNIC_TYPE_NORMAL"],
      },
    ],
  });
});

test("a stated bandwidth counts instead of the interface's speed, also when it has no link", () => {
  const totals = networkOf(stated("ens1f0", 1, 2), stated("ens2", 3, 4))?.children?.map(({ inventories }) =>
    Object.values(inventories).map(({ total }) => total),
  );
  expect(totals).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

test("nothing is offered by default, and an interface of unknown speed or without a network is left out with a warning", () => {
  expect(networkOf()).toBeUndefined();
  expect(networkOf(measured("ens2"), stated("ens9", 1, 1), stated("ens1f0", 0, 0))).toBeUndefined();
  expect(warningsOf(measured("ens2"), stated("ens9", 1, 1))).toEqual([
    "the bandwidth of ens2 is not reported, because its speed is unknown: plug it in, or state the bandwidth, as in ens2:10000000:10000000",
    "the bandwidth of ens9 is not reported: physical-networks does not say to which network it is connected",
  ]);
  const { warnings } = build(HOST, { bandwidths: [stated("bond0", 1, 1)], physicalNetworks: NETWORKS });
  expect(warnings.filter((one) => one.includes("cards that the host does not have"))).toEqual([]);
});
