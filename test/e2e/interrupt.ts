import type { LocalService } from "../../chaos/local/local-service.ts";
import { eventually } from "../rigs/eventually.ts";
import type { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";

/** A moment is short. */
const WATCHFUL = { everyMs: 3, withinMs: 120_000 };
/** After how many looks for a moment the server is asked whether it is over. */
const LOOKS = 30;
/** On a busy machine most looks come too late for the shortest moments. */
const ROUNDS_MAX = 12;

/** Resolves with whether the moment was seen before all was over, since a fast machine may pass it between two looks. */
export async function isSeen(
  what: string,
  isMoment: () => boolean | Promise<boolean>,
  isOver: () => boolean | Promise<boolean>,
): Promise<boolean> {
  let looks = 0;
  const look = async () => ((await isMoment()) ? "seen" : ++looks % LOOKS === 0 && (await isOver()) && "over");
  return (await eventually(what, look, WATCHFUL)) === "seen";
}

/** Whether nothing that a client asked for is under way for the server. */
export const isIdle = async (server: WatchedServer): Promise<boolean> => (await server.shown()).task === null;

/**
 * Kills the process and starts its successor. Resolves with whether the cell still had something to do for the server when the process was gone.
 * If not, it was killed too late to interrupt anything.
 */
export async function isInterrupted(
  cell: E2eCell,
  server: { readonly id: string },
  victim: LocalService,
): Promise<boolean> {
  let isUnderWay = false;
  await victim.replace(async () => {
    isUnderWay = (await cell.openTasks([server.id])).length > 0;
  });
  return isUnderWay;
}

/**
 * Runs all cases, and then those again of which a moment has been missed in each round, until none has. `run` resolves with the moments that each case has
 * missed. A test that took a missed moment for one that it has tested could not fail.
 */
export async function untilNoneIsMissed<Case>(
  cases: readonly Case[],
  run: (these: readonly Case[]) => Promise<readonly (readonly string[])[]>,
): Promise<void> {
  let left = cases.map((one) => ({ one, missed: null as readonly string[] | null }));
  for (let rounds = 1; left.length > 0; rounds += 1) {
    const missedNow = await run(left.map(({ one }) => one));
    left = left
      .map(({ one, missed }, index) => {
        const now = missedNow[index] ?? [];
        return { one, missed: missed?.filter((moment) => now.includes(moment)) ?? now };
      })
      .filter(({ missed }) => missed.length > 0);
    const never = left.flatMap(({ missed }) => missed);
    if (never.length > 0 && rounds === ROUNDS_MAX)
      throw new Error(`missed in each of ${ROUNDS_MAX} rounds: ${never.join("; ")}`);
  }
}
