import type { Driver } from "../../services/compute-agent/driver.ts";
import type { SimProcess } from "./sim-process.ts";

/** How a hypervisor behaves towards its agent. */
export interface DriverHabits {
  /** Most that a call takes before it changes the guest, and most that its answer takes afterwards. */
  readonly callMsMax: number;
  /** Share of the calls that take much longer. */
  readonly longShare: number;
  readonly longMsMax: number;
  /** Share of the calls that change the guest and are answered with an error. */
  readonly lostShare: number;
  /** Share of the calls that go on to their end although they are told to give up. */
  readonly deafShare: number;
}

const NEVER = new AbortController().signal;

type Calls = Pick<Driver, "start" | "power" | "handOff" | "destroy">;

/**
 * A driver whose calls take random times: some before the guest is changed, some after it. Raising the signal ends a call at once, whether
 * or not the guest is changed by then, unless the call is deaf to it. Of the calls that are under way when the agent's process is killed the hypervisor carries some out,
 * but no hand-over, which takes its agent.
 */
export function slowDriver(
  driver: Calls,
  options: {
    readonly process: SimProcess;
    readonly habits: DriverHabits;
    readonly random: () => number;
    /** Without power nothing is carried out. */
    readonly hasPower: () => boolean;
  },
): Calls {
  const { process, habits, random, hasPower } = options;
  const { clock } = process;
  const pause = (delayMs: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const callOff = () => {
        timer.cancel();
        reject(new Error("the call was given up"));
      };
      if (signal.aborted) return reject(new Error("the call was given up"));
      const timer = clock.setTimer(delayMs, () => {
        signal.removeEventListener("abort", callOff);
        resolve();
      });
      signal.addEventListener("abort", callOff, { once: true });
    });
  const slow = async (carryOut: () => Promise<void>, signal: AbortSignal, outlivesAgent = true): Promise<void> => {
    // Each call draws as many numbers as any other.
    const [first, second, long, lost, kill, deaf] = [random(), random(), random(), random(), random(), random()];
    const heard = deaf < habits.deafShare ? NEVER : signal;
    const mostMs = long < habits.longShare ? habits.longMsMax : habits.callMsMax;
    let isOpen = true;
    process.onKill(() => {
      if (isOpen && outlivesAgent && kill < 0.5 && hasPower()) carryOut().catch(() => {});
    });
    await pause(first * first * mostMs, heard).finally(() => {
      isOpen = false;
    });
    await carryOut();
    await pause(second * second * mostMs, heard);
    if (lost < habits.lostShare) throw new Error("the connection to the hypervisor was lost");
  };
  return {
    start: (guest, signal) => slow(() => driver.start(guest, signal), signal),
    power: (guest, verb, signal) => slow(() => driver.power(guest, verb, signal), signal),
    handOff: (order, signal) => slow(() => driver.handOff(order, signal), signal, false),
    destroy: (guest, signal) => slow(() => driver.destroy(guest, signal), signal),
  };
}
