import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { serveBus } from "../adapters/memory/bus/thread-bus.ts";
import type { RunningGuest } from "../core/audit/facts.ts";
import type { Bus } from "../runtime/bus.ts";
import type { LogLevel } from "../runtime/logger.ts";
import type { CellPlan, CellServices } from "./cell-services.ts";
import type { CloudObserver } from "./observe-stores.ts";

/** A call to the thread of the cells. `buses` are the other ends of the conductors' connections. */
export type CellCall =
  | { readonly kind: "open"; readonly plan: CellPlan; readonly journal: string | null; readonly buses: MessagePort[] }
  | { readonly kind: "start" | "guests" | "copies" | "close"; readonly cell: string };
export interface NumberedCellCall {
  readonly id: number;
  readonly call: CellCall;
}

/** A message from the thread of the cells. */
export type CellWord =
  | { readonly kind: "done"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly error: SentError }
  | { readonly kind: "ready"; readonly cell: string }
  | { readonly kind: "cannotGoOn"; readonly error: SentError }
  | { readonly kind: "observed"; readonly words: readonly ObservedWord[] };
export type ObservedWord = {
  [Method in keyof CloudObserver]: readonly [Method, ...Parameters<CloudObserver[Method]>];
}[keyof CloudObserver];

/** An error in a message between threads, which keep neither the class nor the code of an error. */
export interface SentError {
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: unknown;
}

export interface CellThreadData {
  readonly logLevel: LogLevel;
  readonly observed: boolean;
}

export interface CellThreadOptions {
  readonly logLevel: LogLevel;
  readonly observer: CloudObserver | null;
  /** Called when the thread, or a part in it, cannot continue. */
  readonly fail: (error: unknown) => void;
}

/**
 * A thread that the cells' own services share, so that a cloud in one process can use a second CPU for the inside of its cells. The API
 * tier and the cells communicate only through the bus and the databases.
 */
export class CellThread {
  readonly #worker: Worker;
  readonly #options: CellThreadOptions;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #ready = new Set<string>();
  #calls = 0;
  #ended: Error | null = null;

  constructor(options: CellThreadOptions) {
    this.#options = options;
    const data: CellThreadData = { logLevel: options.logLevel, observed: options.observer !== null };
    this.#worker = new Worker(new URL("./cell-worker.ts", import.meta.url), { name: "cells", workerData: data });
    this.#worker.on("message", (word: CellWord) => this.#hear(word));
    this.#worker.on("error", (error) => this.#die(error instanceof Error ? error : new Error(String(error))));
    this.#worker.on("exit", () => this.#die(new Error("the thread of the cells' services has ended")));
  }

  /** Returns the services of a cell. `journal` is the agent's file, or null for a journal in memory. */
  open(plan: CellPlan, journal: string | null, connectBus: () => Bus): CellServices {
    const cell = plan.name;
    const buses = Array.from({ length: plan.conductors }, () => {
      const { port1, port2 } = new MessageChannel();
      serveBus(connectBus(), port1);
      return port2;
    });
    const opened = this.#call({ kind: "open", plan, journal, buses }, buses);
    // `start` reports the error; this only prevents an unhandled rejection until then.
    opened.catch(() => undefined);
    const ready = this.#ready;
    const ended = () => this.#ended;
    return {
      get ready() {
        if (ended() !== null) throw ended();
        return ready.has(cell);
      },
      faults: null,
      start: async () => {
        await opened;
        await this.#call({ kind: "start", cell });
      },
      runningGuests: () =>
        this.#call({ kind: "guests", cell }) as Promise<ReadonlyMap<string, readonly RunningGuest[]>>,
      copies: () => this.#call({ kind: "copies", cell }) as Promise<ReadonlyMap<string, readonly RunningGuest[]>>,
      // A thread that has ended has nothing left to close.
      close: async () => {
        await this.#call({ kind: "close", cell }).catch((error: unknown) => {
          if (this.#ended === null) throw error;
        });
      },
    };
  }

  /** Repeatable. Waiting calls reject. */
  async close(): Promise<void> {
    this.#end(new Error("the thread of the cells' services was closed"));
    await this.#worker.terminate();
  }

  #call(call: CellCall, transfer: MessagePort[] = []): Promise<unknown> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    this.#calls += 1;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(this.#calls, waiting);
    const numbered: NumberedCellCall = { id: this.#calls, call };
    this.#worker.postMessage(numbered, transfer);
    return waiting.promise;
  }

  #hear(word: CellWord): void {
    if (word.kind === "observed") this.#observe(word.words);
    else if (word.kind === "ready") this.#ready.add(word.cell);
    else if (word.kind === "cannotGoOn") this.#options.fail(errorOf(word.error));
    else {
      const waiting = this.#waiting.get(word.id);
      this.#waiting.delete(word.id);
      if (word.kind === "done") waiting?.resolve(word.value);
      else waiting?.reject(errorOf(word.error));
    }
  }

  #observe(words: readonly ObservedWord[]): void {
    const { observer } = this.#options;
    if (observer === null) return;
    for (const [method, ...args] of words) (observer[method] as (...args: unknown[]) => void)(...args);
  }

  #die(error: Error): void {
    if (this.#ended !== null) return;
    this.#end(error);
    this.#options.fail(error);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}

/** The part of an error that can be sent to another thread. */
export function sentOf(error: unknown): SentError {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = "code" in error && ["string", "number"].includes(typeof error.code) ? { code: error.code } : {};
  return { message: error.message, stack: error.stack, ...code };
}

function errorOf({ message, ...rest }: SentError): Error {
  return Object.assign(new Error(message), rest);
}
