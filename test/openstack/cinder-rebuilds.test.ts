import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { type Neighbours, openNeighbours } from "../../adapters/openstack/open-neighbours.ts";
import { nanoImage } from "../../adapters/qemu/nano-image.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { type GlanceParts, openGlanceParts } from "../../services/api/image/open-glance.ts";
import { eventually } from "../rigs/eventually.ts";
import { makeQemuGuestsDir, otherNanoImage, type QemuGuestsDir, qemuDriverIn, whyNoQemu } from "../rigs/qemu-guests.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";
import { type HttpRelay, startHttpRelay } from "./http-relay.ts";
import { hasCinder, type RealCinder, startRealCinder } from "./real-cinder.ts";
import { hasGlance, type RealGlance, startRealGlance } from "./real-glance.ts";
import { hasKeystone, type RealKeystone, SERVICE_PASSWORD, startRealKeystone } from "./real-keystone.ts";

const SLOWLY = { everyMs: 200, withinMs: 150_000 };
const TIMEOUT = { timeout: 400_000 };

// Needs Debian's packages of Keystone, Glance, Cinder and QEMU: `npm run test:openstack` installs them.
describe.runIf(hasKeystone && hasGlance && hasCinder && whyNoQemu() === null)(
  "virtual machines whose volumes a real Cinder fills with images of a real Glance",
  () => {
    let keystone: RealKeystone;
    let glance: RealGlance;
    let cinder: RealCinder;
    /** Stands between Cinder and Glance. */
    let images: HttpRelay;
    /** Stands between Cinder and Berth's api. */
    let events: HttpRelay;
    let neighbours: Neighbours;
    let parts: GlanceParts;
    let storage: CinderClient;
    let dir: QemuGuestsDir;
    let cloud: TestCloud;
    /** The events that Cinder has sent. */
    const sent: string[] = [];
    /** The statuses with which Berth has answered them. */
    const answers: number[] = [];
    beforeAll(async () => {
      keystone = await startRealKeystone({ hasCache: true });
      glance = await startRealGlance(keystone);
      [images, events] = [await startHttpRelay(glance.url), await startHttpRelay()];
      const nova = `[nova]\nauth_type = none\nendpoint = ${events.url}/v2.1\n`;
      cinder = await startRealCinder(keystone, `[DEFAULT]\nglance_api_servers = ${images.url}\n${nova}`);
      neighbours = openNeighbours({
        ...{ keystoneUrl: keystone.url, keystoneUser: "placement", keystonePassword: SERVICE_PASSWORD },
        ...{ keystoneProject: "service", keystoneUserDomain: "Default", keystoneProjectDomain: "Default" },
        ...{ keystoneApplicationCredentialId: null, keystoneApplicationCredentialSecret: null },
        ...{ keystoneCacheTtl: 1_000, tokenCacheUrl: null },
        ...{ openstackRegion: "one", openstackInterface: "internal", openstackTimeout: 60_000 },
      });
      dir = makeQemuGuestsDir();
      const imagesPath = join(dir.path, `images-${randomUUID()}`);
      mkdirSync(imagesPath);
      parts = openGlanceParts(
        neighbours,
        { images: "glance", auth: "keystone", imagesPath, glanceUrl: null },
        randomBytes(32),
      );
      storage = new CinderClient(neighbours.client({ ...CINDER, url: cinder.url }));
      const inventories = { VCPU: { total: 8 }, MEMORY_MB: { total: 1_024 }, DISK_GB: { total: 10 } };
      const hosts = [{ name: "h-0", inventories, hypervisor: { type: "QEMU" } }];
      cloud = await startTestCloud({
        ...{ cells: [{ name: "c-1", hosts }], schedulers: 1, conductors: 1, volumes: "cinder", blockStorage: storage },
        glance: parts,
        openDriver: () => {
          const driver = qemuDriverIn(dir, { volumeMounts: cinder.mounts });
          return { driver, guests: () => driver.guests(new Set(["h-0"])), close: () => driver.close() };
        },
      });
      events.target = cloud.apiUrl;
      await call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 0 } });
    }, 900_000);
    beforeEach(() => hear());
    afterAll(async () => {
      await cloud?.close();
      await dir?.remove();
      await parts?.close();
      await neighbours?.close();
      await cinder?.stop();
      await glance?.stop();
      await keystone?.stop();
      await images?.close();
      await events?.close();
    });

    /** Lets Cinder's events and Glance's images pass. */
    function hear(): void {
      [sent.length, answers.length] = [0, 0];
      images.onRequest = async () => {};
      events.onAnswer = (status) => answers.push(status);
      events.onRequest = async (_method, _path, body) => {
        const told = JSON.parse(body) as { events: { name: string; tag: string }[] };
        for (const { name, tag } of told.events) sent.push(`${name} ${tag}`);
      };
    }
    /** Holds downloads of images until the returned function is called. */
    function holdDownloads(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      images.onRequest = (_method, path) => (path.endsWith("/file") ? promise : Promise.resolve());
      return resolve;
    }

    async function upload(bits: Buffer, format = "raw"): Promise<string> {
      const headers = { "x-auth-token": await keystone.issue(), "content-type": "application/json" };
      const fields = { name: "i", disk_format: format, container_format: "bare", visibility: "public" };
      const made = await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(fields) });
      const { id } = (await made.json()) as { id: string };
      const file = { ...headers, "content-type": "application/octet-stream" };
      const body = new Uint8Array(bits);
      const put = await fetch(`${glance.url}/v2/images/${id}/file`, { method: "PUT", headers: file, body });
      expect(put.status).toBe(204);
      return id;
    }
    const volume = (id: string) => storage.volume(id, OWN_NAME);
    const isIn = (id: string, status: string | undefined) =>
      eventually(`volume ${id} to be ${status}`, async () => (await volume(id))?.status === status, SLOWLY);
    /** Makes a call until it is answered with something else than 503: on a busy machine a cell may be late. */
    const call = (method: string, path: string, body?: unknown) =>
      eventually(
        `an answer to ${method} ${path}`,
        async () => {
          const answer = await cloud.call(method, path, body, 93);
          return answer.status === 503 ? null : answer;
        },
        SLOWLY,
      );
    const show = async (id: string) => (await call("GET", `/v2.1/servers/${id}`)).json.server;
    const act = (id: string, action: object) => call("POST", `/v2.1/servers/${id}/action`, action);
    /** Begins an action of a server. One that a late cell has begun makes the server busy for the next call. */
    async function begin(id: string, action: object): Promise<void> {
      let wasLate = false;
      const isBegun = async () => {
        const { status, json } = await cloud.call("POST", `/v2.1/servers/${id}/action`, action, 93);
        if (status !== 503 && status !== 202 && !(wasLate && status === 409)) throw new Error(JSON.stringify(json));
        wasLate ||= status === 503;
        return status !== 503;
      };
      await eventually(`the begin of ${JSON.stringify(action)}`, isBegun, SLOWLY);
    }
    async function comes(id: string, wanted: string): Promise<Record<string, never>> {
      return eventually(
        `server ${id} to be ${wanted}`,
        async () => {
          const server = await show(id);
          if (server["OS-EXT-STS:task_state"] !== null) return null;
          if (server.status === "ERROR" && wanted !== "ERROR") throw new Error(server.fault?.message);
          return server.status === wanted ? server : null;
        },
        SLOWLY,
      );
    }
    async function prints(id: string, letter: string): Promise<void> {
      const line = new RegExp(`^${letter}[0-9A-F]{4}`, "m");
      const read = async () => (await act(id, { "os-getConsoleOutput": {} })).json.output ?? "";
      await eventually(`the guest to print ${letter}`, async () => line.test(await read()), SLOWLY);
    }

    /** A server that boots from a volume, which Cinder has made of an image that prints `T`. The volume is so large that Cinder may take minutes to fill it. */
    async function booted(more: object = {}): Promise<{ readonly id: string; readonly disk: string }> {
      const image = { source_type: "image", destination_type: "volume", uuid: await upload(nanoImage()) };
      const { status, json } = await call("POST", "/v2.1/servers", {
        server: {
          ...{ name: "s", flavorRef: "s", imageRef: "", networks: "none" },
          block_device_mapping_v2: [{ ...image, boot_index: 0, volume_size: 10, ...more }],
        },
      });
      expect([status, json]).toEqual([202, expect.anything()]);
      const { id } = json.server;
      await comes(id, "ACTIVE");
      await prints(id, "T");
      const [made] = (await call("GET", `/v2.1/servers/${id}/os-volume_attachments`)).json.volumeAttachments;
      return { id, disk: made.volumeId };
    }

    test(
      "a rebuilt server boots from the volume with the new image, after Cinder's event or without it",
      TIMEOUT,
      async () => {
        const { id, disk } = await booted();
        const other = await upload(otherNanoImage());
        await begin(id, { rebuild: { imageRef: other } });
        await comes(id, "ACTIVE");
        await prints(id, "R");
        await eventually("Berth to have taken Cinder's event", () => answers.length > 0, SLOWLY);
        expect([new Set(sent), new Set(answers)]).toEqual([new Set([`volume-reimaged ${disk}`]), new Set([200])]);
        expect(await volume(disk)).toMatchObject({
          ...{ status: "in-use", imageProperties: { image_id: other }, attachedTo: [{ serverUuid: id, host: "h-0" }] },
        });
        expect(await storage.attachments({ volumeId: disk })).toMatchObject([{ serverUuid: id, status: "attached" }]);
        // The next event is lost.
        events.onRequest = () => Promise.reject(new Error("lost"));
        await begin(id, { rebuild: { imageRef: await upload(nanoImage()) } });
        await comes(id, "ACTIVE");
        await prints(id, "T");
        await isIn(disk, "in-use");
        await call("DELETE", `/v2.1/servers/${id}`);
        await isIn(disk, "available");
      },
    );

    test(
      "a server becomes ERROR with the reason when Cinder cannot use the image, and is rebuilt when its volume is usable again",
      TIMEOUT,
      async () => {
        const { id, disk } = await booted();
        // Cinder finds out what it is only when it has fetched it.
        const broken = await upload(nanoImage(), "qcow2");
        await begin(id, { rebuild: { imageRef: broken } });
        const failed = await comes(id, "ERROR");
        expect(failed).toMatchObject({
          fault: { message: expect.stringMatching(/^Cinder could not fill volume .*error/) },
        });
        await isIn(disk, "error");
        const refused = await act(id, { rebuild: { imageRef: broken } });
        expect([refused.status, refused.json.conflictingRequest.message]).toEqual([
          409,
          expect.stringMatching(/error/),
        ]);
        const reset = { "os-reset_status": { status: "reserved" } };
        await cinder.call(await keystone.issue(), "POST", `volumes/${disk}/action`, reset);
        await begin(id, { rebuild: { imageRef: await upload(otherNanoImage()) } });
        await comes(id, "ACTIVE");
        await prints(id, "R");
        await call("DELETE", `/v2.1/servers/${id}`);
        await isIn(disk, "available");
      },
    );

    test("no guest starts while a slow Cinder fills its volume: a hard reboot waits for that", TIMEOUT, async () => {
      const { id, disk } = await booted({ volume_size: 1 });
      const release = holdDownloads();
      await begin(id, { rebuild: { imageRef: await upload(otherNanoImage()) } });
      const failed = await comes(id, "ERROR");
      expect(failed).toMatchObject({ fault: { message: expect.stringMatching(/within 20 s, and may still do so/) } });
      expect((await volume(disk))?.status).toBe("downloading");
      expect((await act(id, { "os-resetState": { state: "active" } })).status).toBe(409);
      await begin(id, { reboot: { type: "HARD" } });
      await eventually("the reboot", async () => (await show(id))["OS-EXT-STS:task_state"] !== null, SLOWLY);
      expect((await volume(disk))?.status).toBe("downloading");
      release();
      await comes(id, "ACTIVE");
      await prints(id, "R");
      await isIn(disk, "in-use");
      await call("DELETE", `/v2.1/servers/${id}`);
      await isIn(disk, "available");
    });

    test(
      "the volume of a server that is deleted while Cinder fills it ends with it when it is filled",
      TIMEOUT,
      async () => {
        const { id, disk } = await booted({ delete_on_termination: true });
        const release = holdDownloads();
        await begin(id, { rebuild: { imageRef: await upload(otherNanoImage()) } });
        await isIn(disk, "downloading");
        await call("DELETE", `/v2.1/servers/${id}`);
        const listed = async () =>
          (await call("GET", "/v2.1/servers")).json.servers.map((one: { id: string }) => one.id);
        await eventually("the cell to have deleted the server", async () => !(await listed()).includes(id), SLOWLY);
        expect((await volume(disk))?.status).toBe("downloading");
        // Its volume cannot be deleted yet.
        expect(await show(id)).toMatchObject({ "OS-EXT-STS:task_state": "deleting" });
        release();
        await isIn(disk, undefined);
        await eventually("the server to be gone", async () => (await show(id)) === undefined, SLOWLY);
      },
    );
  },
);
