import type { HostRemoval } from "../../../../core/stores/cell/host-admin-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, type Fault, notFound, unavailable } from "../../http/fault.ts";
import type { OperatorStores } from "../../ports.ts";
import { serviceId } from "../hypervisors/hypervisor-view.ts";
import { listHosts } from "../hypervisors/list-hosts.ts";
import { serviceIdOf } from "../hypervisors/service-id.ts";
import { type ControlService, listControlServices } from "./control-services.ts";

const UUIDS_FROM_MINOR = 53;
/** In which part of the time after which an agent counts as unseen its host is looked at again. */
const LOOKS = 10;
const SHOWN_MAX = 100;

export interface RemoveServiceDeps {
  readonly cells: Cells;
  /** Null when this process knows no aggregates. */
  readonly stores: OperatorStores | null;
  readonly clock: Pick<Clock, "setTimer">;
  /** How long the agent of a host must not have been heard, in milliseconds. */
  readonly agentUnseenMs: number;
}

/**
 * Deletes a service. With the service of a host go the host, its provider tree, its membership of aggregates and its ratios. An agent that was just
 * stopped is waited for until it counts as unseen, so that scripts may stop it and delete its service right away. If a call breaks off after the host's
 * cell has removed the host, its repetition removes the rest from the API database.
 *
 * Refuses as Nova does: 400 for an id of the wrong kind, 404, and 409 for a host that has servers or unfinished moves. Beyond Nova it refuses with
 * 409 what Nova's documentation warns of: hosts whose agent is alive, on which others hold resources, or which have guests in quarantine.
 */
export async function removeService(deps: RemoveServiceDeps, id: string, minor: number): Promise<void> {
  const wanted = readServiceId(id, minor);
  const { hosts, silent } = await listHosts(deps.cells, { withUsage: false });
  const known = hosts.find(({ host }) => String(serviceId(host, minor)) === wanted);
  if (known !== undefined) {
    const { name } = known.host;
    const cell = deps.cells.get(known.cell);
    if (cell === undefined) throw unavailable(`The cell ${known.cell} of host ${name} does not answer.`);
    await removeHostFrom(cell, name, deps);
    await forgetHost(deps, name);
    return;
  }
  const controls = await listControlServices(deps.cells, deps.stores);
  const control = controls.find((service) => String(serviceIdOf(service.binary, service.id, minor)) === wanted);
  if (control !== undefined) return removeControl(deps.cells, control);
  if (silent.length > 0)
    throw unavailable(`The cell ${silent.join(", ")}, which may have the service, does not answer.`);
  const left = (await leftBehind(deps)).find((name) => String(serviceId({ name }, minor)) === wanted);
  if (left === undefined) throw notFound(`Service ${id.slice(0, SHOWN_MAX)} not found.`);
  await forgetHost(deps, left);
}

function readServiceId(id: string, minor: number): string {
  if (minor >= UUIDS_FROM_MINOR) {
    const uuid = canonicalUuid(id);
    if (uuid === null) throw badRequest(`Invalid uuid ${id.slice(0, SHOWN_MAX)}`);
    return uuid;
  }
  if (!/^-?\d{1,16}$/.test(id))
    throw badRequest(`Invalid input received: id must be an integer, not ${id.slice(0, SHOWN_MAX)}.`);
  return id;
}

async function removeHostFrom(
  cell: CellClient,
  name: string,
  { clock, agentUnseenMs }: Pick<RemoveServiceDeps, "clock" | "agentUnseenMs">,
): Promise<void> {
  for (let look = 0; ; look += 1) {
    const answer = await cell.admin((admin) => admin.removeHost(name, agentUnseenMs));
    if (answer.kind === "unreachable")
      throw unavailable(
        `The cell ${cell.name} does not answer; host ${name} may or may not be removed. Repeat the request.`,
      );
    // An unknown host was removed by another caller, or by an earlier try whose answer was lost.
    if (answer.value === "removed" || answer.value === "unknown") return;
    if (answer.value !== "agent-seen" || look > LOOKS) throw refusal(answer.value, name);
    await new Promise<void>((resolve) => {
      clock.setTimer(agentUnseenMs / LOOKS, resolve);
    });
  }
}

/** The first two messages are Nova's. */
function refusal(why: Exclude<HostRemoval, "removed" | "unknown">, host: string): Fault {
  switch (why) {
    case "has-servers":
      return conflict(
        "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.",
      );
    case "has-moves":
      return conflict(
        "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the instances first.",
      );
    case "has-allocations":
      return conflict(
        `Unable to delete compute service of host ${host}: guests that were left behind on it, or other consumers, still hold its resources. Let its agent come back, or force the host down so that its cell releases what is held for guests; release allocations of other consumers with the Placement API.`,
      );
    case "has-quarantined-guests":
      return conflict(
        `Unable to delete compute service of host ${host}, which has guests in quarantine. Decide on them first: berth cell quarantine.`,
      );
    case "agent-seen":
      return conflict(
        `Unable to delete compute service of host ${host}, whose agent is running and would bring the host up as a new one. Stop the agent, or remove the host from its hosts and force the host down, and repeat the request.`,
      );
    default:
      return why satisfies never;
  }
}

/** Conductors that are gone are forgotten; schedulers are known only while they are alive. */
async function removeControl(cells: Cells, { binary, id, host, alive, cell }: ControlService): Promise<void> {
  const running = () =>
    conflict(`The ${binary} service ${host} is running. Stop it first; it is not listed for longer than an hour then.`);
  if (alive || cell === null) throw running();
  const answer = await cells.get(cell)?.admin((admin) => admin.removeConductor(id));
  if (answer?.kind !== "answer") throw unavailable(`The cell ${cell} does not answer.`);
  if (!answer.value) throw running();
}

/** The hosts with ratios or in aggregates. One of them that no cell has was left by a call that broke off after the host's cell had removed it. */
async function leftBehind({ stores }: RemoveServiceDeps): Promise<readonly string[]> {
  if (stores === null) return [];
  const { byHost } = await stores.ratios.ratioSettings();
  return [...byHost.keys(), ...(await stores.aggregates.aggregates()).flatMap(({ hosts }) => hosts)];
}

/**
 * Removes a host from the API database after its cell has removed it. The host map goes first: if the call breaks off, `leftBehind` finds the host by its
 * ratios and aggregates.
 */
async function forgetHost({ stores, cells }: RemoveServiceDeps, host: string): Promise<void> {
  if (stores === null) return;
  const { aggregates, ratios, hostMap } = stores;
  for (const cell of cells.keys()) await hostMap.forgetHost(cell, host);
  const ofHost = (await ratios.ratioSettings()).byHost.get(host);
  if (ofHost !== undefined) {
    const none = Object.fromEntries(Object.keys(ofHost).map((name) => [name, null]));
    await ratios.changeRatios({ kind: "host", host }, none);
  }
  for (const { id, hosts } of await aggregates.aggregates())
    if (hosts.includes(host)) await aggregates.removeHost(id, host);
}
