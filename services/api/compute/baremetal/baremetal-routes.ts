import { Type } from "typebox";
import type { Http } from "../../http/create-http.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";

/** The microversions that have the proxy. Nova has no rule for what it does not pass on. */
const of = (rule: string | null) => ({ until: 35, rule });
const Params = Type.Object({ id: Type.String() });
const ActionBody = Type.Object(
  { add_interface: Type.Optional(Type.Unknown()), remove_interface: Type.Optional(Type.Unknown()) },
  { additionalProperties: false, minProperties: 1, maxProperties: 1 },
);
const ACTIONS = new Map([
  ["add_interface", { rule: null }],
  ["remove_interface", { rule: null }],
]);

/**
 * `/os-baremetal-nodes`, which stands for Ironic up to 2.35. Berth does not call Ironic: it answers as a Nova without one, and refuses changes as every Nova
 * does. Source: nova/api/openstack/compute/baremetal_nodes.py
 */
export function registerBaremetalRoutes(http: Http): void {
  const refuse = (fault: Fault) => async () => {
    throw fault;
  };
  const unsupported = refuse(new Fault(501, "The requested functionality is not supported."));
  const askIronic = (command: string) =>
    badRequest(`Command not supported. Please use Ironic command ${command} to perform this action.`);
  const list = { config: of("os-baremetal-nodes:list"), schema: { querystring: AnyQuery } };
  http.get("/os-baremetal-nodes", list, unsupported);
  const show = { config: of("os-baremetal-nodes:show"), schema: { params: Params, querystring: AnyQuery } };
  http.get("/os-baremetal-nodes/:id", show, unsupported);
  http.post("/os-baremetal-nodes", { config: of(null) }, refuse(askIronic("node-create")));
  const remove = { config: of(null), schema: { params: Params } };
  http.delete("/os-baremetal-nodes/:id", remove, refuse(askIronic("node-delete")));
  const act = { config: { ...of(null), actions: ACTIONS }, schema: { params: Params, body: ActionBody } };
  http.post("/os-baremetal-nodes/:id/action", act, async ({ body }) => {
    throw askIronic(body.add_interface === undefined ? "port-delete" : "port-create");
  });
}
