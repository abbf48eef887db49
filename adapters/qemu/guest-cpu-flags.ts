import { execFile } from "node:child_process";

const PROBE_MS = 20_000;
const OUTPUT_BYTES_MAX = 4_194_304;
/** QEMU's model of everything that it can give guests with an accelerator. */
const EVERYTHING = "max";

/** What is asked of QEMU. */
interface CpuQuestion {
  readonly program: string;
  /** As for QEMU's `-cpu`. */
  readonly cpuModel: string;
  readonly accel: "tcg" | "kvm";
}

/**
 * The flags of the CPUs that guests have with a CPU model and an accelerator of this host, by QEMU's own word: those of the model that the
 * accelerator can give. The host's own CPU may have others. Throws an Error with QEMU's reason if it does not tell them within 20 s.
 */
export async function guestCpuFlags(question: CpuQuestion, signal?: AbortSignal): Promise<readonly string[]> {
  const { program, cpuModel, accel } = question;
  const { name, props } = readModel(cpuModel);
  const expand = (model: object) => ({
    execute: "query-cpu-model-expansion",
    arguments: { type: "full", model },
  });
  const expansions = [expand({ name, props }), expand({ name: EVERYTHING })];
  const commands = [{ execute: "qmp_capabilities" }, ...expansions, { execute: "quit" }];
  const options = ["-machine", `none,accel=${accel}`, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  const input = commands.map((one) => `${JSON.stringify(one)}\n`).join("");
  const output = await answersTo(program, [...options, "-qmp", "stdio"], input, signal);
  const [own, all] = expansionsOf(output);
  if (own === undefined || all === undefined)
    throw new Error(`QEMU does not expand the CPU model ${cpuModel} with ${accel}: ${firstError(output)}`);
  return Object.keys(own).filter((flag) => own[flag] === true && all[flag] === true);
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
interface Answer {
  readonly return?: { readonly model?: { readonly props?: Props } };
  readonly error?: { readonly desc?: string };
}

/** Reads `MODEL,+flag,-flag,name=value`. */
function readModel(cpuModel: string): { readonly name: string; readonly props: Props } {
  const [name = "", ...parts] = cpuModel.split(",");
  const props = parts.map((part): [string, unknown] => {
    if (part.startsWith("+")) return [part.slice(1), true];
    if (part.startsWith("-")) return [part.slice(1), false];
    const [key = "", value = "on"] = part.split("=");
    return [key, value === "on" ? true : value === "off" ? false : value];
  });
  return { name, props: Object.fromEntries(props) };
}

function answersOf(output: string): readonly Answer[] {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Answer);
}

const expansionsOf = (output: string): readonly Props[] =>
  answersOf(output)
    .map((answer) => answer.return?.model?.props)
    .filter((props) => props !== undefined);

const firstError = (output: string): string =>
  answersOf(output).find((answer) => answer.error !== undefined)?.error?.desc ?? "no answer";
