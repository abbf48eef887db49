import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { allAtOnce, allocationsBody, codeOf, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { brokenSums, overCapacity } from "../../rigs/ledger-laws.ts";

const CLIENTS = 64;

interface Allocations {
  readonly allocations: Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>;
  readonly consumer_generation?: number;
}

describe("64 clients at one consumer", () => {
  let rig: PlacementRig;
  let host: string;
  beforeEach(async () => {
    rig = await PlacementRig.start();
    host = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 1_000, MEMORY_MB: 1_000 } });
  });
  afterEach(() => rig.close());

  const put = (consumer: string, vcpus: number, generation: number | null) =>
    rig.client.call("PUT", `/allocations/${consumer}`, {
      body: allocationsBody({ [host]: { VCPU: vcpus } }, generation),
    });
  const show = (consumer: string) => rig.client.must<Allocations>("GET", `/allocations/${consumer}`);

  test("that does not exist yet: one creates it, and the others get a conflict", async () => {
    const consumer = randomUUID();
    const answers = await allAtOnce(CLIENTS, (at) => put(consumer, at + 1, null));
    expect(countStatuses(answers)).toEqual({ 204: 1, 409: CLIENTS - 1 });
    const refused = answers.filter(({ status }) => status === 409);
    expect(new Set(refused.map(codeOf))).toEqual(new Set(["placement.concurrent_update"]));
    const winner = answers.findIndex(({ status }) => status === 204);
    expect(await show(consumer)).toMatchObject({
      allocations: { [host]: { resources: { VCPU: winner + 1 }, generation: 2 } },
      consumer_generation: 1,
    });
  });

  test("at one generation: one write wins each round, and its allocation is stored", async () => {
    const consumer = randomUUID();
    await put(consumer, 1, null);
    for (let generation = 1; generation <= 10; generation += 1) {
      const answers = await allAtOnce(CLIENTS, (at) => put(consumer, at + 1, generation));
      expect(countStatuses(answers)).toEqual({ 204: 1, 409: CLIENTS - 1 });
      const winner = answers.findIndex(({ status }) => status === 204);
      expect(await show(consumer)).toMatchObject({
        allocations: { [host]: { resources: { VCPU: winner + 1 } } },
        consumer_generation: generation + 1,
      });
    }
    expect(brokenSums(await rig.dump())).toEqual([]);
  });

  test("each adding one to the amount that it read: no addition is lost", async () => {
    const consumer = randomUUID();
    await put(consumer, 1, null);
    const addOne = async (): Promise<number> => {
      for (let tries = 1; ; tries += 1) {
        const before = await show(consumer);
        const held = before.allocations[host]!.resources["VCPU"]!;
        const { status } = await put(consumer, held + 1, before.consumer_generation!);
        if (status === 204) return tries;
        expect(status).toBe(409);
      }
    };
    await allAtOnce(CLIENTS, addOne);
    expect(await show(consumer)).toMatchObject({
      allocations: { [host]: { resources: { VCPU: CLIENTS + 1 } } },
      consumer_generation: CLIENTS + 1,
    });
  });

  test("some writing, some deleting without a generation: it ends complete or gone", async () => {
    const consumer = randomUUID();
    const answers = await allAtOnce(CLIENTS, (at) =>
      at % 4 === 0
        ? rig.client.call("DELETE", `/allocations/${consumer}`)
        : rig.client.call("PUT", `/allocations/${consumer}`, {
            version: "1.12",
            body: {
              allocations: { [host]: { resources: { VCPU: at, MEMORY_MB: at } } },
              project_id: "project",
              user_id: "user",
            },
          }),
    );
    for (const { status, text } of answers) expect([204, 404, 409], text).toContain(status);
    const held = Object.values((await show(consumer)).allocations).map(({ resources }) => resources);
    for (const resources of held) expect(resources["VCPU"]).toBe(resources["MEMORY_MB"]);
    const dump = await rig.dump();
    expect([...brokenSums(dump), ...overCapacity(dump)]).toEqual([]);
  });
});
