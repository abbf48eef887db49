import type { IndexedAmount } from "../../../core/candidates/bound/bound-placement-request.ts";
import type { FoundCandidate } from "../../../core/candidates/every/found-candidates.ts";
import type { ResourceClass } from "../../../core/ledger/ids.ts";
import type { AsciiJson } from "./ascii-json.ts";
import type { Microversion } from "./microversion.ts";

/** Fewest leading choices that two candidates of one tree must share before their text is copied instead of written. */
const SHARED_MIN = 4;

/** The JSON around the parts of an allocation request, which is a list until 1.11. */
const MAP_FORM = { open: '{"allocations":{', start: '"', middle: '":{"resources":{', close: "}" };
const LIST_FORM = {
  open: '{"allocations":[',
  start: '{"resource_provider":{"uuid":"',
  middle: '"},"resources":{',
  close: "]",
};

/**
 * Writes allocation requests one after the other. Those of one tree mostly differ only in their last choices, so the text of the shared
 * leading choices is copied from the previous request. Even with forty-eight groups, the cost is little more than that of the choices that
 * change.
 */
export class AllocationRequests {
  readonly #json: AsciiJson;
  readonly #form: typeof MAP_FORM;
  readonly #withMappings: boolean;
  /** `"VCPU":2` of each amount. */
  readonly #amountTexts = new Map<IndexedAmount, string>();
  /** The choices of the current tree, with the text before and after the provider of each. */
  #choices: FoundCandidate["choices"] = [];
  #takenStarts: readonly string[] = [];
  #takenEnds: readonly string[] = [];
  #mappingStarts: readonly string[] = [];
  #hasPlain = false;
  /** The slots of the previous candidate if it was of the same tree and its providers are distinct; otherwise empty. */
  readonly #slots: number[] = [];
  /** The start of the previous candidate's text and mappings, and the end of each choice in both. */
  #start = 0;
  #mappingsStart = 0;
  readonly #takenAt: number[] = [];
  readonly #mappingAt: number[] = [];

  constructor(version: Microversion, json: AsciiJson) {
    this.#json = json;
    this.#form = version.has(12) ? MAP_FORM : LIST_FORM;
    this.#withMappings = version.has(34);
  }

  /** Writes one request after `comma`, which may be empty. */
  write(comma: string, candidate: FoundCandidate): void {
    const { choices, slots } = candidate;
    if (choices !== this.#choices) this.#turnTo(choices);
    this.#json.write(comma);
    const same = this.#sameAsBefore(slots);
    if (areDistinct(slots, same)) {
      this.#writeDistinct(candidate, same < SHARED_MIN ? 0 : same);
      for (let at = same; at < slots.length; at += 1) this.#slots[at] = slots[at]!;
    } else {
      this.#slots.length = 0;
      this.#json.write(this.#textOf(candidate));
    }
  }

  #turnTo(choices: FoundCandidate["choices"]): void {
    const { start, middle } = this.#form;
    let takenComma = "";
    let mappingComma = "";
    const isLikeBefore = areAlike(choices, this.#choices);
    this.#slots.length = 0;
    this.#choices = choices;
    if (isLikeBefore) return;
    this.#hasPlain = choices.some(({ granular }) => !granular);
    this.#takenEnds = choices.map(
      ({ amounts }) => `${middle}${amounts.map((requested) => this.#amountText(requested)).join()}}}`,
    );
    this.#takenStarts = choices.map(({ amounts }) => {
      if (amounts.length === 0) return "";
      const text = takenComma + start;
      takenComma = ",";
      return text;
    });
    this.#mappingStarts = choices.map(({ granular, group }) => {
      if (!granular) return "";
      const text = `${mappingComma}"${group.suffix}":["`;
      mappingComma = ",";
      return text;
    });
  }

  #amountText(requested: IndexedAmount): string {
    let text = this.#amountTexts.get(requested);
    if (text === undefined) {
      text = `"${requested.resourceClass}":${requested.amount}`;
      this.#amountTexts.set(requested, text);
    }
    return text;
  }

  /** Returns how many leading choices have the same providers as in the previous candidate. */
  #sameAsBefore(slots: readonly number[]): number {
    let same = 0;
    while (same < this.#slots.length && this.#slots[same] === slots[same]) same += 1;
    return same;
  }

  /** Writes a candidate with distinct providers; its first `same` choices are copied from the previous candidate. */
  #writeDistinct({ view, choices, slots }: FoundCandidate, same: number): void {
    const json = this.#json;
    const { open, close } = this.#form;
    const start = json.length;
    let text = "";
    if (same > 0) json.repeat(this.#start, this.#start + this.#takenAt[same - 1]!);
    else text = open;
    let done = same > 0 ? this.#takenAt[same - 1]! : 0;
    for (let at = same; at < choices.length; at += 1) {
      const before = this.#takenStarts[at]!;
      if (before !== "") text += before + view.slots.uuid(slots[at]!) + this.#takenEnds[at]!;
      this.#takenAt[at] = done + text.length;
    }
    this.#start = start;
    if (!this.#withMappings) {
      json.write(`${text}${close}}`);
      return;
    }
    json.write(`${text}${close},"mappings":{`);
    const mappingsStart = json.length;
    text = "";
    done = same > 0 ? this.#mappingAt[same - 1]! : 0;
    if (done > 0) json.repeat(this.#mappingsStart, this.#mappingsStart + done);
    for (let at = same; at < choices.length; at += 1) {
      const before = this.#mappingStarts[at]!;
      if (before !== "") text += `${before}${view.slots.uuid(slots[at]!)}"]`;
      this.#mappingAt[at] = done + text.length;
    }
    this.#mappingsStart = mappingsStart;
    const comma = done + text.length > 0 ? "," : "";
    json.write(this.#hasPlain ? `${text}${comma}"":[${plainProviders(view, choices, slots)}]}}` : `${text}}}`);
  }

  /** Returns the text of a candidate whose choices share providers. */
  #textOf(candidate: FoundCandidate): string {
    const { view, choices, slots } = candidate;
    const { open, start, close } = this.#form;
    let text = open;
    let comma = "";
    for (let at = 0; at < choices.length; at += 1) {
      if (choices[at]!.amounts.length === 0 || isServedBefore(candidate, at)) continue;
      text += comma + start + view.slots.uuid(slots[at]!) + this.#takenTogether(candidate, at);
      comma = ",";
    }
    text += close;
    if (!this.#withMappings) return `${text}}`;
    let mappings = "";
    for (let at = 0; at < choices.length; at += 1) {
      const before = this.#mappingStarts[at]!;
      if (before !== "") mappings += `${before}${view.slots.uuid(slots[at]!)}"]`;
    }
    if (this.#hasPlain) mappings += `${mappings === "" ? "" : ","}"":[${plainProviders(view, choices, slots)}]`;
    return `${text},"mappings":{${mappings}}}`;
  }

  /** Returns everything that the provider of this choice gives to this choice and to later ones. */
  #takenTogether({ choices, slots }: FoundCandidate, first: number): string {
    const amounts = new Map<ResourceClass, number>();
    for (let at = first; at < choices.length; at += 1) {
      if (slots[at] !== slots[first]) continue;
      for (const { resourceClass, amount } of choices[at]!.amounts)
        amounts.set(resourceClass, (amounts.get(resourceClass) ?? 0) + amount);
    }
    let text = "";
    for (const [name, amount] of amounts) text += `${text === "" ? "" : ","}"${name}":${amount}`;
    return `${this.#form.middle}${text}}}`;
  }
}

/** Whether the choices of two trees differ only in their providers, so that the text around the providers is the same. */
function areAlike(one: FoundCandidate["choices"], other: FoundCandidate["choices"]): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 1) {
    const [a, b] = [one[at]!, other[at]!];
    // A choice for one class of the unnumbered group has a separate list of amounts in every tree.
    if (a.group !== b.group || a.amounts.length !== b.amounts.length || a.amounts[0] !== b.amounts[0]) return false;
  }
  return true;
}

/** Whether all providers are distinct, given that the first `known` are. */
function areDistinct(slots: readonly number[], known: number): boolean {
  for (let at = Math.max(1, known); at < slots.length; at += 1)
    for (let before = 0; before < at; before += 1) if (slots[before] === slots[at]) return false;
  return true;
}

/** Whether an earlier choice that takes resources has the same provider. */
function isServedBefore({ choices, slots }: FoundCandidate, at: number): boolean {
  const slot = slots[at];
  for (let before = 0; before < at; before += 1)
    if (slots[before] === slot && choices[before]!.amounts.length > 0) return true;
  return false;
}

/** Returns the providers of the unnumbered group, whose classes may have several; a numbered group has one. */
function plainProviders(
  view: FoundCandidate["view"],
  choices: FoundCandidate["choices"],
  slots: readonly number[],
): string {
  let plain = "";
  for (let at = 0; at < choices.length; at += 1) {
    if (choices[at]!.granular) continue;
    const uuid = view.slots.uuid(slots[at]!);
    if (!plain.includes(uuid)) plain += plain === "" ? `"${uuid}"` : `,"${uuid}"`;
  }
  return plain;
}
