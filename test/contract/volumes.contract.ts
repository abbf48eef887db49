import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { BlockStorage, CinderList, NewCinderVolume } from "../../core/stores/block-storage.ts";
import { eventually } from "../rigs/eventually.ts";

export const OWN = { callerToken: null, requestId: null };
/** The token of a caller is the id of its project. */
export const asProject = (projectId: string) => ({ callerToken: projectId, requestId: null });
export const connectorOf = (host: string) => ({ host, initiator: `iqn.2026-11.berth:${host}` });

/** What a list holds that the caller may have. */
export async function listOf<One>(list: Promise<CinderList<One>>): Promise<readonly One[]> {
  const listed = await list;
  if (listed.kind !== "listed") throw new Error(JSON.stringify(listed));
  return listed.found;
}

export const newCinderVolume = (values: Partial<NewCinderVolume> = {}): NewCinderVolume => ({
  ...{ name: "data", sizeGib: 1, source: { kind: "blank" }, volumeType: null, availabilityZone: null },
  ...values,
});

/** A Block Storage service, and its other users. */
export interface UsedBlockStorage {
  readonly storage: BlockStorage;
  /** Makes a volume of the project, and returns its id when it is available. */
  newVolume(projectId: string): Promise<string>;
  /** Returns when a volume that was asked for has been made. */
  finishCreating(id: string): Promise<void>;
  /** From now on the project may have no further volume. */
  forbidVolumes(projectId: string): Promise<void>;
}

/** What the Block Storage service guarantees, whether it is a real Cinder or a twin. */
export function volumesContract(name: string, make: () => Promise<UsedBlockStorage>): void {
  describe(`volumes and attachments: ${name}`, () => {
    let used: UsedBlockStorage;
    let storage: BlockStorage;
    beforeEach(async () => {
      used = await make();
      ({ storage } = used);
    });
    const statusOf = async (id: string) => (await storage.volume(id, OWN))?.status;

    async function reserve(volumeId: string, serverUuid: string, host: string | null = null) {
      const connector = host === null ? null : connectorOf(host);
      const outcome = await storage.reserve({ volumeId, serverUuid, connector }, OWN);
      if (outcome.kind !== "reserved") throw new Error(JSON.stringify(outcome));
      return outcome.attachment;
    }

    test("makes a volume in the caller's project, shows it to that project, and deletes it repeatedly once it is made", async () => {
      const volumeName = `${randomUUID()}-blank-vol-0`;
      const outcome = await storage.createVolume(newCinderVolume({ name: volumeName }), asProject("one"));
      if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
      const { id } = outcome.volume;
      // Cinder's answer to the making does not name the project.
      expect(outcome.volume).toMatchObject({ projectId: "", status: "creating", sizeGib: 1, name: volumeName });
      expect(await storage.volumesNamed(volumeName)).toMatchObject([{ id, projectId: "one" }]);
      expect(await storage.volumesNamed(volumeName.slice(0, -1))).toEqual([]);
      await used.finishCreating(id);
      const shown = { id, projectId: "one", name: volumeName, sizeGib: 1, status: "available", attachedTo: [] };
      const plain = {
        ...{ isBootable: false, isMultiattach: false, availabilityZone: "nova", migrationStatus: "" },
        imageProperties: {},
      };
      const fields = { description: null, snapshotId: null, metadata: {} };
      expect(await storage.volume(id, asProject("one"))).toMatchObject({ ...shown, ...plain, ...fields });
      expect([await storage.volume(id, asProject("two")), await storage.volume(randomUUID(), OWN)]).toEqual([
        null,
        null,
      ]);
      expect(await storage.deleteVolume(id)).toEqual({ kind: "deleted" });
      await eventually("the volume is gone", async () => (await storage.volume(id, OWN)) === null, { everyMs: 100 });
      expect(await storage.deleteVolume(id)).toEqual({ kind: "deleted" });
      expect(await storage.volumesNamed(volumeName)).toEqual([]);
    });

    test("lists the volumes of one project, the newest first, and deletes one for its project only", async () => {
      const project = randomUUID().replaceAll("-", "");
      const page = { projectId: project, offset: 0, limit: 10 };
      const make = async (volumeName: string) => {
        const fields = { name: volumeName, description: "d", metadata: { a: "b" } };
        const made = await storage.createVolume(newCinderVolume(fields), asProject(project));
        if (made.kind !== "created") throw new Error(JSON.stringify(made));
        await used.finishCreating(made.volume.id);
        return made.volume.id;
      };
      const [first, second] = [await make("first"), await make("second")];
      const listed = await listOf(storage.volumes(page, asProject(project)));
      expect(listed).toMatchObject([
        { id: second, name: "second", status: "available" },
        { id: first, name: "first", description: "d", metadata: { a: "b" }, sizeGib: 1 },
      ]);
      expect(listed[0]?.createdAt).toMatch(/^\d{4}-\d\d-\d\dT/);
      expect((await listOf(storage.volumes(page, OWN))).map(({ id }) => id)).toEqual([second, first]);
      expect(await listOf(storage.volumes({ ...page, offset: 1, limit: 1 }, asProject(project)))).toMatchObject([
        { id: first },
      ]);
      expect(await listOf(storage.volumes(page, asProject("two")))).not.toContainEqual(
        expect.objectContaining({ id: first }),
      );
      expect(await listOf(storage.snapshots(page, asProject(project)))).toEqual([]);
      expect(await storage.removeVolume(first, asProject("two"))).toEqual({ kind: "unknown" });
      expect(await storage.removeVolume(first, asProject(project))).toEqual({ kind: "deleting" });
      await eventually("the volume is gone", async () => (await storage.volume(first, OWN)) === null, { everyMs: 100 });
      expect(await storage.removeVolume(first, asProject(project))).toEqual({ kind: "unknown" });
      await storage.reserve({ volumeId: second, serverUuid: randomUUID(), connector: null }, asProject(project));
      expect(await storage.removeVolume(second, asProject(project))).toMatchObject({
        ...{ kind: "refused", why: expect.stringContaining("Invalid volume") },
      });
    });

    test("lists the volumes of all projects that have a status, page after page", async () => {
      const ids = [await used.newVolume("one"), await used.newVolume("two"), await used.newVolume("one")];
      for (const id of ids.slice(0, 2)) await reserve(id, randomUUID());
      const listed: string[] = [];
      for (let after: string | null = null; ; ) {
        const page = await storage.volumesWithStatus({ status: "reserved", after, limit: 1 });
        expect(page.length).toBeLessThanOrEqual(1);
        after = page.at(-1)?.id ?? null;
        if (after === null) break;
        listed.push(after);
      }
      expect(listed.filter((id) => ids.includes(id)).toSorted()).toEqual(ids.slice(0, 2).toSorted());
      const gone = { status: "reserved", after: randomUUID(), limit: 1 };
      await expect(storage.volumesWithStatus(gone)).rejects.toMatchObject({ code: "bad-answer" });
    });

    test("refuses a volume beyond the project's quota, and says why", async () => {
      await used.forbidVolumes("poor");
      const outcome = await storage.createVolume(newCinderVolume(), asProject("poor"));
      expect(outcome).toMatchObject({ kind: "over-quota", why: expect.stringContaining("VolumeLimitExceeded") });
    });

    test("refuses a volume of an unknown type, and does not know a snapshot that nobody made", async () => {
      const made = await storage.createVolume(newCinderVolume({ volumeType: "gold" }), asProject("one"));
      expect(made).toMatchObject({ kind: "refused", why: expect.stringContaining("gold") });
      expect(await storage.snapshot(randomUUID(), asProject("one"))).toBeNull();
    });

    test("keeps a volume for one server, connects it to its host, and frees it at the end", async () => {
      const id = await used.newVolume("one");
      const [server, other] = [randomUUID(), randomUUID()];
      const kept = await storage.reserve({ volumeId: id, serverUuid: server, connector: null }, asProject("one"));
      if (kept.kind !== "reserved") throw new Error(JSON.stringify(kept));
      const { attachment } = kept;
      expect(attachment).toEqual({
        ...{ id: attachment.id, volumeId: id, serverUuid: server, status: "reserved", connection: null },
      });
      expect(await statusOf(id)).toBe("reserved");
      const refused = await storage.reserve({ volumeId: id, serverUuid: other, connector: null }, asProject("one"));
      expect(refused).toMatchObject({ kind: "refused", why: expect.stringContaining("status must be available") });
      for (let time = 0; time < 2; time += 1) {
        const connected = await storage.connect(attachment.id, connectorOf("host-1"));
        expect(connected).toMatchObject({
          kind: "connected",
          attachment: { id: attachment.id, connection: { driver_volume_type: "nfs" } },
        });
      }
      const connection = { driver_volume_type: "nfs", export: "storage:/volumes", format: "raw" };
      expect((await storage.attachment(attachment.id))?.connection).toMatchObject(connection);
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "attaching", attachedTo: [] });
      for (let time = 0; time < 2; time += 1) expect(await storage.complete(attachment.id)).toBe(true);
      const home = { attachmentId: attachment.id, serverUuid: server, host: "host-1" };
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "in-use", attachedTo: [home] });
      expect((await storage.volume(id, asProject("one")))?.attachedTo).toEqual([{ ...home, host: "" }]);
      expect((await storage.deleteVolume(id)).kind).toBe("refused");
      for (let time = 0; time < 2; time += 1) await storage.deleteAttachment(attachment.id);
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "available", attachedTo: [] });
      expect(await storage.attachments({ volumeId: id })).toEqual([]);
    });

    test("lets a server have a volume on two hosts while it moves, but connects none of two attachments later", async () => {
      const id = await used.newVolume("one");
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
      expect(await storage.attachments({ serverUuid: randomUUID() })).toEqual([]);
    });

    test("shows a volume as in use that no host has, and connects it to a host later", async () => {
      const id = await used.newVolume("one");
      const server = randomUUID();
      const { id: attachmentId } = await reserve(id, server);
      for (let time = 0; time < 2; time += 1) expect(await storage.complete(attachmentId)).toBe(true);
      const attachedTo = [{ attachmentId, serverUuid: server, host: "" }];
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "in-use", attachedTo });
      expect(await storage.attachments({ volumeId: id })).toMatchObject([{ id: attachmentId, connection: null }]);
      expect(await storage.attachment(attachmentId)).toMatchObject({ status: "attached", connection: null });
      const connection = { driver_volume_type: "nfs" };
      const connected = await storage.connect(attachmentId, connectorOf("host-1"));
      expect(connected).toMatchObject({ kind: "connected", attachment: { connection } });
      expect(await storage.complete(attachmentId)).toBe(true);
      expect(await storage.volume(id, OWN)).toMatchObject({
        ...{ status: "in-use", attachedTo: [{ attachmentId, serverUuid: server, host: "host-1" }] },
      });
      await storage.deleteAttachment(attachmentId);
      expect(await statusOf(id)).toBe("available");
      const without = await reserve(id, server);
      await storage.complete(without.id);
      await storage.deleteAttachment(without.id);
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "available", attachedTo: [] });
    });

    test("says that a volume or an attachment is unknown", async () => {
      const wanted = { volumeId: randomUUID(), serverUuid: randomUUID(), connector: null };
      expect(await storage.reserve(wanted, OWN)).toEqual({ kind: "unknown" });
      const volumeId = await used.newVolume("one");
      expect(await storage.reserve({ ...wanted, volumeId }, asProject("two"))).toEqual({ kind: "unknown" });
      expect(await storage.connect(randomUUID(), connectorOf("host-1"))).toEqual({ kind: "gone" });
      expect([await storage.attachment(randomUUID()), await storage.complete(randomUUID())]).toEqual([null, false]);
    });
  });
}
