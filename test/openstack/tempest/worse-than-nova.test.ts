import { expect, test } from "vitest";
import type { TempestVerdict } from "./tempest-runs.ts";
import { worseThanNova } from "./worse-than-nova.ts";

const verdict = (test: string, kind: TempestVerdict["kind"], text = ""): TempestVerdict => ({
  test,
  kind,
  text,
  seconds: 1,
});

test("a test that Nova passes and Berth fails, skips or does not run is named, with the reason if it is known", () => {
  const known = "admin.test_volume_swap.TestVolumeSwap.test_volume_swap";
  const nova = ["a", "b", "c", "d", known].map((name) => verdict(name, "passed"));
  const berth = [
    verdict("a", "passed"),
    verdict("b", "failed", "why"),
    verdict("c", "skipped"),
    verdict(known, "failed"),
  ];
  const { named, others } = worseThanNova({ nova, berth });
  expect(others).toEqual(["b: failed: why", "c: skipped: ", "d: not run: "]);
  expect(named).toEqual([expect.stringMatching(`^${known}: only Cinder may replace a volume`)]);
});

test("tests that Nova does not pass are not compared", () => {
  const nova = [verdict("a", "failed"), verdict("b", "skipped")];
  expect(worseThanNova({ nova, berth: [] })).toEqual({ named: [], others: [], incomparable: [] });
});

test("a class that could not begin with Nova alone is told", () => {
  const nova = ["setUpClass (a)", "setUpClass (b)"].map((name) => verdict(name, "failed"));
  const berth = [verdict("setUpClass (b)", "failed")];
  expect(worseThanNova({ nova, berth }).incomparable).toEqual(["setUpClass (a)"]);
});
