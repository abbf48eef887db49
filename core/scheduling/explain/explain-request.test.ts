import { describe, expect, it } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { aggregate, type FactsScene, type HostOptions, sceneOf, specWith } from "../../../test/rigs/facts-builders.ts";
import { settingsOf } from "../../../test/rigs/filter-cases.ts";
import { describeSearchRefusal } from "../../candidates/refusal.ts";
import { hostFilters } from "../filters/host-filters.ts";
import type { ChoiceOptions } from "../host-chooser.ts";
import { askedOf } from "../request/asked.ts";
import { PLAIN_CONTEXT } from "../request/request-context.ts";
import { translateRequest } from "../request/translate-request.ts";
import { freeCpu } from "../weighers/free-cpu.ts";
import { freeMemory } from "../weighers/free-memory.ts";
import { type ExplainAsk, explainRequest } from "./explain-request.ts";
import { firstRefusal, HostAsker } from "./host-asker.ts";

const BIG = { VCPU: 8, MEMORY_MB: 8_192, DISK_GB: 100 };
const many = (count: number, name: string, options: HostOptions): Record<string, HostOptions> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}-${index + 1}`, options]));

function askFor(spec: ServerSpec, over: Partial<ExplainAsk> & { readonly choice?: Partial<ChoiceOptions> } = {}) {
  // The zone is left to its filter here, so that the filters have something to do.
  const asked = askedOf({ ...spec, availabilityZone: "" });
  const read = asked && translateRequest(asked, PLAIN_CONTEXT);
  if (read?.kind !== "host-request") throw new Error("the request cannot be asked");
  const filters = hostFilters(settingsOf({ enabled_filters: ["AvailabilityZoneFilter", "DifferentHostFilter"] }));
  const weighers = [
    { weigher: freeMemory, multiplier: 1 },
    { weigher: freeCpu, multiplier: 2 },
  ];
  const choice = { ...{ seed: 1, alternates: 2, spread: 1, spreadTolerance: 0 }, spec, filters, weighers };
  const options = { ...choice, ...over.choice };
  return { hostRequest: read.hostRequest, hostsMax: 3, missesMax: 5, count: 1, ...over, options };
}
const explain = (scene: FactsScene, spec: ServerSpec, over: Parameters<typeof askFor>[1] = {}) =>
  explainRequest([scene], askFor(spec, over));
const wordsOf = (steps: ReturnType<typeof explain>["funnel"]["steps"]) =>
  steps.map(({ step, left, removed }) => {
    const why = removed.map(({ refusal, trees }) => `${trees} ${describeSearchRefusal(refusal)}`).join(", ");
    return `${step} ${left}${why && `: ${why}`}`;
  });

/** Each step removes a different number of hosts. */
const neighbour = specWith(7);
const funnelScene = () =>
  sceneOf(
    {
      ...many(1, "down", { up: false }),
      ...many(2, "disabled", { disabled: true }),
      ...many(3, "small", { inventories: { ...BIG, MEMORY_MB: 256 } }),
      ...many(4, "plain", {}),
      ...many(1, "occupied", { servers: [neighbour] }),
      ...many(2, "good", {}),
    },
    [aggregate(1, { availability_zone: "az" }, ["occupied-1", "good-1", "good-2"])],
  );
const choosy = specWith(1, {
  availabilityZone: "az",
  hints: [{ name: "different_host", values: [serverId(7)] }],
  extraSpecs: { "resources:MEMORY_MB": "512" },
});

describe("explainRequest", () => {
  it("reports how many hosts each step leaves, and how many each reason removed", () => {
    const { funnel, servers } = explain(funnelScene(), choosy);
    expect(funnel.trees).toBe(13);
    expect(wordsOf(funnel.steps)).toEqual([
      "host 10: 2 disabled, 1 down",
      "placement 7: 3 not enough MEMORY_MB (512 asked for)",
      expect.stringMatching(/^AvailabilityZoneFilter 3: 4 .* \(AvailabilityZoneFilter\)$/),
      expect.stringMatching(/^DifferentHostFilter 2: 1 .* \(DifferentHostFilter\)$/),
      "combination 2",
    ]);
    expect(servers).toHaveLength(1);
    expect([servers[0]?.host, ...(servers[0]?.alternates ?? [])].sort()).toEqual(["good-1", "good-2"]);
  });

  it("adds up cells, each of which has its own funnel", () => {
    const other = { ...sceneOf(many(3, "tiny", { inventories: { ...BIG, VCPU: 0 } })), name: "cell-2" };
    const { funnel } = explainRequest([funnelScene(), other], askFor(choosy));
    expect(funnel.trees).toBe(16);
    expect(funnel.steps.map(({ left }) => left)).toEqual([13, 7, 3, 2, 2]);
    expect(funnel.cells.map(({ cell, trees }) => [cell, trees])).toEqual([
      ["cell-1", 13],
      ["cell-2", 3],
    ]);
  });

  it("names the hosts that lacked least, and what they lacked", () => {
    const scene = sceneOf({
      far: { inventories: { ...BIG, MEMORY_MB: 100, VCPU: 1 } },
      near: { inventories: { ...BIG, MEMORY_MB: 1_000 } },
      nearer: { inventories: { ...BIG, MEMORY_MB: 1_023 } },
      none: { inventories: { VCPU: 8, DISK_GB: 100 } },
    });
    const spec = specWith(1, { extraSpecs: { "resources:MEMORY_MB": "1024", "resources:VCPU": "2" } });
    const { misses, hosts, servers } = explain(scene, spec, { missesMax: 3 });
    expect([...hosts, ...servers]).toEqual([]);
    expect(misses.map(({ host }) => host)).toEqual(["nearer", "near", "none"]);
    expect(misses[0]).toMatchObject({ cell: "cell-1", refusal: { kind: "lacks" } });
    const memory = { suffix: "", resourceClass: "MEMORY_MB", requested: 1_024 };
    expect(misses.map(({ lacks }) => lacks)).toEqual([
      [{ ...memory, free: 1_023, provider: "nearer" }],
      [{ ...memory, free: 1_000, provider: "near" }],
      [{ ...memory, free: 0, provider: null }],
    ]);
  });

  it("reports for the hosts that fit what each weigher adds, in the order in which they would be chosen", () => {
    const scene = sceneOf({
      little: { inventories: { ...BIG, VCPU: 2, MEMORY_MB: 2_048 } },
      most: { inventories: { ...BIG, VCPU: 16, MEMORY_MB: 4_096 } },
      middle: { inventories: { ...BIG, VCPU: 8, MEMORY_MB: 8_192 } },
    });
    const { hosts, servers, misses } = explain(scene, specWith(1), { hostsMax: 2 });
    expect(hosts.map(({ host }) => host)).toEqual(["most", "middle"]);
    for (const { weight, parts } of hosts) {
      const sum = parts.reduce((added, { normalised, multiplier }) => added + normalised * multiplier, 0);
      expect(sum).toBeCloseTo(weight);
    }
    expect(hosts[0]?.parts).toEqual([
      { weigher: "ram", raw: 4_096, normalised: 0.5, multiplier: 1 },
      { weigher: "cpu", raw: 16, normalised: 1, multiplier: 2 },
    ]);
    expect(servers).toEqual([{ cell: "cell-1", host: "most", alternates: ["middle", "little"] }]);
    expect(misses).toEqual([]);
  });

  it("simulates placing several servers beside each other, and leaves the view as it was", () => {
    const scene = sceneOf(many(2, "host", { inventories: { ...BIG, VCPU: 2 } }));
    const free = () => scene.view.column("VCPU" as never)?.free.slice();
    const before = free();
    const spec = specWith(1, { extraSpecs: { "resources:VCPU": "1" } });
    const { servers } = explain(scene, spec, { count: 6 });
    expect(servers.map(({ host }) => host).sort()).toEqual(["host-1", "host-1", "host-2", "host-2"]);
    expect(free()).toEqual(before);
  });
});

describe("HostAsker", () => {
  it("reports every step that a host fails, not only the first", () => {
    const scene = sceneOf({ bad: { disabled: true, inventories: { ...BIG, VCPU: 0 }, servers: [neighbour] } });
    const { host } = explain(scene, choosy, { host: "bad" });
    expect(host?.verdicts.map(({ step, refusal }) => [step, refusal?.kind ?? null])).toEqual([
      ["host", "host-disabled"],
      ["placement", "lacks"],
      ["AvailabilityZoneFilter", "filtered"],
      ["DifferentHostFilter", "filtered"],
    ]);
    expect(host?.lacks).toMatchObject([{ resourceClass: "VCPU", requested: 1, free: 0 }]);
  });

  it("recognises hosts that would do, and says nothing about unknown hosts", () => {
    const scene = funnelScene();
    const { host } = explain(scene, choosy, { host: "good-2" });
    expect(host && firstRefusal(host)).toBeNull();
    expect(explain(scene, choosy, { host: "nobody" }).host).toBeNull();
  });

  it("gives the same first reason for each host as the search of all hosts", () => {
    const scene = funnelScene();
    const { hostRequest } = askFor(choosy);
    const filters = { kind: [], request: [] };
    const asker = new HostAsker(scene, { hostRequest, bound: filters, excludedHosts: new Set() });
    const counted = new Map<string, number>();
    for (const root of scene.view.slots.roots.subarray(0, scene.view.slots.rootCount)) {
      const why = firstRefusal(asker.ask(root));
      const key = why ? describeSearchRefusal(why) : "fits";
      counted.set(key, 1 + (counted.get(key) ?? 0));
    }
    const { steps, trees } = explainRequest([scene], askFor(choosy, { choice: { filters: [] } })).funnel;
    const expected = steps.flatMap(({ removed }) =>
      removed.map((one) => [describeSearchRefusal(one.refusal), one.trees]),
    );
    expect([...counted].sort()).toEqual([...expected, ["fits", 7]].sort());
    expect(trees).toBe(13);
  });
});
