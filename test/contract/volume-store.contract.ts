import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type {
  NewAttachment,
  NewVolume,
  VolumeQuery,
  VolumeRecord,
  VolumeStore,
} from "../../core/stores/api/volume-store.ts";
import { goneFrom, serverSpec } from "./cell-fixtures.ts";

const NOW_MS = 1_700_000_000_000;

/** A volume of a project. */
export function newVolumeRow(values: Partial<NewVolume> = {}): NewVolume {
  return {
    ...{ id: randomUUID(), projectId: "p", userId: "u", name: "data", description: null, sizeGib: 2, metadata: {} },
    ...{ availabilityZone: "nova", isBootable: false, inCinder: false, making: null, createdAtMs: NOW_MS },
    ...values,
  };
}

/** An attachment to a server of its own. */
export function newAttachmentRow(values: Partial<NewAttachment> = {}): NewAttachment {
  return {
    ...{ serverUuid: randomUUID(), cell: "north", attachmentId: randomUUID(), mappingUuid: randomUUID() },
    ...{ device: "/dev/vdb", tag: null, deleteOnTermination: false, taskId: randomUUID() },
    ...values,
  };
}

/** The volumes beside the requests of the servers that have them. */
export interface VolumeStores {
  readonly store: VolumeStore;
  readonly requests: Pick<ApiStore, "accept" | "cancel" | "markDeleted">;
}

/** The guarantees of both implementations of the volumes' store. */
export function volumeStoreContract(name: string, makeStores: () => Promise<VolumeStores>): void {
  let store: VolumeStore;
  let requests: VolumeStores["requests"];
  const added = async (values: Partial<NewVolume> = {}): Promise<NewVolume> => {
    const one = newVolumeRow(values);
    expect(await store.createVolume(one, null)).toEqual({ kind: "created" });
    return one;
  };
  const find = async (id: string): Promise<VolumeRecord | undefined> => (await store.volumes([id]))[0];
  const phaseOf = async (id: string) => (await find(id))?.attachment?.phase ?? null;

  describe(`volumes in ${name}`, () => {
    beforeEach(async () => {
      ({ store, requests } = await makeStores());
    });

    test("a volume is returned as it was created", async () => {
      const one = await added({ description: "d", metadata: { a: "b", ü: "" }, isBootable: true });
      expect(await store.volumes([one.id, one.id, randomUUID(), "no uuid"])).toEqual([
        { ...one, updatedAtMs: null, attachment: null },
      ]);
    });

    test("lists the newest first, page by page, and by project, name and phase", async () => {
      const [old, other, young] = [
        await added({ createdAtMs: 1, name: "x" }),
        await added({ createdAtMs: 2, projectId: "q" }),
        await added({ createdAtMs: 3 }),
      ];
      const twins = [await added({ createdAtMs: 2 }), await added({ createdAtMs: 2 })].toSorted((a, b) =>
        a.id < b.id ? -1 : 1,
      );
      await store.reserve(old.id, newAttachmentRow());
      const ids = async (query: Partial<VolumeQuery>) =>
        (await store.listVolumes({ projectId: "p", limit: 10, ...query })).map(({ id }) => id);
      const all = [young, ...twins, old].map(({ id }) => id);
      expect(await ids({})).toEqual(all);
      expect(await ids({ limit: 2 })).toEqual(all.slice(0, 2));
      expect(await ids({ offset: 1, limit: 2 })).toEqual(all.slice(1, 3));
      for (const [at, after] of [young, ...twins, old].entries())
        expect(await ids({ after })).toEqual(all.slice(at + 1));
      expect(await ids({ projectId: null })).toContain(other.id);
      expect(await ids({ name: "x" })).toEqual([old.id]);
      expect(await ids({ phase: "available" })).toEqual(all.slice(0, 3));
      expect(await ids({ phase: "attaching" })).toEqual([old.id]);
    });

    test("a project's limits hold for concurrent calls, and another project's volumes do not count", async () => {
      await added({ projectId: "q", sizeGib: 9 });
      const limits = { volumes: 3, gib: 10 };
      const made = await Promise.all(Array.from({ length: 6 }, () => store.createVolume(newVolumeRow(), limits)));
      expect(made.filter(({ kind }) => kind === "created")).toHaveLength(3);
      expect(await store.createVolume(newVolumeRow(), limits)).toEqual({
        kind: "over-limit",
        limit: "volumes",
        used: 3,
      });
      expect(await store.createVolume(newVolumeRow({ sizeGib: 5 }), { volumes: 9, gib: 10 })).toEqual({
        ...{ kind: "over-limit", limit: "gib", used: 6 },
      });
      expect(await store.createVolume(newVolumeRow({ sizeGib: 4 }), { volumes: 9, gib: 10 })).toEqual({
        kind: "created",
      });
      expect(await store.usage("p")).toEqual({ volumes: 4, gib: 10 });
      expect(await store.usage("nobody")).toEqual({ volumes: 0, gib: 0 });
    });

    test("concurrent changes of one volume are all kept", async () => {
      const one = await added();
      const keys = ["a", "b", "c", "d"];
      await Promise.all(
        keys.map((key) =>
          store.updateVolume(one.id, ({ metadata }) => ({ metadata: { ...metadata, [key]: key } }), NOW_MS),
        ),
      );
      expect(
        await store.updateVolume(one.id, () => ({ name: "n", description: "d", isBootable: true }), NOW_MS + 1),
      ).toEqual({
        ...{ ...one, name: "n", description: "d", isBootable: true, attachment: null, updatedAtMs: NOW_MS + 1 },
        metadata: Object.fromEntries(keys.map((key) => [key, key])),
      });
      expect(await store.updateVolume(randomUUID(), () => ({}), NOW_MS)).toBeNull();
    });

    test("of concurrent reservations of one volume, only one gets it", async () => {
      const one = await added();
      const requested = Array.from({ length: 6 }, () => newAttachmentRow({ tag: "t", deleteOnTermination: true }));
      const outcomes = await Promise.all(requested.map((each) => store.reserve(one.id, each)));
      const won = outcomes.indexOf("reserved");
      expect(outcomes.toSorted()).toEqual(["reserved", ...Array(5).fill("taken")]);
      expect(await store.volumes([one.id])).toEqual([
        {
          ...{ ...one, updatedAtMs: null },
          attachment: { ...requested[won], phase: "attaching", attachedAtMs: null, phaseAgeMs: expect.any(Number) },
        },
      ]);
      expect(await store.reserve(randomUUID(), newAttachmentRow())).toBe("unknown");
    });

    test("two volumes of a server do not have the same device", async () => {
      const [one, other] = [await added(), await added()];
      const serverUuid = randomUUID();
      expect(await store.reserve(one.id, newAttachmentRow({ serverUuid }))).toBe("reserved");
      expect(await store.reserve(other.id, newAttachmentRow({ serverUuid }))).toBe("device-taken");
      expect(await store.reserve(other.id, newAttachmentRow({ serverUuid, device: "/dev/vdc" }))).toBe("reserved");
      const found = await store.volumesOfServers([serverUuid, "no uuid"]);
      expect(found.map(({ id }) => id)).toEqual([one.id, other.id]);
    });

    test("an attachment goes on only by the operation that the volume waits for", async () => {
      const { id } = await added();
      const own = newAttachmentRow();
      const { taskId, serverUuid } = own;
      const detach = randomUUID();
      await store.reserve(id, own);
      expect(await store.confirmAttached(id, randomUUID(), NOW_MS)).toBe(false);
      expect(await store.release(id, randomUUID())).toBe(false);
      expect(await store.beginDetaching(id, { serverUuid, taskId: detach })).toBe(false);
      expect(await store.confirmAttached(id, taskId, NOW_MS)).toBe(true);
      expect(await store.confirmAttached(id, taskId, NOW_MS)).toBe(false);
      expect(await store.release(id, taskId)).toBe(false);
      expect(await find(id)).toMatchObject({ attachment: { phase: "attached", taskId: null, attachedAtMs: NOW_MS } });
      expect(await store.beginDetaching(id, { serverUuid: randomUUID(), taskId: detach })).toBe(false);
      expect(await store.beginDetaching(id, { serverUuid, taskId: detach })).toBe(true);
      expect(await store.confirmAttached(id, detach, NOW_MS + 5)).toBe(true);
      expect(await find(id)).toMatchObject({ attachment: { phase: "attached", attachedAtMs: NOW_MS } });
      await store.beginDetaching(id, { serverUuid, taskId: detach });
      expect(await store.release(id, detach)).toBe(true);
      expect((await find(id))?.attachment).toBeNull();
      expect(await store.reserve(id, newAttachmentRow({ serverUuid }))).toBe("reserved");
    });

    test("a volume that a server has is not deleted, and no server gets one that is", async () => {
      const { id } = await added();
      const own = newAttachmentRow();
      await store.reserve(id, own);
      expect(await store.deleteVolume(id)).toBe("taken");
      await store.release(id, own.taskId);
      const raced = await Promise.all([store.deleteVolume(id), store.reserve(id, newAttachmentRow())]);
      expect([
        ["deleted", "unknown"],
        ["taken", "reserved"],
      ]).toContainEqual(raced);
      expect(await store.deleteVolume("no uuid")).toBe("unknown");
    });

    const sweep = async () => (await store.sweepEnded({ after: null, limit: 100 })).ended;

    test("stores a copy of a volume in Cinder, which changes only while no server has it", async () => {
      const copy = { ...newVolumeRow({ name: "old" }), inCinder: true };
      expect(await store.copyVolume(copy)).toBe(true);
      expect(await store.copyVolume({ ...copy, name: "new", sizeGib: 9 })).toBe(true);
      expect(await find(copy.id)).toMatchObject({ name: "new", sizeGib: 9, inCinder: true, attachment: null });
      const own = newAttachmentRow();
      await store.reserve(copy.id, own);
      expect(await store.copyVolume({ ...copy, name: "newer" })).toBe(true);
      expect(await find(copy.id)).toMatchObject({ name: "new", attachment: { attachmentId: own.attachmentId } });
      const attachmentId = randomUUID();
      expect(await store.setAttachmentId(copy.id, { serverUuid: randomUUID(), attachmentId })).toBe(false);
      expect(await store.setAttachmentId(copy.id, { serverUuid: own.serverUuid, attachmentId })).toBe(true);
      expect(await find(copy.id)).toMatchObject({ attachment: { attachmentId, phase: "attaching" } });
      const { id } = await added();
      expect(await store.copyVolume({ ...copy, id })).toBe(false);
      expect(await find(id)).toMatchObject({ inCinder: false });
    });

    test("looks for ended attachments page by page, or at those of given servers", async () => {
      const ids = (await Promise.all([added(), added(), added()])).map(({ id }) => id).sort();
      const own = ids.map(() => newAttachmentRow());
      for (const [at, id] of ids.entries()) await store.reserve(id, own[at]!);
      expect(await store.sweepEnded({ servers: [own[1]!.serverUuid] })).toEqual({ ended: 1, next: null });
      expect(await phaseOf(ids[1]!)).toBe("detaching");
      expect(await store.sweepEnded({ after: null, limit: 2 })).toEqual({ ended: 1, next: ids[1] });
      expect(await store.sweepEnded({ after: ids[1]!, limit: 2 })).toEqual({ ended: 1, next: null });
      expect(await store.sweepEnded({ servers: own.map(({ serverUuid }) => serverUuid) })).toMatchObject({ ended: 0 });
    });

    test("lists the volumes that wait for a cell, by id", async () => {
      const ids = (await Promise.all([added(), added(), added(), added()])).map(({ id }) => id).sort();
      const requested = ids.map(() => newAttachmentRow());
      for (const [at, id] of ids.slice(1).entries()) await store.reserve(id, requested[at]!);
      await store.confirmAttached(ids[3]!, requested[2]!.taskId, NOW_MS);
      const found = async (after: string | null, limit: number) =>
        (await store.unsettled(after, limit)).map(({ id }) => id);
      expect(await found(null, 9)).toEqual([ids[1], ids[2]]);
      expect(await found(null, 1)).toEqual([ids[1]]);
      expect(await found(ids[1]!, 9)).toEqual([ids[2]]);
    });

    test("the volumes of a deleted server wait for its cell, and those that were attached end as they were to", async () => {
      const [living, gone] = [1, 2].map((server) => serverSpec(server).uuid) as [string, string];
      await requests.accept([serverSpec(1), serverSpec(2)]);
      const attach = async (serverUuid: string, letter: string, deleteOnTermination: boolean) => {
        const { id } = await added();
        const own = newAttachmentRow({ serverUuid, device: `/dev/vd${letter}`, deleteOnTermination });
        await store.reserve(id, own);
        return { id, ...own };
      };
      const kept = await attach(living, "b", true);
      const [lasting, ending] = [await attach(gone, "b", false), await attach(gone, "c", true)];
      for (const one of [kept, lasting, ending]) await store.confirmAttached(one.id, one.taskId, NOW_MS);
      const unfinished = await attach(gone, "d", true);
      const unknown = await attach(randomUUID(), "b", false);
      expect(await sweep()).toBe(1);
      await requests.cancel(gone, "req-1");
      expect(await sweep()).toBe(0);
      await requests.markDeleted(goneFrom(null, [gone]));
      expect(await sweep()).toBe(3);
      expect(await sweep()).toBe(0);
      expect(await phaseOf(kept.id)).toBe("attached");
      for (const one of [lasting, ending, unfinished, unknown])
        expect(await find(one.id)).toMatchObject({ attachment: { phase: "detaching", taskId: null } });
      expect(await store.endAttachment(lasting.id, randomUUID(), false)).toBeNull();
      expect(await store.endAttachment(lasting.id, lasting.attachmentId, false)).toBe("released");
      expect(await store.endAttachment(lasting.id, lasting.attachmentId, false)).toBeNull();
      expect(await store.endAttachment(ending.id, ending.attachmentId, false)).toBe("deleted");
      expect(await store.endAttachment(unfinished.id, unfinished.attachmentId, false)).toBe("released");
      expect(await store.volumes([lasting.id, ending.id])).toMatchObject([{ id: lasting.id, attachment: null }]);
    });

    test("the end of an attachment is held by one holder at a time, and is free again after the time and at its end", async () => {
      const { id } = await added();
      const { attachmentId, ...rest } = newAttachmentRow();
      await store.reserve(id, { attachmentId, ...rest });
      const [one, two] = [randomUUID(), randomUUID()];
      const hold = (holder: string, ms = 3_600_000) => store.holdEnd(id, attachmentId, { holder, ms });
      const both = await Promise.all([hold(one), hold(two)]);
      expect(both.toSorted()).toEqual([false, true]);
      const [holder, other] = both[0] ? [one, two] : [two, one];
      expect([await hold(holder), await hold(other)]).toEqual([true, false]);
      expect(await store.holdEnd(id, randomUUID(), { holder, ms: 1 })).toBe(false);
      expect(await hold(holder, -1)).toBe(true);
      expect(await hold(other)).toBe(true);
      expect(await store.endAttachment(id, attachmentId, false)).toBe("released");
      expect(await hold(other)).toBe(false);
      await store.reserve(id, { attachmentId, ...rest });
      expect(await hold(holder)).toBe(true);
    });

    test("a volume of a new server is kept for it until it is accepted, and ends with it in the cell that it got", async () => {
      const { uuid } = serverSpec(3);
      const reserveFor = async (device: string) => {
        const { id } = await added();
        const own = newAttachmentRow({ serverUuid: uuid, taskId: uuid, cell: "", device, deleteOnTermination: true });
        await store.reserve(id, own);
        return id;
      };
      const [built, unbuilt] = [await reserveFor("/dev/vda"), await reserveFor("/dev/vdb")];
      expect(await sweep()).toBe(0);
      await requests.accept([serverSpec(3)]);
      expect(await sweep()).toBe(0);
      expect(await store.confirmAttached(built, uuid, NOW_MS, "north")).toBe(true);
      expect(await find(built)).toMatchObject({ attachment: { phase: "attached", cell: "north", taskId: null } });
      await requests.cancel(uuid, "req-1");
      await requests.markDeleted(goneFrom(null, [uuid]));
      expect(await sweep()).toBe(2);
      expect(await find(built)).toMatchObject({
        attachment: { phase: "detaching", cell: "north", deleteOnTermination: true },
      });
      expect(await find(unbuilt)).toMatchObject({
        attachment: { phase: "detaching", cell: "", taskId: null, deleteOnTermination: false },
      });
    });

    describe("a volume that is made with a server", () => {
      const make = async (uuid: string, values: Partial<NewVolume> = {}, fields: Partial<NewAttachment> = {}) => {
        const one = newVolumeRow({ inCinder: true, making: "made", ...values });
        const own = newAttachmentRow({ serverUuid: uuid, taskId: uuid, cell: "", device: "/dev/vda", ...fields });
        expect(await store.createVolume(one, null, own)).toEqual({ kind: "created" });
        return { ...one, ...own };
      };

      test("is reserved from the beginning, and gets the id that Cinder has given it, once", async () => {
        const asked = await make(randomUUID(), { making: "asked", name: "a name" });
        const other = await added();
        const made = { id: randomUUID(), sizeGib: 9, availabilityZone: "east", isBootable: true };
        expect(await find(asked.id)).toMatchObject({ making: "asked", attachment: { phase: "attaching" } });
        expect(await store.setMade(asked.id, { ...made, id: other.id })).toBe(false);
        expect(await store.setMade(asked.id, made)).toBe(true);
        expect([await store.setMade(asked.id, made), await find(asked.id)]).toEqual([false, undefined]);
        expect(await find(made.id)).toMatchObject({
          ...{ ...made, making: "made", name: "a name" },
          attachment: { serverUuid: asked.serverUuid, device: "/dev/vda" },
        });
        expect(await store.setMade(other.id, made)).toBe(false);
      });

      test("is deleted when it is released, unless its server has had it", async () => {
        const [failed, ran] = [await make(randomUUID()), await make(randomUUID())];
        expect(await store.confirmAttached(ran.id, ran.taskId, NOW_MS, "north")).toBe(true);
        expect(await find(ran.id)).toMatchObject({ making: null });
        const taskId = randomUUID();
        await store.beginDetaching(ran.id, { serverUuid: ran.serverUuid, taskId });
        expect([await store.release(failed.id, failed.taskId), await store.release(ran.id, taskId)]).toEqual([
          true,
          true,
        ]);
        expect(await store.volumes([failed.id, ran.id])).toMatchObject([{ id: ran.id, attachment: null }]);
      });

      test("is kept when an operation releases it that is not the build of its server", async () => {
        const one = await make(randomUUID(), {}, { taskId: randomUUID() });
        expect(await store.release(one.id, one.taskId)).toBe(true);
        expect(await find(one.id)).toMatchObject({ making: null, attachment: null });
      });

      test("ends with a server that never ran, and otherwise as its server's owner wished", async () => {
        const wishes = [
          { deleteOnTermination: false, neverRan: true },
          { deleteOnTermination: false, neverRan: false },
          { deleteOnTermination: true, neverRan: false },
        ];
        const ends: unknown[] = [];
        for (const { deleteOnTermination, neverRan } of wishes) {
          const { uuid } = serverSpec(4, { uuid: randomUUID() });
          const { id, attachmentId } = await make(uuid, {}, { deleteOnTermination });
          await requests.accept([serverSpec(4, { uuid })]);
          await requests.cancel(uuid, "req-1");
          await requests.markDeleted(goneFrom(null, [uuid]));
          expect(await sweep()).toBe(1);
          expect(await find(id)).toMatchObject({
            making: "made",
            attachment: { phase: "detaching", deleteOnTermination },
          });
          ends.push([await store.endAttachment(id, attachmentId, neverRan), (await find(id))?.making]);
        }
        expect(ends).toEqual([
          ["deleted", undefined],
          ["released", null],
          ["deleted", undefined],
        ]);
      });
    });

    test("whether a volume is deleted with its server can be changed while the server has it", async () => {
      const { id } = await added();
      const own = newAttachmentRow();
      await store.reserve(id, own);
      expect(await store.setDeleteOnTermination(id, randomUUID(), true)).toBe(false);
      expect(await store.setDeleteOnTermination(id, own.serverUuid, true)).toBe(true);
      expect(await find(id)).toMatchObject({ attachment: { deleteOnTermination: true } });
    });
  });
}
