import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CutOff } from "../../placement/cut-off.ts";
import { allAtOnce, allocationsBody, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { eventually } from "../../rigs/eventually.ts";

const SEARCH = "/allocation_candidates?resources=VCPU:1";

describe("while the database is away", () => {
  let rig: PlacementRig;
  let relay: CutOff;
  const host = randomUUID();
  beforeAll(async () => {
    rig = await PlacementRig.start({
      settings: { freshnessDeadlineMs: 300 },
      via: async (databaseUrl) => {
        const through = await CutOff.before(databaseUrl);
        relay = through.relay;
        return through.url;
      },
    });
    await rig.client.makeProvider(host, { inventories: { VCPU: 8 } });
    await rig.client.must("GET", SEARCH);
  });
  afterAll(async () => {
    relay.mend();
    await rig.close();
    await relay.close();
  });
  const logged = (message: string) => rig.log.filter((line) => line["msg"] === message);

  test("every request is answered so, the log says it once, and afterwards everything is as before", async () => {
    const consumer = randomUUID();
    const body = allocationsBody({ [host]: { VCPU: 1 } }, null);
    relay.cut();
    const refused = await Promise.all([
      ...(await allAtOnce(20, () => rig.client.call("GET", `/resource_providers/${host}`))),
      rig.client.call("GET", SEARCH),
      rig.client.call("GET", "/traits"),
      rig.client.call("PUT", `/allocations/${consumer}`, { body }),
      rig.client.call("POST", "/resource_providers", { body: { name: "new" } }),
      rig.client.call("PUT", `/resource_providers/${host}/aggregates`, {
        body: { aggregates: [], resource_provider_generation: 1 },
      }),
    ]);
    expect(countStatuses(refused)).toEqual({ 503: 25 });
    for (const { text, headers } of refused) {
      expect(text).toMatch(/database does not answer now|does not show its latest writes/);
      expect(headers["retry-after"]).toBe("1");
    }
    expect(logged("the cell's database does not answer")).toHaveLength(1);
    expect(logged("a request failed with an unexpected error, and its client got a 500")).toEqual([]);

    relay.mend();
    await eventually("the view follows again", async () => (await rig.client.call("GET", SEARCH)).status === 200);
    expect((await rig.client.call("PUT", `/allocations/${consumer}`, { body })).status).toBe(204);
    expect(logged("the cell's database answers again")).toHaveLength(1);
  });

  test("a client that accepts an older view is still answered, the others are not", async () => {
    await rig.client.must("GET", SEARCH);
    relay.cut();
    const accepting = (ms: string) => rig.client.call("GET", SEARCH, { headers: { "x-berth-staleness-ms": ms } });
    expect((await accepting("600000")).status).toBe(200);
    expect((await accepting("0")).status).toBe(503);
    relay.mend();
    await eventually("the view follows again", async () => (await rig.client.call("GET", SEARCH)).status === 200);
  });
});

describe("x-berth-staleness-ms", () => {
  let rig: PlacementRig;
  const host = randomUUID();
  beforeAll(async () => {
    rig = await PlacementRig.start();
    await rig.client.makeProvider(host, { inventories: { VCPU: 100 } });
  });
  afterAll(() => rig.close());

  test.each(["", "-1", "soon", "1.5", "1e3", "9999999999"])("%j is refused", async (ms) => {
    const answer = await rig.client.call("GET", SEARCH, { headers: { "x-berth-staleness-ms": ms } });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("x-berth-staleness-ms takes")]);
  });

  test("shows at least everything that was acknowledged before that period", async () => {
    const used = async (headers: Record<string, string>) => {
      const { provider_summaries: summaries } = await rig.client.must<{
        provider_summaries: Record<string, { resources: { VCPU: { used: number } } }>;
      }>("GET", SEARCH, { headers });
      return summaries[host]!.resources.VCPU.used;
    };
    for (let claimed = 1; claimed <= 8; claimed += 1) {
      const body = allocationsBody({ [host]: { VCPU: 1 } }, null);
      await rig.client.must("PUT", `/allocations/${randomUUID()}`, { body });
      const acknowledgedAt = performance.now();
      await eventually("a view that is no older than 20 ms shows it", async () => {
        const askedAt = performance.now();
        const shown = await used({ "x-berth-staleness-ms": "20" });
        expect([claimed - 1, claimed]).toContain(shown);
        if (askedAt - acknowledgedAt > 20) expect(shown).toBe(claimed);
        return shown === claimed;
      });
      expect(await used({})).toBe(claimed);
    }
  });
});

describe("a search that reaches its limit", () => {
  let rig: PlacementRig;
  beforeAll(async () => {
    rig = await PlacementRig.start({ settings: { searchStepsMax: 10 } });
    for (let at = 0; at < 12; at += 1) await rig.client.makeProvider(randomUUID(), { inventories: { VCPU: 8 } });
  });
  afterAll(() => rig.close());

  test("says so to the client and in the log, with the request's id", async () => {
    const cut = await rig.client.call("GET", SEARCH);
    expect([cut.status, cut.headers["x-berth-search"]]).toEqual([200, "bound-reached"]);
    expect((cut.json as { allocation_requests: unknown[] }).allocation_requests).toHaveLength(10);
    const warned = rig.log.filter((line) => line["level"] === "warn");
    expect(warned).toMatchObject([{ requestId: cut.headers["x-openstack-request-id"] }]);

    const whole = await rig.client.call("GET", `${SEARCH}&limit=5`);
    expect(whole.headers["x-berth-search"]).toBeUndefined();
  });
});
