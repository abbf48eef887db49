import { expect, test } from "vitest";
import type { KnownCall } from "../../http/call.ts";
import { findVolumes } from "./find-volumes.ts";
import type { WantedVolume } from "./read-block-devices.ts";

test("one call makes 256 volumes at most, however they are spread over its servers", async () => {
  const call = { identity: { projectId: "p", userId: "u", isAdmin: false }, minor: 90 } as unknown as KnownCall;
  const blank = { source: { kind: "blank" }, sizeGib: 1, isRoot: false } as unknown as WantedVolume;
  const store = { find: async () => [], snapshotted: async () => null };
  const find = (each: number, servers: number) =>
    findVolumes(
      store,
      Array.from({ length: each }, () => blank),
      { call, servers },
    );
  expect([(await find(256, 1)).length, (await find(2, 100)).length]).toEqual([256, 2]);
  await expect(find(3, 100)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("100 servers need 300 new volumes, and one call makes 256 at most"),
  });
});
