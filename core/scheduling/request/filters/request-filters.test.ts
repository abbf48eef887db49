import { describe, expect, it } from "vitest";
import type { AskedPlace } from "../asked.ts";
import { DEFAULT_REQUEST_FILTER_SETTINGS, type RequestContext } from "../request-context.ts";
import { asked, hostRequestOf, type Specs } from "../some-request.ts";
import { translateRequest } from "../translate-request.ts";

describe("request filters", () => {
  const aggregate = (uuid: string, metadata: Specs) => ({ uuid, metadata: new Map(Object.entries(metadata)) });
  const context = (settings: Partial<RequestContext["settings"]>, ...aggregates: RequestContext["aggregates"]) => ({
    aggregates,
    settings: { ...DEFAULT_REQUEST_FILTER_SETTINGS, ...settings },
  });
  const rootOf = (ask: AskedPlace, of: RequestContext) => {
    const rules = hostRequestOf(ask, of).rootRules!;
    return {
      in: rules.memberOf.map((set) => [...set].join()),
      out: [...rules.forbiddenAggregates],
      has: [...rules.requiredTraits],
      lacks: [...rules.forbiddenTraits],
    };
  };
  const LACKS = { lacks: ["COMPUTE_STATUS_DISABLED"] };
  const zones = [
    aggregate("a", { availability_zone: "east" }),
    aggregate("b", { availability_zone: "east" }),
    aggregate("c", { availability_zone: "west" }),
  ];

  it("a zone admits its aggregates, and the default zone admits all hosts that are in no other zone", () => {
    const nothing = { in: [], out: [], has: [], ...LACKS };
    expect(rootOf(asked({}), context({}, ...zones))).toEqual(nothing);
    const inZone = (availabilityZone: string) => rootOf(asked({}, {}, { availabilityZone }), context({}, ...zones));
    expect(inZone("east")).toEqual({ ...nothing, in: ["a,b"] });
    expect(inZone("nova")).toEqual({ ...nothing, out: ["a", "b", "c"] });
    expect(inZone("nowhere")).toEqual({ ...nothing, in: [""] });
  });

  it("a project uses the aggregates that name it, and no host if none does and one must", () => {
    const own = aggregate("t", { filter_tenant_id3: "p" });
    const other = aggregate("o", { filter_tenant_id: "q" });
    const on = { limitTenantsToPlacementAggregate: true };
    expect(rootOf(asked({}), context({}, own)).in).toEqual([]);
    expect(rootOf(asked({}), context(on, own, other)).in).toEqual(["t"]);
    expect(rootOf(asked({}), context(on, other)).in).toEqual([]);
    const refused = translateRequest(asked({}), context({ ...on, placementAggregateRequiredForTenants: true }, other));
    expect(refused).toEqual({ kind: "no-aggregate-for-project", projectId: "p" });
  });

  it("an aggregate that requires a trait is closed to requests that do not require it", () => {
    const windows = aggregate("w", { "trait:CUSTOM_WINDOWS": "required" });
    const both = aggregate("x", { "trait:CUSTOM_WINDOWS": "required", "trait:CUSTOM_B": "required" });
    const of = context({ enableIsolatedAggregateFiltering: true }, windows, both);
    expect(rootOf(asked({}), of).out).toEqual(["w", "x"]);
    expect(rootOf(asked({ "trait:CUSTOM_WINDOWS": "required" }), of).out).toEqual(["x"]);
    expect(rootOf(asked({}, { "trait:CUSTOM_WINDOWS": "required" }), of).out).toEqual(["x"]);
  });

  it("image type and models become required traits", () => {
    const image = { disk_format: "qcow2", hw_disk_bus: "virtio", hw_video_model: "none" };
    const settings = { queryPlacementForImageTypeSupport: true, imageMetadataPrefilter: true };
    expect(rootOf(asked({}, image), context({})).has).toEqual([]);
    expect(rootOf(asked({}, image), context(settings)).has).toEqual([
      "COMPUTE_IMAGE_TYPE_QCOW2",
      "COMPUTE_STORAGE_BUS_VIRTIO",
      "COMPUTE_GRAPHICS_MODEL_NONE",
    ]);
  });

  it("a named host is the only one admitted", () => {
    expect(hostRequestOf(asked({}, {}, { forcedHost: "h" })).onlyHosts).toEqual(new Set(["h"]));
    expect(hostRequestOf(asked({}, {}, { requestedHost: "h" })).onlyHosts).toEqual(new Set(["h"]));
    expect(hostRequestOf(asked({}, {}, { requestedHost: "h", forcedHost: "i" })).onlyHosts).toEqual(new Set());
  });

  it("each PCI device is a group with its alias's class", () => {
    const groupsOf = (extraSpecs: Specs, settings: Partial<RequestContext["settings"]> = {}) => {
      const { groups, sameSubtree } = hostRequestOf(asked(extraSpecs), context(settings));
      return {
        groups: groups.flatMap((one) => [...one.resources].map(([name, n]) => `${one.suffix}:${name}=${n}`)),
        sameSubtree,
      };
    };
    const pci = { "pci_passthrough:alias": "gpu:2,nic:1" };
    expect(groupsOf(pci, { pciAliases: { nic: "SRIOV_NET_VF" } }).groups).toEqual(
      expect.arrayContaining(["_PCI0:CUSTOM_PCI_GPU=1", "_PCI1:CUSTOM_PCI_GPU=1", "_PCI2:SRIOV_NET_VF=1"]),
    );
    const near = { ...pci, "hw:numa_nodes": "1", "hw:pci_numa_affinity_policy": "required" };
    expect(groupsOf(near).sameSubtree).toEqual([
      ["_NUMA0", "_PCI0"],
      ["_NUMA0", "_PCI1"],
      ["_NUMA0", "_PCI2"],
    ]);
    expect(translateRequest(asked({ "pci_passthrough:alias": "gpu:99" }), context({}))).toMatchObject({
      kind: "bad-extra-spec",
    });
  });

  it("PCI devices are near the guest's memory where that is required, with a VGPU, without the bandwidth of ports", () => {
    const near = { "hw:numa_nodes": "1", "hw:pci_numa_affinity_policy": "required", "resources:VGPU": "1" };
    const port = {
      portId: "p",
      suffix: "_PORT0",
      resources: { NET_BW_EGR_KILOBIT_PER_SEC: 10 },
      requiredTraits: [],
      provider: "",
      groupId: "",
    };
    const subtreesOf = (extraSpecs: Specs) =>
      hostRequestOf({ ...asked(extraSpecs), portRequests: [port] }, context({})).sameSubtree;
    expect(subtreesOf(near)).toEqual([["_NUMA0", "_VGPU"]]);
    expect(subtreesOf({ ...near, "pci_passthrough:alias": "nic:1" })).toEqual([
      ["_NUMA0", "_VGPU"],
      ["_NUMA0", "_PCI0"],
    ]);
  });
});
