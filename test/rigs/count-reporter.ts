import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from "vitest/node";

/**
 * Writes `{"passed": n, "failed": n, "failures": [line, ...]}` at the end, with one line for each failure. Files that did not load and errors
 * outside tests count as failed.
 */
export class CountReporter implements Reporter {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const failures = errors.map((error) => lineOf("outside every test", error));
    let passed = 0;
    for (const module of modules) {
      failures.push(...module.errors().map((error) => lineOf(placeOf(module), error)));
      for (const suite of module.children.allSuites())
        failures.push(...suite.errors().map((error) => lineOf(placeOf(module, suite), error)));
      for (const test of module.children.allTests()) {
        const { state, errors: causes } = test.result();
        if (state === "passed") passed += 1;
        if (state === "failed") failures.push(lineOf(placeOf(module, test), causes?.[0]));
      }
    }
    writeFileSync(this.#file, JSON.stringify({ passed, failed: failures.length, failures }));
  }
}

function placeOf(module: TestModule, part?: TestSuite | TestCase): string {
  return part === undefined ? module.relativeModuleId : `${module.relativeModuleId} > ${part.fullName}`;
}

function lineOf(place: string, error: { readonly message: string } | undefined): string {
  // The second line of a property's failure has the seed that finds it again.
  const lines = (error?.message ?? "").split("\n").filter((line) => line.trim() !== "");
  const reason = lines.slice(0, 3).join(" | ") || "no reason was given";
  return `${place}: ${reason.slice(0, 400)}`;
}
