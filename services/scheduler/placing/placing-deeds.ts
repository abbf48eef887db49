import type { PlacingDeed } from "../../../core/placing/placing.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { SchedulerEvents } from "../events.ts";
import type { ClaimReserver } from "./claim-reserver.ts";

type Explanation = Extract<PlacingDeed, { readonly kind: "explain-refusal" }>;

/** The server that is being placed, with the data that its deeds need. */
export interface PlacedServer {
  readonly serverUuid: string;
  /** The spec of a new server, or null for a moving one. */
  readonly newSpec: ServerSpec | null;
  /** Records why no host was found. It must read the views before anything is awaited. */
  readonly explain: (explanation: Explanation) => void;
}

/** Carries out the deeds of one placing, in the same way for a new server and a moving one. */
export function deedsOf(
  { claims, events }: { readonly claims: ClaimReserver; readonly events: SchedulerEvents },
  { serverUuid, newSpec, explain }: PlacedServer,
): (deed: PlacingDeed, error: unknown) => void {
  return (deed, error) => {
    switch (deed.kind) {
      case "reserve":
        return claims.reserve(deed.claim, newSpec);
      case "release":
        return claims.release(deed.claim, newSpec);
      case "keep":
        return claims.keep(deed.claim, deed.xid);
      case "learn-shortfalls":
        return claims.learnShortfalls(deed.cell, deed.shortfalls);
      case "explain-refusal":
        return explain(deed);
      case "tell-lost":
        return events.raceLost(serverUuid, deed.claim.cell, deed.claim.host, deed.why);
      case "tell-left":
        return events.leftCell(serverUuid, deed.cell);
      case "tell-looked-again":
        return events.lookedAgain(serverUuid);
      case "tell-given-up":
        return events.gaveUp(serverUuid, error);
      default:
        return deed satisfies never;
    }
  };
}
