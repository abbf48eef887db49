import { describe, expect, it } from "vitest";
import { requestGroup } from "../candidates/request.ts";
import { providerUuid, resourceClass } from "../ledger/ids.ts";
import { pinHostRequest } from "./pin-host-request.ts";

const resources = new Map([[resourceClass("VCPU"), 1]]);
const root = providerUuid("00000000-0000-4000-8000-000000000001");
const other = providerUuid("00000000-0000-4000-8000-000000000002");

describe("pinHostRequest", () => {
  it("pins the unnumbered group, whose tree the numbered groups share", () => {
    const groups = [requestGroup({ resources }), requestGroup({ resources, suffix: "1" })];
    const pinned = pinHostRequest({ groups, groupPolicy: "none" }, root);
    expect(pinned.groups.map((group) => group.inTree)).toEqual([root, null]);
  });

  it("pins every numbered group when there is no unnumbered one, and keeps a tree that is already named", () => {
    const groups = [requestGroup({ resources, suffix: "1" }), requestGroup({ resources, suffix: "2", inTree: other })];
    const pinned = pinHostRequest({ groups, groupPolicy: "none" }, root);
    expect(pinned.groups.map((group) => group.inTree)).toEqual([root, other]);
  });
});
