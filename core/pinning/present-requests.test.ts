import { expect, test } from "vitest";
import { presentRequests } from "./present-requests.ts";

const EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC";
const INGRESS = "NET_BW_IGR_KILOBIT_PER_SEC";
const PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC";
const request = (groupId: string, resources: Record<string, number>) => ({
  ...{ portId: "p", suffix: `_PORT0_${groupId}`, resources, requiredTraits: ["OLD"], provider: "nic", groupId },
});
const group = (id: string, resources: Record<string, number>) => ({ id, resources, required: ["NEW"] });
const after = (before: readonly ReturnType<typeof request>[], ...groups: readonly ReturnType<typeof group>[]) =>
  presentRequests(before, new Map([["p", { groups }]]));
const changed = (id: string, resources: Record<string, number>, suffix = id) => ({
  ...request(suffix, resources),
  ...{ groupId: id, requiredTraits: ["NEW"] },
});

test.each([
  ["another amount", [request("g", { [EGRESS]: 1 })], [group("g", { [EGRESS]: 2 })], [changed("g", { [EGRESS]: 2 })]],
  [
    "another policy, whose group has another name and direction",
    [request("g", { [EGRESS]: 1 }), request("h", { [PACKETS]: 5 })],
    [group("i", { [PACKETS]: 6 }), group("j", { [INGRESS]: 2 })],
    [changed("j", { [INGRESS]: 2 }, "g"), changed("i", { [PACKETS]: 6 }, "h")],
  ],
  [
    "a name that an older process has lost",
    [request("", { [EGRESS]: 1 })],
    [group("g", { [EGRESS]: 1 })],
    [changed("g", { [EGRESS]: 1 }, "")],
  ],
  ["no policy any longer", [request("g", { [EGRESS]: 1 })], [], []],
  [
    "a group for which nothing is held",
    [request("g", { [EGRESS]: 1 })],
    [group("g", { [EGRESS]: 1 }), group("h", { [PACKETS]: 5 })],
    [changed("g", { [EGRESS]: 1 })],
  ],
])("a port's request groups follow what Neutron has: %s", (_, before, groups, expected) => {
  expect(after(before, ...groups)).toEqual(expected);
});

test("the groups of direct ports, and of ports that Neutron does not show, stay as they are", () => {
  const direct = request("", { SRIOV_NET_VF: 1 });
  expect(after([direct])).toEqual([direct]);
  const other = { ...request("g", { [EGRESS]: 1 }), portId: "other" };
  expect(after([other], group("g", { [EGRESS]: 2 }))).toEqual([other]);
});
