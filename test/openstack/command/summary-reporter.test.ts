import { expect, test } from "vitest";
import type { SerializedError, TestModule } from "vitest/node";
import type { Figures } from "./figures.ts";
import type { PartName } from "./parts.ts";
import type { RunChoice } from "./summary.ts";
import { HOW_TO_GIVE_NOVA } from "./summary.ts";
import SummaryReporter from "./summary-reporter.ts";

interface MadeTest {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly part?: PartName;
  readonly figures?: Figures;
}

/** A file of tests as Vitest shows it to reporters. */
function moduleOf(
  file: string,
  tests: readonly MadeTest[],
  broken: { part?: PartName; message: string }[] = [],
  errors: { message: string }[] = [],
) {
  const suites = broken.map(({ part, message }) => ({
    ...{ fullName: "the cloud", meta: () => ({ part }), errors: () => [{ message }] },
  }));
  const shown = tests.map(({ name, state, ...meta }) => ({
    ...{ fullName: name, meta: () => meta },
    result: () => ({ state, errors: state === "failed" ? [{ message: "expected 1 to be 2\nhere" }] : [] }),
  }));
  const children = { allTests: () => shown, allSuites: () => suites };
  return { moduleId: `/clone/test/openstack/${file}`, children, errors: () => errors } as unknown as TestModule;
}

function summarise(modules: readonly TestModule[], choice: Partial<RunChoice> = {}, errors: SerializedError[] = []) {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const parts: readonly PartName[] = ["samples", "client", "horizon", "tempest", "contracts"];
  new SummaryReporter({ choice: { parts, novaSource: "/nova", ...choice }, write }).onTestRunEnd(modules, errors);
  return text;
}

const PASSED = { name: "a", state: "passed" } as const;

test("tests count for the part of their file, or for their own, and a test with figures counts as what it has counted", () => {
  const text = summarise([
    moduleOf("keystone.test.ts", [PASSED, PASSED, { name: "b", state: "skipped" }]),
    moduleOf("horizon.test.ts", [PASSED]),
    moduleOf("real-cloud.test.ts", [
      { ...PASSED, part: "horizon" },
      { ...PASSED, part: "tempest", figures: { passed: 480, failed: 0, skipped: 61, notes: ["61 × skipped: no SSH"] } },
    ]),
  ]);
  expect(text).toMatch(/^contracts .*: 2 passed, 0 failed, 1 skipped$/m);
  expect(text).toMatch(/^horizon .*: 2 passed, 0 failed$/m);
  expect(text).toMatch(/^tempest .*: 480 passed, 0 failed, 61 skipped\n {2}61 × skipped: no SSH$/m);
  expect(text).toContain("Nothing failed.");
});

test("failures are named below their part, also if a cloud did not start", () => {
  const text = summarise([
    moduleOf("keystone.test.ts", [{ name: "logs in", state: "failed" }]),
    moduleOf(
      "real-cloud.test.ts",
      [
        { name: "x", state: "skipped", part: "client" },
        { name: "y", state: "skipped", part: "tempest" },
      ],
      [{ message: "no port is free" }],
    ),
  ]);
  expect(text).toContain("  failed: logs in: expected 1 to be 2 here");
  expect(text.match(/ {2}failed: the cloud: no port is free/g)).toHaveLength(2);
  expect(text).toContain("Something failed");
});

test("a file that could not be loaded is a failure of all its parts", () => {
  const text = summarise([moduleOf("real-cloud.test.ts", [], [], [{ message: "no such module" }])]);
  expect(text.match(/^(client|horizon|tempest) .*: 0 passed, 0 failed\n {2}failed: no such module$/gm)).toHaveLength(3);
  expect(text).toContain("Something failed");
});

test("an error outside every test is told, and nothing is said to have passed", () => {
  const text = summarise([moduleOf("keystone.test.ts", [PASSED])], {}, [
    { message: "a process was left" } as SerializedError,
  ]);
  expect(text).toContain("failed: outside every test: a process was left");
  expect(text).toContain("Something failed");
});

test("what did not run says why: how a checkout of Nova is given, and what was left out", () => {
  const text = summarise([moduleOf("client-session.test.ts", [{ name: "a", state: "skipped" }])], {
    parts: ["samples", "client"],
    novaSource: "",
  });
  expect(text).toContain(`: not run: ${HOW_TO_GIVE_NOVA}`);
  expect(text).toMatch(/^client .*: 0 passed, 0 failed, 1 skipped\n {2}nothing of it ran/m);
  expect(text).toMatch(/^horizon .*: not run: left out as asked$/m);
  expect(text).toMatch(/^tempest-trial .*: not run: it takes long; `--with tempest-trial` asks for it$/m);
});
