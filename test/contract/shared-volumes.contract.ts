import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { NewAttachment, VolumeStore } from "../../core/stores/api/volume-store.ts";
import { eventually } from "../rigs/eventually.ts";
import { serverSpec } from "./cell-fixtures.ts";
import { newAttachmentRow, newVolumeRow } from "./volume-store.contract.ts";

const NOW_MS = 1_700_000_000_000;

/** The guarantees of both stores of volumes for those that several servers may have, and for those of servers that are being created. */
export function sharedVolumesContract(name: string, makeStore: () => Promise<VolumeStore>): void {
  let store: VolumeStore;
  const added = async () => {
    const one = newVolumeRow();
    expect(await store.createVolume(one, null)).toEqual({ kind: "created" });
    return one;
  };
  const find = async (id: string) => (await store.volumes([id]))[0];
  const sweep = async () => (await store.sweepEnded({ after: null, limit: 100 })).ended;

  describe(`shared and reserved volumes in ${name}`, () => {
    beforeEach(async () => {
      store = await makeStore();
    });

    test("several servers have a shared volume at a time, each of them once, and the end of one leaves the others", async () => {
      const copy = newVolumeRow({ inCinder: true });
      const own = [0, 1, 2].map(() => newAttachmentRow());
      const [first, second, third] = own as [NewAttachment, NewAttachment, NewAttachment];
      const reserved = await Promise.all(
        [...own, newAttachmentRow({ serverUuid: first.serverUuid, device: "/dev/vdc" })].map((one) =>
          store.reserveShared(copy, one),
        ),
      );
      expect(reserved.toSorted()).toEqual(["reserved", "reserved", "reserved", "taken"]);
      expect(await store.volumes([copy.id])).toHaveLength(3);
      const taskOf = async (serverUuid: string) =>
        (await store.volumesOfServers([serverUuid]))[0]?.attachment?.taskId ?? "";
      for (const { serverUuid } of [first, second]) {
        const taskId = await taskOf(serverUuid);
        expect(await store.confirmAttached(copy.id, taskId, NOW_MS)).toBe(true);
      }
      const phases = async () =>
        Object.fromEntries(
          (await store.volumes([copy.id])).map((one) => [one.attachment?.serverUuid, one.attachment?.phase]),
        );
      const [a, b, c] = own.map(({ serverUuid }) => serverUuid) as [string, string, string];
      expect(await phases()).toEqual({ [a]: "attached", [b]: "attached", [c]: "attaching" });
      expect(await store.release(copy.id, await taskOf(c))).toBe(true);
      const taskId = randomUUID();
      expect(await store.beginDetaching(copy.id, { serverUuid: c, taskId })).toBe(false);
      expect(await store.beginDetaching(copy.id, { serverUuid: b, taskId })).toBe(true);
      expect(await phases()).toEqual({ [a]: "attached", [b]: "detaching" });
      expect(await store.setDeleteOnTermination(copy.id, a, true)).toBe(true);
      expect((await store.volumesOfServers([b]))[0]?.attachment?.deleteOnTermination).toBe(false);
      const attachmentId = randomUUID();
      expect(await store.setAttachmentId(copy.id, { serverUuid: a, attachmentId })).toBe(true);
      expect(await store.endAttachment(copy.id, third.attachmentId, false)).toBeNull();
      expect(await store.release(copy.id, taskId)).toBe(true);
      expect(await store.endAttachment(copy.id, attachmentId, false)).toBe("deleted");
      expect(await store.volumes([copy.id])).toEqual([]);
    });

    test("a volume that was made for one server is not deleted when the build of another server that shares it is given up", async () => {
      const made = newVolumeRow({ inCinder: true, making: "made" });
      const [maker, sharer] = [randomUUID(), randomUUID()];
      const builtWith = (serverUuid: string) => newAttachmentRow({ serverUuid, taskId: serverUuid });
      expect(await store.createVolume(made, null, builtWith(maker))).toEqual({ kind: "created" });
      expect(await store.reserveShared(made, builtWith(sharer))).toBe("reserved");
      const makings = async () =>
        Object.fromEntries((await store.volumes([made.id])).map((one) => [one.attachment?.serverUuid, one.making]));
      expect(await makings()).toEqual({ [maker]: "made", [sharer]: null });
      const { attachmentId } = (await store.volumesOfServers([sharer]))[0]?.attachment ?? {};
      expect(await store.endAttachment(made.id, attachmentId ?? "", true)).toBe("released");
      expect(await makings()).toEqual({ [maker]: "made" });
    });

    test("a server has a shared volume under a device of its own, beside what an earlier version has reserved", async () => {
      const copy = newVolumeRow({ inCinder: true });
      await store.copyVolume(copy);
      const [before, after] = [newAttachmentRow(), newAttachmentRow()];
      await store.reserve(copy.id, before);
      expect(
        await store.reserveShared(copy, newAttachmentRow({ serverUuid: before.serverUuid, device: "/dev/vdc" })),
      ).toBe("taken");
      const other = await added();
      await store.reserve(other.id, after);
      expect(await store.reserveShared(copy, newAttachmentRow({ serverUuid: after.serverUuid }))).toBe("device-taken");
      const shared = newAttachmentRow({ serverUuid: after.serverUuid, device: "/dev/vdc" });
      expect(await store.reserveShared(copy, shared)).toBe("reserved");
      expect(await store.release(copy.id, before.taskId)).toBe(true);
      expect(await store.deleteVolume(copy.id)).toBe("deleted");
      expect(await store.volumes([copy.id])).toMatchObject([{ attachment: { serverUuid: after.serverUuid } }]);
      expect(await store.deleteVolume(copy.id)).toBe("taken");
    });

    test("the volumes of new servers that are still wanted are reserved from now on, and no others", async () => {
      const { uuid } = serverSpec(5);
      const [own, other, third] = [await added(), await added(), await added()];
      await store.reserve(own.id, newAttachmentRow({ serverUuid: uuid, taskId: uuid, cell: "" }));
      await store.reserve(other.id, newAttachmentRow());
      await store.reserve(third.id, newAttachmentRow({ serverUuid: uuid, device: "/dev/vdc" }));
      const ageOf = async (id: string) => (await find(id))?.attachment?.phaseAgeMs ?? 0;
      await eventually("the phases to last", async () => (await ageOf(third.id)) > 20, {
        everyMs: 5,
        withinMs: 10_000,
      });
      const before = await ageOf(third.id);
      await store.renewReserved([uuid, "no uuid", randomUUID()]);
      const [renewed, left, attaching] = [await ageOf(own.id), await ageOf(other.id), await ageOf(third.id)];
      expect([renewed < left, renewed < attaching, attaching >= before]).toEqual([true, true, true]);
      expect(await find(own.id)).toMatchObject({ attachment: { phase: "attaching", taskId: uuid } });
    });

    test("a page of volumes that wait for a cell never ends within a shared one", async () => {
      const copy = newVolumeRow({ inCinder: true });
      for (const one of [newAttachmentRow(), newAttachmentRow(), newAttachmentRow()])
        await store.reserveShared(copy, one);
      expect((await store.unsettled(null, 1)).map(({ id }) => id)).toEqual([copy.id, copy.id, copy.id]);
      expect(await store.unsettled(copy.id, 9)).toEqual([]);
      expect(await sweep()).toBe(3);
      expect((await store.unsettled(null, 9)).map(({ attachment: one }) => one?.phase)).toEqual(
        Array(3).fill("detaching"),
      );
    });
  });
}
