import { describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { auditText } from "../../audit/print-report.ts";
import { dispatchOf, hostName, numbered, serverId, serverSpec } from "../contract/cell-fixtures.ts";
import { auditedGuest, foundViolations, useAuditedCloud } from "../rigs/audited-cloud.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";

const rig = useAuditedCloud();

describe("berth audit", () => {
  it("finds nothing in a healthy cloud with a build in progress", async () => {
    const report = await rig().audit({ [hostName(0)]: [auditedGuest(1)], [hostName(1)]: [] });
    expect(report.violations).toEqual([]);
    const counts = { providers: 2, consumers: 2, servers: 2, requests: 2, hosts: 2, hostsAsked: 2 };
    expect(report.counts).toEqual({ ...counts, attachments: null });
    expect(auditText(report)).toMatch(/law 5, every accepted request ends +holds/);
  });

  it("names a host with two servers of an anti-affinity group, counting homes and moves but not soft groups", async () => {
    const store = new PostgresCellStore(rig().pool);
    const ofGroup = (number: number, policy: string) => ({
      group: { uuid: numbered(0xe, number), policy, maxServerPerHost: 0 },
    });
    const build = (server: number, host: number, spec: ReturnType<typeof ofGroup>) =>
      dispatchOf({ server, task: server, hosts: [host], spec });
    await store.dispatch([build(3, 0, ofGroup(1, "anti-affinity")), build(4, 1, ofGroup(1, "anti-affinity"))]);
    await store.dispatch([
      build(5, 0, ofGroup(2, "soft-anti-affinity")),
      build(6, 0, ofGroup(2, "soft-anti-affinity")),
    ]);
    const ofGroups = async () => (await rig().audit()).violations.filter(({ law }) => law === "groups");
    expect(await ofGroups()).toEqual([]);
    await rig().pool.query(
      `insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, runs)
       values ($1, $2, 'live-migrate', 'running', $3, $4, '', true)`,
      [numbered(0xd, 1), serverId(3), hostName(0), hostName(1)],
    );
    expect(await ofGroups()).toMatchObject([
      {
        what: "an anti-affinity group has too many servers on one host",
        where: `cell c1, host ${hostName(1)}, server group ${numbered(0xe, 1)}`,
        proof: `2 of at most 1: ${serverId(3)}, ${serverId(4)}`,
      },
    ]);
    expect(auditText(await rig().audit())).toMatch(/server groups +1 violation$/m);
  });

  it.each([
    [
      "used was changed",
      "update inventories set used = used + 1 where used > 0",
      ["1: used is not the sum of the allocations"],
    ],
    [
      "a host shrank below what is allocated",
      "update inventories set total = 3 where used > 0",
      ["1: more than the capacity is allocated"],
    ],
    [
      "an allocation lost its consumer and its server",
      `delete from attempts; delete from tasks; delete from servers where uuid = '${serverId(1)}'; delete from consumers where uuid = '${serverId(1)}'`,
      [
        "2: an allocation belongs to no server that lives there",
        "5: a server waits for a task that does not exist",
        "5: an accepted request has not ended, and no process works on it",
      ],
    ],
    [
      "an allocation is left of a provider that is gone",
      `insert into allocations (consumer_uuid, provider_id, class_id, amount)
        select consumer_uuid, 9999, class_id, amount from allocations where consumer_uuid = '${serverId(1)}' limit 1`,
      ["1: resources without an inventory are allocated", "2: an allocation belongs to no server that lives there"],
    ],
    [
      "a deleted server holds on",
      `update servers set status = 'DELETED', host = null where uuid = '${serverId(1)}'`,
      ["2: an allocation belongs to no server that lives there"],
    ],
    [
      "a server is at home elsewhere than its allocation",
      `update servers set host = 'host-1' where uuid = '${serverId(1)}'`,
      ["2: an allocation belongs to no server that lives there"],
    ],
    [
      "the owner of a task died and nobody took over",
      "update conductors set lease_expires_at = now() - interval '1 minute'",
      ["5: no conductor works on a build task"],
    ],
    [
      "a task ended and its server did not",
      "update tasks set ended_at = now(), outcome = 'error'",
      ["5: a server waits for a task that does not exist"],
    ],
  ])("sees that %s", async (_title, damage, expected) => {
    await rig().pool.query(damage);
    expect(foundViolations(await rig().audit()).sort()).toEqual(expected);
  });

  it("sees requests that no process works on", async () => {
    await new PostgresApiStore(rig().apiPool).accept([serverSpec(3)]);
    const requests = `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at)
      select '${numbered(0xe, 1)}', 'dispatched', 'c1', spec, project_id, user_id, name, created_at from requests limit 1`;
    await rig().apiPool.query(requests);
    expect((await rig().audit()).violations.map(({ where }) => where).sort()).toEqual(
      [serverId(3), numbered(0xe, 1)].map((uuid) => `server ${uuid}`).sort(),
    );
  });

  it("sees a server that is ACTIVE and that no agent runs, although its host was up all the time", async () => {
    const idle = { [hostName(0)]: [] };
    expect(foundViolations(await rig().audit(idle))).toEqual(["5: a server is ACTIVE and runs nowhere"]);
    await rig().pool.query("update hosts set up = false");
    expect(foundViolations(await rig().audit(idle))).toEqual([]);
    await rig().pool.query("update hosts set up = true");
    await beginOperationOn(new PostgresCellStore(rig().pool), { server: 1, kind: "hard-reboot" });
    expect(foundViolations(await rig().audit(idle))).not.toContain("5: a server is ACTIVE and runs nowhere");
  });

  it("sees guests that run twice, on another host, or after their server's end", async () => {
    const report = await rig().audit({
      [hostName(0)]: [auditedGuest(1)],
      [hostName(1)]: [auditedGuest(1, 1), auditedGuest(7)],
    });
    expect(foundViolations(report).sort()).toEqual([
      "4: a guest runs outside its server's home",
      "4: a guest runs outside its server's home",
      "4: a server runs twice",
    ]);
  });

  it("does not claim that law 4 holds when no host was asked", async () => {
    const text = auditText(await rig().audit());
    expect(text).toMatch(/law 4, one home +not checked: no host was asked/);
    expect(auditText(await rig().audit({ [hostName(0)]: [auditedGuest(1)] }))).toMatch(/law 4, one home +holds/);
  });

  it("sees a cancelled request that is swept repeatedly and never ends", async () => {
    const store = new PostgresApiStore(rig().apiPool);
    await store.accept([serverSpec(3)]);
    await store.cancel(serverId(3), "req-a");
    expect(foundViolations(await rig().audit())).toEqual([]);
    await rig().apiPool.query("update requests set cancelled_at = now() - interval '1 hour' where state = 'cancelled'");
    expect(foundViolations(await rig().audit())).toEqual(["5: a request is touched again and again but does not end"]);
  });

  it("continues without a cell that cannot be read, and is then not clean", async () => {
    const url = new URL(rig().cell.url);
    url.pathname = "/no_such_database";
    const report = await auditTwice({
      apiUrl: rig().api.url,
      cells: [{ name: "c1", databaseUrl: url.href }],
      ...{ pauseMs: 0, patienceMs: 0, conductorSettings: [] },
    });
    expect(report.violations).toEqual([]);
    expect(isClean(report)).toBe(false);
    expect(auditText(report)).toContain("cell c1 could not be read");
  });
});
