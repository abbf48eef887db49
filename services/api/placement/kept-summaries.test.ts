import { expect, test } from "vitest";
import { providerUuid, resourceClass, trait } from "../../../core/ledger/ids.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import fc from "../../../test/rigs/property.ts";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import type { PlacementCall } from "./http.ts";
import { Microversion } from "./microversion.ts";
import { presentCandidates } from "./present-candidates.ts";
import { readCandidateRequest } from "./request-groups.ts";
import { createViewCandidates } from "./view-candidates.ts";

const version = new Microversion(39);

async function answer(view: ReturnType<typeof viewOf>, limit: number): Promise<unknown> {
  const source = createViewCandidates(() => [{ view, source: { waitUntilSeen: async () => true } }], {
    strategy: "depth-first",
    candidatesMax: -1,
    stepsMax: 100_000,
    freshnessDeadlineMs: 1,
  });
  const asked = readCandidateRequest({
    query: new URLSearchParams(`resources=VCPU:1&limit=${limit}`),
    version,
  } as PlacementCall);
  const outcome = await source.candidates(asked, 0, presentCandidates.bind(null, version, asked));
  if (outcome.kind !== "found") throw new Error(outcome.kind);
  const parsed: unknown = JSON.parse(Buffer.from(outcome.presented.bytes()).toString());
  outcome.presented.release();
  return parsed;
}

const trees = Array.from({ length: 40 }, (_, at) => [
  ...provider(`host${at}`, { VCPU: 8 }),
  ...provider(`gpu${at}`, { VGPU: 1 }, { parent: `host${at}` }),
]).flat();
const put = (
  change: Omit<Extract<RowChange, { kind: "provider-put" }>, "kind" | "name" | "generation">,
): RowChange => ({
  kind: "provider-put",
  name: change.uuid,
  generation: 1,
  ...change,
});
const [gpu3, host5] = [providerUuid("gpu3"), providerUuid("host5")];

test("summaries show changes since the previous answer: usage, traits, another tree, and removal", async () => {
  const rows: RowChange[] = [{ kind: "class-known", resourceClass: resourceClass("VCPU") }, ...trees];
  const view = viewOf(rows);
  const changes: readonly (readonly RowChange[])[] = [
    [],
    provider("host7", { VCPU: 8 }, { used: 3 }),
    [{ kind: "trait-added", provider: providerUuid("gpu9"), trait: trait("CUSTOM_NEW") }],
    [put({ uuid: gpu3, parent: host5, root: host5 })],
    [{ kind: "inventory-removed", provider: gpu3, resourceClass: resourceClass("VGPU") }],
    [{ kind: "provider-removed", uuid: gpu3 }],
    provider("late", { VCPU: 2 }),
    Array.from({ length: 100 }, (_, at) => provider(`many${at}`, { VCPU: 1 })).flat(),
    provider("host0", { VCPU: 16, MEMORY_MB: 5 }),
  ];
  for (const change of changes) {
    view.applyAll(change);
    rows.push(...change);
    for (const limit of [1_000, 7, 30]) expect(await answer(view, limit)).toEqual(await answer(viewOf(rows), limit));
  }
});

const [roots, children] = ["r", "c"].map((kind) => [0, 1, 2].map((at) => providerUuid(`${kind}${at}`))) as [
  ReturnType<typeof providerUuid>[],
  ReturnType<typeof providerUuid>[],
];
const someProvider = fc.constantFrom(...roots, ...children);
/** The last name of a class that is renamed. Names are unique in a ledger's database, so each one is given once (`named`). */
const NEW_NAME = resourceClass("CUSTOM_Z");
const named = (rows: readonly RowChange[], at: number): readonly RowChange[] =>
  rows.map((row) =>
    row.kind === "class-renamed" && row.to === NEW_NAME ? { ...row, to: resourceClass(`${NEW_NAME}${at}`) } : row,
  );
/** Random changes of three hosts and of three providers that move between them. */
const someRows: fc.Arbitrary<readonly RowChange[]> = fc.oneof(
  fc
    .record({ uuid: fc.constantFrom(...children), root: fc.constantFrom(...roots) })
    .map(({ uuid, root }) => [
      ...provider(root, { VCPU: 4 }),
      ...provider(uuid, { VCPU: 2, CUSTOM_X: 1 }, { parent: root }),
    ]),
  fc.constantFrom(...children).map((uuid) => [{ kind: "provider-removed" as const, uuid }]),
  // A host is removed with everything below it, and with its slots.
  fc
    .constantFrom(...roots)
    .map((uuid) => [...children, uuid].map((gone) => ({ kind: "provider-removed" as const, uuid: gone }))),
  fc
    .record({ uuid: someProvider, vcpus: fc.integer({ min: 1, max: 9 }), used: fc.integer({ min: 0, max: 1 }) })
    .map(({ uuid, vcpus, used }) => provider(uuid, { VCPU: vcpus, CUSTOM_X: 1 }, { used }).slice(1)),
  someProvider.map((uuid) => [
    { kind: "inventory-removed" as const, provider: uuid, resourceClass: resourceClass("CUSTOM_X") },
  ]),
  fc
    .record({ kind: fc.constantFrom("trait-added" as const, "trait-removed" as const), provider: someProvider })
    .map((change) => [{ ...change, trait: trait("CUSTOM_T") }]),
  fc.constant([
    { kind: "class-renamed" as const, from: resourceClass("CUSTOM_X"), to: resourceClass("CUSTOM_Y") },
    { kind: "class-renamed" as const, from: resourceClass("CUSTOM_Y"), to: resourceClass("CUSTOM_X") },
    { kind: "class-renamed" as const, from: resourceClass("CUSTOM_X"), to: NEW_NAME },
  ]),
);

test("kept summaries equal those of a new view, whatever changed between two answers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(someRows, fc.boolean()), { maxLength: 40 }), async (steps) => {
      const rows: RowChange[] = [{ kind: "class-known", resourceClass: resourceClass("VCPU") }];
      for (const root of roots) rows.push(...provider(root, { VCPU: 4 }));
      const view = viewOf(rows);
      for (const [at, [some, asks]] of steps.entries()) {
        const change = named(some, at);
        view.applyAll(change);
        rows.push(...change);
        if (asks) expect(await answer(view, 50)).toEqual(await answer(viewOf(rows), 50));
      }
    }),
  );
});
