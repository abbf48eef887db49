import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../adapters/postgres/client/databases.ts";
import { allAtOnce, allocationsBody, codeOf, countStatuses } from "../../placement/placement-client.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";

let rig: PlacementRig;
beforeAll(async () => {
  rig = await PlacementRig.start();
});
afterAll(() => rig.close());

/** Sends a request whose body is not changed. */
async function raw(method: string, path: string, body?: string) {
  const headers = { "x-auth-token": "admin", "openstack-api-version": "placement 1.39" };
  const answer = await fetch(`${rig.url}${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** A reshape that leaves the provider's inventory unchanged and writes these allocations. */
async function reshape(provider: string, allocations: object) {
  const path = `/resource_providers/${provider}/inventories`;
  const inventories = await rig.client.must<object>("GET", path);
  return rig.client.call("POST", "/reshaper", { body: { inventories: { [provider]: inventories }, allocations } });
}

describe("of two faults in a request, the API reports the same one as upstream", () => {
  test.each([
    ["PUT", "", 404],
    ["PUT", "/aggregates", 404],
    ["POST", "/inventories", 404],
    ["PUT", "/inventories", 404],
    ["PUT", "/inventories/VCPU", 404],
    // Unlike the others, this route reads the body first.
    ["PUT", "/traits", 400],
  ])("%s /resource_providers/{unknown}%s with a wrong body is %i", async (method, part, status) => {
    for (const body of ["{", "7", '{"colour":1}', "[1]"])
      expect(await raw(method, `/resource_providers/${randomUUID()}${part}`, body), body).toMatchObject({ status });
  });

  test("an unknown class is not found where the path names it, and a wrong value in a list", async () => {
    const host = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 4 } });
    const put = (path: string, body: object) =>
      rig.client.call("PUT", `/resource_providers/${host}/inventories${path}`, {
        body: { ...body, resource_provider_generation: 1 },
      });
    expect((await put("/CUSTOM_UNKNOWN", { total: 4 })).status).toBe(404);
    expect((await put("", { inventories: { CUSTOM_UNKNOWN: { total: 4 } } })).status).toBe(400);
    expect((await put("/CUSTOM_UNKNOWN", { total: 4, reserved: 9 })).status).toBe(400);
  });

  test("an old generation is reported before an inventory without room", async () => {
    const host = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 4 } });
    const wrong = { total: 4, reserved: 9 };
    const inventories = { inventories: { VCPU: wrong } };
    const put = (path: string, body: object, generation: number) =>
      rig.client.call("PUT", `/resource_providers/${host}/inventories${path}`, {
        body: { ...body, resource_provider_generation: generation },
      });
    for (const [path, body] of [["", inventories] as const, ["/VCPU", wrong] as const]) {
      const stale = await put(path, body, 7);
      expect([stale.status, codeOf(stale)]).toEqual([409, "placement.concurrent_update"]);
      expect((await put(path, body, 1)).status).toBe(400);
    }
  });

  test("providers and classes that do not exist are reported before inventories that do not", async () => {
    const [host, other, consumer, second] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    for (const uuid of [host, other]) await rig.client.makeProvider(uuid, { inventories: { VCPU: 4 } });
    const unknown = randomUUID();
    const faults = [
      {
        allocations: { [host]: { DISK_GB: 1 }, [other]: { CUSTOM_NONE: 1 } },
        says: "No such resource class CUSTOM_NONE",
      },
      { allocations: { [host]: { VCPU: 9 }, [other]: { CUSTOM_NONE: 1 } }, says: "No such resource class CUSTOM_NONE" },
      { allocations: { [host]: { CUSTOM_NONE: 1 }, [unknown]: { VCPU: 1 } }, says: `'${unknown}' that does not exist` },
    ];
    for (const { allocations, says } of faults) {
      const body = allocationsBody(allocations, null);
      const [one, another] = Object.entries(allocations).map(([uuid, resources]) =>
        allocationsBody({ [uuid]: resources }, null),
      );
      const several = { [consumer]: one, [second]: another };
      for (const answer of [
        await rig.client.call("PUT", `/allocations/${consumer}`, { body }),
        await rig.client.call("POST", "/allocations", { body: several }),
        await reshape(host, several),
      ]) {
        expect(answer.status).toBe(400);
        expect(answer.text).toContain(says);
      }
    }
  });

  test("the generations of all consumers are checked before everything else", async () => {
    const [host, full, held, fresh] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    await rig.client.makeProvider(host, { inventories: { VCPU: 4 } });
    await rig.client.makeProvider(full, { inventories: { VCPU: 1 } });
    await rig.client.must("PUT", `/allocations/${held}`, { body: allocationsBody({ [host]: { VCPU: 1 } }, null) });
    const stale = allocationsBody({ [host]: { VCPU: 1 } }, 7);
    const others = [
      allocationsBody({ [full]: { VCPU: 1, MEMORY_MB: 1 } }, null),
      allocationsBody({ [full]: { VCPU: 9 } }, null),
      allocationsBody({ [randomUUID()]: { VCPU: 1 } }, null),
      allocationsBody({ [full]: { CUSTOM_NONE: 1 } }, null),
    ];
    for (const other of others) {
      for (const body of [
        { [fresh]: other, [held]: stale },
        { [held]: stale, [fresh]: other },
      ]) {
        const posted = await rig.client.call("POST", "/allocations", { body });
        expect([posted.status, codeOf(posted)], posted.text).toEqual([409, "placement.concurrent_update"]);
        const reshaped = await reshape(full, body);
        expect([reshaped.status, codeOf(reshaped)], reshaped.text).toEqual([409, "placement.concurrent_update"]);
      }
    }
  });

  test("of writes that race for a consumer, all but one get a concurrent update, even when nothing is left", async () => {
    const [host, aside] = [randomUUID(), randomUUID()];
    await rig.client.makeProvider(host, { inventories: { VCPU: 6 } });
    await rig.client.makeProvider(aside, { inventories: { VCPU: 6 } });
    for (let round = 0; round < 5; round += 1) {
      const consumer = randomUUID();
      const body = { [consumer]: allocationsBody({ [host]: { VCPU: 6 } }, null) };
      const answers = await allAtOnce(24, (at) =>
        at % 2 === 0 ? rig.client.call("POST", "/allocations", { body }) : reshape(aside, body),
      );
      expect(countStatuses(answers)).toEqual({ 204: 1, 409: 23 });
      const codes = answers.filter(({ status }) => status === 409).map(codeOf);
      expect(new Set(codes)).toEqual(new Set(["placement.concurrent_update"]));
      await rig.client.must("DELETE", `/allocations/${consumer}`);
    }
  });

  test("an infinite generation is not an integer", async () => {
    const host = randomUUID();
    await rig.client.makeProvider(host, { inventories: { VCPU: 4 } });
    const put = (part: string, body: string) => raw("PUT", `/resource_providers/${host}${part}`, body);
    for (const generation of ["1e400", "-1e400"]) {
      const field = `"resource_provider_generation":${generation}`;
      expect((await put("/traits", `{"traits":[],${field}}`)).status).toBe(400);
      expect((await put("/aggregates", `{"aggregates":[],${field}}`)).status).toBe(400);
      expect((await put("/inventories", `{"inventories":{},${field}}`)).status).toBe(400);
    }
  });

  test.each(["CUSTOM_%zz", "%", "CUSTOM_%c3%28", "CUSTOM_%00", "a%2Fb", "x".repeat(300), "%F0%9F%98%80", "..%2f"])(
    "a trait of the impossible name %s is not found",
    async (name) => {
      for (const method of ["GET", "DELETE"]) expect((await raw(method, `/traits/${name}`)).status, method).toBe(404);
    },
  );
});

describe("a provider's summary", () => {
  test("has the capacity that upstream computes, to the last digit", async () => {
    const host = randomUUID();
    await rig.client.makeProvider(host, {
      inventories: { VCPU: 2_147_483_647, MEMORY_MB: 2, DISK_GB: 15, SRIOV_NET_VF: 7, VGPU: 8 },
    });
    // The API refuses a reserve above the total, but an import or an older version may have stored one.
    await withClient(rig.databaseUrl(), async (client) => {
      const set = (name: string, change: string) =>
        client.query(
          `update inventories v set ${change} from resource_classes c, resource_providers p
           where c.id = v.class_id and c.name = $1 and p.id = v.provider_id and p.uuid = $2`,
          [name, host],
        );
      await set("VCPU", "allocation_ratio = 7500000000.0");
      await set("MEMORY_MB", "reserved = 3, allocation_ratio = 0.5");
      await set("DISK_GB", "allocation_ratio = 1073741824e9");
      await set("SRIOV_NET_VF", "allocation_ratio = 1.5");
    });
    const answer = await rig.client.call("GET", `/allocation_candidates?resources=VGPU:1&in_tree=${host}`);
    const capacityOf = (name: string) => new RegExp(`"${name}":\\{"capacity":(-?[^,]+),`).exec(answer.text)?.[1];
    expect(capacityOf("MEMORY_MB")).toBe("0");
    expect(capacityOf("DISK_GB")).toBe("16106127360000000000");
    expect(capacityOf("VCPU")).toBe(BigInt(2_147_483_647 * 7_500_000_000).toString());
    expect(capacityOf("SRIOV_NET_VF")).toBe("10");
  });
});

describe("the time of a provider's last change", () => {
  const changedAt = (uuid: string) =>
    withClient(rig.databaseUrl(), async (client) => {
      const { rows } = await client.query<{ at: string }>(
        "select updated_at::text as at from resource_providers where uuid = $1",
        [uuid],
      );
      return rows[0]!.at;
    });

  test("stays when a write changes nothing, and is updated for all providers whose root changes", async () => {
    const [root, other, child] = [randomUUID(), randomUUID(), randomUUID()];
    for (const uuid of [root, other]) await rig.client.makeProvider(uuid, {});
    await rig.client.makeProvider(child, { parent: root });
    const before = await Promise.all([root, child].map(changedAt));
    const put = (uuid: string, body: object) => rig.client.must("PUT", `/resource_providers/${uuid}`, { body });
    await put(root, { name: root });
    await put(child, { name: child, parent_provider_uuid: root });
    expect(await Promise.all([root, child].map(changedAt))).toEqual(before);
    await put(root, { name: root, parent_provider_uuid: other });
    const moved = await Promise.all([root, child].map(changedAt));
    expect(moved[0]).not.toBe(before[0]);
    expect(moved[1]).not.toBe(before[1]);
    await put(child, { name: `renamed-${child}`, parent_provider_uuid: root });
    expect(await changedAt(child)).not.toBe(moved[1]);
  });
});

describe("two writes of a provider's traits at one generation", () => {
  test("never both change it, in any cell of several; a write of the present traits changes nothing", async () => {
    const several = await PlacementRig.start({ cells: 2 });
    try {
      const host = randomUUID();
      for (let at = 0; at < 3; at += 1) await several.client.must("PUT", `/traits/CUSTOM_T${at}`);
      await several.client.makeProvider(host, { cell: "cell2" });
      const path = `/resource_providers/${host}/traits`;
      const put = (trait: number, generation: number) =>
        several.client.call("PUT", path, {
          body: { traits: [`CUSTOM_T${trait}`], resource_provider_generation: generation },
        });
      for (let generation = 0; generation < 40; generation += 1) {
        // Neither set is the one that the previous round left, which would be no change.
        const [one, two] = generation % 2 === 0 ? [0, 1] : [2, 2];
        const answers = await Promise.all([put(one, generation), put(two, generation)]);
        expect(countStatuses(answers)).toEqual({ 200: 1, 409: 1 });
      }
      const same = await Promise.all([put(2, 40), put(2, 40)]);
      expect(countStatuses(same)).toEqual({ 200: 2 });
      const now = await several.client.must<{ resource_provider_generation: number }>("GET", path);
      expect(now.resource_provider_generation).toBe(40);
    } finally {
      await several.close();
    }
  });
});

test("a resource provider gets no more than 1,000 traits", async () => {
  const host = randomUUID();
  await rig.client.makeProvider(host, { inventories: {} });
  const traits = Array.from({ length: 1_001 }, (_, at) => `CUSTOM_T${at}`);
  const put = (some: readonly string[]) =>
    rig.client.call("PUT", `/resource_providers/${host}/traits`, {
      body: { traits: some, resource_provider_generation: 1 },
    });
  const refused = await put(traits);
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("1001 traits, and a resource provider may have 1000 at most");
  // A name that comes twice counts once, so the list is read, and its first unknown name is reported.
  const unknown = await put([...traits.slice(0, 1_000), "CUSTOM_T0"]);
  expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining("No such trait")]);
});
