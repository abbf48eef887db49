import { isDeepStrictEqual } from "node:util";
import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import type {
  AddPortsOutcome,
  AddressPool,
  NewPort,
  PortBinding,
  PortQuery,
  PortStore,
} from "../../../core/stores/api/port-store.ts";
import { ipv4At } from "../../../core/tasks/ipv4.ts";
import type { PortRecord } from "../../../core/tasks/port-record.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { MemberPorts } from "./memory-security-groups.ts";

/** The in-process twin of the table of ports. It works over the store that holds the requests. */
export class MemoryPortStore implements PortStore, MemberPorts {
  readonly #ports = new Map<string, PortRecord>();
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: Pick<ApiStore, "requests">;
  /** The offset from which each network's next address is looked for. */
  readonly #cursors = new Map<string, number>();
  #boundAtMs = 0;

  constructor(clock: Pick<Clock, "now">, deps: { readonly requests: Pick<ApiStore, "requests"> }) {
    this.#clock = clock;
    this.#requests = deps.requests;
  }

  async createPort(port: PortRecord): Promise<"created" | "id-taken"> {
    if (this.#ports.has(port.id)) return "id-taken";
    this.#ports.set(port.id, structuredClone(port));
    return "created";
  }

  async addPorts(ports: readonly NewPort[], pool: AddressPool): Promise<AddPortsOutcome> {
    const taken = new Set(
      [...this.#ports.values()].flatMap(({ networkId, address }) => (networkId === pool.networkId ? [address] : [])),
    );
    const asked = ports.flatMap(({ address }) => address ?? []);
    const doubled = asked.find((address, index) => taken.has(address) || asked.indexOf(address) !== index);
    if (doubled !== undefined) return { kind: "address-taken", address: doubled };
    for (const address of asked) taken.add(address);
    const records: PortRecord[] = [];
    let cursor = this.#cursors.get(pool.networkId) ?? 0;
    let looked = 0;
    for (const { serverUuid, ...port } of ports) {
      let { address } = port;
      while (address === null && looked < pool.size) {
        const next = ipv4At(pool.first, cursor);
        if (!taken.has(next)) address = next;
        cursor = (cursor + 1) % pool.size;
        looked += 1;
      }
      if (address === null) return { kind: "no-address" };
      const binding = serverUuid === null ? null : { serverUuid, atMs: this.#nextBoundAtMs(), ageMs: 0 };
      records.push({ ...structuredClone(port), securityGroups: null, address, binding });
    }
    this.#cursors.set(pool.networkId, cursor);
    for (const record of records) this.#ports.set(record.id, record);
    return { kind: "added", ports: records };
  }

  async ports(ids: readonly string[]): Promise<readonly PortRecord[]> {
    return [...new Set(ids)].flatMap((id) => this.#shown(this.#ports.get(id)));
  }

  async portsOfServers(serverUuids: readonly string[]): Promise<readonly PortRecord[]> {
    const asked = new Set(serverUuids);
    return [...this.#ports.values()]
      .filter(({ binding }) => asked.has(binding?.serverUuid ?? ""))
      .flatMap((port) => this.#shown(port));
  }

  isInUse(groupId: string): boolean {
    return [...this.#ports.values()].some(({ securityGroups }) => securityGroups?.includes(groupId) === true);
  }

  setGroups(portId: string, from: readonly string[] | null, to: readonly string[]): boolean {
    const port = this.#ports.get(portId);
    if (port === undefined || !isDeepStrictEqual(port.securityGroups, from)) return false;
    this.#ports.set(portId, { ...port, securityGroups: [...to] });
    return true;
  }

  async listPorts({ projectId, limit, serverUuid, ...fields }: PortQuery): Promise<readonly PortRecord[]> {
    const asked = Object.entries(fields).filter(([, value]) => value !== undefined);
    const found = [...this.#ports.values()].filter(
      (port) =>
        (projectId === null || port.projectId === projectId) &&
        (serverUuid === undefined || port.binding?.serverUuid === serverUuid) &&
        asked.every(([name, value]) => port[name as keyof PortRecord] === value),
    );
    return found
      .flatMap((port) => this.#shown(port))
      .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async bindPorts(
    ids: readonly string[],
    serverUuid: string,
    instead: readonly string[],
  ): Promise<readonly PortBinding[]> {
    return [...new Set(ids)].flatMap((id) => {
      const port = this.#ports.get(id);
      const holder = port?.binding?.serverUuid;
      if (port === undefined || (holder !== undefined && holder !== serverUuid && !instead.includes(holder))) return [];
      const atMs = this.#nextBoundAtMs();
      this.#ports.set(id, { ...port, binding: { serverUuid, atMs, ageMs: 0 } });
      return [{ id, atMs, wasOwn: holder === serverUuid }];
    });
  }

  async unbindPorts(
    ids: readonly string[],
    serverUuid: string,
    boundUntilMs = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    for (const id of ids) {
      const port = this.#ports.get(id);
      if (port?.binding?.serverUuid !== serverUuid || port.binding.atMs > boundUntilMs) continue;
      this.#ports.set(id, { ...port, binding: null });
    }
  }

  async endServers(serverUuids: readonly string[]): Promise<void> {
    const records = await this.#requests.requests(serverUuids);
    const living = new Set(records.flatMap(({ serverUuid, state }) => (state === "deleted" ? [] : [serverUuid])));
    const ended = new Set(serverUuids.filter((uuid) => !living.has(uuid)));
    for (const port of this.#ports.values()) if (ended.has(port.binding?.serverUuid ?? "")) this.#end(port);
  }

  async sweepPorts(unknownMs: number): Promise<number> {
    const bound = [...this.#ports.values()].filter(({ binding }) => binding !== null);
    const uuids = bound.flatMap(({ binding }) => binding?.serverUuid ?? []);
    const known = new Map((await this.#requests.requests(uuids)).map((record) => [record.serverUuid, record.state]));
    const over = bound.filter(({ binding }) => {
      const state = known.get(binding?.serverUuid ?? "");
      if (state !== undefined) return state === "deleted";
      return this.#clock.now() - (binding?.atMs ?? 0) > unknownMs;
    });
    for (const port of over) this.#end(port);
    return over.length;
  }

  #end(port: PortRecord): void {
    if (port.endsWithServer) this.#ports.delete(port.id);
    else this.#ports.set(port.id, { ...port, binding: null });
  }

  /** No two ports are bound at the same time, since times in Postgres differ, too. */
  #nextBoundAtMs(): number {
    this.#boundAtMs = Math.max(this.#clock.now(), this.#boundAtMs + 0.001);
    return this.#boundAtMs;
  }

  /** The port with the present age of its binding. */
  #shown(port: PortRecord | undefined): PortRecord[] {
    if (port === undefined || port.binding === null) return port === undefined ? [] : [port];
    const ageMs = Math.max(0, this.#clock.now() - port.binding.atMs);
    return [{ ...port, binding: { ...port.binding, ageMs } }];
  }

  async renamePort(id: string, name: string): Promise<boolean> {
    const port = this.#ports.get(id);
    if (port !== undefined) this.#ports.set(id, { ...port, name });
    return port !== undefined;
  }

  async deletePort(id: string): Promise<boolean> {
    return this.#ports.delete(id);
  }

  async countOwned(projectId: string, countMax: number): Promise<number> {
    const owned = [...this.#ports.values()].filter((port) => port.projectId === projectId && !port.endsWithServer);
    return Math.min(owned.length, countMax);
  }

  async deleteFreePort(id: string): Promise<boolean> {
    return this.#ports.get(id)?.binding === null && this.#ports.delete(id);
  }
}
