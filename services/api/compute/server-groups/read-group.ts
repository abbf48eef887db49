import type { ServerGroupRecord } from "../../../../core/stores/api/server-group-store.ts";
import { SERVER_GROUP_POLICIES, type ServerGroupPolicy } from "../../../../core/tasks/group-rule.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import type { CreateGroupBody, GroupView } from "./group-schemas.ts";

/** Microversions of the Compute API at which server groups changed. */
const OWNER_SHOWN = 13;
const SOFT_POLICIES = 15;
const ONE_POLICY = 64;

/** Reads the group that a body asks for. Refuses fields that its microversion does not have, by name. */
export function readGroup(
  { server_group: asked }: CreateGroupBody,
  minor: number,
): { readonly name: string; readonly policy: ServerGroupPolicy; readonly maxServerPerHost: number | null } {
  const [given, wrong] =
    minor >= ONE_POLICY ? (["policy", ["policies"]] as const) : (["policies", ["policy", "rules"]] as const);
  for (const field of wrong) {
    if (asked[field] !== undefined) {
      throw invalidField("server_group", asked, `Additional properties are not allowed ('${field}' was unexpected)`);
    }
  }
  const value = given === "policy" ? asked.policy : asked.policies?.[0];
  if (value === undefined) throw invalidField("server_group", asked, `'${given}' is a required property`);
  const known = SERVER_GROUP_POLICIES.filter((policy) => minor >= SOFT_POLICIES || !policy.startsWith("soft-"));
  const policy = known.find((name) => name === value);
  if (policy === undefined) throw invalidField(given, value, `It is not one of ${known.join(", ")}.`);
  const rules = asked.rules ?? {};
  if (policy !== "anti-affinity" && Object.keys(rules).length > 0) {
    throw badRequest("Only anti-affinity policy supports rules.");
  }
  const most = rules.max_server_per_host;
  return { name: asked.name, policy, maxServerPerHost: most === undefined ? null : Number(most) };
}

/** A group as the call's microversion shows it. */
export function groupView(group: ServerGroupRecord, minor: number): GroupView {
  const { maxServerPerHost } = group;
  return {
    id: group.uuid,
    name: group.name,
    ...(minor >= ONE_POLICY
      ? {
          policy: group.policy,
          rules: maxServerPerHost === null ? {} : { max_server_per_host: maxServerPerHost },
        }
      : { policies: [group.policy], metadata: {} }),
    members: [...group.members],
    ...(minor >= OWNER_SHOWN && { project_id: group.projectId, user_id: group.userId }),
  };
}
