import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Immediate, Immediates } from "./immediates.ts";

/**
 * Makes the process's own sources of time and randomness follow the simulated world until the returned function is called: timers,
 * immediates, `Date`, `performance.now`, `Math.random` and the UUIDs of `crypto`. The services take a `Clock`; this covers code that does
 * not, such as libraries. While `isOther` returns true, other code of the process runs. It keeps the real sources, since nothing outside a world may change it.
 */
export function takeOverChance(
  clock: Clock,
  immediates: Immediates,
  random: () => number,
  isOther: () => boolean,
): () => void {
  const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate } = globalThis;
  const RealDate = globalThis.Date;
  const globals = {
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    setImmediate,
    clearImmediate,
    Date: RealDate,
  };
  const { now } = performance;
  const { random: realRandom } = Math;
  const { randomUUID, randomUUIDv7 } = crypto;
  class SimulatedDate extends RealDate {
    constructor(...args: [] | [number]) {
      if (args.length === 0) super(SimulatedDate.now());
      // There may be more arguments than the type says, such as a year and a month.
      else super(...args);
    }
    static override now(): number {
      return isOther() ? RealDate.now() : clock.now();
    }
  }
  Object.assign(globalThis, { ...simulatedTimers(globals, clock, immediates, isOther), Date: SimulatedDate });
  performance.now = () => (isOther() ? now.call(performance) : clock.monotonic());
  Math.random = () => (isOther() ? realRandom() : random());
  Object.assign(crypto, {
    randomUUID: () => (isOther() ? randomUUID() : randomUuidOf(random)),
    randomUUIDv7: () => (isOther() ? randomUUIDv7() : randomUuidOf(random)),
  });
  syncBuiltinESMExports();
  return () => {
    Object.assign(globalThis, globals);
    performance.now = now;
    Math.random = realRandom;
    Object.assign(crypto, { randomUUID, randomUUIDv7 });
    syncBuiltinESMExports();
  };
}

/** Timers and immediates of the world, or the real ones for other code. */
function simulatedTimers(
  real: Pick<typeof globalThis, "setTimeout" | "clearTimeout" | "setInterval" | "setImmediate" | "clearImmediate">,
  clock: Clock,
  immediates: Immediates,
  isOther: () => boolean,
) {
  const timers = new WeakMap<object, Timer>();
  const handleOf = (timer: Timer) => {
    const handle = { ref: () => handle, unref: () => handle, hasRef: () => true, refresh: () => handle };
    timers.set(handle, timer);
    return handle;
  };
  const clear = (handle: unknown) => {
    const timer = typeof handle === "object" && handle !== null ? timers.get(handle) : undefined;
    if (timer === undefined) real.clearTimeout(handle as NodeJS.Timeout);
    else timer.cancel();
  };
  const repeat = (run: () => void, everyMs: number) => {
    const handle = handleOf({ cancel: () => {} });
    const again = () => {
      timers.set(handle, clock.setTimer(Math.max(1, everyMs), again));
      run();
    };
    timers.set(handle, clock.setTimer(Math.max(1, everyMs), again));
    return handle;
  };
  return {
    setTimeout: (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
      isOther() ? real.setTimeout(run, delayMs, ...args) : handleOf(clock.setTimer(delayMs, () => run(...args))),
    clearTimeout: clear,
    setInterval: (run: (...args: unknown[]) => void, everyMs = 0, ...args: unknown[]) =>
      isOther() ? real.setInterval(run, everyMs, ...args) : repeat(() => run(...args), everyMs),
    clearInterval: clear,
    setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
      isOther() ? real.setImmediate(run, ...args) : immediates.add(() => run(...args)),
    clearImmediate: (immediate: Immediate | NodeJS.Immediate | undefined) => {
      if (immediate === undefined || !("run" in immediate)) real.clearImmediate(immediate);
      else immediate.run = null;
    },
  };
}

const HEX = Array.from({ length: 65_536 }, (_, word) => word.toString(16).padStart(4, "0"));

/** A UUID of version 4. */
export function randomUuidOf(random: () => number): string {
  const word = () => HEX[Math.floor(random() * 65_536)]!;
  const digits = (first: string) => first + word().slice(1);
  return `${word()}${word()}-${word()}-${digits("4")}-${digits("8")}-${word()}${word()}${word()}`;
}
