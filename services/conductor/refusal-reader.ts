import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { AskedGuest } from "./operation-orders.ts";
import { meaningOfEmptied, meaningOfFence, meaningOfRefusal, type Refused } from "./read-refusal.ts";
import type { RunPorts } from "./task-run.ts";

/** How often a task is released at most to conductors that hear of a host that is silent here. */
const RELEASES_MAX = 3;

/** The parts of an operation's run that act on the meaning of a refusal. */
interface RefusedRun {
  /** Whether the operation still waits for the answer. */
  isWanted(): boolean;
  /** The refusal is the host's answer. */
  answered(): void;
  /** Gives the order again, later. `startInDoubt`: operators are told that the host may run the guest. */
  askAgain(tell: "startInDoubt" | null): void;
  /** The source has answered that it has no guest, so the time for its order begins again. */
  isEmpty(): void;
  /** Another conductor has the task now. */
  released(): void;
  step(event: OperationEvent): void;
}

/** Acts on the refused orders of one operation by their meaning, and remembers that a source has said that it has no guest. */
export class RefusalReader {
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #ports: Pick<RunPorts, "guests" | "releaser" | "settings">;
  readonly #abandon: () => void;
  /** The step at which the source has last said that it has no guest to hand over. */
  #emptyAt: number | null = null;

  constructor(
    facts: OperationFacts,
    tenure: Tenure,
    ports: Pick<RunPorts, "guests" | "releaser" | "settings">,
    abandon: () => void,
  ) {
    this.#abandon = abandon;
    this.#facts = facts;
    this.#tenure = tenure;
    this.#ports = ports;
  }

  /** Acts on a refused order by its meaning, because the guest may have obeyed later orders than the database knows of. */
  act(refused: Refused, run: RefusedRun): void {
    // It rejects only when the conductor stops.
    this.#act(refused, run).catch(() => this.#abandon());
  }

  async #act(refused: Refused, run: RefusedRun): Promise<void> {
    const { guests, releaser, settings } = this.#ports;
    const seen = { withinMs: settings.unseenMs, timesMax: RELEASES_MAX };
    const meaning = await meaningOfRefusal(this.#facts, refused, {
      look: (name) => guests.look(name),
      seek: (host) => releaser.tryReleaseSeen(this.#tenure, host, seen),
    });
    if (meaning === "released") return run.released();
    if (!run.isWanted()) return;
    if (meaning === "plain") return run.answered();
    const isOpen = meaning === "unclear" || meaning === "empty";
    if (meaning === "empty" || (refused.ask === "hand-over" && !isOpen && meaning.kind === "kept")) {
      this.#emptyAt = refused.step;
      run.isEmpty();
    }
    // Until the deadline of a hand-over. About a start until the host says whether the guest runs, or it is certain that the guest is not needed.
    if (isOpen || meaning.kind === "kept") run.askAgain(refused.ask === "hand-over" ? null : "startInDoubt");
    if (!isOpen) run.step(meaning);
  }

  /** The meaning of a host that is no longer asked. */
  meaningOfEnd(asked: AskedGuest, event: OperationEvent): OperationEvent {
    return this.#emptyAt === asked.step ? meaningOfEmptied(this.#facts, asked, event) : event;
  }

  /** The meaning of an operator's word that nothing runs on the asked host. */
  meaningOfFence(asked: AskedGuest): OperationEvent {
    return this.meaningOfEnd(asked, meaningOfFence(this.#facts, asked));
  }
}
