import { parseArgs } from "node:util";
import { DEFAULT_PARTS, PART_NAMES, PARTS, type PartName } from "./parts.ts";

/** What a call of `npm run test:openstack` asks for. */
export type Asked =
  | { readonly kind: "run"; readonly parts: readonly PartName[]; readonly novaSource: string }
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly why: string };

const OPTIONS = {
  only: { type: "string" },
  with: { type: "string" },
  without: { type: "string" },
  "nova-source": { type: "string" },
  help: { type: "boolean" },
} as const;

/** Reads the switches. `novaSource`: what the environment names. */
export function chooseParts(args: readonly string[], novaSource: string): Asked {
  let values: ReturnType<typeof read>;
  try {
    values = read(args);
  } catch (error) {
    return { kind: "wrong", why: `${error instanceof Error ? error.message : error}` };
  }
  if (values.help === true) return { kind: "help" };
  const lists = { only: listOf(values.only), with: listOf(values.with), without: listOf(values.without) };
  for (const [flag, names] of Object.entries(lists)) {
    const unknown = names?.find((name) => !isPart(name));
    if (unknown !== undefined)
      return {
        kind: "wrong",
        why: `--${flag}: there is no part "${unknown}". The parts are ${PART_NAMES.join(", ")}.`,
      };
  }
  const begun = lists.only ?? DEFAULT_PARTS;
  const parts = PART_NAMES.filter(
    (name) => (begun.includes(name) || lists.with?.includes(name)) && !lists.without?.includes(name),
  );
  if (parts.length === 0) return { kind: "wrong", why: "The switches leave no part to run." };
  return { kind: "run", parts, novaSource: values["nova-source"] ?? novaSource };
}

const read = (args: readonly string[]) => parseArgs({ args: [...args], options: OPTIONS, strict: true }).values;

const listOf = (text: string | undefined): readonly string[] | null => text?.split(",") ?? null;

const isPart = (name: string): name is PartName => PART_NAMES.some((one) => one === name);

/** The lines of `--help`. */
export const HELP: readonly string[] = [
  "Tests Berth with Debian's OpenStack services, clients and tests. Switches (behind `npm run test:openstack --`):",
  "  --only A,B               run these parts alone",
  "  --with A,B               run these, too",
  "  --without A,B            leave these out",
  "  --nova-source DIRECTORY  a checkout of openstack/nova, for the part `samples` (or BERTH_NOVA_SOURCE)",
  "Parts:",
  ...PART_NAMES.map(
    (name) => `  ${name.padEnd(15)} ${PARTS[name].what}${PARTS[name].isDefault ? "" : " (only if asked for)"}`,
  ),
];
