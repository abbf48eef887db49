import { afterEach, describe, expect, test } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import type { MachineDisplay } from "../../../adapters/qemu/virtual-machine.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  type GuestOnDisk,
  guestsOnDisk,
  haltQemu,
  killQemu,
  makeQemuGuestsDir,
  NANO_DEFAULTS,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  quickNanoImage,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { PrepareOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 20, withinMs: 60_000 };
/** At this speed the transfer of the nano guest's memory takes a few seconds. */
const SLOW = 50_000;
/** Moves are called off up to this report of their progress. On a busy machine a transfer may have more of them. */
const MOMENTS_MAX = 60;
const skipped = whyNoQemu();

/** Resolves with why a move failed, or with null. It never rejects, so that a failure may come before the test waits for it. */
const failureOf = (moving: Promise<unknown>): Promise<string | null> =>
  moving.then(
    () => null,
    (error: Error) => error.message,
  );

describe.skipIf(skipped !== null)(`a live move${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  const dirs: QemuGuestsDir[] = [];
  const drivers: QemuDriver[] = [];
  afterEach(async () => {
    for (const driver of drivers.splice(0)) driver.close();
    for (const dir of dirs.splice(0)) await dir.remove();
  });

  const open = (dir: QemuGuestsDir, options: Parameters<typeof qemuDriverIn>[1] = {}) => {
    const driver = qemuDriverIn(dir, options);
    drivers.push(driver);
    return driver;
  };
  const orderOf = (host: string, movedFrom: PrepareOrder["movedFrom"]): PrepareOrder => {
    const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });
    return { host, serverUuid: server.uuid, attemptId: `task/${host}`, server, allocation: undefined, movedFrom };
  };

  /** A running guest, and a guest that waits for it on another host. `begin` begins the move. */
  async function scene({
    sharesDisks,
    isSlow,
    displays: [display, otherDisplay] = [null, null],
    disksAnswerMs,
  }: {
    readonly sharesDisks: boolean;
    readonly isSlow: boolean;
    readonly displays?: readonly [MachineDisplay | null, MachineDisplay | null];
    readonly disksAnswerMs?: number;
  }) {
    const here = makeQemuGuestsDir(quickNanoImage());
    const there = sharesDisks ? here : makeQemuGuestsDir(quickNanoImage());
    dirs.push(...new Set([here, there]));
    const defaults = (kind: MachineDisplay | null) => async () => ({ ...NANO_DEFAULTS, display: kind });
    const slow = isSlow ? { bytesPerSecond: SLOW } : {};
    const driver = open(here, { defaults: defaults(display), disksAnswerMs, ...slow });
    const other = open(there, { defaults: defaults(otherDisplay) });
    const source = orderOf("h1", null);
    const destination = orderOf("h2", { host: "h1", attemptId: source.attemptId, by: "live-migrate" });
    await driver.prepare(source, { signal: NEVER, onStep: () => undefined });
    await driver.start(source, NEVER);
    const guestOf = (dir: QemuGuestsDir, { host }: GuestName): GuestOnDisk | undefined =>
      guestsOnDisk(dir.path, source.serverUuid).find((guest) => guest.host === host);
    const sourceTicks = () => guestOf(here, source)?.ticks ?? [];
    const destinationTicks = () => guestOf(there, destination)?.ticks ?? [];
    await eventually("a tick", () => sourceTicks().length > 0, PATIENT);
    const outcome = await other.prepare(destination, { signal: NEVER, onStep: () => undefined });
    const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
    let transferred = 0;
    let failure: Error | null = null;
    const begin = (signal = NEVER, addressOf = (address: string) => address) => {
      const moving = driver.handOff(
        {
          ...source,
          toHost: "h2",
          toAttemptId: destination.attemptId,
          live: true,
          force: false,
          listensAt: addressOf(listensAt),
          orderId: "o",
        },
        signal,
        ({ memory }) => {
          transferred = memory.processed;
        },
      );
      moving.catch((error: Error) => {
        failure = error;
      });
      return moving;
    };
    /** Resolves when a part of the memory has been transferred. Rejects if the move has failed before. */
    const begun = async () => {
      const isOver = () => failure !== null || transferred > 0;
      await eventually("the memory's transfer", isOver, PATIENT);
      if (failure !== null) throw failure;
    };
    const destinationDir = () => guestOf(there, destination)?.dir ?? "";
    /** Whether the source's record says that the guest is being handed over. */
    const isHandedOver = () => readGuestRecord(guestOf(here, source)?.dir ?? "")?.handedTo != null;
    /** The source continues without a gap: its guest's counter would show each tick that is lost or repeated. */
    const expectSourceRunsOn = async () => {
      const before = sourceTicks().length;
      await eventually("further ticks at the source", () => sourceTicks().length > before + 1, PATIENT);
      const ticks = sourceTicks();
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
      expect(destinationTicks()).toEqual([]);
    };
    return {
      driver,
      other,
      here,
      source,
      destination,
      begin,
      begun,
      destinationDir,
      isHandedOver,
      sourceTicks,
      destinationTicks,
      expectSourceRunsOn,
    };
  }

  test.each([true, false])(
    "that is called off in the middle leaves the guest running (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: true });
      const control = new AbortController();
      const failure = failureOf(it.begin(control.signal));
      await it.begun();
      control.abort(new Error("the move was called off"));
      expect(await failure).toContain("called off");
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      await it.driver.start(it.source, NEVER);
      await it.expectSourceRunsOn();
      // A part of the memory is no guest, and a boot would be a second one.
      await expect(it.other.start(it.destination, NEVER)).rejects.toThrow("the memory of the guest has not arrived");
      expect(await it.other.powersOf([it.destination])).toEqual(["stopped"]);
      await it.expectSourceRunsOn();
    },
  );

  test.each([true, false])(
    "that is called off at any of its moments leaves one guest that runs without a gap (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: false });
      await it.other.destroy(it.destination);
      const from = { host: "h1", attemptId: it.source.attemptId, by: "live-migrate" };
      let isComplete = false;
      let moments = 0;
      for (; !isComplete; moments += 1 + Math.floor(moments / 4)) {
        const isCalledOff = moments < MOMENTS_MAX;
        const destination = { ...orderOf("h2", from), attemptId: `task/${moments}` };
        const outcome = await it.other.prepare(destination, { signal: NEVER, onStep: () => undefined });
        const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
        const order = {
          ...it.source,
          toHost: "h2",
          toAttemptId: destination.attemptId,
          listensAt,
          orderId: `${moments}`,
        };
        const control = new AbortController();
        let told = 0;
        const moving = it.driver.handOff({ ...order, live: true, force: false }, control.signal, () => {
          if (isCalledOff && told === moments) control.abort(new Error("the move was called off"));
          told += 1;
        });
        isComplete = await moving.then(
          () => true,
          (error: unknown) => {
            if (!isCalledOff) throw error;
            return false;
          },
        );
        // The cell keeps the server at its source, and says so by a start.
        await it.driver.start(it.source, NEVER);
        await it.other.destroy(destination);
        expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      }
      expect(moments).toBeGreaterThan(2);
      await it.expectSourceRunsOn();
    },
  );

  test("whose source's agent dies in the middle is called off by the next agent", async () => {
    const it = await scene({ sharesDisks: true, isSlow: true });
    const death = new AbortController();
    const moving = it.begin(death.signal).catch(() => undefined);
    await it.begun();
    // The dead agent no longer does anything, and leaves the transfer as it is.
    death.abort(new Error("the agent has died"));
    await moving;
    it.driver.close();
    const next = open(it.here);
    await next.adopt([{ ...it.source, state: "running" }]);
    expect(await next.powersOf([it.source])).toEqual(["running"]);
    await it.expectSourceRunsOn();
  });

  test.each([
    [null, "vga", "the guest has no display, and host h2 prepared one with a display of the kind vga"],
    ["virtio", "vga", "has a display of the kind virtio, and host h2 prepared one with a display of the kind vga"],
    ["vga", null, "the guest has a display of the kind vga, and host h2 prepared one with no display"],
  ] as const)(
    "from a host with the display %j to one with %j is refused with the reason",
    async (here, there, reason) => {
      const it = await scene({ sharesDisks: false, isSlow: false, displays: [here, there] });
      await expect(it.begin()).rejects.toThrow(reason);
      await it.expectSourceRunsOn();
    },
  );

  test("to an agent that does not tell its guest's display is tried", async () => {
    const it = await scene({ sharesDisks: false, isSlow: false, displays: ["vga", "vga"] });
    await it.begin(NEVER, (address) => address.replace("&display=vga", ""));
    await it.other.start(it.destination, NEVER);
    await eventually("a tick at the destination", () => it.destinationTicks().length > 0, PATIENT);
  });

  test.each([true, false])(
    "whose destination is killed in the middle leaves the guest running (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: true });
      const failure = failureOf(it.begin());
      await it.begun();
      killQemu(it.destinationDir());
      expect(await failure).not.toBeNull();
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      await it.expectSourceRunsOn();
    },
  );

  test.each([true, false])(
    "cannot be joined by a client that does not know the key (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: false });
      const joining = it.begin(NEVER, (listensAt) => listensAt.replace(/key=[0-9a-f]{64}/, `key=${"0".repeat(64)}`));
      await expect(joining).rejects.toThrow(/TLS handshake failed|broke off/);
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      await it.expectSourceRunsOn();
      await it.begin();
      await it.other.start(it.destination, NEVER);
      await eventually("ticks at the destination", () => it.destinationTicks().length > 1, PATIENT);
    },
  );

  test("whose destination is paused before the transfer begins fails, and does not halt the guest", async () => {
    const it = await scene({ sharesDisks: false, isSlow: true, disksAnswerMs: 1_000 });
    haltQemu(it.destinationDir());
    await expect(it.begin()).rejects.toThrow("no answer within 1000 ms");
    expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
    await it.expectSourceRunsOn();
  });

  test("whose destination is paused before the transfer begins can be called off at once", async () => {
    const it = await scene({ sharesDisks: false, isSlow: true, disksAnswerMs: 3_600_000 });
    haltQemu(it.destinationDir());
    const control = new AbortController();
    const failure = failureOf(it.begin(control.signal));
    await eventually("the guest to be handed over", () => it.isHandedOver(), PATIENT);
    control.abort(new Error("the move was called off"));
    expect(await failure).toContain("called off");
    await it.driver.start(it.source, NEVER);
    await it.expectSourceRunsOn();
  });

  test.each([true, false])(
    "whose destination is paused in the middle can be called off (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: true });
      const control = new AbortController();
      const failure = failureOf(it.begin(control.signal));
      await it.begun();
      haltQemu(it.destinationDir());
      control.abort(new Error("the move was called off"));
      expect(await failure).toContain("called off");
      await it.driver.start(it.source, NEVER);
      expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
      await it.expectSourceRunsOn();
    },
  );

  test.each([true, false])(
    "is undone after its end, if the cell's commit is refused (shared disks: %s)",
    async (sharesDisks) => {
      const it = await scene({ sharesDisks, isSlow: false });
      await it.begin();
      await it.driver.start(it.source, NEVER);
      await it.other.destroy(it.destination);
      await it.expectSourceRunsOn();
    },
  );

  test("lets only one of both run: QEMU refuses the disk to the other one", async () => {
    const it = await scene({ sharesDisks: true, isSlow: false });
    await it.begin();
    await it.other.start(it.destination, NEVER);
    await expect(it.driver.start(it.source, NEVER)).rejects.toThrow(/write.* lock/);
    expect(await it.driver.powersOf([it.source])).toEqual(["stopped"]);
    const last = it.sourceTicks().at(-1) ?? 0;
    await eventually("ticks at the destination", () => it.destinationTicks().length > 1, PATIENT);
    expect(it.destinationTicks()[0]).toBe(last + 1);
    expect(it.sourceTicks().at(-1)).toBe(last);
  });

  test("that is undone while the other QEMU still has the shared disk: the guest waits until that QEMU has ended", async () => {
    const it = await scene({ sharesDisks: true, isSlow: false });
    await it.begin();
    await it.other.start(it.destination, NEVER);
    const started = it.driver.start(it.source, NEVER);
    // The record is written right before QEMU is told to go on.
    const settled = eventually("the end of the hand-over in the record", () => !it.isHandedOver(), {
      everyMs: 1,
      withinMs: 60_000,
    });
    await Promise.race([started, settled]);
    killQemu(it.destinationDir());
    await started;
    expect(await it.driver.powersOf([it.source])).toEqual(["running"]);
  });
});
