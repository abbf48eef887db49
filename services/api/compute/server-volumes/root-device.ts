import { Fault } from "../../http/fault.ts";

/** The device that every server boots from. A volume with this device is one that its server boots from. */
export const ROOT_DEVICE = "/dev/vda";
const LETTERS = "bcdefghijklmnopqrstuvwxyz";
/** Source: the largest number of disks that Nova's libvirt driver gives a guest on one bus. */
export const VOLUMES_MAX = LETTERS.length;

/** Returns the first device after the root device that is free, with the letters of its kind. */
export function nextDevice(used: ReadonlySet<string>): string {
  const letters = new Set([...used].map((device) => /([a-z])\d*$/.exec(device)?.[1]));
  const free = [...LETTERS].find((letter) => !letters.has(letter));
  if (free === undefined)
    throw new Fault(
      403,
      `The maximum allowed number of disk devices (${VOLUMES_MAX}) to attach to a single instance has been exceeded.`,
    );
  return ROOT_DEVICE.slice(0, -1) + free;
}
