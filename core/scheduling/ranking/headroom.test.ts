import { expect, test } from "vitest";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import { BoundRequest } from "../../candidates/bound/bound-request.ts";
import { OPEN_HOSTS, requestGroup } from "../../candidates/request.ts";
import { providerUuid, resourceClass } from "../../ledger/ids.ts";
import { headroomOf } from "./headroom.ts";

/** By suffix: the resources of each group. */
function asks(groups: Readonly<Record<string, Readonly<Record<string, number>>>>) {
  return {
    groupPolicy: "none" as const,
    trees: OPEN_HOSTS,
    limit: 1,
    groups: Object.entries(groups).map(([suffix, resources]) =>
      requestGroup({
        suffix,
        resources: new Map(Object.entries(resources).map(([name, amount]) => [resourceClass(name), amount])),
      }),
    ),
  };
}

test("the headroom of a host is how often the request fits in every class and on every suitable provider, up to four times", () => {
  const view = viewOf([
    ...provider("full", { VCPU: 3, MEMORY_MB: 64 }),
    ...provider("roomy", { VCPU: 4, MEMORY_MB: 64 }),
    ...provider("scraps", { VCPU: 8, MEMORY_MB: 64 }),
    ...["0", "1", "2", "3"].flatMap((card) => provider(`scraps-${card}`, { VGPU: 3 }, { parent: "scraps" })),
    ...provider("cards", { VCPU: 8, MEMORY_MB: 64 }),
    ...["0", "1"].flatMap((card) => provider(`cards-${card}`, { VGPU: 4 }, { parent: "cards" })),
  ]);
  const spare = (groups: Parameters<typeof asks>[0]) => {
    const tell = headroomOf(new BoundRequest(view, asks(groups)));
    return ["full", "roomy", "scraps", "cards"].map((host) => tell(view.slots.find(providerUuid(host))));
  };
  expect(spare({ "": { VCPU: 2, MEMORY_MB: 8 } })).toEqual([1, 2, 4, 4]);
  expect(spare({ "": { VCPU: 1 } })).toEqual([3, 4, 4, 4]);
  expect(spare({ "": { VCPU: 1, MEMORY_MB: 33 } })).toEqual([1, 1, 1, 1]);
  // Room counts only where both of two equivalent groups fit at the same time.
  expect(spare({ _A: { VCPU: 2 }, _B: { VCPU: 2 } })).toEqual([0, 1, 2, 2]);
  // The same holds for two groups that differ.
  expect(spare({ _A: { VCPU: 1 }, _B: { VCPU: 2 } })).toEqual([1, 1, 2, 2]);
  // The free remainders of several cards do not count as a card.
  expect(spare({ "": { VCPU: 1 }, _GPU: { VGPU: 4 } })).toEqual([0, 0, 0, 2]);
});
