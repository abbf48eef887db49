import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answered, allAtOnce, allocationsBody, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { brokenSums, overCapacity } from "../../rigs/ledger-laws.ts";

const ROUNDS = 30;
const CLAIMS = 12;

interface Inventories {
  readonly resource_provider_generation: number;
}
interface ProviderAllocations {
  readonly allocations: Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>;
}

describe("a reshape against claims", () => {
  let rig: PlacementRig;
  const [root, child] = [randomUUID(), randomUUID()];
  beforeAll(async () => {
    rig = await PlacementRig.start();
    await rig.client.makeProvider(root, { inventories: { VCPU: 10_000, DISK_GB: 10_000 } });
    await rig.client.makeProvider(child, { parent: root, inventories: { MEMORY_MB: 10_000 } });
  });
  afterAll(() => rig.close());

  /** Moves VCPU with all its allocations to the other provider, like an agent that has learnt of NUMA nodes. */
  async function planMove(from: string, to: string): Promise<unknown> {
    const [generations, consumers] = await Promise.all([
      Promise.all(
        [root, child].map((uuid) => rig.client.must<Inventories>("GET", `/resource_providers/${uuid}/inventories`)),
      ),
      rig.client.must<ProviderAllocations>("GET", `/resource_providers/${from}/allocations`),
    ]);
    const classes = { [root]: ["DISK_GB"], [child]: ["MEMORY_MB"] } as const;
    const inventories = [root, child].map((uuid, at) => {
      const names = [...classes[uuid]!, ...(uuid === to ? ["VCPU"] : [])];
      return [
        uuid,
        {
          resource_provider_generation: generations[at]!.resource_provider_generation,
          inventories: Object.fromEntries(names.map((name) => [name, { total: 10_000 }])),
        },
      ];
    });
    const holders = Object.keys(consumers.allocations).filter((uuid) => consumers.allocations[uuid]!.resources["VCPU"]);
    const read = await Promise.all(
      holders.map((uuid) => rig.client.must<{ consumer_generation?: number }>("GET", `/allocations/${uuid}`)),
    );
    // A consumer without a generation was deleted in the meantime.
    const allocations = holders.flatMap((uuid, at) => {
      const generation = read[at]!.consumer_generation;
      return generation === undefined ? [] : [[uuid, allocationsBody(held(to), generation)] as const];
    });
    return { inventories: Object.fromEntries(inventories), allocations: Object.fromEntries(allocations) };
  }
  const reshape = (body: unknown): Promise<Answered> => rig.client.call("POST", "/reshaper", { body });

  /** Each consumer's allocation: the VCPUs on this provider, the rest where it always is. */
  const held = (vcpusAt: string): Record<string, Record<string, number>> => ({
    [root]: { DISK_GB: 1, ...(vcpusAt === root ? { VCPU: 2 } : {}) },
    [child]: { MEMORY_MB: 3, ...(vcpusAt === child ? { VCPU: 2 } : {}) },
  });

  test("loses nothing, keeps every consumer complete, and shows no client a deadlock", async () => {
    let vcpusAt = root;
    let reshaped = 0;
    const claimed = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const [from, to] = vcpusAt === root ? [root, child] : [child, root];
      const claim = async () => {
        const consumer = randomUUID();
        const answer = await rig.client.call("PUT", `/allocations/${consumer}`, {
          body: allocationsBody(held(vcpusAt), null),
        });
        if (answer.status === 204) claimed.add(consumer);
        return answer;
      };
      const giveBack = async (consumer: string | undefined) => {
        if (consumer !== undefined && (await rig.client.call("DELETE", `/allocations/${consumer}`)).status === 204)
          claimed.delete(consumer);
      };
      const plan = await planMove(from, to);
      const reshaping = reshape(plan);
      // Every other reshape gets a head start, because otherwise the claims might always win.
      if (round % 2 === 1) await rig.client.call("GET", `/resource_providers/${root}`);
      const [answer, claims] = await Promise.all([
        reshaping,
        allAtOnce(round % 3 === 0 ? 1 : CLAIMS, claim),
        giveBack(claimed.values().next().value),
      ]);
      expect([204, 409], answer.text).toContain(answer.status);
      for (const { status, text } of claims) expect([204, 409], text).toContain(status);
      if (answer.status !== 204) continue;
      reshaped += 1;
      vcpusAt = to;
    }
    // Without other clients it always succeeds.
    const last = await reshape(await planMove(vcpusAt, vcpusAt === root ? child : root));
    expect(countStatuses([last])).toEqual({ 204: 1 });
    vcpusAt = vcpusAt === root ? child : root;

    const dump = await rig.dump();
    expect([...brokenSums(dump), ...overCapacity(dump)]).toEqual([]);
    expect(new Set(dump.consumers.map(({ uuid }) => uuid as string))).toEqual(claimed);
    for (const { items } of dump.consumers) {
      const resources: Record<string, Record<string, number>> = {};
      for (const { provider, resourceClass, amount } of items)
        resources[provider] = { ...resources[provider], [resourceClass]: amount };
      expect(resources).toEqual(held(vcpusAt));
    }
    expect(reshaped).toBeGreaterThan(0);
    expect(rig.log.filter((line) => line["level"] === "error")).toEqual([]);
  });

  test("of 64 at one generation, one succeeds", async () => {
    const generations = await Promise.all(
      [root, child].map((uuid) => rig.client.must<Inventories>("GET", `/resource_providers/${uuid}/inventories`)),
    );
    const body = (total: number) => ({
      inventories: Object.fromEntries(
        [root, child].map((uuid, at) => [
          uuid,
          {
            resource_provider_generation: generations[at]!.resource_provider_generation,
            inventories: Object.fromEntries(
              ["VCPU", "DISK_GB", "MEMORY_MB"].map((name) => [name, { total: 20_000 + total }]),
            ),
          },
        ]),
      ),
      allocations: {},
    });
    const answers = await allAtOnce(64, (at) => rig.client.call("POST", "/reshaper", { body: body(at) }));
    expect(countStatuses(answers)).toEqual({ 204: 1, 409: 63 });
  });
});
