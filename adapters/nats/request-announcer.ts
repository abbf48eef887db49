import type { Bus } from "../../runtime/bus.ts";
import { TurnQueue } from "../../runtime/turn-queue.ts";
import { messageOfRequest } from "./schedule-message.ts";
import { schedulerRequestsSubject } from "./streams.ts";

/**
 * Maximum number of requests in one message. One scheduler takes them all and answers the message when the last of them has ended, so a
 * message must have a small share of the work only.
 */
const MESSAGE_REQUESTS_MAX = 8;

interface Announcement {
  readonly serverUuid: string;
  readonly spec: Uint8Array | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Tells the schedulers of accepted requests. Requests of one turn of the event loop, such as those that were committed together, share
 * messages: a message costs the bus, the api and the scheduler far more than one more id in it.
 */
export class RequestAnnouncer {
  readonly #bus: Pick<Bus, "publish">;
  readonly #turn: TurnQueue<Announcement>;

  constructor(bus: Pick<Bus, "publish">) {
    this.#bus = bus;
    this.#turn = new TurnQueue((announcements) => {
      for (let start = 0; start < announcements.length; start += MESSAGE_REQUESTS_MAX)
        this.#publish(announcements.slice(start, start + MESSAGE_REQUESTS_MAX));
    });
  }

  /**
   * Publishes the UUID of a request that was accepted just now, and its encoded `spec` if that saves a scheduler the reading of its row. A
   * request with headers gets a message of its own. Rejects as `Bus.publish` does.
   */
  announce(serverUuid: string, headers: Readonly<Record<string, string>>, spec?: Uint8Array): Promise<void> {
    if (Object.keys(headers).length > 0) {
      const data = messageOfRequest(serverUuid, [], spec);
      return this.#bus.publish(schedulerRequestsSubject, data, { id: serverUuid, headers });
    }
    return new Promise((resolve, reject) => this.#turn.add({ serverUuid, spec, resolve, reject }));
  }

  /** Each request is announced once, so the UUID of the first request is the id of this message alone. */
  #publish(announcements: readonly Announcement[]): void {
    const [id = "", ...more] = announcements.map(({ serverUuid }) => serverUuid);
    const data = messageOfRequest(id, more, announcements[0]?.spec);
    this.#bus.publish(schedulerRequestsSubject, data, { id }).then(
      () => {
        for (const { resolve } of announcements) resolve();
      },
      (error: unknown) => {
        for (const { reject } of announcements) reject(error);
      },
    );
  }
}
