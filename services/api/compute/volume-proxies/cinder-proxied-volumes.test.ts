import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import type { VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage } from "../../../../core/stores/block-storage.ts";
import type { KnownCall } from "../../http/call.ts";
import { CinderProxiedVolumes } from "./cinder-proxied-volumes.ts";

/** A caller of the project, whose token is the project's id, as the twin of Cinder takes it. */
const as = (projectId: string, isAdmin = false): KnownCall => ({
  ...{ requestId: "req-1", minor: 35, token: projectId, policy: null, rules: [] },
  identity: { ...{ userId: "u", projectId, isAdmin, roles: [] } } as KnownCall["identity"],
});
const PAGE = { offset: 0, limit: 10 };
const NEW = {
  ...{ name: "data", description: null, sizeGib: 2, metadata: {}, volumeType: null, availabilityZone: null },
  snapshotId: null,
};

let cinder: MemoryBlockStorage;
let rows: Pick<VolumeRecord, "id" | "attachment">[];
beforeEach(() => {
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  rows = [];
});
const proxied = (sendsTokens: boolean, storage: BlockStorage = cinder) =>
  new CinderProxiedVolumes({ storage, store: { volumes: async () => rows as VolumeRecord[] } }, { sendsTokens });

describe("with tokens of Keystone", () => {
  test("Cinder is asked in the caller's name, so that callers have what Cinder gives them", async () => {
    const volumes = proxied(true);
    const { id, status } = await volumes.createVolume(NEW, as("one"));
    expect(status).toBe("creating");
    cinder.finishCreating(id);
    expect(cinder.all()).toMatchObject([{ id, projectId: "one", sizeGib: 2 }]);
    expect(await volumes.volumes(PAGE, as("one"))).toMatchObject([{ id, holder: null }]);
    expect(await volumes.volumes(PAGE, as("two"))).toEqual([]);
    expect(await volumes.volume(id, as("two"))).toBeNull();
    await expect(volumes.deleteVolume(id, as("two"))).rejects.toMatchObject({
      ...{ status: 404, message: `Volume ${id} could not be found.` },
    });
    await volumes.deleteVolume(id, as("one"));
    expect(cinder.all()).toEqual([]);
  });

  test("the server that has a volume is shown with the name of its disk", async () => {
    const { id } = cinder.putVolume({ projectId: "one" });
    const serverUuid = randomUUID();
    const connector = { host: "h", initiator: "i" };
    const reserved = await cinder.reserve(
      { volumeId: id, serverUuid, connector },
      { callerToken: null, requestId: null },
    );
    if (reserved.kind !== "reserved") throw new Error(reserved.kind);
    await cinder.complete(reserved.attachment.id);
    expect(await proxied(true).volume(id, as("one"))).toMatchObject({ holder: { serverUuid, device: "" } });
    rows = [{ id, attachment: { serverUuid, device: "/dev/vdb" } as VolumeRecord["attachment"] }];
    expect(await proxied(true).volume(id, as("one"))).toMatchObject({ holder: { serverUuid, device: "/dev/vdb" } });
    await expect(proxied(true).deleteVolume(id, as("one"))).rejects.toMatchObject({
      ...{ status: 400, message: expect.stringMatching(/^Invalid input received: Invalid volume/) },
    });
  });

  test("refusals have Nova's statuses", async () => {
    const volumes = proxied(true);
    await expect(volumes.createVolume({ ...NEW, sizeGib: 0 }, as("one"))).rejects.toMatchObject({
      ...{ status: 400, message: expect.stringMatching(/^Invalid input received: .*size/) },
    });
    const { id } = cinder.putVolume({ projectId: "one" });
    cinder.volumesMax = 0;
    await expect(volumes.createVolume(NEW, as("one"))).rejects.toMatchObject({ status: 403 });
    cinder.snapshotsMax = 0;
    const snapshot = { volumeId: id, name: "s", description: null, force: false };
    await expect(volumes.createSnapshot(snapshot, as("one"))).rejects.toMatchObject({
      ...{ status: 403, message: "Quota exceeded for resources: snapshots" },
    });
    await expect(volumes.createSnapshot(snapshot, as("two"))).rejects.toMatchObject({ status: 404 });
    for (const unknown of ["", "invalid-5", randomUUID()]) {
      expect([await volumes.volume(unknown, as("one")), await volumes.snapshot(unknown, as("one"))]).toEqual([
        null,
        null,
      ]);
      await expect(volumes.deleteVolume(unknown, as("one"))).rejects.toMatchObject({ status: 404 });
      await expect(volumes.deleteSnapshot(unknown, as("one"))).rejects.toMatchObject({ status: 404 });
    }
  });

  test("a caller whom Cinder's policy forbids something gets 403", async () => {
    const forbidden = async () => ({ kind: "forbidden", why: "Policy doesn't allow volume:delete" }) as const;
    const strict = new Proxy(cinder, {
      get: (target, name: keyof BlockStorage) =>
        name === "removeVolume" || name === "removeSnapshot" ? forbidden : target[name].bind(target),
    });
    const id = randomUUID();
    await expect(proxied(true, strict).deleteVolume(id, as("one"))).rejects.toMatchObject({ status: 403 });
    await expect(proxied(true, strict).deleteSnapshot(id, as("one"))).rejects.toMatchObject({ status: 403 });
    cinder.forbidsLists = true;
    const refusal = { status: 403, message: "Policy doesn't allow this to be performed." };
    await expect(proxied(true).volumes(PAGE, as("one"))).rejects.toMatchObject(refusal);
    await expect(proxied(true).snapshots(PAGE, as("one"))).rejects.toMatchObject(refusal);
  });

  test("a silent Cinder is answered with 503, and a deletion whose answer is lost is done", async () => {
    const { id } = cinder.putVolume({ projectId: "one" });
    cinder.fate = () => "silent";
    await expect(proxied(true).volumes(PAGE, as("one"))).rejects.toMatchObject({ status: 503 });
    cinder.fate = () => "lost";
    await expect(proxied(true).deleteVolume(id, as("one"))).rejects.toMatchObject({ status: 503 });
    cinder.fate = () => "answered";
    await expect(proxied(true).deleteVolume(id, as("one"))).rejects.toMatchObject({ status: 404 });
  });
});

describe("without tokens of Keystone", () => {
  test("what Cinder shows this service of other projects is hidden, and is not deleted", async () => {
    const volumes = proxied(false);
    const { id } = cinder.putVolume({ projectId: "one" });
    const { id: snapshotId } = cinder.putSnapshot(id);
    expect(await volumes.volumes(PAGE, as("one"))).toMatchObject([{ id }]);
    expect(await volumes.snapshots(PAGE, as("one"))).toMatchObject([{ id: snapshotId }]);
    expect([await volumes.volumes(PAGE, as("two", true)), await volumes.snapshots(PAGE, as("two", true))]).toEqual([
      [],
      [],
    ]);
    const snapshot = { volumeId: id, name: "s", description: null, force: false };
    await expect(volumes.createSnapshot(snapshot, as("two"))).rejects.toMatchObject({ status: 404 });
    await expect(volumes.deleteVolume(id, as("two"))).rejects.toMatchObject({ status: 404 });
    await expect(volumes.deleteSnapshot(snapshotId, as("two"))).rejects.toMatchObject({ status: 404 });
    expect([await volumes.volume(id, as("one")), await volumes.snapshot(snapshotId, as("one"))]).toMatchObject([
      { id },
      { id: snapshotId },
    ]);
    const other = await volumes.createSnapshot(snapshot, as("two", true));
    expect(other).toMatchObject({ volumeId: id });
    await volumes.deleteSnapshot(snapshotId, as("one"));
    await expect(volumes.deleteSnapshot(other.id, as("one"))).rejects.toMatchObject({ status: 400 });
    cinder.finishCreating(other.id);
    await volumes.deleteSnapshot(other.id, as("one"));
    await volumes.deleteVolume(id, as("two", true));
    expect(cinder.all()).toEqual([]);
  });
});
