import type { LimitSource, NamedLimits } from "../../core/stores/api/limit-source.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";
import { type DocumentFields, documentFields, textField } from "./read-document.ts";

const SERVICE = "Keystone";
const COMPUTE = "compute";
/** The model in which limits of projects stand for themselves. Under the other one, limits of domains and projects depend on each other. */
const MODEL = "flat";

/**
 * The unified limits that Keystone keeps for the compute service. The token of `client` must be of the scope of the system: to a token of a project
 * Keystone shows no limits of other projects, without a word.
 *
 * Limits of the region `region` come before those of no region. Without a region, those of no region come before the others, which must then be of one
 * region.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/#unified-limits, and `oslo_limit.limit`.
 */
export class KeystoneLimits implements LimitSource {
  readonly #client: Pick<NeighbourClient, "call">;
  readonly #region: string | null;
  #serviceId: Promise<string> | null = null;

  constructor(client: Pick<NeighbourClient, "call">, { region }: { readonly region: string | null }) {
    this.#client = client;
    this.#region = region;
  }

  async registered(): Promise<NamedLimits> {
    const limits = await this.#registered();
    if (limits.size > 0) return limits;
    // An operator may have made the service again, so that it has another id.
    this.#serviceId = null;
    return this.#registered();
  }

  #registered(): Promise<NamedLimits> {
    return this.#limits("/registered_limits", "registered_limits", "default_limit", {});
  }

  async ofProject(projectId: string): Promise<NamedLimits> {
    return this.#limits("/limits", "limits", "resource_limit", { project_id: projectId });
  }

  async #limits(
    path: string,
    list: string,
    amount: string,
    filters: Readonly<Record<string, string>>,
  ): Promise<NamedLimits> {
    const service_id = await this.#service();
    const wanted = { service_id, ...filters };
    const answer = await this.#get(`${path}?${new URLSearchParams(wanted)}`);
    const rows = listOf(answer, list).filter((row) =>
      Object.entries(wanted).every(([name, value]) => row[name] === value),
    );
    return pickRegion(rows, this.#region, (row) => numberOf(row[amount], list));
  }

  /** The id of the compute service. It is kept as long as limits are registered for it; the model of the limits is checked with it. */
  #service(): Promise<string> {
    if (this.#serviceId !== null) return this.#serviceId;
    const asked = this.#findService();
    this.#serviceId = asked;
    asked.catch(() => {
      if (this.#serviceId === asked) this.#serviceId = null;
    });
    return asked;
  }

  async #findService(): Promise<string> {
    const model = textField(documentFields((await this.#get("/limits/model")).model).name);
    if (model !== MODEL)
      throw malformed(`its limits are of the model ${model || "of no name"}, and only ${MODEL} is supported`);
    const services = listOf(await this.#get(`/services?type=${COMPUTE}`), "services").filter(
      (service) => service.type === COMPUTE,
    );
    const id = textField(services[0]?.id);
    if (services.length !== 1 || id === "")
      throw malformed(`it has ${services.length} services of the type ${COMPUTE}, and limits are those of exactly one`);
    return id;
  }

  async #get(path: string): Promise<DocumentFields> {
    return documentFields((await this.#client.call({ method: "GET", path, ...OWN_NAME, expect: [200] })).body);
  }
}

/** Returns one limit for each resource. Throws when several regions have one and none was chosen. */
function pickRegion(
  rows: readonly DocumentFields[],
  region: string | null,
  amountOf: (row: DocumentFields) => number,
): NamedLimits {
  const regionOf = (row: DocumentFields): string | null => textField(row.region_id) || null;
  const picked = new Map<string, number>();
  for (const [resource, alike] of Map.groupBy(rows, (row) => textField(row.resource_name))) {
    const others = region === null ? alike : [];
    const row = [
      ...alike.filter((one) => regionOf(one) === region),
      ...alike.filter((one) => regionOf(one) === null),
      ...others,
    ][0];
    if (row === undefined) continue;
    if (region === null && regionOf(row) !== null && new Set(others.map(regionOf)).size > 1)
      throw malformed(`several regions have limits of ${resource}: set BERTH_OPENSTACK_REGION to that of this api`);
    picked.set(resource, amountOf(row));
  }
  return picked;
}

function listOf(answer: DocumentFields, name: string): readonly DocumentFields[] {
  const list = answer[name];
  if (!Array.isArray(list)) throw malformed(`its answer has no list ${name}`);
  // Keystone says so where an operator has bounded its lists. What is missing in half a list would pass for unlimited.
  if (answer.truncated === true || (documentFields(answer.links).next ?? null) !== null)
    throw malformed(`its list ${name} is not complete: raise its list_limit`);
  return list.map(documentFields);
}

function numberOf(value: unknown, list: string): number {
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw malformed(`its list ${list} has a limit that is no integer`);
}

function malformed(why: string): NeighbourError {
  return new NeighbourError("bad-answer", `Keystone's limits cannot be used: ${why}`, { service: SERVICE });
}
