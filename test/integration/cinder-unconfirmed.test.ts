import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  const hosts = ["h-0", "h-1"].map((name) => ({ name, inventories }));
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1 },
    ...{ volumes: "cinder", blockStorage: cinder },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
});
afterAll(() => cloud?.close());

const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
const find = (id: string) => cinder.all().find((volume) => volume.id === id);
const becomes = (id: string, wanted: string) =>
  eventually(`the server to be ${wanted}`, async () => {
    const { status, "OS-EXT-STS:task_state": task } = await show(id);
    return status === wanted && task === null;
  });
/** The attaching and the replacing of a volume are not shown as task states, so an action may be refused until they have ended. */
const act = (id: string, action: object) =>
  eventually("the action to be taken", async () => {
    const { status, json } = await cloud.call("POST", `/v2.1/servers/${id}/action`, action);
    if (status !== 409) expect([status, json]).toEqual([expect.toSatisfy((one: number) => one < 300), json]);
    return status < 300;
  });

test.each(["confirmResize", "revertResize"])(
  "Cinder replaces a volume of a server in VERIFY_RESIZE, for which it asks once for each host that has the volume, and a %s keeps the other one",
  async (end) => {
    const server = { name: "s", flavorRef: "s", imageRef: "", networks: "none" };
    const id: string = (await cloud.call("POST", "/v2.1/servers", { server })).json.server.id;
    await becomes(id, "ACTIVE");
    const before = (await show(id))["OS-EXT-SRV-ATTR:host"];
    const own = cinder.putVolume({ projectId: "any" }).id;
    await cloud.call("POST", `/v2.1/servers/${id}/os-volume_attachments`, { volumeAttachment: { volumeId: own } });
    await eventually("the volume to be attached", () => find(own)?.status === "in-use");
    await becomes(id, "ACTIVE");
    await act(id, { migrate: null });
    await becomes(id, "VERIFY_RESIZE");
    expect(find(own)?.attachedTo).toHaveLength(2);
    const { id: other } = cinder.startMigration(own);
    // Cinder connects nothing for now, so that the second call comes while the replacement is under way.
    cinder.fate = (method) => (method === "connect" ? "silent" : "answered");
    const url = `/v2.1/servers/${id}/os-volume_attachments/${own}`;
    const swap = () => cloud.call("PUT", url, { volumeAttachment: { volumeId: other } });
    for (const _ of find(own)?.attachedTo ?? []) expect(await swap()).toMatchObject({ status: 202 });
    const another = cinder.putVolume({ projectId: "any", migrationStatus: `target:${own}` }).id;
    expect((await cloud.call("PUT", url, { volumeAttachment: { volumeId: another } })).status).toBe(409);
    cinder.fate = () => "answered";
    await eventually("the migration to end", () => find(own)?.migrationStatus === "success");
    await becomes(id, "VERIFY_RESIZE");
    const { json } = await cloud.call("GET", `/v2.1/servers/${id}/os-instance-actions`);
    const swaps = json.instanceActions.filter(({ action }: { readonly action: string }) => action === "swap_volume");
    expect(swaps).toMatchObject([{ message: null }]);
    await act(id, { [end]: null });
    await becomes(id, "ACTIVE");
    const host = (await show(id))["OS-EXT-SRV-ATTR:host"];
    expect(host === before).toBe(end === "revertResize");
    await eventually("one host to have the volume", () => find(own)?.attachedTo.length === 1);
    expect(find(own)).toMatchObject({ status: "in-use", attachedTo: [{ serverUuid: id, host }] });
    expect(find(other)).toBeUndefined();
  },
);

test("a volume in doubt is not replaced by another one, which its host would refuse to copy and to call off, so that the operation would hold the move up", async () => {
  const server = { name: "s", flavorRef: "s", imageRef: "", networks: "none" };
  const id: string = (await cloud.call("POST", "/v2.1/servers", { server })).json.server.id;
  await becomes(id, "ACTIVE");
  const own = cinder.putVolume({ projectId: "any" }).id;
  await cloud.call("POST", `/v2.1/servers/${id}/os-volume_attachments`, { volumeAttachment: { volumeId: own } });
  await eventually("the volume to be attached", () => find(own)?.status === "in-use");
  await act(id, { migrate: null });
  await becomes(id, "VERIFY_RESIZE");
  const { id: other } = cinder.startMigration(own);
  await withClient(`${cloud.databaseUrl}_cell_c-1`, async (client) => {
    const { rows } = await client.query<{ spec: Buffer }>("select spec from servers where uuid = $1", [id]);
    const spec = ServerSpec.decode(rows[0]?.spec ?? Buffer.alloc(0));
    const volumes = spec.volumes.map((volume) => ({ ...volume, replacedBy: randomUUID() }));
    const changed = Buffer.from(ServerSpec.encode({ ...spec, volumes }).finish());
    await client.query("update servers set spec = $2, revision = revision + 1 where uuid = $1", [id, changed]);
  });
  const url = `/v2.1/servers/${id}/os-volume_attachments/${own}`;
  const { status, json } = await cloud.call("PUT", url, { volumeAttachment: { volumeId: other } });
  expect([status, json?.conflictingRequest?.message]).toEqual([409, expect.stringContaining("it is unknown whether")]);
  expect(await cinder.attachments({ volumeId: other })).toEqual([]);
});
