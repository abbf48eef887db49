import type { PortBinding, PortQuery, PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortRecord } from "../../../core/tasks/port-record.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The in-process twin of the table of ports. */
export class MemoryPortStore implements PortStore {
  readonly #ports = new Map<string, PortRecord>();
  readonly #clock: Pick<Clock, "now">;
  #boundAtMs = 0;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async createPort(port: PortRecord): Promise<"created" | "id-taken"> {
    if (this.#ports.has(port.id)) return "id-taken";
    this.#ports.set(port.id, structuredClone(port));
    return "created";
  }

  async ports(ids: readonly string[]): Promise<readonly PortRecord[]> {
    return [...new Set(ids)].flatMap((id) => this.#shown(this.#ports.get(id)));
  }

  async listPorts({ projectId, limit }: PortQuery): Promise<readonly PortRecord[]> {
    const found = [...this.#ports.values()].filter((port) => projectId === null || port.projectId === projectId);
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
      // No two ports are bound at the same time, since times in Postgres differ, too.
      this.#boundAtMs = Math.max(this.#clock.now(), this.#boundAtMs + 0.001);
      this.#ports.set(id, { ...port, binding: { serverUuid, atMs: this.#boundAtMs, ageMs: 0 } });
      return [{ id, atMs: this.#boundAtMs, wasOwn: holder === serverUuid }];
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

  /** The port with the present age of its binding. */
  #shown(port: PortRecord | undefined): PortRecord[] {
    if (port === undefined || port.binding === null) return port === undefined ? [] : [port];
    const ageMs = Math.max(0, this.#clock.now() - port.binding.atMs);
    return [{ ...port, binding: { ...port.binding, ageMs } }];
  }

  async deletePort(id: string): Promise<boolean> {
    return this.#ports.delete(id);
  }
}
