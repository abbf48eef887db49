import { readFileSync } from "node:fs";

/** Names this boot of the machine: another one after each boot. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
