import type { Asked } from "./asked.ts";
import { agreedRequest, contradiction, hardwareRequest } from "./hardware-request.ts";
import { parseCpuMask } from "./parse-cpu-mask.ts";
import { badExtraSpec, badImageProperty, type RequestRefusal } from "./request-refusal.ts";

/** Which kinds of CPU a server needs. */
export interface CpuPlan {
  readonly kind: "plan";
  /** The policy, or null when neither flavor nor image names one. */
  readonly policy: CpuPolicy | null;
  /** CPUs of the guest, numbered from 0, that get a dedicated host CPU. */
  readonly dedicated: ReadonlySet<number>;
  /** Additional host CPUs for the emulator's threads. */
  readonly extraPcpus: number;
}

export const CPU_POLICIES = ["dedicated", "mixed", "shared"] as const;
export type CpuPolicy = (typeof CPU_POLICIES)[number];

const MASK_KEY = "hw:cpu_dedicated_mask";
const EMULATOR_KEY = "hw:emulator_threads_policy";

/**
 * Reads `hw:cpu_policy` with `hw:cpu_dedicated_mask` or a real-time mask, and `hw:emulator_threads_policy`. It refuses what Nova refuses
 * (nova.virt.hardware.numa_get_constraints): an image that overrides the flavor, a mask without `mixed` or `mixed` without a mask, a mask
 * of all CPUs or of none, amounts of VCPU or PCPU beside a policy.
 */
export function cpuPlan(asked: Asked): CpuPlan | RequestRefusal {
  const read = readPolicy(asked);
  if (read.kind !== "request") return read;
  const policy = read.value;
  const { vcpus, extraSpecs } = asked.flavor;
  const amount = Object.entries(extraSpecs).find(
    ([key, value]) => /^resources\w*:[VP]CPU$/.test(key) && Number(value) > 0,
  );
  if (policy !== null && amount !== undefined)
    return badExtraSpec(amount[0], amount[1], "left out, because a CPU policy is given");
  const emulator = extraSpecs[EMULATOR_KEY];
  if (emulator !== undefined && emulator !== "isolate" && emulator !== "share")
    return badExtraSpec(EMULATOR_KEY, emulator, "isolate or share");
  if (emulator === "isolate" && (policy === null || policy === "shared") && amount === undefined)
    return badExtraSpec(EMULATOR_KEY, emulator, "left out unless hw:cpu_policy is dedicated or mixed");
  const extraPcpus = emulator === "isolate" ? 1 : 0;
  const mask = extraSpecs[MASK_KEY];
  if (mask !== undefined && policy !== "mixed")
    return badExtraSpec(MASK_KEY, mask, "left out unless hw:cpu_policy is mixed");
  if (policy === "mixed") return mixedPlan(asked, extraPcpus);
  const all = Array.from({ length: policy === "dedicated" ? vcpus : 0 }, (_, cpu) => cpu);
  return { kind: "plan", policy, dedicated: new Set(all), extraPcpus };
}

function readPolicy(asked: Asked): { readonly kind: "request"; readonly value: CpuPolicy | null } | RequestRefusal {
  const { flavor, image } = hardwareRequest(asked, "cpu_policy");
  const ofImage = agreedRequest({ flavor: null, image }, CPU_POLICIES);
  if (ofImage.kind !== "request") return ofImage;
  const ofFlavor = agreedRequest({ flavor, image: null }, CPU_POLICIES);
  if (ofFlavor.kind !== "request" || !flavor || !image)
    return ofFlavor.kind === "request" && !flavor ? ofImage : ofFlavor;
  // A flavor that dedicates all CPUs already gives more than an image can ask for. Under other flavors the image may not ask for more
  // dedicated CPUs, since they would make the server more expensive.
  const isMore = flavor.value === "mixed" ? image.value === "dedicated" : image.value !== "shared";
  if (flavor.value !== "dedicated" && isMore)
    return contradiction(flavor, image, "an image may not request more dedicated CPUs");
  return ofFlavor;
}

function mixedPlan(asked: Asked, extraPcpus: number): CpuPlan | RequestRefusal {
  const { vcpus, extraSpecs } = asked.flavor;
  const realtime = hardwareRequest(asked, "cpu_realtime_mask");
  const isRealtime = /^(1|t|true|on|y|yes)$/i.test(extraSpecs["hw:cpu_realtime"] ?? "");
  const mask = extraSpecs[MASK_KEY];
  const ofRealtime = isRealtime ? (realtime.image ?? realtime.flavor) : null;
  if (mask !== undefined && isRealtime)
    return badExtraSpec(MASK_KEY, mask, "left out if hw:cpu_realtime already names the CPUs");
  const key = mask === undefined && ofRealtime ? ofRealtime.key : MASK_KEY;
  const text = mask ?? ofRealtime?.value;
  if (text === undefined) return badExtraSpec(MASK_KEY, "", "given, because hw:cpu_policy is mixed");
  const dedicated = parseCpuMask(text.trim().startsWith("^") ? `0-${vcpus - 1},${text}` : text);
  const isProper =
    dedicated !== null && dedicated.size > 0 && dedicated.size < vcpus && [...dedicated].every((cpu) => cpu < vcpus);
  if (isProper) return { kind: "plan", policy: "mixed", dedicated, extraPcpus };
  const allowed = `some but not all of the CPUs 0 to ${vcpus - 1}, as 0-1,3 or ^2`;
  return key.startsWith("hw_") ? badImageProperty(key, text, allowed) : badExtraSpec(key, text, allowed);
}
