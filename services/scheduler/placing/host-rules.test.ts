import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryAggregateStore } from "../../../adapters/memory/api/memory-aggregate-store.ts";
import { MemorySettingsStore } from "../../../adapters/memory/api/memory-settings-store.ts";
import type { HostFilter } from "../../../core/scheduling/filters/host-filter.ts";
import type { StoredSchedulingSettings } from "../../../core/scheduling/scheduling-settings.ts";
import { SCHEDULING_SECTION } from "../../../core/stores/api/settings-store.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { hostName, providerOf, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

const POLL_MS = 1_000;

describe("a scheduler's rules about hosts", () => {
  let rig: SchedulerRig;
  let cell: RigCell;
  let aggregates: MemoryAggregateStore;
  let operatorSettings: MemorySettingsStore;

  beforeEach(async () => {
    rig = new SchedulerRig();
    cell = await rig.addCell("one");
    aggregates = new MemoryAggregateStore({ clock: rig.clock });
    operatorSettings = new MemorySettingsStore();
  });
  afterEach(() => rig.close());

  const start = () => rig.start([cell.open()], { aggregates, operatorSettings });

  async function set(values: StoredSchedulingSettings): Promise<void> {
    const { version } = await operatorSettings.read(SCHEDULING_SECTION);
    await operatorSettings.write(SCHEDULING_SECTION, version, values);
  }

  async function aggregateOf(metadata: Readonly<Record<string, string>>, ...hosts: number[]): Promise<void> {
    const created = await aggregates.create({ uuid: crypto.randomUUID(), name: JSON.stringify(metadata), zone: null });
    if (created.kind !== "written") throw new Error(created.kind);
    await aggregates.setMetadata(created.aggregate.id, metadata);
    for (const host of hosts) await aggregates.addHost(created.aggregate.id, hostName(host));
    const { uuid } = created.aggregate;
    await cell.store
      .hostAdmin()
      .mirrorAggregates(hosts.map((host) => ({ rootProvider: providerOf(host), add: [uuid], remove: [] })));
  }

  /** Places one request and returns its host, or the fault if it was refused. */
  async function place(spec: ServerSpec): Promise<string> {
    await rig.accept([spec]);
    let answer: string | null = null;
    await eventually("the request to be answered", async () => {
      const [[home], [record]] = await Promise.all([cell.store.homes([spec.uuid]), rig.apiStore.requests([spec.uuid])]);
      answer = home?.host ?? record?.fault ?? null;
      return answer !== null;
    });
    return answer ?? "nowhere";
  }

  test("zones of aggregates decide where a server may go, and a zone without hosts is named in the refusal", async () => {
    await cell.addHosts([4, 4, 4]);
    await aggregateOf({ availability_zone: "az-2" }, 2);
    await start();
    expect(await place({ ...rig.wants(1), availabilityZone: "az-2" })).toBe(hostName(2));
    expect(await place({ ...rig.wants(2), availabilityZone: "az-9" })).toContain("No valid host");
  });

  test("enabling or disabling a filter while the scheduler runs takes effect from the next poll on", async () => {
    await cell.addHosts([40, 40]);
    await aggregateOf({ instance_type: "other" }, 1, 2);
    await start();
    expect(await place(rig.wants(1))).toMatch(/^host-/);
    await set({ enabled_filters: ["AggregateTypeAffinityFilter"] });
    let server = 2;
    await eventually("the filter to count", async () => {
      await rig.clock.advance(POLL_MS);
      server += 1;
      return (await place(rig.wants(server))).includes("No valid host");
    });
    await set({ enabled_filters: [] });
    await eventually("the filter to count no more", async () => {
      await rig.clock.advance(POLL_MS);
      server += 1;
      return (await place(rig.wants(server))).startsWith("host-");
    });
  });

  test("servers on a host count for same_host, different_host and the limit on their number", async () => {
    await cell.addHosts([4, 4]);
    await set({
      enabled_filters: ["SameHostFilter", "DifferentHostFilter", "NumInstancesFilter"],
      max_instances_per_host: 2,
    });
    await start();
    const first = await place(rig.wants(1));
    const hint = (name: string) => [{ name, values: [serverId(1)] }];
    expect(await place({ ...rig.wants(2), hints: hint("same_host") })).toBe(first);
    expect(await place({ ...rig.wants(3), hints: hint("different_host") })).not.toBe(first);
    expect(await place({ ...rig.wants(4), hints: hint("same_host") })).toContain("No valid host");
  });

  test("a negative multiplier reverses a weigher for all hosts", async () => {
    await cell.addHosts([8, 2]);
    await set({ host_subset_size: 1, cpu_weight_multiplier: -1 });
    await start();
    expect(await place(rig.wants(1))).toBe(hostName(2));
  });

  test("an aggregate's metadata reverses a weigher for the aggregate's hosts only", async () => {
    await cell.addHosts([8, 8, 4]);
    await set({ host_subset_size: 1 });
    await aggregateOf({ cpu_weight_multiplier: "-1" }, 1, 2);
    await start();
    expect(await place(rig.wants(1))).toBe(hostName(3));
  });

  test("no filter is applied to a forced host", async () => {
    await cell.addHosts([4, 4]);
    await aggregateOf({ instance_type: "other" }, 1, 2);
    await set({ enabled_filters: ["AggregateTypeAffinityFilter"] });
    await start();
    expect(await place({ ...rig.wants(2), requestedHost: hostName(2) })).toContain("No valid host");
    const spec = { ...rig.wants(1), forcedHost: hostName(2) };
    expect(await place(spec)).toBe(hostName(2));
  });

  test("a cloud's own filters are applied along with Nova's, and named in the refusal with their reason", async () => {
    await cell.addHosts([4, 4]);
    const evenOnly: HostFilter = {
      name: "EvenOnly",
      decidedBy: "kind",
      reads: [],
      bind: () => (host) => (Number(host.name.split("-")[1]) % 2 === 0 ? null : "is odd"),
    };
    await rig.start([cell.open()], { filters: [evenOnly] });
    expect(await place(rig.wants(1, 3))).toBe(hostName(2));
    const refused = await place(rig.wants(2, 3));
    expect(refused).toContain("No valid host");
    expect(refused).toContain("is odd");
  });

  test("a cloud's own filter that throws refuses the host, and its error is in the refusal", async () => {
    await cell.addHosts([4]);
    const broken: HostFilter = {
      name: "Broken",
      decidedBy: "kind",
      bind: () => () => {
        throw new TypeError("x.y is not a function");
      },
    };
    await rig.start([cell.open()], { filters: [broken] });
    expect(await place(rig.wants(1))).toContain("Broken failed: x.y is not a function");
  });

  test("two own filters of one name, or one with the name of a Nova filter, are a programmer error", async () => {
    const named = (name: string): HostFilter => ({ name, decidedBy: "kind", bind: () => null });
    await expect(rig.start([], { filters: [named("Mine"), named("Mine")] })).rejects.toThrow("Mine");
    await expect(rig.start([], { filters: [named("ComputeFilter")] })).rejects.toThrow("ComputeFilter");
  });
});
