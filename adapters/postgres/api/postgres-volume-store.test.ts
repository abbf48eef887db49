import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedVolumesContract } from "../../../test/contract/shared-volumes.contract.ts";
import { volumeStoreContract } from "../../../test/contract/volume-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresVolumeStore } from "./postgres-volume-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "volume store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function makeStores() {
  await emptyTables(pool, ["volumes", "open_requests", "requests"]);
  return { store: new PostgresVolumeStore(pool), requests: new PostgresApiStore(pool) };
}

volumeStoreContract("Postgres", makeStores);
sharedVolumesContract("Postgres", async () => (await makeStores()).store);

describe("a volume that was made with a server, whose row an api of an earlier version has written", () => {
  const NO_ATTACHMENT = `phase = null, phase_at = null, reserved_at = null, attached_at_ms = null, server_uuid = null, cell = null, attachment_id = null,
    mapping_uuid = null, device = null, tag = null, delete_on_termination = null, task_id = null`;
  const make = async (serverUuid: string) => {
    const store = new PostgresVolumeStore(pool);
    const id = randomUUID();
    const volume = {
      ...{ id, projectId: "p", userId: "u", name: "root", description: null, sizeGib: 2, metadata: {} },
      ...{ availabilityZone: "nova", isBootable: true, inCinder: false, making: "made" as const, createdAtMs: 1 },
    };
    const attachment = {
      ...{ serverUuid, cell: "", attachmentId: randomUUID(), mappingUuid: randomUUID(), taskId: serverUuid },
      ...{ device: "/dev/vda", tag: null, deleteOnTermination: false },
    };
    await store.createVolume(volume, null, attachment);
    return { store, id, attachment };
  };
  const making = async (id: string) => (await new PostgresVolumeStore(pool).volumes([id]))[0]?.making;

  test("is kept when it is detached", async () => {
    const serverUuid = randomUUID();
    const { store, id } = await make(serverUuid);
    expect(await making(id)).toBe("made");
    await pool.query(
      "update volumes set phase = 'attached', task_id = null, attached_at_ms = 1, cell = 'north' where id = $1",
      [id],
    );
    expect(await making(id)).toBeNull();
    const taskId = randomUUID();
    expect(await store.beginDetaching(id, { serverUuid, taskId })).toBe(true);
    expect(await store.release(id, taskId)).toBe(true);
    expect(await store.volumes([id])).toMatchObject([{ id, attachment: null }]);
  });

  test("is kept when another server that is built with it fails", async () => {
    const { store, id, attachment } = await make(randomUUID());
    await pool.query(`update volumes set ${NO_ATTACHMENT} where id = $1`, [id]);
    const serverUuid = randomUUID();
    expect(await store.reserve(id, { ...attachment, serverUuid, taskId: serverUuid })).toBe("reserved");
    expect(await store.release(id, serverUuid)).toBe(true);
    expect(await store.volumes([id])).toMatchObject([{ id, attachment: null }]);
  });
});
