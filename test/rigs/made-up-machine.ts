import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type LinuxGuestFiles, type LinuxGuestPlan, linuxGuestFiles, loadModules } from "./linux-guest.ts";

const DISK_BYTES = 64 * 1024 ** 2;
/** How long one boot may take. It takes a tenth of that on a busy machine. */
const BOOT_MS_MAX = 240_000;
/** A machine with eight emulated CPUs on two real ones may hang while it boots, which says nothing about what its kernel shows. */
const BOOTS_MAX = 3;
const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"],
  ...["crc64", "crc64-rocksoft_generic", "crc64-rocksoft", "t10-pi", "nvme-common", "nvme-core", "nvme"],
];
/** The files that describe a machine are copied as they are, and links stay links. */
const FOLDERS = [
  ...[
    "sys/devices/system/cpu",
    "sys/devices/system/node",
    "sys/devices/pci*",
    "sys/bus/pci/devices",
    "sys/bus/pci/drivers",
  ],
  ...["sys/kernel/mm/hugepages", "sys/kernel/iommu_groups", "sys/class/dmi", "sys/devices/virtual/dmi"],
];
/** Reading these would use the device instead of describing it, or takes long and tells nothing about the machine. */
const NOT_COPIED = [
  ...["resource*", "rom", "config", "vpd", "remove", "rescan", "reset", "uevent", "msi_irqs", "power", "msi_bus"],
  ...["cpuidle", "cpufreq", "hotplug", "vulnerabilities", "microcode", "pci_bus", "nvme", "block", "aer_*"],
];

const named = (names: readonly string[]): string =>
  names.map((name) => `! -path '*/${name}' ! -path '*/${name}/*'`).join(" ");

const INIT = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /out /usr/bin /sbin
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs out /out
${loadModules(MODULES)}
sleep 2
for file in /sys/bus/pci/devices/*/sriov_numvfs; do echo 2 > $file; done
cd /
for folder in ${FOLDERS.join(" ")}; do
  find $folder -type d ${named(NOT_COPIED)} | while read -r one; do
    mkdir -p /out/$one
    files=$(find $one -maxdepth 1 \\( -type f -perm -400 -o -type l \\) ${named(NOT_COPIED)})
    [ -n "$files" ] && cp -d $files /out/$one/ 2>/dev/null
  done
done
mkdir -p /out/proc
cp /proc/cpuinfo /proc/meminfo /proc/cmdline /out/proc/
tar cf /dev/vda -C /out .
sync
echo "copied"
poweroff -f
`;

const PLAN: LinuxGuestPlan = { modules: MODULES, init: INIT };

/**
 * Two sockets of two cores with two threads each, two NUMA nodes of 384 MiB, twelve huge pages of 2 MiB, CPUs 6 and 7 isolated, and at the second
 * node an SR-IOV device with two of its four virtual functions.
 */
const MACHINE = [
  ...[
    "-machine",
    "q35,kernel-irqchip=split",
    "-accel",
    "tcg,tb-size=64",
    "-cpu",
    "max,vendor=GenuineIntel",
    "-m",
    "768",
    "-nodefaults",
  ],
  ...["-no-user-config", "-display", "none", "-no-reboot", "-smp", "8,sockets=2,cores=2,threads=2"],
  ...["-object", "memory-backend-ram,id=m0,size=384M", "-numa", "node,nodeid=0,cpus=0-3,memdev=m0"],
  ...["-object", "memory-backend-ram,id=m1,size=384M", "-numa", "node,nodeid=1,cpus=4-7,memdev=m1"],
  ...["-numa", "dist,src=0,dst=1,val=21", "-device", "intel-iommu"],
  ...["-device", "pxb-pcie,id=px,bus=pcie.0,bus_nr=32,numa_node=1", "-device", "pcie-root-port,id=rp,bus=px,chassis=1"],
  ...["-device", "nvme-subsys,id=s0"],
  ...["-device", "nvme,serial=x,subsys=s0,bus=rp,sriov_max_vfs=4,sriov_vq_flexible=8,sriov_vi_flexible=4"],
];
const KERNEL_LINE = "console=ttyS0 panic=-1 hugepagesz=2M hugepages=12 isolcpus=6-7 intel_iommu=on";

/** The kernel and the RAM disk of the machine; null when they cannot be made here. */
export function madeUpMachineFiles(cacheDir: string): LinuxGuestFiles | null {
  return linuxGuestFiles(cacheDir, PLAN);
}

/**
 * Boots the machine in QEMU, and copies what its kernel says about it in /proc and /sys into `dir`. Resolves with the directory that stands for
 * the machine's root. Rejects with the end of its console when no boot ends in time.
 */
export async function bootMadeUpMachine(files: LinuxGuestFiles, dir: string): Promise<string> {
  const [disk, root] = [join(dir, "disk"), join(dir, "machine")];
  mkdirSync(root);
  const failed: string[] = [];
  while (failed.length < BOOTS_MAX) {
    writeFileSync(disk, Buffer.alloc(DISK_BYTES));
    const { end, said } = await bootOnce(files, disk);
    if (/^copied\r?$/m.test(said)) {
      execFileSync("tar", ["xf", disk, "-C", root]);
      return root;
    }
    failed.push(`QEMU ended with ${end} after it had printed: ${said.slice(-2_000)}`);
  }
  throw new Error(`the machine has not been copied in ${BOOTS_MAX} boots:\n${failed.join("\n")}`);
}

/** Boots the machine once. Resolves with its console, and with the exit code or the signal with which QEMU ended. */
async function bootOnce({ kernel, ramdisk }: LinuxGuestFiles, disk: string) {
  const machine = spawn(
    "qemu-system-x86_64",
    [
      ...MACHINE,
      ...["-kernel", kernel, "-initrd", ramdisk, "-append", KERNEL_LINE],
      ...[
        "-drive",
        `if=none,id=d0,format=raw,file=${disk}`,
        "-device",
        "virtio-blk-pci,drive=d0,bus=pcie.0",
        "-serial",
        "stdio",
      ],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const timer = setTimeout(() => machine.kill("SIGKILL"), BOOT_MS_MAX);
  try {
    const [closed, printed, warned] = await Promise.all([
      once(machine, "close"),
      text(machine.stdout),
      text(machine.stderr),
    ]);
    const [code, signal] = closed as [number | null, NodeJS.Signals | null];
    return { end: signal ?? `code ${code}`, said: warned + printed };
  } finally {
    clearTimeout(timer);
  }
}
