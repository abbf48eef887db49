import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { PowerVerb } from "../../../core/agent/power-verbs.ts";
import {
  interruptGuest,
  type PowerControl,
  pauseGuest,
  rebootGuest,
  resumeGuest,
  startGuest,
  stopGuest,
  unpauseGuest,
  type WantedInterfaces,
} from "./guest-power.ts";
import { suspendGuest } from "./suspend-guest.ts";

/** Carries out a verb. A hard reboot gives the guest the `wanted` interfaces; null leaves them as they are. */
export function changePower(
  guest: QemuGuest,
  verb: PowerVerb,
  control: PowerControl & { readonly wanted: WantedInterfaces | null },
): Promise<void> {
  switch (verb) {
    case "start":
    case "unrescue":
      return startGuest(guest, control);
    case "stop":
      return stopGuest(guest, control);
    case "reboot":
      return rebootGuest(guest, { ...control, isSoft: true });
    case "hard-reboot":
      return rebootGuest(guest, { ...control, isSoft: false });
    case "pause":
      return pauseGuest(guest, control);
    case "unpause":
      return unpauseGuest(guest, control);
    case "suspend":
      return suspendGuest(guest, control);
    case "resume":
      return resumeGuest(guest, control);
    case "inject-nmi":
      return interruptGuest(guest);
    default:
      return verb satisfies never;
  }
}
