import { DueLine } from "../runtime/due-line.ts";
import { type ProgressOutput, shareParts } from "../runtime/progress-line.ts";
import { type SimTotal, secondsOf } from "./print-results.ts";

/** The progress of a call with many seeds. It is shown between two worlds, because real time is not visible within one. */
export class SeedProgress {
  readonly #line: DueLine;
  readonly #seeds: number;

  constructor(output: ProgressOutput, seeds: number) {
    this.#line = new DueLine(output);
    this.#seeds = seeds;
  }

  show({ seeds, simulatedMs, startedMs }: SimTotal): void {
    const nowMs = performance.now();
    this.#line.show(nowMs, (withBar) => {
      const leftMs = ((nowMs - startedMs) / seeds) * (this.#seeds - seeds);
      const share = shareParts(seeds / this.#seeds, withBar);
      return [
        ...share,
        `${seeds} ${seeds === 1 ? "seed" : "seeds"} held`,
        `${secondsOf(simulatedMs)} simulated`,
        `${secondsOf(leftMs)} left`,
      ].join("  ");
    });
  }

  end(): void {
    this.#line.end();
  }
}
