/** How the text of a setting becomes its value. */
export interface Kind<Value> {
  /** The allowed values, for error messages and `--help`. */
  readonly allowed: string;
  /** Placeholder for the value in `--help`. */
  readonly placeholder: string;
  /** Returns undefined when the text is not allowed. */
  parse(text: string): Value | undefined;
  /** Whether the text may hold a password, so that it must never be shown. */
  readonly secret?: boolean;
  /** Whether the flag takes no value. */
  readonly flagOnly?: boolean;
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Any text except the empty one; `pattern` narrows it and `allowed` describes the pattern. */
export function text(options?: { readonly pattern: RegExp; readonly allowed: string }): Kind<string> {
  return {
    allowed: options?.allowed ?? "text",
    placeholder: "TEXT",
    parse: (given) => (given !== "" && (options?.pattern.test(given) ?? true) ? given : undefined),
  };
}

/** The path of a directory, which may not exist yet. */
export const directory: Kind<string> = {
  allowed: "the path of a directory, like .berth",
  placeholder: "DIR",
  parse: (given) => (given === "" ? undefined : given),
};

export function integer(range: { readonly min: number; readonly max: number }): Kind<number> {
  return {
    allowed: `an integer from ${range.min} to ${range.max}`,
    placeholder: "N",
    parse: (given) => (/^-?\d+$/.test(given) ? within(Number(given), range) : undefined),
  };
}

/** A decimal number. */
export function float(range: { readonly min: number; readonly max: number }): Kind<number> {
  return {
    allowed: `a number from ${range.min} to ${range.max}`,
    placeholder: "N",
    parse: (given) => (/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(given) ? within(Number(given), range) : undefined),
  };
}

const DURATION_UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration with its unit (`250ms`, `5s`, `1.5m`, `2h`); the value is in milliseconds. */
export function duration(range: { readonly minMs: number; readonly maxMs: number }): Kind<number> {
  return {
    allowed: `a duration like 250ms, 5s or 2m, from ${range.minMs} to ${range.maxMs} ms`,
    placeholder: "TIME",
    parse: (given) => {
      const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(given) ?? [];
      if (amount === undefined || unit === undefined) return undefined;
      return within(Number(amount) * (DURATION_UNITS_MS[unit] ?? 0), { min: range.minMs, max: range.maxMs });
    },
  };
}

/** A URL with one of the schemes (without colon). It is never shown, because it may hold a password. */
export function url(...schemes: readonly [string, ...string[]]): Kind<string> {
  return {
    allowed: `a URL beginning with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`,
    placeholder: "URL",
    secret: true,
    parse: (given) =>
      URL.canParse(given) && schemes.includes(new URL(given).protocol.slice(0, -1)) ? given : undefined,
  };
}

/** One such URL, or several separated by commas, for servers that replace each other. They are never shown. */
export function urls(...schemes: readonly [string, ...string[]]): Kind<string> {
  const one = url(...schemes);
  return {
    ...one,
    allowed: `${one.allowed}, or several, separated by commas`,
    parse: (given) => (given.split(",").every((part) => one.parse(part) !== undefined) ? given : undefined),
  };
}

/** `host:port`, `[ipv6]:port` or `:port` (all addresses). Port 0 means any free port. */
export const hostPort: Kind<HostPort> = {
  allowed: "host:port, like 127.0.0.1:8774",
  placeholder: "HOST:PORT",
  parse: (given) => {
    const [, bracketed, plain, port] = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]/@]*)):(\d{1,5})$/i.exec(given) ?? [];
    if (port === undefined || Number(port) > 65_535) return undefined;
    return Object.freeze({ host: bracketed ?? (plain || "0.0.0.0"), port: Number(port) });
  },
};

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return {
    allowed: choices.join(" | "),
    placeholder: "CHOICE",
    parse: (given) => choices.find((choice) => choice === given),
  };
}

/** `--flag` or `--no-flag`; in the environment true, false, 1, 0, yes, no, on, off. */
export const boolean: Kind<boolean> = {
  allowed: "true | false",
  placeholder: "BOOL",
  flagOnly: true,
  parse: (given) => {
    if (["true", "1", "yes", "on"].includes(given.toLowerCase())) return true;
    return ["false", "0", "no", "off"].includes(given.toLowerCase()) ? false : undefined;
  },
};

/** A comma-separated list with at least one item. */
export function listOf<Value>(item: Kind<Value>): Kind<readonly Value[]> {
  return {
    allowed: `a comma-separated list, each ${item.allowed}`,
    placeholder: `${item.placeholder},…`,
    ...(item.secret ? { secret: true } : {}),
    parse: (given) => {
      const values = given.split(",").map((part) => item.parse(part.trim()));
      return values.includes(undefined) ? undefined : Object.freeze(values as Value[]);
    },
  };
}

function within(value: number, range: { readonly min: number; readonly max: number }): number | undefined {
  return value >= range.min && value <= range.max ? value : undefined;
}
