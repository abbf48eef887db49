import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import {
  numaNode,
  pciFunction,
  type SysrootPlan,
  sriovCard,
  twoSockets,
  writeSysroot,
} from "../rigs/made-up-sysroot.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const launcher = join(import.meta.dirname, "../../bin/berth");
const HOST = "cell-1-agent-1-host-1";
const GIB_KIB = 1024 ** 2;
const PATIENT = { everyMs: 200, withinMs: 60_000 };
/** The host reads a copy of /proc and /sys, so that the size of its disk is unknown. */
const BASE = { "resources:DISK_GB": "0" };
const CARDS = ["0000:84:00.0", "0000:85:00.0"] as const;

/** A graphics card whose driver makes two more devices, each with two displays. */
function graphicsCard(address: string): SysrootPlan {
  const directory = `/sys/devices/pci0000:80/${address}`;
  const type = `${directory}/mdev_supported_types/nvidia-35`;
  return {
    [`/sys/bus/pci/devices/${address}`]: { link: `../../../devices/pci0000:80/${address}` },
    ...pciFunction(directory, "0x2204", "0x030200"),
    [`${type}/available_instances`]: "2\n",
    [`${type}/description`]: "num_heads=2, frl_config=60, framebuffer=1024M, max_resolution=5120x2880\n",
    [`${type}/devices`]: {},
  };
}

describe("the devices and the network of a discovered machine", () => {
  const sysroot = mkdtempSync(join(tmpdir(), "berth-sysroot-"));
  let cloud: Cloud;
  let cell: E2eCell;

  beforeAll(async () => {
    writeSysroot(
      sysroot,
      twoSockets(),
      numaNode(0, "0-1,4-5", 8 * GIB_KIB),
      numaNode(1, "2-3,6-7", 8 * GIB_KIB),
      sriovCard(),
      ...CARDS.map(graphicsCard),
    );
    cloud = await Cloud.start({
      ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 1, hostsPerAgent: 1 },
      agentEnv: () => ({
        ...{ BERTH_DISCOVER: "true", BERTH_HOST: HOST, BERTH_SYSROOT: sysroot },
        ...{ BERTH_ENABLED_MDEV_TYPES: "nvidia-35", BERTH_PHYSICAL_NETWORKS: "physnet1:ens1f0" },
        BERTH_RESOURCE_PROVIDER_BANDWIDTHS: "ens1f0:10000000:",
      }),
    });
    cell = cloud.cell("cell-1");
  });
  afterAll(async () => {
    await cloud?.close();
    rmSync(sysroot, { recursive: true, force: true });
  });
  beforeEach(() => cloud.beforeTest());
  afterEach(async () => removed((await cloud.compute.list()).map(({ id }) => id)));

  const booted = async (flavor: string, count: number) => {
    const servers = await cloud.compute.ended(await cloud.compute.bootMany(count, { flavor }));
    return {
      active: servers.filter(({ status }) => status === "ACTIVE").map(({ id }) => id),
      faults: servers.flatMap(({ fault }) => (fault === undefined ? [] : [fault.message])),
    };
  };
  const removed = async (servers: readonly string[]) => {
    await Promise.all(servers.map((id) => cloud.compute.delete(id)));
    await cloud.compute.gone(servers);
  };
  /** A scheduler may not have seen yet that servers are gone, so a server that finds no room is followed by another one. */
  const getsRoom = (flavor: string) =>
    eventually("a server to get what became free", async () => (await booted(flavor, 1)).active.length === 1, PATIENT);
  /** What the servers hold of classes like this one, as `provider CLASS amount`, of each server in one text. */
  const held = async (classes: string) => {
    const rows = await cell.query<{ value: string }>(
      `select string_agg(replace(p.name, r.name || '_', '') || ' ' || c.name || ' ' || a.amount, ', ' order by c.name) as value
       from allocations a join resource_providers p on p.id = a.provider_id join resource_providers r on r.id = p.root_id
       join resource_classes c on c.id = a.class_id where c.name like $1 group by a.consumer_uuid`,
      [classes],
    );
    return rows.map(({ value }) => value).sort();
  };

  test("servers get VGPUs with as many displays as they ask for, each from one card, until the displays are used up", async () => {
    const two = await cloud.compute.flavor({ ...BASE, "resources:VGPU": "1", "resources:VGPU_DISPLAY_HEAD": "2" });
    const { active, faults } = await booted(two, 5);
    expect(await held("VGPU%")).toEqual(
      CARDS.flatMap((card) =>
        Array.from({ length: 2 }, () => `numa1_${card} VGPU 1, numa1_${card} VGPU_DISPLAY_HEAD 2`),
      ),
    );
    expect(faults).toEqual([expect.stringContaining("No valid host")]);
    const shown = (await promisify(execFile)(launcher, ["host", "show", HOST, "--api", cloud.apiUrl])).stdout;
    for (const card of CARDS) expect(shown).toMatch(new RegExp(`${card}[^]*VGPU_DISPLAY_HEAD[^\\n]*4`));
    await cloud.expectCleanAudit();
    await removed(active.slice(0, 1));
    await getsRoom(two);
    await cloud.expectCleanAudit();
  });

  test("the bandwidth of an interface is claimed until it is used up, on the physical network that is asked for", async () => {
    const asking = (kilobits: string, network: string) =>
      cloud.compute.flavor({
        ...BASE,
        "resources1:NET_BW_EGR_KILOBIT_PER_SEC": kilobits,
        "trait1:CUSTOM_VNIC_TYPE_NORMAL": "required",
        [`trait1:CUSTOM_PHYSNET_${network}`]: "required",
      });
    const most = await asking("6000000", "PHYSNET1");
    const { active, faults } = await booted(most, 2);
    expect(active).toHaveLength(1);
    expect(faults).toEqual([expect.stringContaining("No valid host")]);
    expect((await booted(await asking("4000000", "PHYSNET1"), 1)).active).toHaveLength(1);
    expect(await held("NET_BW%")).toEqual([
      "network_ens1f0 NET_BW_EGR_KILOBIT_PER_SEC 4000000",
      "network_ens1f0 NET_BW_EGR_KILOBIT_PER_SEC 6000000",
    ]);
    await cloud.expectCleanAudit();
    await removed(active);
    expect((await booted(await asking("1000", "PHYSNET2"), 1)).active).toEqual([]);
    await getsRoom(most);
    await cloud.expectCleanAudit();
  });
});
