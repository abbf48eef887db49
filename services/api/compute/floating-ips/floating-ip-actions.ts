import { isIP, isIPv4 } from "node:net";
import { hydrateServer } from "../../cells/hydrate-servers.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, invalidField, notFound, unavailable } from "../../http/fault.ts";
import type { ActionBody } from "../server-actions/action-body.ts";
import type { ActionCall, ActionDeps, ActionResult } from "../server-actions/action-call.ts";
import { serverNotFound } from "../servers/request-finder.ts";

type Deps = Pick<ActionDeps, "finder" | "cells" | "neutron" | "floatingIps" | "refresher">;

/**
 * Lets a floating IP lead to a fixed address of a server: the given one, or its first IPv4 address. Like Nova, it does so in every state of the server, and
 * takes the floating IP away from another server.
 *
 * Source: `_add_floating_ip` in nova/api/openstack/compute/floating_ips.py.
 */
export async function addFloatingIp(deps: Deps, { id, call, body }: ActionCall): Promise<ActionResult> {
  const address = readAddress(body.refuseOthers("address", "fixed_address").require("address"), "address");
  const asked = body.has("fixed_address") ? readAddress(body, "fixed_address") : null;
  const { uuid, fixed } = await findServer(deps, call, id);
  const fixedAddress = chooseFixed({ id, address, asked }, fixed);
  const floatingIp = await deps.floatingIps.byAddress(call, address, {
    ...{ ambiguous: badRequest, missing: "floating IP not found" },
  });
  const failed = (why: string) =>
    badRequest(
      `Unable to associate floating IP ${address} to fixed IP ${fixedAddress} for instance ${id}. Error: ${why}`,
    );
  const portId = await portWith(deps, call, uuid, fixedAddress);
  if (portId === null) throw failed(`Fixed IP not found for address ${fixedAddress}.`);
  const outcome = await deps.floatingIps.associate(call, floatingIp, { portId, fixedAddress });
  if (outcome.kind === "taken") throw badRequest(outcome.why);
  if (outcome.kind === "refused") throw failed(outcome.why);
  await deps.refresher?.refresh([uuid, ...(floatingIp.serverUuid === null ? [] : [floatingIp.serverUuid])]);
  return { status: 202 };
}

/** Takes a floating IP away from a server. One that has come to lead to another server meanwhile stays there. */
export async function removeFloatingIp(deps: Deps, { id, call, body }: ActionCall): Promise<ActionResult> {
  const address = readAddress(body.refuseOthers("address").require("address"), "address");
  const record = await deps.finder.findPresent(id, call);
  const floatingIp = await deps.floatingIps.byAddress(call, address, {
    ...{ ambiguous: conflict, missing: `Floating IP not found for address ${address}.` },
  });
  if (floatingIp.portId === null || floatingIp.serverUuid !== record.serverUuid)
    throw conflict(`Floating IP ${address} is not associated with instance ${id}.`);
  const outcome = await deps.floatingIps.associate(call, floatingIp, null);
  if (outcome.kind !== "associated") throw badRequest(outcome.why);
  await deps.refresher?.refresh([record.serverUuid]);
  return { status: 202 };
}

/** Reads an IPv4 or IPv6 address of an action. */
export function readAddress(body: ActionBody, name: string): string {
  const value = body.text(name);
  if (value === undefined || isIP(value) === 0)
    throw invalidField(name, value, `${String(value).slice(0, 100)} is not an IPv4 or IPv6 address`);
  return value;
}

/** Finds a server with its fixed addresses, which its record in its cell has. */
async function findServer(
  { finder, cells }: Pick<Deps, "finder" | "cells">,
  call: KnownCall,
  id: string,
): Promise<{ readonly uuid: string; readonly fixed: readonly string[] }> {
  const record = await finder.findPresent(id, call);
  const known = await hydrateServer(record, cells, { withDeleted: false });
  if (known === null) throw serverNotFound(id);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { uuid, spec } = known.server;
  if (spec.ports.length === 0) throw badRequest("Instance network is not ready yet");
  return { uuid, fixed: spec.ports.flatMap(({ addresses }) => addresses) };
}

function chooseFixed(
  { id, address, asked }: { readonly id: string; readonly address: string; readonly asked: string | null },
  fixed: readonly string[],
): string {
  if (fixed.length === 0) throw badRequest("No fixed IPs associated to instance");
  if (asked !== null && !fixed.includes(asked)) throw badRequest("Specified fixed address not assigned to instance");
  const chosen = asked ?? fixed.find((one) => isIPv4(one));
  if (chosen !== undefined) return chosen;
  throw badRequest(
    `Unable to associate floating IP ${address} to any fixed IPs for instance ${id}. Instance has no fixed IPv4 addresses to associate.`,
  );
}

/** Finds the port of a server that has an address now. */
async function portWith(
  { neutron }: Pick<Deps, "neutron">,
  call: KnownCall,
  serverUuid: string,
  address: string,
): Promise<string | null> {
  if (neutron === null) throw notFound("floating IP not found");
  const filter = { deviceIds: [serverUuid], address };
  const [port] = await askNeighbour(() => neutron.networking.ports(filter, askedBy(neutron, call)));
  return port?.id ?? null;
}
