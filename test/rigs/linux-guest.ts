import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A kernel and a RAM disk for a guest that mounts its config drive and prints the user data and its host name. */
export interface LinuxGuestFiles {
  readonly kernel: string;
  readonly ramdisk: string;
}

const PACKAGES = ["linux-image-cloud-amd64", "busybox-static"];
/** What a guest does. The modules are in the order in which they have to be loaded. */
export interface LinuxGuestPlan {
  readonly modules: readonly string[];
  /** The guest's first process, a script for busybox's shell. */
  readonly init: string;
}

/** The shell's lines that load the modules. */
export const loadModules = (modules: readonly string[]): string =>
  `for module in ${modules.join(" ")}; do [ -e /modules/$module.ko ] && /bin/busybox insmod /modules/$module.ko; done`;

const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"],
  ...["cdrom", "isofs", "scsi_common", "scsi_mod", "virtio_scsi", "sd_mod", "failover", "net_failover", "virtio_net"],
];
const INIT = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /config
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
${loadModules(MODULES)}
for disk in /dev/vda /dev/vdb /dev/vdc; do /bin/busybox mount -t iso9660 -o ro $disk /config 2>/dev/null && break; done
echo "meta: $(/bin/busybox cat /config/openstack/latest/meta_data.json)"
/bin/busybox sh /config/openstack/latest/user_data
echo "done"
while true; do /bin/busybox sleep 1; done
`;

const CONFIG_DRIVE_READER: LinuxGuestPlan = { modules: MODULES, init: INIT };

/**
 * Makes the files from Debian's packages, which are downloaded and not installed: the kernel for clouds and a static busybox. Null when that is
 * not possible here. The files are kept in `dir` for the next time. Each plan needs a directory of its own, since its modules belong to the kernel there.
 */
export function linuxGuestFiles(dir: string, plan: LinuxGuestPlan = CONFIG_DRIVE_READER): LinuxGuestFiles | null {
  const version = createHash("sha256").update(JSON.stringify(plan)).digest("hex").slice(0, 12);
  const files = { kernel: join(dir, "vmlinuz"), ramdisk: join(dir, `initramfs-${version}`) };
  if (existsSync(files.kernel) && existsSync(files.ramdisk)) return files;
  const scratch = mkdtempSync(join(tmpdir(), "berth-linux-"));
  try {
    chmodSync(scratch, 0o755);
    const run = (program: string, ...args: string[]) =>
      execFileSync(program, args, {
        cwd: scratch,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        maxBuffer: 2 ** 26,
      });
    // The package of this name only depends on the one that has the kernel.
    const kernelPackage = /Depends: (linux-image-\S+)/.exec(run("apt-cache", "depends", PACKAGES[0] ?? ""))?.[1] ?? "";
    run("apt-get", "download", "-q", kernelPackage, PACKAGES[1] ?? "");
    for (const deb of readdirSync(scratch).filter((name) => name.endsWith(".deb")))
      run("dpkg-deb", "-x", deb, "packages");
    const packages = join(scratch, "packages");
    const boot = readdirSync(join(packages, "boot")).find((name) => name.startsWith("vmlinuz-")) ?? "";
    const tree = join(scratch, "tree");
    for (const folder of ["bin", "modules"]) mkdirSync(join(tree, folder), { recursive: true });
    copyFileSync(join(packages, "bin/busybox"), join(tree, "bin/busybox"));
    const modules = readdirSync(packages, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ko"));
    for (const name of plan.modules) {
      const path = modules.find((one) => one.endsWith(`/${name}.ko`));
      if (path !== undefined) copyFileSync(join(packages, path), join(tree, "modules", `${name}.ko`));
    }
    writeFileSync(join(tree, "init"), plan.init, { mode: 0o755 });
    run("sh", "-c", "cd tree && find . | ../packages/bin/busybox cpio -o -H newc | gzip > ../initramfs");
    mkdirSync(dir, { recursive: true });
    copyFileSync(join(packages, "boot", boot), `${files.kernel}.new`);
    copyFileSync(join(scratch, "initramfs"), `${files.ramdisk}.new`);
    for (const file of Object.values(files)) renameSync(`${file}.new`, file);
    return files;
  } catch {
    return null; // no apt, no network, or another system
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
