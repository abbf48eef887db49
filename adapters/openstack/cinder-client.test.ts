import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { CinderAttachmentFilter } from "../../core/stores/block-storage.ts";
import { blockStorageContract } from "../../test/contract/block-storage.contract.ts";
import { startFakeCinder } from "../../test/rigs/fake-cinder.ts";
import type { FakeNeighbour } from "../../test/rigs/fake-neighbour.ts";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import { MemoryBlockStorage } from "../memory/memory-block-storage.ts";
import { CINDER, CinderClient } from "./cinder-client.ts";
import type { NeighbourClient } from "./neighbour-client.ts";

let cinder: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await cinder?.close();
});

function clientOf(url: string, limits: { readonly timeoutMs: number; readonly triesMax: number }): CinderClient {
  client = withServiceLogin({ ...CINDER, url, ...limits });
  return new CinderClient(client);
}

blockStorageContract("Cinder over HTTP", async () => {
  const twin = new MemoryBlockStorage({ newId: randomUUID });
  cinder = await startFakeCinder(twin);
  return { storage: clientOf(cinder.url, { timeoutMs: 5_000, triesMax: 2 }), twin };
});

test("a call that lets Cinder export a volume may take longer than others", async () => {
  const slow = createServer((_request, response) => {
    const attachment = { id: "a", volume_id: "v", instance: "s", status: "attaching", connection_info: {} };
    setTimeout(() => response.end(JSON.stringify({ attachment })), 300);
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const storage = clientOf(url, { timeoutMs: 50, triesMax: 1 });
    const connector = { host: "h", initiator: "i" };
    const by = { callerToken: null, requestId: null };
    expect(await storage.connect("a", connector)).toMatchObject({ kind: "connected" });
    const wanted = { volumeId: "v", serverUuid: "s" };
    expect(await storage.reserve({ ...wanted, connector }, by)).toMatchObject({ kind: "reserved" });
    await expect(storage.reserve({ ...wanted, connector: null }, by)).rejects.toMatchObject({ code: "unreachable" });
  } finally {
    slow.closeAllConnections();
    slow.close();
  }
});

test("Cinder gets the time that its driver needs to end an attachment, and is not asked again meanwhile", async () => {
  let asked = 0;
  const slow = createServer((_request, response) => {
    asked += 1;
    setTimeout(() => response.end(JSON.stringify({ attachments: [] })), 300);
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    await clientOf(url, { timeoutMs: 50, triesMax: 3 }).deleteAttachment("a");
    expect(asked).toBe(1);
  } finally {
    slow.closeAllConnections();
    slow.close();
  }
});

test("the error says which role is missing if Cinder does not take Berth for a service that may end attachments", async () => {
  const strict = createServer((_request, response) => {
    response.statusCode = 409;
    const message = "ConflictNovaUsingAttachment: Detach volume from instance s using the Compute API";
    response.end(JSON.stringify({ conflictingRequest: { code: 409, message } }));
  });
  await new Promise<void>((resolve) => strict.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(strict.address() as AddressInfo).port}`;
    await expect(clientOf(url, { timeoutMs: 5_000, triesMax: 1 }).deleteAttachment("a")).rejects.toMatchObject({
      code: "bad-answer",
      message: expect.stringMatching(/using the Compute API\. .*give the user of BERTH_KEYSTONE_USER the role service/),
    });
  } finally {
    strict.closeAllConnections();
    strict.close();
  }
});

test.each([401, 403])(
  "Cinder has refused for certain to fill a volume when it does not let Berth's user do so (%i)",
  async (code) => {
    const strict = createServer((_request, response) => {
      response.statusCode = code;
      const message = "Policy doesn't allow volume:reimage_reserved to be performed.";
      response.end(JSON.stringify({ forbidden: { code, message } }));
    });
    await new Promise<void>((resolve) => strict.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(strict.address() as AddressInfo).port}`;
      const storage = clientOf(url, { timeoutMs: 5_000, triesMax: 2 });
      expect(await storage.reimage({ volumeId: "v", imageId: "i" })).toEqual({
        ...{ kind: "refused", why: expect.stringMatching(`Cinder answers ${code}.*reimage_reserved`) },
      });
    } finally {
      strict.closeAllConnections();
      strict.close();
    }
  },
);

test("attachments of other servers and volumes are left out, also if Cinder ignores the filter", async () => {
  const of = (id: string, server: string, volume: string) => ({ id, instance: server, volume_id: volume });
  const attachments = [of("a", "s", "v"), of("b", "other", "v"), of("c", "s", "other")];
  const careless = createServer((_request, response) => response.end(JSON.stringify({ attachments })));
  await new Promise<void>((resolve) => careless.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(careless.address() as AddressInfo).port}`;
    const storage = clientOf(url, { timeoutMs: 5_000, triesMax: 1 });
    const idsOf = async (filter: CinderAttachmentFilter) => (await storage.attachments(filter)).map(({ id }) => id);
    expect(await idsOf({ serverUuid: "s", volumeId: "v" })).toEqual(["a"]);
    expect(await idsOf({ serverUuid: "s" })).toEqual(["a", "c"]);
    expect(await idsOf({})).toEqual(["a", "b", "c"]);
  } finally {
    careless.closeAllConnections();
    careless.close();
  }
});

test("all pages of a volume's snapshots are read, and a list that does not end is an error", async () => {
  const snapshots = ["a", "b", "c"].map((id) => ({ id, volume_id: "v", status: "available" }));
  let endless = false;
  const paged = createServer((request, response) => {
    const marker = new URL(request.url ?? "", "http://cinder").searchParams.get("marker");
    const from = endless ? 0 : snapshots.findIndex(({ id }) => id === marker) + 1;
    const links = from < 2 ? [{ rel: "next", href: "http://elsewhere/v3/snapshots/detail?marker=x" }] : [];
    response.end(JSON.stringify({ snapshots: snapshots.slice(from, from + 1), snapshots_links: links }));
  });
  await new Promise<void>((resolve) => paged.listen(0, "127.0.0.1", resolve));
  try {
    const storage = clientOf(`http://127.0.0.1:${(paged.address() as AddressInfo).port}`, {
      ...{ timeoutMs: 5_000, triesMax: 1 },
    });
    expect((await storage.snapshotsOf("v")).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(await storage.snapshotsOf("other")).toEqual([]);
    endless = true;
    await expect(storage.snapshotsOf("v")).rejects.toMatchObject({ code: "bad-answer" });
  } finally {
    paged.closeAllConnections();
    paged.close();
  }
});
