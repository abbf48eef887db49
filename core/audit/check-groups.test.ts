import { describe, expect, test } from "vitest";
import { checkGroups } from "./check-groups.ts";
import type { AuditedMove, AuditedServer, CellReading } from "./facts.ts";

const APART = { uuid: "g1", policy: "anti-affinity", maxServerPerHost: 0 };
const PAIRS = { uuid: "g2", policy: "anti-affinity", maxServerPerHost: 2 };
const TOGETHER = { uuid: "g3", policy: "affinity", maxServerPerHost: 0 };

const on = (uuid: string, host: string | null, group: AuditedServer["group"]): AuditedServer => ({
  uuid,
  status: "ACTIVE",
  taskState: null,
  host,
  attemptId: "t/0",
  unchangedMs: 0,
  group,
});
const move = (serverUuid: string, sourceHost: string | null, destHost: string, inFlight = true): AuditedMove => ({
  uuid: `move of ${serverUuid}`,
  serverUuid,
  sourceHost,
  sourceAttemptId: sourceHost === null ? null : "t/0",
  destHost,
  destAttemptId: "m/0",
  inFlight,
  isWaitShown: false,
});
const found = (servers: readonly AuditedServer[], moves: readonly AuditedMove[] = []) =>
  checkGroups({ cell: "c1", servers, moves } as unknown as CellReading).map(({ where, proof }) => `${where}: ${proof}`);

describe("the audit of server groups", () => {
  test("names the host that has two servers of an anti-affinity group, and the servers", () => {
    expect(found([on("s2", "h1", APART), on("s1", "h1", APART), on("s3", "h2", APART)])).toEqual([
      "cell c1, host h1, server group g1: 2 of at most 1: s1, s2",
    ]);
  });

  test("allows max_server_per_host servers on a host, and no more", () => {
    const pair = [on("s1", "h1", PAIRS), on("s2", "h1", PAIRS)];
    expect(found(pair)).toEqual([]);
    expect(found([...pair, on("s3", "h1", PAIRS)])).toHaveLength(1);
  });

  test("names the hosts of an affinity group that is on several hosts", () => {
    expect(found([on("s1", "h1", TOGETHER), on("s2", "h2", TOGETHER), on("s3", "h1", TOGETHER)])).toEqual([
      "cell c1, server group g3: s1, s3 on h1; s2 on h2",
    ]);
  });

  test("counts both ends of an open move, and counts a host once that is both ends", () => {
    const two = [on("s1", "h1", APART), on("s2", "h2", APART)];
    expect(found(two, [move("s1", "h1", "h2")])).toHaveLength(1);
    expect(found(two, [move("s1", "h2", "h1")])).toHaveLength(1);
    expect(found(two, [move("s1", "h1", "h1")])).toEqual([]);
    expect(found(two, [move("s1", "h2", "h1", false)])).toEqual([]);
    expect(found([on("s1", null, APART), on("s2", "h2", APART)], [move("s1", null, "h2")])).toHaveLength(1);
  });

  test("allows the only server of an affinity group to move, but no server to join it meanwhile", () => {
    const lone = on("s1", "h1", TOGETHER);
    expect(found([lone], [move("s1", "h1", "h2")])).toEqual([]);
    expect(found([lone, on("s2", "h1", TOGETHER)], [move("s1", "h1", "h2")])).toHaveLength(1);
  });

  test("ignores servers that are deleted, on no host, or in no hard group", () => {
    const gone: AuditedServer = { ...on("s1", "h1", APART), status: "DELETED" };
    expect(found([gone, on("s2", "h1", APART), on("s3", null, APART), on("s4", "h1", null)])).toEqual([]);
  });
});
