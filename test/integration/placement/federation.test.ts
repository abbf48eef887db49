import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { providerUuid } from "../../../core/ledger/ids.ts";
import { allAtOnce, allocationsBody, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";

interface Providers {
  readonly resource_providers: readonly { readonly uuid: string; readonly root_provider_uuid: string }[];
}

describe("three cells as one", () => {
  let rig: PlacementRig;
  /** One host in each cell, with a child. */
  let hosts: readonly { readonly cell: string; readonly root: string; readonly child: string }[];
  beforeAll(async () => {
    rig = await PlacementRig.start({ cells: 3, settings: { defaultCell: "cell2" } });
    await rig.client.must("PUT", "/traits/CUSTOM_FAST");
  });
  afterAll(() => rig.close());
  beforeEach(async () => {
    hosts = ["cell1", "cell2", "cell3"].map((cell) => ({ cell, root: randomUUID(), child: randomUUID() }));
    for (const { cell, root, child } of hosts) {
      await rig.client.makeProvider(root, { cell, inventories: { VCPU: 8 }, traits: ["CUSTOM_FAST"] });
      await rig.client.makeProvider(child, { parent: root, inventories: { MEMORY_MB: 64 } });
    }
  });

  const holds = async (cell: number, uuid: string): Promise<boolean> =>
    (await rig.dump(cell)).providers.some((provider) => provider.uuid === providerUuid(uuid));
  const put = (consumer: string, amounts: Record<string, Record<string, number>>, generation: number | null = null) =>
    rig.client.call("PUT", `/allocations/${consumer}`, { body: allocationsBody(amounts, generation) });

  test("a root goes to the cell in the header, or else to that of the setting, and children follow", async () => {
    for (const [at, { root, child }] of hosts.entries()) {
      expect(await Promise.all([0, 1, 2].map((cell) => holds(cell, root)))).toEqual(
        [0, 1, 2].map((cell) => cell === at),
      );
      expect(await holds(at, child)).toBe(true);
    }
    const plain = randomUUID();
    await rig.client.makeProvider(plain, {});
    expect(await holds(1, plain)).toBe(true);
  });

  test("refuses an unknown cell, and names the existing ones", async () => {
    const answer = await rig.client.call("POST", "/resource_providers", {
      body: { name: randomUUID() },
      headers: { "x-berth-cell": "cell9" },
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("cell9; there are cell1, cell2, cell3");
  });

  test("a UUID and a name are unique over all cells", async () => {
    const taken = { name: randomUUID(), uuid: hosts[0]!.root };
    const inOther = { headers: { "x-berth-cell": "cell3" } };
    expect((await rig.client.call("POST", "/resource_providers", { body: taken, ...inOther })).status).toBe(409);
    const sameName = { name: hosts[0]!.root };
    expect((await rig.client.call("POST", "/resource_providers", { body: sameName, ...inOther })).status).toBe(409);
    const rename = (uuid: string, name: string) =>
      rig.client.call("PUT", `/resource_providers/${uuid}`, { body: { name } });
    expect((await rename(hosts[1]!.root, hosts[0]!.root)).status).toBe(409);
    expect((await rename(hosts[1]!.root, hosts[1]!.root)).status).toBe(200);
    expect((await rename(randomUUID(), hosts[0]!.root)).status).toBe(404);
  });

  test("lists, filters and candidates are the union over all cells", async () => {
    const roots = hosts.map(({ root }) => root);
    for (const query of ["", "?resources=VCPU:1", "?required=CUSTOM_FAST"]) {
      const list = await rig.client.must<Providers>("GET", `/resource_providers${query}`);
      const found = list.resource_providers.map(({ uuid }) => uuid);
      expect(found).toEqual(expect.arrayContaining(roots));
      expect(new Set(found).size).toBe(found.length);
    }
    const inTree = await rig.client.must<Providers>("GET", `/resource_providers?in_tree=${hosts[2]!.child}`);
    expect(inTree.resource_providers.map(({ uuid }) => uuid).sort()).toEqual([hosts[2]!.root, hosts[2]!.child].sort());
    const { provider_summaries: summaries } = await rig.client.must<{ provider_summaries: object }>(
      "GET",
      "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1",
    );
    expect(Object.keys(summaries)).toEqual(expect.arrayContaining(hosts.flatMap(({ root, child }) => [root, child])));
  });

  test("a limit of candidates takes from the cells in turn", async () => {
    const { provider_summaries: summaries } = await rig.client.must<{ provider_summaries: object }>(
      "GET",
      "/allocation_candidates?resources=VCPU:1&limit=3",
    );
    const cells = await Promise.all(
      [0, 1, 2].map(async (cell) => (await rig.dump(cell)).providers.map(({ uuid }) => uuid as string)),
    );
    for (const uuids of cells) expect(Object.keys(summaries).some((uuid) => uuids.includes(uuid))).toBe(true);
  });

  test("a consumer's allocations are in one cell: a change in another one is refused and undone", async () => {
    const consumer = randomUUID();
    expect((await put(consumer, { [hosts[0]!.root]: { VCPU: 1 } })).status).toBe(204);
    const elsewhere = await put(consumer, { [hosts[1]!.root]: { VCPU: 1 } }, 1);
    expect([elsewhere.status, elsewhere.text]).toEqual([409, expect.stringContaining("cell1, cell2")]);
    const both = await put(randomUUID(), { [hosts[0]!.root]: { VCPU: 1 }, [hosts[2]!.root]: { VCPU: 1 } });
    expect([both.status, both.text]).toEqual([409, expect.stringContaining("cell1, cell3")]);
    expect(await rig.client.must("GET", `/allocations/${consumer}`)).toMatchObject({
      allocations: { [hosts[0]!.root]: { resources: { VCPU: 1 } } },
    });
    expect((await put(consumer, {}, 1)).status).toBe(204);
    expect((await put(consumer, { [hosts[1]!.root]: { VCPU: 1 } })).status).toBe(204);
  });

  test("of 64 first writes of one consumer for three cells, one cell wins", async () => {
    for (let round = 0; round < 5; round += 1) {
      const consumer = randomUUID();
      const answers = await allAtOnce(64, (at) => put(consumer, { [hosts[at % 3]!.root]: { VCPU: 1 } }));
      expect(countStatuses(answers)).toEqual({ 204: 1, 409: 63 });
      const dumps = await Promise.all([0, 1, 2].map((cell) => rig.dump(cell)));
      expect(dumps.filter((dump) => dump.consumers.some(({ uuid }) => uuid === consumer))).toHaveLength(1);
    }
  });

  test("several consumers in several cells in one request are refused, those in one cell are not", async () => {
    const post = (amounts: readonly Record<string, Record<string, number>>[]) => {
      const body = Object.fromEntries(amounts.map((one) => [randomUUID(), allocationsBody(one, null)]));
      return rig.client.call("POST", "/allocations", { body });
    };
    const [one, two] = [hosts[0]!, hosts[1]!];
    expect((await post([{ [one.root]: { VCPU: 1 } }, { [two.root]: { VCPU: 1 } }])).status).toBe(409);
    expect((await post([{ [one.root]: { VCPU: 1 } }, { [one.child]: { MEMORY_MB: 1 } }])).status).toBe(204);
  });

  test("a reshape over two cells is refused", async () => {
    const inventories = Object.fromEntries(
      hosts
        .slice(0, 2)
        .map(({ child }) => [child, { resource_provider_generation: 1, inventories: { MEMORY_MB: { total: 65 } } }]),
    );
    const answer = await rig.client.call("POST", "/reshaper", { body: { inventories, allocations: {} } });
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining("cell1, cell2")]);
  });

  test("a provider cannot move under a parent of another cell", async () => {
    const answer = await rig.client.call("PUT", `/resource_providers/${hosts[0]!.child}`, {
      body: { name: randomUUID(), parent_provider_uuid: hosts[1]!.root },
    });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("another cell")]);
  });

  test("usages of a project are summed over the cells", async () => {
    const project = randomUUID();
    for (const { root } of hosts) {
      const body = { ...allocationsBody({ [root]: { VCPU: 2 } }, null), project_id: project };
      await rig.client.must("PUT", `/allocations/${randomUUID()}`, { body });
    }
    expect(await rig.client.must("GET", `/usages?project_id=${project}`)).toEqual({
      usages: { INSTANCE: { VCPU: 6, consumer_count: 3 } },
    });
  });

  test("a name is created in all cells, and stays while one of them uses it", async () => {
    const name = "CUSTOM_GOLD";
    await rig.client.must("PUT", `/resource_classes/${name}`);
    const path = `/resource_providers/${hosts[2]!.child}/inventories`;
    const body = { resource_provider_generation: 1, inventories: { [name]: { total: 1 } } };
    await rig.client.must("PUT", path, { body });
    expect((await rig.client.call("DELETE", `/resource_classes/${name}`)).status).toBe(409);
    await rig.client.must("DELETE", path);
    await rig.client.must("DELETE", `/resource_classes/${name}`);
    const gone = await rig.client.call("GET", `/resource_classes/${name}`);
    expect(gone.status).toBe(404);
  });
});
