import type { VolumeFile } from "../../proto/gen/berth/shared.ts";
import { runsNow } from "../agent/runs-now.ts";
import type { StopCause } from "../agent/stop-cause.ts";
import type { Ask } from "./operation-routes.ts";

/** A host's report about one guest. `silent`: the host is not connected here, or does not answer. */
export type GuestLook =
  | { readonly kind: "silent" }
  | { readonly kind: "absent" }
  | {
      readonly kind: "found";
      readonly state: string;
      readonly revision: number;
      /** The revision of the latest order that the guest was given, also if it failed. */
      readonly heard?: number;
      readonly cause?: StopCause | null;
      readonly files?: readonly VolumeFile[];
    };

/**
 * The meaning of a refused order, judged by a look at the guest afterwards.
 * - `failed`: no more than the host said.
 * - `unclear`: the host has refused to start the guest or to hand it over, and does not say what the guest is. It may run, or be handed over, all the same, so the host is
 *   asked again.
 * - `done`: the guest runs, and has obeyed this order or a later one than the database knows of. The operation only needs to know that a guest of the
 *   server is there, and it is: a server runs on one host at most (law 4).
 * - `back`: the source that should hand over runs by a later order. The move has ended there in commits that the database has lost.
 * - `gone-over`: the source no longer has a guest. The destination may have taken over in such commits.
 * - `forgotten`: the guest is stopped by a later order, or will obey none of an operation that would ask it for ever. Its server may run on any host, even on one that the database does not know of.
 */
export type OrderRefusal = "failed" | "unclear" | "done" | "back" | "gone-over" | "forgotten";

/** The guest may keep the volume, or the other one or the other file, and its host will not obey. The operation would ask it for ever. */
const ENDLESS: readonly Ask[] = ["undo-attach", "undo-at-source", "detach-at-source", "keep-volume", "return-volume"];

export function readRefusal(ask: Ask, revision: number, look: GuestLook): OrderRefusal {
  const isStart = ask === "start-destination" || ask === "start-source";
  if (look.kind === "silent") return isStart || ask === "hand-over" ? "unclear" : "failed";
  if (look.kind === "absent") return ask === "hand-over" ? "gone-over" : "failed";
  const runs = runsNow(look.state);
  // The plain and the forced form of one order have the same number, and the plain one is refused after the forced one.
  if (isStart && look.revision === revision && runs) return "done";
  if (ENDLESS.includes(ask) && Math.max(look.revision, look.heard ?? 0) > revision) return "forgotten";
  if (look.revision <= revision) return "failed";
  switch (ask) {
    case "hand-over":
      return runs ? "back" : "forgotten";
    case "start-destination":
      return runs ? "done" : "forgotten";
    case "start-source":
    case "check-source":
    case "check-destination":
      return runs ? "done" : "failed";
    default:
      return "failed";
  }
}

/**
 * The meaning of a source without a guest, judged by a look at the destination. The source has handed over in commits that the database has
 * lost (`arrived`), the destination may have handed over to a further host (`forgotten`), the destination's guest has not run yet (`waits`), or no host has a guest (`failed`).
 */
export function readGoneOver(look: GuestLook): "arrived" | "forgotten" | "waits" | "failed" {
  if (look.kind !== "found") return "failed";
  if (runsNow(look.state)) return "arrived";
  return ["stopped", "paused", "suspended"].includes(look.state) ? "forgotten" : "waits";
}
