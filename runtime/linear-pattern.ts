import { type PatternAssertion, type PatternNode, parsePattern } from "./parse-pattern.ts";

/** Maximum number of steps of an expression, in which the repetitions of a part count one by one. */
const STEPS_MAX = 1_000;
/** Sets of steps that are remembered with what follows from them. */
const SETS_MAX = 1_000;

/** One step of a match: a character, a condition, a choice of the next step, or the end. */
type Step =
  | { readonly kind: "character"; readonly fits: (character: string) => boolean; readonly next: number }
  | { readonly kind: "assertion"; readonly of: PatternAssertion; readonly next: number }
  | { readonly kind: "choice"; readonly next: readonly number[] }
  | { readonly kind: "end" };

/** A set of steps at which a match may be before a character, with the sets that follow by what is around this place. */
interface StepSet {
  readonly steps: readonly number[];
  readonly reached: Map<number, Reached>;
}

/** What can be reached from a set without a character. */
interface Reached {
  readonly isMatch: boolean;
  readonly characters: readonly number[];
  readonly after: Map<string, StepSet>;
}

/**
 * A regular expression that looks for a match anywhere in a text, as JavaScript does, in a time that grows with the product of both lengths: all possible matches are
 * followed at once. JavaScript tries one after the other, which may take longer than anybody waits.
 *
 * Source: K. Thompson, Regular expression search algorithm (1968).
 */
export class LinearPattern {
  readonly #steps: readonly Step[];
  readonly #start: number;
  readonly #sets = new Map<string, StepSet>();

  private constructor(steps: readonly Step[], start: number) {
    this.#steps = steps;
    this.#start = start;
  }

  /** Reads an expression, or says why it is refused. */
  static read(text: string): LinearPattern | { readonly refused: string } {
    const parsed = parsePattern(text);
    if ("refused" in parsed) return parsed;
    const steps: Step[] = [{ kind: "end" }];
    const start = addSteps(steps, parsed.node, 0);
    if (start === null) return { refused: `It has more than ${STEPS_MAX} parts, counting each repetition.` };
    return new LinearPattern(steps, start);
  }

  matches(text: string): boolean {
    let set = this.#setOf([this.#start]);
    for (let at = 0; at <= text.length; at += 1) {
      const reached = this.#reachedFrom(set, placeIn(text, at));
      if (reached.isMatch) return true;
      const character = text[at];
      if (character !== undefined) set = this.#after(reached, character);
    }
    return false;
  }

  /** A match may begin at each place, so each set has the first step. */
  #after(reached: Reached, character: string): StepSet {
    const known = reached.after.get(character);
    if (known !== undefined) return known;
    const next = new Set([this.#start]);
    for (const index of reached.characters) {
      const step = this.#steps[index];
      if (step?.kind === "character" && step.fits(character)) next.add(step.next);
    }
    const set = this.#setOf([...next].sort((one, other) => one - other));
    reached.after.set(character, set);
    return set;
  }

  #reachedFrom(set: StepSet, place: number): Reached {
    let reached = set.reached.get(place);
    if (reached === undefined) {
      reached = this.#reach(set.steps, place);
      set.reached.set(place, reached);
    }
    return reached;
  }

  #reach(from: readonly number[], place: number): Reached {
    const seen = new Set(from);
    const waiting = [...from];
    const go = (index: number) => {
      if (!seen.has(index)) waiting.push(index);
      seen.add(index);
    };
    const characters: number[] = [];
    let isMatch = false;
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      const step = this.#steps[index];
      if (step?.kind === "end") isMatch = true;
      else if (step?.kind === "character") characters.push(index);
      else if (step?.kind === "choice") step.next.forEach(go);
      else if (step !== undefined && holds(step.of, place)) go(step.next);
    }
    return { isMatch, characters, after: new Map() };
  }

  /** What is remembered is forgotten as a whole when it is too much: sets of before are not found any longer, and made again. */
  #setOf(steps: readonly number[]): StepSet {
    const key = steps.join(" ");
    const known = this.#sets.get(key);
    if (known !== undefined) return known;
    if (this.#sets.size >= SETS_MAX) this.#sets.clear();
    const set = { steps, reached: new Map() };
    this.#sets.set(key, set);
    return set;
  }
}

/** Adds the steps of a part before the step `next`. Returns the first of them, or null if there are too many. A part without characters has a step, too, so that its repetitions are limited. */
function addSteps(steps: Step[], node: PatternNode, next: number): number | null {
  switch (node.kind) {
    case "character":
      return add(steps, { kind: "character", fits: fitsOf(node.atom), next });
    case "assertion":
      return add(steps, { kind: "assertion", of: node.of, next });
    case "sequence":
      if (node.parts.length === 0) return add(steps, { kind: "choice", next: [next] });
      return node.parts.reduceRight<number | null>(
        (after, part) => (after === null ? null : addSteps(steps, part, after)),
        next,
      );
    case "alternatives": {
      const starts = node.parts.map((part) => addSteps(steps, part, next));
      return starts.some((start) => start === null) ? null : add(steps, { kind: "choice", next: starts as number[] });
    }
    case "repeated":
      return addRepeated(steps, node, next);
    default:
      return node satisfies never;
  }
}

function addRepeated(
  steps: Step[],
  { part, least, most }: Extract<PatternNode, { kind: "repeated" }>,
  next: number,
): number | null {
  let start = most === null ? addLoop(steps, part, next) : add(steps, { kind: "choice", next: [next] });
  for (let times = most ?? least; times > least && start !== null; times -= 1) {
    const one = addSteps(steps, part, start);
    start = one === null ? null : add(steps, { kind: "choice", next: [one, next] });
  }
  for (let times = 0; times < least && start !== null; times += 1) start = addSteps(steps, part, start);
  return start;
}

function addLoop(steps: Step[], part: PatternNode, next: number): number | null {
  const ways = [next];
  const choice = add(steps, { kind: "choice", next: ways });
  const again = choice === null ? null : addSteps(steps, part, choice);
  if (again !== null) ways.push(again);
  return again === null ? null : choice;
}

function add(steps: Step[], step: Step): number | null {
  return steps.length >= STEPS_MAX ? null : steps.push(step) - 1;
}

function fitsOf(atom: string): (character: string) => boolean {
  if (atom.length === 1 && atom !== ".") return (character) => character === atom;
  const expression = new RegExp(`^${atom}$`);
  return (character) => expression.test(character);
}

const AT_START = 1;
const AT_END = 2;
const AT_BOUNDARY = 4;
const WORD = /^\w$/;

/** What an assertion can ask about a place in a text. */
function placeIn(text: string, at: number): number {
  const isWord = (index: number) => WORD.test(text[index] ?? "");
  const start = at === 0 ? AT_START : 0;
  const end = at === text.length ? AT_END : 0;
  return start + end + (isWord(at - 1) === isWord(at) ? 0 : AT_BOUNDARY);
}

function holds(assertion: PatternAssertion, place: number): boolean {
  switch (assertion) {
    case "start":
      return (place & AT_START) !== 0;
    case "end":
      return (place & AT_END) !== 0;
    case "boundary":
      return (place & AT_BOUNDARY) !== 0;
    case "no-boundary":
      return (place & AT_BOUNDARY) === 0;
    default:
      return assertion satisfies never;
  }
}
