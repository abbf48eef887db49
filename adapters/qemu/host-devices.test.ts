import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DevicePort } from "../../core/pinning/host-device.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { makeSysroot, type SysrootPlan, sriovCard } from "../../test/rigs/made-up-sysroot.ts";
import { existingMdevs, hostDeviceArguments, readyHostDevices, removeMdevs } from "./host-devices.ts";

const VF = "0000:3b:02.0";
const CARD = "0000:3b:00.0";
const DIR = `/sys/devices/pci0000:3a/${VF}`;
const device = { kind: "pci" as const, address: VF };
const driver = (name: string) => ({ link: `../../../bus/pci/drivers/${name}` });

/** A card whose first virtual function can be given to a guest. */
const usable = (): SysrootPlan => ({
  ...sriovCard(),
  [`${DIR}/driver`]: driver("vfio-pci"),
  [`/sys/kernel/iommu_groups/70/devices/${VF}`]: { link: `../../../../devices/pci0000:3a/${VF}` },
  "/dev/vfio/70": "",
});

test("a function that is bound to vfio-pci, alone in its group, can be given to a guest", async () => {
  await readyHostDevices([device], makeSysroot(usable()));
});

test.each(["mlx5_vfio_pci", "nvgrace_gpu_vfio_pci"])("so can one that is bound to %s", async (name) => {
  await readyHostDevices([device], makeSysroot(usable(), { [`${DIR}/driver`]: driver(name) }));
});

test.each<readonly [string, SysrootPlan, string]>([
  ["another driver uses it", { [`${DIR}/driver`]: driver("iavf") }, "is bound to the driver iavf"],
  ["NVIDIA's driver has no type set", { [`${DIR}/driver`]: driver("nvidia") }, "is bound to the driver nvidia"],
  [
    "another function of its group is in use",
    { [`/sys/kernel/iommu_groups/70/devices/${CARD}`]: {} },
    `shares its IOMMU group 70 with ${CARD}, which the driver i40e uses`,
  ],
])("a function is refused when %s", async (_when, plan, reason) => {
  await expect(readyHostDevices([device], makeSysroot(usable(), plan))).rejects.toThrow(reason);
});

test("a function of NVIDIA's driver can be given to a guest once it has a type", async () => {
  const plan = { [`${DIR}/driver`]: driver("nvidia"), [`${DIR}/nvidia/current_vgpu_type`]: "557\n" };
  await readyHostDevices([device], makeSysroot(usable(), plan));
});

test.each([
  ["its host has forgotten it", `sys/bus/pci/devices/${VF}`, "no longer has the guest's PCI device"],
  ["it is bound to no driver", `${DIR}/driver`, "is bound to no driver"],
  ["the host has no IOMMU", `${DIR}/iommu_group`, "has no IOMMU for PCI device"],
  ["its group may not be opened", "dev/vfio/70", "may not open /dev/vfio/70"],
])("a function is refused when %s", async (_when, path, reason) => {
  const root = makeSysroot(usable());
  rmSync(join(root, path));
  await expect(readyHostDevices([device], root)).rejects.toThrow(reason);
});

const TYPE = "nvidia-35";
const create = `/sys/bus/pci/devices/0000:41:00.0/mdev_supported_types/${TYPE}/create`;
const mdev = {
  kind: "mdev" as const,
  uuid: "6f1f2ad0-7d3c-8d0b-8f0e-0c9b6a8c0001",
  parent: "0000:41:00.0",
  type: TYPE,
};

test("a mediated device is made when the host does not have it, and is left as it is when it does", async () => {
  const root = makeSysroot({ [create]: "" });
  const ready = readyHostDevices([mdev], root);
  await eventually("the order to the kernel", () => readFileSync(join(root, create), "utf8") === mdev.uuid);
  mkdirSync(join(root, "sys/bus/mdev/devices", mdev.uuid), { recursive: true });
  await ready;
  rmSync(join(root, create));
  await readyHostDevices([mdev], root);
});

test("a mediated device that the host cannot make is an error that says what to look at", async () => {
  const reason = `cannot make a ${TYPE} of 0000:41:00.0`;
  await expect(readyHostDevices([mdev], makeSysroot({ "/sys": {} }))).rejects.toThrow(reason);
});

test("the mediated devices of a guest that is gone are removed, and its functions are left", () => {
  const remove = `/sys/bus/mdev/devices/${mdev.uuid}/remove`;
  const root = makeSysroot(usable(), { [remove]: "" });
  removeMdevs([device, mdev, { ...mdev, uuid: "gone" }], root);
  expect(readFileSync(join(root, remove), "utf8")).toBe("1");
  expect(existsSync(join(root, DIR))).toBe(true);
});

test("the mediated devices that a host has are told by function and type, and one that a guest found there stays", () => {
  const devices = `/sys/bus/pci/devices/${mdev.parent}/mdev_supported_types/${TYPE}/devices`;
  const remove = `/sys/bus/mdev/devices/${mdev.uuid}/remove`;
  const root = makeSysroot({ [`${devices}/b`]: {}, [`${devices}/${mdev.uuid}`]: {}, [remove]: "" });
  expect(existingMdevs(mdev, root)).toEqual([mdev.uuid, "b"]);
  expect(existingMdevs({ ...mdev, type: "nvidia-36" }, root)).toEqual([]);
  removeMdevs([{ ...mdev, isFound: true }], root);
  expect(readFileSync(join(root, remove), "utf8")).toBe("");
});

test("QEMU opens functions by their addresses, and mediated devices by their directories", () => {
  const placeOf = ({ slot }: DevicePort) => ({ bus: `slot${slot}` });
  expect(hostDeviceArguments([device, mdev], placeOf)).toEqual([
    ...["-device", `vfio-pci,host=${VF},id=hostdev0`],
    ...["-device", `vfio-pci,sysfsdev=/sys/bus/mdev/devices/${mdev.uuid},id=hostdev1`],
  ]);
  // The names of the other devices do not depend on those of ports, which may go while the guest runs.
  const port = { portId: "p", mac: "m", slot: 2, connection: null };
  expect(hostDeviceArguments([{ ...device, port }, mdev], placeOf)).toEqual([
    ...["-device", `vfio-pci,host=${VF},id=port-p,bus=slot2`],
    ...["-device", `vfio-pci,sysfsdev=/sys/bus/mdev/devices/${mdev.uuid},id=hostdev0`],
  ]);
});
