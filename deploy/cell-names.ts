/** Names of a deployment's servers on which several files must agree. */
export const HUB_SERVERS = ["nats-1", "nats-2", "nats-3"] as const;
export const CONDUCTORS_PER_CELL = 2;

export function cellNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `cell${index + 1}`);
}

export function conductorNames(cell: string): readonly string[] {
  return Array.from({ length: CONDUCTORS_PER_CELL }, (_, index) => `${cell}-conductor-${index + 1}`);
}

/** The agent of a cell in the compose file. It generates its hosts and names them after itself. */
export function agentOf(cell: string): { readonly id: string; readonly hosts: readonly string[] } {
  return { id: `${cell}-host`, hosts: [`${cell}-host-*`] };
}

/** The network between the API tier and a cell's two servers. */
export function uplink(cell: string): string {
  return `uplink-${cell}`;
}
