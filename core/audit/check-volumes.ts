import { OPERATIONS } from "../tasks/operation-kinds.ts";
import type { CellFrame } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Law 6: it is known which copy of a server's data is the server's. A replacement of a volume that was broken off leaves two of them, until the server's host or an
 * operator says which one the guest has used.
 */
export function checkVolumes({ cell, volumesInDoubt = [] }: Pick<CellFrame, "cell" | "volumesInDoubt">): Violation[] {
  return volumesInDoubt.map(({ serverUuid, host, volumeId, replacedBy }) => ({
    law: 6,
    what: "nobody knows which of two volumes a server's guest uses",
    where: `cell ${cell}, server ${serverUuid}, volume ${volumeId}`,
    proof: `it may be volume ${replacedBy}, which was to replace it: \`berth volume settle ${serverUuid} ${volumeId}\` asks ${host ?? "its host"} (while the server is ${OPERATIONS["settle-volume"].allowedFrom.join(", ")})`,
  }));
}
