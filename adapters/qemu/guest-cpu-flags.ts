import { execFileSync } from "node:child_process";

const PROBE_MS = 20_000;
const OUTPUT_BYTES_MAX = 4_194_304;
/** QEMU's model of everything that it can give guests with an accelerator. */
const EVERYTHING = "max";

/**
 * The flags of the CPUs that guests have with a CPU model and an accelerator of this host, by QEMU's own word: those of the model that the accelerator can give. The
 * host's own CPU may have others. `cpuModel` is written as for QEMU's `-cpu`. Throws an Error if QEMU does not tell.
 */
export function guestCpuFlags(program: string, cpuModel: string, accel: "tcg" | "kvm"): readonly string[] {
  const { name, props } = readModel(cpuModel);
  const expand = (model: object) => ({
    execute: "query-cpu-model-expansion",
    arguments: { type: "full", model },
  });
  const commands = [
    ...[{ execute: "qmp_capabilities" }, expand({ name, props }), expand({ name: EVERYTHING }), { execute: "quit" }],
  ];
  const options = ["-machine", `none,accel=${accel}`, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  const output = execFileSync(program, [...options, "-qmp", "stdio"], {
    ...{ input: commands.map((one) => `${JSON.stringify(one)}\n`).join(""), encoding: "utf8" },
    ...{ timeout: PROBE_MS, maxBuffer: OUTPUT_BYTES_MAX, stdio: ["pipe", "pipe", "ignore"] },
  });
  const [own, all] = expansionsOf(output);
  if (own === undefined || all === undefined)
    throw new Error(`QEMU does not expand the CPU model ${cpuModel} with ${accel}: ${firstError(output)}`);
  return Object.keys(own).filter((flag) => own[flag] === true && all[flag] === true);
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
