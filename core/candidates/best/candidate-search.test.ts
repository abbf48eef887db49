import { describe, expect, it } from "vitest";
import { gpuHost, host, provider, viewOf } from "../../../test/rigs/view-builders.ts";
import { aggregateUuid, providerUuid, type ResourceClass, resourceClass, trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { describeSearchRefusal } from "../refusal.ts";
import { ANY_TREE, type CandidateRequest, OPEN_HOSTS, type RequestGroup, requestGroup } from "../request.ts";
import { CandidateSearch, type SearchOptions } from "./candidate-search.ts";

const VCPU = resourceClass("VCPU");
const MEMORY = resourceClass("MEMORY_MB");
const GPU = resourceClass("CUSTOM_GPU_MILLI");

const want = (resources: Readonly<Record<string, number>>, rest: Partial<RequestGroup> = {}): RequestGroup =>
  requestGroup({
    ...rest,
    resources: new Map(Object.entries(resources).map(([name, amount]) => [name as ResourceClass, amount])),
  });
const request = (groups: readonly RequestGroup[], rest: Partial<CandidateRequest> = {}): CandidateRequest => ({
  groups,
  groupPolicy: "none",
  trees: ANY_TREE,
  limit: 1000,
  ...rest,
});

/** Candidates as text with the amounts of each provider. */
function found(view: LedgerView, asked: CandidateRequest, options: SearchOptions = {}): string[] {
  return [...new CandidateSearch(view, asked, options)].map((candidate) =>
    candidate.items
      .map((item) => `${item.provider}:${item.resourceClass}=${item.amount}`)
      .sort()
      .join(" "),
  );
}
function refused(view: LedgerView, asked: CandidateRequest): Record<string, number> {
  const search = new CandidateSearch(view, asked);
  expect([...search]).toEqual([]);
  return Object.fromEntries(search.refusals().map(({ refusal, trees }) => [describeSearchRefusal(refusal), trees]));
}
const gpuGroups = (count: number, amount = 1000): RequestGroup[] =>
  Array.from({ length: count }, (_, index) => want({ CUSTOM_GPU_MILLI: amount }, { suffix: `${index + 1}` }));

describe("candidate search over flat hosts", () => {
  const flat = viewOf(
    provider("a", { VCPU: 8, MEMORY_MB: 100 }),
    provider("b", { VCPU: 4, MEMORY_MB: 100 }),
    provider("c", { VCPU: 8 }),
  );

  it("finds the hosts with room for every class", () => {
    expect(found(flat, request([want({ VCPU: 5, MEMORY_MB: 10 })]))).toEqual(["a:MEMORY_MB=10 a:VCPU=5"]);
    expect(found(flat, request([want({ VCPU: 4 })]))).toEqual(["a:VCPU=4", "b:VCPU=4", "c:VCPU=4"]);
  });

  it("begins at the given position, so that a limit does not always favour the first trees", () => {
    expect(found(flat, request([want({ VCPU: 1 })], { limit: 2 }), { start: 2 })).toEqual(["c:VCPU=1", "a:VCPU=1"]);
    expect(found(flat, request([want({ VCPU: 1 })], { limit: 1 }), { start: -1 })).toEqual(["c:VCPU=1"]);
  });

  it("counts claims in flight as used", () => {
    flat.reserve("claim", [{ provider: providerUuid("a"), resourceClass: VCPU, amount: 4 }]);
    expect(found(flat, request([want({ VCPU: 5 })]))).toEqual(["c:VCPU=5"]);
    flat.release("claim");
    expect(found(flat, request([want({ VCPU: 5 })]))).toEqual(["a:VCPU=5", "c:VCPU=5"]);
  });

  it("keeps claims in flight through a reload that moves every slot", () => {
    const view = viewOf(provider("a", { VCPU: 8 }));
    view.reserve("claim", [{ provider: providerUuid("a"), resourceClass: VCPU, amount: 4 }]);
    view.adopt(viewOf(provider("z", { VCPU: 8 }), provider("a", { VCPU: 8 })));
    expect(found(view, request([want({ VCPU: 5 })]))).toEqual(["z:VCPU=5"]);
    view.release("claim");
    expect(found(view, request([want({ VCPU: 5 })]))).toEqual(["z:VCPU=5", "a:VCPU=5"]);
  });

  it("respects min_unit, max_unit and step_size", () => {
    const view = viewOf(provider("a", { VCPU: 100 }, { minUnit: 4, maxUnit: 12, stepSize: 4 }));
    const fits = [1, 4, 6, 8, 12, 16].filter((amount) => found(view, request([want({ VCPU: amount })])).length > 0);
    expect(fits).toEqual([4, 8, 12]);
  });

  it("honours required, any-of and forbidden traits, aggregates and in_tree", () => {
    const view = viewOf(
      provider("a", { VCPU: 8 }, { traits: ["X"], aggregates: ["g1"] }),
      provider("b", { VCPU: 8 }, { traits: ["X", "Y"], aggregates: ["g2"] }),
      provider("c", { VCPU: 8 }, { traits: ["Z"] }),
    );
    const hosts = (rest: Partial<RequestGroup>) =>
      found(view, request([want({ VCPU: 1 }, rest)])).map((text) => text[0]);
    for (const suffix of ["", "1"]) {
      expect(hosts({ suffix, requiredTraits: new Set([trait("X")]) })).toEqual(["a", "b"]);
      expect(hosts({ suffix, requiredTraits: new Set([trait("X"), trait("Y")]) })).toEqual(["b"]);
      expect(hosts({ suffix, requiredAny: [new Set([trait("Y"), trait("Z")])] })).toEqual(["b", "c"]);
      expect(hosts({ suffix, forbiddenTraits: new Set([trait("X")]) })).toEqual(["c"]);
      expect(hosts({ suffix, memberOf: [new Set([aggregateUuid("g1"), aggregateUuid("g2")])] })).toEqual(["a", "b"]);
      expect(hosts({ suffix, forbiddenAggregates: new Set([aggregateUuid("g1")]) })).toEqual(["b", "c"]);
      expect(hosts({ suffix, inTree: providerUuid("b") })).toEqual(["b"]);
      expect(hosts({ suffix, inTree: providerUuid("nowhere") })).toEqual([]);
      expect(hosts({ suffix, requiredTraits: new Set([trait("NOBODY_HAS")]) })).toEqual([]);
    }
  });

  it("searches only open hosts when told to, before the limit applies", () => {
    const view = viewOf(
      ["down", "disabled", "stray", "open", "tried"].flatMap((name) => provider(name, { VCPU: 8 })),
      host("h-down", "down", { up: false }),
      host("h-disabled", "disabled", { disabled: true }),
      host("h-open", "open"),
      host("h-tried", "tried"),
    );
    const trees = { ...OPEN_HOSTS, excludedHosts: new Set(["h-tried"]) };
    const search = new CandidateSearch(view, request([want({ VCPU: 1 })], { trees, limit: 1 }));
    expect([...search].map((candidate) => candidate.host)).toEqual(["h-open"]);
    expect(refused(view, request([want({ VCPU: 9 })], { trees }))).toEqual({
      down: 1,
      disabled: 1,
      "no host": 1,
      "not enough VCPU (9 asked for)": 2,
    });
    const both = { ...OPEN_HOSTS, excludedHosts: new Set(["h-tried", "h-open"]) };
    expect(refused(view, request([want({ VCPU: 1 })], { trees: both }))).toMatchObject({ "tried already": 2 });
  });

  it("counts why each host was refused", () => {
    const view = viewOf(
      provider("a", { VCPU: 1, MEMORY_MB: 10 }),
      provider("b", { VCPU: 8, MEMORY_MB: 1 }),
      provider("c", { VCPU: 8, MEMORY_MB: 10 }, { traits: ["BAD"] }),
    );
    expect(
      refused(view, request([want({ VCPU: 2, MEMORY_MB: 2 }, { forbiddenTraits: new Set([trait("BAD")]) })])),
    ).toEqual({
      "not enough VCPU (2 asked for)": 1,
      "not enough MEMORY_MB (2 asked for)": 1,
      "lacking or forbidden traits": 1,
    });
  });

  it("refuses to continue after the view has changed", () => {
    const view = viewOf(provider("a", { VCPU: 8 }), provider("b", { VCPU: 8 }));
    const candidates = new CandidateSearch(view, request([want({ VCPU: 1 })]))[Symbol.iterator]();
    candidates.next();
    view.applyAll(provider("c", { VCPU: 8 }));
    expect(() => candidates.next()).toThrow("has not changed");
  });
});

describe("candidate search over provider trees", () => {
  it("gives one answer for 8 groups over 8 equivalent GPUs, and names a provider for each group", () => {
    const view = viewOf(gpuHost("a", 8));
    for (const groupPolicy of ["none", "isolate"] as const) {
      const candidates = [...new CandidateSearch(view, request([want({ VCPU: 8 }), ...gpuGroups(8)], { groupPolicy }))];
      expect(candidates).toHaveLength(1);
      expect(candidates[0]?.mappings.get("")).toEqual(["a"]);
      const serving = gpuGroups(8).map((group) => candidates[0]?.mappings.get(group.suffix)?.[0]);
      expect(new Set(serving).size).toBe(8);
      expect(candidates[0]?.items).toHaveLength(9);
    }
  });

  it("places 48 groups on 48 equivalent children, and finds without giving up that 48 do not fit on 47", () => {
    for (const groupPolicy of ["none", "isolate"] as const) {
      expect(found(viewOf(gpuHost("a", 48)), request(gpuGroups(48), { groupPolicy }))).toHaveLength(1);
      const short = new CandidateSearch(viewOf(gpuHost("a", 47)), request(gpuGroups(48), { groupPolicy }));
      expect([...short]).toEqual([]);
      expect(short.treesGivenUp).toBe(0);
    }
  });

  it("lets groups share a provider under none but not under isolate", () => {
    const view = viewOf(gpuHost("a", 2));
    expect(found(view, request(gpuGroups(2, 500)))).toEqual([
      "a-gpu0:CUSTOM_GPU_MILLI=1000",
      "a-gpu0:CUSTOM_GPU_MILLI=500 a-gpu1:CUSTOM_GPU_MILLI=500",
    ]);
    expect(found(view, request(gpuGroups(2, 500), { groupPolicy: "isolate" }))).toEqual([
      "a-gpu0:CUSTOM_GPU_MILLI=500 a-gpu1:CUSTOM_GPU_MILLI=500",
    ]);
  });

  it("distinguishes providers with different room, and tries the tightest first", () => {
    const view = viewOf(gpuHost("a", 2), provider("a-half", { CUSTOM_GPU_MILLI: 1000 }, { parent: "a", used: 600 }));
    expect(found(view, request(gpuGroups(1, 300)))).toEqual([
      "a-half:CUSTOM_GPU_MILLI=300",
      "a-gpu0:CUSTOM_GPU_MILLI=300",
    ]);
  });

  it("alternates between trees, so that a tree with many ways does not use up the limit", () => {
    const view = viewOf(gpuHost("a", 4), gpuHost("b", 4));
    const trees = [...new CandidateSearch(view, request(gpuGroups(4, 250), { limit: 4 }))].map(
      (candidate) => candidate.root,
    );
    expect(trees).toEqual(["a", "b", "a", "b"]);
  });

  it("spreads the unnumbered group's classes over providers that together have the traits", () => {
    const view = viewOf(
      provider("root", { MEMORY_MB: 100 }, { traits: ["ON_ROOT"] }),
      provider("numa0", { VCPU: 8 }, { parent: "root", traits: ["N0"] }),
      provider("numa1", { VCPU: 8 }, { parent: "root", traits: ["N1"] }),
    );
    expect(found(view, request([want({ VCPU: 4, MEMORY_MB: 10 })]))).toEqual([
      "numa0:VCPU=4 root:MEMORY_MB=10",
      "numa1:VCPU=4 root:MEMORY_MB=10",
    ]);
    const both = want({ VCPU: 4, MEMORY_MB: 10 }, { requiredTraits: new Set([trait("ON_ROOT"), trait("N1")]) });
    expect(found(view, request([both]))).toEqual(["numa1:VCPU=4 root:MEMORY_MB=10"]);
    const not = want({ VCPU: 4, MEMORY_MB: 10 }, { forbiddenTraits: new Set([trait("N1")]) });
    expect(found(view, request([not]))).toEqual(["numa0:VCPU=4 root:MEMORY_MB=10"]);
    expect(found(view, request([{ ...both, suffix: "1" }]))).toEqual([]);
  });

  it("counts a root's aggregate for the whole tree in the unnumbered group only", () => {
    const view = viewOf(
      provider("root", { MEMORY_MB: 1 }, { aggregates: ["g"] }),
      provider("child", { VCPU: 8 }, { parent: "root" }),
    );
    const memberOf = [new Set([aggregateUuid("g")])];
    expect(found(view, request([want({ VCPU: 1 }, { memberOf })]))).toEqual(["child:VCPU=1"]);
    expect(found(view, request([want({ VCPU: 1 }, { memberOf, suffix: "1" })]))).toEqual([]);
    expect(found(view, request([want({ VCPU: 1 }, { forbiddenAggregates: memberOf[0]! })]))).toEqual([]);
  });

  it("adds up the amounts on one provider and compares the sum with max_unit", () => {
    const view = viewOf(provider("a", { VCPU: 10 }, { maxUnit: 6 }));
    const groups = (amount: number) => [want({ VCPU: amount }), want({ VCPU: amount }, { suffix: "1" })];
    expect(found(view, request(groups(3)))).toEqual(["a:VCPU=6"]);
    expect(found(view, request(groups(4)))).toEqual([]);
  });

  it("reports groups that fit one by one but not together", () => {
    const view = viewOf(
      provider("a", { MEMORY_MB: 1 }),
      provider("a1", { CUSTOM_GPU_MILLI: 1000 }, { parent: "a", traits: ["X", "Y"] }),
      provider("a2", { CUSTOM_GPU_MILLI: 1000 }, { parent: "a" }),
    );
    const groups = ["X", "Y"].map((name) =>
      want({ CUSTOM_GPU_MILLI: 1000 }, { suffix: `_${name}`, requiredTraits: new Set([trait(name)]) }),
    );
    for (const groupPolicy of ["none", "isolate"] as const) {
      expect(refused(view, request(groups, { groupPolicy }))).toEqual({ "request groups do not fit together": 1 });
    }
  });

  it("reports when it reaches its bound of work", () => {
    const sizes = [701, 653, 599, 547, 503, 467, 431, 397, 367, 347, 331, 313];
    const view = viewOf(gpuHost("a", 6));
    const groups = sizes.map((amount, index) => want({ CUSTOM_GPU_MILLI: amount }, { suffix: `${index + 1}` }));
    const search = new CandidateSearch(view, request(groups), { workPerTree: 50 });
    expect([...search]).toEqual([]);
    expect(search.treesGivenUp).toBe(1);
    expect(search.refusals()).toEqual([{ refusal: { kind: "gave-up" }, trees: 1 }]);
  });

  it("reports a class that no provider offers as a reason and not as an error", () => {
    expect(refused(viewOf(gpuHost("a", 1)), request([want({ [GPU]: 1, [MEMORY]: 1, FPGA: 1 })]))).toEqual({
      "not enough FPGA (1 asked for)": 1,
    });
  });
});
