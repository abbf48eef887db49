import type { SoftState } from "../core/stores/soft-state.ts";
import type { Clock } from "../runtime/clock.ts";
import { LawBoard } from "./law-board.ts";
import type { WatchOptions } from "./watch-cloud.ts";

/** Findings are kept for at least this long, and for three times as long as the readings are apart. */
const KEPT_MS_MIN = 10_000;
/** Older findings say nothing about the present. */
const KEPT_MS_MAX = 60_000;

/**
 * Publishes the findings of a watch in the soft state, where apis read them for dashboards. Nothing withdraws them: when the watch is
 * silent, or cannot read a cell, they expire, and the state of the laws is unknown.
 */
export function publishLaws(
  softState: Pick<SoftState, "recordLaws">,
  clock: Clock,
): Required<Pick<WatchOptions, "onChange" | "onReading">> {
  const board = new LawBoard();
  let lastMs: number | null = null;
  return {
    onChange: (change) => board.take(change, clock.now()),
    onReading: (reading) => {
      const isComplete = board.read(reading, clock.now());
      const laws = board.laws();
      const nowMs = clock.monotonic();
      const apartMs = lastMs === null ? 0 : nowMs - lastMs;
      lastMs = nowMs;
      // The soft state never rejects.
      if (isComplete && laws !== null)
        void softState.recordLaws(laws, Math.min(KEPT_MS_MAX, KEPT_MS_MIN + 3 * Math.round(apartMs)));
    },
  };
}
