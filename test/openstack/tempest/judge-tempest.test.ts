import { expect, test } from "vitest";
import { reportOf } from "./judge-tempest.ts";
import type { TempestVerdict } from "./tempest-runs.ts";

const verdict = (test: string, kind: TempestVerdict["kind"], text = ""): TempestVerdict => ({
  ...{ test, kind, text, seconds: 1 },
});
const SWAP = "admin.test_volume_swap.TestVolumeSwap.test_volume_swap";

test("expected failures and skips are counted with their reasons, and are no surprise", () => {
  const { figures, surprises } = reportOf(
    [
      verdict("a", "passed"),
      verdict(SWAP, "failed"),
      verdict("b", "skipped", "no SSH\n"),
      verdict("c", "skipped", "no SSH"),
    ],
    "real",
  );
  expect(surprises).toEqual([]);
  expect(figures).toEqual({
    ...{ passed: 1, failed: 0, skipped: 2 },
    notes: [expect.stringMatching(/^1 × failed as expected: only Cinder/), "2 × skipped: no SSH"],
  });
});

test("other failures, expected ones that pass, and the lack of tests are surprises", () => {
  const { figures, surprises } = reportOf([verdict("a", "failed", "why"), verdict(SWAP, "passed")], "real");
  expect(figures).toMatchObject({ passed: 1, failed: 1 });
  expect(surprises).toEqual(["a: why", expect.stringContaining(SWAP)]);
  expect(reportOf([], "trial").surprises).toEqual(["no test of Tempest has run"]);
});
