import type { InventoryColumn } from "../../../core/ledger/inventory-column.ts";
import type { CandidateQuery } from "../../../core/placement/candidate-query.ts";
import type { FoundCandidates, FoundProviders } from "../../../core/placement/found-candidates.ts";
import { AllocationRequests } from "./allocation-requests.ts";
import { AsciiJson } from "./ascii-json.ts";
import type { Microversion } from "./microversion.ts";

/**
 * The body of GET /allocation_candidates at a version, written while the search goes on: with a thousand candidates objects
 * of them all would take longer than the search.
 */
export function presentCandidates(version: Microversion, query: CandidateQuery, found: FoundCandidates): Uint8Array {
  const json = new AsciiJson();
  const requests = new AllocationRequests(version, json);
  json.write('{"allocation_requests":[');
  let comma = "";
  for (let candidate = found.next(); candidate !== null; candidate = found.next()) {
    requests.write(comma, candidate);
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
