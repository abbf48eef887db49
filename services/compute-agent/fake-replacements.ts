import type { VolumeStep } from "../../core/agent/power-verbs.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";

/** Another volume that takes, or has taken, the place of a guest's volume. `isUsed`: the guest uses it, and no longer its own. */
export interface FakeReplacement {
  readonly by: string;
  readonly isUsed: boolean;
}
export type FakeReplacements = Readonly<Record<string, FakeReplacement>>;

interface Replaceable {
  readonly volumes?: readonly string[];
  readonly replacements?: FakeReplacements;
}

/** The replacements of a guest's volumes after one step of one of them. Throws what the driver rejects with. */
export function replacementsAfter(
  { volumes = [], replacements = {} }: Replaceable,
  { volumeId, replacedBy: by }: Pick<ServerVolume, "volumeId" | "replacedBy">,
  step: VolumeStep,
): FakeReplacements {
  if (!volumes.includes(volumeId)) throw new Error(`the guest does not have volume ${volumeId}`);
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
