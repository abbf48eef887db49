import type { LimitSource, NamedLimits } from "../../../../core/stores/api/limit-source.ts";
import {
  onlyLimits,
  QUOTA_RESOURCES,
  type QuotaLimits,
  type QuotaResource,
  type SetLimits,
  type StatedLimits,
} from "../../../../core/stores/api/quota-limits.ts";
import { BoundedCache } from "../../../../runtime/bounded-cache.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { unavailable } from "../../http/fault.ts";
import { UNIFIED_NAMES } from "./unified-names.ts";

/** How the names of limits of resource classes begin. */
const CLASS = "class:";
const PROJECTS_MAX = 10_000;
/** The key of the registered limits among those of projects. No project has an empty id. */
const REGISTERED = "";
/** Limits that projects can have of their own; for the other ones the registered limits hold, as in Nova. */
const OF_PROJECTS: readonly QuotaResource[] = ["cores", "instances", "ram"];
/** A resource without a registered limit is not limited, but for this one, of which there may be none then. Source: `unified_limits_resource_list` of Nova. */
const REQUIRED: QuotaResource = "instances";

/**
 * The limits of projects as Keystone states them, at most `cacheMs` old. Calls that need them meanwhile share one question. When Keystone does not
 * answer, nothing is known, so the call that asked is answered with 503 and why; limits that are older are never used.
 */
export class UnifiedLimits {
  readonly #source: LimitSource;
  readonly #events: Pick<ApiEvents, "limitsUnknown">;
  readonly #cacheMs: number;
  readonly #known: BoundedCache<NamedLimits>;
  readonly #asking = new Map<string, Promise<NamedLimits>>();

  constructor(
    deps: {
      readonly source: LimitSource;
      readonly clock: Clock;
      readonly events: Pick<ApiEvents, "limitsUnknown">;
    },
    { cacheMs }: { readonly cacheMs: number },
  ) {
    this.#source = deps.source;
    this.#events = deps.events;
    this.#cacheMs = cacheMs;
    this.#known = new BoundedCache({ clock: deps.clock, entriesMax: PROJECTS_MAX });
  }

  /** The limits that hold for the project. */
  async enforced(projectId: string): Promise<StatedLimits> {
    const both = await this.#both(projectId);
    const limits = limitsOf(both, (resource) => (resource === REQUIRED ? 0 : -1));
    const classes = classLimits(both);
    // Dedicated CPUs are counted apart where they have a limit of their own, and otherwise together with the shared ones.
    return classes.has("PCPU")
      ? { ...limits, cores: -1, classes: classes.set("VCPU", limits.cores) }
      : { ...limits, classes };
  }

  /** The same as what operators have set, and nothing besides it. */
  async asSet(projectId: string): Promise<SetLimits> {
    return onlyLimits(await this.enforced(projectId));
  }

  /** The limits as quota sets show them. A resource without a registered limit has 0, as in Nova. */
  async shown(projectId: string): Promise<QuotaLimits> {
    return limitsOf(await this.#both(projectId), () => 0);
  }

  /** The registered limits as quota sets and classes show them. */
  async registered(): Promise<QuotaLimits> {
    return limitsOf({ registered: await this.#read(REGISTERED), own: new Map() }, () => 0);
  }

  async #both(projectId: string): Promise<Limits> {
    const [registered, own] = await Promise.all([this.#read(REGISTERED), this.#read(projectId)]);
    return { registered, own };
  }

  async #read(key: string): Promise<NamedLimits> {
    return this.#known.get(key) ?? this.#asking.get(key) ?? this.#ask(key);
  }

  #ask(key: string): Promise<NamedLimits> {
    const asked = this.#answerOf(key).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asked);
    return asked;
  }

  async #answerOf(key: string): Promise<NamedLimits> {
    try {
      const limits = await (key === REGISTERED ? this.#source.registered() : this.#source.ofProject(key));
      this.#known.set(key, limits, this.#cacheMs);
      return limits;
    } catch (error) {
      this.#events.limitsUnknown(error);
      throw unavailable(
        "Keystone has the limits of projects, and this api cannot read them now, so nothing that counts against a limit is accepted. Try again later; if it lasts, ask an operator to look at the api's log.",
      );
    }
  }
}

/** The limits of resource classes other than those that quotas name. A project has one of its own only where a registered one is. */
function classLimits({ registered, own }: Limits): Map<string, number> {
  const named = new Set<string | null>(Object.values(UNIFIED_NAMES));
  const classes = [...registered].filter(([name]) => name.startsWith(CLASS) && !named.has(name));
  return new Map(classes.map(([name, limit]) => [name.slice(CLASS.length), own.get(name) ?? limit]));
}

interface Limits {
  readonly registered: NamedLimits;
  readonly own: NamedLimits;
}

function limitsOf({ registered, own }: Limits, unregistered: (resource: QuotaResource) => number): QuotaLimits {
  const entries = QUOTA_RESOURCES.map((resource): [QuotaResource, number] => {
    const name = UNIFIED_NAMES[resource];
    if (name === null) return [resource, -1];
    const ofProject = OF_PROJECTS.includes(resource) ? own.get(name) : undefined;
    return [resource, ofProject ?? registered.get(name) ?? unregistered(resource)];
  });
  return Object.fromEntries(entries) as QuotaLimits;
}
