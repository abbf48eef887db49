import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import { eventually } from "../rigs/eventually.ts";
import { isAsked } from "./is-asked.ts";
import { hasOpenstackClient, OpenstackClient } from "./openstack-client.ts";
import { SESSION } from "./session.ts";
import type { Step } from "./session-steps.ts";

const NEWER = "2.90";

// `npm run test:openstack` installs Debian's package python3-openstackclient and asks for this file, which `npm test` leaves out.
const isPossible = isAsked && hasOpenstackClient;

describe.runIf(isPossible)("Debian's openstack command", () => {
  let directory: string;
  let dev: ServiceProcess;
  let oldest: OpenstackClient;
  let newest: OpenstackClient;
  const kept = new Map<string, string>();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "berth-openstack-"));
    const argv = ["dev", "--auth", "password", "--port", "0", "--hosts", "8", "--cells", "2", "--data-dir", directory];
    dev = new ServiceProcess({ name: "dev", argv: [...argv, "--log-level", "error"], env: () => ({}) });
    await dev.start();
    const cloud = { cloudsFile: join(directory, "clouds.yaml"), cloud: "berth", home: directory };
    oldest = new OpenstackClient({ ...cloud, computeVersion: "2.1" });
    newest = new OpenstackClient({ ...cloud, computeVersion: NEWER });
  }, 180_000);
  afterAll(async () => {
    await oldest?.close();
    await newest?.close();
    await dev?.kill();
    removeCluster(join(directory, "postgres"));
    removeCluster(directory);
  });

  async function settle(server: string, status: string | null): Promise<void> {
    await eventually(`${server} is ${status ?? "gone"}`, async () => {
      const words = ["server", "show", server, "-f", "json", "-c", "status", "-c", "OS-EXT-STS:task_state"];
      const { code, out } = await oldest.run(words);
      if (code !== 0) return status === null;
      const shown = JSON.parse(out);
      return shown.status === status && shown["OS-EXT-STS:task_state"] === null;
    });
  }

  async function settleVolume(volume: string, status: string): Promise<void> {
    await eventually(`volume ${volume} is ${status}`, async () => {
      const { out } = await oldest.run(["volume", "show", volume, "-f", "value", "-c", "status"]);
      return out.trim() === status;
    });
  }

  /** Returns what is wrong with the answer, or null. */
  async function judge(step: Extract<Step, { kind: "command" }>): Promise<string | null> {
    const words = step.words.replace(/\{(\w+)\}/g, (_all, name) => kept.get(name) ?? "");
    const { code, out, errors } = await (step.newer ? newest : oldest).run(words.split(" "));
    if (step.keepAs !== null) kept.set(step.keepAs, out.trim());
    const isAsExpected =
      step.fails === null ? code === 0 && (step.shows?.test(out) ?? true) : code !== 0 && step.fails.test(out + errors);
    return isAsExpected ? null : `${words}: ${code}: ${(errors || out).slice(0, 1_000)}`;
  }

  test(`does what an administrator asks in a session of ${SESSION.filter(({ kind }) => kind === "command").length} commands`, {
    timeout: 600_000,
  }, async () => {
    const wrong: string[] = [];
    for (const step of SESSION) {
      if (step.kind !== "command") {
        const settled =
          step.kind === "settle" ? settle(step.server, step.status) : settleVolume(step.volume, step.status);
        await settled.catch((error: unknown) => wrong.push(String(error)));
        continue;
      }
      const fault = await judge(step);
      if (fault !== null) wrong.push(fault);
    }
    expect(wrong).toEqual([]);
  });

  test("an ordinary user sees and changes what is the project's own", { timeout: 120_000 }, async () => {
    const cloud = { cloudsFile: join(directory, "clouds.yaml"), cloud: "berth-demo", home: directory };
    const demo = new OpenstackClient({ ...cloud, computeVersion: "2.1" });
    try {
      const codes: [string, number][] = [];
      const run = async (words: string) => {
        const { code } = await demo.run(words.split(" "));
        codes.push([words, code]);
      };
      for (const words of [
        "project list",
        "server list",
        "flavor list",
        "image create own",
        "network list",
        "quota show",
      ])
        await run(words);
      expect(codes.filter(([, code]) => code !== 0)).toEqual([]);
      for (const words of ["user list", "flavor create --vcpus 1 --ram 1 --disk 1 x", "hypervisor list"]) {
        const { code, errors } = await demo.run(words.split(" "));
        expect([words, code, errors]).toEqual([words, 1, expect.stringMatching(/403/)]);
      }
    } finally {
      await demo.close();
    }
  });
});
