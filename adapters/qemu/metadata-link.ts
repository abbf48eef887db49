import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { withDeadline } from "../../runtime/deadline.ts";
import type { MetadataAnswer } from "./metadata-answer.ts";
import { type MetadataRequest, MetadataRequests } from "./metadata-requests.ts";
import { openUnixSocket } from "./open-unix-socket.ts";

/** Times of a link, in milliseconds. */
interface LinkTimes {
  /** A request that has begun must be complete after this time. */
  readonly requestMs: number;
  /** How long a guest that makes too many requests gets no answers. */
  readonly bannedMs: number;
  /** An answer that takes longer is an error of the server, so that the requests after it are answered. */
  readonly answerMs: number;
}
const TIMES: LinkTimes = { requestMs: 3_000, bannedMs: 5_000, answerMs: 10_000 };
/** How many requests a guest may make at once, and how many more each second. A guest's boot needs some dozens. */
const REQUESTS_MAX = 200;
const REQUESTS_PER_SECOND = 20;
/** A first moment for QEMU to notice that the old connection has ended. */
const AGAIN_MS = 100;
/** Answers that QEMU has not taken yet. A guest that keeps asking without reading is cut off for a while. */
const UNREAD_BYTES_MAX = 4 * 1_048_576;

/** Answers the requests of one guest for a path. */
export type AnswerMetadata = (path: string) => Promise<MetadataAnswer>;

/**
 * The connection over which one interface of a guest reaches the metadata service. QEMU passes on what the guest's connections to the metadata address
 * carry, as one stream without their beginnings and ends, and gives each answer to the guest's newest connection. So a request that stays incomplete,
 * or is no request, would spoil the next one. Then the connection is closed and opened again, which discards what was on its way.
 *
 * QEMU itself never drops what the guest sends but waits until it is read, and does nothing else meanwhile. So everything is read at once here, and a
 * guest that sends too much is cut off for a while.
 */
export class MetadataLink {
  readonly #path: string;
  readonly #answer: AnswerMetadata;
  readonly #times: LinkTimes;
  #socket: Socket | null = null;
  #isClosed = false;
  #allowed = REQUESTS_MAX;
  #allowedAt = performance.now();

  private constructor(path: string, answer: AnswerMetadata, times: LinkTimes) {
    this.#path = path;
    this.#answer = answer;
    this.#times = times;
  }

  /** Connects to the socket of an interface. Rejects with the system's error if there is none. */
  static async open(path: string, answer: AnswerMetadata, times: Partial<LinkTimes> = {}): Promise<MetadataLink> {
    const link = new MetadataLink(path, answer, { ...TIMES, ...times });
    await link.#connect();
    return link;
  }

  /** Whether it has ended, because QEMU has closed it or is gone. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
    this.#socket = null;
  }

  async #connect(): Promise<void> {
    const socket = await openUnixSocket(this.#path);
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    const requests = new MetadataRequests();
    let limit: NodeJS.Timeout | undefined;
    let answered: Promise<void> = Promise.resolve();
    socket.on("data", (bytes: Buffer) => {
      clearTimeout(limit);
      for (const request of requests.push(bytes)) {
        // Counted before they wait: an answer may hang, and what waits for it takes memory of the agent.
        if (!this.#admits()) return this.#again(socket, this.#times.bannedMs);
        answered = answered.then(() => this.#take(socket, request));
      }
      if (requests.isAmidst) limit = setTimeout(() => this.#again(socket, AGAIN_MS), this.#times.requestMs).unref();
    });
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(limit);
      if (this.#socket === socket) this.close();
    });
  }

  async #take(socket: Socket, request: MetadataRequest): Promise<void> {
    if (this.#socket !== socket) return;
    if (socket.writableLength > UNREAD_BYTES_MAX) return this.#again(socket, this.#times.bannedMs);
    if (request.kind === "nonsense") {
      socket.write(encoded(refusal(400), true));
      await delay(AGAIN_MS, undefined, { ref: false });
      return this.#again(socket, AGAIN_MS);
    }
    const { method, path } = request;
    const isKnown = method === "GET" || method === "HEAD";
    const answer = isKnown ? await this.#answered(path) : refusal(405);
    if (this.#socket === socket) socket.write(encoded(answer, method !== "HEAD"));
  }

  /** Never rejects. */
  #answered(path: string): Promise<Answer> {
    return withDeadline(this.#answer(path), this.#times.answerMs, "the metadata of a guest").catch(() => refusal(500));
  }

  /** Counts a request. False when the guest makes too many. */
  #admits(): boolean {
    const now = performance.now();
    this.#allowed = Math.min(REQUESTS_MAX, this.#allowed + ((now - this.#allowedAt) / 1_000) * REQUESTS_PER_SECOND);
    this.#allowedAt = now;
    this.#allowed -= 1;
    return this.#allowed >= 0;
  }

  /** Closes the connection, and opens it again after a while. */
  #again(socket: Socket, afterMs: number): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    socket.destroy();
    delay(afterMs, undefined, { ref: false })
      .then(() => (this.#isClosed ? undefined : this.#connect()))
      .catch(() => this.close());
  }
}

/** An answer with any of the statuses of the service. */
type Answer = Omit<MetadataAnswer, "status"> & { readonly status: keyof typeof REASONS };

const REASONS = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  500: "Internal Server Error",
} as const;

const refusal = (status: keyof typeof REASONS): Answer => ({
  ...{ status, contentType: "text/plain", body: Buffer.from(`${status} ${REASONS[status]}\n`) },
});

/** The guest's connections cannot be closed from here. So each answer states its length, and clients end their connections themselves. */
function encoded({ status, contentType, body }: Answer, withBody: boolean): Buffer {
  const headers = `Content-Type: ${contentType}\r\nContent-Length: ${body.length}`;
  const head = Buffer.from(`HTTP/1.1 ${status} ${REASONS[status]}\r\n${headers}\r\n\r\n`);
  return withBody ? Buffer.concat([head, body]) : head;
}
