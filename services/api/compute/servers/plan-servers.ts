import { PLAIN_REQUEST } from "../../../../core/tasks/server-spec.ts";
import type { Flavor, PortResourceRequest, SchedulerHint, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { CREATE_FIELDS_KNOWN, type CreateServerBody } from "./create-schema.ts";
import { readHostname } from "./hostname.ts";
import type { DeviceMapping } from "./image-mapping.ts";
import type { NamedPlace } from "./named-place.ts";
import { readPersonality } from "./personality.ts";
import { readBlockDevices, type WantedLocalDisk, type WantedVolume } from "./read-block-devices.ts";
import type { ServerKey } from "./read-key.ts";
import { refuseUnknownNetworks } from "./refuse-unknown-networks.ts";
import { distinctTags, readAddresses, readUserData, refuseUnknownFields } from "./server-fields.ts";

const [DESCRIPTION_FROM_MINOR] = CREATE_FIELDS_KNOWN.description;

/** The contents of a body that has passed its schema. */
export interface CreateRequest {
  readonly flavorId: string;
  readonly count: number;
  /** Minimum number of servers that must find a host; otherwise none is created. */
  readonly minCount: number;
  readonly returnReservationId: boolean;
  /** The host name, or "" when it is derived from the name. */
  readonly hostname: string;
  /** The volumes that each server gets. */
  readonly volumes: readonly WantedVolume[];
  /** The local disks beside the first one that the body names. */
  readonly localDisks: readonly WantedLocalDisk[];
}

/**
 * Checks what the schema cannot, and refuses with the field's name. `countMax` is the limit on servers of one call. Between min_count and
 * max_count, Nova creates as many servers as the quota allows; Berth creates as many as find a host.
 */
export function readCreateRequest(
  body: CreateServerBody,
  options: {
    readonly minor: number;
    readonly countMax: number;
    /** The devices that the image gives its servers. */
    readonly ofImage: readonly DeviceMapping[];
  },
): CreateRequest {
  const { server } = body;
  refuseUnknownNetworks(server, options.minor);
  refuseUnknownFields(server, CREATE_FIELDS_KNOWN, options);
  const minCount = Number(server.min_count ?? 1);
  const maxCount = Number(server.max_count ?? minCount);
  for (const [field, count] of [
    ["min_count", minCount],
    ["max_count", maxCount],
  ] as const) {
    if (count < 1) throw invalidField(field, count, "must be >= 1");
    if (count > options.countMax)
      throw invalidField(field, count, `One call may ask for at most ${options.countMax} servers.`);
  }
  if (minCount > maxCount) throw badRequest("min_count must be <= max_count");
  const hostname = readHostname(server.hostname, options.minor) ?? "";
  if (hostname !== "" && maxCount > 1) throw badRequest("Unable to allocate a single hostname to multiple instances");
  return {
    hostname,
    ...readBlockDevices(server, options.minor, options.ofImage),
    flavorId: idOfReference(String(server.flavorRef)),
    count: maxCount,
    minCount,
    returnReservationId: server.return_reservation_id !== undefined && readFlag(server.return_reservation_id) === true,
  };
}

/** Returns the id of a flavor that is named by its id or its URL. */
function idOfReference(reference: string): string {
  const path = /^https?:\/\//.test(reference) ? (reference.split(/[?#]/)[0] ?? "") : reference;
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Returns the specs of one call's servers, ready to be accepted. Several servers get a number behind their name, from 1 on, as in Nova. */
export function planServers(
  body: CreateServerBody,
  request: CreateRequest,
  from: {
    readonly call: KnownCall;
    readonly flavor: Flavor;
    readonly place: NamedPlace;
    /** The image of the local disk that the servers boot from, or "". */
    readonly imageRef: string;
    readonly imageProperties: Readonly<Record<string, string>>;
    readonly hints: readonly SchedulerHint[];
    readonly portRequests: readonly PortResourceRequest[];
    readonly key: ServerKey;
    readonly nowMs: number;
    readonly newUuid: () => string;
  },
): ServerSpec[] {
  const { server } = body;
  const description = descriptionOf(server, from.call.minor);
  const tags = distinctTags(server.tags);
  const addresses = readAddresses(server);
  const userData = readUserData(server.user_data);
  const files = readPersonality(server.personality);
  const reservationId = request.count === 1 ? "" : from.newUuid();
  return Array.from({ length: request.count }, (_, index) => ({
    uuid: from.newUuid(),
    name: request.count === 1 ? server.name : `${server.name}-${index + 1}`,
    projectId: from.call.identity.projectId,
    userId: from.call.identity.userId,
    flavor: from.flavor,
    // Stored in the canonical spelling, which rules that name images use.
    imageRef: storedSpelling(from.imageRef),
    metadata: server.metadata ?? {},
    availabilityZone: from.place.zone,
    requestId: from.call.requestId,
    createdAtMs: from.nowMs,
    ...PLAIN_REQUEST,
    imageProperties: { ...from.imageProperties },
    hints: from.hints.map((hint) => ({ ...hint, values: [...hint.values] })),
    forcedHost: from.place.forcedHost,
    requestedHost: from.place.requestedHost,
    portRequests: [...from.portRequests],
    reservationId,
    hostname: request.hostname,
    ...(description !== null && { description }),
    tags,
    launchIndex: index,
    userData,
    trustedCerts: [...(server.trusted_image_certificates ?? [])],
    files,
    ...from.key,
    ...addresses,
    configDrive: server.config_drive != null && readFlag(server.config_drive) === true,
    manualDisk: server["OS-DCF:diskConfig"] === "MANUAL",
  }));
}

/** Before microversion 2.19, a server is described by its name. */
function descriptionOf({ description = null, name }: CreateServerBody["server"], minor: number): string | null {
  return minor >= DESCRIPTION_FROM_MINOR ? description : name;
}
