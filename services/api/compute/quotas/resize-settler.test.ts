import { expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryQuotaStore } from "../../../../adapters/memory/api/memory-quota-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import { serverId, serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { ApiEvents } from "../../events.ts";
import { QUOTA_DEFAULTS } from "./quota-defaults.ts";
import { ResizeSettler } from "./resize-settler.ts";

let elapsedMs = 0;
const clock = {
  now: () => 1_000_000 + elapsedMs,
  monotonic: () => elapsedMs,
  setTimer: () => ({ cancel: () => undefined }),
};
const SMALL = serverSpec(1);
const LARGE = { ...SMALL, flavor: { ...SMALL.flavor, vcpus: 4, memoryMib: 2_048 } as NonNullable<typeof SMALL.flavor> };

type CellSays = Pick<Server, "status" | "taskState" | "spec"> | "unreachable" | null;

/** A server that was charged for a resize from one core to four. */
async function charged(
  cellSays: CellSays,
  options: { readonly isWaiting?: boolean; readonly cell?: string | null } = {},
) {
  const quotas = new MemoryQuotaStore({ clock });
  const store = new MemoryApiStore({ clock, quotas });
  await store.accept([SMALL]);
  if (options.cell !== null) await store.assignCells([{ serverUuid: SMALL.uuid, from: null, to: "north" }]);
  const amounts = { instances: 1, cores: 4, ram: 2_048 };
  await quotas.chargeResize({ serverUuid: SMALL.uuid, amounts }, QUOTA_DEFAULTS.unlimited);
  let says = cellSays;
  const server = async () => (says === "unreachable" ? { kind: "unreachable" } : { kind: "answer", value: says });
  const settler = new ResizeSettler(
    {
      quotas,
      store,
      moves: { waiting: async () => (options.isWaiting ? [{} as never] : []) },
      cells: new Map([["north", { server } as unknown as CellClient]]),
      events: {} as ApiEvents,
      clock,
    },
    { pollMs: 1_000, settleMs: 0 },
  );
  return {
    ...{ store, quotas, settler, cores: async () => (await quotas.usage(SMALL.projectId)).ofProject.cores },
    becomes: (next: CellSays) => {
      says = next;
    },
  };
}

const idle = (spec: Server["spec"]) => ({ status: "ACTIVE", taskState: null, spec }) as const;

test.each<[string, CellSays, number]>([
  ["is confirmed: counts as its new size", idle(LARGE), 4],
  ["is reverted, or was never begun: counts as its old size", idle(SMALL), 1],
  ["runs: counts as the larger size", { ...idle(SMALL), taskState: "resize_prep" }, 4],
  ["waits to be confirmed: counts as the larger size", { ...idle(SMALL), status: "VERIFY_RESIZE" }, 4],
  ["is in a cell that does not answer: nothing changes", "unreachable", 4],
  ["is of a server that its cell does not know yet: nothing changes", null, 4],
])("a resize that %s", async (_what, cellSays, expected) => {
  const { settler, cores } = await charged(cellSays);
  await settler.settle();
  await settler.settle();
  expect(await cores()).toBe(expected);
});

test("a resize that waits for a scheduler counts as the larger size", async () => {
  const { settler, cores } = await charged(idle(SMALL), { isWaiting: true });
  await settler.settle();
  expect(await cores()).toBe(4);
});

test("a server that has no cell counts as it was asked for, and a deleted one as nothing", async () => {
  const { settler, cores } = await charged(null, { cell: null });
  await settler.settle();
  expect(await cores()).toBe(1);
  const other = await charged(idle(SMALL));
  await other.store.cancel(serverId(1), "req");
  await other.settler.settle();
  expect(await other.cores()).toBe(0);
});

const WAITING = { ...idle(SMALL), status: "VERIFY_RESIZE" } as const;
const later = async (settler: ResizeSettler, ms: number) => {
  elapsedMs += ms;
  await settler.settleHastened();
};

test("a resize that is reverted is given back as soon as the server has its old size, however young its charge is", async () => {
  const { settler, cores, becomes } = await charged(WAITING);
  const charge = await settler.chargeOf(SMALL.uuid);
  becomes({ ...WAITING, taskState: "resize_reverting" });
  if (charge !== null) settler.hasten(charge);
  await settler.settleHastened();
  await later(settler, 250);
  expect(await cores()).toBe(4);
  becomes(idle(SMALL));
  await later(settler, 500);
  expect(await cores()).toBe(1);
});

test("a charge is left to the later look if another call has charged the server, if it was charged again, and if the revert takes long", async () => {
  const first = await charged(WAITING);
  const charge = await first.settler.chargeOf(SMALL.uuid);
  const larger = { serverUuid: SMALL.uuid, amounts: { instances: 1, cores: 5, ram: 2_048 } };
  await first.quotas.chargeResize(larger, QUOTA_DEFAULTS.unlimited);
  expect(await first.settler.chargeOf(SMALL.uuid)).toBeNull();
  if (charge !== null) first.settler.hasten(charge);
  first.becomes(idle(SMALL));
  await later(first.settler, 250);
  expect(await first.cores()).toBe(5);

  const slow = await charged({ ...WAITING, taskState: "resize_reverting" });
  const own = await slow.settler.chargeOf(SMALL.uuid);
  if (own !== null) slow.settler.hasten(own);
  for (let looks = 0; looks < 10; looks += 1) await later(slow.settler, 60_000);
  slow.becomes(idle(SMALL));
  await later(slow.settler, 60_000);
  expect(await slow.cores()).toBe(4);
  await slow.settler.settle();
  expect(await slow.cores()).toBe(1);
});
