import type { Socket } from "node:net";

/** Number of waiting bytes above which the sender is blocked. */
const WAITING_BYTES_MAX = 256 * 1024;

interface Item {
  readonly atMs: number;
  readonly what: Buffer | "end" | "break";
}

/** One direction of a connection. It passes on data, the end and a reset, in order, delayed or not at all. */
export class OneWay {
  #from: Socket | null = null;
  #to: Socket | null = null;
  #held = false;
  #delayMs = 0;
  #blocked = false;
  #waiting: Item[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  from(socket: Socket): void {
    this.#from = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#bytes += chunk.length;
      this.#take({ atMs: performance.now() + this.#delayMs, what: chunk });
      if (this.#bytes > WAITING_BYTES_MAX) socket.pause();
    });
    socket.once("end", () => this.#take({ atMs: performance.now() + this.#delayMs, what: "end" }));
    socket.on("error", () => undefined); // A `close` event follows.
    socket.once("close", (broken) => {
      if (broken) this.#take({ atMs: performance.now() + this.#delayMs, what: "break" });
    });
  }

  to(socket: Socket): void {
    this.#to = socket;
    socket.on("drain", () => {
      this.#blocked = false;
      this.#pass();
    });
    this.#pass();
  }

  set({ held, delayMs }: { readonly held: boolean; readonly delayMs: number }): void {
    this.#held = held;
    this.#delayMs = delayMs;
    this.#pass();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting = [];
  }

  #take(item: Item): void {
    this.#waiting.push(item);
    this.#pass();
  }

  #pass(): void {
    const to = this.#to;
    if (to === null || this.#held) return;
    for (let item = this.#waiting[0]; item !== undefined && !this.#blocked; item = this.#waiting[0]) {
      const waitMs = item.atMs - performance.now();
      if (waitMs > 0) {
        this.#passLater(waitMs);
        return;
      }
      this.#waiting.shift();
      this.#hand(item.what, to);
    }
    if (this.#bytes <= WAITING_BYTES_MAX && !this.#blocked) this.#from?.resume();
  }

  #hand(what: Item["what"], to: Socket): void {
    if (what === "break") to.resetAndDestroy();
    else if (what === "end") to.end();
    else {
      this.#bytes -= what.length;
      this.#blocked = !to.write(what);
    }
  }

  #passLater(waitMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#pass();
    }, waitMs);
  }
}
