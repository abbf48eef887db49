import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import type { AnswerQuestion } from "../../runtime/bus.ts";
import type { LinkUser, NatsLink } from "./nats-link.ts";

/** All answerers of one subject share this queue group, so that the server gives each question to one of them. */
const QUEUE = "answerers";

/** Answers the questions of a subject over each connection of the link. */
export class NatsAnswerer implements LinkUser {
  readonly #link: NatsLink;
  readonly #subject: string;
  readonly #onQuestion: AnswerQuestion;
  #subscription: Subscription | undefined;

  constructor(link: NatsLink, subject: string, onQuestion: AnswerQuestion) {
    this.#link = link;
    this.#subject = subject;
    this.#onQuestion = onQuestion;
  }

  start(): void {
    this.#link.attach(this);
  }

  onUp(connection: NatsConnection): void {
    // A link that is losing its connection calls `onDown`, and `onUp` later.
    if (connection.isClosed()) return;
    // The link reports an error of the subscription, which is always a lack of permissions.
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) this.#answer(message);
    };
    this.#subscription = connection.subscribe(this.#subject, { queue: QUEUE, callback });
  }

  onDown(): void {
    this.#subscription = undefined;
  }

  stop(): void {
    this.#link.detach(this);
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  #answer(message: Msg): void {
    this.#onQuestion(message.data)
      .then((answer) => {
        // An answer that comes after the loss of its connection reaches nobody.
        if (this.#subscription?.isClosed() === false) message.respond(answer);
      })
      // There is no answer, or it is larger than a message may be. The asker finds out at the deadline.
      .catch(() => undefined);
  }
}
