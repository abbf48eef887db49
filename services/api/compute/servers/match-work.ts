import type { RE2JS } from "re2js";
import { nextTurn } from "../../../../runtime/next-turn.ts";

/**
 * How much work the patterns of one list may make, in steps: the look of one instruction of an expression at one character, about 60 ns. Together they take less than
 * a second.
 */
const STEPS_MAX = 5_000_000;
/** After as many steps, some milliseconds, the process answers others before the next server is compared. */
const STEPS_OF_TURN = 100_000;
/** To make this much of an automaton takes as long as a step. */
const AUTOMATON_BYTES_PER_STEP = 8;
/** What a state of an automaton has, and for each instruction and each class of characters. These are the figures by which RE2JS bounds its memory. */
const STATE_BYTES = 254;
const ENTRY_BYTES = 8;
/** To make an entry for a class of characters takes this share of a step. */
const CLASSES_PER_STEP = 10;

/** The work that the patterns of one list have left. */
export class MatchWork {
  #left = STEPS_MAX;
  #leftAtRest = STEPS_MAX;

  /** Returns whether this much was left. */
  spend(steps: number): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }

  /** Returns a promise to wait for when it is the turn of others, otherwise null. */
  rest(): Promise<void> | null {
    if (this.#leftAtRest - this.#left < STEPS_OF_TURN) return null;
    this.#leftAtRest = this.#left;
    return nextTurn();
  }
}

/**
 * Returns how texts are compared with a pattern, which calls `refuse` when all the work of its list is used up. The same texts always take the same work.
 *
 * RE2 makes an automaton of the pattern, state by state as the texts need them. A known state costs nearly nothing, so most patterns can be compared with any number of texts.
 * An automaton that is too large for its memory is given up and begun again, or the instructions are followed one by one. From then on every character may cost as much as
 * the whole pattern is long, and is counted like this.
 */
export function matcherWithin(work: MatchWork, pattern: RE2JS, refuse: () => never): (text: string) => boolean {
  const automaton = pattern.re2Input.dfa;
  const size = pattern.programSize();
  const stateBytesMax = STATE_BYTES + ENTRY_BYTES * (size + automaton.numClasses);
  const stepsPerCharacter = Math.ceil(size + automaton.numClasses / CLASSES_PER_STEP);
  let mayOverflow = automaton.failed;
  return (text) => {
    const before = automaton.memBudget;
    // One state for each character, and those of the two ends.
    mayOverflow ||= before < stateBytesMax * (text.length + 2);
    if (mayOverflow && !work.spend(stepsPerCharacter * (text.length + 1))) return refuse();
    const isMatch = pattern.test(text);
    if (!mayOverflow && !work.spend((before - automaton.memBudget) / AUTOMATON_BYTES_PER_STEP)) return refuse();
    return isMatch;
  };
}
