import { providerUuid, resourceClass } from "../../../../core/ledger/ids.ts";
import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, noContent, type PlacementCall } from "../http.ts";
import { ERROR_CODES, placementBadRequest, placementConflict } from "../placement-error.ts";
import { postReshaperSchemas as bodySchema } from "../schemas/allocations.ts";
import { readUuidLike } from "../uuids.ts";
import { readBody } from "../validate.ts";
import { earlierRefusal, refusalOfOutcome } from "./allocation-refusals.ts";
import { type ConsumerBody, changeFrom, consumersFrom } from "./allocations.ts";
import { type InventoryBody, inventoryFrom } from "./inventories.ts";

interface ReshapeBody {
  readonly inventories: Readonly<
    Record<
      string,
      { readonly resource_provider_generation: number; readonly inventories: Readonly<Record<string, InventoryBody>> }
    >
  >;
  readonly allocations: Readonly<Record<string, ConsumerBody>>;
}

const PREFIX = "malformed reshaper data:";

const notFoundInInventories = (uuid: string) =>
  placementBadRequest(
    `Resource provider ${uuid} in inventories not found: No resource provider with uuid ${uuid} found`,
    ERROR_CODES.providerNotFound,
  );

/** POST /reshaper: inventories and allocations of many providers and consumers in one step. */
export async function reshape(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const body = readBody<ReshapeBody>(call, bodySchema);
  const inventories = Object.entries(body.inventories).map(([text, one]) => {
    const uuid = readUuidLike(text);
    if (uuid === null) throw notFoundInInventories(text);
    return {
      provider: providerUuid(uuid),
      expected: one.resource_provider_generation,
      inventories: new Map(
        Object.entries(one.inventories).map(([name, inventory]) => [resourceClass(name), inventoryFrom(inventory)]),
      ),
    };
  });
  const change = await changeFrom(call, store, consumersFrom(body.allocations));
  const outcome = await store.reshape({ inventories, change });
  // As upstream, generations of providers are checked first, then those of consumers, then the names in the allocations, then everything else.
  const isOfProviders = outcome.kind === "unknown-provider" || outcome.kind === "generation-conflict";
  if (outcome.kind !== "reshaped" && !isOfProviders) {
    const earlier = await earlierRefusal(store, change, PREFIX);
    if (earlier !== null) throw earlier;
  }
  switch (outcome.kind) {
    case "reshaped":
      return noContent;
    case "unknown-provider":
      throw notFoundInInventories(outcome.provider);
    case "unknown-class":
      throw placementBadRequest(`${PREFIX} No such resource class ${outcome.resourceClass}.`);
    case "generation-conflict":
      throw placementConflict(
        `resource provider generation conflict for provider ${outcome.provider}: actual: ${outcome.actual}, given: ${outcome.given}`,
        ERROR_CODES.concurrentUpdate,
      );
    case "in-use":
      throw placementConflict(
        `update conflict: Inventory for '${outcome.resourceClasses.join(", ")}' on resource provider '${outcome.provider}' in use.`,
        ERROR_CODES.inventoryInUse,
      );
    case "refused":
      throw refusalOfOutcome(outcome.outcome);
    default:
      return outcome satisfies never;
  }
}
