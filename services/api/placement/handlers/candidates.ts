import type {
  Candidate,
  CandidateQuery,
  CandidateSource,
  ProviderSummary,
} from "../../../../core/placement/candidate-query.ts";
import type { PlacementStore } from "../../../../core/placement/placement-store.ts";
import type { Answer, Call } from "../http.ts";
import { badRequest } from "../placement-error.ts";
import { readCandidateQuery } from "../request-groups.ts";
import { listCandidates as querySchema } from "../schemas/candidates.ts";
import { checkQuery } from "../validate.ts";
import { unknownClass, unknownTraits } from "./known-names.ts";

const STALENESS_HEADER = "x-berth-staleness-ms";

/**
 * GET /allocation_candidates. Everything is read from the ledger view, also which names exist; so with the header
 * `x-berth-staleness-ms: N` the answer shows at least what was acknowledged N milliseconds before, without asking a database.
 */
export async function listCandidates(call: Call, _store: PlacementStore, source: CandidateSource): Promise<Answer> {
  checkQuery(call, querySchema);
  const query = readCandidateQuery(call);
  const outcome = await source.candidates(query, acceptedStaleness(call));
  switch (outcome.kind) {
    case "unknown-class":
      throw unknownClass(outcome.resourceClass);
    case "unknown-traits":
      throw unknownTraits(outcome.traits);
    case "found": {
      const text = presentAnswer(call, query, outcome.candidates, outcome.summaries);
      return { status: 200, text, lastModifiedMs: Date.now(), boundReached: outcome.boundReached };
    }
    default:
      return outcome satisfies never;
  }
}

/** Milliseconds; 0 without the header. Throws 400. */
function acceptedStaleness(call: Call): number {
  const text = call.request.headers[STALENESS_HEADER];
  if (text === undefined) return 0;
  if (!/^\d{1,9}$/.test(text.trim()))
    throw badRequest(`${STALENESS_HEADER} takes a whole number of milliseconds, below 1000000000. Got: ${text}`);
  return Number(text);
}

/**
 * The answer as JSON text, joined from fragments: with a thousand candidates building and serialising objects would cost more
 * than the search. UUIDs, classes and traits hold nothing that JSON would escape.
 */
function presentAnswer(
  call: Call,
  query: CandidateQuery,
  candidates: readonly Candidate[],
  summaries: readonly ProviderSummary[],
): string {
  const asMap = call.version.has(12);
  const withMappings = call.version.has(34);
  const requests = candidates.map((candidate) => {
    const allocations = asMap ? allocationsMap(candidate) : allocationsList(candidate);
    return withMappings
      ? `{"allocations":${allocations},"mappings":${mappingsOf(candidate)}}`
      : `{"allocations":${allocations}}`;
  });
  const asked = call.version.has(27)
    ? null
    : new Set<string>(query.groups.flatMap((group) => [...group.resources.keys()]));
  const providers = summaries.map((summary) => `"${summary.uuid}":${presentSummary(call, summary, asked)}`);
  return `{"allocation_requests":[${requests.join(",")}],"provider_summaries":{${providers.join(",")}}}`;
}

function amounts(resources: ReadonlyMap<string, number>): string {
  let text = "";
  for (const [name, amount] of resources) text += `${text === "" ? "" : ","}"${name}":${amount}`;
  return `{${text}}`;
}

function allocationsMap(candidate: Candidate): string {
  let text = "";
  for (const [provider, resources] of candidate.resources) {
    text += `${text === "" ? "" : ","}"${provider}":{"resources":${amounts(resources)}}`;
  }
  return `{${text}}`;
}

function allocationsList(candidate: Candidate): string {
  const entries = [...candidate.resources].map(
    ([provider, resources]) => `{"resource_provider":{"uuid":"${provider}"},"resources":${amounts(resources)}}`,
  );
  return `[${entries.join(",")}]`;
}

function mappingsOf(candidate: Candidate): string {
  let text = "";
  for (const [suffix, providers] of candidate.mappings) {
    text += `${text === "" ? "" : ","}"${suffix}":["${providers.join('","')}"]`;
  }
  return `{${text}}`;
}

function presentSummary(call: Call, summary: ProviderSummary, asked: ReadonlySet<string> | null): string {
  let resources = "";
  for (const [name, { capacity, used }] of summary.resources) {
    if (asked === null || asked.has(name))
      resources += `${resources === "" ? "" : ","}"${name}":{"capacity":${capacity},"used":${used}}`;
  }
  let text = `{"resources":{${resources}}`;
  if (call.version.has(17)) text += `,"traits":[${summary.traits.map((name) => `"${name}"`).join(",")}]`;
  if (call.version.has(29)) {
    text += `,"parent_provider_uuid":${summary.parent === null ? "null" : `"${summary.parent}"`},"root_provider_uuid":"${summary.root}"`;
  }
  return `${text}}`;
}
