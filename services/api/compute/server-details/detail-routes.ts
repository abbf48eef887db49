import { Type } from "typebox";
import { ASKS_NOTHING } from "../../cells/console-question.ts";
import { callOf, type KnownCall, mayDo } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { conflict, notFound, unavailable } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";
import { securityGroupsShown } from "../security-groups/security-group-routes.ts";
import { findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { powerStateOf } from "../servers/shown-state.ts";
import { diagnosticsView } from "./diagnostics-view.ts";
import { addressesOf } from "./network-parts.ts";
import { topologyView } from "./topology-view.ts";

const TOPOLOGY_FROM_MINOR = 78;

type DetailDeps = Pick<ServerDeps, "finder" | "cells" | "clock" | "securityGroups">;

const ofServer = { params: Type.Object({ id: Type.String() }), querystring: AnyQuery };
const ofLabel = { params: Type.Object({ id: Type.String(), label: Type.String() }), querystring: AnyQuery };

/** The paths below `/servers/{id}` that show single parts of a server. */
export function registerDetailRoutes(http: Http, deps: DetailDeps): void {
  const specOf = async (call: KnownCall, id: string) => (await findServer(deps, call, id)).known.server.spec;

  http.get("/servers/:id/ips", { config: { rule: "ips:index" }, schema: ofServer }, async (request) => {
    return { addresses: addressesOf(await specOf(callOf(request), request.params.id)) };
  });

  http.get("/servers/:id/ips/:label", { config: { rule: "ips:show" }, schema: ofLabel }, async (request) => {
    const { id, label } = request.params;
    const addresses = addressesOf(await specOf(callOf(request), id));
    if (!Object.hasOwn(addresses, label)) throw notFound("Instance is not a member of specified network");
    return { [label]: addresses[label] };
  });

  http.get(
    "/servers/:id/os-security-groups",
    { config: { rule: "os-security-groups:list" }, schema: ofServer },
    async (request) => {
      const call = callOf(request);
      const { uuid, projectId } = await specOf(call, request.params.id);
      const desk = deps.securityGroups;
      const groups = (await desk?.ofServers(call, [{ uuid, projectId }], { rules: true }))?.get(uuid) ?? [];
      return { security_groups: desk === null ? [] : await securityGroupsShown(desk, call, groups) };
    },
  );

  http.get(
    "/servers/:id/topology",
    { config: { since: TOPOLOGY_FROM_MINOR, rule: "compute:server:topology:index" }, schema: ofServer },
    async (request) => {
      return readTopology(deps, callOf(request), request.params.id);
    },
  );

  const diagnostics = { config: { rule: "os-server-diagnostics" }, schema: ofServer };
  http.get("/servers/:id/diagnostics", diagnostics, async (request) => {
    return readDiagnostics(deps, callOf(request), request.params.id);
  });

  registerPasswordRoutes(http, deps);
}

/**
 * The password that a guest sets and encrypts for its owner. Guests have no way to send one, so it is empty and there is nothing to remove,
 * as in Nova when no guest has sent any.
 */
function registerPasswordRoutes(http: Http, deps: DetailDeps): void {
  http.get(
    "/servers/:id/os-server-password",
    { config: { rule: "os-server-password:show" }, schema: ofServer },
    async (request) => {
      await findServer(deps, callOf(request), request.params.id);
      return { password: "" };
    },
  );

  http.delete(
    "/servers/:id/os-server-password",
    { config: { rule: "os-server-password:clear" }, schema: ofServer },
    async (request, reply) => {
      await findServer(deps, callOf(request), request.params.id);
      return reply.code(204).send();
    },
  );
}

/** Only callers whom the policy lets, by default administrators, see the host's nodes and CPUs, which the host is asked for. When it does not answer, they are left out. */
async function readTopology(deps: DetailDeps, call: KnownCall, id: string): Promise<ReturnType<typeof topologyView>> {
  const { record, known } = await findServer(deps, call, id);
  const { spec, host, attemptId, uuid: serverUuid } = known.server;
  const view = topologyView(spec);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  const isKnown = cell !== undefined && !known.unreachable && host !== null && attemptId !== null;
  if (!mayDo(call, "compute:server:topology:host:index", spec) || view.nodes.length === 0 || !isKnown) return view;
  const answer = await cell.console({ ...ASKS_NOTHING, host, serverUuid, attemptId, pinning: true });
  return answer.$case === "pinning" ? topologyView(spec, answer.value) : view;
}

/** Nova's names of power states in messages, by number. */
const POWER_NAMES: Readonly<Record<number, string>> = { 0: "pending", 1: "running", 3: "paused", 4: "shutdown" };
const RUNNING = "running";

async function readDiagnostics(deps: DetailDeps, call: KnownCall, id: string) {
  const { record, known } = await findServer(deps, call, id);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  const silent = () => unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  if (known.unreachable) throw silent();
  const { server } = known;
  if (server.host === null || cell === undefined) throw conflict(`Instance ${server.uuid} is not ready`);
  const power = POWER_NAMES[powerStateOf(known)];
  if (power !== RUNNING)
    throw conflict(`Cannot 'get_diagnostics' instance ${server.uuid} while it is in power state ${power}`);
  const hosts = await cell.adminHosts([server.host]);
  if (hosts.kind !== "answer") throw silent();
  const { host, attemptId, uuid: serverUuid } = server;
  const guest = { host, serverUuid, attemptId: attemptId ?? "" };
  const answer = await cell.console({ ...ASKS_NOTHING, ...guest, diagnostics: true });
  return diagnosticsView(server, {
    minor: call.minor,
    nowMs: deps.clock.now(),
    hypervisor: hosts.value[0]?.hypervisor ?? null,
    measured: answer.$case === "diagnostics" ? answer.value : null,
  });
}
