import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { BlockStorage, CinderAttachment, NewCinderVolume } from "../../core/stores/block-storage.ts";

const OWN = { callerToken: null, requestId: null };
const as = (projectId: string) => ({ callerToken: projectId, requestId: null });
const connectorOf = (host: string) => ({ host, initiator: `iqn.2026-11.berth:${host}` });

export const newCinderVolume = (values: Partial<NewCinderVolume> = {}): NewCinderVolume => ({
  ...{ name: "data", sizeGib: 2, source: { kind: "blank" }, volumeType: null, availabilityZone: null },
  ...values,
});

/** The guarantees of the Block Storage service. `twin` is what the service stands on, with which the test plays its other users. */
export function blockStorageContract(
  name: string,
  make: () => Promise<{ readonly storage: BlockStorage; readonly twin: MemoryBlockStorage }>,
): void {
  describe(`the Block Storage service: ${name}`, () => {
    let storage: BlockStorage;
    let twin: MemoryBlockStorage;
    beforeEach(async () => {
      ({ storage, twin } = await make());
    });

    async function reserve(
      volumeId: string,
      serverUuid: string,
      host: string | null = null,
    ): Promise<CinderAttachment> {
      const connector = host === null ? null : connectorOf(host);
      const outcome = await storage.reserve({ volumeId, serverUuid, connector }, OWN);
      if (outcome.kind !== "reserved") throw new Error(JSON.stringify(outcome));
      return outcome.attachment;
    }
    const statusOf = async (id: string) => (await storage.volume(id, OWN))?.status;

    test("shows a volume to its project and to this service", async () => {
      const { id } = twin.putVolume({
        ...{ projectId: "one", name: "disk", sizeGib: 7, isBootable: true },
        imageProperties: { image_id: "an image", hw_disk_bus: "scsi" },
      });
      expect(await storage.volume(id, as("one"))).toEqual({
        ...{ id, projectId: "one", name: "disk", sizeGib: 7, status: "available", isBootable: true },
        ...{ isMultiattach: false, availabilityZone: "nova", attachedTo: [] },
        imageProperties: { image_id: "an image", hw_disk_bus: "scsi" },
      });
      expect(await storage.volume(id, OWN)).toMatchObject({ id });
      expect(await storage.volume(id, as("two"))).toBeNull();
      expect(await storage.volume(randomUUID(), OWN)).toBeNull();
    });

    test("makes a volume in the caller's project, and deletes it repeatedly once it is made", async () => {
      const image = { kind: "image", id: randomUUID() } as const;
      const outcome = await storage.createVolume(newCinderVolume({ source: image }), as("one"));
      if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
      const { id } = outcome.volume;
      expect(outcome.volume).toMatchObject({ projectId: "one", status: "creating", sizeGib: 2, name: "data" });
      expect((await storage.deleteVolume(id)).kind).toBe("refused");
      twin.finishCreating(id);
      expect(await storage.volume(id, as("one"))).toMatchObject({ status: "available", isBootable: true });
      for (let time = 0; time < 2; time += 1) expect(await storage.deleteVolume(id)).toEqual({ kind: "deleted" });
      expect(await storage.volume(id, OWN)).toBeNull();
    });

    test("finds the volumes of all projects by their name, also after the answer to the making was lost", async () => {
      twin.fate = (method) => (method === "createVolume" ? "lost" : "answered");
      const name = `${randomUUID()}-blank-vol-0`;
      const making = storage.createVolume(newCinderVolume({ name }), as("one"));
      await expect(making).rejects.toMatchObject({ name: "BlockStorageError", code: "unreachable" });
      twin.putVolume({ projectId: "one", name: `${name}0` });
      expect(await storage.volumesNamed(name)).toMatchObject([{ name, projectId: "one", status: "creating" }]);
      expect(await storage.volumesNamed("no name")).toEqual([]);
    });

    test("shows a snapshot to its project, and makes a volume of its size of it", async () => {
      const { id: volumeId } = twin.putVolume({ projectId: "one", sizeGib: 7 });
      const { id } = twin.putSnapshot(volumeId);
      expect(await storage.snapshot(id, as("one"))).toEqual({ id, projectId: "one", volumeId, sizeGib: 7 });
      expect([await storage.snapshot(id, as("two")), await storage.snapshot(randomUUID(), OWN)]).toEqual([null, null]);
      const source = { kind: "snapshot", id } as const;
      const made = await storage.createVolume(newCinderVolume({ sizeGib: null, source }), as("one"));
      expect(made).toMatchObject({ kind: "created", volume: { sizeGib: 7, isBootable: true } });
    });

    test("refuses a volume of an unknown type", async () => {
      const made = await storage.createVolume(newCinderVolume({ volumeType: "gold" }), as("one"));
      expect(made).toMatchObject({ kind: "refused", why: expect.stringContaining("gold") });
    });

    test("refuses a volume beyond the project's quota, and says why", async () => {
      twin.volumesMax = 0;
      const outcome = await storage.createVolume(newCinderVolume(), as("one"));
      expect(outcome).toMatchObject({ kind: "over-quota", why: expect.stringContaining("VolumeLimitExceeded") });
    });

    test("keeps a volume for one server, connects it to its host, and frees it at the end", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      const [server, other] = [randomUUID(), randomUUID()];
      const kept = await storage.reserve({ volumeId: id, serverUuid: server, connector: null }, as("one"));
      if (kept.kind !== "reserved") throw new Error(JSON.stringify(kept));
      const { attachment } = kept;
      expect(attachment).toMatchObject({ volumeId: id, serverUuid: server, status: "reserved", connection: null });
      expect(await statusOf(id)).toBe("reserved");
      const refused = await storage.reserve({ volumeId: id, serverUuid: other, connector: null }, as("one"));
      expect(refused).toMatchObject({ kind: "refused", why: expect.stringContaining("status must be available") });
      for (let time = 0; time < 2; time += 1) {
        const connected = await storage.connect(attachment.id, connectorOf("host-1"));
        expect(connected).toMatchObject({
          kind: "connected",
          attachment: { id: attachment.id, status: "attaching", connection: { driver_volume_type: "nfs" } },
        });
      }
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "attaching", attachedTo: [] });
      for (let time = 0; time < 2; time += 1) expect(await storage.complete(attachment.id)).toBe(true);
      const home = { attachmentId: attachment.id, serverUuid: server, host: "host-1" };
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "in-use", attachedTo: [home] });
      expect((await storage.volume(id, as("one")))?.attachedTo).toEqual([{ ...home, host: "" }]);
      expect((await storage.deleteVolume(id)).kind).toBe("refused");
      for (let time = 0; time < 2; time += 1) await storage.deleteAttachment(attachment.id);
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "available", attachedTo: [] });
      expect(await storage.attachments({ volumeId: id })).toEqual([]);
    });

    test("lets a server have a volume on two hosts while it moves, but connects none of two attachments later", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      const server = randomUUID();
      const source = await reserve(id, server);
      await storage.connect(source.id, connectorOf("host-1"));
      await storage.complete(source.id);
      const empty = await reserve(id, server);
      expect(await storage.connect(empty.id, connectorOf("host-2"))).toMatchObject({ kind: "refused" });
      const destination = await reserve(id, server, "host-2");
      // Cinder's answer to a reservation has the status from before the connection.
      expect(destination).toMatchObject({ status: "reserved", connection: { driver_volume_type: "nfs" } });
      await storage.complete(destination.id);
      const hosts = (await storage.volume(id, OWN))?.attachedTo.map(({ host }) => host);
      expect(hosts?.toSorted()).toEqual(["host-1", "host-2"]);
      const found = await storage.attachments({ serverUuid: server, volumeId: id });
      expect(found.map((one) => one.id).toSorted()).toEqual([source.id, empty.id, destination.id].toSorted());
      await storage.deleteAttachment(source.id);
      expect(await statusOf(id)).toBe("in-use");
    });

    test("tells the format of a volume with one attachment, and elsewhere what its content looks like", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      twin.guessedFormats.set(id, "qcow2");
      const made = await reserve(id, randomUUID());
      expect(await storage.attachment(made.id)).toEqual(made);
      const connected = await storage.connect(made.id, connectorOf("host-1"));
      expect(connected).toMatchObject({ attachment: { connection: { format: "qcow2" } } });
      expect(await storage.attachments({ volumeId: id })).toMatchObject([{ connection: { format: "qcow2" } }]);
      expect(await storage.attachment(made.id)).toMatchObject({ id: made.id, connection: { format: "raw" } });
      expect(await storage.attachment(randomUUID())).toBeNull();
    });

    test("lets several servers have a volume that allows it", async () => {
      const { id } = twin.putVolume({ projectId: "one", isMultiattach: true });
      const servers = [randomUUID(), randomUUID()];
      for (const [at, server] of servers.entries()) {
        const { id: attachment } = await reserve(id, server, `host-${at}`);
        await storage.complete(attachment);
      }
      const shown = (await storage.volume(id, OWN))?.attachedTo.map(({ serverUuid }) => serverUuid);
      expect(shown?.toSorted()).toEqual(servers.toSorted());
      expect(await storage.attachments({ serverUuid: servers[0]! })).toHaveLength(1);
    });

    test("lists all attachments page by page", async () => {
      const ids = [];
      for (let at = 0; at < 3; at += 1)
        ids.push((await reserve(twin.putVolume({ projectId: "one" }).id, randomUUID())).id);
      const first = await storage.attachments({ after: null, limit: 2 });
      const last = await storage.attachments({ after: first[1]!.id, limit: 2 });
      expect([first.length, last.length]).toEqual([2, 1]);
      expect([...first, ...last].map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      expect(await storage.attachments({ after: last[0]!.id, limit: 2 })).toEqual([]);
    });

    test("refuses the page that follows an attachment that has ended", async () => {
      const { id: after } = await reserve(twin.putVolume({ projectId: "one" }).id, randomUUID());
      await storage.deleteAttachment(after);
      const page = storage.attachments({ after, limit: 2 });
      await expect(page).rejects.toMatchObject({ name: "BlockStorageError", code: "bad-answer" });
    });

    test("says that a volume or an attachment is unknown, and that a driver fails", async () => {
      const wanted = { volumeId: randomUUID(), serverUuid: randomUUID(), connector: null };
      expect(await storage.reserve(wanted, OWN)).toEqual({ kind: "unknown" });
      const { id } = twin.putVolume({ projectId: "one" });
      expect(await storage.reserve({ ...wanted, volumeId: id }, as("two"))).toEqual({ kind: "unknown" });
      expect(await storage.connect(randomUUID(), connectorOf("host-1"))).toEqual({ kind: "gone" });
      expect(await storage.complete(randomUUID())).toBe(false);
      twin.brokenVolumes.add(id);
      const kept = await reserve(id, wanted.serverUuid);
      expect(await storage.connect(kept.id, connectorOf("host-1"))).toMatchObject({ kind: "refused" });
    });

    test("is unreachable when it is silent or its answer is lost, in which case the change was made", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      const wanted = { volumeId: id, serverUuid: randomUUID(), connector: null };
      twin.fate = () => "silent";
      await expect(storage.attachments({ volumeId: id })).rejects.toMatchObject({ code: "unreachable" });
      twin.fate = (method) => (method === "reserve" ? "lost" : "answered");
      await expect(storage.reserve(wanted, OWN)).rejects.toMatchObject({
        name: "BlockStorageError",
        code: "unreachable",
      });
      expect(await storage.attachments({ volumeId: id })).toHaveLength(1);
    });
  });
}
