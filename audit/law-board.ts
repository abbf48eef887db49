import { type FoundViolation, keyOfViolation } from "../core/audit/violation.ts";
import type { LawsReading } from "../core/stores/laws-reading.ts";
import type { CloudReading } from "./read-cloud.ts";
import { type AuditChange, HISTORY_SOURCE } from "./watch-cloud.ts";

const SHOWN_MAX = 20;
/** A violation that is already over is still shown for this long. */
const PAST_SHOWN_MS = 600_000;
/** The laws that can only be judged by the hosts' reports of their guests. */
const BY_WORD = [4, 6];

/**
 * Gathers the changes and readings of a watch into the present state of the laws. A reading without one of the cells, or while the history of
 * one is lost, does not show that the laws hold, so the state stays as of the last complete reading, with that reading's time.
 */
export class LawBoard {
  #readAtMs: number | null = null;
  #unchecked: readonly number[] = [];
  readonly #broken = new Map<string, FoundViolation>();
  readonly #past = new Map<string, { readonly violation: FoundViolation; readonly untilMs: number }>();
  readonly #lostHistories = new Set<string>();

  take(change: AuditChange, nowMs: number): void {
    if (change.kind === "broken" && change.isPast)
      this.#past.set(keyOfViolation(change.violation), { violation: change.violation, untilMs: nowMs + PAST_SHOWN_MS });
    else if (change.kind === "broken") this.#broken.set(keyOfViolation(change.violation), change.violation);
    else if (change.kind === "gone") this.#broken.delete(keyOfViolation(change.violation));
    else if (change.kind === "unread" && change.source.startsWith(HISTORY_SOURCE))
      this.#lostHistories.add(change.source);
    else if (change.kind === "read") this.#lostHistories.delete(change.source);
  }

  /** Returns whether the reading was complete. */
  read({ isEveryHostAsked, unread, unreadGuests }: CloudReading, nowMs: number): boolean {
    if (unread.size > 0 || this.#lostHistories.size > 0) return false;
    this.#readAtMs = nowMs;
    for (const [key, { untilMs }] of this.#past) if (untilMs <= nowMs) this.#past.delete(key);
    this.#unchecked = !isEveryHostAsked || unreadGuests.size > 0 ? BY_WORD : [];
    return true;
  }

  /** The state as of the last complete reading. Null before the first one. */
  laws(): LawsReading | null {
    if (this.#readAtMs === null) return null;
    const past = Array.from(this.#past.values(), ({ violation }) => violation);
    const broken = [...past, ...this.#broken.values()].slice(-SHOWN_MAX).map(({ law, where, what, proof }) => ({
      ...{ law: law === "groups" ? 0 : law, subject: where, evidence: `${what} (${proof})` },
    }));
    return { at: this.#readAtMs, broken, unchecked: this.#unchecked };
  }
}
