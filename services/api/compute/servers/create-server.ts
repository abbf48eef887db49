import type { KeypairStore } from "../../../../core/stores/api/keypair-store.ts";
import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { SecurityGroup } from "../../../../core/stores/security-groups.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { newRowUuid } from "../../../../runtime/new-row-uuid.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { type KnownCall, requireRule } from "../../http/call.ts";
import { badRequest, describeValue, Fault, invalidField } from "../../http/fault.ts";
import { refuseLargeSpec } from "../../http/spec-size.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import type { ConnectedServers } from "../../network/connected-servers.ts";
import type { NetworkRule } from "../../network/network-rule.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { DEFAULT_GROUP } from "../../network/security-groups/default-security-group.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import type { RequestsPort, ServerGroupsPort } from "../../ports.ts";
import { explainBadRequest } from "../flavors/check-extra-specs.ts";
import type { FlavorCatalog } from "../flavors/flavor-catalog.ts";
import { flavorNotFound } from "../flavors/flavor-routes.ts";
import { FLAVOR_ID } from "../flavors/flavor-schemas.ts";
import { refuseManyItems } from "../quotas/over-quota.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";
import { joinGroup } from "../server-groups/join-group.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import { readBootImage } from "./boot-image.ts";
import type { CreateServerBody } from "./create-schema.ts";
import { type FoundVolume, findVolumes } from "./find-volumes.ts";
import { holdVolumes } from "./hold-volumes.ts";
import type { KnownZones } from "./known-zones.ts";
import { readPlace } from "./named-place.ts";
import { withOwnServersOnly } from "./own-hints.ts";
import { refuseManyFiles } from "./personality.ts";
import { type PlannedConnections, planConnections } from "./plan-connections.ts";
import { planServers, readCreateRequest } from "./plan-servers.ts";
import { findMappedImage, type ImagePort, provideImages, refuseZeroDisk } from "./read-image.ts";
import { readKey } from "./read-key.ts";
import { refuseLocalDisks } from "./refuse-local-disks.ts";
import type { RequestAcceptor } from "./request-acceptor.ts";
import { type ReservedVolumes, releaseVolumes, reserveVolumes } from "./reserve-volumes.ts";
import { readHints } from "./scheduler-hints.ts";

export interface CreateServerDeps {
  readonly acceptor: RequestAcceptor;
  readonly flavors: FlavorCatalog;
  readonly clock: Clock;
  readonly groups: ServerGroupsPort;
  readonly zones: KnownZones;
  readonly cells: Cells;
  /** Null when images are not registered; any image reference is accepted then. */
  readonly images: ImagePort | null;
  /** Null when there are no network ports. */
  readonly networkPorts: PortStore | null;
  readonly networks: NetworkRule;
  /** Null where there are no security groups. */
  readonly securityGroups: SecurityGroupDesk | null;
  /** Null without Neutron. */
  readonly neutron: NeutronDeps | null;
  readonly keypairs: Pick<KeypairStore, "keypair"> | null;
  readonly store: Pick<RequestsPort, "requests">;
  /** Null when servers have no volumes. */
  readonly volumes: ServerVolumes | null;
  readonly limits: ProjectLimits;
}

export interface AcceptedServers {
  readonly specs: readonly [ServerSpec, ...ServerSpec[]];
  readonly returnReservationId: boolean;
  /** The names of the security groups of their new ports. */
  readonly securityGroups: readonly string[];
}

/**
 * Handles `POST /servers`: accepts one server, or several together. Nothing is stored before the whole body has been checked, and a refusal
 * names the field. Once the answer is sent, each accepted server will be placed or refused with a reason (law 5).
 */
export async function createServer(
  deps: CreateServerDeps,
  call: KnownCall,
  body: CreateServerBody,
  options: {
    readonly serversPerCallMax: number;
    readonly imageRule: ImageRule;
    readonly carrier: Readonly<Record<string, string>>;
    /** How often the call says of its volumes that it still wants them. */
    readonly renewMs: number;
  },
): Promise<AcceptedServers> {
  const caller = imageCallerOf(call);
  const mapped = await findMappedImage(body.server.imageRef ?? "", deps.images, caller);
  const ofImage = mapped?.devices ?? [];
  const request = readCreateRequest(body, { minor: call.minor, countMax: options.serversPerCallMax, ofImage });
  requirePartRules(call, body);
  // An id that no flavor can have is not looked up, since databases refuse some texts, such as U+0000.
  const mayExist = FLAVOR_ID.test(request.flavorId);
  const found = mayExist ? await deps.flavors.find(request.flavorId, call.identity) : null;
  if (found === null) throw badRequest(flavorNotFound(request.flavorId).message);
  const { flavor } = found;
  const place = await readPlace(body, call, deps);
  const { imageRule: rule } = options;
  refuseLocalDisks(request.localDisks, flavor);
  const volumes = await findVolumes(deps.volumes, request.volumes, { call, servers: request.count });
  // A server that boots from a volume has no image, whatever the call names.
  const isVolumeBacked = request.volumes.some(({ isRoot }) => isRoot);
  const imageRef = isVolumeBacked ? "" : (body.server.imageRef ?? "");
  if (isVolumeBacked && (body.server.trusted_image_certificates ?? null) !== null) throw noCertificates();
  const image = { caller, flavor, rule, volumes, mapped: mapped?.image ?? null };
  const { properties: imageProperties, needed } = await readBootImage(imageRef, deps.images, image);
  if (!isVolumeBacked) refuseZeroDisk(call, flavor);
  const groups = await readSecurityGroups(deps, call, body.server.security_groups);
  const connections = await planConnections(deps, call, body, {
    ...{ servers: request.count, rule: deps.networks },
    securityGroups: groups.length === 0 ? null : groups.map(({ id }) => id),
  });
  const portRequests = connections.requests;
  const problem = explainBadRequest(found, { imageProperties, portRequests });
  if (problem !== null) throw invalidField("flavorRef", body.server.flavorRef, problem);
  const key = await readKey(body.server.key_name ?? null, deps.keypairs, call.identity.userId);
  if (body.server.metadata !== undefined)
    refuseManyItems(body.server.metadata, await deps.limits.ofProject(call.identity.projectId));
  const hints = await withOwnServersOnly(readHints(body), call.identity, deps.store);
  const asked = { call, flavor, place, imageRef, imageProperties, hints, portRequests, key };
  const planned = planServers(body, request, { ...asked, nowMs: deps.clock.now(), newUuid: newRowUuid });
  const files = planned[0]?.files ?? [];
  if (files.length > 0) refuseManyFiles(files, await deps.limits.ofProject(call.identity.projectId));
  for (const spec of planned) refuseLargeSpec(spec);
  const joined = await joinGroup(deps.groups, call, planned, deps.limits);
  await provideImages(deps.images, needed);
  const accepted = await acceptWithParts(deps, joined, {
    ...{ call, connections, volumes },
    minCount: request.minCount,
    ...options,
  });
  const securityGroups = groups.length === 0 ? [DEFAULT_GROUP] : groups.map(({ id, name }) => name || id);
  return { specs: accepted, returnReservationId: request.returnReservationId, securityGroups };
}

/**
 * The policy has rules of their own for block devices, networks and certificates in a body. A body without the field `networks`, which old microversions
 * allow, asks for none, even where servers then get one.
 *
 * Source: `_process_bdms_for_create` and `_process_networks_for_create` in nova/api/openstack/compute/servers.py.
 */
function requirePartRules(call: KnownCall, { server }: CreateServerBody): void {
  const devices = [server.block_device_mapping, server.block_device_mapping_v2];
  if (devices.some((mappings = []) => mappings.length > 0)) requireRule(call, "servers:create:attach_volume");
  if ((server.trusted_image_certificates ?? null) !== null) {
    requireRule(call, "servers:create:trusted_certs");
    if ((server.imageRef ?? "") === "") throw noCertificates();
  }
  const { networks = "none" } = server;
  if (networks !== "none" && networks.length > 0) requireRule(call, "servers:create:attach_network");
}

const noCertificates = (): Fault =>
  badRequest("Image certificate validation is not supported when booting from volume");

/** Accepts the servers with their ports and volumes, which are reserved first. If nothing is accepted, they are given back. No volume is made beyond the quota of servers. */
async function acceptWithParts(
  deps: CreateServerDeps,
  joined: readonly ServerSpec[],
  {
    call,
    connections,
    volumes,
    minCount,
    carrier,
    renewMs,
  }: {
    readonly call: KnownCall;
    readonly connections: PlannedConnections;
    readonly volumes: readonly FoundVolume[];
    readonly minCount: number;
    readonly carrier: Readonly<Record<string, string>>;
    readonly renewMs: number;
  },
): Promise<AcceptedServers["specs"]> {
  const connected = await connections.connect(joined);
  let reserved: readonly ReservedVolumes[] = [];
  try {
    const makesVolumes = volumes.some(({ volume }) => volume === null);
    const wanted = makesVolumes ? await deps.acceptor.fitting(connected.specs, minCount) : connected.specs;
    const uuids = volumes.length === 0 ? [] : wanted.map(({ uuid }) => uuid);
    const hold = { clock: deps.clock, renewMs };
    const [first, ...others] = await holdVolumes(deps.volumes, uuids, hold, async () => {
      reserved = await reserveVolumes(deps.volumes, wanted, { found: volumes, call });
      const specs = reserved.map(({ spec }) => spec);
      return deps.acceptor.accept(specs, minCount, carrier);
    });
    if (first === undefined) throw new Error("a call accepted no server");
    const accepted = new Set([first, ...others].map(({ uuid }) => uuid));
    const unused = reserved.filter(({ spec }) => !accepted.has(spec.uuid));
    await releaseVolumes(deps.volumes, unused);
    await settlePorts(connected, [first, ...others]);
    return [first, ...others];
  } catch (error) {
    // A `Fault` means that nothing was accepted. After any other error the servers may have been accepted, so they keep their ports and volumes.
    if (error instanceof Fault) {
      await connected.undo();
      await releaseVolumes(deps.volumes, reserved);
    }
    throw error;
  }
}

/** The servers have been accepted, so the call succeeds even if this fails. What is left is then found in the background. */
async function settlePorts(connected: ConnectedServers, accepted: readonly ServerSpec[]): Promise<void> {
  await connected.settle(accepted).catch(() => undefined);
}

/** Returns the groups that a body names; none if it names the default group alone, which ports have by themselves. */
async function readSecurityGroups(
  { securityGroups }: CreateServerDeps,
  call: KnownCall,
  asked: readonly { readonly name?: string }[] | undefined,
): Promise<readonly SecurityGroup[]> {
  const { projectId } = call.identity;
  const names = [...new Set(asked?.flatMap(({ name }) => name ?? []))];
  if (names.every((name) => name === DEFAULT_GROUP)) return [];
  const missing = (name: string) =>
    invalidField("security_groups", name, `Security group ${describeValue(name)} not found for project ${projectId}.`);
  if (securityGroups === null) throw missing(names.find((name) => name !== DEFAULT_GROUP) ?? "");
  return securityGroups.resolve(call, projectId, names, missing);
}
