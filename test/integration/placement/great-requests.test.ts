import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { allAtOnce, allocationsBody, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { brokenSums } from "../../rigs/ledger-laws.ts";

describe("a request of the largest permitted size", () => {
  let rig: PlacementRig;
  let host: string;
  beforeAll(async () => {
    rig = await PlacementRig.start();
  });
  afterAll(() => rig.close());
  beforeEach(async () => {
    host = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 2_000 } });
  });

  const consumers = (count: number, vcpus: number) =>
    Object.fromEntries(
      Array.from({ length: count }, () => [randomUUID(), allocationsBody({ [host]: { VCPU: vcpus } }, null)]),
    );
  const put = (consumer: string, vcpus: number, generation: number | null) =>
    rig.client.call("PUT", `/allocations/${consumer}`, {
      body: allocationsBody({ [host]: { VCPU: vcpus } }, generation),
    });

  test("is refused for amounts whose sum exceeds any number, and does no harm to requests in the same batch", async () => {
    const known = await allAtOnce(40, async () => {
      const consumer = randomUUID();
      expect((await put(consumer, 1, null)).status).toBe(204);
      return consumer;
    });
    const body = consumers(1_100, Number.MAX_SAFE_INTEGER);
    for (let generation = 1; generation <= 3; generation += 1) {
      const [great, ...others] = await Promise.all([
        rig.client.call("POST", "/allocations", { body }),
        ...known.map((consumer) => put(consumer, 1 + generation, generation)),
      ]);
      expect([great!.status, great!.text]).toEqual([409, expect.stringContaining("violate inventory constraints")]);
      expect(countStatuses(others)).toEqual({ 204: 40 });
    }
    expect(brokenSums(await rig.dump())).toEqual([]);
  });

  test("of thousands of consumers is refused without comparing each with each, and names each shortfall once for an inventory", async () => {
    const one = randomUUID();
    expect((await put(one, 1, null)).status).toBe(204);
    const body = { ...consumers(4_000, 1), [one]: allocationsBody({ [host]: { VCPU: 1 } }, 1) };
    const refused = await rig.client.call("POST", "/allocations", { body });
    const why = "(VCPU: requested 4001, used 0, capacity 2000)";
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining(why)]);
    expect(brokenSums(await rig.dump())).toEqual([]);
  });
});
