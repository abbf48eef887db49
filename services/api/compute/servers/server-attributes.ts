import type { SketchPart, SpecField } from "../../../../core/stores/cell/listed-servers.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { isoSeconds } from "../../http/times.ts";
import type { HostZones } from "../aggregates/host-zones.ts";
import { hostnameOf } from "./hostname.ts";
import { rootDeviceOf } from "./instance-name.ts";
import { reservationIdOf } from "./reservation-id.ts";
import { powerStateOf, shownTaskState, VM_STATES } from "./shown-state.ts";

/** The attributes by which servers are filtered and sorted. Null means that the server does not have the attribute; no filter matches it. */
export type AttributeValue = string | number | null;

type ReadAttribute = (known: KnownServer, zones: Pick<HostZones, "of">) => AttributeValue;

const orNull = (text: string): string | null => (text === "" ? null : text);
const timeOf = (atMs: number | null): string | null => (atMs === null ? null : isoSeconds(atMs));

const READERS = {
  access_ip_v4: ({ server }) => orNull(server.spec.accessIpV4),
  access_ip_v6: ({ server }) => orNull(server.spec.accessIpV6),
  auto_disk_config: ({ server }) => (server.spec.manualDisk ? 0 : 1),
  availability_zone: ({ server }, zones) =>
    server.host === null ? orNull(server.spec.availabilityZone) : zones.of(server.host),
  config_drive: ({ server }) => (server.spec.configDrive ? "True" : ""),
  created_at: ({ server }) => timeOf(server.createdAtMs),
  display_description: ({ server }) => server.spec.description ?? null,
  display_name: ({ server }) => server.spec.name,
  host: ({ server }) => server.host,
  hostname: ({ server }) => hostnameOf(server.spec),
  image_ref: ({ server }) => server.spec.imageRef,
  instance_type_id: ({ server }) => server.spec.flavor?.id ?? null,
  kernel_id: ({ server }) => server.spec.imageProperties.kernel_id ?? "",
  key_name: ({ server }) => orNull(server.spec.keyName),
  launch_index: ({ server }) => server.spec.launchIndex,
  launched_at: ({ server }) => timeOf(server.launchedAtMs),
  locked: ({ lock }) => (lock === null ? 0 : 1),
  locked_by: ({ lock }) => lock?.by ?? null,
  node: ({ server }) => server.host,
  power_state: (known) => powerStateOf(known),
  progress: () => 0,
  project_id: ({ server }) => server.spec.projectId,
  ramdisk_id: ({ server }) => server.spec.imageProperties.ramdisk_id ?? "",
  reservation_id: ({ server }) => reservationIdOf(server.spec.requestId),
  root_device_name: ({ server }) => rootDeviceOf(server),
  task_state: ({ server }) => shownTaskState(server),
  terminated_at: ({ server }) => timeOf(server.deletedAtMs),
  updated_at: ({ server }) => timeOf(server.updatedAtMs),
  user_id: ({ server }) => server.spec.userId,
  uuid: ({ server }) => server.uuid,
  vm_state: ({ server, unreachable }) => (unreachable ? null : VM_STATES[server.status]),
} satisfies Record<string, ReadAttribute>;

export type ServerAttribute = keyof typeof READERS;

/** The attributes of a server under the names of Nova's database columns, which its filters and sort keys have. */
export const SERVER_ATTRIBUTES: Readonly<Record<ServerAttribute, ReadAttribute>> = READERS;

/** Times by their milliseconds, so that events within one second are ordered. */
const TIMES: Partial<Record<ServerAttribute, ReadAttribute>> = {
  created_at: ({ server }) => server.createdAtMs,
  launched_at: ({ server }) => server.launchedAtMs,
  terminated_at: ({ server }) => server.deletedAtMs,
  updated_at: ({ server }) => server.updatedAtMs,
};

/** Returns the value that a server is sorted by. */
export function sortValueOf(key: ServerAttribute, known: KnownServer, zones: Pick<HostZones, "of">): AttributeValue {
  return (TIMES[key] ?? SERVER_ATTRIBUTES[key])(known, zones);
}

/** What the value of an attribute depends on. */
interface Origin {
  readonly parts: readonly SketchPart[];
  readonly specFields?: readonly SpecField[];
  /** Users may change it, so that the API database has it. */
  readonly isChangeable?: true;
}

const spec = (...specFields: readonly SpecField[]): Origin => ({ parts: [], specFields });
const changedSpec = (...specFields: readonly SpecField[]): Origin => ({ ...spec(...specFields), isChangeable: true });
const HOST: Origin = { parts: ["host"] };
const STATUS: Origin = { parts: ["status"] };
const LAUNCH: Origin = { parts: ["launchedAt"] };
const CHANGES: Origin = { parts: [], isChangeable: true };
/** The value is the same for all listed servers, or each sketch has it: the UUID and the time of creation. */
const NOTHING: Origin = { parts: [] };

export const ATTRIBUTE_ORIGINS: Readonly<Record<ServerAttribute, Origin>> = {
  ...{ access_ip_v4: changedSpec("accessIpV4"), access_ip_v6: changedSpec("accessIpV6") },
  auto_disk_config: changedSpec("manualDisk"),
  availability_zone: { ...changedSpec("availabilityZone"), parts: ["host"] },
  ...{ config_drive: spec("configDrive"), created_at: NOTHING, display_description: changedSpec("description") },
  ...{ display_name: changedSpec("name"), host: HOST, hostname: changedSpec("uuid", "name", "hostname") },
  ...{ image_ref: spec("imageRef"), instance_type_id: spec("flavor"), kernel_id: spec("imageProperties") },
  ...{ key_name: spec("keyName"), launch_index: spec("launchIndex"), launched_at: LAUNCH, locked: CHANGES },
  ...{ locked_by: CHANGES, node: HOST, power_state: STATUS, progress: NOTHING, project_id: spec("projectId") },
  ...{ ramdisk_id: spec("imageProperties"), reservation_id: spec("requestId"), root_device_name: LAUNCH },
  // While a server is restored, its status in the cell decides on the task state.
  ...{ task_state: STATUS, terminated_at: NOTHING, updated_at: { parts: ["updatedAt"], isChangeable: true } },
  ...{ user_id: spec("userId"), uuid: NOTHING, vm_state: STATUS },
};
