import { BusError } from "../../../runtime/bus.ts";

/** Questions that were passed on to another thread, until it answers them. */
export class PassedQuestions {
  readonly #open = new Map<number, PromiseWithResolvers<Uint8Array>>();
  #last = 0;

  /** Passes a question on by its number. Resolves with the answer. */
  pass(send: (number: number) => void): Promise<Uint8Array> {
    this.#last += 1;
    const question = Promise.withResolvers<Uint8Array>();
    this.#open.set(this.#last, question);
    send(this.#last);
    return question.promise;
  }

  /** `answer` is null when the question gets none. */
  settle(number: number, answer: Uint8Array | null): void {
    const question = this.#open.get(number);
    this.#open.delete(number);
    if (answer !== null) question?.resolve(answer);
    else question?.reject(new BusError("refused", "the bus", "the question was not answered"));
  }

  /** Ends all questions, because the other thread is gone. */
  close(): void {
    for (const { reject } of this.#open.values()) reject(new BusError("closed", "the bus", "was closed"));
    this.#open.clear();
  }
}
