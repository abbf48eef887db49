import { parseArgs } from "node:util";
import { nearestWords } from "./nearest-words.ts";

export interface Flags {
  readonly values: Readonly<Record<string, unknown>>;
  readonly positionals: readonly string[];
  /** The faults of the flags, one line each. Values and positionals come from the rest of the command line. */
  readonly faults: readonly string[];
  /** Names of the faulty flags, without dashes. */
  readonly faulty: ReadonlySet<string>;
}

type FlagTypes = Readonly<Record<string, { type: "string" | "boolean"; short?: string }>>;

/** Parses a command line. Arguments that the parser refuses are noted and left out, so that one error does not hide the next. */
export function parseFlags(argv: readonly string[], options: FlagTypes): Flags {
  const faults: string[] = [];
  const faulty = new Set<string>();
  for (let args = [...argv]; ; ) {
    try {
      const { values, positionals } = parseArgs({
        ...{ args, options, allowNegative: true, allowPositionals: true, strict: true },
      });
      return { values, positionals, faults, faulty };
    } catch (error) {
      const [firstSentence = ""] = (error as Error).message.split(/\.\s|\.?\n/);
      const flag = /'(-[^\s']*)/.exec(firstSentence)?.[1] ?? "";
      const isDashed = firstSentence.endsWith("argument is ambiguous");
      faults.push(
        isDashed
          ? `Option '${flag}' needs a value; write one that begins with a dash as ${flag}=VALUE`
          : `${firstSentence}${nearestText(firstSentence, flag, options)}`,
      );
      faulty.add(flag.replace(/^-+(no-)?/, ""));
      const isItsNumber = (at: number) => isDashed && args[at - 1] === flag && /^-[0-9.]/.test(args[at] ?? "");
      const others = args.filter((word, at) => !isOf(word, flag) && !isItsNumber(at));
      // Nothing was left out, so the parser would fail in the same way again.
      if (others.length === args.length) return { values: {}, positionals: [], faults, faulty };
      args = others;
    }
  }
}

/** The known flags that are similar to an unknown one, as half a sentence. */
function nearestText(fault: string, flag: string, options: FlagTypes): string {
  if (!fault.startsWith("Unknown option ") || !flag.startsWith("--")) return "";
  const names = Object.entries(options).flatMap(([name, { type }]) =>
    type === "boolean" && name !== "help" ? [name, `no-${name}`] : [name],
  );
  const nearest = nearestWords(flag.slice(2), names);
  return nearest.length === 0 ? "" : `: did you mean ${nearest.map((name) => `--${name}`).join(" or ")}`;
}

function isOf(word: string, flag: string): boolean {
  if (flag === "" || word === flag || word.startsWith(`${flag}=`)) return flag !== "";
  // Short flags may be combined, and may be followed directly by their value.
  const isShort = flag.length === 2;
  return isShort && /^-[^-]/.test(word) && word.includes(flag.slice(1));
}
