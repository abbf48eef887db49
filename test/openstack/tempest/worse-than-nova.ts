import type { TempestVerdict } from "./tempest-runs.ts";

/** Why tests fail with Berth that pass with Nova, with the beginnings of their names. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  "only Cinder may replace a volume, while it migrates it: newer Novas refuse it with the same words, and Debian's does not yet":
    [
      "admin.test_volume_swap.TestVolumeSwap.test_volume_swap",
      "admin.test_volumes_negative.VolumesAdminNegativeTest.test_update_attached_volume_with_nonexistent_volume_in_body",
    ],
};

/**
 * Returns the tests that pass with Nova and not with Berth, each with the last words of its failure, or with the reason why this is known. A test that
 * Nova passes and Berth skips or does not run counts, too. `incomparable`: the classes that could not begin with Nova alone, so that none of their
 * tests is compared.
 */
export function worseThanNova(all: Readonly<Record<"berth" | "nova", readonly TempestVerdict[]>>): {
  readonly named: readonly string[];
  readonly others: readonly string[];
  readonly incomparable: readonly string[];
} {
  const passing = new Set(all.nova.filter(({ kind }) => kind === "passed").map(({ test }) => test));
  const own = new Map(all.berth.map((one) => [one.test, one]));
  const [named, others]: [string[], string[]] = [[], []];
  for (const test of passing) {
    const verdict = own.get(test);
    if (verdict?.kind === "passed") continue;
    const reason = Object.entries(NAMED).find(([, names]) => names.some((name) => test.startsWith(name)))?.[0];
    if (reason !== undefined) named.push(`${test}: ${reason}`);
    else others.push(`${test}: ${verdict?.kind ?? "not run"}: ${(verdict?.text ?? "").trim().slice(-500)}`);
  }
  const incomparable = all.nova
    .filter(({ test, kind }) => test.startsWith("setUpClass") && kind === "failed" && own.get(test)?.kind !== "failed")
    .map(({ test }) => test);
  return { named, others, incomparable };
}
