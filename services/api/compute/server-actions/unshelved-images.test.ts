import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { UnshelvedImage } from "../../../../core/stores/api/image-service.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { judgeUnshelved, UnshelvedImages } from "./unshelved-images.ts";

const IMAGE = randomUUID();
const OTHER = randomUUID();

function serverWith(fields: {
  readonly status?: string;
  readonly host?: string | null;
  readonly taskState?: string | null;
  readonly diskImageRef?: string;
}) {
  const { status = "ACTIVE", host = "h", taskState = null, diskImageRef = IMAGE } = fields;
  return { status, host, taskState, spec: { diskImageRef } } as unknown as Parameters<typeof judgeUnshelved>[1];
}

test.each([
  ["rests on a host", {}, "hide", "hide"],
  ["was stopped since", { status: "SHUTOFF" }, "hide", "hide"],
  ["is still offloaded", { status: "SHELVED_OFFLOADED", host: null }, "wait", "keep"],
  ["is being built", { status: "SHELVED_OFFLOADED", host: "h", taskState: "spawning" }, "wait", "keep"],
  ["is doing something else", { taskState: "rebooting" }, "wait", "keep"],
  ["is in ERROR, so that nobody knows of its disk", { status: "ERROR" }, "wait", "keep"],
  ["was rebuilt since", { diskImageRef: "", taskState: "rebuilding" }, "hide", "hide"],
  ["was offloaded again", { status: "SHELVED_OFFLOADED", host: null, diskImageRef: OTHER }, "hide", "hide"],
  ["is deleted", { status: "DELETED", host: null }, "keep", "keep"],
] as const)("the image of a server that %s", (_what, fields, verdict, whenOld) => {
  const server = serverWith(fields);
  expect([judgeUnshelved(IMAGE, server, false), judgeUnshelved(IMAGE, server, true)]).toEqual([verdict, whenOld]);
});

test("the image of a server that its cell does not have is left to the sweep of ended images", () => {
  expect(judgeUnshelved(IMAGE, null, false)).toBe("keep");
});

function settlerOf(
  images: readonly UnshelvedImage[],
  cells: Readonly<Record<string, unknown>>,
  nowMs: number,
  isRefused = (_id: string) => false,
) {
  const done: string[] = [];
  const settler = new UnshelvedImages({
    images: {
      unshelving: async () => images,
      hideUnshelved: async (id) => {
        if (isRefused(id)) throw new Error("Glance refuses");
        done.push(`hide ${id}`);
      },
      keepShelved: async (id) => void done.push(`keep ${id}`),
    },
    store: {
      requests: async (uuids: readonly string[]) =>
        uuids.map((serverUuid) => ({ serverUuid, cell: serverUuid.startsWith("a") ? "answers" : "silent" })),
    } as never,
    cells: new Map(Object.entries(cells)) as never,
    clock: new ManualClock(nowMs),
  });
  return { settler, done };
}

const imageOf = (id: string, shelvedServer: string, unshelveAskedAtMs = 0) =>
  ({ id, shelvedServer, unshelveAskedAtMs }) as UnshelvedImage;

test("each image is settled by the word of its server's cell, and a cell that does not answer changes nothing", async () => {
  const images = [imageOf("1", "a-active"), imageOf("2", "a-offloaded"), imageOf("3", "a-gone"), imageOf("4", "b")];
  const servers = [
    { uuid: "a-active", ...serverWith({ diskImageRef: "1" }) },
    { uuid: "a-offloaded", ...serverWith({ diskImageRef: "2", status: "SHELVED_OFFLOADED", host: null }) },
  ];
  const answers = { servers: async () => ({ kind: "answer", value: servers }) };
  const silent = { servers: async () => ({ kind: "unreachable" }) };
  const { settler, done } = settlerOf(images, { answers, silent }, 1_000);
  await settler.settle();
  expect(done.toSorted()).toEqual(["hide 1", "keep 3"]);
});

test("a server that has found no host for an hour keeps its image, which is looked at no longer", async () => {
  const offloaded = { uuid: "a", ...serverWith({ diskImageRef: "1", status: "SHELVED_OFFLOADED", host: null }) };
  const answers = { servers: async () => ({ kind: "answer", value: [offloaded] }) };
  const { settler, done } = settlerOf([imageOf("1", "a", 0)], { answers }, 3_600_001);
  await settler.settle();
  expect(done).toEqual(["keep 1"]);
});

test("an image that Glance refuses to delete keeps no others", async () => {
  const images = [imageOf("1", "a1"), imageOf("2", "a2")];
  const servers = ["1", "2"].map((id) => ({ uuid: `a${id}`, ...serverWith({ diskImageRef: id }) }));
  const answers = { servers: async () => ({ kind: "answer", value: servers }) };
  const { settler, done } = settlerOf(images, { answers }, 1_000, (id) => id === "1");
  await expect(settler.settle()).rejects.toThrow("1 images of unshelved servers could not be hidden");
  expect(done).toEqual(["hide 2"]);
});
