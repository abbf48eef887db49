import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { GuestDirs } from "./guest-dirs.ts";

const SILENT_AFTER_MS = 15_000;

/** A storage with some guests, each of whose calls takes some time. It answers calls in their order, as the clock that it moves must not let one call look older than it is. */
async function slowDirs(guests: number, eachMs: number) {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-dirs-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (let index = 0; index < guests; index++) {
    const one = join(dir, `guest-t${index}+0`);
    mkdirSync(one);
    const name = { host: "h", serverUuid: "s", attemptId: `t${index}/0` };
    await writeGuestRecord(one, guestRecord({ ...name, hasRun: true, runningIn: null }));
  }
  const clock = new ManualClock();
  const told: (string | null)[] = [];
  let mostAtATime = 0;
  let open = 0;
  let answered: Promise<unknown> = Promise.resolve();
  class SlowGate extends StorageGate {
    override look<Value>(call: () => Promise<Value>): Promise<Value> {
      return super.look(async () => {
        open += 1;
        mostAtATime = Math.max(mostAtATime, open);
        const answer = answered.then(call).finally(() => {
          clock.advance(eachMs);
          open -= 1;
        });
        answered = answer.catch(() => undefined);
        return answer;
      });
    }
  }
  const gate = new SlowGate({ name: dir, clock, silentAfterMs: SILENT_AFTER_MS, onChanged: (one) => told.push(one) });
  const dirs = new GuestDirs(dir, gate);
  await dirs.open();
  return { dir, dirs, clock, told, mostAtATime: () => mostAtATime };
}

test("many records that are each read quickly are no silence, however long all of them take, and leave places to other calls", async () => {
  const { dirs, clock, told, mostAtATime } = await slowDirs(60, 1_000);
  expect((await dirs.found()).map(({ record }) => record?.attemptId).sort()).toEqual(
    Array.from({ length: 60 }, (_, index) => `t${index}/0`).sort(),
  );
  expect(await dirs.all()).toHaveLength(60);
  expect(clock.monotonic()).toBeGreaterThan(4 * SILENT_AFTER_MS);
  expect([told, mostAtATime()]).toEqual([[], 4]);
});

test("a damaged record is found without what it says, and keeps all guests from being known", async () => {
  const { dir, dirs } = await slowDirs(3, 0);
  writeFileSync(join(dir, "guest-t1+0", "guest.json"), "damaged");
  mkdirSync(join(dir, "guest-t3+0"));
  const found = new Map((await dirs.found()).map((one) => [one.dir, one.record?.attemptId ?? null]));
  expect(found).toEqual(
    new Map([
      [join(dir, "guest-t0+0"), "t0/0"],
      [join(dir, "guest-t1+0"), null],
      [join(dir, "guest-t2+0"), "t2/0"],
      [join(dir, "guest-t3+0"), null],
    ]),
  );
  await expect(dirs.all()).rejects.toThrow();
});

test("the record of a guest that is to be removed may be missing or damaged, but must not be one that cannot be read now", async () => {
  const { dir, dirs } = await slowDirs(1, 0);
  for (const name of ["none", "damaged", "directory", "unreadable"]) mkdirSync(join(dir, `guest-${name}`));
  writeFileSync(join(dir, "guest-damaged", "guest.json"), "{");
  mkdirSync(join(dir, "guest-directory", "guest.json"));
  // The system refuses to read it (ELOOP), as it does with EIO when the storage is at fault.
  symlinkSync("guest.json", join(dir, "guest-unreadable", "guest.json"));
  writeFileSync(join(dir, "guest-file"), "");
  for (const name of ["absent", "none", "damaged", "directory", "file"])
    expect([name, await dirs.foundRecord(join(dir, `guest-${name}`))]).toEqual([name, null]);
  expect((await dirs.foundRecord(join(dir, "guest-t0+0")))?.attemptId).toBe("t0/0");
  await expect(dirs.foundRecord(join(dir, "guest-unreadable"))).rejects.toThrow(/guest\.json cannot be read: ELOOP/);
});
