import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import type { PrepareOrder } from "../driver.ts";
import { GuestDirs } from "./guest-dirs.ts";
import { type PreparerOptions, prepareGuest } from "./prepare-guest.ts";

const ORDER = {
  ...{ host: "h", serverUuid: "s", attemptId: "t1/0", movedFrom: null },
  server: { volumes: [{ volumeId: "v" }] },
} as unknown as PrepareOrder;

test("a build that was given up while the storage hung makes no volumes when it answers", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-prepare-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const storage = new StorageGate({ name: dir, callsMax: 1 });
  const dirs = new GuestDirs(dir, storage);
  await dirs.open();
  const answered = Promise.withResolvers<void>();
  storage.work(() => answered.promise);
  const made: unknown[] = [];
  const volumes = new Proxy({}, { get: (_, name) => made.push(name) }) as PreparerOptions["volumes"];
  const order = new AbortController();
  const control = { signal: order.signal, onStep: () => undefined, onEvent: () => undefined };
  const built = prepareGuest({ dirs, volumes } as PreparerOptions, ORDER, control);
  order.abort(new Error("the server was deleted"));
  answered.resolve();
  await expect(built).rejects.toThrow("the server was deleted");
  expect(made).toEqual([]);
});
