import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryVolumeStore } from "../../../../adapters/memory/api/memory-volume-store.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { VolumeSettler } from "../server-volumes/volume-settler.ts";
import { HOLD_MS_MAX, holdVolumes } from "./hold-volumes.ts";

const SETTLE_MS = 60_000;
const { uuid: server } = serverSpec(1);

let clock: ManualClock;
let requests: MemoryApiStore;
let volumes: MemoryVolumeStore;
beforeEach(async () => {
  clock = new ManualClock(1_000);
  requests = new MemoryApiStore({ clock });
  volumes = new MemoryVolumeStore(clock, { requests });
  const id = randomUUID();
  const volume = {
    ...{ id, projectId: "p", userId: "u", name: `${server}-blank-vol-0`, description: null, sizeGib: 1, metadata: {} },
    ...{ availabilityZone: "", isBootable: false, inCinder: true, making: "made" as const, createdAtMs: 1 },
  };
  await volumes.createVolume(volume, null, {
    ...{ serverUuid: server, cell: "", attachmentId: randomUUID(), mappingUuid: randomUUID(), device: "/dev/vdb" },
    ...{ tag: null, deleteOnTermination: true, taskId: server },
  });
});

/** The time passes, while another api looks at the volumes that wait. */
async function pass(ms: number): Promise<void> {
  const deps = {
    volumes,
    store: requests,
    cells: new Map(),
    events: { volumesNotSettled() {}, volumeLeftInDoubt() {} },
    clock,
  };
  const settler = new VolumeSettler(deps, { pollMs: 1_000, settleMs: SETTLE_MS });
  for (const untilMs = clock.now() + ms; clock.now() < untilMs; ) {
    clock.advance(1_000);
    // The renewal goes on after the timer that begins it.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    await settler.settle();
  }
}

/** Whether the server can be accepted, as its call does when its volumes are ready. */
async function isAcceptable(): Promise<boolean> {
  await requests.accept([serverSpec(1)]);
  return (await requests.requests([server]))[0]?.state === "accepted";
}

test("a call whose volumes Cinder makes in many minutes creates its server", async () => {
  const accepted = await holdVolumes(volumes, [server], { clock, renewMs: 10_000 }, async () => {
    await pass(10 * SETTLE_MS);
    return isAcceptable();
  });
  expect([accepted, clock.pending]).toEqual([true, 0]);
});

test("the volumes of a process that died, or of a call that never ends, are given back", async () => {
  void holdVolumes(volumes, [server], { clock, renewMs: 10_000 }, () => new Promise(() => {}));
  await pass(HOLD_MS_MAX);
  expect(await volumes.volumesOfServers([server])).toMatchObject([{ attachment: { phase: "attaching" } }]);
  await pass(3 * SETTLE_MS);
  expect([await isAcceptable(), await volumes.volumesOfServers([server])]).toEqual([false, []]);
});

test("a renewal that fails is repeated, and nothing is renewed for a call without volumes", async () => {
  let asked = 0;
  const store = {
    renewReserved: async () => {
      asked += 1;
      throw new Error("the database is away");
    },
  };
  const hold = { clock, renewMs: 10_000 };
  expect(await holdVolumes(store, [], hold, async () => pass(30_000))).toBeUndefined();
  expect(asked).toBe(0);
  await holdVolumes(store, [server], hold, async () => pass(30_000));
  expect(asked).toBe(3);
});
