import { describe, expect, it } from "vitest";
import { consumerUuid, providerUuid, resourceClass, trait } from "../ledger/ids.ts";
import type { AllocationItem, Provider } from "../ledger/model.ts";
import { auditCloud } from "./audit-cloud.ts";
import { checkUpCalls } from "./check-up-calls.ts";
import type { AuditedMove, AuditedRequest, AuditedServer, AuditedTask, CellReading, CloudFacts } from "./facts.ts";

const CLASS = resourceClass("VCPU");
const item = (provider: string, amount: number): AllocationItem => ({
  provider: providerUuid(provider),
  resourceClass: CLASS,
  amount,
});
const provider = (name: string, root: string, used: number): Provider => ({
  uuid: providerUuid(name),
  name,
  parent: name === root ? null : providerUuid(root),
  root: providerUuid(root),
  generation: 0,
  inventories: new Map([
    [CLASS, { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 1, used }],
  ]),
  traits: new Set([trait("CUSTOM_T")]),
  aggregates: new Set(),
});
const consumer = (uuid: string, items: readonly AllocationItem[], type = "INSTANCE") => ({
  uuid: consumerUuid(uuid),
  generation: 1,
  projectId: "p",
  userId: "u",
  type,
  items,
});
const server = (uuid: string, change: Partial<AuditedServer> = {}): AuditedServer => ({
  uuid,
  status: "ACTIVE",
  taskState: null,
  host: "h1",
  attemptId: "t/0",
  unchangedMs: 60_000,
  group: null,
  ...change,
});

/** A cell with two hosts and one server, which runs on the first host. */
function cell(change: Partial<CellReading> = {}): CellReading {
  return {
    cell: "c1",
    ledger: {
      providers: [provider("r1", "r1", 2), provider("gpu", "r1", 1), provider("r2", "r2", 0)],
      consumers: [consumer("s1", [item("r1", 2), item("gpu", 1)])],
    },
    servers: [server("s1")],
    closed: new Set(),
    openTasks: [],
    moves: [],
    hosts: new Map([
      ["h1", providerUuid("r1")],
      ["h2", providerUuid("r2")],
    ]),
    upMs: new Map([
      ["h1", 60_000],
      ["h2", 60_000],
    ]),
    runningGuests: new Map([["h1", [{ serverUuid: "s1", attemptId: "t/0" }]]]),
    copies: new Map(),
    ...change,
  };
}
const task = (change: Partial<AuditedTask> = {}): AuditedTask => ({
  ...{ id: "t", serverUuid: "s1", kind: "operate", operation: "reboot", stage: "powering", unattendedMs: 0 },
  ...change,
});
const request = (change: Partial<AuditedRequest> = {}): AuditedRequest => ({
  serverUuid: "s1",
  state: "dispatched",
  cell: "c1",
  untouchedMs: 60_000,
  pendingMs: 60_000,
  ...change,
});
const cloud = (cells: readonly CellReading[], requests: readonly AuditedRequest[] = [request()]): CloudFacts => ({
  cells,
  api: { requests },
});
const found = (facts: CloudFacts): string[] =>
  auditCloud(facts, 10_000).map(({ law, what, where }) => `${law}: ${what} (${where})`);

describe("the audit", () => {
  it("finds nothing in a cloud that is in order", () => {
    expect(found(cloud([cell()]))).toEqual([]);
  });

  it("ignores whatever has ended", () => {
    const ended = cell({
      ledger: { providers: [provider("r1", "r1", 0), provider("gpu", "r1", 0)], consumers: [] },
      servers: [
        server("s1", { status: "DELETED", host: null, attemptId: null }),
        server("s2", { status: "ERROR", host: null }),
      ],
      runningGuests: new Map(),
    });
    expect(found(cloud([ended], [request({ state: "cancelled" }), request({ serverUuid: "s2" })]))).toEqual([]);
  });
});

describe("law 1", () => {
  it("reports a `used` that is not the sum of the allocations", () => {
    const ledger = { ...cell().ledger, providers: [provider("r1", "r1", 3), provider("gpu", "r1", 1)] };
    expect(found(cloud([cell({ ledger })]))).toEqual([
      "1: used is not the sum of the allocations (cell c1, VCPU of provider r1 (r1))",
    ]);
  });

  it("reports that more is allocated than the capacity", () => {
    const ledger = {
      providers: [provider("r1", "r1", 9), provider("gpu", "r1", 0)],
      consumers: [consumer("s1", [item("r1", 9)])],
    };
    const violations = auditCloud(cloud([cell({ ledger })]), 0);
    expect(violations).toMatchObject([{ law: 1, what: "more than the capacity is allocated", proof: "9 of 8" }]);
  });

  it("reports an allocation of an inventory that does not exist", () => {
    const ledger = {
      providers: [{ ...provider("r1", "r1", 0), inventories: new Map() }],
      consumers: [consumer("s1", [item("r1", 1)])],
    };
    expect(found(cloud([cell({ ledger })]))).toEqual([
      "1: resources without an inventory are allocated (cell c1, VCPU of provider r1)",
    ]);
  });
});

describe("law 2", () => {
  const ORPHAN = "2: an allocation belongs to no server that lives there (cell c1, consumer s1)";

  it.each([
    ["of a server that does not exist", []],
    ["of a server that was deleted", [server("s1", { status: "DELETED" })]],
    ["of a server that ended in ERROR before it ran", [server("s1", { status: "ERROR", host: null })]],
    ["of a server that lives on another host", [server("s1", { host: "h2" })]],
    ["of a server on a host that nobody knows", [server("s1", { host: "h9" })]],
  ])("reports an allocation %s", (_title, servers) => {
    const facts = cell({ servers: servers as AuditedServer[], runningGuests: new Map() });
    expect(found(cloud([facts], []))).toContain(ORPHAN);
  });

  it("reports a server that holds nothing on its host", () => {
    const ledger = { providers: [provider("r1", "r1", 0), provider("gpu", "r1", 0)], consumers: [] };
    expect(found(cloud([cell({ ledger })]))).toEqual([
      "2: a server has a home but no allocations there (cell c1, server s1)",
    ]);
  });

  it("ignores what clients of the Placement API hold for themselves", () => {
    const ledger = {
      ...cell().ledger,
      providers: [provider("r1", "r1", 3), provider("gpu", "r1", 1)],
      consumers: [...cell().ledger.consumers, consumer("other", [item("r1", 1)], "CUSTOM")],
    };
    expect(found(cloud([cell({ ledger })]))).toEqual([]);
  });
});

describe("law 3", () => {
  it("reports a conductor that has an address above its cell, or may publish there", () => {
    const clean = { settings: ["cell", "cellDatabaseUrl", "natsUrl"], cell: "c1", publishes: ["cell.c1.events"] };
    expect(checkUpCalls(clean)).toEqual([]);
    expect(checkUpCalls({ ...clean, settings: [...clean.settings, "databaseUrl"] })).toMatchObject([
      { law: 3, where: "setting databaseUrl" },
    ]);
    for (const subject of ["scheduler.requests", "cell.c2.tasks", "cell.c2.events", ">"]) {
      expect(checkUpCalls({ ...clean, publishes: ["cell.c1.events", subject] })).toMatchObject([
        { law: 3, where: "cell c1" },
      ]);
    }
  });
});

describe("law 4", () => {
  const guest = { serverUuid: "s1", attemptId: "t/0" };

  it("reports a server that runs on two hosts", () => {
    const runningGuests = new Map([
      ["h1", [guest]],
      ["h2", [guest]],
    ]);
    expect(found(cloud([cell({ runningGuests })]))).toEqual([
      "4: a guest runs outside its server's home (cell c1, host h2, server s1)",
      "4: a server runs twice (server s1)",
    ]);
  });

  it("reports a guest of an abandoned attempt on the same host", () => {
    const runningGuests = new Map([["h1", [{ ...guest, attemptId: "t/1" }]]]);
    expect(found(cloud([cell({ runningGuests })]))).toEqual([
      "4: a guest runs outside its server's home (cell c1, host h1, server s1)",
    ]);
  });

  it("reports a guest that outlived its server", () => {
    const runningGuests = new Map([["h2", [{ serverUuid: "gone", attemptId: "x/0" }]]]);
    expect(found(cloud([cell({ runningGuests })]))).toEqual([
      "4: a guest runs outside its server's home (cell c1, host h2, server gone)",
    ]);
  });

  it("reports a server that lives in two cells", () => {
    expect(found(cloud([cell(), cell({ cell: "c2", runningGuests: new Map() })]))).toEqual([
      "4: a server lives in two cells (server s1)",
    ]);
  });
});

describe("law 5", () => {
  it("reports a server that waits for a task that does not exist", () => {
    for (const change of [{ status: "BUILD" }, { taskState: "deleting" }] as const) {
      const facts = cell({ servers: [server("s1", change)] });
      expect(found(cloud([facts]))).toEqual(["5: a server waits for a task that does not exist (cell c1, server s1)"]);
    }
  });

  it("reports a task without a live owner, once that has lasted", () => {
    const facts = (unattendedMs: number): CellReading =>
      cell({
        servers: [server("s1", { status: "BUILD" })],
        openTasks: [task({ kind: "build", unattendedMs })],
      });
    expect(found(cloud([facts(9_000)]))).toEqual([]);
    const abandoned = "5: no conductor works on a build task (cell c1, server s1, task t)";
    expect(found(cloud([facts(11_000)]))).toEqual([abandoned]);
  });

  it.each([
    ["accepted and in no cell", request({ serverUuid: "s2", state: "accepted", cell: null })],
    ["assigned to a cell that does not have it", request({ serverUuid: "s2" })],
    ["cancelled and still there", request({ state: "cancelled" })],
  ])("reports a request that is %s, once that has lasted", (_title, lost) => {
    expect(found(cloud([cell()], [request(), lost]))).toEqual([
      `5: an accepted request has not ended, and no process works on it (server ${lost.serverUuid})`,
    ]);
    expect(found(cloud([cell()], [request(), { ...lost, untouchedMs: 1_000 }]))).toEqual([]);
  });

  it.each([
    ["accepted", request({ serverUuid: "s2", state: "accepted", cell: null })],
    ["cancelled", request({ state: "cancelled" })],
  ])("reports a request that stays %s although it is touched repeatedly", (_title, lively) => {
    const turning = { ...lively, untouchedMs: 1_000, pendingMs: 16 * 60_000 };
    expect(found(cloud([cell()], [request(), turning]))).toEqual([
      `5: a request is touched again and again but does not end (server ${lively.serverUuid})`,
    ]);
    expect(found(cloud([cell()], [request(), { ...turning, pendingMs: 14 * 60_000 }]))).toEqual([]);
    expect(
      found(
        cloud(
          [cell({ servers: [server("s2", {})] })],
          [{ ...turning, serverUuid: "s2", state: "dispatched", cell: "c1" }],
        ),
      ),
    ).not.toContain("5: a request is touched again and again but does not end (server s2)");
  });

  describe("of a server that is ACTIVE", () => {
    const NOWHERE = ["5: a server is ACTIVE and runs nowhere (cell c1, server s1)"];
    const idle = new Map([["h1", []]]);
    const of = (change: Partial<CellReading>): string[] => found(cloud([cell({ runningGuests: idle, ...change })]));

    it("reports that no agent runs it, once that has lasted", () => {
      expect(of({})).toEqual(NOWHERE);
      expect(of({ servers: [server("s1", { unchangedMs: 9_000 })] })).toEqual([]);
      expect(of({ runningGuests: new Map([["h2", []]]) })).toEqual([]);
    });

    it.each<[string, Partial<CellReading>]>([
      ["somebody works on", { openTasks: [task()] }],
      ["is at home on a host that is down", { upMs: new Map() }],
      ["is at home on a host that has just come up", { upMs: new Map([["h1", 9_000]]) }],
      ["is at home on a host that was not asked", { runningGuests: new Map() }],
    ])("does not report one that %s", (_title, change) => {
      expect(of(change)).toEqual([]);
    });

    it("does not report a server as idle that runs on another host", () => {
      const runningGuests = new Map([...idle, ["h2", [{ serverUuid: "s1", attemptId: "t/1" }]]]);
      expect(of({ runningGuests })).toEqual([
        "4: a guest runs outside its server's home (cell c1, host h2, server s1)",
      ]);
    });
  });

  it("reports nothing about requests in a cell that could not be read", () => {
    expect(found(cloud([], [request()]))).toEqual([]);
  });
});

describe("moves", () => {
  const providers = [provider("r1", "r1", 2), provider("gpu", "r1", 0), provider("r2", "r2", 2)];
  const move = (change: Partial<AuditedMove> = {}): AuditedMove => ({
    ...{ uuid: "m1", serverUuid: "s1", sourceHost: "h1", destHost: "h2", inFlight: true },
    ...{ sourceAttemptId: "t/0", destAttemptId: "m1/0", isWaitShown: false },
    ...change,
  });
  const onTheWay = {
    providers,
    consumers: [consumer("m1", [item("r1", 2)], "MIGRATION"), consumer("s1", [item("r2", 2)])],
  };
  const open = task({ id: "m1", operation: "migrate", stage: "handing-over" });
  const moving = (change: Partial<CellReading>): string[] => found(cloud([cell({ ledger: onTheWay, ...change })]));

  it.each<[string, Partial<CellReading>]>([
    [
      "on its way: it is at home at the source and holds the destination",
      { moves: [move()], servers: [server("s1", { taskState: "resize_migrating" })], openTasks: [open] },
    ],
    [
      "that waits for its confirmation, and keeps what it had",
      {
        moves: [move()],
        servers: [server("s1", { status: "VERIFY_RESIZE", host: "h2", attemptId: "m1/0" })],
        runningGuests: new Map([["h2", [{ serverUuid: "s1", attemptId: "m1/0" }]]]),
      },
    ],
    [
      "that is over but for a source that has not come back",
      {
        moves: [move({ inFlight: false })],
        servers: [server("s1", { host: "h2", attemptId: "m1/0" })],
        runningGuests: new Map([["h2", [{ serverUuid: "s1", attemptId: "m1/0" }]]]),
      },
    ],
  ])("accepts a move %s", (_title, change) => {
    expect(moving(change)).toEqual([]);
  });

  it("reports allocations of ended moves, and allocations of servers away from their home and move", () => {
    const settled = { servers: [server("s1", { host: "h2", attemptId: "m1/0" })], runningGuests: new Map() };
    expect(moving({ ...settled, moves: [] })).toEqual(["2: an allocation belongs to no move (cell c1, consumer m1)"]);
    expect(moving({ runningGuests: new Map(), moves: [move({ destHost: "h1" })] })).toEqual([
      "2: an allocation belongs to no server that lives there (cell c1, consumer s1)",
    ]);
    expect(moving({ ...settled, moves: [move({ sourceHost: "h2" })] })).toEqual([
      "2: an allocation belongs to no move (cell c1, consumer m1)",
    ]);
  });

  it.each(["SHUTOFF", "PAUSED", "SHELVED", "VERIFY_RESIZE", "ERROR"] as const)(
    "accepts a server that is %s at home, whether or not it runs",
    (status) => {
      for (const guests of [[], [{ serverUuid: "s1", attemptId: "t/0" }]]) {
        const facts = cell({ servers: [server("s1", { status })], runningGuests: new Map([["h1", guests]]) });
        expect(found(cloud([facts]))).toEqual([]);
      }
    },
  );

  it("accepts that a SHELVED_OFFLOADED server holds nothing and runs nowhere", () => {
    const servers = [server("s1", { status: "SHELVED_OFFLOADED", host: null, attemptId: null })];
    const nothing = { providers: providers.map((one) => provider(one.name, one.root, 0)), consumers: [] };
    expect(found(cloud([cell({ servers, ledger: nothing, runningGuests: new Map() })]))).toEqual([]);
    expect(found(cloud([cell({ servers })])).map((line) => line.slice(0, 2))).toEqual(["2:", "4:"]);
  });
});

describe("law 5, of an operation that waits", () => {
  const of = (change: Partial<CellReading>, wait: Partial<AuditedMove> = {}): string[] => {
    const move: AuditedMove = {
      ...{
        uuid: "m1",
        serverUuid: "s1",
        sourceHost: "h2",
        sourceAttemptId: "m1/0",
        destHost: "h1",
        destAttemptId: "t/0",
      },
      ...{ inFlight: true, isWaitShown: false },
      ...wait,
    };
    const waits = {
      moves: [move],
      openTasks: [task({ operation: "live-migrate", stage: "starting" })],
      upMs: new Map(),
    };
    return found(cloud([cell({ ...waits, ...change })]));
  };

  it("reports an operation that does not show what it waits for", () => {
    expect(of({})).toEqual([
      "5: an operation waits for a host that is away and does not say so (cell c1, server s1, task t)",
    ]);
  });

  it("accepts an operation that shows its wait, has just begun, or waits for a host that is up", () => {
    expect(of({}, { isWaitShown: true })).toEqual([]);
    expect(of({ servers: [server("s1", { unchangedMs: 9_000 })] })).toEqual([]);
    expect(of({ upMs: new Map([["h1", 60_000]]) })).toEqual([]);
    expect(of({ openTasks: [task({ operation: "resize", stage: "starting" })] })).toEqual([]);
  });
});
