import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryImageStore } from "../../adapters/memory/api/memory-image-store.ts";
import { type Neighbours, openNeighbours } from "../../adapters/openstack/open-neighbours.ts";
import type { ImageCaller, ImageService } from "../../core/stores/api/image-service.ts";
import { systemClock } from "../../runtime/clock.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { openGlanceParts } from "../../services/api/image/open-glance.ts";
import { openImages } from "../../services/api/image/open-images.ts";
import { imageServiceContract } from "../contract/image-service.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { hasGlance, type RealGlance, startRealGlance } from "./real-glance.ts";
import { hasKeystone, type RealKeystone, SERVICE_PASSWORD, startRealKeystone } from "./real-keystone.ts";

const isQcow2 = (bits: Buffer): boolean => bits.subarray(0, 4).toString("hex") === "514649fb";

// Needs Debian's packages keystone and glance-api: `npm run test:openstack` installs them.
describe.runIf(hasKeystone && hasGlance)("a real Glance", () => {
  let keystone: RealKeystone;
  let glance: RealGlance;
  let neighbours: Neighbours;
  let callers: Readonly<Record<"ann" | "bob", ImageCaller>>;
  const told: string[] = [];
  const events = {
    snapshotLost: (_id: string, reason: string) => told.push(reason),
    snapshotsNotSettled: (error: unknown) => told.push(String(error)),
    imageFetched: () => undefined,
    imageNotFetched: (_id: string | null, error: unknown) => told.push(String(error)),
    imageRefused: (_id: string, reason: string) => told.push(reason),
  };

  beforeAll(async () => {
    keystone = await startRealKeystone();
    glance = await startRealGlance(keystone);
    neighbours = openNeighbours({
      ...{ keystoneUrl: keystone.url, keystoneUser: "placement", keystonePassword: SERVICE_PASSWORD },
      ...{ keystoneProject: "service", keystoneUserDomain: "Default", keystoneProjectDomain: "Default" },
      ...{ keystoneApplicationCredentialId: null, keystoneApplicationCredentialSecret: null },
      ...{ keystoneCacheTtl: 1_000, tokenCacheUrl: null },
      ...{ openstackRegion: "one", openstackInterface: "internal", openstackTimeout: 20_000 },
    });
    callers = { ann: await member("ann"), bob: await member("bob") };
  }, 900_000);
  afterAll(async () => {
    await neighbours?.close();
    await glance?.stop();
    await keystone?.stop();
  });

  /** A user with the role `member` in a project of its own. */
  async function member(name: string): Promise<ImageCaller> {
    const { project } = await keystone.call("POST", "/projects", { project: { name } });
    const { user } = await keystone.call("POST", "/users", { user: { name, password: name } });
    const roles = (await keystone.call("GET", "/roles?name=member")).roles as unknown as readonly { id: string }[];
    await keystone.call("PUT", `/projects/${project?.id}/users/${user?.id}/roles/${roles[0]?.id}`);
    const identity = { methods: ["password"], password: { user: { id: user?.id, password: name } } };
    const answer = await fetch(`${keystone.url}/auth/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ auth: { identity, scope: { project: { id: project?.id } } } }),
    });
    const token = answer.headers.get("x-subject-token");
    return { projectId: String(project?.id), isAdmin: false, token, requestId: `req-${randomUUID()}` };
  }

  async function upload(
    { token }: ImageCaller,
    { bits, ...fields }: Readonly<Record<string, unknown>> & { readonly bits: Buffer | null },
  ): Promise<string> {
    const headers = { "x-auth-token": token ?? "", "content-type": "application/json" };
    const created = await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(fields) });
    const { id } = (await created.json()) as { id: string };
    const file = { ...headers, "content-type": "application/octet-stream" };
    if (bits !== null) {
      const sent = await fetch(`${glance.url}/v2/images/${id}/file`, {
        method: "PUT",
        headers: file,
        body: new Uint8Array(bits),
      });
      expect(sent.status).toBe(204);
    }
    return id;
  }

  function openService() {
    const dir = join(makeOwnedDir("real-glance"), randomUUID());
    mkdirSync(dir);
    const options = { images: "glance", auth: "keystone", imagesPath: dir, glanceUrl: null } as const;
    const glanceParts = openGlanceParts(neighbours, options, randomBytes(32));
    const deps = { images: new MemoryImageStore(), glance: glanceParts, clock: systemClock };
    const opened = openImages(deps, events as never, { cacheMs: 0, bytesMax: 1 << 20 });
    if (opened === null) throw new Error("there are no images");
    return { dir, ...opened };
  }

  imageServiceContract("a real Glance", async () => {
    const { dir, service, close } = openService();
    const admin = await keystone.issue();
    return {
      images: service satisfies ImageService,
      ...callers,
      upload,
      sortsBySeconds: true,
      copyDisk: async (id, bits) => {
        expect(isQcow2(bits)).toBe(true);
        writeFileSync(join(dir, `${id}.qcow2`), bits);
      },
      show: async (id) => {
        const answer = await fetch(`${glance.url}/v2/images/${id}`, { headers: { "x-auth-token": admin } });
        return answer.status === 404 ? null : ((await answer.json()) as Record<string, unknown>);
      },
      close: async () => {
        await close();
        rmSync(dir, { recursive: true });
      },
    };
  });

  test("its data get into the directory of the hosts, and are checked", async () => {
    const { dir, service, fetcher, close } = openService();
    told.length = 0;
    const raw = { name: "base", disk_format: "raw", container_format: "bare", visibility: "private" };
    const id = await upload(callers.ann, { ...raw, bits: Buffer.alloc(300_000, "disk") });
    const image = await service.find(id, callers.ann);
    if (image === null || image === "deleted") throw new Error("the image is not found");
    await service.provide(image);
    await eventually("the file", async () => {
      await fetcher?.look();
      return readdirSync(dir).join() === `${id}-${image.sha512?.slice(0, 32)}`;
    });
    expect(told).toEqual([]);
    await close();
    rmSync(dir, { recursive: true });
  });
});
