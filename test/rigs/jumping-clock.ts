import { readFileSync } from "node:fs";

// A service that is started with NODE_OPTIONS="--import=<this file>" has a wall clock that differs from the machine's by the milliseconds in the file that
// JUMPING_CLOCK_FILE names, and jumps whenever that number changes. Its monotonic clock and its timers stay as they are, as on a machine whose time is set.

const RealDate = globalThis.Date;

function aheadMs(): number {
  try {
    return Number(readFileSync(process.env.JUMPING_CLOCK_FILE ?? "", "utf8")) || 0;
  } catch {
    return 0;
  }
}

globalThis.Date = new Proxy(RealDate, {
  get: (target, key) => (key === "now" ? () => RealDate.now() + aheadMs() : Reflect.get(target, key)),
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [RealDate.now() + aheadMs()] : given, newTarget),
});
