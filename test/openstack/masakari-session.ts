import { expect } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { computeCall } from "./compute-call.ts";
import type { RealCloud } from "./real-cloud.ts";
import { HOST } from "./real-preparations.ts";
import type { TitledStep } from "./run-titled-steps.ts";
import type { Answer } from "./samples/answer.ts";

/** What the session needs. */
export interface MasakariWorld {
  readonly cloud: RealCloud;
  /** Masakari's, with the project. */
  readonly masakariUrl: string;
  readonly image: string;
  readonly flavor: string;
  readonly network: string;
}

const PATIENCE = { everyMs: 1_000, withinMs: 600_000 };
const host = (number: number): string => `${HOST}-${number}`;
/** What a monitor says of a host that is gone. */
const GONE = { event: "STOPPED", cluster_status: "OFFLINE", host_status: "NORMAL" };

/** The steps of a session in which hosts, servers and processes fail, as far as Masakari is told. Each needs those before it. */
export function masakariSession(world: MasakariWorld): readonly TitledStep[] {
  const compute = (method: string, path: string, body?: unknown) => computeCall(world.cloud, method, path, body);
  const masakari = new Masakari(world);
  const ids: Record<string, string> = {};
  const shown = async (name: string) => (await compute("GET", `/servers/${ids[name]}`)).server;
  const service = async (number: number) =>
    (await compute("GET", `/os-services?binary=nova-compute&host=${host(number)}`)).services[0];
  const setService = async (number: number, change: unknown) =>
    compute("PUT", `/os-services/${(await service(number)).id}`, change);

  async function settle(name: string, status: string): Promise<void> {
    const isSettled = async () => {
      const server = await shown(name);
      return server.status === status && server["OS-EXT-STS:task_state"] === null;
    };
    await eventually(`${name} is ${status}`, isSettled, PATIENCE);
  }
  async function boot(name: string, number: number): Promise<void> {
    const { image, flavor, network } = world;
    // Masakari restarts only servers that say so.
    const metadata = { HA_Enabled: "True" };
    const server = { name, imageRef: image, flavorRef: flavor, networks: [{ uuid: network }], metadata };
    const placed = { ...server, availability_zone: `nova:${host(number)}` };
    ids[name] = (await compute("POST", "/servers", { server: placed })).server.id;
    await settle(name, "ACTIVE");
  }

  return [
    {
      title: "takes hosts into segments that exist, and no others",
      async run() {
        await boot("runs", 1);
        await boot("stopped", 1);
        await compute("POST", `/servers/${ids.stopped}/action`, { "os-stop": null });
        await settle("stopped", "SHUTOFF");
        await boot("reserved", 2);
        await masakari.addSegment("auto", { 1: false, 4: false });
        await expect(masakari.addHost("auto", "nohost", false)).rejects.toThrow(/nohost/);
        await masakari.addSegment("reserved_host", { 2: false, 3: true });
      },
    },
    {
      title: "disables a host whose compute process has failed",
      async run() {
        const payload = { event: "STOPPED", process_name: "nova-compute" };
        expect(await masakari.notify("PROCESS", 4, payload)).toBe("finished");
        expect(await service(4)).toMatchObject({
          status: "disabled",
          disabled_reason: expect.stringContaining("Masakari"),
        });
        await setService(4, { status: "enabled" });
      },
    },
    {
      title: "stops and starts a server whose guest has failed",
      async run() {
        const payload = { event: "LIFECYCLE", vir_domain_event: "STOPPED_FAILED", instance_uuid: ids.runs };
        expect(await masakari.notify("VM", 1, payload)).toBe("finished");
        await settle("runs", "ACTIVE");
        const { instanceActions } = await compute("GET", `/servers/${ids.runs}/os-instance-actions`);
        expect(instanceActions.map((one: Answer) => one.action)).toEqual(expect.arrayContaining(["start", "stop"]));
      },
    },
    {
      title: "gives up a host that nobody has fenced, whose servers stay there",
      async run() {
        expect(await masakari.notify("COMPUTE_HOST", 1, GONE)).toBe("failed");
        for (const name of ["runs", "stopped"])
          expect(await shown(name)).toMatchObject({ "OS-EXT-SRV-ATTR:host": host(1), locked: false });
        expect(await service(1)).toMatchObject({ status: "disabled" });
        await masakari.endMaintenance("auto", 1);
      },
    },
    {
      title: "evacuates the servers of a fenced host, each with its state",
      async run() {
        await setService(1, { forced_down: true });
        expect(await masakari.notify("COMPUTE_HOST", 1, GONE)).toBe("finished");
        await settle("runs", "ACTIVE");
        await settle("stopped", "SHUTOFF");
        for (const name of ["runs", "stopped"]) {
          const server = await shown(name);
          expect(server).toMatchObject({ locked: false });
          expect([host(2), host(3), host(4)]).toContain(server["OS-EXT-SRV-ATTR:host"]);
        }
      },
    },
    {
      title: "evacuates to the reserved host, which it enables",
      async run() {
        await setService(3, { status: "disabled" });
        await setService(2, { forced_down: true });
        expect(await masakari.notify("COMPUTE_HOST", 2, GONE)).toBe("finished");
        await settle("reserved", "ACTIVE");
        expect(await shown("reserved")).toMatchObject({ "OS-EXT-SRV-ATTR:host": host(3), locked: false });
        expect(await service(3)).toMatchObject({ status: "enabled" });
      },
    },
    {
      title: "leaves nothing that an audit finds when the hosts are back",
      async run() {
        for (const number of [1, 2]) {
          await setService(number, { forced_down: false });
          await setService(number, { status: "enabled" });
        }
        const isUp = async (number: number) => (await service(number)).state === "up";
        await eventually("the hosts are up", async () => (await isUp(1)) && (await isUp(2)), PATIENCE);
        for (const id of Object.values(ids)) await compute("DELETE", `/servers/${id}`);
        const isEmpty = async () => {
          const { servers } = await compute("GET", "/servers?all_tenants=1");
          return !servers.some((one: Answer) => Object.values(ids).includes(one.id));
        };
        await eventually("the servers are gone", isEmpty, PATIENCE);
        await eventually("the audit finds nothing", async () => (await world.cloud.audit()).length === 0, PATIENCE);
      },
    },
  ];
}

/** A real Masakari. Each segment has the name of its recovery method. */
class Masakari {
  readonly #world: MasakariWorld;
  readonly #segments = new Map<string, string>();

  constructor(world: MasakariWorld) {
    this.#world = world;
  }

  /** `hosts`: by number, and whether it is reserved. */
  async addSegment(method: string, hosts: Readonly<Record<number, boolean>>): Promise<void> {
    const segment = { name: method, recovery_method: method, service_type: "COMPUTE" };
    this.#segments.set(method, (await this.#call("POST", "/segments", { segment })).segment.uuid);
    for (const [number, isReserved] of Object.entries(hosts))
      await this.addHost(method, host(Number(number)), isReserved);
  }

  async addHost(segment: string, name: string, reserved: boolean): Promise<void> {
    const added = { name, type: "COMPUTE", control_attributes: "none", reserved };
    await this.#call("POST", this.#hosts(segment), { host: added });
  }

  /** Says that a failed host may be recovered again. */
  async endMaintenance(segment: string, number: number): Promise<void> {
    const { hosts } = await this.#call("GET", this.#hosts(segment));
    const { uuid } = hosts.find(({ name }: Answer) => name === host(number));
    await this.#call("PUT", `${this.#hosts(segment)}/${uuid}`, { host: { on_maintenance: false } });
  }

  /** Tells Masakari of a failure on a host and returns the status in which its work ends. */
  async notify(type: string, number: number, payload: unknown): Promise<string> {
    const notification = { type, hostname: host(number), generated_time: new Date().toISOString(), payload };
    const { notification: made } = await this.#call("POST", "/notifications", { notification });
    const path = `/notifications/${made.notification_uuid}`;
    let status = "";
    const hasEnded = async () => {
      status = (await this.#call("GET", path)).notification.status;
      return ["finished", "failed", "ignored"].includes(status);
    };
    await eventually(`Masakari has worked off the ${type} of host ${number}`, hasEnded, PATIENCE);
    return status;
  }

  #hosts(segment: string): string {
    return `/segments/${this.#segments.get(segment)}/hosts`;
  }

  #call(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.#world.cloud.call(method, `${this.#world.masakariUrl}${path}`, body);
  }
}
