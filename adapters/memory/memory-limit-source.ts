import type { LimitSource, NamedLimits } from "../../core/stores/api/limit-source.ts";

/** The in-process twin of Keystone's unified limits. */
export class MemoryLimitSource implements LimitSource {
  readonly #registered = new Map<string, number>();
  readonly #ofProjects = new Map<string, Map<string, number>>();
  /** The error of all calls while Keystone does not answer. */
  broken: Error | null = null;
  /** How many calls were made. */
  asked = 0;

  /** Sets the limit of a project, or (null) the registered one. */
  set(projectId: string | null, resource: string, limit: number): void {
    if (projectId === null) {
      this.#registered.set(resource, limit);
      return;
    }
    const own = this.#ofProjects.get(projectId) ?? new Map<string, number>();
    this.#ofProjects.set(projectId, own.set(resource, limit));
  }

  async registered(): Promise<NamedLimits> {
    return this.#answer(this.#registered);
  }

  async ofProject(projectId: string): Promise<NamedLimits> {
    return this.#answer(this.#ofProjects.get(projectId) ?? new Map());
  }

  #answer(limits: NamedLimits): NamedLimits {
    this.asked += 1;
    if (this.broken !== null) throw this.broken;
    return new Map(limits);
  }
}
