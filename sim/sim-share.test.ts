import { expect, test } from "vitest";
import { MemorySnapshotFiles } from "../adapters/memory/memory-snapshot-files.ts";
import type { CinderSnapshot } from "../core/stores/block-storage.ts";
import type { Server } from "../core/tasks/server.ts";
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

test("a server that a user has deleted during a snapshot has lost what it has written, also if a restored database shows the server again", () => {
  const found: string[] = [];
  const world = {
    find: (_law: number, what: string) => void found.push(what),
    history: { record: () => {} },
  } as unknown as World;
  const snapshots = new MemorySnapshotFiles(new Map(), () => {});
  const look = () => ({ status: "ACTIVE" }) as Server;
  const share = new SimShare(world, snapshots, { look, guests: () => [] });
  const file = snapshots.begin({ id: "one", volumeId: "1" } as CinderSnapshot);
  share.opened([file, "volume-1"], "server");
  snapshots.giveUp("one");
  share.unwanted("other");
  share.opened(["volume-1"], "other");
  expect(found).toHaveLength(1);
  share.unwanted("server");
  share.opened(["volume-1"], "other");
  expect(found).toHaveLength(1);
});

test.each(["creating", "error", "available"] as const)(
  "what was written to the file of a snapshot that a user has deleted as %s is lost with its server only if Cinder never named the file",
  (status) => {
    const found: string[] = [];
    const world = {
      find: (_law: number, what: string) => void found.push(what),
      history: { record: () => {} },
    } as unknown as World;
    const snapshots = new MemorySnapshotFiles(new Map(), () => {});
    const servers = new Map([["server", { status: "ACTIVE" } as Server]]);
    const share = new SimShare(world, snapshots, { look: (uuid) => servers.get(uuid) ?? null, guests: () => [] });
    const file = snapshots.begin({ id: "one", volumeId: "1" } as CinderSnapshot);
    share.opened([file, "volume-1"], "server");
    if (status === "error") snapshots.giveUp("one");
    if (status === "available") snapshots.report({ snapshotId: "one", status: "creating", isDone: true });
    expect(snapshots.all.get("one")?.status).toBe(status);
    const wrong = `a guest goes on with the file volume-1, without what was written to ${file}`;
    snapshots.forget("1");
    share.opened(["volume-1"], "other");
    // The server still lives.
    expect(found).toEqual([wrong]);
    servers.clear();
    share.opened(["volume-1"], "other");
    expect(found).toEqual(status === "available" ? [wrong, wrong] : [wrong]);
  },
);
