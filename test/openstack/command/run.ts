import { join } from "node:path";
import { SampleLibrary } from "../samples/sample-library.ts";
import { chooseParts, HELP } from "./choose-parts.ts";
import { PARTS } from "./parts.ts";
import { runProgram } from "./run-program.ts";

/**
 * Runs the parts of `npm run test:openstack` that the switches choose, in one call of Vitest that ends with a summary. Exit code: that of the tests, or 2 for
 * a wrong switch.
 */

async function main(): Promise<number> {
  const asked = chooseParts(process.argv.slice(2), process.env.BERTH_NOVA_SOURCE ?? "");
  if (asked.kind === "help") {
    console.log(HELP.join("\n"));
    return 0;
  }
  if (asked.kind === "wrong") {
    console.error(`${asked.why}\n\n${HELP.join("\n")}`);
    return 2;
  }
  const { parts, novaSource } = asked;
  // A wrong directory is told now, and not after an hour.
  if (parts.includes("samples") && novaSource !== "") SampleLibrary.read(novaSource);
  const packages = new Set(parts.flatMap((name) => PARTS[name].packages));
  const setup = await runProgram(["scripts/setup.mjs", ...packages]);
  if (setup !== 0) return setup;
  const files = new Set(parts.flatMap((name) => PARTS[name].files));
  const paths = [...files].map((file) => join("test/openstack", file));
  const reporters = ["default", "./test/openstack/command/summary-reporter.ts"].flatMap((name) => ["--reporter", name]);
  return runProgram(["node_modules/vitest/vitest.mjs", "run", "--project", "parts", ...reporters, ...paths], {
    BERTH_TEST_OPENSTACK: "true",
    BERTH_TEST_OPENSTACK_PARTS: parts.join(","),
    BERTH_NOVA_SOURCE: novaSource,
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
