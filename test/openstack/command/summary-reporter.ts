import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import "./figures.ts";
import { type PartName, partsOfFile } from "./parts.ts";
import { type PartResult, type RunChoice, summaryOf } from "./summary.ts";

const NOTHING: PartResult = { passed: 0, failed: 0, skipped: 0, notes: [], failures: [] };

/** Prints what a run of `npm run test:openstack` found, part by part. */
export default class SummaryReporter implements Reporter {
  readonly #given: { readonly choice?: RunChoice; readonly write?: (text: string) => void };

  /** Vitest gives no choice: it is that of the process then. */
  constructor(given: { readonly choice?: RunChoice; readonly write?: (text: string) => void } = {}) {
    this.#given = given;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const { choice = choiceOfProcess(), write = writeOut } = this.#given;
    const outside = errors.map(({ message }) => message);
    write(`${summaryOf(resultsOf(modules), choice, outside).join("\n")}\n`);
  }
}

const writeOut = (text: string): void => {
  process.stdout.write(text);
};

function choiceOfProcess(): RunChoice {
  const { BERTH_TEST_OPENSTACK_PARTS: parts = "", BERTH_NOVA_SOURCE: novaSource = "" } = process.env;
  return { parts: parts.split(","), novaSource };
}

/** Adds up the tests of each part. A test with figures of its own counts as what it has counted. */
function resultsOf(modules: readonly TestModule[]): ReadonlyMap<PartName, PartResult> {
  const results = new Map<PartName, PartResult>();
  const add = (part: PartName, more: PartResult) => results.set(part, sumOf(results.get(part) ?? NOTHING, more));
  for (const module of modules) {
    const tests = [...module.children.allTests()];
    for (const test of tests) add(partOfTest(test, module), resultOf(test));
    // Parts whose preparations failed have no test that failed.
    const suites = [...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map((error) => ({ part: suite.meta().part, line: `${suite.fullName}: ${firstLines(error)}` })),
    );
    const whole = module.errors().map((error) => ({ part: undefined, line: firstLines(error) }));
    for (const { part, line } of [...suites, ...whole]) {
      const hit = part === undefined ? partsOf(module) : [part];
      for (const name of hit) add(name, { ...NOTHING, failures: [line] });
    }
  }
  return results;
}

const partOfTest = (test: TestCase, module: TestModule): PartName =>
  test.meta().part ?? partsOfFile(module.moduleId)[0] ?? "contracts";

/** The parts of a file's tests. A file that could not be loaded has none, and counts for all parts that are in it. */
function partsOf(module: TestModule): ReadonlySet<PartName> {
  const ofTests = [...module.children.allTests()].map((test) => partOfTest(test, module));
  return new Set(ofTests.length > 0 ? ofTests : partsOfFile(module.moduleId));
}

function resultOf(test: TestCase): PartResult {
  const { state, errors } = test.result();
  const { figures } = test.meta();
  const failures = state === "failed" ? [`${test.fullName}: ${firstLines(errors?.[0])}`] : [];
  if (figures !== undefined) return { ...NOTHING, ...figures, failures };
  const one = (wanted: string) => (state === wanted ? 1 : 0);
  return { ...NOTHING, passed: one("passed"), failed: one("failed"), skipped: one("skipped"), failures };
}

function sumOf(one: PartResult, other: PartResult): PartResult {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
    notes: [...one.notes, ...other.notes],
    failures: [...one.failures, ...other.failures],
  };
}

const firstLines = (error: { readonly message: string } | undefined): string =>
  (error?.message ?? "no reason was given").split("\n").slice(0, 2).join(" ").slice(0, 500);
