import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, killQemu, type QemuGuestsDir, qemusBelow, whyNoQemu } from "../rigs/qemu-guests.ts";
import { type HangingDisk, openHangingDisk, whyNoHangingDisk } from "../rigs/small-disk.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const PATIENT = { everyMs: 200, withinMs: 180_000 };
/** A conductor that has not heard from an agent for so long takes its host for down. */
const UNSEEN_MS = 20_000;
/** More than Node has threads for files by default. */
const WAITING = 6;
const TEST_MS = 600_000;
const skipped = whyNoQemu() ?? whyNoHangingDisk();

describe.skipIf(skipped !== null)(
  `guests whose host's directory of guests is on a storage that hangs${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let disk: HangingDisk;
    let flavor: string;
    let [hanging, healthy] = ["", ""];

    // Hooks after the tests run in the reverse order: the storage answers before the cloud ends, and goes after it.
    beforeAll(() => {
      disk = openHangingDisk();
    });
    afterAll(() => {
      for (const path of qemusBelow(disk?.path ?? "/nowhere")) killQemu(path);
      disk?.close();
    });
    const conductorEnv = { BERTH_AGENT_UNSEEN: `${UNSEEN_MS}ms`, BERTH_HOST_GRACE: "1s" };
    useGuestCloud({ agents: 2, isShared: false, conductorEnv, firstStorage: () => disk.path }, async (made) => {
      ({ cloud, cell, dir } = made);
      flavor = await cloud.compute.flavor();
      [hanging = "", healthy = ""] = cell.agents.flatMap(({ hosts }) => hosts);
    });
    afterAll(() => disk?.thaw());

    const call = async (method: "GET" | "POST", path: string, body?: object) => {
      const answer = await cloud.compute.call(method, path, body);
      const text = await answer.text();
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text === "" ? {} : JSON.parse(text);
    };
    const bootedOn = async (host: string) => {
      const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID, zone: `nova:${host}` });
      expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": host });
      return id;
    };
    const ticks = (id: string) =>
      [disk.path, dir.instancesPath].flatMap((path) => guestsOnDisk(path, id))[0]?.ticks.length ?? 0;
    async function ticksOn(id: string): Promise<void> {
      const before = ticks(id);
      await eventually(`ticks of ${id}`, () => ticks(id) > before, PATIENT);
    }
    const atRest = async (id: string) => {
      const shown = await cloud.compute.show(id);
      return shown?.["OS-EXT-STS:task_state"] === null;
    };
    /** Why no server can be built on the host. */
    async function closedBecause(host: string): Promise<string | null> {
      const answer = await fetch(`${cloud.apiUrl}/berth/v1/hosts/${host}`, { headers: { "x-auth-token": "admin" } });
      return ((await answer.json()) as { readonly closed_because: string | null }).closed_because;
    }
    const downHosts = async () => {
      const { services } = await call("GET", "/os-services?binary=nova-compute");
      return services.filter(({ state }: { readonly state: string }) => state !== "up");
    };

    test(
      "a host whose directory of guests hangs stays up and is closed, its servers keep their guests, and another host builds meanwhile",
      async () => {
        const ids = await Promise.all(Array.from({ length: WAITING }, () => bootedOn(hanging)));
        const other = await bootedOn(healthy);
        const qemus = qemusBelow(disk.path);
        expect(qemus).toHaveLength(WAITING);
        disk.freeze();
        const frozenAtMs = Date.now();
        for (const id of ids) await call("POST", `/servers/${id}/action`, { "os-stop": null });
        const reason = await eventually("the host to be closed", () => closedBecause(hanging), PATIENT);
        expect(reason).toMatch(/^the directory of guests .* has not answered for 15 s or longer$/);
        expect(await closedBecause(healthy)).toBeNull();
        // It would be taken for down by now, and again, if its agent stood still.
        await eventually("some time", () => Date.now() - frozenAtMs > 3 * UNSEEN_MS, PATIENT);
        expect(await downHosts()).toEqual([]);
        const fresh = await cloud.compute.endedOne(await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID }));
        expect(fresh).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": healthy });
        await cloud.compute.changed(other, "os-stop", "SHUTOFF");
        await cloud.compute.changed(other, "os-start", "ACTIVE");
        await Promise.all([other, fresh.id].map(ticksOn));
        // Nobody has touched the guests, and no server is taken for stopped or lost.
        expect(qemusBelow(disk.path)).toEqual(qemus);
        for (const id of ids) expect((await cloud.compute.show(id))?.status).toBe("ACTIVE");
        disk.thaw();
        await eventually("the host to be open", async () => (await closedBecause(hanging)) === null, PATIENT);
        // The QEMU of a guest that was just writing to the storage hung, too: its stop has failed with that reason, and its power button may be pressed only now.
        for (const id of ids) {
          await eventually(`the end of ${id}'s stop`, () => atRest(id), PATIENT);
          await cloud.compute.changed(id, "reboot", "ACTIVE", { type: "HARD" });
        }
        await Promise.all([...ids, await bootedOn(hanging)].map(ticksOn));
        await cloud.expectCleanAudit();
      },
      TEST_MS,
    );

    test(
      "an agent that starts while its directory of guests hangs serves its host, and adopts its guests when that answers",
      async () => {
        const id = await bootedOn(hanging);
        await ticksOn(id);
        const qemus = qemusBelow(disk.path);
        const [agent] = cell.agents;
        // A process cannot end while a thread of it hangs.
        await agent?.kill();
        disk.freeze();
        await agent?.start();
        const reason = await eventually("the host to be closed", () => closedBecause(hanging), PATIENT);
        expect(reason).toMatch(/has not answered/);
        await eventually("the hosts to be up", async () => (await downHosts()).length === 0, PATIENT);
        expect(qemusBelow(disk.path)).toEqual(qemus);
        disk.thaw();
        await eventually("the host to be open", async () => (await closedBecause(hanging)) === null, PATIENT);
        await ticksOn(id);
        await cloud.compute.changed(id, "os-stop", "SHUTOFF");
        await cloud.compute.changed(id, "os-start", "ACTIVE");
        await ticksOn(id);
        await cloud.expectCleanAudit();
      },
      TEST_MS,
    );
  },
);
