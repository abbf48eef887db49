import type { HostMapStore } from "../../../core/stores/api/host-map-store.ts";

/** The in-process twin of the table of hosts. */
export class MemoryHostMapStore implements HostMapStore {
  readonly #hosts = new Map<string, readonly string[]>();

  async hostsOf(cell: string): Promise<readonly string[]> {
    return this.#hosts.get(cell) ?? [];
  }

  async keepHosts(cell: string, names: readonly string[]): Promise<void> {
    this.#hosts.set(cell, [...new Set(names)].sort());
  }

  async forgetHost(cell: string, name: string): Promise<void> {
    this.#hosts.set(
      cell,
      (this.#hosts.get(cell) ?? []).filter((one) => one !== name),
    );
  }
}
