import { expect, test } from "vitest";
import { pairDisks } from "./pair-disks.ts";

const old = (...nodes: readonly string[]) => nodes.map((node) => ({ node, file: `${node}.qcow2` }));
const copied = (...asked: Parameters<typeof pairDisks>) =>
  pairDisks(...asked).map(({ node, toNode, isDispensable, onlySameSize = false }) =>
    [`${node} to ${toNode}`, isDispensable && "if there is room", onlySameSize && "if of the same size"]
      .filter((part) => part !== false)
      .join(" "),
  );

test.each([
  [["disk0", "disk1"], "disk0:root,disk1:swap", ["disk0 to disk0", "disk1 to disk1 if of the same size"]],
  [["disk0", "disk1"], "disk0:root,disk1:ephemeral", ["disk0 to disk0", "disk1 to disk1"]],
  [["disk0", "disk1"], "disk0:root,disk1:ephemeral,disk2:swap", ["disk0 to disk0", "disk1 to disk1"]],
  [
    ["disk0", "disk1", "disk2"],
    "disk0:root,disk1:ephemeral,disk2:swap",
    ["disk0 to disk0", "disk1 to disk1", "disk2 to disk2 if there is room"],
  ],
  [["disk0", "disk1", "disk2"], "disk0:root,disk1:ephemeral", ["disk0 to disk0", "disk1 to disk1"]],
  [["disk0", "disk1"], null, ["disk0 to disk0", "disk1 to disk1"]],
  [["disk1"], "disk1:swap", ["disk1 to disk1 if of the same size"]],
])("disks %j of a guest without recorded roles, for a guest with %j, are copied: %j", (own, roles, copies) => {
  expect(copied(old(...own), roles)).toEqual(copies);
});

test("a swap disk is given up if the guest at the destination has no disk at all, and an ephemeral disk is refused one", () => {
  const disk = { node: "disk1", file: "disk1.qcow2" };
  expect(pairDisks([{ ...disk, role: "swap" }], "")).toEqual([]);
  expect(() => pairDisks([{ ...disk, role: "ephemeral" }], "")).toThrow(
    'the server has the disk "ephemeral" with data',
  );
});

test.each([
  [["disk0", "disk1"], "disk0:root", "disk1"],
  [["disk0", "disk1", "disk2"], "disk0:root,disk1:swap", "ephemeral"],
])("disks %j of a guest without recorded roles are refused a guest with %s, because of %s", (own, roles, disk) => {
  expect(() => pairDisks(old(...own), roles)).toThrow(`the server has the disk "${disk}" with data`);
});
