import { expect, test } from "vitest";
import type { Server } from "../core/tasks/server.ts";
import type { GuestWithVolumes } from "./known-servers.ts";
import { SimCinder } from "./sim-cinder.ts";
import type { CinderEvent } from "./sim-fills.ts";
import type { RebuiltServer } from "./task-outcomes.ts";
import { World } from "./world.ts";

const SERVER = "00000000-0000-4000-8000-000000000001";
const OWN = { callerToken: null, requestId: null };
const FAULTLESS = { silentShare: 0, lostShare: 0, slowShare: 0, fillMsMax: 0, errorShare: 0 };
const FILLED = { fillMsMax: 1_000, refusedShare: 0, failedShare: 0, stuckShare: 0, refusedLateShare: 0 };
const HEARD = { eventLostShare: 0, eventTwiceShare: 0 };

/** A Cinder with a boot volume that is kept for a server, whose guest stands still on host-1. */
async function kept(fills: Partial<typeof FILLED> = {}) {
  const world = new World(1, { wholeHistory: false });
  const truth = { guests: [] as GuestWithVolumes[], rebuilt: [] as RebuiltServer[], server: null as Server | null };
  const servers = {
    ...{ look: () => truth.server, guests: () => truth.guests },
    ...{ rebuilt: () => truth.rebuilt, keeperOf: () => null },
  };
  const habits = { ...FAULTLESS, fills: { ...FILLED, ...HEARD, ...fills } };
  const cinder = new SimCinder(world, habits, servers);
  const { storage } = cinder;
  const wanted = {
    name: "v",
    sizeGib: 1,
    source: { kind: "blank" },
    volumeType: null,
    availabilityZone: null,
  } as const;
  const made = await storage.createVolume(wanted, OWN);
  if (made.kind !== "created") throw new Error(made.kind);
  await world.run(1_000, () => false);
  const volumeId = made.volume.id;
  const attachment = await storage.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN);
  if (attachment.kind !== "reserved") throw new Error(attachment.kind);
  const spec = { volumes: [{ volumeId, isRoot: true }] };
  truth.server = { status: "ACTIVE", host: "host-1", taskState: null, spec } as unknown as Server;
  const runs = (running: boolean) => {
    truth.guests = [{ host: "host-1", serverUuid: SERVER, volumes: [volumeId], files: {}, running }];
  };
  runs(false);
  const process = world.process("conductor");
  const events: CinderEvent[] = [];
  if (cinder.fills === null) throw new Error("there are no fills");
  cinder.fills.onEvent = (event) => events.push(event);
  const later = (seconds: number) => world.run(world.clock.monotonic() + seconds * 1_000, () => false);
  const shown = async () => (await storage.volume(volumeId, OWN))!;
  const fill = () => storage.reimage({ volumeId, imageId: "image" });
  return {
    ...{ world, cinder, truth, events, later, shown, fill, runs, volumeId, attachmentId: attachment.attachment.id },
    reached: cinder.reachedBy(process),
    fills: cinder.fills,
  };
}

test("a fill ends, and Cinder says so", async () => {
  const { fill, later, shown, events, volumeId, world } = await kept();
  expect(await fill()).toEqual({ kind: "begun" });
  expect((await shown()).status).toBe("downloading");
  await later(10);
  expect(await shown()).toMatchObject({ status: "reserved", imageProperties: { image_id: "image" } });
  expect(events).toEqual([{ name: "volume-reimaged", server_uuid: SERVER, tag: volumeId }]);
  expect(world.findings).toEqual([]);
});

test("a guest that runs while its volume is being filled breaks a law, whether it ran before or is started meanwhile", async () => {
  const before = await kept();
  before.runs(true);
  await before.fill();
  expect(before.world.findings).toMatchObject([{ law: 6, what: expect.stringContaining("runs with it on host-1") }]);
  const meanwhile = await kept();
  await meanwhile.fill();
  meanwhile.runs(true);
  meanwhile.fills.started("another server");
  expect(meanwhile.world.findings).toEqual([]);
  meanwhile.fills.started(SERVER);
  expect(meanwhile.world.findings).toMatchObject([{ law: 6, what: expect.stringContaining("while Cinder fills") }]);
});

test("a call that touches a volume that is being filled breaks a law", async () => {
  const { fill, reached, attachmentId, later, world } = await kept({ fillMsMax: 100_000 });
  await fill();
  void reached.deleteAttachment(attachmentId);
  await later(1);
  expect(world.findings).toMatchObject([{ law: 6, what: expect.stringContaining("the end of an attachment") }]);
});

test.each(["stuckShare", "refusedLateShare", "failedShare"])(
  "an operator mends a volume that a fill has broken (%s)",
  async (share) => {
    const { fill, later, shown, fills, truth, volumeId } = await kept({ [share]: 1 });
    expect((await fill()).kind).toBe(share === "refusedLateShare" ? "refused" : "begun");
    await later(2);
    expect((await shown()).status).toBe(share === "failedShare" ? "error" : "downloading");
    truth.rebuilt = [{ serverUuid: SERVER, imageRef: "image", hasSucceeded: false }];
    expect(fills.wrongAtRest()).toEqual([expect.stringContaining(`is ACTIVE, and its boot volume ${volumeId} is`)]);
    await later(40);
    expect(await shown()).toMatchObject({ status: "reserved", imageProperties: {} });
    expect(fills.wrongAtRest()).toEqual([]);
  },
);

test("a refused fill changes nothing, and a rebuild that has succeeded without a fill breaks a law at rest", async () => {
  const { fill, shown, fills, truth } = await kept({ refusedShare: 1 });
  expect((await fill()).kind).toBe("refused");
  expect(await shown()).toMatchObject({ status: "reserved", imageProperties: {} });
  truth.rebuilt = [{ serverUuid: SERVER, imageRef: "image", hasSucceeded: true }];
  expect(fills.wrongAtRest()).toEqual([expect.stringMatching(/was rebuilt with image, and its volume has undefined/)]);
});
