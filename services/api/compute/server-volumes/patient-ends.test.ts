import { beforeEach, expect, test } from "vitest";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { PatientEnds } from "./patient-ends.ts";
import type { SettledVolumes } from "./server-volumes.ts";

/** What becomes of a volume that is to be ended; of those that are not named here, the attachment ends. */
let fates: Map<string, "filled" | "silent" | "slow">;
let tried: string[];
/** What has ended, and the answers that Cinder has still to give. */
let ended: string[];
let slow: (() => void)[];
let clock: ManualClock;
let ends: PatientEnds;
beforeEach(() => {
  fates = new Map();
  tried = [];
  [ended, slow, clock] = [[], [], new ManualClock(0)];
  const attempt = async (id: string) => {
    tried.push(id);
    if (fates.get(id) === "slow") {
      await new Promise<void>((answer) => slow.push(answer));
      fates.delete(id);
    }
    if (fates.get(id) === "silent") throw new BlockStorageError("unreachable", "Cinder does not answer");
    if (!fates.has(id)) ended.push(id);
    return !fates.has(id);
  };
  const volumes = {
    release: attempt,
    endAttachment: async (id: string) => ((await attempt(id)) ? "released" : null),
  } as unknown as SettledVolumes;
  ends = new PatientEnds({ volumes, events: { volumesNotSettled: () => {}, volumeLeftInDoubt: () => {} }, clock });
});

/** Ends all of these volumes in one round; returns those of which Cinder was asked. */
async function round(ids: readonly string[]): Promise<readonly string[]> {
  await releases(ids);
  for (const id of ids) await ends.endAttachment(id, "attachment", false);
  return [...new Set(tried)];
}

/** Releases all of these volumes in one round; returns those of which Cinder was asked. */
async function releases(ids: readonly string[]): Promise<readonly string[]> {
  tried = [];
  ends.beginRound();
  for (const id of ids) await ends.release(id, "task");
  return tried;
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};
const filled = Array.from({ length: 100 }, (_, at) => `filled-${at}`);

test("volumes that Cinder still fills do not keep the others from being ended, in whichever order they come", async () => {
  for (const id of filled) fates.set(id, "filled");
  for (let at = 0; at < 30; at += 1) {
    expect(await round([...filled, `other-${at}`])).toContain(`other-${at}`);
    clock.advance(1_000);
  }
});

test("a volume that Cinder still fills is asked for after waits that double up to a minute, and ended when it is filled", async () => {
  fates.set("one", "filled");
  const atMs: number[] = [];
  for (; clock.now() < 200_000; clock.advance(1_000))
    if ((await round(["one"])).length > 0) atMs.push(clock.now() / 1_000);
  expect(atMs).toEqual([0, 2, 6, 14, 30, 62, 122, 182]);
  fates.delete("one");
  clock.advance(60_000);
  ends.beginRound();
  expect(await ends.release("one", "task")).toBe(true);
});

test("a volume about which Cinder is silent is tried again after a wait, and the others are ended at once", async () => {
  fates.set("a", "silent");
  expect(await round(["a", "other"])).toEqual(["a", "other"]);
  expect(await round(["a", "other"])).toEqual(["other"]);
  clock.advance(10_000);
  expect(await round(["a"])).toEqual(["a"]);
});

test("a volume that Cinder takes long to end is not begun twice, ends when Cinder answers, and holds up no other one for long", async () => {
  fates.set("slow", "slow");
  const first = releases(["slow", "other"]);
  await turns();
  clock.advance(5_000);
  expect(await first).toEqual(["slow"]);
  for (let at = 0; at < 3; at += 1) expect(await releases(["slow", "other"])).toEqual(["other"]);
  let isStopped = false;
  const stopped = ends.stop().then(() => {
    isStopped = true;
  });
  await turns();
  expect([isStopped, ended]).toEqual([false, ["other", "other", "other"]]);
  for (const answer of slow.splice(0)) answer();
  await stopped;
  expect(ended).toContain("slow");
  expect(clock.pending).toBe(0);
});

test("at most eight volumes are being ended at a time", async () => {
  const ids = Array.from({ length: 20 }, (_, at) => `slow-${at}`);
  for (const id of ids) fates.set(id, "slow");
  for (const id of ids) {
    const one = releases([id]);
    await turns();
    clock.advance(5_000);
    await one;
  }
  expect(slow).toHaveLength(8);
  for (const answer of slow.splice(0)) answer();
  await ends.stop();
});
