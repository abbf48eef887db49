import { describe, expect, test } from "vitest";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { aggregate, sceneOf, serverRow, specWith } from "../../test/rigs/facts-builders.ts";
import { host, provider } from "../../test/rigs/view-builders.ts";
import { providerUuid } from "../ledger/ids.ts";
import { LedgerView } from "../ledger/ledger-view.ts";
import type { RowChange } from "../ledger/row-change.ts";
import { AggregateIndex } from "./aggregate-index.ts";
import type { HostFacts } from "./host-facts.ts";
import { LiveCellFacts, viewWithFacts } from "./live-cell-facts.ts";

const GROUP = { uuid: "group-1", policy: "affinity", maxServerPerHost: 0 };

function sceneAt(hosts: Parameters<typeof sceneOf>[0], aggregates: Parameters<typeof sceneOf>[1] = []) {
  const scene = sceneOf(hosts, aggregates);
  const rootOf = (name: string) => scene.view.slots.find(providerUuid(name));
  const at = (name: string): HostFacts => scene.facts.at(rootOf(name))!;
  const changesAfter = (act: () => void): number[] | "all" => {
    const mark = scene.view.changes.mark();
    act();
    const roots: number[] = [];
    return scene.view.changes.since(mark, (root) => roots.push(root)) ? roots : "all";
  };
  return { ...scene, rootOf, at, changesAfter };
}

describe("the facts of a cell", () => {
  test("find each host by its root's slot, and none at any other slot", () => {
    const { at, facts, rootOf } = sceneAt({ a: {}, b: {} });
    expect(at("b")).toMatchObject({ name: "b", cell: "cell-1", root: rootOf("b"), zone: "nova", ioOps: 0 });
    expect(facts.at(99)).toBeUndefined();
  });

  test("follow a server from its build through its time on a host to its end", () => {
    const { at, facts } = sceneAt({ a: {}, b: {} });
    const spec = specWith(1, { group: GROUP, imageRef: "image-1" });
    facts.apply(serverRow(spec, "a", { status: "BUILD", taskState: "scheduling" }));
    expect(at("a").servers.get(serverId(1))).toMatchObject({ imageRef: "image-1", group: "group-1", busy: true });
    expect(at("a").ioOps).toBe(1);
    facts.apply(serverRow(spec, "b", { status: "BUILD" }));
    expect([at("a").servers.size, at("a").ioOps, at("b").ioOps]).toEqual([0, 0, 1]);
    expect([...facts.membersOf("group-1")]).toEqual([["b", { servers: 1, settled: 0 }]]);
    facts.apply(serverRow(spec, "b"));
    expect([at("b").servers.size, at("b").ioOps]).toEqual([1, 0]);
    facts.apply(serverRow(spec, null, { status: "DELETED" }));
    expect([at("b").servers.size, facts.serverCount, facts.membersOf("group-1").size]).toEqual([0, 0, 0]);
  });

  test("take every row although their watcher throws, and tell it so", () => {
    const { at, facts, view } = sceneAt({ a: {}, b: {} });
    const fault = new Error("a status that nobody thought of");
    const told: unknown[] = [];
    const fail = () => {
      throw fault;
    };
    facts.watchServers({ serverPut: fail, serverRemoved: fail, failed: (error) => told.push(error) });
    const [first, second] = [specWith(1), specWith(2)];
    viewWithFacts(view, facts).applyAll([serverRow(first, "a"), serverRow(second, "b")]);
    viewWithFacts(view, facts).applyAll([{ kind: "server-removed", uuid: first.uuid }]);
    expect([at("a").servers.size, at("b").servers.size, told]).toEqual([0, 1, [fault, fault, fault]]);
  });

  test("decode a spec again only when it has changed", () => {
    const { at, facts } = sceneAt({ a: {} });
    const before = specWith(1, { imageRef: "before" });
    facts.apply(serverRow(before, "a"));
    const decoded: string[] = [];
    const again = (revision: number) => ({
      ...serverRow(before, "a", { specRevision: revision }),
      spec: () => {
        decoded.push(`${revision}`);
        return specWith(1, { imageRef: "after" });
      },
    });
    facts.apply(again(0));
    expect(decoded).toEqual([]);
    facts.apply(again(1));
    expect(at("a").servers.get(serverId(1))?.imageRef).toBe("after");
  });

  test.each([
    ["image_snapshot", 1],
    ["migrating", 1],
    ["powering-off", 0],
    [null, 0],
  ])("count a server in task state %s as %i I/O operations", (taskState, expected) => {
    const { at, facts } = sceneAt({ a: {} });
    facts.apply(serverRow(specWith(1), "a", { taskState }));
    expect(at("a").ioOps).toBe(expected);
  });

  test("handle rows that come twice, and servers that come before their host", () => {
    const { at, facts, view } = sceneAt({ a: { builds: [specWith(1)] } });
    facts.apply(serverRow(specWith(1), "a", { status: "BUILD" }));
    facts.apply({ kind: "server-removed", uuid: serverId(9) });
    expect([at("a").servers.size, at("a").ioOps]).toEqual([1, 1]);
    facts.apply(serverRow(specWith(2), "late"));
    view.applyAll([...provider("late", {}), host("late", "late")]);
    expect(at("late").servers.size).toBe(1);
  });

  test("tell the view which host changed, and that any host may have changed when aggregates do", () => {
    const { changesAfter, facts, rootOf } = sceneAt({ a: {}, b: {} });
    expect(changesAfter(() => facts.apply(serverRow(specWith(1), "b")))).toEqual([rootOf("b")]);
    expect(changesAfter(() => facts.apply(serverRow(specWith(1), "b")))).toEqual([]);
    expect(changesAfter(() => facts.setAggregates(new AggregateIndex([], "nova")))).toBe("all");
  });

  test("give each host its aggregates by id, and the zone that one of them names", () => {
    const aggregates = [
      aggregate(2, { ssd: "true" }, ["a", "b"]),
      aggregate(1, { availability_zone: "az-1" }, ["a", "x"]),
    ];
    const { at, facts } = sceneAt({ a: {}, b: {}, c: {} }, aggregates);
    expect(at("a").aggregates.map(({ id }) => id)).toEqual([1, 2]);
    expect([at("a").zone, at("b").zone, at("c").zone]).toEqual(["az-1", "nova", "nova"]);
    expect([facts.hasMetadata("ssd"), facts.hasMetadata("hdd")]).toEqual([true, false]);
    facts.setAggregates(new AggregateIndex([], "elsewhere"));
    expect([at("a").aggregates, at("a").zone]).toEqual([[], "elsewhere"]);
  });

  test("know the version that all hypervisors share, until one has another", () => {
    const version = (of: number) => ({ hypervisor: { version: of } });
    const { facts } = sceneAt({ a: version(7), b: version(7) });
    expect(facts.commonHypervisorVersion).toBe(7);
    const put = (name: string, of: number) => facts.apply({ ...host(name, name), ...version(of) } as RowChange);
    put("b", 8);
    expect(facts.commonHypervisorVersion).toBeNull();
    put("a", 8);
    expect(facts.commonHypervisorVersion).toBe(8);
    put("c", 9);
    expect(facts.commonHypervisorVersion).toBeNull();
    facts.apply({ kind: "host-removed", host: "c" });
    expect(facts.commonHypervisorVersion).toBe(8);
    facts.adopt(new LiveCellFacts("cell-1", new LedgerView()));
    expect(facts.commonHypervisorVersion).toBeNull();
  });

  test("are replaced at once by what was loaded beside them, but keep aggregates", () => {
    const { at, facts, view, changesAfter } = sceneAt({ a: { servers: [specWith(1)] } }, [
      aggregate(1, { availability_zone: "az" }, ["a"]),
    ]);
    const load = viewWithFacts(view, facts).beginLoad();
    load.applyAll([...provider("b", {}), host("b", "b"), serverRow(specWith(2), "a")]);
    load.applyAll([...provider("a", {}), host("a", "a"), serverRow(specWith(3), "b")]);
    expect([...at("a").servers.keys()]).toEqual([serverId(1)]);
    expect(changesAfter(() => load.show())).toBe("all");
    expect([...at("a").servers.keys()]).toEqual([serverId(2)]);
    expect([at("a").zone, at("b").zone, at("b").servers.size, facts.serverCount]).toEqual(["az", "nova", 1, 2]);
    facts.apply(serverRow(specWith(2), null));
    expect([at("a").servers.size, facts.serverCount]).toEqual([0, 1]);
  });
});
