import { Type } from "typebox";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { placeOf } from "../../http/links.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { AnyQuery, readFlag } from "../../http/schema.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import type { ListPart, ProxiedSnapshot, ProxiedVolume, ProxiedVolumes } from "./proxied-volumes.ts";
import { invalidInput, snapshotNotFound } from "./proxy-faults.ts";
import {
  CreateProxiedSnapshotBody,
  CreateProxiedVolumeBody,
  ProxiedSnapshotAnswer,
  ProxiedSnapshotsAnswer,
  ProxiedVolumeAnswer,
  ProxiedVolumesAnswer,
} from "./volume-proxy-schemas.ts";

interface Options {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** The microversions that have the proxies. */
const of = (rule: string) => ({ until: 35, rule: `os-volumes:${rule}` });
const IdParams = Type.Object({ id: Type.String() });

/**
 * Registers `/os-volumes`, the proxy of the Block Storage API, which ends after 2.35 as upstream. Both lists show all fields. Without volumes (null) there are
 * none, and none can be made.
 *
 * Source: nova/api/openstack/compute/volumes.py
 */
export function registerVolumeProxies(http: Http, volumes: ProxiedVolumes | null, options: Options): void {
  for (const [url, rule] of [
    ["/os-volumes", "list"],
    ["/os-volumes/detail", "detail"],
  ] as const) {
    const list = { config: of(rule), schema: { querystring: AnyQuery, response: { 200: ProxiedVolumesAnswer } } };
    http.get(url, list, async (request) => {
      const found = await volumes?.volumes(partOf(request.query, options), callOf(request));
      return { volumes: (found ?? []).map(volumeView) };
    });
  }

  const create = {
    config: of("create"),
    schema: { body: CreateProxiedVolumeBody, response: { 200: ProxiedVolumeAnswer } },
  };
  http.post("/os-volumes", create, async (request, reply) => {
    const { volume: asked } = request.body;
    const call = callOf(request);
    const snapshotId = asked.snapshot_id ?? null;
    if (snapshotId !== null) await findSnapshot(volumes, snapshotId, call);
    const wanted = {
      ...{ name: asked.display_name ?? "", description: asked.display_description ?? null },
      ...{ sizeGib: Number(asked.size), metadata: asked.metadata ?? {}, volumeType: asked.volume_type ?? null },
      ...{ availabilityZone: asked.availability_zone ?? null, snapshotId },
    };
    if (volumes === null) throw invalidInput("this cloud has no volumes; an operator sets them with BERTH_VOLUMES.");
    const made = await volumes.createVolume(wanted, call);
    const { versioned } = placeOf(request, options.prefix, options.publicUrl);
    reply.header("location", `${versioned}/os-volumes/${made.id}`);
    return { volume: volumeView(made) };
  });

  const show = {
    config: of("show"),
    schema: { params: IdParams, querystring: AnyQuery, response: { 200: ProxiedVolumeAnswer } },
  };
  http.get("/os-volumes/:id", show, async (request) => {
    const { id } = request.params;
    const volume = (await volumes?.volume(id, callOf(request))) ?? null;
    if (volume === null) throw volumeNotFound(id);
    return { volume: volumeView(volume) };
  });

  http.delete("/os-volumes/:id", { config: of("delete"), schema: { params: IdParams } }, async (request, reply) => {
    const { id } = request.params;
    if (volumes === null) throw volumeNotFound(id);
    await volumes.deleteVolume(id, callOf(request));
    return reply.code(202).send();
  });
}

/** Registers `/os-snapshots` in the same way. Source: nova/api/openstack/compute/snapshots.py */
export function registerSnapshotProxies(
  http: Http,
  volumes: ProxiedVolumes | null,
  options: Pick<Options, "pageMax">,
): void {
  for (const [url, rule] of [
    ["/os-snapshots", "snapshots:list"],
    ["/os-snapshots/detail", "snapshots:detail"],
  ] as const) {
    const list = { config: of(rule), schema: { querystring: AnyQuery, response: { 200: ProxiedSnapshotsAnswer } } };
    http.get(url, list, async (request) => {
      const found = await volumes?.snapshots(partOf(request.query, options), callOf(request));
      return { snapshots: (found ?? []).map(snapshotView) };
    });
  }

  const create = {
    config: of("snapshots:create"),
    schema: { body: CreateProxiedSnapshotBody, response: { 200: ProxiedSnapshotAnswer } },
  };
  http.post("/os-snapshots", create, async (request) => {
    const { volume_id: volumeId, force = false, display_name, display_description } = request.body.snapshot;
    if (volumes === null) throw volumeNotFound(volumeId);
    const wanted = { volumeId, name: display_name ?? "", description: display_description ?? null };
    const made = await volumes.createSnapshot({ ...wanted, force: readFlag(force) ?? false }, callOf(request));
    return { snapshot: snapshotView(made) };
  });

  const show = {
    config: of("snapshots:show"),
    schema: { params: IdParams, querystring: AnyQuery, response: { 200: ProxiedSnapshotAnswer } },
  };
  http.get("/os-snapshots/:id", show, async (request) => ({
    snapshot: snapshotView(await findSnapshot(volumes, request.params.id, callOf(request))),
  }));

  const remove = { config: of("snapshots:delete"), schema: { params: IdParams } };
  http.delete("/os-snapshots/:id", remove, async (request, reply) => {
    const { id } = request.params;
    if (volumes === null) throw snapshotNotFound(id);
    await volumes.deleteSnapshot(id, callOf(request));
    return reply.code(202).send();
  });
}

async function findSnapshot(volumes: ProxiedVolumes | null, id: string, call: KnownCall): Promise<ProxiedSnapshot> {
  const snapshot = (await volumes?.snapshot(id, call)) ?? null;
  if (snapshot === null) throw snapshotNotFound(id);
  return snapshot;
}

/** A limit of 0 means the longest list, as in Nova. */
function partOf(
  parameters: Readonly<Record<string, string | string[]>>,
  { pageMax }: Pick<Options, "pageMax">,
): ListPart {
  const query = new QueryReader(parameters);
  return { offset: query.wholeNumber("offset") ?? 0, limit: query.limit(pageMax) || pageMax };
}

function volumeView(volume: ProxiedVolume) {
  const { id, status, availabilityZone, createdAt, volumeType, snapshotId, metadata, holder } = volume;
  const held = holder && {
    ...{ id, volumeId: id, serverId: holder.serverUuid },
    ...(holder.device !== "" && { device: holder.device }),
  };
  return {
    ...{ id, status, size: volume.sizeGib, availabilityZone, createdAt },
    // Nova shows an empty attachment of a volume that no server has.
    attachments: [held ?? {}],
    ...{ displayName: volume.name || null, displayDescription: volume.description },
    ...{ volumeType, snapshotId, metadata },
  };
}

const snapshotView = ({ id, volumeId, status, createdAt, ...snapshot }: ProxiedSnapshot) => ({
  ...{ id, volumeId, status, size: snapshot.sizeGib, createdAt },
  ...{ displayName: snapshot.name || null, displayDescription: snapshot.description },
});
