import { type AnswerQuestion, BusError } from "../../../runtime/bus.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The questions of a broker in memory. Each question goes to one of the answerers of its subject, in turn. */
export class MemoryQuestions {
  readonly #clock: Clock;
  readonly #answering = new Map<string, AnswerQuestion[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with `no-stream` when the subject has no answerer, and with `timeout` when no answer comes in time. */
  ask(subject: string, question: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const answering = this.#answering.get(subject);
    const next = answering?.shift();
    if (answering === undefined || next === undefined)
      return Promise.reject(new BusError("no-stream", subject, "no process answers questions on this subject"));
    answering.push(next);
    return new Promise((resolve, reject) => {
      const late = () => reject(new BusError("timeout", subject, `no answer within ${timeoutMs} ms`));
      const timer = this.#clock.setTimer(timeoutMs, late);
      next(question).then(
        (answer) => {
          timer.cancel();
          resolve(answer);
        },
        // Over NATS, nothing is sent then.
        () => undefined,
      );
    });
  }

  /** Returns a function that ends the answering. */
  answer(subject: string, onQuestion: AnswerQuestion): () => void {
    const answering = this.#answering.get(subject) ?? [];
    this.#answering.set(subject, answering);
    // A separate function, since the caller may pass the same one twice.
    const one: AnswerQuestion = (question) => onQuestion(question);
    answering.push(one);
    return () => {
      const at = answering.indexOf(one);
      if (at >= 0) answering.splice(at, 1);
    };
  }
}
