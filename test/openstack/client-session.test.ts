import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import "./command/figures.ts";
import { isPartAsked } from "./is-asked.ts";
import { hasOpenstackClient, OpenstackClient } from "./openstack-client.ts";
import { commandsOf, figuresOf, runSession } from "./run-session.ts";
import { SESSION } from "./session.ts";

const NEWER = "2.90";

// `npm run test:openstack` installs Debian's package python3-openstackclient and asks for this file, which `npm test` leaves out.
const isPossible = isPartAsked("client") && hasOpenstackClient;

describe.runIf(isPossible)("Debian's openstack command", () => {
  let directory: string;
  let dev: ServiceProcess;
  let oldest: OpenstackClient;
  let newest: OpenstackClient;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "berth-openstack-"));
    const argv = ["dev", "--auth", "password", "--port", "0", "--hosts", "8", "--cells", "2", "--data-dir", directory];
    dev = new ServiceProcess({ name: "dev", argv: [...argv, "--log-level", "error"], env: () => ({}) });
    await dev.start();
    const cloud = { cloudsFile: join(directory, "clouds.yaml"), cloud: "berth", home: directory };
    oldest = new OpenstackClient({ ...cloud, computeVersion: "2.1" });
    newest = new OpenstackClient({ ...cloud, computeVersion: NEWER });
  }, 900_000);
  afterAll(async () => {
    await oldest?.close();
    await newest?.close();
    await dev?.kill();
    removeCluster(join(directory, "postgres"));
    removeCluster(directory);
  });

  test(`does what an administrator asks in a session of ${commandsOf(SESSION)} commands`, {
    timeout: 600_000,
  }, async ({ task }) => {
    const wrong = await runSession(SESSION, { oldest, newest });
    task.meta.figures = figuresOf(SESSION, wrong);
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
