import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { serviceIdOf } from "../hypervisors/service-id.ts";

/** The first of the microversions that have uuids, as security groups do in all of them. */
const UUIDS_MINOR = 53;

/** A server's addresses by the label of their network. */
type Addresses = Readonly<Record<string, readonly { readonly version: number; readonly addr: string }[]>>;

/** Returns the addresses of a server. There are none, since Berth connects no networks. */
export function addressesOf(_spec: ServerSpec): Addresses {
  return {};
}

/** Returns the names of a server's security groups. Every server is in the project's default group, as other groups are refused. */
export function securityGroupsOf(_spec: ServerSpec): { name: string }[] {
  return [{ name: "default" }];
}

/** Returns a server's security groups with all fields. Their rules are unknown, and their ids are derived so that they need not be stored. */
export function securityGroupsView(spec: ServerSpec) {
  return securityGroupsOf(spec).map(({ name }) => ({
    id: String(serviceIdOf("security group", `${spec.projectId} ${name}`, UUIDS_MINOR)),
    name,
    description: "Default security group",
    tenant_id: spec.projectId,
    rules: [],
  }));
}
