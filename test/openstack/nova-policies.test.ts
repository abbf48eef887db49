import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeScratchDir } from "../../chaos/local/scratch-dir.ts";
import type { KnownRoute } from "../../services/api/http/known-paths.ts";
import { computeDefaults, policyName } from "../../services/api/policy/compute-rules.ts";
import { ApiRig } from "../integration/api/api-rig.ts";
import { isPartAsked } from "./is-asked.ts";

const source = process.env.BERTH_NOVA_SOURCE ?? "";

interface NovaRule {
  readonly name: string;
  readonly check: string;
  readonly scopes: readonly string[] | null;
  /** Method and path, behind which an action stands in parentheses. */
  readonly operations: readonly (readonly [method: string, path: string])[];
}

/** Rules of Nova that Berth does not have, with the reason. */
const NOT_HERE: Readonly<Record<string, string>> = {
  "compute:servers:resize:cross_cell": "a resize stays in its cell, which is what Nova's default of nobody says",
};

/** Paths that Nova's policy writes otherwise than its routes, or in two ways. */
const PATHS: Readonly<Record<string, string>> = {
  "/os-hypervisors/details": "/os-hypervisors/detail",
  "/servers/{id}": "/servers/{server_id}",
};

const run = promisify(execFile);

/** Reads a checkout, or a git directory without a work tree, like `SampleLibrary.read`. */
async function readRules(): Promise<readonly NovaRule[]> {
  if (existsSync(join(source, "nova/policies"))) return rulesOf(source);
  const scratch = makeScratchDir();
  try {
    const archive = join(scratch.path, "nova.tar");
    await run("git", ["-C", source, "archive", "--output", archive, "HEAD", "nova/__init__.py", "nova/policies"]);
    await run("tar", ["-xf", archive, "-C", scratch.path]);
    return await rulesOf(scratch.path);
  } finally {
    await scratch.remove();
  }
}

async function rulesOf(checkout: string): Promise<readonly NovaRule[]> {
  const script = join(import.meta.dirname, "nova_policies.py");
  const options = { maxBuffer: 4_000_000, timeout: 60_000 };
  const { stdout } = await run("/usr/bin/python3", [script, checkout], options);
  return JSON.parse(stdout) as readonly NovaRule[];
}

describe.runIf(isPartAsked("samples") && source !== "")("the rules of Nova's policy", () => {
  let rules: readonly NovaRule[];
  let rig: ApiRig;
  beforeAll(async () => {
    rules = (await readRules()).filter(({ name }) => !(name in NOT_HERE));
    rig = await ApiRig.start();
  }, 120_000);
  afterAll(() => rig?.close());

  test("are all known, with their defaults, and are of the scope of a project", () => {
    expect(rules.length).toBeGreaterThan(150);
    expect(computeDefaults()).toEqual(Object.fromEntries(rules.map(({ name, check }) => [name, check])));
    const scopes = new Set(rules.flatMap(({ scopes: of }) => of ?? []));
    expect([...scopes]).toEqual(["project"]);
  });

  test("are asked for by the routes and actions for which Nova names them", () => {
    const routes = rig.api.http.knownRoutes!().filter(({ url }) => url.startsWith("/v2.1/"));
    const named = new Map<string, string[]>();
    for (const { name, operations } of rules)
      for (const [method, path] of operations) {
        const key = `${method} ${PATHS[path] ?? path}`;
        named.set(key, [...(named.get(key) ?? []), name]);
      }
    const found = Array.from(named, ([operation, names]) => ({ operation, names, rule: ruleOf(routes, operation) }));
    expect(found.filter(({ rule }) => rule === "no route").map(({ operation }) => operation)).toEqual([]);
    const asked = found.filter(({ rule }) => rule !== null);
    expect(asked.length).toBeGreaterThan(100);
    expect(asked.filter(({ rule, names }) => !names.includes(rule ?? ""))).toEqual([]);
  });
});

/** The rule that a route or an action has among its facts, or null when its handler asks for one. */
function ruleOf(routes: readonly KnownRoute[], operation: string): string | null {
  const [, method = "", path = "", action = null] = /^(\w+) (\S+?)\/?(?: \((\S+)\))?$/.exec(operation) ?? [];
  const shape = (url: string) => url.replaceAll(/:\w+|\{\w+\}/g, "?");
  const wanted = shape(`/v2.1${path}`);
  const route = routes.find((one) => one.method === method && shape(one.url) === wanted);
  if (route === undefined) return "no route";
  const { actions } = route.facts;
  if (action !== null && actions !== undefined && !actions.has(action)) return "no route";
  const rule = (action === null ? undefined : actions?.get(action)?.rule) ?? route.facts.rule ?? null;
  return rule === null ? null : policyName(rule);
}
