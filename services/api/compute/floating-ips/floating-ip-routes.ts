import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { NetworkRefresher } from "../neutron-ports/network-refresher.ts";
import type { FloatingIpDesk, PooledFloatingIp } from "./floating-ip-desk.ts";

/** The microversions that have the proxies. */
const of = (rule: string) => ({ until: 35, rule });
const IdParams = Type.Object({ id: Type.String() });
const NewFloatingIp = Type.Union([
  Type.Object({ pool: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Null()])) }),
  Type.Null(),
]);

interface Deps {
  readonly floatingIps: FloatingIpDesk;
  /** Null without Neutron. */
  readonly refresher: NetworkRefresher | null;
}

/** Registers `/os-floating-ips` and `/os-floating-ip-pools`, the proxies of the Networking API, which end after 2.35 as upstream. */
export function registerFloatingIpRoutes(http: Http, { floatingIps: desk, refresher }: Deps): void {
  const list = { config: of("os-floating-ips:list"), schema: { querystring: AnyQuery } };
  http.get("/os-floating-ips", list, async (request) => ({
    floating_ips: (await desk.list(callOf(request))).map(floatingIpView),
  }));

  const create = { config: of("os-floating-ips:create"), schema: { body: NewFloatingIp } };
  http.post("/os-floating-ips", create, async (request) => {
    const body = request.body as { readonly pool?: string | null } | null;
    return { floating_ip: floatingIpView(await desk.create(callOf(request), body?.pool || null)) };
  });

  const show = { config: of("os-floating-ips:show"), schema: { params: IdParams, querystring: AnyQuery } };
  http.get("/os-floating-ips/:id", show, async (request) => ({
    floating_ip: floatingIpView(await desk.show(callOf(request), request.params.id)),
  }));

  const remove = { config: of("os-floating-ips:delete"), schema: { params: IdParams } };
  http.delete("/os-floating-ips/:id", remove, async (request, reply) => {
    const call = callOf(request);
    const { floatingIp } = await desk.show(call, request.params.id);
    await desk.remove(call, floatingIp);
    if (floatingIp.serverUuid !== null) await refresher?.refresh([floatingIp.serverUuid]);
    return reply.code(202).send();
  });

  const pools = { config: of("os-floating-ip-pools"), schema: { querystring: AnyQuery } };
  http.get("/os-floating-ip-pools", pools, async (request) => ({
    floating_ip_pools: (await desk.pools(callOf(request))).map(({ id, name }) => ({ name: name || id })),
  }));
}

function floatingIpView({ floatingIp, pool }: PooledFloatingIp) {
  const { id, address, fixedAddress, serverUuid } = floatingIp;
  return { id, ip: address, fixed_ip: fixedAddress, instance_id: serverUuid, pool };
}
