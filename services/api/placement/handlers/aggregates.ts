import { aggregateUuid } from "../../../../core/ledger/ids.ts";
import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, type PlacementCall } from "../http.ts";
import { ERROR_CODES, placementConflict } from "../placement-error.ts";
import { setAggregatesSchemas as setSchema } from "../schemas/names.ts";
import { readUuidLike } from "../uuids.ts";
import { readBody } from "../validate.ts";
import { noSuchProvider, orNotFound, providerInPath } from "./providers.ts";

/** Returns the answer with the present time, because the time when a provider joined an aggregate is not recorded. */
function present(call: PlacementCall, aggregates: readonly string[], generation: number): Answer {
  return json(
    { aggregates, ...(call.version.has(19) ? { resource_provider_generation: generation } : {}) },
    Date.now(),
  );
}

/** GET /resource_providers/{uuid}/aggregates */
export async function listAggregates(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const found = await store.aggregates(uuid);
  if (found === null) throw noSuchProvider(uuid);
  return present(call, found.value, found.generation);
}

/** PUT /resource_providers/{uuid}/aggregates: a bare list until 1.18, then with the provider's generation. */
export async function setAggregates(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const body = await orNotFound(store, uuid, () =>
    readBody<string[] | { aggregates: string[]; resource_provider_generation: number }>(call, setSchema),
  );
  const [list, expected] = Array.isArray(body)
    ? [body, undefined]
    : [body.aggregates, body.resource_provider_generation];
  const aggregates = list.map((text) => aggregateUuid(readUuidLike(text)!));
  const outcome = await store.setAggregates(uuid, expected, aggregates);
  switch (outcome.kind) {
    case "written":
      return present(call, aggregates, outcome.generation);
    case "not-found":
      throw noSuchProvider(uuid);
    case "generation-conflict":
      throw placementConflict(
        "Resource provider's generation already changed. Please update the generation and try again.",
        ERROR_CODES.concurrentUpdate,
      );
    case "unknown-names":
      throw new Error("aggregates have no names that could be unknown");
    default:
      return outcome satisfies never;
  }
}
