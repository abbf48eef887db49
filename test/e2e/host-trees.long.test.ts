import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const launcher = join(import.meta.dirname, "../../bin/berth");
const PATIENT = { everyMs: 50, withinMs: 30_000 };
const NOTHING = { "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0" };
/** What every host has, so that the flavors' disks do not matter here. */
const ROOT = { DISK_GB: { total: 100 } };

describe("hosts that change while servers live on them", () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let names: readonly string[];

  beforeAll(async () => {
    cloud = await Cloud.start({
      ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 1, hostsPerAgent: 3 },
    });
    cell = cloud.cell("cell-1");
    names = cell.agents[0]?.hosts ?? [];
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());
  afterEach(async () => removed(...(await cloud.compute.list()).map(({ id }) => id)));

  /** Tells the agent what its hosts are now. A host that is not described offers nothing. */
  const describeHosts = (...hosts: readonly Omit<HostConfig, "name">[]) => {
    const [agent] = cell.agents;
    if (agent?.hostsFile === undefined) throw new Error("the cell has an agent with a file of its hosts");
    const all = names.map((name, index) => ({ inventories: {}, ...hosts[index], name }));
    writeFileSync(agent.hostsFile, JSON.stringify({ hosts: all }));
    process.kill(agent.pid, "SIGHUP");
  };
  /** The inventories of a host's providers as `provider CLASS total`, without the disks. */
  const offerOf = async (host: string) => {
    const rows = await cell.query<{ value: string }>(
      `select p.name || ' ' || c.name || ' ' || v.total || case when v.reserved > 0 then ' reserved ' || v.reserved else '' end as value
       from resource_providers r join resource_providers p on p.root_id = r.id join inventories v on v.provider_id = p.id
       join resource_classes c on c.id = v.class_id where r.name = $1 and c.name <> 'DISK_GB'`,
      [host],
    );
    return rows.map(({ value }) => value.slice(host.length).replace(/^[_ ]/, "")).sort();
  };
  const offers = (host: string, expected: readonly string[]) =>
    eventually(`${host} to offer ${expected}`, async () => `${await offerOf(host)}` === `${expected}`, PATIENT).catch(
      async (error: Error) => {
        throw new Error(`${error.message}: it offers ${await offerOf(host)}`);
      },
    );
  /** What a server holds, as `provider CLASS amount`, without disks. */
  const heldBy = async (server: string) => {
    const rows = await cell.query<{ value: string }>(
      `select replace(p.name, r.name || '_', '') || ' ' || c.name || ' ' || a.amount as value
       from allocations a join resource_providers p on p.id = a.provider_id join resource_providers r on r.id = p.root_id
       join resource_classes c on c.id = a.class_id where a.consumer_uuid = $1 and c.name <> 'DISK_GB'`,
      [server],
    );
    return rows.map(({ value }) => value).sort();
  };
  const refusalOf = async (host: string) => {
    const text =
      "select w.refusal as value from reported_trees w join resource_providers r on r.uuid = w.root where r.name = $1";
    return (await cell.query<{ value: string }>(text, [host]))[0]?.value ?? "";
  };
  const statusOf = async (flavor: string, fake?: { readonly outcome: "reschedule"; readonly first: number }) => {
    const id = await cloud.compute.boot({ flavor, ...(fake !== undefined && { fake }) });
    const { status, "OS-EXT-SRV-ATTR:host": host } = await cloud.compute.endedOne(id);
    return { id, status, host };
  };
  const removed = async (...servers: readonly string[]) => {
    await Promise.all(servers.map((id) => cloud.compute.delete(id)));
    await cloud.compute.gone(servers);
  };
  const placement = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${cloud.apiUrl}/placement${path}`, {
      method,
      headers: {
        "openstack-api-version": "placement 1.39",
        "content-type": "application/json",
        "x-auth-token": "admin",
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.text().then((text) => (text === "" ? {} : JSON.parse(text)))) as Record<string, unknown>;
  };
  const node = (name: string, vcpus: number) => ({
    ...{ name, traits: ["HW_NUMA_ROOT"] },
    inventories: { VCPU: { total: vcpus }, MEMORY_MB: { total: 4_096 } },
  });

  test("a flat host gets NUMA nodes: each server's allocations move to one node, or nothing changes", async () => {
    const [host = ""] = names;
    const flavor = await cloud.compute.flavor({ "resources:VCPU": "2" });
    const flat = { inventories: { ...ROOT, VCPU: { total: 8 }, MEMORY_MB: { total: 8_192 } } };
    describeHosts(flat);
    await offers(host, ["MEMORY_MB 8192", "VCPU 8"]);
    const servers: { readonly id: string; readonly status: string }[] = [];
    for (let count = 0; count < 3; count += 1) servers.push(await statusOf(flavor));
    expect(servers.map(({ status }) => status)).toEqual(["ACTIVE", "ACTIVE", "ACTIVE"]);

    describeHosts({ inventories: ROOT, children: [node("numa0", 3), node("numa1", 3)] });
    await eventually(
      "a refusal that names the server",
      async () => {
        const refusal = await refusalOf(host);
        return refusal.includes(" fit in none of ") && servers.some(({ id }) => refusal.includes(id));
      },
      PATIENT,
    );
    expect(await offerOf(host)).toEqual(["MEMORY_MB 8192", "VCPU 8"]);
    expect((await cell.query("select from hosts where name = $1 and up", [host])).length).toBe(1);

    describeHosts({ inventories: ROOT, children: [node("numa0", 4), node("numa1", 4)] });
    await offers(host, ["numa0 MEMORY_MB 4096", "numa0 VCPU 4", "numa1 MEMORY_MB 4096", "numa1 VCPU 4"]);
    const nodes = [];
    for (const { id } of servers) {
      const held = await heldBy(id);
      const [first = ""] = held;
      const [at = ""] = first.split(" ");
      expect(held).toEqual([`${at} MEMORY_MB 512`, `${at} VCPU 2`]);
      nodes.push(at);
    }
    expect(new Set(nodes)).toEqual(new Set(["numa0", "numa1"]));
    // The room that is left is claimed by the new shape, and no more than that.
    const [fourth, fifth] = [await statusOf(flavor), await statusOf(flavor)];
    expect([fourth.status, fifth.status]).toEqual(["ACTIVE", "ERROR"]);
    await cloud.expectCleanAudit();

    describeHosts(flat);
    await offers(host, ["MEMORY_MB 8192", "VCPU 8"]);
    expect(await heldBy(fourth.id)).toEqual([`${host} MEMORY_MB 512`, `${host} VCPU 2`]);
    await cloud.expectCleanAudit();
    await removed(...servers.map(({ id }) => id), fourth.id, fifth.id);
  });

  test("VGPUs move from the root to the cards with their servers, and a card that vanishes stays while it is used", async () => {
    const [host = ""] = names;
    const flavor = await cloud.compute.flavor({ "resources:VGPU": "1" });
    const plenty = { ...ROOT, VCPU: { total: 8 }, MEMORY_MB: { total: 8_192 } };
    const card = (name: string) => ({ name, inventories: { VGPU: { total: 1 } }, traits: ["CUSTOM_NVIDIA_35"] });
    describeHosts({ inventories: { ...plenty, VGPU: { total: 2 } } });
    await offers(host, ["MEMORY_MB 8192", "VCPU 8", "VGPU 2"]);
    const [one, two] = [await statusOf(flavor), await statusOf(flavor)];
    expect([one.status, two.status]).toEqual(["ACTIVE", "ACTIVE"]);

    describeHosts({ inventories: plenty, children: [card("gpu0"), card("gpu1")] });
    await offers(host, ["MEMORY_MB 8192", "VCPU 8", "gpu0 VGPU 1", "gpu1 VGPU 1"]);
    const [ofOne, ofTwo] = [await heldBy(one.id), await heldBy(two.id)];
    expect([ofOne, ofTwo].map((held) => held.find((text) => text.includes("VGPU"))).sort()).toEqual([
      "gpu0 VGPU 1",
      "gpu1 VGPU 1",
    ]);
    await cloud.expectCleanAudit();

    describeHosts({ inventories: plenty, children: [card("gpu0")] });
    await offers(host, ["MEMORY_MB 8192", "VCPU 8", "gpu0 VGPU 1", "gpu1 VGPU 1 reserved 1"]);
    const traits = await placement("GET", `/resource_providers/${derivedProviderUuid(`${host}_gpu1`)}/traits`);
    expect(traits.traits).toContain("CUSTOM_BERTH_VANISHED");
    expect((await cloud.compute.show(two.id))?.status).toBe("ACTIVE");
    await cloud.expectCleanAudit();
    await removed(one.id, two.id);
    // The card that came back is a card like before.
    describeHosts({ inventories: plenty, children: [card("gpu0"), card("gpu1")] });
    await offers(host, ["MEMORY_MB 8192", "VCPU 8", "gpu0 VGPU 1", "gpu1 VGPU 1"]);
  });

  test("what operators and other services have written stays when a host changes, and a shrunk inventory takes no new claims", async () => {
    const [host = ""] = names;
    const [root, neighbour] = [derivedProviderUuid(host), crypto.randomUUID()];
    const flavor = await cloud.compute.flavor();
    describeHosts({
      inventories: { ...ROOT, VCPU: { total: 4 }, MEMORY_MB: { total: 4_096 } },
      traits: ["CUSTOM_OLD"],
    });
    await offers(host, ["MEMORY_MB 4096", "VCPU 4"]);
    const servers = [await statusOf(flavor), await statusOf(flavor)];
    const { resource_provider_generation: generation } = await placement("GET", `/resource_providers/${root}/traits`);
    await placement("PUT", "/traits/CUSTOM_OPERATORS");
    await placement("PUT", `/resource_providers/${root}/traits`, {
      resource_provider_generation: generation,
      traits: ["CUSTOM_OLD", "CUSTOM_OPERATORS"],
    });
    const made = { uuid: neighbour, name: `${host}_bandwidth`, parent_provider_uuid: root };
    await placement("POST", "/resource_providers", made);
    const ofNeighbour = { NET_BW_EGR_KILOBIT_PER_SEC: { total: 1_000 } };
    await placement("PUT", `/resource_providers/${neighbour}/inventories`, {
      resource_provider_generation: 0,
      inventories: ofNeighbour,
    });
    const memory = `/resource_providers/${root}/inventories/MEMORY_MB`;
    const before = await placement("GET", memory);
    await placement("PUT", memory, { ...before, allocation_ratio: 1.5 });

    describeHosts({
      inventories: { ...ROOT, VCPU: { total: 1 }, MEMORY_MB: { total: 5_000 } },
      traits: ["CUSTOM_NEW"],
    });
    await offers(host, ["MEMORY_MB 5000", "VCPU 1", "bandwidth NET_BW_EGR_KILOBIT_PER_SEC 1000"]);
    const { traits } = await placement("GET", `/resource_providers/${root}/traits`);
    expect(traits).toEqual(expect.arrayContaining(["CUSTOM_NEW", "CUSTOM_OPERATORS"]));
    expect(traits).not.toContain("CUSTOM_OLD");
    expect(await placement("GET", memory)).toMatchObject({ total: 5_000, allocation_ratio: 1.5 });

    // Two servers use one CPU: over capacity, closed, and said so.
    expect(servers.map(({ status }) => status)).toEqual(["ACTIVE", "ACTIVE"]);
    const refused = await statusOf(flavor);
    expect(refused.status).toBe("ERROR");
    await eventually(
      "the agent to say so",
      () => /VCPU of provider \S+ is over capacity/.test(cell.agents[0]?.logSinceMark(1_000) ?? ""),
      PATIENT,
    );
    await cloud.expectCleanAudit();
    await removed(refused.id, ...servers.map(({ id }) => id));
    const again = await statusOf(flavor);
    expect(again.status).toBe("ACTIVE");
    await removed(again.id);
    await placement("DELETE", `/resource_providers/${neighbour}`);
  });

  test("one agent has many bare metal nodes: a reserved node takes no server, also while it is cleaned, and builds are retried on alternates", async () => {
    const flavor = await cloud.compute.flavor({ ...NOTHING, "resources:CUSTOM_BAREMETAL_GOLD": "1" });
    const metal = (reserved = 0) => ({ inventories: { CUSTOM_BAREMETAL_GOLD: { total: 1, reserved } } });
    const [first = "", second = "", third = ""] = names;
    const FREE = ["CUSTOM_BAREMETAL_GOLD 1"];
    const CLOSED = ["CUSTOM_BAREMETAL_GOLD 1 reserved 1"];
    describeHosts(metal(1), metal(), metal());
    await offers(first, CLOSED);
    for (const host of [second, third]) await offers(host, FREE);
    // Its first build fails, and the alternate is the other free node.
    const retried = await statusOf(flavor, { outcome: "reschedule", first: 1 });
    expect(retried.status).toBe("ACTIVE");
    expect([second, third]).toContain(retried.host);
    const other = await statusOf(flavor);
    expect(new Set([retried.host, other.host])).toEqual(new Set([second, third]));
    const full = await statusOf(flavor);
    expect(full.status).toBe("ERROR");

    // In use, and reserved: the server stays, and after its end the node is closed until it is clean.
    describeHosts(metal(1), metal(1), metal(1));
    for (const host of [second, third]) await offers(host, CLOSED);
    expect((await cloud.compute.show(other.id))?.status).toBe("ACTIVE");
    await cloud.expectCleanAudit();
    await removed(full.id, other.id);
    const whileCleaned = await statusOf(flavor);
    expect(whileCleaned.status).toBe("ERROR");
    const index = names.indexOf(other.host ?? "");
    describeHosts(...names.map((_, at) => metal(at === index ? 0 : 1)));
    await offers(other.host ?? "", FREE);
    const afterwards = await statusOf(flavor);
    expect([afterwards.status, afterwards.host]).toEqual(["ACTIVE", other.host]);
    await cloud.expectCleanAudit();
    await removed(whileCleaned.id, retried.id, afterwards.id);
  });

  test("a bare metal node reserves itself while it is in use, being cleaned or in maintenance, also across its agent's death", async () => {
    const [agent] = cell.agents;
    const flavor = await cloud.compute.flavor({ ...NOTHING, "resources:CUSTOM_BAREMETAL_GOLD": "1" });
    const gold = { inventories: { CUSTOM_BAREMETAL_GOLD: { total: 1 } } };
    const node = { clean_ms: 4_000, clean_failures: 1 };
    const [host = "", other = ""] = names;
    const [FREE, CLOSED] = [["CUSTOM_BAREMETAL_GOLD 1"], ["CUSTOM_BAREMETAL_GOLD 1 reserved 1"]];
    const reasons = async () => {
      const { probes } = agent ?? {};
      const answer = await fetch(`http://${probes?.host}:${probes?.port}/guests`);
      return ((await answer.json()) as { readonly closedNodes: Readonly<Record<string, string>> }).closedNodes;
    };
    const closedBecause = (reason: RegExp) =>
      eventually(`${host} to be closed: ${reason}`, async () => reason.test((await reasons())[host] ?? ""), PATIENT);
    const shown = async (name: string, ...words: readonly string[]) =>
      (await promisify(execFile)(launcher, ["host", "show", name, ...words, "--api", cloud.apiUrl])).stdout;
    const shows = (name: string, state: string) =>
      eventually(`${name} to be shown as ${state}`, async () => (await shown(name)).includes(state), {
        ...PATIENT,
        everyMs: 500,
      });
    describeHosts({ ...gold, bare_metal: node }, { ...gold, bare_metal: { maintenance: "a broken fan" } });
    await offers(host, FREE);
    await offers(other, CLOSED);
    await shows(host, "available, power off: open for a server\n");
    await shows(other, "available, power off: closed, it is in maintenance: a broken fan\n");
    const server = await statusOf(flavor);
    expect([server.status, server.host]).toEqual(["ACTIVE", host]);
    await offers(host, CLOSED);
    expect(await reasons()).toEqual({
      [host]: `it is in use by server ${server.id}`,
      [other]: "it is in maintenance: a broken fan",
    });
    await shows(host, `active, power on: closed, it is in use by server ${server.id}\n`);
    expect(JSON.parse(await shown(host, "--json")).node).toEqual({
      ...{ provision_state: "active", power_state: "power on" },
      closed_because: `it is in use by server ${server.id}`,
    });
    await cloud.expectCleanAudit();
    // The claim has gone with the server, and the node stays closed.
    await removed(server.id);
    expect(await offerOf(host)).toEqual(CLOSED);
    expect(await reasons()).toMatchObject({ [host]: "it is being cleaned" });
    await agent?.replace();
    await cell.hostsUp();
    expect(await offerOf(host)).toEqual(CLOSED);
    await closedBecause(/^it is in maintenance: cleaning it failed/);
    await shows(host, "clean failed, power off: closed, it is in maintenance: cleaning it failed");
    const refused = await statusOf(flavor);
    expect(refused.status).toBe("ERROR");
    describeHosts({ ...gold, bare_metal: { ...node, maintenance: "a new disk" } });
    await closedBecause(/a new disk$/);
    describeHosts({ ...gold, bare_metal: node });
    await offers(host, FREE);
    const afterwards = await statusOf(flavor);
    expect([afterwards.status, afterwards.host]).toEqual(["ACTIVE", host]);
    await removed(refused.id, afterwards.id);
    await cloud.expectCleanAudit();
    describeHosts(gold);
  });

  test("one host stands for a cluster: no server is larger than its largest member, and together they fill it", async () => {
    const [host = ""] = names;
    const members = { VCPU: { total: 10, max_unit: 4 }, MEMORY_MB: { total: 40_000, max_unit: 16_000 } };
    describeHosts({ inventories: { ...ROOT, ...members } });
    await offers(host, ["MEMORY_MB 40000", "VCPU 10"]);
    const [large, fitting] = [
      await cloud.compute.flavor({ "resources:VCPU": "5" }),
      await cloud.compute.flavor({ "resources:VCPU": "4" }),
    ];
    expect((await statusOf(large)).status).toBe("ERROR");
    const statuses = [];
    for (let count = 0; count < 3; count += 1) statuses.push((await statusOf(fitting)).status);
    expect(statuses).toEqual(["ACTIVE", "ACTIVE", "ERROR"]);
    await cloud.expectCleanAudit();
  });
});
