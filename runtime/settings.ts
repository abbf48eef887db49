import { parseFlags } from "./parse-flags.ts";
import type { Kind } from "./setting-kinds.ts";
import { refuseFaults } from "./settings-error.ts";

export { SettingsError } from "./settings-error.ts";

/** One setting of a command, made by `setting` or `optional`. */
export interface Setting<Value> {
  readonly kind: Kind<unknown>;
  /** The purpose of the setting: half a sentence for `--help`. */
  readonly about: string;
  /**
   * The default as it would be written on the command line. Undefined means that there is none: the setting has to be given or is optional.
   */
  readonly default: string | undefined;
  readonly optional: boolean;
  /** Exists only in the type, to carry the value's type. */
  readonly value?: Value;
}

/** A setting that must be given unless it has a default (written as on the command line). */
export function setting<Value>(
  kind: Kind<Value>,
  options: { readonly about: string; readonly default?: string },
): Setting<Value> {
  return { kind, about: options.about, default: options.default, optional: false };
}

/** A setting that is null when it is not given. */
export function optional<Value>(kind: Kind<Value>, options: { readonly about: string }): Setting<Value | null> {
  return { kind, about: options.about, default: undefined, optional: true };
}

type Declared = Readonly<Record<string, Setting<unknown>>>;

/**
 * The settings and arguments that a command takes. The key of a setting names it everywhere: `databaseUrl` is the flag `--database-url` and
 * the variable `BERTH_DATABASE_URL`.
 */
export interface Declaration<Settings extends Declared> {
  /** The command as it is typed, for example `berth cell add`. */
  readonly command: string;
  /** One sentence for `--help`. */
  readonly about: string;
  /**
   * Names of the positional arguments. A last one that ends in … may be repeated, one in brackets (`[NAME…]`) may be left out, and all
   * others are required.
   */
  readonly positionals?: readonly string[];
  readonly settings: Settings;
}

export type ValuesOf<Settings extends Declared> = {
  readonly [Name in keyof Settings]: Settings[Name] extends Setting<infer Value> ? Value : never;
};

export type Read<Settings extends Declared> =
  | { readonly kind: "settings"; readonly settings: ValuesOf<Settings>; readonly positionals: readonly string[] }
  | { readonly kind: "help"; readonly text: string };

/**
 * Reads a command's settings: a flag wins over the environment, and the environment over the default. Pure. The result is frozen. Throws a
 * `SettingsError` with everything that is missing, bad or unknown. `unreadable` says, by variable, why a variable's value could not be
 * read.
 */
export function readSettings<Settings extends Declared>(
  declaration: Declaration<Settings>,
  source: {
    readonly argv: readonly string[];
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly unreadable?: ReadonlyMap<string, string>;
  },
): Read<Settings> {
  const { values, positionals, faults: flagFaults, faulty } = parseFlags(source.argv, flagTypes(declaration));
  if (values.help === true) return { kind: "help", text: helpText(declaration) };
  const faults = flagFaults.map((fault) => `${fault}; see ${declaration.command} --help`);
  // The rest of a wrong flag must not be reported as an argument.
  if (faults.length === 0) faults.push(...positionalFaults(declaration, positionals));
  const settings: Record<string, unknown> = {};
  for (const [name, declared] of Object.entries(declaration.settings)) {
    if (faulty.has(flagOf(name))) continue;
    const flag = values[flagOf(name)];
    const env = source.env[envOf(name)];
    const unreadable = flag === undefined ? source.unreadable?.get(envOf(name)) : undefined;
    const read =
      unreadable === undefined
        ? readOne(name, declared, flag === undefined ? env || undefined : String(flag))
        : { fault: unreadable };
    if ("fault" in read) faults.push(read.fault);
    else settings[name] = read.value;
  }
  refuseFaults(faults);
  return { kind: "settings", settings: Object.freeze(settings) as ValuesOf<Settings>, positionals };
}

function positionalFaults(declaration: Declaration<Declared>, positionals: readonly string[]): readonly string[] {
  const names = declaration.positionals ?? [];
  const missing = names.filter((name) => !name.startsWith("[")).slice(positionals.length);
  if (missing.length > 0) return [`${missing[0]} is missing; usage: ${usage(declaration)}`];
  if (positionals.length <= names.length || /…\]?$/.test(names.at(-1) ?? "")) return [];
  return [`unexpected argument ${quote(positionals[names.length])}; usage: ${usage(declaration)}`];
}

type ReadOne = { readonly value: unknown } | { readonly fault: string };

function readOne(name: string, declared: Setting<unknown>, given: string | undefined): ReadOne {
  const text = given ?? declared.default;
  const label = `${envOf(name)} (--${flagOf(name)})`;
  if (text === undefined) {
    if (declared.optional) return { value: null };
    return { fault: `${label} is missing: ${declared.about}; allowed: ${declared.kind.allowed}` };
  }
  const value = declared.kind.parse(text);
  if (value !== undefined) return { value };
  if (text === "") return { fault: `${label} is empty; allowed: ${declared.kind.allowed}` };
  const shown = declared.kind.secret ? "" : `: ${quote(text)}`;
  return { fault: `${label} is wrong${shown}; allowed: ${declared.kind.allowed}` };
}

function flagTypes(
  declaration: Declaration<Declared>,
): Readonly<Record<string, { type: "string" | "boolean"; short?: string }>> {
  const types: Record<string, { type: "string" | "boolean"; short?: string }> = {
    help: { type: "boolean", short: "h" },
  };
  for (const [name, declared] of Object.entries(declaration.settings)) {
    types[flagOf(name)] = { type: declared.kind.flagOnly ? "boolean" : "string" };
  }
  return types;
}

/** The text that `--help` prints: every flag, its variable, what it allows and its default. */
export function helpText(declaration: Declaration<Declared>): string {
  const rows = Object.entries(declaration.settings).map(([name, declared]) => ({
    flag: declared.kind.flagOnly ? `--[no-]${flagOf(name)}` : `--${flagOf(name)} ${declared.kind.placeholder}`,
    env: declared.kind.secret ? `${envOf(name)}, ${envOf(name)}_FILE` : envOf(name),
    about: `${declared.about}${suffix(declared)}`,
  }));
  const width = Math.max(0, ...rows.map((row) => row.flag.length)) + 2;
  const lines = rows.flatMap((row) => [`  ${row.flag.padEnd(width)}${row.about}`, `  ${"".padEnd(width)}${row.env}`]);
  return [`usage: ${usage(declaration)}`, "", declaration.about, "", ...lines].join("\n");
}

function suffix(declared: Setting<unknown>): string {
  if (declared.default !== undefined) return ` (${declared.kind.allowed}; default ${declared.default || '""'})`;
  return declared.optional ? ` (${declared.kind.allowed})` : ` (${declared.kind.allowed}; required)`;
}

function usage(declaration: Declaration<Declared>): string {
  const flags = Object.keys(declaration.settings).length > 0 ? ["[flags]"] : [];
  return [declaration.command, ...(declaration.positionals ?? []), ...flags].join(" ");
}

function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The variable of a setting, for example `BERTH_DATABASE_URL` for `databaseUrl`. */
export function envOf(name: string): string {
  return `BERTH_${flagOf(name).replaceAll("-", "_").toUpperCase()}`;
}

function quote(text: string | undefined): string {
  return JSON.stringify(text);
}
