import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasChromium } from "../rigs/chromium.ts";
import { eventually } from "../rigs/eventually.ts";
import "./command/figures.ts";
import { heatSession } from "./heat-session.ts";
import { horizonSession } from "./horizon-session.ts";
import { isPartAsked } from "./is-asked.ts";
import { masakariSession } from "./masakari-session.ts";
import { hasOpenstackClient, OpenstackClient } from "./openstack-client.ts";
import { prepareHeat } from "./prepare-heat.ts";
import { prepareMasakari } from "./prepare-masakari.ts";
import { RALLY_SCENARIOS } from "./rally-scenarios.ts";
import { hasRealCloud, type RealCloud, startRealCloud } from "./real-cloud.ts";
import { hasHeat } from "./real-heat.ts";
import { hasHorizon } from "./real-horizon.ts";
import { prepareHorizon } from "./real-horizon-cloud.ts";
import { hasMasakari } from "./real-masakari.ts";
import { REAL_SESSION } from "./real-session.ts";
import { hasRally, prepareRally, runRally } from "./run-rally.ts";
import { commandsOf, figuresOf, runSession } from "./run-session.ts";
import { runTitledSteps } from "./run-titled-steps.ts";
import { reportOf, runModules } from "./tempest/judge-tempest.ts";
import { prepareRealTempest } from "./tempest/prepare-tempest.ts";
import { hasTempest } from "./tempest/tempest-runs.ts";

const NEWER = "2.90";
// The key is nobody's: its private half was thrown away.
const PUBLIC_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody@example.org";
const HAS_HORIZON = isPartAsked("horizon") && hasHorizon && hasChromium;
const HAS_CLIENT = isPartAsked("client") && hasOpenstackClient;
const HAS_HEAT = isPartAsked("heat") && hasHeat;
const HAS_MASAKARI = isPartAsked("masakari") && hasMasakari;
const HAS_RALLY = isPartAsked("rally") && hasRally;
const HAS_TEMPEST = isPartAsked("tempest") && hasTempest;

// `npm run test:openstack` installs the packages and asks for this file. Its parts share one cloud, since its start takes minutes on a busy machine. Each
// leaves nothing that the next ones would find.
describe.runIf(hasRealCloud && (HAS_HORIZON || HAS_CLIENT || HAS_HEAT || HAS_MASAKARI || HAS_RALLY || HAS_TEMPEST))(
  "Berth with Debian's Keystone, Glance, Neutron and Cinder",
  () => {
    let cloud: RealCloud;
    beforeAll(async () => {
      // Tempest expects that servers are offloaded as soon as they are shelved, as Nova does by default.
      cloud = await startRealCloud({ BERTH_SHELVED_OFFLOAD_TIME: "0" });
    }, 900_000);
    afterAll(() => cloud?.stop(), 240_000);

    describe.runIf(HAS_HORIZON)("Debian's Horizon", { meta: { part: "horizon" } }, () => {
      horizonSession("horizon-keystone", () => prepareHorizon(cloud));
    });

    describe.runIf(HAS_CLIENT)("Debian's openstack command", { meta: { part: "client" } }, () => {
      let oldest: OpenstackClient;
      let newest: OpenstackClient;
      const kept = new Map<string, string>();

      beforeAll(async () => {
        const { directory } = cloud;
        const files = { file: "a disk".repeat(1_000), public: `${PUBLIC_KEY}\n` };
        for (const [name, content] of Object.entries(files)) {
          kept.set(name, join(directory, name));
          await writeFile(join(directory, name), content);
        }
        const settings = { cloudsFile: join(directory, "clouds.yaml"), cloud: "real", home: directory };
        oldest = new OpenstackClient({ ...settings, computeVersion: "2.1" });
        newest = new OpenstackClient({ ...settings, computeVersion: NEWER });
      });
      afterAll(async () => {
        await oldest?.close();
        await newest?.close();
      });

      test(`does what an administrator asks in a session of ${commandsOf(REAL_SESSION)} commands`, {
        timeout: 5_400_000,
      }, async ({ task }) => {
        const wrong = await runSession(REAL_SESSION, { oldest, newest }, kept);
        task.meta.figures = figuresOf(REAL_SESSION, wrong);
        expect(wrong).toEqual([]);
      });

      test("has left nothing that an audit finds, also not between Cinder and the servers", {
        timeout: 900_000,
      }, async () => {
        let found: readonly string[] = ["no audit has ended"];
        const isClean = async () => {
          found = await cloud.audit();
          return found.length === 0;
        };
        // Apis end what a deleted server has left in Cinder a moment later.
        await eventually("the audit finds nothing", isClean, { everyMs: 1_000, withinMs: 600_000 }).catch(() => {});
        expect(found).toEqual([]);
        // A volume that somebody marks by hand is found.
        const volumes = `${cloud.volumeUrl}/volumes`;
        const { volume } = await cloud.call("POST", volumes, { volume: { size: 1, name: "marked" } });
        const isMade = async () => (await cloud.call("GET", `${volumes}/${volume.id}`)).volume.status === "available";
        await eventually("the volume is made", isMade, { everyMs: 500, withinMs: 240_000 });
        const mark = (status: string) =>
          cloud.call("POST", `${volumes}/${volume.id}/action`, { "os-reset_status": { status } });
        // This Cinder marks no volume as in use that has no attachment.
        await mark("reserved");
        expect(await cloud.audit()).toEqual([expect.stringContaining(`volume ${volume.id}: its status is reserved`)]);
        await mark("available");
        await cloud.call("DELETE", `${volumes}/${volume.id}`);
      });
    });

    describe.runIf(HAS_HEAT)("Debian's Heat", { meta: { part: "heat" } }, () => {
      test("makes, changes and deletes a stack with each kind of resource of the Compute API", {
        timeout: 3_600_000,
      }, async ({ task }) => {
        const world = await prepareHeat(cloud);
        try {
          const { figures, wrong } = await runTitledSteps(heatSession(world));
          task.meta.figures = figures;
          expect(wrong).toEqual([]);
        } finally {
          await world.stop();
        }
      });
    });

    describe.runIf(HAS_MASAKARI)("Debian's Masakari", { meta: { part: "masakari" } }, () => {
      test("recovers servers of hosts that fail, and that are fenced", { timeout: 3_600_000 }, async ({ task }) => {
        const world = await prepareMasakari(cloud);
        try {
          const { figures, wrong } = await runTitledSteps(masakariSession(world));
          task.meta.figures = figures;
          expect(wrong).toEqual([]);
        } finally {
          await world.stop();
        }
      });
    });

    describe.runIf(HAS_RALLY)("Debian's Rally", { meta: { part: "rally" } }, () => {
      test("ends each iteration of its scenarios, and leaves nothing", { timeout: 3_600_000 }, async ({ task }) => {
        const remove = await prepareRally(cloud);
        const results = await runRally(cloud, RALLY_SCENARIOS);
        const failures = results.flatMap(({ name, errors }) => errors.map((error) => `${name}: ${error}`));
        const passed = results.reduce((sum, result) => sum + result.passed, 0);
        task.meta.figures = { passed, failed: failures.length };
        expect(failures).toEqual([]);
        expect((await cloud.call("GET", `${cloud.url}/v2.1/servers?all_tenants=1`)).servers).toEqual([]);
        await remove();
      });
    });

    describe.runIf(HAS_TEMPEST)("Tempest's tempest.api.compute", { meta: { part: "tempest" } }, () => {
      test("passes, but for failures that are expected and named", { timeout: 14_400_000 }, async ({ task }) => {
        const directory = await prepareRealTempest(cloud);
        const verdicts = await runModules(directory);
        const { figures, surprises } = reportOf(verdicts, "real");
        task.meta.figures = figures;
        expect(surprises).toEqual([]);
      });
    });
  },
);
