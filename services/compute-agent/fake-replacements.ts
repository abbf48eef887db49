import type { VolumeStep } from "../../core/agent/power-verbs.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { LacksVolumeError } from "./driver.ts";
import type { FakePower } from "./fake-power.ts";
import { type FakeFiles, type FakeShare, nameIn } from "./fake-volume-files.ts";

/** Another volume that takes, or has taken, the place of a guest's volume. `isUsed`: the guest uses it, and no longer its own. */
export interface FakeReplacement {
  readonly by: string;
  readonly isUsed: boolean;
  /** Its file in Cinder, to which the guest writes, too, until it uses nothing else. */
  readonly file?: string;
}
export type FakeReplacements = Readonly<Record<string, FakeReplacement>>;

interface Replaceable {
  readonly volumes?: readonly string[];
  readonly replacements?: FakeReplacements;
  readonly files?: FakeFiles;
}

/** A guest's replacements and files after one step of the replacement of one of its volumes. Throws what the driver rejects with. */
export function replacedAfter(
  found: Replaceable & { readonly power: FakePower },
  volume: Pick<ServerVolume, "volumeId" | "replacedBy" | "connection">,
  step: VolumeStep,
  share: FakeShare,
): Pick<Replaceable, "replacements" | "files"> {
  const { volumeId, connection } = volume;
  const before = found.replacements?.[volumeId];
  const replacements = replacementsAfter(found, volume, step);
  const now = replacements[volumeId];
  if (step === "extend" || step === "keep" || now === undefined || (before?.isUsed === true && now.isUsed))
    return { replacements };
  if (!hasProcess(found.power)) throw new Error("the guest does not run, so its volume is not replaced");
  const own = found.files?.[volumeId];
  if (step === "mirror") {
    const file = nameIn(connection);
    if (file === null || own?.[0] === undefined) return { replacements };
    share.copied?.(own[0], file);
    return { replacements: { ...replacements, [volumeId]: { ...now, file } } };
  }
  const file = before?.file;
  if (file === undefined) return { replacements };
  return {
    replacements: { ...replacements, [volumeId]: { ...now, file } },
    files: { ...found.files, [volumeId]: share.chainOf(file) },
  };
}

/** A guest's replacements when it has this power. A copying ends with the process that copies. */
export function replacementsWith(
  power: FakePower,
  { replacements }: Pick<Replaceable, "replacements">,
): Pick<Replaceable, "replacements"> {
  if (replacements === undefined || hasProcess(power)) return {};
  return { replacements: Object.fromEntries(Object.entries(replacements).filter(([, { isUsed }]) => isUsed)) };
}

/** The replacements of a guest that no longer has the volume. */
export const replacementsWithout = (replacements: FakeReplacements, volumeId: string): FakeReplacements =>
  Object.fromEntries(Object.entries(replacements).filter(([id]) => id !== volumeId));

const hasProcess = (power: FakePower): boolean => runsNow(power) || power === "paused";

function replacementsAfter(
  { volumes = [], replacements = {} }: Replaceable,
  { volumeId, replacedBy: by }: Pick<ServerVolume, "volumeId" | "replacedBy">,
  step: VolumeStep,
): FakeReplacements {
  if (!volumes.includes(volumeId)) throw new LacksVolumeError(volumeId);
  if (step === "extend") return replacements;
  const { [volumeId]: present, ...others } = replacements;
  const isUsed = present?.by === by && present.isUsed;
  if (isUsed && step === "keep") throw new Error(`the guest uses volume ${by} already`);
  if (isUsed) return replacements;
  if (step === "keep") return others;
  if (step === "pivot" && present?.by !== by) throw new Error(`there is no copy of volume ${volumeId}`);
  return { ...others, [volumeId]: { by, isUsed: step === "pivot" } };
}

/** The ids under which Cinder knew the volumes that a guest uses when it got them. */
export const volumesInUse = ({ volumes = [], replacements = {} }: Replaceable): readonly string[] =>
  volumes.map((id) => (replacements[id]?.isUsed === true ? replacements[id].by : id));
