import { Worker } from "node:worker_threads";
import { TurnQueue } from "../runtime/turn-queue.ts";
import type { HttpAnswer, HttpCall, HttpSender } from "./pool-sender.ts";

export interface NumberedCall extends HttpCall {
  readonly id: number;
}
export type NumberedAnswer = { readonly id: number } & (HttpAnswer | { readonly error: string });

/**
 * Sends from a thread of its own, so that a replay's HTTP does not share the thread of the cloud's services and distort the measurement.
 */
export class WorkerSender implements HttpSender {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<HttpAnswer>>();
  readonly #calls: TurnQueue<NumberedCall>;
  #next = 0;
  #ended: Error | null = null;

  constructor(options: { readonly apiUrl: string; readonly connections: number }) {
    this.#worker = new Worker(new URL("./http-worker.ts", import.meta.url), { name: "client", workerData: options });
    this.#calls = new TurnQueue((calls) => this.#worker.postMessage(calls));
    this.#worker.on("message", (answers: readonly NumberedAnswer[]) => {
      for (const answer of answers) this.#answer(answer);
    });
    this.#worker.on("error", (error) => this.#end(error instanceof Error ? error : new Error(String(error))));
    this.#worker.on("exit", () => this.#end(new Error("the thread that sends the replay's calls has ended")));
  }

  send(call: HttpCall): Promise<HttpAnswer> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    this.#next += 1;
    const waiting = Promise.withResolvers<HttpAnswer>();
    this.#waiting.set(this.#next, waiting);
    this.#calls.add({ ...call, id: this.#next });
    return waiting.promise;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #answer(answer: NumberedAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve({ status: answer.status, text: answer.text });
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const waiting of this.#waiting.values()) waiting.reject(this.#ended);
    this.#waiting.clear();
  }
}
