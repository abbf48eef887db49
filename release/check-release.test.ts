import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const check = (...words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, "check-release.ts"), ...words]).then(
    (output) => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );

test("the checklist refuses a tag of another version, says why, and makes nothing", async () => {
  expect(await check("v999.0.0")).toMatchObject({
    ...{ code: 1, stdout: "" },
    stderr: expect.stringMatching(/^release v999\.0\.0: .*whose tag is v\d+\.\d+\.\d+/m),
  });
  expect(await check()).toMatchObject({ code: 2, stderr: expect.stringContaining("usage:") });
});
