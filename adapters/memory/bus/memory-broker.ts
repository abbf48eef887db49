import { type Bus, BusError, type BusPermissions, type StreamSpec } from "../../../runtime/bus.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { MemoryBus } from "./memory-bus.ts";
import { MemoryQuestions } from "./memory-questions.ts";
import { MemoryStream } from "./memory-stream.ts";

/**
 * The in-process twin of a NATS account with JetStream: streams and consumers that live as long as this object. Every connection to it is a
 * `Bus`. Messages are handed over by reference, in microtasks. All times come from the clock.
 */
export class MemoryBroker {
  readonly questions: MemoryQuestions;
  readonly #clock: Clock;
  readonly #streams = new Map<string, MemoryStream>();
  readonly #bySubject = new Map<string, MemoryStream>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.questions = new MemoryQuestions(clock);
  }

  /** Opens a connection that may do only what `permissions` allow, or everything when they are absent. */
  connect(permissions?: BusPermissions): Bus {
    return new MemoryBus(this, permissions);
  }

  /** Drops every message and timer. Called when the process that holds the broker ends. */
  close(): void {
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
    this.#bySubject.clear();
  }

  streamOf(subject: string): MemoryStream | undefined {
    return this.#bySubject.get(subject);
  }

  streamNamed(name: string): MemoryStream | undefined {
    return this.#streams.get(name);
  }

  ensureStream(spec: StreamSpec): void {
    for (const subject of spec.subjects) {
      const owner = this.#bySubject.get(subject);
      if (owner !== undefined && owner.spec.stream !== spec.stream) {
        throw new BusError("refused", spec.stream, `subject ${subject} belongs to stream ${owner.spec.stream}`);
      }
    }
    let stream = this.#streams.get(spec.stream);
    if (stream === undefined) {
      stream = new MemoryStream(this.#clock, spec);
      this.#streams.set(spec.stream, stream);
    } else {
      for (const subject of stream.spec.subjects) this.#bySubject.delete(subject);
      stream.update(spec);
    }
    for (const subject of spec.subjects) this.#bySubject.set(subject, stream);
  }
}
