import type { QemuSettings } from "../../services/compute-agent/qemu/qemu-settings.ts";

/** Returns what the virtual machines of `berth dev` reach, and how they reach more. */
export function networkNoteOf({ bridge, userNetwork }: Pick<QemuSettings, "bridge" | "userNetwork">): string {
  if (bridge !== null) return `Interfaces of virtual machines are attached to the bridge ${bridge}.`;
  if (userNetwork === "open")
    return "Virtual machines reach all that this machine reaches, and its own services on the loopback address, too.";
  return [
    "Virtual machines reach nothing but their metadata. To give them a network, start this command with --bridge NAME,",
    "or with --user-network open, by which they also reach this machine's own services on the loopback address.",
  ].join("\n");
}
