import { mkdtemp, rename, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { SettingsError } from "../../../runtime/settings.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { RULES, secureDefaults } from "../placement/placement-rules.ts";
import { Policy } from "./policy.ts";
import { PolicyFile, parsePolicyFile } from "./policy-file.ts";

describe("the text of a policy file", () => {
  test.each([
    ["", {}],
    ["# nothing but a comment\n", {}],
    [
      '"placement:usages": "role:admin"\nowner: project_id:%(project_id)s\n',
      { "placement:usages": "role:admin", owner: "project_id:%(project_id)s" },
    ],
    ['{"a": "@", "b": ""}', { a: "@", b: "" }],
    [
      'a: [["role:x", "role:y"], ["project_id:%(project_id)s"], "role:z"]',
      { a: "role:x and role:y or project_id:%(project_id)s or role:z" },
    ],
    ["a: []\nb: [[]]", { a: "@", b: "!" }],
  ])("%j", (text, overrides) => expect(parsePolicyFile(text)).toEqual(overrides));

  test.each([
    ["- a\n- b", "it must be a map of rules by name"],
    ["just words", "it must be a map of rules by name"],
    ["a:", 'policy rule "a" must be text ("@" allows every caller, "!" none), but it is null'],
    ["a: true", 'policy rule "a" must be text ("@" allows every caller, "!" none), but it is true'],
    ["a: [[1]]", 'policy rule "a" must be a list of lists of checks'],
    ["a: [['role:x or role:y']]", 'policy rule "a" must be a list of lists of checks'],
    ["a: 1\na: 2", "Map keys must be unique"],
  ])("%j is refused", (text, message) => expect(() => parsePolicyFile(text)).toThrow(message));
});

describe("a policy file that is followed", () => {
  const clock = new ManualClock();
  const nobody = { userId: "u", projectId: "p", systemScope: null, roles: [] };
  let dir: string;
  let path: string;
  let told: string[];
  let policy: Policy;
  let file: PolicyFile;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "berth-policy-"));
    path = join(dir, "policy.yaml");
    told = [];
    policy = new Policy(secureDefaults());
    file = new PolicyFile({
      path,
      policy,
      clock,
      settleMs: 20,
      events: {
        policyLoaded: (_path, overrides) => told.push(`loaded ${overrides}`),
        policyRefused: (_path, reason) => told.push(`refused: ${reason}`),
        policyDoubted: (_path, doubt) => told.push(`doubted: ${doubt}`),
      },
    });
  });
  afterEach(async () => {
    await file.close();
    expect(clock.pending).toBe(0);
    await rm(dir, { recursive: true });
  });

  const traitsAreOpen = () => policy.allows(RULES.traitsList, nobody, {});
  const start = async (text: string) => {
    await writeFile(path, text);
    await file.start();
  };
  /** Advances the clock by one poll after another until an event was reported. */
  const nextTold = async () => {
    const before = told.length;
    await eventually("word of the policy file", () => {
      clock.advance(10_000);
      return told.length > before;
    });
    return told.slice(before);
  };

  test("is in force from the start", async () => {
    await start(`"${RULES.traitsList}": "@"`);
    expect(traitsAreOpen()).toBe(true);
    expect(told).toEqual(["loaded 1"]);
  });

  test("is in force again after it was replaced, as an editor does", async () => {
    await start("{}");
    await writeFile(join(dir, "new"), `"${RULES.traitsList}": "@"`);
    await rename(join(dir, "new"), path);
    expect(await nextTold()).toEqual(["loaded 1"]);
    expect(traitsAreOpen()).toBe(true);
  });

  test("that becomes invalid is refused once, with one line, and the old rules stay until it is repaired", async () => {
    await start(`"${RULES.traitsList}": "@"`);
    await writeFile(path, `"${RULES.traitsList}": "role:x or"`);
    expect(await nextTold()).toEqual([
      `refused: policy rule "${RULES.traitsList}": a check is missing at word 3 of "role:x or"`,
    ]);
    await writeFile(path, "a: [");
    expect(await nextTold()).toEqual([expect.stringMatching(/^refused: it is not YAML: .* at line 1, column \d+$/)]);
    await unlink(path);
    expect(await nextTold()).toEqual(["refused: it cannot be read"]);
    expect(traitsAreOpen()).toBe(true);
    await writeFile(path, "");
    expect(await nextTold()).toEqual(["loaded 0"]);
    expect(traitsAreOpen()).toBe(false);
  });

  test("takes effect only when it has stopped changing, so that a half-written file never does", async () => {
    await start(`"${RULES.traitsList}": "@"`);
    const look = async () => {
      clock.advance(10_000);
      await eventually("the end of a look", () => clock.pending === 1);
    };
    await writeFile(path, "");
    await look();
    await writeFile(path, `"${RULES.traitsList}": "@"`);
    for (let looks = 0; looks < 5; looks += 1) await look();
    expect(told).toEqual(["loaded 1"]);
  });

  test("reports names that no rule uses", async () => {
    await start('"placement:trait:list": "@"');
    expect(told).toEqual(['doubted: no route uses rule "placement:trait:list"', "loaded 1"]);
  });

  test.each([
    ["is not there", null, "ENOENT"],
    ["does not parse", "a: [", "it is not YAML"],
    ["has a rule that does not", "a: role:x or", 'policy rule "a": a check is missing'],
  ])("that %s refuses start", async (_what, text, reason) => {
    if (text !== null) await writeFile(path, text);
    await expect(file.start()).rejects.toThrow(SettingsError);
    await expect(file.start()).rejects.toThrow(`the policy file ${path} is refused: ${reason}`);
  });

  test("takes effect without a poll when the system reports the change", async () => {
    await start("{}");
    await writeFile(path, `"${RULES.traitsList}": "@"`);
    // This time is far shorter than the interval of the polls. So a timer that is due now was set by a notification of the system.
    await eventually("word of the policy file", () => {
      clock.advance(1);
      return told.length > 1;
    });
    expect(traitsAreOpen()).toBe(true);
  });
});
