import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { runTool } from "../../../adapters/qemu/run-tool.ts";
import { RESCUE_DISK } from "../../../adapters/qemu/virtual-machine.ts";
import type { PowerVerb } from "../../../core/agent/power-verbs.ts";
import { RescueImage } from "../../../proto/gen/berth/shared.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { MortalHost, makeMortal } from "../../../test/rigs/mortal-host.ts";
import { otherNanoImage, ticksSinceBoot, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";
import type { FoundPower, KeptState } from "../driver.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 60, withinMs: 60_000, isLasting: true };
const RESCUE_IMAGE = "00000000-0000-4000-8000-0000726573ff";
const COPY = "00000000-0000-4000-8000-0000636f7079";
/** No order has more steps than this. */
const STEPS_MAX = 40;
/** Guests that try the steps of an order beside each other. They wait for their own ticks most of the time. */
const LANES = 2;
const skipped = whyNoQemu();

interface Order {
  readonly what: string;
  /** The guest's state before the order. */
  readonly state: KeptState;
  /** The states in which the guest may be found after the agent's death. */
  readonly between: readonly FoundPower[];
  /** Whether the order changes files beside the guest's record, so that a death right after a step differs from one right before the next. */
  readonly changesFiles?: boolean;
  /** Brings a running guest into the state before the order. */
  before?(host: MortalHost): Promise<void>;
  order(host: MortalHost, driver: QemuDriver): Promise<void>;
  /** Checks the guest after the order was repeated, and lets it run again. */
  after(host: MortalHost): Promise<void>;
}

const giving = (verb: PowerVerb) => (host: MortalHost, driver: QemuDriver) => driver.power(host.name, verb, NEVER);
const told = (verb: PowerVerb) => (host: MortalHost) => host.driver.power(host.name, verb, NEVER);
const rescue = (host: MortalHost, driver: QemuDriver) =>
  driver.rescue(host.name, RescueImage.fromPartial({ imageRef: RESCUE_IMAGE }), NEVER);
const copy = (host: MortalHost, driver: QemuDriver) => driver.snapshot(host.name, COPY, NEVER);

/** The guest runs, and has neither lost nor repeated anything since its last boot. */
async function goesOn(host: MortalHost): Promise<void> {
  expect(await host.found()).toBe("running");
  await host.ticksAfter(host.guest.ticks.length);
  const ticks = host.ticksSinceBoot;
  expect(ticks).toEqual(ticks.map((_, index) => index + 1));
}

/** The same, and the guest was not booted since then. */
async function goesOnUnbroken(host: MortalHost): Promise<void> {
  await goesOn(host);
  const { ticks } = host.guest;
  expect(ticksSinceBoot(ticks)).toEqual(ticks);
}

async function isStopped(host: MortalHost): Promise<void> {
  expect([await host.found(), host.qemu]).toEqual(["stopped", null]);
  await host.driver.power(host.name, "start", NEVER);
  await goesOn(host);
}

/** The image is whole, and nothing else is left of the copying. */
async function isCopied(host: MortalHost): Promise<void> {
  const image = join(host.dir.images, `${COPY}.qcow2`);
  await runTool("qemu-img", ["check", image]);
  expect(await runTool("qemu-img", ["info", image])).not.toContain("backing file");
  expect(readdirSync(host.dir.images).filter((file) => file.endsWith(".part"))).toEqual([]);
  await runTool("rm", [image]);
}

const ORDERS: readonly Order[] = [
  {
    ...{ what: "pause", state: "running", between: ["running", "paused"], order: giving("pause") },
    async after(host) {
      expect(await host.found()).toBe("paused");
      await told("unpause")(host);
      await goesOnUnbroken(host);
    },
  },
  {
    ...{ what: "unpause", state: "paused", between: ["running", "paused"], order: giving("unpause") },
    ...{ before: told("pause"), after: goesOnUnbroken },
  },
  {
    ...{ what: "suspend", state: "running", between: ["running", "paused", "suspended"], order: giving("suspend") },
    async after(host) {
      expect([await host.found(), host.qemu]).toEqual(["suspended", null]);
      await told("resume")(host);
      await goesOnUnbroken(host);
    },
  },
  {
    ...{ what: "resume", state: "suspended", between: ["suspended", "stopped", "running"], order: giving("resume") },
    before: told("suspend"),
    async after(host) {
      await goesOnUnbroken(host);
      const disk = join(host.guest.dir, "disk0.qcow2");
      expect(await runTool("qemu-img", ["snapshot", "-U", "-l", disk])).not.toContain("berth-suspended");
    },
  },
  {
    ...{ what: "stop", state: "running", between: ["running", "shut-down", "stopped"], order: giving("stop") },
    after: isStopped,
  },
  {
    ...{ what: "start", state: "stopped", between: ["stopped", "running"], order: giving("start"), after: goesOn },
    before: told("stop"),
  },
  {
    ...{ what: "soft reboot", state: "running", between: ["running", "shut-down", "stopped"] },
    ...{ order: giving("reboot"), after: goesOn },
  },
  {
    ...{ what: "hard reboot", state: "running", between: ["running", "crashed", "stopped"] },
    ...{ order: giving("hard-reboot"), after: goesOn },
  },
  {
    ...{
      changesFiles: true,
      what: "rescue",
      state: "running",
      between: ["running", "shut-down", "stopped", "rescued"],
      order: rescue,
    },
    async after(host) {
      expect(await host.found()).toBe("rescued");
      const { length } = host.guest.console.match(/^R[0-9A-F]{4}$/gm) ?? [];
      const printed = () => (host.guest.console.match(/^R[0-9A-F]{4}$/gm)?.length ?? 0) > length;
      await eventually("a line of the rescue image", printed, PATIENT);
      await told("unrescue")(host);
      await goesOn(host);
    },
  },
  {
    ...{
      changesFiles: true,
      what: "unrescue",
      state: "rescued",
      between: ["rescued", "stopped", "running"],
      order: giving("unrescue"),
    },
    before: (host) => rescue(host, host.driver),
    async after(host) {
      await goesOn(host);
      expect(existsSync(join(host.guest.dir, RESCUE_DISK.file))).toBe(false);
    },
  },
  {
    ...{ changesFiles: true, what: "image", state: "running", between: ["running"], order: copy },
    async after(host) {
      await isCopied(host);
      await goesOnUnbroken(host);
    },
  },
  {
    ...{ what: "image while it is stopped", state: "stopped", between: ["stopped"], order: copy },
    before: told("stop"),
    async after(host) {
      await isCopied(host);
      await isStopped(host);
    },
  },
];

describe.skipIf(skipped !== null)(
  `an agent that dies at any step of an order${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    beforeAll(makeMortal);
    afterAll(() => vi.restoreAllMocks());

    /** Tries every `LANES`th step, from this one on. */
    const tryFrom = async (first: number, takesLast: boolean, one: Order) => {
      const host = new MortalHost("h1");
      writeFileSync(join(host.dir.images, `${RESCUE_IMAGE}.raw`), otherNanoImage());
      try {
        await host.boot();
        for (let step = first, isDead = true; isDead; step += LANES) {
          expect(step).toBeLessThan(STEPS_MAX);
          await one.before?.(host);
          isDead = await host.dieAt({ step, takesLast }, one.state, (driver) => one.order(host, driver));
          expect([step, ...one.between]).toContain(await host.found());
          await one.order(host, host.driver);
          await one.after(host);
        }
      } finally {
        await host.remove();
      }
    };

    test.concurrent.each(ORDERS)("leaves a guest whose $what its successor completes", async (one) => {
      const lanes = Array.from({ length: LANES }, (_, first) => first);
      const modes = one.changesFiles ? [false, true] : [false];
      await Promise.all(modes.flatMap((takesLast) => lanes.map((first) => tryFrom(first, takesLast, one))));
    });
  },
);
