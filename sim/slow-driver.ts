import type { Driver } from "../services/compute-agent/driver.ts";
import type { SimProcess } from "./sim-process.ts";

/** How a hypervisor behaves towards its agent. */
export interface DriverHabits {
  /** Maximum time before a call changes the guest, and maximum time of its answer afterwards, in milliseconds. */
  readonly callMsMax: number;
  /** Share of the calls that take much longer. */
  readonly longShare: number;
  readonly longMsMax: number;
  /** Share of the calls that change the guest and are answered with an error. */
  readonly lostShare: number;
  /** Share of the guests that cannot start for some time although they lack nothing that another one was to hand over (`RefusedStarts`); none by default. */
  readonly refusedStartShare?: number;
  /** Share of the lists of all guests that fail, some of them by never coming; none by default. */
  readonly unlistedShare?: number;
  /** Share of the calls that run to their end although they are told to stop. */
  readonly deafShare: number;
}

const NEVER = new AbortController().signal;

/** The calls that take a random time. */
export type SlowCalls = Pick<
  Driver,
  | "start"
  | "power"
  | "rescue"
  | "attachVolume"
  | "detachVolume"
  | "changeVolume"
  | "setInterfaces"
  | "addInterfaces"
  | "handOff"
  | "destroy"
> &
  Required<Pick<Driver, "snapshotVolume">>;

/**
 * A driver whose calls take random times, partly before the guest is changed and partly after. Aborting the signal ends a call at once,
 * whether or not the guest has been changed, unless the call ignores the signal. When the agent's process is killed, the hypervisor still
 * carries out some of the calls under way, except transfers to another host, which need their agent.
 */
export function slowDriver(
  driver: SlowCalls,
  options: {
    readonly process: SimProcess;
    readonly habits: DriverHabits;
    readonly random: () => number;
    /** Nothing is carried out without power. */
    readonly hasPower: () => boolean;
  },
): SlowCalls {
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
    // Each call draws the same number of random numbers.
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
    power: (guest, verb, signal, wanted) => slow(() => driver.power(guest, verb, signal, wanted), signal),
    rescue: (guest, image, signal) => slow(() => driver.rescue(guest, image, signal), signal),
    attachVolume: (guest, volume, signal) => slow(() => driver.attachVolume(guest, volume, signal), signal),
    detachVolume: (guest, volumeId, signal) => slow(() => driver.detachVolume(guest, volumeId, signal), signal),
    changeVolume: (guest, volume, step, signal) => slow(() => driver.changeVolume(guest, volume, step, signal), signal),
    snapshotVolume: (guest, volume, order, signal) =>
      slow(() => driver.snapshotVolume(guest, volume, order, signal), signal),
    setInterfaces: (guest, interfaces, signal) => slow(() => driver.setInterfaces(guest, interfaces, signal), signal),
    addInterfaces: (guest, interfaces, signal) => slow(() => driver.addInterfaces(guest, interfaces, signal), signal),
    handOff: (order, signal, onProgress) => slow(() => driver.handOff(order, signal, onProgress), signal, false),
    destroy: (guest, signal) => slow(() => driver.destroy(guest, signal), signal),
  };
}
