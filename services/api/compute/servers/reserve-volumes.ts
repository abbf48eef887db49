import { randomUUID } from "node:crypto";
import type { NewAttachment } from "../../../../core/stores/api/volume-store.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { type Clock, systemClock } from "../../../../runtime/clock.ts";
import { forEachBounded } from "../../../../runtime/for-each-bounded.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict } from "../../http/fault.ts";
import { nextDevice, ROOT_DEVICE } from "../server-volumes/root-device.ts";
import { serverVolumeOf } from "../server-volumes/server-volume-of.ts";
import type { FoundRecord, ServerVolumes } from "../server-volumes/server-volumes.ts";
import { type FoundVolume, refuseReserved } from "./find-volumes.ts";
import { volumeMissing } from "./read-block-devices.ts";

/** The attachments that a new server has reserved. */
export interface ReservedVolumes {
  readonly spec: ServerSpec;
  readonly ids: readonly string[];
}

/** For how many servers of one call volumes are made, or given back, at a time. */
const SERVERS_AT_ONCE = 8;
/** How long a call that is refused goes on to give volumes back. */
const RELEASE_MS_MAX = 10_000;

/**
 * Reserves the volumes for servers that are about to be accepted, makes those that are new, and writes them into the specs: all of them, or none with a
 * fault. From then on no other server gets them. If this process dies before the servers are accepted, the settler of volumes takes them back.
 */
export async function reserveVolumes(
  store: ServerVolumes | null,
  specs: readonly ServerSpec[],
  { found, call }: { readonly found: readonly FoundVolume[]; readonly call: KnownCall },
): Promise<readonly ReservedVolumes[]> {
  if (store === null || found.length === 0) return specs.map((spec) => ({ spec, ids: [] }));
  const devices = devicesOf(found);
  const reserved: ReservedVolumes[] = [];
  try {
    return await forEachBounded(specs, SERVERS_AT_ONCE, async (spec) => {
      const one = await reserveFor(store, spec, { found, devices, call });
      reserved.push(one);
      return one;
    });
  } catch (error) {
    await releaseVolumes(store, reserved);
    throw error;
  }
}

async function reserveFor(
  store: ServerVolumes,
  spec: ServerSpec,
  {
    found,
    devices,
    call,
  }: { readonly found: readonly FoundVolume[]; readonly devices: readonly string[]; readonly call: KnownCall },
): Promise<ReservedVolumes> {
  const ids: string[] = [];
  const volumes = [];
  try {
    for (const [index, one] of found.entries()) {
      const { wanted } = one;
      const attachment: NewAttachment = {
        ...{
          serverUuid: spec.uuid,
          cell: "",
          taskId: spec.uuid,
          attachmentId: randomUUID(),
          mappingUuid: randomUUID(),
        },
        ...{ device: devices[index] ?? "", tag: wanted.tag, deleteOnTermination: wanted.deleteOnTermination },
      };
      const kept = await keep(store, one, { attachment, index, call });
      ids.push(kept.volume.id);
      volumes.push({ ...serverVolumeOf({ ...kept.volume, attachment: kept.attachment }), isRoot: wanted.isRoot });
    }
  } catch (error) {
    await releaseVolumes(store, [{ spec, ids }]);
    throw error;
  }
  return { spec: { ...spec, volumes }, ids };
}

interface Kept {
  readonly volume: Pick<FoundRecord, "id" | "sizeGib" | "inCinder" | "isMultiattach">;
  readonly attachment: NewAttachment;
}

/** Reserves an existing volume, or makes a new one. */
async function keep(
  store: ServerVolumes,
  { volume, wanted }: FoundVolume,
  { attachment, index, call }: { readonly attachment: NewAttachment; readonly index: number; readonly call: KnownCall },
): Promise<Kept> {
  if (volume === null) {
    const { source, sizeGib, volumeType } = wanted;
    if (source.kind === "volume") throw new Error(`volume ${source.id} was not looked up`);
    const name = `${attachment.serverUuid}-${source.kind}-vol-${index}`;
    const made = await store.make({ name, source, sizeGib, volumeType }, attachment, call);
    if (made.kind === "refused") throw made.fault;
    return { volume: made.volume, attachment };
  }
  const outcome = await store.reserve(volume, attachment, call);
  if (outcome.kind === "reserved") return { volume, attachment: outcome.attachment };
  if (outcome.kind === "refused") throw outcome.fault;
  const now = await store.volumes([volume.id]);
  if (now.length === 0) throw volumeMissing(volume.id);
  for (const one of now) refuseReserved(one);
  throw conflict(`Volume ${volume.id} kept changing; try again.`);
}

/**
 * Takes back the volumes of servers that were not accepted. What cannot be taken back now, or not within `RELEASE_MS_MAX`, is left to the settler of volumes.
 */
export async function releaseVolumes(
  store: Pick<ServerVolumes, "release"> | null,
  reserved: readonly ReservedVolumes[],
  clock: Pick<Clock, "monotonic"> = systemClock,
): Promise<void> {
  if (store === null) return;
  const untilMs = clock.monotonic() + RELEASE_MS_MAX;
  const isLate = () => clock.monotonic() >= untilMs;
  await forEachBounded(reserved, SERVERS_AT_ONCE, async ({ spec, ids }) => {
    for (const id of ids) if (!isLate()) await store.release(id, spec.uuid).catch(() => false);
  });
}

/** The device of each volume: the root device for the boot disk, the one that was asked for, or else the next free one. */
function devicesOf(found: readonly FoundVolume[]): readonly string[] {
  const used = new Set([ROOT_DEVICE]);
  for (const { wanted } of found) {
    if (wanted.isRoot || wanted.device === null) continue;
    if (used.has(wanted.device))
      throw badRequest(`Block Device Mapping is Invalid: the device ${wanted.device} is used twice.`);
    used.add(wanted.device);
  }
  return found.map(({ wanted: { isRoot, device } }) => {
    if (isRoot) return ROOT_DEVICE;
    const given = device ?? nextDevice(used);
    used.add(given);
    return given;
  });
}
