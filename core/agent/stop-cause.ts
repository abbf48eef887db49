/**
 * Why a guest stopped without an order. `shut-down`: the guest powered itself off. `crashed`: the guest panicked, or its process ended.
 * `host-restarted`: it stopped with its host, and the agent was told not to resume such guests. `halted-with-host`: it stood still when its host stopped, and its memory is lost. A
 * server that was paused is then stopped; one that should run is started again, since its guest was halted by a full disk, say. Conductors that do not know a cause take it for none.
 */
export const STOP_CAUSES = ["shut-down", "crashed", "host-restarted", "halted-with-host"] as const;
export type StopCause = (typeof STOP_CAUSES)[number];

/** The cause with this name, or null when there is none or this version does not know it. */
export function stopCause(name: string): StopCause | null {
  return STOP_CAUSES.find((cause) => cause === name) ?? null;
}
