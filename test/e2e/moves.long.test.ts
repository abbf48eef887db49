import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PostgresHostAdminStore } from "../../adapters/postgres/cell/postgres-host-admin-store.ts";
import type { Server } from "../../core/tasks/server.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";
import { untilNoneIsMissed } from "./interrupt.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };
/** Each missed moment is another round. */
const ROUNDS_MS = 600_000;
/** Long enough that the API tier can be killed meanwhile. The first host of every build and of every move fails. */
const BUMPY = { outcome: "reschedule", first: 1, duration_ms: 2_500 } as const;

describe("operations on servers", () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let small: string;
  let other: string;

  beforeAll(async () => {
    cloud = await Cloud.start({ cells: ["cell-1"], schedulers: 1 });
    cell = cloud.cell("cell-1");
    [small, other] = (await Promise.all([cloud.compute.flavor(), cloud.compute.flavor()])) as [string, string];
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const act = async (id: string, action: string, value: unknown = null) => {
    const answer = await cloud.compute.call("POST", `/servers/${id}/action`, { [action]: value });
    if (answer.status >= 300) throw new Error(`${action}: ${answer.status} ${await answer.text()}`);
  };

  /** Declares the host fenced, or revokes that. */
  const forceDown = async (host: string, forcedDown: boolean) => {
    const listed = await cloud.compute.call("GET", `/os-services?host=${host}&binary=nova-compute`);
    const { services } = (await listed.json()) as { services: { id: string }[] };
    const path = `/os-services/${services[0]?.id}`;
    const answer = await cloud.compute.call("PUT", path, { forced_down: forcedDown });
    if (answer.status !== 200) throw new Error(`force-down: ${answer.status} ${await answer.text()}`);
  };

  /** Hosts on which the server runs according to their agents. */
  const placesOf = async (id: string) =>
    [...(await cell.runningGuests())].flatMap(([host, guests]) =>
      guests.some(({ serverUuid }) => serverUuid === id) ? [host] : [],
    );

  /** The server as its cell has it, once no operation is running. */
  const settled = (id: string): Promise<Server> =>
    eventually(
      "the operation's end",
      async () => {
        const [server] = await cell.store.servers([id]);
        return server !== undefined && server.taskState === null && server.status !== "BUILD" && server;
      },
      PATIENT,
    );

  /** The server once it has settled on another host than `source`. A quick move is over before anybody could see it under way. */
  const settledElsewhere = (id: string, source: string | null | undefined) =>
    eventually(
      "the server on another host",
      async () => {
        const server = await settled(id);
        return server.host !== source && server;
      },
      PATIENT,
    );

  /** Gives the action, and resolves once the server's cell has its operation. */
  const handOver = async (id: string, action: string, value: unknown) => {
    const before = await cell.tasksGiven("operate", id);
    await act(id, action, value);
    await eventually("the hand-over", async () => (await cell.tasksGiven("operate", id)) > before, PATIENT);
  };

  test("each kind of operation succeeds", async () => {
    const id = await cloud.compute.boot({ flavor: small });
    await cloud.compute.endedOne(id);
    const statuses: string[] = [];
    for (const [action, value] of [
      ["os-stop"],
      ["os-start"],
      ["reboot", { type: "SOFT" }],
      ["pause"],
      ["unpause"],
      ["resize", { flavorRef: other }],
      ["revertResize"],
      ["resize", { flavorRef: other }],
      ["confirmResize"],
      ["migrate"],
      ["confirmResize"],
      ["os-migrateLive", { host: null, block_migration: "auto" }],
      ["rebuild", { imageRef: "70a599e0-31e7-49b7-b260-868f441e862b" }],
      ["shelve"],
      ["shelveOffload"],
      ["unshelve"],
    ] as const) {
      await act(id, action, value);
      await eventually(
        "the api to see the end",
        async () => {
          const shown = await cloud.compute.show(id);
          return shown !== null && shown["OS-EXT-STS:task_state"] === null;
        },
        PATIENT,
      );
      statuses.push((await settled(id)).status);
    }
    expect(statuses).toEqual([
      ...["SHUTOFF", "ACTIVE", "ACTIVE", "PAUSED", "ACTIVE", "VERIFY_RESIZE", "ACTIVE", "VERIFY_RESIZE", "ACTIVE"],
      ...["VERIFY_RESIZE", "ACTIVE", "ACTIVE", "ACTIVE", "SHELVED", "SHELVED_OFFLOADED", "ACTIVE"],
    ]);
    await cloud.expectCleanAudit();
  });

  test("a port is attached with its resources and detached, and moves with its server", async () => {
    const ask = { resource_request: { resources: { CUSTOM_SLOT: 2 } } };
    const port = { network_id: "70a599e0-31e7-49b7-b260-868f441e862b", ...ask };
    const created = await fetch(`${cloud.apiUrl}/network/v2.0/ports`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ port }),
    });
    const { id: portId } = ((await created.json()) as { port: { id: string } }).port;
    const id = await cloud.compute.boot({ flavor: small });
    const { "OS-EXT-SRV-ATTR:host": source } = await cloud.compute.endedOne(id);
    const slots = async () => {
      const [held] = await cell.store.holdings([id]);
      return (held?.items ?? []).reduce(
        (sum, item) => sum + (item.resourceClass === "CUSTOM_SLOT" ? item.amount : 0),
        0,
      );
    };
    const path = `/servers/${id}/os-interface`;
    const attached = await cloud.compute.call("POST", path, { interfaceAttachment: { port_id: portId } });
    expect([attached.status, await slots()]).toEqual([200, 2]);
    await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
    await settledElsewhere(id, source);
    expect(await slots()).toBe(2);
    await eventually(
      "the detach",
      async () => (await cloud.compute.call("DELETE", `${path}/${portId}`)).status === 202,
      PATIENT,
    );
    expect(await slots()).toBe(0);
    await cloud.expectCleanAudit();
  });

  /** Kills the API tier. Resolves with those of the servers whose operation had no more to do at its first host when the API tier was gone. */
  const killAbove = async (ids: readonly string[]) => {
    await cloud.killAbove();
    const open = await cell.openTasks(ids);
    return ids.filter((id) => !open.some(({ server, selection }) => server === id && selection === 0));
  };

  test(
    "when a destination fails, the cell uses an alternate with the whole API tier gone",
    async () => {
      const moves = [
        ["resize", { flavorRef: other }, "VERIFY_RESIZE"],
        ["migrate", null, "VERIFY_RESIZE"],
        ["os-migrateLive", { host: null, block_migration: "auto" }, "ACTIVE"],
        ["unshelve", null, "ACTIVE"],
      ] as const;
      const run = async (these: readonly (typeof moves)[number][]) => {
        const ids = await cloud.compute.bootMany(these.length, { flavor: small, fake: BUMPY });
        await cloud.compute.ended(ids);
        for (const [index, [action]] of these.entries()) {
          if (action !== "unshelve") continue;
          await cloud.compute.changed(ids[index] ?? "", "shelve", "SHELVED");
          await cloud.compute.changed(ids[index] ?? "", "shelveOffload", "SHELVED_OFFLOADED");
        }
        const before = await Promise.all(ids.map(settled));
        await Promise.all(these.map(([action, value], index) => handOver(ids[index] ?? "", action, value)));
        const missed = await killAbove(ids);
        const after = await Promise.all(ids.map(settled));
        expect(after.map(({ status, attemptId }) => [status, attemptId?.slice(-2)])).toEqual(
          these.map(([, , status]) => [status, "/1"]),
        );
        for (const [index, { uuid, host }] of after.entries()) {
          expect(host).not.toBe(before[index]?.host);
          expect(await cell.holders(uuid)).toEqual([host]);
        }
        await cloud.makeWhole();
        return these.map(([action], index) => (missed.includes(ids[index] ?? "") ? [action] : []));
      };
      await untilNoneIsMissed(moves, run);
      await cloud.expectCleanAudit();
    },
    ROUNDS_MS,
  );

  test(
    "a server is evacuated from a dead host to an alternate with the whole API tier gone, and the host gives it up when it comes back",
    async () => {
      const run = async () => {
        const id = await cloud.compute.boot({ flavor: small, fake: BUMPY });
        const { "OS-EXT-SRV-ATTR:host": source } = await cloud.compute.endedOne(id);
        const agent = cell.agents.find(({ hosts }) => hosts.includes(source ?? ""));
        await agent?.kill();
        const isDown = async () => (await cell.store.hosts()).some(({ name, up }) => name === source && !up);
        await eventually("the host to be down", isDown, PATIENT);
        const early = await cloud.compute.call("POST", `/servers/${id}/action`, { evacuate: {} });
        expect([early.status, await early.text()]).toEqual([409, expect.stringContaining("fenced")]);
        await forceDown(source ?? "", true);
        await handOver(id, "evacuate", {});
        const missed = await killAbove([id]);
        const after = await settled(id);
        expect([after.status, after.attemptId?.slice(-2)]).toEqual(["ACTIVE", "/1"]);
        expect(agent?.hosts).not.toContain(after.host);
        // The api is gone with the rest of the API tier, so the fence is revoked in the cell itself.
        await new PostgresHostAdminStore(cell.pool).setForcedDown(source ?? "", false);
        await cloud.makeWhole();
        await cloud.expectCleanAudit();
        expect(await cell.holders(id)).toEqual([after.host]);
        return missed.map(() => "evacuate");
      };
      await untilNoneIsMissed(["all"], async () => [await run()]);
    },
    ROUNDS_MS,
  );

  test("a host that is forced down while its agent is alive is evacuated, and its guest does not continue to run", async () => {
    const id = await cloud.compute.boot({ flavor: small });
    const source = (await cloud.compute.endedOne(id))["OS-EXT-SRV-ATTR:host"] ?? "";
    await forceDown(source, true);
    await act(id, "evacuate", {});
    const after = await settledElsewhere(id, source);
    expect(after).toMatchObject({ status: "ACTIVE", fault: null });
    await eventually("one guest", async () => (await placesOf(id)).join() === after.host, PATIENT);
    await forceDown(source, false);
    await cloud.makeWhole();
    await cloud.expectCleanAudit();
    expect(await cell.holders(id)).toEqual([after.host]);
  });

  test("a host whose agent is only paused is not evacuated, and its servers do not run twice", async () => {
    const id = await cloud.compute.boot({ flavor: small });
    const source = (await cloud.compute.endedOne(id))["OS-EXT-SRV-ATTR:host"] ?? "";
    const agent = cell.agents.find(({ hosts }) => hosts.includes(source));
    agent?.pause();
    try {
      const isDown = async () => (await cell.store.hosts()).some(({ name, up }) => name === source && !up);
      await eventually("the host to be down", isDown, PATIENT);
      const refused = await cloud.compute.call("POST", `/servers/${id}/action`, { evacuate: {} });
      expect([refused.status, await refused.text()]).toEqual([
        409,
        expect.stringContaining(
          `Compute service of ${source} is down, but no operator has stated that the host is fenced`,
        ),
      ]);
    } finally {
      agent?.resume();
    }
    await eventually("it to be up again", async () => (await cell.store.hosts()).every(({ up }) => up), PATIENT);
    expect(await placesOf(id)).toEqual([source]);
    expect(await settled(id)).toMatchObject({ status: "ACTIVE", host: source });
  });
});
