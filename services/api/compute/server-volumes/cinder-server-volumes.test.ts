import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryVolumeStore } from "../../../../adapters/memory/api/memory-volume-store.ts";
import { MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import type { CinderAttachmentFilter } from "../../../../core/stores/block-storage.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import { CinderServerVolumes } from "./cinder-server-volumes.ts";

const OWN = { callerToken: null, requestId: null };
const SERVER = randomUUID();

/** Cinder, with what happens elsewhere while one question for attachments is under way. */
class SlowCinder extends MemoryBlockStorage {
  beforeList: () => Promise<void> = async () => {};

  override async attachments(filter: CinderAttachmentFilter) {
    const { beforeList } = this;
    this.beforeList = async () => {};
    await beforeList();
    return super.attachments(filter);
  }
}

let cinder: SlowCinder;
let store: MemoryVolumeStore;
let volumeId: string;
beforeEach(() => {
  cinder = new SlowCinder({ newId: randomUUID });
  store = new MemoryVolumeStore(systemClock, { requests: new MemoryApiStore({ clock: systemClock }) });
  volumeId = cinder.putVolume({ projectId: "one" }).id;
});

/** One of several apis. */
const api = () => new CinderServerVolumes({ store, storage: cinder, clock: systemClock }, { sendsTokens: false });

/**
 * The server gets the volume, as far as the api and the conductor are concerned. Returns the operation and the attachment. With `isNamed` false, the api has
 * not learnt which attachment Cinder made.
 */
async function attach({ deleteOnTermination = false, isNamed = true } = {}) {
  const {
    attachedTo: _,
    status: _status,
    isMultiattach: _multi,
    imageProperties: _properties,
    ...volume
  } = cinder.all()[0]!;
  const taskId = randomUUID();
  const copy = { ...volume, userId: "", description: null, metadata: {}, inCinder: true, createdAtMs: 1 };
  await store.copyVolume(copy);
  const kept = await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  const attachmentId = kept.attachment.id;
  await store.reserve(volumeId, {
    ...{
      serverUuid: SERVER,
      cell: "north",
      attachmentId: isNamed ? attachmentId : randomUUID(),
      mappingUuid: randomUUID(),
      device: "/dev/vdb",
      tag: null,
    },
    ...{ deleteOnTermination, taskId },
  });
  await cinder.connect(attachmentId, { host: "host-1", initiator: "iqn" });
  await cinder.complete(attachmentId);
  return { taskId, attachmentId };
}
const attachments = async () => (await cinder.attachments({})).map(({ id }) => id);

test("the release of a volume ends an attachment that Cinder has made and whose answer was lost", async () => {
  const { taskId } = await attach({ isNamed: false });
  expect(await api().release(volumeId, taskId)).toBe(true);
  expect(await attachments()).toEqual([]);
});

test("a release whose question is slow leaves alone what the server got after another api had released the volume", async () => {
  const first = await attach();
  let second = first;
  cinder.beforeList = async () => {
    expect(await api().release(volumeId, first.taskId)).toBe(true);
    second = await attach();
  };
  expect(await api().release(volumeId, first.taskId)).toBe(false);
  expect(await attachments()).toEqual([second.attachmentId]);
  expect((await store.volumes([volumeId]))[0]?.attachment).toMatchObject({ taskId: second.taskId });
  expect(await api().release(volumeId, second.taskId)).toBe(true);
  expect([await attachments(), await store.volumes([volumeId])]).toEqual([[], []]);
});

test("the late end of an attachment leaves alone what the server got after another api had ended it", async () => {
  const first = await attach();
  let second = first;
  cinder.beforeList = async () => {
    expect(await api().endAttachment(volumeId, first.attachmentId)).toBe("released");
    second = await attach();
  };
  expect(await api().endAttachment(volumeId, first.attachmentId)).toBeNull();
  expect(await attachments()).toEqual([second.attachmentId]);
});

test("the late end of an attachment does not delete a volume that Cinder kept and that was released meanwhile", async () => {
  const first = await attach({ deleteOnTermination: true });
  const deleteAttachment = cinder.deleteAttachment.bind(cinder);
  cinder.deleteAttachment = async (id) => {
    cinder.deleteAttachment = deleteAttachment;
    await deleteAttachment(id);
    // Another api asked for the deletion of the volume, Cinder refused it, and the user has the volume now.
    await store.endAttachment(volumeId, first.attachmentId);
  };
  expect(await api().endAttachment(volumeId, first.attachmentId)).toBeNull();
  expect(cinder.all()).toMatchObject([{ id: volumeId, status: "available" }]);
});
