import { uptime } from "node:os";

const SECOND_MS = 1_000;

/**
 * Returns when this machine booted, in milliseconds since the epoch. It is a whole second, so that an agent that starts again mostly reports
 * the same time.
 */
export function machineBootedAtMs(nowMs: number): number {
  return Math.round((nowMs - uptime() * SECOND_MS) / SECOND_MS) * SECOND_MS;
}
