/** Why no server may be evacuated from a host now. */
export type EvacuationRefusal = "host-seen" | "host-unfenced";

/** The cell's facts about the host of an evacuation. */
export interface EvacuatedHost {
  readonly up: boolean;
  /** An operator, or a fencing tool on the operator's behalf, has declared that the host runs nothing. */
  readonly forcedDown: boolean;
  /** Milliseconds since any conductor last heard from the host's agent. */
  readonly seenAgoMs: number;
}

/**
 * Decides whether servers may be evacuated from the host, and returns null when they may. A host that is forced down counts as down
 * whatever its agent reports. A host that is merely unseen may still run behind a broken network, so that its servers would run twice (law
 * 4). It may be evacuated only where the fence is waived, and only after its agent was unseen for `unseenMs`.
 */
export function refuseEvacuation(
  { up, forcedDown, seenAgoMs }: EvacuatedHost,
  { unseenMs, fenceWaived }: { readonly unseenMs: number; readonly fenceWaived: boolean },
): EvacuationRefusal | null {
  if (forcedDown) return null;
  if (up || seenAgoMs < unseenMs) return "host-seen";
  return fenceWaived ? null : "host-unfenced";
}

/** The refusal in words, for the server's owner and the operator. */
export function describeEvacuationRefusal(refusal: EvacuationRefusal, host: string): string {
  return refusal === "host-seen" ? "the host that is being evacuated is back" : unfencedHost(host);
}

/** The refusal for a host whose compute service is up, with advice. */
export function hostInUse(host: string): string {
  return (
    `Compute service of ${host} is still in use. Migrate its servers instead; or, if the host is dead, ` +
    "cut it off (its power, or its network and its storage), then force its service down " +
    `(openstack compute service set --down ${host} nova-compute) and evacuate again.`
  );
}

/** The refusal for a host that is unseen but not fenced, with advice. */
export function unfencedHost(host: string): string {
  return (
    `Compute service of ${host} is down, but no operator has stated that the host is fenced: its servers may still run there. ` +
    "Cut the host off (its power, or its network and its storage), then force its service down " +
    `(openstack compute service set --down ${host} nova-compute) and evacuate again.`
  );
}
