import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { OPERATIONS, operationKind } from "./operation-kinds.ts";
import type { TaskRecord } from "./task-record.ts";

/**
 * How a replacement is to end of which Cinder was not told to the end, because the server was deleted meanwhile: `complete` if the guest has used the other volume, `abandon` if
 * it has used its own. Null if nobody knows. `tasks` are those of the server, the oldest first.
 */
export function owedEnd(
  tasks: readonly TaskRecord[],
  { volumeId, replacedBy }: Pick<ServerVolume, "volumeId" | "replacedBy">,
): "complete" | "abandon" | null {
  const last = tasks.findLast(({ task: { work } }) => {
    if (work?.$case !== "operate") return false;
    const { kind: name, volume } = work.value;
    const kind = operationKind(name);
    const isMeant = volume?.volumeId === volumeId && volume.replacedBy === replacedBy;
    return kind !== null && OPERATIONS[kind].endsReplacement && isMeant;
  });
  if (last?.stage === "completing") return "complete";
  return last?.stage === "calling-off" ? "abandon" : null;
}
