import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { limitSourceContract } from "../../test/contract/limit-source.contract.ts";
import { type FakeKeystone, passwordOf, startFakeKeystone } from "../../test/rigs/fake-keystone.ts";
import { KeystoneLimits } from "./keystone-limits.ts";
import { KeystoneSession } from "./keystone-session.ts";
import { NeighbourClient } from "./neighbour-client.ts";

/** A client with a session of its own, whose tokens are of the system or of a project. */
function clientOf(keystone: FakeKeystone, { region = null as string | null, system = true } = {}) {
  const credentials = passwordOf("placement", keystone.password);
  const session = new KeystoneSession(
    { clock: systemClock },
    {
      url: keystone.url,
      credentials: credentials.kind === "password" ? { ...credentials, system } : credentials,
      ...{ timeoutMs: 5_000, triesMax: 1 },
    },
    { catalogue: true },
  );
  const client = new NeighbourClient(
    { session, clock: systemClock },
    {
      ...{ service: "Keystone", types: ["identity"], interface: "internal", region: null },
      ...{ url: session.apiUrl, timeoutMs: 5_000, triesMax: 1 },
    },
  );
  const close = async () => {
    await client.close();
    await session.close();
  };
  return { source: new KeystoneLimits(client, { region }), close };
}

limitSourceContract("a Keystone that speaks HTTP", async () => {
  const keystone = await startFakeKeystone();
  const { source, close } = clientOf(keystone);
  return {
    source,
    projects: ["p1", "p2"],
    set: async (projectId, resource, limit) => keystone.limits.set(projectId, resource, limit),
    close: async () => {
      await close();
      await keystone.close();
    },
  };
});

describe("Keystone's limits", () => {
  let keystone: FakeKeystone;
  const closers: (() => Promise<void>)[] = [];
  const sourceOf = (options: Parameters<typeof clientOf>[1] = {}) => {
    const { source, close } = clientOf(keystone, options);
    closers.push(close);
    return source;
  };
  beforeEach(async () => {
    keystone = await startFakeKeystone();
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
    await keystone.close();
  });

  test("are read with a token of the system, since a project's token is shown nothing of other projects", async () => {
    keystone.limits.set("p1", "servers", 3);
    expect((await sourceOf().ofProject("p1")).get("servers")).toBe(3);
    expect((await sourceOf({ system: false }).ofProject("p1")).size).toBe(0);
  });

  test("of the region come before those of no region, and those of other regions are left out", async () => {
    keystone.limits.set(null, "servers", 1);
    keystone.limits.set(null, "servers", 2, "east");
    keystone.limits.set(null, "servers", 3, "west");
    keystone.limits.set(null, "class:VCPU", 4);
    keystone.limits.set(null, "class:MEMORY_MB", 5, "west");
    expect(await sourceOf({ region: "east" }).registered()).toEqual(
      new Map([
        ["servers", 2],
        ["class:VCPU", 4],
      ]),
    );
    expect((await sourceOf().registered()).get("servers")).toBe(1);
    expect((await sourceOf().registered()).get("class:MEMORY_MB")).toBe(5);
  });

  test("of several regions are refused when no region was chosen", async () => {
    keystone.limits.set(null, "servers", 2, "east");
    keystone.limits.set(null, "servers", 3, "west");
    await expect(sourceOf().registered()).rejects.toThrow("set BERTH_OPENSTACK_REGION");
  });

  test.each(["/v3/services", "/v3/registered_limits", "/v3/limits"])(
    "are refused when %s has another page, since what is missing would pass for unlimited",
    async (path) => {
      keystone.limits.set(null, "servers", 1);
      keystone.limits.continued = path;
      const source = sourceOf();
      await expect(Promise.all([source.registered(), source.ofProject("p1")])).rejects.toThrow("raise its list_limit");
    },
  );

  test("that depend on each other, or are not complete, or of an unclear service are refused", async () => {
    keystone.limits.truncated = true;
    await expect(sourceOf().registered()).rejects.toThrow("raise its list_limit");
    keystone.limits.model = "strict_two_level";
    const source = sourceOf();
    await expect(source.registered()).rejects.toThrow("of the model strict_two_level");
    keystone.limits.model = "flat";
    keystone.limits.truncated = false;
    expect((await source.registered()).size).toBe(0);
    keystone.limits.services.push({ id: "5e41ce00000000000000000000000003", type: "compute" });
    await expect(sourceOf().registered()).rejects.toThrow("2 services of the type compute");
  });

  test("are those of the new service after an operator has made the compute service again", async () => {
    keystone.limits.set(null, "class:VCPU", 4);
    const source = sourceOf();
    expect((await source.registered()).get("class:VCPU")).toBe(4);
    const service_id = "5e41ce00000000000000000000000009";
    keystone.limits.services = [{ id: service_id, type: "compute" }];
    keystone.limits.registered = keystone.limits.registered.map((row) => ({ ...row, service_id }));
    expect((await source.registered()).get("class:VCPU")).toBe(4);
  });

  test("are unknown, and not none, when Keystone does not answer, answers nonsense, or refuses the login", async () => {
    keystone.limits.set(null, "servers", 1);
    const source = sourceOf();
    keystone.broken = 503;
    await expect(source.registered()).rejects.toThrow();
    keystone.broken = null;
    expect((await source.registered()).get("servers")).toBe(1);
    keystone.limits.registered = [{ ...keystone.limits.registered[0]!, default_limit: "many" as never }];
    await expect(source.registered()).rejects.toThrow("no integer");
    keystone.password = "another";
    await expect(sourceOf().registered()).rejects.toThrow();
  });
});
