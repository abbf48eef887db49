import { describe, expect, test } from "vitest";
import type { PlacementCall } from "./http.ts";
import { Microversion } from "./microversion.ts";
import { readCandidateRequest } from "./request-groups.ts";

const read = (query: string, minor = 39) =>
  // Nothing else of a call is looked at.
  readCandidateRequest({ query: new URLSearchParams(query), version: new Microversion(minor) } as PlacementCall);
const refused = (message: string, code = "placement.undefined_code") =>
  expect.objectContaining({ status: 400, code, message: expect.stringContaining(message) });

describe("a query for candidates", () => {
  test("has a group for each suffix, in the order of appearance", () => {
    const { groups, groupPolicy, limit, nested } = read(
      "resources_NET=SRIOV_NET_VF:1&resources=VCPU:1&required_NET=CUSTOM_A,!CUSTOM_B&group_policy=isolate&limit=5",
    );
    expect(groups).toMatchObject([
      {
        suffix: "_NET",
        resources: new Map([["SRIOV_NET_VF", 1]]),
        requiredTraits: new Set(["CUSTOM_A"]),
        forbiddenTraits: new Set(["CUSTOM_B"]),
      },
      { suffix: "", resources: new Map([["VCPU", 1]]), requiredTraits: new Set(), memberOf: [], inTree: null },
    ]);
    expect([groupPolicy, limit, nested]).toEqual(["isolate", 5, true]);
  });

  test("from 1.33 on, suffixes of request groups may be names; before, only numbers", () => {
    expect(read("resources=VCPU:1&resources_a=VCPU:1", 33).groups).toHaveLength(2);
    expect(read("resources=VCPU:1&resources_a=VCPU:1", 32).groups).toHaveLength(1);
    expect(read("resources=VCPU:1&resources2=VCPU:1", 32).groups).toHaveLength(2);
  });

  test("considers single providers before 1.29", () => {
    expect(read("resources=VCPU:1", 28).nested).toBe(false);
  });

  test("reads the root's traits and the groups of a subtree", () => {
    const { rootRules, sameSubtree } = read(
      "resources1=VCPU:1&resources2=VGPU:1&group_policy=none&same_subtree=1,2,1&root_required=CUSTOM_A,!CUSTOM_B",
    );
    expect(rootRules).toEqual({ requiredTraits: new Set(["CUSTOM_A"]), forbiddenTraits: new Set(["CUSTOM_B"]) });
    expect(sameSubtree).toEqual([["1", "2"]]);
  });

  test("lets a group of a subtree have no resources", () => {
    expect(read("resources1=VCPU:1&required_NUMA=CUSTOM_A&group_policy=none&same_subtree=1,_NUMA").groups).toHaveLength(
      2,
    );
  });

  test.each([
    ["", 39, "at least one resources", "placement.query.missing_value"],
    ["required=A", 39, "at least one resources", "placement.query.missing_value"],
    ["resources=VCPU:1&required1=A", 39, "bad group(s) - ['1']", "placement.query.bad_value"],
    ["resources1=VCPU:1&same_subtree=1,2", 39, "['2'] not found in ['1']", "placement.query.bad_value"],
    ["resources1=VCPU:1&same_subtree=", 39, "Empty string", "placement.query.bad_value"],
    ["resources=VCPU:1&root_required=A&root_required=B", 39, "only once", "placement.query.duplicate_key"],
    ["resources=VCPU:1&root_required=A,!A", 39, "root_required: A", "placement.query.bad_value"],
    ["resources=VCPU:1&required=A,!A", 39, "required: (A)", undefined],
    ["resources=VCPU:1&required=in:A,B&required=!A,!B", 39, "required: (A, B)", undefined],
    ["resources1=VCPU:1&resources2=VCPU:1", 39, "group_policy", undefined],
    ["required1=A&resources=VCPU:1", 35, "orphaned traits keys: required1", undefined],
    ["member_of1=11111111-1111-4111-8111-111111111111&resources=VCPU:1", 35, "orphaned member_of", undefined],
    ["", 35, "At least one request group", undefined],
    ["resources=VCPU:1&limit=x&limit=5", 39, "limit", undefined],
    ["resources=VCPU:1&limit=-1&limit=5", 39, "limit", undefined],
    ["resources1=VCPU:1&resources2=VCPU:1&group_policy=x&group_policy=none", 39, "group_policy", undefined],
  ])("%j at 1.%d is refused", (query, minor, message, code) => {
    expect(() => read(query, minor)).toThrow(refused(message, code));
  });

  test("uses the first of several limits and group policies, as upstream does", () => {
    expect(read("resources=VCPU:1&limit=2&limit=5&group_policy=isolate&group_policy=none")).toMatchObject({
      limit: 2,
      groupPolicy: "isolate",
    });
  });

  test("accepts a trait that is both required and forbidden before 1.22 forbade that", () => {
    expect(() => read("resources=VCPU:1&required=A", 21)).not.toThrow();
  });
});
