import type { AllocationChange, AllocationStep } from "../../../../core/ledger/allocation-change.ts";
import { type ConsumerUuid, consumerUuid, providerUuid, resourceClass } from "../../../../core/ledger/ids.ts";
import type { AllocationItem, ConsumerOwner } from "../../../../core/ledger/model.ts";
import type { ConsumerAllocations, PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { type Answer, json, noContent, type PlacementCall } from "../http.ts";
import { placementBadRequest, placementNotFound } from "../placement-error.ts";
import { postAllocationsSchemas as postSchema, putAllocationsSchemas as putSchema } from "../schemas/allocations.ts";
import { readUuidLike } from "../uuids.ts";
import { readBody } from "../validate.ts";
import { refusal, underWay, unknownProvider } from "./allocation-refusals.ts";
import { noSuchProvider, providerInPath } from "./providers.ts";

/** Owner of consumers that were created before 1.8, without an owner: upstream's `incomplete_consumer_*_id`. */
const INCOMPLETE_OWNER = "00000000-0000-0000-0000-000000000000";
/** Type of consumers that were made before 1.38. */
const UNKNOWN_TYPE = "unknown";
/**
 * Larger amounts are replaced by this one, which exceeds every max_unit (an int) and is therefore refused the same way. It is small enough
 * that the ledger can add up the amounts of one request.
 */
const AMOUNT_MAX = 2 ** 40;

type Resources = Readonly<Record<string, number>>;
interface ListBody {
  readonly allocations: readonly {
    readonly resource_provider: { readonly uuid: string };
    readonly resources: Resources;
  }[];
  readonly project_id?: string;
  readonly user_id?: string;
}
export interface ConsumerBody {
  readonly allocations: Readonly<Record<string, { readonly resources: Resources }>>;
  readonly project_id: string;
  readonly user_id: string;
  readonly consumer_generation?: number | null;
  readonly consumer_type?: string;
}

/** GET /allocations/{consumer_uuid}: a consumer that is not known holds nothing; there is no 404. */
export async function listForConsumer(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = readUuidLike(call.params["consumer_uuid"] ?? "");
  const consumer = uuid === null ? null : await store.consumer(consumerUuid(uuid));
  if (consumer === null) return json({ allocations: {} }, Date.now());
  const allocations: Record<string, { generation: number; resources: Record<string, number> }> = {};
  for (const item of consumer.items) {
    allocations[item.provider] ??= { generation: item.providerGeneration, resources: {} };
    allocations[item.provider]!.resources[item.resourceClass] = item.amount;
  }
  const body = {
    allocations,
    ...(call.version.has(12) ? { project_id: consumer.projectId, user_id: consumer.userId } : {}),
    ...(call.version.has(28) ? { consumer_generation: consumer.generation } : {}),
    ...(call.version.has(38) ? { consumer_type: consumer.type } : {}),
  };
  return json(body, consumer.updatedAtMs);
}

/** GET /resource_providers/{uuid}/allocations */
export async function listForProvider(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const uuid = providerInPath(call);
  const found = await store.allocationsOfProvider(uuid);
  if (found === null) throw noSuchProvider(uuid);
  const allocations: Record<string, { resources: Record<string, number>; consumer_generation?: number }> = {};
  for (const one of found.allocations) {
    allocations[one.consumer] ??= {
      resources: {},
      ...(call.version.has(28) ? { consumer_generation: one.consumerGeneration } : {}),
    };
    allocations[one.consumer]!.resources[one.resourceClass] = one.amount;
  }
  const newest = found.allocations.reduce((latest, one) => Math.max(latest, one.updatedAtMs), 0);
  return json({ allocations, resource_provider_generation: found.provider.generation }, newest || Date.now());
}

/** PUT /allocations/{consumer_uuid}: a list until 1.11, then the map that GET answers with. */
export async function putAllocations(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const text = call.params["consumer_uuid"] ?? "";
  const uuid = readUuidLike(text);
  if (uuid === null) throw placementBadRequest(`Malformed consumer_uuid: ${text}`);
  const body = readBody<ListBody | ConsumerBody>(call, putSchema);
  const change = await changeFrom(call, store, new Map([[uuid, asConsumerBody(body)]]));
  await apply(store, change, `Unable to allocate inventory for consumer ${uuid}:`);
  return noContent;
}

function asConsumerBody(body: ListBody | ConsumerBody): ConsumerBody {
  if (!Array.isArray(body.allocations)) return body as ConsumerBody;
  const list = body.allocations as ListBody["allocations"];
  return {
    allocations: Object.fromEntries(list.map((one) => [one.resource_provider.uuid, { resources: one.resources }])),
    project_id: body.project_id ?? INCOMPLETE_OWNER,
    user_id: body.user_id ?? INCOMPLETE_OWNER,
  };
}

/** POST /allocations: several consumers in one step. */
export async function postAllocations(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const body = readBody<Record<string, ConsumerBody>>(call, postSchema);
  const change = await changeFrom(call, store, consumersFrom(body));
  await apply(store, change, "Unable to allocate inventory");
  return noContent;
}

/** Returns the bodies by canonical UUID. Throws 400 for a key that is not a UUID, and for two spellings of one. */
export function consumersFrom(body: Readonly<Record<string, ConsumerBody>>): ReadonlyMap<string, ConsumerBody> {
  const bodies = new Map<string, ConsumerBody>();
  for (const [text, one] of Object.entries(body)) {
    const uuid = readUuidLike(text);
    if (uuid === null) throw placementBadRequest(`Malformed consumer_uuid: ${text}`);
    if (bodies.has(uuid)) throw placementBadRequest(`Consumer ${uuid} is named twice, in two spellings.`);
    bodies.set(uuid, one);
  }
  return bodies;
}

/**
 * Returns the ledger change that the bodies ask for. Before 1.38 a consumer keeps its type; the type is only read where it could be lost. A
 * consumer that is expected to be new has none to lose, since the ledger refuses the change if the consumer exists. So a claim for a new
 * server costs no read.
 */
export async function changeFrom(
  call: PlacementCall,
  store: PlacementStore,
  bodies: ReadonlyMap<string, ConsumerBody>,
): Promise<AllocationChange> {
  const expectedOf = (body: ConsumerBody) => (call.version.has(28) ? (body.consumer_generation ?? null) : "any");
  const typed = call.version.has(38) ? [] : [...bodies].filter(([, body]) => expectedOf(body) !== null);
  const uuids = typed.map(([uuid]) => consumerUuid(uuid));
  const known: readonly ConsumerAllocations[] = uuids.length === 0 ? [] : await store.consumers(uuids);
  const types = new Map<string, string>(known.map((consumer) => [consumer.uuid, consumer.type]));
  const steps = [...bodies].map(([uuid, body]): AllocationStep => {
    const owner: ConsumerOwner = {
      projectId: body.project_id,
      userId: body.user_id,
      type: body.consumer_type ?? types.get(uuid) ?? UNKNOWN_TYPE,
    };
    const expected = expectedOf(body);
    return { kind: "replace", consumer: consumerUuid(uuid), expected, owner, items: itemsFrom(body) };
  });
  return { steps, bumpProviders: true };
}

function itemsFrom(body: ConsumerBody): readonly AllocationItem[] {
  const seen = new Set<string>();
  return Object.entries(body.allocations).flatMap(([text, { resources }]) => {
    const provider = readUuidLike(text);
    if (provider === null) throw unknownProvider(text);
    if (seen.has(provider))
      throw placementBadRequest(`Resource provider ${provider} is named twice, in two spellings.`);
    seen.add(provider);
    return Object.entries(resources).map(([name, amount]) => ({
      provider: providerUuid(provider),
      resourceClass: resourceClass(name),
      amount: Math.min(amount, AMOUNT_MAX),
    }));
  });
}

async function apply(store: PlacementStore, change: AllocationChange, prefix: string): Promise<void> {
  const outcome = await store.applyAllocations(change);
  if (outcome.kind !== "committed") throw await refusal(store, { outcome, change, prefix });
}

/** DELETE /allocations/{consumer_uuid} */
export async function deleteAllocations(call: PlacementCall, store: PlacementStore): Promise<Answer> {
  const text = call.params["consumer_uuid"] ?? "";
  const uuid = readUuidLike(text);
  const consumer = uuid === null ? null : await store.consumer(consumerUuid(uuid));
  if (consumer === null) throw placementNotFound(`No allocations for consumer '${text}'`);
  const outcome = await store.applyAllocations({ steps: [releaseOf(consumer.uuid, consumer)] });
  if (outcome.kind === "under-way") throw underWay(outcome);
  return noContent;
}

const releaseOf = (consumer: ConsumerUuid, owner: ConsumerOwner): AllocationStep => ({
  kind: "replace",
  consumer,
  expected: "any",
  owner: { projectId: owner.projectId, userId: owner.userId, type: owner.type },
  items: [],
});
