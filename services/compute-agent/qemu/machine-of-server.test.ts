import { expect, test } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { blankDisksOf, expectedImageOf, guestMetadataOf, machineOf } from "./machine-of-server.ts";

const DEFAULTS = {
  machineType: "pc-q35-7.2",
  accel: "tcg",
  cpuModel: "qemu64",
  bridge: null,
  display: null,
  kernel: null,
} as const;
const flavor = serverSpec(1).flavor as NonNullable<ServerSpec["flavor"]>;

test("a machine has the flavor's size, and a disk for each size that the flavor names", () => {
  const server = serverSpec(1, { flavor: { ...flavor, vcpus: 3, memoryMib: 2_048, ephemeralGib: 2, swapMib: 512 } });
  const blank = blankDisksOf(server);
  expect(blank).toEqual([
    { role: "ephemeral", bytes: 2 * 1_024 ** 3 },
    { role: "swap", bytes: 512 * 1_024 ** 2 },
  ]);
  const machine = machineOf(server, { ...DEFAULTS, name: "task/0", blankDisks: blank });
  expect(machine).toMatchObject({ vcpus: 3, memoryMib: 2_048, uuid: server.uuid, name: "task/0" });
  expect(machine.disks.map(({ node, role }) => `${node} ${role}`)).toEqual([
    "disk0 root",
    "disk1 ephemeral",
    "disk2 swap",
  ]);
});

test("a port's interface has the same address on every host", () => {
  const server = serverSpec(1, {
    ports: [{ portId: "p1", networkId: "n1", tag: "", networkName: "", addresses: [], floatingAddresses: [], slot: 0 }],
  });
  const [first, second] = ["br0", null].map((bridge) =>
    machineOf(server, { ...DEFAULTS, bridge, name: "task/0", blankDisks: [] }),
  );
  expect(first?.interfaces[0]?.mac).toMatch(/^fa:16:3e(:[0-9a-f]{2}){3}$/);
  expect(second?.interfaces[0]?.mac).toBe(first?.interfaces[0]?.mac);
  expect(guestMetadataOf(server).interfaces[0]?.mac).toBe(first?.interfaces[0]?.mac);
});

test("a flavor without memory is refused", () => {
  const server = serverSpec(1, { flavor: { ...flavor, memoryMib: 0 } });
  expect(() => machineOf(server, { ...DEFAULTS, name: "task/0", blankDisks: [] })).toThrow("no memory");
});

test("an image must match what the image service states about it", () => {
  const imageProperties = { disk_format: "qcow2", os_hash_algo: "sha512", os_hash_value: "ABCD".repeat(32) };
  expect(expectedImageOf(serverSpec(1, { imageRef: "i", imageProperties }))).toEqual({
    id: "i",
    format: "qcow2",
    sha512: "abcd".repeat(32),
  });
  expect(
    expectedImageOf(serverSpec(1, { imageRef: "i", imageProperties: { os_hash_algo: "md5", os_hash_value: "a" } })),
  ).toEqual({
    ...{ id: "i", format: null, sha512: null },
  });
  expect(expectedImageOf(serverSpec(1, { imageRef: "" }))).toBeNull();
});

test.each(["abcd", "/../../../../proc/kcore", `${"a".repeat(128)}/`])(
  "an image is refused for the hash %j",
  (value) => {
    const imageProperties = { os_hash_algo: "sha512", os_hash_value: value };
    const refusal = expect.objectContaining({
      isFinal: true,
      message: expect.stringMatching(/os_hash_value .* is no SHA-512/),
    });
    expect(() => expectedImageOf(serverSpec(1, { imageRef: "i", imageProperties }))).toThrow(refusal);
  },
);

test.each([
  ["Web Server_1", "", "web-server-1"],
  ["ü.-", "", "u"],
  ["!", "", "server-"],
  ["web", "db.example", "db.example"],
])("the host name of a server called %j", (name, hostname, expected) => {
  expect(guestMetadataOf(serverSpec(1, { name, hostname })).hostname).toContain(expected);
});
