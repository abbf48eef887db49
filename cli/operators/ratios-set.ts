import { float, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, SettingsError } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { type ApiAccess, callOperatorsApi, operatorSettings } from "./operators-client.ts";
import { type ShownSync, syncText } from "./print-sync.ts";

const ratio = float({ min: 1e-6, max: 1e9 });
const CLASS = "[A-Z0-9_]{1,255}";

/** `CLASS=RATIO`, for classes without a flag. */
const classRatio: Kind<readonly [string, number]> = {
  allowed: "CLASS=RATIO",
  placeholder: "CLASS=N",
  parse: (given) => {
    const [, name, amount] = new RegExp(`^(${CLASS})=(.+)$`).exec(given) ?? [];
    const read = ratio.parse(amount ?? "");
    return name === undefined || read === undefined ? undefined : [name, read];
  },
};

const scope = {
  aggregate: optional(text(), { about: "for all hosts of this aggregate (its name or id)" }),
  host: optional(text(), { about: "for this host; takes precedence over its aggregates'" }),
};
const setDeclaration = {
  command: "berth ratios set",
  about:
    "Sets allocation ratios. A host's own ratio takes precedence over the lowest of its aggregates', and that over its agent's.",
  settings: {
    ...operatorSettings,
    ...scope,
    vcpu: optional(ratio, { about: "VCPU" }),
    ram: optional(ratio, { about: "MEMORY_MB" }),
    disk: optional(ratio, { about: "DISK_GB" }),
    classes: optional(listOf(classRatio), { about: "other classes" }),
  },
};
const unsetDeclaration = {
  command: "berth ratios unset",
  about: "Removes allocation ratios, by class (vcpu, ram and disk are short for theirs).",
  positionals: ["CLASS…"],
  settings: { ...operatorSettings, ...scope },
};

const CLASSES_BY_WORD: Readonly<Record<string, string>> = { vcpu: "VCPU", ram: "MEMORY_MB", disk: "DISK_GB" };

/** `berth ratios set`. */
export function runRatiosSetCommand(argv: readonly string[]): Promise<number> {
  return runCommand(setDeclaration, argv, (settings) => {
    const named = [
      ["VCPU", settings.vcpu],
      ["MEMORY_MB", settings.ram],
      ["DISK_GB", settings.disk],
      ...(settings.classes ?? []),
    ] as const;
    const ratios = Object.fromEntries(named.filter(([, value]) => value !== null));
    if (Object.keys(ratios).length === 0)
      throw new SettingsError("no ratio is given: give at least one of --vcpu, --ram, --disk and --classes");
    return change(settings, settings, ratios);
  });
}

/** `berth ratios unset`. */
export function runRatiosUnsetCommand(argv: readonly string[]): Promise<number> {
  return runCommand(unsetDeclaration, argv, (settings, words) => {
    const ratios = words.map((word) => [CLASSES_BY_WORD[word] ?? word, null] as const);
    return change(settings, settings, Object.fromEntries(ratios));
  });
}

async function change(
  access: ApiAccess,
  { aggregate, host }: { readonly aggregate: string | null; readonly host: string | null },
  ratios: Readonly<Record<string, number | null>>,
): Promise<number> {
  if ((aggregate === null) === (host === null)) throw new SettingsError("give either --aggregate or --host");
  const body = { ...(aggregate === null ? { host } : { aggregate }), ratios };
  const answer = await callOperatorsApi<ShownSync>(access, "PUT", "/ratios", body);
  process.stdout.write(`${syncText(answer)}${answer.changed.length} hosts changed\n`);
  return 0;
}
