import { expect, test } from "vitest";
import { VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import { filesAfter, NO_SHARE, snapshotted } from "./fake-volume-files.ts";

test("a guest without the volume need not go back to a file of it, and cannot be switched to one", () => {
  const volume = { volumeId: "lost", connection: "" };
  const snapshot = VolumeSnapshot.fromPartial({ newFile: "new" });
  const files = { other: ["file"] };
  expect(filesAfter(files, volume, { snapshot, step: "return" }, NO_SHARE)).toEqual(files);
  expect(() => filesAfter(files, volume, { snapshot, step: "switch" }, NO_SHARE)).toThrow("does not have volume lost");
});

test("a guest whose start was refused has the file of a later snapshot at its next start", () => {
  const found = { power: "stopped", files: { v: ["one"] }, nextFiles: { v: ["one"] } } as const;
  const snapshot = { snapshotId: "s", newFile: "two", fileToMerge: "", mergeTarget: "" };
  const volume = { volumeId: "v", connection: JSON.stringify({ name: "one" }) };
  const after = { v: ["two", "one"] };
  expect(snapshotted(found, volume, { snapshot, step: "switch" }, NO_SHARE)).toEqual({
    files: after,
    nextFiles: after,
  });
});
