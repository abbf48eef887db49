import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import type { RescueImage } from "../../proto/gen/berth/shared.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { HandOffOrder } from "../../services/compute-agent/driver.ts";
import { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";

/** A driver that records its calls. A hand-off ends only when it is cancelled or the test lets it continue. */
export class NotingDriver extends FakeDriver {
  readonly calls: string[] = [];
  released = Promise.withResolvers<void>();
  /** A start waits for this promise and ignores its signal. */
  starting: Promise<void> = Promise.resolve();
  /** A change of power waits for this promise and ignores its signal. */
  powering: Promise<void> = Promise.resolve();
  /** When true, the driver reports a failure after it has done what it was asked. */
  losesAnswers = false;

  constructor() {
    const nothing = () => {};
    super({
      clock: systemClock,
      seed: 1,
      scripts: new Map(),
      byMetadata: false,
      crash: nothing,
      loseConnections: nothing,
    });
  }
  snapshots = 0;
  /** A snapshot waits for this promise, or until it is given up. */
  snapshotting: Promise<void> = Promise.resolve();
  override async snapshot(guest: GuestName, imageId: string, signal: AbortSignal): Promise<void> {
    this.snapshots += 1;
    const off = new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(new Error("off"))));
    await Promise.race([this.snapshotting, off]);
    await super.snapshot(guest, imageId, signal);
  }
  rescues = 0;
  rescuing: () => Promise<void> = async () => {};
  override async rescue(guest: GuestName, image: RescueImage, signal: AbortSignal): Promise<void> {
    this.rescues += 1;
    await this.rescuing();
    await super.rescue(guest, image, signal);
  }
  override async start(guest: GuestName, signal: AbortSignal): Promise<void> {
    this.calls.push("first start");
    await this.starting;
    await super.start(guest, signal);
  }
  override async power(guest: GuestName, verb: PowerVerb, signal: AbortSignal): Promise<void> {
    this.calls.push(verb);
    signal.addEventListener("abort", () => this.calls.push(`give up ${verb}`));
    await this.powering;
    await super.power(guest, verb, signal);
    if (this.losesAnswers) throw new Error("the connection was lost");
  }
  override async handOff(order: HandOffOrder, signal: AbortSignal): Promise<void> {
    this.calls.push(`hand off to ${order.toHost}`);
    const off = new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("called off"))));
    await Promise.race([this.released.promise, off]);
  }
}
