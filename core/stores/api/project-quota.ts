import {
  type ClassAmounts,
  type ClassExcess,
  limitsOfProject,
  NO_SERVERS,
  type QuotaExcess,
  type QuotaLimits,
  SERVER_RESOURCES,
  type ServerAmounts,
  type ServerResource,
  type ServerUsage,
  type SetLimits,
  sumOf,
} from "./quota-limits.ts";

/**
 * The quotas of the servers of one project while calls are decided one after the other: each call that is admitted counts for those after it.
 * Source: Nova's `check_num_instances_quota`; a resource with the limit -1 is never exceeded.
 */
export class ProjectQuota {
  readonly #set: SetLimits;
  readonly #defaults: QuotaLimits;
  #ofProject: ServerAmounts;
  readonly #ofUsers: Map<string, ServerAmounts>;

  constructor(set: SetLimits, defaults: QuotaLimits, used: ServerUsage) {
    this.#set = set;
    this.#defaults = defaults;
    this.#ofProject = used.ofProject;
    this.#ofUsers = new Map(used.ofUsers);
  }

  /** Adds the amounts of a user's request and returns null, or changes nothing and returns the reason of the refusal. */
  admit(userId: string, asked: ServerAmounts, each: ServerAmounts = asked): QuotaExcess | null {
    const project = limitsOfProject(this.#set, this.#defaults);
    const own = this.#ofUsers.get(userId) ?? NO_SERVERS;
    const oversOfProject = oversOf(project, this.#ofProject, asked);
    const ofUser = this.#set.ofUsers.get(userId);
    const user = { ...project, ...ofUser };
    const oversOfUser = ofUser === undefined ? [] : oversOf(user, own, asked);
    const classes = classesOver(this.#set.ofClasses, this.#ofProject.classes, asked.classes);
    if (oversOfProject.length + oversOfUser.length + classes.length === 0) {
      this.#ofProject = sumOf(this.#ofProject, asked);
      this.#ofUsers.set(userId, sumOf(own, asked));
      return null;
    }
    const fittingUser = ofUser === undefined ? Number.POSITIVE_INFINITY : fittingOf(user, own, each);
    const fittingClasses = fittingOfClasses(this.#set.ofClasses, this.#ofProject.classes, each.classes);
    const fitting = Math.min(fittingOf(project, this.#ofProject, each), fittingUser, fittingClasses);
    return oversOfUser.length > 0
      ? { overs: oversOfUser, limits: user, used: own, classes, fitting }
      : { overs: oversOfProject, limits: project, used: this.#ofProject, classes, fitting };
  }
}

function classesOver(
  limits: ClassAmounts = NO_CLASSES,
  used: ClassAmounts = NO_CLASSES,
  asked: ClassAmounts = NO_CLASSES,
): readonly ClassExcess[] {
  return [...asked].flatMap(([name, amount]) => {
    const limit = limits.get(name) ?? -1;
    const already = used.get(name) ?? 0;
    return amount > 0 && limit >= 0 && already + amount > limit ? [{ name, limit, used: already }] : [];
  });
}

function fittingOfClasses(
  limits: ClassAmounts = NO_CLASSES,
  used: ClassAmounts = NO_CLASSES,
  each: ClassAmounts = NO_CLASSES,
): number {
  const rooms = [...each].map(([name, amount]) => {
    const limit = limits.get(name) ?? -1;
    return limit < 0 || amount === 0
      ? Number.POSITIVE_INFINITY
      : Math.max(0, Math.floor((limit - (used.get(name) ?? 0)) / amount));
  });
  return Math.min(...rooms);
}

const NO_CLASSES: ClassAmounts = new Map();

function oversOf(limits: ServerAmounts, used: ServerAmounts, asked: ServerAmounts): readonly ServerResource[] {
  return SERVER_RESOURCES.filter(
    (resource) => asked[resource] > 0 && limits[resource] >= 0 && used[resource] + asked[resource] > limits[resource],
  );
}

function fittingOf(limits: ServerAmounts, used: ServerAmounts, each: ServerAmounts): number {
  const rooms = SERVER_RESOURCES.map((resource) =>
    limits[resource] < 0 || each[resource] === 0
      ? Number.POSITIVE_INFINITY
      : Math.floor((limits[resource] - used[resource]) / each[resource]),
  );
  return Math.max(0, Math.min(...rooms));
}
