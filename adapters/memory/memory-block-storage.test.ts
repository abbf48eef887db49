import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { blockStorageContract } from "../../test/contract/block-storage.contract.ts";
import { MemoryBlockStorage } from "./memory-block-storage.ts";

blockStorageContract("in memory", async () => {
  const twin = new MemoryBlockStorage({ newId: randomUUID });
  return { storage: twin, twin };
});

test("a connection that a slow driver makes belongs to the volume that has the attachment by then", async () => {
  const cinder = new MemoryBlockStorage({ newId: randomUUID });
  const { id } = cinder.putVolume({ projectId: "one" });
  const { id: targetId } = cinder.startMigration(id);
  const wanted = { volumeId: targetId, serverUuid: randomUUID(), connector: null };
  const reserved = await cinder.reserve(wanted, { callerToken: null, requestId: null });
  if (reserved.kind !== "reserved") throw new Error(reserved.kind);
  cinder.fate = () => "slow";
  await cinder.connect(reserved.attachment.id, { host: "host-1", initiator: "iqn" }).catch(() => {});
  cinder.fate = () => "answered";
  await cinder.endMigration({ volumeId: id, targetId, hasFailed: false });
  cinder.finishSlow();
  expect(await cinder.attachment(reserved.attachment.id)).toMatchObject({ volumeId: id, status: "attaching" });
});
