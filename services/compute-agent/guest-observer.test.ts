import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeEach, describe, expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { Driver, FoundPower } from "./driver.ts";
import { AgentEvents } from "./events.ts";
import { FakeDriver } from "./fake-driver.ts";
import { GuestChains } from "./guest-chains.ts";
import { GuestObserver, type ObserverSettings } from "./guest-observer.ts";
import { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import { createMemoryJournal } from "./memory-journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };
const BELIEVED_MS = 15_000;

let clock: ManualClock;
let store: GuestStore;
let observer: GuestObserver;
/** Makes an observer of the guest. */
let observing: (settings?: ObserverSettings) => GuestObserver;
/** Answers the looks at the guest, one after the other. */
let looks: ((power: FoundPower) => void)[];
let stopped: GuestName[];

beforeEach(async () => {
  clock = new ManualClock();
  looks = [];
  stopped = [];
  const nothing = () => undefined;
  const fake = new FakeDriver({
    ...{ clock, seed: 1, scripts: new Map(), byMetadata: false },
    ...{ crash: nothing, loseConnections: nothing },
  });
  const powersOf = () => new Promise<FoundPower[]>((resolve) => looks.push((power) => resolve([power])));
  const driver = overriding<Driver>(fake, { powersOf });
  const events = new AgentEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    tracing: noTracing,
    fail: (error) => {
      throw error;
    },
    guestCount: () => 0,
  });
  store = await GuestStore.open(createMemoryJournal({ records: [] }), clock);
  await store.record({ kind: "guest", ...NAME, state: "running", atMs: 1, revision: 1 });
  observing = (settings) =>
    new GuestObserver({ store, chains: new GuestChains(), driver, clock, events, ...(settings && { settings }) });
  observer = observing();
  observer.watch((guest) => stopped.push(guest));
});

const state = () => store.guest(NAME.host, NAME.attemptId)?.state;

async function see(power: FoundPower): Promise<void> {
  const done = observer.changed(NAME);
  looks.shift()?.(power);
  await done;
}

/** Answers the look that begins when a doubt ends. */
async function believe(power: FoundPower): Promise<void> {
  await eventually("a look", () => looks.length > 0);
  looks.shift()?.(power);
}

test("a second stop is doubted for the whole time when the guest was seen running in between", async () => {
  await see("shut-down");
  clock.advance(BELIEVED_MS - 1_000);
  await see("running");
  await see("shut-down");
  clock.advance(BELIEVED_MS - 1);
  expect([looks.length, state()]).toEqual([0, "running"]);
  clock.advance(1);
  await believe("shut-down");
  await eventually("the stop", () => stopped.length === 1);
  expect(state()).toBe("stopped");
});

test("a look that began before a stop was seen may show an earlier state, and does not end the doubt", async () => {
  const early = observer.changed(NAME);
  const late = observer.changed(NAME);
  const [answerEarly, answerLate] = looks.splice(0);
  answerLate?.("shut-down");
  await late;
  answerEarly?.("running");
  await early;
  clock.advance(BELIEVED_MS);
  await believe("shut-down");
  await eventually("the stop", () => stopped.length === 1);
});

test("a look at which the driver cannot tell the guest's state changes nothing, and does not end the doubt", async () => {
  await see("shut-down");
  await see("missing");
  await see("unknown");
  await see("missing");
  clock.advance(BELIEVED_MS);
  await believe("unknown");
  await eventually("the end of the doubt", () => clock.pending === 0);
  expect([state(), stopped]).toEqual(["running", []]);
});

test("a changed guest is looked at again while the driver cannot tell its state, as when a QEMU process is about to end", async () => {
  await see("unknown");
  clock.advance(1_000);
  await believe("shut-down");
  await eventually("the doubt", () => clock.pending === 1);
  clock.advance(BELIEVED_MS);
  await believe("shut-down");
  await eventually("the stop", () => stopped.length === 1);
});

test("a changed guest is looked at again a limited number of times, and no more after the close", async () => {
  await see("unknown");
  for (let look = 0; look < 30; look++) {
    clock.advance(1_000);
    await believe("unknown");
    await eventually("the end of the look", () => clock.pending === (look < 29 ? 1 : 0));
  }
  await see("unknown");
  expect(clock.pending).toBe(1);
  observer.close();
  expect(clock.pending).toBe(0);
});

describe("a guest that is found stopped", () => {
  /** The guest's record after a look at which its driver says this of it, at the agent's start or later. */
  async function recorded(before: "running" | "paused", power: FoundPower, isStart: boolean, resumesGuests: boolean) {
    await store.record({ kind: "guest", ...NAME, state: before, atMs: 1, revision: 1 });
    const one = observing({ resumesGuests });
    const guests = store.guestsOf(NAME.host);
    const done = isStart ? one.correctAtStart(guests) : one.correct(guests);
    looks.shift()?.(power);
    await done;
    one.close();
    return store.guest(NAME.host, NAME.attemptId);
  }

  test("is told with its cause, too, to an order that has failed, which leaves the record to the next look", async () => {
    await store.record({ kind: "guest", ...NAME, state: "paused", atMs: 1, revision: 1 });
    const [guest] = store.guestsOf(NAME.host);
    const found = guest && observer.stateOf(guest);
    looks.shift()?.("stopped-with-host");
    expect(await found).toEqual({ state: "stopped", cause: "halted-with-host" });
  });

  test.each([
    ["paused", "stopped-with-host", true, true, "halted-with-host"],
    ["paused", "stopped-with-host", false, true, "halted-with-host"],
    ["paused", "stopped-with-host", true, false, "host-restarted"],
    ["running", "stopped-with-host", true, true, undefined],
    ["running", "stopped-with-host", false, false, "host-restarted"],
    ["running", "stopped", true, false, "host-restarted"],
    // Its driver does not say that its memory is lost: another host may have it.
    ["paused", "stopped", true, true, undefined],
    ["paused", "stopped", false, true, undefined],
  ] as const)(
    "after it was %s, as %s (at the agent's start: %s, resumed: %s), has the cause %s",
    async (before, power, isStart, resumesGuests, cause) => {
      const found = await recorded(before, power, isStart, resumesGuests);
      expect([found?.state, found !== undefined && "cause" in found ? found.cause : undefined]).toEqual([
        "stopped",
        cause,
      ]);
    },
  );
});

test.each([
  ["stopped", "stopped"],
  ["shut-down", "stopped"],
  ["crashed", "stopped"],
  ["running", "running"],
  ["paused", "paused"],
  ["unknown", "running"],
  ["missing", "prepared"],
] as const)(
  "a guest whose first start was broken off, and that is found %s, is %s at once, and has not stopped by itself",
  async (power, then) => {
    await store.record({ kind: "guest", ...NAME, state: "prepared", atMs: 1, revision: 1 });
    const one = observing({ resumesGuests: false });
    const done = one.correctAtStart(store.all(), [NAME]);
    looks.shift()?.(power);
    await done;
    expect(store.guest(NAME.host, NAME.attemptId)).toMatchObject({ state: then });
    expect(store.guest(NAME.host, NAME.attemptId)).not.toHaveProperty("cause");
    expect(clock.pending).toBe(0);
  },
);

test.each([true, false])(
  "a guest whose first start was broken off with its host is resumed only if guests are (%s)",
  async (resumesGuests) => {
    await store.record({ kind: "guest", ...NAME, state: "prepared", atMs: 1, revision: 1 });
    const done = observing({ resumesGuests }).correctAtStart(store.all(), [NAME]);
    looks.shift()?.("stopped-with-host");
    await done;
    const guest = store.guest(NAME.host, NAME.attemptId);
    expect([guest?.state, guest !== undefined && "cause" in guest ? guest.cause : null]).toEqual([
      "stopped",
      resumesGuests ? null : "host-restarted",
    ]);
  },
);
