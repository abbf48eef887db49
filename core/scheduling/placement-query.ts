import type { Flavor } from "../../proto/gen/berth/shared.ts";
import {
  type CandidateRequest,
  type GroupPolicy,
  type GroupRules,
  OPEN_HOSTS,
  type RequestGroup,
  type RootRules,
  requestGroup,
} from "../candidates/request.ts";
import { type ResourceClass, resourceClass, type Trait, trait } from "../ledger/ids.ts";

/** What a request asks of the ledger, as Nova turns it into a query to Placement (ResourceRequest.from_request_spec). */
export interface PlacementQuery extends GroupRules {
  readonly groups: readonly RequestGroup[];
  readonly groupPolicy: GroupPolicy;
  readonly rootRules?: RootRules;
  /** Only these hosts; without it, any. */
  readonly onlyHosts?: ReadonlySet<string>;
}

/** The search for the hosts that a query fits on, among those that are open. */
export function searchOf({ onlyHosts, ...query }: PlacementQuery): CandidateRequest {
  return { ...query, trees: onlyHosts ? { ...OPEN_HOSTS, onlyHosts } : OPEN_HOSTS, limit: 1 };
}

export type PlacementQueryOutcome =
  | { readonly kind: "query"; readonly query: PlacementQuery }
  /** `allowed` continues "must be …". An empty `value`: the key is missing. */
  | { readonly kind: "bad-extra-spec"; readonly key: string; readonly value: string; readonly allowed: string };

const SPEC_KEY = /^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$/;
const NAME = /^[A-Z0-9_]{1,255}$/;
const AMOUNT = /^\d{1,10}$/;
const AMOUNT_MAX = 2 ** 31 - 1;

interface GroupDraft {
  readonly resources: Map<ResourceClass, number>;
  readonly required: Set<Trait>;
  readonly forbidden: Set<Trait>;
}

/**
 * The request groups of a flavor: VCPU, MEMORY_MB and DISK_GB from its size, unless an extra spec names the class in any group;
 * `resources:CLASS=N` and `resourcesX:CLASS=N` (0 takes the class out), `trait:NAME` and `traitX:NAME` = required or
 * forbidden, `group_policy` = none or isolate. Extra specs of other kinds are none of placement's business and are left alone.
 *
 * Refuses what Placement would refuse of such a query: several numbered groups without a group_policy, traits of a group that
 * asks for nothing, nothing asked for at all. Unlike Nova, which logs and ignores, it refuses a value that it cannot read.
 */
export function placementQuery(flavor: Flavor): PlacementQueryOutcome {
  const drafts = new Map<string, GroupDraft>();
  let groupPolicy: GroupPolicy | null = null;
  for (const [key, value] of Object.entries(flavor.extraSpecs)) {
    if (key === "group_policy") {
      if (value !== "none" && value !== "isolate") return bad(key, value, "none or isolate");
      groupPolicy = value;
      continue;
    }
    const match = SPEC_KEY.exec(key);
    if (!match) continue;
    const [, prefix, suffix = "", name = ""] = match;
    if (!NAME.test(name)) return bad(key, value, "a key whose name has upper-case letters, digits and _ only");
    const refused =
      prefix === "resources"
        ? addResource(draftOf(drafts, suffix), key, name, value)
        : addTrait(draftOf(drafts, suffix), key, name, value);
    if (refused) return refused;
  }
  addFlavorSize(drafts, flavor);
  return assemble(drafts, groupPolicy);
}

/** The refusal as one line that names the key, the value and what is allowed. */
export function describeBadExtraSpec(refusal: PlacementQueryOutcome & { readonly kind: "bad-extra-spec" }): string {
  return refusal.value === ""
    ? `extra spec ${refusal.key} is missing; it must be ${refusal.allowed}`
    : `extra spec ${refusal.key}=${refusal.value} must be ${refusal.allowed}`;
}

type BadExtraSpec = PlacementQueryOutcome & { readonly kind: "bad-extra-spec" };

function bad(key: string, value: string, allowed: string): BadExtraSpec {
  return { kind: "bad-extra-spec", key, value, allowed };
}

function draftOf(drafts: Map<string, GroupDraft>, suffix: string): GroupDraft {
  const known = drafts.get(suffix);
  if (known) return known;
  const draft: GroupDraft = { resources: new Map(), required: new Set(), forbidden: new Set() };
  drafts.set(suffix, draft);
  return draft;
}

function addResource(draft: GroupDraft, key: string, name: string, value: string): BadExtraSpec | null {
  if (!AMOUNT.test(value) || Number(value) > AMOUNT_MAX)
    return bad(key, value, `a whole number from 0 to ${AMOUNT_MAX}`);
  draft.resources.set(resourceClass(name), Number(value));
  return null;
}

function addTrait(draft: GroupDraft, key: string, name: string, value: string): BadExtraSpec | null {
  if (value === "required") draft.required.add(trait(name));
  else if (value === "forbidden") draft.forbidden.add(trait(name));
  else return bad(key, value, "required or forbidden");
  return null;
}

/** The flavor's own numbers, where no extra spec of any group speaks of the class. */
function addFlavorSize(drafts: Map<string, GroupDraft>, flavor: Flavor): void {
  const named = (name: string) => [...drafts.values()].some((draft) => draft.resources.has(resourceClass(name)));
  const size: [string, number][] = [];
  if (!named("VCPU") && !named("PCPU")) size.push(["VCPU", flavor.vcpus]);
  if (!named("MEMORY_MB")) size.push(["MEMORY_MB", flavor.memoryMib]);
  if (!named("DISK_GB"))
    size.push(["DISK_GB", flavor.diskGib + flavor.ephemeralGib + Math.ceil(flavor.swapMib / 1024)]);
  for (const [name, amount] of size) draftOf(drafts, "").resources.set(resourceClass(name), amount);
}

function assemble(drafts: ReadonlyMap<string, GroupDraft>, groupPolicy: GroupPolicy | null): PlacementQueryOutcome {
  const groups: RequestGroup[] = [];
  for (const [suffix, draft] of drafts) {
    const resources = new Map([...draft.resources].filter(([, amount]) => amount > 0));
    const [name] = [...draft.required, ...draft.forbidden];
    if (resources.size > 0) {
      groups.push(
        requestGroup({ suffix, resources, requiredTraits: draft.required, forbiddenTraits: draft.forbidden }),
      );
    } else if (name !== undefined) {
      const value = draft.required.has(name) ? "required" : "forbidden";
      return bad(`trait${suffix}:${name}`, value, `in a group that asks for resources, as resources${suffix}:CLASS=N`);
    }
  }
  const [first] = groups;
  if (!first) return bad("resources:CLASS", "", "given, since the flavor asks for nothing");
  if (groupPolicy === null && groups.filter((group) => group.suffix !== "").length > 1) {
    return bad("group_policy", "", "none or isolate, since there is more than one numbered request group");
  }
  return { kind: "query", query: { groups, groupPolicy: groupPolicy ?? "none" } };
}
