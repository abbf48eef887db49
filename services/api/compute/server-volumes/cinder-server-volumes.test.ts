import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryVolumeStore } from "../../../../adapters/memory/api/memory-volume-store.ts";
import { MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import type { CinderAttachmentFilter } from "../../../../core/stores/block-storage.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import type { KnownCall } from "../../http/call.ts";
import { CinderServerVolumes } from "./cinder-server-volumes.ts";

const OWN = { callerToken: null, requestId: null };
const SERVER = randomUUID();

const call = {
  identity: { projectId: "one", userId: "u", isAdmin: false },
  token: "t",
  requestId: "req",
} as KnownCall;

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
let nowMs: number;
/** The volumes that Cinder was said to fill for too long. */
let stillFilled: string[];
beforeEach(() => {
  stillFilled = [];
  cinder = new SlowCinder({ newId: randomUUID });
  nowMs = 1_000;
  store = new MemoryVolumeStore({ now: () => nowMs }, { requests: new MemoryApiStore({ clock: systemClock }) });
  volumeId = cinder.putVolume({ projectId: "one" }).id;
});

const events = { volumeStillFilled: ({ volumeId }: { readonly volumeId: string }) => stillFilled.push(volumeId) };
/** One of several apis. */
const api = () =>
  new CinderServerVolumes({ store, storage: cinder, events, clock: systemClock }, { sendsTokens: false });

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
  const copy = { ...volume, userId: "", description: null, metadata: {}, inCinder: true, making: null, createdAtMs: 1 };
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
    expect(await api().endAttachment(volumeId, first.attachmentId, false)).toBe("released");
    second = await attach();
  };
  expect(await api().endAttachment(volumeId, first.attachmentId, false)).toBeNull();
  expect(await attachments()).toEqual([second.attachmentId]);
});

test("the late end of an attachment does not delete a volume that Cinder kept and that was released meanwhile", async () => {
  const first = await attach({ deleteOnTermination: true });
  const deleteAttachment = cinder.deleteAttachment.bind(cinder);
  cinder.deleteAttachment = async (id) => {
    cinder.deleteAttachment = deleteAttachment;
    await deleteAttachment(id);
    // Another api asked for the deletion of the volume, Cinder refused it, and the user has the volume now.
    await store.endAttachment(volumeId, first.attachmentId, false);
  };
  expect(await api().endAttachment(volumeId, first.attachmentId, false)).toBeNull();
  expect(cinder.all()).toMatchObject([{ id: volumeId, status: "available" }]);
});

describe("the boot volume of a server that is gone, which Cinder fills with an image", () => {
  let attachmentId: string;
  const end = () => api().endAttachment(volumeId, attachmentId, false);
  beforeEach(async () => {
    ({ attachmentId } = await attach({ deleteOnTermination: true }));
    // As the conductor does it: the attachment without a host keeps the volume.
    await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN);
    await cinder.deleteAttachment(attachmentId);
    cinder.holdsReimages = true;
    await cinder.reimage({ volumeId, imageId: randomUUID() });
  });

  test.each([true, false])("is deleted afterwards, not before (filled: %s)", async (isFilled) => {
    expect([await end(), cinder.all()[0]?.status]).toEqual([null, "downloading"]);
    cinder.fills.finish(isFilled);
    expect([await end(), cinder.all(), await store.volumes([volumeId])]).toEqual(["deleted", [], []]);
    expect([stillFilled, cinder.fills.disturbances]).toEqual([[], []]);
  });

  test("is reserved for no other server meanwhile, though several may have it", async () => {
    cinder.putVolume({ ...cinder.all()[0]!, isMultiattach: true });
    const other = { serverUuid: randomUUID(), cell: "north", attachmentId: randomUUID(), mappingUuid: randomUUID() };
    const wanted = { ...other, device: "/dev/vdb", tag: null, deleteOnTermination: false, taskId: randomUUID() };
    const reserve = async () => api().reserve((await api().find([volumeId], call))[0]!, wanted, call);
    expect(await reserve()).toMatchObject({
      ...{ kind: "refused", fault: { status: 409, message: expect.stringMatching(/downloading.* try again/) } },
    });
    expect([(await store.volumes([volumeId])).length, cinder.fills.disturbances]).toEqual([1, []]);
    // Nobody has a volume that Cinder fills for the first time.
    const fresh = cinder.putVolume({ projectId: "one", isMultiattach: true, status: "downloading" }).id;
    const outcome = await api().reserve((await api().find([fresh], call))[0]!, wanted, call);
    expect(outcome.kind).toBe("reserved");
  });

  test("stays the server's as long as Cinder fills it, and an operator is told once, who can end that", async () => {
    const one = api();
    const endIn = () => one.endAttachment(volumeId, attachmentId, false);
    const before = await attachments();
    nowMs += 60 * 60_000 - 1;
    expect([await endIn(), stillFilled]).toEqual([null, []]);
    nowMs += 1;
    expect([await endIn(), await endIn(), stillFilled]).toEqual([null, null, [volumeId]]);
    expect([await attachments(), cinder.all()[0]?.status]).toEqual([before, "downloading"]);
    expect([(await store.volumes([volumeId])).length, cinder.fills.disturbances]).toEqual([1, []]);
    // The fill is dead, as the operator knows.
    cinder.fills.finish(false);
    cinder.putVolume({ ...cinder.all()[0]!, status: "available" });
    expect([await endIn(), cinder.all(), await store.volumes([volumeId])]).toEqual(["deleted", [], []]);
  });
});

describe("a volume that is made with a server", () => {
  const wanted = { name: `${SERVER}-blank-vol-0`, source: { kind: "blank" }, sizeGib: 3, volumeType: null } as const;
  const attachment = () => ({
    ...{ serverUuid: SERVER, cell: "", taskId: SERVER, attachmentId: randomUUID(), mappingUuid: randomUUID() },
    ...{ device: "/dev/vdb", tag: null, deleteOnTermination: false },
  });
  const named = () => cinder.all().filter(({ name }) => name === wanted.name);
  const rows = () => store.volumesOfServers([SERVER]);

  test("is noted before Cinder is asked, and with Cinder's id afterwards", async () => {
    let before: unknown = null;
    cinder.fate = (method) => {
      if (method === "createVolume") rows().then((found) => (before = found.map(({ making }) => making)));
      return "answered";
    };
    const outcome = await api().make(wanted, attachment(), call);
    const [{ id } = { id: "" }] = named();
    expect(outcome).toEqual({ kind: "made", volume: { id, isMultiattach: false, sizeGib: 3, inCinder: true } });
    expect([before, await rows()]).toMatchObject([
      ["asked"],
      [{ id, making: "made", attachment: { device: "/dev/vdb" } }],
    ]);
  });

  test("is made once when the answer of Cinder is lost", async () => {
    cinder.fate = (method) => (method === "createVolume" ? "lost" : "answered");
    expect(await api().make(wanted, attachment(), call)).toMatchObject({ kind: "made" });
    expect([named().length, await rows()]).toMatchObject([1, [{ id: named()[0]?.id, making: "made" }]]);
  });

  test("leaves a note when Cinder falls silent after it was made, from which it is found and deleted when it is ready", async () => {
    cinder.fate = (method) => (method === "createVolume" ? "lost" : "silent");
    await expect(api().make(wanted, attachment(), call)).rejects.toMatchObject({ status: 503 });
    cinder.fate = () => "answered";
    const [{ id, attachment: noted } = { id: "", attachment: null }] = await rows();
    const end = () => api().endAttachment(id, noted?.attachmentId ?? "", true);
    expect(await end()).toBeNull();
    expect([named().length, (await rows()).length]).toEqual([1, 1]);
    cinder.finishCreating(named()[0]?.id ?? "");
    expect(await end()).toBe("deleted");
    expect([named(), await rows()]).toEqual([[], []]);
  });

  test("is looked for some minutes when it is not there, since Cinder may still make it", async () => {
    cinder.fate = () => "silent";
    const late = attachment();
    await expect(api().make(wanted, late, call)).rejects.toMatchObject({ status: 503 });
    cinder.fate = () => "answered";
    expect(await api().endAttachment(late.mappingUuid, late.attachmentId, true)).toBeNull();
    expect(await rows()).toHaveLength(1);
    nowMs += 5 * 60_000;
    expect(await api().endAttachment(late.mappingUuid, late.attachmentId, true)).toBe("deleted");
    expect(await rows()).toEqual([]);
  });

  test("leaves nothing when Cinder refuses it", async () => {
    cinder.volumesMax = 0;
    const outcome = await api().make(wanted, attachment(), call);
    expect(outcome).toMatchObject({ kind: "refused", fault: { status: 403 } });
    expect([named(), await rows()]).toEqual([[], []]);
  });

  test.each(["available", "error"] as const)(
    "is deleted although Cinder refuses it at first, since it is %s only afterwards",
    async (status) => {
      const made = await api().make(wanted, attachment(), call);
      if (made.kind !== "made") throw new Error(made.kind);
      cinder.fate = (method) => {
        if (method === "volume") cinder.finishCreating(made.volume.id, status);
        return "answered";
      };
      expect(await api().release(made.volume.id, SERVER)).toBe(true);
      expect([named(), await rows()]).toEqual([[], []]);
    },
  );

  test("is deleted when the build of its server fails, and kept when its server has run with it", async () => {
    const [failed, ran] = [attachment(), { ...attachment(), device: "/dev/vdc" }];
    const ids: string[] = [];
    for (const [at, one] of [failed, ran].entries()) {
      const made = await api().make({ ...wanted, name: `${wanted.name}${at}` }, one, call);
      if (made.kind !== "made") throw new Error(made.kind);
      cinder.finishCreating(made.volume.id);
      ids.push(made.volume.id);
    }
    const [failedId = "", ranId = ""] = ids;
    expect(await api().release(failedId, SERVER)).toBe(true);
    expect(await api().endAttachment(ranId, ran.attachmentId, false)).toBe("released");
    expect(cinder.all().map(({ id }) => id)).toEqual([volumeId, ranId]);
    expect(await rows()).toEqual([]);
  });

  test("keeps its attachment while Cinder fills it for a rebuild, also if no api knows yet that its server has run with it", async () => {
    const late = attachment();
    const made = await api().make(wanted, late, call);
    if (made.kind !== "made") throw new Error(made.kind);
    const { id } = made.volume;
    cinder.finishCreating(id);
    await cinder.reserve({ volumeId: id, serverUuid: SERVER, connector: null }, OWN);
    cinder.holdsReimages = true;
    await cinder.reimage({ volumeId: id, imageId: randomUUID() });
    const end = () => api().endAttachment(id, late.attachmentId, false);
    expect([await end(), named()[0]?.status, cinder.fills.disturbances]).toEqual([null, "downloading", []]);
    cinder.fills.finish(true);
    expect([await end(), named()[0]?.status, await rows()]).toEqual(["released", "available", []]);
  });

  test("is kept in Cinder when it is detached, also if an api of an earlier version has not written that it was made", async () => {
    // The row is as such an api and `beginDetaching` leave it: still `made`, and waiting for an operation.
    const made = await api().make(wanted, { ...attachment(), taskId: randomUUID() }, call);
    if (made.kind !== "made") throw new Error(made.kind);
    cinder.finishCreating(made.volume.id);
    const taskId = (await rows())[0]?.attachment?.taskId ?? "";
    expect(await api().release(made.volume.id, taskId)).toBe(true);
    expect([named(), await rows()]).toMatchObject([[{ id: made.volume.id, status: "available" }], []]);
  });
});

describe("a volume that Cinder migrates", () => {
  const call = { identity: { projectId: "one", isAdmin: true }, requestId: null, token: null } as unknown as KnownCall;
  const replace = async () => {
    const otherId = cinder.startMigration(volumeId).id;
    const ask = async () => {
      const [own, other] = await Promise.all([volumeId, otherId].map(async (id) => (await api().find([id], call))[0]));
      if (own === undefined || other === undefined) throw new Error("a volume is gone");
      return api().reserveReplacement({ own, other, serverUuid: SERVER }, call);
    };
    return { otherId, ask };
  };

  test("reserves the other volume once, also when it is asked for again before a host has that one", async () => {
    await attach();
    const { ask, otherId } = await replace();
    expect(await ask()).toMatchObject({ kind: "reserved" });
    expect(await ask()).toMatchObject({ kind: "refused", fault: { status: 409 } });
    expect(await cinder.attachments({ volumeId: otherId })).toHaveLength(1);
  });

  test("is not replaced twice when two calls reserve the other volume at the same time", async () => {
    await attach();
    cinder.putVolume({ ...cinder.all()[0]!, isMultiattach: false });
    const { ask, otherId } = await replace();
    const reserve = cinder.reserve.bind(cinder);
    cinder.reserve = async (wanted, by) => {
      cinder.reserve = reserve;
      cinder.putVolume({ ...cinder.all().find(({ id }) => id === otherId)!, status: "available" });
      expect((await ask()).kind).toBe("reserved");
      cinder.putVolume({ ...cinder.all().find(({ id }) => id === otherId)!, status: "available" });
      return reserve(wanted, by);
    };
    expect(await ask()).toMatchObject({ kind: "refused", fault: { status: 409 } });
    // The earlier call's operation may use either of the two.
    expect(await cinder.attachments({ volumeId: otherId })).toHaveLength(2);
  });

  test("is refused before anything is reserved if several servers may have it", async () => {
    await attach();
    const { ask, otherId } = await replace();
    cinder.putVolume({ ...cinder.all().find(({ id }) => id === volumeId)!, isMultiattach: true });
    expect(await ask()).toMatchObject({
      ...{ kind: "refused", fault: { status: 400, message: expect.stringContaining("multiattach") } },
    });
    expect(await cinder.attachments({ volumeId: otherId })).toEqual([]);
  });
});
