import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { BlockStorage, CinderAttachment, SnapshotReport } from "../../core/stores/block-storage.ts";
import { asProject as as, connectorOf, newCinderVolume, OWN, volumesContract } from "./volumes.contract.ts";

/**
 * The guarantees of the Block Storage service that an in-process twin stands behind, with which the test plays its other users, and what goes wrong. They
 * include `volumesContract`.
 */
export function blockStorageContract(
  name: string,
  make: () => Promise<{ readonly storage: BlockStorage; readonly twin: MemoryBlockStorage }>,
): void {
  volumesContract(name, async () => {
    const { storage, twin } = await make();
    return {
      storage,
      newVolume: async (projectId) => twin.putVolume({ projectId }).id,
      finishCreating: async (id) => twin.finishCreating(id),
      forbidVolumes: async () => {
        twin.volumesMax = 0;
      },
    };
  });

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
    test("shows a volume to its project and to this service", async () => {
      const { id } = twin.putVolume({
        ...{ projectId: "one", name: "disk", description: "big", sizeGib: 7, isBootable: true, volumeType: "fast" },
        ...{ metadata: { a: "b" }, createdAt: "2026-11-26T10:00:00.000000" },
        imageProperties: { image_id: "an image", hw_disk_bus: "scsi" },
      });
      expect(await storage.volume(id, as("one"))).toEqual({
        ...{
          id,
          projectId: "one",
          name: "disk",
          description: "big",
          sizeGib: 7,
          status: "available",
          isBootable: true,
        },
        ...{ volumeType: "fast", snapshotId: null, metadata: { a: "b" }, createdAt: "2026-11-26T10:00:00.000000" },
        ...{ isMultiattach: false, availabilityZone: "nova", migrationStatus: "", attachedTo: [] },
        imageProperties: { image_id: "an image", hw_disk_bus: "scsi" },
      });
      expect(await storage.volume(id, OWN)).toMatchObject({ id });
      expect(await storage.volume(id, as("two"))).toBeNull();
      expect(await storage.volume(randomUUID(), OWN)).toBeNull();
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
      const { id } = twin.putSnapshot(volumeId, { name: "daily", createdAt: "2026-11-26T10:00:00.000000" });
      expect(await storage.snapshot(id, as("one"))).toEqual({
        ...{ id, projectId: "one", volumeId, name: "daily", description: null, sizeGib: 7, status: "available" },
        ...{ metadata: {}, createdAt: "2026-11-26T10:00:00.000000" },
      });
      expect([await storage.snapshot(id, as("two")), await storage.snapshot(randomUUID(), OWN)]).toEqual([null, null]);
      const source = { kind: "snapshot", id } as const;
      const made = await storage.createVolume(newCinderVolume({ sizeGib: null, source }), as("one"));
      expect(made).toMatchObject({ kind: "created", volume: { sizeGib: 7, isBootable: true } });
    });

    test("hears what a guest's host has done for a snapshot, and then names its file to the host", async () => {
      const { id: volumeId } = twin.putVolume({ projectId: "one" });
      const wanted = { volumeId, serverUuid: randomUUID(), connector: { host: "h", initiator: "i" } };
      const kept = await storage.reserve(wanted, OWN);
      const attachmentId = kept.kind === "reserved" ? kept.attachment.id : "";
      const { id: snapshotId } = twin.putSnapshot(volumeId);
      const tell = (status: SnapshotReport["status"], isDone = true) =>
        storage.reportSnapshot({ snapshotId, status, isDone });
      expect(await tell("creating")).toMatchObject({ kind: "refused", why: expect.stringContaining("available") });
      twin.snapshotFiles.holds = true;
      const file = twin.snapshotFiles.begin(twin.snapshotFiles.all.get(snapshotId)!);
      expect(await tell("deleting")).toMatchObject({ kind: "refused" });
      for (let time = 0; time < 2; time += 1) expect(await tell("creating")).toEqual({ kind: "taken" });
      expect((await storage.attachment(attachmentId))?.connection).toMatchObject({ name: `volume-${volumeId}` });
      twin.snapshotFiles.goOn(snapshotId);
      expect((await storage.attachment(attachmentId))?.connection).toMatchObject({ name: file });
      expect(await storage.snapshot(snapshotId, OWN)).toMatchObject({ status: "available" });
      expect(await tell("error")).toMatchObject({ kind: "refused" });
      expect(await storage.reportSnapshot({ snapshotId: randomUUID(), status: "error", isDone: false })).toMatchObject({
        kind: "refused",
      });
      // A deletion does not find the word of an earlier one that has failed, if that was taken back.
      twin.snapshotFiles.beginDeletion(snapshotId);
      for (const isDone of [true, false]) expect(await tell("deleting", isDone)).toEqual({ kind: "taken" });
      twin.snapshotFiles.goOn(snapshotId);
      for (const isDone of [true, false]) await tell(isDone ? "deleting" : "error_deleting", isDone);
      twin.snapshotFiles.beginDeletion(snapshotId);
      twin.snapshotFiles.goOn(snapshotId);
      expect(await storage.snapshot(snapshotId, OWN)).toMatchObject({ status: "deleting" });
    });

    test("makes, lists and deletes snapshots in the caller's project, and says why not", async () => {
      const { id: volumeId } = twin.putVolume({ projectId: "one", sizeGib: 3 });
      const wanted = { volumeId, name: "daily", description: "a day", force: false };
      const made = await storage.createSnapshot(wanted, as("one"));
      if (made.kind !== "created") throw new Error(JSON.stringify(made));
      const { id } = made.snapshot;
      expect(made.snapshot).toMatchObject({ ...{ volumeId, name: "daily", description: "a day" }, sizeGib: 3 });
      const page = { projectId: "one", offset: 0, limit: 10 };
      expect(await storage.snapshots(page, as("one"))).toMatchObject({ found: [{ id }] });
      expect(await storage.snapshots(page, OWN)).toMatchObject({ found: [{ id }] });
      expect(await storage.snapshots({ ...page, offset: 1 }, as("one"))).toMatchObject({ found: [] });
      expect(await storage.snapshots(page, as("two"))).toMatchObject({ found: [] });
      expect(await storage.createSnapshot(wanted, as("two"))).toEqual({ kind: "unknown" });
      expect(await storage.removeSnapshot(id, as("two"))).toEqual({ kind: "unknown" });
      expect(await storage.removeSnapshot(id, as("one"))).toMatchObject({ kind: "refused" });
      expect(await storage.snapshot(id, as("one"))).toMatchObject({ status: "creating" });
      twin.finishCreating(id);
      expect(await storage.removeSnapshot(id, as("one"))).toEqual({ kind: "deleting" });
      expect(await storage.removeSnapshot(id, as("one"))).toEqual({ kind: "unknown" });
      twin.forbidsLists = true;
      for (const list of [storage.volumes(page, as("one")), storage.snapshots(page, as("one"))])
        expect(await list).toMatchObject({ kind: "forbidden", why: expect.stringContaining("Policy") });
      expect(await storage.volumes(page, OWN)).toMatchObject({ kind: "listed" });
      twin.snapshotsMax = 0;
      expect(await storage.createSnapshot(wanted, as("one"))).toMatchObject({ kind: "over-quota" });
      await storage.complete((await reserve(volumeId, randomUUID(), "host-1")).id);
      expect(await storage.createSnapshot(wanted, as("one"))).toMatchObject({ kind: "refused" });
      twin.snapshotsMax = 1;
      expect(await storage.createSnapshot({ ...wanted, force: true }, as("one"))).toMatchObject({ kind: "created" });
    });

    test("finds the snapshots of a volume with what their maker has noted, whoever owns them, and deletes no volume that has some", async () => {
      const [one, other] = [twin.putVolume({ projectId: "one" }).id, twin.putVolume({ projectId: "one" }).id];
      const wanted = { volumeId: one, name: "daily", description: null, force: true, metadata: { by: "berth" } };
      expect(await storage.createSnapshot(wanted, as("one"))).toMatchObject({
        kind: "created",
        snapshot: { metadata: { by: "berth" } },
      });
      twin.putSnapshot(other);
      expect(await storage.snapshotsOf(one)).toMatchObject([
        { volumeId: one, projectId: "one", status: "creating", metadata: { by: "berth" } },
      ]);
      expect(await storage.snapshotsOf(randomUUID())).toEqual([]);
      expect(await storage.deleteVolume(one)).toMatchObject({ kind: "refused" });
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

    test("gives the target of a migration the volume's id when it ends, with its attachments", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      const server = randomUUID();
      await storage.complete((await reserve(id, server, "host-1")).id);
      const { id: targetId } = twin.startMigration(id);
      expect(await storage.volume(id, OWN)).toMatchObject({ migrationStatus: "migrating" });
      expect(await storage.volume(targetId, OWN)).toMatchObject({ migrationStatus: `target:${id}`, attachedTo: [] });
      expect((await storage.volume(id, as("one")))?.migrationStatus).toBe("");
      expect((await storage.deleteVolume(targetId)).kind).toBe("refused");
      const attachment = await reserve(targetId, server, "host-1");
      await storage.complete(attachment.id);
      const ended = { volumeId: id, targetId, hasFailed: false };
      const swapped = { volumeId: targetId, targetId: id, hasFailed: false };
      expect(await storage.endMigration(swapped)).toMatchObject({ kind: "refused" });
      expect(await storage.endMigration(ended)).toEqual({ kind: "ended" });
      expect(await storage.volume(targetId, OWN)).toBeNull();
      const attachedTo = [{ attachmentId: attachment.id, serverUuid: server, host: "host-1" }];
      expect(await storage.volume(id, OWN)).toMatchObject({ status: "in-use", migrationStatus: "success", attachedTo });
      const name = `volume-${targetId}`;
      expect(await storage.attachment(attachment.id)).toMatchObject({ volumeId: id, connection: { name } });
      expect(await storage.endMigration(ended)).toMatchObject({ kind: "refused" });
    });

    test("drops the target of a migration that has failed", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      const attachment = await reserve(id, randomUUID(), "host-1");
      await storage.complete(attachment.id);
      const { id: targetId } = twin.startMigration(id);
      expect(await storage.endMigration({ volumeId: id, targetId, hasFailed: true })).toEqual({ kind: "ended" });
      expect(await storage.volume(targetId, OWN)).toBeNull();
      expect(await storage.volume(id, OWN)).toMatchObject({
        ...{ status: "in-use", migrationStatus: "error", attachedTo: [{ attachmentId: attachment.id }] },
      });
      await expect(storage.endMigration({ volumeId: id, targetId, hasFailed: true })).resolves.toMatchObject({
        kind: "refused",
      });
    });

    test("fills a volume that no host has with an image, and keeps it for its server meanwhile", async () => {
      const { id: volumeId } = twin.putVolume({ projectId: "one" });
      const server = randomUUID();
      const attached = await reserve(volumeId, server, "host-1");
      await storage.complete(attached.id);
      const wanted = { volumeId, imageId: randomUUID() };
      expect(await storage.reimage(wanted)).toMatchObject({ kind: "refused", why: expect.stringMatching(/in-use/) });
      await reserve(volumeId, server);
      expect(await storage.reimage(wanted)).toMatchObject({
        kind: "refused",
        why: expect.stringMatching(/one server/),
      });
      await storage.deleteAttachment(attached.id);
      twin.holdsReimages = true;
      expect(await storage.reimage(wanted)).toEqual({ kind: "begun" });
      expect(await storage.volume(volumeId, OWN)).toMatchObject({ status: "downloading" });
      expect(await storage.reimage(wanted)).toMatchObject({
        ...{ kind: "refused", why: expect.stringMatching(/downloading/) },
      });
      twin.fills.finish(true);
      expect(await storage.volume(volumeId, OWN)).toMatchObject({
        ...{ status: "reserved", imageProperties: { image_id: wanted.imageId } },
      });
      await storage.reimage(wanted);
      twin.fills.finish(false);
      expect(await storage.volume(volumeId, OWN)).toMatchObject({ status: "error" });
      expect(await storage.reimage({ ...wanted, volumeId: randomUUID() })).toMatchObject({ kind: "refused" });
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

    test("says that a driver fails", async () => {
      const { id } = twin.putVolume({ projectId: "one" });
      twin.brokenVolumes.add(id);
      const kept = await reserve(id, randomUUID());
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
