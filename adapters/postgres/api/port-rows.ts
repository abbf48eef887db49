import type { PortGroup, PortRecord } from "../../../core/tasks/port-record.ts";

export interface PortRow {
  id: string;
  project_id: string;
  network_id: string;
  name: string;
  address: string | null;
  ends_with_server: boolean;
  groups: PortGroup[];
  security_groups: string[] | null;
  created_at_ms: number;
  server_uuid: string | null;
  bound_at_ms: number | null;
  bound_for_ms: number | null;
}

export const BOUND_AT_MS = "(extract(epoch from bound_at) * 1000)::float8";
const BOUND_FOR_MS = "(extract(epoch from clock_timestamp() - bound_at) * 1000)::float8";
export const PORT_COLUMNS = `id, project_id, network_id, name, host(address) as address, ends_with_server, groups, security_groups,
  created_at_ms::float8, server_uuid, ${BOUND_AT_MS} as bound_at_ms, ${BOUND_FOR_MS} as bound_for_ms`;

export function recordOfPort(row: PortRow): PortRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    networkId: row.network_id,
    name: row.name,
    address: row.address,
    endsWithServer: row.ends_with_server,
    groups: row.groups,
    securityGroups: row.security_groups,
    createdAtMs: row.created_at_ms,
    binding:
      row.server_uuid === null
        ? null
        : { serverUuid: row.server_uuid, atMs: row.bound_at_ms ?? 0, ageMs: Math.max(0, row.bound_for_ms ?? 0) },
  };
}
