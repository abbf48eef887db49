/** Why no server may be evacuated from a host now. */
export type EvacuationRefusal = "host-seen" | "host-unfenced";

/** What the cell knows of the host that is to be evacuated. */
export interface EvacuatedHost {
  readonly up: boolean;
  /** An operator, or whoever fences hosts for operators, has said that it runs nothing. */
  readonly forcedDown: boolean;
  /** How long ago any conductor heard of its agent, in milliseconds. */
  readonly seenAgoMs: number;
}

/**
 * Whether servers may be evacuated from the host; null: they may. A host that is forced down is down, whatever its agent says. One that is
 * only unseen may run on behind a broken network, so that its servers would run twice (law 4): it may be left only where the
 * fence is waived, and then only after nobody has seen its agent for `unseenMs`.
 */
export function refuseEvacuation(
  { up, forcedDown, seenAgoMs }: EvacuatedHost,
  { unseenMs, fenceWaived }: { readonly unseenMs: number; readonly fenceWaived: boolean },
): EvacuationRefusal | null {
  if (forcedDown) return null;
  if (up || seenAgoMs < unseenMs) return "host-seen";
  return fenceWaived ? null : "host-unfenced";
}

/** Why a step of an evacuation was refused, for the server's owner and the operator. */
export function describeEvacuationRefusal(refusal: EvacuationRefusal, host: string): string {
  return refusal === "host-seen" ? "the host that is being evacuated is back" : unfencedHost(host);
}

/** The refusal for a host whose compute service is up, and what to do. */
export function hostInUse(host: string): string {
  return (
    `Compute service of ${host} is still in use. Migrate its servers instead; or, if the host is dead, ` +
    "cut it off (its power, or its network and its storage), then force its service down " +
    `(openstack compute service set --down ${host} nova-compute) and evacuate again.`
  );
}

/** What is wrong with a host that is only unseen, and what to do. */
export function unfencedHost(host: string): string {
  return (
    `Compute service of ${host} is down, but nobody has said that the host is fenced: its servers may still run there. ` +
    "Cut the host off (its power, or its network and its storage), then force its service down " +
    `(openstack compute service set --down ${host} nova-compute) and evacuate again.`
  );
}
