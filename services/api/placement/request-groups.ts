import {
  type GroupPolicy,
  type PlacementCandidateRequest,
  type RequestGroup,
  type RootTraits,
  requestGroup,
  requiredRules,
} from "../../../core/candidates/request.ts";
import type { PlacementCall } from "./http.ts";
import { ERROR_CODES, placementBadRequest } from "./placement-error.ts";
import { aggregateRules, inTree, parseResources, rootTraitRules, traitRules } from "./query-values.ts";
import { LIMIT_PATTERN, NAME_SUFFIX_PATTERN, NUMBER_SUFFIX_PATTERN } from "./schemas/patterns.ts";

const LIMIT = new RegExp(LIMIT_PATTERN);

/** Reads the groups and the parameters that concern all of them. Throws 400, in upstream's order of checks. */
export function readCandidateRequest(call: PlacementCall): PlacementCandidateRequest {
  const { query } = call;
  const rootRules = readRootTraits(query);
  const sameSubtree = readSameSubtrees(query);
  const groups = readGroups(call);
  checkGroups(call, groups, new Set(sameSubtree.flat()));
  if (call.version.has(22)) checkConflicts(groups);
  const policy = readGroupPolicy(query);
  if (policy === null && groups.filter((group) => group.suffix !== "").length > 1) {
    throw placementBadRequest(
      'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.',
    );
  }
  return {
    groups,
    groupPolicy: policy ?? "none",
    limit: readLimit(query),
    rootRules,
    sameSubtree,
    nested: call.version.has(29),
  };
}

// The first of several values counts, as upstream does it, although the schema has checked only the last one.

function readGroupPolicy(query: URLSearchParams): GroupPolicy | null {
  const policy = query.get("group_policy");
  if (policy === null || policy === "none" || policy === "isolate") return policy;
  throw placementBadRequest(`The "group_policy" parameter is "none" or "isolate". Got: ${policy}`);
}

function readLimit(query: URLSearchParams): number | null {
  const limit = query.get("limit");
  if (limit === null) return null;
  if (!LIMIT.test(limit)) throw placementBadRequest(`The "limit" parameter is a number of at least 1. Got: ${limit}`);
  return Number(limit);
}

function readRootTraits(query: URLSearchParams): RootTraits {
  const values = query.getAll("root_required");
  if (values.length === 0) return { requiredTraits: new Set(), forbiddenTraits: new Set() };
  if (values.length > 1)
    throw placementBadRequest("Query parameter 'root_required' may be specified only once.", ERROR_CODES.duplicateKey);
  const rules = rootTraitRules(values[0]!);
  const both = rules.required.flat().filter((name) => rules.forbidden.includes(name));
  if (both.length > 0)
    throw placementBadRequest(
      `Conflicting required and forbidden traits found in root_required: ${both.join(", ")}`,
      ERROR_CODES.badValue,
    );
  return { requiredTraits: new Set(rules.required.flat()), forbiddenTraits: new Set(rules.forbidden) };
}

function readSameSubtrees(query: URLSearchParams): readonly (readonly string[])[] {
  return query.getAll("same_subtree").map((value) => {
    const suffixes = [...new Set(value.split(",").map((suffix) => suffix.trim()))];
    if (suffixes.includes(""))
      throw placementBadRequest(
        "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
        ERROR_CODES.badValue,
      );
    return suffixes;
  });
}

function readGroups(call: PlacementCall): readonly RequestGroup[] {
  const suffixPattern = call.version.has(33) ? NAME_SUFFIX_PATTERN : NUMBER_SUFFIX_PATTERN;
  const key = new RegExp(`^(?:resources|required|member_of|in_tree)(${suffixPattern})?$`);
  const suffixes = new Set(
    [...call.query.keys()].flatMap((name) => {
      const match = key.exec(name);
      return match ? [match[1] ?? ""] : [];
    }),
  );
  return [...suffixes].map((suffix) => {
    const resources = call.query.getAll(`resources${suffix}`).at(-1);
    const traits = traitRules(call, suffix);
    const aggregates = aggregateRules(call, suffix);
    return requestGroup({
      suffix,
      resources: resources === undefined ? new Map() : parseResources(resources),
      requiredTraits: new Set(traits.required.filter((any) => any.length === 1).flat()),
      requiredAny: traits.required.filter((any) => any.length > 1).map((any) => new Set(any)),
      forbiddenTraits: new Set(traits.forbidden),
      memberOf: aggregates.memberOf.map((any) => new Set(any)),
      forbiddenAggregates: new Set(aggregates.forbidden),
      inTree: inTree(call, suffix),
    });
  });
}

/** From 1.36 on a group may do without resources if `same_subtree` names it. */
function checkGroups(call: PlacementCall, groups: readonly RequestGroup[], inSubtrees: ReadonlySet<string>): void {
  const bare = groups.filter((group) => group.resources.size === 0);
  if (!call.version.has(36)) {
    checkOrphans(groups, bare);
    return;
  }
  if (bare.length === groups.length) {
    throw placementBadRequest(
      "There must be at least one resources or resources[$S] parameter.",
      ERROR_CODES.missingValue,
    );
  }
  const outside = bare.map((group) => group.suffix).filter((suffix) => !inSubtrees.has(suffix));
  if (outside.length > 0) {
    throw placementBadRequest(
      `Resourceless suffixed group request should be specified in \`same_subtree\` query param: bad group(s) - ${listed(outside)}.`,
      ERROR_CODES.badValue,
    );
  }
  const suffixes = groups.map((group) => group.suffix);
  const unreal = [...inSubtrees].filter((suffix) => !suffixes.includes(suffix));
  if (unreal.length > 0) {
    throw placementBadRequest(
      `Real suffixes should be specified in \`same_subtree\`: ${listed(unreal)} not found in ${listed(suffixes)}.`,
      ERROR_CODES.badValue,
    );
  }
}

const listed = (words: readonly string[]): string => `[${words.map((word) => `'${word}'`).join(", ")}]`;

function checkOrphans(groups: readonly RequestGroup[], bare: readonly RequestGroup[]): void {
  const withTraits = bare.filter((group) => requiredRules(group).length > 0).map((group) => `required${group.suffix}`);
  if (withTraits.length > 0) {
    throw placementBadRequest(
      `All traits parameters must be associated with resources.  Found the following orphaned traits keys: ${withTraits.join(", ")}`,
    );
  }
  const withAggregates = bare
    .filter((group) => group.memberOf.length + group.forbiddenAggregates.size > 0)
    .map((group) => `member_of${group.suffix}`);
  if (withAggregates.length > 0) {
    throw placementBadRequest(
      `All member_of parameters must be associated with resources. Found the following orphaned member_of keys: ${withAggregates.join(", ")}`,
    );
  }
  if (bare.length > 0) throw placementBadRequest("All request groups must specify resources.");
  if (groups.length === 0)
    throw placementBadRequest("At least one request group (`resources` or `resources{$S}`) is required.");
}

function checkConflicts(groups: readonly RequestGroup[]): void {
  const conflicts = groups.flatMap((group) =>
    requiredRules(group)
      .filter((any) => any.every((name) => group.forbiddenTraits.has(name)))
      .map((any) => `required${group.suffix}: (${any.toSorted().join(", ")})`),
  );
  if (conflicts.length > 0) {
    throw placementBadRequest(
      `Conflicting required and forbidden traits found in the following traits keys: ${conflicts.toSorted().join(", ")}`,
    );
  }
}
