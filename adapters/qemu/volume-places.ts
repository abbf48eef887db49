import { createHash } from "node:crypto";

/** The place of a volume on the guest's SCSI bus. It stays the same as long as the guest has the volume. */
export interface GuestVolume {
  readonly volumeId: string;
  /** 0 to 254. */
  readonly target: number;
  /** 0 to 255. */
  readonly lun: number;
  /** Whether the guest boots from it. Absent for other volumes. */
  readonly isRoot?: boolean | undefined;
  /** How the host reaches it, as Cinder says (`mountedFile`). Absent for a volume of Berth's own. */
  readonly connection?: string | undefined;
  /** Guests of other servers may have it, too. Absent for other volumes. */
  readonly isShared?: boolean | undefined;
  /** The volume that has replaced it, and whose way `connection` is. Absent if it was never replaced on this host. */
  readonly replacedBy?: string | undefined;
  /** The volume that is about to replace it. Absent for none. */
  readonly replacement?: VolumeReplacement | undefined;
  /** Whether an agent was disconnecting it when it died. Absent otherwise. Until somebody has said that the guest does not have it, it is the server's, and the guest has it at its next start. */
  readonly isLeaving?: boolean | undefined;
  /** Whether the guest was halted for a moment, to change over to another volume or to a former file of this one, when an agent died. Absent otherwise. */
  readonly isHalted?: boolean | undefined;
}

/** The replacement of a volume by another one. `isDecided`: the guest uses the other one, or is about to. */
export interface VolumeReplacement {
  readonly by: string;
  /** The ways to the other volume, and to the one that it replaces. */
  readonly connection: string;
  readonly former: string | undefined;
  /** The node of the other one in QEMU. Null until it is a copy. */
  readonly node: string | null;
  readonly isDecided: boolean;
}

const TARGETS = 255;
const LUNS = 256;

/**
 * The place of a further volume on a guest's bus. It follows from the volume's id, because memory can only be handed over to a guest that has the
 * same volumes at the same places, and the destination knows only their ids. If another volume of the guest has the place, the next free one is
 * taken.
 */
export function volumePlace(volumeId: string, taken: readonly GuestVolume[]): GuestVolume {
  const hash = createHash("sha256").update(volumeId).digest();
  const first = hash.readUInt32BE() % (TARGETS * LUNS);
  for (let step = 0; step < TARGETS * LUNS; step += 1) {
    const place = (first + step) % (TARGETS * LUNS);
    const [target, lun] = [place % TARGETS, Math.floor(place / TARGETS)];
    if (!taken.some((one) => one.target === target && one.lun === lun)) return { volumeId, target, lun };
  }
  throw new Error("the guest's bus has no free place");
}

/** The places of a guest's volumes. Those that are known keep theirs. */
export function volumePlaces(volumeIds: readonly string[], known: readonly GuestVolume[] = []): readonly GuestVolume[] {
  const places = known.filter(({ volumeId }) => volumeIds.includes(volumeId));
  for (const id of volumeIds) if (!places.some(({ volumeId }) => volumeId === id)) places.push(volumePlace(id, places));
  return places;
}
