import type { FoundCandidates, FoundProviders } from "../../../core/candidates/every/found-candidates.ts";
import type { PlacementCandidateRequest } from "../../../core/candidates/request.ts";
import type { InventoryColumn } from "../../../core/ledger/inventory-column.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { AllocationRequests } from "./allocation-requests.ts";
import { AsciiJson } from "./ascii-json.ts";
import { KeptSummaries } from "./kept-summaries.ts";
import type { Microversion } from "./microversion.ts";

/**
 * Writes the body of GET /allocation_candidates at a version while the search runs. For a thousand candidates, creating objects first would
 * take longer than the search.
 */
export function presentCandidates(
  version: Microversion,
  request: PlacementCandidateRequest,
  found: FoundCandidates,
): AsciiJson {
  const json = new AsciiJson();
  const requests = new AllocationRequests(version, json);
  json.write('{"allocation_requests":[');
  let comma = "";
  for (let candidate = found.next(); candidate !== null; candidate = found.next()) {
    requests.write(comma, candidate);
    comma = ",";
  }
  json.write('],"provider_summaries":{');
  writeSummaries(json, version, request, found);
  json.write("}}");
  return json;
}

/** From this minor version on, a provider's summary does not depend on the request. */
const SAME_FOR_ALL_MINOR = 29;
const kept = new WeakMap<LedgerView, KeptSummaries>();

function writeSummaries(
  json: AsciiJson,
  version: Microversion,
  request: PlacementCandidateRequest,
  found: FoundCandidates,
): void {
  const asked = version.has(27) ? null : new Set(request.groups.flatMap((group) => [...group.resources.keys()]));
  let comma = "";
  for (const { view, slots } of found.providers()) {
    if (slots.length === 0) continue;
    const summaries = new SummaryTexts(version, view, asked);
    if (version.has(SAME_FOR_ALL_MINOR)) keptOf(view).write(json, comma, slots, (slot) => summaries.textOf(slot));
    else json.write(comma + slots.map((slot) => summaries.textOf(slot)).join());
    comma = ",";
  }
}

function keptOf(view: LedgerView): KeptSummaries {
  let summaries = kept.get(view);
  if (summaries === undefined) {
    summaries = new KeptSummaries(view);
    kept.set(view, summaries);
  }
  return summaries;
}

class SummaryTexts {
  readonly #view: FoundProviders["view"];
  readonly #columns: readonly { readonly column: Readonly<InventoryColumn>; readonly start: string }[];
  readonly #withTraits: boolean;
  readonly #withTree: boolean;
  /** The JSON of each trait set. Thousands of providers share a handful of sets. */
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
      text += `${comma}${start}${capacityText(column, slot)},"used":${column.used[slot]!}}`;
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

/**
 * The capacity as upstream writes it: int((total - reserved) * allocation_ratio), computed in floating-point numbers and cut off towards zero. All
 * digits are written, also of a number beyond 2^53, although the ledger itself compares with a capacity of at most 2^53.
 */
function capacityText({ total, reserved, allocationRatio }: Readonly<InventoryColumn>, slot: number): string {
  const capacity = Math.trunc((total[slot]! - reserved[slot]!) * allocationRatio[slot]!);
  return Number.isSafeInteger(capacity) ? String(capacity) : BigInt(capacity).toString();
}

/** The order in which upstream's databases list names: standard names first, then custom ones. */
function standardFirst(one: string, other: string): number {
  const custom = Number(one.startsWith("CUSTOM_")) - Number(other.startsWith("CUSTOM_"));
  return custom !== 0 ? custom : one < other ? -1 : 1;
}
