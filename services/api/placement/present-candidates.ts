import type { ResourceClass } from "../../../core/ledger/ids.ts";
import type { InventoryColumn } from "../../../core/ledger/inventory-column.ts";
import type { CandidateQuery } from "../../../core/placement/candidate-query.ts";
import type { Need } from "../../../core/placement/compiled-query.ts";
import type { FoundCandidate, FoundCandidates, FoundProviders } from "../../../core/placement/found-candidates.ts";
import { AsciiJson } from "./ascii-json.ts";
import type { Microversion } from "./microversion.ts";

/**
 * The body of GET /allocation_candidates at a version, written while the search goes on: with a thousand candidates objects
 * of them all would take longer than the search.
 */
export function presentCandidates(version: Microversion, query: CandidateQuery, found: FoundCandidates): Uint8Array {
  const json = new AsciiJson();
  const requests = new RequestTexts(version);
  json.write('{"allocation_requests":[');
  let comma = "";
  for (let candidate = found.next(); candidate !== null; candidate = found.next()) {
    json.write(comma + requests.textOf(candidate));
    comma = ",";
  }
  json.write('],"provider_summaries":{');
  const asked = version.has(27) ? null : new Set(query.groups.flatMap((group) => [...group.resources.keys()]));
  comma = "";
  for (const { view, slots } of found.providers()) {
    const summaries = new SummaryTexts(version, view, asked);
    for (const slot of slots) {
      json.write(comma + summaries.textOf(slot));
      comma = ",";
    }
  }
  json.write("}}");
  return json.bytes();
}

/** The texts around the parts of an allocation request; a list until 1.11. */
const MAP_FORM = { open: '{"allocations":{', start: '"', middle: '":{"resources":{', close: "}" };
const LIST_FORM = {
  open: '{"allocations":[',
  start: '{"resource_provider":{"uuid":"',
  middle: '"},"resources":{',
  close: "]",
};

class RequestTexts {
  readonly #form: typeof MAP_FORM;
  readonly #withMappings: boolean;
  /** `"VCPU":2` of each need. */
  readonly #needTexts = new Map<Need, string>();
  /** The choices of the tree at hand, with what stands behind the provider of each, and before it in the mappings. */
  #choices: FoundCandidate["choices"] = [];
  #takenTexts: readonly string[] = [];
  #mappingStarts: readonly string[] = [];

  constructor(version: Microversion) {
    this.#form = version.has(12) ? MAP_FORM : LIST_FORM;
    this.#withMappings = version.has(34);
  }

  textOf(candidate: FoundCandidate): string {
    const { view, choices, slots } = candidate;
    if (choices !== this.#choices) this.#turnTo(choices);
    const { open, start, close } = this.#form;
    const areDistinct = new Set(slots).size === slots.length;
    let text = open;
    let comma = "";
    for (let at = 0; at < choices.length; at += 1) {
      if (choices[at]!.needs.length === 0 || (!areDistinct && isServedBefore(candidate, at))) continue;
      text += comma + start + view.slots.uuid(slots[at]!);
      text += areDistinct ? this.#takenTexts[at]! : this.#takenTogether(candidate, at);
      comma = ",";
    }
    text += close;
    return this.#withMappings ? `${text},"mappings":{${this.#mappingsOf(candidate)}}}` : `${text}}`;
  }

  #turnTo(choices: FoundCandidate["choices"]): void {
    const { middle } = this.#form;
    this.#choices = choices;
    this.#takenTexts = choices.map(({ needs }) => `${middle}${needs.map((need) => this.#needText(need)).join()}}}`);
    this.#mappingStarts = choices.map(({ granular, group }) => (granular ? `"${group.suffix}":["` : ""));
  }

  #needText(need: Need): string {
    let text = this.#needTexts.get(need);
    if (text === undefined) {
      text = `"${need.resourceClass}":${need.amount}`;
      this.#needTexts.set(need, text);
    }
    return text;
  }

  /** All that the provider of this choice gives, to this one and to those after it. */
  #takenTogether({ choices, slots }: FoundCandidate, first: number): string {
    const amounts = new Map<ResourceClass, number>();
    for (let at = first; at < choices.length; at += 1) {
      if (slots[at] !== slots[first]) continue;
      for (const { resourceClass, amount } of choices[at]!.needs)
        amounts.set(resourceClass, (amounts.get(resourceClass) ?? 0) + amount);
    }
    let text = "";
    for (const [name, amount] of amounts) text += `${text === "" ? "" : ","}"${name}":${amount}`;
    return `${this.#form.middle}${text}}}`;
  }

  /** A numbered group has one provider; the classes of the group without suffix may have several. */
  #mappingsOf({ view, choices, slots }: FoundCandidate): string {
    let text = "";
    let plain = "";
    let comma = "";
    for (let at = 0; at < choices.length; at += 1) {
      const uuid = view.slots.uuid(slots[at]!);
      if (choices[at]!.granular) {
        text += `${comma}${this.#mappingStarts[at]!}${uuid}"]`;
        comma = ",";
      } else if (!plain.includes(uuid)) plain += plain === "" ? `"${uuid}"` : `,"${uuid}"`;
    }
    return plain === "" ? text : `${text}${comma}"":[${plain}]`;
  }
}

/** Whether a choice before this one, which takes something, has the same provider. */
function isServedBefore({ choices, slots }: FoundCandidate, at: number): boolean {
  const slot = slots[at];
  for (let before = 0; before < at; before += 1)
    if (slots[before] === slot && choices[before]!.needs.length > 0) return true;
  return false;
}

class SummaryTexts {
  readonly #view: FoundProviders["view"];
  readonly #columns: readonly { readonly column: Readonly<InventoryColumn>; readonly start: string }[];
  readonly #withTraits: boolean;
  readonly #withTree: boolean;
  /** By trait set, of which thousands of providers share a handful. */
  readonly #traits: string[] = [];

  constructor(version: Microversion, view: FoundProviders["view"], asked: ReadonlySet<string> | null) {
    this.#view = view;
    const classes = [...view.resourceClasses()].filter((name) => asked === null || asked.has(name));
    this.#columns = classes.map((name) => ({ column: view.column(name)!, start: `"${name}":{"capacity":` }));
    this.#withTraits = version.has(17);
    this.#withTree = version.has(29);
  }

  textOf(slot: number): string {
    const { slots } = this.#view;
    let text = `"${slots.uuid(slot)}":{"resources":{`;
    let comma = "";
    for (const { column, start } of this.#columns) {
      if (!column.has(slot)) continue;
      text += `${comma}${start}${column.capacity(slot)},"used":${column.used[slot]!}}`;
      comma = ",";
    }
    text += "}";
    if (this.#withTraits) text += this.#traitsOf(slots.traitSet[slot]!);
    if (this.#withTree) {
      const parent = slots.parent[slot]!;
      text += `,"parent_provider_uuid":${parent < 0 ? "null" : `"${slots.uuid(parent)}"`}`;
      text += `,"root_provider_uuid":"${slots.uuid(slots.root[slot]!)}"`;
    }
    return `${text}}`;
  }

  #traitsOf(set: number): string {
    this.#traits[set] ??= `,"traits":${JSON.stringify(this.#view.traits.names(set).sort(standardFirst))}`;
    return this.#traits[set];
  }
}

/** The order in which upstream's databases list them: the standard names, which were there first, before one's own. */
function standardFirst(one: string, other: string): number {
  const custom = Number(one.startsWith("CUSTOM_")) - Number(other.startsWith("CUSTOM_"));
  return custom !== 0 ? custom : one < other ? -1 : 1;
}
