import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Checker, outcomeOf } from "../checkers/checker.ts";
import { disablingHosts } from "./disabling-hosts.ts";
import { creates, deletes, faking, limit, lists, mix, pausing, shows } from "./generators.ts";
import { InProcessCloud } from "./in-process-cloud.ts";
import { failingBuilds, together } from "./nemesis.ts";
import { runSuite } from "./run-suite.ts";
import { expectSound, useCloud } from "./vitest.ts";

/** Long enough for a machine that is busy with other work. */
const PATIENCE_MS = 120_000;

describe("a suite on a cloud in this process", { timeout: PATIENCE_MS }, () => {
  const cloud = useCloud(() => InProcessCloud.start({ cells: 2, schedulers: 1, conductors: 1 }));
  const dir = mkdtempSync(join(tmpdir(), "berth-suite-"));
  afterAll(() => rmSync(dir, { recursive: true }));

  test("load without an end is stopped, while hosts fail and are disabled", async () => {
    const result = await runSuite({
      name: "endless",
      cloud: cloud(),
      generator: pausing(50, mix([4, creates()], [1, deletes()], [1, shows()], [1, lists()])),
      nemesis: together(failingBuilds(0.2), disablingHosts({ forMs: 300, pauseMs: 100 })),
      withinMs: 3_000,
    });
    const report = join(dir, "report.html");
    expectSound(result, { report });
    expect(readFileSync(report, "utf8")).toContain("own disabled cell-");
    expect(result.servers.length).toBeGreaterThan(0);
    const { status, json } = await cloud().call("GET", "/v2.1/servers");
    expect([status, json]).toEqual([200, expect.objectContaining({ servers: [] })]);
    const services = (await cloud().call("GET", "/v2.1/os-services?binary=nova-compute")).json as {
      readonly services: readonly { readonly status: string }[];
    };
    expect(services.services.every((service) => service.status === "enabled")).toBe(true);
  });

  test("a finding of a custom checker fails the suite", async () => {
    const nobodyAnywhere: Checker = {
      name: "nobody anywhere",
      check: (history) =>
        outcomeOf(
          history.flatMap((line) => (line.what === "state" && line.host ? [{ atMs: line.atMs, what: line.host }] : [])),
        ),
    };
    const result = await runSuite({
      name: "found",
      cloud: cloud(),
      generator: limit(40, creates()),
      clients: 8,
      checkers: [nobodyAnywhere],
    });
    expect(() => expectSound(result)).toThrow("nobody anywhere: cell-");
    expect(result.history.at(-1)).toMatchObject({ what: "end", passed: false, failures: result.failures });
  });

  test("a server that cannot be built ends in ERROR with its reason, which does not fail the suite", async () => {
    const script = { outcome: "abort", reason: "the image is of clay" } as const;
    const generator = faking(script, limit(2, creates()));
    const result = await runSuite({ name: "error", cloud: cloud(), generator });
    expectSound(result);
    expect(result.servers).toEqual([0, 1].map(() => expect.objectContaining({ state: "ERROR", host: null })));
    expect(result.servers[0]?.fault).toContain("the image is of clay");
  });

  test("a nemesis that throws fails the suite, with nothing left running", async () => {
    const nemesis = async (): Promise<void> => {
      throw new Error("my nemesis is broken");
    };
    const generator = limit(3, creates());
    await expect(runSuite({ name: "thrown", cloud: cloud(), generator, nemesis })).rejects.toThrow("is broken");
  });
});
