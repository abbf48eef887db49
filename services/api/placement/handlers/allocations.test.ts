import { expect, test } from "vitest";
import type { ConsumerUuid } from "../../../../core/ledger/ids.ts";
import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import type { PlacementCall } from "../http.ts";
import { Microversion } from "../microversion.ts";
import { changeFrom } from "./allocations.ts";

const NEW = "11111111-0000-4000-8000-000000000000";
const OLD = "22222222-0000-4000-8000-000000000000";
const OWNER = { allocations: {}, project_id: "project", user_id: "user" };

/** Returns each read of consumers, and the types of the written ones. Only the old consumer exists, and it has the type MIGRATION. */
async function reading(minor: number, generations: Readonly<Record<string, number | null>>) {
  const reads: (readonly string[])[] = [];
  const consumers = async (uuids: readonly ConsumerUuid[]) => {
    reads.push(uuids);
    return uuids.filter((uuid) => uuid === OLD).map((uuid) => ({ uuid, type: "MIGRATION" }));
  };
  const bodies = Object.entries(generations).map(
    ([uuid, generation]) => [uuid, { ...OWNER, consumer_generation: generation }] as const,
  );
  const call = { version: new Microversion(minor) } as PlacementCall;
  const { steps } = await changeFrom(call, { consumers } as unknown as PlacementStore, new Map(bodies));
  return { reads, types: steps.map((step) => (step.kind === "replace" ? step.owner.type : step.toType)) };
}

test("a claim for a consumer that is expected to be new reads no consumer", async () => {
  expect(await reading(28, { [NEW]: null })).toEqual({ reads: [], types: ["unknown"] });
  expect(await reading(37, { [NEW]: null })).toEqual({ reads: [], types: ["unknown"] });
});

test("only consumers that may exist are read, and they keep their types", async () => {
  expect(await reading(36, { [OLD]: 3, [NEW]: null })).toEqual({ reads: [[OLD]], types: ["MIGRATION", "unknown"] });
  expect(await reading(27, { [OLD]: null, [NEW]: null })).toEqual({
    reads: [[OLD, NEW]],
    types: ["MIGRATION", "unknown"],
  });
});
