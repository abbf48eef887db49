import type { Clock } from "../../../../runtime/clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";

/** How long a call waits at most, and the shortest and the longest pause between two looks. */
const WAIT_MS_MAX = 5_000;
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 500;

/**
 * Waits until the operation has ended by which a server on no host gets or loses a volume. Nova changes such a volume within the call, so clients make the next call
 * about the server at once, which the open operation would refuse. Resolves also after some seconds, or when the cell does not answer: the operation ends by itself.
 */
export async function awaitWithoutHost(
  cell: Pick<CellClient, "operations">,
  taskId: string,
  clock: Pick<Clock, "monotonic" | "setTimer">,
): Promise<void> {
  const untilMs = clock.monotonic() + WAIT_MS_MAX;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const answer = await cell.operations((store) => store.outcomes([taskId]));
    if (answer.kind !== "answer" || answer.value[0] !== "open" || clock.monotonic() >= untilMs) return;
    await new Promise<void>((resolve) => {
      clock.setTimer(pauseMs, resolve);
    });
  }
}
