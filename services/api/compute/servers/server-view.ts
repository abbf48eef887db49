import { hash } from "node:crypto";
import { nextStepAfter } from "../../../../core/tasks/failure-message.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Flavor, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { bookmark, type Place, resourceLinks } from "../../http/links.ts";
import { isoMicroseconds, isoSeconds } from "../../http/times.ts";
import type { HostZones } from "../aggregates/host-zones.ts";
import { detailedAddressesOf } from "../server-details/network-parts.ts";
import type { AttachedVolumes } from "./attached-volumes.ts";
import type { GroupNames } from "./group-names.ts";
import type { HostStatuses } from "./host-status.ts";
import { HOSTNAME_FROM_MINOR, hostnameOf } from "./hostname.ts";
import { instanceNameOf, rootDeviceOf } from "./instance-name.ts";
import { ownerFault } from "./owner-fault.ts";
import { reservationIdOf } from "./reservation-id.ts";
import type { ServerDetail } from "./server-schemas.ts";
import { shownImageProperties } from "./shown-image-properties.ts";
import { powerStateOf, shownStatus, shownTaskState, VM_STATES } from "./shown-state.ts";

const DOWN_CELLS_FROM_MINOR = 69;
const IMAGE_PROPERTIES_FROM_MINOR = 98;
const HINTS_FROM_MINOR = 100;

/** The caller to whom a server is shown, with the base of links and the microversion. */
export interface Viewer {
  readonly place: Place;
  readonly minor: number;
  readonly isAdmin: boolean;
  /** Whether the policy shows the host, and the server's name there. */
  readonly showsAttributes: boolean;
  readonly showsExtraSpecs: boolean;
  readonly zones: Pick<HostZones, "of">;
  readonly hostStatuses: HostStatuses;
  readonly volumes: AttachedVolumes;
  readonly securityGroups: GroupNames;
}

/** The server groups of a server that is shown alone; null in a list, where they are not shown. */
interface ViewOptions {
  readonly groups: readonly string[] | null;
}

/** Returns a server as the list without details shows it. */
export function briefView(known: KnownServer, viewer: Viewer) {
  const { server } = known;
  const { uuid } = server;
  const links = resourceLinks(viewer.place, "servers", uuid);
  if (!known.unreachable) return { id: uuid, name: server.spec.name, links };
  const showsName = viewer.minor < DOWN_CELLS_FROM_MINOR;
  return { id: uuid, ...(showsName && { name: server.spec.name }), status: "UNKNOWN", links };
}

/**
 * Returns the server as the viewer's microversion shows it: in full or, from 2.69 on while its cell does not answer, with the fields that
 * are known.
 */
export function serverView(known: KnownServer, viewer: Viewer, options: ViewOptions): Partial<ServerDetail> {
  return known.unreachable && viewer.minor >= DOWN_CELLS_FROM_MINOR
    ? partialView(known, viewer, options)
    : detailView(known, viewer, options);
}

/**
 * Returns only the fields that Nova's API tier knows, so not the name.
 *
 * Source: Nova's api-guide, "Handling Down Cells".
 */
function partialView(known: KnownServer, viewer: Viewer, { groups }: ViewOptions): Partial<ServerDetail> {
  const { server } = known;
  const { spec } = server;
  const listed = {
    ...briefView(known, viewer),
    tenant_id: spec.projectId,
    created: isoSeconds(server.createdAtMs),
  };
  if (groups === null) return listed;
  return {
    ...listed,
    user_id: spec.userId,
    image: imageView(spec, viewer),
    flavor: flavorView(spec.flavor, viewer),
    "OS-EXT-AZ:availability_zone": spec.availabilityZone === "" ? "UNKNOWN" : spec.availabilityZone,
    "OS-EXT-STS:power_state": powerStateOf(known),
    ...(viewer.minor >= 71 && { server_groups: [...groups] }),
  };
}

function imageView({ imageRef, imageProperties }: ServerSpec, { place, minor }: Viewer): ServerDetail["image"] {
  if (imageRef === "") return "";
  return {
    id: imageRef,
    links: [bookmark(place, "images", imageRef)],
    ...(minor >= IMAGE_PROPERTIES_FROM_MINOR && { properties: shownImageProperties(imageProperties) }),
  };
}

/**
 * Returns a server in full, with the fields of the viewer's microversion.
 *
 * Source: Nova's api-ref, "Servers", and its REST API version history.
 */
export function detailView(known: KnownServer, viewer: Viewer, options: ViewOptions): ServerDetail {
  const { server, unreachable } = known;
  const { spec } = server;
  const status = shownStatus(known);
  const view: ServerDetail = {
    id: server.uuid,
    name: spec.name,
    status,
    tenant_id: spec.projectId,
    user_id: spec.userId,
    created: isoSeconds(server.createdAtMs),
    updated: isoSeconds(server.updatedAtMs),
    hostId: hostIdOf(spec.projectId, server.host),
    image: imageView(spec, viewer),
    flavor: flavorView(spec.flavor, viewer),
    addresses: detailedAddressesOf(spec),
    accessIPv4: spec.accessIpV4,
    accessIPv6: spec.accessIpV6,
    metadata: spec.metadata,
    links: resourceLinks(viewer.place, "servers", server.uuid),
    key_name: spec.keyName === "" ? null : spec.keyName,
    config_drive: spec.configDrive ? "True" : "",
    "OS-DCF:diskConfig": spec.manualDisk ? "MANUAL" : "AUTO",
    "OS-EXT-AZ:availability_zone": server.host === null ? spec.availabilityZone : viewer.zones.of(server.host),
    "OS-EXT-STS:vm_state": unreachable ? null : VM_STATES[server.status],
    "OS-EXT-STS:task_state": shownTaskState(server),
    "OS-EXT-STS:power_state": powerStateOf(known),
    "OS-SRV-USG:launched_at": server.launchedAtMs === null ? null : isoMicroseconds(server.launchedAtMs),
    "OS-SRV-USG:terminated_at": server.deletedAtMs === null ? null : isoMicroseconds(server.deletedAtMs),
    "os-extended-volumes:volumes_attached": volumesView(server.uuid, viewer),
  };
  if (status === "ERROR" && server.fault !== null) view.fault = faultView(known, server.fault, viewer);
  const groups = viewer.securityGroups.of(server.uuid);
  if (groups.length > 0) view.security_groups = groups.map((name) => ({ name }));
  if (WITH_PROGRESS.includes(status)) view.progress = 0;
  if (viewer.showsAttributes) addHostFields(view, server, viewer.minor);
  addVersionedFields(view, known, viewer, options);
  return view;
}

/** The flag is shown from 2.3 on. */
function volumesView(uuid: string, { minor, volumes }: Viewer): ServerDetail["os-extended-volumes:volumes_attached"] {
  return (volumes.get(uuid) ?? []).map(({ id, delete_on_termination }) =>
    minor < 3 ? { id } : { id, delete_on_termination },
  );
}

/** Source: `_progress_statuses` of Nova's view of servers. */
const WITH_PROGRESS: readonly string[] = ["ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"];

/** Returns the fault. Since faults may name hosts, only admins read the full text. */
function faultView(
  { inCell, server: { uuid } }: KnownServer,
  { message, atMs }: NonNullable<Server["fault"]>,
  { isAdmin }: Viewer,
): NonNullable<ServerDetail["fault"]> {
  const fault = { code: 500, created: isoSeconds(atMs) };
  const nextStep = nextStepAfter(message, uuid);
  if (isAdmin) return { ...fault, message, details: nextStep === null ? message : `${message}. ${nextStep}` };
  return { ...fault, message: ownerFault(message, inCell ? "cell" : "scheduler") };
}

function flavorView(flavor: Flavor | undefined, viewer: Viewer): ServerDetail["flavor"] {
  if (flavor === undefined) return {};
  if (viewer.minor < 47) return { id: flavor.id, links: [bookmark(viewer.place, "flavors", flavor.id)] };
  return {
    original_name: flavor.name,
    vcpus: flavor.vcpus,
    ram: flavor.memoryMib,
    disk: flavor.diskGib,
    ephemeral: flavor.ephemeralGib,
    swap: flavor.swapMib,
    ...(viewer.showsExtraSpecs && { extra_specs: flavor.extraSpecs }),
  };
}

/** Adds the fields that the policy shows to admins by default: the host, and the server's name there. */
function addHostFields(view: ServerDetail, server: Server, minor: number): void {
  view["OS-EXT-SRV-ATTR:host"] = server.host;
  view["OS-EXT-SRV-ATTR:hypervisor_hostname"] = server.host;
  view["OS-EXT-SRV-ATTR:instance_name"] = instanceNameOf(server.uuid);
  if (minor < 3) return;
  view["OS-EXT-SRV-ATTR:reservation_id"] = reservationIdOf(server.spec.requestId);
  // Later versions show it to everybody.
  if (minor < HOSTNAME_FROM_MINOR) view["OS-EXT-SRV-ATTR:hostname"] = hostnameOf(server.spec);
  view["OS-EXT-SRV-ATTR:launch_index"] = server.spec.launchIndex;
  view["OS-EXT-SRV-ATTR:kernel_id"] = server.spec.imageProperties.kernel_id ?? "";
  view["OS-EXT-SRV-ATTR:ramdisk_id"] = server.spec.imageProperties.ramdisk_id ?? "";
  view["OS-EXT-SRV-ATTR:root_device_name"] = rootDeviceOf(server);
  view["OS-EXT-SRV-ATTR:user_data"] = server.spec.userData === "" ? null : server.spec.userData;
}

function addVersionedFields(
  view: ServerDetail,
  { server: { uuid, spec }, lock }: KnownServer,
  { minor, hostStatuses }: Viewer,
  { groups }: ViewOptions,
): void {
  const hostStatus = hostStatuses.get(uuid);
  if (minor >= 9) view.locked = lock !== null;
  if (hostStatus !== undefined) view.host_status = hostStatus;
  if (minor >= 19) view.description = spec.description ?? null;
  if (minor >= 26) view.tags = spec.tags;
  if (minor >= 63) view.trusted_image_certificates = spec.trustedCerts.length === 0 ? null : spec.trustedCerts;
  if (minor >= 71 && groups !== null) view.server_groups = [...groups];
  if (minor >= 73) view.locked_reason = lock?.reason ?? null;
  if (minor >= HOSTNAME_FROM_MINOR) view["OS-EXT-SRV-ATTR:hostname"] = hostnameOf(spec);
  if (minor >= 96) view.pinned_availability_zone = spec.availabilityZone === "" ? null : spec.availabilityZone;
  if (minor >= HINTS_FROM_MINOR)
    view.scheduler_hints = Object.fromEntries(spec.hints.map(({ name, values }) => [name, values]));
}

/**
 * Returns an id that tells a project which of its servers share a host without naming the host, or "" without a host. It is computed as in
 * Nova.
 */
export function hostIdOf(projectId: string, host: string | null): string {
  return host === null || host === "" ? "" : hash("sha224", projectId + host, "hex");
}
