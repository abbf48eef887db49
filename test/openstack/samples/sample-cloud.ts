import { randomUUID } from "node:crypto";
import { Agent, fetch } from "undici";
import { MemoryBlockStorage } from "../../../adapters/memory/memory-block-storage.ts";
import { MemoryNetworking, type TwinNetwork } from "../../../adapters/memory/memory-networking.ts";
import type { CinderVolume } from "../../../core/stores/block-storage.ts";
import { SIMPLE_NETWORK } from "../../../services/api/network/simple-network.ts";
import type { HostConfig } from "../../../services/compute-agent/host-config.ts";
import { eventually } from "../../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../../rigs/test-cloud.ts";
import type { Answer } from "./answer.ts";

/** A connection for each request, since one that was idle for a while may be closed while it is used again. */
const ONE_EACH = new Agent({ pipelining: 0 });

export const ADMIN = "admin:default";
/** The flavors of upstream's functional tests. */
const FLAVORS = [
  { id: "1", name: "m1.tiny", ram: 512, vcpus: 1, disk: 1 },
  { id: "2", name: "m1.small", ram: 2_048, vcpus: 1, disk: 20 },
  { id: "3", name: "m1.medium", ram: 4_096, vcpus: 2, disk: 40 },
  { id: "4", name: "m1.large", ram: 8_192, vcpus: 4, disk: 80 },
  { id: "5", name: "m1.xlarge", ram: 16_384, vcpus: 8, disk: 160 },
  { id: "6", name: "m1.tiny.specs", ram: 512, vcpus: 1, disk: 1 },
];
export const IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
export const HOSTS = ["host-1", "host-2", "host-3", "host-4"] as const;

/** The only host that takes its time when it hands a guest over, so that migrations from it can be seen under way. */
export const SLOW_HOST = HOSTS[3];

const hostOf = (name: string, index: number): HostConfig => ({
  name,
  ...(name === SLOW_HOST && { fake: { hand_off_ms: 2_500 } }),
  inventories: { VCPU: { total: 32 }, MEMORY_MB: { total: 131_072 }, DISK_GB: { total: 1_000 } },
  hypervisor: { type: "fake", version: 1_000, host_ip: `192.0.2.${index + 1}`, cpu_info: { arch: "x86_64" } },
});

/** A machine that is busy with the other parts of the tests takes long. */
const PATIENCE = { withinMs: 240_000 };

const NEUTRON_NETWORK = { id: "3cb9bc59-5699-4588-a4b1-b87f96708bc6", name: "private" };
/** The external network, from which floating IPs come. */
export const POOL = "nova";

/** A Neutron with a network for the servers and one for floating IPs. */
function neutronOfSamples() {
  const networking = new MemoryNetworking({ newId: randomUUID });
  const put = (network: Pick<TwinNetwork, "id" | "name" | "projectId" | "isExternal" | "first">) =>
    networking.putNetwork({ ...network, isShared: false, subnetIds: [randomUUID()], size: 100 });
  put({ ...NEUTRON_NETWORK, projectId: "default", isExternal: false, first: "192.168.1.10" });
  put({ id: randomUUID(), name: POOL, projectId: "operators", isExternal: true, first: "203.0.113.10" });
  const { floatingIps, securityGroups: neutronSecurityGroups } = networking;
  return { networking, floatingIps, neutronSecurityGroups };
}

/** A whole cloud with the flavors and the image that upstream's samples name. */
export class SampleCloud {
  readonly #cloud: TestCloud;
  readonly #cinder: MemoryBlockStorage;
  /** The network of the servers. */
  readonly network: { readonly id: string; readonly name: string };

  private constructor(cloud: TestCloud, cinder: MemoryBlockStorage, network: SampleCloud["network"]) {
    this.#cloud = cloud;
    this.#cinder = cinder;
    this.network = network;
  }

  /** Starts a cloud with Berth's own network, or with the twin of Neutron. */
  static async start(networks: "simple" | "neutron" = "simple"): Promise<SampleCloud> {
    const cells = [{ name: "cell-1", hosts: HOSTS.map(hostOf) }];
    const cinder = new MemoryBlockStorage({ newId: randomUUID });
    cinder.newStatus = "available";
    // The type of upstream's samples.
    cinder.volumeTypes.add("lvm-1");
    const neutron = networks === "neutron" ? neutronOfSamples() : undefined;
    const inner = await startTestCloud({
      cells,
      schedulers: 1,
      conductors: 1,
      auth: "noauth2",
      networks,
      neutron,
      volumes: "cinder",
      blockStorage: cinder,
      consoles: true,
      reclaimInstanceIntervalMs: 3_600_000,
      // Its panel injects faults.
      dashboard: true,
    });
    const cloud = new SampleCloud(inner, cinder, neutron === undefined ? SIMPLE_NETWORK : NEUTRON_NETWORK);
    for (const flavor of FLAVORS) await cloud.must("POST", "/flavors", { flavor });
    await cloud.must("POST", "/flavors/6/os-extra_specs", { extra_specs: { "hw:numa_nodes": "1" } });
    await cloud.must("POST", "/image/v2/images", {
      id: IMAGE,
      name: "fakeimage7",
      disk_format: "raw",
      container_format: "bare",
      architecture: "x86_64",
      auto_disk_config: "True",
    });
    const { aggregate } = await cloud.must("POST", "/os-aggregates", {
      aggregate: { name: "west", availability_zone: "us-west" },
    });
    for (const host of HOSTS.slice(0, 2))
      await cloud.must("POST", `/os-aggregates/${aggregate.id}/action`, { add_host: { host } });
    return cloud;
  }

  /** Paths are below `/v2.1` unless they name another API. */
  async call(
    method: string,
    path: string,
    { body, minor = 90, as = ADMIN }: { readonly body?: unknown; readonly minor?: number; readonly as?: string },
  ): Promise<{ readonly status: number; readonly json: Answer }> {
    const headers = {
      "x-auth-token": as,
      "openstack-api-version": `compute 2.${minor}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const url = `${this.#cloud.apiUrl}${/^\/(image|network|berth|v2|$)/.test(path) ? path : `/v2.1${path}`}`;
    const response = await fetch(url, {
      dispatcher: ONE_EACH,
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: text === "" ? null : JSON.parse(text) };
  }

  /** A request of the preparations. Throws unless it succeeds. */
  async must(method: string, path: string, body?: unknown, minor = 90): Promise<Answer> {
    const { status, json } = await this.call(method, path, { body, minor });
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json).slice(0, 300)}`);
    return json;
  }

  /** Creates an active server with upstream's name, image and flavor. */
  async boot(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const server = { name: "new-server-test", imageRef: IMAGE, flavorRef: "1", networks: "auto", ...fields };
    const { id } = (
      await this.must("POST", "/servers", { server: { metadata: { "My Server Name": "Apache1" }, ...server } })
    ).server;
    await this.settled(id);
    return id;
  }

  /** Creates a volume that no server has. */
  volume(values: Partial<CinderVolume> = {}): string {
    return this.#cinder.putVolume({ projectId: "default", ...values }).id;
  }

  /** Lets Cinder begin to migrate a volume when its server has ended what it does. Returns the volume that is to take its place. */
  async migrate(server: string, id: string): Promise<string> {
    const { id: target } = this.#cinder.startMigration(id);
    // The cell refuses nothing else in this call before it would begin.
    const tooSmall = { volumeAttachment: { volumeId: this.volume({ sizeGib: 0 }) } };
    const asks = async () =>
      (await this.call("PUT", `/servers/${server}/os-volume_attachments/${id}`, { body: tooSmall })).status;
    await eventually(`server ${server} has nothing under way`, async () => (await asks()) === 400, PATIENCE);
    return target;
  }

  async migrated(id: string): Promise<void> {
    await eventually(
      `volume ${id} is migrated`,
      () => this.#cinder.all().find((volume) => volume.id === id)?.migrationStatus === "success",
      PATIENCE,
    );
  }

  /** Waits until a volume is attached. */
  async inUse(id: string): Promise<void> {
    await eventually(
      `volume ${id} is in use`,
      () => this.#cinder.all().find((volume) => volume.id === id)?.status === "in-use",
      PATIENCE,
    );
  }

  async settled(id: string): Promise<Answer> {
    return eventually(
      `server ${id} has nothing under way`,
      async () => {
        const { status, json } = await this.call("GET", `/servers/${id}`, {});
        if (status === 404) return { status: "DELETED" };
        const { server } = json;
        return server.status !== "BUILD" && server["OS-EXT-STS:task_state"] === null && server;
      },
      PATIENCE,
    );
  }

  async act(id: string, action: string, value: unknown = null): Promise<Answer> {
    await this.must("POST", `/servers/${id}/action`, { [action]: value });
    return this.settled(id);
  }

  async forceDown(host: string, forced_down: boolean): Promise<void> {
    // A cell that does not answer in time is left out of the list.
    const serviceOf = async () => (await this.must("GET", `/os-services?host=${host}&binary=nova-compute`)).services[0];
    const { id } = await eventually(`the service of ${host}`, serviceOf, PATIENCE);
    await this.must("PUT", `/os-services/${id}`, { forced_down });
    // A host that is no longer forced down is up when its agent was heard of next.
    if (!forced_down) await eventually(`${host} is up`, async () => (await serviceOf())?.state === "up", PATIENCE);
  }

  /** Does the work while the only cell does not answer. */
  async whileCellIsDown(work: () => Promise<void>): Promise<void> {
    const cut = (broken: boolean) => this.must("PUT", "/berth/v1/faults", { cell: "cell-1", broken });
    await cut(true);
    try {
      await work();
    } finally {
      await cut(false);
      await eventually(
        "the cell answers again",
        async () => {
          const { services } = await this.must("GET", "/os-services?binary=nova-compute");
          return services.every(({ state }: Answer) => state === "up");
        },
        PATIENCE,
      );
    }
  }

  async deleteServers(): Promise<void> {
    const { servers } = await this.must("GET", "/servers?all_tenants=true");
    for (const { id } of servers) {
      await this.call("POST", `/servers/${id}/action`, { body: { unlock: null } });
      await this.call("POST", `/servers/${id}/action`, { body: { forceDelete: null } });
    }
    for (const { id } of servers)
      await eventually(
        `${id} is gone`,
        async () => (await this.call("GET", `/servers/${id}`, {})).status === 404,
        PATIENCE,
      );
  }

  close(): Promise<void> {
    return this.#cloud.close();
  }
}
