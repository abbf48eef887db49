import type { PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import { listAggregates, setAggregates } from "./handlers/aggregates.ts";
import {
  deleteAllocations,
  listForConsumer,
  listForProvider,
  postAllocations,
  putAllocations,
} from "./handlers/allocations.ts";
import { listCandidates } from "./handlers/candidates.ts";
import {
  createInventory,
  deleteInventories,
  deleteInventory,
  listInventories,
  setInventories,
  showInventory,
  updateInventory,
} from "./handlers/inventories.ts";
import { createProvider, deleteProvider, listProviders, showProvider, updateProvider } from "./handlers/providers.ts";
import { reshape } from "./handlers/reshape.ts";
import {
  createClass,
  deleteClass,
  ensureClass,
  listClasses,
  renameClass,
  showClass,
} from "./handlers/resource-classes.ts";
import { showVersions } from "./handlers/root.ts";
import {
  deleteProviderTraits,
  deleteTrait,
  listProviderTraits,
  listTraits,
  putTrait,
  setProviderTraits,
  showTrait,
} from "./handlers/traits.ts";
import { listProviderUsages, listTotalUsages } from "./handlers/usages.ts";
import type { Answer, PlacementCall } from "./http.ts";
import { RULES, type RuleName } from "./placement-rules.ts";
import type { CandidateSource } from "./view-candidates.ts";

/** The handler of one verb of one path, with the checks before it. */
export interface PlacementRoute {
  readonly handle: (call: PlacementCall, store: PlacementStore, source: CandidateSource) => Promise<Answer> | Answer;
  /** Null for a route that needs no token. */
  readonly rule: RuleName | null;
  /** The first minor version with this route. Older versions get 404. */
  readonly since: number;
  /** Takes a JSON body: the content type is checked (415) and the body parsed. */
  readonly takesJson: boolean;
  /** Answers with JSON: an `accept` header that excludes JSON gets 406. */
  readonly givesJson: boolean;
}

type Handle = PlacementRoute["handle"];
const gives = (rule: RuleName, handle: Handle, since = 0): PlacementRoute => ({
  handle,
  rule,
  since,
  takesJson: false,
  givesJson: true,
});
const takes = (rule: RuleName, handle: Handle, since = 0): PlacementRoute => ({
  handle,
  rule,
  since,
  takesJson: true,
  givesJson: false,
});
const plain = (rule: RuleName, handle: Handle, since = 0): PlacementRoute => ({
  handle,
  rule,
  since,
  takesJson: false,
  givesJson: false,
});

const root: PlacementRoute = { handle: showVersions, rule: null, since: 0, takesJson: false, givesJson: false };
const rename = takes(RULES.classesUpdate, renameClass, 2);
const ensure = plain(RULES.classesUpdate, ensureClass, 7);

/** Every path and verb of the Placement API. PUT of a resource class changed its meaning in 1.7; see `routeFor`. */
export const PLACEMENT_ROUTES: Readonly<Record<string, Readonly<Record<string, PlacementRoute>>>> = {
  "": { GET: root },
  "/": { GET: root },
  "/resource_classes": {
    GET: gives(RULES.classesList, listClasses, 2),
    POST: takes(RULES.classesCreate, createClass, 2),
  },
  "/resource_classes/{name}": {
    GET: gives(RULES.classesShow, showClass, 2),
    PUT: rename,
    DELETE: plain(RULES.classesDelete, deleteClass, 2),
  },
  "/resource_providers": {
    GET: gives(RULES.providersList, listProviders),
    POST: takes(RULES.providersCreate, createProvider),
  },
  "/resource_providers/{uuid}": {
    GET: gives(RULES.providersShow, showProvider),
    DELETE: plain(RULES.providersDelete, deleteProvider),
    PUT: takes(RULES.providersUpdate, updateProvider),
  },
  "/resource_providers/{uuid}/inventories": {
    GET: gives(RULES.inventoriesList, listInventories),
    POST: takes(RULES.inventoriesCreate, createInventory),
    PUT: takes(RULES.inventoriesUpdate, setInventories),
    DELETE: plain(RULES.inventoriesDelete, deleteInventories),
  },
  "/resource_providers/{uuid}/inventories/{resource_class}": {
    GET: gives(RULES.inventoriesShow, showInventory),
    PUT: takes(RULES.inventoriesUpdate, updateInventory),
    DELETE: plain(RULES.inventoriesDelete, deleteInventory),
  },
  "/resource_providers/{uuid}/usages": { GET: gives(RULES.providerUsages, listProviderUsages) },
  "/resource_providers/{uuid}/aggregates": {
    GET: gives(RULES.aggregatesList, listAggregates, 1),
    PUT: takes(RULES.aggregatesUpdate, setAggregates, 1),
  },
  "/resource_providers/{uuid}/allocations": { GET: gives(RULES.providerAllocationsList, listForProvider) },
  "/resource_providers/{uuid}/traits": {
    GET: gives(RULES.providerTraitsList, listProviderTraits, 6),
    PUT: takes(RULES.providerTraitsUpdate, setProviderTraits, 6),
    DELETE: plain(RULES.providerTraitsDelete, deleteProviderTraits, 6),
  },
  "/allocations": { POST: takes(RULES.allocationsManage, postAllocations, 13) },
  "/allocations/{consumer_uuid}": {
    GET: gives(RULES.allocationsList, listForConsumer),
    PUT: takes(RULES.allocationsUpdate, putAllocations),
    DELETE: plain(RULES.allocationsDelete, deleteAllocations),
  },
  "/allocation_candidates": { GET: gives(RULES.candidatesList, listCandidates, 10) },
  "/traits": { GET: gives(RULES.traitsList, listTraits, 6) },
  "/traits/{name}": {
    GET: plain(RULES.traitsShow, showTrait, 6),
    PUT: plain(RULES.traitsUpdate, putTrait, 6),
    DELETE: plain(RULES.traitsDelete, deleteTrait, 6),
  },
  "/usages": { GET: gives(RULES.usages, listTotalUsages, 9) },
  "/reshaper": { POST: takes(RULES.reshape, reshape, 30) },
};

/** The paths grouped by the number of their parts and by their first part, which is never a parameter. */
const PATTERNS = Map.groupBy(
  Object.entries(PLACEMENT_ROUTES).map(([path, verbs]) => ({ parts: path.split("/"), verbs })),
  ({ parts }) => bucketOf(parts),
);

function bucketOf(parts: readonly string[]): string {
  return `${parts.length} ${parts[1] ?? ""}`;
}

export type Match =
  | { readonly kind: "found"; readonly route: PlacementRoute; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: "no-path" }
  | { readonly kind: "no-verb"; readonly allowed: readonly string[] };

/** Finds what a verb of a path does at a minor version. */
export function routeFor(method: string, path: string, minor: number): Match {
  const parts = path.split("/");
  for (const pattern of PATTERNS.get(bucketOf(parts)) ?? []) {
    const params = matchParts(pattern.parts, parts);
    if (params === null) continue;
    const route = pattern.verbs[method];
    if (route === undefined) return { kind: "no-verb", allowed: Object.keys(pattern.verbs) };
    return { kind: "found", route: route === rename && minor >= 7 ? ensure : route, params };
  }
  return { kind: "no-path" };
}

function matchParts(pattern: readonly string[], parts: readonly string[]): Readonly<Record<string, string>> | null {
  if (pattern.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (let index = 0; index < pattern.length; index += 1) {
    const expected = pattern[index]!;
    const part = parts[index]!;
    if (expected.startsWith("{")) {
      if (part === "") return null;
      const decoded = decode(part);
      if (decoded === null) return null;
      params[expected.slice(1, -1)] = decoded;
    } else if (part !== expected) return null;
  }
  return params;
}

function decode(part: string): string | null {
  try {
    const decoded = part.includes("%") ? decodeURIComponent(part) : part;
    // No name contains NUL, and databases reject it in queries.
    return decoded.includes("\0") ? null : decoded;
  } catch {
    return null;
  }
}
