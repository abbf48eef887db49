import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { allocationsBody } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";

let rig: PlacementRig;
let host: string;
beforeEach(async () => {
  rig = await PlacementRig.start();
  host = randomUUID();
  await rig.client.makeProvider(host, { inventories: { VCPU: 100 } });
});
afterEach(() => rig.close());

/** Writes as a client does that knows no types of consumers. */
const putUntyped = (consumer: string, vcpus: number, generation: number | null) => {
  const { consumer_type: _, ...body } = allocationsBody({ [host]: { VCPU: vcpus } }, generation);
  return rig.client.call("PUT", `/allocations/${consumer}`, { body, version: "1.36" });
};
const show = (consumer: string) => rig.client.must("GET", `/allocations/${consumer}`);

test("a consumer keeps its type when a client that knows no types writes it, and when it expects the consumer to be new", async () => {
  const consumer = randomUUID();
  const made = await rig.client.call("PUT", `/allocations/${consumer}`, {
    body: allocationsBody({ [host]: { VCPU: 1 } }, null),
  });
  expect(made.status).toBe(204);
  expect((await putUntyped(consumer, 7, null)).status).toBe(409);
  expect(await show(consumer)).toMatchObject({ consumer_type: "INSTANCE", consumer_generation: 1 });
  expect((await putUntyped(consumer, 2, 1)).status).toBe(204);
  expect(await show(consumer)).toMatchObject({
    allocations: { [host]: { resources: { VCPU: 2 } } },
    consumer_type: "INSTANCE",
    consumer_generation: 2,
  });
});

test("a new consumer of a client that knows no types has the type unknown", async () => {
  const consumer = randomUUID();
  expect((await putUntyped(consumer, 1, null)).status).toBe(204);
  expect(await show(consumer)).toMatchObject({ consumer_type: "unknown", consumer_generation: 1 });
});
