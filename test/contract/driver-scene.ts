import type { RescueImage, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type {
  AdoptedGuest,
  Driver,
  FoundPower,
  HandOffOrder,
  PrepareOutcome,
} from "../../services/compute-agent/driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";

/** A driver with two hosts that can hand guests over to each other. */
export interface DriverSubject {
  readonly hosts: readonly [string, string];
  /** The driver as the agent's next process finds it, with the guests of the previous process. */
  open(): Promise<Driver>;
  server(index: number): ServerSpec;
  close(): Promise<void>;
}

const NEVER = new AbortController().signal;

/** The guests of one test. */
export class DriverScene {
  readonly #driver: Driver;
  readonly #subject: DriverSubject;

  constructor(driver: Driver, subject: DriverSubject) {
    this.#driver = driver;
    this.#subject = subject;
  }

  guest(host: 0 | 1, server: number, selection = 0): GuestName {
    const { uuid } = this.#subject.server(server);
    return { host: this.#subject.hosts[host], serverUuid: uuid, attemptId: `task-${server}/${selection}` };
  }

  prepare(
    guest: GuestName,
    movedFrom: { readonly guest: GuestName; readonly by: string } | null = null,
    signal: AbortSignal = NEVER,
    driver = this.#driver,
  ) {
    const index = Number(guest.attemptId.match(/\d+/)?.[0]);
    const from = movedFrom === null ? null : { ...movedFrom.guest, by: movedFrom.by };
    const order = { ...guest, server: this.#subject.server(index), allocation: undefined, movedFrom: from };
    return driver.prepare(order, { signal, onStep: () => {} });
  }

  /** The image of the servers, since every subject has it. */
  rescueImage(): RescueImage {
    const { imageRef, imageProperties } = this.#subject.server(0);
    return { imageRef, imageProperties };
  }

  async powerOf(guest: GuestName): Promise<FoundPower | undefined> {
    return (await this.#driver.powersOf([guest]))[0];
  }

  async reopen(guests: readonly AdoptedGuest[]): Promise<Driver> {
    const driver = await this.#subject.open();
    await driver.adopt(guests);
    return driver;
  }

  /** A running guest, and a guest that was prepared for it on the other host. */
  async movable(
    live: boolean,
    by = live ? "live-migrate" : "migrate",
  ): Promise<{
    readonly source: GuestName;
    readonly destination: GuestName;
    readonly order: HandOffOrder;
  }> {
    const source = this.guest(0, 0);
    await this.prepare(source);
    await this.#driver.start(source, NEVER);
    return { source, ...(await this.destinationOf(source, { selection: 1, by, live })) };
  }

  /** Has a guest prepared on the other host for a guest that exists; by the present driver if there is a later one than the scene's. */
  async destinationOf(
    source: GuestName,
    { selection, by, live }: { readonly selection: number; readonly by: string; readonly live: boolean },
    driver = this.#driver,
  ): Promise<{ readonly destination: GuestName; readonly order: HandOffOrder }> {
    const destination = this.guest(1, 0, selection);
    const prepared = await this.prepare(destination, { guest: source, by }, NEVER, driver);
    const to = { toHost: destination.host, toAttemptId: destination.attemptId, listensAt: addressOf(prepared) };
    return { destination, order: { ...source, ...to, live, force: false, orderId: `order/${selection}` } };
  }
}

function addressOf(outcome: PrepareOutcome): string {
  if (outcome.kind === "failed") throw new Error(outcome.reason);
  return outcome.listensAt ?? "";
}

/** Skips a test of a driver that cannot move guests with their memory. */
export function requireLive(driver: Driver, skip: (why: string) => void): void {
  if (!driver.capabilities.has("live-migrate")) skip("the driver cannot move running guests");
}
