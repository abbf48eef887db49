import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, killQemu, type QemuGuestsDir, qemusBelow, whyNoQemu } from "../rigs/qemu-guests.ts";
import { openSmallDisk, type SmallDisk, whyNoSmallDisk } from "../rigs/small-disk.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const PATIENT = { everyMs: 200, withinMs: 120_000 };
const BUILDS = 3;
const TEST_MS = 400_000;
const skipped = whyNoQemu() ?? whyNoSmallDisk();

describe.skipIf(skipped !== null)(
  `on a host whose disk is full${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let disk: SmallDisk;
    let flavor: string;
    let [full, roomy] = ["", ""];

    // Hooks after the tests run in the reverse order: the disk goes after the cloud and its guests.
    beforeAll(() => {
      disk = openSmallDisk(32);
    });
    afterAll(() => {
      for (const path of qemusBelow(disk?.path ?? "/nowhere")) killQemu(path);
      disk?.close();
    });
    useGuestCloud({ agents: 2, isShared: false, firstStorage: () => disk.path }, async (made) => {
      ({ cloud, cell, dir } = made);
      flavor = await cloud.compute.flavor();
      [full = "", roomy = ""] = cell.agents.flatMap(({ hosts }) => hosts);
    });

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
    /** The servers that hold allocations of a host. */
    async function holdersOf(host: string): Promise<readonly string[]> {
      const rows = await cell.query<{ readonly uuid: string }>(
        `select distinct a.consumer_uuid as uuid from allocations a
         join resource_providers p on p.id = a.provider_id join resource_providers root on root.id = p.root_id
         where root.name = '${host}'`,
      );
      return rows.map(({ uuid }) => uuid).sort();
    }
    const leftOnFull = () => readdirSync(join(disk.path, cell.agents[0]?.id ?? "")).sort();

    test(
      "builds fail with the reason, go on to the alternate, and leave nothing on the first host, whose guests go on; with room, the host is used again",
      async () => {
        const first = await bootedOn(full);
        await ticksOn(first);
        const before = [leftOnFull(), qemusBelow(disk.path)];
        // The other host has less room for them, so it is the second choice.
        const others = await Promise.all(Array.from({ length: BUILDS + 1 }, () => bootedOn(roomy)));
        disk.fill();
        const ids: string[] = [];
        const attemptsOfNext = async () => {
          const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID });
          ids.push(id);
          expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": roomy });
          return cloud.compute.attempts(id);
        };
        // A scheduler that has not heard of the last servers yet chooses the other host first.
        const isRetry = (all: readonly unknown[]) => all.length > 1;
        const triedAtFull = async () => [await attemptsOfNext()].find(isRetry);
        expect(await eventually("a build that begins on the full disk", triedAtFull, PATIENT)).toMatchObject([
          { host: full, result: "Error", details: expect.stringMatching(/no space left on device/i) },
          { host: roomy, result: "Success" },
        ]);
        // Hosts on which builds have failed come later in the order.
        while (ids.length < BUILDS) expect((await attemptsOfNext()).at(-1)?.host).toBe(roomy);
        for (const id of ids) await ticksOn(id);
        expect([leftOnFull(), qemusBelow(disk.path)]).toEqual(before);
        expect(await holdersOf(full)).toEqual([first]);
        expect(await holdersOf(roomy)).toEqual([...others, ...ids].sort());
        await cloud.expectCleanAudit();
        disk.empty();
        await ticksOn(first);
        await Promise.all([first, ...others, ...ids].map((id) => cloud.compute.delete(id)));
        await cloud.compute.gone([first, ...others, ...ids]);
        expect([qemusBelow(disk.path), leftOnFull().filter((name) => name.startsWith("guest-"))]).toEqual([[], []]);
        await ticksOn(await bootedOn(full));
        await cloud.expectCleanAudit();
      },
      TEST_MS,
    );

    test(
      "the guest of a server that cannot be suspended runs on, and its owner reads why",
      async () => {
        const server = new WatchedServer(cloud.compute, dir, await bootedOn(full));
        await ticksOn(server.id);
        disk.fill();
        await server.act("suspend");
        expect(await server.ended("suspend", "SUSPENDED")).toEqual({ isDone: false, status: "ACTIVE" });
        expect(await server.reasonOf("suspend")).toContain("Make room where the guest's disk is");
        await ticksOn(server.id);
        disk.empty();
        await server.act("suspend");
        await server.settled("SUSPENDED");
        await server.act("resume");
        await server.settled("ACTIVE");
        await ticksOn(server.id);
        await cloud.expectCleanAudit();
      },
      TEST_MS,
    );
  },
);
