import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import type { NewCinderVolume } from "../../core/stores/block-storage.ts";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../rigs/eventually.ts";
import { SERVICE_TOKEN } from "../rigs/fake-neutron.ts";
import { hasCinder, type RealCinder, startRealCinder } from "./real-cinder.ts";

const OWN = { callerToken: null, requestId: null };
const as = (projectId: string) => ({ callerToken: projectId, requestId: null });
const connectorOf = (host: string) => ({ host, initiator: `iqn.2026-11.berth:${host}` });

// Needs Debian's packages cinder-api, cinder-scheduler and cinder-volume: `npm run test:openstack` installs them.
describe.runIf(hasCinder)("a real Cinder", () => {
  let cinder: RealCinder;
  let client: NeighbourClient;
  let storage: CinderClient;

  beforeAll(async () => {
    cinder = await startRealCinder();
    const token = { text: SERVICE_TOKEN, catalogue: [], expiresAtMs: Number.POSITIVE_INFINITY };
    client = new NeighbourClient(
      { session: { token: async () => token, refused: async () => {} }, clock: systemClock },
      { ...CINDER, interface: "internal", region: null, url: cinder.url, timeoutMs: 60_000, triesMax: 1 },
    );
    storage = new CinderClient(client);
  }, 180_000);
  afterAll(async () => {
    await client?.close();
    await cinder?.stop();
  });

  const settled = (id: string) =>
    eventually(
      "the volume is made",
      async () => {
        const volume = await storage.volume(id, OWN);
        return volume?.status === "creating" ? null : volume;
      },
      { everyMs: 200 },
    );

  async function make(values: Partial<NewCinderVolume> = {}, project = "one") {
    const wanted = {
      name: "data",
      sizeGib: 1,
      source: { kind: "blank" },
      volumeType: null,
      availabilityZone: null,
    } as const;
    const outcome = await storage.createVolume({ ...wanted, ...values }, as(project));
    if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
    return settled(outcome.volume.id);
  }

  test("makes a volume in the caller's project, shows it to that project, and deletes it repeatedly", async () => {
    const volume = await make({ name: "disk" });
    expect(volume).toMatchObject({ projectId: "one", name: "disk", sizeGib: 1, status: "available", attachedTo: [] });
    expect([volume.isBootable, volume.isMultiattach, volume.availabilityZone]).toEqual([false, false, "nova"]);
    expect(await storage.volume(volume.id, as("one"))).toMatchObject({ id: volume.id });
    expect(await storage.volume(volume.id, as("two"))).toBeNull();
    expect(await storage.deleteVolume(volume.id)).toEqual({ kind: "deleted" });
    await eventually("the volume is deleted", async () => (await storage.volume(volume.id, OWN)) === null, {
      everyMs: 200,
    });
    expect(await storage.deleteVolume(volume.id)).toEqual({ kind: "deleted" });
  });

  test("refuses a volume beyond the project's quota, and one of an unknown type", async () => {
    await cinder.call(SERVICE_TOKEN, "PUT", "os-quota-sets/poor", { quota_set: { volumes: 0 } });
    const wanted = {
      name: "",
      sizeGib: 1,
      source: { kind: "blank" },
      volumeType: null,
      availabilityZone: null,
    } as const;
    expect(await storage.createVolume(wanted, as("poor"))).toMatchObject({ kind: "over-quota" });
    expect(await storage.createVolume({ ...wanted, volumeType: "gold" }, as("one"))).toMatchObject({ kind: "refused" });
  });

  test("keeps a volume for one server, connects it to its host, and frees it at the end", async () => {
    const { id } = await make();
    const [server, other] = [randomUUID(), randomUUID()];
    const kept = await storage.reserve({ volumeId: id, serverUuid: server, connector: null }, as("one"));
    if (kept.kind !== "reserved") throw new Error(JSON.stringify(kept));
    const { attachment } = kept;
    expect(attachment).toEqual({
      ...{ id: attachment.id, volumeId: id, serverUuid: server, status: "reserved", connection: null },
    });
    const refused = await storage.reserve({ volumeId: id, serverUuid: other, connector: null }, as("one"));
    expect(refused).toMatchObject({ kind: "refused", why: expect.stringContaining("status must be available") });
    for (let time = 0; time < 2; time += 1) {
      const connected = await storage.connect(attachment.id, connectorOf("host-1"));
      if (connected.kind !== "connected") throw new Error(JSON.stringify(connected));
      const { connection } = connected.attachment;
      expect(connection).toMatchObject({ driver_volume_type: "nfs", export: "storage:/volumes", format: "raw" });
      const dir = createHash("md5").update("storage:/volumes").digest("hex");
      expect(existsSync(join(cinder.mounts, dir, String(connection?.name)))).toBe(true);
    }
    expect(await storage.volume(id, OWN)).toMatchObject({ status: "attaching", attachedTo: [] });
    for (let time = 0; time < 2; time += 1) expect(await storage.complete(attachment.id)).toBe(true);
    const home = { attachmentId: attachment.id, serverUuid: server, host: "host-1" };
    expect(await storage.volume(id, OWN)).toMatchObject({ status: "in-use", attachedTo: [home] });
    expect((await storage.deleteVolume(id)).kind).toBe("refused");
    for (let time = 0; time < 2; time += 1) await storage.deleteAttachment(attachment.id);
    expect(await storage.volume(id, OWN)).toMatchObject({ status: "available", attachedTo: [] });
    expect(await storage.attachments({ volumeId: id })).toEqual([]);
  });

  test("lets a server have a volume on two hosts while it moves, but connects none of two attachments later", async () => {
    const { id } = await make();
    const server = randomUUID();
    const reserve = async (host: string | null) => {
      const connector = host === null ? null : connectorOf(host);
      const outcome = await storage.reserve({ volumeId: id, serverUuid: server, connector }, OWN);
      if (outcome.kind !== "reserved") throw new Error(JSON.stringify(outcome));
      return outcome.attachment;
    };
    const source = await reserve(null);
    await storage.connect(source.id, connectorOf("host-1"));
    await storage.complete(source.id);
    const empty = await reserve(null);
    expect(await storage.connect(empty.id, connectorOf("host-2"))).toMatchObject({ kind: "refused" });
    const destination = await reserve("host-2");
    // Cinder's answer to a reservation has the status from before the connection.
    expect(destination).toMatchObject({ status: "reserved", connection: { driver_volume_type: "nfs" } });
    await storage.complete(destination.id);
    const hosts = (await storage.volume(id, OWN))?.attachedTo.map(({ host }) => host);
    expect(hosts?.toSorted()).toEqual(["host-1", "host-2"]);
    const found = await storage.attachments({ serverUuid: server, volumeId: id });
    expect(found.map((one) => one.id).toSorted()).toEqual([source.id, empty.id, destination.id].toSorted());
    await storage.deleteAttachment(source.id);
    expect((await storage.volume(id, OWN))?.status).toBe("in-use");
    expect(await storage.attachments({ serverUuid: randomUUID() })).toEqual([]);
  });

  test("says that a volume or an attachment is unknown", async () => {
    const wanted = { volumeId: randomUUID(), serverUuid: randomUUID(), connector: null };
    expect(await storage.reserve(wanted, OWN)).toEqual({ kind: "unknown" });
    const { id } = await make();
    expect(await storage.reserve({ ...wanted, volumeId: id }, as("two"))).toEqual({ kind: "unknown" });
    expect(await storage.connect(randomUUID(), connectorOf("host-1"))).toEqual({ kind: "gone" });
    expect(await storage.complete(randomUUID())).toBe(false);
  });
});
