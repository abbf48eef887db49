import { expect, test } from "vitest";
import { GUEST_IN_QUARANTINE } from "../../core/stores/cell/quarantine.ts";
import {
  AttemptReport,
  type ConductorMessage,
  FailureKind,
  GuestState,
  OrderReport,
} from "../../proto/gen/berth/agent.ts";
import { hostName, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { handedOver, moveAt, settled } from "../../test/rigs/move-at-stage.ts";

const resizeAt = (stage: string, guests: { readonly isBeside: boolean }, others: object = {}) =>
  moveAt("resize", stage, guests, others);

test("has the guest of a destination judged that could not prepare it, before the server goes back to its source", async () => {
  const { run, done } = resizeAt("preparing", { isBeside: false });
  await settled();
  run.reported(
    AttemptReport.fromPartial({
      ...{ host: hostName(1), serverUuid: serverId(1), attemptId: `${taskId(7)}/0` },
      ...{ state: GuestState.GUEST_STATE_FAILED, failure: FailureKind.FAILURE_KIND_ABORT, reason: "it was destroyed" },
    }),
    0,
  );
  await settled();
  expect(done.slice(0, 3)).toEqual(["build host-1", "judge host-1", "commit restoring"]);
});

test("starts no guest at a stage at which it continues, as long as another one of the server is in quarantine", async () => {
  const guests = { isBeside: true };
  const { clock, done, steps } = resizeAt("restoring", guests);
  await settled();
  expect(done).toEqual(["commit restoring"]);
  expect(steps[0]?.server).toMatchObject({ status: "ERROR", fault: expect.stringContaining(GUEST_IN_QUARANTINE) });
  clock.advance(10_000);
  await settled();
  expect(done).toHaveLength(1);
  guests.isBeside = false;
  clock.advance(10_000);
  await settled();
  expect(done).toEqual(["commit restoring", "power host-0"]);
});

test("a host that is lost and back while the guest's network is awaited is not taken for gone, and gets the order when the network is there", async () => {
  const streams = new Map<string, object>();
  const sent: string[] = [];
  const connect = () =>
    streams.set(hostName(1), { send: ({ body }: ConductorMessage) => void sent.push(`${body?.$case}`) });
  let plug = () => {};
  let waits = 0;
  const { run, clock, done } = resizeAt(
    "starting",
    { isBeside: false },
    {
      releaser: { tryRelease: async () => "down" },
      streamOf: (host: string) => streams.get(host) ?? null,
      needs: {
        meet: async () => ({ kind: "met", connections: new Map(), vifs: new Map() }),
        plugged: () => {
          waits += 1;
          return new Promise((resolve) => {
            plug = () => resolve({ kind: "plugged" });
          });
        },
      },
    },
  );
  connect();
  run.hostConnected();
  await settled();
  streams.clear();
  run.hostLost();
  connect();
  run.hostConnected();
  await settled();
  clock.advance(5_000);
  await settled();
  expect([done, sent, waits]).toEqual([[], [], 1]);
  plug();
  await settled();
  expect([done, sent]).toEqual([[], ["power"]]);
});

test.each([
  ["live-migrate-paused", ["build host-1", "commit restoring"]],
  ["live-migrate", ["build host-1", "commit restoring"]],
  ["rebuild", ["build host-1", "handOff host-0"]],
] as const)(
  "a destination that prepared a guest without waiting for the source's one ends the hand-over of a live move, not of a rebuild (%s)",
  async (kind, course) => {
    const { run, done, steps } = moveAt(kind, "handing-over", { isBeside: false });
    await settled();
    run.reported(
      AttemptReport.fromPartial({
        ...{ host: hostName(1), serverUuid: serverId(1), attemptId: `${taskId(7)}/0` },
        ...{ state: GuestState.GUEST_STATE_PREPARED, listensAt: "qemu://nothing" },
      }),
      0,
    );
    await settled();
    expect(done.slice(0, 2)).toEqual(course);
    if (kind !== "rebuild") expect(steps[0]?.attempts[0]?.reason).toMatch(/^host-1 .* update that host's agent/);
  },
);

test("an operator is told once of a host that refuses to start a guest and does not say whether it runs, and the order is repeated", async () => {
  const told: string[] = [];
  const orders: string[] = [];
  const { run, clock, done } = resizeAt(
    "restoring",
    { isBeside: false },
    {
      events: {
        operationWaits() {},
        startInDoubt: (_server: string, host: string, reason: string) => void told.push(`${host}: ${reason}`),
      },
      guests: { look: async () => ({ kind: "silent" }) },
      streamOf: () => ({
        send: ({ body }: ConductorMessage) => void (body?.$case === "power" && orders.push(body.value.orderId)),
      }),
    },
  );
  for (let tries = 1; tries <= 6; tries += 1) {
    await settled();
    expect(orders).toHaveLength(tries);
    run.ordered(OrderReport.fromPartial({ host: hostName(0), orderId: orders.at(-1) ?? "", failed: "no luck" }));
    await settled();
    clock.advance(60_000);
  }
  expect(told).toEqual(["host-0: no luck"]);
  expect(done).toEqual([]);
});

test("a source that refuses to hand over a live guest and then says nothing of it is asked again, and nothing is cleared when it is gone", async () => {
  const { run, clock, done, orders, cleared, streams } = await handedOver();
  const refuse = async () => {
    run.ordered(OrderReport.fromPartial({ host: hostName(0), orderId: orders.at(-1) ?? "", failed: "lost QEMU" }));
    await settled();
  };
  await refuse();
  expect(orders).toHaveLength(1);
  clock.advance(500);
  await settled();
  expect([orders.length, done]).toEqual([2, []]);
  await refuse();
  streams.delete(hostName(0));
  run.hostLost();
  clock.advance(1_000);
  await settled();
  expect([done, cleared]).toEqual([["commit handing-over"], []]);
});

test.each(["resize", "migrate"] as const)(
  "a %s whose source has lost its guest, while the destination is silent, ends in ERROR before its time is over, and clears nothing",
  async (kind) => {
    const look = async ({ host }: { readonly host: string }) => ({ kind: host === hostName(0) ? "absent" : "silent" });
    const cleared: string[] = [];
    const clear = async ({ host }: { readonly host: string }) => void cleared.push(host);
    const { run, clock, steps, orders } = await handedOver({ guests: { look, clear } }, kind);
    // The source's first answer is written to the database.
    for (let tries = 1; tries <= 10; tries += 1) {
      expect(orders).toHaveLength(tries);
      run.ordered(OrderReport.fromPartial({ host: hostName(0), orderId: orders.at(-1) ?? "", failed: "no guest" }));
      await settled();
      clock.advance(10_000);
      await settled();
    }
    clock.advance(60_000);
    await settled();
    expect(cleared).toEqual([]);
    const ended = { outcome: "error", change: null, server: { status: "ERROR" } };
    expect(steps).toMatchObject([{ stage: "handing-over", outcome: null }, ended]);
    expect(steps[1]?.server.fault).toMatch(
      /^host-0 no longer has the guest .* host-1 is silent\. .* on host-1 is kept/,
    );
  },
);

test("a source that does not answer in time whether it has handed over a live guest is waited for", async () => {
  const { clock, done, steps, orders, cleared } = await handedOver();
  clock.advance(121_000);
  await settled();
  expect([done, cleared, orders.length]).toEqual([["commit handing-over"], [], 2]);
  expect(steps[0]).toMatchObject({ outcome: null, migration: { note: expect.stringContaining("but is silent") } });
});

test.each([
  ["has lost its guest", "absent", ["commit starting"]],
  ["says nothing of its guest", "silent", []],
] as const)(
  "an aborted live move, whose source Cinder forbids to start the guest, does not take that for the source's answer when the source %s",
  async (_, kind, commits) => {
    const forbidden = { kind: "failed", reason: "Cinder names another file", final: true, forbidsStart: true };
    const look = async ({ host }: { readonly host: string }) =>
      host === hostName(0) ? { kind } : { kind: "found", state: "prepared", revision: 1 };
    const { clock, done } = moveAt(
      "live-migrate",
      "recalling",
      { isBeside: false },
      {
        guests: { look, clear: async () => {} },
        needs: {
          meet: (_: unknown, { host }: { readonly host: string }) =>
            host === hostName(0) ? Promise.resolve(forbidden) : null,
        },
        events: { startInDoubt() {}, operationWaits() {}, attemptFailed() {}, operationEnded() {} },
      },
    );
    for (let tries = 1; tries <= 5; tries += 1) {
      await settled();
      clock.advance(10_000);
    }
    await settled();
    expect(done.filter((one) => one.startsWith("commit"))).toEqual(commits);
    expect(done).not.toContain("power host-0");
  },
);
