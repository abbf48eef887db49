import type { PortQuery, PortRecord, PortStore } from "../../core/cell/port-store.ts";

/** The in-process twin of the ports' table. */
export class MemoryPortStore implements PortStore {
  readonly #ports = new Map<string, PortRecord>();

  async createPort(port: PortRecord): Promise<"created" | "id-taken"> {
    if (this.#ports.has(port.id)) return "id-taken";
    this.#ports.set(port.id, structuredClone(port));
    return "created";
  }

  async ports(ids: readonly string[]): Promise<readonly PortRecord[]> {
    return [...new Set(ids)].flatMap((id) => this.#ports.get(id) ?? []);
  }

  async listPorts({ projectId, limit }: PortQuery): Promise<readonly PortRecord[]> {
    const found = [...this.#ports.values()].filter((port) => projectId === null || port.projectId === projectId);
    return found.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  async deletePort(id: string): Promise<boolean> {
    return this.#ports.delete(id);
  }
}
