import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { computeDefaults, policyName } from "./compute-rules.ts";

const API = join(import.meta.dirname, "../compute");
/** The program text of every route and handler. */
const SOURCES = readdirSync(API, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .map((path) => readFileSync(join(API, path), "utf8"));

/** The rules to which other rules refer, and the one that says who is an admin. */
const OF_CALLERS = /^(?:context_is_admin|project_\w+|service_\w+|admin_api|admin_or_owner)$/;

/** Whether a text names a rule, as a whole or as two parts that it puts together. */
function names(text: string, rule: string): boolean {
  if (text.includes(`"${rule}"`) || text.includes(`\`${rule}\``)) return true;
  const colons = [...rule].flatMap((character, at) => (character === ":" ? [at] : []));
  return colons.some((at) => {
    const [head, tail] = [rule.slice(0, at), rule.slice(at + 1)];
    const hasHead = text.includes(`"${head}"`) || text.includes(`\`${head}:\${`);
    return hasHead && (text.includes(`"${tail}"`) || text.includes(`}:${tail}\``) || text.includes(`${tail}:`));
  });
}

describe("the rules of the Compute API", () => {
  test("are all checked by a route or a handler", () => {
    const rules = Object.keys(computeDefaults()).filter((rule) => !OF_CALLERS.test(rule));
    const short = rules.map((rule) => rule.replace("os_compute_api:", ""));
    expect(short.filter((rule) => !SOURCES.some((text) => names(text, rule)))).toEqual([]);
  });

  test("have a default wherever one is checked, so that the log calls no override useless that has an effect", () => {
    const checked = /(?:(?:mayDo|requireRule)\([^"`;]*?,|\brule:)\s*"([\w:-]+)"/g;
    const found = SOURCES.flatMap((text) => Array.from(text.matchAll(checked), ([, rule = ""]) => policyName(rule)));
    expect(found.length).toBeGreaterThan(50);
    const defaults = computeDefaults();
    expect(found.filter((rule) => !(rule in defaults))).toEqual([]);
  });
});
