import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { OWN_BERTH, quickestBerth } from "../../chaos/local/service-process.ts";

const run = promisify(execFile);

test("local clouds start the bundle, whose commands are those of the sources", async () => {
  expect(quickestBerth()).toBe(inject("berthBundle"));
  const [own, bundled] = [await run(OWN_BERTH, ["--help"]), await run(quickestBerth(), ["--help"])];
  expect(bundled).toEqual(own);
});

test("a stack trace of a bundled command names the sources", async () => {
  const broken = "process.stdout.write = () => { throw new TypeError('a mistake'); };";
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(broken)}`;
  const failed = await run(quickestBerth(), ["--help"], { env: { ...process.env, NODE_OPTIONS } }).catch(
    (error) => error,
  );
  expect(failed.stderr).toMatch(/^berth: TypeError: a mistake\n/);
  expect(failed.stderr).toMatch(/\/cli\/main\.ts:\d+:\d+\)/);
});
