/**
 * Why a guest stopped without an order. `shut-down`: the guest powered itself off. `crashed`: the guest panicked, or its process ended.
 * `host-restarted`: it stopped with its host, and the agent was told not to resume such guests, or it was paused, and its memory is lost.
 */
export const STOP_CAUSES = ["shut-down", "crashed", "host-restarted"] as const;
export type StopCause = (typeof STOP_CAUSES)[number];

/** The cause with this name, or null when there is none or this version does not know it. */
export function stopCause(name: string): StopCause | null {
  return STOP_CAUSES.find((cause) => cause === name) ?? null;
}
