import type { AskedBy } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type {
  NewSecurityGroup,
  NewSecurityGroupRule,
  SecurityGroup,
  SecurityGroupFilter,
  SecurityGroupRefusal,
  SecurityGroupRule,
  SecurityGroups,
} from "../../core/stores/security-groups.ts";
import { expectedRefusal, IDS_MAX, type NeutronRefusal } from "./expected-refusal.ts";
import type { NeighbourAnswer, NeighbourCall, NeighbourClient } from "./neighbour-client.ts";
import { readPages } from "./neutron-pages.ts";
import { ruleBody, securityGroupOf, securityGroupRuleOf } from "./security-group-documents.ts";

const GROUPS = "/v2.0/security-groups";
const RULES = "/v2.0/security-group-rules";
/** The fields of a group whose rules are not asked for. */
const NAME_FIELDS = ["id", "name", "description", "tenant_id"];
const EXISTS = ["SecurityGroupRuleExists"];

type Kept<Kind extends string, Value> = { readonly kind: Kind } & Value;

/** The security groups of Neutron, over HTTP. */
export class NeutronSecurityGroups implements SecurityGroups {
  readonly #client: Pick<NeighbourClient, "call">;

  /** The caller closes the client. */
  constructor(client: Pick<NeighbourClient, "call">) {
    this.#client = client;
  }

  async groups(filter: SecurityGroupFilter, by: AskedBy): Promise<readonly SecurityGroup[]> {
    const { projectId, ids, withoutRules = false } = filter;
    const found: SecurityGroup[] = [];
    for (let at = 0; at < (ids?.length ?? 1); at += IDS_MAX) {
      const query = new URLSearchParams(ids?.slice(at, at + IDS_MAX).map((id) => ["id", id]));
      if (projectId !== undefined) query.append("tenant_id", projectId);
      for (const name of withoutRules ? NAME_FIELDS : []) query.append("fields", name);
      const listed = await readPages("security_groups", GROUPS, query.toString(), async (path) => {
        const answer = await this.#call({ method: "GET", path, ...by, expect: [200] });
        if ("why" in answer) throw new NetworkingError("bad-answer", answer.why);
        return answer;
      });
      for (const document of listed ?? []) found.push(securityGroupOf(document));
    }
    return found;
  }

  async createGroup(
    { projectId, name, description }: NewSecurityGroup,
    by: AskedBy,
  ): Promise<Kept<"created", { readonly group: SecurityGroup }> | SecurityGroupRefusal> {
    const body = { security_group: { name, description, tenant_id: projectId } };
    const answer = await this.#call({ method: "POST", path: GROUPS, body, ...by, expect: [201] });
    if ("why" in answer) return answer;
    return { kind: "created", group: securityGroupOf(fieldOf(answer, "security_group")) };
  }

  async updateGroup(
    id: string,
    values: { readonly name?: string; readonly description?: string },
    by: AskedBy,
  ): Promise<Kept<"updated", { readonly group: SecurityGroup }> | SecurityGroupRefusal> {
    const body = { security_group: values };
    const answer = await this.#call({ method: "PUT", path: below(GROUPS, id), body, ...by, expect: [200] });
    if ("why" in answer) return answer;
    return { kind: "updated", group: securityGroupOf(fieldOf(answer, "security_group")) };
  }

  deleteGroup(id: string, by: AskedBy): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    return this.#delete(below(GROUPS, id), by);
  }

  async rule(id: string, by: AskedBy): Promise<SecurityGroupRule | null> {
    const answer = await this.#call({ method: "GET", path: below(RULES, id), ...by, expect: [200] });
    if (!("why" in answer)) return securityGroupRuleOf(fieldOf(answer, "security_group_rule"));
    if (answer.kind === "gone") return null;
    throw new NetworkingError("bad-answer", answer.why);
  }

  async createRule(
    rule: NewSecurityGroupRule,
    by: AskedBy,
  ): Promise<Kept<"created", { readonly rule: SecurityGroupRule }> | SecurityGroupRefusal> {
    const body = { security_group_rule: ruleBody(rule) };
    const answer = await this.#call({ method: "POST", path: RULES, body, ...by, expect: [201] });
    if ("why" in answer) return answer;
    return { kind: "created", rule: securityGroupRuleOf(fieldOf(answer, "security_group_rule")) };
  }

  deleteRule(id: string, by: AskedBy): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    return this.#delete(below(RULES, id), by);
  }

  async #delete(path: string, by: AskedBy): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    const answer = await this.#call({ method: "DELETE", path, ...by, expect: [204] });
    return "why" in answer ? answer : { kind: "deleted" };
  }

  async #call(call: NeighbourCall): Promise<NeighbourAnswer | SecurityGroupRefusal> {
    try {
      return await this.#client.call(call);
    } catch (error) {
      return refusalOf(expectedRefusal(error, call));
    }
  }
}

function refusalOf({ code, type, why }: NeutronRefusal): SecurityGroupRefusal {
  switch (code) {
    case "not-found":
      return { kind: "gone", why };
    case "conflict":
      return { kind: EXISTS.includes(type ?? "") ? "exists" : "in-use", why };
    case "over-quota":
      return { kind: "over-quota", why };
    case "invalid":
      return { kind: "invalid", why };
    case "refused":
      return { kind: "forbidden", why };
    default:
      return code satisfies never;
  }
}

const below = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`;

const fieldOf = ({ body }: NeighbourAnswer, name: string): unknown =>
  (body as Readonly<Record<string, unknown>> | null)?.[name];
