import type { SchedulerHint } from "../../../../proto/gen/berth/shared.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { Identity } from "../../http/identity.ts";
import type { RequestsPort } from "../../ports.ts";
import { SERVER_HINTS } from "./scheduler-hints.ts";

/** No server has this uuid. */
const NO_SERVER = "00000000-0000-0000-0000-000000000000";

/**
 * Returns the hints with every server that the caller may not see replaced by one that does not exist. Otherwise the choice of a host, or
 * the refusal, would reveal that another project's server exists, and where.
 *
 * Cost: one query for all of them.
 */
export async function withOwnServersOnly(
  hints: readonly SchedulerHint[],
  identity: Identity,
  store: Pick<RequestsPort, "requests">,
): Promise<readonly SchedulerHint[]> {
  const named = new Set(
    hints.flatMap(({ name, values }) =>
      SERVER_HINTS.has(name) ? values.filter((id) => canonicalUuid(id) !== null) : [],
    ),
  );
  if (identity.isAdmin || !hints.some(({ name }) => SERVER_HINTS.has(name))) return hints;
  const records = named.size === 0 ? [] : await store.requests([...named]);
  const own = new Set(
    records.filter(({ spec }) => spec.projectId === identity.projectId).map(({ serverUuid }) => serverUuid),
  );
  return hints.map((hint) => {
    if (!SERVER_HINTS.has(hint.name)) return hint;
    return { name: hint.name, values: [...new Set(hint.values.map((uuid) => (own.has(uuid) ? uuid : NO_SERVER)))] };
  });
}
