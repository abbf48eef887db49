import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findCommand } from "../../cli/commands.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { keepOutput } from "../rigs/keep-output.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const host = (name: string): HostConfig => ({
  name,
  inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
});
const HOSTS = ["one", "two", "three"];
const OTHERS = HOSTS.slice(1);

describe("berth host drain in a whole cloud", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    cloud = await startTestCloud({
      cells: [{ name: "cell-1", hosts: HOSTS.map(host) }],
      schedulers: 1,
      conductors: 1,
    });
    for (const [id, vcpus] of [
      ["s", 1],
      ["m", 2],
    ])
      await call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64, disk: 1 } });
  });
  afterAll(() => cloud?.close());
  beforeEach(() => setHosts(OTHERS, { disabled: true }));
  afterEach(async () => {
    for (const { id } of (await call("GET", "/v2.1/servers?all_tenants=1")).json.servers)
      await call("DELETE", `/v2.1/servers/${id}`);
    await eventually(
      "no servers",
      async () => (await call("GET", "/v2.1/servers?all_tenants=1")).json.servers.length === 0,
    );
    await setHosts(HOSTS, { disabled: false });
  });

  const call: TestCloud["call"] = (...asked) => cloud.call(...asked);
  const setHosts = async (names: readonly string[], change: unknown) => {
    for (const name of names) expect((await call("PUT", `/berth/v1/hosts/${name}`, change)).status).toBe(200);
  };

  /** Resolves with the server once no operation is running. */
  const settled = (id: string) =>
    eventually("the operation's end", async () => {
      const { server } = (await call("GET", `/v2.1/servers/${id}`)).json;
      return server["OS-EXT-STS:task_state"] === null && server.status !== "BUILD" && server;
    });
  const hostOf = async (id: string): Promise<string> => (await settled(id))["OS-EXT-SRV-ATTR:host"];
  const act = async (id: string, body: unknown) => {
    expect((await call("POST", `/v2.1/servers/${id}/action`, body)).status).toBe(202);
    return settled(id);
  };

  /** Boots a server on host one, the only one that is enabled, and then enables the others. */
  async function boot(): Promise<string> {
    const server = { name: "x", flavorRef: "s", imageRef: "", networks: "none" };
    const onlyThere = async () => {
      const { id } = (await call("POST", "/v2.1/servers", { server })).json.server;
      if ((await hostOf(id)) === "one") return id;
      // The scheduler's view did not have the change of the hosts yet.
      await call("DELETE", `/v2.1/servers/${id}`);
      return null;
    };
    return eventually("a server on the host", onlyThere);
  }

  const drain = async (...words: readonly string[]) => {
    const found = findCommand(["host", "drain", ...words, "--api", cloud.apiUrl]);
    if (found.kind !== "command") throw new Error(found.kind);
    return keepOutput(() => found.command.run(found.argv));
  };

  test("a host without servers is disabled, and nothing is moved", async () => {
    const { code, text } = await drain("one");
    expect([code, text]).toEqual([0, expect.stringMatching(/one: moved 0 in [0-9.]+ s, 0 stayed\n$/)]);
    expect((await call("GET", "/berth/v1/hosts/one")).json).toMatchObject({
      ...{ status: "disabled", disabled_reason: "drained by berth host drain" },
    });
  });

  test("servers leave the host, running ones live, and a server that cannot be migrated is named", async () => {
    const ids = [await boot(), await boot(), await boot()];
    const paused = await boot();
    await act(paused, { pause: null });
    await setHosts(OTHERS, { disabled: false });
    const { code, text } = await drain("one");
    expect([code, text]).toEqual([1, expect.stringContaining(`1 stayed\n  ${paused} x: Cannot 'migrate' instance`)]);
    expect(text).toContain("while it is in vm_state paused");
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: "ACTIVE" });
    const hosts = await Promise.all(ids.map(hostOf));
    expect(hosts).not.toContain("one");
    await act(paused, { unpause: null });
    expect((await drain("one", "--live")).code).toBe(0);
    expect(await hostOf(paused)).not.toBe("one");
    const { migrations } = (await call("GET", `/v2.1/os-migrations?instance_uuid=${paused}`)).json;
    expect(migrations).toMatchObject([{ migration_type: "live-migration", status: "completed" }]);
  });

  test("a repeated drain confirms the moves of an interrupted one, and leaves a user's resize to the user", async () => {
    const [moved, resized] = [await boot(), await boot()];
    await setHosts(OTHERS, { disabled: false });
    await act(moved, { migrate: null });
    await act(resized, { resize: { flavorRef: "m" } });
    const first = await drain("one");
    expect([first.code, first.text]).toEqual([
      1,
      expect.stringContaining(`1 stayed\n  ${resized} x: it was resized to`),
    ]);
    expect([(await settled(moved)).status, (await settled(resized)).status]).toEqual(["ACTIVE", "VERIFY_RESIZE"]);
    await act(resized, { revertResize: null });
    expect(await hostOf(resized)).toBe("one");
    expect(await drain("one")).toMatchObject({ code: 0, text: expect.stringContaining("one: moved 1 in") });
    const used = (await call("GET", "/berth/v1/hosts/one")).json.inventories.map((one: { used: number }) => one.used);
    expect(used).toEqual([0, 0, 0]);
  });

  test("a server for which no other host has room stays, with the reason", async () => {
    const id = await boot();
    const { code, text } = await drain("one");
    expect([code, text]).toEqual([
      1,
      expect.stringContaining(`1 stayed\n  ${id} x: its move failed, and it is ACTIVE`),
    ]);
    expect(text).toContain("No valid host was found");
    expect(await hostOf(id)).toBe("one");
  });

  test("a host that is down keeps its servers, and the command says what an operator can do", async () => {
    const id = await boot();
    const { services } = (await call("GET", "/v2.1/os-services?host=one&binary=nova-compute")).json;
    const setDown = (forced: boolean) => call("PUT", `/v2.1/os-services/${services[0].id}`, { forced_down: forced });
    await setDown(true);
    const { code, text } = await drain("one");
    expect([code, text]).toEqual([
      1,
      "one is forced down, disabled (drained by berth host drain), so it cannot hand over its 1 servers: evacuate them (docs/moves.md)\n",
    ]);
    await setDown(false);
    expect(await hostOf(id)).toBe("one");
    await eventually("the host to be up", async () => (await call("GET", "/berth/v1/hosts/one")).json.state === "up");
  });

  test("an unknown host, a missing host and an api that does not answer are refused", async () => {
    await expect(drain("nowhere")).rejects.toThrow("nowhere could not be found");
    expect(await drain()).toMatchObject({ code: 2, text: expect.stringContaining("HOST") });
    const found = findCommand(["host", "drain", "one", "--api", "http://127.0.0.1:1"]);
    if (found.kind !== "command") throw new Error(found.kind);
    await expect(found.command.run(found.argv)).rejects.toThrow("the api at http://127.0.0.1:1 does not answer");
  });
});
