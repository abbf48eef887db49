import { expect, test } from "vitest";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { qemuArguments, type VirtualMachine } from "./virtual-machine.ts";

const MACHINE: VirtualMachine = {
  name: "task/0",
  uuid: "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001",
  machineType: "pc-q35-7.2",
  accel: "tcg",
  cpuModel: "qemu64,+aes",
  vcpus: 2,
  memoryMib: 512,
  disks: [
    { node: "disk0", file: "disk0.qcow2" },
    { node: "disk1", file: "a,b.qcow2" },
  ],
  configDrive: "config.iso",
  interfaces: [
    { mac: "fa:16:3e:00:00:01", bridge: null },
    { mac: "fa:16:3e:00:00:02", bridge: "br0" },
  ],
  kernel: null,
};
/** The values of an option, in order. */
const valuesOf = (args: readonly string[], option: string) => args.filter((_, index) => args[index - 1] === option);

test("builds the same machine at every start, and keeps it halted", () => {
  const args = qemuArguments(MACHINE, { isReceiving: false });
  expect(args).toEqual(qemuArguments(MACHINE, { isReceiving: false }));
  expect(args).toContain("-S");
  expect(args).not.toContain("-incoming");
  expect(valuesOf(args, "-machine")).toEqual(["pc-q35-7.2,usb=off,dump-guest-core=off"]);
  expect([valuesOf(args, "-m"), valuesOf(args, "-smp"), valuesOf(args, "-uuid")]).toEqual([
    ["512"],
    ["2"],
    [MACHINE.uuid],
  ]);
});

const UNBOUND = {
  vcpus: [],
  held: [],
  emulator: [],
  memory: [{ memoryMib: 512, hostNode: 1 }],
  isBound: false,
  pageKib: null,
};

test("memory has the name that QEMU itself gives it, also when it is bound or has huge pages, so that live moves recognise it", () => {
  const objects = (pinning: GuestPinning) =>
    valuesOf(qemuArguments(MACHINE, { isReceiving: false, pinning }), "-object").filter((one) =>
      one.includes("memory"),
    );
  expect(objects(UNBOUND)).toEqual([]);
  expect(objects({ ...UNBOUND, isBound: true })).toEqual([
    "memory-backend-ram,id=pc.ram,size=512M,host-nodes=1,policy=bind,x-use-canonical-path-for-ramblock-id=off",
  ]);
  expect(objects({ ...UNBOUND, pageKib: 2_048 })).toEqual([
    "memory-backend-memfd,share=on,hugetlb=on,hugetlbsize=2048K,prealloc=on,id=pc.ram,size=512M,x-use-canonical-path-for-ramblock-id=off",
  ]);
});

test("gives a guest the NUMA nodes that it sees, on whatever host", () => {
  const numaNodes = [
    { vcpus: [1], memoryMib: 128 },
    { vcpus: [0], memoryMib: 384 },
  ];
  const args = qemuArguments({ ...MACHINE, numaNodes }, { isReceiving: false });
  expect(valuesOf(args, "-numa")).toEqual([
    "node,nodeid=0,memdev=ram-node0,cpus=1",
    "node,nodeid=1,memdev=ram-node1,cpus=0",
  ]);
  expect(valuesOf(args, "-object")).toContain("memory-backend-ram,id=ram-node1,size=384M");
});

test("lets a receiving guest wait", () => {
  expect(valuesOf(qemuArguments(MACHINE, { isReceiving: true }), "-incoming")).toEqual(["defer"]);
});

test("refuses a CPU that the host cannot give, instead of leaving features out", () => {
  expect(valuesOf(qemuArguments(MACHINE, { isReceiving: false }), "-cpu")).toEqual(["qemu64,+aes,enforce"]);
});

test("never lets QEMU guess an image's format, and boots the first disk", () => {
  const args = qemuArguments(MACHINE, { isReceiving: false });
  const images = valuesOf(args, "-blockdev");
  expect(images).toHaveLength(3);
  for (const image of images) expect(image).toMatch(/^driver=(qcow2|raw),/);
  expect(images[2]).toContain("read-only=on");
  expect(valuesOf(args, "-device").filter((device) => device.includes("bootindex=1"))).toEqual([
    "virtio-blk-pci,drive=disk0,id=disk0-device,bootindex=1",
  ]);
});

test("a comma in a name cannot add an option", () => {
  const args = qemuArguments({ ...MACHINE, name: "x,process=y" }, { isReceiving: false });
  expect(valuesOf(args, "-name")).toEqual(["guest=x,,process=y,debug-threads=on"]);
  expect(valuesOf(args, "-blockdev")[1]).toContain("file.filename=a,,b.qcow2");
});

test("attaches interfaces to QEMU's own network or to a bridge", () => {
  expect(valuesOf(qemuArguments(MACHINE, { isReceiving: false }), "-netdev")).toEqual([
    "user,id=net0",
    "bridge,br=br0,id=net1",
  ]);
});

test("forwards nothing out of QEMU's own network if it is isolated, but to the metadata service", () => {
  const netdevs = (machine: VirtualMachine) => valuesOf(qemuArguments(machine, { isReceiving: false }), "-netdev");
  const isolated = { ...MACHINE, userNetwork: "isolated" as const };
  expect(netdevs(isolated)).toEqual(["user,restrict=on,id=net0", "bridge,br=br0,id=net1"]);
  expect(netdevs({ ...isolated, hasMetadataAddress: true })[0]).toBe(
    "user,net=169.254.0.0/16,restrict=on,guestfwd=tcp:169.254.169.254:80-chardev:metadata-net0,id=net0",
  );
  expect(netdevs({ ...MACHINE, userNetwork: "open" })[0]).toBe("user,id=net0");
});

test("puts interfaces into ports of the PCI bus, or into places of their own in the older type of machine", () => {
  const interfaces = [
    { mac: "fa:16:3e:00:00:01", bridge: null, id: "a", slot: 2 },
    { mac: "fa:16:3e:00:00:02", bridge: null, id: "b", slot: 9 },
  ];
  const devices = (machineType: string) => {
    const machine = { ...MACHINE, machineType, interfaces, interfaceSlots: 8 };
    const args = qemuArguments(machine, { isReceiving: false });
    return valuesOf(args, "-device").filter((device) => /virtio-net|root-port/.test(device));
  };
  const q35 = devices("pc-q35-7.2");
  expect([q35.length, q35[0], q35[1]]).toEqual([
    10,
    "pcie-root-port,id=slot1,chassis=1,bus=pcie.0,addr=0x10.0,multifunction=on",
    "pcie-root-port,id=slot2,chassis=2,bus=pcie.0,addr=0x10.1",
  ]);
  expect(q35.slice(8)).toEqual([
    "virtio-net-pci,netdev=a,mac=fa:16:3e:00:00:01,id=a-device,bus=slot2",
    "virtio-net-pci,netdev=b,mac=fa:16:3e:00:00:02,id=b-device",
  ]);
  expect(devices("pc-i440fx-7.2")).toEqual([
    "virtio-net-pci,netdev=a,mac=fa:16:3e:00:00:01,id=a-device,bus=pci.0,addr=0x11",
    "virtio-net-pci,netdev=b,mac=fa:16:3e:00:00:02,id=b-device",
  ]);
});

test("has a display only when told, behind a socket of the guest's directory", () => {
  const plain = qemuArguments(MACHINE, { isReceiving: false });
  expect([valuesOf(plain, "-vnc"), plain.filter((arg) => /vga|usb-/i.test(arg))]).toEqual([[], []]);
  const args = qemuArguments({ ...MACHINE, display: "vga" }, { isReceiving: false });
  expect(valuesOf(args, "-vnc")).toEqual(["unix:vnc"]);
  expect(valuesOf(args, "-device")).toContain("VGA,id=display");
});

test("boots a kernel of its own, whose command line is one argument", () => {
  const kernel = { path: "/k", ramdisk: "/r", commandLine: "console=ttyS0 -monitor stdio" };
  const args = qemuArguments({ ...MACHINE, kernel }, { isReceiving: false });
  expect([valuesOf(args, "-kernel"), valuesOf(args, "-initrd")]).toEqual([["/k"], ["/r"]]);
  expect(valuesOf(args, "-append")).toEqual(["console=ttyS0 -monitor stdio"]);
});
