import type { Stage, Target } from "./operation-routes.ts";
import { ABORTED } from "./operation-writes.ts";

/** The stage of an operation, and the reason that the cell's database has for it. Some reasons are marks: they say what the next conductor must not forget. */
interface MarkedStage {
  readonly stage: Stage;
  readonly reason: string;
}

export const ABORTED_ON_REQUEST = `${ABORTED} on request`;

/** Whether the operation goes to no further destination, since it was aborted. */
export const isAborted = ({ reason }: Pick<MarkedStage, "reason">): boolean => reason.startsWith(ABORTED);

/** The reason of an aborted operation while its source is told to go on. A database without it says that the source was not told yet. Conductors of older versions leave it at later stages. */
const RECALLED = `${ABORTED_ON_REQUEST}, and the source was told to go on`;
export const isRecalled = ({ stage, reason }: MarkedStage): boolean => stage === "recalling" && reason === RECALLED;

/** The reason of a move at rest whose source has said that it has no guest, as long as it is at the stage that asks for it. A database without it says that the source has not said so. */
const EMPTIED = "The source has no guest to hand over";
export const isEmptied = ({ stage, reason }: MarkedStage): boolean => stage === "handing-over" && reason === EMPTIED;

/** The mark that each event leaves at its stage. */
export const MARKS = {
  recalls: { stage: "recalling", reason: RECALLED },
  empties: { stage: "handing-over", reason: EMPTIED },
} as const satisfies Readonly<Record<string, MarkedStage>>;

/**
 * The reason that is written at the next stage. Only the stage that a mark is about has it. A conductor of an older version has left it at a later stage, as the reason why the move goes back: there it
 * stays, since it is the only one.
 */
export function reasonAt(
  { from, to }: { readonly from: Stage; readonly to: Exclude<Target, "another"> },
  reason: string,
): string {
  if (reason === RECALLED && to !== "recalling") return ABORTED_ON_REQUEST;
  return reason === EMPTIED && from === "handing-over" && to !== "handing-over" ? "" : reason;
}
