import { describe, expect, it } from "vitest";
import { checkCopies } from "./check-copies.ts";
import type { AuditedMove, AuditedServer, AuditedTask } from "./facts.ts";

type CopyFacts = Parameters<typeof checkCopies>[0];

const server = (change: Partial<AuditedServer> = {}): AuditedServer => ({
  ...{ uuid: "s1", status: "ACTIVE", taskState: null, host: "h1", attemptId: "t/0", unchangedMs: 60_000, group: null },
  ...change,
});
const task = (change: Partial<AuditedTask> = {}): AuditedTask => ({
  ...{ id: "t", serverUuid: "s1", kind: "operate", operation: "reboot", stage: "powering", unattendedMs: 0 },
  ...change,
});

describe("law 6", () => {
  const LOST = ["6: no copy of a server exists (cell c1, server s1)"];
  const copy = (attemptId: string) => [{ serverUuid: "s1", attemptId }];
  const of = (change: Partial<CopyFacts>): string[] =>
    checkCopies({
      ...{ cell: "c1", servers: [server()], openTasks: [], moves: [], copies: new Map([["h1", []]]) },
      ...change,
    }).map(({ law, what, where }) => `${law}: ${what} (${where})`);
  const move: AuditedMove = {
    ...{ uuid: "m1", serverUuid: "s1", sourceHost: "h2", sourceAttemptId: "x/0", destHost: "h1", destAttemptId: "t/0" },
    ...{ inFlight: true, isWaitShown: false },
  };

  it.each(["ACTIVE", "SHUTOFF", "PAUSED", "SHELVED", "VERIFY_RESIZE", "ERROR"] as const)(
    "reports a server that is %s without a guest at home",
    (status) => {
      const servers = [server({ status })];
      expect(of({ servers })).toEqual(LOST);
      expect(of({ servers, copies: new Map([["h1", copy("t/1")]]) })).toEqual(LOST);
      expect(of({ servers, copies: new Map([["h1", copy("t/0")]]) })).toEqual([]);
    },
  );

  it("accepts the guest that a move keeps at its source while the move is in flight", () => {
    const copies = new Map([
      ["h1", []],
      ["h2", copy("x/0")],
    ] as const);
    expect(of({ copies, moves: [move] })).toEqual([]);
    expect(of({ copies, moves: [{ ...move, inFlight: false }] })).toEqual(LOST);
    expect(
      of({
        copies: new Map([
          ["h1", []],
          ["h2", []],
        ] as const),
        moves: [move],
      }),
    ).toEqual(LOST);
  });

  it.each([
    ["shelve-offload", "powering"],
    ["shelve-to-image", "powering"],
    ["shelve-to-image", "snapshotting"],
  ])("reports a server whose %s is still %s, since its guest must exist until then", (operation, stage) => {
    expect(of({ openTasks: [task({ operation, stage })], copies: new Map([["h1", []]]) })).toEqual(LOST);
  });

  it.each<[string, Partial<CopyFacts>]>([
    ["at home on a host that was not asked", { copies: new Map() }],
    ["that moves from a host that was not asked", { moves: [move] }],
    ["that is being built", { servers: [server({ status: "BUILD" })], openTasks: [task({ kind: "build" })] }],
    ["that is being deleted", { openTasks: [task({ kind: "delete" })] }],
    ["that is being offloaded", { openTasks: [task({ operation: "shelve-offload", stage: "offloading" })] }],
    ["that is nowhere", { servers: [server({ status: "SHELVED_OFFLOADED", host: null, attemptId: null })] }],
  ])("does not report a server %s", (_title, change) => {
    expect(of(change)).toEqual([]);
  });
});
