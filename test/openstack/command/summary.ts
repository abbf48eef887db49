import type { Figures } from "./figures.ts";
import { DEFAULT_PARTS, PART_NAMES, PARTS, type PartName } from "./parts.ts";

/** What a run found of one part. */
export interface PartResult extends Required<Figures> {
  /** Tests that failed, and parts that could not begin, one a line. */
  readonly failures: readonly string[];
}

/** How a run was chosen. */
export interface RunChoice {
  readonly parts: readonly string[];
  /** A checkout of openstack/nova, or nothing. */
  readonly novaSource: string;
}

/** What to do without a checkout of openstack/nova. */
export const HOW_TO_GIVE_NOVA =
  "no checkout of openstack/nova was given, from which the requests are read. Get one with `git clone --depth 1 https://opendev.org/openstack/nova`, and name its directory: `npm run test:openstack -- --nova-source DIRECTORY`, or BERTH_NOVA_SOURCE=DIRECTORY";

/** Returns the last lines of a run: for each part what passed, what failed, and what was skipped and why. `errors`: what happened outside every test. */
export function summaryOf(
  results: ReadonlyMap<PartName, PartResult>,
  choice: RunChoice,
  errors: readonly string[] = [],
): readonly string[] {
  const lines = PART_NAMES.flatMap((name) => linesOf(name, results.get(name), choice));
  const hasFailed = errors.length > 0 || [...results.values()].some((one) => one.failed + one.failures.length > 0);
  return [
    "",
    "Berth with OpenStack's own services, clients and tests:",
    ...lines,
    ...errors.map((message) => `failed: outside every test: ${message}`),
    hasFailed ? "Something failed: see the lines above that begin with `failed:`." : "Nothing failed.",
  ];
}

function linesOf(name: PartName, result: PartResult | undefined, { parts, novaSource }: RunChoice): readonly string[] {
  const head = (words: string) => `${name} (${PARTS[name].what}): ${words}`;
  if (!parts.includes(name)) return [head(`not run: ${whyLeftOut(name)}`)];
  if (name === "samples" && novaSource === "") return [head(`not run: ${HOW_TO_GIVE_NOVA}`)];
  if (result === undefined) return [head("not run: its tests were not found")];
  const { passed, failed, skipped, notes, failures } = result;
  const counts = `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
  const nothing =
    passed + failed === 0 && failures.length === 0 ? ["nothing of it ran: something that it needs was not found"] : [];
  return [
    head(counts),
    ...[...nothing, ...notes, ...failures.map((line) => `failed: ${line}`)].map((line) => `  ${line}`),
  ];
}

const whyLeftOut = (name: PartName): string =>
  DEFAULT_PARTS.includes(name) ? "left out as asked" : `it takes long; \`--with ${name}\` asks for it`;
