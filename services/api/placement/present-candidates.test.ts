import { describe, expect, test } from "vitest";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import type { PlacementCall } from "./http.ts";
import { Microversion } from "./microversion.ts";
import { presentCandidates } from "./present-candidates.ts";
import { readCandidateRequest } from "./request-groups.ts";
import { createViewCandidates } from "./view-candidates.ts";

const names = ["VCPU", "MEMORY_MB", "VGPU"].map((resourceClass) => ({ kind: "class-known", resourceClass }) as never);
const view = viewOf(
  names,
  provider("host", { VCPU: 8, MEMORY_MB: 64 }, { traits: ["CUSTOM_B", "HW_A"], used: 2 }),
  provider("gpu1", { VGPU: 1 }, { parent: "host" }),
  provider("gpu2", { VGPU: 1 }, { parent: "host" }),
);
const source = createViewCandidates(() => [{ view, source: { waitUntilSeen: async () => true } }], {
  strategy: "depth-first",
  candidatesMax: -1,
  stepsMax: 1_000,
  freshnessDeadlineMs: 1,
});

async function answer(query: string, minor: number): Promise<unknown> {
  const version = new Microversion(minor);
  // Nothing else of a call is looked at.
  const asked = readCandidateRequest({ query: new URLSearchParams(query), version } as PlacementCall);
  const outcome = await source.candidates(asked, 0, presentCandidates.bind(null, version, asked));
  if (outcome.kind !== "found") throw new Error(outcome.kind);
  return JSON.parse(Buffer.from(outcome.presented.bytes()).toString());
}

describe("allocation candidates", () => {
  test("are at first a list of providers, with the requested classes", async () => {
    expect(await answer("resources=VCPU:2", 10)).toEqual({
      allocation_requests: [{ allocations: [{ resource_provider: { uuid: "host" }, resources: { VCPU: 2 } }] }],
      provider_summaries: { host: { resources: { VCPU: { capacity: 8, used: 2 } } } },
    });
  });

  test("of one provider name it once, with the amounts of all its groups", async () => {
    expect(await answer("resources=VCPU:1,MEMORY_MB:4&resources1=VCPU:2&group_policy=none", 34)).toMatchObject({
      allocation_requests: [
        {
          allocations: { host: { resources: { VCPU: 3, MEMORY_MB: 4 } } },
          mappings: { "": ["host"], "1": ["host"] },
        },
      ],
    });
  });

  test("have mappings from 1.34 on, with each group's provider", async () => {
    const query = "resources=VCPU:1&resources1=VGPU:1&resources_x=VGPU:1&group_policy=isolate";
    const { allocation_requests: requests } = (await answer(query, 39)) as { allocation_requests: unknown[] };
    expect(requests).toHaveLength(2);
    expect(requests).toContainEqual({
      allocations: {
        host: { resources: { VCPU: 1 } },
        gpu1: { resources: { VGPU: 1 } },
        gpu2: { resources: { VGPU: 1 } },
      },
      mappings: { "": ["host"], "1": ["gpu1"], _x: ["gpu2"] },
    });
    const before = (await answer("resources=VCPU:1&resources1=VGPU:1&group_policy=none", 33)) as typeof requests;
    expect(JSON.stringify(before)).not.toContain("mappings");
  });

  test("have summaries of whole trees: from 1.17 on with traits, from 1.27 on with all classes, from 1.29 on with parents and roots", async () => {
    const gpu = { resources: { VGPU: { capacity: 1, used: 0 } }, traits: [], parent_provider_uuid: "host" };
    expect(await answer("resources=VCPU:1", 39)).toMatchObject({
      provider_summaries: {
        host: {
          resources: { VCPU: { capacity: 8, used: 2 }, MEMORY_MB: { capacity: 64, used: 2 } },
          traits: ["HW_A", "CUSTOM_B"],
          parent_provider_uuid: null,
          root_provider_uuid: "host",
        },
        gpu1: { ...gpu, root_provider_uuid: "host" },
        gpu2: { ...gpu, root_provider_uuid: "host" },
      },
    });
    expect(await answer("resources=VCPU:1", 26)).toMatchObject({
      provider_summaries: { host: { resources: { VCPU: { capacity: 8, used: 2 } }, traits: ["HW_A", "CUSTOM_B"] } },
    });
  });

  test("may be empty", async () => {
    expect(await answer("resources=VCPU:9", 39)).toEqual({ allocation_requests: [], provider_summaries: {} });
  });
});
