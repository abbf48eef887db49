import { parseArgs } from "node:util";

export interface Flags {
  readonly values: Readonly<Record<string, unknown>>;
  readonly positionals: readonly string[];
  /** What is wrong with flags, a line each. Values and positionals are of what remains without them. */
  readonly faults: readonly string[];
  /** Flags that have a fault, without dashes. */
  readonly faulty: ReadonlySet<string>;
}

type FlagTypes = Readonly<Record<string, { type: "string" | "boolean"; short?: string }>>;

/** Parses what stands on a command line. What the parser refuses is noted and left out, so that one error does not hide the next. */
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
      faults.push(firstSentence);
      const flag = /'(-[^\s']*)/.exec(firstSentence)?.[1] ?? "";
      faulty.add(flag.replace(/^-+(no-)?/, ""));
      const others = args.filter((word) => !isOf(word, flag));
      // Nothing was left out: the parser would say the same again.
      if (others.length === args.length) return { values: {}, positionals: [], faults, faulty };
      args = others;
    }
  }
}

function isOf(word: string, flag: string): boolean {
  if (flag === "" || word === flag || word.startsWith(`${flag}=`)) return flag !== "";
  // Short flags may stand together, and before their value.
  const isShort = flag.length === 2;
  return isShort && /^-[^-]/.test(word) && word.includes(flag.slice(1));
}
