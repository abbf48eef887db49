import type { AllocationRequest, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange, AllocationStep } from "../ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../ledger/ids.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../ledger/model.ts";

/** The consumers between which a move shifts allocations. */
export interface MoveParties {
  readonly server: Pick<ServerSpec, "uuid" | "projectId" | "userId">;
  readonly migrationUuid: string;
  /** The server's allocation at its source. */
  readonly source: readonly AllocationItem[];
}

/** The items of an allocation request, in the ledger's terms. */
export function itemsOf(allocation: AllocationRequest | undefined): readonly AllocationItem[] {
  return (allocation?.items ?? []).map((item) => ({
    provider: providerUuid(item.provider),
    resourceClass: resourceClass(item.resourceClass),
    amount: item.amount,
  }));
}

/**
 * The server claims a destination, and the migration holds the part of the source's allocation that the destination does not cover. On
 * another host that is the whole allocation, handed over unchanged. On the same host it is the part that shrinks, so that only the
 * difference must be free. Every change begins with a replace.
 */
export function leaveChange(parties: MoveParties, destination: readonly AllocationItem[]): AllocationChange {
  return { steps: leaveSteps(parties, destination) };
}

/** Changes from one destination to another, as if the server went back to the source in between. This cannot be observed. */
export function hopChangeOf(
  parties: MoveParties,
  from: readonly AllocationItem[],
  to: readonly AllocationItem[],
): AllocationChange {
  if (parties.source.length === 0 || (!overlaps(parties.source, from) && !overlaps(parties.source, to)))
    return { steps: [give(parties, "server", to)] };
  return { steps: [...returnSteps(parties, from), ...leaveSteps(parties, to)] };
}

/** Restores the server's allocation at its source. This always fits, since no part of it was ever released. */
export function returnChange(parties: MoveParties, destination: readonly AllocationItem[]): AllocationChange {
  return { steps: returnSteps(parties, destination) };
}

/** The migration releases its allocation. */
export function settleChange(parties: MoveParties): AllocationChange {
  return { steps: [give(parties, "migration", [])] };
}

/**
 * The consumer that holds the allocation of a guest which a task could not destroy. Each task has one. No client creates UUIDs of version
 * 14, and no task has one.
 */
export function leftoverUuid(taskId: string): string {
  return `${taskId.slice(0, 14)}e${taskId.slice(15)}`;
}

/** Keeps the server's whole allocation for the guest that the task leaves behind. */
export function keepChange(server: MoveParties["server"], taskId: string): AllocationChange {
  const keeper = consumerUuid(leftoverUuid(taskId));
  const owner = { projectId: server.projectId, userId: server.userId, type: CONSUMER_TYPE_MIGRATION };
  return {
    steps: [
      { kind: "replace", consumer: keeper, expected: "any", owner, items: [] },
      { kind: "move", from: consumerUuid(server.uuid), to: keeper, toType: CONSUMER_TYPE_MIGRATION },
    ],
  };
}

/** The server releases its allocation. */
export function offloadChange(parties: MoveParties): AllocationChange {
  return { steps: [give(parties, "server", [])] };
}

function leaveSteps(parties: MoveParties, destination: readonly AllocationItem[]): AllocationStep[] {
  const { server, migrationUuid, source } = parties;
  if (source.length === 0) return [give(parties, "server", destination)];
  if (overlaps(source, destination)) {
    return [give(parties, "server", destination), give(parties, "migration", beyond(source, destination))];
  }
  const handOver: AllocationStep = {
    kind: "move",
    from: consumerUuid(server.uuid),
    to: consumerUuid(migrationUuid),
    toType: CONSUMER_TYPE_MIGRATION,
  };
  return [give(parties, "migration", []), handOver, give(parties, "server", destination)];
}

function returnSteps(parties: MoveParties, destination: readonly AllocationItem[]): AllocationStep[] {
  const { server, migrationUuid, source } = parties;
  if (source.length === 0) return [give(parties, "server", [])];
  if (overlaps(source, destination)) return [give(parties, "server", source), give(parties, "migration", [])];
  const handBack: AllocationStep = {
    kind: "move",
    from: consumerUuid(migrationUuid),
    to: consumerUuid(server.uuid),
    toType: CONSUMER_TYPE_INSTANCE,
  };
  return [give(parties, "server", []), handBack];
}

function give(
  { server, migrationUuid }: MoveParties,
  whom: "server" | "migration",
  items: readonly AllocationItem[],
): AllocationStep {
  const isServer = whom === "server";
  const owner = {
    projectId: server.projectId,
    userId: server.userId,
    type: isServer ? CONSUMER_TYPE_INSTANCE : CONSUMER_TYPE_MIGRATION,
  };
  return {
    kind: "replace",
    consumer: consumerUuid(isServer ? server.uuid : migrationUuid),
    expected: "any",
    owner,
    items,
  };
}

const keyOf = (item: AllocationItem): string => `${item.provider} ${item.resourceClass}`;

/** Whether the two use a common inventory, which means that they are on one host. */
function overlaps(a: readonly AllocationItem[], b: readonly AllocationItem[]): boolean {
  const keys = new Set(a.map(keyOf));
  return b.some((item) => keys.has(keyOf(item)));
}

/** The amounts by which `a` exceeds `b`. */
function beyond(a: readonly AllocationItem[], b: readonly AllocationItem[]): readonly AllocationItem[] {
  const taken = new Map(b.map((item) => [keyOf(item), item.amount]));
  return a.flatMap((item) => {
    const amount = item.amount - (taken.get(keyOf(item)) ?? 0);
    return amount > 0 ? [{ ...item, amount }] : [];
  });
}
