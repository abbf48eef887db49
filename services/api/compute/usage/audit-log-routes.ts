import { Type } from "typebox";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";
import { listHosts } from "../hypervisors/list-hosts.ts";

interface AuditLogDeps {
  readonly cells: Cells;
  readonly clock: Clock;
}

const RULE = "os-instance-usage-audit-log";
const DateParams = Type.Object({ before: Type.String() });
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)$/;

/**
 * `/os-instance_usage_audit_log`: admins only. Berth's hosts run no usage audits, as Nova's do not unless they are told to, so no host has run
 * one in the last completed month. `os-simple-tenant-usage` reports usage.
 */
export function registerAuditLogRoutes(http: Http, { cells, clock }: AuditLogDeps): void {
  const all = { config: { rule: `${RULE}:list` }, schema: { querystring: AnyQuery } };
  http.get("/os-instance_usage_audit_log", all, async () => {
    return { instance_usage_audit_logs: await auditLog(cells, clock.now()) };
  });

  const one = { config: { rule: `${RULE}:show` }, schema: { params: DateParams, querystring: AnyQuery } };
  http.get("/os-instance_usage_audit_log/:before", one, async (request) => {
    const { before } = request.params;
    const [, day, time] = TIMESTAMP.exec(before) ?? [];
    const beforeMs = Date.parse(`${day}T${time}Z`);
    if (Number.isNaN(beforeMs)) throw badRequest(`Invalid timestamp for date ${before.slice(0, 100)}`);
    return { instance_usage_audit_log: await auditLog(cells, beforeMs) };
  });
}

async function auditLog(cells: Cells, beforeMs: number) {
  const { hosts } = await listHosts(cells, { withUsage: false });
  const { beginMs, endMs } = lastCompletedMonth(beforeMs);
  return {
    period_beginning: dateText(beginMs),
    period_ending: dateText(endMs),
    num_hosts: hosts.length,
    num_hosts_done: 0,
    num_hosts_running: 0,
    num_hosts_not_run: hosts.length,
    hosts_not_run: hosts.map(({ host }) => host.name),
    total_instances: 0,
    total_errors: 0,
    overall_status: `${hosts.length === 0 ? "ALL" : `0 of ${hosts.length}`} hosts done. 0 errors.`,
    log: {},
  };
}

/** Returns the last month that ended before a time. Audits are monthly by default. */
function lastCompletedMonth(beforeMs: number): { readonly beginMs: number; readonly endMs: number } {
  const before = new Date(beforeMs);
  const thisMonthMs = Date.UTC(before.getUTCFullYear(), before.getUTCMonth());
  // A month has not ended at the very moment of its end.
  const back = thisMonthMs >= beforeMs ? 1 : 0;
  return {
    beginMs: Date.UTC(before.getUTCFullYear(), before.getUTCMonth() - back - 1),
    endMs: Date.UTC(before.getUTCFullYear(), before.getUTCMonth() - back),
  };
}

function dateText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ");
}
