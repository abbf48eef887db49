import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { auditText } from "../../audit/print-report.ts";
import type { AuditedStorage } from "../../audit/read-cinder.ts";
import type { AuditedCell } from "../../audit/read-cloud.ts";
import { OWN } from "../contract/volumes.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

// The apis' sweep of attachments would mend some of it in the end, so the audit looks at once.
const cinder = new MemoryBlockStorage({ newId: randomUUID });
let cloud: TestCloud;
beforeAll(async () => {
  const inventories = { VCPU: { total: 32 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } };
  cloud = await startTestCloud({
    ...{ cells: [{ name: "c-1", hosts: [{ name: "h-0", inventories }] }], schedulers: 1, conductors: 1 },
    ...{ volumes: "cinder", blockStorage: cinder },
  });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
}, 120_000);
afterEach(() => {
  cinder.fate = () => "answered";
});
afterAll(() => cloud?.close());

// A reading opens connections, for which the databases of a busy machine may take longer than the audit waits.
const audit = ({
  isShared = false,
  cells = cloud.cells,
  storage = cinder,
}: {
  isShared?: boolean;
  cells?: readonly AuditedCell[];
  storage?: AuditedStorage["storage"];
} = {}) =>
  eventually("the databases to answer", () =>
    auditTwice({
      ...{ apiUrl: cloud.databaseUrl, cells, pauseMs: 0, patienceMs: 0, conductorSettings: [] },
      blockStorage: { storage, isShared, seesAllProjects: async () => true },
    }).catch(() => null),
  );
/** What the audit says of volumes, in the words of the report. */
const found = async (options?: Parameters<typeof audit>[0]) =>
  (await audit(options)).violations
    .filter(({ law }) => law === "volumes")
    .map(({ what, where }) => `${what}: ${where}`);

async function bootWith(volumeId: string): Promise<string> {
  const server = { name: "s", flavorRef: "s", imageRef: "", networks: "none" };
  const { json } = await cloud.call("POST", "/v2.1/servers", { server });
  const { id } = json.server;
  const shown = async () => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
  await eventually("the server to run", async () => (await shown()).status === "ACTIVE");
  await cloud.call("POST", `/v2.1/servers/${id}/os-volume_attachments`, { volumeAttachment: { volumeId } });
  await eventually("the volume to be attached", async () => {
    const volume = await cinder.volume(volumeId, OWN);
    return volume?.status === "in-use" && (await shown())["OS-EXT-STS:task_state"] === null;
  });
  return id;
}

test("the audit names attachments that no server has, servers' volumes without one, and volumes in use of nobody", async () => {
  const volumeId = cinder.putVolume({ projectId: "any" }).id;
  const server = await bootWith(volumeId);
  await eventually("the audit to find nothing", async () => (await found()).length === 0);
  const clean = await audit();
  expect([clean.unreadCinder, clean.counts.attachments]).toEqual([null, 1]);
  expect(auditText(clean)).toContain("volumes in Cinder                   agree with the servers (1 attachment)");

  const stray = cinder.putVolume({ projectId: "any" }).id;
  const unknown = randomUUID();
  const kept = await cinder.reserve({ volumeId: stray, serverUuid: unknown, connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(JSON.stringify(kept));
  const ofNobody = cinder.putVolume({ projectId: "any", status: "in-use" }).id;
  expect((await found()).toSorted()).toEqual([
    `Cinder has an attachment of a server that this cloud does not have: server ${unknown}, volume ${stray}, attachment ${kept.attachment.id}`,
    `Cinder takes a volume for that of a server, and nobody has it: volume ${ofNobody}`,
  ]);
  expect(await found({ isShared: true })).toEqual([]);

  const [attachment] = await cinder.attachments({ volumeId });
  await cinder.deleteAttachment(attachment?.id ?? "");
  expect(await found({ isShared: true })).toContain(
    `a server has a volume without an attachment in Cinder: cell c-1, server ${server}, volume ${volumeId}`,
  );
  // If two cells have the server, each may know only some of its volumes, so nothing is said about it.
  const copies = cloud.cells.map((cell) => ({ ...cell, name: "copy" }));
  expect(await found({ isShared: true, cells: [...cloud.cells, ...copies] })).toEqual([]);
  // What the audit offers as a remedy mends it.
  await cloud.call("POST", `/v2.1/servers/${server}/action`, { reboot: { type: "HARD" } });
  await eventually(
    "the volume to be connected again",
    async () => (await cinder.volume(volumeId, OWN))?.status === "in-use",
  );
  await eventually(
    "the server to be at rest, with its volume",
    async () => (await found({ isShared: true })).length === 0,
  );
});

test("a Cinder that does not answer is named, and nothing is said about volumes", async () => {
  cinder.putVolume({ projectId: "any", status: "in-use" });
  cinder.fate = (method) => (method === "attachments" ? "silent" : "answered");
  const report = await audit();
  expect([report.violations.filter(({ law }) => law === "volumes"), isClean(report)]).toEqual([[], false]);
  expect(report.unreadCinder).toContain("Cinder does not answer");
  expect(auditText(report)).toMatch(/volumes in Cinder +not checked: Cinder does not answer/);
});

test("while a cell cannot be read, its servers' volumes and attachments are not taken for those of nobody", async () => {
  const stray = cinder.putVolume({ projectId: "any" }).id;
  await cinder.reserve({ volumeId: stray, serverUuid: randomUUID(), connector: null }, OWN);
  const lost = { name: "lost", databaseUrl: "postgresql://127.0.0.1:1/none" };
  expect((await found()).filter((line) => line.includes(stray))).toHaveLength(1);
  expect((await found({ cells: [...cloud.cells, lost] })).filter((line) => line.includes(stray))).toEqual([]);
});

test("a cell that answers everything but the volumes of its servers is named, and the audit is not clean", async () => {
  let isLost = false;
  const [cell] = cloud.cells;
  const name = cell?.name ?? "";
  const cells = [
    {
      name,
      get databaseUrl() {
        return isLost ? "postgresql://127.0.0.1:1/none" : (cell?.databaseUrl ?? "");
      },
    },
  ];
  const storage: AuditedStorage["storage"] = {
    volumesWithStatus: (filter) => cinder.volumesWithStatus(filter),
    attachments: (filter) => {
      isLost = true;
      return cinder.attachments(filter);
    },
  };
  // Whatever a busy database does before, the cell is lost once Cinder is read.
  const report = await eventually("Cinder to be read", async () => {
    isLost = false;
    const read = await audit({ cells, storage });
    return isLost && read.counts.attachments !== null ? read : null;
  });
  expect(report.unread).toMatchObject({ [name]: expect.stringContaining("ECONNREFUSED") });
  expect([report.violations.filter(({ law }) => law === "volumes"), isClean(report)]).toEqual([[], false]);
});

test("a volume that only its server knows of is the server's, and not one of nobody, which is to be freed", async () => {
  const volumeId = cinder.putVolume({ projectId: "any" }).id;
  const server = await bootWith(volumeId);
  const [attachment] = await cinder.attachments({ volumeId });
  await cinder.deleteAttachment(attachment?.id ?? "");
  await withClient(cloud.databaseUrl, async (client) => {
    await client.query("delete from volumes where coalesce(volume_id, id) = $1", [volumeId]);
  });
  cinder.putVolume({ projectId: "any", id: volumeId, status: "in-use" });
  expect((await found()).filter((line) => line.includes(volumeId))).toEqual([
    `a server has a volume without an attachment in Cinder: cell c-1, server ${server}, volume ${volumeId}`,
  ]);
});
