import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeSysroot, type SysrootPlan, sriovCard } from "./made-up-sysroot.ts";
import type { QemuGuestsDir } from "./qemu-guests.ts";

/** The virtual functions of `usableCard`. */
export const VFS = ["0000:3b:02.0", "0000:3b:02.1"] as const;

/** A card whose two virtual functions are bound to vfio-pci. The real host does not have it, so QEMU itself cannot open them. */
export const usableCard = () =>
  makeSysroot(
    sriovCard(),
    ...VFS.map(
      (address, index): SysrootPlan => ({
        [`/sys/devices/pci0000:3a/${address}/driver`]: { link: "../../../bus/pci/drivers/vfio-pci" },
        [`/dev/vfio/${70 + index}`]: "",
      }),
    ),
  );

/**
 * A QEMU with another device in the place of each device of the host. As with the kernel's own ones, one process at a time can open it. A QEMU
 * inherits the open lock.
 */
export function standInQemu({ path }: QemuGuestsDir): string {
  const program = join(path, "qemu-with-stand-ins");
  const script = `#!/bin/bash
args=()
for arg; do
  if [[ $arg =~ ^vfio-pci,host=([^,]+),id=(.*)$ ]]; then
    exec {lock}>>"${path}/\${BASH_REMATCH[1]}"
    flock -n $lock || { echo "\${BASH_REMATCH[1]}: Device or resource busy" >&2; exit 1; }
    arg="pci-testdev,id=\${BASH_REMATCH[2]}"
  fi
  args+=("$arg")
done
exec qemu-system-x86_64 "\${args[@]}"
`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  return program;
}
