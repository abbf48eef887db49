import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { KnownCpuOffers } from "./known-cpu-offers.ts";

let dir: string;
let clock: ManualClock;
let warnings: string[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-cpu-flags-"));
  clock = new ManualClock();
  warnings = [];
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
});

/** A QEMU that tells these flags for every model, or, with null, complains and ends. */
function qemuWith(flags: readonly string[] | null): string {
  const path = join(dir, "qemu");
  const props = Object.fromEntries((flags ?? []).map((flag) => [flag, true]));
  const answers = ["model 0", "max"].map((id) => JSON.stringify({ id, return: { model: { name: "m", props } } }));
  const script =
    flags === null
      ? "echo the accelerator is gone >&2; exit 1"
      : `cat >/dev/null; ${answers.map((answer) => `echo '${answer}'`).join("; ")}`;
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

function agentWith(program: string, cpuModel = "m") {
  const learnt: string[][] = [];
  const flags = new KnownCpuOffers({
    ...{ path: join(dir, "flags.json"), of: ["qemu", 7, "auto", cpuModel], clock },
    question: async () => ({ program, cpuModels: [cpuModel], accel: "tcg" }),
    logger: pino({ level: "warn" }, { write: (line: string) => void warnings.push(JSON.parse(line).err.message) }),
  });
  onTestFinished(() => flags.close());
  flags.learn((found) => void learnt.push(found));
  return { flags, learnt };
}

test("an agent that is started again knows the flags at once, but not those of another CPU model", async () => {
  const program = qemuWith(["aes", "sse4.2"]);
  const first = agentWith(program);
  expect(first.flags.kept()).toBe(null);
  await eventually("the flags", () => first.learnt.length === 1);
  expect(first.learnt).toEqual([["aes", "sse4.2"]]);
  expect(agentWith(program).flags.kept()).toEqual(["aes", "sse4.2"]);
  expect(agentWith(program, "other").flags.kept()).toBe(null);
});

test("a QEMU that does not answer takes no known flags away, and is asked again", async () => {
  const first = agentWith(qemuWith(["aes"]));
  await eventually("the flags", () => first.learnt.length === 1);
  const second = agentWith(qemuWith(null));
  await eventually("the warning", () => warnings.length === 1);
  expect(warnings[0]).toContain("the accelerator is gone");
  expect(second.flags.kept()).toEqual(["aes"]);
  expect(second.learnt).toEqual([]);

  qemuWith(["aes", "avx2"]);
  await eventually("the time to ask again", () => clock.pending === 1);
  clock.advance(30_000);
  await eventually("the flags of now", () => second.learnt.length === 1);
  expect(second.learnt).toEqual([["aes", "avx2"]]);
});

test("damaged kept flags are learnt anew", async () => {
  writeFileSync(join(dir, "flags.json"), '{"of": 1');
  const { flags, learnt } = agentWith(qemuWith(["aes"]));
  expect(flags.kept()).toBe(null);
  await eventually("the flags", () => learnt.length === 1);
  expect(flags.kept()).toEqual(["aes"]);
});
