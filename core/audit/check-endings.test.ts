import { describe, expect, it } from "vitest";
import { checkEndings } from "./check-endings.ts";
import type { AuditedRequest, AuditedServer, CellReading } from "./facts.ts";
import type { Violation } from "./violation.ts";

const SERVER: AuditedServer = {
  ...{ uuid: "s1", status: "ACTIVE", taskState: null, host: "h1", attemptId: "t/0", unchangedMs: 60_000 },
  group: null,
};

/** A cell whose hosts could not be asked, with these servers. */
const cell = (name: string, servers: readonly AuditedServer[]): CellReading => ({
  cell: name,
  ledger: { providers: [], consumers: [] },
  servers,
  closed: new Set(),
  openTasks: [],
  moves: [],
  hosts: new Map(),
  upMs: new Map(),
  runningGuests: new Map(),
  copies: new Map(),
});

function check(request: Partial<AuditedRequest>, cells: readonly CellReading[]): Violation[] {
  const assigned: AuditedRequest = {
    ...{ serverUuid: "s1", state: "dispatched", cell: "c2", untouchedMs: 60_000, pendingMs: 60_000 },
    ...request,
  };
  return checkEndings({ cells, api: { requests: [assigned] } }, 10_000);
}

describe("a request whose server another cell has", () => {
  const what = "a request is not assigned to the cell that has its server";
  const cells = [cell("c1", [SERVER]), cell("c2", [])];

  it.each<[string, Partial<AuditedRequest>, string]>([
    ["dispatched to a cell without it", {}, "request dispatched in cell c2, which does not have the server"],
    ["in no cell", { state: "accepted", cell: null }, "request accepted and assigned to no cell"],
    ["cancelled", { state: "cancelled" }, "request cancelled in cell c2, which does not have the server"],
  ])("is reported with that cell when it is %s, once that has lasted", (_title, request, proof) => {
    expect(check(request, cells)).toEqual([
      {
        ...{ law: 5, what, where: "server s1", proof: `${proof}; it lives in cell c1 as ACTIVE` },
        subject: { kind: "request", serverUuid: "s1" },
      },
    ]);
    expect(check({ ...request, untouchedMs: 1_000 }, cells)).toEqual([]);
  });

  it("is reported with the cell that has deleted it, unless the request is cancelled, too", () => {
    const deleted = [cell("c1", [{ ...SERVER, status: "DELETED", host: null }]), cell("c2", [])];
    expect(check({}, deleted)).toMatchObject([{ what, proof: expect.stringMatching(/; cell c1 has deleted it$/) }]);
    expect(check({ state: "cancelled" }, deleted)).toEqual([]);
  });

  it("is not reported while the cell of the request could not be read, or has the server as well", () => {
    expect(check({}, [cell("c1", [SERVER])])).toEqual([]);
    expect(check({}, [cell("c1", [SERVER]), cell("c2", [SERVER])])).toEqual([]);
  });

  it("is reported as before if no cell has it", () => {
    expect(check({}, [cell("c2", [])])).toMatchObject([{ proof: expect.stringMatching(/cell c2 does not have it$/) }]);
  });
});

describe("a server that lives in its cell", () => {
  const what = "a server lives in its cell, and no request asks for it";
  const living = (change: Partial<AuditedServer> = {}) => [cell("c1", [{ ...SERVER, ...change }])];

  it.each<[string, Partial<AuditedRequest>]>([
    ["deleted, as after a restore of the cell", { state: "deleted", cell: "c1" }],
    ["failed", { state: "failed", cell: "c1" }],
    ["missing, as after a restore of the API database", { serverUuid: "s2", state: "failed" }],
  ])("is reported with its cell if its request is %s, once that has lasted", (_title, request) => {
    expect(check(request, living())).toEqual([
      {
        ...{ law: 5, what, where: "cell c1, server s1" },
        proof: "ACTIVE, unchanged for 60 s; its request has failed, is deleted, or is missing",
        subject: { kind: "unasked", cell: "c1", serverUuid: "s1" },
      },
    ]);
    expect(check(request, living({ unchangedMs: 1_000 }))).toEqual([]);
  });

  it("is not reported while a request asks for it or for its deletion, or when it has ended or is ending", () => {
    for (const state of ["accepted", "dispatched", "cancelled"] as const)
      expect(check({ state, cell: "c1" }, living()).filter((violation) => violation.what === what)).toEqual([]);
    const deleted = { state: "deleted", cell: "c1" } as const;
    expect(check(deleted, living({ status: "DELETED", host: null }))).toEqual([]);
    expect(check(deleted, living({ taskState: "deleting" }))).not.toContainEqual(expect.objectContaining({ what }));
  });
});
