import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryAggregateStore } from "../../../adapters/memory/api/memory-aggregate-store.ts";
import { MemorySettingsStore } from "../../../adapters/memory/api/memory-settings-store.ts";
import { trait } from "../../../core/ledger/ids.ts";
import type { CellFacts } from "../../../core/scheduling/host-facts.ts";
import { SCHEDULING_SECTION } from "../../../core/stores/api/settings-store.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { hostName, hostTree, providerOf, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

let rig: SchedulerRig;
let cell: RigCell;
beforeEach(async () => {
  rig = new SchedulerRig();
  cell = await rig.addCell("one");
});
afterEach(() => rig.close());

/** Places the requests and returns each one's host, or its fault if it was refused. */
async function placed(specs: readonly ServerSpec[]): Promise<(string | undefined)[]> {
  await rig.accept(specs);
  await eventually("the messages to be acknowledged", () => rig.acked.length >= specs.length);
  const servers = await cell.store.servers(specs.map(({ uuid }) => uuid));
  const records = await rig.apiStore.requests(specs.map(({ uuid }) => uuid));
  return specs.map(
    ({ uuid }) =>
      servers.find((server) => server.uuid === uuid)?.host ??
      records.find((record) => record.spec.uuid === uuid)?.fault ??
      undefined,
  );
}
const HOSTS = 12;
/** Gives the root provider of a host a trait. */
async function giveTrait(host: number, name: string): Promise<void> {
  const tree = hostTree(host, 8);
  await cell.ledger.putTrees([
    { ...tree, providers: tree.providers.map((root) => ({ ...root, traits: new Set([trait(name)]) })) },
  ]);
}

describe("requests that are limited to some hosts", () => {
  test("a request that names a host gets only that host, with filters or without, and an unknown host is reported", async () => {
    await cell.addHosts(Array.from({ length: HOSTS }, () => 8));
    await rig.start([cell.open()]);
    const hosts = await placed([
      { ...rig.wants(1), requestedHost: hostName(7) },
      { ...rig.wants(2), forcedHost: hostName(9) },
      { ...rig.wants(3), requestedHost: "host-99" },
    ]);
    expect(hosts.slice(0, 2)).toEqual([hostName(7), hostName(9)]);
    expect(hosts[2]).toContain(`Of ${HOSTS} hosts: ${HOSTS} not the requested host`);
    expect(await rig.state(serverId(3))).toBe("failed");
  });

  test("a host whose root provider has the trait of disabled hosts gets no servers", async () => {
    await cell.addHosts([8, 8]);
    await giveTrait(1, "COMPUTE_STATUS_DISABLED");
    await rig.start([cell.open()]);
    expect(await placed([rig.wants(1), rig.wants(2), rig.wants(3)])).toEqual([2, 2, 2].map(hostName));
  });

  test("a request with an extra spec that cannot be understood fails and names the extra spec", async () => {
    await cell.addHosts([8]);
    await rig.start([cell.open()]);
    const [why] = await placed([rig.wants(1, 1, { "hw:numa_nodes": "99" })]);
    expect(why).toContain("extra spec hw:numa_nodes=99 must be a whole number");
  });

  test("only hosts of the requested zone and of the project's own aggregates are considered", async () => {
    await cell.addHosts([8, 8, 8, 8]);
    const aggregates = new MemoryAggregateStore({ clock: rig.clock });
    const [east, own] = ["00000000-0000-4000-8000-00000000000e", "00000000-0000-4000-8000-00000000000f"] as const;
    await aggregates.create({ uuid: east, name: "east", zone: "east" });
    await aggregates.create({ uuid: own, name: "own", zone: null });
    await aggregates.setMetadata(2, { filter_tenant_id: "vip" });
    for (const [id, uuid, host] of [
      [1, east, 2],
      [1, east, 3],
      [2, own, 3],
      [2, own, 4],
    ] as const) {
      await aggregates.addHost(id, hostName(host));
      await cell.store.hostAdmin().mirrorAggregates([{ rootProvider: providerOf(host), add: [uuid], remove: [] }]);
    }
    const settings = new MemorySettingsStore();
    await settings.write(SCHEDULING_SECTION, 0, { limit_tenants_to_placement_aggregate: true });
    await rig.start([cell.open()], { aggregates, operatorSettings: settings });
    const vip = (spec: ServerSpec) => ({ ...spec, projectId: "vip" });
    const zone = (spec: ServerSpec, availabilityZone: string) => ({ ...spec, availabilityZone });
    const hosts = await placed([
      zone(vip(rig.wants(1)), "east"),
      zone(vip(rig.wants(2)), "nova"),
      zone(rig.wants(3), "west"),
    ]);
    expect(hosts.slice(0, 2)).toEqual([hostName(3), hostName(4)]);
    expect(hosts[2]).toContain("4 outside the requested aggregates");
  });

  test("a cell that is added later knows at once to which projects its hosts are closed", async () => {
    const aggregates = new MemoryAggregateStore({ clock: rig.clock });
    await aggregates.create({ uuid: "00000000-0000-4000-8000-00000000000f", name: "own", zone: null });
    await aggregates.setMetadata(1, { filter_tenant_id: "vip" });
    let facts: CellFacts | undefined;
    const openCell = async () => {
      const opened = later.open();
      facts = opened.facts;
      return { ...opened, close: async () => undefined };
    };
    await rig.start([cell.open()], { aggregates, openCell }, { settingsPollMs: 3_600_000 });
    const later = await rig.addCell("two");
    await eventually("the cell to be opened", () => {
      rig.clock.advance(1_000);
      return facts !== undefined;
    });
    await eventually("its facts to know", () => facts?.hasMetadata("filter_tenant_id") === true);
  });
});
