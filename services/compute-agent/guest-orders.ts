import type { ConductorStream } from "../../core/agent/link.ts";
import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { TransferProgress } from "../../core/agent/transfer-progress.ts";
import { filesOf } from "../../core/tasks/server-volumes.ts";
import type { HandOff, PortDevices, Power, Start } from "../../proto/gen/berth/agent.ts";
import type { GuestInterface, ServerVolume, VolumeFile } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { AttemptReporter } from "./attempt-reporter.ts";
import { callDriver } from "./call-driver.ts";
import { type Driver, LacksVolumeError, NO_VOLUME_SNAPSHOTS } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import { CalledOffError, type GuestChains } from "./guest-chains.ts";
import { LOOK_TIMEOUT_MS, NO_GUEST, UNKNOWN_GUEST, whyNotHandedOver } from "./guest-missing.ts";
import type { GuestObserver } from "./guest-observer.ts";
import {
  answering,
  findingsOf,
  type GuestOrder,
  type OrderFindings,
  orderOfHandOff,
  orderOfStart,
} from "./guest-order.ts";
import { BURIED, type GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import { type GuestName, type GuestState, JournalError } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import { portDevicesOf } from "./port-devices-of.ts";
import { readPowerOrder } from "./read-power-order.ts";
import { volumesAfterOrder } from "./volumes-after-order.ts";

/** A driver that needs longer than this to start or stop a guest has failed. */
const POWER_TIMEOUT_MS = 60_000;
/** Saving or loading the memory of a large guest takes minutes on a slow disk. A start loads the memory of a suspended guest, too. */
const MEMORY_TIMEOUT_MS = 15 * 60_000;
/** Large disks on slow storage take long. A snapshot that takes longer than this has failed. */
const SNAPSHOT_TIMEOUT_MS = 4 * 3_600_000;
/** The host may have to copy and check the rescue image first. */
const RESCUE_TIMEOUT_MS = 15 * 60_000;
/** Copying a large volume takes hours. */
const REPLACE_TIMEOUT_MS = 24 * 3_600_000;
/** The host may have to fill a new volume from an image. */
const VOLUME_TIMEOUT_MS = 15 * 60_000;
const INTERFACES_TIMEOUT_MS = 15_000;
const PROGRESS_EVERY_MS = 1_000;

export interface OrderDeps {
  readonly store: GuestStore;
  readonly chains: GuestChains;
  readonly observer: Pick<GuestObserver, "stateOf">;
  readonly driver: Driver;
  readonly reporter: AttemptReporter;
  readonly clock: Clock;
  readonly events: AgentEvents;
}

type ExistingGuest = Exclude<GuestEntry, { readonly state: "failed" }>;

/** An order that waits or is being carried out. */
interface OpenOrder {
  readonly order: GuestOrder;
  readonly asked: Set<ConductorStream>;
}

const LATER_GIVEN = "a later order was given";
const NOT_WHOLE = "the guest is not whole or cannot be looked at, so it may have the volume";

/**
 * Carries out orders that change whether a guest runs, through the guest's chain. An obeyed order is never repeated, and an order that is
 * older than an earlier one is refused. A newer order cancels an older one, and begins when the driver has ended that call. An order is
 * answered only when the driver has ended, by the guest's state at that time. A step of an operation gives one order, so two orders with
 * one revision are its plain form and its forced form, and the forced form is the later one.
 */
export class GuestOrders {
  readonly #deps: OrderDeps;
  /** The latest order of each guest, until it is answered. */
  readonly #open = new Map<string, OpenOrder>();

  constructor(deps: OrderDeps) {
    this.#deps = deps;
  }

  /** Starts a guest that was prepared or that stopped with its host. A guest that already runs is not an error. */
  start(message: Start, from: ConductorStream): void {
    this.#take(orderOfStart(message), from);
  }

  /** Changes a guest's power state or its volumes, boots it from a rescue image, or copies its disk into an image. */
  power(message: Power, from: ConductorStream): void {
    const order = readPowerOrder(message, this.#deps.driver.capabilities);
    if (typeof order === "string") answering(message)(from, order);
    else this.#take(order, from);
  }

  handOff(message: HandOff, from: ConductorStream): void {
    this.#take(orderOfHandOff(message), from);
  }

  /** Forgets the guest's revisions, because the guest is gone. */
  forget(name: GuestName): void {
    this.#deps.store.forgetHeard(name);
  }

  #take(order: GuestOrder, from: ConductorStream): void {
    const { name } = order;
    const key = keyOf(name);
    const open = this.#open.get(key);
    const known = this.#known(order, open?.order);
    if (known === "asked") open?.asked.add(from);
    else if (known !== null) order.answer(from, known, this.#foundAfter(order, known));
    if (known !== null) return;
    const taken: OpenOrder = { order, asked: new Set([from]) };
    this.#open.set(key, taken);
    this.#deps.store.noteHeard(name, order.revision);
    if (order.work.kind === "start") this.#deps.reporter.detach(name.attemptId);
    const done = this.#deps.chains.enter(name, (signal) => this.#carryOut(order, signal), { callOff: LATER_GIVEN });
    const end = (failed: string, found: OrderFindings = {}) => {
      if (this.#open.get(key) === taken) this.#open.delete(key);
      const findings = { ...this.#foundAfter(order, failed), ...found };
      for (const stream of taken.asked) order.answer(stream, failed, findings);
    };
    done.then(
      () => end(""),
      (error: unknown) => {
        // The agent cannot continue without its journal, so it sends no answer.
        if (error instanceof JournalError) return this.#deps.events.journalFailed(error);
        if (!(error instanceof CalledOffError)) this.#deps.events.orderFailed(name, messageOf(error));
        end(messageOf(error), findingsOf(error));
      },
    );
  }

  /**
   * The answer if it is already known, or `asked` while the order is being carried out. Null when the order must be carried out, also after
   * a failure.
   */
  #known(order: GuestOrder, open: GuestOrder | undefined): string | null {
    const { name, revision } = order;
    const guest = this.#existing(name);
    const isFromUnknown = guest === null && order.work.kind === "detach";
    // A guest that was destroyed has no volume, so a detachment from it is done, and not refused for ever.
    if (!isFromUnknown && this.#deps.store.isBuried(name)) return BURIED;
    if (open?.id === order.id) return "asked";
    // A guest that the journal does not know may still be on the host, with its volumes.
    const isSought = order.work.kind === "hand-off" && !this.#deps.store.guest(name.host, name.attemptId);
    if (guest === null && !isFromUnknown && !isSought) return NO_GUEST;
    if (guest === null) return revision < this.#deps.store.heardBy(name) ? LATER_GIVEN : null;
    const latest = Math.max(guest.revision ?? 0, this.#deps.store.heardBy(name));
    if (revision !== latest) return revision < latest ? LATER_GIVEN : null;
    if (open?.revision === revision) return isForced(order) && open.work.kind === "hand-off" ? null : LATER_GIVEN;
    if (guest.revision !== revision || guest.orderId === undefined) return null;
    if (guest.orderId === begunId(order)) return HALF_SENT;
    if (guest.orderId === order.id) return order.goal === null || guest.state === order.goal ? "" : null;
    return isForced(order) && guest.state === "stopped" ? "" : LATER_GIVEN;
  }

  /** A guest of which no record names volumes has none: every record of a guest that got one names it. */
  #foundAfter(order: GuestOrder, failed: string): OrderFindings {
    const guest = this.#existing(order.name);
    const isStopped = failed === "" && order.work.kind === "power" && order.goal === "stopped";
    return {
      devices: this.#devicesAfter(order, failed),
      ...(isStopped && guest && { volumes: { volumeIds: (guest.volumes ?? []).map(({ volumeId }) => volumeId) } }),
    };
  }

  /** The functions that connect a guest's direct ports, for the answer to an order by which the guest runs. */
  #devicesAfter({ name, work, goal }: GuestOrder, failed: string): PortDevices | undefined {
    const isStarted = failed === "" && work.kind === "power" && goal === "running";
    return isStarted ? portDevicesOf(name, (guest) => this.#deps.driver.pinningOf(guest)) : undefined;
  }

  async #carryOut(order: GuestOrder, signal: AbortSignal): Promise<void> {
    const guest = this.#existing(order.name);
    if (guest === null)
      return order.work.kind === "detach" ? this.#detachFromUnknown(order, signal) : this.#refuseUnknown(order);
    // This Start is a repetition, or arrives after an order with the same effect.
    if (order.work.kind === "start" && guest.state === "running") return;
    // A guest in the middle of a dump must not be interrupted again by an agent that does not know that the order was carried out.
    if (isInterrupt(order)) await this.#record(order, guest.state, { orderId: begunId(order) });
    try {
      await this.#drive(order, guest, signal);
    } catch (error) {
      const found = await this.#foundAfterFailure(order, guest);
      const isDone = order.work.kind === "power" && showsSuccess(order.work.verb) && found === order.goal;
      if (!isDone || error instanceof CalledOffError || (await this.#mayStandStill(order))) throw error;
    }
    const by = order.work.kind === "start" ? {} : { orderId: order.id };
    await this.#record(order, order.goal ?? guest.state, { ...by, ...volumesAfterOrder(order, guest) });
  }

  /** A guest that the journal does not know may be on the host. One that was destroyed by order, also while this order waited or its host looked, is not lost. */
  async #refuseUnknown({ name, work }: GuestOrder): Promise<never> {
    const isSought = work.kind === "hand-off";
    if (isSought) this.forget(name);
    const why = isSought ? await whyNotHandedOver(new Error(UNKNOWN_GUEST), name, this.#deps) : new Error(NO_GUEST);
    throw this.#deps.store.isBuried(name) ? new Error(BURIED) : why;
  }

  /** A guest that is not on the host has no volume. One that is there without the journal's knowledge is asked, and is not recorded. */
  async #detachFromUnknown({ name, work }: GuestOrder, signal: AbortSignal): Promise<void> {
    const { driver, store } = this.#deps;
    if (work.kind !== "detach") throw new Error(NO_GUEST);
    const entry = store.guest(name.host, name.attemptId);
    if (entry?.state === "building") throw new Error(NOT_WHOLE);
    const [found = "unknown"] = await driver.powersOf([name]);
    if (found === "missing") return this.forget(name);
    if (found === "unknown" || entry !== undefined) throw new Error(NOT_WHOLE);
    const detach = (raised: AbortSignal) => driver.detachVolume(name, work.volume.volumeId, raised);
    await this.#call("detaching a volume", POWER_TIMEOUT_MS, signal, name, detach);
  }

  async #drive(order: GuestOrder, guest: ExistingGuest, signal: AbortSignal): Promise<void> {
    const { driver } = this.#deps;
    const { name, work } = order;
    if (order.files.length > 0) await this.#useFiles(order, signal);
    if (work.kind === "hand-off") {
      await this.#checkFiles(order, guest, work.files, signal);
      const tell = this.#tellProgress(order);
      const handOff = (raised: AbortSignal) => driver.handOff(work.order, raised, tell);
      return this.#call("handing over", work.timeoutMs, signal, name, handOff).catch(async (error: unknown) => {
        throw await whyNotHandedOver(error, name, this.#deps);
      });
    }
    if (work.kind === "snapshot") {
      const snapshot = (raised: AbortSignal) => driver.snapshot(name, work.imageId, raised);
      return this.#call("the driver's snapshot", SNAPSHOT_TIMEOUT_MS, signal, name, snapshot);
    }
    if (work.kind === "rescue") {
      const rescue = (raised: AbortSignal) => driver.rescue(name, work.image, raised);
      return this.#call("the driver's rescue", RESCUE_TIMEOUT_MS, signal, name, rescue);
    }
    if (work.kind === "attach") {
      const attach = (raised: AbortSignal) => driver.attachVolume(name, work.volume, raised);
      return this.#call("attaching a volume", VOLUME_TIMEOUT_MS, signal, name, attach);
    }
    if (work.kind === "detach") {
      const detach = (raised: AbortSignal) => driver.detachVolume(name, work.volume.volumeId, raised);
      return this.#call("detaching a volume", POWER_TIMEOUT_MS, signal, name, detach);
    }
    if (work.kind === "replace") {
      const replace = (raised: AbortSignal) => driver.changeVolume(name, work.volume, work.step, raised);
      const changing = this.#call("changing a volume", REPLACE_TIMEOUT_MS, signal, name, replace);
      return changing.catch((error: unknown) => {
        if (!work.mayLack || !(error instanceof LacksVolumeError)) throw error;
      });
    }
    if (work.kind === "volume-snapshot") {
      const part = (raised: AbortSignal) =>
        driver.snapshotVolume?.(name, work.volume, work, raised) ?? Promise.reject(new Error(NO_VOLUME_SNAPSHOTS));
      return this.#call("a snapshot of a volume", REPLACE_TIMEOUT_MS, signal, name, part);
    }
    const verb = work.kind === "start" ? "start" : work.verb;
    const interfaces = driver.capabilities.has("interfaces") ? work.interfaces : null;
    // A guest that never ran is started first. To stop it, the driver is called all the same, because an interrupted start may have
    // succeeded. One that waits for another guest, and is to be paused, has received the memory of a paused one, and does not run.
    const isHandedOverPaused = verb === "pause" && guest.listensAt !== undefined;
    const isFirstStart = guest.state === "prepared" && verb !== "stop" && order.goal !== null && !isHandedOverPaused;
    // A hard reboot gives the guest its interfaces itself, while the guest does not run.
    if (interfaces !== null && (isFirstStart || verb !== "hard-reboot")) await this.#align(name, interfaces, signal);
    if (isFirstStart) {
      const start = (raised: AbortSignal) => driver.start(name, raised);
      await this.#call("the driver's start", POWER_TIMEOUT_MS, signal, name, start);
    }
    // The driver is also called when the journal already shows that state, because a failed hand-off may have stopped the guest.
    if (!isFirstStart || verb === "pause" || verb === "suspend") {
      const power = (raised: AbortSignal) => driver.power(name, verb, raised, interfaces);
      const hasMemory = WITH_MEMORY.includes(verb) || (verb === "start" && guest.state === "suspended");
      const timeoutMs = hasMemory ? MEMORY_TIMEOUT_MS : POWER_TIMEOUT_MS;
      await this.#call(`the driver's ${verb}`, timeoutMs, signal, name, power);
    }
  }

  /** A guest that cannot have the files of its server's volumes is not started: it would lack what was written to them, or write to what another one needs. */
  async #useFiles({ name, files, goal }: GuestOrder, signal: AbortSignal): Promise<void> {
    if (goal !== null && runsNow(goal)) await this.#lookAtFiles(name, files, signal);
  }

  async #lookAtFiles(name: GuestName, files: readonly VolumeFile[], signal: AbortSignal): Promise<void> {
    const { driver } = this.#deps;
    const use = (raised: AbortSignal) =>
      driver.useFiles?.(name, files, raised) ?? Promise.reject(new Error(NO_VOLUME_SNAPSHOTS));
    await this.#call("a look at a guest's volumes", POWER_TIMEOUT_MS, signal, name, use);
  }

  /**
   * Rejects if the guest writes to a file of which the cell's database does not know, since the next guest would start without what was written to it: the database has been restored. A
   * database that is ahead of the guest, since the host was forced down meanwhile, names a file that refers to the guest's one.
   */
  async #checkFiles(
    { name }: GuestOrder,
    guest: ExistingGuest,
    known: readonly VolumeFile[] | null,
    signal: AbortSignal,
  ): Promise<void> {
    for (const { volumeId, file } of filesOf({ volumes: guest.volumes ?? [] })) {
      const named = known?.find((one) => one.volumeId === volumeId);
      if (named === undefined || named.file === file) continue;
      if (named.file === "")
        throw new Error(
          `the guest writes to the file ${file} of volume ${volumeId}, of which the cell's database does not know. Nothing was changed: see docs/cinder.md`,
        );
      await this.#lookAtFiles(name, [named], signal);
    }
  }

  /** Gives the guest its server's interfaces before it starts. It starts all the same when that fails, since it may be needed without them. */
  async #align(name: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { driver, events } = this.#deps;
    const set = (raised: AbortSignal) => driver.setInterfaces(name, interfaces, raised);
    try {
      await this.#call("changing a guest's interfaces", INTERFACES_TIMEOUT_MS, signal, name, set);
    } catch (error) {
      signal.throwIfAborted();
      events.interfacesFailed(name, messageOf(error));
    }
  }

  /** Tells the conductors that gave the order how far it has come, from time to time. */
  #tellProgress(order: GuestOrder): (progress: TransferProgress) => void {
    const { clock } = this.#deps;
    let toldAtMs = Number.NEGATIVE_INFINITY;
    return ({ memory, disks }) => {
      const open = this.#open.get(keyOf(order.name));
      if (open?.order !== order || clock.monotonic() - toldAtMs < PROGRESS_EVERY_MS) return;
      toldAtMs = clock.monotonic();
      const value = { ...order.name, orderId: order.id, memory, disks };
      for (const stream of open.asked) stream.send({ body: { $case: "progress", value } });
    };
  }

  #call(
    what: string,
    timeoutMs: number,
    signal: AbortSignal,
    name: GuestName,
    call: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock, events } = this.#deps;
    return callDriver(call, { signal, timeoutMs, what, clock, onStuck: () => events.driverStuck(name, what) });
  }

  /**
   * Determines the guest's state after a driver failed or gave up, since it may have changed the guest before. Null when the state is
   * unknown. If the guest stopped by itself, the observer decides when to believe it.
   */
  async #foundAfterFailure(order: GuestOrder, guest: ExistingGuest): Promise<GuestState | null> {
    const found = await this.#deps.observer.stateOf(guest);
    if (found === null) return null;
    if (found.cause === null && found.state !== guest.state) await this.#record(order, found.state, {});
    return found.state;
  }

  /** Whether a guest that is to run may be halted by its live move, although it counts as running. */
  async #mayStandStill({ name, goal }: GuestOrder): Promise<boolean> {
    const { driver, clock } = this.#deps;
    if (driver.standsStill === undefined || !runsNow(goal ?? "")) return false;
    return withDeadline(driver.standsStill(name), LOOK_TIMEOUT_MS, "a look at a guest", clock).catch(() => true);
  }

  async #record(
    order: GuestOrder,
    state: GuestState,
    by: { readonly orderId?: string; readonly volumes?: readonly ServerVolume[] },
  ): Promise<void> {
    const { store, reporter, clock } = this.#deps;
    const { name } = order;
    const guest = this.#existing(name);
    // A destroy that waits for this turn takes precedence.
    if (store.isBuried(name)) throw new Error(BURIED);
    if (guest === null) throw new Error(NO_GUEST);
    if ((guest.revision ?? 0) > order.revision) throw new CalledOffError(LATER_GIVEN);
    await store.record({ kind: "guest", ...name, state, atMs: clock.now(), revision: order.revision, ...by });
    reporter.detach(name.attemptId);
  }

  #existing(name: GuestName): ExistingGuest | null {
    const entry = this.#deps.store.guest(name.host, name.attemptId);
    return entry === undefined || entry.state === "building" || entry.state === "failed" ? null : entry;
  }
}

/** Verbs by which a guest's memory is saved or loaded. */
const WITH_MEMORY: readonly PowerVerb[] = ["suspend", "resume"];
/** Whether the guest's state tells that a failed verb has succeeded all the same. Before these verbs the guest has the same state as afterwards. */
const showsSuccess = (verb: PowerVerb): boolean => !["reboot", "hard-reboot", "inject-nmi"].includes(verb);

/** Repeated after the agent's end, it would reach the guest twice. */
const isInterrupt = ({ work }: GuestOrder): boolean => work.kind === "power" && work.verb === "inject-nmi";
/** Stands in the journal in the place of the order's id until the order has been carried out. */
const begunId = ({ id }: GuestOrder): string => `${id}/begun`;
const HALF_SENT =
  "the agent ended or failed while it sent the interrupt, and does not know whether the guest got it: see the guest's console, and ask again if it did not";

const isForced = ({ work }: GuestOrder): boolean => work.kind === "hand-off" && work.order.force;
const keyOf = (name: GuestName): string => `${name.host} ${name.attemptId}`;
