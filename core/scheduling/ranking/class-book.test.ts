import { expect, test } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { aggregate, sceneOf, specWith } from "../../../test/rigs/facts-builders.ts";
import { settingsOf } from "../../../test/rigs/filter-cases.ts";
import { requestGroup } from "../../candidates/request.ts";
import { resourceClass } from "../../ledger/ids.ts";
import { AggregateIndex } from "../aggregate-index.ts";
import { CellFilters } from "../filters/cell-filters.ts";
import type { HostRequest } from "../host-request.ts";
import type { AbsoluteWeigher, WeighedBy } from "../weighers/weigher.ts";
import { WeigherSet } from "../weighers/weigher-set.ts";
import { ClassBook, DEFAULT_CLASS_LIMITS } from "./class-book.ts";

const nothing = (name: string): AbsoluteWeigher => ({ name, kind: "absolute", addTo() {} });
const weighers: readonly WeighedBy[] = new WeigherSet({
  buildFailure: nothing("build_failure"),
  ownSlice: nothing("own_slice"),
  recentPicks: nothing("recent_picks"),
  gpuFragmentation: nothing("gpu_fragmentation"),
}).of(settingsOf({}));
const hostRequest: HostRequest = {
  groups: [requestGroup({ resources: new Map([[resourceClass("VCPU"), 1]]) })],
  groupPolicy: "none",
};
const ofGroup = (uuid: string, policy: string): ServerSpec =>
  specWith(1, { group: { uuid, policy, maxServerPerHost: 1 } });
const ofImage = (imageRef: string): ServerSpec => specWith(1, { imageRef, imageProperties: { os: imageRef } });

test("requests of one kind share a class, regardless of their images, projects and hard groups", () => {
  const scene = sceneOf({ a: { servers: [ofImage("old")] }, b: {} });
  const book = new ClassBook(DEFAULT_CLASS_LIMITS);
  const take = (spec: ServerSpec) =>
    book.classOf({ hostRequest, spec, filters: [], weighers }, [scene], new CellFilters([], null, [scene]));
  const plain = take(specWith(1));
  for (const spec of [
    ...[ofImage("one"), ofImage("two"), specWith(2, { projectId: "other" })],
    ...[ofGroup("g1", "anti-affinity"), ofGroup("g2", "affinity")],
  ]) {
    expect(take(spec)).toBe(plain);
  }
  expect(take(ofGroup("g1", "soft-affinity"))).not.toBe(take(ofGroup("g2", "soft-affinity")));
  expect(plain.timesMade).toBe(1);

  // A weigher that is off by default counts as soon as an aggregate sets its multiplier.
  const multiplier = { image_props_weight_multiplier: "2" };
  const [first] = [scene.facts];
  first.setAggregates(new AggregateIndex([aggregate(1, multiplier, ["a"])], "nova"));
  const old = take(ofImage("old"));
  expect(old).not.toBe(take(ofImage("one")));
  const [ranking] = old.rankings;
  const weightOf = (host: string) => ranking!.weightOf(scene.view.hosts.slotOf(host));
  expect(weightOf("a")).toBeGreaterThan(weightOf("b") + 1);
});

test("a scheduler of many hosts keeps more classes than the memory that is allowed in any case", () => {
  const hosts = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`host-${index}`, {}]));
  const scene = sceneOf(hosts);
  const sizeWith = (memoryBytesOfHost: number): number => {
    const book = new ClassBook({ classesMax: 100, memoryBytesMax: 1, memoryBytesOfHost });
    for (const amount of [1, 2, 3]) {
      const groups = [requestGroup({ resources: new Map([[resourceClass("VCPU"), amount]]) })];
      const ask = { hostRequest: { groups, groupPolicy: "none" as const }, spec: specWith(1), filters: [], weighers };
      book.classOf(ask, [scene], new CellFilters([], null, [scene]));
    }
    return book.size;
  };
  expect([0, 10_000].map(sizeWith)).toEqual([1, 3]);
});
