import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import {
  guestsOnDisk,
  killQemu,
  makeQemuGuestsDir,
  type QemuGuestsDir,
  qemusBelow,
  whyNoQemu,
} from "../rigs/qemu-guests.ts";
import { openSmallDisk, type SmallDisk, whyNoSmallDisk } from "../rigs/small-disk.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 200, withinMs: 120_000 };
const BUILDS = 3;
const TEST_MS = 400_000;
const skipped = whyNoQemu() ?? whyNoSmallDisk();

describe.skipIf(skipped !== null)(
  `builds on a host whose disk is full${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let dir: QemuGuestsDir;
    let disk: SmallDisk;
    let flavor: string;
    let [full, roomy] = ["", ""];

    beforeAll(async () => {
      dir = makeQemuGuestsDir();
      disk = openSmallDisk(32);
      const instancesOf = (agent: string) => {
        const path = join(agent.endsWith("1") ? disk.path : dir.instancesPath, agent);
        mkdirSync(path, { recursive: true });
        return path;
      };
      cloud = await Cloud.start({
        ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 2, hostsPerAgent: 1 },
        env: {
          ...{ BERTH_DRIVER: "qemu", BERTH_ACCEL: "tcg", BERTH_SHUTDOWN_TIMEOUT: "5s", BERTH_IMAGES_PATH: dir.images },
        },
        agentEnv: (agent) => ({ BERTH_INSTANCES_PATH: instancesOf(agent) }),
      });
      flavor = await cloud.compute.flavor();
      [full = "", roomy = ""] = cloud.cell("cell-1").agents.map(({ id }) => `${id}-host-1`);
    });
    afterAll(async () => {
      await cloud?.close();
      for (const path of qemusBelow(disk?.path ?? "/nowhere")) killQemu(path);
      await dir?.remove();
      disk?.close();
    });
    beforeEach(() => cloud.beforeTest());

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
      const rows = await cloud.cell("cell-1").query<{ readonly uuid: string }>(
        `select distinct a.consumer_uuid as uuid from allocations a
         join resource_providers p on p.id = a.provider_id join resource_providers root on root.id = p.root_id
         where root.name = '${host}'`,
      );
      return rows.map(({ uuid }) => uuid).sort();
    }
    const leftOnFull = () => readdirSync(join(disk.path, cloud.cell("cell-1").agents[0]?.id ?? "")).sort();

    test(
      "fail with the reason, go on to the alternate, and leave nothing on the first host, whose guests go on; with room, the host is used again",
      async () => {
        const first = await bootedOn(full);
        await ticksOn(first);
        const before = [leftOnFull(), qemusBelow(disk.path)];
        // The other host has less room for them, so it is the second choice.
        const others = await Promise.all(Array.from({ length: BUILDS + 1 }, () => bootedOn(roomy)));
        disk.fill();
        const ids: string[] = [];
        for (let index = 0; index < BUILDS; index += 1) {
          const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID });
          ids.push(id);
          expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": roomy });
        }
        const attempts = await Promise.all(ids.map((id) => cloud.compute.attempts(id)));
        // Hosts on which builds have failed come later in the order.
        expect(attempts[0]).toMatchObject([
          { host: full, result: "Error", details: expect.stringMatching(/no space left on device/i) },
          { host: roomy, result: "Success" },
        ]);
        expect(attempts.map((all) => all.at(-1)?.host)).toEqual(ids.map(() => roomy));
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
  },
);
