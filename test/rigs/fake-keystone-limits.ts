export const COMPUTE_SERVICE = "5e41ce00000000000000000000000001";

interface LimitRow {
  readonly service_id: string;
  readonly region_id: string | null;
  readonly resource_name: string;
  readonly default_limit?: number;
  readonly project_id?: string;
  readonly resource_limit?: number;
}

/** The unified limits of a fake Keystone. */
export class FakeKeystoneLimits {
  registered: LimitRow[] = [];
  ofProjects: LimitRow[] = [];
  services: { readonly id: string; readonly type: string }[] = [
    { id: "5e41ce00000000000000000000000002", type: "volumev3" },
    { id: COMPUTE_SERVICE, type: "compute" },
  ];
  model = "flat";
  truncated = false;
  /** The path of the list that has another page, or null. */
  continued: string | null = null;

  /** Sets the limit of a project, or (null) the registered one. */
  set(projectId: string | null, resource: string, limit: number, region: string | null = null): void {
    const key = { service_id: COMPUTE_SERVICE, region_id: region, resource_name: resource };
    const isOther = (row: LimitRow) => row.resource_name !== resource || row.region_id !== region;
    if (projectId === null) this.registered = [...this.registered.filter(isOther), { ...key, default_limit: limit }];
    else
      this.ofProjects = [
        ...this.ofProjects.filter((row) => row.project_id !== projectId || isOther(row)),
        { ...key, project_id: projectId, resource_limit: limit },
      ];
  }

  /** Keystone's answer to a GET, or null for another path. As Keystone, it shows a token of a project no limits of other projects. */
  answer(path: string, query: URLSearchParams, isOfSystem: boolean): unknown {
    const fits = (row: LimitRow) => query.get("service_id") === null || row.service_id === query.get("service_id");
    const isOfProject = (row: LimitRow) =>
      query.get("project_id") === null || row.project_id === query.get("project_id");
    const links = { next: this.continued === path ? `http://keystone${path}?marker=1` : null };
    switch (path) {
      case "/v3/limits/model":
        return { model: { name: this.model, description: "" } };
      case "/v3/services":
        return { services: this.services, links };
      case "/v3/registered_limits":
        return { registered_limits: this.registered.filter(fits), links, truncated: this.truncated };
      case "/v3/limits":
        return { limits: isOfSystem ? this.ofProjects.filter(fits).filter(isOfProject) : [], links };
      default:
        return null;
    }
  }
}
