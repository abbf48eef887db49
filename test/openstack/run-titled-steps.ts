import type { Figures } from "./command/figures.ts";

/** A step of a session: its title, and what it does and expects. */
export interface TitledStep {
  readonly title: string;
  run(): Promise<void>;
}

/** Runs the steps up to the first one that goes wrong, since the next ones need it. */
export async function runTitledSteps(
  steps: readonly TitledStep[],
): Promise<{ readonly figures: Figures; readonly wrong: readonly string[] }> {
  let passed = 0;
  for (const { title, run } of steps) {
    try {
      await run();
      passed += 1;
    } catch (error) {
      const notes = [`${steps.length - passed - 1} steps did not run`];
      return { figures: { passed, failed: 1, notes }, wrong: [`${title}: ${error}`] };
    }
  }
  return { figures: { passed, failed: 0 }, wrong: [] };
}
