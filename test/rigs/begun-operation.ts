import { expect } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { numbered, serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "./begin-operation.ts";
import { inOrder } from "./delivery-orders.ts";
import type { VolumeInUse } from "./model-host.ts";
import { OperationWorldModel } from "./operation-world.ts";

export async function openOperationWorld(random = inOrder): Promise<OperationWorldModel> {
  const clock = new ManualClock(1_000_000);
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const world = new OperationWorldModel(
    {
      store,
      ledger,
      admin: store.hostAdmin(),
      pass: async () => clock.advance(10_000),
      facts: async () => ({ ledger: await ledger.dump(), ...store.facts() }),
    },
    random,
  );
  await world.open(1);
  return world;
}

/** Operations that must precede this one. */
export const OPERATIONS_BEFORE: Partial<Record<OperationKind, readonly OperationKind[]>> = {
  confirm: ["resize"],
  revert: ["resize"],
  unshelve: ["shelve-offload"],
  start: ["stop"],
  unpause: ["pause"],
  "live-migrate-paused": ["pause"],
  resume: ["suspend"],
  unrescue: ["rescue"],
  restore: ["soft-delete"],
  "attach-volume-unconfirmed": ["resize"],
  "detach-volume-unconfirmed": ["resize"],
  "swap-volume-unconfirmed": ["attach-volume", "resize"],
  "reconnect-volume-unconfirmed": ["attach-volume", "resize"],
  "attach-volume-offloaded": ["shelve-offload"],
  "detach-volume-offloaded": ["shelve-offload", "attach-volume-offloaded"],
};
/** The hosts to which moves of server 0 may go. */
export const DESTINATIONS = [1, 2];
/** Operations on a server of which nobody but its host knows which of two volumes it uses, and which one that is. */
const USED_IN_DOUBT: Partial<Record<OperationKind, VolumeInUse>> = {
  "settle-volume": "other",
  "settle-volume-own": "own",
  "settle-volume-other": "other",
};
const SWAPPED = { ...volumeOf(0), replacedBy: volumeOf(9).volumeId };

/** The host of server 0 dies while a volume of the server is replaced, when the guest uses this one, and is forced down. */
async function bringInDoubt(world: OperationWorldModel, uses: VolumeInUse): Promise<void> {
  const guest = (await world.store.servers([serverId(0)]))[0]?.attemptId ?? "";
  expect(await world.request({ server: 0, kind: "swap-volume", volume: SWAPPED })).toBe("begun");
  const isThere = async () =>
    (await world.store.positions([numbered(0xe, 1)]))[0]?.stage === "pivoting" &&
    world.hosts[0]?.uses(guest) === (uses === "own" ? "same" : "other");
  for (let limit = 0; limit < 100 && !(await isThere()); limit += 1) await world.step();
  await world.crash();
  await world.hostDies(0);
  await world.fence(0);
  await world.sweep();
  for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  expect([await statusOfFirst(world), world.hosts[0]?.uses(guest)]).toEqual(["ERROR", uses]);
}

/** Server 0 on host 0, with the operation begunOperation and none of its effects carried out. */
export async function begunOperation(
  kind: OperationKind,
  random = inOrder,
  hosts = DESTINATIONS,
): Promise<OperationWorldModel> {
  const uses = USED_IN_DOUBT[kind];
  // A volume is brought into doubt in one order.
  let order = uses === undefined ? random : inOrder;
  const world = await openOperationWorld((limit) => order(limit));
  if (uses !== undefined) await bringInDoubt(world, uses);
  if (kind === "settle-volume") {
    await world.hostReturns(0);
    for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  }
  // Messages that are delivered twice all the time might never let two operations end.
  order = ["swap-volume-unconfirmed", "reconnect-volume-unconfirmed"].includes(kind) ? inOrder : random;
  for (const earlier of OPERATIONS_BEFORE[kind] ?? []) {
    await world.request({ server: 0, kind: earlier, hosts: DESTINATIONS });
    for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  }
  order = random;
  if (kind === "evacuate") await world.hostDies(0);
  const volume = uses === undefined ? undefined : SWAPPED;
  expect(await world.request({ server: 0, kind, hosts, ...(volume && { volume }) })).toBe("begun");
  return world;
}

export async function statusOfFirst(
  world: OperationWorldModel,
  what: "status" | "taskState" | "host" = "status",
): Promise<string | null | undefined> {
  return (await world.store.servers([serverId(0)]))[0]?.[what];
}

/** The number of events from the beginning of the operation to its end. */
export async function lengthOfOperation(kind: OperationKind): Promise<number> {
  const world = await begunOperation(kind);
  let length = 0;
  while (await world.step()) length += 1;
  return length;
}
