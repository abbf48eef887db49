import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const host = (name: string): HostConfig => ({
  name,
  inventories: { VCPU: { total: 16 }, PCPU: { total: 4 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
});
const CELLS = [{ name: "cell-1", hosts: ["one", "two", "three"].map(host) }];
const SLOW = { metadata: { "berth:fake": JSON.stringify({ hand_off_ms: 60_000 }) } };

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly host: string | null;
  readonly taskState: string | null;
  readonly flavor: string;
}

describe("the actions of a server in a whole cloud", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    cloud = await startTestCloud({ cells: CELLS, schedulers: 1, conductors: 1 });
    for (const [id, vcpus] of [
      ["s", 1],
      ["m", 2],
      ["xl", 1_000],
    ])
      await call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64, disk: 1 } });
  });
  afterAll(() => cloud?.close());

  const call: TestCloud["call"] = (...asked) => cloud.call(...asked);

  async function show(id: string): Promise<Shown> {
    const { server } = (await call("GET", `/v2.1/servers/${id}`)).json;
    const { status, flavor } = server;
    return {
      ...{ id, status, flavor: flavor.original_name },
      host: server["OS-EXT-SRV-ATTR:host"],
      taskState: server["OS-EXT-STS:task_state"],
    };
  }

  /** Resolves once no operation is running. */
  const settled = (id: string): Promise<Shown> =>
    eventually("the operation's end", async () => {
      const shown = await show(id);
      return shown.taskState === null && shown.status !== "BUILD" && shown;
    });

  async function boot(fields: Readonly<Record<string, unknown>> = {}): Promise<Shown> {
    const server = { name: "x", flavorRef: "s", imageRef: "", networks: "none", ...fields };
    const created = await call("POST", "/v2.1/servers", { server });
    return settled(created.json.server.id);
  }

  const act = (id: string, action: string, value: unknown = null, minor = 90) =>
    call("POST", `/v2.1/servers/${id}/action`, { [action]: value }, minor);

  /** Requests the action, waits for its end, and resolves with the server. */
  async function done(id: string, action: string, value: unknown = null, minor = 90): Promise<Shown> {
    const answer = await act(id, action, value, minor);
    expect([action, answer.status, answer.json?.[Object.keys(answer.json ?? {})[0] ?? ""]?.message]).toEqual([
      action,
      expect.toBeOneOf([200, 202, 204]),
      undefined,
    ]);
    return settled(id);
  }

  test("resize to another host, revert, resize again and confirm", async () => {
    const { id, host: first } = await boot();
    const resized = await done(id, "resize", { flavorRef: "m" });
    expect(resized).toMatchObject({ status: "VERIFY_RESIZE", flavor: "m" });
    expect(resized.host).not.toBe(first);
    expect(await done(id, "revertResize")).toMatchObject({ status: "ACTIVE", flavor: "s", host: first });
    const again = await done(id, "resize", { flavorRef: "m" });
    expect(await done(id, "confirmResize")).toMatchObject({ status: "ACTIVE", flavor: "m", host: again.host });
    const { migrations } = (await call("GET", `/v2.1/os-migrations?instance_uuid=${id}`)).json;
    expect(migrations.map((one: { status: string }) => one.status)).toEqual(["confirmed", "reverted"]);
  });

  test("migrate cold to the named host, and live to any host", async () => {
    const { id, host: first } = await boot();
    const target = CELLS[0]!.hosts.map(({ name }) => name).find((name) => name !== first);
    expect(await done(id, "migrate", { host: target })).toMatchObject({ status: "VERIFY_RESIZE", host: target });
    await done(id, "confirmResize");
    const live = await done(id, "os-migrateLive", { host: null, block_migration: "auto" });
    expect(live.status).toBe("ACTIVE");
    expect(live.host).not.toBe(target);
  });

  test("migrate a paused server live, which stays paused and goes on where it is then", async () => {
    const { id, host: first } = await boot();
    await done(id, "pause");
    const moved = await done(id, "os-migrateLive", { host: null, block_migration: "auto" });
    expect(moved.status).toBe("PAUSED");
    expect(moved.host).not.toBe(first);
    const [migration] = (await call("GET", `/v2.1/os-migrations?instance_uuid=${id}`)).json.migrations;
    expect(migration).toMatchObject({
      migration_type: "live-migration",
      status: "completed",
      dest_compute: moved.host,
    });
    expect(await done(id, "unpause")).toMatchObject({ status: "ACTIVE", host: moved.host });
  });

  test("migrate a server with pinned CPUs live, with other CPUs at the destination that are claimed before it moves", async () => {
    const extra_specs = { "hw:cpu_policy": "dedicated" };
    await call("POST", "/v2.1/flavors", { flavor: { id: "pinned", name: "pinned", vcpus: 2, ram: 64, disk: 1 } });
    await call("POST", "/v2.1/flavors/pinned/os-extra_specs", { extra_specs });
    const slow = { metadata: { "berth:fake": JSON.stringify({ hand_off_ms: 60_000 }) } };
    const { id, host: first } = await boot({ flavorRef: "pinned", ...slow });
    const { store } = cloud.cells[0]!;
    const pinsOf = async (...consumers: readonly string[]) =>
      (await store.holdings(consumers)).map((held) => held?.items.find((item) => item.resourceClass === "PCPU"));
    const [before] = await pinsOf(id);
    await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
    const running = await eventually("the migration to run", async () => {
      const { migrations } = (await call("GET", `/v2.1/servers/${id}/migrations`)).json;
      return migrations.find((one: { status: string }) => one.status === "running");
    });
    const [there, here] = await pinsOf(id, running.uuid);
    expect([there?.amount, here]).toEqual([2, before]);
    expect(there?.provider).not.toBe(before?.provider);
    // The copy takes a minute unless the migration is forced.
    const path = `/v2.1/servers/${id}/migrations/${running.id}`;
    expect((await call("POST", `${path}/action`, { force_complete: null })).status).toBe(202);
    const moved = await settled(id);
    expect([moved.status, moved.host === first, await pinsOf(id, running.uuid)]).toEqual([
      "ACTIVE",
      false,
      [there, undefined],
    ]);
    await act(id, "forceDelete");
  });

  test("unshelve to the named host, and into the named zone", async () => {
    const { id, host: first } = await boot();
    const target = CELLS[0]!.hosts.map(({ name }) => name).find((name) => name !== first);
    const offloaded = async () => {
      await done(id, "shelve");
      expect((await done(id, "shelveOffload")).status).toBe("SHELVED_OFFLOADED");
    };
    await offloaded();
    expect(await done(id, "unshelve", { host: target }, 91)).toMatchObject({ status: "ACTIVE", host: target });
    await offloaded();
    expect((await done(id, "unshelve", { availability_zone: "nova" }, 77)).status).toBe("ACTIVE");
    await offloaded();
    const codes = await Promise.all(
      [{ host: "nowhere" }, { availability_zone: "nowhere" }].map(
        async (where) => (await act(id, "unshelve", where, 91)).status,
      ),
    );
    expect([codes, (await show(id)).status]).toEqual([[400, 400], "SHELVED_OFFLOADED"]);
    await act(id, "forceDelete");
  });

  test("stop, start, reboot, pause, rebuild and shelve", async () => {
    const { id } = await boot();
    expect((await done(id, "os-stop")).status).toBe("SHUTOFF");
    expect((await done(id, "os-start")).status).toBe("ACTIVE");
    expect((await done(id, "reboot", { type: "HARD" })).status).toBe("ACTIVE");
    expect((await done(id, "trigger_crash_dump")).status).toBe("ACTIVE");
    expect((await done(id, "pause")).status).toBe("PAUSED");
    expect((await done(id, "trigger_crash_dump")).status).toBe("PAUSED");
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    expect(instanceActions[0]).toMatchObject({ action: "trigger_crash_dump", message: null });
    expect((await done(id, "unpause")).status).toBe("ACTIVE");
    expect((await act(id, "changePassword", { adminPass: "secret" })).status).toBe(202);
    const listed = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json.instanceActions;
    expect(listed[0]).toMatchObject({ action: "changePassword", message: null });
    expect((await done(id, "suspend")).status).toBe("SUSPENDED");
    const suspended = (await call("GET", `/v2.1/servers/${id}`)).json.server;
    expect(suspended).toMatchObject({ "OS-EXT-STS:vm_state": "suspended", "OS-EXT-STS:power_state": 4 });
    expect((await done(id, "resume")).status).toBe("ACTIVE");
    const rebuilt = await act(id, "rebuild", { imageRef: "70a599e0-31e7-49b7-b260-868f441e862b", name: "y" });
    expect([rebuilt.status, rebuilt.json.server.status]).toEqual([202, "REBUILD"]);
    expect((await settled(id)).status).toBe("ACTIVE");
    expect((await call("GET", `/v2.1/servers/${id}`)).json.server).toMatchObject({ name: "y" });
    expect((await done(id, "shelve")).status).toBe("SHELVED");
    expect((await act(id, "shelve")).status).toBe(409);
    expect(await done(id, "shelveOffload")).toMatchObject({ status: "SHELVED_OFFLOADED", host: null });
    expect((await done(id, "unshelve")).status).toBe("ACTIVE");
    expect((await done(id, "os-resetState", { state: "error" })).status).toBe("ERROR");
    expect((await done(id, "os-resetState", { state: "active" })).status).toBe("ACTIVE");
    expect((await act(id, "forceDelete")).status).toBe(202);
    await eventually("it to be gone", async () => (await call("GET", `/v2.1/servers/${id}`)).status === 404);
  });

  test("during a live migration another operation is refused with the name of the running one, and the migration is aborted", async () => {
    const { id, host: first } = await boot(SLOW);
    expect((await act(id, "os-migrateLive", { host: null, block_migration: "auto" })).status).toBe(202);
    expect(await show(id)).toMatchObject({ status: "MIGRATING", taskState: "migrating", host: first });
    const running = await eventually("the migration to run", async () => {
      const { migrations } = (await call("GET", `/v2.1/servers/${id}/migrations`)).json;
      return migrations.find((one: { status: string }) => one.status === "running");
    });
    const refused = await act(id, "os-stop");
    expect(refused.status).toBe(409);
    expect(refused.json.conflictingRequest.message).toContain("migrating");
    const path = `/v2.1/servers/${id}/migrations/${running.id}`;
    expect((await call("GET", path)).json.migration).toMatchObject({ server_uuid: id, uuid: running.uuid });
    expect((await call("DELETE", path)).status).toBe(202);
    // The move may have ended by now.
    expect([400, 409]).toContain((await call("POST", `${path}/action`, { force_complete: null })).status);
    expect(await settled(id)).toMatchObject({ status: "ACTIVE", host: first });
    expect((await call("GET", path)).status).toBe(404);
    expect((await call("DELETE", path)).status).toBe(409);
    await act(id, "forceDelete");
  });

  test("a move that no host has room for leaves the server unchanged, and its action shows the reason", async () => {
    const { id, host: first } = await boot();
    expect(await done(id, "resize", { flavorRef: "xl" })).toMatchObject({ status: "ACTIVE", flavor: "s", host: first });
    const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
    const resize = instanceActions.find(({ action }: { action: string }) => action === "resize");
    expect(resize).toMatchObject({ message: "Error" });
    const one = (await call("GET", `/v2.1/servers/${id}/os-instance-actions/${resize.request_id}`)).json;
    expect(one.instanceAction.events[0].details).toContain("No valid host was found");
  });

  test("are refused like Nova's, with its codes", async () => {
    const { id, host: here } = await boot();
    const codes = async (...asked: [string, unknown, number?][]) =>
      Promise.all(asked.map(async ([action, value, minor]) => (await act(id, action, value, minor)).status));
    expect(
      await codes(
        ["resize", { flavorRef: "s" }],
        ["resize", { flavorRef: "none" }],
        ["resize", {}],
        ["migrate", { host: here }],
        ["migrate", { host: "nowhere" }],
        ["evacuate", {}],
        ["evacuate", { host: "nowhere" }],
        ["os-migrateLive", { host: null }],
        ["os-migrateLive", { host: here, block_migration: false }],
        ["reboot", { type: "WARM" }],
        ["os-fly", null],
        ["confirmResize", null],
        ["revertResize", null],
        ["unshelve", null],
        ["unpause", null],
        ["resume", null],
        ["os-start", null],
      ),
    ).toEqual([400, 400, 400, 400, 400, 400, 404, 400, 400, 400, 400, 409, 409, 409, 409, 409, 409]);
    expect((await act("00000000-0000-4000-8000-000000000000", "os-stop")).status).toBe(404);
    expect(await show(id)).toMatchObject({ status: "ACTIVE", host: here, taskState: null });
  });
});
