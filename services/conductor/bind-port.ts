import { isDeepStrictEqual } from "node:util";
import { BINDING_FAILED, type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { HostBinding, JsonFields } from "../../core/stores/port-bindings.ts";
import type { PortAllocation } from "../../core/tasks/port-change.ts";
import { withDestination, withDevice, withoutAllocation, withoutDestination } from "../../core/tasks/port-profile.ts";
import type { PortDevice } from "../../proto/gen/berth/agent.ts";
import type { PortVif } from "../../proto/gen/berth/shared.ts";
import { failed, UNWANTED, type Undone } from "./patient-calls.ts";

/** How a port is connected on its host; null where Neutron does not tell. */
export type BoundPort = { readonly kind: "bound"; readonly vif: PortVif | null } | Undone;

/** The providers on the host that serve each port's resource request, as Neutron is to know them, by the port's id. The profile of a port that is missing keeps the providers that it names. */
export type PortAllocations = ReadonlyMap<string, PortAllocation>;

/** The work of one task on the ports of its server. */
export interface PortWork {
  readonly networking: Networking;
  readonly serverUuid: string;
  readonly host: string;
  readonly allocations: PortAllocations;
  readonly hasBindings: boolean;
  /** The functions of the host that connect direct ports, by the port's id; those that are known. */
  readonly devices: ReadonlyMap<string, PortDevice>;
  /** How often Neutron has refused the new binding of each port, by the port's id. */
  readonly refusals: Map<string, number>;
  /** Whether this conductor still carries out the task. Asked before each change. */
  readonly mayWrite: () => Promise<boolean>;
}

/** How often Neutron is asked for a binding that it refuses with an answer that may be that of a fault of its own. */
const REFUSALS_MAX = 3;
/** How often one port may be changed by others while it is being bound. */
const LOST_MAX = 10;
/** Vif types of a binding that no driver has made. */
const UNUSABLE = ["", "unbound", BINDING_FAILED];

/**
 * Whether a driver of the host has connected the port. A Neutron that shows no vif type is taken at its word about the host.
 *
 * Source: `_update_port_binding_for_instance` in nova/network/neutron.py.
 */
export const isBoundTo = (port: Pick<NeutronPort, "host" | "vifType">, host: string): boolean =>
  port.host === host && (port.vifType === "" || !UNUSABLE.includes(port.vifType));

/**
 * Binds a port to the host. A binding that was prepared for the host becomes the active one; otherwise the port is written in the revision in which it
 * was read.
 */
export async function bindPort(work: PortWork, id: string, first: NeutronPort | undefined): Promise<BoundPort> {
  const { networking, serverUuid, host, mayWrite } = work;
  let port = first;
  for (let lost = 0; lost < LOST_MAX; lost += 1) {
    if (port === undefined || port.deviceId !== serverUuid) return notFound(id);
    const profile = withDevice(profileAt(work, port), work.devices.get(id));
    const isTold = profile === port.profile;
    if (isTold && isBoundTo(port, host)) return { kind: "bound", vif: vifOf(port) };
    if (!(await mayWrite())) return UNWANTED;
    if (!(await activatePrepared(work, port))) {
      const outcome = await networking.updatePort(id, { host, ...(!isTold && { profile }) }, port.revision);
      if (outcome.kind === "updated") {
        if (outcome.port.vifType !== BINDING_FAILED) return { kind: "bound", vif: vifOf(outcome.port) };
        return bindingFailed(id);
      }
      if (outcome.kind === "refused" || outcome.kind === "forbidden")
        return failed(`Neutron does not bind port ${id} to ${host}: ${outcome.why}`, false);
    }
    [port] = await networking.ports({ id }, OWN_NAME);
  }
  return failed(`Port ${id} kept changing while it was being bound to ${host}.`, false);
}

/**
 * Activates the binding that was prepared for the host. Returns false if there is none, or if it could not be activated. Neutron does not bind a port by
 * an update to a host that has a binding, so one that no driver has made, like that of a host which the server has left, is deleted, and so is one that
 * was made for an earlier claim of the host's resources.
 */
async function activatePrepared(work: PortWork, port: NeutronPort): Promise<boolean> {
  const { networking, host, hasBindings } = work;
  if (!hasBindings || port.host === "" || port.host === host) return false;
  const prepared = (await networking.bindings(port.id))?.find((one) => one.host === host && !one.isActive);
  if (prepared === undefined) return false;
  const isUsable =
    !UNUSABLE.includes(prepared.vifType) && profileAt(work, { ...prepared, id: port.id }) === prepared.profile;
  if (isUsable) return (await networking.activateBinding(port.id, host)) === "active";
  await networking.deleteBinding(port.id, host);
  return false;
}

/** The profile with the providers that serve the port on the host where its server stays; the present one if it is so already. */
function profileAt(
  { allocations }: Pick<PortWork, "allocations">,
  port: Pick<NeutronPort, "id" | "profile">,
): JsonFields {
  const allocation = allocations.get(port.id);
  const profile = withoutDestination(port.profile);
  if (allocation === null) return withoutAllocation(profile);
  return allocation === undefined || isDeepStrictEqual(profile.allocation, allocation)
    ? profile
    : { ...profile, allocation };
}

/** Whether Neutron knows which providers serve the port of a server at rest, and of no move of the server. */
export const isToldOf = (allocations: PortAllocations, port: Pick<NeutronPort, "id" | "profile">): boolean =>
  profileAt({ allocations }, port) === port.profile;

/**
 * Prepares a binding to the host beside the active one, deletes those that were prepared for other hosts, and tells Neutron that the port's server is being
 * moved to the host. Neutron's agents there connect the port before its binding is active only if they know that.
 */
export async function prepareBinding(work: PortWork, id: string, port: NeutronPort | undefined): Promise<BoundPort> {
  if (port === undefined) return notFound(id);
  const { networking, host, mayWrite } = work;
  const { vnicType } = port;
  const profile = profileAt(work, port);
  // A binding that is made or deleted raises the port's revision, and Neutron refuses a change in the one that was read before.
  let isPortChanged = false;
  for (let lost = 0; lost < LOST_MAX; lost += 1) {
    const bindings = await networking.bindings(id);
    if (bindings === null) return notFound(id);
    const present = bindings.find((one) => one.host === host);
    const isMade = present !== undefined && !UNUSABLE.includes(present.vifType);
    const isUsable = isMade && profileAt(work, { ...present, id }) === present.profile;
    if (present?.isActive || isUsable) {
      const bound: BoundPort = { kind: "bound", vif: vifOf(present) };
      if (!(await deletePrepared(work, id, bindings))) return UNWANTED;
      if (present.isActive) return bound;
      isPortChanged ||= bindings.some((other) => !other.isActive && other.host !== host);
      const [now] = isPortChanged ? await networking.ports({ id }, OWN_NAME) : [port];
      return tellDestination(work, now, id, bound);
    }
    if (!(await mayWrite())) return UNWANTED;
    isPortChanged = true;
    if (present !== undefined) await networking.deleteBinding(id, host);
    const outcome = await networking.createBinding(id, { host, vnicType, profile });
    if (outcome.kind === "refused") {
      const refusals = (work.refusals.get(id) ?? 0) + 1;
      work.refusals.set(id, refusals);
      if (!outcome.mayPass || refusals >= REFUSALS_MAX) return bindingFailed(id);
      // The caller asks again after a while.
      throw new NetworkingError("unreachable", `Neutron does not bind port ${id} to ${host}: ${outcome.why}`);
    }
    if (outcome.kind === "gone") return notFound(id);
  }
  return failed(`The bindings of port ${id} kept changing while one to ${host} was being prepared.`, false);
}

/**
 * Neutron binds the port to its source again when its profile changes, and may then send `network-vif-plugged`, as though the destination were connected. This cannot
 * be written anywhere else: Neutron looks for the destination in the active binding alone.
 *
 * Source: `_setup_migration_port_profile` in nova/network/neutron.py, and `_process_port_binding` in neutron/plugins/ml2/plugin.py.
 */
async function tellDestination(
  work: PortWork,
  first: NeutronPort | undefined,
  id: string,
  bound: BoundPort,
): Promise<BoundPort> {
  const { networking, serverUuid, host, mayWrite } = work;
  let port = first;
  for (let lost = 0; lost < LOST_MAX; lost += 1) {
    if (port === undefined || port.deviceId !== serverUuid) return notFound(id);
    const profile = withDestination(port.profile, host);
    if (profile === port.profile) return bound;
    if (!(await mayWrite())) return UNWANTED;
    const outcome = await networking.updatePort(id, { profile }, port.revision);
    if (outcome.kind === "updated") return bound;
    if (outcome.kind === "refused" || outcome.kind === "forbidden")
      return failed(`Neutron is not told that port ${id} moves to ${host}: ${outcome.why}`, false);
    [port] = await networking.ports({ id }, OWN_NAME);
  }
  return failed(`Port ${id} kept changing while its move to ${host} was being prepared.`, false);
}

/** Deletes the bindings that were prepared for other hosts. Returns false if the task is no longer this conductor's. */
export async function deletePrepared(
  { networking, host, mayWrite }: PortWork,
  id: string,
  bindings: readonly HostBinding[],
): Promise<boolean> {
  for (const other of bindings) {
    if (other.isActive || other.host === host) continue;
    if (!(await mayWrite())) return false;
    await networking.deleteBinding(id, other.host);
  }
  return true;
}

const notFound = (id: string): Undone => failed(`Port id ${id} could not be found.`, true);
const bindingFailed = (id: string): Undone =>
  failed(`Binding failed for port ${id}, please check neutron logs for more information.`, false);

/** How the port is connected on its host; null where no driver has connected it. */
export function vifOf(bound: Pick<HostBinding, "vifType" | "vifDetails" | "vnicType" | "profile">): PortVif | null {
  const { vifType, vifDetails, vnicType, profile } = bound;
  if (UNUSABLE.includes(vifType)) return null;
  return { type: vifType, details: JSON.stringify(vifDetails), vnicType, profile: JSON.stringify(profile) };
}
