import type { AllocationChange, AllocationOutcome } from "../../../../core/ledger/allocation-change.ts";
import type { ConsumerUuid } from "../../../../core/ledger/ids.ts";
import type { PlacementChangeOutcome, PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { ERROR_CODES, type PlacementError, placementBadRequest, placementConflict } from "../placement-error.ts";

type RefusedOutcome = Exclude<PlacementChangeOutcome, { kind: "committed" }>;

/**
 * Returns the refusal for the first consumer of a change whose generation is not the expected one, or null. Upstream checks the generations of
 * all consumers before anything else, so a request that lost a race gets a generation conflict whatever other reasons exist.
 */
async function staleConsumer(store: PlacementStore, { steps }: AllocationChange): Promise<PlacementError | null> {
  const expected = new Map<ConsumerUuid, number | null>();
  for (const step of steps) {
    if (step.kind === "replace" && step.expected !== "any") expected.set(step.consumer, step.expected);
  }
  if (expected.size === 0) return null;
  const known = await store.consumers([...expected.keys()]);
  const generations = new Map(known.map(({ uuid, generation }) => [uuid, generation]));
  const stale = [...expected].find(([uuid, generation]) => generation !== (generations.get(uuid) ?? null));
  return stale === undefined ? null : consumerConflict(stale[1], generations.get(stale[0]) ?? null);
}

function consumerConflict(expected: number | null | "any", actual: number | null): PlacementError {
  const message = `consumer generation conflict - expected ${actual ?? "null"} but got ${expected ?? "None"}`;
  return placementConflict(message, ERROR_CODES.concurrentUpdate);
}

/** Returns the refusal that upstream would answer to this request alone. */
export async function refusal(
  store: PlacementStore,
  refused: {
    readonly outcome: RefusedOutcome;
    readonly change: AllocationChange;
    readonly prefix: string;
  },
): Promise<PlacementError> {
  const { outcome, change, prefix } = refused;
  if (outcome.kind === "consumer-conflict") return refusalOfOutcome(outcome);
  return (await earlierRefusal(store, change, prefix)) ?? refusalOfOutcome(outcome);
}

/**
 * Returns the refusal of a change for what upstream checks before it looks at any inventory: the generations of the consumers, then the
 * names of providers and resource classes. Null if all of these are right.
 */
export async function earlierRefusal(
  store: PlacementStore,
  change: AllocationChange,
  prefix: string,
): Promise<PlacementError | null> {
  return (await staleConsumer(store, change)) ?? (await unknownName(store, change, prefix));
}

/** Returns the refusal that an outcome stands for by itself. */
export function refusalOfOutcome(outcome: RefusedOutcome): PlacementError {
  switch (outcome.kind) {
    case "consumer-conflict":
      return consumerConflict(outcome.expected, outcome.actual);
    case "under-way":
      return underWay(outcome);
    case "several-cells":
      // With only one cell involved, another process is writing for the same consumer at this moment.
      if (outcome.cells.length === 1)
        return placementConflict("Another request changed the same consumer; try again.", ERROR_CODES.concurrentUpdate);
      return placementConflict(
        `A consumer's allocations are in one cell, and one request changes one cell; this one is about ${outcome.cells.join(", ")}. ` +
          "Send one request for each cell.",
      );
    case "unknown-provider":
      return unknownProvider(outcome.provider);
    case "unknown-inventory":
      return placementConflict(
        `Unable to allocate inventory: Inventory for '${outcome.resourceClass}' on resource provider '${outcome.provider}' invalid.`,
      );
    case "no-capacity": {
      const [first] = outcome.shortfalls;
      const why = first?.reason === "capacity" ? "exceed the capacity" : "violate inventory constraints";
      return placementConflict(
        `Unable to allocate inventory: Unable to create allocation for '${first?.resourceClass}' on resource provider '${first?.provider}'. ` +
          `The requested amount would ${why}. (${outcome.shortfalls.map(describeShortfall).join("; ")})`,
      );
    }
    default:
      return outcome satisfies never;
  }
}

/**
 * Returns the refusal for the first provider of the change that does not exist, else for its first resource class that does not exist, else null.
 * Upstream looks all of them up before it looks at any inventory.
 */
async function unknownName(
  store: PlacementStore,
  { steps }: AllocationChange,
  prefix: string,
): Promise<PlacementError | null> {
  const items = steps.flatMap((step) => (step.kind === "replace" ? step.items : []));
  const uuids = [...new Set(items.map(({ provider }) => provider))];
  const providers = new Set((await store.providers({ uuids })).map(({ uuid }) => uuid));
  const provider = uuids.find((uuid) => !providers.has(uuid));
  if (provider !== undefined) return unknownProvider(provider);
  const classes = new Set((await store.resourceClasses()).map(({ name }) => name));
  const item = items.find(({ resourceClass }) => !classes.has(resourceClass));
  return item === undefined ? null : placementBadRequest(`${prefix} No such resource class ${item.resourceClass}.`);
}

/** The refusal of a change that names a provider which does not exist. `uuid` is as the request spells it. */
export function unknownProvider(uuid: string): PlacementError {
  return placementBadRequest(`Allocation for resource provider '${uuid}' that does not exist.`);
}

type Shortfall = Extract<AllocationOutcome, { kind: "no-capacity" }>["shortfalls"][number];
function describeShortfall(shortfall: Shortfall): string {
  const { resourceClass: name, requested, used, limit, reason } = shortfall;
  return reason === "capacity"
    ? `${name}: requested ${requested}, used ${used}, capacity ${limit}`
    : `${name}: requested ${requested}, ${reason} ${limit}`;
}

/** The refusal of a change to a consumer whose allocations a task or a move relies on. */
export function underWay({ consumer, what }: Extract<PlacementChangeOutcome, { kind: "under-way" }>): PlacementError {
  const why =
    what === "move"
      ? "it is a move of a server, which needs the allocations to finish or to go back"
      : `it is a server, and its task (${what}) needs the allocations`;
  return placementConflict(
    `The allocations of consumer ${consumer} cannot be changed now: ${why}. Wait until the server has no task, or use the Compute API.`,
    ERROR_CODES.concurrentUpdate,
  );
}
