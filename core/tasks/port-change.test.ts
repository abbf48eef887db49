import { describe, expect, test } from "vitest";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { providerUuid } from "../ledger/ids.ts";
import {
  attachChange,
  detachChange,
  groupsToAttach,
  guestInterfaces,
  homeMapping,
  portsWithout,
} from "./port-change.ts";

const EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC";
const portOf = (id: string, groups = 1) => ({
  id,
  groups: Array.from({ length: groups }, (_, group) => ({
    id: `${id}${group}`,
    resources: { [EGRESS]: 1_000 },
    required: [],
  })),
});
const named = (portId: string) => ({
  portId,
  networkId: "n",
  tag: "",
  networkName: "",
  addresses: [],
  floatingAddresses: [],
  slot: 0,
});
const suffixes = (groups: readonly { readonly suffix: string }[]) => groups.map(({ suffix }) => suffix);

describe("a port of a server", () => {
  test("has suffixes that neither an earlier port nor the claim has used", () => {
    const spec = serverSpec(1);
    expect(suffixes(groupsToAttach(spec, {}, portOf("a", 2)))).toEqual(["_PORT0_0", "_PORT0_1"]);
    const first = attachChange(spec, named("a"), groupsToAttach(spec, {}, portOf("a", 2)), new Map());
    expect(suffixes(groupsToAttach(first.spec, {}, portOf("b")))).toEqual(["_PORT1"]);
    expect(suffixes(groupsToAttach(first.spec, { _PORT1: "x" }, portOf("b")))).toEqual(["_PORT2"]);
  });

  test("uses the providers that serve it, and releases them", () => {
    const spec = serverSpec(1);
    const groups = groupsToAttach(spec, {}, portOf("a"));
    const { spec: with_, items } = attachChange(spec, named("a"), groups, new Map([["_PORT0", "nic"]]));
    expect(items).toEqual([{ provider: "nic", resourceClass: EGRESS, amount: 1_000 }]);
    const holding = { items: [...items, { ...items[0]!, provider: providerUuid("root") }] };
    expect(detachChange(with_, "a", { mapping: homeMapping(with_, null), holding })).toEqual({ spec, items });
    expect(detachChange(with_, "a", { mapping: {}, holding })).toEqual({ spec, items });
  });

  test("is released where the claim of the last move put it, not where it was attached", () => {
    const spec = serverSpec(1);
    const groups = groupsToAttach(spec, {}, portOf("a"));
    const { spec: with_ } = attachChange(spec, named("a"), groups, new Map([["_PORT0", "nic"]]));
    const mapping = homeMapping(with_, { items: [], mappings: { "": "root", _PORT0: "other-nic" } });
    expect(detachChange(with_, "a", { mapping, holding: { items: [] } }).items).toMatchObject([
      { provider: "other-nic" },
    ]);
  });
});

test("interfaces keep their slots when other ports come and go, and a further one gets the lowest free slot", () => {
  const slots = (ports: readonly ServerPort[]) =>
    guestInterfaces(ports).interfaces.map(({ portId, slot }) => `${portId}@${slot}`);
  const built = ["a", "b", "c"].map(named);
  expect(slots(built)).toEqual(["a@1", "b@2", "c@3"]);
  const fewer = portsWithout(built, "a");
  expect(slots(fewer)).toEqual(["b@2", "c@3"]);
  const { spec } = attachChange(serverSpec(1, { ports: fewer }), named("d"), [], new Map());
  expect(slots(spec.ports)).toEqual(["b@2", "c@3", "d@1"]);
  expect(slots(portsWithout(spec.ports, "b"))).toEqual(["c@3", "d@1"]);
});
