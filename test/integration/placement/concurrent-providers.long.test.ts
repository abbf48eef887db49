import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { resourceClass } from "../../../core/ledger/ids.ts";
import { allAtOnce, allocationsBody, codeOf, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { brokenSums, overCapacity } from "../../rigs/ledger-laws.ts";

const CLIENTS = 64;
const VCPU = resourceClass("VCPU");

describe("64 clients at one provider", () => {
  let rig: PlacementRig;
  let host: string;
  beforeEach(async () => {
    rig = await PlacementRig.start();
    host = randomUUID();
  });
  afterEach(() => rig.close());

  const claim = (consumer: string, vcpus: number) =>
    rig.client.call("PUT", `/allocations/${consumer}`, { body: allocationsBody({ [host]: { VCPU: vcpus } }, null) });
  const hostOf = async () => (await rig.dump()).providers.find(({ uuid }) => uuid === host)!;

  test("claim one unit each, five times: as many succeed as there are units, each raising the generation", async () => {
    await rig.client.makeProvider(host, { inventories: { VCPU: 100 } });
    const answers = (
      await allAtOnce(CLIENTS, async () => {
        const own = [];
        for (let round = 0; round < 5; round += 1) own.push(await claim(randomUUID(), 1));
        return own;
      })
    ).flat();
    expect(countStatuses(answers)).toEqual({ 204: 100, 409: 220 });
    const { generation, inventories } = await hostOf();
    expect([generation, inventories.get(VCPU)?.used]).toEqual([101, 100]);
    expect(brokenSums(await rig.dump())).toEqual([]);
  });

  test("claim and release in turns: never over capacity, and the sums are exact", async () => {
    await rig.client.makeProvider(host, { inventories: { VCPU: 40 } });
    let held = 0;
    const turns = async (at: number) => {
      for (let turn = 0; turn < 8; turn += 1) {
        const consumer = randomUUID();
        const answer = await claim(consumer, 1 + (at % 3));
        expect([204, 409], answer.text).toContain(answer.status);
        if (answer.status !== 204) continue;
        if (turn === 7) held += 1 + (at % 3);
        else await rig.client.must("DELETE", `/allocations/${consumer}`);
      }
    };
    const watch = async () => {
      for (let look = 0; look < 10; look += 1) {
        const dump = await rig.dump();
        expect([...brokenSums(dump), ...overCapacity(dump)]).toEqual([]);
      }
    };
    await Promise.all([allAtOnce(CLIENTS, turns), watch()]);
    expect((await hostOf()).inventories.get(VCPU)?.used).toBe(held);
  });

  test("claim from several providers in opposite orders: no client sees a deadlock", async () => {
    const other = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 60 } });
    await rig.client.makeProvider(other, { inventories: { VCPU: 60 } });
    const answers = (
      await allAtOnce(CLIENTS, async (at) => {
        const [one, two] = at % 2 === 0 ? [host, other] : [other, host];
        const body = allocationsBody({ [one]: { VCPU: 1 }, [two]: { VCPU: 1 } }, null);
        const own = [];
        for (let round = 0; round < 4; round += 1)
          own.push(await rig.client.call("PUT", `/allocations/${randomUUID()}`, { body }));
        return own;
      })
    ).flat();
    expect(countStatuses(answers)).toEqual({ 204: 60, 409: 196 });
    expect(brokenSums(await rig.dump())).toEqual([]);
  });

  test.each([
    {
      part: "aggregates",
      body: () => ({ aggregates: [randomUUID()] }),
      read: (at: Record<string, unknown>) => at["aggregates"],
    },
    {
      part: "traits",
      body: (at: number) => ({ traits: [`CUSTOM_T${at}`] }),
      read: (at: Record<string, unknown>) => at["traits"],
    },
    {
      part: "inventories",
      body: (at: number) => ({ inventories: { VCPU: { total: at + 1 } } }),
      read: (at: Record<string, unknown>) => (at["inventories"] as { VCPU: { total: number } }).VCPU.total,
    },
  ])(
    "write its $part at the same generation: one wins each round, and its value is stored",
    async ({ part, body, read }) => {
      await rig.client.makeProvider(host, {});
      await allAtOnce(2 * CLIENTS, (at) => rig.client.must("PUT", `/traits/CUSTOM_T${at}`));
      const path = `/resource_providers/${host}/${part}`;
      for (let generation = 0; generation < 8; generation += 1) {
        // Writing the present traits again changes nothing and also succeeds, so no round has those of the round before.
        const bodies = Array.from({ length: CLIENTS }, (_, at) => body(at + (generation % 2) * CLIENTS));
        const answers = await allAtOnce(CLIENTS, (at) =>
          rig.client.call("PUT", path, { body: { ...bodies[at], resource_provider_generation: generation } }),
        );
        expect(countStatuses(answers)).toEqual({ 200: 1, 409: CLIENTS - 1 });
        const refused = answers.filter(({ status }) => status === 409);
        expect(new Set(refused.map(codeOf))).toEqual(new Set(["placement.concurrent_update"]));
        const winner = answers.find(({ status }) => status === 200)!.json as Record<string, unknown>;
        const now = await rig.client.must<Record<string, unknown>>("GET", path);
        expect(read(now)).toEqual(read(winner));
        expect(now["resource_provider_generation"]).toBe(generation + 1);
      }
    },
  );

  test("create it: one succeeds for its name and its UUID", async () => {
    const make = (name: string, uuid: string) =>
      rig.client.call("POST", "/resource_providers", { body: { name, uuid } });
    const byUuid = await allAtOnce(CLIENTS, (at) => make(`host-${at}`, host));
    expect(countStatuses(byUuid)).toEqual({ 200: 1, 409: CLIENTS - 1 });
    const byName = await allAtOnce(CLIENTS, () => make("same", randomUUID()));
    expect(countStatuses(byName)).toEqual({ 200: 1, 409: CLIENTS - 1 });
    expect((await rig.dump()).providers).toHaveLength(2);
  });

  test("create and fill providers of their own, some of them wrongly: each answer is the same as without the others", async () => {
    await rig.client.makeProvider(host, {});
    await rig.client.must("PUT", "/traits/CUSTOM_KNOWN");
    const kindOf = (at: number) => ["right", "child", "orphan", "namesake", "wrong"][at % 5]!;
    const outcomes = await allAtOnce(CLIENTS, async (at) => {
      const uuid = randomUUID();
      const kind = kindOf(at);
      const parents: Record<string, string> = { child: host, orphan: randomUUID() };
      const made = await rig.client.call("POST", "/resource_providers", {
        body: { uuid, name: kind === "namesake" ? host : uuid, parent_provider_uuid: parents[kind] ?? null },
      });
      const isWrong = kind === "wrong";
      const put = async (part: string, body: object, generation: number) =>
        (
          await rig.client.call("PUT", `/resource_providers/${uuid}/${part}`, {
            body: { ...body, resource_provider_generation: generation },
          })
        ).status;
      return [
        made.status,
        await put("inventories", { inventories: { [isWrong ? "CUSTOM_UNKNOWN" : "VCPU"]: { total: at + 1 } } }, 0),
        await put("traits", { traits: [isWrong ? "CUSTOM_UNKNOWN" : "CUSTOM_KNOWN"] }, isWrong ? 0 : 1),
        await put("aggregates", { aggregates: [randomUUID()] }, isWrong ? 7 : 2),
      ].join(" ");
    });
    const expected: Record<string, string> = {
      right: "200 200 200 200",
      child: "200 200 200 200",
      orphan: "400 404 404 404",
      namesake: "409 404 404 404",
      wrong: "200 400 400 409",
    };
    expect(outcomes).toEqual(outcomes.map((_, at) => expected[kindOf(at)]));
    const { providers } = await rig.dump();
    expect(providers).toHaveLength(1 + outcomes.filter((outcome) => outcome.startsWith("200")).length);
    expect(providers.filter(({ parent }) => parent === host)).toHaveLength(13);
  });

  test("claim from the provider while others delete it: the provider is deleted without allocations, or stays", async () => {
    for (let round = 0; round < 10; round += 1) {
      const uuid = randomUUID();
      await rig.client.makeProvider(uuid, { inventories: { VCPU: 10 } });
      const [claimed, deleted] = await Promise.all([
        rig.client.call("PUT", `/allocations/${randomUUID()}`, {
          body: allocationsBody({ [uuid]: { VCPU: 1 } }, null),
        }),
        rig.client.call("DELETE", `/resource_providers/${uuid}`),
      ]);
      expect([`204 409`, `400 204`, `409 204`]).toContain(`${claimed.status} ${deleted.status}`);
    }
    expect(brokenSums(await rig.dump())).toEqual([]);
  });
});
