import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { HostBinding } from "../../core/stores/port-bindings.ts";
import type { FakeAnswer } from "./fake-neighbour.ts";
import { neutronRefusal as refusal } from "./neutron-refusal.ts";

type Body = ReturnType<typeof JSON.parse>;

/** Answers calls about the bindings of ports and about the extension as Neutron 21.0 does. Null for other calls. */
export async function answerBindings(
  twin: MemoryNetworking,
  method: string,
  { pathname }: URL,
  body: Body,
): Promise<FakeAnswer | null> {
  if (pathname.startsWith("/v2.0/extensions/"))
    return pathname.endsWith("/binding-extended") && (await twin.hasBindings())
      ? { status: 200, body: { extension: { alias: "binding-extended" } } }
      : refusal(404, "ExtensionNotFound", "Extension could not be found.");
  const [, id, host, verb] = /^\/v2\.0\/ports\/([^/]+)\/bindings(?:\/([^/]+))?(?:\/(activate))?$/.exec(pathname) ?? [];
  if (id === undefined) return null;
  const gone = refusal(404, "PortNotFound", `Port ${id} could not be found.`);
  switch (`${method} ${host === undefined ? "all" : (verb ?? "one")}`) {
    case "GET all": {
      const bindings = await twin.bindings(id);
      if (bindings === null) return gone;
      const isBound = bindings.some(({ isActive }) => isActive) || twin.lacksActiveBinding(id);
      const all = isBound ? bindings : [BOUND_NOWHERE, ...bindings];
      return { status: 200, body: { bindings: all.map(documentOf) } };
    }
    case "POST all": {
      const { host: to, vnic_type: vnicType = "normal", profile = {} } = body.binding;
      const made = await twin.createBinding(id, { host: to, vnicType, profile });
      if (made.kind === "created") return { status: 201, body: { binding: documentOf(made.binding) } };
      if (made.kind === "gone") return gone;
      if (made.kind === "exists") return refusal(409, "PortBindingAlreadyExists", "The binding exists already.");
      return refusal(500, "HTTPInternalServerError", "Request Failed: internal server error.");
    }
    case "PUT activate": {
      const active = (await twin.bindings(id))?.find(({ isActive }) => isActive);
      if (active?.host === host) return refusal(409, "PortBindingAlreadyActive", "The binding is active already.");
      const outcome = await twin.activateBinding(id, host ?? "");
      return outcome === "active" ? { status: 200, body: {} } : refusal(404, "PortBindingNotFound", "No such binding.");
    }
    case "DELETE one":
      await twin.deleteBinding(id, host ?? "");
      return { status: 204 };
    default:
      return refusal(404, "HTTPNotFound", "The resource could not be found.");
  }
}

/** The active binding of a port without a host. */
const BOUND_NOWHERE = { host: "", isActive: true, vifType: "unbound", vifDetails: {}, vnicType: "normal", profile: {} };

const documentOf = ({ host, isActive, vifType, vifDetails, vnicType, profile }: HostBinding) => ({
  ...{ host, status: isActive ? "ACTIVE" : "INACTIVE", project_id: "one" },
  ...{ vif_type: vifType, vif_details: vifDetails, vnic_type: vnicType, profile },
});
