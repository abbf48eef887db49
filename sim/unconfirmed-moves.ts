import type { AttachmentChanges } from "./attachment-changes.ts";
import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { World } from "./world.ts";

/** Moves for each operation of users. */
const MOVES_SHARE = 0.4;
/** Changes of volumes before the end of one move. */
const CHANGES_MAX = 3;
/** How often a user looks how far the server is, from the call for the move to its end. */
const LOOK_MS = 700;
const LOOKS_MAX = 120;
/** Answers to what may not be done now. */
const REFUSALS = [404, 409];

/**
 * Users who migrate servers, change their volumes before they have decided about the migration, and then confirm or revert it. With slow hosts a migration takes long, so a user who has begun one
 * goes on when no new changes begin.
 */
export class UnconfirmedMoves {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #attachments: Pick<AttachmentChanges, "change">;
  readonly #migrations: Pick<AttachmentChanges, "change"> | null;
  readonly #random: () => number;
  /** How many users have not come to the end. */
  open = 0;
  /** How many changes of volumes were begun while a move waited for its confirmation. */
  changed = 0;

  constructor(
    world: World,
    user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">,
    attachments: Pick<AttachmentChanges, "change">,
    /** With these, half of the changes are migrations of volumes. */
    migrations: Pick<AttachmentChanges, "change"> | null = null,
  ) {
    this.#world = world;
    this.#user = user;
    this.#attachments = attachments;
    this.#migrations = migrations;
    this.#random = world.random("unconfirmed moves");
  }

  /** Begins moves at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * MOVES_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#move());
    }
  }

  async #move(): Promise<void> {
    const server = freeServer(this.#user, this.#random, ["ACTIVE", "SHUTOFF"]);
    const changes = 1 + Math.floor(this.#random() * CHANGES_MAX);
    const end = this.#random() < 0.5 ? "confirmResize" : "revertResize";
    if (server === undefined || this.#user.isOver()) return;
    this.open += 1;
    if (await this.#act(server, "migrate")) await this.#goOn(server, changes, end);
    this.open -= 1;
  }

  async #goOn(server: string, changes: number, end: "confirmResize" | "revertResize"): Promise<void> {
    const patience = { looks: LOOKS_MAX };
    for (let done = 0; done < changes && (await this.#waits(server, patience)); done += 1)
      if (await this.#changesNow().change(server)) this.changed += 1;
    if (await this.#waits(server, patience)) await this.#act(server, end);
  }

  #changesNow(): Pick<AttachmentChanges, "change"> {
    return this.#migrations !== null && this.#random() < 0.5 ? this.#migrations : this.#attachments;
  }

  /** Resolves with whether the server's move waits for its confirmation, after a while in which it may have come so far. */
  async #waits(server: string, patience: { looks: number }): Promise<boolean> {
    for (; patience.looks > 0; patience.looks -= 1) {
      await new Promise<void>((resolve) => this.#world.clock.setTimer(LOOK_MS * (0.5 + this.#random()), resolve));
      const now = this.#user.look(server);
      if (now?.status === "VERIFY_RESIZE" && now.taskState === null) return true;
    }
    return false;
  }

  async #act(server: string, action: "migrate" | "confirmResize" | "revertResize"): Promise<boolean> {
    const url = `/v2.1/servers/${server}/action`;
    const answer = await this.#user.call({ method: "POST", url, payload: { [action]: null } });
    const status = answer?.status ?? 503;
    this.#world.history.record("user", `${action} with changes of volumes`, { server, status });
    const isBad = status === 400 && action !== "migrate";
    if (status >= 300 && status < 503 && !REFUSALS.includes(status) && !isBad)
      this.#world.find(5, `${action} of ${server} was answered with ${status}: ${answer?.body}`);
    return status < 300;
  }
}
