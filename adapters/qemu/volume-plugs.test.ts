import { expect, test } from "vitest";
import { QmpError } from "./qmp-error.ts";
import { plugVolume } from "./volume-plugs.ts";

const VOLUME = { volumeId: "0f1e2d3c-0000-4000-8000-000000000001", target: 0, lun: 0 };

/** A monitor of a QEMU that keeps the nodes it is given, and says of each what `image` says. */
function monitorOf(image: object) {
  const asked: { readonly command: string; readonly args: object }[] = [];
  let nodes: object[] = [];
  const execute = async (command: string, args: object = {}): Promise<unknown> => {
    asked.push({ command, args });
    if (command === "blockdev-add") nodes = [{ ...args, image }];
    if (command === "blockdev-del") nodes = [];
    if (command === "query-named-block-nodes") return nodes;
    return [];
  };
  const args = (wanted: string) => asked.filter(({ command }) => command === wanted).map((one) => one.args);
  return { execute, args, nodes: () => nodes };
}

test("QEMU is told of a volume's files, and never finds them by a header", async () => {
  const monitor = monitorOf({ "format-specific": { data: {} } });
  await plugVolume(monitor, VOLUME, async () => ({ path: "/m/v", format: "qcow2" }));
  const backing = { path: "/m/v", format: "raw" } as const;
  await plugVolume(monitor, VOLUME, async () => ({ path: "/m/v.a", format: "qcow2", backing }));
  expect(monitor.args("blockdev-add")).toMatchObject([
    { driver: "qcow2", file: { filename: "/m/v" }, backing: null },
    {
      ...{ driver: "qcow2", file: { filename: "/m/v.a" } },
      backing: { driver: "raw", "read-only": true, file: { filename: "/m/v" } },
    },
  ]);
  expect(monitor.args("device_add")).toHaveLength(2);
});

test("a volume that other guests may have is opened past the host's memory, and QEMU lets others write to it", async () => {
  const monitor = monitorOf({});
  await plugVolume(monitor, { ...VOLUME, isShared: true }, async () => ({ path: "/m/v", format: "raw" }));
  await plugVolume(monitor, VOLUME, async () => ({ path: "/m/v", format: "raw" }));
  expect(monitor.args("blockdev-add")).toMatchObject([{ cache: { direct: true } }, { driver: "raw" }]);
  expect(monitor.args("device_add")).toMatchObject([{ "share-rw": true }, { driver: "scsi-hd" }]);
  expect(monitor.args("device_add")[1]).not.toHaveProperty("share-rw");
  const shared = { ...VOLUME, isShared: true };
  const plugged = plugVolume(monitor, shared, async () => ({ path: "/m/v", format: "qcow2" }));
  await expect(plugged).rejects.toThrow("is a qcow2 file, which only one guest can have at a time");
});

test("a volume whose header names a file for its data when QEMU opens it reaches no guest", async () => {
  const monitor = monitorOf({ "format-specific": { data: { "data-file": "/etc/shadow" } } });
  const plugged = plugVolume(monitor, VOLUME, async () => ({ path: "/m/v", format: "qcow2" }));
  await expect(plugged).rejects.toThrow("it keeps its data in another file");
  expect([monitor.args("device_add"), monitor.nodes()]).toEqual([[], []]);
});

test("a volume whose device has just gone is connected again when QEMU no longer uses its file, which it refuses to close until then", async () => {
  const monitor = monitorOf({});
  await plugVolume(monitor, VOLUME, async () => ({ path: "/m/v", format: "raw" }));
  let refusals = 3;
  const execute = async (command: string, args: object = {}) => {
    if (command !== "blockdev-del" || refusals === 0) return monitor.execute(command, args);
    refusals -= 1;
    throw new QmpError("refused", "blockdev-del: the node is in use");
  };
  await plugVolume({ execute }, VOLUME, async () => ({ path: "/m/v", format: "raw" }));
  expect([refusals, monitor.args("device_add").length, monitor.nodes().length]).toEqual([0, 2, 1]);
});
