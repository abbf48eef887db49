import { beforeEach, expect, test } from "vitest";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import { PatientEnds } from "./patient-ends.ts";
import type { SettledVolumes } from "./server-volumes.ts";

/** What becomes of a volume that is to be ended; of those that are not named here, the attachment ends. */
let fates: Map<string, "filled" | "silent">;
let tried: string[];
let nowMs: number;
let ends: PatientEnds;
beforeEach(() => {
  fates = new Map();
  tried = [];
  nowMs = 0;
  const attempt = async (id: string) => {
    tried.push(id);
    if (fates.get(id) === "silent") throw new BlockStorageError("unreachable", "Cinder does not answer");
    return !fates.has(id);
  };
  const volumes = {
    release: attempt,
    endAttachment: async (id: string) => ((await attempt(id)) ? "released" : null),
  } as unknown as SettledVolumes;
  const clock = { ...systemClock, monotonic: () => nowMs };
  ends = new PatientEnds({ volumes, events: { volumesNotSettled: () => {} }, clock });
});

/** Ends all of these volumes in one round; returns those of which Cinder was asked. */
async function round(ids: readonly string[]): Promise<readonly string[]> {
  tried = [];
  ends.beginRound();
  for (const id of ids) await ends.release(id, "task");
  for (const id of ids) await ends.endAttachment(id, "attachment", false);
  return [...new Set(tried)];
}

const filled = Array.from({ length: 100 }, (_, at) => `filled-${at}`);

test("volumes that Cinder still fills do not keep the others from being ended, in whichever order they come", async () => {
  for (const id of filled) fates.set(id, "filled");
  for (let at = 0; at < 30; at += 1) {
    expect(await round([...filled, `other-${at}`])).toContain(`other-${at}`);
    nowMs += 1_000;
  }
});

test("a volume that Cinder still fills is asked for after waits that double up to a minute, and ended when it is filled", async () => {
  fates.set("one", "filled");
  const atMs: number[] = [];
  for (; nowMs < 200_000; nowMs += 1_000) if ((await round(["one"])).length > 0) atMs.push(nowMs / 1_000);
  expect(atMs).toEqual([0, 2, 6, 14, 30, 62, 122, 182]);
  fates.delete("one");
  nowMs += 60_000;
  expect(await ends.release("one", "task")).toBe(true);
});

test("after three volumes about which Cinder is silent, the others wait for the next round", async () => {
  const silent = ["a", "b", "c", "d", "e"];
  for (const id of silent) fates.set(id, "silent");
  expect(await round([...silent, "other"])).toEqual(["a", "b", "c"]);
  expect(await round([...silent, "other"])).toEqual(["d", "e", "other"]);
});
