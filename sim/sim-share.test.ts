import { expect, test } from "vitest";
import { MemorySnapshotFiles } from "../adapters/memory/memory-snapshot-files.ts";
import { SimShare } from "./sim-share.ts";
import type { World } from "./world.ts";

test("a file refers no longer to one whose content it has got, also while Cinder still has that one", () => {
  const found: string[] = [];
  const world = { find: (_law: number, what: string) => void found.push(what) } as unknown as World;
  const snapshots = new MemorySnapshotFiles(new Map(), () => {});
  snapshots.chainFrom = (file) => (file === "upper" ? ["upper", "lower"] : [file]);
  const share = new SimShare(world, snapshots, { look: () => null, guests: () => [] });
  share.opened(["upper", "lower"], "server");
  expect(share.chainOf("upper")).toEqual(["upper", "lower"]);
  share.merged("lower", "upper");
  expect(share.chainOf("upper")).toEqual(["upper"]);
  expect(found).toEqual([]);
  // What was written to the upper file is not in the lower one.
  share.opened(["lower"], "server");
  expect(found).toEqual(["a guest goes on with the file lower, without what was written to upper"]);
});
