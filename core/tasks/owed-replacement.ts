import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { OPERATIONS, operationKind } from "./operation-kinds.ts";
import type { Stage } from "./operation-routes.ts";
import type { TaskRecord } from "./task-record.ts";

/** A replacement of a volume of which Cinder was not told to the end, because the server was deleted meanwhile. */
export interface OwedReplacement {
  /** The volume with the one that was to replace it. */
  readonly volume: ServerVolume;
  /** `complete` if the guest has used the other volume, `abandon` if it has used its own, and null if nobody knows. */
  readonly end: "complete" | "abandon" | null;
  /** No attachment of the volume that the guest has left was there any longer, and Cinder may have been asked to complete the migration. */
  readonly hasLeft?: true;
}

/** Stages at which the guest uses its own volume, and no host was told to change over, or each has said that it has not done it. */
const BEFORE_CHANGE_OVER: readonly string[] = [
  "mirroring",
  "detaching-kept",
  "unmirroring",
  "calling-off",
] satisfies readonly Stage[];
/** The stage at which Cinder is asked to complete the migration. */
const EXCHANGING: Stage = "exchanging";
/** Stages at which the guest may use either of the two volumes. */
const IN_CHANGE_OVER: readonly string[] = ["pivoting", "unpivoting"] satisfies readonly Stage[];

/**
 * The replacement of a deleted server's volume of which Cinder was not told to the end. Null if there is none: without `inDoubt`, only a replacement that the deletion has broken off is owed an
 * end. `inDoubt` is the volume if the server says that its guest uses the other one, or that nobody knows it. `tasks` are those of the server, the oldest first.
 */
export function owedReplacement(
  tasks: readonly TaskRecord[],
  volumeId: string,
  inDoubt: ServerVolume | undefined,
): OwedReplacement | null {
  const replacements = tasks.flatMap(({ task: { work }, outcome, stage }) => {
    if (work?.$case !== "operate" || work.value.volume?.volumeId !== volumeId) return [];
    const kind = operationKind(work.value.kind);
    return kind !== null && OPERATIONS[kind].endsReplacement ? [{ volume: work.value.volume, outcome, stage }] : [];
  });
  if (inDoubt !== undefined) {
    const last = replacements.findLast(({ volume }) => volume.replacedBy === inDoubt.replacedBy);
    if (last?.stage === "completing") return { volume: inDoubt, end: "complete" };
    if (last?.stage === EXCHANGING) return { volume: inDoubt, end: "complete", hasLeft: true };
    return { volume: inDoubt, end: last?.stage === "calling-off" ? "abandon" : null };
  }
  const last = replacements.at(-1);
  if (last?.outcome !== "cancelled" || last.stage === null) return null;
  if (BEFORE_CHANGE_OVER.includes(last.stage)) return { volume: last.volume, end: "abandon" };
  return IN_CHANGE_OVER.includes(last.stage) ? { volume: last.volume, end: null } : null;
}
