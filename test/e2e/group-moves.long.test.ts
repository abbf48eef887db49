import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };
/** Long enough that other servers request its hosts while it moves. */
const SLOW = { duration_ms: 1_000, hand_off_ms: 2_000 } as const;

interface Place {
  readonly host: string | null;
  readonly status: string;
}

describe("servers of an anti-affinity group that move", () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let flavor: string;
  let group: string;
  let hosts: readonly string[];

  beforeAll(async () => {
    cloud = await Cloud.start({ cells: ["cell-1"], schedulers: 2 });
    cell = cloud.cell("cell-1");
    flavor = await cloud.compute.flavor();
    hosts = cell.agents.flatMap((agent) => agent.hosts);
  });
  afterAll(() => cloud?.close());
  beforeEach(async () => {
    await cloud.beforeTest();
    const body = { server_group: { name: "apart", policy: "anti-affinity" } };
    const created = await cloud.compute.call("POST", "/os-server-groups", body);
    group = ((await created.json()) as { server_group: { id: string } }).server_group.id;
  });

  const act = async (id: string, action: string, value: unknown = null) => {
    const answer = await cloud.compute.call("POST", `/servers/${id}/action`, { [action]: value });
    if (answer.status >= 300) throw new Error(`${action}: ${answer.status} ${await answer.text()}`);
  };
  /** Boots on this host only, without asking the filters, or on any host when none is given. */
  const boot = (host?: string) =>
    cloud.compute.boot({ flavor, fake: SLOW, group, ...(host === undefined ? {} : { zone: `nova:${host}` }) });
  const bootedAt = async (host: string): Promise<string> => {
    const id = await boot(host);
    expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": host });
    return id;
  };
  /** Resolves once a move of the server has claimed the host. */
  const hasClaimed = (id: string, host: string) =>
    eventually(
      "the move to have claimed its destination",
      async () => {
        const [move] = await cell.store.migrations({ serverUuid: id, limit: 1 });
        return move?.destHost === host;
      },
      PATIENT,
    );
  const settled = (id: string): Promise<Place> =>
    eventually(
      "the operation's end",
      async () => {
        const [server] = await cell.store.servers([id]);
        return server !== undefined && server.taskState === null && server.status !== "BUILD" && server;
      },
      PATIENT,
    );
  const removeAll = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) await cloud.compute.delete(id);
    await cloud.compute.gone(ids);
  };
  test.each([
    ["a live migration", "os-migrateLive", (host: string) => ({ host, block_migration: "auto" }), "ACTIVE"],
    ["a cold migration", "migrate", (host: string) => ({ host }), "VERIFY_RESIZE"],
  ] as const)("nobody boots on the host that %s is going to", async (_name, action, asked, status) => {
    const [source, destination] = hosts as [string, string];
    const mover = await bootedAt(source);
    await act(mover, action, asked(destination));
    await hasClaimed(mover, destination);
    const newcomer = await boot(destination);
    expect(await settled(mover)).toMatchObject({ status, host: destination });
    const refused = await cloud.compute.endedOne(newcomer);
    expect(refused).toMatchObject({
      status: "ERROR",
      fault: { message: expect.stringContaining("No valid host was found") },
    });
    await cloud.expectCleanAudit();
    await removeAll([mover, newcomer]);
  });

  test("of two live migrations to one host, one succeeds", async () => {
    const [first, second, destination] = hosts as [string, string, string];
    const movers = [await bootedAt(first), await bootedAt(second)];
    await Promise.all(movers.map((id) => act(id, "os-migrateLive", { host: destination, block_migration: "auto" })));
    await eventually(
      "both moves to have ended",
      async () => {
        const answers = await Promise.all(
          movers.map((id) => cloud.compute.call("GET", `/servers/${id}/os-instance-actions`)),
        );
        const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as {
          instanceActions: { action: string; message: string | null }[];
        }[];
        const ids = movers.map((id) => cell.store.migrations({ serverUuid: id, inFlightOnly: true, limit: 1 }));
        const open = (await Promise.all(ids)).flat().length;
        const refused = bodies.filter(({ instanceActions }) =>
          instanceActions.some(({ action, message }) => action === "live-migration" && message !== null),
        ).length;
        const moved = (await cell.store.servers(movers)).filter(({ host }) => host === destination).length;
        return open === 0 && refused === 1 && moved === 1;
      },
      PATIENT,
    );
    const places = (await Promise.all(movers.map(settled))).map(({ host }) => host);
    expect(new Set(places).size).toBe(2);
    expect(places).toContain(destination);
    await cloud.expectCleanAudit();
    await removeAll(movers);
  });

  test("no server boots on the source of a resize, and the revert finds it free", async () => {
    const [source] = hosts as [string];
    const larger = await cloud.compute.flavor();
    const mover = await bootedAt(source);
    await act(mover, "resize", { flavorRef: larger });
    await eventually(
      "the resize to wait for its confirmation",
      async () => (await cell.store.servers([mover]))[0]?.status === "VERIFY_RESIZE",
      PATIENT,
    );
    const early = await boot(source);
    // Nothing is in progress, and the resize may wait for days, so the boot gets a final answer.
    expect(await cloud.compute.endedOne(early)).toMatchObject({ status: "ERROR" });
    await act(mover, "revertResize");
    const meanwhile = await boot(source);
    expect(await settled(mover)).toMatchObject({ status: "ACTIVE", host: source });
    expect(await cloud.compute.endedOne(meanwhile)).toMatchObject({ status: "ERROR" });
    await cloud.expectCleanAudit();
    await removeAll([mover, early, meanwhile]);
  });
});
