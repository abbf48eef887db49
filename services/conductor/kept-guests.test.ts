import { expect, test } from "vitest";
import type { GuestLook } from "../../core/tasks/refused-order.ts";
import { type ConductorMessage, OrderReport } from "../../proto/gen/berth/agent.ts";
import { hostName } from "../../test/contract/cell-fixtures.ts";
import { handedOver, moveAt, settled } from "../../test/rigs/move-at-stage.ts";

/** What an aborted operation says from the moment before its source is told to go on. */
const RECALLED = "Aborted on request, and the source was told to go on";
/** What a move at rest says from the moment when its source has said that it has no guest, while its destination is silent. */
const EMPTIED = "The source has no guest to hand over";
const ABSENT: GuestLook = { kind: "absent" };
const SILENT: GuestLook = { kind: "silent" };
const PREPARED: GuestLook = { kind: "found", state: "prepared", revision: 1 };
const QUIET = { startInDoubt() {}, operationWaits() {}, attemptFailed() {}, operationEnded() {} };

/** A live move at the start of its destination, which refuses it for a reason, as Cinder may. `there` says what the source's guest is. */
function refusedStart(why: { unmet: string | null; failed: string; there: GuestLook; seen?: string }) {
  const orders: string[] = [];
  const releases: string[] = [];
  const move = moveAt(
    "live-migrate",
    "starting",
    { isBeside: false },
    {
      guests: {
        clear: async () => {},
        look: async ({ host }: { readonly host: string }) => (host === hostName(0) ? why.there : PREPARED),
      },
      needs: {
        meet: () => (why.unmet === null ? null : Promise.resolve({ kind: "failed", reason: why.unmet, final: true })),
      },
      releaser: {
        tryReleaseSeen: async (_: unknown, host: string) => {
          releases.push(host);
          return why.seen ?? "unseen";
        },
      },
      events: QUIET,
      streamOf: () => ({
        send: ({ body }: ConductorMessage) => void (body?.$case === "power" && orders.push(body.value.orderId)),
      }),
    },
  );
  const tryTimes = async (times: number) => {
    for (let tries = 1; tries <= times; tries += 1) {
      await settled();
      const orderId = orders.at(-1) ?? "";
      if (why.unmet === null)
        move.run.ordered(OrderReport.fromPartial({ host: hostName(1), orderId, failed: why.failed }));
      await settled();
      move.clock.advance(10_000);
    }
    await settled();
  };
  return { ...move, orders, releases, tryTimes, faults: () => move.steps.map(({ server }) => server.fault ?? "") };
}

test("a live move whose source has no guest is kept and asked again while Cinder refuses, and starts when Cinder does no longer", async () => {
  const why = { unmet: "no volume" as string | null, failed: "", there: ABSENT };
  const { run, done, steps, orders, tryTimes } = refusedStart(why);
  await tryTimes(20);
  expect(done).toEqual(["commit starting"]);
  expect(steps[0]).toMatchObject({ outcome: null, change: null, server: { status: "ERROR" } });
  expect(steps[0]?.server.fault).toMatch(
    /^Waiting: host-1 .* cannot: no volume\. host-0 no longer has the guest of this server, so the guest on host-1 is kept/,
  );
  why.unmet = null;
  await settled();
  await tryTimes(1);
  run.ordered(OrderReport.fromPartial({ host: hostName(1), orderId: orders.at(-1) ?? "", failed: "" }));
  await settled();
  expect(done[1]).toBe("commit cleaning");
});

test("the note of a kept destination changes with its cause, and not with the numbers in a host's reason", async () => {
  const why = { unmet: null, failed: "QEMU 1 has ended", there: SILENT as GuestLook };
  const { faults, tryTimes } = refusedStart(why);
  await tryTimes(8);
  why.failed = "QEMU 2 has ended";
  await tryTimes(20);
  expect(faults()).toEqual([expect.stringMatching(/QEMU 1 has ended\. host-0 is silent/)]);
  why.there = ABSENT;
  await tryTimes(8);
  why.failed = "the disk is full";
  await tryTimes(8);
  expect(faults().slice(1)).toEqual([
    expect.stringMatching(/QEMU 2 has ended\. host-0 no longer has the guest/),
    expect.stringMatching(/the disk is full\. host-0 no longer has the guest/),
  ]);
});

test("a host whose reasons change all the time does not have all of them noted", async () => {
  const why = { unmet: null, failed: "", there: SILENT as GuestLook };
  const { faults, tryTimes } = refusedStart(why);
  for (let round = 0; round < 30; round += 1) {
    why.failed = `no luck${"!".repeat(round)}`;
    await tryTimes(7);
  }
  expect(faults()).toHaveLength(20);
});

test.each([
  ["gets the move, if it can", "released", []],
  ["is named to people, if it cannot", "seen", [expect.stringMatching(/host-0 is up, but its agent is not connected/)]],
])("another conductor that hears of the source of a kept destination %s", async (_, seen, faults) => {
  const move = refusedStart({ unmet: null, failed: "no luck", there: SILENT, seen });
  await move.tryTimes(8);
  expect([move.faults(), move.releases[0]]).toEqual([faults, hostName(0)]);
});

/** A move whose source says that it has no guest, while the destination is silent, and what it refuses. */
async function emptied(kind: "migrate" | "live-migrate", settings = {}, others = {}) {
  const cleared: string[] = [];
  const looks = { there: SILENT };
  const guests = {
    clear: async ({ host }: { readonly host: string }) => void cleared.push(host),
    look: async ({ host }: { readonly host: string }) => (host === hostName(0) ? ABSENT : looks.there),
  };
  const ports = {
    guests,
    events: QUIET,
    settings: { attemptTimeoutMs: 60_000, hostGraceMs: 1_000, unseenMs: 5_000, ...settings },
    ...others,
  };
  const move = await handedOver(ports, kind);
  const tryTimes = async (times: number) => {
    for (let tries = 1; tries <= times; tries += 1) {
      const orderId = move.orders.at(-1) ?? "";
      move.run.ordered(OrderReport.fromPartial({ host: hostName(0), orderId, failed: "no guest" }));
      await settled();
      move.clock.advance(10_000);
      await settled();
    }
  };
  return { ...move, cleared, looks, tryTimes };
}

test("a live move whose source has no guest, while the destination is silent, says so, and goes on when the destination is back", async () => {
  const { clock, done, steps, cleared, looks, tryTimes } = await emptied("live-migrate");
  await tryTimes(40);
  expect([done, cleared]).toEqual([["commit handing-over"], []]);
  expect(steps[0]).toMatchObject({ outcome: null, change: null, server: { status: "ERROR" } });
  expect(steps[0]?.server.fault).toMatch(
    /^Waiting: host-0 no longer has the guest of this server, and host-1 is silent.* Bring host-1 back: then .* can be evacuated/,
  );
  looks.there = PREPARED;
  await tryTimes(1);
  clock.advance(10_000);
  await settled();
  expect([done[1], cleared]).toEqual(["commit starting", []]);
});

test("a source without a guest that then falls silent, too, is what people are told of", async () => {
  const { run, clock, steps, streams, tryTimes } = await emptied("live-migrate");
  await tryTimes(10);
  streams.delete(hostName(0));
  run.hostLost();
  clock.advance(1_000);
  await settled();
  expect(steps[1]?.server).toMatchObject({ status: "ERROR", fault: expect.stringMatching(/host-0 was .* is silent/) });
});

test("a short time for orders does not end a cold move whose source has no guest before its destination had time to answer", async () => {
  const { steps, cleared, orders, tryTimes } = await emptied("migrate", { attemptTimeoutMs: 5_000 });
  await tryTimes(9);
  expect([orders.length, steps.map(({ stage }) => stage), cleared]).toEqual([10, ["handing-over"], []]);
  await tryTimes(1);
  expect(steps.slice(1)).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
  expect(cleared).toEqual([]);
});

test.each(["does not answer any longer", "is lost", "is lost and forced down"])(
  "a cold move whose source had no guest and %s keeps the destination",
  async (how) => {
    const releaser = { tryRelease: async () => (how === "is lost and forced down" ? "fenced" : "down") };
    const { run, clock, steps, cleared, streams, tryTimes } = await emptied("migrate", {}, { releaser });
    await tryTimes(1);
    expect(steps).toMatchObject([{ stage: "handing-over", outcome: null, reason: EMPTIED }]);
    if (how !== "does not answer any longer") {
      streams.delete(hostName(0));
      run.hostLost();
    }
    clock.advance(200_000);
    await settled();
    expect(cleared).toEqual([]);
    expect(steps.slice(1)).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
  },
);

test.each([
  ["is lost", "migrate", "down"],
  ["is lost", "resize", "down"],
  ["was forced down", "migrate", "fenced"],
] as const)(
  "the next conductor knows from the database that the source has no guest, and if that %s, a %s keeps its destination",
  async (_, kind, word) => {
    const { done, steps, clock } = moveAt(
      kind,
      "handing-over",
      { isBeside: false },
      { streamOf: () => null, releaser: { tryRelease: async () => word, tryReleaseSeen: async () => "unseen" } },
      EMPTIED,
    );
    for (let rounds = 0; rounds < 5; rounds += 1) {
      clock.advance(2_000);
      await settled();
    }
    expect(done).toEqual(["commit null"]);
    expect(steps).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
    expect(steps[0]?.server.fault).toMatch(/^host-0 no longer has the guest .* on host-1 is kept/);
  },
);

test("the next conductor knows from the database that the source was told to go on, and starts no guest when it is forced down", async () => {
  const { done, steps, clock } = moveAt(
    "live-migrate",
    "recalling",
    { isBeside: false },
    { streamOf: () => null, releaser: { tryRelease: async () => "fenced" } },
    RECALLED,
  );
  clock.advance(1_000);
  await settled();
  expect(done).toEqual(["commit null"]);
  expect(steps).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
  expect(steps[0]?.server.fault).toMatch(/^host-0 was told to go on/);
});

test("a move that an older conductor took back with the words of a source that was told to go on ends as any other when that is forced down", async () => {
  const ports = {
    streamOf: () => null,
    releaser: { tryRelease: async () => "fenced" },
    events: { ...QUIET, leftBehind() {} },
  };
  const { steps, clock } = moveAt("live-migrate", "restoring", { isBeside: false }, ports, RECALLED);
  clock.advance(1_000);
  await settled();
  expect(steps.map(({ server }) => server.fault ?? "")).not.toContainEqual(expect.stringContaining("is older than"));
  expect(steps).not.toEqual([]);
});

/** An aborted live move, with the word of the database whether its source was told to go on. The source has no guest any longer. */
async function recalledFromNothing(reason: string, there: GuestLook) {
  const sent: string[] = [];
  const orders: string[] = [];
  const move = moveAt(
    "live-migrate",
    "recalling",
    { isBeside: false },
    {
      streamOf: (host: string) => ({
        send: ({ body }: ConductorMessage) => {
          sent.push(`${body?.$case} ${host}`);
          if (body?.$case === "power") orders.push(body.value.orderId);
        },
      }),
      guests: {
        clear: async () => {},
        look: async ({ host }: { host: string }) => (host === hostName(0) ? ABSENT : there),
      },
      events: QUIET,
    },
    reason,
  );
  await settled();
  for (let tries = 1; tries <= 9 && move.steps.length === 0; tries += 1) {
    move.run.ordered(OrderReport.fromPartial({ host: hostName(0), orderId: orders.at(-1) ?? "", failed: "no guest" }));
    await settled();
    move.clock.advance(10_000);
    await settled();
  }
  return { ...move, sent };
}

test("an aborted move whose source has no guest before it is told to go on starts its destination", async () => {
  const { sent, steps } = await recalledFromNothing("Aborted on request", PREPARED);
  expect(steps.map(({ stage, reason }) => [stage, reason])).toEqual([["starting", "Aborted on request"]]);
  expect(sent).toEqual(["power host-1"]);
});

test.each([
  ["would start", PREPARED],
  ["is silent", SILENT],
])(
  "a source that may have gone on after an abort, and is back without its guest, ends the move with both guests kept, if the destination %s",
  async (_, there) => {
    const { steps } = await recalledFromNothing(RECALLED, there);
    expect(steps).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
    expect(steps[0]?.server.fault).toMatch(
      /^host-0 was told to go on .* no longer has the guest\. If it has gone on, the guest on host-1/,
    );
  },
);

test.each([
  ["the destination refuses to start, twice each time,", null],
  ["Cinder does not let the destination have its volume", { kind: "failed", reason: "no volume", final: true }],
] as const)("a live move whose source is silent when %s keeps the destination and asks it again", async (_, unmet) => {
  const orders: string[] = [];
  const { run, clock, done, steps } = moveAt(
    "live-migrate",
    "starting",
    { isBeside: false },
    {
      guests: {
        look: async ({ host }: { readonly host: string }) =>
          host === hostName(0) ? { kind: "silent" } : { kind: "found", state: "prepared", revision: 1 },
      },
      needs: { meet: () => unmet && Promise.resolve(unmet) },
      events: { startInDoubt() {}, operationWaits() {}, attemptFailed() {}, operationEnded() {} },
      streamOf: () => ({
        send: ({ body }: ConductorMessage) => void (body?.$case === "power" && orders.push(body.value.orderId)),
      }),
    },
  );
  for (let tries = 1; tries <= 20; tries += 1) {
    await settled();
    const refusal = { host: hostName(1), orderId: orders.at(-1) ?? "", failed: "no luck" };
    for (let times = 0; times < 2; times += 1) run.ordered(OrderReport.fromPartial(refusal));
    await settled();
    clock.advance(10_000);
  }
  expect(done).toEqual(["commit starting"]);
  expect(steps[0]?.server).toMatchObject({ status: "ERROR", fault: expect.stringContaining("host-1 is kept") });
  expect(orders).toHaveLength(unmet === null ? 20 : 0);
});

test.each([
  ["was told to go on, and may have, before it was forced down, is in ERROR, and neither guest is touched", true],
  ["was silent since before the abort goes on at its destination when the source is forced down", false],
])("an aborted live move whose source %s", async (_, isThere) => {
  const streams = new Map<string, object>();
  const sent: string[] = [];
  const connect = (host: string) =>
    streams.set(host, { send: ({ body }: ConductorMessage) => void sent.push(`${body?.$case} ${host}`) });
  connect(hostName(1));
  if (isThere) connect(hostName(0));
  const cleared: string[] = [];
  const { run, clock, steps } = moveAt(
    "live-migrate",
    "recalling",
    { isBeside: false },
    {
      streamOf: (host: string) => streams.get(host) ?? null,
      releaser: { tryRelease: async () => "fenced" },
      guests: {
        clear: async ({ host }: { readonly host: string }) => void cleared.push(host),
        look: async () => PREPARED,
      },
    },
    "Aborted on request",
  );
  await settled();
  // The database knows that the source is told to go on before the source does.
  expect([sent, steps.map(({ stage, reason }) => `${stage}: ${reason}`)]).toEqual(
    isThere ? [["power host-0"], [`recalling: ${RECALLED}`]] : [[], []],
  );
  streams.delete(hostName(0));
  run.hostLost();
  clock.advance(1_000);
  await settled();
  expect(cleared).toEqual([]);
  if (!isThere) return expect([steps[0]?.stage, sent]).toEqual(["starting", ["power host-1"]]);
  expect(sent).toEqual(["power host-0"]);
  expect(steps.slice(1)).toMatchObject([{ outcome: "error", change: null, server: { status: "ERROR" } }]);
  expect(steps[1]?.server.fault).toMatch(
    /^host-0 was told to go on .* the guest on host-1 is older .* on host-0 or on host-1/,
  );
});
