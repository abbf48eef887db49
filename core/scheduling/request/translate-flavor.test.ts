import { describe, expect, it } from "vitest";
import type { Flavor } from "../../../proto/gen/berth/shared.ts";
import { describeRequestRefusal } from "./request-refusal.ts";
import { translateFlavor } from "./translate-request.ts";

const flavor = (extraSpecs: Record<string, string>, size: Partial<Flavor> = {}): Flavor => ({
  id: "1",
  name: "small",
  vcpus: 2,
  memoryMib: 512,
  diskGib: 10,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs,
  ...size,
});

/** The groups as plain text. */
function groupsOf(asked: Flavor): Record<string, string> {
  const outcome = translateFlavor(asked);
  if (outcome.kind !== "host-request") throw new Error(describeRequestRefusal(outcome));
  return Object.fromEntries(
    outcome.hostRequest.groups.map((group) => [
      group.suffix,
      [
        ...[...group.resources].map(([name, amount]) => `${name}=${amount}`),
        ...[...group.requiredTraits],
        ...[...group.forbiddenTraits].map((name) => `!${name}`),
      ].join(" "),
    ]),
  );
}
const refusalOf = (asked: Flavor): string => {
  const outcome = translateFlavor(asked);
  return outcome.kind === "host-request" ? "a hostRequest" : describeRequestRefusal(outcome);
};

describe("translateFlavor", () => {
  it("requests the flavor's size", () => {
    expect(groupsOf(flavor({}))).toEqual({ "": "VCPU=2 MEMORY_MB=512 DISK_GB=10" });
    expect(groupsOf(flavor({}, { diskGib: 1, ephemeralGib: 2, swapMib: 1025 }))).toEqual({
      "": "VCPU=2 MEMORY_MB=512 DISK_GB=5",
    });
    expect(groupsOf(flavor({}, { diskGib: 0 }))).toEqual({ "": "VCPU=2 MEMORY_MB=512" });
  });

  it.each([
    [{ "resources:VCPU": "8" }, { "": "VCPU=8 MEMORY_MB=512 DISK_GB=10" }],
    [
      { "resources:VCPU": "0", "resources:CUSTOM_CPU_MILLI": "500" },
      { "": "CUSTOM_CPU_MILLI=500 MEMORY_MB=512 DISK_GB=10" },
    ],
    [{ "resources:PCPU": "2" }, { "": "PCPU=2 MEMORY_MB=512 DISK_GB=10" }],
    [{ "resources1:VCPU": "2" }, { "1": "VCPU=2", "": "MEMORY_MB=512 DISK_GB=10" }],
    [
      { "resources_NIC:NET_BW": "7", "trait_NIC:CUSTOM_FAST": "required" },
      { _NIC: "NET_BW=7 CUSTOM_FAST", "": "VCPU=2 MEMORY_MB=512 DISK_GB=10" },
    ],
    [
      { "trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden" },
      { "": "VCPU=2 MEMORY_MB=512 DISK_GB=10 CUSTOM_A !CUSTOM_B" },
    ],
    [{ "hw:cpu_policy": "shared", quota: "x" }, { "": "VCPU=2 MEMORY_MB=512 DISK_GB=10" }],
  ])("reads %o", (extraSpecs, groups) => {
    expect(groupsOf(flavor(extraSpecs as Record<string, string>))).toEqual(groups);
  });

  it("applies the group policy, and none where it makes no difference", () => {
    const two = { "resources1:VGPU": "1", "resources2:VGPU": "1" };
    const policy = (extraSpecs: Record<string, string>) => {
      const outcome = translateFlavor(flavor(extraSpecs));
      return outcome.kind === "host-request" && outcome.hostRequest.groupPolicy;
    };
    expect(policy({ ...two, group_policy: "isolate" })).toBe("isolate");
    expect(policy({ "resources1:VGPU": "1" })).toBe("none");
  });

  it.each([
    [{ "resources:VCPU": "many" }, "extra spec resources:VCPU=many must be a whole number from 0 to 2147483647"],
    [{ "resources:VCPU": "-1" }, "extra spec resources:VCPU=-1 must be a whole number from 0 to 2147483647"],
    [
      { "resources:VCPU": "99999999999" },
      "extra spec resources:VCPU=99999999999 must be a whole number from 0 to 2147483647",
    ],
    [
      { "resources:vcpu": "1" },
      "extra spec resources:vcpu=1 must be a key whose name consists of upper-case letters, digits and _",
    ],
    [{ "trait:CUSTOM_A": "maybe" }, "extra spec trait:CUSTOM_A=maybe must be required or forbidden"],
    [{ group_policy: "spread" }, "extra spec group_policy=spread must be none or isolate"],
    [
      { "resources1:VGPU": "1", "resources2:VGPU": "1" },
      "extra spec group_policy is missing; it must be none or isolate, because there is more than one numbered request group",
    ],
    [
      { "trait7:CUSTOM_A": "required" },
      "extra spec trait7:CUSTOM_A=required must be in a group that requests resources, like resources7:CLASS=N",
    ],
  ])("refuses %o by name", (extraSpecs, message) => {
    expect(refusalOf(flavor(extraSpecs as Record<string, string>))).toBe(message);
  });

  it("refuses a flavor that requests nothing", () => {
    expect(refusalOf(flavor({}, { vcpus: 0, memoryMib: 0, diskGib: 0 }))).toContain("the flavor requests no resources");
  });
});
