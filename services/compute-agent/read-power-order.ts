import {
  ATTACH_VERB,
  DETACH_VERB,
  POWER_VERBS,
  type PowerVerb,
  RESCUE_VERB,
  SNAPSHOT_STEP_VERBS,
  SNAPSHOT_VERB,
  type SnapshotStep,
  VOLUME_STEP_VERBS,
  type VolumeStep,
} from "../../core/agent/power-verbs.ts";
import type { Power } from "../../proto/gen/berth/agent.ts";
import { type DriverCapability, NO_VOLUME_CHANGES, NO_VOLUME_SNAPSHOTS, NO_VOLUMES } from "./driver.ts";
import {
  type GuestOrder,
  orderOfPower,
  orderOfRescue,
  orderOfSnapshot,
  orderOfSnapshotStep,
  orderOfVolume,
  orderOfVolumeStep,
} from "./guest-order.ts";

type Capabilities = ReadonlySet<DriverCapability>;

/** The order that the message gives, or the reason why a host whose driver has these capabilities refuses it. */
export function readPowerOrder(message: Power, capabilities: Capabilities): GuestOrder | string {
  const verb = POWER_VERBS.find((one) => one === message.verb);
  if (message.verb === SNAPSHOT_VERB) return readSnapshot(message, capabilities);
  if (message.verb === ATTACH_VERB || message.verb === DETACH_VERB) return readVolumeChange(message, capabilities);
  const step = volumeStep(message.verb);
  if (step !== null) return readVolumeStep(message, step, capabilities);
  const part = snapshotStep(message.verb);
  if (part !== null) return readSnapshotStep(message, part, capabilities);
  if ([RESCUE_VERB, "unrescue"].includes(message.verb) && !capabilities.has("rescue"))
    return "the host's driver cannot rescue guests";
  if (message.verb === RESCUE_VERB)
    return message.rescueImage === undefined
      ? "the order names no rescue image"
      : orderOfRescue(message, message.rescueImage);
  if (verb === undefined) return `no such verb: ${message.verb}`;
  if (verb === "inject-nmi" && !capabilities.has("inject-nmi"))
    return "the host's driver cannot send guests a non-maskable interrupt";
  if (NEEDING_SUSPEND.includes(verb) && !capabilities.has("suspend")) return "the host's driver cannot suspend guests";
  return orderOfPower(message, verb);
}

function readSnapshot(message: Power, capabilities: Capabilities): GuestOrder | string {
  if (!capabilities.has("snapshot")) return "the host's driver cannot copy disks into images";
  return isUuid(message.imageId) ? orderOfSnapshot(message) : `"${message.imageId.slice(0, 100)}" is no image id`;
}

/** Every driver is asked to disconnect a volume, since the guest may have got it from an agent with other settings. */
function readVolumeChange(message: Power, capabilities: Capabilities): GuestOrder | string {
  const { volume, verb } = message;
  const isAttach = verb === ATTACH_VERB;
  if (volume === undefined || !isUuid(volume.volumeId)) return noVolumeId(volume?.volumeId);
  if (isAttach && !capabilities.has("volumes")) return NO_VOLUMES;
  return orderOfVolume(message, isAttach ? "attach" : "detach", volume);
}

function readVolumeStep(message: Power, step: VolumeStep, capabilities: Capabilities): GuestOrder | string {
  const { volume } = message;
  const ids = step === "extend" ? [volume?.volumeId] : [volume?.volumeId, volume?.replacedBy];
  const wrong = ids.find((id = "") => !isUuid(id));
  if (volume === undefined || wrong !== undefined) return noVolumeId(wrong);
  return capabilities.has("change-volumes") ? orderOfVolumeStep(message, step, volume) : NO_VOLUME_CHANGES;
}

function readSnapshotStep(message: Power, step: SnapshotStep, capabilities: Capabilities): GuestOrder | string {
  const { volume, snapshot } = message;
  if (volume === undefined || !isUuid(volume.volumeId)) return noVolumeId(volume?.volumeId);
  if (!capabilities.has("volume-snapshots")) return NO_VOLUME_SNAPSHOTS;
  if (snapshot === undefined) return "the order names no snapshot";
  const { newFile, fileToMerge, mergeTarget } = snapshot;
  const wrong = [newFile, fileToMerge, mergeTarget].find((file) => file !== "" && !isFileName(file));
  if (wrong !== undefined) return `"${wrong.slice(0, 100)}" is no name of a file`;
  if (newFile === "" && step !== "merge") return "the order names no new file";
  return orderOfSnapshotStep(message, step, volume, snapshot);
}

const NEEDING_SUSPEND: readonly PowerVerb[] = ["suspend", "resume"];
const noVolumeId = (id = ""): string => `"${id.slice(0, 100)}" is no volume id`;
const volumeStep = (verb: string): VolumeStep | null =>
  (Object.keys(VOLUME_STEP_VERBS) as readonly VolumeStep[]).find((step) => VOLUME_STEP_VERBS[step] === verb) ?? null;
const snapshotStep = (verb: string): SnapshotStep | null =>
  (Object.keys(SNAPSHOT_STEP_VERBS) as readonly SnapshotStep[]).find((step) => SNAPSHOT_STEP_VERBS[step] === verb) ??
  null;
const isFileName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/.test(name);
const isUuid = (id: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
