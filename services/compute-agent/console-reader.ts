import type { ConductorStream } from "../../core/agent/link.ts";
import type { ReadConsole } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import { messageOf } from "./message-of.ts";

/** An answer of a driver is given up after this time. */
const READ_MS = 3_000;
const BYTES_MAX = 131_072;

/** Answers conductors' questions about the consoles of guests. It changes nothing, and so needs no turn in the guest's chain of orders. */
export class ConsoleReader {
  readonly #driver: Pick<Driver, "readConsole">;
  readonly #hosts: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #events: Pick<AgentEvents, "consoleFailed">;

  constructor(options: {
    readonly driver: Pick<Driver, "readConsole">;
    readonly hosts: ReadonlySet<string>;
    readonly clock: Clock;
    readonly events: Pick<AgentEvents, "consoleFailed">;
  }) {
    this.#driver = options.driver;
    this.#hosts = options.hosts;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  /** Always answers, and never rejects. */
  async read({ host, serverUuid, attemptId, query, bytesMax }: ReadConsole, from: ConductorStream): Promise<void> {
    const answer = (told: { readonly output?: Uint8Array; readonly absent?: boolean; readonly failed?: string }) => {
      const { output = EMPTY, absent = false, failed = "" } = told;
      from.send({ body: { $case: "console", value: { host, query, output: Buffer.from(output), absent, failed } } });
    };
    if (!this.#hosts.has(host)) return answer({ absent: true });
    const guest = { host, serverUuid, attemptId };
    try {
      const reading = this.#driver.readConsole(guest, Math.min(bytesMax, BYTES_MAX));
      const output = await withDeadline(reading, READ_MS, "reading the guest's console", this.#clock);
      answer(output === null ? { absent: true } : { output });
    } catch (error) {
      const failed = messageOf(error);
      this.#events.consoleFailed(guest, failed);
      answer({ failed });
    }
  }
}

const EMPTY = new Uint8Array();
