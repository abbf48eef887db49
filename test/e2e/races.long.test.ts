import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Cloud } from "./cloud.ts";
import { LedgerWatch } from "./ledger-watch.ts";

const CREATES = 500;
const ROOM = 300;
const HOSTS = 12;

describe("schedulers side by side", () => {
  let cloud: Cloud;

  beforeAll(async () => {
    // Long times, because hosts that a busy machine keeps silent for a while are not the subject here.
    const conductorEnv = { BERTH_HOST_GRACE: "60s", BERTH_AGENT_UNSEEN: "60s" };
    cloud = await Cloud.start({ schedulers: 4, slotsPerHost: ROOM / HOSTS, conductorEnv });
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  test("when 4 schedulers race 500 creates for room for 300, exactly 300 are ACTIVE and 200 in ERROR, never over capacity", async () => {
    const { compute } = cloud;
    const flavor = await compute.flavor({ "resources:CUSTOM_SLOT": "1" });
    const watches = cloud.cells.map((cell) => new LedgerWatch(cell));
    await Promise.all(watches.map((watch) => watch.start()));
    const servers = await compute.ended(await compute.bootMany(CREATES, { flavor }));
    await Promise.all(watches.map((watch) => watch.stop()));

    const active = servers.filter((server) => server.status === "ACTIVE");
    const refused = servers.filter((server) => server.status === "ERROR");
    expect({ active: active.length, refused: refused.length }).toEqual({ active: ROOM, refused: CREATES - ROOM });
    expect(refused.filter(({ fault }) => !/^No valid host/i.test(fault?.message ?? ""))).toEqual([]);

    expect(watches.flatMap((watch) => watch.violations)).toEqual([]);
    // The watch must have seen changes: the used slots of a host rise from none to all of them, in one step or several.
    expect(watches.reduce((sum, watch) => sum + watch.changes, 0)).toBeGreaterThanOrEqual(HOSTS);
    for (const watch of watches) expect(watch.snapshots).toBeGreaterThan(0);
    const used =
      "select coalesce(sum(used), 0)::int as used from inventories i join resource_classes c on c.id = i.class_id where c.name = 'CUSTOM_SLOT'";
    const usedOfCells = await Promise.all(cloud.cells.map((cell) => cell.query<{ used: number }>(used)));
    expect(usedOfCells.flat().reduce((sum, row) => sum + row.used, 0)).toBe(ROOM);
    await cloud.expectCleanAudit();
  });
});
