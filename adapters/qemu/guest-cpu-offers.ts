import { execFile } from "node:child_process";
import type { CpuOffer } from "../../core/pinning/choose-cpu-model.ts";

const PROBE_MS = 20_000;
const OUTPUT_BYTES_MAX = 16_777_216;
/** QEMU's model of everything that it can give guests with an accelerator. */
const EVERYTHING = "max";

/** What is asked of QEMU. */
interface CpuQuestion {
  readonly program: string;
  /** Each as for QEMU's `-cpu`. */
  readonly cpuModels: readonly string[];
  readonly accel: "tcg" | "kvm";
}

/**
 * What guests have with each of the CPU models and an accelerator of this host, by QEMU's own word: the flags of the model that the accelerator can
 * give, and those that it cannot. The host's own CPU may have others. Throws an Error with QEMU's reason if it does not know one of the models, or
 * does not answer within 20 s.
 */
export async function guestCpuOffers(question: CpuQuestion, signal?: AbortSignal): Promise<readonly CpuOffer[]> {
  const { program, accel } = question;
  const models = question.cpuModels.map(readModel);
  const expand = (id: string, model: object) => ({
    ...{ execute: "query-cpu-model-expansion", id },
    arguments: { type: "full", model },
  });
  const commands = [
    { execute: "qmp_capabilities" },
    ...models.map(({ name, props }, index) => expand(`model ${index}`, { name, props })),
    expand(EVERYTHING, { name: EVERYTHING }),
    { execute: "query-cpu-definitions", id: "definitions" },
    { execute: "quit" },
  ];
  const options = ["-machine", `none,accel=${accel}`, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  const input = commands.map((one) => `${JSON.stringify(one)}\n`).join("");
  const answers = answersOf(await answersTo(program, [...options, "-qmp", "stdio"], input, signal));
  const all = expansionIn(answers, EVERYTHING, { cpuModel: EVERYTHING, accel });
  const definitions = answers.find(({ id }) => id === "definitions")?.return;
  return models.map((model, index) => {
    const own = expansionIn(answers, `model ${index}`, { cpuModel: model.cpuModel, accel });
    const flags = Object.keys(own).filter((flag) => own[flag] === true && all[flag] === true);
    return { cpuModel: model.cpuModel, flags, missing: missingOf(model, all, definitions) };
  });
}

function answersTo(program: string, args: readonly string[], input: string, signal?: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const limits = { timeout: PROBE_MS, maxBuffer: OUTPUT_BYTES_MAX, killSignal: "SIGKILL" as const };
    const child = execFile(program, args, { ...limits, ...(signal && { signal }) }, (error, output, complaint) => {
      if (error === null) resolve(output);
      else reject(new Error(`QEMU does not tell the flags of CPUs: ${complaint.trim() || error.message}`));
    });
    // A program that has ended at once takes no input. Its end tells why.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}

type Props = Readonly<Record<string, unknown>>;
interface Definition {
  readonly name?: string;
  readonly "unavailable-features"?: readonly string[];
}
interface Answer {
  readonly id?: string;
  readonly return?: { readonly model?: { readonly props?: Props } } | readonly Definition[];
  readonly error?: { readonly desc?: string };
}

interface ReadModel {
  readonly cpuModel: string;
  readonly name: string;
  readonly props: Props;
}

/** Reads `MODEL,+flag,-flag,name=value`. */
function readModel(cpuModel: string): ReadModel {
  const [name = "", ...parts] = cpuModel.split(",");
  const props = parts.map((part): [string, unknown] => {
    if (part.startsWith("+")) return [part.slice(1), true];
    if (part.startsWith("-")) return [part.slice(1), false];
    const [key = "", value = "on"] = part.split("=");
    return [key, value === "on" ? true : value === "off" ? false : value];
  });
  return { cpuModel, name, props: Object.fromEntries(props) };
}

function answersOf(output: string): readonly Answer[] {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Answer);
}

function expansionIn(
  answers: readonly Answer[],
  wanted: string,
  { cpuModel, accel }: { readonly cpuModel: string; readonly accel: string },
): Props {
  const answer = answers.find(({ id }) => id === wanted);
  const told = answer?.return;
  const props = told !== undefined && "model" in told ? told.model?.props : undefined;
  if (props !== undefined) return props;
  throw new Error(
    `QEMU does not expand the CPU model ${cpuModel} with ${accel}: ${answer?.error?.desc ?? "no answer"}`,
  );
}

/** The features without which QEMU would not start a guest of the model: those that the model has, unless they are switched off, and those that are switched on. */
function missingOf({ name, props }: ReadModel, all: Props, definitions: Answer["return"]): readonly string[] {
  const known = Array.isArray(definitions) ? (definitions as readonly Definition[]) : [];
  const own = known.find((one) => one.name === name)?.["unavailable-features"] ?? [];
  const changed = new Map(Object.entries(props).map(([flag, value]) => [plain(flag), value]));
  const added = Object.keys(props).filter((flag) => props[flag] === true && valueIn(all, flag) === false);
  return [...new Set([...own.filter((flag) => changed.get(plain(flag)) !== false), ...added])].sort();
}

/** QEMU writes the same flag as `sse4.1`, `sse4-1` and `sse4_1`. */
const plain = (flag: string): string => flag.toLowerCase().replace(/[-_.]/g, "");

function valueIn(props: Props, flag: string): unknown {
  return props[flag] ?? Object.entries(props).find(([name]) => plain(name) === plain(flag))?.[1];
}
