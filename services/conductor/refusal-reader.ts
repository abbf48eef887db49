import type { OperationFacts } from "../../core/tasks/operation-facts.ts";
import { isLiveMove } from "../../core/tasks/operation-kinds.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { AskedGuest } from "./operation-orders.ts";
import {
  guestOf,
  meaningOfEmptied,
  meaningOfFence,
  meaningOfRefusal,
  type RefusalFindings,
  type Refused,
} from "./read-refusal.ts";
import type { RunPorts } from "./task-run.ts";

/** How often a task is released at most to conductors that hear of a host that is silent here. */
const RELEASES_MAX = 3;

/** The parts of an operation's run that act on the meaning of a refusal. */
interface RefusedRun {
  /** Whether the operation still waits for the answer to this step. */
  isAt(step: number): boolean;
  /** The refusal is the host's answer. */
  answered(asked: AskedGuest, failed: string): void;
  /** Gives the order again, later. `startInDoubt`: operators are told that the host may run the guest. */
  askAgain(asked: AskedGuest, tell: "startInDoubt" | null, failed: string): void;
  /** The source has answered that it has no guest, so the time for its order begins again. */
  isEmpty(): void;
  /** Another conductor has the task now. */
  released(): void;
  step(event: OperationEvent): void;
  /** The conductor stops. */
  abandon(): void;
}

/** Acts on the refused orders of one operation by their meaning. It remembers nothing: what a source has said that must not be forgotten is written to the database. */
export class RefusalReader {
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #ports: Pick<RunPorts, "guests" | "releaser" | "settings" | "streamOf">;
  readonly #run: RefusedRun;

  constructor(
    facts: OperationFacts,
    tenure: Tenure,
    ports: Pick<RunPorts, "guests" | "releaser" | "settings" | "streamOf">,
    run: RefusedRun,
  ) {
    this.#run = run;
    this.#facts = facts;
    this.#tenure = tenure;
    this.#ports = ports;
  }

  /** Acts on a refused order by its meaning, because the guest may have obeyed later orders than the database knows of. */
  act(asked: AskedGuest, failed: string, { lacksContent = false, guestMissing = false }: RefusalFindings): void {
    this.#act(asked, { ...asked, failed, lacksContent, guestMissing }).catch(() => this.#run.abandon());
  }

  /**
   * Acts before an aborted move's source is told to go on. Its guest cannot have gone on if there is none now. If it is missing after the source was told, it may have.
   */
  beforeRecall(asked: AskedGuest): void {
    this.#beforeRecall(asked).catch(() => this.#run.abandon());
  }

  async #beforeRecall(asked: AskedGuest): Promise<void> {
    const { kind } = await this.#ports.guests.look(guestOf(this.#facts, asked.place));
    if (kind === "absent") return this.act(asked, "there is no guest", {});
    // A source that is lost by now was not told. The run waits for it already.
    if (this.#run.isAt(asked.step) && this.#ports.streamOf(asked.place.host) !== null)
      this.#run.step({ kind: "recalls", step: asked.step });
  }

  async #act(asked: AskedGuest, refused: Refused): Promise<void> {
    const { guests, releaser, settings } = this.#ports;
    const { failed } = refused;
    const run = this.#run;
    const seen = { withinMs: settings.unseenMs, timesMax: RELEASES_MAX };
    const meaning = await meaningOfRefusal(this.#facts, refused, {
      look: (name) => guests.look(name),
      seek: (host) => releaser.tryReleaseSeen(this.#tenure, host, seen),
    });
    if (meaning === "released") return run.released();
    if (!run.isAt(refused.step)) return;
    if (meaning === "plain") return run.answered(asked, failed);
    const isOpen = meaning === "unclear" || meaning === "empty";
    // A live move waits for a source that is lost after this. Any other one would go back to it.
    if (meaning === "empty" && !asked.isEmptied && !isLiveMove(this.#facts.kind))
      return run.step({ kind: "empties", step: refused.step });
    if (meaning === "empty" || (refused.ask === "hand-over" && !isOpen && meaning.kind === "kept")) run.isEmpty();
    // Until the deadline of a hand-over. About a start until the host says whether the guest runs, or it is certain that the guest is not needed.
    if (isOpen || meaning.kind === "kept")
      run.askAgain(asked, refused.ask === "hand-over" ? null : "startInDoubt", failed);
    if (!isOpen) run.step(meaning);
  }

  /** The meaning of a host that is no longer asked. */
  meaningOfEnd(asked: AskedGuest, event: OperationEvent): OperationEvent {
    return asked.isEmptied ? meaningOfEmptied(this.#facts, asked) : event;
  }

  /** The meaning of an operator's word that nothing runs on the asked host. */
  meaningOfFence(asked: AskedGuest): OperationEvent {
    return this.meaningOfEnd(asked, meaningOfFence(this.#facts, asked));
  }
}
