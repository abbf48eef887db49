import type { FloatingIp, FloatingIps } from "../../core/stores/floating-ips.ts";
import type { AskedBy } from "../../core/stores/networking.ts";
import type { FakeAnswer } from "./fake-neighbour.ts";
import { neutronRefusal as refusal } from "./neutron-refusal.ts";

type Body = ReturnType<typeof JSON.parse>;

/** Answers calls to Neutron's floating IPs; null for other calls. */
export async function answerFloatingIps(
  floatingIps: FloatingIps,
  method: string,
  { pathname, searchParams: query }: URL,
  { body, by, ifMatch }: { readonly body: Body; readonly by: AskedBy; readonly ifMatch: unknown },
): Promise<FakeAnswer | null> {
  const [path, id = ""] = /^\/v2\.0\/floatingips(?:\/([^/]+))?$/.exec(pathname) ?? [];
  if (path === undefined) return null;
  switch (`${method}${id === "" ? "" : " id"}`) {
    case "GET": {
      const filter = {
        ...(query.has("id") && { id: query.get("id")! }),
        ...(query.has("tenant_id") && { projectId: query.get("tenant_id")! }),
        ...(query.has("floating_ip_address") && { address: query.get("floating_ip_address")! }),
        ...(query.has("port_id") && { portIds: query.getAll("port_id") }),
      };
      return { status: 200, body: { floatingips: (await floatingIps.floatingIps(filter, by)).map(documentOf) } };
    }
    case "POST": {
      const { floating_network_id: networkId, tenant_id: projectId } = body.floatingip;
      const outcome = await floatingIps.createFloatingIp({ projectId, networkId }, by);
      switch (outcome.kind) {
        case "created":
          return { status: 201, body: { floatingip: documentOf(outcome.floatingIp) } };
        case "no-address":
          return refusal(409, "IpAddressGenerationFailure", "No more IP addresses available on network.");
        case "over-quota":
          return refusal(409, "OverQuota", "Quota exceeded for resources: ['floatingip'].");
        case "forbidden":
          return refusal(403, "PolicyNotAuthorized", outcome.why);
        case "gone":
          return refusal(404, "NetworkNotFound", outcome.why);
        case "invalid":
          return refusal(400, "BadRequest", outcome.why);
        default:
          return outcome satisfies never;
      }
    }
    case "PUT id": {
      const { port_id: portId, fixed_ip_address: fixedAddress } = body.floatingip;
      const revision = Number(/^revision_number=(\d+)$/.exec(String(ifMatch))?.[1]);
      const outcome = await floatingIps.associate(
        { id, revision },
        portId === null ? null : { portId, fixedAddress },
        by,
      );
      if (outcome.kind === "associated") return { status: 200, body: { floatingip: { id } } };
      if (outcome.kind === "changed")
        return refusal(412, "RevisionNumberConstraintFailed", "Constrained to another revision.");
      if (outcome.kind === "taken") return refusal(409, "FloatingIPPortAlreadyAssociated", outcome.why);
      return refusal(400, "BadRequest", outcome.why);
    }
    case "DELETE id": {
      const outcome = await floatingIps.deleteFloatingIp(id, by);
      return outcome.kind === "deleted" ? { status: 204 } : refusal(404, "FloatingIPNotFound", outcome.why);
    }
    default:
      return null;
  }
}

function documentOf({ id, address, projectId, networkId, portId, fixedAddress, serverUuid, revision }: FloatingIp) {
  return {
    ...{ id, floating_ip_address: address, project_id: projectId, tenant_id: projectId, revision_number: revision },
    ...{ floating_network_id: networkId, port_id: portId, fixed_ip_address: fixedAddress },
    port_details: portId === null ? null : { device_id: serverUuid ?? "", device_owner: "compute:nova" },
  };
}
