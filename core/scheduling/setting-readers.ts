/** Converts a stored or entered value to the value of a setting. */
export interface SettingReader<Value> {
  /** Describes the permitted values in the refusal of another one. */
  readonly allowed: string;
  /** Returns undefined when the value is not permitted. It accepts JSON as well as the text of a command line. */
  read(given: unknown): Value | undefined;
}

export function numberFrom(min: number, max: number): SettingReader<number> {
  return { allowed: `a number from ${min} to ${max}`, read: (given) => within(given, min, max) };
}

export function integerFrom(min: number, max: number): SettingReader<number> {
  return {
    allowed: `an integer from ${min} to ${max}`,
    read: (given) => {
      const value = within(given, min, max);
      return value !== undefined && Number.isSafeInteger(value) ? value : undefined;
    },
  };
}

export const yesOrNo: SettingReader<boolean> = {
  allowed: "true | false",
  read: (given) => {
    if (given === true || given === "true") return true;
    return given === false || given === "false" ? false : undefined;
  },
};

/** Text, where the empty text stands for "none". */
export function textUpTo(lengthMax: number): SettingReader<string> {
  return {
    allowed: `text of at most ${lengthMax} characters`,
    read: (given) => (typeof given === "string" && given.length <= lengthMax ? given.trim() : undefined),
  };
}

/** A list without repetitions, given as an array or as comma-separated text. */
export function listSetting<Item extends string>(
  most: number,
  choices?: readonly Item[],
): SettingReader<readonly Item[]> {
  const each = choices ? `each one of ${choices.join(", ")}` : "each a name";
  const isItem = (item: unknown): item is Item =>
    typeof item === "string" && item !== "" && (!choices || choices.some((choice) => choice === item));
  return {
    allowed: `a list of at most ${most} different items, ${each}`,
    read: (given) => {
      const items = itemsOf(given);
      if (!items || items.length > most || !items.every(isItem)) return undefined;
      return new Set(items).size === items.length ? items : undefined;
    },
  };
}

/** Numbers by name, given as an object or as text like `cpu.frequency=1.0,load=-2`. */
export function numbersByName(most: number): SettingReader<Readonly<Record<string, number>>> {
  return {
    allowed: `at most ${most} numbers by name, like name1=1.0,name2=-1`,
    read: (given) => {
      const pairs = pairsOf(given)?.map(([name, text]) => [name.trim(), within(text, -1e12, 1e12)] as const);
      if (!pairs || pairs.length > most) return undefined;
      const valid = pairs.every(([name, value]) => name !== "" && value !== undefined);
      return valid ? (Object.fromEntries(pairs) as Record<string, number>) : undefined;
    },
  };
}

const RESOURCE_CLASS = /^[A-Z0-9_]{1,255}$/;

/** Resource classes by name, given as an object or as text like `gpu=CUSTOM_PCI_GPU,nic=SRIOV_NET_VF`. */
export function classesByName(most: number): SettingReader<Readonly<Record<string, string>>> {
  return {
    allowed: `at most ${most} resource classes by name, like name1=CUSTOM_A,name2=PGPU`,
    read: (given) => {
      const pairs = pairsOf(given)?.map(([name, text]) => [name.trim(), typeof text === "string" ? text.trim() : ""]);
      if (!pairs || pairs.length > most) return undefined;
      const valid = pairs.every(([name, text]) => name !== "" && RESOURCE_CLASS.test(text ?? ""));
      return valid ? (Object.fromEntries(pairs) as Record<string, string>) : undefined;
    },
  };
}

function within(given: unknown, min: number, max: number): number | undefined {
  const isText = typeof given === "string" && /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(given);
  const value = isText ? Number(given) : given;
  return typeof value === "number" && value >= min && value <= max ? value : undefined;
}

function itemsOf(given: unknown): readonly unknown[] | null {
  if (Array.isArray(given)) return given;
  if (typeof given !== "string") return null;
  return given.trim() === "" ? [] : given.split(",").map((item) => item.trim());
}

function pairsOf(given: unknown): readonly (readonly [string, unknown])[] | null {
  if (given !== null && typeof given === "object" && !Array.isArray(given)) return Object.entries(given);
  return (
    itemsOf(given)?.map((item) => {
      const text = String(item);
      const at = text.indexOf("=");
      return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
    }) ?? null
  );
}
