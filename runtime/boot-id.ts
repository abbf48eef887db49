import { readFileSync } from "node:fs";

/** Identifies this boot of the machine. The id is a different one after each boot. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
