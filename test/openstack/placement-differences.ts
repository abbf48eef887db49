/** An answer in the form in which answers are compared. */
export interface Compared {
  readonly status: number;
  readonly body: unknown;
}

/** What upstream's Placement and Berth answered to one request. */
export interface Answers {
  readonly theirs: Compared;
  readonly ours: Compared;
  /** Whether Berth refused a resource class or a trait that does not exist. */
  readonly namesUnknown: boolean;
}

interface Candidates {
  readonly allocation_requests: readonly Candidate[];
}
interface Candidate {
  readonly allocations: Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>;
}

/** The answer without the words of errors, which no client reads, and without the order of lists, which has no meaning. */
export function comparable({ status, body }: Compared): Compared {
  const errors = (body as { readonly errors?: readonly { readonly code?: string }[] } | null)?.errors;
  return { status, body: errors === undefined ? sorted(body) : errors.map(({ code }) => code) };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]) => [key, sorted(part)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether two answers are the same. Upstream's faults excuse none of Berth's, so an answer of 500 from Berth is never the same. */
export function isSame({ theirs, ours }: Pick<Answers, "theirs" | "ours">): boolean {
  return ours.status < 500 && JSON.stringify(theirs) === JSON.stringify(ours);
}

/**
 * Whether a difference is expected, since upstream's answer is a fault of its own, or one that Berth does not follow:
 * - It answers 500, for example (on PostgreSQL, from 1.38 on) to each question for usages.
 * - It does not look for the names in a part of a query when another part has no candidates already. Berth always refuses unknown names.
 * - Among candidates of several groups it counts amounts twice, since its candidates share objects.
 * - Of candidates that differ only in the tree that a sharing provider is used for, it keeps one at random, and so may miss what only another tree can give to
 *   a numbered group.
 */
export function isExpected(path: string, { theirs, ours, namesUnknown }: Answers): boolean {
  if (ours.status >= 500) return false;
  if (theirs.status >= 500) return true;
  if (theirs.status !== 200 || !/^\/(allocation_candidates|resource_providers)\?/.test(path)) return false;
  if (namesUnknown) return Object.values(theirs.body as object).every((part: object) => Object.keys(part).length === 0);
  if (ours.status !== 200 || !/[?&]resources\d=/.test(path)) return false;
  const [upstream, berth] = [theirs.body as Candidates, ours.body as Candidates];
  const asked = JSON.stringify(amountsOf(path));
  if (upstream.allocation_requests.some((candidate) => JSON.stringify(totalsOf(candidate)) !== asked)) return true;
  const known = new Set(berth.allocation_requests.map((candidate) => JSON.stringify(candidate)));
  const isPart = upstream.allocation_requests.every((candidate) => known.has(JSON.stringify(candidate)));
  return isPart && berth.allocation_requests.length > upstream.allocation_requests.length;
}

/** The amounts of a query by resource class, over all of its groups. */
function amountsOf(path: string): unknown {
  const groups = [...new URL(path, "http://placement").searchParams].filter(([key]) => /^resources\d*$/.test(key));
  return added(
    groups.flatMap(([, value]) =>
      value.split(",").map((one): readonly [string, number] => [one.split(":")[0]!, Number(one.split(":")[1])]),
    ),
  );
}

function totalsOf({ allocations }: Candidate): unknown {
  return added(Object.values(allocations).flatMap(({ resources }) => Object.entries(resources)));
}

function added(amounts: readonly (readonly [string, number])[]): unknown {
  const totals: Record<string, number> = {};
  for (const [name, amount] of amounts) totals[name] = (totals[name] ?? 0) + amount;
  return sorted(totals);
}
