import { expect, test } from "vitest";
import type { Server } from "../core/tasks/server.ts";
import type { GuestWithVolumes } from "./known-servers.ts";
import { SimCinder } from "./sim-cinder.ts";
import { World } from "./world.ts";

const SERVER = "00000000-0000-4000-8000-000000000001";
const OWN = { callerToken: null, requestId: null };
const FAULTLESS = { silentShare: 0, lostShare: 0, slowShare: 0, fillMsMax: 0, errorShare: 0 };

/** A Cinder with one volume that is attached to a server on host-1, and what is true of that server. */
async function attached() {
  const world = new World(1, { wholeHistory: false });
  const truth = { server: null as Server | null, guests: [] as GuestWithVolumes[], keeper: null as string | null };
  const servers = {
    ...{ look: () => truth.server, guests: () => truth.guests },
    ...{ keeperOf: () => truth.keeper, rebuilt: () => [] },
  };
  const cinder = new SimCinder(world, FAULTLESS, servers);
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
  const connector = { host: "host-1", initiator: "iqn" };
  const kept = await storage.reserve({ volumeId, serverUuid: SERVER, connector }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  await storage.complete(kept.attachment.id);
  truth.server = { status: "ACTIVE", host: "host-1", spec: { volumes: [{ volumeId }] } } as unknown as Server;
  truth.guests = [{ host: "host-1", serverUuid: SERVER, volumes: [volumeId], files: {}, running: true }];
  return { world, cinder, servers, truth, attachmentId: kept.attachment.id };
}

test("an attachment that ends while a guest at its server's home has the volume breaks a law", async () => {
  const { world, cinder, servers, attachmentId } = await attached();
  expect([cinder.wrongAtRest(servers), world.findings]).toEqual([[], []]);
  await cinder.storage.deleteAttachment(attachmentId);
  expect(world.findings).toMatchObject([{ law: 6, what: expect.stringContaining("whose attachment has ended") }]);
  expect(cinder.wrongAtRest(servers)).toEqual([expect.stringContaining("Cinder has no attachment of it")]);
});

test.each([
  ["the source, which may start its guest again, breaks a law", "host-1", 1],
  ["a host that has only prepared a guest breaks none", "host-3", 0],
])("while a move waits for its confirmation, an attachment that ends at %s", async (_, keeper, found) => {
  const { world, cinder, truth, attachmentId } = await attached();
  truth.server = { status: "VERIFY_RESIZE", host: "host-2", spec: { volumes: [] } } as unknown as Server;
  truth.guests = truth.guests.map((guest) => ({ ...guest, running: false }));
  truth.keeper = keeper;
  await cinder.storage.deleteAttachment(attachmentId);
  expect(world.findings).toHaveLength(found);
});

test("an attachment that ends after its guest is gone breaks no law, and one that stays after its server does", async () => {
  const { world, cinder, servers, truth, attachmentId } = await attached();
  [truth.server, truth.guests] = [null, []];
  expect(cinder.wrongAtRest(servers)).toEqual([expect.stringContaining("which does not have it")]);
  await cinder.storage.deleteAttachment(attachmentId);
  expect([cinder.wrongAtRest(servers), world.findings]).toEqual([[], []]);
  expect(await cinder.left()).toHaveLength(1);
});

test.each([true, false])(
  "a volume that is left breaks no law only if it had a snapshot when it was to be deleted (%s)",
  async (hasSnapshot) => {
    const { cinder, truth, attachmentId } = await attached();
    [truth.server, truth.guests] = [null, []];
    const [volume] = (await cinder.storage.volumesNamed("v")).map(({ id }) => id);
    await cinder.storage.deleteAttachment(attachmentId);
    if (hasSnapshot) cinder.beginSnapshot(volume ?? "");
    // Nobody has asked Cinder to delete it so far.
    expect(await cinder.left()).toHaveLength(1);
    expect((await cinder.storage.deleteVolume(volume ?? "")).kind).toBe(hasSnapshot ? "refused" : "deleted");
    expect(await cinder.left()).toEqual([]);
  },
);
