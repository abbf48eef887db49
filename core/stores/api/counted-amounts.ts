import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { askedOf } from "../../scheduling/request/asked.ts";
import { translateResources } from "../../scheduling/request/translate-request.ts";
import { amountsOf, type ClassAmounts, type ServerAmounts } from "./quota-limits.ts";

/** Returns the amounts of a server with those of each resource class, as its allocation has them. Cost: tens of microseconds. */
export function countedAmounts(spec: ServerSpec): ServerAmounts {
  return { ...amountsOf(spec.flavor), classes: classAmountsOf(spec) };
}

/**
 * Returns what the server asks for of each resource class, in all request groups together. A request that no host could serve asks for
 * nothing: it is refused later, with its reason. Source: `_get_deltas` of nova/limit/placement.py.
 */
export function classAmountsOf(spec: ServerSpec): ClassAmounts {
  const asked = askedOf(spec);
  const translated = asked && translateResources(asked);
  if (translated?.kind !== "host-request") return new Map();
  const sums = new Map<string, number>();
  for (const { resources } of translated.hostRequest.groups)
    for (const [name, amount] of resources) sums.set(name, (sums.get(name) ?? 0) + amount);
  return sums;
}
