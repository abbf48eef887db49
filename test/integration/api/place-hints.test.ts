import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const LATEST = { "openstack-api-version": "compute 2.96" };
const SERVER = { name: "web", flavorRef: "1", networks: "none" };

async function specOf(body: object, headers: Record<string, string> = LATEST): Promise<ServerSpec> {
  const answer = await rig.post("/v2.1/servers", body, headers);
  expect(answer.body, answer.body).toContain("server");
  expect(answer.statusCode).toBe(202);
  const [record] = await rig.store.requests([answer.json().server.id]);
  return record!.spec;
}
async function refusalOf(body: object, headers: Record<string, string> = LATEST): Promise<string> {
  const answer = await rig.post("/v2.1/servers", body, headers);
  expect([400, 403]).toContain(answer.statusCode);
  return `${answer.statusCode} ${Object.values(answer.json<Record<string, { message: string }>>())[0]?.message}`;
}

describe("the place of a new server", () => {
  it("follows hints under either name, each with its values", async () => {
    const other = randomUUID();
    const hints = {
      different_host: [other],
      same_host: other,
      query: '[">=","$free_ram_mb",1]',
      colour: ["red", 5],
      cidr: "/24",
    };
    const spec = await specOf({ server: SERVER, "os:scheduler_hints": hints });
    expect(spec.hints).toEqual([
      { name: "different_host", values: [other] },
      { name: "same_host", values: [other] },
      { name: "query", values: ['[">=","$free_ram_mb",1]'] },
      { name: "colour", values: ["red", "5"] },
      { name: "cidr", values: ["/24"] },
    ]);
    const spelt = { different_host: other.toUpperCase(), same_host: [other.replaceAll("-", "")] };
    const { hints: read } = await specOf({ server: SERVER, "os:scheduler_hints": spelt });
    expect(read.flatMap(({ values }) => values)).toEqual([other, other]);
    const old = await specOf({ server: SERVER, "OS-SCH-HNT:scheduler_hints": { build_near_host_ip: "10.0.0.1" } });
    expect(old.hints).toEqual([{ name: "build_near_host_ip", values: ["10.0.0.1"] }]);
  });

  it("may be an existing zone and, for admins, a host in it", async () => {
    await rig.post("/v2.1/os-aggregates", { aggregate: { name: "east", availability_zone: "east" } });
    expect(await specOf({ server: { ...SERVER, availability_zone: "east" } })).toMatchObject({
      ...{ availabilityZone: "east", forcedHost: "", requestedHost: "" },
    });
    const forced = { server: { ...SERVER, availability_zone: "east:host-1" } };
    expect(await specOf(forced)).toMatchObject({ availabilityZone: "east", forcedHost: "host-1" });
    const byNode = { server: { ...SERVER, availability_zone: "east::host-1" } };
    expect(await specOf(byNode)).toMatchObject({ forcedHost: "host-1" });
    expect(await refusalOf({ server: { ...SERVER, availability_zone: "east:a:b" } })).toMatch(
      /400.*two different names/,
    );
    expect(await refusalOf({ server: { ...SERVER, availability_zone: "west" } })).toMatch(/400.*not available/);
  });

  it("may be a host in its own field from 2.74 on", async () => {
    const body = { server: { ...SERVER, host: "host-1", hypervisor_hostname: "host-1" } };
    expect(await specOf(body)).toMatchObject({ forcedHost: "", requestedHost: "host-1" });
    expect(await refusalOf(body, { "openstack-api-version": "compute 2.73" })).toMatch(/'host' was unexpected/);
  });

  it("may not be a host that no cell has, except while a cell is silent that may have it", async () => {
    for (const place of [{ host: "host-99" }, { hypervisor_hostname: "host-99" }]) {
      expect(await refusalOf({ server: { ...SERVER, ...place } })).toBe("400 Compute host host-99 could not be found.");
    }
    rig.cells.get("south")!.dead = true;
    const body = { server: { ...SERVER, host: "host-99" } };
    expect(await specOf(body)).toMatchObject({ requestedHost: "host-99" });
  });

  it("may be a named host only for admins", async () => {
    const strict = await ApiRig.start({ auth: "noauth2" });
    try {
      const headers = { ...LATEST, "x-auth-token": "bob:p" };
      for (const place of [{ availability_zone: "nova:host-1" }, { host: "host-1" }]) {
        const answer = await strict.post("/v2.1/servers", { server: { ...SERVER, ...place } }, headers);
        expect(answer.statusCode).toBe(403);
      }
    } finally {
      await strict.close();
    }
  });
});

describe("images of new servers", () => {
  const register = async (image: object) => (await rig.post("/image/v2/images", image)).json<{ id: string }>().id;

  it("give a server their properties, and an unregistered image is trusted", async () => {
    const imageRef = await register({
      name: "big",
      disk_format: "qcow2",
      container_format: "bare",
      hw_disk_bus: "virtio",
    });
    const spec = await specOf({ server: { ...SERVER, imageRef } });
    expect(spec.imageProperties).toEqual({ hw_disk_bus: "virtio", disk_format: "qcow2" });
    expect((await specOf({ server: { ...SERVER, imageRef: randomUUID() } })).imageProperties).toEqual({});
    const spelt = await specOf({ server: { ...SERVER, imageRef: imageRef.toUpperCase().replaceAll("-", "") } });
    expect(spelt).toMatchObject({ imageRef, imageProperties: { hw_disk_bus: "virtio" } });
  });

  it("are refused when they are unknown and must be registered", async () => {
    const strict = await ApiRig.start({ imageRule: "registered" });
    try {
      const answer = await strict.post("/v2.1/servers", { server: { ...SERVER, imageRef: randomUUID() } }, LATEST);
      expect(answer.statusCode).toBe(400);
      expect(answer.body).toMatch(/Image .* could not be found/);
    } finally {
      await strict.close();
    }
  });

  it("are refused when they contradict the flavor, naming both, or are too big", async () => {
    const flavor = { id: "pinned", name: "pinned", vcpus: 2, ram: 512, disk: 1 };
    await rig.post("/v2.1/flavors", { flavor });
    await rig.post("/v2.1/flavors/pinned/os-extra_specs", { extra_specs: { "hw:cpu_policy": "shared" } });
    const pinned = await register({ hw_cpu_policy: "dedicated" });
    expect(await refusalOf({ server: { ...SERVER, flavorRef: "pinned", imageRef: pinned } })).toMatch(
      /400.*hw_cpu_policy=dedicated contradicts the flavor's extra spec hw:cpu_policy=shared/,
    );
    const big = await register({ min_ram: 1024 });
    expect(await refusalOf({ server: { ...SERVER, flavorRef: "pinned", imageRef: big } })).toMatch(
      /memory is too small/,
    );
  });
});

describe("ports of new servers", () => {
  const createPort = async (resource_request: object | null) => {
    const answer = await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID(), resource_request } });
    expect(answer.statusCode).toBe(201);
    return answer.json<{ port: { id: string } }>().port.id;
  };
  const bandwidth = { resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 }, required: ["CUSTOM_PHYSNET_A"] };

  it("turn each of their request groups into one of the server's", async () => {
    const packets = { resources: { NET_PACKET_RATE_KILOPACKET_PER_SEC: 10 }, required: [] };
    const ids = [
      await createPort(bandwidth),
      await createPort({ request_groups: [bandwidth, packets] }),
      await createPort(null),
    ];
    const spec = await specOf({ server: { ...SERVER, networks: ids.map((port) => ({ port })) } });
    expect(spec.portRequests.map(({ portId, suffix, resources }) => [portId, suffix, resources])).toEqual([
      [ids[0], "_PORT0", bandwidth.resources],
      [ids[1], "_PORT1_0", bandwidth.resources],
      [ids[1], "_PORT1_1", packets.resources],
    ]);
    expect(spec.portRequests[0]?.requiredTraits).toEqual(["CUSTOM_PHYSNET_A"]);
  });

  it("are refused when they do not exist, are named twice or are for several servers; networks are refused", async () => {
    const port = await createPort(bandwidth);
    const withNetworks = (networks: object[], more: object = {}) => ({ server: { ...SERVER, networks, ...more } });
    expect(await refusalOf(withNetworks([{ port: randomUUID() }]))).toMatch(/Port id .* could not be found/);
    expect(await refusalOf(withNetworks([{ port }, { port: port.toUpperCase() }]))).toMatch(/named twice/);
    expect(await refusalOf(withNetworks([{ port }], { max_count: 2 }))).toMatch(/several servers/);
    expect(await refusalOf(withNetworks([{ uuid: randomUUID() }]))).toMatch(/connects no networks/);
  });
});
