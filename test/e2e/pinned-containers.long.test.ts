import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LxdClient } from "../../adapters/lxd/lxd-client.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { OWN_KEYS } from "../../services/compute-agent/lxd/container-of-server.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTwoLxds, TICKING_IMAGE_ID } from "../rigs/lxd-daemon.ts";
import { cpuPerNode, writeSysroot } from "../rigs/made-up-sysroot.ts";
import { whyNotTwoCpus } from "../rigs/qemu-guests.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const [FIRST, SECOND] = ["cell-1-agent-1-host-1", "cell-1-agent-2-host-1"];
/** The CPU of each NUMA node of each host. Both hosts are this machine, which each of them describes in its own way. */
const CPU_OF: Readonly<Record<string, readonly string[]>> = { [FIRST]: ["0", "1"], [SECOND]: ["1", "0"] };
const PATIENT = { everyMs: 100, withinMs: 90_000 };
const without = whyNotTwoCpus();
const lxd = without ?? (await startTwoLxds());
const skipped = typeof lxd === "string" ? lxd : null;
const daemons = typeof lxd === "string" ? [] : lxd;

afterAll(async () => {
  for (const daemon of daemons) await daemon.close();
});

describe.skipIf(skipped !== null)(
  `containers with dedicated CPUs${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let flavor: string;
    let dir: string;

    beforeAll(async () => {
      const [first, second] = daemons;
      if (first === undefined || second === undefined) return;
      dir = makeOwnedDir("pinned-containers");
      const sysrootOf = (host: string) => join(dir, host);
      for (const [host, cpus] of Object.entries(CPU_OF)) writeSysroot(sysrootOf(host), cpuPerNode(cpus.map(Number)));
      cloud = await Cloud.start({
        ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 2, hostsPerAgent: 1 },
        env: { BERTH_DRIVER: "lxd", BERTH_IMAGES_PATH: first.images, BERTH_SHUTDOWN_TIMEOUT: "5s" },
        agentEnv: (id) => {
          const [host, own] = [`${id}-host-1`, id.endsWith("1") ? first : second];
          return {
            ...{ BERTH_LXD_SOCKET: own.socketPath, BERTH_LXD_LOGS: own.logs, BERTH_DISCOVER: "true", BERTH_HOST: host },
            ...{ BERTH_SYSROOT: sysrootOf(host), BERTH_CPU_DEDICATED_SET: "0-1" },
          };
        },
      });
      cell = cloud.cell("cell-1");
      flavor = `pinned-${randomUUID()}`;
      // A sysroot says nothing of the disk.
      const values = { id: flavor, name: flavor, vcpus: 1, ram: 64, disk: 0 };
      await cloud.compute.call("POST", "/flavors", { flavor: values });
      const extra_specs = { "hw:cpu_policy": "dedicated", "hw:numa_nodes": "1" };
      await cloud.compute.call("POST", `/flavors/${flavor}/os-extra_specs`, { extra_specs });
    });
    afterAll(async () => {
      await cloud?.close();
      if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
    });
    beforeEach(() => cloud.beforeTest());

    const booted = async (): Promise<string> => {
      const id = await cloud.compute.boot({ flavor, image: TICKING_IMAGE_ID });
      const { status } = await cloud.compute.endedOne(id);
      expect([status, await cloud.compute.attempts(id)]).toEqual(["ACTIVE", expect.anything()]);
      return id;
    };
    const hostOf = async (id: string) => (await cloud.compute.show(id))?.["OS-EXT-SRV-ATTR:host"] ?? "";
    const placement = async (path: string) => {
      const headers = { "x-auth-token": "admin", "openstack-api-version": "placement 1.39" };
      return (await (await fetch(`${cloud.apiUrl}/placement${path}`, { headers })).json()) as ReturnType<
        typeof JSON.parse
      >;
    };
    /** The CPU of the NUMA node whose PCPU the server has claimed. */
    async function claimedCpu(id: string): Promise<string | undefined> {
      const { allocations } = await placement(`/allocations/${id}`);
      for (const [provider, { resources }] of Object.entries<{ readonly resources: Record<string, number> }>(
        allocations,
      )) {
        if (resources.PCPU === undefined) continue;
        const { name } = await placement(`/resource_providers/${provider}`);
        const [, host = "", node] = /^(.*)_numa(\d)$/.exec(name) ?? [];
        return CPU_OF[host]?.[Number(node)];
      }
      return undefined;
    }
    /** The CPUs that LXD and the kernel give to the server's container at its home: those of its configuration, and those of its first process. */
    async function cpusOf(id: string): Promise<readonly (string | undefined)[]> {
      const daemon = daemons[(await hostOf(id)) === FIRST ? 0 : 1]!;
      const client = new LxdClient(daemon.socketPath);
      try {
        return await eventually(
          `the container of ${id}`,
          async () => {
            const all = await daemon.containers();
            const found = all.find(({ config, status }) => config[OWN_KEYS.server] === id && status === "Running");
            if (found === undefined) return null;
            const { pid } = (await client.call(`/1.0/instances/${found.name}/state`)) as { readonly pid: number };
            const status = readFileSync(`/proc/${pid}/status`, "utf8");
            return [found.config["limits.cpu"], /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1]];
          },
          PATIENT,
        );
      } finally {
        client.close();
      }
    }
    /** Checks that the container has the one CPU that was claimed, and returns it. */
    async function pinned(id: string): Promise<string> {
      const cpu = (await claimedCpu(id)) ?? "none";
      expect(await cpusOf(id)).toEqual([`${cpu}-${cpu}`, cpu]);
      return cpu;
    }
    const deleted = async (...ids: readonly string[]) => {
      for (const id of ids) await cloud.compute.delete(id);
      await cloud.compute.gone(ids);
    };

    test("each server has the CPU of the NUMA node that serves its claim, and no two of a host have the same", async () => {
      const ids = [await booted(), await booted(), await booted(), await booted()];
      const places = new Set<string>();
      for (const id of ids) places.add(`${await hostOf(id)} ${await pinned(id)}`);
      expect(places).toEqual(new Set([FIRST, SECOND].flatMap((host) => ["0", "1"].map((cpu) => `${host} ${cpu}`))));
      const fifth = await cloud.compute.boot({ flavor, image: TICKING_IMAGE_ID });
      expect((await cloud.compute.endedOne(fifth)).status).toBe("ERROR");
      await cloud.expectCleanAudit();
      await deleted(...ids, fifth);
    });

    test("a server keeps its CPU when it is stopped and started and when its agent is killed, and nobody else gets it meanwhile", async () => {
      const id = await booted();
      const [host, cpu] = [await hostOf(id), await pinned(id)];
      const agent = cell.agents.find(({ hosts }) => hosts.includes(host));
      await agent?.kill();
      expect(await cpusOf(id)).toEqual([`${cpu}-${cpu}`, cpu]);
      await cloud.makeWhole();
      await cloud.compute.changed(id, "os-stop", "SHUTOFF");
      const others = [await booted(), await booted(), await booted()];
      for (const other of others) await pinned(other);
      await cloud.compute.changed(id, "os-start", "ACTIVE");
      expect([await hostOf(id), await pinned(id)]).toEqual([host, cpu]);
      await cloud.expectCleanAudit();
      await deleted(id, ...others);
    });

    test("a server that is moved has the CPU of the node that serves it at its new host, and its former one when it goes back", async () => {
      const id = await booted();
      const [here, cpu] = [await hostOf(id), await pinned(id)];
      const there = await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
      expect(there).not.toBe(here);
      await pinned(id);
      await cloud.compute.changed(id, "revertResize", "ACTIVE");
      expect([await hostOf(id), await pinned(id)]).toEqual([here, cpu]);
      await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
      await cloud.compute.changed(id, "confirmResize", "ACTIVE");
      expect(await hostOf(id)).toBe(there);
      await pinned(id);
      await cloud.expectCleanAudit();
      await deleted(id);
    });
  },
);
